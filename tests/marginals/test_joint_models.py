"""Joint models: what every one of them must be, their mathematics against enumeration, how near they come to tables."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

import numpy as np
import pytest

from tests.support.joint_tables import (
    SIX_SIZES,
    adult_six,
    counts,
    errors,
    made_table,
    measured,
    pairs_of,
    planned_views,
)
from tests.support.parameters import for_each, sizes
from wpinq.errors import AnswersError, PlanError
from wpinq.marginals.cells import Attributes, MeasuredView
from wpinq.marginals.joint_model import (
    FitTarget,
    loss_and_slopes,
    mirror_descent,
    starting_potentials,
    stopping_ratio,
    systematic,
)
from wpinq.marginals.models import _MixtureFit, fit
from wpinq.marginals.residual_basis import ConsistentMarginals

SIZES = (3, 4, 2, 5)
LOOPS = {(0, 1): 0.25, (1, 2): 0.25, (0, 2): 0.25, (0, 1, 3): 0.25}


def views_of(number):
    return list(chain.from_iterable(combinations(range(number), size) for size in range(number + 1)))


def fitted(model, epsilon=0.3, seed=0):
    codes = made_table(SIZES, 2000, kinds=5)
    return fit(measured(codes, SIZES, LOOPS, epsilon, seed), SIZES, model)


@pytest.mark.parametrize("model", ["mixture", "full table"])
@pytest.mark.parametrize("epsilon", [1.0, 0.01])
def test_marginals_are_not_negative_and_agree_with_one_another(model, epsilon):
    found = fitted(model, epsilon)
    tolerance = 1e-6 * found.total
    for view in views_of(4):
        marginal = found.marginal(view)
        assert marginal.shape == tuple(SIZES[i] for i in view)
        assert marginal.min() >= 0
        assert abs(marginal.sum() - found.total) <= tolerance
        for axis, place in enumerate(view):
            smaller = found.marginal(tuple(i for i in view if i != place))
            assert np.abs(marginal.sum(axis=axis) - smaller).max() <= tolerance


@pytest.mark.parametrize("model", ["mixture", "full table"])
def test_the_same_seed_gives_the_same_model_and_rows(model):
    first, second = fitted(model), fitted(model)
    assert np.array_equal(first.marginal((0, 1, 3)), second.marginal((0, 1, 3)))
    assert np.array_equal(first.draw(100, seed=3), second.draw(100, seed=3))
    assert not np.array_equal(first.draw(100, seed=3), first.draw(100, seed=4))


def test_another_seed_gives_another_mixture():
    views = measured(made_table(SIZES, 2000), SIZES, LOOPS, 1.0, 0)
    assert not np.array_equal(fit(views, SIZES, seed=1).marginal((0,)), fit(views, SIZES, seed=2).marginal((0,)))


def test_gradients_of_a_mixture_are_those_of_finite_differences():
    sizes = (3, 2, 4, 2)
    shares = {(0,): 0.2, (0, 1): 0.2, (1, 2, 3): 0.3, (0, 1, 2, 3): 0.3}
    views = measured(made_table(sizes, 500), sizes, shares, 0.5, 1)
    held = _MixtureFit(FitTarget.of(views, Attributes(sizes), None), 3, np.random.default_rng(0), np.float64)
    _, gradient = held.loss_and_gradient()
    step, base = 1e-5, held.logits
    for place in np.ndindex(*base.shape):
        sides = []
        for sign in (1, -1):
            held.logits = base.copy()
            held.logits[place] += sign * step
            sides.append(held.loss_and_gradient()[0])
        slope = (sides[0] - sides[1]) / (2 * step)
        assert abs(slope - gradient[place]) <= 1e-6 * np.abs(gradient).max()


def test_slopes_of_the_loss_are_those_of_finite_differences():
    views = measured(made_table(SIZES, 500), SIZES, LOOPS, 0.5, 1)
    target = FitTarget.of(views, Attributes(SIZES), None)
    beliefs = [np.full(each.counts.shape, 1 / each.counts.size) for each in views]
    _, slopes = loss_and_slopes(target, beliefs)
    for belief, slope in zip(beliefs, slopes, strict=True):
        for place in np.ndindex(*belief.shape):
            sides = []
            for change in (1e-4, -2e-4):
                belief[place] += change
                sides.append(loss_and_slopes(target, beliefs)[0])
            belief[place] += 1e-4
            assert np.isclose((sides[0] - sides[1]) / 2e-4, slope[place], rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_mirror_descent_comes_down_at_every_step_and_stops_at_the_limit():
    views = measured(made_table(SIZES, 2000), SIZES, {(0, 1): 0.5, (1, 3): 0.5}, 1.0, 1)
    target = FitTarget.of(views, Attributes(SIZES), 0.9)

    def beliefs(potentials):
        first, second = potentials
        logits = first[:, :, None] + second[None, :, :]
        table = np.exp(logits - logits.max())
        table /= table.sum()
        return [table.sum(axis=2), table.sum(axis=0)]

    losses = [mirror_descent(target, beliefs, steps).loss for steps in range(12)]
    assert all(later < earlier for earlier, later in pairwise(losses) if earlier > target.limit)
    done = mirror_descent(target, beliefs, 400)
    assert done.loss <= target.limit and done.steps < 400
    assert np.allclose(beliefs(starting_potentials(target))[0].sum(axis=1), target.singles[0])


def test_a_model_that_can_say_the_truth_recovers_it_without_noise():
    codes = made_table(SIZES, 5000, kinds=4)
    exact = [MeasuredView(view, counts(codes, view, SIZES), 1.0) for view in pairs_of(SIZES)]
    truth = {each.view: each.counts for each in exact}
    for model, far in (("mixture", 3.0), ("full table", 3.0)):
        found = fit(exact, SIZES, model, stop=1e-3)
        assert errors({view: found.marginal(view) for view in truth}, truth)[0] < far, model
        assert abs(found.total - 5000) < 1e-6


@pytest.mark.parametrize("epsilon", sizes(0.1, 1.0))
def test_a_mixture_is_at_most_a_tenth_worse_than_the_full_table(epsilon):
    codes = made_table(SIX_SIZES, 20_000)
    truth = {view: counts(codes, view, SIX_SIZES) for view in pairs_of(SIX_SIZES)}
    found = {"mixture": [], "full table": [], "least squares": []}
    for seed in range(3):
        views = planned_views(codes, SIX_SIZES, epsilon, seed)
        for model in ("mixture", "full table"):
            joint = fit(views, SIX_SIZES, model)
            found[model].append(errors({view: joint.marginal(view) for view in truth}, truth))
        linear = ConsistentMarginals(views, SIX_SIZES, list(truth))
        found["least squares"].append(errors(dict(linear), truth))
    mixture, table, linear = (np.mean(found[name], axis=0) for name in found)
    assert (mixture <= 1.1 * table).all()
    assert (mixture < 0.95 * linear).all()


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, (10.8, 0.0033)), (0.1, (80, 0.022))])
def test_pairs_of_adult_come_as_near_as_is_claimed(epsilon, most):
    codes = adult_six()
    truth = {view: counts(codes, view, SIX_SIZES) for view in pairs_of(SIX_SIZES)}
    found, drawn, heavy = [], [], []
    for seed in range(4):
        joint = fit(planned_views(codes, SIX_SIZES, epsilon, seed), SIX_SIZES)
        found.append(errors({view: joint.marginal(view) for view in truth}, truth))
        rows, (light, weight) = joint.draw(seed=seed), joint.weighted_draw(seed=seed)
        drawn.append(errors({view: counts(rows, view, SIX_SIZES) for view in truth}, truth))
        heavy.append(errors({view: weight * counts(light, view, SIX_SIZES) for view in truth}, truth))
    assert (np.mean(found, axis=0) <= most).all()
    assert (np.mean(heavy, axis=0) <= np.multiply(1.03, most)).all()
    assert (np.mean(drawn, axis=0) <= ((13, 0.004) if epsilon == 1 else most)).all()


def test_members_of_a_mixture_are_better_together_than_apart():
    codes = made_table((8, 7, 16, 5), 5000)
    truth = {view: counts(codes, view, (8, 7, 16, 5)) for view in pairs_of((8, 7, 16, 5))}
    together, alone = [], []
    for seed in range(3):
        views = planned_views(codes, (8, 7, 16, 5), 1.0, seed)
        for members, into in ((4, together), (1, alone)):
            joint = fit(views, (8, 7, 16, 5), members=members, seed=seed)
            into.append(errors({view: joint.marginal(view) for view in truth}, truth)[0])
    assert np.mean(together) < np.mean(alone)


def test_a_fit_stops_at_the_noise_and_farther_on_where_it_is_told_to():
    codes = made_table(SIX_SIZES, 20_000)
    views = planned_views(codes, SIX_SIZES, 0.1, 1)
    early = fit(views, SIX_SIZES, members=1)
    late = fit(views, SIX_SIZES, members=1, stop=0.01)
    assert early.loss <= stopping_ratio(views, early.total) + 1e-3
    assert late.loss < early.loss and early.steps < late.steps == 1000
    assert fit(views, SIX_SIZES, members=1, stop=0.01, steps=7).steps == 7


def test_where_to_stop_goes_from_the_noise_down_as_records_grow():
    views = [MeasuredView((0, 1), np.zeros((8, 8)), 2.0)]
    ratios = [stopping_ratio(views, total) for total in (10, 100, 1000, 10_000, 10**6)]
    assert ratios[0] == 1.0 and ratios == sorted(ratios, reverse=True) and ratios[-1] == 0.4
    # measured twice, cells tell less each: what they are free to be is half of them
    assert stopping_ratio(views * 2, 1000) > stopping_ratio(views, 1000)


@pytest.mark.parametrize("model", ["mixture", "full table"])
def test_drawn_rows_are_stratified(model):
    found = fitted(model)
    rows = 4000
    codes = found.draw(rows, seed=1)
    assert codes.shape == (rows, 4) and codes.dtype == np.int64
    assert (codes.min(axis=0) >= 0).all() and (codes.max(axis=0) < SIZES).all()
    views = pairs_of(SIZES)
    expected = {view: found.marginal(view) * rows / found.total for view in views}
    stratified = errors({view: counts(codes, view, SIZES) for view in views}, expected)[0]
    whole = found.marginal((0, 1, 2, 3)).ravel()
    independent = np.random.default_rng(0).choice(len(whole), rows, p=whole / whole.sum())
    apart = np.stack(np.unravel_index(independent, SIZES), axis=1)
    assert stratified < 0.7 * errors({view: counts(apart, view, SIZES) for view in views}, expected)[0]


def test_order_of_drawn_rows_tells_nothing_of_their_kind():
    codes = fitted("mixture").draw(4000, seed=1)
    halves = [np.bincount(half[:, 1], minlength=SIZES[1]) for half in np.array_split(codes, 2)]
    assert np.abs(halves[0] - halves[1]).max() < 250  # 8 deviations of a random half
    assert (codes[:2000, 1] != np.sort(codes[:2000, 1])).any()


def test_lighter_rows_weigh_as_much_together_and_are_nearer_to_the_model():
    found = fitted("mixture")
    codes, weight = found.weighted_draw(copies=10, seed=1)
    assert len(codes) == round(10 * found.total) and len(codes) * weight == pytest.approx(found.total)
    expected = {view: found.marginal(view) for view in pairs_of(SIZES)}
    light = errors({view: weight * counts(codes, view, SIZES) for view in expected}, expected)[0]
    rows = found.draw(seed=1)
    assert light < 0.5 * errors({view: counts(rows, view, SIZES) for view in expected}, expected)[0]


def test_systematic_members_come_as_often_as_their_shares_or_the_next_whole_number():
    random = np.random.default_rng(1)
    for number in (1, 7, 100):
        shares = random.dirichlet(np.full(9, 0.3))
        times = np.bincount(systematic(shares, number, random), minlength=9)
        assert (np.abs(times - number * shares) < 1).all()


def test_few_rows_and_one():
    for model in ("mixture", "full table"):
        assert fitted(model).draw(1).shape == (1, 4)
        assert fitted(model).draw(3).shape == (3, 4)


def test_odd_tables():
    single = MeasuredView((1,), np.array([3.0, 5.0, 8.0]), 1.0)
    total = MeasuredView((), np.array(16.5), 1.0)
    for model in ("mixture", "full table"):
        found = fit([single, total, single], (1, 3, 4), model)  # one value; measured twice; never measured
        assert np.allclose(found.marginal((2,)), found.total / 4, rtol=1e-5)
        assert found.marginal((0,)).shape == (1,) and found.marginal(()).shape == ()
        nothing = fit([MeasuredView((0,), np.array([-30.0, -20.0]), 10.0)], (2,), model)
        assert nothing.total == 1.0 and nothing.marginal((0,)).sum() == pytest.approx(1.0)


def test_views_by_name_and_what_supports_them():
    views = [MeasuredView((0, 1), np.full((2, 3), 5.0), 1.0), MeasuredView((2,), np.full(2, 15.0), 1.0)]
    found = fit(views, {"age": 2, "city": 3, "sex": 2}, "full table")
    assert found.marginal(("city", "age")).shape == (2, 3)
    assert found.supported("age") and found.supported(("age", "city")) and found.supported(())
    assert not found.supported(("age", "sex"))


@for_each(
    ("call", "error", "words"),
    [
        (lambda: fit([], (2, 2)), AnswersError, "measure some"),
        (lambda: fit([MeasuredView((), np.array(3.0), 1.0)], (2, 2)), AnswersError, "measure some"),
        (lambda: fit([(0, 1)], (2, 2)), AnswersError, "MeasuredView"),
        (lambda: fit(fitted("mixture").measured, SIZES, "forest"), AnswersError, "full table"),
        (lambda: fit(fitted("mixture").measured, SIZES, "full table", members=3), AnswersError, "leave them out"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 1.0)], (2,) * 21, "full table"), AnswersError, "mixture"),
        (lambda: fit([MeasuredView((0,), np.ones(3), 1.0)], (2,)), AnswersError, "shape"),
        (lambda: fit([MeasuredView((0,), np.array([1, np.nan]), 1.0)], (2,)), AnswersError, "finite"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 0.0)], (2,)), AnswersError, "scale"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 1.0)], (2,), stop=0), AnswersError, "stop"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 1.0)], (2,), steps=0), AnswersError, "steps"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 1.0)], (2,) * 40).marginal(range(40)), AnswersError, "fewer"),
        (lambda: fit([MeasuredView((0,), np.ones(2), 1.0)], (2,)).marginal((1,)), PlanError, "place"),
        (lambda: fitted("full table").draw(0), AnswersError, "rows"),
        (lambda: fitted("full table").draw(5, seed=-1), AnswersError, "seed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()
