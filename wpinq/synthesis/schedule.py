"""Schedules: the power of a chain as it goes on. A low power wanders, a high one insists on the answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from wpinq.errors import PlanError


class Schedule(Protocol):
    """The power as a function of the share of steps done."""

    def at(self, done: float) -> float:
        """The power for the chunk that begins when `done`, 0 to 1, of the steps are done."""


def _check(*powers: float) -> None:
    if not all(0 < power < math.inf for power in powers):
        raise PlanError("a power is a finite number above 0")


@dataclass(frozen=True, slots=True)
class ConstantSchedule:
    """The same power throughout; the stationary distribution is `exp(−power · score)`. The paper takes 10,000.

    Examples
    --------
    >>> ConstantSchedule(10_000).at(0.5)
    10000
    """

    power: float

    def __post_init__(self) -> None:
        _check(self.power)

    def at(self, done: float) -> float:
        return self.power


@dataclass(frozen=True, slots=True)
class _Annealing:
    start: float
    end: float

    def __post_init__(self) -> None:
        _check(self.start, self.end)


@dataclass(frozen=True, slots=True)
class GeometricSchedule(_Annealing):
    """Annealing: `start · (end/start)^done`, equal factors for equal numbers of steps.

    Examples
    --------
    >>> round(GeometricSchedule(1, 10_000).at(0.5), 6)
    100.0
    """

    def at(self, done: float) -> float:
        return float(self.start * (self.end / self.start) ** done)


@dataclass(frozen=True, slots=True)
class LinearSchedule(_Annealing):
    """Annealing: `start + (end − start) · done`.

    Examples
    --------
    >>> LinearSchedule(0.5, 1.5).at(0.5)
    1.0
    """

    def at(self, done: float) -> float:
        return self.start + (self.end - self.start) * done


SCHEDULES: dict[str, type[ConstantSchedule | GeometricSchedule | LinearSchedule]] = {
    "constant": ConstantSchedule,
    "geometric": GeometricSchedule,
    "linear": LinearSchedule,
}
"""The schedules by name."""
