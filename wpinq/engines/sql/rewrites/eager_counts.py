"""Eager counts: the pairs of a join at a key are counted from the counts of its two sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wpinq.engines.sql import blocks as b
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.script import Script

_Key = Mapping[t.SqlTerm, t.SqlTerm]
"""The columns that some tables have of a key, by class of equal columns, in the order of the key."""


def multiply_counts(script: Script, total: b.Total) -> b.Total:
    """The pairs of rows at a key are a product, less the pairs that an inequality leaves out.

    Before: `SELECT b.c0, count(*) FROM e AS a, e AS b WHERE a.c1 = b.c0 AND NOT a.c0 = b.c1 GROUP BY b.c0`.
    After: `SELECT k0, sum(n) FROM (SELECT m.k0, m.n * o.n AS n FROM ends AS m, starts AS o WHERE m.k0 = o.k0 UNION ALL
    SELECT k0, -n FROM returns) GROUP BY k0`. Here `ends` and `starts` count edges by `c1` and by `c0`, and `returns`
    counts `FROM e AS a, e AS b WHERE a.c1 = b.c0 AND a.c0 = b.c1` by `b.c0`.

    The norm of paths at their middle vertex is the case in point: `in(k) · out(k) − reciprocal(k)`. No path is listed.
    A loop is a row like others. Where every edge has its reverse, as the plan proves, `returns` is `starts`.

    Needs: rows of one weight at each key, a constant or a function of the key (`late_aggregation`), as `unit_weights`
    gives them. Two tables, beside lookups at the key. Conditions on rows of one table, equalities of the key, and at
    most one condition on rows of both: an inequality, with no more pairs than rows where it is an equality.

    Weights: at a key every row of one side meets every row of the other, and the pairs that satisfy a condition are
    those that do not satisfy its negation. So the number is that of the rows that were counted, and its product with
    the weight is the same float. A number from `2^53` on, which counting one by one never reached, is rounded to a
    float first. Both roundoffs are within the two that a norm may take. A sum may take one: only norms are counted so.
    """
    block, find = total.block, b.classes(total.block)
    core = [item for item in block.tables if not item[1].lookup]
    lookups = [item for item in block.tables if item[1].lookup]
    if total.term is not None or total.sql is None or not total.absolute or len(core) != 2 or not b.grows(block):
        return total
    key = [find(leaf) for leaf in t.leaves(total.grouped_by)]
    columns = [{find(term): term for term in table.at(alias)} for alias, table in core]
    one, other = ({each: held[each] for each in key if each in held} for held in columns)
    if not key or len({*key}) < len(key) or {*key} != {*one, *other} or any(table.reads for _, table in core):
        return total
    (left, of_left), (right, of_right) = _part(block, core[:1], one), _part(block, core[1:], other)
    rest, of_rest = _part(block, lookups, dict.fromkeys(key, t.TRUE))  # which is as good as any value of the key
    across = [part for part in t.conjuncts(block.condition) if part not in of_left | of_right | of_rest]
    said = [left.condition, right.condition, *_equal(one, other), *map(t.negated, across)]
    shape = t.RecordShape(None, tuple(one[each] if each in one else other[each] for each in key))
    met = b.Block(tuple(core), t.both(said), shape, t.ONE)
    by_key = {term.scope for term in t.columns(rest.weight)} <= {alias for alias, _ in lookups}
    if not by_key or len({*across}) > 1 or any(p.text != "not" or p.nullable or b.grows(met) for p in across):
        return total
    counts = [(script.alias(), script.counts(side)) for side in (left, right)]
    whole = [table for side, (_, table) in zip((one, other), counts, strict=True) if len(side) == len(key)]
    by_side = zip((one, other), counts, strict=True)
    one, other = (dict(zip(side, n.at(alias), strict=False)) for side, (alias, n) in by_side)
    pairs, _ = _part(block, [*counts, *lookups], {each: one[each] if each in one else other[each] for each in key})
    pairs = replace(pairs, condition=t.both([pairs.condition, *_equal(one, other)]))
    rows = [(pairs, t.call("int_multiply", *(t.column(alias, "n", False) for alias, _ in counts)))]
    if across:
        alias, less = script.alias(), whole[0] if whole and _turned(met) else script.counts(met)
        left_out, _ = _part(block, [(alias, less), *lookups], dict(zip(key, less.at(alias), strict=False)))
        rows.append((left_out, t.call("negate_weight", t.column(alias, "n", False))))
    return replace(total, rows=tuple(rows), sql="CAST(sum(n) AS DOUBLE) * abs(min(w))")


def _part(block: b.Block, tables: Sequence[tuple[str, b.SqlTable]], key: _Key) -> tuple[b.Block, set[t.SqlTerm]]:
    """The conditions of a block on some tables alone, and which of its conditions they are.

    Columns of the key are read from these tables where the block reads equal ones of others.
    """
    find, scopes = b.classes(block), {alias for alias, _ in tables}
    read = t.substitute(lambda term: None if term.scope in scopes else key.get(find(term)))
    images = {part: read(part) for part in t.conjuncts(block.condition)}
    said = {part for part, image in images.items() if {term.scope for term in t.columns(image)} <= scopes}
    own = t.both(dict.fromkeys(images[part] for part in images if part in said and not b.trivial(images[part])))
    return b.Block(tuple(tables), own, t.RecordShape(None, tuple(key.values())), read(block.weight)), said


def _equal(one: _Key, other: _Key) -> list[t.SqlTerm]:
    """The conditions that two sides have the same key."""
    return [t.same(column, other[each]) for each, column in one.items() if each in other]


def _turned(block: b.Block) -> bool:
    """Whether the pairs of a block are the rows of a mirrored table, each with its reverse."""
    (one, table), (other, twin) = block.tables
    crossed = {frozenset(pair) for pair in zip(table.at(one), twin.at(other)[::-1], strict=False)}
    said = [frozenset(part.arguments) for part in t.conjuncts(block.condition) if b.links(part)]
    return table == twin and table.mirrored and len(crossed) == 2 and {*said} == crossed
