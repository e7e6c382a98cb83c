"""Sums of paths by their ends, for engines that take them without a join.

A path is a row of one table and one of another that agree in a value, its middle. It goes from a column of the first
row to one of the second, and only paths to a greater end count. What it weighs is a term of the first row and of what
is looked up there. Where only the numbers of pairs of each weight matter, queries of the two legs say all of it: a loop
adds up the integers of `sums` at the ends of the paths from one value, and no path is ever a row.

Needs: rows of one block without negative weights, which are summed and not counted, ends that are integers, and no
null among ends and middles.

Weights: the integers are those of the SQL, and so are their exact sums. All bits are the same.
"""

from __future__ import annotations

from wpinq.columns.records import leaf_types
from wpinq.engines.sql import blocks as b, sums, terms as t
from wpinq.engines.sql.script import Script
from wpinq.expr.types import INT


def legs_of_paths(script: Script, relation: b.Relation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`SqlStatement.legs`, and the tables they read, where rows to add up are paths; else none."""
    if relation.unique or not relation.nonnegative or [*leaf_types(relation.type)] != [(INT, False)] * 2:
        return (), ()
    (block, weights), *more = script.addends(relation.blocks)[0].parts
    (start, end), tables, conditions = t.leaves(block.output), dict(block.tables), t.conjuncts(block.condition)
    links = [term.arguments for term in conditions if b.links(term) and not any(a.nullable for a in term.arguments)]
    met = [pair for link in links for pair in (link, link[::-1]) if pair[1].scope == end.scope != pair[0].scope]
    ordered = t.call("less", start, end)
    if more or not met or ordered not in conditions or len(relation.blocks) > 1 or script.counted(relation.blocks):
        return (), ()
    middle, own = met[0]
    implied = {ordered, t.call("not", t.call("equal", start, end)), t.call("not", t.call("equal", end, start))}
    put, other = t.substitute({own: middle}.get), tables.pop(end.scope)
    condition, weight = t.both(term for term in conditions if term not in implied), sums.on_grid(weights, relation.mass)
    first = b.Block((*tables.items(),), put(condition), t.RecordShape(None, (start, middle)), put(weight))
    second = b.Block(((end.scope, other),), t.TRUE, t.RecordShape(None, (own, end)), t.ONE)
    if b.grows(first) or end.scope in {term.scope for term in t.columns(start, first.condition, first.weight)}:
        return (), ()
    (one, read), (two, also) = map(script.rows, (first, second))
    return (one, two, repr(2.0 ** -sums.exponent(relation.mass, sums.SUM_BITS))), (*read, *also)
