"""Counts of triangles, stars and 4-cliques by the ladder mechanism, as sinks: whole numbers, and no weights.

Noise goes with the local sensitivity of the graph at hand, which is private; so is how exact a count is, unless a share
of epsilon is given up to tell.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import STR, Type
from wpinq.expr.values import Value
from wpinq.measure.renyi import BOUNDED_RANGE
from wpinq.noise.ladder import Ladder
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.noise.scales import LEAST_LADDER_SCALE, ladder_scale, width_scale
from wpinq.plan.node import Node
from wpinq.plan.operators import Source
from wpinq.plan.properties import PlanProperties
from wpinq.sinks.answer_kinds import COUNT as COUNTED
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.graph_ladders import SimpleGraph, clique_ladder, star_ladder, triangle_ladder
from wpinq.sinks.graph_plans import edge_source, uses_of_an_edge
from wpinq.sinks.sink import Sink

# What the sinks have in common that take a plan for a graph and release an integer from a ladder: no weights.
#
# The plan gives the edges, and is billed by edges: each pays epsilon.


class LadderSink(Sink):
    """An integer near one that a graph has, by the ladder mechanism."""

    key_type: ClassVar[Type] = STR
    single: ClassVar[bool] = True
    key: ClassVar[str]
    """The key of the integer."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the answers: that of the integer, and that of the ladder's width where it is released too."""
        return (self.key,)

    @abstractmethod
    def ladder(self, graph: SimpleGraph) -> Ladder:
        """The ladder of a protected graph."""

    @abstractmethod
    def scales(self, certificate: PlanProperties, epsilon: Fraction) -> tuple[float, ...]:
        """The scale for each of the keys: of the rungs, and of the noise on the width."""

    def identity(self) -> tuple[bytes | str, ...]:
        return ("ladder", self.name)

    def check(self, plan: Node) -> None:
        edge_source(plan, self.name)

    def stability(self, plan: Node) -> Mapping[str, Fraction]:
        source = edge_source(plan, self.name).operator
        assert isinstance(source, Source)
        return {source.source: uses_of_an_edge(source)}

    def usage(self, plan: Node, source: str, word: str) -> tuple[str, str]:
        whole = self.stability(plan)[source] == 1
        return "changes by one edge " + ("a record" if whole else "for the two records of one"), ""

    def asked(self, plan: Node, epsilon: Fraction) -> tuple[Node, Fraction]:
        ((_, share),) = self.stability(plan).items()
        return edge_source(plan, self.name), epsilon * share

    def value(self, numbers: Mapping[Value, float]) -> Value:
        if tuple(numbers) != self.keys:
            raise AnswersError(f"the answers of {self.name} have the keys {', '.join(self.keys)}")
        return max(0.0, numbers[self.key])


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


COUNT = "count"
"""The key of the count itself."""

LARGEST_STAR = 20
"""The most edges of a star that can be counted."""


