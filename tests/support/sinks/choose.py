"""Choose: by weight, where one score moves and others stay, and by quantiles, where some rise and others fall."""

from __future__ import annotations

from random import Random

import wpinq as wp
from tests.support.sink_cases import KINDS, RECORDS, SinkCase, chosen
from wpinq.api.query import Query


def ask(rng: Random, query: Query) -> wp.Measurement:
    epsilon, q = rng.choice([0.5, 2]), rng.choice(["weight", 0.5, 0.1, 0.75])
    if q == "weight":
        return query.most_common(epsilon, RECORDS)
    return query.quantile(epsilon=epsilon, q=q, candidates=RECORDS)


CASE = SinkCase(
    "Choose",
    ask,
    chosen,
    KINDS,
    texts=(
        "MostCommon(2, over: [1, 2, 3, 5])",
        "Median(1e-9, over: range(0, 100))",
        "Quantile(0.1, 1/3, over: [0])",
    ),
)
