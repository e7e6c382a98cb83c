"""Sorted: the counts in order of size, without the bins that they belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.strategies.strategy import Strategy, bins_of
from wpinq.inference.intervals import Bootstrap, bootstrap
from wpinq.inference.least_squares import isotonic
from wpinq.runtime.arrays import Floats


@dataclass(frozen=True)
class Sorted(Strategy):
    """The counts in ascending order, S (unattributed histogram, degree sequence). Sensitivity 1.

    `Select(bin).Shave(1).Select(index)` is the number of bins with more than i records; again
    `Shave(1).Select(index)` is the (j + 1)-th largest count.

    Parameters
    ----------
    domain : int
        The number of bins, empty ones included.

    Notes
    -----
    Source: Hay et al. 2010, section 3. Records weigh 1 each; a bin of fractional weight counts by whole units and
    the rest.

    Examples
    --------
    >>> Sorted(3).infer([9, 14, 10])
    array([ 9., 12., 12.])
    """

    domain: int

    @property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.domain - 1, -1, -1))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: record j weighs the (j + 1)-th largest count. Uses of the source: 1."""
        above = bins_of(source, bin, self.domain).shave(1.0).select(lambda piece: piece.index)
        return above.shave(1.0).select(lambda piece: piece.index)

    def infer(self, answers: Any, p: int = 2, lower: float = 0.0, upper: float = math.inf) -> Floats:
        """The ascending counts nearest to the noisy ones, from the smallest to the largest.

        Parameters
        ----------
        answers : Answers or array-like
            Noisy counts from the smallest to the largest.
        p : {1, 2}
            Least absolute values or least squares.
        lower, upper : float
            Public bounds.

        Notes
        -----
        Expected squared error `O(Σ_i (c₁ log³ n_i + c₂)/ε²)`, n_i the times that each distinct count occurs, against
        `2n/ε²` for the noisy counts (Hay et al. 2010, theorem 2).
        """
        return isotonic(self.answers_of(answers), p, lower, upper)

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """Refused: the error depends on how often counts repeat, which is not known before. See `error_bound`."""
        raise PlanError("the error of sorted counts depends on the data: error_bound(epsilon) bounds it for all data")

    def error_bound(self, epsilon: object) -> float:
        """An upper bound on the expected total squared error for all data, `2n/ε²`: that of the noisy counts.

        `epsilon` is a number, or what `measure` gave: with double-geometric noise the bound is n times its variance.
        A projection on a convex set that holds the truth never moves away from it.

        Examples
        --------
        >>> Sorted(10).error_bound(1)
        20.0
        """
        return self.domain * self.noise(epsilon=epsilon).variance

    def interval(self, answers: Any, confidence: float = 0.95, epsilon: object = None, seed: int = 0) -> Bootstrap:
        """Intervals around the sorted counts, by parametric bootstrap with noise of the same law and so approximate."""
        noise = self.noise(answers, epsilon)
        return bootstrap(self.infer(answers), np.asarray, self.infer, noise, confidence, seed=seed)
