"""A plan of marginals: the measured views, each with a share of every record's weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from wpinq.errors import PlanError
from wpinq.inference.checks import MOST_BINS
from wpinq.marginals.attributes import Attributes, MeasuredView, View, by_order, weight_of
from wpinq.marginals.residual_basis import MarginalAlgebra
from wpinq.runtime.arrays import Floats

_GRID = 2**30


@dataclass(frozen=True)
class MarginalPlan:
    """Views with their shares: public, stored, never looked for again.

    Attributes
    ----------
    attributes : Attributes
        Of the table.
    wanted : tuple of views
        What is asked for, each inside a measured view.
    measured : tuple of views
        What is measured, ascending.
    shares : tuple of float
        Of each measured view: multiples of 2⁻³⁰ of more than 0, whose sum is 1 exactly, in floats and in any order.

    Examples
    --------
    >>> plan = MarginalPlan.of((2, 3), {(0, 1): 2, (1,): 1})
    >>> plan.measured, sum(plan.shares), plan.cells
    (((1,), (0, 1)), 1.0, 9)
    """

    attributes: Attributes
    wanted: tuple[View, ...]
    measured: tuple[View, ...]
    shares: tuple[float, ...]

    @staticmethod
    def of(attributes: Any, shares: Any, wanted: Any = None) -> MarginalPlan:
        """From shares of any positive size, which are divided by their sum; PlanError for what is no plan."""
        known = Attributes.of(attributes)
        exact = _exact_shares(known, shares)
        views = tuple(exact) if wanted is None else known.views(wanted)
        plan = MarginalPlan(known, views, tuple(exact), tuple(exact.values()))
        if plan.cells > MOST_BINS:
            raise PlanError(f"the measured views have {plan.cells} cells, more than {MOST_BINS}: measure smaller ones")
        for view in views:
            plan.algebra.precisions(view)  # PlanError where no measured view holds it
        return plan

    @property
    def cells(self) -> int:
        """How many numbers are measured."""
        return sum(map(self.attributes.cells, self.measured))

    @cached_property
    def algebra(self) -> MarginalAlgebra:
        """Variances and kinds of noise, for Laplace noise of scale 1 in released weights."""
        return MarginalAlgebra(self.attributes, self.measured, [1 / share for share in self.shares])

    def measured_views(self, weights: Floats, scale: float) -> tuple[MeasuredView, ...]:
        """Released weights, view by view and in each the last attribute fastest, as counts with their noise.

        `scale` is that of the noise in the weights.
        """
        ends = np.cumsum([self.attributes.cells(view) for view in self.measured])[:-1]
        parts = zip(self.measured, self.shares, np.split(weights, ends), strict=True)
        return tuple(
            MeasuredView(view, part.reshape(self.attributes.shape(view)) / share, scale / share)
            for view, share, part in parts
        )

    def cell(self, record: Any, view: View) -> Any:
        """The number of a record's cell in a view, as a lambda over its values would write it: mixed radix."""
        found: Any = 0
        for place, i in enumerate(view):
            found = found * self.attributes.sizes[i] + record[i] if place else record[i]
        return found


def _exact_shares(attributes: Attributes, given: Any) -> dict[View, float]:
    """Shares on the grid that sum to 1: rounded down, and what is left given to the largest."""
    if not isinstance(given, Mapping) or not given:
        raise PlanError("shares are a dict from measured views to numbers of more than 0, one view at least")
    views = attributes.views(list(given))
    numbers = {attributes.view(view): Fraction(weight_of(share, "a share")) for view, share in given.items()}
    total = sum(numbers.values())
    steps = {view: int(numbers[view] / total * _GRID) for view in views}
    largest = max(views, key=lambda view: (steps[view], -views.index(view)))
    steps[largest] += _GRID - sum(steps.values())
    for view, count in steps.items():
        if not count:
            raise PlanError(f"the share of the view {attributes.shown(view)} is below 2**-30 of all: leave it out")
    return {view: steps[view] / _GRID for view in sorted(views, key=by_order)}
