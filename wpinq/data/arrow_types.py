"""Exact columns: the Arrow and DuckDB types of which a scan changes no value, and counts in place of the others.

DuckDB makes its own values of Arrow's durations and zoned moments while it scans. It rounds nanoseconds, and fails at
the first value out of its range without a position. Their integers are scanned instead; those in lists stay as they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from wpinq.errors import SourceRejected

COUNTED_MOMENTS = "counted moments in UTC "
COUNTED_DURATIONS = "counted durations "
"""How the kinds of counted columns begin, before the unit."""

INTERVAL = "month_day_nano_interval"
"""Arrow's name for an interval of months, days and nanoseconds."""

_COUNTED = re.compile(r"(?:duration|timestamp)\[(s|ms|us|ns)(, tz=.*)?\]")
_ROUNDED = ("duration[ns]", "date64", INTERVAL)
_OUTER = ("list", "large_list", "fixed", "struct", "map")
_MOST_OF_ARROW = 10**38 - 1
_MOST_DAYS = 5 * 10**8


@dataclass(frozen=True, slots=True)
class CountedKind:
    """The unit of a column of integers, in place of its type in DuckDB."""

    id: str


def counted_kind(type_: Any) -> CountedKind | None:
    """The unit that a column of an Arrow type is counted in; None where it is scanned as it is."""
    found = _COUNTED.fullmatch(str(type_))
    if found is None or (found[2] is None and str(type_).startswith("timestamp")):
        return None
    return CountedKind((COUNTED_DURATIONS if found[2] is None else COUNTED_MOMENTS) + found[1])


def counts(batch: Any, kinds: Sequence[CountedKind | None]) -> Any:
    """An Arrow batch, or table, with integers in the same memory in place of the counted columns."""
    import pyarrow

    schema = pyarrow.schema(
        [
            field if kind is None else field.with_type(pyarrow.int64())
            for field, kind in zip(batch.schema, kinds, strict=True)
        ]
    )
    if isinstance(batch, pyarrow.Table):
        return pyarrow.Table.from_batches([counts(each, kinds) for each in batch.to_batches()], schema)
    columns = [
        column if kind is None else column.view(pyarrow.int64())
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def rounds(types: Iterable[Any]) -> bool:
    """Whether DuckDB rounds columns of such Arrow types: intervals, and dates with a time.

    Nanoseconds inside of lists and records are refused: Python's lists of them round too.
    """
    texts = [str(type_) for type_ in types if counted_kind(type_) is None]
    rounded = [text for text in texts if any(kind in text for kind in _ROUNDED)]
    if any(text.startswith(_OUTER) for text in rounded):
        raise SourceRejected("a list or a record holds durations in nanoseconds: cast them to microseconds")
    return bool(rounded)


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

    Arrow has no times with a zone: DuckDB leaves the zone out. The bits of unsigned integers of 128 bits become those
    of a signed decimal: the larger ones are cut to one that no integer of 64 bits nor float is.
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
