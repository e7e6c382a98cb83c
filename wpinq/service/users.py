"""Users: names, roles and hashes of tokens, in an SQLite file that only its owner reads."""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from wpinq.errors import LedgerError, WpinqError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.kernel.ledger.debit import check_analyst
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.noise.epsilon import parse_budget

#: A mark for scanners of leaked secrets, and for people.
_PREFIX = "wpinq_"

#: 256 bits: a plain hash is enough, for nobody guesses a token.
_BYTES = 32

#: Account to epsilon.
Budgets = Mapping[str, str]
#: The life of a token; None for one that does not expire.
Days = int | None

#: The most characters of a token that is looked up.
LONGEST = 128


def token_hash(token: str) -> bytes:
    """The stored hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


UserRole = Literal["analyst", "curator"]
ANALYST: UserRole = "analyst"
CURATOR: UserRole = "curator"

#: Seconds to wait for another process that is writing.
_PATIENCE = 30.0

#: The time for which the former token of a rolled one stays valid.
ROLL = timedelta(hours=1)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('analyst', 'curator')),
    added TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS users_by_case ON users (name COLLATE NOCASE);
CREATE TABLE IF NOT EXISTS tokens (hash BLOB PRIMARY KEY, name TEXT NOT NULL, made TEXT NOT NULL, expires TEXT) STRICT;
"""
_MEND = "see that it is a whole file of this service, writable, on a disk with room"
_SELECT = "SELECT users.name, role, added, made, expires FROM users LEFT JOIN tokens USING (name)"


class UsersError(WpinqError):
    """The file of users cannot be used, or does not hold a name."""


@dataclass(frozen=True, slots=True)
class Token:
    """The times of a token, in UTC, ISO 8601, to the second; the token itself is nowhere.

    Attributes
    ----------
    made : str
        When it was made.
    expires : str or None
        When it ends; None where it does not.
    """

    made: str
    expires: str | None


@dataclass(frozen=True, slots=True)
class User:
    """An analyst or a curator.

    Attributes
    ----------
    name : str
        The name in ledger and log.
    role : "analyst" or "curator"
        The routes that they may use.
    added : str
        UTC, ISO 8601, to the second.
    tokens : tuple of Token
        Those that were found, also expired ones; none after `remove`.
    """

    name: str
    role: UserRole
    added: str
    tokens: tuple[Token, ...]

    @property
    def admitted(self) -> bool:
        """Whether they are users: False after `remove`."""
        return bool(self.tokens)


