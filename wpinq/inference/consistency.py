"""Consistent estimates over a tree: node counts and group sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import along, array_of, sequence_of, vector
from wpinq.inference.tree import Tree, all_finite, as_levels, check_tree
from wpinq.runtime.arrays import Floats, Integers

Precision = float | Floats


def tree_least_squares(tree: Tree, values: Sequence[Any], precisions: Sequence[Any] | None = None) -> list[Floats]:
    """The consistent tree nearest to noisy node values, by least squares, weighted or not.

    `argmin Σ_v precision_v · (h_v − values_v)²` subject to every node being the sum of its children. Bottom up,
    a node's own value and the sum of its children's estimates are averaged by inverse variance; top down, what
    is left over is shared among the children by their variance. With equal precisions and k children each, at
    height l (a leaf has 1), these are Hay et al.'s
    `z = ((k^l − k^{l−1})·h̃ + (k^{l−1} − 1)·Σ z_child) / (k^l − 1)` and `h = z + (h_parent − Σ z_sibling) / k`.

    Parameters
    ----------
    tree : Tree
        The tree.
    values : sequence of array-like
        Noisy values of each level, root first; further axes are further trees. nan says that a node was not
        measured.
    precisions : sequence of float or array-like, optional
        Inverse variances of each level, one number or one for each node, at least 0; 0 for a node not measured.
        All 1 when left out. AnswersError when so many nodes are missing that the others do not determine them.

    Notes
    -----
    Linear time in the number of nodes.

    Source: Hay, Rastogi, Miklau, Suciu, PVLDB 3(1), 2010, section 4, theorem 3.

    Examples
    --------
    >>> tree = Tree.uniform(4, 2)
    >>> levels = tree_least_squares(tree, [[13], [3, 11], [4, 1, 12, 1]])
    >>> [[round(value) for value in level] for level in levels]
    [[14], [3, 11], [3, 0, 11, 0]]
    """
    levels, precision = _checked(tree, values, precisions)
    last = tree.levels - 1
    families: list[tuple[Floats, Precision]] = []  # of each level: sums over its children, and the children's shares
    for level in reversed(range(last)):
        total = tree.sum_children(level, levels[level + 1])
        joint, shares = _family(tree, level, precision[level + 1])
        combined = precision[level] + joint
        weight = np.divide(precision[level], combined, out=np.zeros(np.shape(combined)), where=combined > 0)
        weight = along(weight, total)
        levels[level] = weight * levels[level] + (1 - weight) * total
        precision[level] = combined
        families.append((total, shares))
    if np.any(np.asarray(precision[0]) == 0):
        raise AnswersError("the measured nodes do not determine the root: measure it, or all nodes of some level")
    for level, (total, shares) in zip(range(last), reversed(families), strict=True):
        left_over = tree.to_children(level, levels[level] - total)
        left_over *= along(shares, left_over)
        levels[level + 1] = levels[level + 1] + left_over
    return levels


def mean_consistency(tree: Tree, values: Sequence[Any], epsilons: Any | None = None) -> list[Floats]:
    """Consistent numbers at every node of a tree, nearest to noisy ones.

    Then children sum to their parent. Bottom up, a node's own number and the sum of its children's are averaged by
    inverse variance. Top down, what a parent has beyond its children is shared among them, by their variance; evenly
    where that is equal: `h_v = z_v + (h_parent − Σ z_sibling) / k`. Together they are weighted least squares,
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

    Notes
    -----
    Linear time and memory. It is what Kuo et al. compare `consistent_sizes` with.

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


def _checked(tree: Tree, values: Sequence[Any], precisions: Sequence[Any] | None) -> tuple[list[Floats], list[Any]]:
    kept: list[Any] = []
    levels = as_levels(tree, values, missing=True)
    given = [1.0] * tree.levels if precisions is None else sequence_of(precisions, "the precisions of the levels")
    if len(given) != tree.levels:
        raise AnswersError(f"the tree has {tree.levels} levels: give the precisions of each")
    for level, size in enumerate(tree.sizes):
        what = f"the precisions of level {level}"
        precision: Any = array_of(given[level], what)
        if precision.shape not in ((), (size,)) or not (np.isfinite(precision).all() and (precision >= 0).all()):
            raise AnswersError(f"{what} must be finite numbers of at least 0, one or {size}")
        if not all_finite(levels[level]):
            measured = np.isfinite(levels[level]).reshape(size, -1).all(axis=1)
            precision = np.where(measured, precision, 0.0)
            levels[level] = np.where(along(measured, levels[level]), levels[level], 0.0)
        kept.append(float(precision) if precision.shape == () else precision)
    return levels, kept


