"""Of the choices of rows in an orbit of an automorphism of a block, one is made.

A triangle of edges `a → b → c → a` is found three times, from each of its vertices, and where only the degrees are
asked for, in order, all three give the same record. In general: let a permutation of the tables of a block, of order n,
each to one with the same rows, leave the condition as it is, and every column of the output (`automorphisms`). Then it
permutes the choices of rows, and all of an orbit give the same record. Where a column has n different values in the
images of a choice, the orbit has n choices, and the column comes before its images in one of them, in any order of
all values. That one is made, and adds the weights of all n, which are one term over n images of its columns.

**Order.** Values come in the order of how many rows have them in that first column, then of themselves. In a choice of
rows each image of the column is that column of another table with the same rows, so every value has a place. Tables
that hold it and an image of it are filtered by that, stored, and joined first. So what grows is joined at the vertex
that has few partners that come after it: at most `√m` in a graph of m edges, whatever its degrees.

**Both directions.** Let all tables be one that is mirrored. The reverses of all rows may then give the same, and leave
the first column of the orbit: around a triangle, the other way. Of two such choices, one is made, in which the second
column is less than its image, and adds the weights of both.

**What breaks the symmetry.** Images of conditions `NOT x = y` that the block does not have (two paths that meet in a
triangle need not say that all three vertices differ) are added, and so is that the column differs from its images. What
that leaves out is made as it was, a block for each such pair that is equal; x and y must be columns of one table, whose
rows with `x = y` are stored and joined first (the loops of a graph). A table of `unequal` pairs, as `simple` edges
are, has none, and there is no such block.

Needs: tables with the same rows; an output that is added up; choices of rows that can be more than the rows of each
table, for else there is nothing to gain. Nothing is asked of the weights, which may differ within an orbit.

Weights: every choice of rows is counted once, with the weight that it had, on the same grid (`sums`);
only the order of the sum changes, which does not show. So all bits stay, and the error bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations

from wpinq.engines.sql import blocks as b, terms as t
from wpinq.engines.sql.rewrites.lookups import own_terms
from wpinq.engines.sql.script import Script

# --- normal forms -----------------------------------------------------------------------------------------------------

#: The greatest of the leasts of some terms, by their numbers; no set contains another.
Choices = frozenset[frozenset[int]]

#: How large a normal form gets, with ten values 252; beyond it a term is taken as it is written.
_CHOICES_LIMIT = 256


class NormalForms:
    """Numbers of terms, where equal numbers mean equal values.

    Some of the columns that terms read are known to be equal.

    Two terms get one number where they differ only in

    - which of the columns that a condition makes equal they read;
    - the order of the two sides of an equality;
    - the way in which they choose among integers by `least` and `greatest`. These make a distributive lattice, in which
      every such term has one normal form, the greatest of leasts of which none implies another. So any two networks
      that sort the same values have the same numbers, place by place. Nulls, which are left out rather than compared,
      are no part of that: a term that can be null is taken as it is written.

    Different numbers mean nothing.

    Parameters
    ----------
    stands_for : callable
        The column that stands for all that are equal to a column.
    """

    def __init__(self, stands_for: Callable[[t.SqlTerm], t.SqlTerm]) -> None:
        self._stands_for = stands_for
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[bytes, int] = {}
        self._choices: dict[int, Choices] = {}

    def number(self, root: t.SqlTerm) -> int:
        """The number of a term."""
        for term in t.walk([root]):
            if term.digest not in self._known:
                self._known[term.digest] = self._number(term, [self._known[part.digest] for part in term.arguments])
        return self._known[root.digest]

    def _number(self, term: t.SqlTerm, parts: list[int]) -> int:
        if term.kind == "column":
            return self._held(self._stands_for(term).digest)
        if term.kind == "call" and term.text in ("least", "greatest") and not term.nullable:
            chosen = self._chosen(term.text, *parts)
            if len(chosen) <= _CHOICES_LIMIT:
                return self._of_choices(chosen)
        if term.kind == "call" and term.text in ("equal", "same"):
            return self._held((term.text, frozenset(parts)))
        return self._held((term.kind, term.text, tuple(parts)))

    def _chosen(self, name: str, left: int, right: int) -> Choices:
        these, those = (self._choices.get(part, frozenset((frozenset((part,)),))) for part in (left, right))
        sets = these | those if name == "greatest" else {one | other for one in these for other in those}
        return frozenset(one for one in sets if not any(other < one for other in sets))

    def _of_choices(self, chosen: Choices) -> int:
        if len(chosen) == 1:
            (only,) = chosen
            if len(only) == 1:
                return next(iter(only))
        number = self._held(chosen)
        self._choices[number] = chosen
        return number

    def _held(self, form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))


# --- automorphisms ----------------------------------------------------------------------------------------------------

#: How many tables are permuted at most: all permutations are tried.
_TABLES_LIMIT = 5


#: A term, read from the permuted rows.
Image = Callable[[t.SqlTerm], t.SqlTerm]


@dataclass(frozen=True, slots=True)
class Automorphism:
    """A permutation of the tables of a block under which it gives the same.

    Attributes
    ----------
    block : Block
        The block, with all lookups that its images need.
    image : callable
        A term, read from the permuted rows.
    orbit : tuple of SqlTerm
        A column, and its image each time, until it and all tables are back: no two are known to be equal, and some
        table has the first and another, for each other.
    missing : tuple of SqlTerm
        Conditions that the block does not have, each that two columns of one table differ: images of those that it
        has, and that the columns of the orbit differ. With them its condition is its own image.
    """

    block: b.Block
    image: Image
    orbit: tuple[t.SqlTerm, ...]
    missing: tuple[t.SqlTerm, ...]


def automorphisms(script: Script, block: b.Block) -> Iterator[Automorphism]:
    """The automorphisms of a block that have an orbit of columns.

    They are proved from the terms alone: equal normal forms have equal values. A lookup that an image needs and the
    block lacks is added where its table is known to hold the key (`SqlTable.covers`), which changes no choice of rows.
    """
    core = core_tables(block)
    if not 2 <= len(core) <= _TABLES_LIMIT or any(table.reads for _, table in core):
        return
    linked = [term for term in t.conjuncts(block.condition) if b.links(term)]
    if any(side.nullable for link in linked for side in link.arguments):
        return
    find = b.classes(block)
    for chosen in permutations(core):
        to = {alias: other for (alias, _), (other, _) in zip(core, chosen, strict=True)}
        alike = all(table == other for (_, table), (_, other) in zip(core, chosen, strict=True))
        if alike and _order(to) > 1 and _linked_alike(linked, find, to):
            yield from _with_orbits(script, block, to)


def _with_orbits(script: Script, block: b.Block, to: dict[str, str]) -> Iterator[Automorphism]:
    extended = _with_lookups(script, block, to)
    if extended is None:
        return
    block, to = extended
    order, find, image = _order(to), b.classes(block), t.renamed(to)
    parts = t.conjuncts(block.condition)
    if not _linked_alike([term for term in parts if b.links(term)], find, to):
        return
    others = [term for term in parts if not b.links(term)]
    forms = NormalForms(find)
    if any(forms.number(image(leaf)) != forms.number(leaf) for leaf in t.leaves(block.output)):
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
            yield Automorphism(block, image, tuple(orbit), tuple(missing))


def core_tables(block: b.Block) -> list[tuple[str, b.SqlTable]]:
    """The tables that are no lookups."""
    return [(alias, table) for alias, table in block.tables if not table.lookup]


def core_columns(block: b.Block) -> list[t.SqlTerm]:
    """Their columns."""
    return [term for alias, table in core_tables(block) for term in table.at(alias)]


def places(block: b.Block, alias: str, table: b.SqlTable, *terms: t.SqlTerm) -> list[t.SqlTerm]:
    """The columns of a table of a block that equal some terms; empty where one has none."""
    find = b.classes(block)
    held = {find(term): term for term in table.at(alias)}
    found = [held.get(find(term)) for term in terms]
    return [] if None in found else [place for place in found if place is not None]


def _order(to: dict[str, str]) -> int:
    order, power = 1, to
    while any(alias != other for alias, other in power.items()):
        order, power = order + 1, {alias: to[other] for alias, other in power.items()}
    return order


def _linked_alike(linked: list[t.SqlTerm], find: Callable[[t.SqlTerm], t.SqlTerm], to: dict[str, str]) -> bool:
    """Whether columns of permuted tables that are equal have images that are."""
    image = t.renamed(to)
    return all(
        find(image(left)) == find(image(right))
        for left, right in (link.arguments for link in linked)
        if {left.scope, right.scope} <= to.keys()
    )


def _with_lookups(script: Script, block: b.Block, to: dict[str, str]) -> tuple[b.Block, dict[str, str]] | None:
    """The block with the lookups of its images, and the images of all its tables.

    None if a lookup is not there.

    A lookup goes to one of the same table, at the image of its key.
    """
    find, image = b.classes(block), t.renamed(to)
    core = {find(term): term for term in core_columns(block)}
    at: dict[tuple[object, ...], str] = {}
    keys: dict[str, list[t.SqlTerm]] = {}
    for alias, table in block.tables:
        if table.lookup:
            held = [core.get(find(term)) for term in _key(alias, table)]
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
            block = b.looked_up(block, added, table, there)
            left.append(added)
        to[alias] = at[place]
    return (block, to) if len(set(to.values())) == len(block.tables) else None


def _key(alias: str, lookup: b.SqlTable) -> list[t.SqlTerm]:
    """The columns of a lookup's one key."""
    (key,) = lookup.keys
    return [term for term in lookup.at(alias) if term.text in key]


