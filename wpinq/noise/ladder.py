"""The ladder mechanism: an exact draw of an integer from the rungs of a count's ladder.

The rungs of a count T with local sensitivities `LS_t`: rung 0 is T alone, and rung j the next `LS_(j-1)` integers on
either side. Every integer on rung j is drawn with a chance in proportion to `q^j`, `q = exp(-1/scale)`. One edge
changes T and all `LS_t` in such a way that no integer moves by more than one rung (`docs/proofs/ladder.md`), so it
changes every chance by a factor of at most `exp(2/scale)`.

*How it is drawn.* Rung j > 0 weighs `2 · LS_t · q^j` with t = j − 1, and `LS_t ≤ Σ_m b_m · C(t, m)`. As
`Σ_t C(t, m) · q^t = q^m / (1 − q)^(m+1)`, the polynomial with all its rungs weighs `2 Σ_m b_m · z^(m+1)` for
`z = q/(1 − q)`, against 1 of rung 0. So one of these terms is chosen by its weight; t is m more than the sum of m + 1
geometric draws, which has `Pr[t] ∝ C(t, m) · q^t`; and it is kept with the chance `LS_t / Σ_m b_m · C(t, m)`, else
all begins anew. What is kept has the law of the ladder: every rung, however far, has its chance, and no float decides.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "Private release of graph statistics using ladder functions",
SIGMOD 2015.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import comb

from wpinq.noise.exact_bernoulli import RandomBytes, exponential_bounds
from wpinq.noise.geometric import check_exact, geometric, geometric_scale
from wpinq.noise.laplace import exact_number
from wpinq.noise.permute_and_flip import below
from wpinq.plan.properties import PlanProperties

#: Chances of neighbouring rungs differ by a factor of no more than exp(32).
LEAST_LADDER_SCALE = 1 / 32

# The ladder of a count: local sensitivities `LS_t` at every distance t, their sums, and a polynomial above them.
#
# `LS_t` is the largest of a few functions of t, one for each entry of a *front*: the pairs of vertices at which one
# edge changes the count by most, now or after t further edges. An entry is two integers, and no entry of a front is
# surpassed by another in both. `docs/proofs/ladder.md` proves the requirements of the ladder mechanism on these.
#
# All is exact integer arithmetic, in closed form: a sum of a million terms takes as long as one of ten.

FrontEntry = tuple[int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Ladder(ABC):
    """A count with its local sensitivities, protected like the graph that it was found in.

    Attributes
    ----------
    count : int
        The true count.
    front : tuple of (int, int)
        At least one entry, in rising order of the second number: as t grows, later ones become the largest.
    """

    count: int
    front: tuple[FrontEntry, ...]

    @abstractmethod
    def height(self, entry: FrontEntry, t: int) -> int:
        """The value of an entry for `LS_t`."""

    @abstractmethod
    def below(self, entry: FrontEntry, t: int) -> int:
        """`Σ_{u < t} height(entry, u)`."""

    @property
    @abstractmethod
    def bound(self) -> tuple[int, ...]:
        """Integers b_m ≥ 0 with `LS_t ≤ Σ_m b_m · C(t, m)` for all t.

        The sum is at most a few times `LS_t`.
        """

    @property
    @abstractmethod
    def width(self) -> int:
        """A number that one edge changes by at most 1, and that bounds every `LS_t`.

        Intervals are made from it.
        """

    def sensitivity(self, t: int) -> int:
        """`LS_t`."""
        return self.height(self.front[self._largest(t)], t)

    def reach(self, t: int) -> int:
        """`Σ_{u < t} LS_u`: how far the first t rungs reach from the count."""
        return self._between(0, t) if t else 0

    def _largest(self, t: int) -> int:
        """The place of the entry that is the largest at t, the last of those that are equal."""
        return max(range(len(self.front)), key=lambda i: (self.height(self.front[i], t), i))

    def _between(self, start: int, end: int) -> int:
        """`Σ LS_u` over `start ≤ u < end`, not empty.

        An entry that is the largest at both ends is so in between.
        """
        first = self._largest(start)
        if first == self._largest(end - 1):
            return self.below(self.front[first], end) - self.below(self.front[first], start)
        middle = (start + end) // 2
        return self._between(start, middle) + self._between(middle, end)


class TriangleLadder(Ladder):
    """The ladder of triangles.

    An entry (a, s) is of two vertices: common neighbours, and degrees without the edge between them.
    """

    __slots__ = ()

    def height(self, entry: FrontEntry, t: int) -> int:
        a, s = entry
        return min(a + t, (s + t) // 2)

    def below(self, entry: FrontEntry, t: int) -> int:
        a, s = entry
        early = min(t, s - 2 * a)  # a + u is the lesser up to there, (s + u) // 2 from there on
        return early * a + comb(early, 2) + _halves(s + t) - _halves(s + early)

    @property
    def bound(self) -> tuple[int, ...]:
        return self.width, 1

    @property
    def width(self) -> int:
        return max(a for a, _ in self.front)


class CliqueLadder(Ladder):
    """The ladder of cliques of 4.

    An entry (e, a) is of two vertices: their common neighbours, a, and the edges among these, e.
    """

    __slots__ = ()

    def height(self, entry: FrontEntry, t: int) -> int:
        e, a = entry
        return e + t * a + comb(t, 2)

    def below(self, entry: FrontEntry, t: int) -> int:
        e, a = entry
        return t * e + comb(t, 2) * a + comb(t, 3)

    @property
    def bound(self) -> tuple[int, ...]:
        return max(e for e, _ in self.front), self.width, 1

    @property
    def width(self) -> int:
        return max(a for _, a in self.front)


class UnitLadder(Ladder):
    """The ladder of a number that an edge moves by at most 1 in every graph.

    There is nothing to find for it.
    """

    __slots__ = ()
    bound = (1,)
    width = 1

    def height(self, entry: FrontEntry, t: int) -> int:
        return 1

    def below(self, entry: FrontEntry, t: int) -> int:
        return t


@dataclass(frozen=True, slots=True, repr=False)
class StarLadder(Ladder):
    """The ladder of stars of k edges.

    An entry (y, x), y ≤ x, is of two vertices: their degrees without the edge of both.

    Attributes
    ----------
    edges : int
        k, at least 2.
    largest_degree : int
        Of the graph.
    """

    edges: int
    largest_degree: int

    def height(self, entry: FrontEntry, t: int) -> int:
        y, x = entry
        return comb(x + t, self.edges - 1) + comb(y, self.edges - 1)

    def below(self, entry: FrontEntry, t: int) -> int:
        y, x = entry
        return comb(x + t, self.edges) - comb(x, self.edges) + t * comb(y, self.edges - 1)

    @property
    def bound(self) -> tuple[int, ...]:
        y, x = (max(numbers) for numbers in zip(*self.front, strict=True))
        powers = [comb(x, self.edges - 1 - m) for m in range(self.edges)]  # of C(x + t, k − 1), by Vandermonde
        return powers[0] + comb(y, self.edges - 1), *powers[1:]

    @property
    def width(self) -> int:
        return self.largest_degree


def _halves(n: int) -> int:
    """`Σ_{v < n} v // 2`."""
    return (n - 1) ** 2 // 4


_WORD = 64


def ladder_scale(certificate: PlanProperties, epsilon: Fraction, sensitivity: Fraction) -> float:
    """The scale of the rungs of a ladder, where floats represent its edge weights exactly.

    The least float from sensitivity/ε on, and no less than 1/32. At 1/32 the count itself is as good as certain, and
    the draw works with short numbers.

    Parameters
    ----------
    certificate : PlanProperties
        Of the plan that gives the edges.
    epsilon : Fraction
        More than 0.
    sensitivity : Fraction
        In rungs: 2 where an edge moves an integer by one rung and the sum of all their weights as much again, 1 where
        the sum is the same for all graphs.

    Raises
    ------
    EpsilonError
        When an engine's floats do not distinguish an edge from none, or the scale is out of their range.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.plan.properties import plan_properties
    >>> edges = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
    >>> ladder_scale(plan_properties(edges.plan), Fraction(1, 2), Fraction(2))
    4.0
    """
    check_exact(Fraction(1), certificate.rounding_error, certificate.output.norm_bound)
    return max(
        LEAST_LADDER_SCALE, geometric_scale(exact_number(epsilon, "epsilon") / sensitivity, Fraction(1), Fraction(0))
    )


def draw_count(ladder: Ladder, scale: float, random: RandomBytes) -> int:
    """A draw from a ladder.

    Parameters
    ----------
    ladder : Ladder
        Protected.
    scale : float
        From 1/32 to 2⁶⁰, taken for the rational that it is; `ladder_scale` gives it.
    random : callable
        The source of random bytes.

    Returns
    -------
    int
        Any integer, also below 0.

    Notes
    -----
    Privacy cost: `2 / scale` for each edge that is added or removed. How long a draw takes depends a little on the
    ladder: some two of three are kept.
    """
    bound = ladder.bound
    weights = (1, *(2 * b for b in bound))  # of the powers of z
    while True:
        power = choose_power(weights, scale, random)
        if power == 0:
            return ladder.count
        t = power - 1 + sum(size for _, size in geometric(power, scale, random))
        steps = ladder.sensitivity(t)
        if below(sum(b * comb(t, m) for m, b in enumerate(bound)), random) < steps:
            offset = ladder.reach(t) + 1 + below(steps, random)
            return ladder.count + (offset if below(2, random) else -offset)


def choose_power(weights: Sequence[int], scale: float, random: RandomBytes) -> int:
    """A power k with the chance `weights[k] · z^k / Σ_i weights[i] · z^i`.

    Here `z = 1 / (exp(1/scale) − 1)`.

    Parameters
    ----------
    weights : sequence of int
        None below 0, the first above.
    scale : float
        As of `draw_count`.
    random : callable
        Where random bytes come from.

    Notes
    -----
    A uniform U, its digits drawn one word after another, is compared with the sums `S_k / S` of the chances: k is found
    where `S_(k-1) ≤ U · S ≤ S_k` is certain from the digits of U so far and from rational bounds on z, that are made as
    close as U is known. A boundary is hit for ever with probability 0.
    """
    bits, drawn = 0, 0
    while True:
        bits, drawn = bits + _WORD, drawn << _WORD | int.from_bytes(random(_WORD // 8), "little")
        bounds = odds(scale, bits)
        if bounds is None:
            continue
        low, high = ([*accumulate(weight * z**k for k, weight in enumerate(weights))] for z in bounds)
        least, most = Fraction(drawn, 2**bits) * low[-1], Fraction(drawn + 1, 2**bits) * high[-1]
        for k, (before, after) in enumerate(zip((Fraction(0), *high), low, strict=False)):
            if before <= least and most <= after:
                return k


def odds(scale: float, bits: int) -> tuple[Fraction, Fraction] | None:
    """Rationals on either side of `z = q/(1 − q)`, `q = exp(-1/scale)`, or None.

    None where these bits do not bound z.
    """
    low, high = exponential_bounds(1 / Fraction(scale), bits)
    return None if high >= 1 else (low / (1 - low), high / (1 - high))


def as_float(count: int) -> float:
    """The nearest float, and the largest in place of infinity."""
    limit = sys.float_info.max
    return float(max(-int(limit), min(int(limit), count)))
