"""Budgets of series, by the names of their accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wpinq.errors import SessionError
from wpinq.expr.epochs import SEPARATOR
from wpinq.kernel.ledger.accounts import MARK, Account
from wpinq.kernel.ledger.series import UNBOUNDED
from wpinq.noise.epsilon import parse_budget


def over_all(source: str, over: str | None) -> str:
    """The account that holds a source's spending, or that of one person over all epochs of a series."""
    if over not in (None, "person"):
        raise SessionError('spent takes over="person", of a series that declares a person')
    return source if over is None else f"{source}{SEPARATOR}*"


def budgets_to_set(
    source: str,
    budget: object,
    each: object,
    total: object,
    analyst: str | None,
    accounts: Callable[[], Iterable[Account]],
) -> Sequence[tuple[str, int]]:
    """The budgets to set, by account: of a source; or of a series, in each epoch and over all of them.

    An analyst who gets a budget in each epoch has no bound over all of them, unless one is set.
    """
    if budget is not None and each is None and total is None:
        return [(source, parse_budget(budget))]
    whole, names = over_all(source, "person"), {account.name for account in accounts()}
    epochs = {name for name in names if name.startswith(f"{source}{SEPARATOR}") and MARK not in name} - {whole}
    if budget is not None or not epochs or (each is None and total is None) or (each is not None and analyst is None):
        raise SessionError(
            "set_budget takes a budget; or, of a series with an epoch that was protected before, each=... for an "
            "analyst in every epoch, and all=... over all epochs. The sources' own budget of an epoch goes by its name"
        )
    found = [(name, parse_budget(each)) for name in (source, *sorted(epochs))] if each is not None else []
    if total is None and whole in names and f"{whole}{MARK}{analyst}" not in names:
        return [*found, (whole, UNBOUNDED)]
    return found if total is None else [*found, (whole, parse_budget(total))]
