"""Rewrites that choose the order of a join, for all rows or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wpinq.engines.sql.blocks import Block, SqlTable, classes, closure, equalities, links, matches
from wpinq.engines.sql.rewrite_targets import QueryRows
from wpinq.engines.sql.script import Script, numbered
from wpinq.engines.sql.terms import SqlTerm, both, call, column, conjuncts, map_shape, same, substitute


def order_tables(script: Script, rows: QueryRows) -> QueryRows:
    """The tables of each block in the order to join them, and no equality that others imply.

    Before: `FROM a, b, n WHERE a.c1 = b.c0 AND b.c0 = n.k0`. After: `FROM a, n, b WHERE a.c1 = n.k0 AND a.c1 = b.c0`.

    A table with a key that the tables before it determine is a filter, and comes as soon as it can. A table that merely
    connects makes more rows, and comes when no filter is left. Lookups find one row for each, and come last. The first
    table is no lookup. Of columns that must be equal, each is compared with the first of them alone, and the first is
    read for all.

    Weights: no row and no value changes.
    """
    return replace(rows, blocks=tuple(spanning(replace(block, tables=_order(block))) for block in rows.blocks))


def spanning(block: Block) -> Block:
    """Columns that must be equal are each compared with the first of them, which is read for them everywhere else."""
    find = classes(block)
    members: dict[SqlTerm, list[SqlTerm]] = {}
    others = []
    for part in conjuncts(block.condition):
        if links(part):
            for term in part.arguments:
                held = members.setdefault(find(term), [])
                if term not in held:
                    held.append(term)
        else:
            others.append(part)
    place = {alias: i for i, (alias, _) in enumerate(block.tables)}
    equal = []
    firsts: dict[SqlTerm, SqlTerm] = {}
    for held in members.values():
        first, *rest = sorted(held, key=lambda term: (place[term.scope], term.text))
        firsts |= dict.fromkeys(rest, first)
        equal += [(place[term.scope], term.text, same(first, term)) for term in rest]
    equal.sort(key=lambda item: item[:2])
    read = substitute(lambda term: firsts.get(term))
    conditions = dict.fromkeys([*(term for _, _, term in equal), *(read(term) for term in others)])
    return Block(block.tables, both(conditions), map_shape(read, block.output), read(block.weight))


def _order(block: Block) -> tuple[tuple[str, SqlTable], ...]:
    if len(block.tables) < 3:
        return block.tables
    pairs = [(a, b) for a, b in equalities(block.condition) if b.kind == "column"]
    left = dict(block.tables)
    order: list[str] = []
    while left:
        known = known_from(block, order)
        bound = {alias for alias, table in left.items() if is_bound(alias, table, known)}
        joined = {alias for alias in left if _connected(alias, order, pairs)}
        filters = [alias for alias in left if alias in bound and not left[alias].lookup]
        growing = [alias for alias in left if alias in joined and not left[alias].lookup]
        lookups = [alias for alias in left if alias in joined and alias in bound]
        rest = [alias for alias in left if not left[alias].lookup] if not order else []
        alias = next(iter([*filters, *growing, *lookups, *rest, *left]))
        order.append(alias)
        del left[alias]
    held = dict(block.tables)
    return tuple((alias, held[alias]) for alias in order)


def known_from(block: Block, order: Sequence[str]) -> set[SqlTerm]:
    """The columns that rows of some tables of a block determine."""
    held = dict(block.tables)
    inner = replace(block, tables=tuple((alias, held[alias]) for alias in order))
    return closure(inner, [term for alias in order for term in held[alias].at(alias)])[0]


def is_bound(alias: str, table: SqlTable, known: set[SqlTerm]) -> bool:
    """Whether known columns leave at most one row of a table."""
    names = {term.text for term in known if term.scope == alias}
    return any(key <= names for key in table.keys)


def _connected(alias: str, order: list[str], pairs: list[tuple[SqlTerm, SqlTerm]]) -> bool:
    return any((a.scope == alias and b.scope in order) or (b.scope == alias and a.scope in order) for a, b in pairs)


Pairs = list[tuple[SqlTerm, str]]
"""Columns of the first table, each with the column of another that it must equal."""


def order_by_row(script: Script, rows: QueryRows) -> QueryRows:
    """A cycle of tables becomes two blocks of different join order, each for the rows where it is better.

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
