"""Hierarchical: a tree of ranges over the bins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from wpinq import functions as F
from wpinq.expr.values import Value
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy, declared_or
from wpinq.inference.checks import is_one_of
from wpinq.inference.consistency import tree_least_squares
from wpinq.inference.least_squares import project_tree, zero_subtrees
from wpinq.inference.tree import Tree, least_squares_spread, range_variances
from wpinq.runtime.arrays import Floats, Integers


@dataclass(frozen=True)
class Hierarchical(LinearStrategy):
    """Every node of a k-ary tree of ranges over the bins, H. Sensitivity ℓ, the number of levels.

    `SelectMany(bin → its ℓ ancestors-or-self)`: the record (height, position) weighs 1/ℓ of the records in the
    k^height bins from position · k^height on.

    Parameters
    ----------
    domain : int
        The number of bins; any number: the last node of a level may have fewer children.
    branching : int
        The branching factor k, at least 2.

    Notes
    -----
    Source: Hay et al. 2010, section 4.

    Examples
    --------
    >>> Hierarchical(4).sensitivity
    Fraction(3, 1)
    >>> Hierarchical(4).infer([13, 3, 11, 4, 1, 12, 1]).round(6) + 0.0
    array([ 3.,  0., 11.,  0.])
    """

    domain: int
    branching: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.tree.levels > 0

    @cached_property
    def tree(self) -> Tree:
        """The tree, root first."""
        return Tree.uniform(self.domain, self.branching)

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(self.tree.levels)

    @property
    def size(self) -> int:
        return sum(self.tree.sizes)

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        heights = range(self.tree.levels - 1, -1, -1)
        return tuple((h, i) for h, size in zip(heights, self.tree.sizes, strict=True) for i in range(size))

    def elements(self, bin: Any) -> list[Coefficient]:
        heights = range(self.tree.levels)
        return [(F.record(height=h, position=bin // self.branching**h if h else bin), 1.0) for h in heights]

    def places(self, bin: Any) -> list[Coefficient]:
        firsts = np.cumsum([0, *self.tree.sizes[:-1]])[::-1].tolist()  # by height
        return [(first + element[0].position, 1.0) for first, element in zip(firsts, self.elements(bin), strict=True)]

    def apply(self, histogram: Floats) -> Floats:
        return np.concatenate(self.tree.totals(histogram))

    def transpose(self, answers: Floats) -> Floats:
        levels = self.tree.split(answers)
        total = levels[0]
        for level, below in enumerate(levels[1:]):
            total = self.tree.to_children(level, total) + below
        return total

    def estimate(self, answers: Floats) -> Floats:
        return tree_least_squares(self.tree, self.tree.split(answers))[-1]

    def coefficients(self, queries: Floats) -> Floats:
        return self.apply(self.solve(queries))

    def solve(self, vectors: Floats) -> Floats:
        # Aᵀ y = w for y = w at the leaves and 0 above; so the estimate from y is (AᵀA)⁻¹ w
        levels = [np.zeros((size, *vectors.shape[1:])) for size in self.tree.sizes[:-1]]
        return tree_least_squares(self.tree, [*levels, vectors])[-1]

    def range_variances(self, starts: Integers, stops: Integers) -> Floats:
        return range_variances(self.tree, least_squares_spread(self.tree), starts, stops)

    def infer(
        self, answers: Any, nonnegative: Literal["declared", "top down", "subtrees", "least squares"] | None = None
    ) -> Floats:
        """The histogram by least squares over the tree, in linear time.

        Parameters
        ----------
        answers : Answers or array-like
            Noisy counts of the nodes, root first.
        nonnegative : {"declared", "top down", "subtrees", "least squares"}, optional
            "declared" is "top down" where the sources of the answers declare what makes the histogram non-negative
            (`declared_nonnegative`), and else unbiased. "top down" makes the tree non-negative from the root on, each
            node keeping its total. "subtrees" is the paper's heuristic: a node at or below 0 becomes 0 with its
            subtree; it keeps no totals, so long ranges should be read from `zero_subtrees(tree, nodes)` and not from
            the bins. "least squares" solves the constrained problem.

        Notes
        -----
        No linear unbiased estimate does better (Hay et al. 2010, theorem 4).
        """
        nonnegative = declared_or(self, answers, nonnegative)
        if is_one_of(nonnegative, ("subtrees", "top down")):
            made = zero_subtrees if nonnegative == "subtrees" else project_tree
            return made(self.tree, self.nodes(answers))[-1]
        return super().infer(answers, nonnegative)  # type: ignore[arg-type]

    def nodes(self, answers: Any) -> list[Floats]:
        """The consistent counts of all nodes, level by level, root first."""
        return tree_least_squares(self.tree, self.tree.split(self.answers_of(answers)))
