"""A connection to DuckDB on which no two threads can wait for each other for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.columns.python_rows import LOADING
from wpinq.engines.relational.sql.exact_sums import FUNCTIONS, register


class Connection:
    """A connection to DuckDB, in which a statement that calls Python, or reads its objects, runs on one thread.

    Such a thread holds Python's global lock while it asks for memory. Where that has to be spilled, it waits for locks
    of DuckDB's, which another thread may hold while it spills, and waits for the global lock (see `spill`). The calls
    of Python take turns on any number of threads.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        ((self._threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
        self._now = self._threads
        register(connection)

    def execute(self, sql: str, given: Sequence[Any] | Mapping[str, Any] | None = ()) -> Any:
        """Run a statement with some parameters, on as many threads as it may have."""
        threads = 1 if any(name in sql for name in (*FUNCTIONS, LOADING)) else self._threads
        if threads != self._now:
            self._connection.execute(f"SET threads = {threads}")
            self._now = threads
        return self._connection.execute(sql, given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
