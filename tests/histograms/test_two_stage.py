"""Buckets first, counts second: what is asked, what it costs, what is inferred; and signs that plans declare."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from wpinq import histograms as h
from wpinq.histograms.strategies import bucketed
from wpinq.histograms.strategies.bucketed import OverBuckets
from wpinq.histograms.strategies.linear import LinearStrategy
from wpinq.inference.tree import workload_variance
from wpinq.sinks.buckets import Buckets

AGES = wp.source("ages", int)
WHOLE = wp.source("ages", int, facts=["whole_weights"])
STEPS = [30.0] * 16 + [0.0] * 8 + [200.0] * 8


def rows(counts: list[float]) -> list[int]:
    return [bin for bin, count in enumerate(counts) for _ in range(int(count))]


def test_a_second_stage_that_costs_more_than_was_billed_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = h.Bucketed.measure
    monkeypatch.setattr(h.Bucketed, "measure", lambda self, source, epsilon, *more: measure(self, source, 1, *more))
    asked: list[wp.Measurement] = []

    def release(measurement: wp.Measurement) -> Any:
        asked.append(measurement)
        return wp.simulate(measurement, {"ages": rows(STEPS)}, seed=1)

    with pytest.raises(wp.PlanError, match="would cost more than was billed"):
        h.TwoStage(32).run(release, AGES, 1)
    assert [type(measurement.sink) for measurement in asked] == [Buckets]


# --- workloads and strategies over buckets ----------------------------------------------------------------------------


@pytest.mark.parametrize("starts", [[0], [0, 1, 5], [0, 4, 6], list(range(9))])
@pytest.mark.parametrize(
    "workload", [h.AllRanges(9), h.Prefixes(9), h.Bins(9), h.Ranges(9, [0, 3], [7, 4]), h.Matrix(np.eye(9)[:2])]
)
def test_a_workload_over_buckets_is_the_workload_of_the_spread_counts(starts: list[int], workload: Any) -> None:
    over, spread = OverBuckets(workload, starts), np.zeros((9, len(starts)))
    for bucket, (first, last) in enumerate(zip(starts, [*starts[1:], 9], strict=True)):
        spread[first:last, bucket] = 1 / (last - first)
    matrix = workload.answer(np.eye(9)) @ spread
    assert (over.domain, over.queries) == (len(starts), workload.queries)
    np.testing.assert_allclose(over.answer(np.eye(len(starts))), matrix)
    np.testing.assert_allclose(over.transpose(np.eye(workload.queries)), matrix.T)
    np.testing.assert_allclose(over.gram(np.eye(len(starts))), matrix.T @ matrix)
    np.testing.assert_allclose(over.gram_diagonal(), (matrix**2).sum(axis=0))


@pytest.mark.parametrize(
    ("domain", "starts", "workload"),
    [
        (64, range(0, 64, 2), h.AllRanges(64)),
        (64, [0, 1, 2, 40], h.Prefixes(64)),
        (300, range(300), h.AllRanges(300)),
        (300, range(300), h.Bins(300)),
        (9, [0, 5], h.Matrix(np.ones((1, 9)))),
    ],
)
def test_the_strategy_over_buckets_is_that_of_the_least_expected_error(domain: int, starts: Any, workload: Any) -> None:
    found = h.Bucketed(domain, list(starts), workload=workload)
    over, buckets = OverBuckets(workload, list(starts)), len(list(starts))
    candidates = [h.Identity(buckets), *(h.Hierarchical(buckets, 2**i) for i in range(1, buckets.bit_length() + 1))]
    least = min(one.expected_error(over, 1) for one in candidates)
    assert found.strategy.expected_error(over, 1) == pytest.approx(least, rel=1e-9)
    assert isinstance(found.strategy, (h.Identity, h.Hierarchical))


@pytest.mark.parametrize(("count", "branching"), [(1, 2), (2, 2), (7, 2), (30, 3), (64, 4), (65, 64)])
def test_the_variance_of_a_workload_is_read_off_the_tree(count: int, branching: int) -> None:
    strategy, workload = h.Hierarchical(count, branching), h.AllRanges(count)
    expected = sum(float((strategy.coefficients(rows) ** 2).sum()) for rows in workload.row_blocks())
    assert workload_variance(strategy.tree, workload.gram(np.eye(count))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("workload", [h.AllRanges(200), h.Prefixes(200), h.Bins(200)])
def test_of_very_many_buckets_the_strategy_is_near_the_best(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = h.Bucketed(200, range(200), workload=workload).strategy
    monkeypatch.setattr(bucketed, "_EXACT", 0)
    estimated = h.Bucketed(200, range(200), workload=workload).strategy
    assert estimated.expected_error(workload, 1) <= 1.1 * exact.expected_error(workload, 1)


@pytest.mark.parametrize("inner", [h.Identity(3), h.Hierarchical(3), h.Wavelet(3), h.PIdentity([[1.0, 2.0, 0.5]])])
def test_counts_of_buckets_are_measured_and_spread_evenly(inner: LinearStrategy) -> None:
    """The program in exact arithmetic gives the strategy's answers over the buckets; records elsewhere are left out."""
    strategy = h.Bucketed(8, [0, 4, 5], inner)
    truth = np.array([1.0, 0, 3, 0, 9, 2, 2, 2])
    weights = wp.evaluate(strategy.query(AGES), {"ages": [*rows(truth.tolist()), -1, 8, 100]}, exact=True)
    expected = inner.apply(np.array([4.0, 9.0, 6.0]))
    released = [float(weights.get(key, 0) * strategy.sensitivity) for key in strategy.keys]
    np.testing.assert_allclose(released, expected, atol=1e-12)
    np.testing.assert_allclose(strategy.infer(released), [1, 1, 1, 1, 9, 2, 2, 2], atol=1e-9)
    assert strategy.query(AGES).uses() == {"ages": 1}
    binned = strategy.measure(wp.source("people", age=int), 0.1, bin=lambda p: p.age)
    assert binned.domain == inner.keys


