"""How exact answers will be, told before anything is spent: against intervals, draws and brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each, sizes
from wpinq import graphs
from wpinq.noise.noise_distributions import half_width
from wpinq.noise.permute_and_flip import select
from wpinq.sinks.answer_kinds import Stated
from wpinq.sinks.clamped import NoisyAverage, mean_of_ends

NANO = Fraction(1, 10**9)
ROWS = wp.source("rows", a=int, b=int, facts=["unit_weights"])
EDGES = wp.source("edges", a=int, b=int, facts=["unit_weights", "simple"])
DATA: dict[str, Any] = {"rows": [(1, 2), (2, 2)], "edges": [(0, 1), (1, 2), (2, 0), (2, 3)]}
TRIANGLES = graphs.triangles_by_degree(graphs.symmetrize(EDGES))

OF_THE_PLAN: dict[str, wp.Measurement] = {
    "count": ROWS.select(lambda r: r.a).noisy_count("1/3", over=[1, 2]),
    "rescaled": ROWS.group_by(lambda r: r.b).select(lambda g: g.key).noisy_count("1/3", over=[1, 2]),
    "weight": graphs.paths(EDGES).noisy_count("1/3", over=[(0, 1, 2)]),
    "lattice": ROWS.group_by(lambda r: r.b).select(lambda g: g.key).geometric_count("1/3", over=[2]),
    "sum": ROWS.noisy_sum("1/3", lambda r: r.a, -5, 3),
    "over a part": ROWS.partition(lambda r: r.a, [1])[1].select(lambda r: r.b).noisy_count("1/3", over=[2]),
    "key by key": TRIANGLES.noisy_count("1/3", over=[(2, 2, 3), (5, 5, 5), (1, 1, 1)]),
}


@pytest.mark.parametrize("name", OF_THE_PLAN)
def test_it_is_the_half_width_of_the_intervals(name: str) -> None:
    measurement = OF_THE_PLAN[name]
    (row,) = wp.accuracy(measurement, 0.9)
    answers = wp.simulate(measurement, DATA, seed=1)
    found = [(r.high - r.low) / 2 for r in answers.rows(0.9) if r.kind == measurement.kind.name and r.low is not None]
    assert row.half_width == pytest.approx(max(found), rel=1e-9)
    assert row.kind == measurement.kind


@for_each("name", OF_THE_PLAN)
@for_each("wanted", [0.5, 20.0])
def test_the_epsilon_is_the_least_that_suffices(name: str, wanted: float) -> None:
    measurement = OF_THE_PLAN[name]
    (row,) = wp.accuracy(measurement, half_width=wanted)
    assert row.epsilon_for is not None

    def at(epsilon: Fraction) -> float:
        asked = wp.Measurement(measurement.plan, measurement.sink, epsilon, measurement.domain)
        (again,) = wp.accuracy(asked)
        assert again.half_width is not None
        return again.half_width

    assert at(row.epsilon_for) <= wanted < at(row.epsilon_for - NANO)


def test_it_agrees_with_epsilon_for() -> None:
    query = ROWS.select(lambda r: r.a)
    (row,) = wp.accuracy(query.noisy_count(1), half_width=5)
    assert abs(row.epsilon_for - query.epsilon_for(5)) <= 2 * NANO


def test_an_average_of_a_stated_count_is_seldom_further_off() -> None:
    """Whatever the average; and one near an end of the range is so about as often as it may."""
    asked = ROWS.noisy_average(1, lambda r: r.a, lower=-10, upper=30)
    assert wp.accuracy(asked)[0].missing == "needs count=…"
    assert isinstance(asked.sink, NoisyAverage)
    scale, draws = wp.simulate(asked, DATA, seed=1).scale, np.random.default_rng(2).laplace(size=(2, 100_000))
    for n, share in product((4, 40, 1000), (0.0, 0.01, 0.3, 0.5, 1.0)):
        (row,) = wp.accuracy(asked, count=n)
        assert row.half_width is not None
        noisy = mean_of_ends(n * share + scale * draws[0], n * (1 - share) + scale * draws[1])
        missed = float(np.mean(np.abs(noisy - share) * 40 > row.half_width))
        assert missed <= 0.052
        assert missed >= 0.04 or (n, share) != (1000, 0.01)


@pytest.mark.parametrize(
    ("query", "factor"),
    [
        (ROWS, 1.0),
        (ROWS.group_by(lambda r: r.a).select(lambda g: (g.key, 0)), 0.5),
        (ROWS.shave(0.25).select(lambda p: (p.record.a, p.index)), 0.25),
        (graphs.paths(EDGES).select(lambda p: (p.a, p.b)), 1.0),  # no counts: what is stated is their weight
    ],
)
def test_an_average_over_things_of_less_weight_is_further_off(query: wp.Query, factor: float) -> None:
    asked = query.noisy_average(1, lambda r: r[0], lower=-10, upper=30)
    (row,) = wp.accuracy(asked, count=1000)
    off = half_width(wp.simulate(asked, DATA, seed=1).scale, 0.95)
    assert row.half_width == pytest.approx(40 * off / (1000 * factor), rel=1e-9)


def test_of_listed_keys_nothing_is_promised_beforehand() -> None:
    """Absent keys that noise lists are off by all of their value, whatever the confidence."""
    (row,) = wp.accuracy(ROWS.select(lambda r: r.a).noisy_count_above(1, range(1000), above=5), half_width=2)
    assert (row.half_width, row.epsilon_for) == (None, None)
    assert "interval" in row.missing


def test_it_is_of_measurements() -> None:
    for given in (ROWS, [ROWS], {"rows": ROWS}, [7]):
        with pytest.raises(wp.PlanError, match="measurements"):
            wp.accuracy(given)
        with wp.Session() as session, pytest.raises(wp.WpinqError, match="measurements"):
            session.affords(given)


@pytest.mark.parametrize("draws", sizes(800, 3000))
@pytest.mark.parametrize("asked", ["common", "median"])
def test_a_choice_is_as_far_off_as_told_about_as_often(asked: str, draws: int) -> None:
    """The worst case for the union bound is all candidates at that gap; a false alarm has a chance below 1e-9."""
    candidates = range(50)
    ages = ROWS.select(lambda r: r.a)
    made = ages.most_common(0.5, candidates) if asked == "common" else ages.median(0.5, candidates)
    (row,) = wp.accuracy(made, 0.9)
    assert row.half_width is not None
    scale = 2.0  # of scores that move apart by 1 a unit, at epsilon 0.5
    assert row.half_width == pytest.approx(scale * math.log(49 / 0.2), rel=1e-6)
    scores = [row.half_width] + [0.0] * 49
    bytes_of = np.random.default_rng(1).bytes
    missed = sum(select(scores, scale, bytes_of) != 0 for _ in range(draws)) / draws
    assert 0.05 < missed <= 0.1 + math.sqrt(math.log(1e9) / (2 * draws))
    assert wp.accuracy(ages.most_common(1, [1]))[0].half_width == 0


def test_a_largest_degree_needs_no_width() -> None:
    asked = graphs.largest_degree(EDGES, "0.25")
    (row,) = wp.accuracy(asked, half_width=5)
    low, high = wp.simulate(asked, {"edges": [(0, leaf) for leaf in range(1, 1000)]}, seed=1).value_interval()
    assert (row.missing, row.half_width) == ("", (high - low) / 2)
    assert row.epsilon_for is not None
    for epsilon, suffices in ((row.epsilon_for, True), (row.epsilon_for - NANO, False)):
        (found,) = wp.accuracy(graphs.largest_degree(EDGES, epsilon))
        assert (found.half_width <= 5) == suffices


def test_a_count_of_subgraphs_needs_a_width() -> None:
    asked = graphs.triangle_count(EDGES, 2, interval_share="0.1")
    stars = graphs.star_count(EDGES, 2, 2)
    table = wp.accuracy({"triangles": asked, "stars": stars})
    assert [row.missing for row in table] == [
        "needs width=…, the assumed common neighbours",
        "needs width=…, the assumed highest degree",
    ]
    assert "needs width=…" in str(table)
    (row,) = wp.accuracy(asked, width=20, half_width=60)

    def off(epsilon: Fraction) -> float:
        return asked.sink.error(asked.plan, epsilon, None, 0.95, Stated(width=20))

    assert row.half_width == off(Fraction(2))
    assert row.epsilon_for is not None
    assert off(row.epsilon_for) <= 60
    assert off(row.epsilon_for - NANO) > 60
    (row,) = wp.accuracy(asked, width=20, half_width=5)  # the next rung is 20 away, however large epsilon
    assert row.epsilon_for is None


def test_a_table_is_a_row_each_with_costs() -> None:
    pairs = ROWS.concat(ROWS).select(lambda r: r.a)
    batch = {"one": ROWS.noisy_count(1), "two": pairs.noisy_count("0.5"), "keys": TRIANGLES.noisy_count(1)}
    table = wp.accuracy(batch, half_width=3)
    assert [row.name for row in table] == list(batch)
    assert len(table) == 3
    assert table[1].cost == {"rows": 1}
    assert (table[2].half_width, table[2].missing) == (None, "give keys: over=…")
    lines = str(table).splitlines()
    assert lines[0].split() == [
        "measurement",
        "kind",
        "epsilon",
        "±",
        "at",
        "95",
        "%",
        "costs",
        "epsilon",
        "for",
        "±",
        "3",
    ]
    assert lines[1].startswith("one          count           1        2.996")
    assert lines[3].endswith("none")
    assert "for" not in str(wp.accuracy(list(batch.values()))).splitlines()[0]
    assert wp.accuracy(TRIANGLES.noisy_count(1, over=[(1, 1, 1)]))[0].missing == "no key is of an item"


def test_numbers_that_make_no_sense_are_refused() -> None:
    asked = ROWS.noisy_count(1)
    for wrong in ({"half_width": 0}, {"half_width": math.nan}, {"count": 0}, {"count": math.inf}, {"width": -1}):
        with pytest.raises(wp.PlanError):
            wp.accuracy(asked, **wrong)
    for confidence in (0, 1, math.nan):
        with pytest.raises(wp.AnswersError):
            wp.accuracy(asked, confidence)


def test_how_many_more_the_budget_covers() -> None:
    count, average = ROWS.noisy_count("0.3", over=[(1, 2)]), ROWS.noisy_average("0.2", lambda r: r.a, 0, 1)
    with wp.Session() as session:
        session.protect(ROWS, DATA["rows"], budget=1)
        assert (session.affords(count), session.affords([count, average])) == (3, 2)
        for left in (2, 1, 0):
            session.release(count, fresh=True)
            assert session.affords(count) == left
        with pytest.raises(wp.BudgetExceeded):
            session.release(count, fresh=True)
        assert session.affords(average) == 0
    assert wp.bill(count).times({}) == 0
    assert ROWS.bill("1/3").times({"rows": Fraction(1)}) == 2  # a third is rounded up to whole billionths