def _covers(block: b.Block, lookup: b.SqlTable, key: list[t.SqlTerm]) -> bool:
    """Whether a lookup surely has a row for these values.

    It has, if a table that it was made from has them in one row.
    """
    if lookup.covers is None:
        return False
    source, names = lookup.covers
    find = b.classes(block)
    wanted = [find(term) for term in key]
    return any(
        table.source == source and [find(t.column(alias, name, True)) for name in names] == wanted
        for alias, table in core_tables(block)
    )


def _needed(others: list[t.SqlTerm], orbit: list[t.SqlTerm], image: Image) -> Iterator[t.SqlTerm]:
    """All images of some conditions, and that the columns of an orbit differ."""
    for _ in orbit[1:]:
        others = [image(term) for term in others]
        yield from others
    for number, one in enumerate(orbit):
        for other in orbit[:number]:
            yield t.call("not", t.call("equal", other, one))


def _of_one_table(block: b.Block, *terms: t.SqlTerm) -> bool:
    return any(places(block, alias, table, *terms) for alias, table in core_tables(block))


def _differ(block: b.Block, term: t.SqlTerm) -> bool:
    """Whether a condition says that two columns of one table differ."""
    if term.kind != "call" or term.text != "not" or term.arguments[0].text != "equal":
        return False
    pair = term.arguments[0].arguments
    return all(side.kind == "column" and not side.nullable for side in pair) and _of_one_table(block, *pair)


