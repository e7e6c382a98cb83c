"""What outcomes tell of a pair where there are few of them: choices, and counts on ladders.

The law of each is computed by its definition. Outcomes are put in order of how much likelier they are on one side: an
event is an outcome, or all up to one; so the events that tell most are among those that are tried.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from tests.audit.pairs import ALPHA, Measured, Pair, Ready, told
from tests.support.choice_laws import permute_and_flip
from tests.support.ladder_laws import rung_law
from wpinq.api.simulate import PublicOutput
from wpinq.noise.ladder import as_float, draw_count
from wpinq.noise.permute_and_flip import select
from wpinq.sinks.choose import NoisyChoice
from wpinq.sinks.graph_counts import LadderSink, edges_of
from wpinq.sinks.graph_ladders import simple_graph

AT_ONCE = 2_000
LEAST = 0.01
"""Outcomes of less chance, on either side, are no events: the fit counts them."""

Law = Mapping[Any, float]


def chances(ready: Ready) -> Law:
    """The chance of every outcome, by definition."""
    sink, domain = ready.order.measurement.sink, ready.order.measurement.domain
    if isinstance(sink, LadderSink):
        ladder = sink.ladder(simple_graph(edges_of(ready.outputs)))
        of_rungs, ends = rung_law(ladder, ready.order.scale)
        found = {float(ladder.count): float(of_rungs[0])}
        for rung in range(1, 1 + int(np.argmax(of_rungs.cumsum() > 0.9999))):
            for offset in range(int(ends[rung - 1]) + 1, int(ends[rung]) + 1):
                chance = float(of_rungs[rung]) / (2 * (int(ends[rung]) - int(ends[rung - 1])))
                found |= {float(ladder.count + offset): chance, float(ladder.count - offset): chance}
        return found
    assert isinstance(sink, NoisyChoice)
    assert domain is not None
    scores = [float(score) for score in sink.scores(PublicOutput(ready.outputs), domain)]
    return dict(enumerate(permute_and_flip(scores, ready.order.scale).tolist()))


def drawing(ready: Ready) -> Callable[[], Any]:
    """One outcome, as a session draws it."""
    measurement, scales = ready.order.measurement, ready.order.scales
    keys, sink, output = measurement.domain, measurement.sink, PublicOutput(ready.outputs)
    assert keys is not None
    if isinstance(sink, LadderSink):  # as the sink, which makes the ladder for each draw
        ladder = sink.ladder(simple_graph(edges_of(ready.outputs)))
        return lambda: as_float(draw_count(ladder, scales[0], os.urandom))
    assert isinstance(sink, NoisyChoice)
    scores = sink.scores(output, keys)
    return lambda: select(scores, scales[0], os.urandom)


def measure(pair: Pair, noise: float, size: int, over: Callable[[], bool]) -> Measured:
    """Draw so many outcomes of either side, fewer where time is over, and bound what they tell."""
    ((before,), (after,)) = pair.ready(pair.before, noise), pair.ready(pair.after, noise)
    laws = {"before": chances(before), "after": chances(after)}
    draw = {"before": drawing(before), "after": drawing(after)}
    seen: dict[str, Counter[Any]] = {"before": Counter(), "after": Counter()}
    drawn = 0
    while drawn < size and not (drawn and over()):
        count = min(AT_ONCE, size - drawn)
        for side in seen:
            seen[side].update(draw[side]() for _ in range(count))
        drawn += count
    often = [x for x in laws["before"].keys() & laws["after"].keys() if min(law[x] for law in laws.values()) > LEAST]
    often.sort(key=lambda x: (laws["after"][x] / laws["before"][x], repr(x)))
    exact = max(abs(math.log(laws["after"][x] / laws["before"][x])) for x in often)
    bound = 0.0
    for likely, rare, ordered in (("before", "after", often), ("after", "before", often[::-1])):
        high, low = (np.array([seen[side][x] for x in ordered]) for side in (likely, rare))
        events = [*zip(high, low, strict=True), *zip(high.cumsum(), low.cumsum(), strict=True)]
        error = ALPHA / (2 * len(events))
        bound = max(bound, *(told(int(one), int(other), drawn, drawn, error) for one, other in events))
    return Measured(exact, bound, min(p_value(seen[side], laws[side]) for side in seen), drawn)


def p_value(seen: Counter[Any], law: Law) -> float:
    """Of a chi-square, over outcomes that are expected ten times and the rest together."""
    size = sum(seen.values())
    often = [x for x, chance in law.items() if chance * size >= 10]
    if not often:
        return 1.0
    found = [seen[x] for x in often]
    expected = [law[x] * size for x in often]
    rest = size - sum(expected)
    if rest >= 10:
        found, expected = [*found, size - sum(found)], [*expected, rest]
    elif size > sum(found):  # what is left belongs to the rarest of the others
        found[-1] += size - sum(found)
        expected[-1] += rest
    if len(found) < 2:
        return 1.0
    return float(stats.chisquare(found, np.array(expected) * (size / sum(expected))).pvalue)
