"""Draws from ladders: their law, far into the tail, on seeded bytes; and an audit of two neighbours on real ones."""

from __future__ import annotations

import math
import os
import random
from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from tests.support.ladder_laws import rung_law
from tests.support.parameters import for_each, tenth
from wpinq.noise.ladder import LEAST_LADDER_SCALE, Ladder, as_float, below, choose_power, draw_count, odds
from wpinq.sinks.graph_ladders import (
    clique_ladder,
    component_ladder,
    core_ladder,
    degree_ladder,
    simple_graph,
    star_ladder,
    triangle_ladder,
)

LADDERS = {
    "nothing": triangle_ladder(simple_graph([])),
    "triangles": triangle_ladder(simple_graph([*combinations(range(6), 2), *((0, leaf) for leaf in range(6, 12))])),
    "two entries": triangle_ladder(simple_graph([(0, 1), (0, 2), (1, 2), *((3, leaf) for leaf in range(4, 20))])),
    "stars": star_ladder(simple_graph([(0, leaf) for leaf in range(1, 5)]), 3),
    "cliques": clique_ladder(simple_graph(combinations(range(7), 2))),
    "largest degree": degree_ladder(simple_graph([(0, leaf) for leaf in range(1, 9)])),
    "components": component_ladder(simple_graph([(2 * part, 2 * part + 1) for part in range(9)])),
    "largest core": core_ladder(simple_graph([*combinations(range(6), 2), *((0, leaf) for leaf in range(6, 12))])),
}
FALSE_ALARM = 1e-9


@for_each("scale", [0.5, 3.0, 25.0])
@pytest.mark.parametrize("name", tenth([*LADDERS][::-1]))
def test_draws_have_the_law_of_the_ladder(name: str, scale: float) -> None:
    """Rungs by a chi-square, the tail in one; sides and places on a rung by their means. Always the same draws."""
    ladder, bytes_of = LADDERS[name], random.Random(f"{name} {scale}").randbytes
    chances, ends = rung_law(ladder, scale)
    size = 4000
    drawn = [draw_count(ladder, scale, bytes_of) - ladder.count for _ in range(size)]
    rungs = np.array([bisect_left(ends.tolist(), abs(x)) for x in drawn])
    # wide enough classes of neighbouring rungs
    edges, held = [0], 0.0
    for j, chance in enumerate(chances):
        held += chance * size
        if held >= 20:
            edges.append(j + 1)
            held = 0.0
    edges[-1] = len(chances)
    expected = np.add.reduceat(chances, edges[:-1]) * size
    seen = np.array([np.sum((rungs >= low) & (rungs < high)) for low, high in pairwise(edges)])
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4
    off = [x for x in drawn if x]
    assert abs(sum(x > 0 for x in off) - len(off) / 2) < 4 * math.sqrt(len(off) + 1) / 2
    places = [(abs(x) - ends[j - 1] - 0.5) / (ends[j] - ends[j - 1]) for x, j in zip(drawn, rungs, strict=True) if j]
    assert abs(sum(places) - len(places) / 2) < 4 * math.sqrt(len(places) / 12 + 1)


def test_a_law_that_is_off_would_be_seen() -> None:
    """The chi-square above has teeth: the law of a scale that is off by a sixth, or of a ladder with a wider rung."""
    ladder, scale, size = LADDERS["triangles"], 3.0, 4000
    _chances, ends = rung_law(ladder, scale)
    bytes_of = random.Random(1).randbytes
    rungs = np.bincount(
        [bisect_left(ends.tolist(), abs(draw_count(ladder, scale, bytes_of) - ladder.count)) for _ in range(size)],
        minlength=30,
    )
    seen = np.array([*rungs[:12], rungs[12:].sum()])
    wider = triangle_ladder(simple_graph(combinations(range(7), 2)))
    for other, other_scale in ((ladder, scale * 7 / 6), (wider, scale)):
        wrong = rung_law(other, other_scale)[0]
        expected = np.array([*wrong[:12], wrong[12:].sum()]) * size
        assert stats.chisquare(seen, expected * size / expected.sum()).pvalue < 1e-6


