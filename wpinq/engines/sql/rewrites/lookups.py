"""Lookups by one key become one lookup, of what is made of their values.

Norms and groups are tables with one row a key. Where a block reads several of them at the same key, their join is
stored once, with one row a key, and with it every term that is made of their values alone: a weight that is a function
of the key, such as that of a path of its middle vertex, is computed once a key instead of once a row. Uses of the
same lookups at other keys of the block (the other vertices of a triangle) find the same table.

The rows correspond one to one, since an inner join at a key can be done before or after others, and a term has the
same bits wherever it is computed. So weights and error bound stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes
from wpinq.engines.relational.blocks.shape import RecordShape, leaves, map_shape
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import (
    SqlTerm,
    both,
    column,
    conjuncts,
    renamed,
    same,
    substitute,
    walk,
)
from wpinq.engines.relational.sql.script import Script, numbered


@dataclass(frozen=True, slots=True)
class _Alternative:
    """Lookups at one key: the tables by alias, and for each the columns of its key in the order of the first's."""

    tables: tuple[tuple[str, SqlTable], ...]
    keys: tuple[tuple[str, ...], ...]


def fold_lookups(script: Script, rows: QueryRows) -> QueryRows:
    """The blocks with their lookups by one key folded, key by key."""
    return replace(rows, blocks=tuple(_folded(script, block) for block in rows.blocks))


def _folded(script: Script, block: Block) -> Block:
    done: set[str] = set()
    while True:
        group = _find(block, done)
        if group is None:
            return block
        block, alias = _fold(script, block, group)
        done.add(alias)


def _find(block: Block, done: set[str]) -> _Alternative | None:
    find = classes(block)
    groups: dict[tuple[SqlTerm, ...], list[tuple[tuple[str, SqlTable], tuple[str, ...]]]] = {}
    for alias, table in block.tables:
        if table.lookup and alias not in done:
            (key,) = table.keys
            place = {find(column(alias, name, True)): name for name in sorted(key)}
            if len(place) == len(key):
                order = sorted(place, key=lambda term: term.digest)
                groups.setdefault(tuple(order), []).append(((alias, table), tuple(place[term] for term in order)))
    for members in groups.values():
        members.sort(key=lambda member: member[0][1].source)
        # one order of the key's columns for all groups of these tables
        first = members[0][1]
        order_ = sorted(range(len(first)), key=lambda i: first[i])
        group = _Alternative(
            tuple(table for table, _ in members), tuple(tuple(key[i] for i in order_) for _, key in members)
        )
        if len(block.tables) > len(group.tables) and (len(group.tables) > 1 or _terms(block, group)):
            return group
    return None


def _pure(block: Block, group: _Alternative) -> dict[bytes, bool]:
    """For each term of a block, whether it is made of the group's columns alone."""
    inside = {alias for alias, _ in group.tables}
    pure: dict[bytes, bool] = {}
    constant: set[bytes] = set()
    for term in walk(_roots(block)):
        if term.kind in ("literal", "call") and constant.issuperset(argument.digest for argument in term.arguments):
            constant.add(term.digest)
        if term.kind == "column":
            pure[term.digest] = term.scope in inside
        else:
            pure[term.digest] = (
                term.kind == "call"
                and any(pure[argument.digest] for argument in term.arguments)
                and all(pure[argument.digest] or argument.digest in constant for argument in term.arguments)
            )
    return pure


def _roots(block: Block) -> list[SqlTerm]:
    return [*leaves(block.output), block.weight, *conjuncts(block.condition)]


def _terms(block: Block, group: _Alternative) -> bool:
    pure = _pure(block, group)
    return any(pure[term.digest] and term.kind == "call" for term in walk(_roots(block)[:-1]))


def _fold(script: Script, block: Block, group: _Alternative) -> tuple[Block, str]:
    pure = _pure(block, group)
    parts = conjuncts(block.condition)
    inside = [part for part in parts if pure[part.digest]]
    outside = [part for part in parts if not pure[part.digest]]
    roots = _roots(replace(block, condition=both(outside)))
    key_names = numbered("k", group.keys[0])
    key_of = {
        column(alias, name, True): key_name
        for (alias, _), key in zip(group.tables, group.keys, strict=True)
        for name, key_name in zip(key, key_names, strict=True)
    }
    wanted = _wanted(roots, pure)
    by_position = renamed({alias: f"a{i}" for i, (alias, _) in enumerate(group.tables)})
    texts = {term: script.emitter.term(by_position(term)) for term in wanted if term not in key_of}
    listed = sorted(texts, key=lambda term: texts[term])
    first_alias, _ = group.tables[0]
    held = dict(group.tables[0][1].columns)
    keys = [column(first_alias, name, held[name]) for name in group.keys[0]]
    matches = [
        same(key, column(alias, name, dict(table.columns)[name]))
        for (alias, table), other in zip(group.tables[1:], group.keys[1:], strict=True)
        for key, name in zip(keys, other, strict=True)
    ]
    outputs = [*keys, *listed]
    names = [*key_names, *numbered("x", listed)]
    inner = Block(group.tables, both([*dict.fromkeys([*matches, *inside])]), RecordShape(None, tuple(keys)), keys[0])
    sql = script.emitter.select(inner, outputs, names)
    name = script.table(sql, [table.source for _, table in group.tables])
    described = [(n, term.nullable) for n, term in zip(names, outputs, strict=True)]
    table = SqlTable(name, tuple(described), (frozenset(key_names),), lookup=True)
    alias = script.alias()
    found = {term: column(alias, n, term.nullable) for n, term in zip(names, outputs, strict=True)}
    found |= {term: column(alias, key_name, keys[int(key_name[1:])].nullable) for term, key_name in key_of.items()}
    rewrite = substitute(found.get, ("column", "call"))
    members = {a for a, _ in group.tables}
    tables = (*((a, t) for a, t in block.tables if a not in members), (alias, table))
    conditions = dict.fromkeys(map(rewrite, outside))
    return Block(tables, both(conditions), map_shape(rewrite, block.output), rewrite(block.weight)), alias


def _wanted(roots: list[SqlTerm], pure: dict[bytes, bool]) -> list[SqlTerm]:
    """The terms of the group that others are made of: the largest ones."""
    wanted: dict[SqlTerm, None] = {root: None for root in roots if pure[root.digest]}
    for term in walk(roots):
        if not pure[term.digest]:
            wanted.update({argument: None for argument in term.arguments if pure[argument.digest]})
    return list(wanted)
