"""Mean consistency: whole histograms at the nodes of a tree, made to add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import AnswersError
from wpinq.histograms.inference.checks import vector
from wpinq.histograms.inference.tree import Tree, tree_least_squares


def mean_consistency(tree: Tree, values: Sequence[Any], epsilons: Any | None = None) -> list[Floats]:
    """Noisy numbers at every node of a tree, moved as little as possible so that children sum to their parent.

    Bottom up, a node's own number and the sum of its children's are averaged by inverse variance; top down, what a
    parent has beyond its children is shared among them, by their variance; evenly where that is equal:
    `h_v = z_v + (h_parent − Σ z_sibling) / k`. Together they are weighted least squares,
    `argmin Σ_v ε_v² (h_v − values_v)²`: noise of level l has the variance `2/ε_l²`.

    Parameters
    ----------
    tree : Tree
        The tree.
    values : sequence of array-like, one of each level, root first
        A number for each node, or a row of as many numbers for each, made consistent one by one: what
        `HierarchicalCounts.answers_of` gives for the cumulative method, for example.
    epsilons : sequence of numbers, optional
        Those of the levels' measurements, more than 0; all alike when left out.

    Returns
    -------
    list of numpy arrays of float64
        Of the same shapes; may be negative, are not whole, and a row of cumulative counts may fall.

    Raises
    ------
    AnswersError
        When the shapes do not fit the tree, or an epsilon is not a positive number.

    Notes
    -----
    Privacy cost: none. Linear time and memory. It is what Kuo et al. compare `consistent_sizes` with.

    Source: Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010, section 4; for cumulative counts of counts Kuo et al.,
    PVLDB 11(11), 2018, section 6.

    Examples
    --------
    >>> top, leaves = mean_consistency(Tree([[2]]), [[[4, 9]], [[1, 3], [3, 3]]])
    >>> top, leaves
    (array([[4., 8.]]), array([[1., 4.],
           [3., 4.]]))
    """
    if epsilons is None:
        return tree_least_squares(tree, values)
    spent = vector(epsilons, "the epsilons of the levels", tree.levels)
    if not (spent > 0).all():
        raise AnswersError("the epsilons of the levels must be more than 0")
    return tree_least_squares(tree, values, list(np.square(spent / spent.max())))
