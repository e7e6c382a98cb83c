"""The ladder of a count: local sensitivities `LS_t` at every distance t, their sums, and a polynomial above them.

`LS_t` is the largest of a few functions of t, one for each entry of a *front*: the pairs of vertices at which one edge
changes the count by most, now or after t further edges. An entry is two integers, and no entry of a front is
surpassed by another in both. `docs/proofs/ladder.md` proves what the ladder mechanism asks of these functions.

All is exact integer arithmetic, in closed form: a sum of a million terms takes as long as one of ten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import comb

FrontEntry = tuple[int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Ladder(ABC):
    """A count with its local sensitivities. Protected, like the graph that it was found in.

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
        """What an entry says of `LS_t`."""

    @abstractmethod
    def below(self, entry: FrontEntry, t: int) -> int:
        """`Σ_{u < t} height(entry, u)`."""

    @property
    @abstractmethod
    def bound(self) -> tuple[int, ...]:
        """Integers b_m ≥ 0 with `LS_t ≤ Σ_m b_m · C(t, m)` for all t, which is at most a few times `LS_t`."""

    @property
    @abstractmethod
    def width(self) -> int:
        """A number that one edge changes by at most 1, and that bounds every `LS_t`: what intervals are made from."""

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
        """`Σ LS_u` over `start ≤ u < end`, not empty: an entry that is the largest at both ends is so in between."""
        first = self._largest(start)
        if first == self._largest(end - 1):
            return self.below(self.front[first], end) - self.below(self.front[first], start)
        middle = (start + end) // 2
        return self._between(start, middle) + self._between(middle, end)


class TriangleLadder(Ladder):
    """Triangles. An entry (a, s) is of two vertices: common neighbours, and degrees without the edge between them."""

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
    """Cliques of 4. An entry (e, a) is of two vertices: their common neighbours, a, and the edges among these, e."""

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


class DegreeLadder(Ladder):
    """The largest degree, as a count: an edge moves it by at most 1 in every graph, so there is nothing to find."""

    __slots__ = ()

    def height(self, entry: FrontEntry, t: int) -> int:
        return 1

    def below(self, entry: FrontEntry, t: int) -> int:
        return t

    @property
    def bound(self) -> tuple[int, ...]:
        return (1,)

    @property
    def width(self) -> int:
        return 1


@dataclass(frozen=True, slots=True, repr=False)
class StarLadder(Ladder):
    """Stars of k edges. An entry (y, x), y ≤ x, is of two vertices: their degrees without the edge of both.

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
