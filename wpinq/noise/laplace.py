"""Values plus Laplace noise of a certified scale: exact reals, rounded once to a float.

The digits of exponential noise (`exponential`) with a fair sign in front are those of Laplace noise. 64 of them give an
interval that contains `value + noise`. Rounding to the nearest float is monotone: where both ends round to one float,
so does the sum, whatever the digits to come. Elsewhere (at most one value in some 100) further digits are drawn until
they do. What is returned is thus the nearest float to `value + Laplace(b)`, a function of the output of the Laplace
mechanism over the reals: a change of the values by x in L1 costs exactly `x / b`, with nothing added for floats.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import EpsilonError
from wpinq.noise.exact_bernoulli import AT_ONCE, DIGITS, Exponential, RandomBytes, exponential
from wpinq.runtime.arrays import Floats, Integers

_LOW = 22  # of the digits: the other 42, behind up to 11 bits of the whole part, fill a float exactly
_ONE = Fraction(1)


def exact_number(number: object, what: str) -> Fraction:
    """An int or a Fraction as a Fraction; EpsilonError, which names it, for anything else."""
    if isinstance(number, bool) or not isinstance(number, (int, Fraction)):
        raise EpsilonError(f"{what} must be an exact number: pass a Fraction or an int")
    return Fraction(number)


def round_up(number: Fraction, what: str) -> float:
    """The least float that is at least a positive number; EpsilonError outside normal floats.

    The error names the number as `what`.
    """
    # Normal floats only, where one rounding is a relative error of 2**-53; half the range leaves room for a map
    # that doubles a distance.
    if not sys.float_info.min <= number <= sys.float_info.max / 2:
        raise EpsilonError(
            f"{what} is out of the range of floating point: use a source fewer times, or choose a unit weight "
            "and an epsilon nearer to 1"
        )
    rounded = float(number)
    return rounded if rounded >= number else math.nextafter(rounded, math.inf)


@lru_cache(maxsize=1024, typed=True)  # a float that equals a Fraction is refused all the same
def laplace_scale(epsilon: Fraction, slack: Fraction, sensitivity: Fraction = _ONE) -> float:
    """The scale of Laplace or exponential noise, rounded up to a float.

    It is the least float from `sensitivity · (1 + slack) / epsilon` on.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the plan and its engine.
    sensitivity : Fraction
        More than 0. Of noise on weights 1. Of a choice the range of the moves of scores: how far the moves of two
        scores differ, at most, where the output moves by 1.

    Returns
    -------
    float
        The scale b.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or the scale is out of the range of floats.

    Notes
    -----
    When a source changes by k ≥ 1 units, the computed output moves by at most `k * d * (1 + slack)` in L1, d being the
    source's `stability * unit_weight`. Exact noise of scale b loses `k * d * (1 + slack) / b ≤ k * d * epsilon`: the
    bill.

    A choice is the largest `u_i + Exp(b)`. Let one unit change scores u to v, and let r be the range of the move,
    `max_i (v_i − u_i) − min_i (v_i − u_i)`, at most `sensitivity * d * (1 + slack)`. So i is chosen with probability
    `E min(1, exp(−(m_i − u_i) / b))`, m_i being the largest among the others. Each `u_j − u_i` moves by at most r, so
    `m_i − u_i` does, and the probability by a factor of at most `exp(r / b) ≤ exp(d * epsilon)`, as billed. A source
    that changes by k ≥ 1 units moves scores by a range of at most k times as much, and loses k times the loss.

    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Source: Proserpio, Goldberg, McSherry, VLDB 2014, section 2.2 (NoisyCount).

    Examples
    --------
    >>> laplace_scale(Fraction(1, 2), Fraction(0)), laplace_scale(Fraction(1, 2), Fraction(0), Fraction(2))
    (2.0, 4.0)
    """
    if exact_number(epsilon, "epsilon") <= 0:
        raise EpsilonError("epsilon must be more than 0 to scale noise: parse it with parse_epsilon")
    if exact_number(slack, "the rounding slack") < 0:
        raise EpsilonError("the rounding slack must be at least 0: take the bound that the plan analysis gives")
    if exact_number(sensitivity, "the sensitivity") <= 0:
        raise EpsilonError("the sensitivity must be more than 0: it is 2 where scores move by 1, up and down")
    return round_up(sensitivity * (1 + slack) / epsilon, "the noise scale")


def add_laplace(values: Floats, scale: float, random: RandomBytes, sides: Floats | None = None) -> Floats:
    """The nearest float to each value plus an independent draw of Laplace noise.

    Parameters
    ----------
    values : numpy array of float64, shape (n,)
        Finite, and protected.
    scale : float
        b, positive and finite, taken for the rational that it is.
    random : callable
        The source of random bytes.
    sides : numpy array of float64, shape (n,), optional
        1 or -1 where noise is to be that side of the Laplace law alone (exponential noise, added or taken away), and 0
        where it is to be both.

    Returns
    -------
    numpy array of float64, shape (n,)
        Finite: a sum beyond the largest float becomes the largest float of its sign.

    Notes
    -----
    Privacy cost: `‖x − x′‖₁ / scale` between values x and x′, exactly. Time depends a little on the values and the
    noise, through the values that need more than 64 digits: at most one in some 100.

    Examples
    --------
    >>> import os
    >>> add_laplace(np.zeros(3), 10.0, os.urandom).shape
    (3,)
    """
    law = exponential(scale)
    noisy = np.empty(len(values))
    for start in range(0, len(values), AT_ONCE):
        chunk = values[start : start + AT_ONCE]
        signs, whole, digits = law.draw(len(chunk), random)
        if sides is not None:
            signs = np.where(given := sides[start : start + AT_ONCE], given, signs)
        noisy[start : start + AT_ONCE], sure = _rounded(chunk, law.exponent, signs, whole, digits)
        for i in (~sure).nonzero()[0]:
            known = int(whole[i]) << DIGITS | int(digits[i])
            noisy[start + i] = _refined(float(chunk[i]), law, int(signs[i]), known, random)
    return noisy


def _rounded(
    values: Floats, exponent: int, signs: Floats, whole: Integers, digits: NDArray[np.uint64]
) -> tuple[Floats, NDArray[np.bool_]]:
    """The nearest floats to the sums, and where that is sure.

    Notes
    -----
    `±c·(whole + digits)` is a + r, both exact floats: a has the whole part and 42 digits, r the other 22. `value + a`
    is s + e exactly (Knuth's two-sum). Write u = 2⁻⁵³, and let w be the float nearest to `e + r`. The sum, with all
    the digits to come, is s + t for a t within `x = u·|w| + c·2⁻⁶⁵` of w: r has half of what its last digit is worth
    on top. `margin` is `4u·|w| + (1 + 2⁻¹⁰)·c·2⁻⁶⁵`, within a factor of 1 ± 3u. The floats nearest to `w ± margin` are
    off by at most `u·(|w| + margin)`, less than `margin - x`, so they lie on either side of t. Rounding is monotone:
    the floats nearest to their sums with s lie on either side of that nearest to s + t. Where these are equal, they
    are it.

    Exponents are kept where nothing overflows and where what underflows (or is flushed to 0) is far below the margin.
    """
    c = math.ldexp(1.0, min(max(exponent, -900), 900))
    within = (np.abs(values) <= 2.0**1000) & (whole < 2**10) & (abs(exponent) <= 900)
    value, unit = values.clip(-(2.0**1000), 2.0**1000), signs * c
    a = unit * (np.minimum(whole, 2**10) + (digits >> np.uint64(_LOW)).astype(np.float64) * 2.0 ** (_LOW - DIGITS))
    s = value + a
    back = s - value
    e = (value - (s - back)) + (a - back)
    w = e + unit * ((digits & np.uint64(2**_LOW - 1)).astype(np.float64) + 0.5) * 2.0**-DIGITS
    margin = np.abs(w) * 2.0**-51 + c * (2.0**-65 + 2.0**-75)
    down = s + (w - margin)
    return down, within & (down == s + (w + margin))


def _refined(value: float, law: Exponential, sign: int, known: int, random: RandomBytes) -> float:
    """The nearest float to `value + sign · E`, given 64 digits of E/c.

    `known` is these digits after the point; further ones are drawn.
    """
    top, bottom = value.as_integer_ratio()
    place = DIGITS
    while True:
        shift = place - law.exponent  # a digit at this place is worth 2**-shift
        below, above = bottom << max(shift, 0), bottom << max(-shift, 0)
        start = top << max(shift, 0)
        near, far = (_nearest(start + sign * end * above, below) for end in (known, known + 1))
        if near == far:
            return near
        place += 1
        known = 2 * known + law.digit(place).flip(random)


def _nearest(top: int, bottom: int) -> float:
    """The nearest float, with the largest in place of infinity.

    Python's division of integers rounds correctly.
    """
    try:
        # + 0.0 turns -0.0 into 0.0: the sign of a zero would depend on the value, not on the noisy sum alone.
        return top / bottom + 0.0
    except OverflowError:
        return sys.float_info.max if top > 0 else -sys.float_info.max
