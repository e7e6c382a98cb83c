"""The register: who may ask, known by the hash of a token, in which role. One SQLite file, for its owner alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from wpinq.errors import LedgerError, WpinqError
from wpinq.kernel.ledger.accounts import MARK
from wpinq.kernel.ledger.debit import check_analyst
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.nano_epsilon import budget_to_nano
from wpinq.noise.epsilon import parse_epsilon

# Tokens: what analysts and curators show to be known. Random, shown once; only their hashes are kept.

_PREFIX = "wpinq_"
"""So that scanners for leaked secrets, and people, know one when they see it."""

_BYTES = 32
"""256 bits: nobody guesses one, so a plain hash is all that must be kept."""

LONGEST = 128
"""The most characters of what is looked up as a token."""


def new_token() -> str:
    """A fresh token."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def token_hash(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def matching(token: str, held: Iterable[tuple[str, bytes]]) -> str | None:
    """Whose token this is, of names with hashes: all are compared, each in constant time."""
    shown, found = token_hash(token), None
    for name, kept in held:
        if hmac.compare_digest(shown, kept):
            found = name
    return found


T = TypeVar("T")

CallerRole = Literal["analyst", "curator"]
ANALYST: CallerRole = "analyst"
CURATOR: CallerRole = "curator"

_PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS people (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('analyst', 'curator')),
    token BLOB,
    added TEXT NOT NULL
) STRICT;
"""


class UsersError(WpinqError):
    """The register cannot be used, or does not hold who is named."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may ask.

    Attributes
    ----------
    name : str
        What ledger, log and curator know them by.
    role : "analyst" or "curator"
        What they may do.
    added : str
        When, UTC, ISO 8601, to the second.
    admitted : bool
        Whether they have a token: False once they were removed.
    """

    name: str
    role: CallerRole
    added: str
    admitted: bool


class Register:
    """Analysts and curators, and the hashes of their tokens. Made where it is not there; usable from every thread.

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
            raise UsersError(f"{self._path} cannot be used as the register of a service") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Register:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, name: str, role: CallerRole = ANALYST) -> str:
        """Take somebody up; their token, which is shown this once."""
        try:
            check_analyst(name)
        except LedgerError as error:
            raise UsersError(str(error)) from None

        def added(connection: sqlite3.Connection) -> str:
            token, now = new_token(), datetime.now(UTC).isoformat(timespec="seconds")
            row = (name, role, token_hash(token), now)
            try:
                connection.execute("INSERT INTO people (name, role, token, added) VALUES (?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise UsersError(f"{name} is in the register already: a new token for them is renewed") from None
            return token

        return self._write(added)

    def renew(self, name: str) -> str:
        """A new token for somebody, in place of the one they had."""

        def renewed(connection: sqlite3.Connection) -> str:
            token = new_token()
            self._change(connection, name, token_hash(token))
            return token

        return self._write(renewed)

    def remove(self, name: str) -> None:
        """Turn somebody away from now on. The name stays taken: its account in the ledger is theirs."""
        self._write(lambda connection: self._change(connection, name, None))

    def people(self) -> tuple[Caller, ...]:
        """All there are, by name."""
        rows = self._read("SELECT name, role, added, token IS NOT NULL FROM people ORDER BY name")
        return tuple(Caller(name, role, added, bool(admitted)) for name, role, added, admitted in rows)

    def whose(self, token: str) -> Caller | None:
        """Who shows a token, if anybody is known by it."""
        if len(token) > LONGEST:
            return None
        held = self._read("SELECT name, token FROM people WHERE token IS NOT NULL")
        name = matching(token, held)
        return next((person for person in self.people() if person.name == name), None)

    def _change(self, connection: sqlite3.Connection, name: str, token: bytes | None) -> None:
        if not connection.execute("UPDATE people SET token = ? WHERE name = ?", (token, name)).rowcount:
            raise UsersError("the register has nobody of this name")

    def _there(self) -> tuple[int, int] | None:
        try:
            status = self._path.lstat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_there(self) -> None:
        """Refuse a file that is no longer at its place: what the curator changes there would not be seen."""
        if self._there() != self._identity:
            raise UsersError(
                f"{self._path} was removed or replaced while it was open, so nobody is known: start the service again"
            )

    def _read(self, query: str) -> list[Any]:
        with self._lock:
            self._check_there()
            try:
                return self._connection.execute(query).fetchall()
            except sqlite3.Error:
                raise UsersError(f"{self._path} cannot be read") from None

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            self._check_there()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    found = work(self._connection)
                    self._connection.execute("COMMIT")
                    return found
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                raise UsersError(f"{self._path} cannot be written") from None


# Letting somebody in: a token, and budgets of their own within those of the sources.


def admit(register: Register, ledger: Ledger, name: str, role: CallerRole, budgets: Mapping[str, str]) -> str:
    """Give somebody a token, and an analyst budgets; the token. Nothing is changed where a budget cannot be given.

    Raises
    ------
    UsersError, LedgerError, EpsilonError
        When the name is taken or none, there is no such account, or a budget is no epsilon.
    """
    if role != ANALYST and budgets:
        raise UsersError("a curator has no budget to spend; give budgets to analysts")
    _check(ledger, budgets)
    token = register.add(name, role)  # first, for a name that is taken has budgets of its own
    set_budgets(ledger, budgets, name)
    return token


def _check(ledger: Ledger, budgets: Mapping[str, str]) -> None:
    """Refuse budgets that are none, or of accounts that there are not, before anything is changed."""
    known = {each.account for each in ledger.balances() if "/" not in each.account and MARK not in each.account}
    for account, budget in budgets.items():
        budget_to_nano(parse_epsilon(budget))
        if account not in known:
            raise UsersError(f"there is no account {account!r}; the ledger has {', '.join(sorted(known)) or 'none'}")


def set_budgets(ledger: Ledger, budgets: Mapping[str, str], analyst: str | None = None) -> None:
    """Set budgets of accounts, or of an analyst within them; none where one is no budget, or of no account."""
    _check(ledger, budgets)
    for account, budget in budgets.items():
        ledger.set_budget(account, budget_to_nano(parse_epsilon(budget)), analyst)
