"""Automorphisms of a block: permutations of its tables that leave its condition and its output as they are.

What is found is proved from the terms alone: equal normal forms have equal values (`normal_forms`). A lookup that an
image needs and the block lacks is added where its table is known to hold the key (`SqlTable.covers`), which changes no
choice of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes, links
from wpinq.engines.relational.blocks.shape import leaves
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, column, conjuncts, renamed, same
from wpinq.engines.relational.rewrites.normal_forms import NormalForms
from wpinq.engines.relational.sql.script import Script

_TABLES_LIMIT = 5
"""How many tables are permuted at most: all permutations are tried."""


@dataclass(frozen=True, slots=True)
class Automorphism:
    """A permutation of the tables of a block under which it gives the same.

    Attributes
    ----------
    block : Block
        The block, with all lookups that its images need.
    image : callable
        A term, read from the permuted rows.
    order : int
        How often the permutation must be done to get back.
    orbit : tuple of SqlTerm
        A column, and its image each time, until it is back: no two are known to be equal, and some table has the first
        and another, for each other.
    missing : tuple of SqlTerm
        Conditions that the block does not have, each that two columns of one table differ: images of those that it
        has, and that the columns of the orbit differ. With them its condition is its own image.
    """

    block: Block
    image: Callable[[SqlTerm], SqlTerm]
    order: int
    orbit: tuple[SqlTerm, ...]
    missing: tuple[SqlTerm, ...]


def automorphisms(script: Script, block: Block) -> Iterator[Automorphism]:
    """The automorphisms of a block that have an orbit of columns."""
    core = core_tables(block)
    if not 2 <= len(core) <= _TABLES_LIMIT or any(table.reads for _, table in core):
        return
    linked = [term for term in conjuncts(block.condition) if links(term)]
    if any(side.nullable for link in linked for side in link.arguments):
        return
    find = classes(block)
    for chosen in permutations(core):
        to = {alias: other for (alias, _), (other, _) in zip(core, chosen, strict=True)}
        alike = all(table == other for (_, table), (_, other) in zip(core, chosen, strict=True))
        if alike and _order(to) > 1 and _linked_alike(linked, find, to):
            yield from _with_orbits(script, block, to)


def _with_orbits(script: Script, block: Block, to: dict[str, str]) -> Iterator[Automorphism]:
    extended = _with_lookups(script, block, to)
    if extended is None:
        return
    block, to = extended
    order, find, image = _order(to), classes(block), renamed(to)
    parts = conjuncts(block.condition)
    if not _linked_alike([term for term in parts if links(term)], find, to):
        return
    others = [term for term in parts if not links(term)]
    forms = NormalForms(find)
    if any(forms.number(image(leaf)) != forms.number(leaf) for leaf in leaves(block.output)):
        return
    held = {forms.number(term) for term in others}
    for first in [term for term in core_columns(block) if not term.nullable]:
        orbit = [first]
        while len(orbit) < order:
            orbit.append(image(orbit[-1]))
        if len({find(one) for one in orbit}) < order:
            continue
        if not all(_of_one_table(block, orbit[0], one) for one in orbit[1:]):
            continue
        needed = {forms.number(term): term for term in _needed(others, orbit, image)}
        missing = [term for number, term in needed.items() if number not in held]
        if all(_differ(block, term) for term in missing):
            yield Automorphism(block, image, order, tuple(orbit), tuple(missing))


def core_tables(block: Block) -> list[tuple[str, SqlTable]]:
    """The tables that are no lookups."""
    return [(alias, table) for alias, table in block.tables if not table.lookup]


def core_columns(block: Block) -> list[SqlTerm]:
    """Their columns."""
    return [term for alias, table in core_tables(block) for term in table.at(alias)]


def places(block: Block, alias: str, table: SqlTable, *terms: SqlTerm) -> list[SqlTerm]:
    """The columns of a table of a block that are equal to some terms, one for each; empty where one has none."""
    find = classes(block)
    held = {find(term): term for term in table.at(alias)}
    found = [held.get(find(term)) for term in terms]
    return [] if None in found else [place for place in found if place is not None]


def _order(to: dict[str, str]) -> int:
    order, power = 1, to
    while any(alias != other for alias, other in power.items()):
        order, power = order + 1, {alias: to[other] for alias, other in power.items()}
    return order


def _linked_alike(linked: list[SqlTerm], find: Callable[[SqlTerm], SqlTerm], to: dict[str, str]) -> bool:
    """Whether columns of permuted tables that are equal have images that are."""
    image = renamed(to)
    return all(
        find(image(left)) == find(image(right))
        for left, right in (link.arguments for link in linked)
        if {left.scope, right.scope} <= to.keys()
    )


def _with_lookups(script: Script, block: Block, to: dict[str, str]) -> tuple[Block, dict[str, str]] | None:
    """The block with the lookups that images of its own need, and where all of its tables go; None if one is not there.

    A lookup goes to one of the same table, at the image of its key.
    """
    find, image = classes(block), renamed(to)
    core = {find(term): term for term in core_columns(block)}
    at: dict[tuple[object, ...], str] = {}
    keys: dict[str, list[SqlTerm]] = {}
    for alias, table in block.tables:
        if table.lookup:
            (key,) = table.keys
            held = [core.get(find(column(alias, name, True))) for name in sorted(key)]
            if None in held:
                return None
            keys[alias] = [term for term in held if term is not None]
            at[table, *map(find, keys[alias])] = alias
    left, to = list(keys), dict(to)
    while left:
        alias = left.pop()
        table = dict(block.tables)[alias]
        there = [image(term) for term in keys[alias]]
        place = (table, *map(find, there))
        if place not in at:
            if not _covers(block, table, there):
                return None
            added = at[place] = script.alias()
            keys[added] = there
            (key,) = table.keys
            links = [
                same(term, column(added, name, term.nullable)) for term, name in zip(there, sorted(key), strict=True)
            ]
            block = replace(block, tables=(*block.tables, (added, table)), condition=both([block.condition, *links]))
            left.append(added)
        to[alias] = at[place]
    return (block, to) if len(set(to.values())) == len(block.tables) else None


def _covers(block: Block, lookup: SqlTable, key: list[SqlTerm]) -> bool:
    """Whether a lookup has a row for these values, since some table that it was made from has them in one row."""
    if lookup.covers is None:
        return False
    source, names = lookup.covers
    find = classes(block)
    wanted = [find(term) for term in key]
    return any(
        table.source == source and [find(column(alias, name, True)) for name in names] == wanted
        for alias, table in core_tables(block)
    )


def _needed(others: list[SqlTerm], orbit: list[SqlTerm], image: Callable[[SqlTerm], SqlTerm]) -> Iterator[SqlTerm]:
    """All images of some conditions, and that the columns of an orbit differ."""
    for _ in orbit[1:]:
        others = [image(term) for term in others]
        yield from others
    for number, one in enumerate(orbit):
        for other in orbit[:number]:
            yield call("not", call("equal", other, one))


def _of_one_table(block: Block, *terms: SqlTerm) -> bool:
    return any(places(block, alias, table, *terms) for alias, table in core_tables(block))


def _differ(block: Block, term: SqlTerm) -> bool:
    """Whether a condition says that two columns of one table differ."""
    if term.kind != "call" or term.text != "not" or term.arguments[0].text != "equal":
        return False
    pair = term.arguments[0].arguments
    return all(side.kind == "column" and not side.nullable for side in pair) and _of_one_table(block, *pair)
