"""Rewrites of lookups: several by one key become one, and sorted pairs look up either way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wpinq.engines.sql.blocks import Block, SqlTable, classes, equates
from wpinq.engines.sql.rewrite_targets import QueryRows
from wpinq.engines.sql.script import Script, numbered
from wpinq.engines.sql.terms import (
    RecordShape,
    SqlTerm,
    both,
    call,
    column,
    conjuncts,
    leaves,
    map_shape,
    negated,
    renamed,
    same,
    substitute,
    walk,
)


@dataclass(frozen=True, slots=True)
class _Alternative:
    """Lookups at one key: the tables by alias, and for each the columns of its key in the order of the first's."""

    tables: tuple[tuple[str, SqlTable], ...]
    keys: tuple[tuple[str, ...], ...]


def fold_lookups(script: Script, rows: QueryRows) -> QueryRows:
    """Lookups by one key become one lookup of the terms that are made of their values.

    Before: `SELECT … a.w * n.norm / m.w FROM a, n, m WHERE a.c1 = n.k0 AND a.c1 = m.k0`.
    After: `SELECT … a.w * l.x0 FROM a, (SELECT k0, norm / m.w AS x0 FROM n JOIN m USING (k0)) AS l WHERE a.c1 = l.k0`.

    Norms and groups are tables with one row a key. Their join is stored, with one row a key, and with it every term
    that is made of their values alone. A weight that is a function of the key, such as that of a path of its middle
    vertex, is computed once a key instead of once a row. Uses at other keys of the block (the other vertices of a
    triangle) find the same table.

    Weights: the rows correspond one to one, since an inner join at a key can be done before or after others. A term has
    the same bits wherever it is computed. So weights and error bound stay as they are.
    """
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


@dataclass(frozen=True, slots=True)
class _EitherColumn:
    """One of two columns: the first where a condition holds, else the second."""

    first_if: SqlTerm
    first: SqlTerm
    second: SqlTerm


def look_up_either_way(script: Script, rows: QueryRows) -> QueryRows:
    """A pair that is sorted to be looked up in a table is looked up in either order.

    Before: `WHERE least(x, y) = p AND greatest(x, y) = q`.
    After: `WHERE x = p AND y = q AND NOT y < x`, and a second block `WHERE x = q AND y = p AND y < x`.

    Let p and q be of one table, x and y of two others: the ends of a wedge a–b–c, looked up among undirected edges that
    stand there once. The sorted pair can only be compared once both others are joined. In each of the two blocks the
    table of the pair is joined to one of the others before the second is there. So the wedges of an edge are found from
    the edge, as triangles are (`order_by_row`). A block that a condition rules out is left out.

    Needs: x and y that cannot be null, for a null has no place in an order; any other condition that cannot be null may
    decide as well as an order does.

    Weights: every choice of rows satisfies the condition of exactly one of the two blocks, with the same values in all
    terms. Sums do not regard the order of rows. So all bits stay, and the error bound.
    """
    if rows.started:
        return rows
    return replace(rows, blocks=tuple(part for block in rows.blocks for part in _either_way(block)))


def _either_way(block: Block) -> list[Block]:
    held: dict[tuple[_EitherColumn, str], tuple[SqlTerm, SqlTerm]] = {}
    for part in conjuncts(block.condition):
        for side, term in (part.arguments, part.arguments[::-1]) if equates(part) else ():
            choice = _choice(term) if side.kind == "column" else None
            if choice is None or side.scope in (choice.first.scope, choice.second.scope):
                continue
            other = held.get((_EitherColumn(choice.first_if, choice.second, choice.first), side.scope))
            if other is not None:
                return _two(block, choice, (side, part), other)
            held[choice, side.scope] = (side, part)
    return [block]


def _choice(term: SqlTerm) -> _EitherColumn | None:
    """A term as a choice among columns of two tables that are never null."""
    if term.kind != "call" or term.nullable:
        return None
    if term.text == "where":
        choice = _EitherColumn(*term.arguments)
        if choice.first_if.nullable:  # where it is null the second is taken, and neither it nor its negation holds
            return None
    elif term.text in ("least", "greatest"):
        one, other = sorted(term.arguments, key=lambda argument: argument.digest)
        first, second = (one, other) if term.text == "least" else (other, one)
        choice = _EitherColumn(call("not", call("less", other, one)), first, second)
    else:
        return None
    pair = (choice.first, choice.second)
    return choice if all(side.kind == "column" for side in pair) and pair[0].scope != pair[1].scope else None


def _two(
    block: Block, choice: _EitherColumn, one: tuple[SqlTerm, SqlTerm], other: tuple[SqlTerm, SqlTerm]
) -> list[Block]:
    (chosen, said), (left, said_too) = one, other
    rest = [part for part in conjuncts(block.condition) if part not in (said, said_too)]
    first, second = choice.first, choice.second
    ways = (
        [same(chosen, first), same(left, second), choice.first_if],
        [same(chosen, second), same(left, first), negated(choice.first_if)],
    )
    possible = [way for way in ways if not _excludes(rest, way[-1])]
    return [replace(block, condition=both([*rest, *way])) for way in possible or ways]


def _excludes(held: list[SqlTerm], condition: SqlTerm) -> bool:
    """Whether conditions say that a further one does not hold: one of two values comes before the other, not after."""
    return negated(condition) in held or (
        condition.text == "less" and call("less", *reversed(condition.arguments)) in held
    )