def one_an_orbit(script: Script, addends: b.Addends) -> b.Addends:
    """Read one row of each orbit of a block's symmetries, with the weights of all of them.

    A block becomes one or several that exclude each other.

    Before: `SELECT …, sum(w) FROM e AS a, e AS b, e AS c WHERE a → b → c → a`.
    After: `SELECT …, sum(w) + sum(w1) + sum(w2) FROM e AS a, … WHERE a → b → c → a AND a < b AND a < c`.
    """
    parts = tuple(part for block, _ in addends.parts for part in _parts(script, block))
    return b.Addends(parts, started=any(len(weights) > 1 for _, weights in parts))


def _parts(script: Script, block: b.Block) -> list[b.Addend]:
    found = max(automorphisms(script, block), key=lambda one: len(one.orbit), default=None) if b.grows(block) else None
    if found is None:
        return [(block, (block.weight,))]
    missing, weights = found.missing, [block.weight]
    while len(weights) < len(found.orbit):
        weights.append(found.image(weights[-1]))
    once = b.restricted(found.block, t.both(missing))
    reverse = _reversal(once, found.orbit)
    if reverse is not None:
        ends = found.orbit[1], reverse(found.orbit[1])
        held = [places(found.block, alias, table, *ends) for alias, table in core_tables(found.block)]
        less = [t.call("less", *pair) for pair in (ends, *held) if pair]  # in one table, which is filtered so, too
        once, weights = b.restricted(once, t.both(less)), [*weights, *map(reverse, weights)]
    forms, same = NormalForms(b.classes(once)), dict[int, t.SqlTerm]()
    weights = [same.setdefault(forms.number(weight), weight) for weight in weights]
    parts = [_from_first(script, once, found.orbit, weights)]
    for number, unequal in enumerate(missing):
        (equality,) = unequal.arguments
        condition = t.both([block.condition, *missing[:number], equality])
        if tables := _from_loops(script, block, equality):
            parts.append((replace(block, tables=tables, condition=condition), (block.weight,)))
    return parts