def test_buckets_that_are_none_are_refused() -> None:
    for starts in ([], [1], [0, 0], [0, 3, 2], [0, 8], "01", [0.0], [0, True], None):
        with pytest.raises(wp.PlanError, match="buckets begin"):
            h.Bucketed(8, starts)
    with pytest.raises(wp.PlanError, match="over the 2 buckets"):
        h.Bucketed(8, [0, 4], h.Identity(8))
    with pytest.raises(wp.PlanError, match="make them agree"):
        h.Bucketed(8, [0, 4], workload=h.AllRanges(9))


# --- both stages ------------------------------------------------------------------------------------------------------


def test_both_stages_are_billed_before_and_cost_epsilon() -> None:
    two, seen = h.TwoStage(32), []
    with wp.Session() as session:
        session.protect(WHOLE, rows(STEPS), budget=2)
        released = two.release(session, WHOLE, 0.5, label="ages", on_bill=seen.append)
        assert session.spent("ages") == seen[0]["ages"] == Fraction(1, 2)
        assert [event.label for event in session.history() if event.kind == "debit"] == ["ages", "ages"]
        first, second = released.buckets.measurement, released.answers.measurement
        assert (first.epsilon, second.epsilon) == (Fraction(1, 10), Fraction(2, 5))
        assert first.sink == Buckets(32, Fraction(5, 2), Fraction(1, 2))  # a bucket costs 1/ε₂
        again = two.release(session, WHOLE, 0.5)
        assert session.spent("ages") == Fraction(1, 2), "the same replays"
        np.testing.assert_array_equal(again.histogram, released.histogram)
    np.testing.assert_array_equal(released.strategy.infer(released.answers), released.histogram)
    assert (released.histogram >= 0).all()
    for start, stop in zip(released.strategy.starts, [*released.strategy.starts[1:], 32], strict=True):
        assert len(set(released.histogram[start:stop])) == 1


@pytest.mark.parametrize("facts", [[], ["whole_weights"]])
@pytest.mark.parametrize("weight", [1, 3])
def test_the_second_stage_costs_what_was_billed_whatever_the_buckets(facts: list[str], weight: int) -> None:
    source = wp.source("people", age=int, town=int, facts=facts, unit_weight=weight)
    asked = source.concat(source).where(lambda p: p.town > 2)
    two = h.TwoStage(32, share="0.3")
    bill = two.bill(asked, 0.5, lambda p: p.age)
    assert bill["people"] == Fraction(weight)
    first = two.measure_buckets(asked, 0.5, lambda p: p.age)
    for starts in ((0,), (0, 16), tuple(range(32))):
        strategy = h.Bucketed(32, starts)
        second = strategy.measure(asked, two.epsilons(0.5)[1], lambda p: p.age)
        assert wp.bill([first, second])["people"] == bill["people"]


