"""Neighbours, what is asked of them, and what that is claimed to tell; made ready for noise as a session does it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from scipy import stats

from tests.support.plans import distance
from wpinq.engines import reference
from wpinq.kernel.prepare import PreparedMeasurement, Protected, prepare
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import Measurement
from wpinq.plan.arithmetic import FLOAT, Weights
from wpinq.plan.properties import plan_properties

ALPHA = 1e-6
"""What a lower bound on a pair is wrong with at most, all that is tried on the pair together."""

TOO_LITTLE = 0.9
"""The noise of a control."""

Data = Mapping[str, Mapping[Any, float]]


@dataclass(frozen=True)
class Ready:
    """An order as the kernel has it, with the engine's output."""

    order: PreparedMeasurement
    outputs: Weights


@dataclass(frozen=True)
class Pair:
    """Two datasets, and measurements that are released together.

    Attributes
    ----------
    whole : bool
        Whether the pair moves what is measured by all that the bill says.
    alike : int
        How many keys the two differ in, each of which stands for a pair of its own.
    """

    name: str
    measurements: tuple[Measurement, ...]
    before: Data
    after: Data
    whole: bool
    alike: int = 1

    @property
    def claim(self) -> float:
        """What is billed for as many units as the two are apart."""
        bill = Bill(list(self.measurements))
        claimed = Fraction(0)
        for name, source in bill.sources.items():
            units = distance(self.before[name], self.after[name]) / source.unit_weight / self.alike
            claimed += bill[source.account] * max(1, units)
        return float(claimed)

    def ready(self, data: Data, noise: float = 1.0) -> list[Ready]:
        """Certified scales, and the weights of the engine; `noise` times the scale, for controls."""
        found = []
        for measurement in self.measurements:
            declared = plan_properties(measurement.plan).sources
            protected = {name: Protected(source, "audit", data[name], "") for name, source in declared.items()}
            order = prepare(measurement, protected, fresh=False)
            order = replace(order, scales=tuple(scale * noise for scale in order.scales))
            found.append(Ready(order, reference.evaluate(measurement.plan, data, FLOAT)))
        return found


@dataclass(frozen=True)
class Measured:
    """What was found on a pair: exact losses, lower bounds, the fit of the noise, and how much was drawn."""

    exact: float
    bound: float
    fit: float
    drawn: int


Measuring = Callable[[Pair, float, int, Callable[[], bool]], Measured]


def at_least(count: int, size: int, error: float) -> float:
    """Clopper and Pearson's lower bound on a chance."""
    return float(stats.beta.ppf(error, count, size - count + 1)) if count else 0.0


def at_most(count: int, size: int, error: float) -> float:
    """Clopper and Pearson's upper bound on a chance."""
    return float(stats.beta.ppf(1 - error, count + 1, size - count)) if count < size else 1.0


def told(likely: int, rare: int, size: int, rare_size: int, error: float) -> float:
    """A lower bound on the logarithm of the ratio of two chances, no less than 0 (which any event has)."""
    least = at_least(likely, size, error / 2)
    return max(0.0, math.log(least / at_most(rare, rare_size, error / 2))) if least else 0.0
