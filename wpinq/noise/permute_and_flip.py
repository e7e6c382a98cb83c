"""Private selection of a high-scoring public candidate, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-(max - score_i) / scale)`. It has the guarantee of the exponential mechanism, and its expected score is never
lower. Scores and scale are taken for the rationals that they are, the order is uniform, and the coins are exact
(`exact_bernoulli`): nothing is rounded anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.noise.exact_bernoulli import RandomBytes, below, exponential_coin


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
