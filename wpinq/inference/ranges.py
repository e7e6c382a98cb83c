"""Reading a histogram: range sums and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.inference.checks import number, vector
from wpinq.inference.isotonic import isotonic_l2


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
