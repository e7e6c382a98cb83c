"""The ledger: what every source may spend, what it spent, on which measurements, and the answers given.

A debit is one transaction: it finds what is new, prices it, charges every source or none, and is on the disk before
anything is evaluated. Nothing is ever refunded. What was paid for is free for ever after.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, debit, ledger_audit
from wpinq.kernel.ledger import ledger_tables as tables
from wpinq.kernel.ledger.chain import Entry
from wpinq.kernel.ledger.debit import MARK, Payer
from wpinq.kernel.ledger.head import Head
from wpinq.kernel.ledger.ledger_accounts import LedgerAccounts
from wpinq.kernel.ledger.ledger_answers import LedgerAnswers
from wpinq.kernel.ledger.ledger_releases import Terms
from wpinq.kernel.ledger.ledger_tables import Account, PartsOf, Price, Pricing
from wpinq.kernel.ledger.nano_epsilon import from_nano
from wpinq.kernel.ledger.store import LedgerFile
from wpinq.measure import delta_reading

__all__ = ["Account", "Entry", "Ledger", "PartsOf", "Price", "Pricing", "Terms"]


class Ledger(LedgerAccounts, LedgerAnswers):
    """Budgets, debits and answers, durable and shared by threads and processes.

    Parameters
    ----------
    path : path or None
        An SQLite file on a local disk; None keeps the ledger in memory, and its budgets with this process only.
    create : bool
        Whether a file that is missing becomes a new ledger.
    expected_head : str, optional
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
        self, path: str | os.PathLike[str] | None = None, *, create: bool = True, expected_head: str | None = None
    ) -> None:
        expected = None if expected_head is None else Head.parse(expected_head)
        super().__init__(LedgerFile(None if path is None else os.fspath(path), create, expected))
        self._raised: dict[str, int] = {}  # partitions whose demands were those of the entries, and by when

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
            new, entries = debit.settled(connection, measurements, price, demands, said, analyst)
            for entry in entries:
                self._append(connection, "debit", entry.account, entry.charge, entry.content, entry.first)
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
        side, digests = Payer(analyst), list(measurements)

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
        return self._file.read(lambda connection: chain.debited(connection, run, after))

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
        own = Payer(analyst).named(name)
        spent, history = self._file.snapshot(
            lambda connection: (tables.get_account(connection, own).spent, chain.charged(connection, own))
        )
        return delta_reading.spent_at(delta, history, from_nano(spent))

    def paid(self, measurements: Iterable[str], analyst: str | None = None) -> frozenset[str]:
        """Which of these digests were paid for, ever: by the sources, or by an analyst."""
        digests, side = frozenset(measurements), Payer(analyst)
        return digests - self._file.read(lambda connection: side.unpaid(connection, digests))
