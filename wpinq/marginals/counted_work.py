"""Work, counted: what bounds a search for a plan, so that the same plan is found on a slow machine as on a fast one."""

from __future__ import annotations

from dataclasses import dataclass

_NUMBERS = 700
"""As many numbers take numpy as long as a call."""


@dataclass(slots=True)
class CountedWork:
    """A budget of work, in calls of numpy (about a microsecond each).

    Examples
    --------
    >>> work = CountedWork(100)
    >>> work.done(calls=10, numbers=70_000)
    >>> work.spent, work.over
    (110.0, True)
    """

    budget: float
    spent: float = 0.0

    def done(self, calls: int, numbers: float = 0) -> None:
        """Adds calls and the numbers that they went through."""
        self.spent += calls + numbers / _NUMBERS

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget
