"""Distributions of a release's noise: public arithmetic on its size, without draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wpinq.errors import AnswersError, EpsilonError, described


def half_width(scale: float, confidence: float) -> float:
    """The half-width of the interval that contains Laplace noise with this probability."""
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {described(confidence)}: write 0.95 for 95 %")
    return -scale * math.log1p(-confidence)


def half_width_of_two(first: float, second: float, scale: float, confidence: float) -> float:
    """The half-width of the interval of `first·X + second·Y`, X and Y independent Laplace draws.

    Notes
    -----
    With `s = min/max` of the absolute factors, the larger one as the unit, the chance to exceed x is
    `(exp(−x) − s²·exp(−x/s)) / (1 − s²)`, for s = 1 the limit `(1 + x/2)·exp(−x)`. Its logarithm is concave, so each
    step of Newton's from below ends at or above the solution, and so do all after it.

    Examples
    --------
    >>> half_width_of_two(0, 3, 1, 0.95) == 3 * half_width(1, 0.95)
    True
    >>> round(half_width_of_two(1, 1, 1, 0.95), 3)
    4.113
    """
    small, large = sorted((abs(first), abs(second)))
    reach = half_width(1.0, confidence)
    if small <= 1e-9 * large:
        return scale * large * reach
    ratio, error = min(small / large, 1 - 1e-9), 1 - confidence
    gap = 1 - ratio
    for _ in range(12):
        chance = -math.expm1(2 * math.log(ratio) - reach * gap / ratio) / (gap * (1 + ratio))
        slope = -math.expm1(math.log(ratio) - reach * gap / ratio) / (gap * (1 + ratio))
        reach += (math.log(chance) - reach - math.log(error)) * chance / slope
    return scale * large * reach


def listed_reach(excess: float, ratio: float, confidence: float) -> float:
    """The distance from a listed noisy value to the lower end of its interval, in scales.

    A listed value is shown because it is large. Of a value that is shown only where it is above a threshold, `value -
    half_width` is too high: noise that lifts a weight over the threshold is shown more often. This lower end is valid
    given that the value is shown.

    Parameters
    ----------
    excess : float
        How far the value is above the least that is listed, in scales.
    ratio : float
        `a = exp(−1/scale)` of double-geometric noise, its scale in steps; 1 of Laplace noise.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    float
        Infinity where the value is so near to the threshold that an absent key is shown with as large a one all too
        often: then nothing bounds the weight from below.

    Notes
    -----
    Write S for the survival function of the noise and t for the least value that is listed. Given that it is listed,
    a value of weight w is at least x with the chance `R(w) = S(x − w)/S(t − w)`, which does not fall with w, for the
    noise is log-concave. A weight below the one where `R(w) = (1 − confidence)/2` has values of x or more less often
    than that, so it is left out with at most this chance. For w ≤ t, R is `d = exp(−excess)`; above, with
    `y = exp((w − t)/scale)`, `R = d·y / (1 + a − a/y)`, and y solves a quadratic equation. The upper end may stay
    where it is: given that it is listed, a value is never smaller than otherwise. `docs/proofs/listing.md`.

    Examples
    --------
    >>> round(listed_reach(20.0, 1.0, 0.95), 4) == round(half_width(1.0, 0.95), 4)
    True
    >>> listed_reach(3.0, 1.0, 0.95)
    inf
    """
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {described(confidence)}")
    error, chance = 1 - confidence, math.exp(-max(excess, 0.0))
    if 2 * chance > error:
        return math.inf
    linear = error * (1 + ratio)
    return -math.log((linear + math.sqrt(max(0.0, linear * linear - 8 * error * chance * ratio))) / 4)


@dataclass(frozen=True, slots=True)
class DoubleGeometric:
    """Double-geometric noise on the integers.

    `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`.

    Parameters
    ----------
    scale : float
        In steps, positive and at most 2⁶⁰: `geometric_scale` gives it.

    Raises
    ------
    EpsilonError
        When the scale is not such a float.

    Examples
    --------
    >>> DoubleGeometric(1.0).interval(0.95)
    3
    """

    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale <= 2.0**60:
            raise EpsilonError("the scale of noise must be a float above 0, at most 2^60: take it from geometric_scale")

    @property
    def ratio(self) -> float:
        """`a = exp(−1/scale)`."""
        return math.exp(-1 / self.scale)

    @property
    def variance(self) -> float:
        """`2a / (1 − a)²`, always less than the `2·scale²` of Laplace noise."""
        return 2 * self.ratio / math.expm1(-1 / self.scale) ** 2

    def survival(self, threshold: int) -> float:
        """The probability that a draw is more than an integer t: `a^(t+1)/(1 + a)` for t ≥ −1.

        Examples
        --------
        >>> round(DoubleGeometric(1.0).survival(0), 6)
        0.268941
        """
        if threshold < -1:
            return 1 - self.survival(-threshold - 1)
        return math.exp(-(threshold + 1) / self.scale) / (1 + self.ratio)

    def interval(self, confidence: float) -> int:
        """The least m with `Pr[|noise| ≤ m] ≥ confidence`, in steps.

        Raises
        ------
        AnswersError
            When the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise AnswersError("a confidence lies strictly between 0 and 1: give for example 0.95")
        # 2 a^(m+1) / (1 + a) ≤ 1 − confidence
        steps = -self.scale * (math.log1p(-confidence) + math.log1p(self.ratio) - math.log(2)) - 1
        m = max(0, math.ceil(steps))
        return m - 1 if m and 2 * self.survival(m - 1) <= 1 - confidence else m


# How far a draw from a ladder can be from the count, when of the ladder only a noisy width is known.
#
# The width w of a ladder moves by at most 1 with an edge, so a noisy one can be bought; and it bounds the local
# sensitivities from both sides, `lower_t(w) ≤ LS_t ≤ upper_t(w)`. With `A = Σ_{t ≥ k} LS_t · q^(t+1)`, the rungs beyond
# k, and `C = 1/2 + Σ_{t < k} LS_t · q^(t+1)`, all others,
#
#     Pr[the draw is beyond rung k] = A / (A + C) ≤ A⁺ / (A⁺ + C⁻)
#
# with the upper bound in A and the lower one in C. A tenth of the chance of error goes to the noise of the width; over
# all widths that are left, k is taken so that the rest is enough. The count is then within `Σ_{t < k} upper_t(w)` of
# the draw, for the largest of these widths. Here all numbers are public, so floats do.
#
# A `Bound` is a polynomial in t as its differences at 0: `Σ_m b_m · C(t, m)`, whose sums have closed forms.

#: From a width to the differences at 0 of a polynomial in t that bounds `LS_t`.
Bound = Callable[[float], Sequence[float]]

#: Into how many ranges the possible widths are cut: A⁺ is of the largest, C⁻ of the least of each.
_CELLS = 64

#: Relative, for the rounding of what is here.
_MARGIN = 1e-9


def distance(lower: Bound, upper: Bound, widths: tuple[float, float], scale: float, error: float) -> float:
    """The distance that a draw from the count exceeds with at most this probability.

    Parameters
    ----------
    lower, upper : Bound
        Of `LS_t`, by width; both rise with it.
    widths : (float, float)
        The least and the largest width that is possible.
    scale : float
        Of the rungs: `q = exp(-1/scale)`.
    error : float
        The probability, between 0 and 1.

    Raises
    ------
    AnswersError
        When the numbers are beyond the range of floats.
    """
    low, high = widths
    ends = [low + (high - low) * i / _CELLS for i in range(_CELLS + 1)]
    cells = [(lower(start), upper(end)) for start, end in pairwise(ends)]
    try:
        rungs = _rungs(cells, scale, error * (1 - _MARGIN))
        reached = _value([0.0, *cells[-1][1]], rungs) * (1 + _MARGIN)
    except OverflowError:
        reached = math.inf
    if not math.isfinite(reached):
        raise AnswersError("this interval is beyond the range of floats: use a larger epsilon")
    return reached


def _rungs(cells: Sequence[tuple[Sequence[float], Sequence[float]]], scale: float, error: float) -> int:
    """The least k such that a draw is beyond rung k with at most this probability.

    This is for whichever cell the width is in.
    """

    def enough(k: int) -> bool:
        return all(_beyond(lower, upper, k, scale) <= error for lower, upper in cells)

    last = 1
    while not enough(last):
        last *= 2
    first = last // 2  # not enough, or 0
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if enough(middle) else (middle, last)
    return last


def _beyond(lower: Sequence[float], upper: Sequence[float], k: int, scale: float) -> float:
    beyond = _tail(upper, k, scale)
    within = max(0.0, _tail(lower, 0, scale) - _tail(lower, k, scale))
    return beyond / (beyond + within + 0.5)


def _tail(differences: Sequence[float], k: int, scale: float) -> float:
    """`Σ_{t ≥ k} p(t) · q^(t+1) = q^k · Σ_m (Δ^m p)(k) · z^(m+1)`, with `z = q / (1 − q)`."""
    z = 1 / math.expm1(1 / scale)
    shifted = (_value(differences[m:], k) for m in range(len(differences)))
    return math.exp(-k / scale) * sum(value * z ** (m + 1) for m, value in enumerate(shifted))


def _value(differences: Sequence[float], t: int) -> float:
    """`Σ_m b_m · C(t, m)`."""
    return sum(b * math.comb(t, m) for m, b in enumerate(differences))
