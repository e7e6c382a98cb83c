"""Users: names, roles and hashes of tokens, in an SQLite file that only its owner reads."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from wpinq.errors import LedgerError, WpinqError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.kernel.ledger.debit import check_analyst
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.noise.epsilon import budget_to_nano, parse_epsilon

_PREFIX = "wpinq_"
"""A mark for scanners of leaked secrets, and for people."""

_BYTES = 32
"""256 bits: a plain hash is enough, for nobody guesses a token."""

LONGEST = 128
"""The most characters of a token that is looked up."""


def new_token() -> str:
    """A fresh token."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def token_hash(token: str) -> bytes:
    """The stored hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


UserRole = Literal["analyst", "curator"]
ANALYST: UserRole = "analyst"
CURATOR: UserRole = "curator"

_PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('analyst', 'curator')),
    token BLOB,
    added TEXT NOT NULL
) STRICT;
"""


class UsersError(WpinqError):
    """The file of users cannot be used, or does not hold a name."""


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
    admitted : bool
        Whether they have a token: False after `remove`.
    """

    name: str
    role: UserRole
    added: str
    admitted: bool


class UserStore:
    """Analysts and curators, and the hashes of their tokens, for every thread.

    The file is made where there is none.

    Parameters
    ----------
    path : path
        The file, which nobody else can read (0600).

    Raises
    ------
    UsersError
        When it cannot be opened, or others could read it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            if self._path.stat().st_mode & 0o077:
                raise UsersError(f"{self._path} can be read by others: chmod 600 it")
            self._connection = sqlite3.connect(
                self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._identity = self._there()
            self._connection.executescript("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;" + _SCHEMA)
        except (OSError, sqlite3.Error):
            raise UsersError(f"{self._path} cannot be used as the users of a service") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> UserStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, name: str, role: UserRole = ANALYST) -> str:
        """A new user; the token, which is shown this once."""
        try:
            check_analyst(name)
        except LedgerError as error:
            raise UsersError(str(error)) from None

        token, now = new_token(), datetime.now(UTC).isoformat(timespec="seconds")
        row = (name, role, token_hash(token), now)
        with self._held("written") as connection:
            try:
                connection.execute("INSERT INTO users (name, role, token, added) VALUES (?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise UsersError(f"{name} is a user already: renew the token") from None
        return token

    def renew(self, name: str) -> str:
        """A new token for a user, in place of the former one."""
        token = new_token()
        self._change(name, token_hash(token))
        return token

    def remove(self, name: str) -> None:
        """Revoke a token; the name stays taken, because it names an account of the ledger."""
        self._change(name, None)

    def all(self) -> tuple[User, ...]:
        """All users, by name."""
        rows = self._read("SELECT name, role, added, token IS NOT NULL FROM users ORDER BY name")
        return tuple(User(name, role, added, bool(admitted)) for name, role, added, admitted in rows)

    def find(self, token: str) -> User | None:
        """The user with a token, or None; all hashes are compared, each in constant time."""
        if len(token) > LONGEST:
            return None
        shown, found = token_hash(token), None
        for name, role, added, kept in self._read("SELECT name, role, added, token FROM users WHERE token IS NOT NULL"):
            if hmac.compare_digest(shown, kept):
                found = User(name, role, added, True)
        return found

    def _change(self, name: str, token: bytes | None) -> None:
        with self._held("written") as connection:
            if not connection.execute("UPDATE users SET token = ? WHERE name = ?", (token, name)).rowcount:
                raise UsersError("there is no user of this name")

    def _there(self) -> tuple[int, int] | None:
        try:
            status = self._path.lstat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_there(self) -> None:
        """Refuse a file that was moved or replaced, because its changes would not be seen."""
        if self._there() != self._identity:
            raise UsersError(
                f"{self._path} was removed or replaced while it was open, so nobody is known: start the service again"
            )

    def _read(self, query: str) -> list[Any]:
        with self._held("read") as connection:
            return connection.execute(query).fetchall()

    @contextmanager
    def _held(self, what: str) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; every statement is a transaction."""
        with self._lock:
            self._check_there()
            try:
                yield self._connection
            except sqlite3.Error:
                raise UsersError(f"{self._path} cannot be {what}") from None


def admit(
    users: UserStore, ledger: Ledger, name: str, role: UserRole, budgets: Mapping[str, str], actor: str = CURATOR
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
    token = users.add(name, role)  # first, for a name that is taken has budgets of its own
    ledger.record_act("admit", name, actor=actor)
    set_budgets(ledger, budgets, name, actor)
    return token


def renew(users: UserStore, ledger: Ledger, name: str, actor: str = CURATOR) -> str:
    """A new token for a user, in place of the former one."""
    token = users.renew(name)
    ledger.record_act("renew", name, actor=actor)
    return token


def remove(users: UserStore, ledger: Ledger, name: str, actor: str = CURATOR) -> None:
    """Revoke the token of a user."""
    users.remove(name)
    ledger.record_act("remove", name, actor=actor)


def set_budgets(ledger: Ledger, budgets: Mapping[str, str], analyst: str | None = None, actor: str = CURATOR) -> None:
    """Set budgets of accounts, or of an analyst within them: all of them or none."""
    _check(ledger, budgets)
    for account, budget in budgets.items():
        ledger.set_budget(account, budget_to_nano(parse_epsilon(budget)), analyst, actor=actor)


def _check(ledger: Ledger, budgets: Mapping[str, str]) -> None:
    """Refuse wrong budgets and unknown accounts before anything is changed."""
    known = {each.account for each in ledger.balances() if "/" not in each.account and MARK not in each.account}
    for account, budget in budgets.items():
        budget_to_nano(parse_epsilon(budget))
        if account not in known:
            raise UsersError(f"there is no account {account!r}; the ledger has {', '.join(sorted(known)) or 'none'}")
