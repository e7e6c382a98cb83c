"""The accounts of a series: one for each epoch, the template's, and that of one person over all epochs.

`views:2026-11-27` is an account like any other. `views`, of budget 0, fixes the template and pays nothing; its
suspension is that of all epochs, also those to come. `views:*` is charged the sum over epochs of each debit, where the
template declares a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from wpinq.errors import SessionError
from wpinq.expr.epochs import SEPARATOR
from wpinq.kernel.ledger.accounts import (
    MARK,
    Account,
    all_accounts,
    declaration,
    declared_account,
    find_account,
    open_account,
)
from wpinq.kernel.ledger.chain import CURATOR, LIMIT, Transaction
from wpinq.noise.epsilon import decimal_epsilon, parse_budget
from wpinq.plan.operators.source import Source

OF_SERIES = "the template of a series, which pays nothing"
OF_PERSON = "what one person pays over all epochs of a series"
UNBOUNDED = LIMIT - 1
"""The budget over all epochs where none is declared: it refuses nothing that the epochs allow."""


def series_accounts(template: Source, label: str, unit: str) -> tuple[Account, ...]:
    """The accounts of an epoch: the template's, its own, and that of one person over all epochs.

    Parameters
    ----------
    template : Source
        The series, with the budgets of its declaration.
    label : str
        The epoch.
    unit : str
        The protected unit in words.
    """
    source, epoch = template.at(label), template.epoch
    if epoch is None or epoch.label or epoch.each is None:
        raise SessionError("protect takes a series that declares the budget of each epoch: budget_each=10")
    each, words = parse_budget(epoch.each), unit + source.rows_of_unit
    schema = f"{OF_SERIES}: {declaration(template)}; each {decimal_epsilon(each)}"
    accounts = [
        declared_account(template.source, schema, words, source.unit_weight, 0),
        declared_account(source.source, declaration(source), words, source.unit_weight, each),
    ]
    if source.person is not None:
        total = UNBOUNDED if epoch.total is None else parse_budget(epoch.total)
        accounts.append(declared_account(epoch.total_account, OF_PERSON, unit, Fraction(1), total))
    return tuple(accounts)


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


def series_budgets(
    series: str, known: Iterable[Account], each: object, total: object, analyst: str | None
) -> list[tuple[str, int]]:
    """The budgets to set in the accounts of a series, by name: in each epoch, and of one person over all of them.

    An analyst who gets a budget in each epoch has no bound over all of them, unless one is set.
    """
    names = {account.name for account in known}
    held = [name for name in sorted(names) if name.startswith(f"{series}{SEPARATOR}") and MARK not in name]
    over_all = f"{series}{SEPARATOR}*"
    if not held or (each is not None and analyst is None) or (total is not None and over_all not in held):
        raise SessionError(
            "each=... is an analyst's budget in every epoch, and all=... is for a series that declares a person; "
            "protect an epoch first. The sources' own budget of an epoch is set by the epoch's name"
        )
    budgets = [(name, parse_budget(each)) for name in [series, *held] if name != over_all] if each is not None else []
    if total is not None:
        budgets.append((over_all, parse_budget(total)))
    elif over_all in held and f"{over_all}{MARK}{analyst}" not in names:
        budgets.append((over_all, UNBOUNDED))
    return budgets
