"""Noise given that the released number is above a cut, or at most one, and its chances.

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.geometric import add_geometric, geometric
from wpinq.noise.laplace import add_laplace
from wpinq.noise.sparse_bernoulli import exponential_bounds


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
