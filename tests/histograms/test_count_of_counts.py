"""Counts of counts, alone and over a tree of locations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import sizes
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms import CountOfCounts, HierarchicalCounts, Tree, earth_movers_distance

persons = wp.source("persons", name=str, group=int, location=int, cap=10**6)
TABLE = [
    *[(name, 1, 0) for name in ("Alice", "Bob", "Carol", "Dave")],
    ("Eve", 2, 1),
    ("Frank", 2, 1),
    ("Judy", 3, 0),
    ("Nick", 4, 1),
]
METHODS = ["naive", "cumulative", "unattributed"]


def test_the_worked_example():
    weights = {}
    for method in METHODS:
        strategy = CountOfCounts(groups=4, largest=4, method=method)
        query = strategy.query(persons, bin=lambda r: r.group)
        assert query.uses() == {"persons": 1}
        found = wp.evaluate(query, {"persons": TABLE}, exact=True)
        weights[method] = [found[key] * strategy.sensitivity for key in strategy.keys]
    assert weights["naive"] == [2, 1, 0, 1]
    assert weights["unattributed"] == [1, 1, 2, 4]
    assert [4 - w for w in weights["cumulative"]] == [0, 2, 3, 3]  # H_c of sizes 0 to 3; of size 4 it is G
    assert earth_movers_distance([0, 2, 1, 0, 1], [0, 3, 0, 0, 1]) == 1


@pytest.mark.parametrize("method", METHODS)
def test_sensitivity_and_noise_scale(method):
    strategy = CountOfCounts(groups=4, largest=4, method=method)
    assert strategy.sensitivity == (2 if method == "naive" else 1)
    measurement = strategy.measure(persons, Fraction(1, 2), bin=lambda r: r.group)
    assert wp.bill([measurement])["persons"] == Fraction(1, 2)
    scale = Fraction(wp.simulate(measurement, {"persons": TABLE}, seed=1).scale) * strategy.sensitivity
    assert 2 * strategy.sensitivity <= scale <= 2 * strategy.sensitivity * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", sizes(1, 2))
def test_estimates_are_histograms_of_the_public_number_of_groups(method, p):
    strategy = CountOfCounts(groups=6, largest=9, method=method, p=p)
    for seed in range(10):
        for epsilon in (0.05, 1.0, 10.0**6):
            measurement = strategy.measure(persons, epsilon, bin=lambda r: r.group)
            answers = wp.simulate(measurement, {"persons": TABLE}, seed)
            histogram = strategy.infer(answers)
            assert histogram.dtype == np.int64
            assert histogram.sum() == 6
            assert (histogram >= 0).all()
            sizes, variances = strategy.sizes(answers, epsilon)
            assert np.bincount(np.rint(sizes).astype(int), minlength=10).tolist() == histogram.tolist()
            assert (variances > 0).all()
        assert histogram.tolist() == [2, 2, 1, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("method", METHODS)
def test_groups_larger_than_the_bound_count_as_the_bound(method):
    strategy = CountOfCounts(groups=4, largest=3, method=method)
    answers = wp.simulate(strategy.measure(persons, 10**6, bin=lambda r: r.group), {"persons": TABLE}, seed=1)
    assert strategy.infer(answers).tolist() == [0, 2, 1, 1]


def test_weights_of_groups_larger_than_the_bound_and_of_items_elsewhere():
    strange = [*TABLE, ("Olga", 7, -1), ("Pam", 8, 2), ("Quinn", 9, 5)]

    def weights(query):
        found = wp.evaluate(query, {"persons": strange}, exact=True)
        return {key: found[key] for key in found}

    alone = CountOfCounts(groups=7, largest=3, method="unattributed")
    assert weights(alone.query(persons, bin=lambda r: r.group)) == {0: 3, 1: 2, **dict.fromkeys(range(2, 7), 1)}
    for methods, expected in (
        ("cumulative", {(0, 0): 2, (0, 1): 1, (0, 2): 1, (0, 3): 1, (1, 0): 2, (1, 1): 1}),
        ("unattributed", {(0, 0): 3, (0, 1): 1, (1, 0): 2, (1, 1): 1}),
    ):
        census = HierarchicalCounts(Tree([[2]]), groups=[2, 2], largest=3, methods=methods)
        assert weights(census.query(persons, 1, lambda r: r.group, lambda r: r.location)) == expected


def test_variances_are_the_papers():
    unattributed = CountOfCounts(groups=4, largest=9, method="unattributed", p=2)
    sizes, variances = unattributed.sizes([1.0, 5.0, 3.0, 8.0], 0.5)
    assert sizes.tolist() == [1, 4, 4, 8]
    assert variances.tolist() == [8, 4, 4, 8]
    cumulative = CountOfCounts(groups=4, largest=3)
    sizes, variances = cumulative.sizes([0.0, 3.0, 3.0], 0.5)
    assert sizes.tolist() == [1, 1, 1, 3]
    np.testing.assert_allclose(variances, [16 / 3, 16 / 3, 16 / 3, 16])
    sizes, variances = CountOfCounts(groups=4, largest=3, method="naive").sizes([3.0, 0.0, 1.0], 0.5)
    assert sizes.tolist() == [1, 1, 1, 3]
    np.testing.assert_allclose(variances, [64 / 3, 64 / 3, 64 / 3, 64])


@pytest.mark.parametrize("methods", ["cumulative", "unattributed", ["cumulative", "unattributed"]])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_hierarchy_is_consistent_and_right_without_noise(methods, weighted):
    strategy = HierarchicalCounts(Tree([[2]]), groups=[3, 2], largest=9, methods=methods)
    for epsilons in ([0.1, 0.3], [10.0**6] * 2):
        levels = strategy.measure(persons, epsilons, group=lambda r: r.group, location=lambda r: r.location)
        assert wp.bill(levels)["persons"] == sum(Fraction(str(e)) for e in epsilons)
        answers = [wp.simulate(m, {"persons": TABLE}, seed=5) for m in levels]
        (root,), (a, b) = strategy.infer(answers, epsilons, weighted)
        assert (root == a + b).all()
        assert (a.sum(), b.sum()) == (3, 2)
        assert min(a.min(), b.min()) >= 0
    assert a.tolist() == [1, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    assert b.tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]


def test_bad_input_is_refused_before_any_budget():
    with pytest.raises(PlanError, match="number of groups"):
        CountOfCounts(groups=-1, largest=4)
    with pytest.raises(PlanError, match="largest size"):
        CountOfCounts(groups=4, largest=0)
    with pytest.raises(PlanError, match="method"):
        CountOfCounts(groups=4, largest=4, method="best")
    with pytest.raises(PlanError, match="p is 1 or 2"):
        CountOfCounts(groups=4, largest=4, p=3)
    with pytest.raises(PlanError, match="public"):
        HierarchicalCounts(Tree([[2]]), groups=[3, 0], largest=9)
    with pytest.raises(PlanError, match="public"):
        HierarchicalCounts(Tree([[2]]), groups=None, largest=9)
    with pytest.raises(PlanError, match="methods"):
        HierarchicalCounts(Tree([[2]]), groups=[3, 1], largest=9, methods="naive")
    strategy = HierarchicalCounts(Tree([[2]]), groups=[3, 1], largest=9)
    with pytest.raises(PlanError, match="epsilon for each"):
        strategy.measure(persons, [0.1], group=lambda r: r.group, location=lambda r: r.location)
    with pytest.raises(PlanError, match="location"):
        strategy.query(persons, 0, group=lambda r: r.group, location=lambda r: r.name)
    with pytest.raises(AnswersError, match="2 levels"):
        strategy.infer([[1.0]], [0.1])
