"""A ledger in PostgreSQL, for several machines: tables, chain and transactions of a file.

Two roles are made with it. `NAME_owner` owns the tables. `NAME_service` reads them and calls three functions, which
append entries, plans and answers and check the chain, so a service cannot change its history. All tables of balances
follow from the entries, and the function that appends an entry changes them, under the row lock of the account.

Writers queue for one lock of the ledger, in order. All else that they read is committed before, so each statement of
theirs sees the last state, and no transaction has to be repeated.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, schema, store
from wpinq.kernel.ledger.accounts import FIND
from wpinq.kernel.ledger.debit import PAID, PAID_ONE

T = TypeVar("T")
_Read = tuple[str, tuple[Any, ...]]

_URL = re.compile(r"(postgres(?:ql)?://)(?:[^/?#]*@)?([A-Za-z0-9.,:_\[\]-]*/[\w.-]+)(?:\?[^@]*)?", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://|postgres\w*:", re.IGNORECASE | re.ASCII)
_FORMAT = f"wpinq ledger of format {schema.FORMAT}"
_LOST = "the lease of this release is lost, so that its sources are suspended: no answer was stored"
_BEGIN = f"""BEGIN; SET LOCAL lock_timeout = '{{patience:.3f}}s';
SELECT pg_advisory_xact_lock('wpinq.entries'::regclass::bigint);
SELECT sequence, hash FROM entries WHERE sequence = {{known}}; {chain.LAST}"""
_HELD: _Read = "the entry that is known", ()
#: Reads of debits that are made again as the next one begins: of digests and of accounts, as they were read last.
_USUAL = 6
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS = """SET search_path = wpinq, pg_temp; SET synchronous_commit = on; SET client_encoding = 'UTF8';
SET idle_in_transaction_session_timeout = '60s'"""

# What differs in PostgreSQL: types, functions, and all writing.
_TYPES = {" STRICT, WITHOUT ROWID": "", " STRICT": "", "INTEGER": "BIGINT", "BLOB": "BYTEA", "TEXT": 'TEXT COLLATE "C"'}
_READS = {
    "instr(": "strpos(",
    "IN (SELECT value FROM json_each(?))": "= ANY (ARRAY(SELECT json_array_elements_text(?)))",
    "?": "%s",
}
_APPEND = b"SELECT append(%s, %s, %s, %s, %s, %s, %s, %s)"
_WRITES = {
    "INSERT INTO entries": _APPEND,
    "INSERT INTO plans": b"SELECT add_plan(%s, %s, %s)",
    "INSERT INTO answers": b"SELECT add_answers(%s, %s, %s)",
    **dict.fromkeys(("INSERT INTO", "UPDATE"), b""),  # of tables that follow from the entries: `append` has done it
}
_FUNCTIONS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")


class LedgerURL(os.PathLike[str]):
    """The URL of a ledger in PostgreSQL; its text has no user and no password.

    Parameters
    ----------
    url : str
        `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, as libpq reads it. A ledger has a database of its own.

    Raises
    ------
    LedgerError
        When it is none.

    Examples
    --------
    >>> print(LedgerURL("postgresql://alice:secret@localhost:5432/budgets?sslmode=require"))
    postgresql://localhost:5432/budgets
    """

    def __init__(self, url: str) -> None:
        found = _URL.fullmatch(url)
        if found is None:
            raise LedgerError(
                "the URL of a ledger is postgresql://USER@HOST:PORT/DATABASE, with the password in the URL (its signs "
                "percent-encoded), PGPASSWORD or ~/.pgpass"
            )
        self._url, self._shown = url, f"{found[1]}{found[2]}"

    @staticmethod
    def matches(place: str) -> bool:
        """Whether a place is a URL and no path of a file."""
        return _SCHEME.match(place) is not None

    def __fspath__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return self._shown

    __str__ = __repr__


class _Rows(list[tuple[Any, ...]]):
    """Rows that were read, and the command that gave them for the server."""

    command: str | None = None

    def fetchone(self) -> tuple[Any, ...] | None:
        return self[0] if self else None


class _Statements:
    """A transaction that takes the statements of SQLite.

    Others wait for a writer, so it makes few round trips: some reads are made as it begins, and writes wait for the
    next read or the commit.
    """

    def __init__(self, connection: Any, usual: dict[_Read, None], known: dict[_Read, _Rows]) -> None:
        self._connection, self._usual, self._known = connection, usual, known
        self._waiting: list[bytes] = []
        self._values: list[Any] = []

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any:
        read = statement, tuple(parameters)
        translated, writes = _translated(statement)
        if not writes:
            if self._waiting and read not in self._known:
                self.send(b"SELECT")
            rows = self._known.get(read)
            rows = self._connection.execute(translated, parameters or None) if rows is None else rows
            if statement in (PAID, PAID_ONE, FIND):
                self._usual.pop(read, None)
                self._usual[read] = None
            return rows
        if translated:
            self._waiting.append(translated)
            self._values += parameters
            if translated == _APPEND:
                self._known.clear()
                self._known[chain.LAST, ()] = _Rows([(parameters[0], parameters[-1], parameters[2])])
        return None

    def send(self, end: bytes) -> Any:
        """Send what waits, and one statement more; the command that this was for the server."""
        statements, values = b"; ".join([*self._waiting, end]), self._values
        self._waiting, self._values = [], []
        return _results(self._connection, statements, values)[-1].command


def _results(connection: Any, statements: bytes, values: Sequence[Any]) -> list[_Rows]:
    """The rows of each of some statements, in one round trip."""
    cursor, found, more = _driver().ClientCursor(connection), list[_Rows](), True
    cursor.execute(statements, values or None)
    while more:
        found.append(_Rows(cursor.fetchall() if cursor.description else ()))
        found[-1].command, more = cursor.statusmessage, cursor.nextset()
    return found


@functools.lru_cache(maxsize=256)
def _translated(statement: str) -> tuple[bytes, bool]:
    """A statement of SQLite for PostgreSQL, and whether it writes."""
    for start, call in _WRITES.items():
        if statement.startswith(start):
            return call, True
    for of_sqlite, ours in _READS.items():
        statement = statement.replace(of_sqlite, ours)
    return statement.encode(), False


class PostgresStore:
    """A ledger in a database of PostgreSQL, with the interface of `SQLiteStore`.

    A lost connection is opened again by the next user. A connection is never shared by processes: a fork gives the
    child none.

    Parameters
    ----------
    url : str
        As `LedgerURL` takes it.

    Attributes
    ----------
    lease : str or None
        The lease without which nothing is written.

    Raises
    ------
    LedgerError
        When the database cannot be reached, or has no ledger.
    """

    def __init__(self, url: str) -> None:
        self._url, self.name = url, str(LedgerURL(url))
        self._lock = threading.RLock()
        self._connection: Any = None
        self._writer: int | None = None
        self._closed = False
        self._last, self._usual = chain.START, dict[_Read, None]()
        self.lease: str | None = None
        _registry.add(self)
        try:
            self.read(self._check_format)
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[chain.Transaction], T]) -> T:
        """The result of some work on the last committed state, with the other threads kept out."""
        with self._lock:
            again = not self._amid()  # with a connection that was idle, nothing is lost
            while True:
                try:
                    return work(_Statements(self._ready(), self._usual, {}))
                except _driver().Error as error:
                    if not (again and self._connection.closed):
                        raise self._refused(error) from None
                again = False

    def snapshot(self, work: Callable[[chain.Transaction], T]) -> T:
        """The result of some work on one committed state, with no writer kept waiting."""
        return self._transact(_SNAPSHOT, work)

    def flush(self) -> None:
        """Nothing: all that is committed is durable."""

    def write(self, work: Callable[[chain.Transaction], T], durable: bool = True) -> T:
        """The result of some work in a write transaction: durable on return, undone when it raises.

        All of it is durable, whatever `durable` says: a server may end while its clients live.
        """
        if self._writer == threading.get_ident():
            raise LedgerError(store.IN_THE_MIDDLE)

        def placed(transaction: chain.Transaction) -> tuple[T, chain.Head]:
            if self.lease is not None:
                query = "SELECT 1 FROM leases WHERE name = ? AND until > clock_timestamp()"
                if transaction.execute(query, (self.lease,)).fetchone() is None:
                    raise LedgerError(_LOST)
            return work(transaction), chain.head(transaction)

        with self._lock:
            try:
                self._writer, known = threading.get_ident(), self._last
                begin = _BEGIN.format(patience=store.PATIENCE, known=known.sequence)
                done, self._last = self._transact(begin, placed, known)
                return done
            finally:
                self._writer = None

    def check(self, transaction: chain.Transaction) -> None:
        """Refuse functions that are not those of a ledger, and rights to write past them."""
        query = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'wpinq'::regnamespace"
        expected = {*re.findall(r"FUNCTION (\w+).*?\$body\$(.*?)\$body\$", _FUNCTIONS, re.S)}
        rights = """SELECT 1 FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'wpinq'::regnamespace
        AND grantee <> relowner AND privilege_type <> 'SELECT'"""
        if {*transaction.execute(query)} != expected or transaction.execute(rights).fetchone() is not None:
            raise chain.tampered(self.name, "its functions or rights are not those of a ledger")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                if self._amid():
                    raise LedgerError(store.IN_THE_MIDDLE)
                self._connection.close()
                self._connection = None
            self._closed = True

    def _transact(self, begin: str, work: Callable[[chain.Transaction], T], known: chain.Head | None = None) -> T:
        with self._lock:
            if self._amid():
                raise LedgerError(store.IN_THE_MIDDLE)
            usual = [] if known is None else [*self._usual][-_USUAL:]
            self._usual = dict.fromkeys(usual)
            sent = b"; ".join([begin.encode(), *(_translated(each)[0] for each, _ in usual)])
            values = [value for _, parameters in usual for value in parameters]
            try:
                # nothing is lost where it begins again
                found = self.read(lambda _: _results(self._connection, sent, values))
                rows = {} if known is None else dict(zip([_HELD, (chain.LAST, ()), *usual], found[3:], strict=True))
                statements = _Statements(self._connection, self._usual, rows)
                if known and known != chain.START and rows[_HELD] != [(known.sequence, known.hash)]:
                    chain.check_head(statements, self.name, known, "which it had before in this process")
                done = self.read(lambda _: work(statements))
                # after an error that `work` has hidden, a commit would be a ROLLBACK
                if self.read(lambda _: statements.send(b"COMMIT")) != "COMMIT":
                    raise LedgerError(f"{self.name}: nothing was recorded, for a statement failed: try again")
                return done
            except BaseException:
                if self._amid():
                    try:
                        self._connection.rollback()
                    except _driver().Error:
                        self._connection.close()
                raise

    def _amid(self) -> bool:
        held = self._connection
        idle = _driver().pq.TransactionStatus.IDLE
        return held is not None and not held.closed and held.info.transaction_status != idle

    def _ready(self) -> Any:
        if self._closed:
            raise LedgerError(f"{self.name} is closed: open it again")
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self._url, self.name)
        return self._connection

    def _check_format(self, transaction: chain.Transaction) -> None:
        query = """SELECT obj_description(own, 'pg_namespace'), has_schema_privilege(own, 'USAGE')
        FROM (VALUES (to_regnamespace('wpinq'))) AS found (own)"""
        found, readable = transaction.execute(query).fetchone()
        if found != _FORMAT:
            reason = "no ledger" if found is None else f"a {found}, and this wpinq reads format {schema.FORMAT}"
            raise LedgerError(f"{self.name} has {reason}: wpinq ledger init makes a new one, with nothing spent")
        if not readable:
            role = f"{self.name.rpartition('/')[2]}_service"
            raise LedgerError(f"{self.name}: this user may not read the ledger: grant it the role {role}")
        self._last = chain.head(transaction)

    def _refused(self, error: Any) -> LedgerError:
        """The refusal of the database, in words that quote no row and no connection."""
        errors = _driver().errors
        if isinstance(error, errors.LockNotAvailable):
            return LedgerError(f"{self.name}: {store.BUSY_FOR.format(store.PATIENCE)}")
        if error.diag.message_primary is None or self._connection.closed:
            return LedgerError(f"{self.name}: the connection was lost: see with wpinq ledger show what stands")
        return LedgerError(f"{self.name}: the database refused: {error.diag.message_primary}")


def create(url: str) -> str:
    """Make a ledger in a database that has none, and its two roles.

    Returns the name of the role of services.

    Parameters
    ----------
    url : str
        Of a user that may make roles, and a schema in this database.

    Raises
    ------
    LedgerError
        When there is a ledger, or the user lacks a right.
    """
    name, psycopg = str(LedgerURL(url)), _driver()
    database = name.rpartition("/")[2]
    owner, service = f'"{database}_owner"', f'"{database}_service"'  # no quote is in the name
    with _connect(url, name) as connection:
        try:
            connection.execute("BEGIN")
            for role in (owner, service):
                if connection.execute("SELECT to_regrole(%s)", (role,)).fetchone() == (None,):
                    connection.execute(f"CREATE ROLE {role}")
            connection.execute(
                f"GRANT {owner} TO CURRENT_USER; CREATE SCHEMA wpinq AUTHORIZATION {owner};"
                f"COMMENT ON SCHEMA wpinq IS '{_FORMAT}'; SET LOCAL ROLE {owner}"
            )
            for table, columns in schema.TABLES.items():
                for of_sqlite, type_ in _TYPES.items():
                    columns = columns.replace(of_sqlite, type_)
                connection.execute(f"CREATE TABLE {table} {columns}")
            connection.execute(
                f"{_FUNCTIONS} REVOKE ALL ON ALL FUNCTIONS IN SCHEMA wpinq FROM PUBLIC;"
                f"GRANT USAGE ON SCHEMA wpinq TO {service}; GRANT SELECT ON ALL TABLES IN SCHEMA wpinq TO {service};"
                f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA wpinq TO {service}; COMMIT"
            )
        except psycopg.errors.DuplicateSchema:
            raise LedgerError(f"{name} has a ledger, or another schema wpinq: name another database") from None
        except psycopg.Error as error:
            raise LedgerError(f"{name} cannot be made a ledger: {error.diag.message_primary}") from None
    return f"{database}_service"


@functools.cache
def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg 3: pip install 'wpinq[postgres]'") from None
    return psycopg


def _connect(url: str, name: str) -> Any:
    """A connection; the words of the library are not passed on, for they may quote the URL."""
    try:
        connection = _driver().connect(url, autocommit=True, connect_timeout=10, target_session_attrs="read-write")
        connection.execute(_SETTINGS)
        return connection
    except _driver().Error:
        raise LedgerError(
            f"{name} cannot be opened: see that the server runs, and that psql takes the same URL and password"
        ) from None


_registry: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Leave the connections to the parent: what this process would send on one is sent nowhere."""
    for each in _registry:
        each._lock, each._writer, connection = threading.RLock(), None, each._connection
        if connection is not None and not connection.closed:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, connection.fileno(), inheritable=False)
            os.close(nothing)
            with contextlib.suppress(_driver().Error):
                connection.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
