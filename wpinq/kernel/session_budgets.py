"""The budgets of a session's sources: what its curator decides of them, and is told; and what a release would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from wpinq.kernel.charge import budget_to_nano, from_nano
from wpinq.kernel.ledger import Account, Ledger
from wpinq.kernel.orders import Protected
from wpinq.kernel.way_of_release import WayOfRelease
from wpinq.measure.bill import Bill
from wpinq.measure.compound import Together
from wpinq.measure.delta_reading import parse_delta
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.measurement import Measurement
from wpinq.measure.statement import Balance, Event
from wpinq.measure.statement_page import statement_html


class SessionBudgets:
    """What a session has of the ledger: for its curator, and for whom the curator trusts.

    Parameters
    ----------
    ledger : Ledger
        Where budgets are kept.
    protected : mapping
        What the session protects, by source: its own mapping, which changes.
    way : WayOfRelease
        Which knows whether the session is open.
    run : str
        The random word that the session writes beside its debits.
    """

    def __init__(self, ledger: Ledger, protected: Mapping[str, Protected], way: WayOfRelease, run: str) -> None:
        self._ledger, self._protected, self._way, self._run = ledger, protected, way, run
        self._opened_at = int(ledger.head().partition(":")[0])
        self._debited: dict[str, Fraction] | None = None  # until the session is closed

    def set_budget(self, source: str, budget: object, *, analyst: str | None = None) -> None:
        """Change a source's budget: a recorded act of the curator, never below what is spent.

        Parameters
        ----------
        source : str
            Its name, or that of an account.
        budget : number
            Epsilon.
        analyst : str, optional
            Give the budget to this analyst instead, within the source's: see `analyst`.
        """
        self._way.check_open()
        self._ledger.set_budget(self._paying(source), budget_to_nano(parse_epsilon(budget)), analyst)

    def reopen(self, source: str) -> bool:
        """Answer analysts again over a source that a failed evaluation closed: a recorded act of the curator.

        Each time is one bit more that an analyst may have learnt of the data, outside of every epsilon: find out first
        what was asked (`history`), and whether limits or declarations have to change.

        Parameters
        ----------
        source : str
            Its name, or that of its account: all tables of an account are closed and opened together.

        Returns
        -------
        bool
            Whether it was closed.
        """
        self._way.check_open()
        return self._ledger.open_to_analysts(self._paying(source))

    def closed_to_analysts(self) -> tuple[str, ...]:
        """The accounts that answer no analyst until `reopen`, by name; also those that other sessions closed."""
        self._way.check_open()
        return tuple(sorted(self._ledger.closed_to_analysts()))

    def close_to_analysts(self, source: str) -> None:
        """Answer no analyst over a source from now on, until `reopen`: on record, before this returns.

        For who runs untrusted sessions in processes: where one of those ended in the middle of a release, nothing else
        closes its sources.
        """
        self._way.check_open()
        self._ledger.close_to_analysts([self._paying(source)])

    def remaining(self, source: str) -> Fraction:
        """The epsilon that is left of a source's budget, or of an account's that several tables share."""
        return from_nano(self._account(source).remaining)

    def bill(self, measurements: Together, *, fresh: bool = False) -> Bill:
        """What measurements would cost, before replay and earlier releases of partitions lower it.

        Parameters
        ----------
        measurements : as `release` takes them
            What is to be released together.
        fresh : bool
            Whether they are released with `fresh=True`: the same measurement then costs as often as it is there.
        """
        return self._way.bill(measurements, fresh)

    def affords(self, measurements: Measurement | Sequence[Measurement]) -> int:
        """How many more releases of these measurements, together and anew each time, the budgets cover.

        What the ledger holds already, and parts of partitions of which others paid for more, cost less than is reckoned
        with here.

        Notes
        -----
        Privacy cost: none.

        Examples
        --------
        >>> import wpinq as wp
        >>> items = wp.source("items", int)
        >>> with wp.Session() as session:
        ...     session.protect(items, [1, 2, 3], budget=1)
        ...     session.affords(items.noisy_count(epsilon=0.3))
        3
        """
        cost = self.bill(measurements, fresh=True)
        return cost.times({account: self.remaining(account) for account in cost})

    def spent(self, source: str, *, delta: object = None) -> Fraction:
        """The epsilon that was spent on a source, ever; on all its tables, where it shares an account.

        Parameters
        ----------
        source : str
            Its name, or that of an account.
        delta : number, optional
            Between 0 and 1: the same history, read by the noise that was released, as an epsilon at this delta.
            Budgets are kept in the pure epsilon all the same. It is a reading, and no promise where what was released,
            or what it was charged, was chosen by looking at answers.

        Notes
        -----
        Privacy cost: none.
        """
        self._way.check_open()
        if delta is None:
            return from_nano(self._account(source).spent)
        return self._ledger.spent_at(self._paying(source), parse_delta(delta))

    def accounts(self) -> tuple[Balance, ...]:
        """How the budget of every account of the ledger stands, by name.

        Examples
        --------
        >>> import wpinq as wp
        >>> words = wp.source("words", str, unit="one word")
        >>> with wp.Session() as session:
        ...     session.protect(words, ["to", "be"], budget=1)
        ...     _ = session.release(words.noisy_count(epsilon=0.25, over=["to"]), label="a first look")
        ...     print(*session.accounts())
        ...     print(*session.history(), sep="\\n")  # doctest: +ELLIPSIS
        words: spent 0.25 of 1, 0.75 remaining; protects one word
        1 ... open account words 1 budget 1, unit one word
        2 ... debit words 0.25 NoisyCount(0.25)  "a first look"
        """
        self._way.check_open()
        return self._ledger.balances()

    def history(self) -> tuple[Event, ...]:
        """What happened to the accounts of the ledger, ever: opened, set to another budget, debited."""
        self._way.check_open()
        return self._ledger.events()

    def _repr_html_(self) -> str:
        return "<div>a closed session</div>" if self._way.closed else statement_html(self.accounts(), self.history())

    def head(self) -> str:
        """The last entry of the ledger, by its number and hash: keep it elsewhere, and give it as `expect_head`.

        It stands for the whole history up to there. `wpinq budget` prints it, and so does each run.
        """
        self._way.check_open()
        return self._ledger.head()

    def debited(self) -> dict[str, Fraction]:
        """What this session itself has debited from each account, also where a release then failed.

        It is read from the ledger, where debits carry a random word of their session's: none is left out, whenever the
        session was interrupted.
        """
        if self._debited is not None:
            return dict(self._debited)
        spent = self._ledger.debited(self._run, self._opened_at)
        return {account: from_nano(nano) for account, nano in spent.items()}

    def _account(self, name: str) -> Account:
        self._way.check_open()
        return self._ledger.account(self._paying(name))

    def _paying(self, name: str) -> str:
        """The account that pays for a source of this session; the name itself where it is none."""
        held = self._protected.get(name)
        return name if held is None else held.source.account
