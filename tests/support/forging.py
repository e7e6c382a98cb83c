"""Ledgers as they are changed by whoever may write the file."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from collections.abc import Iterator


@contextlib.contextmanager
def without_triggers(path: pathlib.Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger whose triggers are gone, and stand again afterwards."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)
