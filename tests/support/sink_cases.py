"""Neighbouring datasets by the presence of a unit, and how far the scores of a sink move between them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from random import Random
from typing import Any

import wpinq as wp
from wpinq.api.query import Query
from wpinq.api.simulate import PublicOutput
from wpinq.engines import reference
from wpinq.expr.values import Value
from wpinq.noise.ladder import Ladder
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties
from wpinq.sinks.graph_counts import LadderSink, edges_of
from wpinq.sinks.graph_ladders import simple_graph
from wpinq.sinks.sink import Sink, gathered

RECORDS = range(6)
FAR = 40
"""How far from the counts rungs are compared: moves of far ones are those of near ones, a rung later."""

ROUNDING = Fraction(1, 10**9)
"""Relative: scores of quantiles are rounded once."""

Data = Mapping[Any, Fraction]


@dataclass(frozen=True)
class Neighbours:
    """A query of integers, and data with and without one unit."""

    query: Query
    before: Data
    after: Data


Kind = Callable[[Random], Neighbours]


def weighted(rng: Random) -> Neighbours:
    """One record of weight 1 more, or less, among weights of any size."""
    before = {record: Fraction(rng.randint(4, 12), 4) for record in RECORDS}
    return _with_one(rng, wp.source("numbers", int, weights=True), before, Fraction(1))


def negative(rng: Random) -> Neighbours:
    """One unit of weight 2 more, or less, among weights of either sign; it may be spread over records."""
    before = {record: Fraction(rng.randint(-12, 12), 4) for record in RECORDS}
    return _with_one(rng, wp.source("numbers", int, unit_weight=2, weights=True), before, Fraction(2))


def whole(rng: Random) -> Neighbours:
    """One record more, or less, of whole weights."""
    before = {record: Fraction(rng.randint(1, 3)) for record in RECORDS}
    return _with_one(rng, wp.source("numbers", int), before, Fraction(1), spread=False)


def persons(rng: Random) -> Neighbours:
    """All rows of one person, of whom each has three at most."""
    visits = wp.source("numbers", page=int, person="user", at_most=3)
    others = Counter((rng.choice(RECORDS),) for _ in range(8))
    page = rng.choice(RECORDS)
    own = Counter((page if rng.random() < 0.7 else rng.choice(RECORDS),) for _ in range(rng.randint(1, 3)))
    before, after = ({row: Fraction(rows) for row, rows in held.items()} for held in (others, others + own))
    return Neighbours(visits.select(lambda v: v.page), before, after)


def parts(rng: Random) -> Neighbours:
    """One record more, or less, of a part of a partition."""
    before = {record: Fraction(rng.randint(4, 12), 4) for record in RECORDS}
    part = wp.source("numbers", int, weights=True).partition(lambda x: x % 2, [0, 1])[1]
    return _with_one(rng, part, before, Fraction(1))


def _with_one(
    rng: Random, query: Query, before: dict[int, Fraction], unit: Fraction, *, spread: bool = True
) -> Neighbours:
    shares = [rng.randint(0, 2) * rng.randint(0, 1) * rng.randint(0, 1) * spread for _ in RECORDS]
    shares[rng.choice(RECORDS)] += 1
    after = {
        record: weight + rng.choice([-1, 1]) * unit * Fraction(share, sum(shares))
        for (record, weight), share in zip(before.items(), shares, strict=True)
    }
    return Neighbours(query, before, after)


KINDS: dict[str, Kind] = {
    "weighted": weighted,
    "negative": negative,
    "whole": whole,
    "persons": persons,
    "parts": parts,
}
WHOLE: dict[str, Kind] = {"whole": whole, "persons": persons}


#: The chances of an edge: most graphs are dense, where an edge moves counts far.
DENSE = (0.3, 0.6, 0.9)


def edges(rng: Random, chances: Sequence[float] = DENSE) -> Neighbours:
    """One edge more, or less, of a small graph."""
    return _graphs(rng, chances, symmetric=False)


def both_directions(rng: Random, chances: Sequence[float] = DENSE) -> Neighbours:
    """The same, each edge as two records."""
    return _graphs(rng, chances, symmetric=True)


def _graphs(rng: Random, chances: Sequence[float], *, symmetric: bool) -> Neighbours:
    facts = ["unit_weights", *(["symmetric"] if symmetric else [])]
    source = wp.source("numbers", src=int, dst=int, facts=facts, unit_weight=2 if symmetric else 1)
    pairs, chance = [*combinations(range(6), 2)], rng.choice(chances)
    held = {pair for pair in pairs if rng.random() < chance}
    found = [held, held ^ {rng.choice(pairs)}]
    both = [{*graph, *((b, a) for a, b in graph)} if symmetric else graph for graph in found]
    before, after = ({pair: Fraction(1) for pair in sorted(graph)} for graph in both)
    return Neighbours(source, before, after)


GRAPHS: dict[str, Kind] = {"edges": edges, "both directions": both_directions}
#: Of few edges, where one joins components.
SPARSE: dict[str, Kind] = {name: partial(kind, chances=(0.1, 0.2, 0.3)) for name, kind in GRAPHS.items()}


@dataclass(frozen=True)
class SinkCase:
    """How a sink is held against exact scores.

    Attributes
    ----------
    name : str
        Of the sink.
    ask : callable
        A random measurement by it of a query.
    lost : callable
        The loss that the moved scores amount to, in the scales of the noise, from sink, outputs, keys and scales.
    kinds : mapping
        The neighbours that it is tried on, by name.
    texts : tuple of str
        A release in each way that a program writes one, as it is printed; over pairs of integers where it has GRAPHS.
    reached : Fraction
        The share of the bound that each kind has to reach.
    loose : str
        Why the bound is not reached, where `reached` is less than nine tenths.
    """

    name: str
    ask: Callable[[Random, Query], wp.Measurement]
    lost: Callable[[Any, PublicOutput, PublicOutput, Sequence[Value], Sequence[Fraction]], Fraction]
    kinds: Mapping[str, Kind]
    texts: tuple[str, ...]
    reached: Fraction = Fraction(9, 10)
    loose: str = ""

    def shares(self, kind: str, trials: int, seed: int = 1) -> Iterator[Fraction]:
        """The share of its bill that each of some random neighbours loses by the exact scores."""
        rng = Random(f"{self.name} {kind} {seed}")
        for _ in range(trials):
            pair = self.kinds[kind](rng)
            asked = self.ask(rng, pair.query)
            outputs = [
                PublicOutput(reference.evaluate(asked.plan, {"numbers": data}, EXACT))
                for data in (pair.before, pair.after)
            ]
            ((name, stability),) = asked.sink.stability(asked.plan).items()
            billed = asked.epsilon * stability * plan_properties(asked.plan).sources[name].unit_weight
            scales = [Fraction(scale) for scale in asked.sink.scales(asked.plan, asked.epsilon)]
            yield self.lost(asked.sink, *outputs, asked.domain or (), scales) / billed


def added_noise(
    sink: Sink, before: PublicOutput, after: PublicOutput, keys: Sequence[Value], scales: Sequence[Fraction]
) -> Fraction:
    """Of noise that is added to the weights of keys: the L1 move, in scales."""
    pairs = zip(gathered(sink, before, keys), gathered(sink, after, keys), strict=True)
    return sum((abs(Fraction(b) - Fraction(a)) for a, b in pairs), Fraction(0)) / scales[0]


def chosen(
    sink: Any, before: PublicOutput, after: PublicOutput, keys: Sequence[Value], scales: Sequence[Fraction]
) -> Fraction:
    """Of a choice: the range of the moves of scores, in scales."""
    pairs = zip(sink.scores(before, keys), sink.scores(after, keys), strict=True)
    moves = [Fraction(b) - Fraction(a) for a, b in pairs]
    return (max(moves) - min(moves)) / scales[0]


def on_a_ladder(
    sink: LadderSink, before: PublicOutput, after: PublicOutput, keys: Sequence[Value], scales: Sequence[Fraction]
) -> Fraction:
    """Of a ladder: the range of the moves of rungs in its scales, and the move of the width in those of its noise."""
    ladders = [sink.ladder(simple_graph(edges_of(output.weights()))) for output in (before, after)]
    counts = [ladder.count for ladder in ladders]
    places = range(min(counts) - FAR, max(counts) + FAR + 1)
    ends_of = [(ladder, _ends(ladder)) for ladder in ladders]
    rungs = [[_rung(ladder, place, ends) for place in places] for ladder, ends in ends_of]
    moves = [after - before for before, after in zip(*rungs, strict=True)]
    lost = Fraction(max(moves) - min(moves)) / scales[0]
    if len(scales) > 1:
        lost += abs(ladders[1].width - ladders[0].width) / scales[1]
    return lost


def _ends(ladder: Ladder) -> list[int]:
    """How far the first rungs reach from the count, until all integers that are looked at are reached."""
    ends = [0]
    while ends[-1] < 3 * FAR:
        ends.append(ladder.reach(len(ends)))
    return ends


def _rung(ladder: Ladder, place: int, ends: list[int]) -> int:
    """The rung of an integer: the least whose reach holds it."""
    return bisect_left(ends, abs(place - ladder.count))


def halved(sink: type[Sink]) -> property:
    """The sensitivity of a sink by half: an error that each sink's case has to notice."""
    honest = next(vars(base)["sensitivity"] for base in sink.__mro__ if "sensitivity" in vars(base))
    return property(lambda self: (honest.fget(self) if isinstance(honest, property) else honest) / 2)
