"""An account's statement, for people: balance and events, without data or answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.display.html import Cell, render, share_bar
from wpinq.measure.group import escaped
from wpinq.noise.epsilon import decimal_epsilon
from wpinq.noise.epsilon_text import Epsilon, format_epsilon

_UNBOUNDED = 4 * 10**9  # epsilon of an account that refuses nothing
#: The most events of a notebook's page; the number of events left out is shown.
SHOWN_EVENTS = 30


@dataclass(frozen=True, slots=True, repr=False)
class Balance:
    """The balance of one account; its repr is one readable line.

    Attributes
    ----------
    account : str
        The source, or what several tables share; of such a table `ACCOUNT/TABLE`, which pays nothing itself; of an
        analyst's budget within an account `ACCOUNT@ANALYST`.
    unit : str
        The protected unit in words.
    unit_weight : Fraction
        By how much total weight one protected unit can change the source.
    budget, spent : Fraction
        Epsilon.
    """

    account: str
    unit: str
    unit_weight: Fraction
    budget: Epsilon
    spent: Epsilon

    @property
    def remaining(self) -> Epsilon:
        """The unspent budget."""
        return Epsilon(self.budget - self.spent)

    def __repr__(self) -> str:
        payer, _, table = self.account.partition("/")
        if table:
            return escaped(f"{self.account}: paid by {payer}; protects {self.unit}")
        spent, budget, left = map(format_epsilon, (self.spent, self.budget, self.remaining))
        series, epoch, label = self.account.partition(":")
        if label.startswith("*"):
            bound = f" of {budget}, {left} remaining" if self.budget < _UNBOUNDED else ""
            return escaped(f"{self.account}: spent {spent}{bound}; one person in all epochs of {series}")
        payer, _, analyst = self.account.partition("@")
        what = f"within the budget of {payer}" if analyst else f"protects {self.unit}"
        what += f"; over other epochs of {series} the losses of one person add up" if epoch else ""
        return escaped(f"{self.account}: spent {spent} of {budget}, {left} remaining; {what}")


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One event of an account: opened, a budget set, a debit.

    Its repr is a line for people.

    Attributes
    ----------
    sequence : int
        Its place among the entries of the ledger, which also record when answers were stored.
    time : str
        UTC, ISO 8601, to the second.
    kind : str
        "open account", "set budget", "debit", "suspend", "resume", "admit", "renew", "remove", "carry" or "close".
    account : str
        The account, or the user of an act on one.
    amount : Fraction
        The budget for the first two kinds, the charge of a debit, and 0 for the others.
    description : str
        One line: for a debit its measurements, as a bill names them.
    label : str
        The caller's text on the debit, as it was written: escape it where it is shown.
    actor : str
        The curator or analyst that acted; "" where nobody is named.
    """

    sequence: int
    time: str
    kind: str
    account: str
    amount: Epsilon
    description: str
    label: str
    actor: str = ""

    def __repr__(self) -> str:
        row = f"{self.sequence} {self.time} {self.kind} {self.account} {format_epsilon(self.amount)} {self.description}"
        return escaped(row.rstrip() + (f'  "{self.label}"' if self.label else ""))


def entry_text(kind: str, amount: int, content: Mapping[str, Any]) -> str:
    """One line for people on an entry of a ledger; empty where the kind says all.

    The amount is in nano-epsilon.
    """
    if kind == "open account":
        spent = f", {decimal_epsilon(content['spent'])} spent before" if content.get("spent") else ""
        return f"budget {decimal_epsilon(amount)}, unit {content['unit']}{spent}"
    if kind == "set budget":
        return f"budget {decimal_epsilon(content['previous'])} -> {decimal_epsilon(amount)}"
    if kind == "debit":
        return "; ".join(content["measurements"].values())
    if kind == "answers":
        listing = content.get("listing")
        above = f", all above {listing['above']:.12g} in a domain" if listing else ""
        return f"{content['count']} answers{above}"
    return {
        "suspend": "suspended after a failed evaluation",
        "resume": "resumed for analysts",
        "carry": f"continued from a ledger closed at entry {content.get('from')}",
        "close": f"closed permanently, continued in {content.get('to')}",
    }.get(kind, "")


def statement_html(balances: Sequence[Balance], history: Sequence[Event]) -> str:
    """Budgets as bars, and the latest events, without data or answers."""
    events = list(_timeline(balances, history))[-SHOWN_EVENTS:]
    left_out = len(history) - len(events)
    return render("session.html", balances=[*map(_balance_cells, balances)], events=events, left_out=left_out)


def _balance_cells(balance: Balance) -> list[Cell]:
    spent, budget, left = map(format_epsilon, (balance.spent, balance.budget, balance.remaining))
    share = float(balance.spent / balance.budget) if balance.budget else 0.0
    return [balance.account, spent, share_bar(share, f"spent {spent} of {budget}"), budget, left, balance.unit]


def _timeline(balances: Sequence[Balance], history: Sequence[Event]) -> Iterator[list[Cell]]:
    """Each event with the share of its account's present budget that was spent by then."""
    budgets = {balance.account: balance.budget for balance in balances}
    spent = dict.fromkeys(budgets, Fraction(0))
    for event in history:
        if event.kind == "debit":
            spent[event.account] = spent.get(event.account, Fraction(0)) + event.amount
        budget = budgets.get(event.account)
        share = float(spent[event.account] / budget) if budget else 0.0
        amount, what = format_epsilon(event.amount), f"{event.kind}: {event.description}"
        bar = share_bar(share, f"{share:.0%}")
        yield [str(event.sequence), event.time, event.account, amount, bar, what, event.label]
