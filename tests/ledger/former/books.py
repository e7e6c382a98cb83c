"""Wrote `ledger.sqlite`, of format 3, and `format_4.sqlite`, each with a version of wpinq that wrote that format.

It is not run again.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

from wpinq.kernel.ledger.ledger import Ledger, Pricing

LISTING = {"domain": {"integers": [0, 9]}, "above": 2.0}


def write(path: Path) -> None:
    with Ledger(path) as ledger:
        for name, budget in (("edges", 10**9), ("people", 10**8), ("people/visits", 0)):
            ledger.open_account(name, schema="s", unit="u", unit_weight=Fraction(1), budget=budget)
        parts = {("p", "x"): Fraction(1, 3), ("p", "y"): Fraction(1)}
        ledger.debit({"m": "early"}, lambda new, parts_of: Pricing({"edges": 5, "people": 6}, parts), "a label")
        ledger.store_answers("m", {b"a": 1.0, b"b": 2.0})
        ledger.store_listing("m", {b"c": 3.0}, LISTING, listings=0, answers=2)
        ledger.store_listing("m", {}, LISTING | {"above": 1.5}, listings=1, answers=3)
        ledger.set_budget("edges", 2 * 10**9)
        ledger.debit({"n": "late", "o": "beside it"}, lambda new, parts_of: Pricing({"edges": 7}, {}))
        ledger.store_answers("n", {b"a": 1.5})
        ledger.verify()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
