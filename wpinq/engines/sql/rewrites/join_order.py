"""The order in which the tables of a block are joined: the database is told to keep it.

A table whose key the tables before it determine is a filter, and comes as soon as it can; one that merely connects
makes more rows, and comes when no filter is left; lookups, which find one row for each, come last, when the filters
have been at work. What comes first is the first table that is no lookup. Of columns that must be equal, each is
compared with the first of them alone, and the first is read for all. None of this changes a row or a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes, closure, equalities, links
from wpinq.engines.relational.blocks.shape import map_shape
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import SqlTerm, both, conjuncts, same, substitute
from wpinq.engines.relational.sql.script import Script


def order_tables(script: Script, rows: QueryRows) -> QueryRows:
    """The blocks with their tables in the order to join them, and no equality that others imply."""
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
