"""Budgets that a session shows, and those of untrusted analysts within them.

An analyst pays from their own budget the cost that a release would have without the requests of others. An analyst is
shown nothing of what others did, with one exception: that a source is exhausted. `docs/proofs/analysts.md` states the
guarantee. Python cannot hide the rest from code that has these objects: untrusted programs are text, and come from
another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NoReturn

from wpinq.errors import LedgerError, SessionError
from wpinq.expr.epochs import over_all
from wpinq.kernel.ledger.accounts import no_account
from wpinq.kernel.ledger.debit import check_analyst, no_budget
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource, bill_of, prepare_batch
from wpinq.measure.bill import Bill
from wpinq.measure.group import Releasing, Together
from wpinq.measure.statement import Balance, Event
from wpinq.noise.epsilon import from_nano
from wpinq.noise.epsilon_text import Epsilon
from wpinq.plan.node import Planned
from wpinq.runtime.public import public


class Budgets:
    """The budgets of sources, or of an analyst within them: balances, history and bills.

    Parameters
    ----------
    ledger : Ledger
        Where budgets are kept.
    declared : mapping
        The sources by name: a session's own mapping, which changes.
    analyst : str, optional
        The analyst; None for the sources.
    """

    def __init__(self, ledger: Ledger, declared: Mapping[str, DeclaredSource], analyst: str | None = None) -> None:
        self._ledger, self._declared, self._analyst = ledger, declared, analyst

    def _check_open(self) -> None:
        """Refuse where a session is closed."""

    def balances(self) -> tuple[Balance, ...]:
        """The balances by account; for an analyst, without the remainders of the sources.

        Examples
        --------
        >>> import wpinq as wp
        >>> words = wp.source("words", str, unit="one word")
        >>> with wp.Session() as session:
        ...     session.protect(words, ["to", "be"], budget=1)
        ...     _ = session.release(words.noisy_count(epsilon=0.25, over=["to"]), label="a first look")
        ...     print(*session.balances())
        ...     print(*session.history(), sep="\\n")  # doctest: +ELLIPSIS
        words: spent 0.25 of 1, 0.75 remaining; protects one word
        1 ... open account words 1 budget 1, unit one word
        2 ... debit words 0.25 NoisyCount(0.25)  "a first look"
        """
        self._check_open()
        return self._ledger.balances(self._analyst)

    def balance(self, source: str | Planned) -> Balance:
        """The balance of a source, or of an account that several tables share.

        Raises
        ------
        LedgerError
            When there is none.
        """
        account, found = self._paying(source), {each.account: each for each in self.balances()}
        if account not in found:
            raise LedgerError(no_budget(self._analyst, account) if self._analyst else no_account(account, found))
        return found[account]

    def remaining(self, source: str | Planned) -> Epsilon:
        """The remaining epsilon of a source."""
        return self.balance(source).remaining

    def spent(self, source: str | Planned, over: Literal["person"] | None = None) -> Epsilon:
        """The spent epsilon of a source, over all versions and sessions.

        With `over="person"`, of a series, the sum over its epochs: the loss of a person who is in all of them.
        """
        return self.balance(source if over is None else over_all(self._paying(source))).spent

    def history(self) -> tuple[Event, ...]:
        """All events in order, except stored answers; for an analyst, their own debits.

        An analyst's events are counted from 1.
        """
        self._check_open()
        return self._ledger.events(self._analyst)

    def bill(self, measurements: Together, *, fresh: bool = False) -> Bill:
        """The cost of measurements, before replay and earlier releases of partitions lower it.

        Parameters
        ----------
        measurements : as `Session.release` takes them
            The measurements that are released together.
        fresh : bool
            Whether they are released with `fresh=True`: the same measurement then costs as often as it is there.
        """
        return bill_of(measurements, dict(self._declared), fresh)

    def affords(self, measurements: Together) -> int:
        """The number of new releases of these measurements that the budgets cover.

        It is a lower bound: measurements that are already in the ledger cost less. So do parts of partitions for
        which others paid more.

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
        left = {each.account: each.remaining for each in self.balances()}
        return self.bill(measurements, fresh=True).times(left)

    def _paying(self, source: str | Planned) -> str:
        """The account that pays for a source; the name itself where it is none."""
        name = source if isinstance(source, str) else getattr(source.plan.operator, "source", "")
        declared = self._declared.get(name)
        return name if declared is None else declared.source.account


class AnalystBudgets(Budgets):
    """The budgets of an analyst, and the cost of a release to them; it needs no data.

    A ledger and declarations suffice.

    Parameters
    ----------
    ledger : Ledger
        Where the curator gave the analyst budgets (`Ledger.set_budget`).
    analyst : str
        Up to 64 ASCII letters, digits and "_", with a letter first.
    declared : mapping
        The sources by name, as `Session.declared` gives them.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.kernel.analysts import AnalystBudgets
    >>> from wpinq.kernel.ledger.ledger import Ledger
    >>> words, ledger = wp.source("words", str, unit="one word"), Ledger()
    >>> session = wp.Session(ledger)
    >>> session.protect(words, ["to", "be"], budget=2)
    >>> session.set_budget("words", 1, analyst="alice")
    >>> _ = session.analyst("alice").release(words.noisy_count(0.25, over=["to"]))
    >>> alice = AnalystBudgets(ledger, "alice", session.declared())
    >>> alice.balances()
    (words: spent 0.25 of 1, 0.75 remaining; protects one word,)
    >>> alice.quote(words.noisy_count(0.25, over=["be"])), alice.quote(words.noisy_count(0.5, over=["be"]))
    ({}, {'words': 0.5})
    """

    def __init__(self, ledger: Ledger, analyst: str, declared: Mapping[str, DeclaredSource]) -> None:
        self.name = check_analyst(analyst)
        super().__init__(ledger, declared, self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"

    def quote(self, measurements: Together, *, fresh: bool = False) -> dict[str, Epsilon]:
        """The debit that a release would make now from the own budgets, by account.

        Amounts are multiples of 10⁻⁹. Measurements that these budgets already paid for cost nothing more. The parts of
        a partition cost the amount by which their largest rises. The quote does not say whether the budget covers it,
        and is empty where nothing is new.
        """
        batch = prepare_batch(measurements, self._declared, fresh)
        quoted = self._ledger.quote(batch.by_digest, batch.price, self.name)
        return {account: from_nano(charge) for account, charge in quoted.items()}

    def __reduce__(self) -> NoReturn:
        raise SessionError("an analyst's budgets are in a ledger: give the ledger and the name again")


@public
class Analyst(AnalystBudgets, Releasing):
    """An analyst's view of a session: releases from the own budgets, and their balances.

    Made by `Session.analyst`, with the `release` of its `Releaser`. A release debits the own budgets too, and raises
    BudgetExceeded when one does not cover it, or, as `SourceExhausted`, when a source's does not. What another analyst
    released before is answered from there. It costs the own budget all the same.
    """

    def __init__(
        self, ledger: Ledger, analyst: str, declared: Mapping[str, DeclaredSource], release: Callable[..., Any]
    ) -> None:
        super().__init__(ledger, analyst, declared)
        self._release = partial(release, analyst=self.name)
