"""Analysts who are not trusted: what each has of budgets within those of the sources, asks for, and is shown.

An analyst pays from the own budget what a release would cost if nobody else had asked for anything, and is shown
nothing of what others did, with one exception: that a source is exhausted. `docs/proofs/analysts.md` has what is
promised. Python cannot keep who holds these objects from looking further: programs that are not trusted are text, and
come from another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

from wpinq.errors import LedgerError, SessionError
from wpinq.kernel.ledger.debit import check_analyst, no_budget
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.nano_epsilon import from_nano
from wpinq.kernel.prepare import DeclaredSource, bill_of, prepare_batch
from wpinq.kernel.release import Releaser
from wpinq.measure.bill import Bill
from wpinq.measure.group import Together
from wpinq.measure.statement import Balance, Event


class AnalystBudgets:
    """What an analyst has left, did, and would pay. It needs a ledger and declarations, and no data.

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
    ({}, {'words': Fraction(1, 2)})
    """

    __slots__ = ("_declared", "_ledger", "name")

    def __init__(self, ledger: Ledger, analyst: str, declared: Mapping[str, DeclaredSource]) -> None:
        self._ledger, self.name, self._declared = ledger, check_analyst(analyst), declared

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"

    def balances(self) -> tuple[Balance, ...]:
        """How the own budgets stand, by account. What the sources have left is not in it."""
        return self._ledger.balances(self.name)

    def balance(self, source: str) -> Balance:
        """How the own budget for a source stands.

        Raises
        ------
        LedgerError
            When the curator gave none.
        """
        account = self._paying(source)
        found = next((each for each in self.balances() if each.account == account), None)
        if found is None:
            raise LedgerError(no_budget(self.name, account))
        return found

    def remaining(self, source: str) -> Fraction:
        """The epsilon that is left of the own budget for a source."""
        return self.balance(source).remaining

    def spent(self, source: str) -> Fraction:
        """The epsilon that was spent of the own budget for a source."""
        return self.balance(source).spent

    def history(self) -> tuple[Event, ...]:
        """What was debited from the own budgets, in order, counted from 1."""
        return self._ledger.events(self.name)

    def bill(self, measurements: Together, *, fresh: bool = False) -> Bill:
        """What measurements would cost, before replay and earlier releases of partitions lower it."""
        return bill_of(measurements, self._declared, fresh)

    def quote(self, measurements: Together, *, fresh: bool = False) -> dict[str, Fraction]:
        """What a release of measurements would be debited from the own budgets now, by account, to the billionth.

        What was paid for from them costs nothing more, and of the parts of a partition only what the largest rises by.
        It tells what something costs, not whether the budget covers that; and nothing where nothing is new.
        """
        batch = prepare_batch(measurements, self._declared, fresh)
        quoted = self._ledger.quote(batch.by_digest, batch.price, self.name)
        return {account: from_nano(charge) for account, charge in quoted.items()}

    def affords(self, measurements: Together) -> int:
        """How many more releases of these measurements, together and anew each time, the own budgets cover."""
        left = {each.account: each.remaining for each in self.balances()}
        return self.bill(measurements, fresh=True).times(left)

    def __reduce__(self) -> NoReturn:
        raise SessionError("an analyst's budgets are in a ledger: give the ledger and the name again")

    def _paying(self, source: str) -> str:
        """The account that pays for a source; the name itself where it is none."""
        declared = self._declared.get(source)
        return source if declared is None else declared.source.account


class Analyst(AnalystBudgets):
    """What an analyst may do in a session: release from the own budgets, and see how these stand.

    Made by `Session.analyst`.
    """

    __slots__ = ("_releaser",)

    def __init__(
        self, ledger: Ledger, analyst: str, declared: Mapping[str, DeclaredSource], releaser: Releaser
    ) -> None:
        super().__init__(ledger, analyst, declared)
        self._releaser = releaser

    def release(self, measurements: Together, *, fresh: bool = False, label: str | None = None) -> Any:
        """Debit the own budgets and the sources', evaluate, and answer, as `Session.release` does.

        Parameters
        ----------
        measurements, fresh, label : as in `Session.release`
            What another analyst released before is answered from there. It costs the own budget all the same.

        Returns
        -------
        As `Session.release`.

        Raises
        ------
        BudgetExceeded
            When an own budget does not cover what this costs, or, as `SourceExhausted`, a source's; nothing is spent
            then.
        EvaluationFailed
            When the engine failed. The debit stands.
        """
        return self._releaser.release(measurements, fresh, label, self.name)
