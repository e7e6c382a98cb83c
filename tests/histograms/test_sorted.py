"""Sorted counts: norm, bounds and intervals. Non-negative trees, as `Hierarchical` gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wpinq as wp
from wpinq.errors import AnswersError
from wpinq.histograms import Hierarchical, Sorted, zero_subtrees

NOISY = [14.0, 9.0, 10.0, 15.0]
TRUTH = np.repeat([0.0, 1.0, 3.0, 40.0], [60, 30, 20, 10])


def test_the_norm_is_the_one_asked_for():
    assert Sorted(4).infer(NOISY).tolist() == [11, 11, 11, 15]
    assert Sorted(4).infer(NOISY, p=2).tolist() == [11, 11, 11, 15]
    assert Sorted(4).infer(NOISY, p=1).tolist() == [9, 9, 10, 15]
    for p in (0, 3, "2"):
        with pytest.raises(AnswersError, match="p = 1 and p = 2"):
            Sorted(4).infer(NOISY, p=p)


@pytest.mark.parametrize("p", [1, 2])
def test_bounds_hold(p):
    noisy = [-3.0, 9.0, 14.0, 30.0]
    assert Sorted(4).infer(noisy, p).tolist() == [0, 9, 14, 30]  # counts are at least 0 unless told otherwise
    assert Sorted(4).infer(noisy, p, lower=2, upper=10).tolist() == [2, 9, 10, 10]
    assert Sorted(4).infer(noisy, p, lower=-math.inf).tolist() == noisy
    assert Sorted(4).infer(noisy, p, lower=-1, upper=20).tolist() == [-1, 9, 14, 20]
    with pytest.raises(AnswersError, match="bounds"):
        Sorted(4).infer(noisy, p, lower=3, upper=2)


def test_intervals_have_a_width_and_cover():
    strategy, epsilon, draws = Sorted(len(TRUTH)), 0.5, 60
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(draws):
        noisy = TRUTH + rng.laplace(0, 1 / epsilon, len(TRUTH))
        found = strategy.interval(noisy, 0.95, epsilon)
        fit = strategy.infer(noisy)
        assert (found.lower <= found.upper).all()
        assert (found.upper - found.lower)[fit > 0.5].min() > 0.05
        covered += int(((found.lower <= TRUTH) & (found.upper >= TRUTH)).sum())
    assert found.label == "parametric bootstrap"
    # 0.85 was measured: the constraint biases the estimate where counts repeat, and the interval with it
    assert 0.8 < covered / draws / len(TRUTH) < 0.92


def test_intervals_widen_with_the_confidence_and_the_noise():
    strategy = Sorted(len(TRUTH))
    noisy = TRUTH + np.random.default_rng(5).laplace(0, 1, len(TRUTH))

    def width(confidence, epsilon):
        found = strategy.interval(noisy, confidence, epsilon)
        return float((found.upper - found.lower).mean())

    assert 1.5 * width(0.5, 1) < width(0.9, 1) < width(0.99, 1) / 1.2
    assert width(0.9, 1) < 0.3 * width(0.9, 0.1)
    for confidence in (0, 1, math.nan):
        with pytest.raises(AnswersError, match="confidence"):
            strategy.interval(noisy, confidence, 1)


def test_intervals_of_released_counts_take_their_scale():
    people = wp.source("people", int, cap=10**6)
    data = {"people": [i for i, count in enumerate(TRUTH) for _ in range(int(count))]}
    strategy = Sorted(len(TRUTH))
    answers = wp.simulate(strategy.measure(people, 0.5), data, seed=1)
    found, vector = strategy.interval(answers), strategy.interval(strategy.answers_of(answers), epsilon=0.5)
    np.testing.assert_allclose(found.lower, vector.lower, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.upper, vector.upper, rtol=1e-6, atol=1e-6)


# --- non-negative trees -------------------------------------------------------------------------------------------


def test_subtrees_at_zero_are_no_clipping():
    strategy = Hierarchical(4)
    noisy = strategy.apply(np.array([3.0, -4.0, 11.0, 0.0]))  # a node of -1 above leaves of 3 and -4
    assert strategy.infer(noisy, "subtrees").round(9).tolist() == [0, 0, 11, 0]
    assert np.maximum(strategy.infer(noisy), 0).round(9).tolist() == [3, 0, 11, 0]
    strategy, differ = Hierarchical(10, 3), 0
    for seed in range(10):
        noisy = np.random.default_rng(seed).normal(1, 4, strategy.size)
        nodes = strategy.nodes(noisy)
        wanted = [
            nodes[-1][leaf] if all(nodes[-1 - up][leaf // 3**up] > 0 for up in range(strategy.tree.levels)) else 0.0
            for leaf in range(10)
        ]
        assert strategy.infer(noisy, "subtrees").tolist() == wanted
        assert zero_subtrees(strategy.tree, nodes)[-1].tolist() == wanted
        differ += wanted != np.maximum(nodes[-1], 0).tolist()
    assert differ >= 5
