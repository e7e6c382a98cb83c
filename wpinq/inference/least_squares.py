"""Least squares: plain, non-negative and isotonic; and integers that keep their totals."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, described
from wpinq.inference.checks import MOST_RECORDS, count_of, is_one_of, matrix_of, number, positive, vector
from wpinq.inference.tree import Tree, as_levels
from wpinq.runtime.arrays import Floats, Integers


def project_to_total(values: Any, total: float, at_most: bool = False) -> Floats:
    """The nearest non-negative vector with a given sum.

    `argmin ‖x − values‖₂` subject to `x ≥ 0` and `Σ x = total`: all values move by one amount and those that fall
    below 0 become 0.

    Parameters
    ----------
    values : array-like
        Released numbers, at least one.
    total : float
        The public sum, at least 0.
    at_most : bool
        Whether the sum may be less.

    Notes
    -----
    Time `O(n log n)`. Source: Kuo et al. 2018, section 4.1, whose quadratic programme this is.

    Examples
    --------
    >>> project_to_total([3.0, 1.0, -2.0], 2.0)
    array([2., 0., 0.])
    """
    numbers = vector(values, "values")
    total = number(total, "a total")
    if not (len(numbers) and math.isfinite(total) and total >= 0):
        raise AnswersError("a projection needs at least one value and a finite total of at least 0")
    if at_most and np.maximum(numbers, 0.0).sum() <= total:
        return np.asarray(np.maximum(numbers, 0.0))
    return _project_families(np.array([len(numbers)]), numbers, np.array([total]))


def zero_subtrees(tree: Tree, levels: Sequence[Floats]) -> list[Floats]:
    """The paper's heuristic for non-negativity: a node of at most 0 becomes 0 with its subtree.

    `levels` are a consistent estimate, level by level, root first; what is given back is no longer consistent.

    Source: Hay et al. 2010, section 4.2.

    Examples
    --------
    >>> tree = Tree.uniform(4, 2)
    >>> [level.tolist() for level in zero_subtrees(tree, tree.totals(np.array([3.0, -4.0, 11.0, 0.0])))]
    [[10.0], [0.0, 11.0], [0.0, 0.0, 11.0, 0.0]]
    """
    given = as_levels(tree, levels)
    alive = given[0] > 0
    kept = [np.where(alive, given[0], 0.0)]
    for level, below in enumerate(given[1:]):
        alive = tree.to_children(level, alive) & (below > 0)
        kept.append(np.where(alive, below, 0.0))
    return kept


def project_tree(tree: Tree, levels: Sequence[Floats]) -> list[Floats]:
    """A consistent tree made non-negative from the top down; totals are kept.

    The root is cut at 0; then, family by family, the children become the nearest non-negative numbers that sum to
    their parent: `project_to_total`. Cutting the leaves alone would add up to a large bias on long ranges.

    `levels` are a consistent estimate, level by level, root first. Linear time but for sorting each family; linear
    memory.

    Examples
    --------
    >>> tree = Tree.uniform(4, 2)
    >>> [level.tolist() for level in project_tree(tree, tree.totals(np.array([3.0, -4.0, 11.0, 0.0])))]
    [[10.0], [0.0, 10.0], [0.0, 0.0, 10.0, 0.0]]
    """
    given = as_levels(tree, levels)
    kept = [np.maximum(given[0], 0.0)]
    for counts, below in zip(tree.children, given[1:], strict=True):
        if counts.max() * len(counts) <= 2 * len(below):
            kept.append(_project_families(counts, below, kept[-1]))
            continue
        fitted = np.empty(len(below))
        sizes = np.frexp(counts)[1]
        for size in np.unique(sizes):  # families of 2^(size − 1) … 2^size − 1 at a time: padding at most doubles them
            nodes = sizes == size
            places = np.repeat(nodes, counts)
            fitted[places] = _project_families(counts[nodes], below[places], kept[-1][nodes])
        kept.append(fitted)
    return kept


def _project_families(counts: Integers, children: Floats, totals: Floats) -> Floats:
    """`project_to_total` of every family of children on its total."""
    inside = np.arange(counts.max()) < counts[:, None]
    family = np.full(inside.shape, -np.inf)
    family[inside] = children
    descending = -np.sort(-family, axis=1)
    finite = np.where(np.isfinite(descending), descending, 0.0)
    shifts = (np.cumsum(finite, axis=1) - totals[:, None]) / np.arange(1, inside.shape[1] + 1)
    positive = (descending > shifts).sum(axis=1)  # of the largest, how many stay above 0
    last = np.maximum(positive - 1, 0)[:, None]
    shift = np.where(positive[:, None] > 0, np.take_along_axis(shifts, last, axis=1), descending[:, :1])
    return np.asarray(np.maximum(family - shift, 0.0)[inside])


# --- integers that keep their totals ----------------------------------------------------------------------------------

_CLOSE = 1e-6


def round_to_total(values: Any, total: float) -> Integers:
    """Non-negative integers with a given sum, each within 1 of its value.

    The total is rounded to the nearest integer t first, as the root of a tree is, of two the even one. With
    `r = t − Σ ⌊x_i⌋`, the r values with the largest fractional parts go up, the others down.

    Parameters
    ----------
    values : array-like
        Non-negative, of a sum that is within 1/2 of t: `project_to_total` gives such.
    total : float
        The sum, at least 0. An estimate need not be whole.

    Notes
    -----
    Source: Kuo et al. 2018, section 4.1.

    Examples
    --------
    >>> round_to_total([0.25, 1.5, 1.25], 3)
    array([0, 2, 1])
    >>> round_to_total([0.25, 1.5, 1.5], 3.25)
    array([0, 2, 1])
    """
    numbers = vector(values, "values")
    given = number(total, "a total")
    if isinstance(total, bool) or not math.isfinite(given):
        raise AnswersError("a total must be a finite number")
    whole = count_of(round(given), "a total", 0)
    if (numbers < 0).any() or abs(float(numbers.sum()) - whole) > 0.5 + _CLOSE * max(1.0, whole):
        raise AnswersError("values must be at least 0 and have the total as their sum: project_to_total makes them so")
    if not len(numbers):
        return np.zeros(0, dtype=np.int64)
    return _down(Tree([[len(numbers)]]), 0, np.array([whole], dtype=np.int64), numbers)


def round_tree(tree: Tree, levels: Sequence[Floats]) -> list[Integers]:
    """A consistent, non-negative tree as integers that are consistent too.

    The root is rounded to the nearest integer; then, family by family, the children with the largest fractions go
    up as often as their parent's integer needs. Every node moves by less than 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    levels : sequence of arrays
        Root first; each node the sum of its children up to rounding, all at least 0.

    Examples
    --------
    >>> tree = Tree.uniform(4, 2)
    >>> [level.tolist() for level in round_tree(tree, tree.totals(np.array([0.5, 0.5, 1.75, 0.5])))]
    [[3], [1, 2], [1, 0, 2, 0]]
    """
    levels = as_levels(tree, levels)
    if any((level < 0).any() for level in levels):
        raise AnswersError("the tree holds negative values: make it non-negative first")
    if any((level > MOST_RECORDS).any() for level in levels):
        raise AnswersError(f"the tree holds values above {MOST_RECORDS}, where floats tell no integers apart")
    rounded = [np.rint(levels[0]).astype(np.int64)]
    for level in range(tree.levels - 1):
        gap = np.abs(tree.sum_children(level, levels[level + 1]) - levels[level])
        if (gap > _CLOSE * np.maximum(1.0, levels[level])).any():
            raise AnswersError("the tree is not consistent: rounding keeps totals that are there")
        rounded.append(_down(tree, level, rounded[-1], levels[level + 1]))
    return rounded


def _down(tree: Tree, level: int, parents: Integers, values: Floats) -> Integers:
    """Children's integers that sum to their parents'."""
    nearest = np.rint(values)
    values = np.where(np.abs(values - nearest) < _CLOSE, nearest, values)  # so that an integer stays one
    floors = np.floor(values)
    missing = parents - np.rint(tree.sum_children(level, floors)).astype(np.int64)
    counts = tree.children[level]
    if ((missing < 0) | (missing > counts)).any():
        raise AnswersError("the values are too far from their totals for rounding to keep those")
    family = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((-(values - floors), family))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return floors.astype(np.int64) + (rank < missing[family])


# --- plain least squares ----------------------------------------------------------------------------------------------


def least_squares(matrix: Any, values: Any, tolerance: float = 1e-12) -> Floats:
    """The histogram of least norm among those that fit noisy answers best, `A⁺ y`.

    Parameters
    ----------
    matrix : numpy array, scipy sparse matrix or LinearOperator, shape (m, n)
        The strategy A.
    values : array-like, shape (m,)
        The noisy answers y.
    tolerance : float
        For sparse matrices and operators: LSMR's relative tolerance. AnswersError when it is not reached.

    Notes
    -----
    With noise of one scale in all answers this is the best linear unbiased estimate (Gauss and Markov) of every query
    in the row space of A.

    Source: Li et al., *Optimizing linear counting queries under differential privacy*, PODS 2010, section 3.

    Examples
    --------
    >>> least_squares(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), [3.0, 1.0, 1.0]).round(4)
    array([1.3333, 1.3333])
    """
    numbers = vector(values, "values")
    matrix = matrix_of(matrix, len(numbers))
    positive(tolerance, "the tolerance")
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.linalg.lstsq(matrix, numbers, rcond=None)[0], dtype=np.float64)
    from scipy.sparse.linalg import lsmr

    limit = 20 * min(matrix.shape) + 1000
    found = lsmr(matrix, numbers, atol=tolerance, btol=tolerance, conlim=0.0, maxiter=limit)
    if found[1] == 7:
        raise AnswersError(f"least squares did not converge in {limit} steps: the strategy is nearly singular")
    return np.asarray(found[0], dtype=np.float64)


# Smooth minimisation, and linear algebra on one thread.

_MEMORY = 20


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, tolerance: float = 1e-9
) -> tuple[Floats, float]:
    """A local minimum of a smooth function by L-BFGS.

    Parameters
    ----------
    objective : callable
        From a point to the value and the gradient there.
    start : array
        The first point.
    iterations : int
        The most steps.
    tolerance : float
        The search ends at a step that gains less than this share of the value, or of 1 where the value is smaller.

    Returns
    -------
    (array, float)
        The last point and its value, at most that of the start.

    Examples
    --------
    >>> point, value = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 50)
    >>> point.round(6)
    array([3., 3.])
    """
    from scipy.optimize import minimize

    options = {"maxiter": iterations, "maxfun": 40 * iterations, "ftol": tolerance, "gtol": 0.0, "maxcor": _MEMORY}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, dtype=np.float64), float(found.fun)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Run the BLAS libraries of numpy and scipy on one thread inside of the block.

    An optimiser calls them up to some hundred thousand times, for microseconds each. Further threads only wait for the
    next call, and compete with other work for the cores. The last bits of results depend on the number of threads, so
    on one thread they do not depend on the machine's.
    """
    import scipy.optimize  # noqa: F401  (a library that is loaded later is not limited)
    import threadpoolctl

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        yield


# Isotonic regression in squares or absolute values, and range sums and quantiles.


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
        raise AnswersError(f"isotonic regression is offered for p = 1 and p = 2, not {described(p)}")
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
        raise AnswersError(f"the bounds must be numbers lower <= upper, not {described(lower)} and {described(upper)}")


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
    """The first bin of a histogram at which the cumulative count reaches `q` of the total.

    It is at least that.

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
        raise AnswersError(f"a quantile lies between 0 and 1, not {described(q)}")
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
