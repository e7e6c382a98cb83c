"""The lattice that a plan proves, and noise on it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import wpinq as wp
from tests.support.parameters import for_each, tenth
from tests.support.system_noise import with_geometric_noise
from wpinq import functions as F
from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.histograms import CountOfCounts, Hierarchical, HierarchicalCounts, Identity, Sorted, Tree, Wavelet
from wpinq.noise.geometric import check_exact, geometric_scale, on_lattice
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.plan.arithmetic import common_divisor
from wpinq.plan.properties import plan_properties

items = wp.source("items", group=int, bin=int, facts=["unit_weights"])
plain = wp.source("plain", group=int, bin=int, weights=True)
bins = items.select(lambda r: r.bin)


def by_bin(r):
    return r.bin


PLANS = {
    "identity": (Identity(8).query(items, by_bin), Fraction(1)),
    "sorted": (Sorted(8).query(items, by_bin), Fraction(1)),
    "hierarchical": (Hierarchical(8).query(items, by_bin), Fraction(1, 4)),
    "wavelet": (Wavelet(8).query(items, by_bin), Fraction(1, 4)),
    "naive": (CountOfCounts(4, 9, "naive").query(items, lambda r: r.group), Fraction(1, 2)),
    "H_c": (CountOfCounts(4, 9, "cumulative").query(items, lambda r: r.group), Fraction(1)),
    "H_g": (CountOfCounts(4, 9, "unattributed").query(items, lambda r: r.group), Fraction(1)),
    "tree": (
        HierarchicalCounts(Tree([[2]]), [3, 3], 9).query(items, 0, lambda r: r.group, lambda r: r.bin % 2),
        Fraction(1),
    ),
    "halves": (bins.concat(bins.select_many(lambda x: [x, x + 1])), Fraction(1, 2)),
    "thirds": (bins.difference(bins.select_many(lambda x: [x, x, 0])), Fraction(1, 3)),
    "shaved": (bins.shave(0.75), Fraction(1, 4)),
    "widths": (bins.shave(lambda x: [0.5, 2.0]), Fraction(1, 2)),
    "ranges": (bins.select_many(lambda x: F.range(0, x, limit=4)), Fraction(1, 12)),
    "weights": (bins.select_many(lambda x: [F.weighted(x, 2.0), F.weighted(0, 6.0)]), Fraction(1, 4)),
    "extremes": (bins.union(bins.select_many(lambda x: [x, 0])).intersect(bins.where(lambda x: x > 1)), Fraction(1, 2)),
}


@for_each("name", PLANS)
def test_the_lattice_that_is_proven(name):
    query, expected = PLANS[name]
    assert plan_properties(query.plan).lattice == expected


@pytest.mark.parametrize("name", tenth(PLANS, 2))
@settings(max_examples=25, deadline=None)
@given(data=st.sets(st.tuples(st.integers(0, 3), st.integers(-1, 8)), max_size=12))
def test_every_output_weight_is_a_multiple_of_it(name, data):
    query, expected = PLANS[name]
    weights = wp.evaluate(query, {"items": data}, exact=True)
    assert all((weight / expected).denominator == 1 for weight in weights.values())
    floats = wp.evaluate(query, {"items": data})
    assert on_lattice([floats[key] for key in weights], expected) == [weights[key] / expected for key in weights]


def test_a_weight_that_rounds_when_it_is_made_a_float_counts_as_it_is_rounded():
    big = 2**53 + 1
    signed = bins.select_many(
        lambda x: [
            F.weighted((0, x), F.cast(F.where(x > 0, big, -big), float)),
            F.weighted((1, x), 3.0),
        ]
    )
    expected = Fraction(1, 2**53 + 3)
    assert plan_properties(signed.plan).lattice == expected
    weights = wp.evaluate(signed, {"items": [(1, 1), (2, 0)]}, exact=True)
    assert weights[0, 1] == 2**53 * expected
    assert all((weight / expected).denominator == 1 for weight in weights.values())


BROKEN = {
    "Source": plain,
    "Join": items.join(items, lambda r: r.bin, lambda r: r.bin, lambda a, b: a.group),
    "SelectMany": bins.select_many(lambda x: [F.weighted(0, x)]),
    "merge": bins.select_many(lambda x: [F.weighted(x, 1.0), F.weighted(0, -1.0)]),
    "limit": bins.select_many(lambda x: F.range(0, x, limit=1000)),
    "Shave": bins.shave(lambda x: [x, 1]),
    "in place": bins.select_many(lambda x: F.map(F.range(0, x, limit=3), lambda i: F.weighted(i, 1.0))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_step_that_breaks_it_is_named(name):
    query = BROKEN[name].select(lambda r: 1)  # the step below is named, not this one
    assert plan_properties(query.plan).lattice is None
    with pytest.raises(PlanError, match=name):
        plan_properties(query.plan).require_lattice()


def test_common_divisor():
    assert common_divisor(Fraction(2, 3), Fraction(1, 2)) == Fraction(1, 6)
    assert common_divisor(Fraction(4)) == 4


def test_scale_is_at_least_the_inverse_of_epsilon_times_step():
    for epsilon in (Fraction(1, 10), Fraction(1, 3), Fraction(7)):
        for step in (Fraction(1), Fraction(1, 2), Fraction(1, 12)):
            scale = geometric_scale(epsilon, step, Fraction(0))
            assert 1 <= Fraction(scale) * epsilon * step <= 1 + Fraction(1, 10**14)
    with pytest.raises(EpsilonError):
        geometric_scale(Fraction(1), Fraction(0), Fraction(0))
    with pytest.raises(EpsilonError):
        geometric_scale(Fraction(0), Fraction(1), Fraction(0))
    with pytest.raises(EpsilonError):
        geometric_scale(Fraction(1), Fraction(1), Fraction(-1))
    with pytest.raises(EpsilonError):
        geometric_scale(Fraction(1, 2**70), Fraction(1), Fraction(0))


def test_the_draws_have_the_probabilities_of_the_formula():
    noise, draws = DoubleGeometric(2.0), 20_000
    for sample in (with_geometric_noise([5] * draws, 2.0),):
        counts = Counter(k - 5 for k in sample)
        a = math.exp(-0.5)
        for k in range(-4, 5):
            chance = (1 - a) / (1 + a) * a ** abs(k)
            deviation = math.sqrt(draws * chance * (1 - chance))
            assert abs(counts[k] - draws * chance) < 6 * deviation  # 18 checks at 6 sigma: a false alarm in 10^7
        variance = np.var(sample)
        assert abs(variance / noise.variance - 1) < 0.15


def test_survival_and_interval_are_exact():
    noise = DoubleGeometric(3.0)
    a = noise.ratio
    chance = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-400, 401)}
    for t in (-7, -2, -1, 0, 1, 9):
        assert noise.survival(t) == pytest.approx(sum(p for k, p in chance.items() if k > t), abs=1e-12)
    for confidence in (0.01, 0.5, 0.9, 0.95, 0.999):
        m = noise.interval(confidence)
        assert sum(p for k, p in chance.items() if abs(k) <= m) >= confidence
        assert m == 0 or sum(p for k, p in chance.items() if abs(k) <= m - 1) < confidence
    assert noise.variance == pytest.approx(sum(k * k * p for k, p in chance.items()))
    with pytest.raises(AnswersError):
        noise.interval(1.0)


def test_failures_are_silent_and_lattices_too_fine_are_refused():
    with pytest.raises(OverflowError) as caught:  # a release makes one constant error of it
        with_geometric_noise([2**70], 1.0)
    assert str(2**70) not in str(caught.value)
    with pytest.raises(EpsilonError):
        DoubleGeometric(0.0)
    check_exact(Fraction(1), plan_properties(PLANS["H_g"][0].plan).rounding_error, Fraction(2**30))
    with pytest.raises(EpsilonError, match="too fine"):
        check_exact(Fraction(1, 10**9), plan_properties(PLANS["H_g"][0].plan).rounding_error, Fraction(2**30))
