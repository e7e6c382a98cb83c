"""Isotonic regression in squares or absolute values, and range sums and quantiles."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import is_one_of, number, vector
from wpinq.runtime.arrays import Floats, Integers


def isotonic_l2(values: Any, lower: float = -math.inf, upper: float = math.inf, weights: Any | None = None) -> Floats:
    """The non-decreasing sequence within bounds that is nearest in squares.

    `argmin Σ_i w_i (s_i − values_i)²` subject to `lower ≤ s_1 ≤ … ≤ s_n ≤ upper`. Without bounds it is
    `s_k = min_{j ≥ k} max_{i ≤ j} mean(values_i … values_j)`; bounds clip that, which is the bounded optimum.

    Parameters
    ----------
    values : array-like
        Released numbers.
    lower, upper : float
        Public bounds, lower ≤ upper.
    weights : array-like, optional
        More than 0, the inverse variances; all 1 when left out.

    Notes
    -----
    Linear time, by pool-adjacent-violators.

    Source: Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010, section 3, theorem 1.

    Examples
    --------
    >>> isotonic_l2([14, 9, 10, 15])
    array([11., 11., 11., 15.])
    """
    from scipy.optimize import isotonic_regression

    numbers = vector(values, "values")
    _check_bounds(lower, upper)
    if not len(numbers):
        return numbers
    given = None if weights is None else vector(weights, "weights", len(numbers))
    if given is not None and not (given > 0).all():
        raise AnswersError("weights must be more than 0: leave out what does not count")
    return np.asarray(np.clip(isotonic_regression(numbers, weights=given).x, lower, upper))


def isotonic_l1(values: Any, lower: float = -math.inf, upper: float = math.inf) -> Floats:
    """A non-decreasing sequence within bounds that is nearest in absolute values.

    `argmin Σ_i |s_i − values_i|` subject to `lower ≤ s_1 ≤ … ≤ s_n ≤ upper`. Of the many optima it takes one whose
    values are all among those given (or a bound): integers give integers.

    Parameters
    ----------
    values, lower, upper
        As for `isotonic_l2`.

    Notes
    -----
    Time `O(n log n)` by slope trick: the cost of the best fit to a prefix, as a function of its last value, is convex
    and piecewise linear; the heap holds the places where its slope changes, and its top is the least last value that
    is optimal. A pass from the right turns those into the fit.

    Source: Kuo et al., PVLDB 11(11), 2018, sections 4.2 and 4.3, for its use on counts.

    Examples
    --------
    >>> isotonic_l1([14, 9, 10, 15])
    array([ 9.,  9., 10., 15.])
    """
    numbers = vector(values, "values")
    _check_bounds(lower, upper)
    heap: list[float] = []
    tops: list[float] = []
    for negated in (-numbers).tolist():
        heapq.heappush(heap, negated)
        if heap[0] < negated:
            heapq.heapreplace(heap, negated)
        tops.append(heap[0])
    fit = np.minimum.accumulate(-np.array(tops, dtype=np.float64)[::-1])[::-1]
    return np.clip(fit, lower, upper)


def isotonic(values: Any, p: int, lower: float = -math.inf, upper: float = math.inf) -> Floats:
    """`isotonic_l1` for p = 1, `isotonic_l2` for p = 2; AnswersError for another p.

    Examples
    --------
    >>> isotonic([9, 14, 10], p=2)
    array([ 9., 12., 12.])
    """
    if not is_one_of(p, (1, 2)):
        raise AnswersError(f"isotonic regression is offered for p = 1 and p = 2, not {p!r}")
    return isotonic_l1(values, lower, upper) if p == 1 else isotonic_l2(values, lower, upper)


def pool_sizes(fit: Any) -> Integers:
    """For each value of a non-decreasing fit, how many share it: the size of its pool.

    Examples
    --------
    >>> pool_sizes([11.0, 11.0, 11.0, 15.0])
    array([3, 3, 3, 1])
    """
    _, inverse, counts = np.unique(vector(fit, "the fit"), return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse], dtype=np.int64)


def _check_bounds(lower: float, upper: float) -> None:
    if not number(lower, "a bound") <= number(upper, "a bound"):
        raise AnswersError(f"the bounds must be numbers lower <= upper, not {lower!r} and {upper!r}")


# --- range sums and quantiles -----------------------------------------------------------------------------------------


def range_sums(counts: Any, starts: Any, stops: Any) -> Floats:
    """The sum of the counts of each range, `Σ_{start ≤ i < stop} counts_i`.

    Parameters
    ----------
    counts : array-like
        An estimate.
    starts, stops : array-like of int
        Ranges as in Python: the start is in, the stop is out, `0 ≤ start ≤ stop ≤ n`.

    Returns
    -------
    numpy array of float64
        One sum a range. All come from one histogram, so they are consistent with one another.

    Examples
    --------
    >>> range_sums([2, 0, 10, 2], [0, 2], [4, 3])
    array([14., 10.])
    """
    numbers = vector(counts, "counts")
    first, last = check_ranges(starts, stops, len(numbers))
    prefix = np.concatenate(([0.0], np.cumsum(numbers)))
    return np.asarray(prefix[last] - prefix[first])


def check_ranges(starts: Any, stops: Any, size: int) -> tuple[Integers, Integers]:
    """Starts and stops as integer arrays, or AnswersError when one lies outside 0 … size."""
    try:
        first, last = np.asarray(starts), np.asarray(stops)
        paired = first.shape == last.shape and first.ndim == 1
    except ValueError:
        paired = False
    if not paired:
        raise AnswersError("give as many starts as stops, each in one row")
    if len(first) and not (np.issubdtype(first.dtype, np.integer) and np.issubdtype(last.dtype, np.integer)):
        raise AnswersError("starts and stops must be integers")
    if ((first < 0) | (first > last) | (last > size)).any():
        raise AnswersError(f"ranges need 0 <= start <= stop <= {size}")
    return first.astype(np.int64), last.astype(np.int64)


def quantile(counts: Any, q: float, edges: Any | None = None) -> float:
    """The quantile of a histogram: the first bin at which the cumulative count reaches `q` of the total.

    Parameters
    ----------
    counts : array-like
        An estimate, some of it positive. Where counts are negative, the nearest cumulative counts that never fall take
        the place of theirs.
    q : float
        Between 0 and 1; 0.5 for the median.
    edges : array-like, optional
        The n + 1 ascending borders of the bins. Then the quantile is interpolated within its bin.

    Returns
    -------
    float
        The number of the bin, or the place between the edges.

    Examples
    --------
    >>> quantile([2, 0, 10, 2], 0.5)
    2.0
    >>> quantile([2, 0, 10, 2], 0.5, edges=[0, 10, 20, 30, 40])
    25.0
    """
    numbers = vector(counts, "counts")
    if (numbers < 0).any():
        # not each negative count as 0: over many bins the positive half of the noise would outweigh the counts
        numbers = np.diff(isotonic_l2(np.cumsum(numbers), lower=0.0), prepend=0.0)
    total = float(numbers.sum())
    if not 0 <= number(q, "q") <= 1:
        raise AnswersError(f"a quantile lies between 0 and 1, not {q!r}")
    if total <= 0:
        raise AnswersError("this histogram has no positive count, so it has no quantiles")
    cumulative = np.cumsum(numbers)
    wanted = q * total
    place = min(int(np.searchsorted(cumulative, wanted)), int(np.searchsorted(cumulative, cumulative[-1])))
    if edges is None:
        return float(place)
    borders = vector(edges, "edges", len(numbers) + 1)
    if (np.diff(borders) < 0).any():
        raise AnswersError("edges must not decrease")
    if numbers[place] == 0:
        return float(borders[place])
    share = (wanted - (cumulative[place] - numbers[place])) / numbers[place]
    return float(borders[place] + min(max(share, 0.0), 1.0) * (borders[place + 1] - borders[place]))


def median(counts: Any, edges: Any | None = None) -> float:
    """`quantile` at 1/2.

    Examples
    --------
    >>> median([2, 0, 10, 2])
    2.0
    """
    return quantile(counts, 0.5, edges)
