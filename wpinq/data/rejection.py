"""The refusal of data: all at once, with the first positions, the reasons and no value."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from wpinq.errors import SourceRejected
from wpinq.runtime.signals import interruptible

SHOWN = 10
"""How many positions a rejection names. How many there are in all is said as well."""

TO_CONVERT = (
    "that is not of type",
    ", where bool is declared",
    ", where date is declared",
    " decimals",
    "finer than microseconds",
)
"""What reasons say of values of another type, or finer than the declared one is."""

Faults = dict[int, str]
"""Position of an unfit row, from 0 -> the reason, which never holds a value."""


@dataclass(slots=True)
class Tally:
    """Unfit rows, as they are found: the first positions, and how many there are of each reason."""

    first: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, positions: Iterable[int], reasons: Mapping[str, int]) -> None:
        """More of them: the first positions at least, and the numbers of all."""
        self.first = sorted({*self.first, *positions})[:SHOWN]
        self.reasons.update(reasons)

    def add_faults(self, faults: Faults, after: int = 0) -> None:
        """More of them, with positions counted from some row."""
        self.add((position + after for position in faults), Counter(faults.values()))

    def refuse(self, what: str, *, noun: str = "row", first: int = 0, advice: str = "") -> None:
        """Refuse `what`, if anything was found.

        Positions are printed counted from `first`; advice comes last.
        """
        count = self.reasons.total()
        if not count:
            return
        places = ", ".join(str(position + first) for position in self.first)
        more = f" and {count - len(self.first)} more" if count > len(self.first) else ""
        reasons = "; ".join(f"{reason} ({times})" for reason, times in self.reasons.most_common())
        amount = f"1 {noun} is" if count == 1 else f"{count} {noun}s are"
        raise SourceRejected(
            f"Cannot read {what}: {amount} unfit, at {noun} {places}{more}, counted from {first}. "
            f"Reasons: {reasons}. Nothing was stored: correct or leave out the {noun}s named here.{advice}",
            tuple(self.first),
        )


def reject(what: str, faults: Faults, *, noun: str = "row", first: int = 0) -> NoReturn:
    """Refuse `what` for these faults, with positions counted from `first`."""
    tally = Tally()
    tally.add_faults(faults)
    tally.refuse(what, noun=noun, first=first)
    raise AssertionError("nothing to refuse")


# Code of others that runs while data are read: its own words, of whatever kind, may quote values, and end here.

_T = TypeVar("_T")


def computed(compute: Callable[[], _T], refusal: str) -> _T:
    """What it computes, or a refusal; what a handler of a signal raises meanwhile is none."""

    def found() -> _T:
        with contextlib.suppress(Exception):
            return compute()
        raise SourceRejected(refusal)

    return interruptible(found)
