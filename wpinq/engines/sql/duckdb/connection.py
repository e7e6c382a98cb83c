"""A connection to DuckDB on which no two threads can wait for each other for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.duckdb_settings import stop_progress_bar
from wpinq.columns.records import LOADING, create, insert
from wpinq.columns.storage import StoredColumns
from wpinq.engines.sql.exact_sums import FUNCTIONS, register
from wpinq.engines.sql.sums import check_norm, check_weights
from wpinq.expr.values import Value
from wpinq.plan.operators.source import Source


@dataclass(slots=True)
class _State:
    """What all connections to one DuckDB have in common.

    Attributes
    ----------
    threads, now : int
        On how many threads a statement may run, and on how many the next one will.
    registered : bool
        Whether it knows the functions that run in Python. It is told of them by the first statement that calls one:
        most plans call none.
    """

    threads: int
    now: int
    registered: bool = False


class Connection:
    """A connection to DuckDB, in which a statement that calls Python, or reads its objects, runs on one thread.

    Such a thread holds Python's global lock while it asks for memory. Where that has to be spilled, it waits for locks
    of DuckDB's, which another thread may hold while it spills, and waits for the global lock (see `SpillFiles`). The
    calls of Python take turns on any number of threads.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
        stop_progress_bar(connection)
        self._state = _State(threads, threads)

    def beside(self) -> Connection:
        """Another connection to the same DuckDB, with temporary tables and views of its own; one runs at a time."""
        other = Connection.__new__(Connection)
        other._connection, other._state = self._connection.cursor(), self._state
        stop_progress_bar(other._connection)
        return other

    def execute(self, sql: str, given: Sequence[Any] | Mapping[str, Any] | None = ()) -> Any:
        """Run a statement with some parameters, on as many threads as it may have."""
        calls = any(name in sql for name in FUNCTIONS)
        if calls and not self._state.registered:
            register(self._connection)
            self._state.registered = True
        threads = 1 if calls or LOADING in sql else self._state.threads
        if threads != self._state.now:
            self._connection.execute(f"SET threads = {threads}")
            self._state.now = threads
        return self._connection.execute(sql, given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


# --- data into DuckDB: a source becomes a table or a view -------------------------------------------------------------


def load(connection: Any, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
    """Have a source's dataset stand under a name: columns that are held as they are, Python rows in a table.

    Records of weight 0 are left out.
    """
    import numpy as np

    if isinstance(weights, StoredColumns):
        check_norm(source, weights.norm)
        columns = weights.attach(connection, _held(table))
        connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM {columns}")
        return
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    check_weights(source, numbers)
    create(connection, table, source.record)
    if weights:  # there are none where a plan is tried
        insert(connection, table, source.record, weights, numbers)
        connection.execute(f"DELETE FROM {table} WHERE w = 0")


def unload(connection: Any, table: str, weights: object) -> None:
    """Let go of a source's dataset."""
    if isinstance(weights, StoredColumns):
        connection.execute(f"DROP VIEW {table}")
        weights.detach(connection, _held(table))
    else:
        connection.execute(f"DROP TABLE {table}")


def _held(table: str) -> str:
    return f"held_{table}"
