"""The hash chain of entries: h₀ = 0, hᵢ = SHA-256(hᵢ₋₁ ‖ entry i), one entry an event.

A change of the ledger that does not write its history anew breaks the chain. Whoever can write the file can also
write a new history or put an old copy back: the last hash, kept elsewhere, shows it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wpinq.errors import LedgerError

OPEN, SET, DEBIT, ANSWERS = "open account", "set budget", "debit", "answers"
SUSPEND, RESUME, CARRY, CLOSE = "suspend", "resume", "carry", "close"
USER_ACTS = ("admit", "renew", "remove")
#: The actor of an entry whose curator is not named.
CURATOR = "curator"

#: Budgets and charges are below it, so the sum of two fits the 64 bits of an SQLite integer.
LIMIT = 2**62

#: An entry whose number is a multiple of it carries a digest of the entries since the one before.
BATCH = 10_000

_WRITTEN_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII)
LAST = "SELECT sequence, hash, kind FROM entries ORDER BY sequence DESC LIMIT 1"
COLUMNS = "sequence, time, kind, actor, target, amount, content, hash"
INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Transaction(Protocol):
    """An open transaction: it runs SQL with `?` in the place of each parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run one statement; its rows."""


@dataclass(frozen=True, slots=True)
class Head:
    """An entry of a ledger, by its number and its hash.

    The hash stands for the whole history up to the entry.

    Attributes
    ----------
    sequence : int
        Its number, from 1; 0 where there is none yet.
    hash : bytes
        SHA-256, 32 bytes.

    Examples
    --------
    >>> str(Head(0, bytes(32)))[:10]
    '0:00000000'
    >>> Head.parse(str(Head(7, b"w" * 32))).sequence
    7
    """

    sequence: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash.hex()}"

    @staticmethod
    def parse(text: str) -> Head:
        """The head that `str` gave; LedgerError for any other text."""
        found = _WRITTEN_HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise LedgerError("the head is NUMBER:HASH, with 64 hexadecimal digits, as wpinq ledger show prints it")
        return Head(int(found[1]), bytes.fromhex(found[2]))


#: The head of an empty ledger.
START = Head(0, bytes(32))


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: an account opened, a budget set, a debit, stored answers, a curator's act.

    Attributes
    ----------
    sequence : int
        Its place in the history, from 1.
    time : str
        UTC, ISO 8601, to the second. Empty for answers: the time of an evaluation depends on protected data.
    kind : str
        "open account", "set budget", "debit", "answers", "suspend", "resume", "admit", "renew", "remove", "carry" or
        "close".
    actor : str
        The curator or analyst that acted; "" where the session did.
    target : str
        The account, the user, or for answers the digest of the measurement.
    amount : int
        Nano-epsilon: the budget of an account, the charge of a debit, 0 for other kinds.
    content : dict
        Everything else that the entry records.
    hash : str
        SHA-256 over this entry and the hash of the one before, in hexadecimal.
    """

    sequence: int
    time: str
    kind: str
    actor: str
    target: str
    amount: int
    content: dict[str, Any]
    hash: str

    @property
    def measurements(self) -> tuple[str, ...]:
        """Digests of the measurements that were paid for, or whose answers were stored."""
        return (self.target,) if self.kind == ANSWERS else tuple(self.content.get("measurements", ()))

    @property
    def label(self) -> str:
        """The caller's text on a debit; "" where there is none."""
        return str(self.content.get("label", ""))


def append(
    transaction: Transaction, kind: str, target: str, amount: int, content: dict[str, Any], actor: str = ""
) -> int:
    """Append an entry, in a write transaction, and return its number.

    The caller changes the other tables.

    Raises
    ------
    LedgerError
        When the ledger is closed.
    """
    before, previous, last = transaction.execute(LAST).fetchone() or (START.sequence, START.hash, "")
    sequence = before + 1
    if last == CLOSE and kind not in (CLOSE, CARRY):
        raise LedgerError(f"this ledger was closed permanently by entry {before}: use the one that continues it")
    if sequence % BATCH == 0:
        content = content | {"batch": batch_digest(batch(transaction, sequence)).hex()}
    time = "" if kind == ANSWERS else datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = (sequence, time, kind, actor, target, amount, _written(content))
    transaction.execute(INSERT, (*row, link(previous, row)))
    return sequence


_written = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def link(previous: bytes, row: tuple[int, str, str, str, str, int, str]) -> bytes:
    """The hash of an entry, given the hash of the one before.

    Texts are hashed with their lengths, so different entries never agree.
    """
    sequence, time, kind, actor, target, amount, content = row
    sizes = f"{sequence} {amount} {len(time)} {len(kind)} {len(actor)} {len(target)} "
    text = f"{sizes}{time}{kind}{actor}{target}{content}"
    return hashlib.sha256(previous + text.encode("utf-8", "surrogatepass")).digest()


def batch(transaction: Transaction, sequence: int) -> Any:
    """Number, kind, target, amount and hash of the entries that the digest of an entry covers."""
    query = "SELECT sequence, kind, target, amount, hash FROM entries WHERE sequence >= ? AND sequence < ?"
    return transaction.execute(f"{query} ORDER BY sequence", (sequence - BATCH, sequence))


def batch_digest(rows: Any) -> bytes:
    """SHA-256 over the rows of a batch: number, kind, account, amount and hash."""
    digest = hashlib.sha256()
    for sequence, kind, target, amount, chained in rows:
        digest.update(f"{sequence} {amount} {len(kind)} {len(target)} {kind}{target}".encode("utf-8", "surrogatepass"))
        digest.update(chained)
    return digest.digest()


def head(transaction: Transaction) -> Head:
    """The last entry, by its number and its hash."""
    found = transaction.execute(LAST).fetchone()
    return START if found is None else Head(*found[:2])


def holds(transaction: Transaction, known: Head) -> bool:
    """Whether an entry is in the history."""
    query = "SELECT hash FROM entries WHERE sequence = ?"
    return known == START or bool(transaction.execute(query, (known.sequence,)).fetchone() == (known.hash,))


def check_head(transaction: Transaction, name: str, known: Head, source: str) -> None:
    """Refuse a ledger that does not contain a known entry; `source` says where it is known from."""
    if holds(transaction, known):
        return
    now = head(transaction)
    lost = (
        f"it ends with entry {now.sequence}: its -wal was lost, or an older copy was put in its place"
        if now.sequence < known.sequence
        else f"its entry {known.sequence} differs: it is another ledger, or diverged after an older copy was used"
    )
    raise LedgerError(
        f"{name} does not hold entry {known.sequence}, {source}: {lost}. Later debits are missing and "
        "would be spent again: put the ledger back, or start a new one with the remaining budget"
    )


def tampered(name: str, reason: str) -> LedgerError:
    """The refusal of a ledger that was edited."""
    return LedgerError(
        f"{name} has been tampered with: {reason}. Restore it from a copy, or start a new one with the remaining budget"
    )


def read(transaction: Transaction, condition: str, values: Sequence[Any], size: int = -1, skip: int = 0) -> list[Entry]:
    """At most `size` entries that fulfil a condition, in order, after the first `skip`."""
    query = f"SELECT {COLUMNS} FROM entries WHERE {condition} ORDER BY sequence LIMIT ? OFFSET ?"
    rows = transaction.execute(query, (*values, LIMIT if size < 0 else size, skip)).fetchall()
    return [
        Entry(sequence, time, kind, actor, target, amount, json.loads(content), chained.hex())
        for sequence, time, kind, actor, target, amount, content, chained in rows
    ]
