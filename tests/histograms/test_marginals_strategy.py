"""Marginals as a strategy: query, bill and noise, estimates and errors, and who takes a workload for marginals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms import (
    AllRanges,
    Bins,
    Identity,
    Kronecker,
    LinearStrategy,
    Marginals,
    Matrix,
    MatrixMechanism,
    Prefixes,
    Product,
    Ranges,
    Stacked,
    choose,
    optimise,
)
from wpinq.histograms.workload import marginal_weights
from wpinq.language import parse, unparse
from wpinq.marginals.cells import MeasuredView

SIZES = (3, 2, 4)
SHARES = {(0, 1): 3, (1, 2): 2.5, (0,): 1, (): 0.5}
people = wp.source("people", a=int, b=int, c=int, weights=True)
named = Marginals({"a": 3, "b": 2, "c": 4}, shares={("a", "b"): 3, ("b", "c"): 2.5, ("a",): 1, (): 0.5})
strategy = Marginals(SIZES, shares=SHARES)


def total(size: int) -> Matrix:
    return Matrix(np.ones((1, size)))


def marginals_of(sizes, order: int, factor=Bins) -> Stacked:
    views = combinations(range(len(sizes)), order)
    return Stacked(*(Kronecker(*(factor(n) if i in v else total(n) for i, n in enumerate(sizes))) for v in views))


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_every_record_gives_each_share_to_its_cell_and_values_outside_fall_in_none(engine) -> None:
    data = dict.fromkeys(product(range(-1, 4), range(-1, 3), range(-1, 5)), 1.0)
    found = wp.evaluate(named.query(people), {"people": data}, engine=engine)
    inside = np.ones(SIZES)
    for number, (view, share) in enumerate(named.shares.items()):
        expected = inside.sum(axis=tuple(i for i in range(3) if i not in view)).ravel()
        assert [found[number, cell] for cell in range(len(expected))] == (share * expected).tolist()
    assert len(found) == named.size == len(named.keys)


def test_one_use_is_billed_and_the_weights_are_exact() -> None:
    measurement = named.measure(people, 0.25)
    assert wp.bill(measurement)["people"] == Fraction(1, 4)
    weights = wp.evaluate(named.query(people), {"people": [(2, 1, 3)]}, exact=True)
    assert sum(weights.values()) == 1
    assert {key: weights[key] for key in weights} == dict(
        zip([(0, 0), (1, 2), (2, 5), (3, 7)], map(Fraction, named.shares.values()), strict=True)
    )


def test_plans_of_many_views_are_billed_one_use() -> None:
    wide = wp.source("wide", tuple[(int,) * 13])
    many = Marginals((2,) * 13, "all triples", "apart")
    assert len(many.shares) == 286
    assert wp.bill(many.measure(wide, 1))["wide"] == 1


records = st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(-1, 4))


@given(
    st.dictionaries(records, st.fractions(-3, 3), max_size=6),
    records,
    st.fractions(-2, 2),
    st.dictionaries(
        st.sampled_from([v for k in range(4) for v in combinations(range(3), k)]), st.floats(0.01, 100), min_size=1
    ),
)
def test_a_record_moves_the_answers_by_no_more_than_its_weight(data, record, change, shares) -> None:
    query = Marginals(SIZES, shares=shares).query(people)
    moved = {**data, record: data.get(record, Fraction(0)) + change}
    one, other = (wp.evaluate(query, {"people": given}, exact=True) for given in (data, moved))
    assert sum(abs(one[key] - other[key]) for key in {*one, *other}) <= abs(change)


def test_through_a_session_to_consistent_marginals(tmp_path) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2000, SIZES)
    data = {tuple(map(int, cell)): float(count) for cell, count in np.ndenumerate(table)}
    measurement = named.measure(people, 5.0)
    answers = wp.simulate(measurement, {"people": data}, seed=4)
    measured = named.measured(answers)
    assert [view.view for view in measured] == list(named.shares)
    assert all(isinstance(view, MeasuredView) for view in measured)
    for view, share in zip(measured, named.shares.values(), strict=True):
        assert view.scale == pytest.approx(1 / (5 * share), rel=1e-5)
        true = table.sum(axis=tuple(i for i in range(3) if i not in view.view))
        assert np.abs(view.counts - true).max() < 30 * view.scale
    found = named.infer(answers)
    assert list(found) == list(named.views)
    for view in named.views:
        true = table.sum(axis=tuple(i for i in range(3) if i not in view))
        assert np.abs(found[view] - true).max() < named.half_width(view, 1 - 1e-9, epsilon=answers)
    np.testing.assert_allclose(found["a", "b"].sum(axis=0), found["b", "c"].sum(axis=1))
    np.testing.assert_allclose(named.infer(answers.values)["a", "b"], found["a", "b"])


def test_variances_and_half_widths_follow_the_noise() -> None:
    dense = np.linalg.pinv(np.vstack([share * rows_of(view) for view, share in strategy.shares.items()]))
    for view in [(0, 1), (1,), (2,), ()]:
        coefficients = rows_of(view) @ dense
        for epsilon in (0.1, 2):
            expected = 2 / epsilon**2 * (coefficients**2).sum(axis=1)
            np.testing.assert_allclose(strategy.variance(view, epsilon), expected, rtol=1e-12)
            for confidence in (0.5, 0.99):
                half = strategy.half_width(view, confidence, epsilon=epsilon)
                lower, upper = MatrixMechanism(np.eye(dense.shape[1])).intervals(
                    np.zeros(dense.shape[1]), coefficients[:1], confidence, epsilon
                )
                assert half == pytest.approx((upper[0] - lower[0]) / 2, rel=1e-7)


def rows_of(view) -> np.ndarray:
    found = np.ones((1, 1))
    for i, size in enumerate(SIZES):
        found = np.kron(found, np.eye(size) if i in view else np.ones((1, size)))
    return found


def test_geometric_noise_is_used_where_the_shares_leave_a_lattice() -> None:
    whole = wp.source("whole", a=int, b=int, facts=["unit_weights"])
    halves = Marginals({"a": 3, "b": 2}, shares={("a",): 1, ("b",): 1})
    measurement = halves.measure(whole, 1, mechanism="geometric")
    assert measurement.sink.step == Fraction(1, 2)
    assert halves.variance("a", measurement) < halves.variance("a", 1)
    narrow = halves.half_width("a", 0.9, epsilon=measurement)
    assert narrow == pytest.approx(halves.half_width("a", 0.9, epsilon=1), rel=0.25)
    answers = wp.simulate(measurement, {"whole": {(0, 1): 1.0, (2, 0): 1.0}}, seed=1)
    assert halves.infer(answers)["a"].shape == (3,)
    with pytest.raises(PlanError):
        halves.measure(wp.source("any", a=int, b=int, weights=True), 1, mechanism="geometric")
    thirds = Marginals({"a": 3, "b": 2}, shares={("a",): 1, ("b",): 2})  # a lattice of 2⁻³⁰ is too fine for floats
    assert thirds.measure(whole, 1, mechanism="automatic").sink.name == "NoisyCount"


@pytest.mark.parametrize("each", [strategy, named, Marginals((2, 3, 2)), Marginals((4, 3), ["singles"][0], "max")])
def test_repr_is_the_strategy_and_plans_nothing_again(each, monkeypatch) -> None:
    monkeypatch.setattr("wpinq.histograms.attributes.plan_marginals", None)
    again = eval(repr(each), {"Marginals": Marginals})
    assert again == each and hash(again) == hash(each)
    assert again.shares == each.shares and again.views == each.views
    assert len(str(each)) < 100


def test_plans_are_written_as_text_programs() -> None:
    measurement = named.measure(people, 1)
    assert parse(unparse({"m": measurement}))["m"].plan == measurement.plan


def test_sources_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PlanError, match="record of 3 integers"):
        strategy.query(wp.source("texts", a=str, b=int, c=int))
    with pytest.raises(PlanError):
        strategy.query([1, 2, 3])
    with pytest.raises(AnswersError):
        strategy.infer([1.0, 2.0])


@for_each(
    "wrong",
    [
        {"shares": {}},
        {"shares": {(0, 1): 0}},
        {"shares": {(0, 1): -1}},
        {"shares": {(0, 1): float("inf")}},
        {"shares": {(0, 1): 1, (1, 0): 1}},
        {"shares": {(0, 3): 1}},
        {"shares": {(0,): 1}, "views": [(0, 1)]},
        {"shares": {(0, 1): 1, (2,): 1e-12}},
        {"shares": [(0, 1)]},
        {"views": "all quadruples"},
        {"objective": "least"},
    ],
)
def test_parameters_are_checked(wrong) -> None:
    with pytest.raises(PlanError):
        Marginals(SIZES, **wrong)


WORKLOADS = [
    marginals_of(SIZES, 2),
    marginals_of(SIZES, 1),
    Stacked(marginals_of(SIZES, 2), Kronecker(total(3), total(2), total(4))),
    Stacked(Kronecker(Bins(3), Stacked(Bins(2), total(2)), Ranges(4, [0], [4])), Kronecker(Bins(3), Bins(2), total(4))),
]


def test_the_error_of_a_workload_is_that_of_the_dense_matrix() -> None:
    full = Marginals(SIZES, shares={(0, 1, 2): 1, (0, 1): 2, (1, 2): 1, (): 3})
    dense = np.linalg.pinv(np.vstack([share * rows_of(view) for view, share in full.shares.items()]))
    others = [
        Kronecker(AllRanges(3), Prefixes(2), Bins(4)),
        Stacked(Kronecker(Bins(3), Bins(2), AllRanges(4)), Kronecker(total(3), Prefixes(2), total(4))),
        Kronecker(Matrix([[1, -1, 0]]), Bins(2), total(4)),
        Bins(24),
    ]
    for workload in [*WORKLOADS, *others]:
        expected = 2 / 0.5**2 * float(((workload.rows(0, workload.queries).T @ dense) ** 2).sum())
        assert full.expected_error(workload, 0.5) == pytest.approx(expected, rel=1e-10)
    pair = strategy.expected_error([(0, 1)], 1)
    assert pair == pytest.approx(6 * strategy.variance((0, 1), 1))
    assert strategy.expected_error({(0, 1): 2.0, (): 1.0}, 1) == pytest.approx(2 * pair + strategy.variance((), 1))
    with pytest.raises(PlanError, match="holds"):
        strategy.expected_error(Kronecker(Bins(3), total(2), Bins(4)), 1)
    with pytest.raises(PlanError, match="a Kronecker of a workload for each"):
        strategy.expected_error(Prefixes(24), 1)


def test_marginals_are_told_from_other_workloads_by_what_they_weigh() -> None:
    assert marginal_weights(WORKLOADS[0]) == (SIZES, {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0})
    assert marginal_weights(WORKLOADS[3]) == (SIZES, {(0,): 1.0, (0, 1): 2.0})
    scaled = Stacked(Kronecker(Matrix(3 * np.eye(2)), total(5)), Kronecker(total(2), Matrix([[2.0] * 5])))
    assert marginal_weights(scaled) == ((2, 5), {(0,): 9.0, (): 4.0})
    for other in (
        Kronecker(Bins(2), Bins(3)),
        Stacked(Bins(2), total(2)),
        Stacked(Kronecker(Bins(2), Prefixes(3)), Kronecker(Bins(2), Bins(3))),
        Stacked(Kronecker(Bins(2), Bins(3)), Kronecker(Bins(3), Bins(2))),
        Stacked(Kronecker(Bins(2), Bins(3)), Bins(6)),
        Stacked(Kronecker(Matrix([[1, -1]]), Bins(3)), Kronecker(Bins(2), Bins(3))),
    ):
        assert marginal_weights(other) is None


def test_choose_and_optimise_come_here_for_marginals_and_beat_asking_apart() -> None:
    sizes = (8, 7, 16, 5)
    workload = marginals_of(sizes, 2)
    ranking = choose(workload, 1)
    assert isinstance(ranking.best, Marginals)
    apart = Marginals(sizes, "all pairs", "apart").expected_error(None, 1)
    assert (ranking.choices[0].error / workload.queries) ** 0.5 == pytest.approx(7.12, rel=0.03)
    assert ranking.choices[0].error < apart
    assert ranking.choices[0].error == pytest.approx(ranking.best.expected_error(workload, 1))
    assert optimise(workload) == ranking.best
    assert list(ranking.infer(np.zeros(ranking.best.size))) == list(ranking.best.views)
    with pytest.raises(AnswersError, match="leave nonnegative= out"):
        ranking.infer(np.zeros(ranking.best.size), nonnegative="top down")
    guessed = choose(marginals_of((2, 3, 2), 2), 1, guess=[1] * 12, nonnegative="top down", draws=2)
    assert all(isinstance(choice.strategy, LinearStrategy) for choice in guessed.choices)
    with pytest.raises(PlanError, match="not simulated"):
        choose(workload, 1, candidates=[ranking.best], guess=[1] * 4480, nonnegative="top down")


def test_no_error_over_stacked_workloads_goes_through_the_table() -> None:
    """2²⁸ bins: a vector of them is 2 GiB."""
    sizes = (16,) * 7
    workload = marginals_of(sizes, 2)
    everything = Product(*map(Identity, sizes))
    assert everything.expected_error(workload, 1) == pytest.approx(2 * 21 * 16**7)
    ranking = choose(workload, 1, candidates=[everything, Marginals(sizes, shares={(0, 1, 2, 3, 4, 5, 6): 1})])
    assert ranking.choices[0].error == pytest.approx(ranking.choices[1].error)


def test_products_that_are_not_complete_are_checked_factor_by_factor() -> None:
    half = Product(MatrixMechanism([[1, 1, 1]]), Identity(2), Identity(4))
    assert half.check(Kronecker(total(3), Bins(2), Bins(4))).queries == 8
    assert half.check(Kronecker(Matrix([[0, 0, 0]]), Bins(2), Bins(4))).queries == 8
    assert half.check(Stacked(Kronecker(total(3), Bins(2), total(4)), Kronecker(total(3), total(2), Bins(4))))
    for wrong in (Kronecker(Bins(3), Bins(2), total(4)), Stacked(*WORKLOADS[0].workloads)):
        with pytest.raises(PlanError, match="does not determine"):
            half.check(wrong)


def test_optimising_for_a_total_leaves_weight_to_every_bin() -> None:
    for workload in (Stacked(total(6), total(6)), marginals_of((8, 7, 16, 5, 2, 12), 2, Prefixes)):
        found = optimise(workload)
        assert np.isfinite(found.expected_error(workload, 1))
