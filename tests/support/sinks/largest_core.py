"""LargestCore: an edge moves it by at most 1, and the sum over all integers not at all."""

from __future__ import annotations

from tests.support.sink_cases import GRAPHS, SinkCase
from tests.support.sinks.largest_degree import lost
from wpinq.sinks.graph_counts import LargestCore

CASE = SinkCase(
    "LargestCore",
    lambda rng, query: query.measure(LargestCore(), rng.choice([0.5, 2])),
    lost,
    GRAPHS,
    texts=("LargestCore(0.1)",),
)
