"""Which columns DuckDB scans for what they are, to the last bit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from wpinq.errors import SourceRejected

# Durations, and moments with a zone, of Arrow and polars as the integers that count them.
#
# DuckDB would make its own of them while it scans, rounds nanoseconds, and fails at the first that it cannot hold: then
# nobody could say which row that is. Of integers SQL tells. Those inside of lists and records stay as they are.

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


INTERVAL = "month_day_nano_interval"
"""What Arrow calls an interval of months, days and nanoseconds."""

_ROUNDED = ("duration[ns]", "Duration(time_unit='ns')", "date64", INTERVAL)
_OUTER = ("list", "large_list", "fixed", "array", "struct", "map")
_UNSIZED = {"U": "str", "S": "bytes", "V": "void"}
_MOST_OF_ARROW = 10**38 - 1
_MOST_DAYS = 5 * 10**8


def dtype_name(dtype: Any) -> str:
    """What messages call a dtype of numpy: without the length of texts, which is that of the longest one."""
    return _UNSIZED.get(dtype.kind, str(dtype.name))


def is_plain(array: Any) -> bool:
    """Whether DuckDB scans an array for what it is: numbers as the machine has them, and timestamps."""
    if array.ndim != 1 or not array.dtype.isnative:
        return False
    if array.dtype.kind == "M":
        return array.dtype.str[3:] in ("[s]", "[ms]", "[us]", "[ns]")
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def rounds(kinds: Iterable[Any]) -> bool:
    """Whether DuckDB rounds columns of such Arrow or polars types without a word.

    These are intervals, and dates with a time; durations are counted. Nanoseconds inside of lists or records are
    refused, for Python's lists of these round too.
    """
    uncounted = [str(kind) for kind in kinds if counted_kind(kind) is None]
    texts = [text for text in uncounted if any(rounded in text for rounded in _ROUNDED)]
    if any(text.lower().startswith(_OUTER) for text in texts):
        raise SourceRejected("a list or a record holds durations in nanoseconds: cast them to microseconds")
    return bool(texts)


def duration_of(interval: Any) -> Any:
    """An interval of Arrow's as a duration, to the nanosecond; as it is, where it is null or of months."""
    import numpy

    if interval is None or interval.months:
        return interval
    microseconds, finer = divmod(interval.nanoseconds, 1000)
    if finer:
        return numpy.timedelta64(interval.nanoseconds, "ns")
    # More days than Python counts are far outside of 64 bits anyway.
    return timedelta(max(-_MOST_DAYS, min(_MOST_DAYS, interval.days)), microseconds=microseconds)


def for_arrow(column: str, kind: Any, label: str) -> str:
    """A column of a DuckDB relation as SQL of which Arrow's stream changes no value that could be accepted.

    Arrow has no times with a zone: DuckDB leaves the zone out. And the bits of unsigned integers of 128 bits become
    those of a signed decimal: the larger ones are cut to one that no integer of 64 bits nor float is.
    """
    if kind.id == "uhugeint":
        return f"CAST(CASE WHEN {column} > {_MOST_OF_ARROW} THEN {_MOST_OF_ARROW} ELSE {column} END AS HUGEINT)"
    if _holds(kind, "time with time zone"):
        raise SourceRejected(f"the relation's {label} has times with a zone: cast them to TIME, which leaves it out")
    if _holds(kind, "uhugeint"):
        raise SourceRejected(f"the relation's {label} holds UHUGEINT in a list or a record: cast it to HUGEINT there")
    return column


def _holds(kind: Any, scalar: str) -> bool:
    if kind.id not in ("list", "array", "struct", "map", "union"):
        return bool(kind.id == scalar)
    return any(_holds(child, scalar) for _, child in kind.children if isinstance(child, type(kind)))
