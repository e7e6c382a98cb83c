"""The error of a plan of marginals, and the best shares for given views.

Views are rows of booleans here, one an attribute; an eigenspace S is a subset of a wanted view. With x_a = θ_a² and
`m_aS = 1/n_a` where a holds S, the precisions are `v = xᵀ m`, and wanted view T has the variance `Σ_S u_TS / v_S`.

The weighted total `Σ_S c_S / v_S` falls with every step `θ_a ← θ_a · (θ_a h_a)^{1/3}`, divided by the sum, where
`h_a = Σ_S m_aS c_S / v_S²`: 1/v is convex, so that Jensen's inequality over the views bounds the total from above by
`Σ_a B_a/θ_a²`, equal to it here and least there. The largest variance is bounded by its p-norm, and found by
quasi-Newton steps on the logarithms of the shares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import PlanError
from wpinq.inference.least_squares import minimise
from wpinq.marginals.attributes import Attributes, View, by_order
from wpinq.runtime.arrays import Floats

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


ViewRows = NDArray[np.bool_]
"""Views as rows of booleans: shape (views, attributes)."""

_LARGEST_PROBLEM = 1 << 22
"""Wanted views times their subsets: a step of a search goes through as many numbers."""
_LEAST = -80.0
"""Logarithms of shares below that of the largest, from where on a view counts for nothing."""


class PlanErrors(ABC):
    """The errors of wanted views in arrays, and one number that is to be small."""

    def __init__(self, attributes: Attributes, wanted: tuple[View, ...], weights: Floats) -> None:
        sizes, count = attributes.sizes, len(attributes.sizes)
        # nothing varies with an attribute of one value
        many = [tuple(i for i in view if sizes[i] > 1) for view in wanted]
        if sum(2 ** len(view) for view in many) > _LARGEST_PROBLEM:
            raise self._too_large(len(wanted))
        spaces = {space for view in many for size in range(len(view) + 1) for space in combinations(view, size)}
        if len(wanted) * len(spaces) > _LARGEST_PROBLEM:
            raise self._too_large(len(wanted))
        self.wanted = rows_of(wanted, count)
        self.logarithms = np.log(np.array(sizes, dtype=np.float64))
        self.spaces = rows_of(sorted(spaces, key=by_order), count).astype(np.float64)
        self.weights = weights
        cells = np.array([float(attributes.cells(view)) for view in wanted])
        dimensions = np.array([float(prod(sizes[i] - 1 for i in space)) for space in sorted(spaces, key=by_order)])
        self.shares_of_variance = 2 * self._held(self.wanted) * dimensions / cells[:, None] ** 2

    @staticmethod
    def _too_large(count: int) -> PlanError:
        return PlanError(
            f"{count} wanted views have too many subsets to plan for: want fewer or smaller views, or give the shares"
        )

    def _held(self, views: ViewRows) -> Floats:
        """Which eigenspaces each view holds, as 0 and 1."""
        found: Floats = ((~views).astype(np.float64) @ self.spaces.T == 0).astype(np.float64)
        return found

    def precision_shares(self, views: ViewRows) -> Floats:
        """`m_aS`: shape (views, eigenspaces)."""
        found: Floats = self._held(views) * np.exp(-1.0 * (views @ self.logarithms))[:, None]
        return found

    @abstractmethod
    def slopes(self, precisions: Floats) -> Floats:
        """c for which `Σ_S c_S / v_S` is the number that is to be small, or goes as it does nearby."""

    @abstractmethod
    def best_shares(
        self, held: Floats, shares: Floats, work: CountedWork, steps: int = 60, tolerance: float = 1e-7
    ) -> tuple[Floats, float]:
        """Better shares of views, from some, and the number that is to be small: a local minimum."""


class TotalError(PlanErrors):
    """The weighted sum of the variances."""

    def __init__(self, attributes: Attributes, wanted: tuple[View, ...], weights: Floats) -> None:
        super().__init__(attributes, wanted, weights)
        self._slopes: Floats = np.einsum("ts,t->s", self.shares_of_variance, weights)

    def slopes(self, precisions: Floats) -> Floats:
        return self._slopes

    def best_shares(
        self, held: Floats, shares: Floats, work: CountedWork, steps: int = 60, tolerance: float = 1e-7
    ) -> tuple[Floats, float]:
        last = np.inf
        for _ in range(steps):
            precisions = np.einsum("as,a->s", held, shares**2)
            parts = self._slopes / precisions
            total = float(parts.sum())
            work.done(18, 3 * held.size)
            if last - total < tolerance * total:
                break
            last = total
            shares = shares * np.cbrt(shares * np.einsum("as,s->a", held, parts / precisions))
            shares = shares / shares.sum()
        else:
            total = float((self._slopes / np.einsum("as,a->s", held, shares**2)).sum())
        return shares, total


class LargestError(PlanErrors):
    """The p-norm of the weighted variances: their largest, nearly."""

    power = 32

    def slopes(self, precisions: Floats) -> Floats:
        return self._norm(precisions, self.power)[1]

    def _norm(self, precisions: Floats, power: int) -> tuple[float, Floats]:
        variances = self.weights * np.einsum("ts,s->t", self.shares_of_variance, 1 / precisions)
        largest = float(variances.max())
        raised = (variances / largest) ** (power - 1)
        norm = float((raised * variances).sum()) / largest
        value = largest * norm ** (1 / power)
        slopes = np.einsum("ts,t->s", self.shares_of_variance, self.weights * raised) * (value / largest / norm)
        return value, slopes

    def best_shares(
        self, held: Floats, shares: Floats, work: CountedWork, steps: int = 60, tolerance: float = 1e-7, power: int = 0
    ) -> tuple[Floats, float]:
        def objective(logarithms: Floats) -> tuple[float, Floats]:
            work.done(140, 4 * (held.size + self.shares_of_variance.size))
            found = np.exp(np.maximum(logarithms - logarithms.max(), _LEAST))
            total = float(found.sum())
            precisions = np.einsum("as,a->s", held, found**2)
            value, slopes = self._norm(precisions, power or self.power)
            through = np.einsum("as,s->a", held, slopes / precisions**2)
            return float(np.log(value) + 2 * np.log(total)), 2 * found / total - 2 * found**2 * through / value

        logarithms, value = minimise(objective, np.log(shares), steps, tolerance)
        found = np.exp(np.maximum(logarithms - logarithms.max(), _LEAST))
        return found / found.sum(), float(np.exp(value))


def rows_of(views: list[View] | tuple[View, ...], count: int) -> ViewRows:
    """Views as rows of booleans.

    Examples
    --------
    >>> rows_of([(0,), (0, 2)], 3).astype(int)
    array([[1, 0, 0],
           [1, 0, 1]])
    """
    found = np.zeros((len(views), count), dtype=np.bool_)
    for row, view in zip(found, views, strict=True):
        row[list(view)] = True
    return found
