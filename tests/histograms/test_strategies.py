"""Strategies: what their query programs weigh, what their estimates are, and what they predict."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import histograms
from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.histograms import (
    AllRanges,
    Bins,
    CountOfCounts,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    Kronecker,
    LinearStrategy,
    Marginals,
    Matrix,
    MatrixMechanism,
    PIdentity,
    Prefixes,
    Product,
    Ranges,
    Sorted,
    Stacked,
    Strategy,
    Tree,
    Wavelet,
    choose,
    laplace_sum_survival,
    optimise,
    simulated_distance,
    simulated_error,
    simulated_sorted_error,
)
from wpinq.plan.node import topological
from wpinq.plan.operators import SelectMany
from wpinq.plan.properties import plan_properties

ages = wp.source("ages", name=str, age=int, region=int)
RNG = np.random.default_rng(7)
MATRIX = np.array(
    [[1, 1, 1, 1, 1], [2, 0, -1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 3], [0, 1, 0, 0, 1]]
)
STRATEGIES: list[LinearStrategy] = [
    Identity(5),
    *(Hierarchical(n, k) for n in (1, 2, 5, 8, 9) for k in (2, 3)),
    *(Wavelet(n) for n in (1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 20)),
    MatrixMechanism(MATRIX),
    MatrixMechanism(csr_matrix(MATRIX)),
    MatrixMechanism(RNG.normal(size=(9, 6))),
    MatrixMechanism(RNG.normal(size=(9, 6)) / 1000),
    MatrixMechanism(csr_matrix(np.eye(20)[::-1] * np.arange(1, 21))),
    PIdentity(RNG.uniform(0, 2, (3, 7))),
    Product(Hierarchical(4), Identity(3)),
    Product(Wavelet(3), Hierarchical(3, 3), MatrixMechanism(MATRIX)),
    Product(PIdentity(RNG.uniform(0, 2, (3, 4))), PIdentity(RNG.uniform(0, 2, (2, 5)))),
    Product(MatrixMechanism([[0.25, 0, 0.125], [0, 0.5, 0]]), Hierarchical(5, 2), PIdentity([[1.0, 2.0]])),
]


def matrix_of(strategy: LinearStrategy) -> np.ndarray:
    return strategy.apply(np.eye(strategy.domain))


def source_of(strategy):
    if isinstance(strategy, Product):
        return wp.source("s", cap=10**6, **{f"a{i}": int for i in range(len(strategy.sizes))})
    return wp.source("s", int, cap=10**6)


@for_each("strategy", STRATEGIES, ids=repr)
def test_the_query_program_weighs_the_matrix_over_the_sensitivity_exactly(strategy):
    query, a = strategy.query(source_of(strategy)), matrix_of(strategy)
    shape = strategy.sizes if isinstance(strategy, Product) else (strategy.domain,)
    for column in {0, 1 % strategy.domain, strategy.domain // 2, strategy.domain - 1}:
        record = tuple(int(i) for i in np.unravel_index(column, shape))
        weights = wp.evaluate(query, {"s": [record if len(shape) > 1 else record[0]]}, exact=True)
        released = [Fraction(weights[key]) * strategy.sensitivity for key in strategy.keys]
        assert released == [Fraction(float(w)) for w in a[:, column]]
        assert sum(abs(w) for w in released) <= strategy.sensitivity
        assert weights.norm() <= 1


def exact_matrix(strategy: LinearStrategy) -> list[list[Fraction]]:
    """A, from its answers to unit vectors."""
    return [[Fraction(float(w)) for w in row] for row in matrix_of(strategy)]


def classical_sensitivity(matrix: list[list[Fraction]]) -> Fraction:
    """How far one record can move all answers together, `max_i ‖A e_i‖₁`."""
    return max(sum(map(abs, column)) for column in zip(*matrix, strict=True))


@for_each("strategy", STRATEGIES, ids=repr)
def test_sensitivity_is_the_largest_column_norm_as_a_fraction(strategy):
    exact = exact_matrix(strategy)
    assert strategy.sensitivity == classical_sensitivity(exact)
    np.testing.assert_allclose(matrix_of(strategy), np.array(exact, dtype=float), rtol=1e-14, atol=0)


def test_classical_sensitivities():
    assert Identity(4096).sensitivity == 1
    assert Hierarchical(4096).sensitivity == 13
    assert Hierarchical(4096, 8).sensitivity == 5
    assert Wavelet(4096).sensitivity == 13
    assert Sorted(10).sensitivity == 1


@for_each("strategy", STRATEGIES, ids=repr)
def test_every_strategy_uses_its_source_once_and_its_noise_scale_is_the_classical_one(strategy):
    source = source_of(strategy)
    measurement = strategy.measure(source, Fraction(1, 10))
    assert wp.bill([measurement])["s"] == Fraction(1, 10)
    zero = (0,) * len(strategy.sizes) if isinstance(strategy, Product) else 0
    answers = wp.simulate(measurement, {"s": [zero]}, seed=1)
    nominal = strategy.sensitivity / Fraction(1, 10)
    assert nominal <= Fraction(answers.scale) * strategy.sensitivity <= nominal * (1 + Fraction(1, 10**6))
    assert strategy.answers_of(answers).shape == (len(strategy.keys),)


THREE = (PIdentity(RNG.uniform(0, 2, (2, 6))), Hierarchical(6), Wavelet(6))
SLACK = {
    **{repr(strategy): strategy for strategy in STRATEGIES},
    "optimised": optimise(AllRanges(64)),
    "optimised product": optimise(Kronecker(AllRanges(64), AllRanges(64))),
    "two trees": Product(Hierarchical(4096), Hierarchical(4096)),
    "three": Product(*THREE),
    "marginals": Marginals((4, 3, 5)),
    "marginals apart": Marginals((3, 4, 2), objective="apart"),
    "sorted": Sorted(6),
    **{method: CountOfCounts(5, 9, method) for method in ("naive", "cumulative", "unattributed")},
}


def test_rounding_widens_the_noise_of_no_strategy_by_more_than_a_millionth_at_the_default_cap():
    covered = {type(strategy) for strategy in SLACK.values()} | {HierarchicalCounts}
    public = {value for value in vars(histograms).values() if isinstance(value, type) and issubclass(value, Strategy)}
    assert covered >= {kind for kind in public | {HierarchicalCounts} if not inspect.isabstract(kind)}
    triples = wp.source("triples", a=int, b=int, c=int)
    queries = {}
    for name, strategy in SLACK.items():
        bins = ("a", "b", "c")[: len(strategy.sizes)] if isinstance(strategy, Product) else "a"
        if isinstance(strategy, Marginals):
            bins = ("a", "b", "c")
        queries[name] = strategy.query(
            triples, lambda r, bins=bins: r.a if bins == "a" else tuple(getattr(r, field) for field in bins)
        )
    for methods in ("cumulative", "unattributed"):
        census = HierarchicalCounts(Tree([[2], [2, 1]]), [3, 3, 3], 9, methods)
        for level in range(3):
            queries[f"{methods}, level {level}"] = census.query(triples, level, lambda r: r.a, lambda r: r.b)
    for name, query in queries.items():
        assert plan_properties(query.plan).slack() <= Fraction(1, 10**6), name


def test_products_of_long_columns_take_a_select_many_an_attribute():
    long, other = PIdentity(RNG.uniform(0, 0.1, (17, 18))), PIdentity(RNG.uniform(0, 0.1, (18, 19)))
    strategy = Product(long, other)
    query = strategy.query(wp.source("s", a=int, b=int))
    assert sum(isinstance(node.operator, SelectMany) for node in topological([query.plan])) == 2
    weights = wp.evaluate(query, {"s": [(3, 17)]}, exact=True)
    released = [float(Fraction(weights[key]) * strategy.sensitivity) for key in strategy.keys]
    np.testing.assert_allclose(released, matrix_of(strategy)[:, 3 * 19 + 17], rtol=1e-14, atol=1e-300)
    assert sum(released) == pytest.approx(float(strategy.sensitivity), rel=1e-14)


@for_each("strategy", STRATEGIES, ids=repr)
def test_linear_maps_agree_with_the_matrix(strategy):
    a = matrix_of(strategy)
    m, n = a.shape
    assert m == len(strategy.keys)
    inverse = strategy.estimate(np.eye(m))
    np.testing.assert_allclose(inverse @ a @ inverse, inverse, atol=1e-8)
    if n == np.linalg.matrix_rank(a):
        np.testing.assert_allclose(inverse @ a, np.eye(n), atol=1e-8)  # unbiased
    np.testing.assert_allclose(inverse, np.linalg.pinv(a), atol=1e-7)  # least squares
    np.testing.assert_allclose(strategy.coefficients(np.eye(n)), inverse.T, atol=1e-7)
    np.testing.assert_allclose(strategy.transpose(np.eye(m)), a.T, atol=1e-12)


def workloads(n: int) -> list:
    rng = np.random.default_rng(n)
    starts = rng.integers(0, n, 9)
    return [Bins(n), AllRanges(n), Prefixes(n), Ranges(n, starts, rng.integers(starts, n) + 1), rng.normal(size=(3, n))]


@for_each("strategy", STRATEGIES, ids=repr)
def test_expected_error_is_the_formula(strategy):
    inverse = strategy.estimate(np.eye(len(strategy.keys)))
    for workload in workloads(strategy.domain):
        w = workload if isinstance(workload, np.ndarray) else workload.answer(np.eye(strategy.domain))
        if np.abs(w @ inverse @ matrix_of(strategy) - w).max() > 1e-6:
            continue
        wanted = 2 * float(strategy.sensitivity) ** 2 / 0.25 * ((w @ inverse) ** 2).sum()
        assert strategy.expected_error(workload, 0.5) == pytest.approx(wanted, rel=1e-7)


@for_each("strategy", STRATEGIES, ids=repr)
def test_variances_of_ranges_are_those_of_the_matrix(strategy):
    n = strategy.domain
    starts, stops = np.array([(a, b) for a in range(n + 1) for b in range(a, n + 1)]).T
    found = strategy.range_variances(starts, stops)
    if found is not None:
        rows = Ranges(n, starts, stops).answer(strategy.estimate(np.eye(len(strategy.keys))))
        np.testing.assert_allclose(found, (rows**2).sum(axis=1), atol=1e-9)
    assert (found is not None) == isinstance(strategy, (Hierarchical, Wavelet))


def test_expected_error_is_what_draws_show():
    strategy, workload = Hierarchical(16, 4), Prefixes(16)
    truth = np.arange(16.0)
    rng = np.random.default_rng(11)
    noise = rng.laplace(0, float(strategy.sensitivity) / 0.5, (len(strategy.keys), 20_000))
    estimates = strategy.estimate(strategy.apply(truth)[:, None] + noise)
    squared = ((workload.answer(estimates) - workload.answer(truth)[:, None]) ** 2).sum(axis=0)
    deviation = squared.std() / math.sqrt(squared.size)
    assert abs(squared.mean() - strategy.expected_error(workload, 0.5)) < 5 * deviation  # 5 sigma


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_workloads_agree_with_their_matrices(n):
    kron = [Kronecker(Prefixes(n), Bins(2), AllRanges(2)), Stacked(Prefixes(n), Bins(n), AllRanges(n))]
    x = np.random.default_rng(n).normal(size=(n, 2))
    for workload in [*workloads(n)[:4], Matrix(np.random.default_rng(1).normal(size=(4, n))), *kron]:
        w = workload.answer(np.eye(workload.domain))
        assert w.shape == (workload.queries, workload.domain)
        np.testing.assert_allclose(workload.transpose(np.eye(workload.queries)), w.T, atol=1e-12)
        np.testing.assert_allclose(workload.rows(0, workload.queries), w.T, atol=1e-12)
        np.testing.assert_allclose(workload.rows(workload.queries - 1, workload.queries)[:, 0], w[-1], atol=1e-12)
        if workload.ranges() is not None:
            starts, stops = (np.concatenate(ends) for ends in zip(*workload.ranges(), strict=True))
            np.testing.assert_allclose(Ranges(n, starts, stops).answer(np.eye(n)), w)
        np.testing.assert_allclose(workload.gram_diagonal(), (w**2).sum(axis=0), atol=1e-9)
        y = np.random.default_rng(2).normal(size=(workload.domain, 3))
        np.testing.assert_allclose(workload.gram(y), w.T @ w @ y, atol=1e-9)
    assert AllRanges(n).answer(x[:, 0]).shape == (n * (n + 1) // 2,)
    everything = np.array([[a <= i <= b for i in range(n)] for a in range(n) for b in range(a, n)], dtype=float)
    np.testing.assert_allclose(AllRanges(n).answer(np.eye(n)), everything)


# --- worked examples and programs over records --------------------------------------------------------------------


def test_the_running_example_of_hay():
    h = Hierarchical(4)
    assert h.apply(np.array([2.0, 0.0, 10.0, 2.0])).tolist() == [14, 2, 12, 2, 0, 10, 2]
    np.testing.assert_allclose(np.concatenate(h.nodes([13, 3, 11, 4, 1, 12, 1])), [14, 3, 11, 3, 0, 11, 0], atol=1e-12)
    packets = wp.source("packets", src=int, dst=int, unit_weight=10)
    data = {"packets": {(0, 1): 2.0, (2, 1): 10.0, (3, 5): 2.0, (9, 9): 4.0}}
    weights = wp.evaluate(h.query(packets, bin=lambda r: r.src), data, exact=True)
    assert [weights[key] * 3 for key in h.keys] == [14, 2, 12, 2, 0, 10, 2]
    s = wp.evaluate(Sorted(4).query(packets, bin=lambda r: r.src), data, exact=True)
    assert [s[key] for key in Sorted(4).keys] == [0, 2, 2, 10]


def test_the_gain_on_all_but_the_ends():
    # Hay et al. 2010, theorem 4 (iv): k = 2, five levels, at least (2(l − 1)(k − 1) − k) / 3 = 2
    h = Hierarchical(16)
    ends = Ranges(16, [1], [15])
    plain = 2 * (len(h.tree.sizes) - 2) * 5**2 * 2  # six nodes of variance 2 l²
    assert plain / h.expected_error(ends, 1) == pytest.approx(3.76, abs=0.005)


def test_bins_outside_of_the_domain_and_null_are_left_out():
    source = wp.source("s", int | None)
    data = {"s": [0, 1, 1, -1, 2, 2, 2, 7, None]}
    weights = wp.evaluate(Sorted(2).query(source), data, exact=True)
    assert {key: weights[key] for key in weights} == {0: 2, 1: 1}
    for strategy in (Identity(2), Hierarchical(2), Wavelet(2), MatrixMechanism(np.eye(2))):
        weights = wp.evaluate(strategy.query(source), data, exact=True)
        released = np.array([float(weights[key]) for key in strategy.keys]) * float(strategy.sensitivity)
        assert strategy.infer(released).round(9).tolist() == [1.0, 2.0]
        assert set(weights) <= {*strategy.keys}


def test_answers_go_in_as_they_come_out():
    strategy = Hierarchical(8)
    people = {"ages": [("a", 3, 0), ("b", 3, 0), ("c", 5, 1)]}
    measurement = strategy.measure(ages, 10**6, bin=lambda r: r.age)
    answers = wp.simulate(measurement, people, seed=1)
    assert strategy.infer(answers).round(2).tolist() == [0, 0, 0, 2, 0, 1, 0, 0]
    shuffled = strategy.query(ages, bin=lambda r: r.age).noisy_count(10**6, over=strategy.keys[::-1])
    again = strategy.infer(wp.simulate(shuffled, people, seed=1))
    assert again.round(2).tolist() == [0, 0, 0, 2, 0, 1, 0, 0]
    with pytest.raises(AnswersError, match="not among those released"):
        Hierarchical(16).infer(answers)
    s = Sorted(4)
    answers = wp.simulate(s.measure(ages, 10**6, bin=lambda r: r.age - 2), people, seed=1)
    assert s.infer(answers).round(2).tolist() == [0, 0, 1, 2]


def test_products_over_two_attributes():
    strategy = Product(Hierarchical(4), Identity(2))
    people = {"ages": [("a", 3, 0), ("b", 3, 1), ("c", 0, 1), ("d", 9, 1)]}
    answers = wp.simulate(strategy.measure(ages, 10**6, bin=lambda r: (r.age, r.region)), people, seed=1)
    assert strategy.infer(answers).reshape(4, 2).round(2).tolist() == [[0, 1], [0, 0], [0, 0], [1, 1]]
    workload = Kronecker(AllRanges(4), Bins(2))
    dense = Matrix(workload.answer(np.eye(8)))
    assert strategy.expected_error(workload, 1) == pytest.approx(strategy.expected_error(dense, 1))


def test_nonnegative_ways():
    h = Hierarchical(9, 3)
    noisy = np.random.default_rng(4).normal(size=len(h.keys)) * 3
    assert (h.infer(noisy, "subtrees") >= 0).all()
    for strategy in (h, Wavelet(9)):
        noisy = np.random.default_rng(4).normal(size=len(strategy.keys)) * 3
        plain, kept = strategy.infer(noisy), strategy.infer(noisy, "top down")
        assert (kept >= 0).all()
        assert kept.sum() == pytest.approx(max(plain.sum(), 0.0))
    noisy = h.apply(np.array([1.0, -1, 5, 2, 2, -3, 0, 0, 4]))
    assert h.infer(noisy, "top down").round(9).tolist() == [0.5, 0, 4.5, 0.5, 0.5, 0, 0, 0, 4]
    with pytest.raises(AnswersError, match="nonnegative"):
        h.infer(noisy, "no such way")


def test_exact_intervals_cover():
    strategy = Hierarchical(8)
    query = np.array([0, 1, 1, 1, 1, 1, 1, 0.0])
    truth = np.arange(8.0)
    rng = np.random.default_rng(2)
    hits, draws = 0, 400
    lower, upper = strategy.interval(strategy.apply(truth), query, epsilon=0.5, confidence=0.8)
    half = (upper - lower) / 2
    for _ in range(draws):
        noisy = strategy.apply(truth) + rng.laplace(0, 4 / 0.5, len(strategy.keys))
        hits += abs(query @ strategy.infer(noisy) - query @ truth) <= half
    assert abs(hits / draws - 0.8) < 4 * math.sqrt(0.16 / draws)  # 4 sigma: a false alarm in 16,000


# --- choosing and optimising --------------------------------------------------------------------------------------


def test_optimise_beats_the_fixed_strategies():
    workload = AllRanges(64)
    best = optimise(workload)
    fixed = [s.expected_error(workload, 1) for s in (Identity(64), Hierarchical(64), Hierarchical(64, 8), Wavelet(64))]
    assert best.expected_error(workload, 1) < 0.8 * min(fixed)
    assert optimise(workload, seed=0).expected_error(workload, 1) == best.expected_error(workload, 1)
    product = optimise(Kronecker(AllRanges(16), Prefixes(16)))
    assert isinstance(product, Product)
    whole = Kronecker(AllRanges(16), Prefixes(16))
    assert product.expected_error(whole, 1) < Product(Identity(16), Identity(16)).expected_error(whole, 1)


def test_choose_ranks_by_expected_error():
    ranking = choose(AllRanges(64), 0.1)
    errors = [choice.error for choice in ranking.choices]
    assert errors == sorted(errors)
    for choice in ranking.choices:
        assert choice.error == pytest.approx(choice.strategy.expected_error(AllRanges(64), 0.1))
        assert choice.mean == choice.error / AllRanges(64).queries
    assert isinstance(choose(Bins(64), 0.1).best, Identity)
    assert "sensitivity" in str(ranking)
    assert choose([[1, 0, 0], [0, 1, 0]], 1).choices[0].strategy.domain == 3
    with pytest.raises(PlanError, match="over 3 bins"):
        choose([[1, 0, 0]], 1, domain=4)
    several = choose(Kronecker(AllRanges(8), Bins(4)), 1)
    assert {type(choice.strategy) for choice in several.choices} == {Product}


def test_choose_tries_every_tree_and_the_one_of_one_root():
    for size, branchings in ((6, [2, 4, 8]), (8, [2, 4, 8]), (9, [2, 4, 8, 16])):
        trees = [c.strategy for c in choose(AllRanges(size), 1).choices if isinstance(c.strategy, Hierarchical)]
        assert sorted(tree.branching for tree in trees) == branchings
        assert (1, size) in {tree.tree.sizes for tree in trees}


def test_optimised_strategies_round_their_sums_down_to_a_grid():
    theta = np.random.default_rng(1).uniform(0, 2, (5, 40))
    strategy = PIdentity(theta)
    short = theta / (1 + theta.sum(axis=0)) - strategy.sums
    assert ((short >= 0) & (short < 2.0**-20)).all()
    assert (strategy.sums.sum(axis=0) + strategy.diagonal == 1).all()
    assert (strategy.sums * 2.0**20 % 1 == 0).all()


def test_choose_for_non_negative_estimates_wants_a_guess():
    candidates = [Identity(64), Hierarchical(64, 8)]
    sparse, full = np.zeros(64), np.full(64, 1000.0)
    sparse[5] = 40
    picks = []
    for guess in (sparse, full):
        ranking = choose(AllRanges(64), 0.1, candidates=candidates, nonnegative="top down", guess=guess)
        assert "simulated on the guess" in str(ranking)
        errors = [choice.error for choice in ranking.choices]
        assert errors == sorted(errors)
        picks.append(errors[0] / candidates[0].expected_error(AllRanges(64), 0.1))
    assert picks[0] < 0.3 * picks[1]  # non-negativity helps sparse data only
    exact = simulated_error(candidates[1], AllRanges(64), 0.1, full, None, draws=400)
    assert exact == pytest.approx(candidates[1].expected_error(AllRanges(64), 0.1), rel=0.15)
    with pytest.raises(PlanError, match="give both"):
        choose(Bins(4), 1, nonnegative="top down")
    with pytest.raises(PlanError, match="give both"):
        choose(Bins(4), 1, guess=[1, 2, 3, 4])
    with pytest.raises(PlanError, match="expected 4"):
        choose(Bins(4), 1, nonnegative="top down", guess=[1, 2])
    with pytest.raises(PlanError, match="at least 0"):
        simulated_error(Identity(2), Bins(2), 1, [1, -1])
    with pytest.raises(PlanError, match="draws"):
        simulated_error(Identity(2), Bins(2), 1, [1, 1], draws=0)


def test_strategies_whose_error_depends_on_the_data_say_so():
    for strategy in (Sorted(4), CountOfCounts(groups=10, largest=3)):
        with pytest.raises(PlanError, match="depends on the data"):
            strategy.expected_error(Bins(4), 1)
        with pytest.raises(PlanError, match="depends on the data"):
            choose(Bins(4), 1, candidates=[strategy])
    assert simulated_sorted_error(Sorted(50), 1, [7] * 50) < Sorted(50).error_bound(1) / 5
    # counts so far apart that nothing is pooled: the noise itself, 2n/ε² of it
    assert simulated_sorted_error(Sorted(50), 0.5, np.arange(1, 51) * 10_000, draws=100) == pytest.approx(400, rel=0.1)
    guess = [0] * 100 + [50]
    distances = [
        simulated_distance(CountOfCounts(50, 100, method), 1, guess)
        for method in ("naive", "cumulative", "unattributed")
    ]
    assert distances[2] < distances[0]
    assert distances[1] < distances[0]
    with pytest.raises(PlanError, match="sum to the 50 groups"):
        simulated_distance(CountOfCounts(50, 100), 1, [0] * 100 + [49])


def test_a_stack_of_kronecker_workloads_gets_the_product_for_the_stacks_of_their_factors():
    whole = Matrix(np.ones((1, 16)))
    workload = Stacked(Kronecker(Prefixes(16), whole), Kronecker(whole, Prefixes(16)))
    best = optimise(workload)
    assert isinstance(best, Product)
    inverse = best.estimate(np.eye(best.size))
    dense = ((workload.answer(np.eye(256)) @ inverse) ** 2).sum()
    assert best.squared_norm(workload) == pytest.approx(dense)
    assert best.expected_error(workload, 1) < Product(Identity(16), Identity(16)).expected_error(workload, 1) / 2
    with pytest.raises(PlanError, match="2 integers"):
        best.query(ages, bin=lambda r: r.age)
    with pytest.raises(PlanError, match="same bins"):
        Stacked(Bins(2), Bins(3))


def test_many_intervals_are_the_single_ones():
    for strategy in (Identity(6), Hierarchical(6, 3), Wavelet(6), PIdentity(RNG.uniform(0, 2, (2, 6)))):
        noisy = RNG.normal(size=strategy.size) * 9
        lower, upper = strategy.intervals(noisy, AllRanges(6), 0.9, epsilon=0.5)
        for i, row in enumerate(AllRanges(6).answer(np.eye(6))):
            assert strategy.interval(noisy, row, 0.9, epsilon=0.5) == pytest.approx((lower[i], upper[i]))
            scales = np.abs(strategy.coefficients(row)) * float(strategy.sensitivity) / 0.5
            assert laplace_sum_survival(scales, (upper[i] - lower[i]) / 2) == pytest.approx(0.05, abs=1e-8)
    lower, upper = Identity(6).intervals(np.ones(6), Ranges(6, [3, 0], [3, 1]), epsilon=1)
    assert lower[0] == upper[0] == 0
    with pytest.raises(PlanError, match="over 5 bins"):
        Identity(6).intervals(np.ones(6), Bins(5), epsilon=1)


@pytest.mark.parametrize("confidence", [0.999, 1 - 1e-6, 1 - 1e-9])
def test_intervals_of_short_and_long_ranges_at_once_are_those_of_each(confidence):
    strategy = Identity(100)
    _, upper = strategy.intervals(np.zeros(100), Prefixes(100), confidence, epsilon=0.1)
    alone = [strategy.interval(np.zeros(100), np.arange(100) <= i, confidence, 0.1)[1] for i in (0, 24, 99)]
    np.testing.assert_allclose(upper[[0, 24, 99]], alone, rtol=1e-5)
    assert (np.diff(upper) > 0).all()


# --- bad input, before any budget ---------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [0, -4, True, 2.0, "8"])
def test_domains_that_are_none(domain):
    for make in (Identity, Sorted, Hierarchical, Wavelet, AllRanges, Bins, Prefixes):
        with pytest.raises(PlanError):
            make(domain)


def test_typed_errors():
    with pytest.raises(PlanError, match="integers"):
        Identity(4).query(ages, bin=lambda r: r.name)
    with pytest.raises(PlanError, match="integers"):
        Product(Identity(2), Identity(2)).query(ages, bin=lambda r: r.age)
    with pytest.raises(PlanError, match="program over a query"):
        Identity(4).query([1, 2])
    with pytest.raises(PlanError, match="over 5 bins"):
        Identity(4).expected_error(AllRanges(5), 1)
    with pytest.raises(PlanError, match="matrix"):
        Identity(4).expected_error([1.0, 2.0], 1)
    with pytest.raises(EpsilonError):
        Identity(4).expected_error(AllRanges(4), 0)
    with pytest.raises(PlanError, match="row space"):
        MatrixMechanism([[1, 1, 0]], workload=Bins(3))
    with pytest.raises(PlanError, match="row space"):
        MatrixMechanism(csr_matrix([[1, 1, 0]]), workload=[[1, 0, 0]])
    MatrixMechanism([[1, 1, 0]], workload=[[2, 2, 0]])
    with pytest.raises(PlanError, match="finite"):
        MatrixMechanism([[math.nan]])
    with pytest.raises(PlanError, match="not 0"):
        MatrixMechanism([[0.0]])
    with pytest.raises(PlanError, match="0 <= start"):
        Ranges(4, [3], [2])
    with pytest.raises(PlanError, match="at least one query"):
        Ranges(4, [], [])
    with pytest.raises(PlanError, match="depends on the data"):
        Sorted(4).expected_error(Bins(4), 1)
    with pytest.raises(AnswersError, match="expected 4"):
        Identity(4).infer([1.0, 2.0])
    with pytest.raises(PlanError, match="candidate"):
        choose(Bins(4), 1, candidates=[Identity(5)])
    with pytest.raises(PlanError):
        optimise(AllRanges(8), sums=0)


def test_bad_input_costs_nothing():
    whole = [("a", 3, 0), ("b", 3, 0)]
    attempts = [
        lambda s: s.release(Identity(-4).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(Hierarchical(0).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(Hierarchical(8, 1).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(Identity(4).measure(ages, 0.5, bin=lambda r: r.name)),
        lambda s: s.release(Identity(4).measure(ages, -0.5, bin=lambda r: r.age)),
        lambda s: s.release(MatrixMechanism([[1, 1, 0]], workload=Bins(3)).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(MatrixMechanism(np.zeros((0, 4))).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(MatrixMechanism(np.eye(3), workload=Bins(4)).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(choose(Ranges(4, [], []), 1).best.measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(Sorted(True).measure(ages, 0.5, bin=lambda r: r.age)),
        lambda s: s.release(
            *HierarchicalCounts(Tree([[2], [1]]), [1, 1], 5).measure(
                ages, [0.1, 0.1, 0.1], group=lambda r: r.age, location=lambda r: r.region
            )
        ),
        lambda s: s.release(
            *HierarchicalCounts(Tree([[2]]), [1.5, 1], 5).measure(
                ages, [0.1, 0.1], group=lambda r: r.age, location=lambda r: r.region
            )
        ),
    ]
    with wp.Session() as session:
        session.protect(ages, whole, budget=1)
        for attempt in attempts:
            with pytest.raises((PlanError, EpsilonError)):
                attempt(session)
        assert session.remaining("ages") == 1
