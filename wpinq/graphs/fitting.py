"""Degree sequences from noisy measurements: the staircase fit and two baselines.

A degree sequence d and its CCDF c (c[y] is the number of nodes of degree > y) are the two ways to read one
staircase. Write S for the cells (x, y) below it, y < d[x], or just as well x < c[y]. Either sum of deviations is
a constant plus a sum over the cells of S, so the best staircase is the set of cells of least total weight among
those closed downwards and leftwards. That view gives the banded programme and the tie rule of
`fit_degree_sequence`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.errors import AnswersError
from wpinq.inference.checks import positive, vector
from wpinq.inference.least_squares import isotonic_l2
from wpinq.runtime.arrays import Floats, Integers

_MOST_NODES = 2**31


def fit_degree_sequence(sequence: Any, ccdf: Any, sequence_scale: float = 1.0, ccdf_scale: float = 1.0) -> Integers:
    """The degree sequence that best fits a noisy degree sequence and a noisy CCDF together.

    Minimises, over all staircases from (0, m) to (n, 0) that step right or down only, with v the n released values
    of the sequence and h the m released values of the CCDF::

        Σ_{x < n} |v[x] − d[x]| / sequence_scale  +  Σ_{y < m} |h[y] − c[y]| / ccdf_scale

    where d[x] is the height of the staircase over x and c[y] = #{x : d[x] > y}. With the scales of the Laplace
    noise, this is the maximum-likelihood staircase.

    The optimum is exact, on measurements rounded to a grid of 2^−k (k = 23 for 76,000 × 3,100 values, more for
    fewer; the ratio of the scales likewise): on it all sums are exact in float64. A dynamic programme goes along
    the longer axis, row by row of the shorter one. It leaves out the cells beyond which no cell is worth having:
    one optimum at least lies inside the rest, so nothing is lost, and the rest is about the area under the noisy
    staircase. One bit a remaining cell is kept, to trace the optimum back.

    Ties: the optimal staircases are closed under pointwise minimum, and the lowest of all is returned. So the
    answer depends on the values alone, and exchanging the two measurements transposes it.

    Parameters
    ----------
    sequence : array-like, or an object with an array `values`
        Noisy degrees: the value at x is the (x + 1)-th largest degree plus noise, x = 0, 1, … without gaps.
    ccdf : array-like, or an object with an array `values`
        Noisy counts: the value at y is the number of nodes of degree > y plus noise, y = 0, 1, … without gaps.
    sequence_scale, ccdf_scale : float
        Scales of the noise of each, > 0 and finite. Only their ratio matters.

    Returns
    -------
    ndarray of int64
        Degrees, non-increasing, all > 0 (trailing zeros dropped), at most n of them and none above m. No graph
        need have them, their sum may be odd: a generator of graphs has to mend that.

    Raises
    ------
    AnswersError
        When a measurement is not a non-empty row of finite numbers, or a scale is not a positive finite number.

    Notes
    -----
    Costs no privacy: it reads released numbers only. Source: Proserpio, Goldberg and McSherry, VLDB 2014, section
    3.1, equation (2).

    Examples
    --------
    >>> fit_degree_sequence([2.9, 2.2, 0.6, 1.3, -0.4], [4.1, 1.8, 1.3, 0.2])
    array([3, 2, 1, 1])
    """
    v, h = _measurement("sequence", sequence), _measurement("ccdf", ccdf)
    for name, scale in (("sequence_scale", sequence_scale), ("ccdf_scale", ccdf_scale)):
        positive(scale, f"{name}, the scale of the Laplace noise,")
    smaller = min(sequence_scale, ccdf_scale)
    if len(h) <= len(v):
        return _conjugate(_lowest_staircase(v, h, smaller / sequence_scale, smaller / ccdf_scale))
    fit = _lowest_staircase(h, v, smaller / ccdf_scale, smaller / sequence_scale)
    return fit[fit > 0]


def isotonic_degree_sequence(sequence: Any) -> Floats:
    """The non-increasing sequence nearest to a noisy degree sequence, by least squares.

    Minimises Σ (v[x] − d[x])² over d[0] ≥ d[1] ≥ …: `isotonic_l2` of the row turned round, in linear time.

    Parameters
    ----------
    sequence : array-like, or an object with an array `values`
        Noisy numbers that were non-increasing before the noise.

    Returns
    -------
    ndarray of float64
        As many numbers as were given, non-increasing. They may be fractional or negative.

    Raises
    ------
    AnswersError
        When the measurement is not a non-empty row of finite numbers.

    Notes
    -----
    Costs no privacy: it reads released numbers only. Source: Hay, Li, Miklau and Jensen, ICDM 2009.

    Examples
    --------
    >>> isotonic_degree_sequence([5.0, 2.0, 4.0, 1.0])
    array([5., 3., 3., 1.])
    """
    return isotonic_l2(_measurement("sequence", sequence)[::-1])[::-1]


def degree_sequence_from_ccdf(ccdf: Any) -> Integers:
    """The degree sequence that fits a noisy CCDF.

    The CCDF is made non-increasing (isotonic regression), rounded to counts ≥ 0 and transposed:
    d[x] = #{y : c[y] > x}.

    Parameters
    ----------
    ccdf : array-like, or an object with an array `values`
        Noisy counts: the value at y is the number of nodes of degree > y plus noise, y = 0, 1, … without gaps.

    Returns
    -------
    ndarray of int64
        Degrees, non-increasing, all > 0. Its length is the fitted c[0].

    Raises
    ------
    AnswersError
        When the measurement is not a non-empty row of finite numbers, or implies more than 2^31 nodes.

    Notes
    -----
    Costs no privacy: it reads released numbers only. Source: Proserpio, Goldberg and McSherry, VLDB 2014, section
    3.1 (the degree sequence and the CCDF are functional inverses).

    Examples
    --------
    >>> degree_sequence_from_ccdf([4.1, 1.8, 2.0, 0.2])
    array([3, 3, 1, 1])
    """
    repaired = isotonic_degree_sequence(_measurement("ccdf", ccdf))
    if repaired[0] > _MOST_NODES:
        raise AnswersError("ccdf: the counts imply more than 2^31 nodes: measure with a larger epsilon")
    return _conjugate(np.maximum(np.rint(repaired), 0.0).astype(np.int64))


def _measurement(name: str, given: Any) -> Floats:
    numbers = vector(getattr(given, "values", given), name)
    if not len(numbers):
        raise AnswersError(f"{name}: expected a non-empty row of numbers, in the order of their keys 0, 1, …")
    return numbers


def _conjugate(counts: Integers) -> Integers:
    """The same staircase read along the other axis: out[x] = #{y : counts[y] > x}.

    Counts do not increase.
    """
    return np.searchsorted(-counts, -np.arange(counts[0]), side="left").astype(np.int64)


def _lowest_staircase(long: Floats, short: Floats, long_weight: float, short_weight: float) -> Integers:
    """The `len(short)` row lengths of the lowest optimal staircase, in a grid `len(long)` wide.

    A cell (x, y) gains `A·clip(2(long[x] − y) − 1, ±1) + B·clip(2(short[y] − x) − 1, ±1)`. Rows are taken from the top:
    `D[y][c] = gain of the first c cells of row y + max over c' <= c of D[y+1][c']`.
    """
    width, height = len(long), len(short)
    # Gains are integers held in float64, and no sum of them reaches 2^53: exact, so ties are true ties.
    unit = 2.0 ** (51 - math.ceil(math.log2(width * height)))
    a, b = max(1.0, np.rint(unit * long_weight)), max(1.0, np.rint(unit * short_weight))
    columns = np.rint(a * (2.0 * np.clip(long, -1, height + 1) - 1.0))
    rows = np.rint(b * (2.0 * np.clip(short, -1, width + 1) - 1.0))
    ends = _row_ends(columns, rows, a, b)
    tall = int(np.count_nonzero(ends))

    best = np.zeros(width + 1)  # max over c' <= c of the row above, at c
    records: list[npt.NDArray[np.uint8]] = []
    previous = 0
    for y in range(tall - 1, -1, -1):
        end = int(ends[y])
        best[previous + 1 : end + 1] = best[previous]
        gain = np.clip(columns[:end] - 2.0 * a * y, -a, a)
        split = min(max(int((rows[y] + b) // (2.0 * b)), 0), end)
        gain[:split] += b
        gain[split + 1 :] -= b
        if split < end:
            gain[split] += min(max(rows[y] - 2.0 * b * split, -b), b)
        np.cumsum(gain, out=gain)
        best[1 : end + 1] += gain
        risen = np.maximum.accumulate(best[: end + 1])
        # c improves on all smaller ones exactly where the running maximum rises.
        records.append(np.packbits(risen[1:] > risen[:-1]))
        best[: end + 1] = risen
        previous = end

    lengths = np.zeros(height, dtype=np.int64)
    c = width
    for y, packed in enumerate(reversed(records)):
        rises = np.flatnonzero(np.unpackbits(packed[: (c + 7) // 8], count=min(c, int(ends[y]))))
        c = int(rises[-1]) + 1 if len(rises) else 0
        if not c:
            break
        lengths[y] = c
    return lengths


def _row_ends(columns: Floats, rows: Floats, a: float, b: float) -> Integers:
    """An upper bound on the length of each row y of the lowest optimum, non-increasing in y.

    Where a >= b only cells with long[x] > y can gain, and where b >= a only cells with short[y] > x. Beyond the
    down-closure of those no cell gains, so cutting any optimum back to it leaves an optimum.
    """
    ends = np.full(len(rows), len(columns), dtype=np.int64)
    if a >= b:
        # The last column above y, found in the running maximum from the right, which has the same one.
        highest = np.maximum.accumulate(columns[::-1])
        levels = a * (2.0 * np.arange(len(rows)) - 1.0)
        ends = np.minimum(ends, len(columns) - np.searchsorted(highest, levels, side="right"))
    if b >= a:
        ends = np.minimum(ends, np.clip(np.ceil((rows + b) / (2.0 * b)), 0, len(columns)).astype(np.int64))
    return np.maximum.accumulate(ends[::-1])[::-1]
