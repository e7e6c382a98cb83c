"""The chain of entries: h₀ = 0, hᵢ = SHA-256(hᵢ₋₁ ‖ entry i), and the proof that a ledger is what its chain says.

The chain finds whatever changes a ledger without writing its history anew. Who can write the file can also write a
new history, or put an old copy back: keep the last hash elsewhere where that must be found out.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
import json
import operator
import sqlite3
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel import ledger_releases, ledger_schema
from wpinq.measure.delta_reading import Charged

_START = bytes(32)

ANSWERS = "answers"

_FOLLOWING = {
    "accounts": "the account of {!r} is not what the entries add up to",
    "measurements": "the measurements are not those that the entries paid for",
    "parts": "the demands of the parts are not those of the entries",
}
"""The tables that the entries add up to, and what is said of one that is something else."""

_IMPOSSIBLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading the content of a forged entry can raise."""


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
    label : str
        What the caller wrote beside a debit; "" where nothing.
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
    label: str
    hash: str


def decimal_epsilon(nano: int) -> str:
    """An amount in nano-epsilon as an exact decimal epsilon.

    >>> decimal_epsilon(1_500_000_000)
    '1.5'
    """
    whole, rest = divmod(nano, 10**9)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def append(
    connection: sqlite3.Connection,
    kind: str,
    source: str,
    amount: int,
    content: dict[str, Any],
    after: tuple[int, bytes] | None = None,
) -> None:
    """Append an entry, and do to the tables what it says. The caller holds the write transaction.

    `after` is the last entry, where it is known; what answers say is stored before their entry is written.
    """
    sequence, previous = after or last(connection)
    moment = "" if kind == ANSWERS else datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = (sequence + 1, moment, kind, source, amount, _written(content))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, _chain(previous, row)))
    if kind != ANSWERS or "listing" in content:
        _carry_out(connection, sequence + 1, kind, source, amount, content)


_written = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _carry_out(
    connection: sqlite3.Connection, sequence: int, kind: str, source: str, amount: int, content: dict[str, Any]
) -> None:
    """Do to accounts, measurements and parts what an entry says; an error where they do not allow it."""
    if kind == "open account":
        values = (source, content["schema"], content["unit"], content["unit_weight"], amount, 0)
        if not all(isinstance(value, str) for value in values[:4]):
            raise TypeError("an account is declared in text")
        query = "INSERT INTO accounts (name, schema, unit, unit_weight, budget, spent) VALUES (?, ?, ?, ?, ?, ?)"
        changed = connection.execute(query, values).rowcount
    elif kind == "set budget":
        query = "UPDATE accounts SET budget = ? WHERE name = ? AND budget = ?"
        changed = connection.execute(query, (amount, source, content["previous"])).rowcount
    elif kind == "debit":
        ledger_releases.read(amount, content)
        if not isinstance(content.get("label", ""), str):
            raise TypeError("a label is text")
        changed = connection.execute("UPDATE accounts SET spent = spent + ? WHERE name = ?", (amount, source)).rowcount
        for partition, part, demand in content["parts"]:
            row = (partition, part, sequence, demand)
            connection.execute("INSERT INTO parts (partition, part, entry, demand) VALUES (?, ?, ?, ?)", row)
        # Of the entries of one debit, the first records its measurements: the others find them there.
        connection.executemany(
            "INSERT INTO measurements (id, digest) SELECT (SELECT coalesce(max(id), 0) + 1 FROM measurements), ?1 "
            "WHERE NOT EXISTS (SELECT 1 FROM measurements WHERE digest = ?1)",
            [(digest,) for digest in sorted(content["measurements"])],
        )
    elif "listing" in content:
        query = "INSERT INTO listings (measurement, entry) SELECT id, ? FROM measurements WHERE digest = ?"
        changed = connection.execute(query, (sequence, content["measurement"])).rowcount
    else:
        query = "SELECT count(*) FROM measurements WHERE digest = ?"
        (changed,) = connection.execute(query, (content["measurement"],)).fetchone()
    if changed != 1:
        raise LedgerError(f"{kind}: there is nothing of which this could be true")


