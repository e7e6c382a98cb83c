"""Counts of subgraphs and components, the largest degree and core, by the ladder mechanism.

Noise goes with the local sensitivity of the graph at hand, which is private; so is the error of a count, unless a share
of epsilon is spent on it. An edge changes the largest degree, the components and the largest core by at most 1 in every
graph, so their noise is public.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from wpinq.errors import AnswersError, PlanError, described
from wpinq.expr.nodes import Call, Expr, Lambda, Variable
from wpinq.expr.types import STR, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.geometric import add_geometric, geometric_scale
from wpinq.noise.ladder import Ladder, as_float, draw_count, ladder_scale
from wpinq.noise.noise_distributions import DoubleGeometric, distance
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators import Concat, Select, Source, Union, Where
from wpinq.plan.properties import plan_properties
from wpinq.sinks import graph_ladders
from wpinq.sinks.answer_kinds import COUNT as COUNTED, Kind, NotStated, Stated
from wpinq.sinks.graph_ladders import SimpleGraph, simple_graph
from wpinq.sinks.sink import Output, PublicKeys, Sink, register
from wpinq.sinks.syntax import EPSILON, Measured, SinkParameter, SinkSyntax, Written

# Plans whose output is a graph of undirected edges, in such a way that one record of the source decides on one edge.
#
# The graph of a plan has an edge {a, b}, a ≠ b, where (a, b) or (b, a) has a weight. Above a source of weights 1,
# Where keeps or drops a record, a Select that exchanges the two fields (or does nothing) makes (b, a) of (a, b), and
# Concat and Union put two such datasets together, as a source with its own reverse. By induction, what there is of
# (a, b) and (b, a) at any step is a function of what there is of these two in the source. So a change of k records
# changes at most k edges, and at most k/2 where the source is symmetric, for then both records of an edge change
# together.


def edge_source(plan: Node, name: str) -> Node:
    """The source of a plan that outputs a graph of undirected edges; PlanError otherwise.

    `name` is the sink in the message.
    """
    found: list[Node] = []
    for node in topological([plan]):
        operator = node.operator
        if isinstance(operator, Source):
            _check_source(node, name)
            found.append(node)
        elif isinstance(operator, Select):
            if not _permutes(operator.function):
                raise PlanError(
                    f"{name}: a Select before it may only exchange the two ends of an edge, so that one record is "
                    "one edge: declare a source whose records are the two ends"
                )
        elif not isinstance(operator, (Where, Concat, Union)):
            raise PlanError(
                f"{name} counts over the edges of a source, after Where, a Select that exchanges their ends, and "
                f"Concat or Union with its own reverse; {operator.name} is none of these: leave it out, or release "
                "weights with noisy_count"
            )
    if len(found) != 1:
        names = ", ".join(node.operator.source for node in found if isinstance(node.operator, Source))
        raise PlanError(f"{name} counts over the edges of one source, not of {names}: protect them as one source")
    return found[0]


def edges_of(weights: Mapping[Value, Any]) -> list[Value]:
    """The records with a weight, among integer weights computed to within less than 1/2."""
    return [record for record, weight in weights.items() if weight > 0.5]


def _check_source(node: Node, name: str) -> None:
    source, type_ = node.operator, node.type
    assert isinstance(source, Source)
    if not (isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]):
        raise PlanError(
            f"{name} counts over a source of edges: its records are two fields of one type, such as "
            f"(src: int, dst: int), not {type_}"
        )
    if "unit_weights" not in source.facts:
        raise PlanError(
            f'{name} needs records that are there or not: declare facts=["unit_weights"] for the source '
            f"{source.source!r}, in text with facts = [unit_weights]"
        )


def _permutes(function: Lambda) -> bool:
    """Whether a function of a pair is the identity or exchanges its two fields."""
    body = function.body.core
    return isinstance(body, Variable) or (
        isinstance(body, Call) and body.name == "record" and sorted(map(_field, body.arguments)) == [0, 1]
    )


def _field(expr: Expr) -> int:
    """Which field of the record an expression is, or −1."""
    taken = isinstance(expr, Call) and expr.name == "field" and isinstance(expr.arguments[0], Variable)
    return int(expr.attributes[0] or 0) if taken and isinstance(expr, Call) else -1


#: Of ladders, for examples: the width of the graph is private.
_WIDTHS = (10, 100, 1000)


class LadderSink(Sink):
    """An integer near one that a graph has, by the ladder mechanism: no weights.

    The plan gives the edges, and is billed by edges: each pays epsilon.

    Attributes
    ----------
    key : str
        The key of the integer.
    """

    noise: ClassVar[tuple[str, str]] = ("the ladder mechanism, with double-geometric draws", "ladder")
    key_type: ClassVar[Type] = STR
    single: ClassVar[bool] = True
    whole_output: ClassVar[bool] = True
    key: ClassVar[str]

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys of the answers: the integer, and the ladder's width where it is released too."""
        return (self.key,)

    @abstractmethod
    def ladder(self, graph: SimpleGraph) -> Ladder:
        """The ladder of a protected graph."""

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        """Draws from the ladder of all edges: the integer, and the noisy width if requested."""
        rows = output.integer_rows()
        ladder = self.ladder(simple_graph(edges_of(output.weights()) if rows is None else rows))
        draws = (
            lambda: draw_count(ladder, scales[0], random),
            lambda: add_geometric([ladder.width], scales[1], random)[0],
        )
        drawn = dict(zip(self.own_keys, draws, strict=False))
        return [as_float(drawn[str(key)]()) for key in keys]

    def identity(self) -> tuple[bytes | str, ...]:
        return ("ladder", self.name)

    def check(self, plan: Node) -> None:
        edge_source(plan, self.name)

    def stability(self, plan: Node) -> Mapping[str, Fraction]:
        source = edge_source(plan, self.name).operator
        assert isinstance(source, Source)
        # The number of edges in a unit of weight: a half where both directions change together.
        return {source.source: Fraction(1, 2) if "symmetric" in source.facts else Fraction(1)}

    def usage(self, plan: Node, source: str) -> tuple[str, str]:
        return "spent once for each edge" + ", which is two records" * (self.stability(plan)[source] < 1), ""

    def demand(self, plan: Node, epsilon: Fraction) -> tuple[Node, Fraction]:
        ((_, share),) = self.stability(plan).items()
        return edge_source(plan, self.name), epsilon * share

    def explain_cost(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        for name, times in self.stability(plan).items():
            source = sources([plan])[name]
            source.check()
            factor, weight = times * source.unit_weight, format_epsilon(source.unit_weight)
            why = "one record" if times == 1 else "two records"
            price = f"{format_epsilon(times)} x {weight} (its unit weight) = {format_epsilon(epsilon * factor)}"
            yield f"An edge of the graph is {why} of {name}: a release costs epsilon x {price},"
            yield "for any way of combining both directions in the plan."
            yield f"Protects {source.unit}{source.rows_of_unit} of {name}."

    def value(self, numbers: Mapping[Value, float]) -> Value:
        if tuple(numbers) != self.own_keys:
            raise AnswersError(f"the answers of {self.name} have the keys {', '.join(self.own_keys)}")
        return max(0.0, numbers[self.key])


#: The share of the chance of error that the noise of the width takes.
WIDTH_SHARE = 0.1

#: The key of the count itself.
COUNT = "count"

#: The most edges of a star that can be counted.
LARGEST_STAR = 20

_SHARE = SinkParameter("interval_share", "number", optional=True)


def _write(m: Measured) -> Written:
    edges = [str(m.sink.edges)] if m.sink.name == StarCount.name else []
    share = m.sink.interval_share
    return m.plan, edges if share is None else [*edges, f"interval_share: {format_epsilon(share)}"]


def _syntax(name: str, *more: SinkParameter) -> tuple[SinkSyntax, ...]:
    return (SinkSyntax(name, (EPSILON, *more, _SHARE), _write),)


@dataclass(frozen=True, slots=True)
class SubgraphCount(LadderSink):
    """An integer near the count, by the ladder mechanism.

    Attributes
    ----------
    interval_share : Fraction or None
        The share of epsilon that buys a noisy width of the ladder, and with it an interval.
    width_key : str
        What the width of the ladder is, in words.
    """

    key: ClassVar[str] = COUNT
    width_key: ClassVar[str]
    #: 2 rungs: an edge moves an integer by one rung, and so the sum over all integers.
    sensitivity: ClassVar[Fraction] = Fraction(2)

    interval_share: Fraction | None = None

    def __post_init__(self) -> None:
        share = self.interval_share
        if share is not None and not (isinstance(share, Fraction) and 0 < share < 1):
            raise PlanError("interval_share is the share of epsilon that buys an interval, between 0 and 1: try 0.1")

    @property
    def own_keys(self) -> tuple[str, ...]:
        return (COUNT,) if self.interval_share is None else (COUNT, self.width_key)

    @abstractmethod
    def lower(self, width: float) -> Sequence[float]:
        """A bound from below on all `LS_t` of a ladder of this width: see `distance`."""

    @abstractmethod
    def upper(self, width: float) -> Sequence[float]:
        """A bound from above."""

    @classmethod
    def from_arguments(cls, interval_share: Fraction | None = None, **given: Any) -> Self:
        return cls(None if interval_share is None else Fraction(interval_share), **given)

    def identity(self) -> tuple[bytes | str, ...]:
        return (*super(SubgraphCount, self).identity(), str(self.interval_share))

    def kind(self, plan: Node) -> Kind:
        return Kind(COUNTED, self._of(self.noun))

    def _of(self, things: str) -> str:
        return f"number of {things}" + ("" if self.has_interval else "; no interval was bought (interval_share)")

    @property
    def has_interval(self) -> bool:
        return self.interval_share is not None

    def check(self, plan: Node) -> None:
        self.__post_init__()  # unpickling leaves it out
        super(SubgraphCount, self).check(plan)

    def epsilons(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """The epsilons of the count and of the width, which add up to epsilon."""
        share = self.interval_share or Fraction(0)
        return epsilon * (1 - share), epsilon * share

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        """The scale of the rungs, and that of the noise on the width.

        The width is a whole number that an edge changes by at most 1.
        """
        of_count, of_width = self.epsilons(epsilon)
        rungs = ladder_scale(plan_properties(plan), of_count, self.sensitivity)
        return (rungs, geometric_scale(of_width, Fraction(1), Fraction(0))) if of_width else (rungs,)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        if self.interval_share is None:
            raise AnswersError(
                f"the error of this count depends on the private graph: buy an interval by releasing "
                f"{self.name} with interval_share=0.1, a tenth of its epsilon"
            )
        if not 0 < confidence < 1:
            raise AnswersError(f"a confidence lies between 0 and 1, not {described(confidence)}: write 0.95 for 95 %")
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

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The distance of a draw from the count, in a graph whose ladder has the stated width."""
        if stated.width is None:
            raise NotStated(f"needs width=…, the assumed {self.width_key}")
        widths = stated.width, stated.width
        return distance(self.lower, self.upper, widths, self.scales(plan, epsilon)[0], 1 - confidence)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        yield f"{self.called(epsilon)} draws a whole number near the count, for graphs of"
        for width in _WIDTHS:
            reach = self.error(plan, epsilon, None, 0.95, Stated(width=width))
            yield f"  {self.width_key} {width}: 95 % of answers lie within {reach:.4g} of the count."
        if self.interval_share is None:
            yield "Without interval_share=... the answer comes without an interval."
        else:
            yield f"A share {format_epsilon(self.interval_share)} of epsilon buys an interval."


@register
@dataclass(frozen=True, slots=True)
class TriangleCount(SubgraphCount):
    """The number of triangles.

    The width is the most neighbours that two vertices have in common, a = `LS_0`. Two such vertices have degrees of 2a
    or more in sum, so `a + (t − 1)/2 ≤ LS_t ≤ a + t`.
    """

    name: ClassVar[str] = "TriangleCount"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = _syntax("TriangleCount")
    noun: ClassVar[str] = "triangles"
    width_key: ClassVar[str] = "common neighbours"

    ladder = staticmethod(graph_ladders.triangle_ladder)

    def lower(self, width: float) -> Sequence[float]:
        return width - 0.5, 0.5

    def upper(self, width: float) -> Sequence[float]:
        return width, 1.0


@register
@dataclass(frozen=True, slots=True)
class FourCliqueCount(SubgraphCount):
    """The number of cliques of 4 vertices.

    The width is the most neighbours that two vertices have in common, a. There are at most C(a, 2) edges among these,
    so `t·a + C(t, 2) ≤ LS_t ≤ C(a + t, 2)`.
    """

    name: ClassVar[str] = "FourCliqueCount"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = _syntax("FourCliqueCount")
    noun: ClassVar[str] = "cliques of 4 vertices"
    width_key: ClassVar[str] = "common neighbours"

    ladder = staticmethod(graph_ladders.clique_ladder)

    def lower(self, width: float) -> Sequence[float]:
        return 0.0, width, 1.0

    def upper(self, width: float) -> Sequence[float]:
        return width * (width - 1) / 2 if width > 1 else 0.0, width, 1.0


@register
@dataclass(frozen=True, slots=True)
class StarCount(SubgraphCount):
    """The number of k-stars: a vertex with k of its neighbours.

    The width is the highest degree, d. `C(d + t, k − 1) ≤ LS_t ≤ C(d + t, k − 1) + C(d, k − 1)`, for the vertex and one
    without an edge are a pair.

    Attributes
    ----------
    edges : int
        k, from 2 to `LARGEST_STAR`.
    """

    name: ClassVar[str] = "StarCount"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = _syntax("StarCount", SinkParameter("edges", "integer"))
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
        return graph_ladders.star_ladder(graph, self.edges)

    def lower(self, width: float) -> Sequence[float]:
        degree = math.floor(width)
        return [float(math.comb(degree, self.edges - 1 - m)) for m in range(self.edges)]

    def upper(self, width: float) -> Sequence[float]:
        degree = math.ceil(width)
        first, *others = (float(math.comb(degree, self.edges - 1 - m)) for m in range(self.edges))
        return 2 * first, *others


class GraphNumber(LadderSink):
    """A number plus double-geometric noise of scale 1/ε.

    An edge moves it by at most 1 in every graph. It is a ladder with rungs of one integer on either side. All graphs
    have the same sum over the rungs, so two of them differ only in the rung of an integer. The noise is half of that
    for a count of subgraphs (`docs/proofs/ladder.md`).
    """

    #: 1 rung: the sum over all integers is the same for all graphs.
    sensitivity: ClassVar[Fraction] = Fraction(1)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (ladder_scale(plan_properties(plan), epsilon, self.sensitivity),)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} adds double-geometric noise of scale {scale:.9g} to the {self.noun},"
        yield f"so 95 % of answers lie within {self.half_width(scale, 0.95):.4g} of it."

    def kind(self, plan: Node) -> Kind:
        return Kind(self.noun, self.noun)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        number, half = numbers[self.key], self.half_width(scale, confidence)
        return max(0.0, number - half), max(0.0, number + half)

    def half_width(self, scale: float, confidence: float) -> float:
        return float(DoubleGeometric(scale).interval(confidence))


@register
@dataclass(frozen=True, slots=True)
class LargestDegree(GraphNumber):
    """The largest degree plus double-geometric noise of scale 1/ε."""

    name: ClassVar[str] = "LargestDegree"
    noun: ClassVar[str] = "largest degree"
    key: ClassVar[str] = noun
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax(name, (EPSILON,), lambda m: (m.plan, [])),)
    ladder = staticmethod(graph_ladders.degree_ladder)


@register
@dataclass(frozen=True, slots=True)
class ComponentCount(GraphNumber):
    """The number of connected components plus double-geometric noise of scale 1/ε.

    A vertex is what has an edge. An edge joins two components, or none, or has two vertices of its own.
    """

    name: ClassVar[str] = "ComponentCount"
    noun: ClassVar[str] = "number of components"
    key: ClassVar[str] = "components"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax(name, (EPSILON,), lambda m: (m.plan, [])),)
    ladder = staticmethod(graph_ladders.component_ladder)


@register
@dataclass(frozen=True, slots=True)
class LargestCore(GraphNumber):
    """The largest core plus double-geometric noise of scale 1/ε.

    It is the largest k for which some subgraph has all degrees ≥ k. Without an edge, that subgraph has all degrees
    ≥ k − 1.
    """

    name: ClassVar[str] = "LargestCore"
    noun: ClassVar[str] = "largest core"
    key: ClassVar[str] = noun
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax(name, (EPSILON,), lambda m: (m.plan, [])),)
    ladder = staticmethod(graph_ladders.core_ladder)
