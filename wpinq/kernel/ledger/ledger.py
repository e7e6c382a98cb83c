"""The ledger: budgets, debits, the measurements that they paid for, and stored answers.

A debit is one transaction: it finds new measurements, prices them, charges every account or none, and is on the disk
before anything is evaluated. Nothing is ever refunded. A measurement that was paid for is free for ever after.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Self

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import accounts, chain
from wpinq.kernel.ledger.accounts import MARK, Account, PartsOf, Price, Pricing, check_text
from wpinq.kernel.ledger.chain import CURATOR, Entry, Head, Transaction
from wpinq.kernel.ledger.debit import NewAnswers, Payer, Stored, debit, one_by_one
from wpinq.kernel.ledger.postgres import LedgerURL, PostgresStore
from wpinq.kernel.ledger.series import OF_SERIES, open_for_analysts
from wpinq.kernel.ledger.store import SQLiteStore
from wpinq.kernel.ledger.verification import verify
from wpinq.measure.statement import Balance, Event, entry_text
from wpinq.noise.epsilon import decimal_epsilon, from_nano

__all__ = ["Account", "Entry", "Ledger", "PartsOf", "Price", "Pricing", "SuspensionError"]

EXPECTED = "the head that is expected"
StoredAnswers = dict[bytes, float]
_TERMS = attrgetter("name", "schema", "unit", "unit_weight", "budget")
_REMEMBERED = 2**20  # answers, of all measurements: beyond it those used longest ago are read anew


class SuspensionError(LedgerError):
    """An evaluation failed, and the ledger refused to record that its accounts are suspended."""


class Ledger:
    """Budgets, debits and answers, durable and shared by threads and processes.

    Parameters
    ----------
    path : path, URL, store or None
        A file on a local disk, or the URL of a ledger in PostgreSQL, or an open store; None keeps the ledger in memory,
        for this process only.
    create : bool
        Whether a file that is missing becomes a new ledger.
    expected_head : str, optional
        A head that the ledger has had, as `head` gave it. One that has lost that entry is refused, and none is made.

    Raises
    ------
    LedgerError
        When the file cannot be opened, is empty or not a ledger, lacks its triggers and checks, or is not what its
        entries add up to.

    Notes
    -----
    Opening verifies all entries up to 100,000, and beyond that the last 10,000 and digests of the earlier ones.

    No privacy cost: the ledger never sees protected data. It stores what it is given: digests, plans and public
    descriptions of measurements, requested keys, and noisy values. Measurement descriptions, source names and units
    must be public.

    Examples
    --------
    >>> from wpinq.kernel.ledger.accounts import declared_account
    >>> edges = declared_account("edges", schema="(src: int)", unit="edge", unit_weight=1, budget=10**9)
    >>> with Ledger() as ledger:
    ...     _ = ledger.open_accounts([edges])
    ...     price = lambda new, parts_of: Pricing({"edges": 3 * 10**8 * len(new)}, {})
    ...     new = ledger.debit({"digest of a measurement": "degrees"}, price)
    ...     again = ledger.debit({"digest of a measurement": "degrees"}, price)
    ...     (len(new), len(again), ledger.account("edges").remaining)
    (1, 0, 700000000)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | SQLiteStore | PostgresStore | None = None,
        *,
        create: bool = True,
        expected_head: str | None = None,
    ) -> None:
        expected = None if expected_head is None else Head.parse(expected_head)
        place = path if path is None or isinstance(path, SQLiteStore | PostgresStore) else os.fspath(path)
        if isinstance(place, str):
            missing = create and expected is None
            place = PostgresStore(place) if LedgerURL.matches(place) else SQLiteStore(place, missing)
        self._store = SQLiteStore(None, True) if place is None else place
        self._remembered: dict[str, Stored] = {}  # the last used last

        def check(transaction: Transaction) -> None:
            verify(transaction, self._store.name, whole=False)
            if expected is not None:
                chain.check_head(transaction, self._store.name, expected, EXPECTED)

        try:
            self._store.snapshot(check)
        except BaseException:
            self._store.close()
            raise

    # accounts

    def open_accounts(
        self, declared: Iterable[Account], refuse: Callable[[tuple[Account, ...]], None] | None = None
    ) -> tuple[Account, ...]:
        """Record accounts with their budgets, or find existing ones with their spending.

        All or none are recorded, in one transaction.

        Parameters
        ----------
        declared : iterable of Account
            Name, schema, unit, unit weight and budget of each; nothing is spent yet.
        refuse : callable, optional
            Shown all accounts that the ledger has, before any is opened; its exception undoes everything. No other
            writer comes between the two. It must be quick, and must not use the ledger.

        Returns
        -------
        tuple of Account

        Raises
        ------
        LedgerError
            When an account exists with another schema, unit, unit weight or budget: a budget for one guarantee cannot
            be spent under another, and a budget is changed by `set_budget` only.
        """
        wanted = [accounts.declared_account(*_TERMS(each)) for each in declared]

        def opened(transaction: Transaction) -> tuple[Account, ...]:
            if refuse is not None:
                refuse(accounts.all_accounts(transaction))
            return open_for_analysts(
                transaction, [accounts.open_account(transaction, each, CURATOR) for each in wanted]
            )

        return self._store.write(opened)

    def check_accounts(self, declared: Iterable[Account], refuse: Callable[[tuple[Account, ...]], None]) -> None:
        """Refuse all that `open_accounts` would refuse, and write nothing.

        It is called before data are read: an account fixes the declaration against which data are checked.

        Raises
        ------
        LedgerError
            As `open_accounts`.
        """
        known = {account.name: account for account in self.accounts()}
        refuse(tuple(known.values()))
        for account in declared:
            accounts.check_same(known.get(account.name, account), account)

    def set_budget(self, name: str, budget: int, analyst: str | None = None, *, actor: str = CURATOR) -> Account:
        """Set the budget of a source, or an analyst's within it: an act of the curator.

        The change is recorded in the entries.

        Parameters
        ----------
        name : str
            A source with an account.
        budget : int
            Nano-epsilon, from what is spent to below 2⁶²; 0 for what is spent, so that nothing is left.
        analyst : str, optional
            The analyst, for a budget within that of the source. The first budget opens an account.
        actor : str
            The curator's name, for the history.

        Returns
        -------
        Account

        Raises
        ------
        LedgerError
            When there is no such account, or more than `budget` is spent.
        """
        own = Payer(analyst).named(name)
        accounts.check_budget(own, budget)

        def changed(transaction: Transaction) -> Account:
            source = accounts.get_account(transaction, name)
            if "/" in name:
                raise LedgerError(f"{name!r} is a table of an account and pays nothing: set the budget of the account")
            if analyst is None and source.schema.startswith(OF_SERIES):
                raise LedgerError(f"{name!r} is a series and pays nothing: set the budget of an epoch, or all=...")
            if analyst is not None and MARK in name:
                raise LedgerError(f"{name!r} is an analyst's account: name the account that it is in")
            known = accounts.find_account(transaction, own)
            if known is None:
                new = replace(source, name=own, schema=accounts.OF_ANALYST, budget=budget, spent=0, suspended=False)
                opened = accounts.open_account(transaction, new, actor)
                open_for_analysts(transaction, accounts.all_accounts(transaction))
                return opened
            amount = budget or known.spent
            if amount < known.spent:
                raise LedgerError(
                    f"the budget of {own!r} cannot be {decimal_epsilon(budget)}: {decimal_epsilon(known.spent)} is "
                    "spent, and nothing is refunded; 0 sets it to the spent amount"
                )
            chain.append(transaction, chain.SET, own, amount, {"previous": known.budget}, actor)
            transaction.execute("UPDATE accounts SET budget = ? WHERE name = ?", (amount, own))
            return replace(known, budget=amount)

        return self._store.write(changed)

    def suspend(self, names: Iterable[str]) -> frozenset[str]:
        """Record that accounts answer no analyst until they are resumed.

        Returns those that were not suspended before. Nothing else changes: budgets and answers stay, and a session
        without a sandbox answers.
        """
        return self._store.write(lambda transaction: accounts.set_suspended(transaction, names, True, ""))

    def resume(self, name: str, *, actor: str = CURATOR) -> bool:
        """Record that an account answers analysts again: an act of the curator.

        Returns whether it was suspended.
        """
        return bool(self._store.write(lambda transaction: accounts.set_suspended(transaction, [name], False, actor)))

    def suspended(self) -> frozenset[str]:
        """The suspended accounts."""
        return frozenset(account.name for account in self.accounts() if account.suspended)

    def record_act(self, kind: str, target: str, *, actor: str = CURATOR) -> None:
        """Record a curator's act on a user or a token: "admit", "remove" or "renew"."""
        if kind not in chain.USER_ACTS:
            raise LedgerError(f"an act on a user is one of {', '.join(chain.USER_ACTS)}")
        check_text("the name of a user", target)
        self._store.write(lambda transaction: chain.append(transaction, kind, target, 0, {}, actor))

    def account(self, name: str) -> Account:
        """The account of a source; LedgerError when there is none."""
        return self._store.read(lambda transaction: accounts.get_account(transaction, name))

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        return self._store.read(accounts.all_accounts)

    def balances(self, analyst: str | None = None) -> tuple[Balance, ...]:
        """The balances of all accounts by name, in epsilon, or of an analyst within them."""
        found = {each.name: each for each in self.accounts()}
        return tuple(
            Balance(name, each.unit, each.unit_weight, from_nano(each.budget), from_nano(each.spent))
            for name, each in (found if analyst is None else Payer(analyst).balances(found.values())).items()
        )

    # debits

    def debit(
        self,
        measurements: Mapping[str, str],
        price: Price,
        label: str = "",
        run: str = "",
        analyst: str | None = None,
        plan: Callable[[str], str] | None = None,
    ) -> frozenset[str]:
        """Pay, in one transaction, for the measurements that were never paid for.

        Parameters
        ----------
        measurements : Mapping
            Digest -> public description. A digest stands for everything that an answer depends on.
        price : callable
            Called at most once for each payer, with the digests that are new to it and a function that gives
            its stored demands of a partition; it must be quick, and must not use the ledger. Other writers wait for it.
        label : str
            A text to keep with the debit; nothing depends on it.
        run : str
            A word of the caller for all its own debits: see `debited`.
        analyst : str, optional
            The analyst who makes the request, with a budget within the sources'. The sources pay for all that is new to
            them, and the analyst for all that is new to the analyst.
        plan : callable, optional
            Digest -> the canonical plan, as text, to keep with the debit.

        Returns
        -------
        frozenset of str
            The digests that were new to the sources, so that they have no answers yet. Empty when all were paid for
            before; the sources are charged nothing then.

        Raises
        ------
        BudgetExceeded
            When a source lacks budget, or the analyst. Nothing is spent, on any source. That the analyst lacks it is
            found first; that a source does is `SourceExhausted` to an analyst.
        LedgerError
            When a source has no account, or the pricing is not one. Nothing is spent.
        """
        for digest, description in measurements.items():
            check_text("the digest of a measurement", digest)
            check_text("the description of a measurement", description)
            if MARK in digest:
                raise LedgerError(f"no {MARK} is in the digest of a measurement: it stands before an analyst's name")
        words = {key: word for key, word in (("label", label), ("run", run)) if word}
        # Plans are written before the transaction, for which others wait. Nothing is paid for by an analyst alone.
        # Where the sources have answers of an earlier request, its debit has the plan.
        answered = {each for each in measurements if (found := self._remembered.get(each)) and found.answers}
        paid = self.paid(measurements, analyst) if analyst else answered
        plans = {digest: plan(digest) for digest in measurements if digest not in paid} if plan is not None else {}
        return self._store.write(lambda transaction: debit(transaction, measurements, price, plans, words, analyst))

    def quote(self, measurements: Iterable[str], price: Price, analyst: str | None = None) -> Mapping[str, int]:
        """The cost that `debit` would charge now, to the sources or to an analyst.

        An analyst's quote reveals nothing of others.

        Parameters
        ----------
        measurements : iterable of str
            Digests.
        price, analyst
            As in `debit`.

        Returns
        -------
        Mapping
            Account -> nano-epsilon; empty where nothing is new.
        """
        payer, digests = Payer(analyst), list(measurements)
        return self._store.snapshot(lambda held: payer.priced(held, payer.unpaid(held, digests), price).charges)

    def paid(self, measurements: Iterable[str], analyst: str | None = None) -> frozenset[str]:
        """The digests among these that were paid for, ever: by the sources, or by an analyst."""
        digests, payer = frozenset(measurements), Payer(analyst)
        return digests - self._store.read(lambda transaction: payer.unpaid(transaction, digests))

    def debited(self, run: str, after: int = 0) -> dict[str, int]:
        """The debits under a word of the caller, by account, in nano-epsilon.

        Parameters
        ----------
        run : str
            As given to `debit`.
        after : int
            The number of an entry before all of them.
        """
        spent: dict[str, int] = {}
        condition = "kind = 'debit' AND sequence > ?"
        for entry in self._store.read(lambda transaction: chain.read(transaction, condition, (after,))):
            if entry.content.get("run") == run:
                spent[entry.target] = spent.get(entry.target, 0) + entry.amount
        return spent

    def plans(self, analyst: str | None = None) -> dict[int, dict[str, str]]:
        """Entry -> measurement digest -> canonical plan: of all debits, or of an analyst's own.

        Plans contain the constants of their author: they are for the curator, and an analyst's for that analyst.
        """

        def found(transaction: Transaction) -> dict[int, dict[str, str]]:
            kept = dict(transaction.execute("SELECT digest, plan FROM plans").fetchall())
            plans = {}
            for entry in chain.read(transaction, "kind IN ('debit', 'carry')", ()):
                recorded = entry.content.get("plans")
                if recorded and (analyst is None or entry.target.endswith(f"{MARK}{analyst}")):
                    pairs = recorded.items() if isinstance(recorded, dict) else zip(recorded, recorded, strict=True)
                    plans[entry.sequence] = {digest: kept[hashed] for digest, hashed in pairs}
            return plans

        return self._store.snapshot(found)

    # answers

    def answers(self, measurement: str, keys: Iterable[bytes] | None = None) -> dict[bytes, float]:
        """The stored answers of a measurement: for these keys, or all by increasing key.

        Parameters
        ----------
        measurement : str
            Its digest. One that was never debited has no answers.
        keys : iterable of bytes, optional
            The keys to read.

        Returns
        -------
        dict
            Key -> value, in the order of `keys`. A key without a stored answer is not in it, which means only
            that it was never requested.
        """
        wanted = None if keys is None else list(dict.fromkeys(keys))
        if wanted is not None and not all(type(key) is bytes for key in wanted):
            raise LedgerError("answers are kept for keys of bytes")

        def found(transaction: Transaction) -> dict[bytes, float]:
            stored = self._stored(transaction, measurement).answers
            return {key: stored[key] for key in (sorted(stored) if wanted is None else wanted) if key in stored}

        return self._store.snapshot(found)

    def listings(self, measurement: str) -> list[Any]:
        """The listings of a measurement as `store_listing` was given them, in order.

        Read them before the answers: one that comes in between is found out when the draws are stored.
        """
        read = self._store.snapshot(lambda transaction: [*self._stored(transaction, measurement).listings])
        return [json.loads(listing) for listing in read]

    def store_answers(
        self, measurement: str, answers: Mapping[bytes, float], listings: int = 0, durable: bool = True
    ) -> dict[bytes, float] | None:
        """Store answers, and return those that stand.

        Reveal the returned answers, never the ones passed in.

        Parameters
        ----------
        measurement : str
            The digest of a measurement that was debited.
        answers : Mapping
            Key -> finite noisy value, kept to the last bit. A key that has an answer keeps it.
        listings : int
            How many listings of the measurement were known when the answers were drawn.
        durable : bool
            Whether they outlive a power failure. Without it only a session that ends with the machine may know the
            digest: after the failure nobody can request a second answer.

        Returns
        -------
        dict or None
            The same keys -> the values in the ledger, which another process may have put there first. None where there
            are further listings by now, which may reveal something of the keys: nothing was stored, draw again.

        Raises
        ------
        LedgerError
            When the measurement was never debited, or a value is not a finite float. Nothing is stored.
        """
        standing = self.store_together({measurement: one_by_one(answers)}, listings, durable)
        return dict(zip(answers, standing[measurement], strict=True)) if standing else None

    def store_together(
        self, drawn: Mapping[str, NewAnswers], listings: int = 0, durable: bool = True
    ) -> dict[str, Sequence[float]]:
        """Store the answers of several measurements as `store_answers` does, in one transaction.

        Returns
        -------
        dict
            Digest -> the numbers that stand, in order; without those of a measurement with further listings by now.
        """

        def standing(transaction: Transaction) -> dict[str, Sequence[float]]:
            found = dict[str, Sequence[float]]()
            for measurement, new in drawn.items():
                stored = self._paid_for(transaction, measurement)
                if len(stored.listings) == listings:
                    found[measurement] = stored.add(transaction, measurement, new, {})
            return found

        return self._store.write(standing, durable)

    def store_listing(
        self, measurement: str, rows: Mapping[bytes, float], listing: Mapping[str, Any], *, listings: int, answers: int
    ) -> None:
        """Store a listing with the rows that it adds, as one entry, unless its basis has changed.

        Parameters
        ----------
        measurement : str
            The digest of a measurement that was debited.
        rows : Mapping
            Key -> finite noisy value, of the keys that are listed and had no answer; none is an answer too.
        listing : Mapping
            Its public domain and threshold, as plain data.
        listings, answers : int
            How many listings and answers of the measurement were known when the rows were drawn. Where there are more
            by now nothing is stored: read them, and draw again.

        Raises
        ------
        LedgerError
            As `store_answers`.
        """

        def added(transaction: Transaction) -> None:
            stored = self._paid_for(transaction, measurement)
            if (len(stored.listings), len(stored.answers)) == (listings, answers):
                # by key: their order may depend on the data
                stored.add(transaction, measurement, one_by_one(dict(sorted(rows.items()))), {"listing": dict(listing)})

        self._store.write(added)

    def _paid_for(self, transaction: Transaction, measurement: str) -> Stored:
        if Payer().unpaid(transaction, [measurement]):
            raise LedgerError("a measurement must be debited before its answers are stored: call debit first")
        return self._stored(transaction, measurement)

    def _stored(self, transaction: Transaction, measurement: str) -> Stored:
        """Everything stored of a measurement now; the caller is in a transaction."""
        stored = self._remembered.pop(measurement, None) or Stored()
        if not chain.holds(transaction, stored.last):  # an older copy was put in the place of the ledger
            stored = Stored()
        before = len(stored.answers)
        stored.catch_up(transaction, self._store.name, measurement)
        self._remembered[measurement] = stored
        grown, kept = len(stored.answers) > before, self._remembered
        while grown and len(kept) > 1 and sum(len(each.answers) for each in kept.values()) > _REMEMBERED:
            del kept[next(iter(kept))]
        return stored

    # history

    def head(self) -> str:
        """The last entry by number and hash: kept elsewhere, it shows whether a ledger lost entries."""
        self._store.flush()  # it may be kept longer than what only the memory of the machine has
        return str(self._store.read(chain.head))

    def check_head(self, expected: str) -> None:
        """Refuse a ledger that does not contain an entry which it had, as `head` gave it."""
        self._store.read(lambda held: chain.check_head(held, self._store.name, Head.parse(expected), EXPECTED))

    def entries(self) -> Iterator[Entry]:
        """The history, from the first entry on, as far as it goes when the iteration gets there."""
        after = 0
        while page := self._store.read(partial(chain.read, condition="sequence > ?", values=(after,), size=500)):
            yield from page
            after = page[-1].sequence

    def events(self, analyst: str | None = None, after: int = 0, size: int = -1) -> tuple[Event, ...]:
        """The history in epsilon: all entries but those that store answers.

        Of an analyst, the debits from the analyst's accounts, by the accounts that they are in, counted from 1.

        Parameters
        ----------
        analyst : str, optional
            The analyst.
        after : int
            The number of an event: those after it.
        size : int
            The most of them; -1 for all.
        """
        if analyst is None:
            page = partial(chain.read, condition="kind <> 'answers' AND sequence > ?", values=(after,), size=size)
            return tuple(_event(each, each.target, each.sequence) for each in self._store.read(page))
        payer = Payer(analyst)

        def own(transaction: Transaction) -> tuple[Event, ...]:
            names = {each.name: source for source, each in payer.balances(accounts.all_accounts(transaction)).items()}
            marks = ", ".join("?" * len(names)) or "NULL"
            found = chain.read(transaction, f"kind = 'debit' AND target IN ({marks})", (*names,), size, after)
            return tuple(_event(each, names[each.target], number) for number, each in enumerate(found, after + 1))

        return self._store.snapshot(own)

    def verify(self) -> None:
        """Compute the hash chain again, and check every row, answer and plan against the entries.

        Raises
        ------
        LedgerError
            Naming the first entry that is broken, or the row that does not follow from the entries.

        Notes
        -----
        No privacy cost. A file that was written anew as a whole, or an old copy with its files, is found out
        only by a head that is kept elsewhere.
        """

        def checked(transaction: Transaction) -> None:
            self._store.check(transaction)
            verify(transaction, self._store.name, whole=True)

        self._store.snapshot(checked)

    def close(self) -> None:
        """Close the ledger, whose debits are durable already."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _event(entry: Entry, account: str, number: int) -> Event:
    """An entry as it is shown, under a name of the account and a number."""
    text = entry_text(entry.kind, entry.amount, entry.content)
    return Event(number, entry.time, entry.kind, account, from_nano(entry.amount), text, entry.label, entry.actor)
