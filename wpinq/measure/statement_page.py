"""What a notebook shows of a session: a bar for each budget, and what happened to the accounts, by time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from xml.etree.ElementTree import Element

from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import format_epsilon
from wpinq.runtime.markup import block, element, share_bar, table, title

SHOWN = 30
"""The most events; how many are left out is said."""


def statement_html(balances: Sequence[Balance], history: Sequence[Event]) -> str:
    """Budgets as bars, and the latest events. No data, and no answers."""
    bars = table(
        ["account", "spent", "", "of", "left", "protects"], [_balance(balance) for balance in balances], {1, 3, 4}
    )
    names = ["", "time (UTC)", "account", "epsilon", "spent by then", "what", "label"]
    events = table(names, [_event(*event) for event in _timeline(balances, history)[-SHOWN:]], {0, 3})
    left_out = len(history) - min(SHOWN, len(history))
    earlier = [element("div", f"… {left_out} earlier: session.history() has all")] if left_out else []
    return block(title("Session", "budgets in epsilon"), bars, title("History"), *earlier, events)


def _balance(balance: Balance) -> list[str | Element]:
    spent, budget, left = map(format_epsilon, (balance.spent, balance.budget, balance.remaining))
    share = float(balance.spent / balance.budget) if balance.budget else 0.0
    return [balance.account, spent, share_bar(share, f"spent {spent} of {budget}"), budget, left, balance.unit]


def _timeline(balances: Sequence[Balance], history: Sequence[Event]) -> list[tuple[Event, float]]:
    """Each event with the share of its account's budget, as it stands now, that was spent by then."""
    budgets = {balance.account: balance.budget for balance in balances}
    spent = dict.fromkeys(budgets, Fraction(0))
    found = []
    for event in history:
        if event.kind == "debit":
            spent[event.account] = spent.get(event.account, Fraction(0)) + event.amount
        budget = budgets.get(event.account)
        found.append((event, float(spent[event.account] / budget) if budget else 0.0))
    return found


def _event(event: Event, share: float) -> list[str | Element]:
    amount, what = format_epsilon(event.amount), f"{event.kind}: {event.description}"
    return [str(event.sequence), event.time, event.account, amount, share_bar(share, f"{share:.0%}"), what, event.label]
