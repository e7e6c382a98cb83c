"""The chain of entries: h₀ = 0, hᵢ = SHA-256(hᵢ₋₁ ‖ entry i), and the proof that a ledger is what its chain says.

The chain finds whatever changes a ledger without writing its history anew. Who can write the file can also write a
new history, or put an old copy back: keep the last hash elsewhere where that must be found out.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import operator
import sqlite3
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from wpinq.errors import LedgerError

_START = bytes(32)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened: an account opened, a budget set, a debit, or answers stored.

    Attributes
    ----------
    sequence : int
        Its place in the history, from 1.
    time : str
        UTC, ISO 8601, to the second. Empty for answers: how long an evaluation took depends on protected data.
    kind : str
        "open account", "set budget", "debit" or "answers".
    source : str
        The source whose account it is about; empty for answers, which cost nothing.
    amount : int
        Nano-epsilon: the budget for the first two kinds, what was debited for the third, 0 for answers.
    measurements : tuple of str
        Digests of the measurements that were paid for, or whose answers were stored.
    description : str
        One line for people.
    hash : str
        SHA-256 over this entry and the hash of the one before, in hexadecimal.
    """

    sequence: int
    time: str
    kind: str
    source: str
    amount: int
    measurements: tuple[str, ...]
    description: str
    hash: str


def decimal_epsilon(nano: int) -> str:
    """An amount in nano-epsilon as an exact decimal epsilon.

    >>> decimal_epsilon(1_500_000_000)
    '1.5'
    """
    whole, rest = divmod(nano, 10**9)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def append(connection: sqlite3.Connection, kind: str, source: str, amount: int, content: dict[str, Any]) -> int:
    """Append an entry and return its sequence number. The caller holds the write transaction."""
    last, previous = connection.execute(
        "SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1"
    ).fetchone() or (0, _START)
    moment = "" if kind == "answers" else datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    row = (last + 1, moment, kind, source, amount, text)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, _chain(previous, row)))
    return int(last) + 1


def next_sequence(connection: sqlite3.Connection) -> int:
    """The number that the next entry will have."""
    return int(connection.execute("SELECT coalesce(max(sequence), 0) + 1 FROM entries").fetchone()[0])


