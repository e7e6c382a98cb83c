"""The chain of entries: h₀ = 0, hᵢ = SHA-256(hᵢ₋₁ ‖ entry i). Each says what happened, and carries the totals after it.

The chain finds whatever changes a ledger without writing its history anew. Who can write the file can also write a
new history, or put an old copy back: keep the last hash elsewhere where that must be found out.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import sqlite3
import struct
from dataclasses import dataclass
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import ledger_releases, ledger_totals, schema, suspensions
from wpinq.kernel.ledger.head import START, Head
from wpinq.kernel.ledger.ledger_totals import TOTALS, Totals
from wpinq.measure.delta_reading import Charged

ANSWERS = "answers"

IMPOSSIBLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)
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


@dataclass(frozen=True, slots=True)
class Tail:
    """The last entry, as the next one needs it: its head, and the totals after it."""

    head: Head
    totals: Totals


def append(
    connection: sqlite3.Connection,
    kind: str,
    source: str,
    amount: int,
    content: dict[str, Any],
    after: Tail | None = None,
    measurements: int = 0,
) -> Tail:
    """Append an entry, and do to the tables what it says. The caller holds the write transaction.

    `after` is the last entry, where it is known, and `measurements` how many the entry is the first to pay for; what
    answers say is stored before their entry is written.
    """
    before = after or current(connection)
    sequence = before.head.sequence + 1
    totals = before.totals
    if kind != ANSWERS:
        totals = _moved(connection, totals, kind, source, amount, content, measurements)
    moment = "" if kind == ANSWERS else datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = (sequence, moment, kind, source, amount, _written(content | {TOTALS: totals}))
    chained = chain(before.head.hash, row)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, chained))
    carry_out(connection, sequence, kind, source, amount, content)
    return Tail(Head(sequence, chained), totals)


def _moved(
    connection: sqlite3.Connection,
    totals: Totals,
    kind: str,
    source: str,
    amount: int,
    content: dict[str, Any],
    measurements: int,
) -> Totals:
    """The totals after an entry that is about an account, reckoned before it is carried out.

    Verification reckons them the other way, from tables to which the entries were done one by one.
    """
    row = ledger_totals.account(connection, source)
    known = ledger_totals.written(row)
    if kind == "open account":
        row = (source, content["schema"], content["unit"], content["unit_weight"], amount, 0)
    elif row is not None:
        budget, spent = row[4:]
        row = (*row[:4], amount, spent) if kind == "set budget" else (*row[:4], budget, spent + amount)
    accounts = int(totals["accounts"], 16) - known + ledger_totals.written(row)
    return ledger_totals.carried(accounts, totals["measurements"] + measurements, totals["schema"])


_written = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def carry_out(
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
        suspensions.check(amount, content)
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
    else:
        query = "INSERT INTO answered (measurement, entry) SELECT id, ? FROM measurements WHERE digest = ?"
        changed = connection.execute(query, (sequence, content["measurement"])).rowcount
        if "listing" in content:
            connection.execute(query.replace("answered", "listings"), (sequence, content["measurement"]))
    if changed != 1:
        raise LedgerError(f"{kind}: there is nothing of which this could be true")


def head(connection: sqlite3.Connection) -> Head:
    """The last entry, by its number and its hash."""
    found = connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
    return START if found is None else Head(*found)


def current(connection: sqlite3.Connection) -> Tail:
    """The last entry, with its totals as they are now: tables or triggers may have been made anew, which is allowed.

    Whoever writes has compared the rest, or has verified the whole.
    """
    query = "SELECT sequence, hash, content FROM entries ORDER BY sequence DESC LIMIT 1"
    *last, content = connection.execute(query).fetchone() or (START.sequence, START.hash, "{}")
    totals = json.loads(content).get(TOTALS)
    if totals is None:  # an entry of a former format, or none
        return Tail(Head(*last), ledger_totals.now(connection, ledger_totals.of_accounts(connection)))
    return Tail(Head(*last), totals | {"schema": schema.counter(connection)})


def holds(connection: sqlite3.Connection, known: Head) -> bool:
    """Whether an entry is in the history: it is the one that was known, or has grown out of that."""
    if known.sequence == 0:
        return known == START
    found = connection.execute("SELECT hash FROM entries WHERE sequence = ?", (known.sequence,)).fetchone()
    return bool(found == (known.hash,))


def page(connection: sqlite3.Connection, after: int, size: int = 500) -> list[Entry]:
    """Up to `size` entries that follow entry number `after`."""
    rows = connection.execute("SELECT * FROM entries WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, size))
    return [_entry(*row) for row in rows.fetchall()]


def debits(connection: sqlite3.Connection, accounts: list[str]) -> list[Entry]:
    """The debits from some accounts, in order."""
    marks = ", ".join("?" * len(accounts))
    query = f"SELECT * FROM entries WHERE kind = 'debit' AND source IN ({marks}) ORDER BY sequence"
    return [_entry(*row) for row in connection.execute(query, accounts).fetchall()]


def charged(connection: sqlite3.Connection, account: str) -> list[Charged]:
    """All releases at the cost of an account, or a refusal where an entry records what cannot be."""
    query = "SELECT amount, content FROM entries WHERE kind = 'debit' AND source = ? ORDER BY sequence"
    debits = connection.execute(query, (account,)).fetchall()
    with contextlib.suppress(*IMPOSSIBLE, LedgerError):
        return list(ledger_releases.charged([(amount, json.loads(text)) for amount, text in debits]))
    raise LedgerError(f"what is recorded of the releases from {account!r} cannot be: verify the ledger")


def debited(connection: sqlite3.Connection, run: str, after: int) -> dict[str, int]:
    """The debits that a run made after an entry, by account."""
    query = "SELECT source, amount, content FROM entries WHERE sequence > ? AND kind = 'debit' ORDER BY sequence"
    spent: dict[str, int] = {}
    for source, amount, content in connection.execute(query, (after,)):
        if json.loads(content).get("run") == run:
            spent[source] = spent.get(source, 0) + amount
    return spent


_text = json.encoder.encode_basestring_ascii


def chain(previous: bytes, row: tuple[int, str, str, str, int, str]) -> bytes:
    """The hash of an entry that follows one of this hash."""
    sequence, time, kind, source, amount, content = row
    # as json.dumps writes it, in a third of the time
    written = f"[{sequence}, {_text(time)}, {_text(kind)}, {_text(source)}, {amount}, {_text(content)}]"
    return hashlib.sha256(previous + written.encode("ascii")).digest()


def _entry(sequence: int, time: str, kind: str, source: str, amount: int, text: str, chained: bytes) -> Entry:
    content = json.loads(text)
    measurements: tuple[str, ...] = ()
    if kind == "open account":
        description = f"budget {decimal_epsilon(amount)}, unit {content['unit']}"
    elif kind == "set budget":
        description = f"budget {decimal_epsilon(content['previous'])} -> {decimal_epsilon(amount)}"
        if suspensions.ANALYSTS in content:
            description = f"{content[suspensions.ANALYSTS]} to analysts, the budget stays"
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
