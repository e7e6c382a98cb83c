"""The order in which rows stand, which a DuckDB that is opened for speed does not keep."""

from __future__ import annotations

import contextlib
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