def _family(tree: Tree, level: int, below: Precision) -> tuple[Precision, Precision]:
    """The precision of the sum of each node's children, and each child's share of the rest."""
    k = tree.branching
    if isinstance(below, float) and below > 0 and k is not None and tree.sizes[level + 1] == k * tree.sizes[level]:
        return below / k, 1 / k
    each = np.full(tree.sizes[level + 1], below) if isinstance(below, float) else below
    missing = each == 0
    variance = np.divide(1.0, each, out=np.zeros(len(each)), where=~missing)
    family_variance = tree.sum_children(level, variance)
    shares = variance / np.where(family_variance == 0, 1.0, family_variance).repeat(tree.children[level])
    if not missing.any():
        return 1 / family_variance, shares
    absent = tree.sum_children(level, missing.astype(np.float64))
    if (absent > 1).any():
        raise AnswersError(
            "the measured nodes do not determine the tree: two children of one node are missing, with too little "
            "measured below them"
        )
    incomplete = absent.repeat(tree.children[level]) > 0
    shares = np.where(incomplete, missing.astype(np.float64), shares)
    joint = np.divide(1.0, family_variance, out=np.zeros(len(absent)), where=(absent == 0))
    return joint, shares


# --- group sizes: matched between a node and its children, merged by inverse variance, passed down --------------------


def match_sizes(parent: Any, children: Sequence[Any]) -> tuple[list[Integers], float]:
    """The cheapest one-to-one matching of a node's groups with its children's groups.

    Minimises `Σ |parent size − child size|`: the smallest unmatched goes with the smallest unmatched. Where several
    children have groups of one size, any order of these costs the same. They are spread evenly, each child's over all
    of them, so that every child gets its share of the larger partners and of the smaller ones.

    Parameters
    ----------
    parent : array-like
        Sizes of the node's groups.
    children : sequence of array-like
        Sizes of each child's groups, as many in total as the node has.

    Returns
    -------
    partners : list of numpy arrays of int64
        For each child, the position in `parent` of each of its groups' partner.
    cost : float
        The total difference.

    Notes
    -----
    Of n groups of one size in a child, the j-th, from 0, stands at `(j + 1/2)/n`, and partners are given out in this
    order; what stands at one place, in the order of the children. Time `O(G log G)`.

    Source: Kuo et al. 2018, section 5.2.

    Examples
    --------
    >>> partners, cost = match_sizes([1, 1, 2, 4], [[1, 4], [1, 3]])
    >>> [p.tolist() for p in partners], cost
    ([[0, 3], [1, 2]], 1.0)
    >>> partners, _ = match_sizes([1, 1, 1, 2, 2, 2], [[1, 1, 1, 1], [1, 1]])
    >>> [p.tolist() for p in partners]
    [[0, 2, 3, 5], [1, 4]]
    """
    above = vector(parent, "sizes of the node")
    parts = [vector(child, "sizes of a child") for child in sequence_of(children, "the children")]
    below = np.concatenate(parts) if parts else np.zeros(0)
    if len(above) != len(below):
        raise AnswersError(f"a node of {len(above)} groups cannot be matched with children of {len(below)} groups")
    places = np.concatenate([_places(part) for part in parts]) if parts else np.zeros(0)
    down, up = np.lexsort((places, below)), np.argsort(above, kind="stable")
    partner = np.empty(len(below), dtype=np.int64)
    partner[down] = up
    cost = float(np.abs(above[up] - below[down]).sum())
    return np.split(partner, np.cumsum([len(part) for part in parts])[:-1]), cost


def _places(child: Floats) -> Floats:
    """The place of each group among those of its size in a child, evenly between 0 and 1."""
    order = np.argsort(child, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(child[order])) + 1, len(child))
    counts = np.diff(ends, prepend=0)
    places = np.empty(len(child))
    places[order] = (np.arange(len(child)) - np.repeat(ends - counts, counts) + 0.5) / np.repeat(counts, counts)
    return places


