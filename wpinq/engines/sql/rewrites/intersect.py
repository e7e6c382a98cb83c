"""An Intersect is the join of its sides on the whole record, and the negative records that only one side has.

`min(A(x), B(x))`, an absent record weighing 0, is

- the smaller weight where both sides have x: a row of the join of the sides on the record;
- `A(x)` where only A has x and `A(x) < 0`, and likewise for B;
- 0 otherwise.

So a positive record matters only where the partner has it too: its partner filters a side while it is made, instead
of after. Where the certificate says nonnegative of both sides there is no second part. Where it does not, the
negative rows of each side are stored (few, in most data), looked up in the partner, and kept where it has none.

Both sides must have each record in one row; a side of which that is not known is stored first, which adds its rows
up. The norms that a Join inside a side divides by stay those of its own inputs: they are tables of the block, made
from the unfiltered inputs. So every weight has the bits it had, and a minimum rounds nothing; the parts exclude each
other, and putting them together costs the one roundoff of a sum.

Before: `SELECT c0, least(coalesce(max(w) FILTER (side = 0), 0), …) FROM (A UNION ALL B) GROUP BY c0`.
After: `SELECT a.c0, least(a.w, b.w) FROM A AS a, B AS b WHERE a.c0 = b.c0`.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.columns.flat import column_names
from wpinq.engines.relational.blocks.block import Block, restricted
from wpinq.engines.relational.blocks.relation import Relation, column_list, derived, reads
from wpinq.engines.relational.blocks.shape import aligned, coerce, same_value
from wpinq.engines.relational.blocks.subjects import Minimum
from wpinq.engines.relational.blocks.term import both, call, number
from wpinq.engines.relational.sql.script import Script


def intersect_as_join(script: Script, minimum: Minimum) -> Minimum:
    """The Intersect as a block for what both sides have, and one a side for what only it has."""
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
