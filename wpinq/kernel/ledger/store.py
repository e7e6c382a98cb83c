"""The one connection that a process has to a ledger: opening, locking, transactions, fork, and errors that explain.

SQLite gives atomic, durable transactions among processes; whose turn it is to write is settled beside the file. Within
a process a lock takes turns with the connection. SQLite's own state must not be carried across a fork (the
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
from functools import partial
from typing import TypeVar

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import ledger_audit, place, schema
from wpinq.kernel.ledger.chain import Tail
from wpinq.kernel.ledger.head import Head
from wpinq.kernel.ledger.head_file import HAS_TURNS, HeadFile, Note
from wpinq.kernel.ledger.ledger_upgrade import upgrade
from wpinq.runtime.signals import hold_signals, let_signals_go

T = TypeVar("T")

OnLedger = Callable[[sqlite3.Connection], T]

Version = tuple[int, int]

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
        Whether a missing file becomes a new ledger.
    expected : Head, optional
        An entry that the ledger must hold.

    Raises
    ------
    LedgerError
        When the file cannot be opened, is not a ledger, or not what its chain says.
    """

    def __init__(self, path: str | None, create: bool, expected: Head | None = None) -> None:
        # Absolute, because the file is opened again after a fork, when the working directory may be another.
        self._path = None if path is None else os.path.abspath(path)
        self._companion = HeadFile(self._path) if self._path is not None and HAS_TURNS else None
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._opened = 0  # how often: after a fork the connection is another
        self.seen: Version = 0, 0  # when it was last found to be what its chain says: as it is, for who writes
        self.rivals = 0  # how often this process found that another connection had written
        self.last: Tail | None = None  # the last entry, where it is of this connection and nobody wrote after it
        self._writer: int | None = None
        self._closed = False
        self._stranded = False
        with _registry_lock:
            _registry.add(self)
        try:
            known = self._find(create and expected is None)
        except OSError as error:
            raise self._refused(error) from None
        try:
            self.snapshot(lambda connection: self._check(connection, known, expected))
        except BaseException:
            self.close()
            raise

    def _find(self, create: bool) -> Head | None:
        """How far the ledger had come, read before the ledger is; made here where it may be."""
        if self._path is None:
            return None
        known = None if self._companion is None else self._companion.head(PATIENCE)
        if place.is_there(self._path, known, create):
            return known
        make = partial(place.make, self._path)
        if self._companion is None:
            make()
        else:
            self._companion.alone(lambda note: make(), PATIENCE)
        return None

    def _check(self, connection: sqlite3.Connection, known: Head | None, expected: Head | None) -> None:
        ledger_audit.check(connection, self.name)
        self._check_known(connection, known)
        if expected is not None:
            ledger_audit.check_head(connection, self.name, expected, ledger_audit.EXPECTED)
        self.seen = self.version(connection)

    def _check_known(self, connection: sqlite3.Connection, known: Head | None) -> None:
        if known is not None and self._companion is not None:
            ledger_audit.check_head(connection, self.name, known, f"which it had by {self._companion.path}")

    def _known(self) -> Head | None:
        """How far the ledger had come, for who has the lock: all that is written down was committed before."""
        try:
            return None if self._companion is None else self._companion.head(PATIENCE)
        except OSError as error:
            raise self._refused(error) from None

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the in-memory ledger" if self._path is None else self._path

    def version(self, connection: sqlite3.Connection) -> Version:
        """What changes whenever others may have written: SQLite tells a connection of that from its opening on."""
        (written,) = connection.execute("PRAGMA data_version").fetchone()
        return self._opened, int(written)

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
        companion = self._companion
        if companion is None or self._closed or self._stranded:
            return self._written(work, None)
        if self._writer == threading.get_ident():
            raise LedgerError(_IN_THE_MIDDLE)
        began = False

        def written(note: Note) -> T:
            nonlocal began
            began = True  # what fails from here on is no matter of whose turn it is
            return self._written(work, note)

        try:
            return companion.take_turn(written, PATIENCE)
        except OSError as error:
            if began:
                raise
            raise self._refused(error) from None

    def _written(self, work: OnLedger[T], note: Note | None) -> T:
        self._writer = threading.get_ident()
        try:
            before = self.last
            done = self.read(lambda connection: self._transact(connection, "BEGIN IMMEDIATE", self._there(work)))
            last = self.last  # once: other threads read meanwhile, and forget it where they fail
            if note is not None and last is not None and last is not before:
                note(last.head)
            return done
        finally:
            self._writer = None

    def _refused(self, error: OSError) -> LedgerError:
        """Why the file beside the ledger, or the place of both, is in the way."""
        told = _busy() if isinstance(error, TimeoutError) else place.explain(self._path or "", error)
        return LedgerError(f"{self.name}: {told}")

    def _there(self, work: OnLedger[T]) -> OnLedger[T]:
        """Work on a file that is still where it was opened, and still what its chain says."""

        def checked(connection: sqlite3.Connection) -> T:
            if self._path is not None and self._identity != _identity(self._path):
                raise LedgerError(
                    f"{self._path} was removed or replaced while it was open, so a debit would be lost: "
                    "put the ledger back and open it again"
                )
            version = self.version(connection)
            if version != self.seen:  # somebody else has written
                ledger_audit.check(connection, self.name, last=0)
                self._check_known(connection, self._known())  # it may have put an older copy into this very file
                self.seen, self.last, self.rivals = version, None, self.rivals + 1
            return work(connection)

        return checked

    def _transact(self, connection: sqlite3.Connection, begin: str, work: OnLedger[T]) -> T:
        if connection.in_transaction:
            raise LedgerError(_IN_THE_MIDDLE)
        try:
            patiently(lambda: connection.execute(begin))  # Ctrl-C may come once it has begun
            done = work(connection)
            self._ready()
            connection.execute("COMMIT")
            return done
        except BaseException:
            self.last = None
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
        target = ":memory:" if self._path is None else f"{pathlib.Path(self._path).as_uri()}?mode=rw"
        connection = sqlite3.connect(target, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if self._path is None:
                schema.create(connection)
            elif schema.check(connection, self.name) != schema.FORMAT:
                upgrade(connection, self.name)
            if self._path is not None:
                if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                    raise LedgerError(f"{self.name} is on a file system without shared memory: keep it on a local disk")
                self._identity = self._identity or _identity(self._path)
            self._opened, self.last = self._opened + 1, None
        except BaseException:
            connection.close()
            raise
        return connection

    def _explain(self, error: sqlite3.Error) -> str:
        code = _primary_code(error)
        if code in _BUSY:
            return _busy()
        if code == sqlite3.SQLITE_NOTADB:
            return "not a ledger but some other file: give the path of a ledger or a new file"
        if code == sqlite3.SQLITE_CORRUPT:
            return "the file is damaged: restore it from a copy, or start a new one with the budget that is left"
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and self._path is not None:
            return place.explain(self._path)
        return f"the database refused: {error}"


_IN_THE_MIDDLE = "the ledger is in the middle of a debit: a price must not use the ledger"


def _busy() -> str:
    return (
        f"another process has been writing, or has it open in an older version of wpinq, for {PATIENCE:g} seconds: "
        "nothing was recorded, try again"
    )


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
    try:
        hold_signals()  # nobody hears what a handler raises in these hooks, and what it interrupts is never done
    finally:
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
    for ledger in _registry:
        ledger._stranded = ledger._connection is not None
        if not ledger._stranded:
            ledger._writer = None
        if ledger._companion is not None:
            ledger._companion.leave()
    _after_fork()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _registry_lock.release()
    let_signals_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
