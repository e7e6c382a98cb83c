"""Rewrites of an Intersect: a join of its sides, each filtered by the records of the other."""

from __future__ import annotations

from dataclasses import replace

from wpinq.columns.records import column_names
from wpinq.engines.sql.blocks import (
    Block,
    Relation,
    SqlTable,
    column_list,
    derived,
    few_terms,
    grows,
    looked_up,
    reads,
    restricted,
)
from wpinq.engines.sql.rewrite_targets import Minimum
from wpinq.engines.sql.script import Script, numbered
from wpinq.engines.sql.terms import TRUE, SqlTerm, aligned, both, call, coerce, leaves, number, same_value
from wpinq.expr.types import Type


def intersect_as_join(script: Script, minimum: Minimum) -> Minimum:
    """An Intersect is the join of its sides on the whole record, and the negative records that only one side has.

    Before: `SELECT c0, least(coalesce(max(w) FILTER (side = 0), 0), …) FROM (A UNION ALL B) GROUP BY c0`.
    After: `SELECT a.c0, least(a.w, b.w) FROM A AS a, B AS b WHERE a.c0 = b.c0`.

    `min(A(x), B(x))`, an absent record weighing 0, is

    - the smaller weight where both sides have x: a row of the join of the sides on the record;
    - `A(x)` where only A has x and `A(x) < 0`, and likewise for B;
    - 0 otherwise.

    A positive record matters only where the partner has it too, so its partner filters a side while it is made. Where
    both sides are nonnegative, as the plan says, there is no second part. Where one is not, its negative rows are
    stored (few, in most data), looked up in the partner, and kept where it has none.

    Needs: each record in one row. A side of which that is not known is stored first, which adds its rows up.

    Weights: a minimum rounds nothing. The norms that a Join inside a side divides by are tables of the block, made from
    the unfiltered inputs. So every weight has the bits that it had. The parts exclude each other, and their union costs
    the one roundoff of a sum.
    """
    sides, output = [], minimum.output
    for relation in minimum.inputs:
        once = script.once(relation)
        block = once.blocks[0]
        shape = aligned(coerce(block.output, relation.type, output.type), output.type)
        sides.append(replace(once, blocks=(replace(block, output=shape),), type=output.type))
    blocks = [_matched(script, sides[0], sides[1])]
    for side, partner in ((sides[0], sides[1]), (sides[1], sides[0])):
        if not side.nonnegative:
            blocks.append(_alone(script, side, partner))
    return replace(minimum, relation=replace(output, blocks=tuple(blocks)))


def _matched(script: Script, left: Relation, right: Relation) -> Block:
    """The rows of both sides with one record, at the smaller weight."""
    a, b = script.single(left), script.single(right)
    condition = both([a.condition, b.condition, same_value(a.output, b.output)])
    joined = Block(a.tables + b.tables, condition, a.output, call("least", a.weight, b.weight))
    return script.rewritten(joined)


def _alone(script: Script, side: Relation, partner: Relation) -> Block:
    """The negative rows of a side whose record its partner does not have."""
    block = side.blocks[0]
    negative = script.stored(replace(side, blocks=(restricted(block, call("less", block.weight, number(0.0))),)))
    met = script.stored(replace(side, blocks=(_matched(script, negative, partner),)))
    names = column_names(side.type)
    ((_, held),), ((_, found),) = negative.blocks[0].tables, met.blocks[0].tables
    on = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names) or "TRUE"
    sql = f"SELECT a.* FROM {held.source} AS a ANTI JOIN {found.source} AS b ON {on}"
    table = derived(sql, column_list(side.type), reads([*negative.blocks, *met.blocks]), (frozenset(names),))
    return script.scan(table, side.type)


