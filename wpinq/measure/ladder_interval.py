"""How far a draw from a ladder can be from the count, when of the ladder only a noisy width is known.

The width w of a ladder moves by at most 1 with an edge, so a noisy one can be bought; and it bounds the local
sensitivities from both sides, `lower_t(w) ≤ LS_t ≤ upper_t(w)`. With `A = Σ_{t ≥ k} LS_t · q^(t+1)`, the rungs beyond
k, and `C = 1/2 + Σ_{t < k} LS_t · q^(t+1)`, all others,

    Pr[the draw is beyond rung k] = A / (A + C) ≤ A⁺ / (A⁺ + C⁻)

with the upper bound in A and the lower one in C. A tenth of the chance of error goes to the noise of the width; over
all widths that are left, k is taken so that the rest is enough. The count is then within `Σ_{t < k} upper_t(w)` of the
draw, for the largest of these widths. Here all numbers are public, so floats do.

A `Bound` is a polynomial in t as its differences at 0: `Σ_m b_m · C(t, m)`, whose sums have closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from wpinq.errors import AnswersError

Bound = Callable[[float], Sequence[float]]
"""From a width to the differences at 0 of a polynomial in t that bounds `LS_t`."""

WIDTH_SHARE = 0.1
"""The share of the chance of error that the noise of the width takes."""

_CELLS = 64
"""Into how many ranges the possible widths are cut: A⁺ is of the largest, C⁻ of the least of each."""

_MARGIN = 1e-9
"""Relative, for the rounding of what is here."""


def distance(lower: Bound, upper: Bound, widths: tuple[float, float], scale: float, error: float) -> float:
    """What the distance of a draw from the count exceeds with at most this probability.

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
    """The least k such that a draw is beyond rung k with at most this probability, whichever cell the width is in."""

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