class UserStore:
    """Analysts and curators, and the hashes of their tokens, for every thread.

    The file is made where there is none.

    Parameters
    ----------
    path : path
        The file, which nobody else can read (0600).
    clock : callable
        The time, with its zone.

    Raises
    ------
    UsersError
        When it cannot be opened, or others could read it.
    """

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path, self._clock = Path(path), clock
        self._lock = threading.Lock()
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            if self._path.stat().st_mode & 0o077:
                raise UsersError(f"{self._path} is readable by other users: chmod 600 it")
            self._connection = sqlite3.connect(
                self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._status = self._path.lstat()
            self._connection.executescript("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;" + _SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise UsersError(f"{self._path} cannot be used as the users of a service ({error}): {_MEND}") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> UserStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, name: str, role: UserRole = ANALYST, days: Days = None) -> str:
        """A new user; the token, which is shown this once."""
        try:
            check_analyst(name)
        except LedgerError as error:
            raise UsersError(str(error)) from None

        with self._held("written") as connection:
            try:
                connection.execute("INSERT INTO users VALUES (?, ?, ?)", (name, role, self._time()))
            except sqlite3.IntegrityError:
                raise UsersError(f"{name}, in upper or lower case, is a user already: renew the token") from None
        return self.renew(name, days)

    def renew(self, name: str, days: Days = None, roll: bool = False) -> str:
        """A new token for a user in place of the former ones.

        Parameters
        ----------
        name : str
            The user.
        days : int, optional
            The days after which it expires.
        roll : bool
            Whether the last former one stays valid for an hour.
        """
        token = _PREFIX + secrets.token_urlsafe(_BYTES)
        row = token_hash(token), name, self._time(), None if days is None else self._time(timedelta(days))
        soon = self._time(ROLL)
        with self._held("written") as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._check_known(connection, name)
            last = "(SELECT max(rowid) FROM tokens WHERE name = ?)"
            connection.execute(f"DELETE FROM tokens WHERE name = ? AND rowid < {last} + ?", (name, name, not roll))
            connection.execute(
                "UPDATE tokens SET expires = min(coalesce(expires, ?1), ?1) WHERE name = ?2", (soon, name)
            )
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)
        return token

    def remove(self, name: str) -> None:
        """Revoke all tokens; the name stays taken, because it names an account of the ledger."""
        with self._held("written") as connection:
            self._check_known(connection, name)
            connection.execute("DELETE FROM tokens WHERE name = ?", (name,))

    def all(self) -> tuple[User, ...]:
        """All users, by name."""
        return self._users("true")

    def find(self, token: str) -> User | None:
        """The user with a token that is valid, if there is one.

        The hash is looked up: the time of that may tell of hashes, and none of a token leads to it.
        """
        valid = "hash = ? AND coalesce(expires > ?, true)"
        found = self._users(valid, token_hash(token), self._time()) if len(token) <= LONGEST else ()
        return next(iter(found), None)

    def named(self, name: str) -> User | None:
        """The user of a name who was not removed, if there is one."""
        return next(iter(self._users("users.name = ? AND made IS NOT NULL", name)), None)

    def _users(self, condition: str, *values: object) -> tuple[User, ...]:
        with self._held("read") as connection:
            rows = connection.execute(
                f"{_SELECT} WHERE {condition} ORDER BY users.name, tokens.rowid", values
            ).fetchall()
        return tuple(
            User(name, role, added, tuple(Token(*row[3:]) for row in held if row[3] is not None))
            for (name, role, added), held in groupby(rows, key=lambda row: row[:3])
        )

    @staticmethod
    def _check_known(connection: sqlite3.Connection, name: str) -> None:
        if connection.execute("SELECT 1 FROM users WHERE name = ?", (name,)).fetchone() is None:
            raise UsersError("there is no user of this name")

    def _time(self, later: timedelta = timedelta()) -> str:
        return (self._clock() + later).isoformat(timespec="seconds")

    def _check_there(self) -> None:
        """Refuse a file that was moved or replaced, because its changes would not be seen."""
        with suppress(OSError):
            if os.path.samestat(self._status, self._path.lstat()):
                return
        raise UsersError(f"{self._path} was removed or replaced while it was open: start the service again")

    @contextmanager
    def _held(self, what: str) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time.

        A transaction that was begun ends with the context.
        """
        with self._lock:
            self._check_there()
            try:
                with self._connection:
                    yield self._connection
            except sqlite3.Error as error:
                raise UsersError(f"{self._path} cannot be {what} ({error}): {_MEND}") from None


def admit(
    users: UserStore,
    ledger: Ledger,
    name: str,
    role: UserRole,
    budgets: Budgets,
    actor: str = CURATOR,
    days: Days = None,
) -> str:
    """The token of a new user; an analyst gets budgets, too.

    A wrong budget changes nothing.

    Each act on a user is an entry of the ledger, with the curator's name.

    Raises
    ------
    UsersError, LedgerError, EpsilonError
        When the name is taken or none, there is no such account, or a budget is no epsilon.
    """
    if role != ANALYST and budgets:
        raise UsersError("a curator has no budget to spend; give budgets to analysts")
    _check(ledger, budgets)
    token = users.add(name, role, days)  # first, for a name that is taken has budgets of its own
    ledger.record_act("admit", name, actor=actor)
    set_budgets(ledger, budgets, name, actor)
    return token


def renew(
    users: UserStore, ledger: Ledger, name: str, actor: str = CURATOR, days: Days = None, roll: bool = False
) -> str:
    """A new token for a user, in place of the former ones; see `UserStore.renew`."""
    token = users.renew(name, days, roll)
    ledger.record_act("renew", name, actor=actor)
    return token


def remove(users: UserStore, ledger: Ledger, name: str, actor: str = CURATOR) -> None:
    """Revoke the token of a user."""
    users.remove(name)
    ledger.record_act("remove", name, actor=actor)


def set_budgets(ledger: Ledger, budgets: Budgets, analyst: str | None = None, actor: str = CURATOR) -> None:
    """Set budgets of accounts, or of an analyst within them: all of them or none."""
    _check(ledger, budgets)
    for account, budget in budgets.items():
        ledger.set_budget(account, parse_budget(budget), analyst, actor=actor)


def _check(ledger: Ledger, budgets: Budgets) -> None:
    """Refuse wrong budgets and unknown accounts before anything is changed."""
    known = {each.account for each in ledger.balances() if "/" not in each.account and MARK not in each.account}
    for account, budget in budgets.items():
        parse_budget(budget)
        if account not in known:
            raise UsersError(f"there is no account {account!r}; the ledger has {', '.join(sorted(known)) or 'none'}")
