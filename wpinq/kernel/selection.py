"""Private selection: which of some public candidates scores best, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-epsilon * (max - score_i) / 2)`. It promises what the exponential mechanism promises, and its expected
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


def selection_scale(epsilon: Fraction, slack: Fraction, distances: Iterable[Fraction]) -> float:
    """The least scale of the flips of `select`, to a few units in the last place, that OpenDP certifies for the bill.

    The search starts at `2 * (1 + slack) / epsilon`, rounded up, and takes one `nextafter` at a time until
    for every distance d, with `d_in` the least float that is at least `d * (1 + slack)`:
    `Fraction(measurement(scale).map(d_in)) <= d * epsilon`. Arithmetic is exact but for these directed roundings.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the scores: each moves by at most `d * (1 + slack)`.
    distances : iterable of Fraction
        `uses * unit_weight` of every source: how far one unit of it moves a score in exact arithmetic. At least
        one, each more than 0.

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
    A unit moves every score by at most `d * (1 + slack)`, some up and some down, hence the 2: OpenDP's map for
    scores at L∞ distance x is `2x / scale`, rounded up. It is linear, so one unit is enough: a source that changes by
    k ≥ 1 units moves scores by at most `k * d_in`, which loses k times the loss of one, as billed.

    Privacy cost: none. Everything here is known before data is touched.

    Examples
    --------
    >>> selection_scale(Fraction(1, 2), Fraction(0), [Fraction(1)])
    4.0
    """
    billed = [exact_number(d, "uses × unit weight of a source") for d in distances]
    scale = laplace_scale(exact_number(epsilon, "epsilon") / 2, slack)
    if not billed or min(billed) <= 0:
        raise EpsilonError("noise needs at least one source, each with uses × unit weight of more than 0")
    for d in billed:
        round_up(d * epsilon, "the billed epsilon of a source")
    limits = [(round_up(d * (1 + slack), "uses × unit weight of a source"), d * epsilon) for d in billed]
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

    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64")
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
        One finite score a candidate, and protected. The candidates, and so their number, are public. Each score
        must be 1-Lipschitz in the weighted dataset that it is computed from.
    scale : float
        `selection_scale(epsilon, slack, distances)`, where a score moves by at most
        `uses * unit_weight * (1 + slack)`: 2 / epsilon, but for the slack.

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
    Privacy cost: `uses * unit_weight * epsilon` for every source, as OpenDP's privacy map certifies. The
    distribution is that of the largest `score_i + Exp(scale)`. Against the exponential mechanism, which chooses i
    with probability proportional to `exp(epsilon * score_i / 2)`, the loss is the same and the expected score at
    least as high.

    Source: McKenna, Sheldon, "Permute-and-flip", NeurIPS 2020. The exponential mechanism: McSherry, Talwar,
    FOCS 2007.

    Examples
    --------
    >>> select([0.0, 10_000.0, 1.0], selection_scale(Fraction(1, 2), Fraction(0), [Fraction(1)]))
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    measurement = _permute_and_flip(scale)
    return int(silently(lambda given: measurement([float(score) for score in given]), scores))
