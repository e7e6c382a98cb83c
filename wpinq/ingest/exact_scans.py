"""Which columns DuckDB scans for what they are, to the last bit."""

from __future__ import annotations

from typing import Any

from wpinq.errors import SourceRejected


def is_plain(array: Any) -> bool:
    """Whether DuckDB scans an array for what it is: numbers as the machine has them, and timestamps."""
    if array.ndim != 1 or not array.dtype.isnative:
        return False
    if array.dtype.kind == "M":
        return array.dtype.str[3:] in ("[s]", "[ms]", "[us]", "[ns]")
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def rounds(kind: Any) -> bool:
    """Whether DuckDB rounds values of an Arrow or polars type without a word: nanoseconds of durations, dates in a day.

    Refused where they stand inside of lists or records, for Python's lists of these round too.
    """
    text = str(kind)
    found = any(words in text for words in ("duration[ns]", "Duration(time_unit='ns')", "date64"))
    if found and any(
        text.lower().startswith(outer) for outer in ("list", "large_list", "fixed", "array", "struct", "map")
    ):
        raise SourceRejected("a list or a record holds durations in nanoseconds: cast them to microseconds")
    return found
