"""Estimates merged down a hierarchy: by inverse variance, by plain averages, and by mean consistency."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import AnswersError
from wpinq.histograms import CountOfCounts, HierarchicalCounts, Tree, consistent_sizes, mean_consistency

SEEDS = range(8)
CHAIN = Tree([[1], [1]])
THREE = Tree([[2], [2, 1]])
FOUR = Tree([[3], [2, 1, 3], [1, 2, 2, 4, 1, 1]])


def merged_group_by_group(tree, sizes, variances=None):
    """Kuo et al., section 5, as it is written: smallest with smallest, in exact numbers; plain averages without V."""
    given = [[np.ones(len(node)) for node in level] for level in sizes] if variances is None else variances
    nodes = [
        [
            list(zip(map(Fraction, size), map(Fraction, spread), strict=True))
            for size, spread in zip(*level, strict=True)
        ]
        for level in zip(sizes, given, strict=True)
    ]
    above = nodes[0]
    for level, counts in enumerate(tree.children):
        below, start = [], 0
        for node, count in enumerate(counts):
            family = nodes[level + 1][start : start + count]
            everyone = sorted((size, spread, child) for child, held in enumerate(family) for size, spread in held)
            merged = [[] for _ in family]
            for (x, v), (y, w, child) in zip(sorted(above[node]), everyone, strict=True):
                v, w = (1, 1) if variances is None else (v, w)
                merged[child].append(((x / v + y / w) / (Fraction(1) / v + Fraction(1) / w), 1 / (1 / v + 1 / w)))
            below += merged
            start += count
        above = below
    return [sorted(max(round(size), 0) for size, _ in leaf) for leaf in above]


# --- merges of group sizes ----------------------------------------------------------------------------------------


def test_merges_worked_by_hand():
    # (100/1 + 130/2) / (1 + 1/2) = 110, and (200 + 260) / 2 = 230
    found = consistent_sizes(Tree([[2]]), [[[200, 100]], [[130], [260]]], [[[1, 1]], [[2], [1]]])
    assert [node.tolist() for node in found[1]] == [[110], [230]]
    assert found[0][0].tolist() == [110, 230]
    # one group down three levels: 110 with variance 2/3, then (110 · 3/2 + 170/2) / 2 = 125
    found = consistent_sizes(CHAIN, [[[100]], [[130]], [[170]]], [[[1]], [[2]], [[2]]])
    assert [level[0].tolist() for level in found] == [[125]] * 3
    # plainly: (100 + 130)/2 = 115, then (115 + 171)/2 = 143
    assert consistent_sizes(CHAIN, [[[100]], [[130]], [[171]]])[2][0].tolist() == [143]
    # a variance belongs to its group, in whatever order they come: (10 + 20/4)/(1 + 1/4) = 12, (90/4 + 100)/(1 + 1/4)
    found = consistent_sizes(Tree([[1]]), [[[90, 10]], [[20, 100]]], [[[4, 1]], [[4, 1]]])
    assert found[1][0].tolist() == [12, 98]


@for_each("seed", SEEDS)
@for_each("tree", [CHAIN, THREE, FOUR], ids=["chain", "three levels", "four levels"])
def test_the_merge_is_the_papers_group_by_group(tree, seed):
    rng = np.random.default_rng(seed)
    groups = tree.totals(rng.integers(1, 6, tree.sizes[-1]))
    sizes = [[rng.uniform(-200, 10_000, int(g)) for g in level] for level in groups]
    variances = [[rng.uniform(0.1, 9, int(g)) for g in level] for level in groups]
    weighted = [leaf.tolist() for leaf in consistent_sizes(tree, sizes, variances)[-1]]
    plain = [leaf.tolist() for leaf in consistent_sizes(tree, sizes)[-1]]
    assert weighted == merged_group_by_group(tree, sizes, variances)
    assert plain == merged_group_by_group(tree, sizes)
    assert weighted != plain


@pytest.mark.parametrize("seed", SEEDS)
def test_down_a_chain_the_merge_is_weighted_least_squares_of_all_levels(seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(1, 8) * 1_000_000.0  # far apart: the partners of a group are its own estimates
    sizes = [[truth + rng.normal(0, 9999, 7)] for _ in range(3)]
    variances = [[rng.uniform(0.1, 9, 7)] for _ in range(3)]
    roots = [np.diag(1 / np.sqrt(v[0])) for v in variances]
    stacked = np.concatenate([root @ size[0] for root, size in zip(roots, sizes, strict=True)])
    best = np.linalg.lstsq(np.concatenate(roots), stacked, rcond=None)[0]
    assert consistent_sizes(CHAIN, sizes, variances)[-1][0].tolist() == np.rint(best).tolist()


def test_merging_refuses_variances_of_another_shape():
    sizes = [[[1, 2]], [[1], [2]]]
    for variances in ([[[1, 1]]], [[[1, 1]], [[1]]], [[[1]], [[1], [1]]], [[[1, 1]], [[1], [1, 1]]]):
        with pytest.raises(AnswersError, match="variances"):
            consistent_sizes(Tree([[2]]), sizes, variances)
    with pytest.raises(AnswersError, match="group sizes"):
        consistent_sizes(Tree([[2]]), [[[1, 2]], [[1, 2]]])
    with pytest.raises(AnswersError, match="2 groups"):
        consistent_sizes(Tree([[2]]), [[[1, 2]], [[1], [2, 3]]])


# --- counts of counts ---------------------------------------------------------------------------------------------


def sizes_of(histogram):
    return np.repeat(np.arange(len(histogram)), histogram).tolist()


def test_unattributed_levels_are_merged_by_their_pools_and_their_epsilons():
    strategy = HierarchicalCounts(Tree([[1]]), [3], 1000, "unattributed")
    levels = [[[100.0, 410.0, 390.0]], [[130.0, 460.0, 790.0]]]
    # the root's pools are {100} and {400, 400}: variances 2, 1, 1 over ε² = 1; the leaf's are 2 over ε² = 1/4
    expected = [(100 / 2 + 130 / 8) / (5 / 8), (400 + 460 / 8) / (9 / 8), (400 + 790 / 8) / (9 / 8)]
    weighted = strategy.infer(levels, [1, Fraction(1, 2)])
    assert sizes_of(weighted[1][0]) == [106, 407, 443] == [round(size) for size in expected]
    same = strategy.infer(levels, [Fraction(1, 2)] * 2)
    # variances 8, 4, 4 and 8, 8, 8
    assert sizes_of(same[1][0]) == [115, 420, 530]
    plain = strategy.infer(levels, [1, Fraction(1, 2)], weighted=False)
    assert sizes_of(plain[1][0]) == [115, 430, 595]


def test_cumulative_levels_are_merged_by_the_groups_of_a_size_and_their_epsilons():
    strategy = HierarchicalCounts(Tree([[1]]), [5], 20)

    def cumulative(sizes):
        return [float(np.sum(np.array(sizes) <= i)) for i in range(20)]

    levels = [[cumulative([5, 5, 5, 10, 10])], [cumulative([8, 8, 8, 8, 15])]]
    # root, ε = 1: variances 4/3 and 4/2; leaf, ε = 2: 1/4 and 1
    expected = [(5 * 3 / 4 + 8 * 4) / (3 / 4 + 4)] * 3 + [(10 / 2 + 8 * 4) / (1 / 2 + 4), (10 / 2 + 15) / (1 / 2 + 1)]
    assert sizes_of(strategy.infer(levels, [1, 2])[1][0]) == [8, 8, 8, 8, 13] == [round(size) for size in expected]
    # leaf, ε = 1/2: 4 and 16
    expected = [(5 * 3 / 4 + 8 / 4) / (3 / 4 + 1 / 4)] * 3 + [(10 / 2 + 8 / 4) / (3 / 4), (10 / 2 + 15 / 16) / (9 / 16)]
    assert sizes_of(strategy.infer(levels, [1, 0.5])[1][0]) == [6, 6, 6, 9, 11] == [round(size) for size in expected]
    assert sizes_of(strategy.infer(levels, [1, 2], weighted=False)[1][0]) == [6, 6, 6, 9, 12]  # halves to the even


@pytest.mark.parametrize("seed", SEEDS)
def test_three_levels_with_an_epsilon_each(seed):
    rng = np.random.default_rng(seed)
    groups = [3, 2, 4]
    strategy = HierarchicalCounts(THREE, groups, 100_000, "unattributed")
    totals = THREE.totals(np.array(groups))
    levels = [[np.sort(rng.uniform(0, 100_000, int(g))) for g in level] for level in totals]
    epsilons = rng.uniform(0.2, 2.0, 3).tolist()
    variances = [[[2 / e**2] * int(g) for g in level] for level, e in zip(totals, epsilons, strict=True)]  # no pools
    found = [sizes_of(leaf) for leaf in strategy.infer(levels, epsilons)[-1]]
    assert found == merged_group_by_group(THREE, levels, variances)
    assert found != [sizes_of(leaf) for leaf in strategy.infer(levels, [1, 1, 1])[-1]]
    plain = [sizes_of(leaf) for leaf in strategy.infer(levels, epsilons, weighted=False)[-1]]
    assert plain == merged_group_by_group(THREE, levels)


def test_the_norm_of_the_fit_reaches_every_node():
    noisy = [14.0, 9.0, 10.0, 15.0]
    for p, fitted in ((1, [9, 9, 10, 15]), (2, [11, 11, 11, 15])):
        node = CountOfCounts(4, 99, "unattributed", p=p)
        assert node.sizes(noisy, 1)[0].tolist() == fitted
        assert sizes_of(node.infer(noisy)) == fitted
        strategy = HierarchicalCounts(CHAIN, [4], 99, "unattributed", p=p)
        assert sizes_of(strategy.infer([[noisy]] * 3, [1, 1, 1])[-1][0]) == fitted
    for p, fitted in ((1, [0, 0, 0, 9]), (2, [2, 2, 2, 9])):
        node = CountOfCounts(9, 4, p=p)
        assert np.cumsum(node.infer([6.0, 0.0, 0.0, 9.0])).tolist() == [*fitted, 9]
        strategy = HierarchicalCounts(CHAIN, [9], 4, p=p)
        assert np.cumsum(strategy.infer([[[6.0, 0.0, 0.0, 9.0]]] * 3, [1, 1, 1])[-1][0]).tolist() == [*fitted, 9]
    assert (CountOfCounts(9, 4).p, CountOfCounts(9, 4, "unattributed").p) == (1, 2)


# --- mean consistency ---------------------------------------------------------------------------------------------


def test_mean_consistency_on_the_running_example_of_hay():
    found = mean_consistency(Tree.uniform(4, 2), [[13], [3, 11], [4, 1, 12, 1]])
    np.testing.assert_allclose(np.concatenate(found), [14, 3, 11, 3, 0, 11, 0], atol=1e-12)


def test_mean_consistency_shares_a_gap_evenly():
    # a root known for sure: its 6 more than the children's go to them by thirds, and then by halves
    found = mean_consistency(Tree([[3], [2, 2, 2]]), [[16], [5, 3, 2], [3, 2, 3, 0, 2, 0]], [1e9, 1e3, 1e3])
    np.testing.assert_allclose(found[1], [7, 5, 4], rtol=1e-6)
    np.testing.assert_allclose(found[2], [4, 3, 4, 1, 3, 1], rtol=1e-6)


@for_each("seed", SEEDS)
@for_each("tree", [THREE, FOUR, Tree.uniform(11, 3)], ids=["three", "four", "uniform"])
def test_mean_consistency_is_dense_weighted_least_squares(tree, seed):
    rng = np.random.default_rng(seed)
    a = np.concatenate(tree.totals(np.eye(tree.sizes[-1])))
    noisy = rng.normal(0, 9, (len(a), 5))
    epsilons = rng.uniform(0.1, 3, tree.levels)
    for given in (None, epsilons):
        weight = np.repeat(np.ones(tree.levels) if given is None else given, tree.sizes)[:, None]
        leaves = np.linalg.lstsq(a * weight, noisy * weight, rcond=None)[0]
        found = mean_consistency(tree, tree.split(noisy), given)
        np.testing.assert_allclose(np.concatenate(found), a @ leaves, atol=1e-9)
        again = mean_consistency(tree, found, given)
        np.testing.assert_allclose(np.concatenate(again), np.concatenate(found), atol=1e-9)
    one = mean_consistency(tree, tree.split(noisy[:, 2]), epsilons)
    np.testing.assert_allclose(np.concatenate(one), np.concatenate(found)[:, 2], atol=1e-12)


def test_mean_consistency_of_released_cumulative_counts():
    persons = wp.source("persons", group=int, location=int, cap=10**6)
    table = [(g, g % 3) for g in range(9) for _ in range(1 + g % 4)]
    strategy = HierarchicalCounts(THREE, [3, 3, 3], 5)
    epsilons = [0.2, 0.3, 0.5]
    measurements = strategy.measure(persons, epsilons, group=lambda r: r.group, location=lambda r: r.location)
    answers = [wp.simulate(m, {"persons": table}, seed=i) for i, m in enumerate(measurements)]
    numbers = [strategy.answers_of(level, given) for level, given in enumerate(answers)]
    found = mean_consistency(THREE, numbers, epsilons)
    assert [level.shape for level in found] == [(1, 5), (2, 5), (3, 5)]
    np.testing.assert_allclose(found[0][0], found[1].sum(axis=0))
    np.testing.assert_allclose(found[1], [found[2][:2].sum(axis=0), found[2][2]])
    a = np.concatenate(THREE.totals(np.eye(3)))
    weight = np.repeat(epsilons, THREE.sizes)[:, None]
    leaves = np.linalg.lstsq(a * weight, np.concatenate(numbers) * weight, rcond=None)[0]
    np.testing.assert_allclose(found[2], leaves, atol=1e-9)


def test_mean_consistency_refuses_bad_input():
    tree = Tree([[2]])
    for epsilons in ([1], [1, 0], [1, -1], [1, np.inf], ["a", "b"]):
        with pytest.raises(AnswersError, match="epsilons"):
            mean_consistency(tree, [[1], [2, 3]], epsilons)
    with pytest.raises(AnswersError, match="2 nodes"):
        mean_consistency(tree, [[1], [2, 3, 4]])
    with pytest.raises(AnswersError, match="level 1 of the tree must be real numbers"):
        mean_consistency(tree, [[[1, 2]], [[2], [3, 4]]])
    with pytest.raises(AnswersError, match="2 levels"):
        mean_consistency(tree, [[1]])
