"""A cycle of joins is walked the shorter way round, row by row.

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
from typing import TYPE_CHECKING

from wpinq.engines.relational.block import Block, Table, closure
from wpinq.engines.relational.rewrites.same_rows import classes
from wpinq.engines.relational.rewrites.table_order import spanning
from wpinq.engines.relational.scalar import Scalar, both, call, column, same

if TYPE_CHECKING:
    from wpinq.engines.relational.program import Program

Pairs = list[tuple[Scalar, str]]
"""Columns of the first table, each with the column of another that it must equal."""


def shorter_way(program: Program, block: Block) -> list[Block]:
    """A block, its tables in order, as one block or as two that exclude each other."""
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
    more_second, count_second = _counted(program, second[1], to_second)
    more_third, count_third = _counted(program, third[1], to_third)
    counts = (more_second[0], more_third[0])
    conditions = [block.condition, *more_second[1], *more_third[1]]
    further = call("less", count_third, count_second)
    rest = block.tables[3:]
    return [
        spanning(replace(block, tables=(first, *counts, *way, *rest), condition=both([*conditions, choice])))
        for way, choice in (((second, third), call("not", further)), ((third, second), further))
    ]


def _pairs(block: Block, first: tuple[str, Table], other: tuple[str, Table]) -> Pairs:
    find = classes(block)
    held = {find(column(first[0], name, null)): column(first[0], name, null) for name, null in first[1].columns}
    places = [(find(column(other[0], name, null)), name) for name, null in other[1].columns]
    return [(held[place], name) for place, name in places if place in held]


def _bound(block: Block, tables: list[tuple[str, Table]], other: tuple[str, Table]) -> bool:
    """Whether rows of some tables leave at most one row of another."""
    inner = replace(block, tables=(*tables, other))
    start = [column(alias, name, null) for alias, table in tables for name, null in table.columns]
    return other[0] in closure(inner, start)[1]


def _counted(program: Program, table: Table, pairs: Pairs) -> tuple[tuple[tuple[str, Table], list[Scalar]], Scalar]:
    """How many rows a table has for the values of some columns: the table of counts, its conditions, the count."""
    nullable = dict(table.columns)
    keys = [f"k{i}" for i in range(len(pairs))]
    shown = ", ".join(
        f"{program.emitter.dialect.quote(name)} AS {key}" for key, (_, name) in zip(keys, pairs, strict=True)
    )
    grouped = ", ".join(keys)
    name = program.table(
        f"SELECT {grouped}, count(*) AS n FROM (SELECT {shown} FROM {table.source}) GROUP BY {grouped}", [table.source]
    )
    listed = [*((key, nullable[held]) for key, (_, held) in zip(keys, pairs, strict=True)), ("n", False)]
    counts = Table(name, tuple(listed), (frozenset(keys),), lookup=True)
    alias = program.alias()
    matches = [same(term, column(alias, key, nullable[held])) for key, (term, held) in zip(keys, pairs, strict=True)]
    return ((alias, counts), matches), column(alias, "n", False)
