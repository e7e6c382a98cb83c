"""The order in which rows stand, which a DuckDB that is opened for speed does not keep."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def in_order(connection: Any) -> Iterator[None]:
    """Have rows come in the order in which they stand, which costs time."""
    import duckdb

    ((setting,),) = connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall()
    connection.execute("SET preserve_insertion_order = true")
    try:
        yield
    finally:
        with contextlib.suppress(duckdb.Error):  # where the database is broken, and goes with all that is in it
            connection.execute(f"SET preserve_insertion_order = {str(setting).lower()}")


# Sizes of memory, as DuckDB writes them.

_SIZE = re.compile(r"([\d.]+)\s*([KMGTP]?)i?B|([\d.]+) bytes")


def bytes_of(size: str) -> int:
    """How many bytes a size is, as DuckDB writes it.

    Examples
    --------
    >>> bytes_of("1.5 GiB"), bytes_of("512 bytes"), bytes_of("0 bytes")
    (1610612736, 512, 0)
    """
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        return 0  # what cannot be read leaves room for nothing
    number, unit, plain = found.groups()
    return int(float(plain or number) * 1024 ** " KMGTP".index(unit or " "))


# DuckDB's progress bar, which would show shares of protected work on the screen: off.


def stop_progress_bar(connection: Any) -> None:
    """Turn it off, where it is on: without ipywidgets, a notebook has none, and DuckDB then refuses to set it."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
