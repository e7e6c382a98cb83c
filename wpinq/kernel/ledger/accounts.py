"""What the ledger is told of a protected source: the account that pays for it, and its declaration, fixed for ever."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypedDict

from wpinq.errors import LedgerError
from wpinq.expr.types import signature
from wpinq.kernel.ledger import ledger_tables as tables
from wpinq.kernel.ledger.chain import decimal_epsilon
from wpinq.kernel.ledger.debit import MARK
from wpinq.kernel.ledger.ledger_tables import Account
from wpinq.plan.operators.source import Source

SHARED = "the tables of one account, whose costs add up"
"""What stands in the place of a declaration where an account is shared: no source declares this."""

OF_ANALYST = "what an analyst may ask for of an account"
"""The same, of an analyst's account within an account."""


class AccountTerms(TypedDict):
    """The arguments of `Ledger.open_account`, and an item of those of `Ledger.open_accounts`."""

    name: str
    schema: str
    unit: str
    unit_weight: Fraction
    budget: int


def accounts_of(source: Source, unit: str, budget: int) -> tuple[AccountTerms, ...]:
    """The accounts that must be as declared before data are looked at, and stand in the ledger before they are held.

    A source with an account of its own has one, with its budget. Where tables of the same people share an account, that
    has the budget, and pays for all; beside it each table has one of budget 0, from which nothing can ever be paid, and
    which fixes the table's declaration. `/` is in no name, so no source can be taken for a table of an account.
    """
    words, weight = unit + source.rows_of_unit, source.unit_weight
    if source.person is None or not source.person.account:
        return (
            AccountTerms(name=source.source, schema=declaration(source), unit=words, unit_weight=weight, budget=budget),
        )
    table = f"{source.account}/{source.source}"
    return (
        AccountTerms(name=source.account, schema=SHARED, unit=unit, unit_weight=Fraction(1), budget=budget),
        AccountTerms(name=table, schema=declaration(source), unit=words, unit_weight=weight, budget=0),
    )


def check_single(source: Source, accounts: Iterable[Account]) -> None:
    """Refuse names that would stand for two things in a ledger.

    A source that the ledger knows in another account: what was spent there would be forgotten. And a name that is a
    table of one account and itself the account of other tables: who asks what is left of it must get one answer.

    Raises
    ------
    LedgerError
        Naming the account.
    """
    ours = f"{source.account}/{source.source}" if source.person is not None and source.person.account else source.source
    for known in accounts:
        holder, _, table = known.name.rpartition("/")
        if known.name != ours and known.schema != SHARED and table == source.source:
            raise LedgerError(
                f"the ledger has {source.source!r} as the account {known.name!r}, which another declaration opened: "
                "use that, or protect the data under another name"
            )
        if known.schema == SHARED and known.name == source.source != source.account:
            raise LedgerError(
                f"the ledger has {known.name!r} as an account that other tables share: protect the data under another "
                "name"
            )
        if holder and holder != source.account == table:
            raise LedgerError(
                f"the ledger has {table!r} as a table of the account {holder!r}: give the account of "
                f"{source.source!r} another name"
            )


def declared_account(name: str, schema: str, unit: str, unit_weight: Fraction, budget: int) -> Account:
    """The account that a declaration opens; LedgerError when it makes no sense."""
    for what, text in (("name", name), ("schema", schema), ("unit", unit)):
        tables.check_text(f"the {what} of a source", text)
    if MARK in name:
        raise LedgerError(f"{name!r} would be an analyst's account: those are opened by set_budget")
    if isinstance(unit_weight, bool) or not isinstance(unit_weight, (int, Fraction)) or unit_weight <= 0:
        raise LedgerError(f"the unit weight of {name!r} must be a positive Fraction")
    tables.check_budget(name, budget)
    return Account(name, unit, Fraction(unit_weight), schema, budget, 0)


def check_same(known: Account, declared: Account) -> Account:
    """The account that is known, when it was opened for what is declared."""
    for what in ("schema", "unit", "unit weight"):
        stored, given = (str(getattr(account, what.replace(" ", "_"))) for account in (known, declared))
        if stored != given:
            raise LedgerError(
                f"the ledger has {known.name!r} with the {what} {stored!r}, not {given!r}: use that, "
                "or protect the data under another name"
            )
    if known.budget != declared.budget:
        raise LedgerError(
            f"the ledger has {known.name!r} with a budget of {decimal_epsilon(known.budget)}, not "
            f"{decimal_epsilon(declared.budget)}: use that, or change it on record with set_budget"
        )
    return known


def declaration(source: Source) -> str:
    """All that an account fixes of a source besides its unit: schema, cap, facts, sizes, and whose its rows are."""
    sizes = "" if source.sizes is None else f"; {source.sizes.text}"
    text = f"{signature(source.record)}; cap {source.cap}; facts {', '.join(source.facts) or 'none'}{sizes}"
    if source.person is None:
        return text
    form = "one record a person" if source.person.nested else "one record a row"
    # repr: a column may have any name, and none may read like the rest of a declaration
    return f"{text}; person {source.person.column!r}, at most {source.person.at_most} rows, {form}"
