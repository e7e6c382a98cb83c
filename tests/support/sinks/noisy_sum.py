"""NoisySum: a record whose value is at the larger bound moves the sum by all that it may."""

from __future__ import annotations

from random import Random

import wpinq as wp
from tests.support.sink_cases import KINDS, SinkCase, added_noise
from wpinq.api.query import Query


def ask(rng: Random, query: Query) -> wp.Measurement:
    lower, upper = rng.choice([(0, 3), (-2, 2), (-4, 1), (2, 5)])
    return query.noisy_sum(rng.choice([0.5, 2]), lambda x: x, lower, upper)


CASE = SinkCase(
    "NoisySum", ask, added_noise, KINDS, texts=("NoisySum(0.1, record => record * 2, lower: -1.0, upper: 5.0)",)
)
