"""Durations, and moments with a zone, of Arrow and polars as the integers that count them.

DuckDB would make its own of them while it scans, rounds nanoseconds, and fails at the first that it cannot hold: then
nobody could say which row that is. Of integers SQL tells. Those inside of lists and records stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COUNTED_MOMENTS = "counted moments in UTC "
COUNTED_DURATIONS = "counted durations "
"""How the kinds of counted columns begin, before the unit."""

_KINDS = (
    (re.compile(r"timestamp\[(s|ms|us|ns), tz=.*\]"), COUNTED_MOMENTS),
    (re.compile(r"Datetime\(time_unit='(ms|us|ns)', time_zone='.*'\)"), COUNTED_MOMENTS),
    (re.compile(r"duration\[(s|ms|us|ns)\]"), COUNTED_DURATIONS),
    (re.compile(r"Duration\(time_unit='(ms|us|ns)'\)"), COUNTED_DURATIONS),
)


@dataclass(frozen=True, slots=True)
class CountedKind:
    """What a column of integers counts, where its type in DuckDB would stand."""

    id: str


def counted_kind(type_: Any) -> CountedKind | None:
    """What a column of a type of Arrow or polars counts, if it is to be read as its count."""
    for words, begin in _KINDS:
        found = words.fullmatch(str(type_))
        if found is not None:
            return CountedKind(begin + found[1])
    return None


def counts_of_batch(batch: Any, kinds: Sequence[CountedKind | None]) -> Any:
    """A batch of Arrow with counts in place of the columns that are counted, in the same memory."""
    import pyarrow

    columns = [
        column if kind is None else column.view(pyarrow.int64())
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=counts_of_schema(batch.schema, kinds))


def counts_of_schema(schema: Any, kinds: Sequence[CountedKind | None]) -> Any:
    """The schema of such batches."""
    import pyarrow

    return pyarrow.schema(
        [
            field if kind is None else pyarrow.field(field.name, pyarrow.int64())
            for field, kind in zip(schema, kinds, strict=True)
        ]
    )


def counts_of_table(table: Any, kinds: Sequence[CountedKind | None]) -> Any:
    """An Arrow table with counts in place of the columns that are counted, in the same memory."""
    import pyarrow

    for place, kind in enumerate(kinds):
        if kind is not None:
            pieces = [piece.view(pyarrow.int64()) for piece in table.column(place).chunks]
            counts = pyarrow.chunked_array(pieces, pyarrow.int64())
            table = table.set_column(place, table.schema.field(place).name, counts)
    return table
