"""Private selection: which of some public candidates scores best, without showing the scores.

The mechanism is permute-and-flip: visit the candidates in random order, and stop at candidate i with probability
`exp(-epsilon * (max - score_i) / 2)`. It promises what the exponential mechanism promises, and its expected
score is never lower. OpenDP runs it in exact rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import EpsilonError, PlanError
from wpinq.kernel.mechanism import Measurement, contrib, invoke
from wpinq.measure.scales import exact_number, round_up

_MAX_STEPS = 16


def selection_scale(epsilon: Fraction, slack: Fraction, distances: Iterable[Fraction]) -> float:
    """The scale of the flips of `select`: `2 * (1 + slack) / epsilon`, certified by OpenDP.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the scores.
    distances : iterable of Fraction
        `uses * unit_weight` of every source, each more than 0.

    Returns
    -------
    float
        The scale: at least `2 * (1 + slack) / epsilon`, and above it by a few units in the last place only.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or floating point cannot hold the scale, a distance or a bill.

    Notes
    -----
    A unit moves every score by at most `d * (1 + slack)`, some up and some down, hence the 2: OpenDP's map for
    scores at L∞ distance x is `2x / scale`, rounded up. It is affine, so one unit is enough (`certified_scale`).

    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Examples
    --------
    >>> selection_scale(Fraction(1, 2), Fraction(0), [Fraction(1)])
    4.0
    """
    return certified_scale(_permute_and_flip, epsilon, slack, distances)


def certified_scale(
    build: Callable[[float], Measurement], epsilon: Fraction, slack: Fraction, distances: Iterable[Fraction]
) -> float:
    """The least scale, to a few units in the last place, whose loss OpenDP certifies to be at most the bill.

    The search starts at `2 * (1 + slack) / epsilon`, rounded up, and takes one `nextafter` at a time until
    for every distance d, with `d_in` the least float that is at least `d * (1 + slack)`:
    `Fraction(build(scale).map(d_in)) <= d * epsilon`. Arithmetic is exact but for these directed roundings.

    Parameters
    ----------
    build : callable
        The measurement with a given scale. Its map must be affine with a non-negative intercept. A function of a
        module, not a lambda: results are cached by it.
    epsilon : Fraction
        More than 0.
    slack : Fraction
        Rounding slack, at least 0: an output moves by at most `d * (1 + slack)`.
    distances : iterable of Fraction
        `uses * unit_weight` of every source: how far one unit of it moves the output in exact arithmetic. At
        least one, each more than 0.

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
    One unit is enough. A source that changes by k ≥ 1 units moves the output by at most `k * d_in`. The map is
    `loss(x) = a + b·x` with a, b ≥ 0, so `loss(k·d_in) ≤ k·(a + b·d_in) ≤ k·d·epsilon`, the billed loss of k
    units. The map of selection has a = 0, up to its rounding up to a float.

    Privacy cost: none. Everything here is known before data is touched.
    """
    billed = sorted({exact_number(d, "uses × unit weight of a source") for d in distances})
    if exact_number(epsilon, "epsilon") <= 0:
        raise EpsilonError("epsilon must be more than 0 to scale noise: parse it with parse_epsilon")
    if exact_number(slack, "the rounding slack") < 0:
        raise EpsilonError("the rounding slack must be at least 0: take the bound that the plan analysis gives")
    if not billed or billed[0] <= 0:
        raise EpsilonError("noise needs at least one source, each with uses × unit weight of more than 0")
    return _search(build, epsilon, slack, tuple(billed))


@lru_cache(maxsize=1024)
def _search(
    build: Callable[[float], Measurement], epsilon: Fraction, slack: Fraction, billed: tuple[Fraction, ...]
) -> float:
    for d in billed:
        round_up(d * epsilon, "the billed epsilon of a source")
    limits = [(round_up(d * (1 + slack), "uses × unit weight of a source"), d * epsilon) for d in billed]
    scale = round_up(2 * (1 + slack) / epsilon, "the noise scale")
    for _ in range(_MAX_STEPS):
        measurement = build(scale)
        if all(Fraction(measurement.map(d_in)) <= loss for d_in, loss in limits):
            return scale
        scale = math.nextafter(scale, math.inf)
    raise EpsilonError("OpenDP does not certify this noise within the bill: report it with the version of OpenDP")


@lru_cache(maxsize=64)
def _permute_and_flip(scale: float) -> Measurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance

    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64")
    with contrib():
        return make_noisy_max(*space, max_divergence(), scale=scale)


def select(scores: Sequence[float], epsilon: Fraction, slack: Fraction, distances: Iterable[Fraction]) -> int:
    """The position of a candidate with a high score, chosen privately by permute-and-flip.

    With `q_j = exp(-(max - score_j) / scale)` and `scale = selection_scale(epsilon, slack, distances)`, that is
    2 / epsilon but for the slack, candidate i of n is chosen with probability
    `q_i * Σ_S Π_{j in S} (1 - q_j) / (n * C(n - 1, |S|))`, S running over the sets of other candidates (those
    that were visited before i, and refused).

    Parameters
    ----------
    scores : sequence of float
        One finite score a candidate, and protected. The candidates, and so their number, are public. Each score
        must be 1-Lipschitz in the weighted dataset that it is computed from.
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the scores: each moves by at most `uses * unit_weight * (1 + slack)`.
    distances : iterable of Fraction
        `uses * unit_weight` of every source, each more than 0.

    Returns
    -------
    int
        The position of the chosen candidate.

    Raises
    ------
    PlanError
        When there are no candidates.
    EpsilonError
        When there is no certified scale for the parameters.
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
    >>> select([0.0, 10_000.0, 1.0], Fraction(1, 2), Fraction(0), [Fraction(1)])
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    measurement = _permute_and_flip(selection_scale(epsilon, slack, distances))
    return int(invoke(measurement, scores))
