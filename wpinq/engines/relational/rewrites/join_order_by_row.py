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

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes, closure
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, column, same
from wpinq.engines.relational.rewrites.join_order import spanning
from wpinq.engines.relational.sql.script import Script

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
    if _bound(block, [first], second) or _bound(block, [first], third):
        return [block]
    if not (_bound(block, [first, second], third) and _bound(block, [first, third], second)):
        return [block]
    second_counts, count_second = _counted(script, second[1], to_second)
    third_counts, count_third = _counted(script, third[1], to_third)
    counts = (second_counts[0], third_counts[0])
    conditions = [block.condition, *second_counts[1], *third_counts[1]]
    fewer = call("less", count_third, count_second)
    rest = block.tables[3:]
    return [
        spanning(replace(block, tables=(first, *counts, *order, *rest), condition=both([*conditions, choice])))
        for order, choice in (((second, third), call("not", fewer)), ((third, second), fewer))
    ]


def _pairs(block: Block, first: tuple[str, SqlTable], other: tuple[str, SqlTable]) -> Pairs:
    find = classes(block)
    held = {find(column(first[0], name, null)): column(first[0], name, null) for name, null in first[1].columns}
    places = [(find(column(other[0], name, null)), name) for name, null in other[1].columns]
    return [(held[place], name) for place, name in places if place in held]


def _bound(block: Block, tables: list[tuple[str, SqlTable]], other: tuple[str, SqlTable]) -> bool:
    """Whether rows of some tables leave at most one row of another."""
    inner = replace(block, tables=(*tables, other))
    start = [column(alias, name, null) for alias, table in tables for name, null in table.columns]
    return other[0] in closure(inner, start)[1]


def _counted(
    script: Script, table: SqlTable, pairs: Pairs
) -> tuple[tuple[tuple[str, SqlTable], list[SqlTerm]], SqlTerm]:
    """How many rows a table has for the values of some columns: the table of counts, its conditions, the count."""
    nullable = dict(table.columns)
    keys = [f"k{i}" for i in range(len(pairs))]
    shown = ", ".join(
        f"{script.emitter.dialect.quote(name)} AS {key}" for key, (_, name) in zip(keys, pairs, strict=True)
    )
    grouped = ", ".join(keys)
    name = script.table(
        f"SELECT {grouped}, count(*) AS n FROM (SELECT {shown} FROM {table.source}) GROUP BY {grouped}", [table.source]
    )
    listed = [*((key, nullable[held]) for key, (_, held) in zip(keys, pairs, strict=True)), ("n", False)]
    counts = SqlTable(name, tuple(listed), (frozenset(keys),), lookup=True)
    alias = script.alias()
    matches = [same(term, column(alias, key, nullable[held])) for key, (term, held) in zip(keys, pairs, strict=True)]
    return ((alias, counts), matches), column(alias, "n", False)
