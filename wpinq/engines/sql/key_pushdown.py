"""Keys that are asked for, pushed into the query of an output whose joins can grow.

What the keys say of a record is said of the rows that make it, after every statement, and so above all norms, groups
and pieces, but before rows are joined and added up. A row is left out only where its record is none that was asked for,
so the rows of a record that is are all there, with the weights that they have in the whole output, and their sum, exact
on its grid, is turned into the same float.

A value that a record always shows, be it in this column or in that (see `shown`), is one of those that the keys have
there. So each of the degrees of a triangle is one of the three that are asked for. From the least of some values being
at least x follows that each of them is, and likewise for the greatest. What that leaves of a lookup filters the tables
that look up there before they are joined.

The values are parameters of the query: `values0`, all that the keys have in the first column but null, `null0`, whether
they have it, `low0` and `high0`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes
from wpinq.engines.relational.blocks.shape import leaves
from wpinq.engines.relational.blocks.term import SqlTerm, both, call, column, columns, literal, renamed
from wpinq.engines.relational.sql.emit import Emitter
from wpinq.engines.relational.sql.shown import shown

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
    found = shown(record)
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
