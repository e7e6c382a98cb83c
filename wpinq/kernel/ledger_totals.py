"""Totals: what every entry carries of the books after it, so that an opening need not read the history.

Of the accounts, the sum of SHA-256 over their rows, modulo 2²⁵⁶: an entry changes one account, and a sum is then had in
two steps, however many accounts there are. Of the measurements, how many were paid for. And SQLite's own count of how
often tables or triggers were made or dropped: who edits a ledger by hand has to drop triggers first.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from wpinq.kernel import ledger_schema

_MODULUS = 2**256

_SELECT = "SELECT name, schema, unit, unit_weight, budget, spent FROM accounts"

TOTALS = "totals"
"""Under what they stand in the content of an entry."""

Totals = dict[str, Any]
"""`accounts`, the sum in hexadecimal; `measurements`, their number; `schema`, SQLite's count."""


def of_account(connection: sqlite3.Connection, name: str) -> int:
    """What one account adds to the sum; 0 where there is none."""
    return _sum(connection.execute(f"{_SELECT} WHERE name = ?", (name,)))


def of_accounts(connection: sqlite3.Connection) -> int:
    """The sum over all accounts, as the table has them."""
    return _sum(connection.execute(_SELECT))


def now(connection: sqlite3.Connection, accounts: int) -> Totals:
    """The totals to be carried, with this sum over the accounts."""
    (measurements,) = connection.execute("SELECT coalesce(max(id), 0) FROM measurements").fetchone()
    written = f"{accounts % _MODULUS:064x}"
    return {"accounts": written, "measurements": measurements, "schema": ledger_schema.counter(connection)}


def accounts_in(totals: Totals) -> int:
    """The sum over the accounts that is carried."""
    return int(totals["accounts"], 16)


def _sum(rows: Iterable[tuple[Any, ...]]) -> int:
    digests = (hashlib.sha256(json.dumps(row).encode("ascii")).digest() for row in rows)
    return sum(int.from_bytes(digest, "big") for digest in digests) % _MODULUS