def _reversal(block: b.Block, orbit: tuple[t.SqlTerm, ...]) -> Image | None:
    """A term, read from the reverses of all rows, under which a block gives the same.

    Of an orbit the first column stays and the second goes to another; done twice, all do what they did.
    """
    core, find = core_tables(block), b.classes(block)
    if any(not table.mirrored or len(table.columns) != 2 or table != core[0][1] for _, table in core):
        return None
    keys = {alias: (table, [*map(find, _key(alias, table))]) for alias, table in block.tables if table.lookup}
    at = {(table, *key): alias for alias, (table, key) in keys.items()}
    beside = [c for alias, (table, _) in keys.items() for c in (*table.at(alias), t.column(alias, "w", False))]
    parts, forms, held = t.conjuncts(block.condition), NormalForms(find), {*map(find, orbit)}
    said = {forms.number(part) for part in parts}
    for chosen in permutations(alias for alias, _ in core):
        to = {alias: other for (alias, _), other in zip(core, chosen, strict=True)}
        crossed = {one: other for alias, table in core for one, other in _crossed(table, alias, to[alias]).items()}
        turned = {find(one): find(other) for one, other in crossed.items()}
        to |= {alias: at.get((table, *map(turned.get, key)), alias) for alias, (table, key) in keys.items()}
        image = t.substitute((crossed | {c: t.column(to[c.scope], c.text, c.nullable) for c in beside}).get)
        stay = [turned[find(column)] == find(column) for column in orbit[:2]]
        if stay != [True, False] or {*map(turned.get, held)} != held or any(to[to[alias]] != alias for alias in to):
            continue
        kept = all(forms.number(image(leaf)) == forms.number(leaf) for leaf in t.leaves(block.output))
        if kept and all(_holds(image(part), find) or forms.number(image(part)) in said for part in parts):
            return image
    return None


def _from_first(script: Script, block: b.Block, orbit: Sequence[t.SqlTerm], weights: Sequence[t.SqlTerm]) -> b.Addend:
    """The block with the tables first that have the orbit's first column, and its weights.

    These have only the rows in which that column is the least, and have looked up the numbers by which it is. So where
    the rest of the block reads one term of those numbers, the tables have it beside each value, and lookups of it go.
    Several terms, which would go along with all rows that merely connect, are looked up where rows are left.
    """
    (least, *images), find, tables = orbit, b.classes(block), dict(block.tables)
    held = {alias: here for alias, table in core_tables(block) for here in places(block, alias, table, least)}
    alias, here = next(iter(held.items()))
    counts = script.counts(b.Block(((alias, tables[alias]),), t.TRUE, here, t.ONE))
    shown = replace(block, output=t.RecordShape(None, (*t.leaves(block.output), *weights)))
    keys = [key for alias, table in block.tables if table.source == counts.source for key in _key(alias, table)]
    made = {term: key for key in keys for term in own_terms(shown, key.scope) if term != key}
    own = {t.renamed({key.scope: ""})(term) for term, key in made.items()}
    if len(own) > 1 or any(term.kind == "column" for term in own):
        made, own = {}, set()
    first, read = {alias: tables[alias] for alias in held}, dict[t.SqlTerm, t.SqlTerm]()
    for alias, here in held.items():
        if later := [place for image in images for place in places(block, alias, tables[alias], image)]:
            first[alias] = _ordered(script, tables[alias], [here, *later], counts, own)
            at = {find(place): place for place in (here, *later)}
            for term, key in made.items():
                if place := at.get(find(key)):
                    read |= {key: place, term: t.column(alias, f"x{place.text}", term.nullable)}
    put, gone = t.substitute(read.get, ("column", "call")), {*first, *(term.scope for term in read)}
    joined = (*first.items(), *(item for item in block.tables if item[0] not in gone))
    block = b.Block(joined, put(block.condition), t.map_shape(put, block.output), put(block.weight))
    return block, tuple(map(put, weights))


