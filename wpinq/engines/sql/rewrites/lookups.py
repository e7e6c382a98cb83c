"""Rewrites of lookups: several by one key become one, and sorted pairs look up either way."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from operator import attrgetter

from wpinq.engines.sql import terms as t
from wpinq.engines.sql.blocks import Block, QueryRows, SqlTable, classes, equates, links
from wpinq.engines.sql.script import Script, numbered

#: Lookups at one key: tables by alias, each with its columns of the key, in the order of the first table's.
_Lookups = list[tuple[tuple[str, SqlTable], list[t.SqlTerm]]]


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
    while len(block.tables) > 1 and (group := _find(block, done)):
        block, alias = _fold(script, block, group)
        done.add(alias)
    return block


def _find(block: Block, done: set[str]) -> _Lookups:
    find = classes(block)
    groups: dict[frozenset[t.SqlTerm], list[tuple[tuple[str, SqlTable], dict[t.SqlTerm, t.SqlTerm]]]] = {}
    for alias, table in block.tables:
        if table.lookup and alias not in done:
            (key,) = table.keys
            place = {find(term): term for term in table.at(alias) if term.text in key}
            if len(place) == len(key):
                groups.setdefault(frozenset(place), []).append(((alias, table), place))
    for members in groups.values():
        members.sort(key=lambda member: member[0][1].source)
        # one order of the key's columns for all groups of these tables
        order = [find(term) for term in sorted(members[0][1].values(), key=attrgetter("text"))]
        group = [(item, [place[each] for each in order]) for item, place in members]
        if len(block.tables) > len(group) and (len(group) > 1 or _terms(block, group)):
            return group
    return []


def own_terms(block: Block, alias: str) -> list[t.SqlTerm]:
    """The terms of a block that are made of one table's columns alone: the largest ones."""
    return _wanted(_roots(block), _pure(block, {alias}))


def _pure(block: Block, inside: Container[str]) -> dict[bytes, bool]:
    """For each term of a block, whether it is made of the columns of some tables alone."""
    pure: dict[bytes, bool] = {}
    constant: set[bytes] = set()
    for term in t.walk(_roots(block)):
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


def _roots(block: Block) -> list[t.SqlTerm]:
    return [*t.leaves(block.output), block.weight, *t.conjuncts(block.condition)]


def _terms(block: Block, group: _Lookups) -> bool:
    pure = _pure(block, {alias for (alias, _), _ in group})
    return any(pure[term.digest] and term.kind == "call" for term in t.walk(_roots(block)[:-1]))


def _fold(script: Script, block: Block, group: _Lookups) -> tuple[Block, str]:
    pure = _pure(block, {alias for (alias, _), _ in group})
    parts = t.conjuncts(block.condition)
    inside = [part for part in parts if pure[part.digest]]
    outside = [part for part in parts if not pure[part.digest]]
    roots = _roots(replace(block, condition=t.both(outside)))
    tables, keys = tuple(item for item, _ in group), group[0][1]
    known = {column: key for _, own in group for key, column in zip(keys, own, strict=True)}
    by_position = t.renamed({alias: f"a{i}" for i, (alias, _) in enumerate(tables)})
    wanted = [term for term in _wanted(roots, pure) if term not in known]
    outputs = [*keys, *sorted(wanted, key=lambda term: script.emitter.term(by_position(term)))]
    names = [*numbered("k", keys), *numbered("x", wanted)]
    matches = [t.same(key, column) for column, key in known.items() if column != key]
    inner = Block(tables, t.both(dict.fromkeys([*matches, *inside])), t.RecordShape(None, tuple(keys)), keys[0])
    name = script.table(script.emitter.select(inner, outputs, names), [table.source for _, table in tables])
    described = [(n, term.nullable) for n, term in zip(names, outputs, strict=True)]
    table = SqlTable(name, tuple(described), (frozenset(names[: len(keys)]),), lookup=True)
    alias = script.alias()
    found = dict(zip(outputs, table.at(alias), strict=True))
    found |= {column: found[key] for column, key in known.items()}
    rewrite = t.substitute(found.get, ("column", "call"))
    kept = (*(item for item in block.tables if item not in tables), (alias, table))
    conditions = dict.fromkeys(map(rewrite, outside))
    return Block(kept, t.both(conditions), t.map_shape(rewrite, block.output), rewrite(block.weight)), alias


