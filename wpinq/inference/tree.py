"""Trees over the bins: their levels, and sums and copies from one level to the next.

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
from wpinq.inference.checks import MOST_BINS, array_of, count_of, integer_row, sequence_of

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
                raise PlanError(
                    f"level {level} of the tree has too many children: at most {MOST_BINS} nodes are a level"
                )
            levels.append(row.astype(np.int64))
        if not levels:
            raise PlanError("a tree needs at least one level of children: [[n]] is a root with n leaves")
        sizes = (*(len(row) for row in levels), int(levels[-1].sum()))
        vars(self).update(children=tuple(levels), sizes=sizes)  # it is frozen

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
    """Numbers for every node of a tree: an array a level, root first, further axes alike; AnswersError if not.

    `missing` says whether nan, for a node that was not measured, may be among them.
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
