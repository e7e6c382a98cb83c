"""Least squares on a tree of counts: two passes, level by level, each a few numpy operations.

A tree is given by the number of children of every node, level by level from the root; all leaves are on the
last level and children of neighbours are neighbours. Nodes are numbered root first, level by level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms.inference.checks import MOST_BINS, array_of, count_of, sequence_of

_MOST_STRIDES = 16


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree with all leaves on one level.

    Parameters
    ----------
    children : sequence of sequences of int
        For every level but the last, root first, the number of children of each of its nodes, each at least 1.

    Raises
    ------
    PlanError
        When a level does not have as many nodes as the level above has children, or a node has none: such a tree
        is ragged. Give a leaf that ends early one child a level down to the last.

    Notes
    -----
    Privacy cost: none. A tree is public.

    Examples
    --------
    >>> tree = Tree([[2], [2, 3]])
    >>> tree.sizes
    (1, 2, 5)
    """

    children: tuple[Integers, ...]
    sizes: tuple[int, ...] = field(init=False)
    branching: int | None = field(init=False, default=None)

    def __init__(self, children: Sequence[Any]) -> None:
        levels: list[Integers] = []
        for level, counts in enumerate(sequence_of(children, "the levels of a tree", PlanError)):
            try:
                row = np.asarray(counts)
                whole = row.ndim == 1 and len(row) > 0 and np.issubdtype(row.dtype, np.integer)
            except ValueError:
                whole = False
            if not whole or (row < 1).any():
                raise PlanError(
                    f"level {level} of the tree must list the number of children of each node, integers of at "
                    "least 1; give a leaf above the last level one child a level"
                )
            if level and len(row) != levels[-1].sum():
                raise PlanError(
                    f"the tree is ragged: level {level} lists {len(row)} nodes, but the level above has "
                    f"{levels[-1].sum()} children"
                )
            if row.max() > MOST_BINS or row.sum() > MOST_BINS:
                raise PlanError(
                    f"level {level} of the tree has too many children: at most {MOST_BINS} nodes are a level"
                )
            levels.append(row.astype(np.int64))
        if not levels:
            raise PlanError("a tree needs at least one level of children: [[n]] is a root with n leaves")
        self._set(tuple(levels), (*(len(row) for row in levels), int(levels[-1].sum())), None)

    def _set(self, children: tuple[Integers, ...], sizes: tuple[int, ...], branching: int | None) -> None:
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "branching", branching)

    @staticmethod
    def uniform(leaves: int, branching: int) -> Tree:
        """The tree over 0 … leaves − 1 in which node i of a level has the children k·i … k·i + k − 1 that exist.

        Examples
        --------
        >>> Tree.uniform(6, 2).sizes
        (1, 2, 3, 6)
        """
        count_of(leaves, "the number of leaves", 1, MOST_BINS, PlanError)
        count_of(branching, "the branching factor", 2, MOST_BINS, PlanError)
        sizes = [leaves]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // branching))
        sizes.reverse()
        children = []
        for above, below in pairwise(sizes):
            counts = np.full(above, branching, dtype=np.int64)
            counts[-1] = below - branching * (above - 1)
            children.append(counts)
        tree = Tree.__new__(Tree)
        tree._set(tuple(children), tuple(sizes), branching)
        return tree

    @property
    def levels(self) -> int:
        """The number of levels, root and leaves included."""
        return len(self.sizes)

    def split(self, values: Any) -> list[Floats]:
        """A vector over all nodes, root first, cut into levels; further axes are kept."""
        array = array_of(values, "the values of the nodes")
        if array.shape[:1] != (sum(self.sizes),):
            raise AnswersError(f"expected one number for each of the {sum(self.sizes)} nodes, not shape {array.shape}")
        return np.split(array, np.cumsum(self.sizes)[:-1])

    def sum_children(self, level: int, below: Floats) -> Floats:
        """For every node of a level, the sum over its children of the values of the level below."""
        k, above = self.branching, self.sizes[level]
        if k is None or k > _MOST_STRIDES:
            starts = np.cumsum(self.children[level]) - self.children[level]
            return np.add.reduceat(below, starts, axis=0)
        whole = self.sizes[level + 1] // k
        total = np.empty((above, *below.shape[1:]))
        np.add(below[0 : whole * k : k], below[1 : whole * k : k], out=total[:whole])
        for i in range(2, k):
            total[:whole] += below[i : whole * k : k]
        if whole < above:
            total[whole] = below[whole * k :].sum(axis=0)
        return total

    def to_children(self, level: int, above: Any) -> Any:
        """Every node's value once for each of its children."""
        k = self.branching
        if k is None:
            return np.repeat(above, self.children[level], axis=0)
        return np.repeat(above, min(k, self.sizes[level + 1]), axis=0)[: self.sizes[level + 1]]

    def totals(self, leaves: Floats) -> list[Floats]:
        """The value of every node as the sum of its leaves, level by level, root first."""
        levels = [array_of(leaves, "the values of the leaves")]
        if levels[0].shape[:1] != self.sizes[-1:]:
            raise AnswersError(f"expected one number for each of {self.sizes[-1]} leaves, not shape {levels[0].shape}")
        for level in reversed(range(self.levels - 1)):
            levels.append(self.sum_children(level, levels[-1]))
        return levels[::-1]


