"""Integers that keep their totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.inference.checks import MOST_RECORDS, count_of, number, vector
from wpinq.inference.tree import Tree, as_levels

_CLOSE = 1e-6


def round_to_total(values: Any, total: float) -> Integers:
    """Non-negative integers with a given sum, each within 1 of the value: the largest fractions are rounded up.

    The total is rounded to the nearest integer t first, as the root of a tree is, of two the even one. With
    `r = t − Σ ⌊x_i⌋`, the r values with the largest fractional parts go up, the others down.

    Parameters
    ----------
    values : array-like
        Non-negative, of a sum that is within 1/2 of t: `project_to_total` gives such.
    total : float
        The sum, at least 0. An estimate need not be whole.

    Notes
    -----
    Source: Kuo et al. 2018, section 4.1.

    Examples
    --------
    >>> round_to_total([0.25, 1.5, 1.25], 3)
    array([0, 2, 1])
    >>> round_to_total([0.25, 1.5, 1.5], 3.25)
    array([0, 2, 1])
    """
    numbers = vector(values, "values")
    given = number(total, "a total")
    if isinstance(total, bool) or not math.isfinite(given):
        raise AnswersError("a total must be a finite number")
    whole = count_of(round(given), "a total", 0)
    if (numbers < 0).any() or abs(float(numbers.sum()) - whole) > 0.5 + _CLOSE * max(1.0, whole):
        raise AnswersError("values must be at least 0 and have the total as their sum: project_to_total makes them so")
    if not len(numbers):
        return np.zeros(0, dtype=np.int64)
    return _down(Tree([[len(numbers)]]), 0, np.array([whole], dtype=np.int64), numbers)


def round_tree(tree: Tree, levels: Sequence[Floats]) -> list[Integers]:
    """A consistent, non-negative tree as integers that are consistent too.

    The root is rounded to the nearest integer; then, family by family, the children with the largest fractions go
    up as often as their parent's integer needs. Every node moves by less than 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    levels : sequence of arrays
        Root first; each node the sum of its children up to rounding, all at least 0.

    Examples
    --------
    >>> tree = Tree.uniform(4, 2)
    >>> [level.tolist() for level in round_tree(tree, tree.totals(np.array([0.5, 0.5, 1.75, 0.5])))]
    [[3], [1, 2], [1, 0, 2, 0]]
    """
    levels = as_levels(tree, levels)
    if any((level < 0).any() for level in levels):
        raise AnswersError("the tree holds negative values: make it non-negative first")
    if any((level > MOST_RECORDS).any() for level in levels):
        raise AnswersError(f"the tree holds values above {MOST_RECORDS}, where floats tell no integers apart")
    rounded = [np.rint(levels[0]).astype(np.int64)]
    for level in range(tree.levels - 1):
        gap = np.abs(tree.sum_children(level, levels[level + 1]) - levels[level])
        if (gap > _CLOSE * np.maximum(1.0, levels[level])).any():
            raise AnswersError("the tree is not consistent: rounding keeps totals that are there")
        rounded.append(_down(tree, level, rounded[-1], levels[level + 1]))
    return rounded


def _down(tree: Tree, level: int, parents: Integers, values: Floats) -> Integers:
    """Children's integers that sum to their parents'."""
    nearest = np.rint(values)
    values = np.where(np.abs(values - nearest) < _CLOSE, nearest, values)  # so that an integer stays one
    floors = np.floor(values)
    missing = parents - np.rint(tree.sum_children(level, floors)).astype(np.int64)
    counts = tree.children[level]
    if ((missing < 0) | (missing > counts)).any():
        raise AnswersError("the values are too far from their totals for rounding to keep those")
    family = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((-(values - floors), family))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return floors.astype(np.int64) + (rank < missing[family])
