"""NoisyAverage: a record at an end of the range moves sum and count by a half each."""

from __future__ import annotations

from tests.support.sink_cases import KINDS, SinkCase, added_noise

CASE = SinkCase(
    "NoisyAverage",
    lambda rng, query: query.noisy_average(rng.choice([0.5, 2]), lambda x: x, 0, 4),
    added_noise,
    KINDS,
    texts=("NoisyAverage(1/3, record => to_float(record) / 2.0, lower: 0.0, upper: 1.0)",),
)
