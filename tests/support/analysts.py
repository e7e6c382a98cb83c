"""A ledger in which analysts have budgets within that of one source."""

from __future__ import annotations

import pathlib
from fractions import Fraction

from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Price, Pricing


def each(**amounts: int) -> Price:
    """So much of each account for every measurement that is new."""
    return lambda new, parts_of: Pricing({name: amount * len(new) for name, amount in amounts.items()}, {})


def opened(path: pathlib.Path | None = None, budget: int = 100, *analysts: str, own: int = 100) -> Ledger:
    ledger = Ledger(path)
    ledger.open_accounts(
        [declared_account("edges", schema="s", unit="one edge", unit_weight=Fraction(1), budget=budget)]
    )
    for analyst in analysts or ("alice", "bob"):
        ledger.set_budget("edges", own, analyst)
    return ledger


def spent(ledger: Ledger) -> dict[str, int]:
    return {account.name: account.spent for account in ledger.accounts()}
