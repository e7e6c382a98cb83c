"""Non-negative estimates, where the plan of the answers proves that no bin has a weight below 0."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from wpinq import functions as F, histograms as h
from wpinq.histograms.strategy import LinearStrategy

AGES = wp.source("ages", int, weights=True)
WHOLE = wp.source("ages", int)

STRATEGIES: dict[str, LinearStrategy] = {
    "identity": h.Identity(6),
    "tree": h.Hierarchical(6, 3),
    "wavelet": h.Wavelet(6),
    "optimised": h.PIdentity([[1.0] * 6]),
    "matrix": h.MatrixMechanism(np.vstack([np.eye(6), -np.ones((1, 6))])),
}
TABLES: dict[str, LinearStrategy] = {
    "product": h.Product(h.Wavelet(2), h.Hierarchical(3)),
    "long product": h.Product(*[h.Hierarchical(2**9)] * 3),
}


@pytest.mark.parametrize("name", [*STRATEGIES, *TABLES])
@pytest.mark.parametrize("fact", [None, "nonnegative", "rows", "unit_weights"])
def test_a_histogram_is_non_negative_where_the_plan_of_its_answers_proves_it(name: str, fact: str | None) -> None:
    """Also where the strategy's own weights have either sign; and not where the user's have."""
    declared: Any = {"weights": fact != "rows", "facts": [fact] if fact not in (None, "rows") else []}
    if name in TABLES:
        strategy: Any = TABLES[name]
        fields = {f"f{i}": int for i in range(len(strategy.sizes))}
        source = wp.source("rows", **fields, **declared)
        mixed = source.concat(source).difference(source)
    else:
        strategy = STRATEGIES[name]
        source = wp.source("rows", int, **declared)
        mixed = source.select_many(lambda x: [F.weighted(x, 0.5), F.weighted(x + 1, -0.5)])
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
