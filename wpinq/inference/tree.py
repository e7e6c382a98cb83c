"""Trees over bins: their levels, sums between levels, and variances of range sums.

A tree is given by the number of children of every node, level by level from the root; all leaves are on the
last level and children of neighbours are neighbours. Nodes are numbered root first, level by level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, PlanError
from wpinq.inference.checks import MOST_BINS, array_of, count_of, integer_row, sequence_of
from wpinq.runtime.arrays import Floats, Integers

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
            row = integer_row(counts)
            if row is None:
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
                raise PlanError(f"level {level} of the tree has too many children: a level has at most {MOST_BINS}")
            levels.append(row.astype(np.int64))
        if not levels:
            raise PlanError("a tree needs at least one level of children: [[n]] is a root with n leaves")
        sizes = (*(len(row) for row in levels), int(levels[-1].sum()))
        vars(self).update(children=tuple(levels), sizes=sizes)  # it is frozen

    @staticmethod
    def uniform(leaves: int, branching: int) -> Tree:
        """The tree over 0 … leaves − 1 in which node i has the children k·i … k·i + k − 1.

        Children that do not exist are left out.

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
            children.append(np.full(above, branching, dtype=np.int64))
            children[-1][-1] = below - branching * (above - 1)
        tree = Tree.__new__(Tree)
        vars(tree).update(children=tuple(children), sizes=tuple(sizes), branching=branching)
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


def as_levels(tree: Tree, values: Sequence[Any], missing: bool = False) -> list[Floats]:
    """Numbers for every node of a tree, an array a level, root first, further axes alike.

    AnswersError for others. `missing` says whether nan, for a node that was not measured, may be among them.
    """
    given = sequence_of(values, "the levels of a tree")
    if len(given) != check_tree(tree).levels:
        raise AnswersError(f"the tree has {tree.levels} levels: give the values of each")
    levels: list[Floats] = []
    for level, size in enumerate(tree.sizes):
        array = array_of(given[level], f"level {level} of the tree")
        if array.shape[:1] != (size,) or (levels and array.shape[1:] != levels[0].shape[1:]):
            raise AnswersError(f"level {level} of the tree has {size} nodes, which an array of {array.shape} does not")
        if not all_finite(array) and (not missing or np.isinf(array).any()):
            raise AnswersError("values must be finite" + ("; nan says that a node was not measured" if missing else ""))
        levels.append(array)
    return levels


def check_tree(tree: Any) -> Tree:
    """The tree, if it is one, or AnswersError."""
    if not isinstance(tree, Tree):
        raise AnswersError(f"give a Tree, not a {type(tree).__name__}")
    return tree


