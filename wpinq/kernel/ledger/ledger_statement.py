"""Statements: how the accounts of a ledger stand and what happened to them, in epsilon; of all, or of one analyst's."""

from __future__ import annotations

import sqlite3

from wpinq.kernel.ledger import chain
from wpinq.kernel.ledger.chain import Entry
from wpinq.kernel.ledger.debit import Payer
from wpinq.kernel.ledger.ledger_tables import all_accounts
from wpinq.kernel.ledger.nano_epsilon import from_nano
from wpinq.measure.statement import Balance, Event


def balances(connection: sqlite3.Connection, analyst: str | None) -> tuple[Balance, ...]:
    """How all accounts stand, by name; or an analyst's, by the accounts that they are in."""
    accounts = all_accounts(connection)
    named = Payer(analyst).balances(accounts) if analyst is not None else {each.name: each for each in accounts}
    return tuple(
        Balance(name, each.unit, each.unit_weight, from_nano(each.budget), from_nano(each.spent))
        for name, each in named.items()
    )


def analyst_events(connection: sqlite3.Connection, analyst: str) -> tuple[Event, ...]:
    """The debits from an analyst's accounts, by the accounts that they are in, counted from 1."""
    own = {each.name: payer for payer, each in Payer(analyst).balances(all_accounts(connection)).items()}
    found = chain.debits(connection, list(own))
    return tuple(event(each, own[each.source], number) for number, each in enumerate(found, start=1))


def event(entry: Entry, account: str, number: int) -> Event:
    """An entry as it is shown, under a name of the account and a number."""
    amount = from_nano(entry.amount)
    return Event(number, entry.time, entry.kind, account, amount, entry.description, entry.label)
