"""Letting somebody in: a token, and budgets of their own within those of the sources."""

from __future__ import annotations

from collections.abc import Mapping

from wpinq.kernel.charge import budget_to_nano
from wpinq.kernel.debits import MARK
from wpinq.kernel.ledger import Ledger
from wpinq.measure.epsilon import parse_epsilon
from wpinq.service.token_register import ANALYST, CallerRole, Register, RegisterError


def admit(register: Register, ledger: Ledger, name: str, role: CallerRole, budgets: Mapping[str, str]) -> str:
    """Give somebody a token, and an analyst budgets; the token. Nothing is changed where a budget cannot be given.

    Raises
    ------
    RegisterError, LedgerError, EpsilonError
        When the name is taken or none, there is no such account, or a budget is no epsilon.
    """
    if role != ANALYST and budgets:
        raise RegisterError("a curator has no budget to spend; give budgets to analysts")
    _check(ledger, budgets)
    token = register.add(name, role)  # first, for a name that is taken has budgets of its own
    set_budgets(ledger, budgets, name)
    return token


def _check(ledger: Ledger, budgets: Mapping[str, str]) -> None:
    """Refuse budgets that are none, or of accounts that there are not, before anything is changed."""
    known = {each.account for each in ledger.balances() if "/" not in each.account and MARK not in each.account}
    for account, budget in budgets.items():
        budget_to_nano(parse_epsilon(budget))
        if account not in known:
            raise RegisterError(f"there is no account {account!r}; the ledger has {', '.join(sorted(known)) or 'none'}")


def set_budgets(ledger: Ledger, budgets: Mapping[str, str], analyst: str | None = None) -> None:
    """Set budgets of accounts, or of an analyst within them; none where one is no budget, or of no account."""
    _check(ledger, budgets)
    for account, budget in budgets.items():
        ledger.set_budget(account, budget_to_nano(parse_epsilon(budget)), analyst)
