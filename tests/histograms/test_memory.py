"""Memory linear in the domain: bytes a bin, at their peak, beside those of the arguments and of the result."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from tests.support.parameters import for_each
from wpinq.histograms import (
    Hierarchical,
    Ranges,
    Tree,
    consistent_sizes,
    isotonic_l1,
    isotonic_l2,
    match_sizes,
    mean_consistency,
    project_to_total,
    project_tree,
    quantile,
    range_sums,
    round_to_total,
    round_tree,
    tree_least_squares,
    zero_subtrees,
)

pytestmark = pytest.mark.long


def ragged(n: int) -> Tree:
    """Half of the leaves in one family, the others one a node."""
    return Tree([[n // 2 + 1], [1] * (n // 2) + [n - n // 2]])


def counts(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(3, 5, n)


def whole_tree(tree: Tree) -> list[np.ndarray]:
    return tree.totals(np.abs(counts(tree.sizes[-1])))


def noisy_tree(tree: Tree) -> list[np.ndarray]:
    return [np.random.default_rng(1).normal(0, 9, size) for size in tree.sizes]


def on_tree(function, tree, levels):
    def prepare(n: int):
        made = tree(n)
        given = levels(made)
        return lambda: function(made, given)

    return prepare


def binary(n: int) -> Tree:
    return Tree.uniform(n - 3, 2)


def wide(n: int) -> Tree:
    return Tree.uniform(n - 3, 20)


def ranges(n: int):
    starts = np.random.default_rng(n).integers(0, n, n)
    return starts, np.minimum(starts + 7, n)


def sizes(n: int):
    parts = np.split(counts(n), 4)
    return lambda: match_sizes(counts(n), parts)


def merges(n: int):
    tree, parts = Tree([[2], [2, 2]]), np.split(counts(n), 4)
    levels = [[counts(n)], [np.concatenate(parts[:2]), np.concatenate(parts[2:])], parts]
    variances = [[np.ones(len(node)) for node in level] for level in levels]
    return lambda: consistent_sizes(tree, levels, variances)


def projected(n: int):
    values = project_to_total(counts(n), 5 * n)
    return lambda: round_to_total(values, 5 * n)


def variances(n: int):
    strategy, some = Hierarchical(n, 4), ranges(n)
    return lambda: strategy.expected_error(Ranges(n, *some), 1)


def on_counts(function):
    def prepare(n: int):
        given = counts(n)
        return lambda: function(given)

    return prepare


def sums(n: int):
    given, some = counts(n), ranges(n)
    return lambda: range_sums(given, *some)


# the most bytes a bin: about a quarter more than was measured
CASES = {
    "tree least squares, binary": (on_tree(tree_least_squares, binary, noisy_tree), 70),
    "tree least squares, 20 children": (on_tree(tree_least_squares, wide, noisy_tree), 45),
    "tree least squares, ragged": (on_tree(tree_least_squares, ragged, noisy_tree), 50),
    "mean consistency": (on_tree(lambda tree, y: mean_consistency(tree, y, [1, 2, 3]), ragged, noisy_tree), 50),
    "subtrees": (on_tree(zero_subtrees, binary, noisy_tree), 25),
    "top down, binary": (on_tree(project_tree, binary, whole_tree), 120),
    "top down, ragged": (on_tree(project_tree, ragged, whole_tree), 80),
    "rounding of a tree": (on_tree(round_tree, binary, whole_tree), 110),
    "rounding of a ragged tree": (on_tree(round_tree, ragged, whole_tree), 105),
    "isotonic L2": (on_counts(isotonic_l2), 30),
    "isotonic L1": (on_counts(isotonic_l1), 70),
    "matching": (sizes, 75),
    "merging": (merges, 75),
    "projection": (on_counts(lambda given: project_to_total(given, len(given))), 65),
    "rounding": (projected, 90),
    "range sums": (sums, 60),
    "quantile": (on_counts(lambda given: quantile(given, 0.3)), 40),
    "variances of ranges": (variances, 280),
}


def peak(run) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        del result


@for_each("name", CASES)
def test_bytes_a_bin_stay_below_a_constant(name):
    prepare, limit = CASES[name]
    prepare(64)()  # imports and caches are no bins
    small = peak(prepare(2**14)) / 2**14
    assert small < limit
    assert peak(prepare(2**16)) / 2**16 < 1.05 * small
