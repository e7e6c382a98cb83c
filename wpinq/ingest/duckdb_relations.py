"""Relations of DuckDB: read once, from their own connection, into memory where they fit there well."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from wpinq.columns.arrow_rows import ArrowStream
from wpinq.errors import SourceRejected
from wpinq.expr.types import DATE, INT, DecimalOf, Logical, Type
from wpinq.ingest.canonical import any_of
from wpinq.ingest.exact_scans import for_arrow
from wpinq.ingest.logical_columns import logical_column
from wpinq.ingest.offered_table import PIECE, OfferedTable, unsupported
from wpinq.ingest.typed_columns import Layout

_NARROW = ("tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger")
"""Kinds of integers that a declared int is wider than."""


def offered_relation(data: Any, layout: Layout) -> OfferedTable:
    """A relation, with the columns of a layout."""
    import duckdb

    if not isinstance(data, duckdb.DuckDBPyRelation):
        raise unsupported(data)
    what = "the relation"
    places = layout.pick(data.columns, what)
    columns = [for_arrow(f"#{place + 1}", data.types[place], layout.label(i)) for i, place in enumerate(places)]
    columns = [
        f"CAST({column} AS BIGINT)" if type_ == INT and str(data.types[place].id) in _NARROW else column
        for column, type_, place in zip(columns, layout.types, places, strict=True)
    ]
    read = [
        _stored(column, data.types[place], type_)
        for column, place, type_ in zip(columns, places, layout.types, strict=True)
    ]
    picked = data.project(", ".join(column for column, _ in read))
    try:
        import pyarrow
    except ImportError:  # then there is a stream, which is computed again for each look at its schema
        with contextlib.suppress(duckdb.Error):  # of the relation itself: its rows are asked for next
            _unless_busy(lambda: data.limit(0).fetchall())
        return OfferedTable(what, ArrowStream(data.project(", ".join(columns))), small=False)

    reading: list[Any] = []
    first: list[Any] = []

    def gather(room: int) -> bool:
        """Read from the start, until there is no room for more; whether that is all."""
        first.clear()
        while reading:
            reading.pop().close()  # a connection has one result at a time
        reading.append(_unless_busy(lambda: picked.to_arrow_reader(PIECE)))
        try:
            for batch in reading[0]:
                first.append(batch)
                room -= batch.nbytes
                if room < 0:
                    return False
        except (OSError, pyarrow.ArrowException):  # to fail anew in the scan, never to go on behind what failed
            reading.pop().close()
            reading.append(picked.to_arrow_reader(PIECE))
            first.clear()
            return False
        return True

    def rows() -> Any:
        if not reading:
            gather(0)
        return pyarrow.RecordBatchReader.from_batches(reading[0].schema, itertools.chain(first, reading[0]))

    def again() -> Any:
        nonlocal picked
        picked = data.project(", ".join(columns))
        gather(0)
        return rows()

    def gathered(room: int) -> Any:
        table = pyarrow.Table.from_batches(first, reading[0].schema) if gather(room) else None
        # where one is null, why is asked of the rows as they were offered
        return None if table is None or any(table.column(i).null_count for i in made) else table

    def looked_at() -> Any:
        return pyarrow.Table.from_batches(first[:1]) if first else None

    types = [type_ for _, type_ in read]
    made = [i for i, type_ in enumerate(types) if type_ != layout.types[i]]
    return OfferedTable(
        what, rows, once=True, again=again, small=False, first=looked_at, gathered=gathered, types=types
    )


def _stored(column: str, kind: Any, type_: Type) -> tuple[str, Type]:
    """What a relation is asked for in place of a column, and what that is: of a date, the integer that stands for it.

    So the relation hands over numbers, in half the memory of decimals, that are records as they lie. What cannot stand
    for a value is null. It is asked for nothing but DuckDB's own operators: names of functions may be its owner's.
    """
    found = logical_column(column, kind, type_) if isinstance(type_, Logical) and not type_.nullable else None
    if found is None or not (type_ == DATE or isinstance(type_, DecimalOf)) or kind.id not in ("date", "decimal"):
        return column, type_
    value, unfit = found
    return (f"CASE WHEN {any_of([held for held, _ in unfit])} THEN NULL ELSE {value} END" if unfit else value), INT


def _unless_busy(ask: Callable[[], Any]) -> Any:
    """What is asked of a relation; a refusal where its own connection cannot compute it now."""
    import duckdb

    with contextlib.suppress(duckdb.ResourceInUseException):
        return ask()
    raise SourceRejected(
        "the relation cannot be read while its connection has an unfinished result: fetch that to its end "
        "(connection.complete()) or close its reader; or make the relation on another connection, as "
        "connection.cursor() gives one"
    )