@dataclass(frozen=True, slots=True)
class SubgraphCount(LadderSink):
    """An integer near the count, by the ladder mechanism.

    Attributes
    ----------
    interval_share : Fraction or None
        The share of epsilon that buys a noisy width of the ladder, and with it an interval.
    """

    key: ClassVar[str] = COUNT
    width_key: ClassVar[str]
    """What the width of the ladder is, in words."""

    interval_share: Fraction | None = None

    def __post_init__(self) -> None:
        share = self.interval_share
        if share is not None and not (isinstance(share, Fraction) and 0 < share < 1):
            raise PlanError("interval_share is the share of epsilon that buys an interval, between 0 and 1: try 0.1")

    @property
    def keys(self) -> tuple[str, ...]:
        return (COUNT,) if self.interval_share is None else (COUNT, self.width_key)

    @abstractmethod
    def lower(self, width: float) -> Sequence[float]:
        """A bound from below on all `LS_t` of a ladder of this width: see `ladder_interval`."""

    @abstractmethod
    def upper(self, width: float) -> Sequence[float]:
        """A bound from above."""

    def identity(self) -> tuple[bytes | str, ...]:
        return (*super(SubgraphCount, self).identity(), str(self.interval_share))

    def kind(self, plan: Node) -> Kind:
        return Kind(COUNTED, self._of(self.noun))

    def _of(self, things: str) -> str:
        return f"of {things}" + ("" if self.has_interval else "; no interval was bought (interval_share)")

    @property
    def has_interval(self) -> bool:
        return self.interval_share is not None

    @property
    def noise(self) -> str:
        # of a count alone the logarithm of the likelihood ratio lies in an interval of length epsilon
        return self.name if self.interval_share is not None else BOUNDED_RANGE

    def check(self, plan: Node) -> None:
        self.__post_init__()  # unpickling leaves it out
        super(SubgraphCount, self).check(plan)

    def epsilons(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """What the count and the width cost, together epsilon."""
        share = self.interval_share or Fraction(0)
        return epsilon * (1 - share), epsilon * share

    def scales(self, certificate: PlanProperties, epsilon: Fraction) -> tuple[float, ...]:
        of_count, of_width = self.epsilons(epsilon)
        rungs = ladder_scale(certificate, of_count)
        return (rungs, width_scale(of_width)) if of_width else (rungs,)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        if self.interval_share is None:
            raise AnswersError(
                f"how exact this count is depends on the graph, which is private: buy an interval by asking for "
                f"{self.name} with interval_share=0.1, a tenth of its epsilon"
            )
        if not 0 < confidence < 1:
            raise AnswersError(f"a confidence lies between 0 and 1, not {confidence!r}: write 0.95 for 95 %")
        error = 1 - confidence
        # of the count 2/ε, or more
        of_width = scale * float((1 - self.interval_share) / (2 * self.interval_share))
        off = DoubleGeometric(of_width).interval(1 - WIDTH_SHARE * error) + 1
        noisy = numbers[self.width_key]
        widths = max(0.0, noisy - off), max(0.0, noisy + off)
        reach = distance(self.lower, self.upper, widths, scale, (1 - WIDTH_SHARE) * error)
        return max(0.0, numbers[COUNT] - reach), max(0.0, numbers[COUNT] + reach)

    def half_width(self, scale: float, confidence: float) -> float:
        raise AnswersError(f"the answers of {self.name} have one interval, that of the count: value_interval()")

    def reach(self, epsilon: Fraction, width: float, confidence: float) -> float:
        """How far from the count a draw is at most, with this confidence, in a graph whose ladder has this width."""
        scale = max(LEAST_LADDER_SCALE, float(2 / self.epsilons(epsilon)[0]))
        return distance(self.lower, self.upper, (width, width), scale, 1 - confidence)


@dataclass(frozen=True, slots=True)
class TriangleCount(SubgraphCount):
    """The number of triangles. The width is the most neighbours that two vertices have in common, a = `LS_0`.

    Two such vertices have degrees of 2a or more in sum, so `a + (t − 1)/2 ≤ LS_t ≤ a + t`.
    """

    name: ClassVar[str] = "TriangleCount"
    noun: ClassVar[str] = "triangles"
    width_key: ClassVar[str] = "common neighbours"

    def ladder(self, graph: SimpleGraph) -> Ladder:
        return triangle_ladder(graph)

    def lower(self, width: float) -> Sequence[float]:
        return width - 0.5, 0.5

    def upper(self, width: float) -> Sequence[float]:
        return width, 1.0


@dataclass(frozen=True, slots=True)
class FourCliqueCount(SubgraphCount):
    """The number of cliques of 4 vertices. The width is the most neighbours that two vertices have in common, a.

    There are at most C(a, 2) edges among these, so `t·a + C(t, 2) ≤ LS_t ≤ C(a + t, 2)`.
    """

    name: ClassVar[str] = "FourCliqueCount"
    noun: ClassVar[str] = "cliques of 4 vertices"
    width_key: ClassVar[str] = "common neighbours"

    def ladder(self, graph: SimpleGraph) -> Ladder:
        return clique_ladder(graph)

    def lower(self, width: float) -> Sequence[float]:
        return 0.0, width, 1.0

    def upper(self, width: float) -> Sequence[float]:
        return width * (width - 1) / 2 if width > 1 else 0.0, width, 1.0


@dataclass(frozen=True, slots=True)
class StarCount(SubgraphCount):
    """The number of k-stars, a vertex with k of its neighbours. The width is the highest degree, d.

    `C(d + t, k − 1) ≤ LS_t ≤ C(d + t, k − 1) + C(d, k − 1)`, for the vertex and one without an edge are a pair.

    Attributes
    ----------
    edges : int
        k, from 2 to `LARGEST_STAR`.
    """

    name: ClassVar[str] = "StarCount"
    noun: ClassVar[str] = "stars"
    width_key: ClassVar[str] = "highest degree"

    edges: int = 2

    def __post_init__(self) -> None:
        super(StarCount, self).__post_init__()
        if isinstance(self.edges, bool) or not isinstance(self.edges, int) or not 2 <= self.edges <= LARGEST_STAR:
            raise PlanError(f"a star has from 2 to {LARGEST_STAR} edges: pass k as such an integer")

    def identity(self) -> tuple[bytes | str, ...]:
        return (*super(StarCount, self).identity(), str(self.edges))

    def kind(self, plan: Node) -> Kind:
        return Kind(COUNTED, self._of(f"stars of {self.edges} edges"))

    def ladder(self, graph: SimpleGraph) -> Ladder:
        return star_ladder(graph, self.edges)

    def lower(self, width: float) -> Sequence[float]:
        degree = math.floor(width)
        return [float(math.comb(degree, self.edges - 1 - m)) for m in range(self.edges)]

    def upper(self, width: float) -> Sequence[float]:
        degree = math.ceil(width)
        first, *others = (float(math.comb(degree, self.edges - 1 - m)) for m in range(self.edges))
        return 2 * first, *others
