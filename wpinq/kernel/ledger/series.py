"""The accounts of a series: of each epoch, of the template, of one person over all epochs.

`views:2026-11-27` is an account like any other. `views`, of budget 0, fixes the template and pays nothing; its
suspension is that of all epochs, also those to come. `views:*` is charged the sum over epochs of each debit, where the
template declares a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from wpinq.errors import SessionError
from wpinq.expr.epochs import SEPARATOR, over_all
from wpinq.kernel.ledger.accounts import (
    MARK,
    Account,
    accounts_of,
    all_accounts,
    declaration,
    declared_account,
    open_account,
)
from wpinq.kernel.ledger.chain import CURATOR, LIMIT, Transaction
from wpinq.measure.prepaid import source_at
from wpinq.noise.epsilon import decimal_epsilon, parse_budget
from wpinq.plan.operators.source import Source

OF_SERIES = "the template of a series, which pays nothing"
#: The budget over all epochs where none is declared: it refuses nothing that the epochs allow.
UNBOUNDED = LIMIT - 1


def declared_accounts(declared: Source, label: str | None, unit: str, budget: object) -> tuple[Source, list[Account]]:
    """A source that is protected, and its accounts; of an epoch, those of its series too.

    Parameters
    ----------
    declared : Source
        The source, or the template of a series with the budgets of its declaration.
    label : str, optional
        The epoch of a series.
    unit : str
        The protected unit in words.
    budget : number
        The budget of another source; empty text where there is none.
    """
    template, epoch = declared, declared.epoch
    given = budget != "" if isinstance(budget, str) else True  # None is a slip, which type checkers find
    if epoch is None and label is None and given:
        declared.check()  # a plan that was read or unpickled may say anything
        return declared, [*accounts_of(declared, unit, parse_budget(budget))]
    if epoch is None or epoch.label or epoch.each is None or label is None or given:
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
        words = "what one person pays over all epochs of a series"
        accounts.append(declared_account(over_all(epoch.series), words, unit, Fraction(1), total))
    return source, accounts


def open_for_analysts(transaction: Transaction, opened: Iterable[Account]) -> tuple[Account, ...]:
    """Open the accounts of analysts in these epochs, where there is none yet.

    Each has the budget of the analyst's account in the template. There is no bound over all epochs, unless one is set.
    """
    known = {account.name: account for account in all_accounts(transaction)}
    for account in opened:
        series, separator, label = account.name.partition(SEPARATOR)
        for name, given in known.items() if separator and MARK not in label else ():
            base, _, analyst = name.partition(MARK)
            if base == series and analyst and (own := f"{account.name}{MARK}{analyst}") not in known:
                budget = UNBOUNDED if label == "*" else given.budget
                new = replace(given, name=own, unit_weight=account.unit_weight, budget=budget, spent=0, suspended=False)
                open_account(transaction, new, CURATOR)
    return tuple(opened)