def merge_estimates(first: Any, first_variance: Any, second: Any, second_variance: Any) -> tuple[Floats, Floats]:
    """Two independent estimates of each number as one, by inverse variance, and its variance.

    `(x/V_x + y/V_y) / (1/V_x + 1/V_y)`, variance `1 / (1/V_x + 1/V_y)`

    Parameters
    ----------
    first, second : array-like
        The estimates.
    first_variance, second_variance : array-like
        Their variances, more than 0.

    Notes
    -----
    Source: Kuo et al. 2018, section 5.3.

    Examples
    --------
    >>> merge_estimates([4.0], [1.0], [1.0], [2.0])
    (array([3.]), array([0.66666667]))
    """
    x = vector(first, "estimates")
    y = vector(second, "estimates", len(x))
    v, w = vector(first_variance, "variances", len(x)), vector(second_variance, "variances", len(x))
    if not ((v > 0).all() and (w > 0).all()):
        raise AnswersError("variances must be more than 0")
    precision = 1 / v + 1 / w
    return (x / v + y / w) / precision, 1 / precision


def consistent_sizes(
    tree: Tree, sizes: Sequence[Sequence[Any]], variances: Sequence[Sequence[Any]] | None = None
) -> list[list[Integers]]:
    """Group sizes of every node of a tree, made consistent from the top down.

    Each node's groups are matched with its children's groups, each pair is merged, and the merged sizes go on as
    the children's. At the leaves they are rounded; every other node is what its children hold.

    Parameters
    ----------
    tree : Tree
        The tree of locations.
    sizes : sequence of sequences of array-like
        Estimated sizes of the groups of each node of each level, root first. A node has as many groups as its
        children together.
    variances : sequence of sequences of array-like, optional
        The variance of each estimate. When left out all merges are plain averages: the baseline to beat.

    Returns
    -------
    list of lists of numpy arrays of int64
        Ascending non-negative integer sizes: G of them in a node of G groups, and a node's are its children's.

    Notes
    -----
    Time `O(levels · G log G)`. Source: Kuo et al. 2018, section 5.

    Examples
    --------
    >>> fixed = consistent_sizes(Tree([[2]]), [[[1, 1, 2, 4]], [[1, 4], [1, 3]]])
    >>> [node.tolist() for node in fixed[0]], [node.tolist() for node in fixed[1]]
    ([[1, 1, 2, 4]], [[1, 4], [1, 2]])
    """
    sizes = _nodes(tree, sizes, "group sizes")
    current = [vector(node, "group sizes") for node in sizes[0]]
    if variances is not None:
        variances = _nodes(tree, variances, "variances")
        pairs = zip(variances[0], current, strict=True)
        spread = [vector(own, "variances", len(node)) for own, node in pairs]
    for level, counts in enumerate(tree.children):
        below, below_spread = [], []
        for node, family in enumerate(_families(counts)):
            children = [vector(child, "group sizes") for child in sizes[level + 1][family]]
            partners, _ = match_sizes(current[node], children)
            for i, (child, partner) in enumerate(zip(children, partners, strict=True), family.start):
                above = current[node][partner]
                if variances is None:
                    below.append((above + child) / 2)
                    continue
                merged, variance = merge_estimates(above, spread[node][partner], child, variances[level + 1][i])
                below.append(merged)
                below_spread.append(variance)
        current, spread = below, below_spread
    found = [[np.sort(np.maximum(np.rint(leaf), 0).astype(np.int64)) for leaf in current]]
    for counts in reversed(tree.children):
        found.insert(0, [np.sort(np.concatenate(found[0][family])) for family in _families(counts)])
    return found


def _families(counts: Integers) -> list[slice]:
    """The places of each node's children among the nodes of the level below."""
    return [slice(start, stop) for start, stop in pairwise([0, *np.cumsum(counts).tolist()])]


def _nodes(tree: Tree, values: Any, what: str) -> list[list[Any]]:
    """What is given for each node of each level."""
    levels = [sequence_of(each, f"the {what} of a level") for each in sequence_of(values, f"the {what} of the levels")]
    if tuple(len(level) for level in levels) != check_tree(tree).sizes:
        raise AnswersError(f"the tree has levels of {tree.sizes} nodes: give the {what} of each node")
    return levels