Precision = float | Floats


def tree_least_squares(tree: Tree, values: Sequence[Any], precisions: Sequence[Any] | None = None) -> list[Floats]:
    """The consistent tree nearest to noisy node values: ordinary least squares, weighted where asked.

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
        All 1 when left out.

    Returns
    -------
    list of numpy arrays of float64
        The estimates, level by level.

    Raises
    ------
    AnswersError
        When the shapes do not fit, or so many nodes are missing that the others do not determine them.

    Notes
    -----
    Privacy cost: none. Linear time in the number of nodes.

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
        below = precision[level + 1]
        total = tree.sum_children(level, levels[level + 1])
        joint, shares = _family(tree, level, below)
        own = precision[level]
        combined = own + joint
        weight = np.divide(own, combined, out=np.zeros(np.shape(combined)), where=np.asarray(combined) > 0)
        weight = _along(weight, total)
        levels[level] = weight * levels[level] + (1 - weight) * total
        precision[level] = combined
        families.append((total, shares))
    if np.any(np.asarray(precision[0]) == 0):
        raise AnswersError("the measured nodes do not determine the root: measure it, or all nodes of some level")
    for level, (total, shares) in zip(range(last), reversed(families), strict=True):
        left_over = tree.to_children(level, levels[level] - total)
        left_over *= _along(shares, left_over)
        levels[level + 1] = levels[level + 1] + left_over
    return levels


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
        if not _all_finite(levels[level]):
            measured = np.isfinite(levels[level]).reshape(size, -1).all(axis=1)
            precision = np.where(measured, precision, 0.0)
            levels[level] = np.where(_along(measured, levels[level]), levels[level], 0.0)
        kept.append(float(precision) if precision.shape == () else precision)
    return levels, kept


def as_levels(tree: Tree, values: Sequence[Any], missing: bool = False) -> list[Floats]:
    """Numbers for every node of a tree: an array a level, root first, further axes alike; AnswersError if not.

    Parameters
    ----------
    tree : Tree
        The tree.
    values : sequence of array-like
        One for each level.
    missing : bool
        Whether nan, for a node that was not measured, may be among them.

    Examples
    --------
    >>> as_levels(Tree([[2]]), [[3], [1, 2]])
    [array([3.]), array([1., 2.])]
    """
    given = sequence_of(values, "the levels of a tree")
    if len(given) != check_tree(tree).levels:
        raise AnswersError(f"the tree has {tree.levels} levels: give the values of each")
    levels: list[Floats] = []
    for level, size in enumerate(tree.sizes):
        array = array_of(given[level], f"level {level} of the tree")
        if array.shape[:1] != (size,) or (levels and array.shape[1:] != levels[0].shape[1:]):
            raise AnswersError(f"level {level} of the tree has {size} nodes, which an array of {array.shape} does not")
        if not _all_finite(array) and (not missing or np.isinf(array).any()):
            raise AnswersError("values must be finite" + ("; nan says that a node was not measured" if missing else ""))
        levels.append(array)
    return levels


def check_tree(tree: Any) -> Tree:
    """The tree, if it is one, or AnswersError."""
    if not isinstance(tree, Tree):
        raise AnswersError(f"give a Tree, not a {type(tree).__name__}")
    return tree


def _all_finite(array: Floats) -> bool:
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))  # no array of its own


def _family(tree: Tree, level: int, below: Precision) -> tuple[Precision, Precision]:
    """The precision of the sum of each node's children, and each child's share of what is left over."""
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


def _along(factor: Any, values: Floats) -> Any:
    """The factor of each node, shaped to multiply arrays with further axes."""
    if np.ndim(factor) == 0:
        return factor
    return np.reshape(factor, (len(factor),) + (1,) * (values.ndim - 1))
