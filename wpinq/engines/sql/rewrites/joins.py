"""Rewrites that choose the order of a join, for all rows or row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wpinq.columns.records import column_names
from wpinq.engines.sql import blocks as b, terms as t
from wpinq.engines.sql.script import Script, numbered
from wpinq.expr.types import Type


def order_tables(script: Script, rows: b.QueryRows) -> b.QueryRows:
    """The tables of each block in the order to join them, and no equality that others imply.

    Before: `FROM a, b, n WHERE a.c1 = b.c0 AND b.c0 = n.k0`. After: `FROM a, n, b WHERE a.c1 = n.k0 AND a.c1 = b.c0`.

    A table with a key that the tables before it determine is a filter, and comes as soon as it can. A table that merely
    connects makes more rows, and comes when no filter is left. Lookups find one row for each, and come last. The first
    table is no lookup. Of columns that must be equal, each is compared with the first of them alone, and the first is
    read for all.

    Weights: no row and no value changes.
    """
    return replace(rows, blocks=tuple(spanning(replace(block, tables=_order(block))) for block in rows.blocks))


def spanning(block: b.Block) -> b.Block:
    """Compare each of some equal columns with the first of them, and read the first elsewhere.

    An order of two columns of one table is said of these, too: it halves the table before it is joined.
    """
    parts = t.conjuncts(block.condition)
    if not any(map(b.links, parts)):
        return replace(block, condition=t.both(dict.fromkeys(parts)))
    find = b.classes(block)
    members: dict[t.SqlTerm, list[t.SqlTerm]] = {}
    others = []
    for part in parts:
        if b.links(part):
            for term in part.arguments:
                held = members.setdefault(find(term), [])
                if term not in held:
                    held.append(term)
        else:
            others.append(part)
    place = {alias: i for i, (alias, _) in enumerate(block.tables)}
    equal = []
    firsts: dict[t.SqlTerm, t.SqlTerm] = {}
    for held in members.values():
        first, *rest = sorted(held, key=lambda term: (place[term.scope], term.text))
        firsts |= dict.fromkeys(rest, first)
        equal += [(place[term.scope], term.text, t.same(first, term)) for term in rest]
    equal.sort(key=lambda item: item[:2])
    read = t.substitute(lambda term: firsts.get(term))
    scopes = {term: [column.scope for column in t.columns(term)] for term in others if term.text == "less"}
    filters = [term for term, held in scopes.items() if len(held) == 2 and held[0] == held[1]]
    conditions = dict.fromkeys([*(term for _, _, term in equal), *(read(term) for term in others), *filters])
    return b.Block(block.tables, t.both(conditions), t.map_shape(read, block.output), read(block.weight))


def _order(block: b.Block) -> tuple[tuple[str, b.SqlTable], ...]:
    if len(block.tables) < 3:
        return block.tables
    equal = [(one.scope, other.scope) for one, other in b.equalities(block.condition) if other.kind == "column"]
    neighbours = {*equal, *(pair[::-1] for pair in equal)}
    left = dict(block.tables)
    order: list[tuple[str, b.SqlTable]] = []
    while left:
        known = known_from(block, dict(order))
        bound = {alias for alias, table in left.items() if is_bound(alias, table, known)}
        joined = {one for one, other in neighbours if other in dict(order)}
        filters = [alias for alias in left if alias in bound and not left[alias].lookup]
        growing = [alias for alias in left if alias in joined and not left[alias].lookup]
        lookups = [alias for alias in left if alias in joined and alias in bound]
        rest = [alias for alias in left if not left[alias].lookup] if not order else []
        alias = next(iter([*filters, *growing, *lookups, *rest, *left]))
        order.append((alias, left.pop(alias)))
    return tuple(order)


def known_from(block: b.Block, order: Iterable[str]) -> set[t.SqlTerm]:
    """The columns that rows of some tables of a block determine."""
    tables = tuple((alias, dict(block.tables)[alias]) for alias in order)
    return b.closure(replace(block, tables=tables), [term for alias, table in tables for term in table.at(alias)])[0]


def is_bound(alias: str, table: b.SqlTable, known: set[t.SqlTerm]) -> bool:
    """Whether known columns leave at most one row of a table."""
    names = {term.text for term in known if term.scope == alias}
    return any(key <= names for key in table.keys)


def order_by_row(script: Script, rows: b.QueryRows) -> b.QueryRows:
    """Split a cycle of tables into two blocks of different join order, each for its better rows.

    Before: `FROM a, b, c WHERE …`.
    After: `FROM a, b, c WHERE … AND b.n <= c.n`, and a second block `FROM a, c, b WHERE … AND c.n < b.n`.

    Let the second table grow the rows of the first, and let the third be a filter once both are there. If the second is
    a filter too once the first and the third are there (a triangle is the case in point), either may come first. The
    better one has fewer partners for the row. Both numbers are looked up, and the rows of the first table are split by
    which is smaller. On a graph in which vertex v has d(v) neighbours, triangles take `Σ min(d(a), d(b))` over edges,
    not `Σ d(b)`. Blocks whose start is chosen already stay as they are.

    Weights: every row of the first table is in one of the two blocks, so the choices of rows are the same, each with
    the same terms. Sums do not regard the order of rows. So all bits stay, and the error bound.
    """
    if rows.started:
        return rows
    return replace(rows, blocks=tuple(part for block in rows.blocks for part in _split(script, block)))


def _split(script: Script, block: b.Block) -> list[b.Block]:
    if len(block.tables) < 3:
        return [block]
    first, second, third = block.tables[:3]
    if second[1].lookup or third[1].lookup or any(table.reads for _, table in block.tables[:3]):
        return [block]
    to_second, to_third = _pairs(block, first, second), _pairs(block, first, third)
    if not (to_second and to_third):
        return [block]
    known = known_from(block, [first[0]])
    if is_bound(*second, known) or is_bound(*third, known):
        return [block]
    orders = ((second, third), (third, second))
    if not all(is_bound(*last, known_from(block, [first[0], other[0]])) for other, last in orders):
        return [block]
    start, conditions, numbers = [first], [block.condition], list[t.SqlTerm]()
    for other, pairs in ((second, to_second), (third, to_third)):
        counts = script.counts(b.Block((other,), t.TRUE, t.RecordShape(None, tuple(pairs)), t.ONE))
        alias = script.alias()
        start.append((alias, counts))
        conditions += b.matches(counts, alias, pairs.values())
        numbers.append(t.column(alias, "n", False))
    fewer = t.call("less", numbers[1], numbers[0])
    return [
        spanning(replace(block, tables=(*start, *order, *block.tables[3:]), condition=t.both([*conditions, choice])))
        for order, choice in zip(orders, (t.call("not", fewer), fewer), strict=True)
    ]


def _pairs(block: b.Block, first: tuple[str, b.SqlTable], other: tuple[str, b.SqlTable]) -> dict[t.SqlTerm, t.SqlTerm]:
    """Columns of the other table, each with the column of the first that it must equal."""
    find = b.classes(block)
    held = {find(term): term for term in first[1].at(first[0])}
    return {term: held[find(term)] for term in other[1].at(other[0]) if find(term) in held}


# Rewrites of an Intersect: a join of its sides, each filtered by the records of the other.


def intersect_as_join(script: Script, minimum: b.Minimum) -> b.Minimum:
    """Write an Intersect as the join of its sides, and the negative records of one side alone.

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
        shape = t.aligned(t.coerce(block.output, relation.type, output.type), output.type)
        sides.append(replace(once, blocks=(replace(block, output=shape),), type=output.type))
    blocks = [_matched(script, sides[0], sides[1])]
    for side, partner in ((sides[0], sides[1]), (sides[1], sides[0])):
        if not side.nonnegative:
            blocks.append(_alone(script, side, partner))
    return replace(minimum, relation=replace(output, blocks=tuple(blocks)))


