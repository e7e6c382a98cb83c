"""ComponentCount: an edge moves it by at most 1, and the sum over all integers not at all."""

from __future__ import annotations

from tests.support.sink_cases import SPARSE, SinkCase
from tests.support.sinks.largest_degree import lost
from wpinq.sinks.graph_counts import ComponentCount

CASE = SinkCase(
    "ComponentCount",
    lambda rng, query: query.measure(ComponentCount(), rng.choice([0.5, 2])),
    lost,
    SPARSE,
    texts=("ComponentCount(0.1)",),
)