def test_where_the_budget_covers_one_stage_only_nothing_is_spent() -> None:
    two = h.TwoStage(32)
    with wp.Session() as session:
        session.protect(WHOLE, rows(STEPS), budget="0.4")
        with pytest.raises(wp.BudgetExceeded, match="nothing was spent"):
            two.release(session, WHOLE, 0.5)
        assert session.spent("ages") == 0
        kept = two.release(session, WHOLE, 0.4)
        with pytest.raises(wp.BudgetExceeded):
            two.release(session, WHOLE, 0.4)
        replayed = two.run(session.release, WHOLE, 0.4)
        np.testing.assert_array_equal(replayed.histogram, kept.histogram)


@pytest.mark.parametrize("missing", [0, 1])
def test_what_two_debits_are_rounded_up_by_is_asked_for_beforehand(missing: int) -> None:
    """Of 1.000000001, a fifth and the rest are both rounded up to billionths: together one more."""
    two, epsilon, billionth = h.TwoStage(32), "1.000000001", Fraction(1, 10**9)
    with wp.Session() as session:
        session.protect(WHOLE, rows(STEPS), budget=1 + (2 - missing) * billionth)
        if missing:
            with pytest.raises(wp.BudgetExceeded, match="nothing was spent"):
                two.release(session, WHOLE, epsilon)
            assert session.spent("ages") == 0
        else:
            two.release(session, WHOLE, epsilon)
            assert session.remaining("ages") == 0


def test_steps_are_found_and_measured_better_than_bin_by_bin() -> None:
    """Seeded draws: with total × epsilon about 200, in blocks, two stages divide the error of bins several times."""
    two, truth, one_by_one, staged = h.TwoStage(32), np.array(STEPS), 0.0, 0.0
    for seed in range(30):

        def draw(measurement: wp.Measurement, seed: int = seed) -> wp.Answers:
            return wp.simulate(measurement, {"ages": rows(STEPS)}, seed)

        found = two.run(draw, WHOLE, 0.1, workload=h.Bins(32))
        staged += ((found.histogram - truth) ** 2).sum()
        bins = h.Identity(32)
        one_by_one += ((bins.infer(draw(bins.measure(WHOLE, 0.1)), "declared") - truth) ** 2).sum()
    assert staged < one_by_one / 2


def test_noise_on_a_lattice_is_offered_for_the_second_stage() -> None:
    found = h.TwoStage(32).run(
        lambda m: wp.simulate(m, {"ages": rows(STEPS)}, seed=1), WHOLE, 2, workload=h.Bins(32), mechanism="geometric"
    )
    assert found.answers.measurement.sink.name == "GeometricCount"


def test_advice_says_when_it_pays() -> None:
    two = h.TwoStage(4096)
    assert "too little" in two.advice(9_400, 0.01)
    assert "blocks" in two.advice(9_400, 0.1)
    assert "hide" in two.advice(10**6, 1)
    for total in (0, -1, "many", float("nan")):
        with pytest.raises(wp.AnswersError, match="total weight"):
            two.advice(total, 1)


def test_two_stages_that_make_no_sense_are_refused() -> None:
    for given in ({"share": 1}, {"split": 1}, {"domain": 2**20 + 1}, {"domain": 0}):
        with pytest.raises(wp.PlanError):
            h.TwoStage(**{"domain": 32, **given})
    for given in ({"share": 0}, {"penalty": 0}, {"split": -1}, {"share": "much"}):
        with pytest.raises(wp.EpsilonError):
            h.TwoStage(32, **given)
    two = h.TwoStage(32)
    other = wp.simulate(AGES.buckets(1, 16, 5), {"ages": [3]}, seed=1)
    for wrong in (other, [0, 4], wp.simulate(AGES.noisy_count(1, over=[1]), {"ages": []}, seed=1)):
        with pytest.raises(wp.PlanError, match="measure_buckets"):
            two.bucketed(wrong)


# --- what plans declare of signs --------------------------------------------------------------------------------------

STRATEGIES: dict[str, LinearStrategy] = {
    "identity": h.Identity(6),
    "tree": h.Hierarchical(6, 3),
    "wavelet": h.Wavelet(6),
    "optimised": h.PIdentity([[1.0] * 6]),
    "matrix": h.MatrixMechanism(np.vstack([np.eye(6), -np.ones((1, 6))])),
}
TABLES: dict[str, LinearStrategy] = {
    "product": h.Product(h.Wavelet(2), h.Hierarchical(3)),
    "union": h.UnionOfProducts(
        h.Product(h.Identity(2), h.Hierarchical(3)), h.Product(h.Wavelet(2), h.Identity(3)), 0.5
    ),
    "long product": h.Product(*[h.Hierarchical(2**9)] * 3),
}