def all_finite(array: Floats) -> bool:
    """Whether no number is nan or infinite."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))  # no array of its own


# --- variances of range sums, without the matrix of the tree ----------------------------------------------------------

# In a least-squares tree the estimates below a node depend on the rest of the tree by the node's total alone. Given
# a parent's estimate T, its children have means that are affine in T and a covariance `diag(V) − V Vᵀ/ΣV`. So a range
# that ends at a and b splits at the lowest node u that holds both ends: the two children of u at its ends, the children
# between them, and nothing else.


@dataclass(frozen=True, slots=True)
class Spread:
    """How the estimates of a tree vary, in units of the variance of one answer.

    `root` is the variance of the root's estimate. For each level but the root's, `slopes` say how much of a change of
    the parent's estimate a node takes, 1 over siblings, and `own` is V.
    """

    root: float
    slopes: Sequence[Floats]
    own: Sequence[Floats]


def least_squares_spread(tree: Tree) -> Spread:
    """The spread of `tree_least_squares` with equal precisions.

    Examples
    --------
    >>> spread = least_squares_spread(Tree.uniform(2, 2))
    >>> round(spread.root, 4), spread.slopes[0].tolist(), spread.own[0].tolist()
    (0.6667, [0.5, 0.5], [1.0, 1.0])
    """
    slopes: list[Floats] = []
    own: list[Floats] = []
    variance = np.ones(tree.sizes[-1])
    for level in reversed(range(tree.levels - 1)):
        total = tree.sum_children(level, variance)
        own.insert(0, variance)
        slopes.insert(0, variance / np.repeat(total, tree.children[level]))
        variance = 1 / (1 + 1 / total)
    return Spread(float(variance[0]), slopes, own)


def range_variances(tree: Tree, spread: Spread, starts: Integers, stops: Integers) -> Floats:
    """The variance of the sum of the estimates of the leaves start ≤ i < stop, for each range.

    In units of the variance of one answer. The tree is of a uniform branching factor, `0 ≤ start ≤ stop ≤ leaves`.
    Time `O((leaves + ranges) · levels)`, memory linear in the same.

    Examples
    --------
    >>> tree = Tree.uniform(2, 2)
    >>> range_variances(tree, least_squares_spread(tree), np.array([0, 0]), np.array([1, 2])).round(4)
    array([0.6667, 0.6667])
    """
    k, n = tree.branching, tree.sizes[-1]
    assert k is not None
    levels = [_Level.of(tree, spread, level) for level in range(tree.levels - 1)]
    totals = [np.array([spread.root])]
    for level in levels:
        totals.append(level.variances(totals[-1]))
    result = np.zeros(len(starts))
    low, high = np.asarray(starts), np.asarray(stops) - 1
    single = low == high
    result[single] = totals[-1][low[single]]
    open_ = np.flatnonzero(low < high)
    # of the leaves of the node that holds leaf i, those before i, and those up to i
    before, through = _Part(np.zeros(n), np.zeros(n)), _Part(np.ones(n), np.zeros(n))
    child = np.arange(n)
    for level, total in zip(reversed(levels), reversed(totals[:-1]), strict=True):
        parting = child[low[open_]] // k == child[high[open_]] // k
        here, open_ = open_[parting], open_[~parting]
        a, b = low[here], high[here]
        result[here] = level.across(total, child[a], 1 - before.share[a], child[b], through.share[b])
        result[here] += before.rest[a] + through.rest[b]
        before, through = level.lifted(before, child), level.lifted(through, child)
        child = child // k
    return result


@dataclass(frozen=True, slots=True)
class _Part:
    """The sum over a part of its node's leaves, for each leaf.

    It has a share of the node's total, and a rest.
    """

    share: Floats
    rest: Floats


@dataclass(frozen=True, slots=True)
class _Level:
    """The children on one level: `slope` and `own` of each, with their sums.

    The sums are over earlier siblings, and over the family.
    """

    parent: Integers
    slope: Floats
    own: Floats
    slope_before: Floats
    own_before: Floats
    own_family: Floats

    @staticmethod
    def of(tree: Tree, spread: Spread, level: int) -> _Level:
        counts = tree.children[level]
        parent = np.repeat(np.arange(len(counts)), counts)
        slope, own = spread.slopes[level], spread.own[level]
        family = tree.sum_children(level, own)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        sums = [np.concatenate(([0.0], np.cumsum(values))) for values in (slope, own)]
        before = [total[:-1] - total[firsts] for total in sums]
        return _Level(parent, slope, own, before[0], before[1], np.where(family > 0, family, 1.0))

    def variances(self, parents: Floats) -> Floats:
        return self.own - self.own**2 / self.own_family[self.parent] + self.slope**2 * parents[self.parent]

    def across(self, parents: Floats, c: Integers, left: Floats, d: Integers, right: Floats) -> Floats:
        """The variance of `left · T_c + T between c and d + right · T_d`, c and d siblings."""
        slope = self.slope_before[d] - self.slope_before[c] + (left - 1) * self.slope[c] + right * self.slope[d]
        own = self.own_before[d] - self.own_before[c] - self.own[c]
        mean = own + left * self.own[c] + right * self.own[d]
        inside = own + left**2 * self.own[c] + right**2 * self.own[d] - mean**2 / self.own_family[self.parent[c]]
        return np.asarray(inside + slope**2 * parents[self.parent[c]])

    def lifted(self, part: _Part, child: Integers) -> _Part:
        """The same part and all earlier siblings of its node, as a part of the parent."""
        own, share = self.own[child], part.share
        mean = self.own_before[child] + share * own
        rest = part.rest + self.own_before[child] + share**2 * own - mean**2 / self.own_family[self.parent[child]]
        return _Part(self.slope_before[child] + share * self.slope[child], rest)
