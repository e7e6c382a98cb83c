"""Group sizes of a node and of its children: matched one to one, merged by inverse variance, passed down."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.inference.checks import sequence_of, vector
from wpinq.inference.tree import Tree, check_tree


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
    """Where each group stands among those of its size in a child: evenly spread, between 0 and 1."""
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
    tree: Tree,
    sizes: Sequence[Sequence[Any]],
    variances: Sequence[Sequence[Any]] | None = None,
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
    levels = [
        sequence_of(level, f"the {what} of a level") for level in sequence_of(values, f"the {what} of the levels")
    ]
    if tuple(len(level) for level in levels) != check_tree(tree).sizes:
        raise AnswersError(f"the tree has levels of {tree.sizes} nodes: give the {what} of each node")
    return levels
