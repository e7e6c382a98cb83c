"""Intervals of joint models: how often they hold, and what they say of themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.joint_tables import counts, made_table, measured, pairs_of, planned_views
from tests.support.parameters import sizes
from wpinq.errors import AnswersError
from wpinq.marginals.cells import MeasuredView
from wpinq.marginals.models import BOOTSTRAP, EXACT, fit, marginal_intervals
from wpinq.marginals.residual_basis import ConsistentMarginals, MarginalAlgebra

SIZES = (6, 5, 4)


@cache
def small():
    return made_table(SIZES, 3000)


def covered(found, truth):
    inside = [(each.lower - 1e-9 <= truth[view]) & (truth[view] <= each.upper + 1e-9) for view, each in found.items()]
    return float(np.concatenate([each.ravel() for each in inside]).mean())


@pytest.mark.long
@pytest.mark.parametrize(("model", "epsilon"), [("mixture", 0.3), ("full table", 1.0)])
def test_intervals_of_nine_in_ten_hold_that_often(model, epsilon):
    truth = {view: counts(small(), view, SIZES) for view in pairs_of(SIZES)}
    shares = []
    for seed in range(6):
        joint = fit(planned_views(small(), SIZES, epsilon, seed), SIZES, model, seed=seed)
        shares.append(covered(marginal_intervals(joint, list(truth), 0.9, draws=25, seed=seed), truth))
    assert 0.85 <= np.mean(shares) <= 0.95


def test_intervals_are_narrower_than_those_of_least_squares():
    joint = fit(planned_views(small(), SIZES, 0.1, 1), SIZES)
    found = marginal_intervals(joint, pairs_of(SIZES), 0.9, draws=20)
    views, scales = zip(*((each.view, each.scale) for each in joint.measured), strict=True)
    algebra = MarginalAlgebra(joint.attributes, views, scales)
    assert {each.method for each in found.values()} == {BOOTSTRAP}
    for view, each in found.items():
        assert (each.lower >= 0).all() and (each.lower <= each.estimate).all() and (each.estimate <= each.upper).all()
        assert np.mean(each.upper - each.lower) < 0.8 * 2 * 1.645 * algebra.variance(view) ** 0.5


@pytest.mark.parametrize("seeds", sizes(2, 6))
def test_what_a_model_cannot_say_gets_the_exact_interval_of_least_squares(seeds):
    diagonal = np.diag([500.0, 500.0, 500.0, 500.0])
    truth = {(0, 1): diagonal}
    hits, methods = [], set()
    for seed in range(seeds):
        noisy = diagonal + np.random.default_rng(seed).laplace(0, 2.0, (4, 4))
        joint = fit([MeasuredView((0, 1), noisy, 2.0)], (4, 4), components=1, members=1)  # independent: all wrong
        found = marginal_intervals(joint, [(0, 1), (0,)], 0.9, draws=20)
        pair = found[(0, 1)]
        methods.add(pair.method)
        hits.append(covered({(0, 1): pair}, truth))
        assert np.array_equal(pair.estimate, ConsistentMarginals(joint.measured, (4, 4)).marginal((0, 1)))
        assert pair.upper - pair.lower == pytest.approx(2 * 2.0 * np.log(10))
        assert pair.label == EXACT
    assert methods == {EXACT}
    assert 0.7 <= np.mean(hits) <= 1.0  # of 96 cells: fewer has a chance below 1e-6


def test_what_no_measured_view_holds_is_said_to_follow_from_the_model():
    views = measured(small(), SIZES, {(0, 1): 0.5, (2,): 0.5}, 1.0, 1)
    found = marginal_intervals(fit(views, SIZES, "full table"), [(0,), (0, 1), (1, 2)], draws=20)
    assert [each.from_model_only for each in found.values()] == [False, False, True]
    assert "model only" in found[(1, 2)].label and "model only" not in found[(0, 1)].label


def test_the_same_seed_gives_the_same_intervals_and_more_confidence_wider_ones():
    joint = fit(planned_views(small(), SIZES, 0.3, 1), SIZES, "full table")
    one, same, wide = (
        marginal_intervals(joint, [(0, 1)], confidence, draws=20, seed=2)[(0, 1)] for confidence in (0.9, 0.9, 0.99)
    )
    assert np.array_equal(one.upper, same.upper)
    assert (wide.upper >= one.upper).all() and (wide.lower <= one.lower).all()


@pytest.mark.parametrize(
    ("options", "words"), [({"confidence": 1.0}, "confidence"), ({"draws": 3}, "draws"), ({"seed": -1}, "seed")]
)
def test_refusals(options, words):
    joint = fit([MeasuredView((0,), np.ones(2), 1.0)], (2,), "full table")
    with pytest.raises(AnswersError, match=words):
        marginal_intervals(joint, [(0,)], **options)