def last(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The number and the hash of the last entry."""
    query = "SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1"
    return connection.execute(query).fetchone() or (0, _START)


def page(connection: sqlite3.Connection, after: int, size: int = 500) -> list[Entry]:
    """Up to `size` entries that follow entry number `after`."""
    rows = connection.execute("SELECT * FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, size))
    return [_entry(*row) for row in rows.fetchall()]


def charged(connection: sqlite3.Connection, account: str) -> list[Charged]:
    """All releases at the cost of an account, or a refusal where an entry records what cannot be."""
    query = "SELECT amount, content FROM entries WHERE kind = 'debit' AND source = ? ORDER BY sequence"
    debits = connection.execute(query, (account,)).fetchall()
    with contextlib.suppress(*_IMPOSSIBLE, LedgerError):
        return list(ledger_releases.charged([(amount, json.loads(text)) for amount, text in debits]))
    raise LedgerError(f"what is recorded of the releases from {account!r} cannot be: verify the ledger")


def summary(measurement: str, rows: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """What an entry says of answers that it stored: how many, and SHA-256 over keys and values, by increasing key."""
    written = [struct.pack(">Q", len(key)) + key + value for key, value in rows]
    return {"measurement": measurement, "count": len(written), "digest": hashlib.sha256(b"".join(written)).hexdigest()}


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
        if "listing" in content:
            description += f", all that were left above {content['listing']['above']:.12g} of a domain"
    label = str(content.get("label", ""))
    return Entry(sequence, time, kind, source, amount, measurements, description, label, chained.hex())


def verify(connection: sqlite3.Connection, name: str) -> None:
    """Check the chain, then every table against what the chain adds up to. The caller holds a read transaction.

    Raises
    ------
    LedgerError
        Naming the first entry that is broken, or the table that does not follow from the entries.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as books:
        books.execute("BEGIN")  # one transaction is faster than one a statement
        ledger_schema.create(books)
        listings = {}
        if ledger_schema.has_listings(connection):
            ledger_schema.mark_listings(books)
            listings["listings"] = "the listings are not those of the entries"
        _replay(connection, books, name)
        for table, reason in (_FOLLOWING | listings).items():
            query = f"SELECT * FROM {table}"
            wrong = set(connection.execute(query)) ^ set(books.execute(query))
            if wrong:
                raise _tampered(name, reason.format(min(row[0] for row in wrong)))
        _verify_answers(connection, name, dict(books.execute("SELECT id, digest FROM measurements")))
    if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise _tampered(name, "the file is damaged")


def _replay(connection: sqlite3.Connection, books: sqlite3.Connection, name: str) -> None:
    """Do to empty books what the entries say."""
    previous = _START
    cursor = connection.execute("SELECT * FROM entries ORDER BY sequence")
    for expected, (*row, chained) in enumerate(cursor, start=1):
        sequence, time, kind, source, amount, text = row
        if sequence != expected:
            raise _tampered(name, f"entry {expected} is missing")
        if _chain(previous, (sequence, time, kind, source, amount, text)) != chained:
            raise _tampered(name, f"entry {sequence} is not the one that was recorded, or the one before is missing")
        try:
            _carry_out(books, sequence, kind, source, amount, json.loads(text))
        except (*_IMPOSSIBLE, LedgerError, sqlite3.Error):
            raise _tampered(name, f"entry {sequence} does not follow from those before it") from None
        previous = chained


def _verify_answers(connection: sqlite3.Connection, name: str, digests: Mapping[int, str]) -> None:
    entries = connection.execute("SELECT sequence, content FROM entries WHERE kind = 'answers'")
    pending = {sequence: json.loads(text) for sequence, text in entries}
    rows = connection.execute("SELECT entry, measurement, key, value FROM answers ORDER BY entry, measurement, key")
    for (entry, identity), group in itertools.groupby(rows, key=operator.itemgetter(0, 1)):
        told = _of_answers(pending.pop(entry, {}))
        if told != summary(digests.get(identity, ""), ((key, value) for _, _, key, value in group)):
            raise _tampered(name, f"the answers of entry {entry} are not those that were stored")
    for entry, content in sorted(pending.items()):
        if "listing" not in content or _of_answers(content) != summary(content["measurement"], ()):  # it may list none
            raise _tampered(name, f"the answers of entry {entry} are missing")


def _of_answers(content: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry says of its answers, whether or not they are those of a listing."""
    return {key: said for key, said in content.items() if key != "listing"}


def _tampered(name: str, reason: str) -> LedgerError:
    return LedgerError(
        f"{name} has been tampered with: {reason}. "
        "Restore it from a copy, or start a new one with the budget that is left"
    )
