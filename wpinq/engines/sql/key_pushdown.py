"""Keys and ranges, pushed into the query of an output.

A condition of the keys on a record is one on the rows that make it. It stands after every statement, and so above all
norms, groups and pieces, but before rows are joined and added up. A row is left out only where its record is no key. So
the rows of a key are all there, with the weights that they have in the whole output, and their sum, exact on its grid,
is turned into the same float. Only outputs whose joins can grow are narrowed.

A value that a record always shows, be it in this column or in that (see `visible_columns`), is among those that the
keys have there. So each of the degrees of a triangle is one of three. Where the least of some values is at least x,
each of them is, and likewise for the greatest. The condition on a lookup filters the tables that look up there, before
they are joined.

The values are parameters of the query: `values0`, all that the keys have in the first column but null, `null0`, whether
they have it, `low0` and `high0`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from wpinq.columns.records import column_names
from wpinq.engines.contract import WantedRanges
from wpinq.engines.sql.blocks import Block, SqlTable, classes
from wpinq.engines.sql.emit import Emitter
from wpinq.engines.sql.terms import SqlTerm, both, call, column, columns, leaves, literal, refilled, renamed
from wpinq.expr.nodes import below_first
from wpinq.expr.types import Type
from wpinq.expr.values import Value

STEPS = 2**14
"""How many terms are looked at, over all ways in which comparisons can go; where there are more, none is followed."""

_Decision = frozenset[bytes]
"""What tells a comparison: the digest of a condition, or those of the two terms that are put in order."""


def visible_columns(record: Mapping[int, SqlTerm]) -> list[tuple[SqlTerm, frozenset[int]]]:
    """Terms over one table, each with places of a record, in one of which it stands for every row.

    A record of sorted values has each of them in one of its columns. In general: comparisons decide between two terms
    (`CASE`, `least`, `greatest`), and one comparison decides alike in all columns. Where a term over one table stands
    in some column however all of them go, its value is one of the record's. It may be computed, as the bucket of a
    degree is.

    `least` and `greatest` decide between terms that are never null: of two that can be, they give the one that is not.
    A comparison for each element of a list decides nothing for the row.

    Parameters
    ----------
    record : mapping of int to SqlTerm
        The columns by place.
    """
    single = [(term, frozenset((place,))) for place, term in record.items() if not _spread(term)]
    spread = {place: term for place, term in record.items() if _spread(term)}
    terms = list(below_first(spread.values(), _below))
    decisions = {term.digest: found for term in terms if (found := _decision(term)) is not None}
    different = list(dict.fromkeys(decisions.values()))
    if not different or len(terms) << len(different) > STEPS:
        return single
    ways: list[dict[SqlTerm, set[int]]] = []
    for way in product((False, True), repeat=len(different)):
        goes = dict(zip(different, way, strict=True))
        taken = {digest: goes[decision] for digest, decision in decisions.items()}
        places: dict[SqlTerm, set[int]] = {}
        for place, term in spread.items():
            value = _decided(term, taken)
            if columns(value) and not _spread(value):
                places.setdefault(value, set()).add(place)
        ways.append(places)
    first, *others = ways
    always = [value for value in first if all(value in places for places in others)]
    return [*single, *((value, frozenset().union(*(places[value] for places in ways))) for value in always)]


def _spread(term: SqlTerm) -> bool:
    """Whether a term is over several tables."""
    return len({held.scope for held in columns(term)}) > 1


def _decision(term: SqlTerm) -> _Decision | None:
    if term.kind != "call" or term.text not in ("where", "least", "greatest") or term.parameters or not _spread(term):
        return None
    if term.text == "where":
        return frozenset((term.arguments[0].digest,))
    return None if term.nullable else frozenset(argument.digest for argument in term.arguments)


def _below(term: SqlTerm) -> tuple[SqlTerm, ...]:
    """What a value is made of; how what decides is made is of no concern."""
    return term.arguments if _decision(term) is None or term.text != "where" else term.arguments[1:]


def _decided(root: SqlTerm, taken: Mapping[bytes, bool]) -> SqlTerm:
    """What a term is where comparisons go some way."""
    done: dict[bytes, SqlTerm] = {}
    for term in below_first([root], _below):
        if term.digest not in taken:
            done[term.digest] = refilled(term, tuple(done[argument.digest] for argument in term.arguments))
            continue
        if term.text == "where":
            yes, no = term.arguments[1:]
        else:  # where it is taken, the one with the least digest is the least value
            yes, no = sorted(term.arguments, key=lambda argument: argument.digest, reverse=term.text == "greatest")
        done[term.digest] = done[(yes if taken[term.digest] else no).digest]
    return done[root.digest]


_ORDERED = frozenset(("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN"))
"""The types whose values DuckDB and Python put in one order."""


def can_narrow(blocks: Sequence[Block]) -> bool:
    """Whether each of some blocks has a column of its record that could be narrowed."""
    return all(any(columns(term) for term in leaves(block.output)) for block in blocks)


def narrowed(emitter: Emitter, block: Block, types: Sequence[str]) -> Block | None:
    """The rows of a block whose record may have been asked for; None where that filters no table.

    Parameters
    ----------
    types : sequence of str
        The types of the columns of a record, which come first in the block's output.
    """
    terms = zip(leaves(block.output), types, strict=False)
    record = {place: term for place, (term, type_) in enumerate(terms) if type_ in _ORDERED and columns(term)}
    of_table: dict[str, list[SqlTerm]] = {}
    found = visible_columns(record)
    for value, places in found:
        if len({types[place] for place in places}) == 1:
            of_table.setdefault(_scope(value), []).append(_among(value, places, types[min(places)]))
    for place, term in record.items():
        low, high = (literal(f"CAST(${end}{place} AS {types[place]})") for end in ("low", "high"))
        for part, condition in _bounds(term, low, high):
            if all(value != part for value, _ in found):
                of_table.setdefault(_scope(part), []).append(condition)
    if not of_table:
        return None
    tables = dict(block.tables)
    for alias, filters in of_table.items():
        if tables[alias].lookup:
            tables |= _looking_up(emitter, block, tables, alias, filters)
    filters = [condition for held in of_table.values() for condition in held]
    whole = [_among(term, {place}, types[place]) for place, term in record.items()]
    return replace(
        block, tables=tuple(tables.items()), condition=both(dict.fromkeys([block.condition, *filters, *whole]))
    )


def _scope(term: SqlTerm) -> str:
    (scope,) = {held.scope for held in columns(term)}
    return scope


def _among(term: SqlTerm, places: Collection[int], type_: str) -> SqlTerm:
    """Whether a term has one of the values that are asked for in some columns, null being one."""
    first, *more = (f"CAST($values{place} AS {type_}[])" for place in sorted(places))
    for other in more:
        first = f"list_concat({first}, {other})"
    condition = call("among", literal(first), term)
    if not term.nullable:
        return condition
    nulls = " OR ".join(f"CAST($null{place} AS BOOLEAN)" for place in sorted(places))
    return call("where", call("is_null", term), literal(f"({nulls})"), condition)


def _bounds(term: SqlTerm, low: SqlTerm | None, high: SqlTerm | None) -> Iterator[tuple[SqlTerm, SqlTerm]]:
    """What bounds of a term say of terms over single tables."""
    if term.nullable:
        return
    if len({held.scope for held in columns(term)}) == 1:
        if low is not None:
            yield term, call("not", call("less", term, low))
        if high is not None:
            yield term, call("not", call("less", high, term))
    elif term.kind == "call" and term.text in ("least", "greatest"):
        ends = (low, None) if term.text == "least" else (None, high)
        for part in term.arguments:
            yield from _bounds(part, *ends)


def _looking_up(
    emitter: Emitter, block: Block, tables: dict[str, SqlTable], alias: str, filters: Sequence[SqlTerm]
) -> dict[str, SqlTable]:
    """The tables that look up at the key of a lookup, with those of their rows alone for which it finds a row."""
    lookup, find = tables[alias], classes(block)
    if len(lookup.keys) != 1 or len(lookup.keys[0]) != 1:
        return {}
    (key,) = lookup.keys[0]
    wanted = find(column(alias, key, dict(lookup.columns)[key]))
    quote, rename = emitter.dialect.quote, renamed({alias: "l"})
    found = " AND ".join(emitter.terms([rename(condition) for condition in dict.fromkeys(filters)], {}))
    keys = f"SELECT l.{quote(key)} FROM {lookup.source} AS l WHERE {found}"
    changed = {}
    for other, table in tables.items():
        at = next((term for term in table.at(other) if find(term) == wanted), None)
        if not table.lookup and at is not None:
            source = f"(SELECT s.* FROM {table.source} AS s WHERE s.{quote(at.text)} IN ({keys}))"
            changed[other] = replace(table, source=source, reads=table.reads or (table.source,))
    return changed


def in_ranges(query: str, type_: Type, within: WantedRanges) -> str:
    """The query of an output without the records outside of some ranges, as far as their ends are plainly written."""
    wanted = [
        f"{name} BETWEEN {_plain(ends[0])} AND {_plain(ends[1])}"
        for name, ends in zip(column_names(type_), within, strict=False)
        if ends is not None and all(map(_plain, ends))
    ]
    return f"SELECT * FROM ({query}) AS q WHERE {' AND '.join(wanted)}" if wanted else query


def _plain(end: Value) -> str:
    """An int or a text as SQL; empty for all that would need care."""
    if isinstance(end, str):
        return f"'{end}'" if end.isascii() and end.isalnum() else ""
    return str(end) if type(end) is int else ""
