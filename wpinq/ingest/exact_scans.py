"""Which columns DuckDB scans for what they are, to the last bit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wpinq.errors import SourceRejected

_ROUNDED = ("duration[ns]", "Duration(time_unit='ns')", "date64")
_OUTER = ("list", "large_list", "fixed", "array", "struct", "map")


def is_plain(array: Any) -> bool:
    """Whether DuckDB scans an array for what it is: numbers as the machine has them, and timestamps."""
    if array.ndim != 1 or not array.dtype.isnative:
        return False
    if array.dtype.kind == "M":
        return array.dtype.str[3:] in ("[s]", "[ms]", "[us]", "[ns]")
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def rounds(kinds: Iterable[Any]) -> bool:
    """Whether DuckDB rounds columns of such Arrow or polars types without a word: durations, and dates with a time.

    Nanoseconds inside of lists or records are refused, for Python's lists of these round too.
    """
    texts = [text for text in map(str, kinds) if any(rounded in text for rounded in _ROUNDED)]
    if any(text.lower().startswith(_OUTER) for text in texts):
        raise SourceRejected("a list or a record holds durations in nanoseconds: cast them to microseconds")
    return bool(texts)
