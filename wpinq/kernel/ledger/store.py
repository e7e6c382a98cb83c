"""Where a ledger is kept: a file of SQLite, or memory.

A store gives atomic and durable transactions and knows nothing of prices. SQLite's state must not be carried across a
fork (the child would believe that it has its parent's locks), so each file is closed before a fork and opened again
by the next user.
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

from wpinq.errors import LedgerError, place_reason
from wpinq.kernel.ledger import chain, place, schema
from wpinq.kernel.ledger.chain import Head, Transaction
from wpinq.kernel.ledger.head_file import HeadFile
from wpinq.runtime.signals import hold_signals, let_signals_go

T = TypeVar("T")

#: Seconds to wait for another process that is writing.
PATIENCE = 60.0

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_REASONS: dict[int | None, str] = {
    sqlite3.SQLITE_NOTADB: "not a ledger but some other file: give the path of a ledger or a new file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a copy, or start a new one with the budget left",
    sqlite3.SQLITE_IOERR: "the disk failed: make room on it and see that it is whole, then open the ledger again",
    sqlite3.SQLITE_FULL: "the disk is full: make room on it, and try again; only earlier records stand",
}
BUSY_FOR = "another process has been writing for {:g} seconds: nothing was recorded, try again"
IN_THE_MIDDLE = "the ledger is in the middle of a debit: a price must not use the ledger"


class SQLiteStore:
    """A ledger in an SQLite file on a local disk, or in memory.

    Parameters
    ----------
    path : str or None
        The file; None keeps the ledger in memory, for this process alone.
    create : bool
        Whether a missing file becomes a new ledger.

    Raises
    ------
    LedgerError
        When the file cannot be opened, is not a ledger, or lost entries that it had by its head file.
    """

    def __init__(self, path: str | None, create: bool) -> None:
        # Absolute, because the file is opened again after a fork, when the working directory may be another.
        self._path = None if path is None else os.path.abspath(path)
        self._head_file = HeadFile(self._path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._writer: int | None = None
        self._closed = False
        self._stranded = False
        with _registry_lock:
            _registry.add(self)
        try:
            known = self._known()  # before the ledger: all that is noted was committed before
            if self._path is not None and not place.exists(self._path, known, create):
                make = partial(place.make, self._path, schema.create)
                self._head_file.take_turn(lambda note: make(), PATIENCE)
        except OSError as error:
            raise self._refused(error) from None
        try:
            self.snapshot(lambda connection: self._check_known(connection, known))
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The path of the file."""
        return "the in-memory ledger" if self._path is None else self._path

    # Work is handed over, and not done in a `with` block: Ctrl-C between two nested context managers would leave a
    # transaction open, and the lock taken, for as long as anybody has the traceback.

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of some work on the last committed state, with the other threads kept out."""
        with self._lock:
            try:
                return work(self._ready())
            except sqlite3.Error as error:
                raise LedgerError(f"{self.name}: {self._explain(error)}") from None

    def snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of some work on one committed state, with no writer kept waiting."""
        return self.read(lambda connection: self._transact(connection, "BEGIN", work))

    def flush(self) -> None:
        """Make all that was written durable: a checkpoint has the disk write the log first.

        Where it fails, as on a full disk or without the right to write, nothing is lost: what is durable stays so.
        """
        with contextlib.suppress(LedgerError):
            self.read(lambda connection: connection.execute("PRAGMA wal_checkpoint"))

    def write(self, work: Callable[[sqlite3.Connection], T], durable: bool = True) -> T:
        """The result of some work in a write transaction: durable on return, undone when it raises.

        Writers run one after another, in the order of their requests. Without `durable`, it outlives the process, but
        not a power failure before the next durable write or `flush`. The head is noted after a commit that is durable:
        a power failure must not leave it ahead of the ledger.
        """
        if self._writer == threading.get_ident():
            raise LedgerError(IN_THE_MIDDLE)
        if self._closed or self._stranded:
            return self._written(work, lambda head: None, durable)
        began = False

        def turn(note: Callable[[Head], None]) -> T:
            nonlocal began
            began = True  # later errors of the system are not of the queue
            return self._written(work, note if durable else lambda head: None, durable)

        try:
            return self._head_file.take_turn(turn, PATIENCE)
        except OSError as error:
            if began:
                raise
            raise self._refused(error) from None

    def _written(self, work: Callable[[sqlite3.Connection], T], note: Callable[[Head], None], durable: bool) -> T:
        def placed(connection: sqlite3.Connection) -> tuple[T, Head | None]:
            if self._path is not None and self._identity != _identity(self._path):
                raise LedgerError(
                    f"{self._path} was removed or replaced while it was open, so a debit would be lost: "
                    "put the ledger back and open it again"
                )
            self._check_known(connection, self._known())  # an older copy may have been put into this very file
            before, done = connection.total_changes, work(connection)
            return done, chain.head(connection) if connection.total_changes > before else None

        def transact(connection: sqlite3.Connection) -> tuple[T, Head | None]:
            if not connection.in_transaction:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            return self._transact(connection, "BEGIN IMMEDIATE", placed)

        self._writer = threading.get_ident()
        try:
            done, after = self.read(transact)
            if after is not None:
                with contextlib.suppress(OSError):  # the entry stands; a head that is older is no harm
                    note(after)
            return done
        finally:
            self._writer = None

    def check(self, transaction: Transaction) -> None:
        """Refuse a file that is damaged, or whose tables and triggers are not those of a ledger."""
        schema.check(transaction, self.name)
        if transaction.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise chain.tampered(self.name, "the file is damaged")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None and not self._stranded:
                if self._connection.in_transaction:
                    raise LedgerError("the ledger is in the middle of a debit: a price must not close it")
                self._connection.close()
                self._connection = None
            self._closed = True

    def _known(self) -> Head | None:
        try:
            return self._head_file.head(PATIENCE)
        except OSError as error:
            raise self._refused(error) from None

    def _check_known(self, connection: sqlite3.Connection, known: Head | None) -> None:
        if known is not None:
            chain.check_head(connection, self.name, known, f"which it had by {self._head_file.path}")

    def _transact(self, connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        if connection.in_transaction:
            raise LedgerError(IN_THE_MIDDLE)
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

    def _ready(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(f"{self.name} is closed: open it again")
        if self._stranded:
            raise LedgerError(
                f"{self.name} cannot be used in a forked process, for its debits there would be unknown here: "
                "use a ledger file, and fork outside of debits"
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
            if self._path is None:
                schema.create(connection)
                return connection
            schema.check(connection, self.name)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerError(f"{self.name} is on a file system without shared memory: keep it on a local disk")
            self._identity = self._identity or _identity(self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _refused(self, error: OSError) -> LedgerError:
        """The reason why the head file, or the place of both, is in the way."""
        late = isinstance(error, TimeoutError)
        reason = BUSY_FOR.format(PATIENCE) if late else place_reason(self._path or "", error)
        return LedgerError(f"{self.name}: {reason}")

    def _explain(self, error: sqlite3.Error) -> str:
        code = _primary_code(error)
        if code in _BUSY:
            return BUSY_FOR.format(PATIENCE)
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and self._path is not None:
            return place_reason(self._path)
        return _REASONS.get(code, f"the database refused: {error}")


def patiently(action: Callable[[], T]) -> T:
    """Do something that another process may block, again and again until `PATIENCE` is up.

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


_registry: weakref.WeakSet[SQLiteStore] = weakref.WeakSet()
_registry_lock = threading.Lock()
_held: list[SQLiteStore] = []


def _before_fork() -> None:
    try:
        hold_signals()  # nobody hears the exception of a handler in these hooks, and interrupted work is never done
    finally:
        _registry_lock.acquire()
        for store in sorted(_registry, key=id):
            store._lock.acquire()
            _held.append(store)
            connection = store._connection
            if store._path is not None and connection is not None and not connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
                    store._connection = None


def _after_fork_in_child() -> None:
    for store in _registry:
        store._stranded = store._connection is not None
        if not store._stranded:
            store._writer = None
        store._head_file.leave()
    _after_fork()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _registry_lock.release()
    let_signals_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
