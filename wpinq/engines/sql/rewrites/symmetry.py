"""Of choices of rows that an automorphism of a block takes to each other, one an orbit is made.

A triangle of edges `a → b → c → a` is found three times, from each of its vertices, and where only the degrees are
asked for, in order, all three give the same record. In general: let a permutation of the tables of a block, of order n,
each to one with the same rows, leave the condition as it is, and every column of the output (`automorphisms`). Then it
permutes the choices of rows, and all of an orbit give the same record. Where a column has n different values in the
images of a choice, the orbit has n choices, and the column comes before its images in one of them, in any order of
all values. That one is made, and adds the weights of all n, which are one term over n images of its columns.

**Order.** Values come in the order of how many rows have them in the tables of that first column, then of themselves.
Tables that hold it and an image of it are filtered by that, stored, and joined first. So what grows is joined at
the vertex that has few partners that come after it: at most `√(2m)` in a graph of m edges, whatever its degrees.

**What breaks the symmetry.** Images of conditions `NOT x = y` that the block does not have (two paths that meet in a
triangle need not say that all three vertices differ) are added, and so is that the column differs from its images. What
that leaves out is made as it was, a block for each such pair that is equal; x and y must be columns of one table, whose
rows with `x = y` are stored and joined first (the loops of a graph).

Needs: tables with the same rows; an output that is added up; choices of rows that can be more than the rows of each
table, for else there is nothing to gain. Nothing is asked of the weights, which may differ within an orbit.

Weights: every choice of rows is counted once, with the weight that it had, on the same grid (`sums`);
only the order of the sum changes, which does not show. So all bits stay, and the error bound.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, JoinedTables, SqlTable, grows, matches
from wpinq.engines.relational.blocks.shape import RecordShape
from wpinq.engines.relational.blocks.subjects import Addend, Addends
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, column, same
from wpinq.engines.relational.rewrites.automorphisms import Automorphism, automorphisms, core_tables, places
from wpinq.engines.relational.sql.script import Script


def one_an_orbit(script: Script, addends: Addends) -> Addends:
    """Each block as one or as several that exclude each other, each with the weights that one of its rows adds."""
    parts = tuple(part for block, _ in addends.parts for part in _parts(script, block))
    return Addends(parts, started=any(len(weights) > 1 for _, weights in parts))


def _parts(script: Script, block: Block) -> list[Addend]:
    found = max(automorphisms(script, block), key=lambda one: one.order, default=None) if grows(block) else None
    if found is None:
        return [(block, (block.weight,))]
    missing, weights = found.missing, [block.weight]
    while len(weights) < found.order:
        weights.append(found.image(weights[-1]))
    condition = both([found.block.condition, *missing])
    first = replace(found.block, tables=_from_first(script, found), condition=condition)
    parts: list[Addend] = [(first, tuple(weights))]
    for number, unequal in enumerate(missing):
        (equality,) = unequal.arguments
        condition = both([block.condition, *missing[:number], equality])
        rest = replace(block, tables=_from_loops(script, block, equality), condition=condition)
        parts.append((rest, (block.weight,)))
    return parts


def _from_first(script: Script, found: Automorphism) -> JoinedTables:
    """The tables of a block, those with the orbit's first column in front, only with rows in which it is the least."""
    block, (least, *images) = found.block, found.orbit
    held = {alias: here for alias, table in core_tables(block) for here in places(block, alias, table, least)}
    counts = _counts(script, {(dict(block.tables)[alias].source, here.text): None for alias, here in held.items()})
    first: dict[str, SqlTable] = {}
    for alias, table in block.tables:
        if alias in held:
            later = [place for other in images for place in places(block, alias, table, other)]
            first[alias] = _ordered(script, table, held[alias], later, counts) if later else table
    return (*first.items(), *(item for item in block.tables if item[0] not in first))


def _counts(script: Script, held: dict[tuple[str, str], None]) -> SqlTable:
    """How many rows have each value, in some columns of tables."""
    quote = script.emitter.dialect.quote
    values = " UNION ALL ".join(f"SELECT {quote(name)} AS k0 FROM {source}" for source, name in held)
    sources = list(dict.fromkeys(source for source, _ in held))
    name = script.table(f"SELECT k0, count(*) AS n FROM ({values}) GROUP BY k0", sources)
    return SqlTable(name, (("k0", False), ("n", False)), (frozenset(("k0",)),), lookup=True)


def _ordered(script: Script, table: SqlTable, first: SqlTerm, later: list[SqlTerm], counts: SqlTable) -> SqlTable:
    """The rows of a table in which one column comes before others."""
    lookups = {script.alias(): value for value in (first, *later)}
    conditions = [condition for alias, value in lookups.items() for condition in matches(counts, alias, [value])]
    least, *numbers = [column(alias, "n", False) for alias in lookups]
    for value, number in zip(later, numbers, strict=True):
        tie = call("equal", least, number)
        conditions.append(call("where", tie, call("less", first, value), call("less", least, number)))
    tables = ((first.scope, table), *((alias, counts) for alias in lookups))
    return _filtered(script, table, tables, both(conditions))


def _from_loops(script: Script, block: Block, equality: SqlTerm) -> JoinedTables:
    """The tables of a block, first one that holds both sides of an equality, only with rows that satisfy it."""
    held = {
        alias: pair for alias, table in core_tables(block) if (pair := places(block, alias, table, *equality.arguments))
    }
    alias, pair = next(iter(held.items()))
    table = dict(block.tables)[alias]
    loops = _filtered(script, table, ((alias, table),), same(*pair))
    return ((alias, loops), *(item for item in block.tables if item[0] != alias))


def _filtered(script: Script, table: SqlTable, tables: JoinedTables, condition: SqlTerm) -> SqlTable:
    """Some rows of the first of some tables, stored."""
    alias, _ = tables[0]
    shown = table.at(alias)
    if table.weight is None:
        shown.append(column(alias, "w", False))
    block = Block(tables, condition, RecordShape(None, ()), shown[0])
    query = script.emitter.select(block, shown, [term.text for term in shown])
    return replace(table, source=script.table(query, [held.source for _, held in tables]), mirrored=False)
