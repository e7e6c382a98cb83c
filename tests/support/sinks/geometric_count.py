"""GeometricCount: whole weights move by whole steps."""

from __future__ import annotations

from tests.support.sink_cases import RECORDS, WHOLE, SinkCase, added_noise

CASE = SinkCase(
    "GeometricCount",
    lambda rng, query: query.geometric_count(rng.choice([0.5, 2]), RECORDS),
    added_noise,
    WHOLE,
    texts=(
        "GeometricCount(0.1, over: range(0, 5))",
        "GeometricCountAbove(1/3, over: [1, 2, 5], above: 0.0)",
    ),
)