def page(connection: sqlite3.Connection, after: int, size: int = 500) -> list[Entry]:
    """Up to `size` entries that follow entry number `after`."""
    rows = connection.execute("SELECT * FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, size))
    return [_entry(*row) for row in rows.fetchall()]


def summary(rows: Iterable[tuple[bytes, bytes]]) -> tuple[int, str]:
    """How many answers one entry stored, and SHA-256 over their keys and values, by increasing key."""
    count, running = 0, hashlib.sha256()
    for key, value in rows:
        count += 1
        running.update(struct.pack(">Q", len(key)) + key + value)
    return count, running.hexdigest()


def _chain(previous: bytes, row: tuple[int, str, str, str, int, str]) -> bytes:
    return hashlib.sha256(previous + json.dumps(row).encode("ascii")).digest()


def _entry(sequence: int, time: str, kind: str, source: str, amount: int, text: str, chained: bytes) -> Entry:
    content = json.loads(text)
    measurements: tuple[str, ...] = ()
    if kind == "open account":
        description = f"budget {decimal_epsilon(amount)}, unit {content['unit']}"
    elif kind == "set budget":
        description = f"budget {decimal_epsilon(content['previous'])} -> {decimal_epsilon(amount)}"
    elif kind == "debit":
        measurements = tuple(content["measurements"])
        description = "; ".join(content["measurements"].values())
    else:
        measurements = (content["measurement"],)
        description = f"{content['count']} answers"
    return Entry(sequence, time, kind, source, amount, measurements, description, chained.hex())


@dataclass(slots=True)
class _Books:
    """What the entries add up to."""

    accounts: dict[str, list[Any]] = field(default_factory=dict)  # schema, unit, unit weight, budget, spent
    measurements: dict[str, int] = field(default_factory=dict)
    parts: dict[tuple[str, str, int], str] = field(default_factory=dict)
    answers: dict[int, tuple[str, int, str]] = field(default_factory=dict)

    def add(self, sequence: int, kind: str, source: str, amount: int, content: dict[str, Any]) -> bool:
        """Take in one entry; False when it could not have happened."""
        if kind == "open account":
            fresh = source not in self.accounts
            self.accounts[source] = [content["schema"], content["unit"], content["unit_weight"], amount, 0]
            return fresh
        if kind == "answers":
            self.answers[sequence] = (content["measurement"], content["count"], content["digest"])
            return content["measurement"] in self.measurements
        account = self.accounts[source]
        if kind == "set budget":
            before, account[3] = account[3], amount
            return bool(content["previous"] == before and account[4] <= amount)
        account[4] += amount
        for digest in content["measurements"]:
            self.measurements.setdefault(digest, len(self.measurements) + 1)
        for partition, part, demand in content["parts"]:
            self.parts[partition, part, sequence] = demand
        return bool(account[4] <= account[3])


def verify(connection: sqlite3.Connection, name: str) -> None:
    """Check the chain, then every table against what the chain adds up to. The caller holds a read transaction.

    Raises
    ------
    LedgerError
        Naming the first entry that is broken, or the table that does not follow from the entries.
    """
    books = _replay(connection, name)
    rows = connection.execute("SELECT name, schema, unit, unit_weight, budget, spent FROM accounts").fetchall()
    found = {row[0]: list(row[1:]) for row in rows}
    for source in sorted(found.keys() | books.accounts.keys()):
        if found.get(source) != books.accounts.get(source):
            raise _tampered(name, f"the account of {source!r} is not what the entries add up to")
    if dict(connection.execute("SELECT digest, id FROM measurements").fetchall()) != books.measurements:
        raise _tampered(name, "the measurements are not those that the entries paid for")
    parts = connection.execute("SELECT partition, part, entry, demand FROM parts").fetchall()
    if {row[:3]: row[3] for row in parts} != books.parts:
        raise _tampered(name, "the demands of the parts are not those of the entries")
    _verify_answers(connection, name, books)
    if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise _tampered(name, "the file is damaged")


def _replay(connection: sqlite3.Connection, name: str) -> _Books:
    books, previous = _Books(), _START
    cursor = connection.execute("SELECT * FROM entries ORDER BY sequence")
    for expected, (*row, chained) in enumerate(cursor, start=1):
        sequence, time, kind, source, amount, text = row
        if sequence != expected:
            raise _tampered(name, f"entry {expected} is missing")
        if _chain(previous, (sequence, time, kind, source, amount, text)) != chained:
            raise _tampered(name, f"entry {sequence} is not the one that was recorded, or the one before is missing")
        try:
            possible = books.add(sequence, kind, source, amount, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError):
            possible = False
        if not possible:
            raise _tampered(name, f"entry {sequence} does not follow from those before it")
        previous = chained
    return books


def _verify_answers(connection: sqlite3.Connection, name: str, books: _Books) -> None:
    digests = {identity: digest for digest, identity in books.measurements.items()}
    rows = connection.execute("SELECT entry, measurement, key, value FROM answers ORDER BY entry, measurement, key")
    pending = dict(books.answers)
    for (entry, identity), group in itertools.groupby(rows, key=operator.itemgetter(0, 1)):
        found = (digests.get(identity), *summary((key, value) for _, _, key, value in group))
        if pending.pop(entry, None) != found:
            raise _tampered(name, f"the answers of entry {entry} are not those that were stored")
    if pending:
        raise _tampered(name, f"the answers of entry {min(pending)} are missing")


def _tampered(name: str, reason: str) -> LedgerError:
    return LedgerError(
        f"{name} has been tampered with: {reason}. "
        "Restore it from a copy, or start a new one with the budget that is left"
    )
