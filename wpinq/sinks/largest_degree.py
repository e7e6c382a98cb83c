"""The largest degree of a graph, as a sink with public noise.

An edge changes it by at most 1 in every graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.expr.values import Value
from wpinq.noise.ladder import DegreeLadder, ladder_scale
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.graph_counts import LadderSink
from wpinq.sinks.graph_ladders import SimpleGraph, degree_ladder
from wpinq.sinks.sink import register
from wpinq.sinks.syntax import EPSILON, SinkSyntax


@register
@dataclass(frozen=True, slots=True)
class LargestDegree(LadderSink):
    """The largest degree plus double-geometric noise of scale 1/ε.

    It is a ladder with rungs of one integer on either side. All graphs have the same sum over the rungs, so two of them
    differ only in the rung of an integer. The noise is half of that for a count of subgraphs (`docs/proofs/ladder.md`).
    """

    name: ClassVar[str] = "LargestDegree"
    noun: ClassVar[str] = "largest degree"
    key: ClassVar[str] = "largest degree"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax("LargestDegree", (EPSILON,), lambda m: (m.plan, [])),)

    def ladder(self, graph: SimpleGraph) -> DegreeLadder:
        return degree_ladder(graph)

    @property
    def sensitivity(self) -> Fraction:
        """1 rung: the sum over all integers is the same for all graphs."""
        return Fraction(1)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (ladder_scale(plan_properties(plan), epsilon, self.sensitivity),)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} adds double-geometric noise of scale {scale:.9g} to the largest degree,"
        yield f"so 95 % of answers lie within {self.half_width(scale, 0.95):.4g} of it."

    def kind(self, plan: Node) -> Kind:
        return Kind(self.noun, self.noun)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        number, half = numbers[self.key], self.half_width(scale, confidence)
        return max(0.0, number - half), max(0.0, number + half)

    def half_width(self, scale: float, confidence: float) -> float:
        return float(DoubleGeometric(scale).interval(confidence))
