"""Choices of rows that are turns of each other are made once.

A triangle of edges `a → b → c → a` is found three times, from each of its vertices, and where only the degrees are
asked for, in order, all three give the same record. In general: let a permutation of the tables of a block, of order n,
each to one with the same rows, leave the condition as it is, and every column of the output (`turns`). Then it permutes
the choices of rows, and all of an orbit give the same record. Where a column, the corner, has n different values in
the turns of a choice, the orbit has n choices, and the corner comes before its turns in one of them, in any order of
all values. That one is made, and adds the weights of all n, which are one term over n turns of its columns.

**Order.** Values come in the order of how many rows have them in the tables of the corner, then of themselves.
Tables that hold the corner and a turn of it are filtered by that, stored, and joined first. So what grows is joined at
the corner, which has few partners that come after it: at most `√(2m)` in a graph of m edges, whatever its degrees.

**What breaks the symmetry.** Turned conditions `NOT x = y` that the block does not have (two paths that meet in a
triangle need not say that all three vertices differ) are added, and so is that corners differ. What that leaves out is
made as it was, a block for each such pair that is equal; x and y must be columns of one table, whose rows with `x = y`
are stored and joined first (the loops of a graph).

Needs: tables with the same rows; an output that is added up; choices of rows that can be more than the rows of each
table, for else there is nothing to gain. Nothing is asked of the weights, which may differ from turn to turn.

Weights: every choice of rows is counted once, with the weight that it had, on the same grid (`sums`);
only the order of the sum changes, which does not show. So all bits stay, and the error bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wpinq.engines.relational.block import Block, Table, grows
from wpinq.engines.relational.layout import Record
from wpinq.engines.relational.scalar import Scalar, both, call, column, same
from wpinq.engines.relational.turns import Turn, places, turns, walked_tables

if TYPE_CHECKING:
    from wpinq.engines.relational.program import Program

Tables = tuple[tuple[str, Table], ...]


def once_an_orbit(program: Program, block: Block) -> list[tuple[Block, tuple[Scalar, ...]]]:
    """A block whose rows are added up, as one or as several that exclude each other, each with the weights of a row."""
    turn = max(turns(program, block), key=lambda found: found.order, default=None) if grows(block) else None
    if turn is None:
        return [(block, (block.weight,))]
    missing, weights = turn.missing, [block.weight]
    while len(weights) < turn.order:
        weights.append(turn.move(weights[-1]))
    condition = both([turn.block.condition, *missing])
    first = replace(turn.block, tables=_from_corner(program, turn), condition=condition)
    parts = [(first, tuple(weights))]
    for number, unequal in enumerate(missing):
        (equality,) = unequal.arguments
        condition = both([block.condition, *missing[:number], equality])
        rest = replace(block, tables=_from_loops(program, block, equality), condition=condition)
        parts.append((rest, (block.weight,)))
    return parts


def _from_corner(program: Program, turn: Turn) -> Tables:
    """The tables of a block, those at the corner first, and only with rows in which it comes before its turns."""
    block, (corner, *turned) = turn.block, turn.corners
    held = {alias: here for alias, table in walked_tables(block) for here in places(block, alias, table, corner)}
    counts = _counts(program, {(dict(block.tables)[alias].source, here.text): None for alias, here in held.items()})
    first: dict[str, Table] = {}
    for alias, table in block.tables:
        if alias in held:
            later = [place for other in turned for place in places(block, alias, table, other)]
            first[alias] = _ordered(program, table, held[alias], later, counts) if later else table
    return (*first.items(), *(item for item in block.tables if item[0] not in first))


def _counts(program: Program, held: dict[tuple[str, str], None]) -> Table:
    """How many rows have each value, in some columns of tables."""
    quote = program.emitter.dialect.quote
    values = " UNION ALL ".join(f"SELECT {quote(name)} AS k0 FROM {source}" for source, name in held)
    sources = list(dict.fromkeys(source for source, _ in held))
    name = program.table(f"SELECT k0, count(*) AS n FROM ({values}) GROUP BY k0", sources)
    return Table(name, (("k0", False), ("n", False)), (frozenset(("k0",)),), lookup=True)


def _ordered(program: Program, table: Table, first: Scalar, later: list[Scalar], counts: Table) -> Table:
    """The rows of a table in which one column comes before others."""
    tables, conditions, numbers = [(first.scope, table)], list[Scalar](), list[Scalar]()
    for value in (first, *later):
        alias = program.alias()
        tables.append((alias, counts))
        conditions.append(same(value, column(alias, "k0", False)))
        numbers.append(column(alias, "n", False))
    for value, number in zip(later, numbers[1:], strict=True):
        tie = call("equal", numbers[0], number)
        conditions.append(call("where", tie, call("less", first, value), call("less", numbers[0], number)))
    return _filtered(program, table, tuple(tables), both(conditions))


def _from_loops(program: Program, block: Block, equality: Scalar) -> Tables:
    """The tables of a block, first one that holds both sides of an equality, only with rows that satisfy it."""
    held = {
        alias: pair
        for alias, table in walked_tables(block)
        if (pair := places(block, alias, table, *equality.arguments))
    }
    alias, pair = next(iter(held.items()))
    table = dict(block.tables)[alias]
    loops = _filtered(program, table, ((alias, table),), same(*pair))
    return ((alias, loops), *(item for item in block.tables if item[0] != alias))


def _filtered(program: Program, table: Table, tables: Tables, condition: Scalar) -> Table:
    """Some rows of the first of some tables, stored."""
    alias, _ = tables[0]
    shown = [column(alias, name, null) for name, null in table.columns]
    if table.weight is None:
        shown.append(column(alias, "w", False))
    block = Block(tables, condition, Record(None, ()), shown[0])
    query = program.emitter.select(block, shown, [term.text for term in shown])
    return replace(table, source=program.table(query, [held.source for _, held in tables]))
