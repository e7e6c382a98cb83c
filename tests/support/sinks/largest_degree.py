"""LargestDegree: an edge moves it by at most 1, and the sum over all integers not at all."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.support.sink_cases import GRAPHS, SinkCase
from wpinq.api.simulate import PublicOutput
from wpinq.expr.values import Value
from wpinq.sinks.graph_counts import GraphNumber, LargestDegree, edges_of
from wpinq.sinks.graph_ladders import simple_graph


def lost(
    sink: GraphNumber, before: PublicOutput, after: PublicOutput, keys: Sequence[Value], scales: Sequence[Fraction]
) -> Fraction:
    numbers = [sink.ladder(simple_graph(edges_of(output.weights()))).count for output in (before, after)]
    return abs(numbers[1] - numbers[0]) / scales[0]


CASE = SinkCase(
    "LargestDegree",
    lambda rng, query: query.measure(LargestDegree(), rng.choice([0.5, 2])),
    lost,
    GRAPHS,
    texts=("LargestDegree(0.1)",),
)
