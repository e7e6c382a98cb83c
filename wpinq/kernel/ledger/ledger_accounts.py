"""What a ledger's curator decides: which sources have accounts, with what budgets, and whom they answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_statement
from wpinq.kernel.ledger import ledger_tables as tables
from wpinq.kernel.ledger.accounts import OF_ANALYST, AccountTerms, check_same, declared_account
from wpinq.kernel.ledger.chain import decimal_epsilon
from wpinq.kernel.ledger.debit import MARK, Payer
from wpinq.kernel.ledger.ledger_book import LedgerBook
from wpinq.kernel.ledger.ledger_tables import Account
from wpinq.kernel.ledger.store import LedgerFile
from wpinq.kernel.ledger.suspensions import CLOSED, OPEN, Suspensions, said
from wpinq.measure.statement import Balance, Event


class LedgerAccounts(LedgerBook):
    """The accounts of a ledger: opened, given budgets, closed to analysts and opened again; and how they stand."""

    def __init__(self, file: LedgerFile) -> None:
        super().__init__(file)
        self._gates = Suspensions()

    def open_account(self, name: str, *, schema: str, unit: str, unit_weight: Fraction, budget: int) -> Account:
        """Record a source with its budget, or find it again with what it spent.

        Parameters
        ----------
        name, schema, unit : str
            The source, its record type as text, and what is protected in words.
        unit_weight : Fraction
            Positive.
        budget : int
            Nano-epsilon, from 0 to below 2⁶².

        Returns
        -------
        Account

        Raises
        ------
        LedgerError
            When the account exists with another schema, unit, unit weight or budget: money set aside for one
            promise cannot be spent under another, and a budget is changed by `set_budget` only.
        """
        terms = AccountTerms(name=name, schema=schema, unit=unit, unit_weight=unit_weight, budget=budget)
        (account,) = self.open_accounts([terms])
        return account

    def open_accounts(
        self, terms: Iterable[AccountTerms], refuse: Callable[[tuple[Account, ...]], None] | None = None
    ) -> tuple[Account, ...]:
        """Open accounts or find them again, all or none, in one transaction.

        Parameters
        ----------
        terms : iterable of AccountTerms
            The arguments of `open_account`, for each.
        refuse : callable, optional
            Shown all accounts that the ledger has, before any is opened; what it raises undoes everything. No other
            writer comes between the two. It must be quick, and must not use the ledger.

        Returns
        -------
        tuple of Account

        Raises
        ------
        LedgerError
            As `open_account`.
        """
        declared = [declared_account(**each) for each in terms]

        def opened(connection: sqlite3.Connection) -> tuple[Account, ...]:
            if refuse is not None:
                refuse(tables.all_accounts(connection))
            return tuple(self._opened(connection, account) for account in declared)

        return self._file.write(opened)

    def check_account(self, name: str, *, schema: str, unit: str, unit_weight: Fraction, budget: int) -> None:
        """Refuse what `open_account` would refuse, and write nothing.

        To be asked before data are looked at: whether data fit a declaration is for the curator to know, and an
        account fixes which declaration that is.

        Raises
        ------
        LedgerError
            As `open_account`.
        """
        declared = declared_account(name, schema, unit, unit_weight, budget)
        known = self._file.read(lambda connection: tables.find_account(connection, name))
        if known is not None:
            check_same(known, declared)

    def set_budget(self, name: str, budget: int, analyst: str | None = None) -> Account:
        """Raise or lower the budget of a source, or an analyst's within it: an act of the curator, kept in the entries.

        Parameters
        ----------
        name : str
            A source with an account.
        budget : int
            Nano-epsilon, from what is spent to below 2⁶².
        analyst : str, optional
            Whose budget it is, within that of the source, where it is not the source's own. One that has none yet is
            given an account.

        Returns
        -------
        Account

        Raises
        ------
        LedgerError
            When there is no such account, or more than `budget` is spent.
        """
        own = Payer(analyst).named(name)
        tables.check_budget(own, budget)

        def changed(connection: sqlite3.Connection) -> Account:
            payer = tables.get_account(connection, name)
            if "/" in name:
                raise LedgerError(f"{name!r} is a table of an account and pays nothing: set the budget of the account")
            if analyst is not None and MARK in name:
                raise LedgerError(f"{name!r} is an analyst's account: name the account that it is in")
            known = tables.find_account(connection, own)
            if known is None:
                return self._opened(connection, replace(payer, name=own, schema=OF_ANALYST, budget=budget, spent=0))
            if budget < known.spent:
                raise LedgerError(
                    f"the budget of {own!r} cannot be {decimal_epsilon(budget)}: "
                    f"{decimal_epsilon(known.spent)} is spent, and nothing is refunded"
                )
            self._append(connection, "set budget", own, budget, {"previous": known.budget})
            return tables.get_account(connection, own)

        return self._file.write(changed)

    def suspend(self, names: Iterable[str]) -> frozenset[str]:
        """Record that accounts answer no analyst until they are opened again; which of them were open until now.

        Nothing else changes: budgets and answers stay, and a session that is not in untrusted mode answers.
        """

        def shut(connection: sqlite3.Connection) -> frozenset[str]:
            asked = frozenset(names)
            found = asked - self._gates.closed(connection, asked)
            self._set_gates(connection, found, CLOSED)
            return found

        return self._file.write(shut)

    def resume(self, name: str) -> bool:
        """Record that an account answers analysts again: an act of the curator. Whether it was closed."""

        def opened(connection: sqlite3.Connection) -> bool:
            tables.get_account(connection, name)
            found = self._gates.closed(connection, [name])
            self._set_gates(connection, found, OPEN)
            return bool(found)

        return self._file.write(opened)

    def suspended(self, names: Iterable[str] | None = None) -> frozenset[str]:
        """Which of some accounts answer no analyst, or of all."""
        return self._file.read(lambda connection: self._gates.closed(connection, names))

    def account(self, name: str) -> Account:
        """The account of a source. Raises LedgerError when there is none."""
        return self._file.read(lambda connection: tables.get_account(connection, name))

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        return self._file.read(tables.all_accounts)

    def balances(self, analyst: str | None = None) -> tuple[Balance, ...]:
        """How the budgets of all accounts stand, by name, in epsilon; or an analyst's, by what they are in."""
        return self._file.snapshot(partial(ledger_statement.balances, analyst=analyst))

    def events(self, analyst: str | None = None) -> tuple[Event, ...]:
        """The history in epsilon: all entries but those that store answers.

        Of an analyst, the debits from the analyst's accounts, by the accounts that they are in, counted from 1.
        """
        if analyst is not None:
            return self._file.snapshot(partial(ledger_statement.analyst_events, analyst=analyst))
        shown = (each for each in self.entries() if each.kind != chain.ANSWERS)
        return tuple(ledger_statement.event(each, each.source, each.sequence) for each in shown)

    def _opened(self, connection: sqlite3.Connection, declared: Account) -> Account:
        """The account as it stands, opened here where there was none."""
        known = tables.find_account(connection, declared.name)
        if known is not None:
            return check_same(known, declared)
        content = {"schema": declared.schema, "unit": declared.unit, "unit_weight": str(declared.unit_weight)}
        self._append(connection, "open account", declared.name, declared.budget, content)
        return declared

    def _set_gates(self, connection: sqlite3.Connection, names: Iterable[str], state: str) -> None:
        for name in sorted(names):
            budget = tables.get_account(connection, name).budget
            self._append(connection, "set budget", name, budget, said(budget, state))
