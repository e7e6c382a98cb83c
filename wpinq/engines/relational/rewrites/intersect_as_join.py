"""An Intersect is the join of its sides on the whole record, and the negative records that only one side has.

`min(A(x), B(x))`, an absent record weighing 0, is

- the smaller weight where both sides have x: a row of the join of the sides on the record;
- `A(x)` where only A has x and `A(x) < 0`, and likewise for B;
- 0 otherwise.

So a positive record matters only where the partner has it too: its partner filters a side while it is made, instead
of after. Where `plan.facts.nonnegative` holds for both sides there is no second part. Where it does not, the
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

from wpinq.engines.relational.block import Block, restricted
from wpinq.engines.relational.layout import aligned, coerce, leaf_types, same_value
from wpinq.engines.relational.program import Program, Relation, column_names, derived, reads
from wpinq.engines.relational.rewrites.same_rows import same_rows
from wpinq.engines.relational.scalar import both, call, number


def intersect_as_join(program: Program, inputs: list[Relation], output: Relation) -> Relation:
    """The Intersect as a block for what both sides have, and one a side for what only it has."""
    sides = []
    for relation in inputs:
        once = relation if relation.unique else program.stored(relation)
        block = once.blocks[0]
        shape = aligned(coerce(block.output, relation.type, output.type), output.type)
        sides.append(replace(once, blocks=(replace(block, output=shape),), type=output.type))
    blocks = [_matched(program, sides[0], sides[1])]
    for side, partner in ((sides[0], sides[1]), (sides[1], sides[0])):
        if not side.nonnegative:
            blocks.append(_alone(program, side, partner))
    return replace(output, blocks=tuple(blocks))


def _matched(program: Program, left: Relation, right: Relation) -> Block:
    """The rows of both sides with one record, at the smaller weight."""
    a, b = program.single(left), program.single(right)
    condition = both([a.condition, b.condition, same_value(a.output, b.output)])
    joined = Block(a.tables + b.tables, condition, a.output, call("least", a.weight, b.weight))
    return same_rows(joined) if program.rewrites.same_rows else joined


def _alone(program: Program, side: Relation, partner: Relation) -> Block:
    """The negative rows of a side whose record its partner does not have."""
    block = side.blocks[0]
    negative = program.stored(replace(side, blocks=(restricted(block, call("less", block.weight, number(0.0))),)))
    met = program.stored(replace(side, blocks=(_matched(program, negative, partner),)))
    names = column_names(side.type)
    columns = list(zip(names, (null for _, null in leaf_types(side.type)), strict=True))
    ((_, held),), ((_, found),) = negative.blocks[0].tables, met.blocks[0].tables
    on = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names) or "TRUE"
    sql = f"SELECT a.* FROM {held.source} AS a ANTI JOIN {found.source} AS b ON {on}"
    table = derived(sql, columns, reads([*negative.blocks, *met.blocks]), (frozenset(names),))
    return program.scan(table, side.type)
