"""Noise given that the released number is above a cut, or at most one; rare successes.

A *cut* t is a float (of double-geometric noise an integer) of at least 0. Compared with it is the released number,
after it was rounded. Laplace noise X on a weight w is released as the float nearest to `w + X`. That is above t where
`w + X` is above m, halfway between t and the next float t⁺; it is m with probability 0. So, for an absent key,

    Pr[released > t] = exp(−m/b)/2                    Pr[steps > t] = a^(t+1)/(1 + a),  a = exp(−1/scale)

Exponential noise has no memory, so nothing need be tried in vain for long:

- *Above t, w = 0.* What exceeds t ≥ 0 has the law of t plus exponential noise; what of it rounds to t is drawn again.
- *At most t, w ≤ t.* The plain mechanism, until it is at most t: at least every other draw is.
- *At most t, w > t.* Below t⁺ ≤ w, `w + X` has the law of t⁺ less exponential noise; what rounds to t⁺ is drawn again.

On a lattice the same hold with integers, t + 1 and t in the place of t and t⁺, and nothing to draw again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from wpinq.noise.exact_bernoulli import AT_ONCE, RandomBytes, exponential_bounds
from wpinq.noise.geometric import add_geometric, geometric
from wpinq.noise.laplace import add_laplace


@dataclass(frozen=True, slots=True)
class ConditionalNoise:
    """The noise of a release, under conditions.

    Parameters
    ----------
    scale : float
        As of `add_laplace`, or of `add_geometric`.
    whole : bool
        Whether it is double-geometric noise on integers, and not Laplace noise.
    random : callable
        The source of random bytes.

    Examples
    --------
    >>> import os
    >>> noise = ConditionalNoise(2.0, True, os.urandom)
    >>> all(number > 5 for number in noise.above(5.0, 3)), noise.at_most([9], [5.0])[0] <= 5
    (True, True)
    """

    scale: float
    whole: bool
    random: RandomBytes

    def chance(self, cut: float, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals on either side of the chance that the release of a weight of 0 is above a cut."""
        if self.whole:
            low, high = exponential_bounds((int(cut) + 1) / Fraction(self.scale), bits)
            least, most = exponential_bounds(1 / Fraction(self.scale), bits)
            return low / (1 + most), high / (1 + least)
        halfway = (Fraction(cut) + Fraction(math.nextafter(cut, math.inf))) / 2
        low, high = exponential_bounds(halfway / Fraction(self.scale), bits)
        return low / 2, high / 2

    def above(self, cut: float, count: int) -> list[float]:
        """Independent releases of a weight of 0, each given that it is above a cut."""
        if self.whole:
            return [float(int(cut) + 1 + size) for _, size in geometric(count, self.scale, self.random)]
        drawn: list[float] = []
        while len(drawn) < count:
            start = np.full(count - len(drawn), cut)
            tried = add_laplace(start, self.scale, self.random, np.ones(len(start)))
            drawn += tried[tried > cut].tolist()
        return drawn

    def at_most(self, weights: Sequence[float], cuts: Sequence[float]) -> list[float]:
        """Independent releases of weights, each given that it is at most its cut.

        A cut of infinity is no condition.
        """
        drawn = [math.nan] * len(weights)
        left = list(range(len(weights)))
        while left:
            tried = self._try([weights[i] for i in left], [cuts[i] for i in left])
            for i, number in zip(left, tried, strict=True):
                drawn[i] = number
            left = [i for i in left if not drawn[i] <= cuts[i]]
        return drawn

    def _try(self, weights: Sequence[float], cuts: Sequence[float]) -> list[float]:
        if not self.whole:
            held, upto = np.array(weights, dtype=np.float64), np.array(cuts, dtype=np.float64)
            beyond = held > upto
            start = np.where(beyond, np.nextafter(upto, np.inf), held)
            return list(map(float, add_laplace(start, self.scale, self.random, -beyond.astype(np.float64))))
        tried = [float(steps) for steps in add_geometric([int(weight) for weight in weights], self.scale, self.random)]
        above = [i for i, (weight, cut) in enumerate(zip(weights, cuts, strict=True)) if weight > cut]
        for i, (_, size) in zip(above, geometric(len(above), self.scale, self.random), strict=True):
            tried[i] = float(int(cuts[i]) - size)
        return tried


# The successes among very many independent trials, exactly, in time linear in successes.
#
# The chance p < 1/2 of one trial is a real number, known by rational bounds as close as one likes. Let s be a float
# with `1/s ≥ p/(1 − p)`, and `q = 1 − exp(−1/s)`. As `exp(−x) ≤ 1/(1 + x)`, `1 − q ≤ 1 − p`: q is at least p. Trials
# that succeed with chance q are found by the gaps between them, geometric draws of `Pr[gap ≥ n] = exp(−n/s)`
# (`geometric`). Each is kept with chance p/q, by a coin of its own: what is kept are independent successes of chance
# p. So their number is binomial, and given the number they are a uniform subset of the trials, drawn without
# replacement.

#: From a number of bits to rationals on either side of a chance, each within some `2**-bits` of it.
ChanceBounds = Callable[[int], tuple[Fraction, Fraction]]

_LARGEST_SCALE = 2.0**60
_WORD = 64
#: Bits beyond those of a comparison: a chance q is at least 2⁻⁶¹, and a quotient by it loses as many.
_GUARD = 128


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
