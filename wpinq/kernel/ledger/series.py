"""The accounts of a series: one for each epoch, the template's, and that of one person over all epochs.

`views:2026-11-27` is an account like any other. `views`, of budget 0, fixes the template and pays nothing; its
suspension is that of all epochs, also those to come. `views:*` is charged the sum over epochs of each debit, where the
template declares a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from wpinq.errors import SessionError
from wpinq.expr.epochs import SEPARATOR
from wpinq.kernel.ledger.accounts import (
    MARK,
    Account,
    accounts_of,
    all_accounts,
    declaration,
    declared_account,
    find_account,
    open_account,
)
from wpinq.kernel.ledger.chain import CURATOR, LIMIT, Transaction
from wpinq.measure.prepaid import source_at
from wpinq.noise.epsilon import decimal_epsilon, parse_budget
from wpinq.plan.operators.source import Source

OF_SERIES = "the template of a series, which pays nothing"
OF_PERSON = "what one person pays over all epochs of a series"
UNBOUNDED = LIMIT - 1
"""The budget over all epochs where none is declared: it refuses nothing that the epochs allow."""


def declared_accounts(
    declared: Source, label: str | None, unit: str, budget: object
) -> tuple[Source, tuple[Account, ...]]:
    """A source that is protected, and its accounts: of an epoch, the template's, its own, and one person's over all.

    Parameters
    ----------
    declared : Source
        The source, or the template of a series with the budgets of its declaration.
    label : str, optional
        The epoch of a series.
    unit : str
        The protected unit in words.
    budget : number, optional
        The budget of another source.
    """
    template, epoch = declared, declared.epoch
    if epoch is None and label is None and budget is not None:
        declared.check()  # a plan that was read or unpickled may say anything
        return declared, accounts_of(declared, unit, parse_budget(budget))
    if epoch is None or epoch.label or epoch.each is None or label is None or budget is not None:
        raise SessionError(
            "a source is protected with a budget, and an epoch by its series with the budget_each that it declares: "
            'protect(source, data, budget=1), protect(series, data, epoch="2026-11-27")'
        )
    source = source_at(template, label)
    source.check()
    each, words = parse_budget(epoch.each), unit + source.rows_of_unit
    schema = f"{OF_SERIES}: {declaration(template)}; each {decimal_epsilon(each)}"
    accounts = [
        declared_account(template.source, schema, words, source.unit_weight, 0),
        declared_account(source.source, declaration(source), words, source.unit_weight, each),
    ]
    if source.person is not None:
        total = UNBOUNDED if epoch.total is None else parse_budget(epoch.total)
        accounts.append(declared_account(epoch.total_account, OF_PERSON, unit, Fraction(1), total))
    return source, tuple(accounts)


def open_for_analysts(transaction: Transaction, opened: tuple[Account, ...]) -> None:
    """Open the accounts of analysts in new epochs, with the budget that each has there for every epoch."""
    for account in opened:
        series, separator, label = account.name.partition(SEPARATOR)
        if not separator or label == "*":
            continue
        for known in all_accounts(transaction):
            base, _, analyst = known.name.partition(MARK)
            name = f"{account.name}{MARK}{analyst}"
            if base == series and analyst and find_account(transaction, name) is None:
                open_account(transaction, replace(known, name=name, spent=0, suspended=False), CURATOR)


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
