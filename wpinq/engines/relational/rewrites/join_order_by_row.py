"""The join order of a cycle of tables is chosen row by row.

Take three tables in join order: the first, a second that grows it, and a third that is a filter once both are there. If
the second is a filter too once the first and the third are there (a triangle is the case in point), either may
grow the rows of the first. Which is better depends on the row: on how many partners it has in each. Both numbers
are looked up, the rows of the first table are split by which is smaller, and the block becomes two, with the
second and third table exchanged in the second.

Every row of the first table is in one of the two, so the choices of rows are the same as before, each with the same
terms: records and weights keep their bits, whatever is summed is summed without regard to order, and the error bound
stays. On a graph of which vertex v has d(v) neighbours, triangles take `Σ min(d(a), d(b))` over edges, not `Σ d(b)`.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes, matches
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, column
from wpinq.engines.relational.rewrites.join_order import is_bound, known_from, spanning
from wpinq.engines.relational.sql.script import Script, numbered

Pairs = list[tuple[SqlTerm, str]]
"""Columns of the first table, each with the column of another that it must equal."""


def order_by_row(script: Script, rows: QueryRows) -> QueryRows:
    """The blocks, each with its tables in order, as one block each or as two; left alone where their start is set."""
    if rows.started:
        return rows
    return replace(rows, blocks=tuple(part for block in rows.blocks for part in _split(script, block)))


def _split(script: Script, block: Block) -> list[Block]:
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
    start, conditions, numbers = [first], [block.condition], list[SqlTerm]()
    for other, pairs in ((second, to_second), (third, to_third)):
        counts, alias = _counts(script, other[1], pairs), script.alias()
        start.append((alias, counts))
        conditions += matches(counts, alias, [term for term, _ in pairs])
        numbers.append(column(alias, "n", False))
    fewer = call("less", numbers[1], numbers[0])
    return [
        spanning(replace(block, tables=(*start, *order, *block.tables[3:]), condition=both([*conditions, choice])))
        for order, choice in zip(orders, (call("not", fewer), fewer), strict=True)
    ]


def _pairs(block: Block, first: tuple[str, SqlTable], other: tuple[str, SqlTable]) -> Pairs:
    find = classes(block)
    held = {find(term): term for term in first[1].at(first[0])}
    return [(held[find(term)], term.text) for term in other[1].at(other[0]) if find(term) in held]


def _counts(script: Script, table: SqlTable, pairs: Pairs) -> SqlTable:
    """How many rows a table has for the values of some columns."""
    nullable = dict(table.columns)
    keys = numbered("k", pairs)
    shown = ", ".join(
        f"{script.emitter.dialect.quote(name)} AS {key}" for key, (_, name) in zip(keys, pairs, strict=True)
    )
    grouped = ", ".join(keys)
    name = script.table(
        f"SELECT {grouped}, count(*) AS n FROM (SELECT {shown} FROM {table.source}) GROUP BY {grouped}", [table.source]
    )
    listed = [*((key, nullable[held]) for key, (_, held) in zip(keys, pairs, strict=True)), ("n", False)]
    return SqlTable(name, tuple(listed), (frozenset(keys),), lookup=True)
