"""The proof that a ledger follows from its chain: when it is opened, and wholly on demand.

Up to 100,000 entries an opening verifies all of them. Beyond that it verifies the last 10,000, and of earlier entries
the digests of their batches: all amounts, accounts and hashes. Stored answers are verified again when they are read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain
from wpinq.kernel.ledger.accounts import MARK
from wpinq.kernel.ledger.chain import ANSWERS, BATCH, CARRY, DEBIT, OPEN, RESUME, SET, START, SUSPEND, Transaction

#: Up to how many entries an opening verifies all, and how many it verifies of more.
WHOLE, LAST = 100_000, 10_000

#: The errors of reading a forged entry.
_IMPOSSIBLE = (LedgerError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


class _Replay:
    """The tables that follow from the entries; of plans and answers their SHA-256.

    `paid` and `plans` are the digests that earlier entries than the first one brought.
    """

    def __init__(self, paid: set[str], plans: set[str]) -> None:
        self.accounts: dict[str, list[Any]] = {}
        self.rows: dict[str, set[Any]] = {"measurements": set(), "parts": set(), "plans": set(), "answers": set()}
        self._paid, self._plans = paid, plans

    def charge(self, account: str, amount: int) -> None:
        """A debit, as far as it moves a balance."""
        row = self.accounts[account]
        row[5] += amount
        if row[5] > row[4]:
            raise LedgerError("more was spent than the budget")

    def add(self, sequence: int, kind: str, target: str, amount: int, content: dict[str, Any]) -> None:
        """One entry, in order; an error where it cannot have happened."""
        if kind == DEBIT:
            self.charge(target, amount)
            if "with" not in content:
                bought = content["measurements"].keys()
                self._paid.update(bought)
                self.rows["measurements"].update((digest, sequence) for digest in bought)
                self.rows["parts"].update((cut, part, sequence, demand) for cut, part, demand in content["parts"])
                self._add_plans(sequence, content["plans"].values())
        elif kind == ANSWERS:
            if target not in self._paid:
                raise LedgerError("the measurement was never paid for")
            self.rows["answers"].add((target, sequence, content["digest"]))
        elif kind == OPEN:
            declared = [content["schema"], content["unit"], content["unit_weight"]]
            if target in self.accounts or not all(isinstance(text, str) for text in declared):
                raise LedgerError("an account is opened once, and declared in text")
            self.accounts[target] = [target, *declared, amount, content.get("spent", 0), 0]
        elif kind == SET:
            row = self.accounts[target]
            if content["previous"] != row[4] or amount < row[5]:
                raise LedgerError("the budget was another")
            row[4] = amount
        elif kind in (SUSPEND, RESUME):
            self.accounts[target][6] = int(kind == SUSPEND)
        elif kind == CARRY:
            self._add_plans(sequence, content["plans"])

    def _add_plans(self, sequence: int, digests: Iterable[str]) -> None:
        new = {*digests} - self._plans
        self._plans |= new
        self.rows["plans"].update((digest, sequence, digest) for digest in new)


def verify(transaction: Transaction, name: str, *, whole: bool) -> None:
    """Refuse a ledger with a broken chain of entries, or tables that do not follow from them.

    Parameters
    ----------
    transaction : Transaction
        A snapshot.
    name : str
        The name of the ledger in messages.
    whole : bool
        Whether all entries are verified, however many there are.

    Raises
    ------
    LedgerError
        Naming the first entry that is broken, or the row that does not follow from the entries.
    """
    last = chain.head(transaction).sequence
    first = 1 if whole or last <= WHOLE else (last - LAST) // BATCH * BATCH
    known = (
        transaction.execute(f"SELECT digest FROM {table} WHERE entry < {first}") for table in ("measurements", "plans")
    )
    replay, previous = _Replay(*({digest for (digest,) in rows} for rows in known)), START.hash
    if first > 1:
        previous = _add_batches(transaction, name, first, replay)
    query = f"SELECT sequence, time, kind, actor, target, amount, content, hash FROM entries WHERE sequence >= {first}"
    for expected, (*row, chained) in enumerate(transaction.execute(f"{query} ORDER BY sequence"), start=first):
        sequence, _, kind, _, target, amount, text = row
        if sequence != expected:
            raise chain.tampered(name, f"entry {expected} is missing")
        if chain.link(previous, (*row,)) != chained:
            raise chain.tampered(name, f"entry {sequence} is not the one recorded, or the one before is missing")
        previous = chained
        try:
            replay.add(sequence, kind, target, amount, json.loads(text))
        except _IMPOSSIBLE:
            raise chain.tampered(name, f"entry {sequence} does not follow from those before it") from None
    _compare(transaction, name, first, replay)


def _add_batches(transaction: Transaction, name: str, first: int, replay: _Replay) -> bytes:
    """The hash of the entry before `first`, after the digests of all batches up to there."""
    previous = START.hash
    for sealing in range(BATCH, first + 1, BATCH):
        query = "SELECT time, actor, content FROM entries WHERE sequence = ?"
        rows = list(chain.batch(transaction, sealing))
        try:
            *_, text = transaction.execute(query, (sealing,)).fetchone()
            if json.loads(text)["batch"] != chain.batch_digest(rows).hex():
                raise LedgerError("another digest")
            for sequence, kind, target, amount, chained in rows:
                if kind == DEBIT:
                    replay.charge(target, amount)
                elif kind != ANSWERS:
                    time, actor, text = transaction.execute(query, (sequence,)).fetchone()
                    if chain.link(previous, (sequence, time, kind, actor, target, amount, text)) != chained:
                        raise LedgerError("another content")
                    replay.add(sequence, kind, target, amount, json.loads(text))
                previous = chained
        except _IMPOSSIBLE:
            raise chain.tampered(name, f"the entries before entry {sealing} are not those that were recorded") from None
    return previous


def _compare(transaction: Transaction, name: str, first: int, replay: _Replay) -> None:
    """Refuse tables that are not those of the replay, from an entry on."""
    rows = {"accounts": {tuple(row) for row in replay.accounts.values()}} | replay.rows
    for table, expected in rows.items():
        since = "" if table == "accounts" or first == 1 else f" WHERE entry >= {first}"
        found = transaction.execute(
            f"SELECT * FROM {table}{since}"
        )  # as `schema`, which is checked, orders its columns
        wrong = set(map(_hashed, found) if table in ("plans", "answers") else found) ^ expected
        if wrong:
            key = min(str(row[0]) for row in wrong)
            raise chain.tampered(name, f"the row of {table} for {key!r} does not follow from the entries")
    for table, column in (("accounts", "name"), ("measurements", "digest")):
        base = f"substr(own.{column}, 1, instr(own.{column}, '{MARK}') - 1)"
        query = f"SELECT 1 FROM {table} AS own WHERE instr({column}, '{MARK}') > 0 "
        query += f"AND NOT EXISTS (SELECT 1 FROM {table} AS source WHERE source.{column} = {base})"
        if transaction.execute(query).fetchone() is not None:
            raise chain.tampered(name, f"an analyst has a row of {table} that no source has")


def _hashed(row: tuple[str, int, str | bytes]) -> tuple[str, int, str]:
    key, entry, value = row
    packed = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return key, entry, hashlib.sha256(packed).hexdigest()
