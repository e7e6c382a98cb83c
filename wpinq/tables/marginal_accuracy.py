"""How exact a cell of a consistent marginal will be, as a sink that `accuracy` can ask."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.marginals.marginal_plan import MarginalPlan
from wpinq.marginals.measured_views import View
from wpinq.measure.accuracy import Stated, off_by
from wpinq.measure.measurement import Laplace, Measurement
from wpinq.measure.scales import laplace_scale
from wpinq.plan.certify import certify


@dataclass(frozen=True, slots=True)
class CellCount(Laplace):
    """A cell of a marginal, by least squares over measured views: a sum of many weights with their noise.

    It stands for a number that is read off a release, and is released nowhere.
    """

    name: ClassVar[str] = "NoisyCount"
    measuring: MarginalPlan
    view: View

    def half_width(self, scale: float, confidence: float) -> float:
        return self.measuring.half_width(self.view, scale, confidence)


@off_by.register
def _(sink: CellCount, asked: Measurement, epsilon: Fraction, confidence: float, stated: Stated) -> float:
    return sink.half_width(laplace_scale(epsilon, certify(asked.plan).slack()), confidence)
