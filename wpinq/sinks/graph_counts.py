"""Counts of triangles, stars and 4-cliques by the ladder mechanism, as sinks: whole numbers, and no weights.

Noise goes with the local sensitivity of the graph at hand, which is private; so is how exact a count is, unless a share
of epsilon is given up to tell.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.values import Value
from wpinq.ladders.finding import clique_ladder, star_ladder, triangle_ladder
from wpinq.ladders.rungs import Ladder
from wpinq.ladders.simple_graph import SimpleGraph
from wpinq.measure.kinds import COUNT as COUNTED
from wpinq.measure.kinds import Kind
from wpinq.measure.ladder_interval import WIDTH_SHARE, distance
from wpinq.measure.ladder_sink import LadderSink
from wpinq.measure.laws import DoubleGeometric
from wpinq.measure.renyi import BOUNDED_RANGE
from wpinq.measure.scales import LEAST_LADDER_SCALE, ladder_scale, width_scale
from wpinq.plan.certify import Certificate
from wpinq.plan.node import Node

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

    def scales(self, certificate: Certificate, epsilon: Fraction) -> tuple[float, ...]:
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
