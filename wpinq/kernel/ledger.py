"""The ledger: what every source may spend, what it spent, on which measurements, and the answers given.

A debit is one transaction: it finds what is new, prices it, charges every source or none, and is on the disk before
anything is evaluated. Nothing is ever refunded. What was paid for is free for ever after, and a key that was
answered keeps its answer: a second noisy value for it could be averaged with the first.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import TracebackType
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel import debits, ledger_audit, ledger_history, ledger_statement
from wpinq.kernel import ledger_tables as tables
from wpinq.kernel.accounts import OF_ANALYST, AccountTerms, check_same, declared_account
from wpinq.kernel.charge import from_nano
from wpinq.kernel.debits import MARK, Side
from wpinq.kernel.gates import CLOSED, OPEN, Gates, said
from wpinq.kernel.ledger_file import LedgerFile, data_version
from wpinq.kernel.ledger_head import Head
from wpinq.kernel.ledger_history import Entry, decimal_epsilon
from wpinq.kernel.ledger_releases import Terms
from wpinq.kernel.ledger_tables import Account, PartsOf, Price, Pricing
from wpinq.measure import delta_reading
from wpinq.measure.statement import Balance, Event

__all__ = ["Account", "Entry", "Ledger", "PartsOf", "Price", "Pricing", "Terms"]


class Ledger:
    """Budgets, debits and answers, durable and shared by threads and processes.

    Parameters
    ----------
    path : path or None
        An SQLite file on a local disk; None keeps the ledger in memory, and its budgets with this process only.
    create : bool
        Whether a file that is missing becomes a new ledger.
    expect_head : str, optional
        A head that the ledger has had, as `head` gave it. One that has lost that entry is refused, and none is made.

    Raises
    ------
    LedgerError
        When the file cannot be opened, is empty or not a ledger, lacks its triggers and checks, or is not what its last
        entries and their totals say.

    Notes
    -----
    Opening takes time that goes with the accounts, not with the history. A ledger of an older format is verified and
    brought to the format of today.

    No privacy cost: the ledger never sees protected data. It stores what it is given: digests and public
    descriptions of measurements, keys that were asked for, and noisy values. Measurement descriptions, source names
    and units must be public.

    Examples
    --------
    >>> with Ledger() as ledger:
    ...     _ = ledger.open_account("edges", schema="(src: int)", unit="edge", unit_weight=Fraction(1), budget=10**9)
    ...     price = lambda new, parts_of: Pricing({"edges": 3 * 10**8 * len(new)}, {})
    ...     new = ledger.debit({"digest of a measurement": "degrees"}, price)
    ...     again = ledger.debit({"digest of a measurement": "degrees"}, price)
    ...     (len(new), len(again), ledger.account("edges").remaining)
    (1, 0, 700000000)
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, create: bool = True, expect_head: str | None = None
    ) -> None:
        expected = None if expect_head is None else Head.parse(expect_head)
        self._file = LedgerFile(None if path is None else os.fspath(path), create, expected)
        self._gates = Gates()
        # measurements whose answers were found to be those that were stored: as of when, and how many there were
        self._sound: dict[str, tuple[int, int]] = {}
        self._raised: dict[str, int] = {}  # partitions whose demands were those of the entries, and by when

    def head(self) -> str:
        """The last entry by its number and hash: keep it elsewhere, to know a ledger that lost entries by it."""
        return str(self._file.read(ledger_history.head))

    def check_head(self, expected: str) -> None:
        """Refuse a ledger that does not hold an entry which it had, as `head` gave it."""
        check = partial(ledger_audit.check_head, name=self._file.name, known=Head.parse(expected))
        self._file.read(partial(check, told=ledger_audit.EXPECTED))

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
        own = Side(analyst).named(name)
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

    def close_to_analysts(self, names: Iterable[str]) -> frozenset[str]:
        """Record that accounts answer no analyst until they are opened again; which of them were open until now.

        Nothing else changes: budgets and answers stay, and a session that is not in untrusted mode answers.
        """

        def shut(connection: sqlite3.Connection) -> frozenset[str]:
            asked = frozenset(names)
            found = asked - self._gates.closed(connection, asked)
            self._set_gates(connection, found, CLOSED)
            return found

        return self._file.write(shut)

    def open_to_analysts(self, name: str) -> bool:
        """Record that an account answers analysts again: an act of the curator. Whether it was closed."""

        def opened(connection: sqlite3.Connection) -> bool:
            tables.get_account(connection, name)
            found = self._gates.closed(connection, [name])
            self._set_gates(connection, found, OPEN)
            return bool(found)

        return self._file.write(opened)

    def closed_to_analysts(self, names: Iterable[str] | None = None) -> frozenset[str]:
        """Which of some accounts answer no analyst, or of all."""
        return self._file.read(lambda connection: self._gates.closed(connection, names))

    def _set_gates(self, connection: sqlite3.Connection, names: Iterable[str], state: str) -> None:
        for name in sorted(names):
            budget = tables.get_account(connection, name).budget
            self._append(connection, "set budget", name, budget, said(budget, state))

    def account(self, name: str) -> Account:
        """The account of a source. Raises LedgerError when there is none."""
        return self._file.read(lambda connection: tables.get_account(connection, name))

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        return self._file.read(tables.all_accounts)

    def debit(
        self, measurements: Mapping[str, str], price: Price, label: str = "", run: str = "", analyst: str | None = None
    ) -> frozenset[str]:
        """Pay, in one transaction, for the measurements that were never paid for.

        Parameters
        ----------
        measurements : Mapping
            Digest -> public description. A digest stands for everything that an answer depends on.
        price : callable
            Called at most once for each side that pays, with the digests that are new to it and a function that gives
            its stored demands of a partition; it must be quick, and must not use the ledger. Other writers wait for it.
        label : str
            What to write beside the debit; nothing depends on it.
        run : str
            A word of the caller's for all that it debits itself: see `debited`.
        analyst : str, optional
            Who asks, where that is an analyst with a budget within the sources': beside the sources, which pay for what
            nobody asked for before, the analyst pays for all that the analyst did not.

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
            tables.check_text("the digest of a measurement", digest)
            tables.check_text("the description of a measurement", description)
            if MARK in digest:
                raise LedgerError(f"no {MARK} is in the digest of a measurement: it stands before an analyst's name")
        said = {key: word for key, word in (("label", label), ("run", run)) if word}

        def debited(connection: sqlite3.Connection) -> frozenset[str]:
            demands = partial(self._demands, connection)
            new, entries = debits.settled(connection, measurements, price, demands, said, analyst)
            for entry in entries:
                self._append(connection, "debit", entry.account, entry.charge, entry.content, entry.first)
            # there were as many measurements as the totals say, so these have no answers yet
            self._sound |= dict.fromkeys(new, (data_version(connection), 0))
            return new

        return self._file.write(debited)

    def quote(self, measurements: Iterable[str], price: Price, analyst: str | None = None) -> Mapping[str, int]:
        """What `debit` would charge now: the sources, or an analyst within them, whom it tells nothing of others.

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
        side, digests = Side(analyst), list(measurements)

        def quoted(connection: sqlite3.Connection) -> Mapping[str, int]:
            demands = partial(self._demands, connection)
            return side.priced(side.unpaid(connection, digests), price, demands).charges

        return self._file.snapshot(quoted)

    def _demands(self, connection: sqlite3.Connection, partition: str) -> dict[str, Fraction]:
        if self._raised.get(partition) != self._file.rivals:  # who else has written may be no ledger
            ledger_audit.check_parts(connection, self._file.name, partition)
            self._raised[partition] = self._file.rivals
        return tables.demands(connection, partition)

    def debited(self, run: str, after: int = 0) -> dict[str, int]:
        """What was debited under a word of the caller's, by account, in nano-epsilon.

        Parameters
        ----------
        run : str
            As given to `debit`.
        after : int
            The number of an entry after which all that is.
        """
        return self._file.read(lambda connection: ledger_history.debited(connection, run, after))

    def spent_at(self, name: str, delta: Fraction, analyst: str | None = None) -> Fraction:
        """What an account spent, read at a δ: see `measure.delta_reading`. What is enforced is the pure sum.

        Parameters
        ----------
        name : str
            The account.
        delta : Fraction
            Between 0 and 1.
        analyst : str, optional
            Whose account within it, where it is not the account itself.

        Raises
        ------
        LedgerError
            When there is no such account, or an entry records what no debit can have recorded.
        """
        own = Side(analyst).named(name)
        spent, history = self._file.snapshot(
            lambda connection: (tables.get_account(connection, own).spent, ledger_history.charged(connection, own))
        )
        return delta_reading.spent_at(delta, history, from_nano(spent))

    def paid(self, measurements: Iterable[str], analyst: str | None = None) -> frozenset[str]:
        """Which of these digests were paid for, ever: by the sources, or by an analyst."""
        digests, side = frozenset(measurements), Side(analyst)
        return digests - self._file.read(lambda connection: side.unpaid(connection, digests))

    def answers(self, measurement: str, keys: Iterable[bytes] | None = None) -> dict[bytes, float]:
        """The stored answers of a measurement: for these keys, or all by increasing key.

        Parameters
        ----------
        measurement : str
            Its digest. One that was never debited has no answers.
        keys : iterable of bytes, optional
            The keys to look up.

        Returns
        -------
        dict
            Key -> value, in the order of `keys`. A key without a stored answer is not in it, which says only
            that it was never asked for.
        """
        wanted = None if keys is None else list(dict.fromkeys(keys))
        if wanted is not None and not all(type(key) is bytes for key in wanted):
            raise LedgerError("answers are kept for keys of bytes")

        def found(connection: sqlite3.Connection) -> dict[bytes, float]:
            self._check_answers(connection, measurement)
            identity = tables.measurement_ids(connection, [measurement]).get(measurement)
            if identity is None:
                return {}
            if wanted is None:
                query = "SELECT key, value FROM answers WHERE measurement = ? ORDER BY key"
                rows = connection.execute(query, (identity,)).fetchall()
                return {key: tables.from_bytes(value) for key, value in rows}
            stored = tables.stored_answers(connection, identity, sorted(wanted))
            return {key: tables.from_bytes(stored[key][0]) for key in wanted if key in stored}

        return self._file.snapshot(found)

    def listings(self, measurement: str) -> list[Any]:
        """The listings of a measurement as `store_listing` was given them, in order.

        Read them before the answers: one that comes in between is found out when what was drawn is stored.
        """

        def found(connection: sqlite3.Connection) -> list[Any]:
            self._check_answers(connection, measurement)
            return tables.listings(connection, measurement)

        return self._file.snapshot(found)

    def _check_answers(self, connection: sqlite3.Connection, measurement: str) -> None:
        """Refuse answers that are not those that were stored: when they are first used, and when others added some.

        None is changed or taken away: where nobody added any, they are as many. The caller is in a transaction.
        """
        version, known = data_version(connection), self._sound.get(measurement)
        if known is not None and known[0] == version:
            return
        identity = tables.measurement_ids(connection, [measurement]).get(measurement)
        there = 0 if identity is None else tables.count(connection, "answers", identity)
        if known is None or known[1] != there:
            ledger_audit.check_answers(connection, self._file.name, measurement)
        self._sound[measurement] = version, there

    def _count_answers(self, measurement: str, added: int) -> None:
        """Keep in mind that this process added answers, after they were checked: none of them is somebody else's."""
        version, there = self._sound[measurement]
        self._sound[measurement] = version, there + added

    def store_answers(
        self, measurement: str, answers: Mapping[bytes, float], listings: int = 0
    ) -> dict[bytes, float] | None:
        """Store answers, durably, and return those that stand. Reveal these, never the ones passed in.

        Parameters
        ----------
        measurement : str
            The digest of a measurement that was debited.
        answers : Mapping
            Key -> finite noisy value, kept to the last bit. A key that has an answer keeps it.
        listings : int
            How many listings of the measurement were known when the answers were drawn.

        Returns
        -------
        dict or None
            The same keys -> the values in the ledger, which another process may have put there first. None where there
            are further listings by now, which may say something of the keys: nothing was stored, draw again.

        Raises
        ------
        LedgerError
            When the measurement was never debited, or a value is not a finite float. Nothing is stored.
        """
        given = sorted(answers.items()) if all(type(key) is bytes for key in answers) else None
        if given is None or not all(isinstance(value, float) and math.isfinite(value) for _, value in given):
            raise LedgerError("answers are finite floats for keys of bytes: nothing was stored")

        def standing(connection: sqlite3.Connection) -> dict[bytes, float] | None:
            self._check_answers(connection, measurement)
            identity = tables.measurement_ids(connection, [measurement]).get(measurement)
            if identity is None:
                raise LedgerError("a measurement must be debited before its answers are stored: call debit first")
            if tables.count(connection, "listings", identity) != listings:
                return None
            entry = self._next_entry(connection)
            offered = [(key, tables.to_bytes(value)) for key, value in given]
            stored, ours = {key: float(value) for key, value in answers.items()}, offered
            if tables.insert_answers(connection, identity, entry, offered) < len(offered):
                found = tables.stored_answers(connection, identity, [key for key, _ in offered])
                stored = {key: tables.from_bytes(found[key][0]) for key in answers}
                ours = [(key, value) for key, (value, by) in sorted(found.items()) if by == entry]
            if ours:
                self._count_answers(measurement, len(ours))
                said = ledger_history.summary(measurement, ours)
                self._append(connection, ledger_history.ANSWERS, "", 0, said)
            return stored

        return self._file.write(standing)

    def store_listing(
        self, measurement: str, rows: Mapping[bytes, float], listing: Mapping[str, Any], *, listings: int, answers: int
    ) -> None:
        """Store a listing with the rows that it adds, as one entry, unless what it was drawn from has changed.

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
        given = sorted((key, tables.to_bytes(value)) for key, value in rows.items() if math.isfinite(value))

        def added(connection: sqlite3.Connection) -> None:
            self._check_answers(connection, measurement)
            identity = tables.measurement_ids(connection, [measurement]).get(measurement)
            if identity is None or len(given) < len(rows):
                raise LedgerError(
                    "a listing is of a measurement that was debited, with finite floats: call debit first"
                )
            if [tables.count(connection, of, identity) for of in ("listings", "answers")] != [listings, answers]:
                return
            tables.insert_answers(connection, identity, self._next_entry(connection), given)
            self._count_answers(measurement, len(given))
            content = ledger_history.summary(measurement, given) | {"listing": dict(listing)}
            self._append(connection, ledger_history.ANSWERS, "", 0, content)

        self._file.write(added)

    def _opened(self, connection: sqlite3.Connection, declared: Account) -> Account:
        """The account as it stands, opened here where there was none."""
        known = tables.find_account(connection, declared.name)
        if known is not None:
            return check_same(known, declared)
        content = {"schema": declared.schema, "unit": declared.unit, "unit_weight": str(declared.unit_weight)}
        self._append(connection, "open account", declared.name, declared.budget, content)
        return declared

    def _next_entry(self, connection: sqlite3.Connection) -> int:
        """The number that the next entry will have."""
        self._file.last = self._file.last or ledger_history.current(connection)
        return self._file.last.head.sequence + 1

    def _append(
        self, connection: sqlite3.Connection, kind: str, source: str, amount: int, content: Any, measurements: int = 0
    ) -> None:
        last = self._file.last
        self._file.last = ledger_history.append(connection, kind, source, amount, content, last, measurements)

    def entries(self) -> Iterator[Entry]:
        """The history, from the first entry on, as far as it goes when the iteration gets there."""
        after = 0
        while True:
            page = self._file.read(partial(ledger_history.page, after=after))
            if not page:
                return
            yield from page
            after = page[-1].sequence

    def balances(self, analyst: str | None = None) -> tuple[Balance, ...]:
        """How the budgets of all accounts stand, by name, in epsilon; or an analyst's, by what they are in."""
        return self._file.snapshot(partial(ledger_statement.balances, analyst=analyst))

    def events(self, analyst: str | None = None) -> tuple[Event, ...]:
        """The history in epsilon: all entries but those that store answers.

        Of an analyst, the debits from the analyst's accounts, by the accounts that they are in, counted from 1.
        """
        if analyst is not None:
            return self._file.snapshot(partial(ledger_statement.analyst_events, analyst=analyst))
        shown = (each for each in self.entries() if each.kind != ledger_history.ANSWERS)
        return tuple(ledger_statement.event(each, each.source, each.sequence) for each in shown)

    def verify(self) -> None:
        """Compute the hash chain again, and check every account, demand and answer against the entries.

        Raises
        ------
        LedgerError
            Naming the first entry that is broken, or what does not follow from the entries.

        Notes
        -----
        No privacy cost. Opening finds most of this at once. Who rewrites the whole file, or puts back an old copy with
        what stands beside it, is found out only by a head that is kept elsewhere.
        """

        self._file.snapshot(lambda connection: ledger_audit.verify(connection, self._file.name))

    def close(self) -> None:
        """Close the ledger. All that was spent and stored is durable already."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