def filter_by_partner(script: Script, minimum: Minimum) -> Minimum:
    """Rows of a side that its partner does not have are left out before equal records are added up.

    Before: `FROM (SELECT c0, sum(w) FROM A GROUP BY c0) AS a, B AS b WHERE a.c0 = b.c0`.
    After: `FROM (SELECT a.c0, sum(a.w) FROM A AS a, B AS b WHERE a.c0 = b.c0 GROUP BY a.c0) AS a, B AS b WHERE …`.

    Of all wedges of a graph, say, only those are made whose ends are joined by an edge. The records of the partner
    stand in a table, which becomes one more of the tables that the rows are joined from. So it filters them before they
    are put in groups, and, where `join_order` sees fit, before all are made.

    The filter leaves out columns of few values whatever the data are, the pieces of a Shave, as long as there are
    others. Hardly any record differs from the partner's in them alone, and each row of the filter would stand there
    once for each of them. The minimum looks up all that the filter lets through, as before.

    Needs: a side without negative rows, as the plan says; of the partner's sign nothing. The partner is stored anyway,
    or no larger than its tables. Each record stands in the filter once, so no row is doubled.

    Weights: all rows of a record stay or go together. A sum over the same rows, on the same grid (`sums`), has the bits
    that it had. A record that goes would have weighed `min(a, 0) = 0`, since a sum of weights that are not negative is
    not either. The norms of a Join are made from its own inputs, unfiltered, below this. GroupBy and Shave take their
    input as it is.
    """
    left, right = minimum.inputs
    type_ = minimum.output.type
    if _grows(left) and not _grows(right):
        right, left = _filtered(script, right, left, type_)
    else:
        left, right = _filtered(script, left, right, type_)
    return replace(minimum, inputs=(left, right))


def _grows(relation: Relation) -> bool:
    return any(grows(block) for block in relation.blocks)


def _filtered(script: Script, partner: Relation, side: Relation, type_: Type) -> tuple[Relation, Relation]:
    """The partner, and the side with no more rows than it lets through; as they are where there is nothing to gain."""
    if side.unique or not side.nonnegative or not _grows(side) or (partner.unique and _grows(partner)):
        return partner, side
    partner = script.once(partner)
    records = [_record(block, side.type, type_) for block in side.blocks]
    places = _telling(side, records)
    if not places:
        return partner, side
    held = script.single(partner)
    shown = _record(held, partner.type, type_)
    table = _values(script, held, [shown[i] for i in places])
    blocks = [
        looked_up(block, script.alias(), table, [record[i] for i in places])
        for block, record in zip(side.blocks, records, strict=True)
    ]
    return partner, replace(side, blocks=tuple(blocks))


def _record(block: Block, given: Type, wanted: Type) -> list[SqlTerm]:
    """The columns of a block's record, in the layout of the Intersect's output."""
    return list(leaves(aligned(coerce(block.output, given, wanted), wanted)))


def _telling(side: Relation, records: list[list[SqlTerm]]) -> list[int]:
    """The places of the record that are worth comparing."""
    few = set[SqlTerm]().union(*map(few_terms, side.blocks))
    places = range(len(records[0]))
    return [i for i in places if not few.issuperset(record[i] for record in records)] or list(places)


def _values(script: Script, block: Block, terms: list[SqlTerm]) -> SqlTable:
    """The values of some terms in the rows of a block, each once: in its table, if they stand so there, or stored."""
    table = block.tables[0][1]
    if len(block.tables) == 1 and block.condition == TRUE and not table.reads:
        held = [(term.text, term.nullable) for term in terms if term.kind == "column"]
        if len(held) == len(terms) and any(key <= dict(held).keys() for key in table.keys):
            return replace(table, columns=tuple(held), mirrored=False)
    names = numbered("c", terms)
    rows, read = script.select(block, terms, names)
    listed = tuple((name, term.nullable) for name, term in zip(names, terms, strict=True))
    return SqlTable(script.table(f"SELECT DISTINCT * FROM ({rows})", read), listed, (frozenset(names),))
