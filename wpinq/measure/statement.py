"""An account's statement, for people: how its budget stands, and what happened to it. No data, and no answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.measure.group import escaped
from wpinq.noise.epsilon import format_epsilon


@dataclass(frozen=True, slots=True, repr=False)
class Balance:
    """How the budget of one account stands. Its repr is a line for people.

    Attributes
    ----------
    account : str
        The source, or what several tables share; of such a table `ACCOUNT/TABLE`, which pays nothing itself; of an
        analyst's budget within an account `ACCOUNT@ANALYST`.
    unit : str
        What is protected, in words.
    unit_weight : Fraction
        By how much total weight one protected unit can change the source.
    budget, spent : Fraction
        Epsilon.
    """

    account: str
    unit: str
    unit_weight: Fraction
    budget: Fraction
    spent: Fraction

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        return self.budget - self.spent

    def __repr__(self) -> str:
        payer, _, table = self.account.partition("/")
        if table:
            return escaped(f"{self.account}: paid by {payer}; protects {self.unit}")
        spent, budget, left = map(format_epsilon, (self.spent, self.budget, self.remaining))
        payer, _, analyst = self.account.partition("@")
        what = f"within the budget of {payer}" if analyst else f"protects {self.unit}"
        return escaped(f"{self.account}: spent {spent} of {budget}, {left} remaining; {what}")


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One thing that happened to an account: it was opened, its budget was set, or a release was debited.

    Its repr is a line for people.

    Attributes
    ----------
    sequence : int
        Its place among the entries of the ledger, which also tell when answers were stored.
    time : str
        UTC, ISO 8601, to the second.
    kind : str
        "open account", "set budget" or "debit".
    account : str
        The account.
    amount : Fraction
        The budget for the first two kinds, and what was debited for the third.
    description : str
        One line: for a debit its measurements, as a bill names them.
    label : str
        What the caller wrote beside the debit, as it was written: escape it where it is shown.
    """

    sequence: int
    time: str
    kind: str
    account: str
    amount: Fraction
    description: str
    label: str

    def __repr__(self) -> str:
        line = (
            f"{self.sequence} {self.time} {self.kind} {self.account} {format_epsilon(self.amount)} {self.description}"
        )
        return escaped(line.rstrip() + (f'  "{self.label}"' if self.label else ""))
