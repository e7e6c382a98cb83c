"""Which columns DuckDB scans for what they are, to the last bit."""

from __future__ import annotations

from typing import Any


def is_plain(array: Any) -> bool:
    """Whether DuckDB scans an array for what it is: numbers as the machine has them, and timestamps."""
    if array.ndim != 1 or not array.dtype.isnative:
        return False
    if array.dtype.kind == "M":
        return array.dtype.str[3:] in ("[s]", "[ms]", "[us]", "[ns]")
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def rounds(schema: Any) -> bool:
    """Whether DuckDB rounds values of an Arrow table without a word: nanoseconds of durations, dates within a day."""
    from pyarrow import types

    return any(types.is_date64(kind) or (types.is_duration(kind) and kind.unit == "ns") for kind in schema.types)
