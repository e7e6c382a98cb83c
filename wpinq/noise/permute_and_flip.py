"""Private selection: which of some public candidates scores best, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-(max - score_i) / scale)`. It promises what the exponential mechanism promises, and its expected
score is never lower. Scores and scale are taken for the rationals that they are, the order is uniform, and the coins
are exact (`coins`): nothing is rounded anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

from wpinq.errors import EpsilonError, PlanError
from wpinq.noise.exact_bernoulli import RandomBytes, below, exponential_coin
from wpinq.noise.guard import silently
from wpinq.noise.scales import exact_number, laplace_scale


def selection_scale(epsilon: Fraction, slack: Fraction, score_range: Fraction) -> float:
    """The scale of the flips of `select`: the least float that is at least `score_range * (1 + slack) / epsilon`.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0: what the scores are computed from moves by at most `d * (1 + slack)` for one unit of a
        source of which d is `stability * unit_weight`, how far one unit moves the plan's output in exact arithmetic.
    score_range : Fraction
        How far the moves of two scores differ, at most, where the output moves by 1; more than 0.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EpsilonError
        When the parameters are outside these ranges, or floating point cannot hold the scale.

    Notes
    -----
    Let one unit change scores u to v, and let r be the range of the move, `max_i (v_i − u_i) − min_i (v_i − u_i)`, at
    most `score_range * d * (1 + slack)`. The choice is the largest `u_i + Exp(scale)`, so i is chosen with probability
    `E min(1, exp(−(m_i − u_i) / scale))`, m_i being the largest among the others. Each `u_j − u_i` moves by at most r,
    so `m_i − u_i` does, and the probability by a factor of at most `exp(r / scale) ≤ exp(d * epsilon)`, as billed.
    A source that changes by k ≥ 1 units moves scores by a range of at most k times as much, and loses k times the loss.

    Privacy cost: none. Everything here is known before data is touched.

    Examples
    --------
    >>> selection_scale(Fraction(1, 2), Fraction(0), Fraction(1))
    2.0
    """
    if exact_number(score_range, "the range of scores") <= 0:
        raise EpsilonError("the range of scores must be more than 0: it is 2 where scores move by 1, up and down")
    return laplace_scale(exact_number(epsilon, "epsilon") / score_range, slack)


def select(scores: Sequence[float | Fraction], scale: float, random: RandomBytes = os.urandom) -> int:
    """The position of a candidate with a high score, chosen privately by permute-and-flip.

    With `q_j = exp(-(max - score_j) / scale)`, candidate i of n is chosen with probability
    `q_i * Σ_S Π_{j in S} (1 - q_j) / (n * C(n - 1, |S|))`, S running over the sets of other candidates (those
    that were visited before i, and refused).

    Parameters
    ----------
    scores : sequence of float or Fraction
        One finite score a candidate, and protected. The candidates, and so their number, are public. Where the
        dataset that they are computed from moves by 1, the moves of any two must differ by at most `score_range`.
    scale : float
        `selection_scale(epsilon, slack, score_range)`: score_range / epsilon, but for the slack.
    random : callable
        Where random bytes come from: the operating system, but for tests.

    Returns
    -------
    int
        The position of the chosen candidate.

    Raises
    ------
    PlanError
        When there are no candidates.
    EvaluationFailed
        When a score is not finite or anything else fails. The message is constant.

    Notes
    -----
    Privacy cost: `stability * unit_weight * epsilon` for every source, as `selection_scale` shows. The
    distribution is that of the largest `score_i + Exp(scale)`. Against the exponential mechanism, which chooses i
    with probability proportional to `exp(score_i / scale)`, the loss is the same and the expected score at
    least as high. How long a choice takes depends on the scores.

    Source: McKenna, Sheldon, "Permute-and-flip", NeurIPS 2020. The exponential mechanism: McSherry, Talwar,
    FOCS 2007.

    Examples
    --------
    >>> select([0.0, 10_000.0, 1.0], selection_scale(Fraction(1, 2), Fraction(0), Fraction(1)))
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    return silently(lambda given: _permute_and_flip(given, scale, random), scores)


def _permute_and_flip(scores: Sequence[float | Fraction], scale: float, random: RandomBytes) -> int:
    best, width, places = Fraction(max(scores)), Fraction(scale), list(range(len(scores)))
    while True:  # ends at the best at the latest, whose coin always falls on heads
        pick = below(len(places), random)
        places[pick], places[-1] = places[-1], places[pick]  # what is taken from the end is uniform among what is left
        place = places.pop()
        if exponential_coin((best - Fraction(scores[place])) / width, random):
            return place
