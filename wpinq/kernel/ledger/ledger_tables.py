"""What the ledger's tables hold, read and checked: accounts, measurements, demands of parts."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.ledger_releases import Terms
from wpinq.kernel.ledger.schema import LIMIT

_SELECT_ACCOUNT = "SELECT name, unit, unit_weight, schema, budget, spent FROM accounts"
_UNFIT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Account:
    """What the ledger knows of one source.

    Attributes
    ----------
    name : str
        The source.
    unit : str
        What is protected, in words.
    unit_weight : Fraction
        The total weight by which one protected unit can change the source.
    schema : str
        The record type of the source, as text.
    budget, spent : int
        Nano-epsilon.
    """

    name: str
    unit: str
    unit_weight: Fraction
    schema: str
    budget: int
    spent: int

    @property
    def remaining(self) -> int:
        """What may still be spent, in nano-epsilon."""
        return self.budget - self.spent


@dataclass(frozen=True, slots=True)
class Pricing:
    """What a debit costs.

    Attributes
    ----------
    charges : Mapping
        Source name -> nano-epsilon to debit. Every source that the measurements use is in it, those that cost
        nothing more (a part below the maximum of its partition) with 0.
    parts : Mapping
        (partition digest, part digest) -> the new cumulative demand of that part: absolute, never below the stored.
    terms : Mapping
        Digest of each new measurement -> the terms on which it is released, to be kept on record.
    """

    charges: Mapping[str, int]
    parts: Mapping[tuple[str, str], Fraction]
    terms: Mapping[str, Terms] = field(default_factory=dict)


PartsOf = Callable[[str], Mapping[str, Fraction]]
"""Partition digest -> {part digest: cumulative demand}, as stored."""

Price = Callable[[frozenset[str], PartsOf], Pricing]
"""The digests that were never debited and the stored demands -> what they cost now."""


def all_accounts(connection: sqlite3.Connection) -> tuple[Account, ...]:
    """Every account, by name."""
    rows = connection.execute(f"{_SELECT_ACCOUNT} ORDER BY name").fetchall()
    return tuple(_to_account(*row) for row in rows)


def find_account(connection: sqlite3.Connection, name: str) -> Account | None:
    """The account of a source, or None."""
    row = connection.execute(f"{_SELECT_ACCOUNT} WHERE name = ?", (name,)).fetchone()
    return None if row is None else _to_account(*row)


def get_account(connection: sqlite3.Connection, name: str) -> Account:
    """The account of a source, or a refusal."""
    found = find_account(connection, name)
    if found is None:
        known = ", ".join(repr(account.name) for account in all_accounts(connection)) or "none yet"
        raise LedgerError(
            f"the ledger has no account for {name!r}, it has {known}: protect a source of that name first"
        )
    return found


def demands(connection: sqlite3.Connection, partition: str) -> dict[str, Fraction]:
    """Part digest -> its cumulative demand now."""
    # Beside max(), SQLite takes the other columns from the row that has the maximum.
    query = "SELECT part, demand, max(entry) FROM parts WHERE partition = ? GROUP BY part"
    return {part: _demand(text) for part, text, _ in connection.execute(query, (partition,)).fetchall()}


def _demand(text: str) -> Fraction:
    if not set(text) <= set("0123456789/"):  # "1e999999999" is a Fraction too, and takes for ever
        raise LedgerError("the ledger holds a demand that is none: it was not written by wpinq")
    return Fraction(text)


def measurement_id(connection: sqlite3.Connection, digest: str) -> int | None:
    """The row number of a measurement, or None where it was never debited."""
    row = connection.execute("SELECT id FROM measurements WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else int(row[0])


def check_text(what: str, text: str) -> None:
    """Refuse what is not text, or what SQLite cannot keep as it is."""
    if not isinstance(text, str) or not text or _UNFIT.search(text):
        raise LedgerError(f"{what} must be text, not empty, without NUL or lone surrogates")


def check_budget(name: str, budget: int) -> None:
    """Refuse a budget that is not an integer of nano-epsilon within the bounds of the schema."""
    if isinstance(budget, bool) or not isinstance(budget, int) or not 0 <= budget < LIMIT:
        raise LedgerError(f"the budget of {name!r} must be an integer of nano-epsilon, at least 0 and below 2^62")


_weight = lru_cache(maxsize=1024)(Fraction)


def _to_account(name: str, unit: str, unit_weight: str, schema: str, budget: int, spent: int) -> Account:
    return Account(name, unit, _weight(unit_weight), schema, budget, spent)