def _ordered(
    script: Script, table: b.SqlTable, values: list[t.SqlTerm], counts: b.SqlTable, own: Iterable[t.SqlTerm]
) -> b.SqlTable:
    """The rows of a table in which one column comes before others.

    Beside each value may stand a term of the number of rows that have it.

    Of a mirrored table, those of the second column are those of the first, read the other way. These are made of the
    rows `x < y` alone, each turned where y comes first: half as many look up the numbers of their values.
    """
    (first, *later), columns = values, table.at(values[0].scope)
    if table.mirrored and values[::-1] == columns:
        made = _ordered(script, table, columns, counts, own)
        names = [script.emitter.dialect.quote(name) for name, _ in made.columns]
        turned = ", ".join(f"{names[place ^ 1]} AS {name}" for place, name in enumerate(names))
        sql = f"(SELECT {turned}{'' if table.weight else ', w'} FROM {made.source})"
        return replace(made, source=sql, reads=(made.source,))
    lookups = {script.alias(): value for value in values}
    conditions = [condition for alias, value in lookups.items() for condition in b.matches(counts, alias, [value])]
    least, *numbers = [t.column(alias, "n", False) for alias in lookups]
    tables = ((first.scope, table), *((alias, counts) for alias in lookups))
    terms = [columns, *([t.renamed({"": alias})(term) for alias in lookups] for term in own)]
    names, shown = [term.text for term in columns] + [f"x{value.text}" for value in values], [*chain(*terms)]
    if table.mirrored and values == columns and not later[0].nullable:
        swapped = t.call("less", *numbers, least)
        shown = [t.call("where", swapped, *pair) for x, y in terms for pair in ((y, x), (x, y))]
        conditions.append(t.call("less", *values))
    else:
        for value, number in zip(later, numbers, strict=True):
            tie = t.call("equal", least, number)
            conditions.append(t.call("where", tie, t.call("less", first, value), t.call("less", least, number)))
    return _filtered(script, table, tables, t.both(conditions), dict(zip(names, shown, strict=False)))


def _from_loops(script: Script, block: b.Block, equality: t.SqlTerm) -> b.JoinedTables:
    """The tables of a block, first one that has both sides of an equality.

    It has only the rows that satisfy the equality. Where the table says that it has none, there are no tables.
    """
    held = {item: pair for item in core_tables(block) if (pair := places(block, *item, *equality.arguments))}
    if any(table.unequal and {*pair} == {*table.at(alias)} for (alias, table), pair in held.items()):
        return ()
    (alias, table), pair = next(iter(held.items()))
    shown = {term.text: term for term in table.at(alias)}
    loops = _filtered(script, table, ((alias, table),), t.same(*pair), shown)
    return ((alias, loops), *(item for item in block.tables if item[0] != alias))


def _filtered(
    script: Script, table: b.SqlTable, tables: b.JoinedTables, condition: t.SqlTerm, shown: Mapping[str, t.SqlTerm]
) -> b.SqlTable:
    """Some rows of the first of some tables, stored with these columns."""
    weight = {} if table.weight else {b.WEIGHT: t.column(tables[0][0], b.WEIGHT, False)}
    block = b.Block(tables, condition, t.RecordShape(None, ()), t.ONE)
    query = script.emitter.select(block, [*shown.values(), *weight.values()], [*shown, *weight])
    source = script.table(query, [held.source for _, held in tables])
    columns = tuple((name, term.nullable) for name, term in shown.items())
    return replace(table, source=source, columns=columns, mirrored=False, unequal=False)


