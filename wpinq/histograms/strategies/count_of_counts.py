"""Counts of counts: how many groups there are of each size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.strategies.strategy import Strategy, checked_query
from wpinq.inference.checks import MOST_BINS, MOST_RECORDS, count_of, is_one_of, vector
from wpinq.inference.isotonic import isotonic, pool_sizes
from wpinq.inference.least_squares import project_to_total, round_to_total
from wpinq.measure.answers import Answers
from wpinq.runtime.arrays import Floats, Integers

CountingMethod = Literal["naive", "cumulative", "unattributed"]
_METHODS = ("naive", "cumulative", "unattributed")


@dataclass(frozen=True)
class CountOfCounts(Strategy):
    """How many groups have each size 0 … largest, when the number of groups is public.

    | method | query program | a record weighs | sensitivity |
    | --- | --- | --- | --- |
    | naive | `GroupBy(group, count).Select(size)` | half the number of groups of that size, from 1 on | 2 |
    | cumulative, H_c | `Select(group).Shave(1).Select(index)` | i: the number of groups of size > i | 1 |
    | unattributed, H_g | that, then `Shave(1).Select(index)` | j: the (j + 1)-th largest size | 1 |

    Parameters
    ----------
    groups : int
        The public number G of groups, empty ones included.
    largest : int
        The public bound K on sizes, at least 1; a larger group counts as one of size K.
    method : {"cumulative", "unattributed", "naive"}
        What is measured. Cumulative does better where sizes are dense, unattributed where they are sparse; naive
        is there to compare with.
    p : {1, 2}, optional
        Isotonic fit in absolute values or in squares; when left out, squares for the unattributed method, whose pools
        then give variances, and absolute values for the cumulative one.

    Notes
    -----
    Source: Kuo, Chiu, Kifer, Hay, Machanavajjhala, *Differentially private hierarchical count-of-counts histograms*,
    PVLDB 11(11), 2018. Protects one item of weight 1; groups are public.

    Examples
    --------
    >>> CountOfCounts(groups=4, largest=4).infer([0.2, 1.8, 3.1, 2.9])
    array([0, 2, 1, 0, 1])
    """

    groups: int
    largest: int
    method: CountingMethod = "cumulative"
    p: int | None = None

    def __post_init__(self) -> None:
        if not is_one_of(self.method, _METHODS):
            raise PlanError(f"a method is one of {', '.join(_METHODS)}, not {self.method!r}")
        most = MOST_BINS if self.method == "unattributed" else MOST_RECORDS
        count_of(self.groups, "the number of groups, which is public,", 1, most, PlanError)
        count_of(self.largest, "the largest size, a public bound,", 1, MOST_BINS - 1, PlanError)
        if self.p is None:
            object.__setattr__(self, "p", 2 if self.method == "unattributed" else 1)
        if not is_one_of(self.p, (1, 2)):
            raise PlanError(f"p is 1 or 2, not {self.p!r}")

    @property
    def domain(self) -> int:  # type: ignore[override]  # the sizes
        """The number of sizes, `largest + 1`."""
        return self.largest + 1

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(2 if self.method == "naive" else 1)

    @property
    def keys(self) -> tuple[Value, ...]:
        if self.method == "naive":
            return tuple(range(1, self.largest + 1))
        if self.method == "cumulative":
            return tuple(range(self.largest))
        return tuple(range(self.groups - 1, -1, -1))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program over items; `bin` gives an item's group, of any type. Uses of the source: 1."""
        group = (lambda record: record) if bin is None else bin
        if self.method == "naive":
            sizes = checked_query(source).group_by(group, lambda items: F.count(items))
            return sizes.select(lambda g: F.min(g.val, self.largest))
        above = checked_query(source).select(group).shave(1.0).select(lambda piece: piece.index)
        if self.method == "cumulative":
            return above
        bounded = above.where(lambda i: i < self.largest)
        return bounded.shave(1.0).select(lambda piece: piece.index)

    def answers_of(self, answers: Any) -> Floats:
        """The noisy numbers as they are fitted: H from size 1 on, H_c from size 0 to K − 1, H_g ascending.

        Of Answers of the cumulative method, `H_c[i] = G − weight of i`. A vector stays as it is.
        """
        values = super().answers_of(answers)
        return self.groups - values if isinstance(answers, Answers) and self.method == "cumulative" else values

    def answers_from(self, histogram: Integers) -> Floats:
        """The noiseless numbers, as `answers_of` gives them, of a public number of groups of each size.

        AnswersError when those are not K + 1 integers of at least 0, of sum G.
        """
        numbers = vector(histogram, "the numbers of groups of each size", self.domain)
        counts = np.clip(np.rint(numbers), 0, self.groups).astype(np.int64)
        if (counts != numbers).any() or counts.sum() != self.groups:
            raise AnswersError(f"the numbers of groups of each size must be integers that sum to {self.groups}")
        if self.method == "unattributed":
            return np.repeat(np.arange(len(counts)), counts).astype(np.float64)
        return np.asarray(counts[1:] if self.method == "naive" else np.cumsum(counts)[:-1], dtype=np.float64)

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """Refused: the error depends on the sizes, which are not known before. See `simulated_distance`."""
        raise PlanError(
            "the error of counts of counts depends on the data: simulated_distance(strategy, epsilon, guess) says what "
            "it would be on a public guess"
        )

    def infer(self, answers: Any) -> Integers:
        """The number of groups of each size: K + 1 non-negative integers of sum G.

        `answers` are Answers of `measure`, or noisy numbers as `answers_of` gives them.
        """
        return self._histogram(self.answers_of(answers))

    def _histogram(self, noisy: Floats) -> Integers:
        if self.method == "naive":
            above = project_to_total(noisy, self.groups, at_most=True)
            fitted = np.concatenate(([max(0.0, self.groups - float(above.sum()))], above))
            return round_to_total(fitted, self.groups)
        if self.method == "cumulative":
            fit = np.rint(isotonic(noisy, self.p or 1, 0.0, self.groups)).astype(np.int64)
            return np.diff(fit, prepend=0, append=self.groups)
        fit = np.rint(isotonic(noisy, self.p or 2, 0.0, self.largest)).astype(np.int64)
        return np.bincount(fit, minlength=self.largest + 1).astype(np.int64)

    def sizes(self, answers: Any, epsilon: object = None) -> tuple[Floats, Floats]:
        """The sizes of the groups, ascending, and the estimated variance of each.

        With v the variance of one answer, `2/ε²` for Laplace noise, `8/ε²` for that of the naive method. H_g:
        `v / |S_i|`, S_i the pool of i. H_c and naive: `2v / estimated groups of that size`.

        Returns
        -------
        sizes : numpy array of float64
            G sizes; those of the unattributed method as they were fitted, not rounded: merging them so does better.
        variances : numpy array of float64
            Of each, as weights for merging; not exact.

        Notes
        -----
        Source: Kuo et al. 2018, section 5.1.
        """
        return self.sizes_of(self.answers_of(answers), self.noise(answers, epsilon).variance)

    def sizes_of(self, noisy: Floats, variance: float) -> tuple[Floats, Floats]:
        """`sizes` of noisy numbers, each of this variance."""
        if self.method == "unattributed":
            fit = isotonic(noisy, self.p or 2, 0.0, self.largest)
            return fit, variance / pool_sizes(fit)
        if self.groups > MOST_BINS:
            raise AnswersError(f"the sizes of {self.groups} groups are too many to list: infer counts them by size")
        histogram = self._histogram(noisy)
        sizes = np.repeat(np.arange(self.largest + 1), histogram)
        return sizes.astype(np.float64), np.asarray(2 * variance / histogram[sizes], dtype=np.float64)


def earth_movers_distance(first: Any, second: Any) -> float:
    """The least number of items to add or remove to turn one histogram of sizes into another, `‖H_c − H_c'‖₁`.

    Parameters
    ----------
    first, second : array-like
        Two estimates: numbers of groups of each size 0, 1, …; of equal length and sum. Against protected data it is a
        query of its own.

    Examples
    --------
    >>> earth_movers_distance([0, 2, 1, 0, 1], [0, 2, 0, 1, 1])
    1.0
    """
    one = vector(first, "a histogram")
    return float(np.abs(np.cumsum(one - vector(second, "a histogram", len(one)))).sum())
