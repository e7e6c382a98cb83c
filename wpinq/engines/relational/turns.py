"""Permutations of the tables of a block that leave its condition and its output as they are: its symmetries.

What is found is proved from the terms alone: equal forms have equal values (`forms`). A lookup that a turn needs and
the block lacks is added where its table is known to hold the key (`Table.covers`), which changes no choice of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

from wpinq.engines.relational.block import Block, Table
from wpinq.engines.relational.forms import Forms
from wpinq.engines.relational.layout import leaves
from wpinq.engines.relational.rewrites.same_rows import classes
from wpinq.engines.relational.scalar import Scalar, both, call, column, conjuncts, same, substitute

if TYPE_CHECKING:
    from wpinq.engines.relational.program import Program

_TABLES_LIMIT = 5
"""How many tables are permuted at most: all permutations are tried."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A permutation of the tables of a block under which it gives the same.

    Attributes
    ----------
    block : Block
        The block, with all lookups that its turns need.
    move : callable
        A term, read from the rows after one turn.
    order : int
        How many turns it takes to get back.
    corners : tuple of Scalar
        A column, and what it is after each turn, one for each until it is back: no two are known to be equal, and some
        table has the first and another, for each other.
    missing : tuple of Scalar
        Conditions that the block does not have, each that two columns of one table differ: turns of those that it has,
        and that corners differ. With them its condition is the same after a turn.
    """

    block: Block
    move: Callable[[Scalar], Scalar]
    order: int
    corners: tuple[Scalar, ...]
    missing: tuple[Scalar, ...]


def turns(program: Program, block: Block) -> Iterator[Turn]:
    """The symmetries of a block that have corners."""
    walked = [(alias, table) for alias, table in block.tables if not table.lookup]
    if not 2 <= len(walked) <= _TABLES_LIMIT or any(table.reads for _, table in walked):
        return
    links = [term for term in conjuncts(block.condition) if _links(term)]
    if any(side.nullable for link in links for side in link.arguments):
        return
    find = classes(block)
    for chosen in permutations(walked):
        to = {alias: other for (alias, _), (other, _) in zip(walked, chosen, strict=True)}
        alike = all(table == other for (_, table), (_, other) in zip(walked, chosen, strict=True))
        if alike and _order(to) > 1 and _linked_alike(links, find, to):
            yield from _turns(program, block, to)


def _turns(program: Program, block: Block, to: dict[str, str]) -> Iterator[Turn]:
    turned = _with_lookups(program, block, to)
    if turned is None:
        return
    block, to = turned
    order, find, move = _order(to), classes(block), _moving(to)
    others = [term for term in conjuncts(block.condition) if not _links(term)]
    if not _linked_alike([term for term in conjuncts(block.condition) if _links(term)], find, to):
        return
    forms = Forms(find)
    if any(forms.number(move(leaf)) != forms.number(leaf) for leaf in leaves(block.output)):
        return
    held = {forms.number(term) for term in others}
    for alias, name in [
        (alias, name) for alias, table in walked_tables(block) for name, null in table.columns if not null
    ]:
        corners = [column(alias, name, False)]
        while len(corners) < order:
            corners.append(move(corners[-1]))
        if len({find(corner) for corner in corners}) < order:
            continue
        if not all(_of_one_table(block, corners[0], corner) for corner in corners[1:]):
            continue
        needed = {forms.number(term): term for term in _needed(others, corners, move)}
        missing = [term for number, term in needed.items() if number not in held]
        if all(_differ(block, term) for term in missing):
            yield Turn(block, move, order, tuple(corners), tuple(missing))


def walked_tables(block: Block) -> list[tuple[str, Table]]:
    """The tables that are no lookups."""
    return [(alias, table) for alias, table in block.tables if not table.lookup]


def places(block: Block, alias: str, table: Table, *terms: Scalar) -> list[Scalar]:
    """The columns of a table of a block that are equal to some terms, one for each; empty where one has none."""
    find = classes(block)
    held = {find(column(alias, name, null)): column(alias, name, null) for name, null in table.columns}
    found = [held.get(find(term)) for term in terms]
    return [] if None in found else [place for place in found if place is not None]


def _moving(to: dict[str, str]) -> Callable[[Scalar], Scalar]:
    return substitute(lambda term: column(to[term.scope], term.text, term.nullable))


def _order(to: dict[str, str]) -> int:
    order, power = 1, to
    while any(alias != other for alias, other in power.items()):
        order, power = order + 1, {alias: to[other] for alias, other in power.items()}
    return order


def _links(term: Scalar) -> bool:
    """Whether a condition says that two columns are equal."""
    named = term.kind == "call" and term.text in ("equal", "same")
    return named and all(argument.kind == "column" for argument in term.arguments)


def _linked_alike(links: list[Scalar], find: Callable[[Scalar], Scalar], to: dict[str, str]) -> bool:
    """Whether columns of permuted tables that are equal are so after the turn too."""
    move = _moving(to)
    return all(
        find(move(left)) == find(move(right))
        for left, right in (link.arguments for link in links)
        if {left.scope, right.scope} <= to.keys()
    )


def _with_lookups(program: Program, block: Block, to: dict[str, str]) -> tuple[Block, dict[str, str]] | None:
    """The block with the lookups that turns of its own need, and where all of its tables go; None if one is not there.

    A lookup goes to one of the same table, at the key turned.
    """
    find, move = classes(block), _moving(to)
    columns = [column(alias, name, null) for alias, table in walked_tables(block) for name, null in table.columns]
    walked = {find(term): term for term in columns}
    at: dict[tuple[object, ...], str] = {}
    keys: dict[str, list[Scalar]] = {}
    for alias, table in block.tables:
        if table.lookup:
            (key,) = table.keys
            held = [walked.get(find(column(alias, name, True))) for name in sorted(key)]
            if None in held:
                return None
            keys[alias] = [term for term in held if term is not None]
            at[table, *map(find, keys[alias])] = alias
    left, to = list(keys), dict(to)
    while left:
        alias = left.pop()
        table = dict(block.tables)[alias]
        turned = [move(term) for term in keys[alias]]
        place = (table, *map(find, turned))
        if place not in at:
            if not _covers(block, table, turned):
                return None
            added = at[place] = program.alias()
            keys[added] = turned
            (key,) = table.keys
            links = [
                same(term, column(added, name, term.nullable)) for term, name in zip(turned, sorted(key), strict=True)
            ]
            block = replace(block, tables=(*block.tables, (added, table)), condition=both([block.condition, *links]))
            left.append(added)
        to[alias] = at[place]
    return (block, to) if len(set(to.values())) == len(block.tables) else None


def _covers(block: Block, lookup: Table, key: list[Scalar]) -> bool:
    """Whether a lookup has a row for these values, since some table that it was made from has them in one row."""
    if lookup.covers is None:
        return False
    source, names = lookup.covers
    find = classes(block)
    wanted = [find(term) for term in key]
    return any(
        table.source == source and [find(column(alias, name, True)) for name in names] == wanted
        for alias, table in walked_tables(block)
    )


def _needed(others: list[Scalar], corners: list[Scalar], move: Callable[[Scalar], Scalar]) -> Iterator[Scalar]:
    """All turns of some conditions, and that corners differ."""
    for _ in corners[1:]:
        others = [move(term) for term in others]
        yield from others
    for number, corner in enumerate(corners):
        for other in corners[:number]:
            yield call("not", call("equal", other, corner))


def _of_one_table(block: Block, *terms: Scalar) -> bool:
    return any(places(block, alias, table, *terms) for alias, table in walked_tables(block))


def _differ(block: Block, term: Scalar) -> bool:
    """Whether a condition says that two columns of one table differ."""
    if term.kind != "call" or term.text != "not" or term.arguments[0].text != "equal":
        return False
    pair = term.arguments[0].arguments
    return all(side.kind == "column" and not side.nullable for side in pair) and _of_one_table(block, *pair)