def _matched(script: Script, left: b.Relation, right: b.Relation) -> b.Block:
    """The rows of both sides with one record, at the smaller weight."""
    one, other = script.single(left), script.single(right)
    condition = t.both([one.condition, other.condition, t.same_value(one.output, other.output)])
    joined = b.Block(one.tables + other.tables, condition, one.output, t.call("least", one.weight, other.weight))
    return script.rewritten(joined)


def _alone(script: Script, side: b.Relation, partner: b.Relation) -> b.Block:
    """The negative rows of a side whose record its partner does not have."""
    block = side.blocks[0]
    negative = script.stored(replace(side, blocks=(b.restricted(block, t.call("less", block.weight, t.number(0.0))),)))
    met = script.stored(replace(side, blocks=(_matched(script, negative, partner),)))
    names = column_names(side.type)
    ((_, held),), ((_, found),) = negative.blocks[0].tables, met.blocks[0].tables
    on = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names) or "TRUE"
    sql = f"SELECT a.* FROM {held.source} AS a ANTI JOIN {found.source} AS b ON {on}"
    table = b.derived(sql, b.column_list(side.type), b.reads([*negative.blocks, *met.blocks]), (frozenset(names),))
    return script.scan(table, side.type)


def filter_by_partner(script: Script, minimum: b.Minimum) -> b.Minimum:
    """Leave out the rows of a side whose record its partner lacks, before records are added up.

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


def _grows(relation: b.Relation) -> bool:
    return any(b.grows(block) for block in relation.blocks)


def _filtered(script: Script, partner: b.Relation, side: b.Relation, type_: Type) -> tuple[b.Relation, b.Relation]:
    """The partner, and the side with only the rows that the partner lets through.

    Both are as they are where there is nothing to gain.
    """
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
        b.looked_up(block, script.alias(), table, [record[i] for i in places])
        for block, record in zip(side.blocks, records, strict=True)
    ]
    return partner, replace(side, blocks=tuple(blocks))


def _record(block: b.Block, given: Type, wanted: Type) -> list[t.SqlTerm]:
    """The columns of a block's record, in the layout of the Intersect's output."""
    return list(t.leaves(t.aligned(t.coerce(block.output, given, wanted), wanted)))


def _telling(side: b.Relation, records: list[list[t.SqlTerm]]) -> list[int]:
    """The places of the record that are worth comparing."""
    few = set[t.SqlTerm]().union(*map(b.few_terms, side.blocks))
    places = range(len(records[0]))
    return [i for i in places if not few.issuperset(record[i] for record in records)] or list(places)


def _values(script: Script, block: b.Block, terms: list[t.SqlTerm]) -> b.SqlTable:
    """The values of some terms in the rows of a block, each once.

    They are in its table, if they stand so there, or are stored.
    """
    table = block.tables[0][1]
    if len(block.tables) == 1 and block.condition == t.TRUE and not table.reads:
        held = [(term.text, term.nullable) for term in terms if term.kind == "column"]
        if len(held) == len(terms) and any(key <= dict(held).keys() for key in table.keys):
            return replace(table, columns=tuple(held), mirrored=False, unequal=False)
    names = numbered("c", terms)
    rows, read = script.select(block, terms, names)
    listed = tuple((name, term.nullable) for name, term in zip(names, terms, strict=True))
    return b.SqlTable(script.table(f"SELECT DISTINCT * FROM ({rows})", read), listed, (frozenset(names),))


# Rewrites that leave tables out: steps composed into one query, and self-joins on a key.


def fuse(script: Script, reuse: b.Reuse) -> b.Reuse:
    """Keep a dataset with one user as a query, and a join that grows, however many use it.

    Before: `CREATE TABLE t AS SELECT c0 + 1 AS c0, w FROM s; SELECT c0, w FROM t WHERE c0 > 5`.
    After: `SELECT s.c0 + 1, s.w FROM s WHERE s.c0 + 1 > 5`.

    Select, Where, Partition, Concat, Except and Join give terms over the tables below them. A filter ends up in the
    query that reads the tables, and a projection reads no column in vain. A dataset with several users is stored, so
    that a shared part of a plan is evaluated once. The exception is a join with more rows than its tables, each record
    once: its users' filters save more than its storing does, and its rows need no adding up.

    Weights: storing a float changes no bit, so a term has the bits of a stored column. Rows of one record are added up
    later, over more rows, on a grid that takes them in any order (`sums`). The roundoff of a sum is so paid once
    instead of at each step, and the error bound stays. Signs play no part: composing is linear in the rows. All that is
    not linear (Shave, GroupBy, Union, Intersect, the norms of a Join) asks for unique rows first.
    """
    relation = reuse.relation
    stays = reuse.uses <= 1 or (len(relation.blocks) == 1 and relation.unique and b.grows(relation.blocks[0]))
    return replace(reuse, stored=not stays)


def drop_self_joins(script: Script, block: b.Block) -> b.Block:
    """A second use of a table at the row of the first is left out.

    Before: `SELECT a.c0, b.w FROM s AS a, s AS b WHERE a.c0 = b.c0`, where `c0` is a key of `s`.
    After: `SELECT a.c0, a.w FROM s AS a`.

    A triangle of three edges is so made of two paths that share an edge, and one degree of two.

    Needs: a key of the table, whose columns the condition makes equal. A key determines the row, so both uses are at
    the same row in every choice of rows.

    Weights: the choices of rows correspond one to one, and every term has the value that it had. So all bits stay, and
    the error bound.
    """
    while True:
        pair = _find(block)
        if pair is None:
            return block
        kept, dropped = pair
        tables = tuple((alias, table) for alias, table in block.tables if alias != dropped)
        merged = b.rewritten(block, tables, {dropped: kept})
        parts = dict.fromkeys(term for term in t.conjuncts(merged.condition) if not b.trivial(term))
        block = b.Block(merged.tables, t.both(parts), merged.output, merged.weight)


def _find(block: b.Block) -> tuple[str, str] | None:
    find = b.classes(block)
    seen: dict[tuple[object, ...], str] = {}
    for alias, table in block.tables:
        for key in map(sorted, filter(None, table.keys)):
            place = (table.source, tuple(key), tuple(find(t.column(alias, name, True)) for name in key))
            if seen.setdefault(place, alias) != alias:
                return seen[place], alias
    return None
