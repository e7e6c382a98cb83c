"""ChooseInGroups: what one unit moves is spread over groups, whose losses add up to that of one choice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support.sink_cases import KINDS, SinkCase
from wpinq.api.query import Query
from wpinq.api.simulate import PublicOutput
from wpinq.expr.values import Value
from wpinq.sinks.choose import ChooseInGroups

GROUPS = (0, 1)


def ask(rng: Random, query: Query) -> wp.Measurement:
    q = rng.choice([None, Fraction(1, 2), Fraction(1, 10), Fraction(3, 4)])
    sink = ChooseInGroups("weight" if q is None else "quantile", q, 3)
    pairs = query.select((lambda x: (x % 2, x // 2)) if q is None else (lambda x: (x % 2, x + 1)))
    return pairs.measure(sink, rng.choice([0.5, 2]), GROUPS)


def chosen_in_each(
    sink: Any, before: PublicOutput, after: PublicOutput, keys: Sequence[Value], scales: Sequence[Fraction]
) -> Fraction:
    """The sum over groups, and over the choice and its ends, of the ranges of the moves of scores, in scales."""
    scored = []
    for output in (before, after):
        (weights,) = sink.weights(output, keys)
        scores, unit = sink.scores(weights, [float(scale) for scale in scales])
        scored.append([[[Fraction(int(score), unit) for score in row] for row in each] for each in scores])
    lost = Fraction(0)
    for scale, *both in zip(scales, *scored, strict=True):
        for old, new in zip(*both, strict=True):
            moves = [b - a for a, b in zip(old, new, strict=True)]
            lost += (max(moves) - min(moves)) / scale
    return lost


CASE = SinkCase("ChooseInGroups", ask, chosen_in_each, KINDS, texts=())