# Of two choices of rows that are mirror images, one is made, and adds the weights of both.
#
# The wedge a–b–c of an undirected graph is found from a and from c, and both give the same sorted ends. In general: let
# two tables of a block have the same rows, with each row (x, y) also (y, x) at the same weight: they are mirrored,
# which the plan proves of a SelectMany that lists both directions of a pair. Let the map from columns to columns that
# exchanges both tables and, in each, the two columns leave the condition and every column of the output as they are. It
# then takes choices of rows to choices of rows with the same record, and done twice it takes them back. Where the
# condition says that a column differs from its image, no choice is its own image, and in one of each two the column
# comes before its image. That one is made, with its weight and the weight of its image.
# The lesser of the two is then that column, which a table has.
#
# Needs: two tables that are mirrored; such a column; an output that is added up; choices of rows that can be more than
# the rows of each table. Nothing is asked of the weights, nor of the other tables, whose rows stay the same.
#
# Weights: every choice of rows is counted once, with the weight that it had, on the same grid (`sums`); only the order
# of the sum changes, which does not show. So all bits stay, and the error bound.


def one_of_two(script: Script, addends: b.Addends) -> b.Addends:
    """Each block that has mirror images with one row for two choices, and the weights of both.

    Before: `SELECT …, sum(w) FROM e AS a, e AS b WHERE a.y = b.x AND NOT a.x = b.y`.
    After: `SELECT …, sum(w) + sum(w1) FROM e AS a, e AS b WHERE a.y = b.x AND a.x < b.y`.
    """
    return replace(addends, parts=tuple(_part(*part) for part in addends.parts))


def _part(block: b.Block, weights: tuple[t.SqlTerm, ...]) -> b.Addend:
    if len(weights) > 1 or not b.grows(block):
        return block, weights
    for image in _exchanges(block):
        first = _told_apart(block, image)
        if first is not None:
            pair, names = (first, image(first)), ("least", "greatest")
            to = {t.call(name, *way): end for way in (pair, pair[::-1]) for name, end in zip(names, pair, strict=True)}
            read = t.substitute(to.get, ("call",))
            block = replace(block, output=t.map_shape(read, block.output), condition=read(block.condition))
            return b.restricted(block, t.call("less", *pair)), (*weights, *map(image, weights))
    return block, weights


def _exchanges(block: b.Block) -> Iterator[Image]:
    """The exchanges of two mirrored tables under which a block gives the same."""
    parts, find = t.conjuncts(block.condition), b.classes(block)
    forms = NormalForms(find)
    held = {forms.number(part) for part in parts}
    for (one, table), (other, twin) in combinations(block.tables, 2):
        if table != twin or not table.mirrored or len(table.columns) != 2:  # a pair may still be packed in one
            continue
        image = t.substitute((_crossed(table, one, other) | _crossed(table, other, one)).get)
        if any(forms.number(image(leaf)) != forms.number(leaf) for leaf in t.leaves(block.output)):
            continue
        if all(_holds(image(part), find) or forms.number(image(part)) in held for part in parts):
            yield image


def _crossed(table: b.SqlTable, one: str, other: str) -> dict[t.SqlTerm, t.SqlTerm]:
    """The columns of a table under an alias, each with the one that it goes to under another."""
    (left, nullable), (right, _) = table.columns
    pairs = ((left, right), (right, left), ("w", "w"))
    return {t.column(one, own, null := nullable and own != "w"): t.column(other, to, null) for own, to in pairs}


def _holds(part: t.SqlTerm, find: Callable[[t.SqlTerm], t.SqlTerm]) -> bool:
    """Whether a condition says no more than that columns are equal that are."""
    return b.links(part) and len(set(map(find, part.arguments))) == 1


def _told_apart(block: b.Block, image: Image) -> t.SqlTerm | None:
    """A column that the condition says is not its image."""
    find = b.classes(block)
    for part in t.conjuncts(block.condition):
        if part.kind == "call" and part.text == "not" and part.arguments[0].text == "equal":
            first, second = part.arguments[0].arguments
            if first.kind == second.kind == "column" and find(image(first)) == find(second):
                return first
    return None