@pytest.mark.parametrize("name", [*STRATEGIES, *TABLES])
@pytest.mark.parametrize("fact", [None, "nonnegative", "whole_weights", "unit_weights"])
def test_a_histogram_is_non_negative_where_the_plan_of_its_answers_proves_it(name: str, fact: str | None) -> None:
    """Also where the strategy's own weights have either sign; and not where the user's have."""
    facts = [fact] if fact else []
    if name in TABLES:
        strategy: Any = TABLES[name]
        fields = {f"f{i}": int for i in range(len(strategy.sizes))}
        source = wp.source("rows", **fields, facts=facts)
        mixed = source.concat(source).difference(source)
    else:
        strategy = STRATEGIES[name]
        source = wp.source("rows", int, facts=facts)
        mixed = source.select_many(lambda x: [wp.weighted(x, 0.5), wp.weighted(x + 1, -0.5)])
    for asked, proven in ((source, fact is not None), (mixed, False)):
        measurement = h.Strategy.measure(strategy, asked, 1) if strategy.size < 10**4 else None
        plan = measurement.plan if measurement else strategy.query(asked).plan
        answers = wp.Answers(
            wp.Measurement(plan, wp.source("x", int).noisy_count(1, over=[0]).sink, Fraction(1), ()), 1.0, np.array([])
        )
        assert strategy.declared_nonnegative(answers) is proven


def test_what_is_no_program_of_the_strategy_declares_nothing() -> None:
    """A tree's answers come of one SelectMany; a plan without one is somebody else's."""
    answers = wp.simulate(WHOLE.noisy_count(1, over=range(6)), {"ages": []}, seed=1)
    assert h.Identity(6).declared_nonnegative(answers)
    assert not h.Hierarchical(6).declared_nonnegative(answers)
    assert not h.Identity(6).declared_nonnegative([0.0] * 6)


def simulated(strategy: Any, source: wp.Query) -> wp.Answers:
    return wp.simulate(strategy.measure(source, 0.3), {"ages": [1, 1, 3]}, seed=5)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_declared_is_top_down_where_it_is_declared_and_unbiased_elsewhere(strategy: LinearStrategy) -> None:
    declared, silent = simulated(strategy, WHOLE), simulated(strategy, AGES)
    np.testing.assert_array_equal(strategy.infer(declared, "declared"), strategy.infer(declared, "top down"))
    np.testing.assert_array_equal(strategy.infer(silent, "declared"), strategy.infer(silent))
    assert (strategy.infer(declared) < 0).any(), "a strategy by itself stays unbiased"
    with pytest.raises(wp.AnswersError, match="declare nothing"):
        strategy.infer(declared.values.tolist(), "declared")


def test_what_was_chosen_is_top_down_by_default_and_unbiased_on_request() -> None:
    ranking = h.choose(h.AllRanges(6), 0.3)
    declared, silent = (simulated(ranking, source) for source in (WHOLE, AGES))
    best = ranking.best
    np.testing.assert_array_equal(ranking.infer(declared), best.infer(declared, "top down"))
    np.testing.assert_array_equal(ranking.infer(declared, nonnegative=None), best.infer(declared))
    np.testing.assert_array_equal(ranking.infer(declared, "least squares"), best.infer(declared, "least squares"))
    np.testing.assert_array_equal(ranking.infer(silent), best.infer(silent))
    assert (best.infer(declared) < 0).any()
    assert (ranking.infer(declared) >= 0).all()


def test_numbers_without_a_plan_are_what_the_source_of_the_choice_declares() -> None:
    answers = [-2.0, 3.0, 4.0, -1.0, 0.5, 6.0]
    for source, proven in ((WHOLE, True), (AGES, False), (None, False)):
        ranking = h.choose(h.Bins(6), 1, candidates=[h.Identity(6)], source=source)
        assert ranking.nonnegative is proven
        assert (ranking.infer(answers) >= 0).all() == proven
        np.testing.assert_array_equal(ranking.infer(answers, None), answers)
        assert (ranking.infer(answers, "top down") >= 0).all()


def test_intervals_stay_those_of_the_unbiased_estimate() -> None:
    answers = simulated(h.Identity(6), WHOLE)
    lower, upper = h.Identity(6).intervals(answers, h.Bins(6))
    np.testing.assert_allclose((lower + upper) / 2, h.Identity(6).infer(answers))