def test_uniform_integers_are_uniform() -> None:
    bytes_of = random.Random(2).randbytes
    for bound in (1, 2, 3, 7, 256, 257):
        seen = Counter(below(bound, bytes_of) for _ in range(200 * bound))
        assert set(seen) == set(range(bound))
        assert bound == 1 or stats.chisquare([seen[i] for i in range(bound)]).pvalue > 1e-4
    assert 0 <= below(10**40, os.urandom) < 10**40


@pytest.mark.parametrize("scale", [LEAST_LADDER_SCALE, 0.3, 1.0, 1234.5, 2.0**60])
def test_odds_are_bounded_from_both_sides(scale: float) -> None:
    low, high = next(found for bits in range(64, 400, 64) if (found := odds(scale, bits)) is not None)
    assert low < high
    exact = 1 / math.expm1(1 / scale)
    assert float(low) == pytest.approx(exact, rel=1e-2)
    closer = odds(scale, 400)
    assert closer is not None
    assert low <= closer[0] < closer[1] <= high
    assert float(closer[0]) == pytest.approx(exact, rel=1e-12)


class Counting:
    """Bytes of a generator, the first of them fixed, and how many were asked for."""

    def __init__(self, first: bytes) -> None:
        self.first, self.generator, self.asked = first, random.Random(3), 0

    def __call__(self, count: int) -> bytes:
        self.asked += count
        head, self.first = self.first[:count], self.first[count:]
        return head + self.generator.randbytes(count - len(head))


def test_a_power_is_chosen_only_where_its_digits_are_certain() -> None:
    """Weights of 1 and 1 at odds of z: heads for U below 1/(1 + z). Near that, more digits are drawn."""
    scale = 1.0
    low, high = odds(scale, 400) or (Fraction(0), Fraction(0))
    boundary = int(2**64 / (1 + (low + high) / 2))
    for first, sure in ((boundary - 2**20, 0), (boundary + 2**20, 1), (boundary, None)):
        tape = Counting(first.to_bytes(8, "little"))
        chosen = choose_power([1, 1], scale, tape)
        assert chosen == sure or sure is None
        assert tape.asked == 8 if sure is not None else tape.asked > 8


def test_what_no_float_holds_becomes_the_largest() -> None:
    assert as_float(10**400) == -as_float(-(10**400)) == 1.7976931348623157e308
    assert as_float(2**53 + 1) == 2.0**53


def neighbours() -> tuple[Ladder, Ladder]:
    """A graph of 300 vertices and 2,400 edges with two hubs, and the same with the edge between them."""
    chance = random.Random(4)
    edges = {tuple(sorted(chance.sample(range(300), 2))) for _ in range(2000)} - {(0, 1)}
    edges |= {(hub, v) for hub in (0, 1) for v in range(2, 300) if chance.random() < 0.7}
    return triangle_ladder(simple_graph(edges)), triangle_ladder(simple_graph({*edges, (0, 1)}))


def audited(one: Ladder, other: Ladder, scale: float, size: int) -> float:
    """A lower bound on the loss, of confidence `1 - FALSE_ALARM`: the best of many events, each way."""
    tables = [np.array([draw_count(ladder, scale, os.urandom) for _ in range(size)]) for ladder in (one, other)]
    cuts = np.unique(np.quantile(tables[0], np.linspace(0.02, 0.98, 25)))
    error, best = FALSE_ALARM / (8 * len(cuts)), 0.0
    for cut in cuts:
        for event in (np.less_equal, np.greater):
            counts = [int(event(table, cut).sum()) for table in tables]
            for high, low in (counts, counts[::-1]):
                least = stats.beta.ppf(error, high, size - high + 1) if high else 0.0
                most = stats.beta.ppf(1 - error, low + 1, size - low) if low < size else 1.0
                best = max(best, math.log(least / most)) if least > 0 else best
    return best


@pytest.mark.long
def test_an_audit_finds_no_more_than_epsilon() -> None:
    """Fails by chance with a probability of at most 1e-9; noise of half the scale would be found."""
    one, other = neighbours()
    assert other.count - one.count > 100
    assert audited(one, other, 2 / 1.0, 8000) <= 1.0
    assert audited(one, other, 2 / 4.0, 8000) > 1.0
