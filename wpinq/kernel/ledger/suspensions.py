"""Suspensions: which accounts are closed to analysts, since a child failed that looked at their data.

That a look failed all the same is a bit outside of every ε. So it is one bit: it is on record, in the ledger and before
it is answered, that the account answers no analyst, until its curator opens it again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from wpinq.errors import LedgerError

ANALYSTS = "analysts"
"""What says it, in the content of an entry that leaves a budget as it is."""

CLOSED, OPEN = "closed", "open"


class SuspensionError(LedgerError):
    """A look failed, and the ledger refused to record that its accounts are closed."""


def said(budget: int, state: str) -> dict[str, Any]:
    """The content of an entry of the kind `set budget` that says who is answered, and changes no budget."""
    return {"previous": budget, ANALYSTS: state}


def check(amount: int, content: dict[str, Any]) -> None:
    """Refuse an entry that says what no gate can."""
    if ANALYSTS in content and (content[ANALYSTS] not in (CLOSED, OPEN) or content["previous"] != amount):
        raise LedgerError("a gate is closed or open, and changes no budget")


class Suspensions:
    """What the entries say of gates, as far as they were read: each is read once."""

    def __init__(self) -> None:
        self._upto = 0
        self._closed: set[str] = set()

    def closed(self, connection: sqlite3.Connection, names: Iterable[str] | None = None) -> frozenset[str]:
        """Which of some accounts are closed to analysts, or of all."""
        query = (
            "SELECT sequence, source, content FROM entries WHERE sequence > ? AND kind = 'set budget' "
            f"AND content LIKE '%\"{ANALYSTS}\"%' ORDER BY sequence"
        )
        (last,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM entries").fetchone()
        for sequence, source, content in connection.execute(query, (self._upto,)).fetchall():
            state = json.loads(content).get(ANALYSTS)
            if state is not None:
                (self._closed.add if state == CLOSED else self._closed.discard)(source)
            last = max(last, sequence)
        self._upto = last
        return frozenset(self._closed if names is None else self._closed.intersection(names))
