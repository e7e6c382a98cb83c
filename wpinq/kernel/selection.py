"""Private selection: which of some public candidates scores best, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-(max - score_i) / scale)`. It promises what the exponential mechanism promises, and its expected
score is never lower. OpenDP runs it in exact rational arithmetic, and is imported only when first used.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

from wpinq.errors import EpsilonError, PlanError
from wpinq.kernel.noise import silently
from wpinq.measure.scales import exact_number, laplace_scale, round_up

OpenDPMeasurement = Any

_MAX_STEPS = 16
_features = threading.Lock()


def selection_scale(epsilon: Fraction, slack: Fraction, distances: Iterable[Fraction], score_range: Fraction) -> float:
    """The least scale of the flips of `select`, to a few units in the last place, that OpenDP certifies for the bill.

    The search starts at `score_range * (1 + slack) / epsilon`, rounded up, and takes one `nextafter` at a time until
    for every distance d, with `d_in` the least float that is at least `score_range * d * (1 + slack)`:
    `Fraction(measurement(scale).map(d_in)) <= d * epsilon`. Arithmetic is exact but for these directed roundings.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0: what the scores are computed from moves by at most `d * (1 + slack)`.
    distances : iterable of Fraction
        `stability * unit_weight` of every source: how far one unit of it moves the plan's output in exact arithmetic.
        At least one, each more than 0.
    score_range : Fraction
        How far the moves of two scores differ, at most, where the output moves by 1; more than 0.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EpsilonError
        When the parameters are outside these ranges, or floating point cannot hold the scale, a distance, or
        the loss billed for it, with full precision.

    Notes
    -----
    Let one unit change scores u to v, and let r be the range of the move, `max_i (v_i − u_i) − min_i (v_i − u_i)`, at
    most `d_in`. With `c = −min_i (v_i − u_i)`, the scores v + c are at least u and at most u + r: they moved in one
    direction, by an L∞ distance of at most r, for which OpenDP's map, of the *monotonic* metric, is `r / scale`,
    rounded up. And v + c are chosen among as v are: the choice depends on differences of scores alone.

    The same without the map: the choice is the largest `u_i + Exp(scale)`, so i is chosen with probability
    `E min(1, exp(−(m_i − u_i) / scale))`, m_i being the largest among the others. Each `u_j − u_i` moves by at most r,
    so `m_i − u_i` does, and the probability by a factor of at most `exp(r / scale)`.

    The map is linear, so one unit is enough: a source that changes by k ≥ 1 units moves scores by a range of at most
    `k * d_in`, which loses k times the loss of one, as billed.

    Privacy cost: none. Everything here is known before data is touched.

    Examples
    --------
    >>> selection_scale(Fraction(1, 2), Fraction(0), [Fraction(1)], Fraction(1))
    2.0
    """
    billed = [exact_number(d, "stability × unit weight of a source") for d in distances]
    if exact_number(score_range, "the range of scores") <= 0:
        raise EpsilonError("the range of scores must be more than 0: it is 2 where scores move by 1, up and down")
    scale = laplace_scale(exact_number(epsilon, "epsilon") / score_range, slack)
    if not billed or min(billed) <= 0:
        raise EpsilonError("noise needs at least one source, each with stability × unit weight of more than 0")
    for d in billed:
        round_up(d * epsilon, "the billed epsilon of a source")
    moves = [score_range * d * (1 + slack) for d in billed]
    limits = [(round_up(r, "the range of scores"), d * epsilon) for r, d in zip(moves, billed, strict=True)]
    for _ in range(_MAX_STEPS):
        measurement = _permute_and_flip(scale)
        if all(Fraction(measurement.map(d_in)) <= loss for d_in, loss in limits):
            return scale
        scale = math.nextafter(scale, math.inf)
    raise EpsilonError("OpenDP does not certify this noise within the bill: report it with the version of OpenDP")


@lru_cache(maxsize=64)
def _permute_and_flip(scale: float) -> OpenDPMeasurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance

    # monotonic: the distance is of scores that all rise, or all fall, which is what a range comes down to
    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64", monotonic=True)
    with contrib():
        return make_noisy_max(*space, max_divergence(), scale=scale)


@contextmanager
def contrib() -> Iterator[None]:
    """OpenDP's feature `contrib`, which its constructors ask for, switched on inside the block only.

    The feature set belongs to the whole process: left on, it would answer for the user's own use of OpenDP. A
    thread that switches it on during the block, some 0.1 ms for each new scale, finds it off afterwards.

    Examples
    --------
    >>> from opendp.mod import GLOBAL_FEATURES
    >>> before = set(GLOBAL_FEATURES)
    >>> with contrib():
    ...     "contrib" in GLOBAL_FEATURES
    True
    >>> set(GLOBAL_FEATURES) == before
    True
    """
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _features:
        if "contrib" in GLOBAL_FEATURES:
            yield
            return
        enable_features("contrib")
        try:
            yield
        finally:
            disable_features("contrib")


def select(scores: Sequence[float], scale: float) -> int:
    """The position of a candidate with a high score, chosen privately by permute-and-flip.

    With `q_j = exp(-(max - score_j) / scale)`, candidate i of n is chosen with probability
    `q_i * Σ_S Π_{j in S} (1 - q_j) / (n * C(n - 1, |S|))`, S running over the sets of other candidates (those
    that were visited before i, and refused).

    Parameters
    ----------
    scores : sequence of float
        One finite score a candidate, and protected. The candidates, and so their number, are public. Where the
        dataset that they are computed from moves by 1, the moves of any two must differ by at most `score_range`.
    scale : float
        `selection_scale(epsilon, slack, distances, score_range)`: score_range / epsilon, but for the slack.

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
    Privacy cost: `stability * unit_weight * epsilon` for every source, as OpenDP's privacy map certifies. The
    distribution is that of the largest `score_i + Exp(scale)`. Against the exponential mechanism, which chooses i
    with probability proportional to `exp(score_i / scale)`, the loss is the same and the expected score at
    least as high.

    Source: McKenna, Sheldon, "Permute-and-flip", NeurIPS 2020. The exponential mechanism: McSherry, Talwar,
    FOCS 2007.

    Examples
    --------
    >>> select([0.0, 10_000.0, 1.0], selection_scale(Fraction(1, 2), Fraction(0), [Fraction(1)], Fraction(1)))
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    measurement = _permute_and_flip(scale)
    return int(silently(lambda given: measurement([float(score) for score in given]), scores))
