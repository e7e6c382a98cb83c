"""TriangleCount: an edge that closes triangles moves some integers a rung up and others a rung down."""

from __future__ import annotations

from tests.support.sink_cases import GRAPHS, SinkCase, on_a_ladder
from wpinq.sinks.graph_counts import TriangleCount

CASE = SinkCase(
    "TriangleCount",
    lambda rng, query: query.measure(TriangleCount(), rng.choice([0.5, 2])),
    on_a_ladder,
    GRAPHS,
    texts=("TriangleCount(0.1)",),
)
