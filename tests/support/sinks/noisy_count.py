"""NoisyCount: the weights move by as much as the output."""

from __future__ import annotations

from tests.support.sink_cases import KINDS, RECORDS, SinkCase, added_noise

CASE = SinkCase(
    "NoisyCount",
    lambda rng, query: query.noisy_count(rng.choice([0.5, 2]), RECORDS),
    added_noise,
    KINDS,
    texts=(
        "NoisyCount(0.1, over: range(0, 10))",
        "NoisyCountAbove(0.1, over: range(-5, 1000000), above: 25.5)",
    ),
)
