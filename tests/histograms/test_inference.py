"""Inference against brute force: quadratic programmes, linear programmes and dense solvers on small inputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog, minimize
from scipy.stats import binom

from tests.support.parameters import for_each
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms import (
    Tree,
    bayes_count,
    bootstrap,
    consistent_sizes,
    isotonic_l1,
    isotonic_l2,
    laplace_sum_survival,
    least_squares,
    linear_half_widths,
    match_sizes,
    median,
    merge_estimates,
    project_to_total,
    project_tree,
    quantile,
    range_sums,
    round_to_total,
    round_tree,
    tree_least_squares,
    zero_subtrees,
)

SEEDS = range(12)


def dense(tree: Tree) -> np.ndarray:
    return np.concatenate(tree.totals(np.eye(tree.sizes[-1])))


# --- isotonic regression ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noisy", "fit"),
    [([9, 10, 14], [9, 10, 14]), ([9, 14, 10], [9, 12, 12]), ([14, 9, 10, 15], [11, 11, 11, 15])],
)
def test_worked_examples_of_hay_section_3(noisy, fit):
    assert isotonic_l2(noisy).tolist() == fit


@for_each("seed", SEEDS)
def test_isotonic_l2_is_min_max_of_means_and_bounds_clip_it(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=9) * 5
    means = {(i, j): y[i : j + 1].mean() for i in range(9) for j in range(i, 9)}
    closed = [min(max(means[i, j] for i in range(j + 1)) for j in range(k, 9)) for k in range(9)]
    np.testing.assert_allclose(isotonic_l2(y), closed, atol=1e-12)
    order = [{"type": "ineq", "fun": lambda s, i=i: s[i + 1] - s[i]} for i in range(8)]
    bounded = minimize(
        lambda s: ((s - y) ** 2).sum(), np.zeros(9), bounds=[(-1, 2)] * 9, constraints=order, options={"ftol": 1e-14}
    )
    np.testing.assert_allclose(isotonic_l2(y, -1, 2), bounded.x, atol=1e-5)


@for_each("seed", SEEDS)
@for_each("bounds", [(-math.inf, math.inf), (-2.0, 3.0)])
def test_isotonic_l1_costs_what_the_linear_programme_costs(seed, bounds):
    rng = np.random.default_rng(seed)
    n = 14
    y = rng.normal(size=n) * 5 if seed % 2 else rng.integers(-4, 5, n).astype(float)
    fit = isotonic_l1(y, *bounds)
    assert (np.diff(fit) >= 0).all()
    eye, step = np.eye(n), np.eye(n)[:-1] - np.eye(n)[1:]
    limits = [bounds] * n + [(0, None)] * n
    best = linprog(
        np.r_[np.zeros(n), np.ones(n)],
        np.block([[eye, -eye], [-eye, -eye], [step, np.zeros((n - 1, n))]]),
        np.r_[y, -y, np.zeros(n - 1)],
        bounds=limits,
    )
    assert np.abs(fit - y).sum() == pytest.approx(best.fun, abs=1e-7)


def test_isotonic_bounds_by_hand():
    for fit in (isotonic_l1, isotonic_l2):
        assert fit([-3, 9, 14, 30], 2, 10).tolist() == [2, 9, 10, 10]
        assert fit([-3, 9, 14, 30], lower=2).tolist() == [2, 9, 14, 30]
        assert fit([-3, 9, 14, 30], upper=10).tolist() == [-3, 9, 10, 10]


@for_each("seed", SEEDS)
def test_weights_of_isotonic_l2_count_like_repetitions(seed):
    rng = np.random.default_rng(seed)
    y, times = rng.normal(size=9) * 5, rng.integers(1, 5, 9)
    repeated = isotonic_l2(np.repeat(y, times))
    np.testing.assert_allclose(np.repeat(isotonic_l2(y, weights=times), times), repeated, atol=1e-12)


def test_isotonic_l1_of_integers_is_integers():
    y = np.random.default_rng(0).integers(-9, 9, 200)
    assert set(isotonic_l1(y)) <= set(y.astype(float))


def test_isotonic_refuses_bad_input():
    with pytest.raises(AnswersError, match="finite"):
        isotonic_l2([1.0, math.nan])
    with pytest.raises(AnswersError, match="bounds"):
        isotonic_l1([1.0], 2.0, 1.0)
    with pytest.raises(AnswersError, match="weights"):
        isotonic_l2([1.0, 2.0], weights=[1.0, 0.0])
    assert isotonic_l2([]).shape == isotonic_l1([]).shape == (0,)


# --- trees --------------------------------------------------------------------------------------------------------


@for_each("leaves", [1, 2, 3, 5, 8, 9, 27, 31])
@for_each("branching", [2, 3, 5, 20])
def test_tree_least_squares_is_ordinary_least_squares(leaves, branching):
    tree = Tree.uniform(leaves, branching)
    noisy = np.random.default_rng(leaves).normal(size=(sum(tree.sizes), 3))
    levels = tree_least_squares(tree, tree.split(noisy))
    np.testing.assert_allclose(levels[-1], np.linalg.pinv(dense(tree)) @ noisy, atol=1e-10)
    np.testing.assert_allclose(np.concatenate(levels), dense(tree) @ levels[-1], atol=1e-10)


def test_the_papers_formulas_on_a_complete_tree():
    k, levels = 3, 4
    tree = Tree.uniform(k ** (levels - 1), k)
    noisy = tree.split(np.random.default_rng(1).normal(size=sum(tree.sizes)))
    z = [noisy[-1]]
    for height in range(2, levels + 1):
        below = z[0].reshape(-1, k).sum(axis=1)
        own = noisy[levels - height]
        z.insert(0, ((k**height - k ** (height - 1)) * own + (k ** (height - 1) - 1) * below) / (k**height - 1))
    h = [z[0]]
    for level in range(1, levels):
        families = z[level].reshape(-1, k)
        h.append((families + ((h[-1] - families.sum(axis=1)) / k)[:, None]).ravel())
    for ours, theirs in zip(tree_least_squares(tree, noisy), h, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@for_each("seed", SEEDS)
def test_missing_nodes_and_unequal_precisions_on_irregular_trees(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 4, 3)
    tree = Tree([[3], first, rng.integers(1, 4, first.sum())])
    a = dense(tree)
    precision = rng.uniform(0.2, 5.0, len(a))
    while True:
        precision[rng.random(len(a)) < 0.15] = 0
        if np.linalg.matrix_rank(a[precision > 0]) == a.shape[1]:
            break
        precision = rng.uniform(0.2, 5.0, len(a))
    noisy = rng.normal(size=len(a))
    root = np.sqrt(precision)
    wanted = np.linalg.lstsq(a * root[:, None], noisy * root, rcond=None)[0]
    found = tree_least_squares(tree, tree.split(noisy), tree.split(precision))
    np.testing.assert_allclose(found[-1], wanted, atol=1e-9)
    absent = np.where(precision > 0, noisy, np.nan)
    same = tree_least_squares(tree, tree.split(absent), tree.split(np.maximum(precision, 0.3)))
    weights = np.sqrt(np.where(precision > 0, np.maximum(precision, 0.3), 0))
    np.testing.assert_allclose(
        same[-1], np.linalg.lstsq(a * weights[:, None], noisy * weights, rcond=None)[0], atol=1e-9
    )


def test_undetermined_and_ragged_trees_are_refused():
    tree = Tree.uniform(4, 2)
    with pytest.raises(AnswersError, match="do not determine"):
        tree_least_squares(tree, [[1.0], [1.0, 2.0], [math.nan, math.nan, 1.0, 2.0]])
    with pytest.raises(AnswersError, match="root"):
        tree_least_squares(tree, [[math.nan], [math.nan, 1.0], [math.nan, 1.0, 1.0, 2.0]])
    with pytest.raises(PlanError, match="ragged"):
        Tree([[2], [1, 2, 3]])
    with pytest.raises(PlanError, match="number of children"):
        Tree([[2], [1, 0]])
    with pytest.raises(PlanError):
        Tree([])
    with pytest.raises(PlanError, match="branching"):
        Tree.uniform(4, 1)
    bad = [[[1.0]], [[1.0], [1.0], [1.0] * 4], [["a"], [1.0] * 2, [1.0] * 4], [[1.0], [[1.0], [1.0, 2.0]], [1.0] * 4]]
    for levels in [*bad, [[math.inf], [1.0] * 2, [1.0] * 4]]:
        for fit in (tree_least_squares, zero_subtrees, project_tree, round_tree):
            with pytest.raises(AnswersError):
                fit(tree, levels)
    for fit in (zero_subtrees, project_tree, round_tree):
        with pytest.raises(AnswersError, match="finite"):
            fit(tree, [[math.nan], [1.0] * 2, [1.0] * 4])
    good = [[1.0], [1.0] * 2, [1.0] * 4]
    for precisions in ([1, 1], [1, 1, -1], [1, 1, [1, 1]], [1, "a", 1], [1, math.inf, 1]):
        with pytest.raises(AnswersError, match="precisions"):
            tree_least_squares(tree, good, precisions)


def test_zero_subtrees_on_the_running_example():
    tree = Tree.uniform(4, 2)
    kept = zero_subtrees(tree, tree.totals(np.array([2.0, -3.0, 11.0, 0.0])))
    assert [level.tolist() for level in kept] == [[10.0], [0.0, 11.0], [0.0, 0.0, 11.0, 0.0]]
    kept = zero_subtrees(tree, tree.totals(np.array([3.0, -4.0, 11.0, 0.0])))  # a positive leaf below a negative node
    assert [level.tolist() for level in kept] == [[10.0], [0.0, 11.0], [0.0, 0.0, 11.0, 0.0]]


@for_each("seed", SEEDS)
def test_zero_subtrees_keeps_a_node_if_it_and_all_above_it_are_positive(seed):
    rng = np.random.default_rng(seed)
    tree = Tree([[3], [2, 1, 4], rng.integers(1, 4, 7)]) if seed % 2 else Tree.uniform(10, 3)
    levels = tree.totals(rng.normal(0.5, 2, tree.sizes[-1]))
    kept = zero_subtrees(tree, levels)
    assert kept[0][0] == max(levels[0][0], 0)
    for level, counts in enumerate(tree.children):
        parents = np.repeat(np.arange(len(counts)), counts)
        for node, parent in enumerate(parents):
            alive = kept[level][parent] > 0 and levels[level + 1][node] > 0
            assert kept[level + 1][node] == (levels[level + 1][node] if alive else 0)


# --- least squares ------------------------------------------------------------------------------------------------


@for_each("seed", SEEDS)
def test_general_least_squares_dense_and_sparse(seed):
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import aslinearoperator

    rng = np.random.default_rng(seed)
    a = rng.integers(-1, 2, (12, 7)).astype(float)
    y = rng.normal(size=12)
    wanted = np.linalg.pinv(a) @ y
    for form in (a, csr_matrix(a), aslinearoperator(a)):
        np.testing.assert_allclose(least_squares(form, y), wanted, atol=1e-7)


def test_matrices_that_are_none():
    from scipy.sparse import csr_matrix

    np.testing.assert_allclose(least_squares([[1, 0], [0, 1]], [1, 2]), [1, 2])
    ragged, complex_ = [[1], [1, 2]], [[1j], [1]]
    for bad in (np.zeros((2, 0)), [[math.nan, 1], [0, 1]], ragged, complex_, None, [1, 2], [["1"], ["2"]], [[1, 2]]):
        with pytest.raises(AnswersError, match="matrix"):
            least_squares(bad, [1, 2])
    with pytest.raises(AnswersError, match="finite"):
        least_squares(csr_matrix([[math.inf], [1]]), [1, 2])
    with pytest.raises(AnswersError, match="tolerance"):
        least_squares([[1.0]], [1], tolerance=None)


def test_least_squares_that_does_not_converge_says_so():
    from scipy.sparse import diags

    nearly_singular = diags(np.logspace(0, -12, 200)).tocsr()
    with pytest.raises(AnswersError, match="did not converge"):
        least_squares(nearly_singular, nearly_singular @ np.ones(200))


@for_each("seed", SEEDS)
@for_each("at_most", [False, True])
def test_project_to_total_is_the_quadratic_programme(seed, at_most):
    rng = np.random.default_rng(seed)
    y, total = rng.normal(size=7) * 3, float(rng.integers(0, 9))
    kind = "ineq" if at_most else "eq"
    best = minimize(
        lambda x: ((x - y) ** 2).sum(),
        np.full(7, total / 7),
        bounds=[(0, None)] * 7,
        constraints={"type": kind, "fun": lambda x: total - x.sum()},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    np.testing.assert_allclose(project_to_total(y, total, at_most), best.x, atol=1e-5)


@for_each("seed", SEEDS)
def test_project_tree_projects_every_family_on_its_total(seed):
    rng = np.random.default_rng(seed)
    tree = Tree([[3], rng.integers(1, 18, 3)]) if seed % 2 else Tree.uniform(7, 2)
    levels = tree.totals(rng.normal(0.5, 2.0, tree.sizes[-1]))
    kept = project_tree(tree, levels)
    assert kept[0][0] == max(levels[0][0], 0)
    for level, counts in enumerate(tree.children):
        ends = np.cumsum(counts)
        for node, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
            wanted = project_to_total(levels[level + 1][start:end], float(kept[level][node]))
            np.testing.assert_allclose(kept[level + 1][start:end], wanted, atol=1e-12)


# --- rounding -----------------------------------------------------------------------------------------------------


@for_each("seed", SEEDS)
def test_round_to_total_is_the_nearest_integer_vector_of_that_sum(seed):
    rng = np.random.default_rng(seed)
    total = int(rng.integers(1, 9))
    values = project_to_total(rng.normal(size=5) * 3, total)
    found = round_to_total(values, total)
    assert found.sum() == total
    assert (found >= 0).all()
    choices = itertools.product(*[(math.floor(v), math.ceil(v)) for v in values])
    least = min(((np.array(c) - values) ** 2).sum() for c in choices if sum(c) == total)
    assert ((found - values) ** 2).sum() == pytest.approx(least, abs=1e-6)


@for_each("seed", SEEDS)
def test_an_estimate_whose_total_is_not_whole_is_rounded_to_the_nearest_total(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        values = project_to_total(rng.normal(size=rng.integers(1, 6)) * 3, float(rng.uniform(0, 9)))
        total = float(values.sum())
        for asked in (total, round(total), np.float64(total), np.int64(round(total))):
            found = round_to_total(values, asked)
            assert found.sum() == round(total)
            assert (found >= 0).all()
            assert (np.abs(found - values) < 1).all()
    assert round_to_total([0.5], 0.5).tolist() == round_tree(Tree([[1]]), [[0.5], [0.5]])[1].tolist() == [0]
    assert round_to_total([1.5], 1.5).tolist() == [2]


@pytest.mark.parametrize("total", [float("nan"), float("inf"), -1, -0.6, "1", None, True])
def test_a_total_is_a_number_of_at_least_0(total):
    with pytest.raises(AnswersError, match="total"):
        round_to_total([1.0], total)


@for_each("seed", SEEDS)
def test_round_tree_keeps_every_total(seed):
    rng = np.random.default_rng(seed)
    tree = Tree.uniform(int(rng.integers(2, 40)), int(rng.integers(2, 5)))
    levels = tree.totals(rng.exponential(2.0, tree.sizes[-1]))
    rounded = round_tree(tree, levels)
    assert rounded[0][0] == np.rint(levels[0][0])
    for level, counts in enumerate(tree.children):  # in a family the largest fractions went up
        for real, whole in zip(
            *(np.split(x[level + 1], np.cumsum(counts)[:-1]) for x in (levels, rounded)), strict=True
        ):
            up = whole > real
            assert (real % 1)[up].min(initial=1) >= (real % 1)[~up].max(initial=0)
    for level in range(tree.levels - 1):
        assert (tree.sum_children(level, rounded[level + 1].astype(float)) == rounded[level]).all()
    for real, whole in zip(levels, rounded, strict=True):
        assert (whole >= 0).all()
        assert (np.abs(real - whole) < 1).all()


def test_rounding_refuses_what_has_no_such_total():
    with pytest.raises(AnswersError):
        round_to_total([0.5, 0.5], 2)
    with pytest.raises(AnswersError):
        round_to_total([-0.5, 1.5], 1)
    tree = Tree.uniform(2, 2)
    with pytest.raises(AnswersError, match="consistent"):
        round_tree(tree, [np.array([3.0]), np.array([1.0, 1.0])])
    with pytest.raises(AnswersError, match="too far"):
        round_to_total([1e7], 10**7 + 5)
    with pytest.raises(AnswersError, match="too far"):
        round_to_total([1e7], 10**7 - 5)


# --- reading ------------------------------------------------------------------------------------------------------


@for_each("seed", SEEDS)
def test_range_sums_and_quantiles(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, 11)
    counts[3] += 1
    starts = rng.integers(0, 12, 30)
    stops = rng.integers(starts, 12)
    wanted = [counts[a:b].sum() for a, b in zip(starts, stops, strict=True)]
    np.testing.assert_allclose(range_sums(counts, starts, stops), wanted)
    data = np.repeat(np.arange(11), counts)
    for q in (0.0, 0.1, 0.5, 0.77, 1.0):
        wanted = 0 if q == 0 else data[math.ceil(q * len(data)) - 1]
        assert quantile(counts, q) == wanted
    assert median(counts) == quantile(counts, 0.5)


@for_each("seed", SEEDS)
def test_quantiles_between_edges_invert_the_cumulative_counts(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, 11) * rng.uniform(0.5, 2, 11)
    counts[[2, 7]] = 3.5, 0.0
    edges = np.cumsum(rng.uniform(0.1, 3, 12)) - 4
    total = np.concatenate(([0.0], np.cumsum(counts)))
    for q in rng.uniform(0, 1, 20):  # no run of empty bins ends at one of these
        wanted = np.interp(q * total[-1], total, edges)
        assert quantile(counts, q, edges) == pytest.approx(wanted)
        assert edges[int(quantile(counts, q))] <= wanted <= edges[int(quantile(counts, q)) + 1]
    assert median(counts, edges) == quantile(counts, 0.5, edges)
    full = np.flatnonzero(counts)
    assert quantile(counts, 1.0, edges) == pytest.approx(edges[full[-1] + 1])
    assert quantile(counts, 1.0) == full[-1]
    assert quantile([0, 0, 2], 0.0, [5, 6, 7, 9]) == 5
    for _ in range(50):  # the last count, not an empty bin behind it, whatever sums round to
        many = np.concatenate((rng.uniform(0.1, 1, 300), np.zeros(3)))
        assert quantile(many, 1.0) == 299
        assert quantile(many, 1.0, np.arange(304)) == pytest.approx(300)


def test_quantiles_of_negative_counts_are_those_of_cumulative_counts_that_never_fall():
    counts = np.array([-2.0, 3.0, -1.0, 4.0, -2.0, 4.0])
    # cumulative: -2, 1, 0, 4, 2, 6; nearest that never falls, from 0 on: 0, 1/2, 1/2, 3, 3, 6
    assert [quantile(counts, q) for q in (0.05, 0.1, 0.45, 0.55)] == [1, 3, 3, 5]
    np.testing.assert_allclose(
        [quantile(counts, q, np.arange(7)) for q in (1 / 24, 0.25, 0.75)], [1.5, 3 + 1 / 2.5, 5 + 1.5 / 3]
    )


def test_reading_refuses_bad_input():
    with pytest.raises(AnswersError, match="start"):
        range_sums([1, 2], [0], [3])
    with pytest.raises(AnswersError, match="positive count"):
        quantile([-1.0, 0.0], 0.5)
    for q in (2, -0.1, math.nan):
        with pytest.raises(AnswersError, match="between 0 and 1"):
            quantile([1.0], q)
    with pytest.raises(AnswersError, match="must not decrease"):
        quantile([1.0, 1.0], 0.5, [0, 2, 1])
    with pytest.raises(AnswersError, match="expected 3"):
        quantile([1.0, 1.0], 0.5, [0, 2])
    for starts, stops in (([2], [1]), ([-1], [1]), ([0.0], [1.0]), ([0], [1, 2])):
        with pytest.raises(AnswersError):
            range_sums([1, 2], starts, stops)


# --- Bayes --------------------------------------------------------------------------------------------------------


@for_each("records", [1, 7, 100, 1000])
@for_each("scale", [0.3, 1.0, 10.0, 200.0])
def test_bayes_count_is_the_posterior_mean(records, scale):
    j = np.arange(records + 1)
    for p in (0.001, 0.3, 0.9):
        noisy = np.array([-5.0, -0.5, 0.0, 0.5, records * p, records - 0.01, records, records + 30.0])
        logs = binom.logpmf(j, records, p) - np.abs(noisy[:, None] - j) / scale
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        wanted = (weights * j).sum(axis=1) / weights.sum(axis=1)
        np.testing.assert_allclose(bayes_count(noisy, records, p, scale), wanted, rtol=1e-9, atol=1e-9)


# --- matching -----------------------------------------------------------------------------------------------------


@for_each("seed", SEEDS)
def test_matching_is_the_cheapest_assignment(seed):
    rng = np.random.default_rng(seed)
    children = [rng.integers(0, 9, size) for size in (3, 1, 4)]
    parent = rng.integers(0, 9, 8)
    partners, cost = match_sizes(parent, children)
    below = np.concatenate(children)
    table = np.abs(parent[:, None] - below[None, :])
    assert cost == table[linear_sum_assignment(table)].sum()
    flat = np.concatenate(partners)
    assert sorted(flat) == list(range(8))
    assert np.abs(parent[flat] - below).sum() == cost


def test_groups_of_one_size_get_their_share_of_large_and_small_partners():
    rng = np.random.default_rng(1)
    parent = np.sort(rng.integers(0, 1000, 600))
    children = [np.repeat([1, 5], [n, n]) for n in (40, 200, 60)]
    partners, cost = match_sizes(parent, children)
    for child, found in zip(children, partners, strict=True):
        for size, run in ((1, np.arange(300)), (5, np.arange(300, 600))):
            own = found[child == size]  # of every run of the partners each child has its share, to within one or two
            for end in range(0, 300, 10):
                share = len(own) * end / 300
                assert abs((own < run[0] + end).sum() - share) <= 2
    table = np.abs(parent[:, None] - np.concatenate(children)[None, :])
    assert cost == table[linear_sum_assignment(table)].sum()
    assert [p.tolist() for p in match_sizes(parent, children)[0]] == [p.tolist() for p in partners]


def test_merge_is_the_best_linear_combination():
    merged, variance = merge_estimates([1.0, 4.0], [1.0, 2.0], [3.0, 1.0], [1.0, 1.0])
    np.testing.assert_allclose(merged, [2.0, 2.0])
    np.testing.assert_allclose(variance, [0.5, 2 / 3])
    with pytest.raises(AnswersError, match="variances"):
        merge_estimates([1.0], [0.0], [1.0], [1.0])


@for_each("seed", SEEDS)
@for_each("weighted", [True, False])
def test_consistent_sizes_are_consistent(seed, weighted):
    rng = np.random.default_rng(seed)
    tree = Tree([[2], [2, 3]])
    groups = rng.integers(1, 6, 5)
    totals = tree.totals(groups)
    sizes = [[rng.normal(3, 3, int(g)) for g in level] for level in totals]
    variances = [[rng.uniform(0.1, 2, int(g)) for g in level] for level in totals] if weighted else None
    found = consistent_sizes(tree, sizes, variances)
    for level, counts in enumerate(tree.children):
        ends = np.cumsum(counts)
        for node, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
            children = np.sort(np.concatenate(found[level + 1][start:end]))
            assert found[level][node].tolist() == children.tolist()
            assert len(children) == totals[level][node]
    assert all((node >= 0).all() for level in found for node in level)


# --- intervals ----------------------------------------------------------------------------------------------------


def test_survival_of_two_equal_terms_in_closed_form():
    for t in (0.0, 0.1, 1.0, 4.0, 12.0):
        assert laplace_sum_survival([2.0, 2.0], t) == pytest.approx(math.exp(-t / 2) * (2 + t / 2) / 4, abs=1e-8)


def test_survival_of_two_unequal_terms_in_closed_form():
    a, b = 1.0, 3.0
    for t in (0.0, 0.5, 2.0, 9.0):
        wanted = (b * b * math.exp(-t / b) - a * a * math.exp(-t / a)) / (2 * (b * b - a * a))
        assert laplace_sum_survival([a, b], t) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("scales", [[1.0], [1.0, 0.2, 0.05], np.linspace(0.1, 1, 40), [1.0] + [0.01] * 300])
def test_linear_intervals_cover_as_they_say(scales):
    draws = 100_000
    rng = np.random.default_rng(5)
    noise = sum(rng.laplace(0, s, draws) for s in scales)
    for confidence in (0.5, 0.95):
        inside = (np.abs(noise) <= linear_half_widths(np.array(scales)[:, None], confidence)).mean()
        assert abs(inside - confidence) < 5 * math.sqrt(confidence * (1 - confidence) / draws)  # 5 sigma


@for_each("seed", SEEDS)
def test_half_widths_leave_out_what_they_should_whatever_the_scales(seed):
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0, 1, (int(rng.choice([1, 2, 5, 300, 3000])), 6)) ** rng.uniform(0, 6, 6) * 10 ** rng.uniform(
        -8, 8, 6
    )
    scales[: len(scales) // 2, :2] = scales[:, :2].max(axis=0)  # many equal ones
    scales[rng.integers(len(scales)), 1:4] *= 30  # one that outweighs the rest
    for confidence in (0.01, 0.5, 0.95, 0.9999):
        half = linear_half_widths(scales, confidence)
        outside = [2 * laplace_sum_survival(column, t) for column, t in zip(scales.T, half, strict=True)]
        np.testing.assert_allclose(outside, 1 - confidence, atol=1e-8)


def test_half_widths_far_out_have_closed_forms():
    for tail in (1e-3, 1e-6, 1e-9, 1e-12):
        assert linear_half_widths(np.array([[3.0]]), 1 - tail)[0] == pytest.approx(-3 * math.log(tail), rel=1e-4)
        (t,) = linear_half_widths(np.array([[1.0], [1.0]]), 1 - tail)
        assert math.exp(-t) * (2 + t) / 2 == pytest.approx(tail, rel=1e-4)
    with pytest.raises(AnswersError, match="one of them more"):
        linear_half_widths(np.array([[1.0, 0.0]]), 0.9)


def test_bootstrap_turns_the_quantiles_of_the_re_estimates_around():
    scale, confidence = 0.2, 0.8
    found = bootstrap([2.0, 5.0], np.log, np.exp, scale, confidence, draws=40_000)
    far = -scale * math.log(1 - confidence)  # the noise lies within ± far with the confidence
    estimate = np.array([2.0, 5.0])
    np.testing.assert_allclose(found.lower, estimate - estimate * (math.exp(far) - 1), rtol=0.02)
    np.testing.assert_allclose(found.upper, estimate + estimate * (1 - math.exp(-far)), rtol=0.02)
    other = bootstrap([2.0, 5.0], np.log, np.exp, scale, confidence, draws=50, seed=1)
    assert (other.lower != bootstrap([2.0, 5.0], np.log, np.exp, scale, confidence, draws=50, seed=2).lower).all()


def test_bootstrap_of_a_linear_estimate_agrees_with_the_exact_interval():
    found = bootstrap([3.0, 4.0], lambda x: x, lambda y: y, scale=2.0, confidence=0.9, draws=20_000)
    (half,) = linear_half_widths(np.array([[2.0]]), 0.9)
    np.testing.assert_allclose(found.upper - found.lower, 2 * half, rtol=0.05)
    assert found.label == "parametric bootstrap"
    with pytest.raises(AnswersError):
        bootstrap([1.0], lambda x: x, lambda y: y, scale=0.0)


def test_the_median_of_noisy_counts_is_not_drawn_to_the_middle_by_their_positive_halves():
    counts = np.random.default_rng(3).normal(0, 2, 4096)
    counts -= counts.mean()
    counts[100] += 2000
    assert median(counts) == 100 < median(np.maximum(counts, 0))