def _wanted(roots: list[t.SqlTerm], pure: dict[bytes, bool]) -> list[t.SqlTerm]:
    """The terms of the group that others are made of: the largest ones."""
    wanted: dict[t.SqlTerm, None] = {root: None for root in roots if pure[root.digest]}
    for term in t.walk(roots):
        if not pure[term.digest]:
            wanted.update({argument: None for argument in term.arguments if pure[argument.digest]})
    return list(wanted)


@dataclass(frozen=True, slots=True)
class _EitherColumn:
    """One of two columns: the first where a condition holds, else the second."""

    first_if: t.SqlTerm
    first: t.SqlTerm
    second: t.SqlTerm


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
    held: dict[tuple[_EitherColumn, str], tuple[t.SqlTerm, t.SqlTerm]] = {}
    for part in t.conjuncts(block.condition):
        for side, term in (part.arguments, part.arguments[::-1]) if equates(part) else ():
            choice = _choice(term) if side.kind == "column" else None
            if choice is None or side.scope in (choice.first.scope, choice.second.scope):
                continue
            other = held.get((_EitherColumn(choice.first_if, choice.second, choice.first), side.scope))
            if other is not None:
                return _two(block, choice, (side, part), other)
            held[choice, side.scope] = (side, part)
    return [block]


def _choice(term: t.SqlTerm) -> _EitherColumn | None:
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
        choice = _EitherColumn(t.call("not", t.call("less", other, one)), first, second)
    else:
        return None
    pair = (choice.first, choice.second)
    return choice if all(side.kind == "column" for side in pair) and pair[0].scope != pair[1].scope else None


def _two(
    block: Block, choice: _EitherColumn, one: tuple[t.SqlTerm, t.SqlTerm], other: tuple[t.SqlTerm, t.SqlTerm]
) -> list[Block]:
    (chosen, said), (left, said_too) = one, other
    rest = [part for part in t.conjuncts(block.condition) if part not in (said, said_too)]
    first, second = choice.first, choice.second
    ways = (
        [t.same(chosen, first), t.same(left, second), choice.first_if],
        [t.same(chosen, second), t.same(left, first), t.negated(choice.first_if)],
    )
    possible = [way for way in ways if not _excludes(rest, way[-1])]
    return [replace(block, condition=t.both([*rest, *way])) for way in possible or ways]


def _excludes(held: list[t.SqlTerm], term: t.SqlTerm) -> bool:
    """Whether conditions exclude a further one.

    Of two values, one comes before the other, not after it.
    """
    return t.negated(term) in held or (term.text == "less" and t.call("less", *reversed(term.arguments)) in held)


# Rewrites of the pieces of a Shave: only records and pieces that the query reads are made.


def cut_wanted_records(script: Script, rows: QueryRows) -> QueryRows:
    """Leave out records before a Shave that have no partners in the Join behind it.

    Before: `FROM A, pieces(SELECT c0, count(*) FROM B GROUP BY c0) AS p, norms AS n WHERE A.c0 = p.c0 AND A.c0 = n.c0`.
    After: `… pieces(SELECT c0, count(*) FROM B SEMI JOIN norms AS k ON B.c0 = k.c0 GROUP BY c0) AS p …`.

    Q4 of TPC-H is the case in point: late lines are counted by order, one piece of each count is kept, and orders of a
    quarter are joined with these. The wanted orders stand in a table of norms that the Join makes anyway.

    Needs: a Shave of a dataset that is added up into a table; a lookup of the Join, made of filtered rows, with a key
    that determines the records; columns that are never null.

    Weights: rows are left out by the columns that they are added up by. So all rows of a record stay or go together,
    and a record that stays keeps its bits. A record that goes has no row in the Join, since its key is not in the
    lookup. The norms of the Join are those of its inputs, made without any of this.
    """
    return _each_table(rows, lambda block, alias, table: _wanted_pieces(script, block, alias, table))


