"""How exact a cell of a consistent marginal will be, as a sink that `accuracy` can ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from wpinq.inference.laplace_sums import linear_half_widths
from wpinq.marginals.marginal_plan import MarginalPlan
from wpinq.marginals.measured_views import View
from wpinq.measure.accuracy import Stated, off_by
from wpinq.measure.measurement import Laplace, Measurement
from wpinq.measure.scales import laplace_scale
from wpinq.plan.certify import certify


def cell_half_width(measuring: MarginalPlan, view: View, scale: float, confidence: float) -> float:
    """The half-width of the interval around each cell of a view, after least squares: exact, all cells alike.

    `scale` is that of the Laplace noise in the released weights, in units of counts.
    """
    return scale * _unit_half_width(measuring, view, confidence)


def cell_deviation(measuring: MarginalPlan, view: View, scale: float) -> float:
    """The standard deviation of each cell of a view, after least squares."""
    return scale * math.sqrt(measuring.algebra.variance(view))


@lru_cache(maxsize=10_000)
def _unit_half_width(measuring: MarginalPlan, view: View, confidence: float) -> float:
    scales, repeats = measuring.algebra.kinds(view)
    return float(linear_half_widths(scales[:, None], confidence, repeats[:, None])[0])


@dataclass(frozen=True, slots=True)
class CellCount(Laplace):
    """A cell of a marginal, by least squares over measured views: a sum of many weights with their noise.

    It stands for a number that is read off a release, and is released nowhere.
    """

    name: ClassVar[str] = "NoisyCount"
    measuring: MarginalPlan
    view: View

    def half_width(self, scale: float, confidence: float) -> float:
        return cell_half_width(self.measuring, self.view, scale, confidence)


@off_by.register
def _(sink: CellCount, asked: Measurement, epsilon: Fraction, confidence: float, stated: Stated) -> float:
    return sink.half_width(laplace_scale(epsilon, certify(asked.plan).slack()), confidence)
