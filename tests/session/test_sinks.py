"""Sums, averages and choices: their meaning on public data, their sensitivity, and their noise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from wpinq.api.simulate import PublicOutput
from wpinq.plan.properties import plan_properties
from wpinq.sinks.choose import Choose

CUTS = tuple(range(-1, 11))
VALUES = wp.source("values", x=float | None, group=int, weights=True)


def expected(measurement: wp.Measurement, data: dict[object, object]) -> dict[object, Fraction]:
    return dict(wp.evaluate(wp.Query(measurement.plan), {"values": data}, exact=True))


@pytest.mark.parametrize(("lower", "upper"), [(0, 10), (-10, 3), (-8, -2), (5, 5), (-3, 3)])
def test_a_sum_clamps_and_leaves_out_nulls(lower: float, upper: float) -> None:
    numbers = [-20.0, -3.0, 0.0, 4.5, 11.0, None]
    data = {(x, 0): 1 for x in numbers}
    asked = VALUES.noisy_sum(1, lambda v: v.x, lower, upper)
    total = sum(max(lower, min(upper, x)) for x in numbers if x is not None)
    weight = expected(asked, data).get("sum", Fraction(0))
    assert float(weight * asked.sink.factor) == pytest.approx(total)
    assert asked.domain == ("sum",)
    assert asked.sink.factor == max(abs(lower), abs(upper))


def test_a_sum_takes_integers_and_computed_values() -> None:
    asked = VALUES.noisy_sum(1, lambda v: v.group * 2 + 1, 0, 10)
    weight = expected(asked, {(None, 1): 1, (None, 2): Fraction(1, 2)})["sum"]
    assert float(weight * asked.sink.factor) == pytest.approx(3 + 5 / 2)


@pytest.mark.parametrize(("lower", "upper"), [(0, 10), (-10, 3), (-8, -2)])
def test_an_average_is_the_ratio_of_its_weights(lower: float, upper: float) -> None:
    numbers = [-20.0, -3.0, 0.0, 4.5, 11.0, None]
    asked = VALUES.noisy_average(1, lambda v: v.x, lower, upper)
    weights = {str(k): float(w) for k, w in expected(asked, {(x, 0): 1 for x in numbers}).items()}
    clamped = [max(lower, min(upper, x)) for x in numbers if x is not None]
    assert weights["upper"] + weights["lower"] == len(clamped)
    assert asked.sink.value(weights) == pytest.approx(sum(clamped) / len(clamped))


def test_an_average_stays_in_its_range_whatever_the_noise() -> None:
    asked = VALUES.noisy_average(1, lambda v: v.x, 2, 4)
    for first, second in ((100.0, 1.0), (-100.0, 1.0), (9.0, -50.0), (-9.0, -8.0), (0.0, 0.0), (1e-300, 1e300)):
        numbers = {"upper": first, "lower": second}
        low, high = asked.sink.value_interval(numbers, 1.0, 0.95)
        assert 2 <= low <= asked.sink.value(numbers) <= high <= 4
    assert asked.sink.value_interval({"upper": 0.5, "lower": 0.5}, 1.0, 0.95) == (2, 4)
    low, high = asked.sink.value_interval({"upper": 1e6, "lower": 1e6}, 1.0, 0.95)
    assert 2.9999 < low < 3 < high < 3.0001


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 0), (float("nan"), 1), (0, float("inf")), (float("-inf"), 0)])
def test_ranges_must_make_sense(lower: float, upper: float) -> None:
    for sink in (VALUES.noisy_sum, VALUES.noisy_average):
        with pytest.raises(wp.PlanError):
            sink(1, lambda v: v.x, lower, upper)
    with pytest.raises(wp.PlanError, match="lower < upper"):
        VALUES.noisy_average(1, lambda v: v.x, 3, 3)


@pytest.mark.parametrize("bound", ["a", "3", timedelta(1), None, 10**400, Decimal("sNaN")])
def test_bounds_are_numbers(bound: Any) -> None:
    for sink in (VALUES.noisy_sum, VALUES.noisy_average):
        for lower, upper in ((bound, 3), (-3, bound)):
            with pytest.raises(wp.PlanError, match="numbers"):
                sink(1, lambda v: v.x, lower, upper)
    asked = VALUES.noisy_sum(1, lambda v: v.x, Decimal("0.5"), Fraction(3, 2))
    assert (asked.sink.lower, asked.sink.upper) == (0.5, 1.5)


def test_only_numbers_are_summed() -> None:
    with pytest.raises(wp.WpinqError, match="numbers"):
        VALUES.noisy_sum(1, lambda v: v.group > 3, 0, 1)


def norm(weights: dict[object, Fraction]) -> Fraction:
    return sum(map(abs, weights.values()), Fraction(0))


def neighbours(chance: random.Random, records: Sequence[object]) -> tuple[dict[object, Fraction], ...]:
    """Two random datasets at L1 distance exactly 1, negative weights included."""
    left = {record: Fraction(chance.randint(-8, 8), 4) for record in records}
    right = dict(left)
    spread = chance.random() < 0.5
    shares = [chance.randint(0, 5) if spread else 0 for _ in records]
    shares[chance.randrange(len(records))] += 1
    for record, share in zip(records, shares, strict=True):
        right[record] += chance.choice([-1, 1]) * Fraction(share, sum(shares))
    return left, right


def test_moves_of_scores_differ_by_at_most_their_range_per_unit_of_weight() -> None:
    chance = random.Random(5)
    candidates = (1, 3, 4, 8)
    for _ in range(1500):
        left, right = neighbours(chance, [*range(10), None])
        for sink in (
            Choose("weight"),
            Choose("quantile", Fraction(1, 2)),
            Choose("quantile", Fraction(1, 100)),
            Choose("quantile", Fraction(9, 10)),
        ):
            pairs = zip(
                sink.scores(PublicOutput(left), candidates), sink.scores(PublicOutput(right), candidates), strict=True
            )
            moves = [b - a for a, b in pairs]
            assert max(moves) - min(moves) <= sink.sensitivity + Fraction(1, 10**12)


@pytest.mark.parametrize("q", [Fraction(1, 100), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)])
def test_the_range_of_a_quantile_is_reached(q: Fraction) -> None:
    sink, candidates = Choose("quantile", q), (4, 6)
    place = 7 if q > Fraction(1, 2) else 3
    pairs = zip(
        sink.scores(PublicOutput({5: 1000}), candidates),
        sink.scores(PublicOutput({5: 1000, place: 1}), candidates),
        strict=True,
    )
    moves = [after - before for before, after in pairs]
    assert max(moves) - min(moves) == pytest.approx(float(sink.sensitivity))
    assert sink.sensitivity == 2 * max(q, 1 - q)


def test_a_quantile_without_noise_is_always_found() -> None:
    chance = random.Random(9)
    for _ in range(300):
        values = sorted(chance.choices(range(12), k=chance.randint(1, 9)))
        weights = {x: Fraction(values.count(x)) for x in range(12)}
        q = Fraction(chance.randint(1, 99), 100)
        scores = Choose("quantile", q).scores(PublicOutput(weights), tuple(range(12)))
        found = range(12)[scores.index(max(scores))]
        assert sum(x < found for x in values) <= q * len(values) <= sum(x <= found for x in values)


def test_a_weight_below_0_counts_as_0_in_a_quantile() -> None:
    median, given = Choose("quantile", Fraction(1, 2)), {1: 3.0, 2: 2.0, 3: 0.0, 5: 4.0}
    assert median.scores(PublicOutput({**given, 3: -100.0}), CUTS) == median.scores(PublicOutput(given), CUTS)


def test_sums_and_averages_move_by_at_most_one_per_unit_of_weight() -> None:
    chance = random.Random(6)
    records = [(x, 0) for x in (-9.0, -1.0, 0.5, 3.0, 100.0, None)]
    sinks = [
        VALUES.noisy_sum(1, lambda v: v.x, -2, 5),
        VALUES.noisy_average(1, lambda v: v.x, -2, 5),
    ]
    largest = [Fraction(0), Fraction(0)]
    for _ in range(150):
        left, right = neighbours(chance, records)
        for i, asked in enumerate(sinks):
            a, b = expected(asked, left), expected(asked, right)
            moved = norm({k: a.get(k, Fraction(0)) - b.get(k, Fraction(0)) for k in {*a, *b}})
            assert moved <= 1
            largest[i] = max(largest[i], moved)
    assert min(largest) > Fraction(1, 2)


def test_quantile_scores_are_the_definition() -> None:
    chance = random.Random(7)
    for _ in range(50):
        q = Fraction(chance.randint(1, 99), 100)
        weights = {chance.choice([None, *range(9)]): chance.uniform(-2, 5) for _ in range(6)}
        given = {x: max(Fraction(w), Fraction(0)) for x, w in weights.items() if x is not None}
        for candidate, score in zip(CUTS, Choose("quantile", q).scores(PublicOutput(weights), CUTS), strict=True):
            below = sum((w for x, w in given.items() if x < candidate), Fraction(0))
            above = sum((w for x, w in given.items() if x > candidate), Fraction(0))
            here = max(given.get(candidate, Fraction(0)), Fraction(0))
            wanted = q * (below + here + above)
            assert score == -float(max(Fraction(0), below - wanted, wanted - below - here))


def test_choices_find_what_stands_out() -> None:
    source = wp.source("ages", int)
    data = [20] * 300 + [40] * 1000 + [60] * 300
    with wp.Session() as session:
        session.protect(source, data, budget=100)
        assert session.release(source.most_common(1, [10, 20, 40, 60])).value == 40
        assert session.release(source.median(1, [0, 20, 40, 60])).value == 40
        assert session.release(source.quantile(epsilon=1, q="0.05", candidates=[0, 20, 40, 60])).value == 20
        assert session.release(source.quantile(epsilon=1, q=0.95, candidates=[0, 20, 40, 60])).value == 60
        answer = session.release(source.median(1, [40]))
        assert (answer.value, answer.scale, list(answer.values)) == (40, 0.0, [1.0])
        for ask in (answer.value_interval, lambda: answer.interval(40)):
            with pytest.raises(wp.AnswersError, match="no interval"):
                ask()


def test_choices_need_candidates_and_a_quantile_within_range() -> None:
    source = wp.source("ages", int)
    with pytest.raises(wp.PlanError, match="candidate"):
        source.most_common(1, [])
    for q in (1, 1.5, 0, -0.5):
        with pytest.raises(wp.PlanError, match="between 0 and 1"):
            source.quantile(epsilon=1, q=q, candidates=[1])


def test_a_choice_among_other_candidates_is_another_choice() -> None:
    source = wp.source("ages", int)
    with wp.Session() as session:
        session.protect(source, [1, 2, 3], budget=100)
        for count, candidates in enumerate(([1, 2], [1, 2, 3], [2, 1]), start=1):
            session.release(source.median(1, candidates))
            session.release(source.median(1, candidates))
            assert session.spent("ages") == count


def test_a_median_of_a_large_dataset_is_quick() -> None:
    weights = dict.fromkeys(range(20_000), 1.0)
    scores = Choose("quantile", Fraction(1, 2)).scores(PublicOutput(weights), tuple(range(0, 20_000, 10)))
    assert max(range(2000), key=scores.__getitem__) in (999, 1000)  # in 0.1 s; by summing for each candidate, 10 s


def test_scales_are_the_certified_ones() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64")
    edges = wp.source("edges", src=int, dst=int)
    weighted = wp.source("pairs", src=int, dst=int, unit_weight=2)
    for source, unit in ((edges, 1), (weighted, 2)):
        paths = source.join(source, lambda a: a.dst, lambda b: b.src, lambda a, b: (a.src, b.dst))
        for epsilon in (Fraction(1, 10), Fraction(1, 3), Fraction(7)):
            with wp.Session() as session:
                session.protect(source, [], budget=100)
                scale = session.release(paths.noisy_count(epsilon, over=[(1, 1)])).scale
                spent = session.spent("edges" if unit == 1 else "pairs")
            widening = 1 + plan_properties(paths.plan).slack()
            assert widening > 1
            loss = Fraction(dp.m.make_laplace(*space, scale=scale).map(float(2 * unit * widening) * (1 - 2**-50)))
            assert loss <= 2 * unit * epsilon <= spent
            assert float(widening / epsilon) <= scale < float(widening / epsilon) * (1 + 1e-14)