def _each_table(rows: QueryRows, changed: Callable[[Block, str, SqlTable], SqlTable]) -> QueryRows:
    """The rows, with each table of a block changed."""

    def replaced(block: Block) -> Block:
        return replace(block, tables=tuple((alias, changed(block, alias, table)) for alias, table in block.tables))

    return replace(rows, blocks=tuple(map(replaced, rows.blocks)))


def _wanted_pieces(script: Script, block: Block, alias: str, table: SqlTable) -> SqlTable:
    if table.cut is None or len(table.cut.tables) != 1:
        return table
    ((_, summed),) = table.cut.tables
    statement = next((one for one in script.statements if one.creates == summed.source and one.rows), None)
    if statement is None or not _filtered(block, alias):
        return table
    # the columns of the table of sums, by those of the pieces, as they are joined
    held = dict(zip((name for name, _ in table.columns), t.leaves(table.cut.output), strict=False))
    find = classes(block)
    for other, lookup in block.tables:
        if other == alias or not lookup.lookup or lookup.source not in script.made or lookup.covers is not None:
            continue
        pairs = [
            f"q.{held[name].text} = k.{there}"
            for name, nullable in table.columns
            for there, perhaps in lookup.columns
            if not (nullable or perhaps) and name in held and held[name].kind == "column" and not held[name].nullable
            if find(t.column(alias, name, False)) == find(t.column(other, there, False))
        ]
        if pairs:
            joined = f"SELECT q.* FROM ({statement.rows}) AS q SEMI JOIN {lookup.source} AS k ON {' AND '.join(pairs)}"
            query = statement.query.replace(f"({statement.rows})", f"({joined})", 1)
            made = script.table(query, (*statement.reads, lookup.source))
            return replace(table, source=table.source.replace(summed.source, made), reads=(made,), cut=None)
    return table


def _filtered(block: Block, alias: str) -> bool:
    """Whether the condition restricts the rows of the other tables, apart from their joins."""
    said = [t.columns(part) for part in t.conjuncts(block.condition) if not links(part)]
    return any(found and all(term.scope != alias for term in found) for found in said)


_NUMBER = re.compile(r"CAST\([0-9]{1,9} AS BIGINT\)")


def make_one_piece(script: Script, rows: QueryRows) -> QueryRows:
    """Of a Shave of which one piece is read, only that piece is made.

    Before: `FROM (SELECT x, i, piece FROM (SELECT *, unnest(range(pieces)) AS i FROM cut)) WHERE i = 0`.
    After: `FROM (SELECT x, i, piece FROM (SELECT *, 0 AS i FROM cut) WHERE i < pieces) WHERE i = 0`.

    A query asks for distinct records by the first piece of each: `Shave(1.0)`, then `Where` the number is 0. The
    numbers of all pieces would be a list a record, of which the condition leaves one.

    Needs: a condition that the number is one constant. Weights: the piece is made by the same terms of the same
    numbers, under the same condition, so all bits stay.
    """
    return _each_table(rows, _one_piece)


def _one_piece(block: Block, alias: str, table: SqlTable) -> SqlTable:
    if table.piece is None:
        return table
    number = t.column(alias, "i", False)
    for part in t.conjuncts(block.condition):
        others = [term.text for term in part.arguments if term != number]
        if part.text == "equal" and len(others) == 1 and _NUMBER.fullmatch(others[0]):
            before, after = table.piece
            return replace(table, source=f"({before}{others[0]}{after})", piece=None)
    return table
