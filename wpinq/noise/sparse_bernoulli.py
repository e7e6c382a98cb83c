"""The successes among very many independent trials, exactly, in time linear in successes.

The chance p < 1/2 of one trial is a real number, known by rational bounds as close as one likes. Let s be a float with
`1/s ≥ p/(1 − p)`, and `q = 1 − exp(−1/s)`. As `exp(−x) ≤ 1/(1 + x)`, `1 − q ≤ 1 − p`: q is at least p. Trials that
succeed with chance q are found by the gaps between them, geometric draws of `Pr[gap ≥ n] = exp(−n/s)` (`geometric`).
Each is kept with chance p/q, by a coin of its own: what is kept are independent successes of chance p. So their number
is binomial, and given the number they are a uniform subset of the trials, drawn without replacement.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

from wpinq.noise.exact_bernoulli import AT_ONCE, Coin, RandomBytes
from wpinq.noise.geometric import geometric

ChanceBounds = Callable[[int], tuple[Fraction, Fraction]]
"""From a number of bits to rationals on either side of a chance, each within some `2**-bits` of it."""

_LARGEST_SCALE = 2.0**60
_WORD = 64
_GUARD = 128
"""Bits beyond those of a comparison: a chance q is at least 2⁻⁶¹, and a quotient by it loses as many."""


def exponential_bounds(t: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals on either side of `exp(-t)`, t > 0.

    Examples
    --------
    >>> low, high = exponential_bounds(Fraction(3), 64)
    >>> low < high, round(float(low), 12) == round(float(high), 12) == round(math.exp(-3), 12)
    (True, True)
    """
    if t >= bits:
        return Fraction(0), Fraction(1, 2**bits)
    powers = max(1, math.ceil(t / 2))  # exp(-t) as a power of a chance that a coin has
    leading = Coin(t / powers, logistic=False).leading(bits)
    return Fraction(leading, 2**bits) ** powers, Fraction(leading + 1, 2**bits) ** powers


def successes(trials: int, chance: ChanceBounds, random: RandomBytes) -> list[int]:
    """The trials that succeed, of `trials` independent ones that are numbered from 0.

    Parameters
    ----------
    trials : int
        At least 0.
    chance : ChanceBounds
        Of each trial, below 1/2.
    random : callable
        The source of random bytes.

    Returns
    -------
    list of int
        Rising numbers.

    Examples
    --------
    >>> import os
    >>> found = successes(10**12, lambda bits: (Fraction(1, 10**11), Fraction(1, 10**11)), os.urandom)
    >>> found == sorted(found)
    True
    """
    most = chance(_GUARD)[1]
    scale = min(_LARGEST_SCALE, math.nextafter(float((1 - most) / most), 0.0))
    kept = _quotient(chance, scale)
    found: list[int] = []
    place = -1
    while place < trials:
        for _, gap in geometric(min(AT_ONCE, 16 + int((trials - place) / scale)), scale, random):
            place += gap + 1
            if place >= trials:
                break
            if _occurs(kept, random):
                found.append(place)
    return found


def _quotient(chance: ChanceBounds, scale: float) -> Callable[[int], tuple[int, int]]:
    """p/q in units of `2**-bits`: the integers below and above it."""

    @functools.cache
    def bounds(bits: int) -> tuple[int, int]:
        low, high = chance(bits + _GUARD)
        least, most = exponential_bounds(1 / Fraction(scale), bits + _GUARD)  # of 1 − q
        return math.floor((low / (1 - least)) * 2**bits), math.ceil((high / (1 - most)) * 2**bits)

    return bounds


def _occurs(bounds: Callable[[int], tuple[int, int]], random: RandomBytes) -> bool:
    """Whether a uniform number, its digits drawn one word after another, is below a chance."""
    bits, drawn = 0, 0
    while True:
        bits, drawn = bits + _WORD, drawn << _WORD | int.from_bytes(random(_WORD // 8), "little")
        low, high = bounds(bits)
        if drawn + 1 <= low:
            return True
        if drawn >= high:
            return False
