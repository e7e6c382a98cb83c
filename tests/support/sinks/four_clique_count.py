"""FourCliqueCount: as triangles."""

from __future__ import annotations

from tests.support.sink_cases import GRAPHS, SinkCase, on_a_ladder
from wpinq.sinks.graph_counts import FourCliqueCount

CASE = SinkCase(
    "FourCliqueCount",
    lambda rng, query: query.measure(FourCliqueCount(), rng.choice([0.5, 2])),
    on_a_ladder,
    GRAPHS,
    texts=("FourCliqueCount(0.1, interval_share: 0.1)",),
)
