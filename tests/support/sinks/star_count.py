"""StarCount: as triangles; with an interval, whose width moves by 1 at the same edge."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import wpinq as wp
from tests.support.sink_cases import GRAPHS, SinkCase, on_a_ladder
from wpinq.api.query import Query
from wpinq.sinks.graph_counts import StarCount


def ask(rng: Random, query: Query) -> wp.Measurement:
    return query.measure(StarCount(rng.choice([None, Fraction(1, 4)]), rng.choice([2, 3])), rng.choice([0.5, 2]))


CASE = SinkCase("StarCount", ask, on_a_ladder, GRAPHS, texts=("StarCount(0.1, 3, interval_share: 1/3)",))
