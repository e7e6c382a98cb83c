"""Private selection of a high-scoring public candidate, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-(max - score_i) / scale)`. It has the guarantee of the exponential mechanism, and its expected score is never
lower. Scores and scale are taken for the rationals that they are, the order is uniform, and the coins are exact
(`exact_bernoulli`): nothing is rounded anywhere.

A coin does not depend on the order. So all may be flipped before, and the first heads of a uniform order is uniform
among the heads: `select_each` draws choices in many groups at once, of the same law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import PlanError
from wpinq.noise.exact_bernoulli import Coin, RandomBytes, exponential_coin
from wpinq.runtime.arrays import Floats, Integers


def below(bound: int, random: RandomBytes) -> int:
    """A uniform integer from 0 to `bound - 1`."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(random((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn


def select(scores: Sequence[float | Fraction], scale: float, random: RandomBytes) -> int:
    """The position of a candidate with a high score, chosen privately by permute-and-flip.

    With `q_j = exp(-(max - score_j) / scale)`, candidate i of n is chosen with probability
    `q_i * Σ_S Π_{j in S} (1 - q_j) / (n * C(n - 1, |S|))`, S running over the sets of other candidates (those
    that were visited before i, and refused).

    Parameters
    ----------
    scores : sequence of float or Fraction
        One finite score a candidate, and protected. The candidates, and so their number, are public. Where the
        dataset that they are computed from moves by 1, the moves of any two must differ by at most a bound, the
        sensitivity.
    scale : float
        `laplace_scale(epsilon, slack, sensitivity)`.
    random : callable
        The source of random bytes.

    Returns
    -------
    int
        The position of the chosen candidate.

    Raises
    ------
    PlanError
        When there are no candidates.
    OverflowError
        When a score is not finite.

    Notes
    -----
    Privacy cost: `stability * unit_weight * epsilon` for every source, as `laplace_scale` shows. The
    distribution is that of the largest `score_i + Exp(scale)`. Against the exponential mechanism, which chooses i
    with probability proportional to `exp(score_i / scale)`, the loss is the same and the expected score at
    least as high. How long a choice takes depends on the scores.

    Source: McKenna, Sheldon, "Permute-and-flip", NeurIPS 2020. The exponential mechanism: McSherry, Talwar,
    FOCS 2007.

    Examples
    --------
    >>> import os
    >>> select([0.0, 10_000.0, 1.0], 2.0, os.urandom)
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    if not all(map(math.isfinite, scores)):
        raise OverflowError("scores are finite")
    (best, unit), (wide, narrow) = max(scores).as_integer_ratio(), scale.as_integer_ratio()
    places = list(range(len(scores)))
    while True:  # ends at the best at the latest, whose coin always falls on heads
        pick = below(len(places), random)
        places[pick], places[-1] = places[-1], places[pick]  # what is taken from the end is uniform among what is left
        place = places.pop()
        top, bottom = scores[place].as_integer_ratio()
        if exponential_coin((best * bottom - top * unit) * narrow, unit * bottom * wide, random):
            return place


#: The bits of a coin's number that are drawn for all coins at once.
FIRST = 32

#: A bound on the error of `_chances`.
_MARGIN = 2.0**-40

_TERMS, _FAR = 18, 32
_E = Fraction(Coin(Fraction(1), logistic=False).leading(128), 2**128)
_POWERS = np.array([float(_E**power) for power in range(_FAR)])


def select_each(scores: NDArray[Any], scale: Fraction, random: RandomBytes) -> Integers:
    """The places of candidates with high scores, one a group, chosen as by `select`.

    The choices are independent.

    Parameters
    ----------
    scores : numpy array, shape (groups, candidates)
        Whole numbers, of int64 or of Python's integers, and protected: the scores in some unit.
    scale : Fraction
        The scale in that unit, exactly.
    random : callable
        The source of random bytes.

    Returns
    -------
    numpy array of int64, shape (groups,)
        The places.

    Raises
    ------
    PlanError
        When there are no candidates.

    Notes
    -----
    Privacy cost: the sum of that of `select` over the groups. `docs/proofs/choices.md` has the proof.

    Examples
    --------
    >>> import os
    >>> select_each(np.array([[0, 10_000], [10_000, 0]]), Fraction(2), os.urandom)
    array([1, 0])
    """
    if not scores.shape[1]:
        raise PlanError("there is nothing to select from: give at least one candidate")
    top, bottom = scale.as_integer_ratio()
    below_best = scores.max(axis=1, keepdims=True) - scores
    if scores.dtype == np.int64:
        away = below_best / (top / bottom)
    else:  # which may be beyond the range of floats
        away = (np.minimum(below_best * bottom, 2 * _FAR * top) / top).astype(np.float64)
    words = np.frombuffer(random(FIRST // 8 * scores.size), dtype="<u4").reshape(scores.shape)
    drawn, chances = words * 2.0**-FIRST, _chances(away)
    heads = drawn + 2.0**-FIRST <= chances - _MARGIN
    for place in zip(*((drawn < chances + _MARGIN) & ~heads).nonzero(), strict=True):
        coin = Coin(int(below_best[place]) / scale, logistic=False)
        heads[place] = coin.decide(int(words[place]), FIRST, random)
    among = np.count_nonzero(heads, axis=1)  # the best one's coin always falls on heads
    taken = np.zeros(len(scores), dtype=np.int64)
    for group in np.flatnonzero(among > 1):
        taken[group] = below(int(among[group]), random)
    found: Integers = np.argmax(np.cumsum(heads, axis=1) > taken[:, np.newaxis], axis=1)
    return found


def _chances(away: Floats) -> Floats:
    """`exp(−t)` for t ≥ 0, within `_MARGIN`; 0 from `_FAR` on.

    Notes
    -----
    With t = k + f, 0 ≤ f < 1, it is `exp(−1)^k` times `1 − f/1·(1 − f/2·(1 − f/3·(…)))`. Each bracket lies between 0
    and 1. The error of a step is at most 3 unit roundoffs, and a step takes over a factor of f/k of the one before, so
    that of all is below 10 of them; what is cut off is below 1/19!. t itself is off by two unit roundoffs of t < 32.
    """
    near = away < _FAR
    whole = np.floor(np.where(near, away, 0.0))
    rest = np.where(near, away, 0.0) - whole
    sums = np.ones(away.shape)
    for term in range(_TERMS, 0, -1):
        sums = 1.0 - rest / term * sums
    found: Floats = np.where(near, sums * _POWERS[whole.astype(np.int64)], 0.0)
    return found
