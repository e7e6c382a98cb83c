"""Totals: what every entry carries of the books after it, so that an opening need not read the history.

Of the accounts, the sum of SHA-256 over their rows, modulo 2²⁵⁶: an entry changes one account, and a sum is then had in
two steps, however many accounts there are. Of the measurements, how many were paid for. And SQLite's own count of how
often tables or triggers were made or dropped: who edits a ledger by hand has to drop triggers first.
"""

from __future__ import annotations

import hashlib
import sqlite3
from functools import lru_cache
from typing import Any

from wpinq.kernel.ledger import schema

_MODULUS = 2**256

_SELECT = "SELECT name, schema, unit, unit_weight, budget, spent FROM accounts"

TOTALS = "totals"
"""Under what they stand in the content of an entry."""

Totals = dict[str, Any]
"""`accounts`, the sum in hexadecimal; `measurements`, their number; `schema`, SQLite's count."""


AccountRow = tuple[str, str, str, str, int, int]
"""An account as it is summed."""


def account(connection: sqlite3.Connection, name: str) -> AccountRow | None:
    """The row of one account."""
    found: AccountRow | None = connection.execute(f"{_SELECT} WHERE name = ?", (name,)).fetchone()
    return found


@lru_cache(maxsize=1024)
def written(row: AccountRow | None) -> int:
    """What an account adds to the sum; 0 where there is none."""
    if row is None:
        return 0
    # No text of an account has a NUL, so none can be shifted from one column to the next.
    text = "\0".join(map(str, row)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest(), "big")


def of_accounts(connection: sqlite3.Connection) -> int:
    """The sum over all accounts, as the table has them."""
    return sum(map(written, connection.execute(_SELECT))) % _MODULUS


def carried(accounts: int, measurements: int, schema: int) -> Totals:
    """Totals as they are written."""
    return {"accounts": f"{accounts % _MODULUS:064x}", "measurements": measurements, "schema": schema}


def now(connection: sqlite3.Connection, accounts: int) -> Totals:
    """The totals of the books as they are, with this sum over the accounts."""
    # They are numbered from 1 and stay, so the first and the last number tell of any that was put in.
    first, last = "(SELECT min(id) FROM measurements)", "(SELECT max(id) FROM measurements)"
    (measurements,) = connection.execute(f"SELECT coalesce({last} - {first} + 1, 0)").fetchone()
    return carried(accounts, measurements, schema.counter(connection))
