"""The one connection that a process has to a ledger: opening, locking, transactions, fork, and errors that explain.

SQLite gives atomic, durable transactions among processes. Within a process a lock takes turns: there is one writer
at a time anyhow, and a lock is fair where SQLite polls. SQLite's own state must not be carried across a fork (the
child would believe that it holds locks which are its parent's), so every file is closed before a fork and opened
again by whoever next needs it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from typing import TypeVar

from wpinq.errors import LedgerError
from wpinq.kernel import ledger_schema

T = TypeVar("T")

OnLedger = Callable[[sqlite3.Connection], T]

PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


class LedgerFile:
    """A ledger database, usable from every thread of every process that has it open.

    Parameters
    ----------
    path : str or None
        The file; None keeps the ledger in memory, for this process alone.
    create : bool
        Whether a missing or empty file becomes a new ledger.

    Raises
    ------
    LedgerError
        When the file cannot be opened or is not a ledger.
    """

    def __init__(self, path: str | None, create: bool) -> None:
        # Absolute, because the file is opened again after a fork, when the working directory may be another.
        self._path = None if path is None else os.path.abspath(path)
        self._create = create
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._closed = False
        self._stranded = False
        with _registry_lock:
            _registry.add(self)
        self.read(lambda connection: None)
        self._create = False  # a ledger that vanishes later is not to come back with its budgets unspent

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the in-memory ledger" if self._path is None else self._path

    # Work is handed over, and not done in a `with` block: Ctrl-C between two nested context managers would leave a
    # transaction open, and the lock held, for as long as anybody has the traceback.

    def read(self, work: OnLedger[T]) -> T:
        """What some work gives with the connection, with the other threads kept out."""
        with self._lock:
            try:
                return work(self._ready())
            except sqlite3.Error as error:
                raise LedgerError(f"{self.name}: {self._explain(error)}") from None

    def snapshot(self, work: OnLedger[T]) -> T:
        """What it gives inside a read transaction: no writer is kept waiting, and none is seen."""
        return self.read(lambda connection: self._transact(connection, "BEGIN", work))

    def write(self, work: OnLedger[T]) -> T:
        """What it gives inside a write transaction: durable when this returns, undone when it raises."""
        return self.read(lambda connection: self._transact(connection, "BEGIN IMMEDIATE", self._there(work)))

    def _there(self, work: OnLedger[T]) -> OnLedger[T]:
        """Work on a file that is still where it was opened."""

        def checked(connection: sqlite3.Connection) -> T:
            if self._path is not None and self._identity != _identity(self._path):
                raise LedgerError(
                    f"{self._path} was removed or replaced while it was open, so a debit would be lost: "
                    "put the ledger back and open it again"
                )
            return work(connection)

        return checked

    def _transact(self, connection: sqlite3.Connection, begin: str, work: OnLedger[T]) -> T:
        if connection.in_transaction:
            raise LedgerError("the ledger is in the middle of a debit: a price must not use the ledger")
        try:
            patiently(lambda: connection.execute(begin))  # Ctrl-C may come once it has begun
            done = work(connection)
            self._ready()
            connection.execute("COMMIT")
            return done
        except BaseException:
            if not self._stranded and connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file. Everything in it is durable already; closing twice is allowed."""
        with self._lock:
            if self._connection is not None and not self._stranded:
                if self._connection.in_transaction:
                    raise LedgerError("the ledger is in the middle of a debit: a price must not close it")
                self._connection.close()
                self._connection = None
            self._closed = True

    def _ready(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"{self.name} is closed: open it again")
        if self._stranded:
            raise LedgerError(
                f"{self.name} cannot be used in a forked process: what it spent there would be unknown here. "
                "Use a ledger file, and fork outside of debits"
            )
        if self._connection is None:
            self._connection = patiently(self._open)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < (3, 37):
            raise LedgerError(f"a ledger needs SQLite 3.37 or later, and Python has {sqlite3.sqlite_version}")
        if self._path is None:
            target = ":memory:"
        else:
            target = f"{pathlib.Path(self._path).as_uri()}?mode={'rwc' if self._create else 'rw'}"
        connection = sqlite3.connect(target, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if self._create and self._is_empty(connection):
                self._fill(connection)
            ledger_schema.check(connection, self.name)
            if self._path is not None:
                self._use_write_ahead_log(connection)
                self._identity = self._identity or _identity(self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        # SQLite takes a file of a few bytes for an empty one, and would write over it.
        pages = connection.execute("PRAGMA page_count").fetchone()
        return bool(pages == (0,)) and (self._path is None or os.path.getsize(self._path) == 0)

    def _fill(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # commits, or rolls back
            # A transaction gives an empty file its first page, so here it is the tables that tell.
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                ledger_schema.create(connection)

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LedgerError(f"{self._path} is on a file system without shared memory: keep it on a local disk")

    def _explain(self, error: sqlite3.Error) -> str:
        code = _primary_code(error)
        if code in _BUSY:
            return f"another process has been writing for {PATIENCE:g} seconds: nothing was recorded, try again"
        if code == sqlite3.SQLITE_NOTADB:
            return "not a ledger but some other file: give the path of a ledger or a new file"
        if code == sqlite3.SQLITE_READONLY:
            return "read-only, and a debit must be recorded: make the file and its directory writable"
        if code == sqlite3.SQLITE_CORRUPT:
            return "the file is damaged: restore it from a copy, or start a new one with the budget that is left"
        if code == sqlite3.SQLITE_CANTOPEN and self._path is not None:
            directory = os.path.dirname(self._path)
            if not os.path.isdir(directory):
                return f"the directory {directory} does not exist: create it first"
            if not os.path.exists(self._path):
                return "there is no such file: check the path, or create the ledger first"
            return "cannot be opened: it must be a file, and it and its directory must be readable and writable"
        return f"the database refused: {error}"


def patiently(action: Callable[[], T]) -> T:
    """Do something that another process may stand in the way of, again and again until `PATIENCE` is up.

    SQLite waits by itself for most locks, but not while a file changes its journal or its log is recovered.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if _primary_code(error) not in _BUSY or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


_registry: weakref.WeakSet[LedgerFile] = weakref.WeakSet()
_registry_lock = threading.Lock()
_held: list[LedgerFile] = []


def _before_fork() -> None:
    _registry_lock.acquire()
    for ledger in sorted(_registry, key=id):
        ledger._lock.acquire()
        _held.append(ledger)
        connection = ledger._connection
        if ledger._path is not None and connection is not None and not connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
                ledger._connection = None


def _after_fork_in_child() -> None:
    for ledger in _held:
        ledger._stranded = ledger._connection is not None
    _after_fork()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _registry_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
