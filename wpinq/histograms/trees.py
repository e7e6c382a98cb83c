"""Trees of ranges over the bins: their nodes, and the Haar coefficients of the histogram."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from wpinq import functions as F
from wpinq.expr.values import Value
from wpinq.histograms.strategy import Coefficient, LinearStrategy, declared_or
from wpinq.inference.checks import along, is_one_of
from wpinq.inference.least_squares import project_tree, zero_subtrees
from wpinq.inference.tree import Spread, Tree, least_squares_spread, range_variances, tree_least_squares
from wpinq.runtime.arrays import Floats, Integers


@dataclass(frozen=True)
class Hierarchical(LinearStrategy):
    """Every node of a k-ary tree of ranges over the bins, H.

    Sensitivity ℓ, the number of levels.

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

    def solve(self, vectors: Floats) -> Floats:
        # Aᵀ y = w for y = w at the leaves and 0 above; so the estimate from y is (AᵀA)⁻¹ w
        levels = [np.zeros((size, *vectors.shape[1:])) for size in self.tree.sizes[:-1]]
        return tree_least_squares(self.tree, [*levels, vectors])[-1]

    def range_variances(self, starts: Integers, stops: Integers) -> Floats:
        return range_variances(self.tree, least_squares_spread(self.tree), starts, stops)

    def infer(self, answers: Any, nonnegative: Literal["declared", "top down", "subtrees"] | None = None) -> Floats:
        """The histogram by least squares over the tree, in linear time.

        Parameters
        ----------
        answers : Answers or array-like
            Noisy counts of the nodes, root first.
        nonnegative : {"declared", "top down", "subtrees"}, optional
            "declared" is "top down" where the sources of the answers declare what makes the histogram non-negative
            (`declared_nonnegative`), and else unbiased. "top down" makes the tree non-negative from the root on, each
            node keeping its total. "subtrees" is the paper's heuristic: a node at or below 0 becomes 0 with its
            subtree; it keeps no totals, so long ranges should be read from `zero_subtrees(tree, nodes)` and not from
            the bins.

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


@dataclass(frozen=True)
class Wavelet(LinearStrategy):
    """The Haar wavelet (Privelet), with sensitivity 1 + ⌈log₂ n⌉.

    The coefficient of a node, `(mean of left − mean of right)/2`, times the number W of leaves below it is
    `Σ left − Σ right`, and the base coefficient, the mean, times n is the total. Those are what is asked: the
    record (height, position) is the node over 2^height bins, (0, 0) the total. A bin adds 1 or −1 to each of
    its log₂ n nodes and 1 to the total, so that coefficient c gets noise of scale `λ/W(c)` as the method wants it.

    Parameters
    ----------
    domain : int
        The number of bins. When it is no power of two, the histogram is padded with bins known to be 0, and the
        estimate is the least-squares one under that knowledge: exact, in linear time.

    Notes
    -----
    Source: Xiao, Wang, Gehrke, *Differential privacy via wavelet transforms*, ICDE 2010.

    Examples
    --------
    >>> Wavelet(4).apply(np.array([2.0, 0.0, 10.0, 2.0]))
    array([ 14., -10.,   2.,   8.])
    >>> Wavelet(4).infer([14, -10, 2, 8])
    array([ 2.,  0., 10.,  2.])
    """

    domain: int

    @cached_property
    def tree(self) -> Tree:
        """The binary tree over the bins."""
        return Tree.uniform(self.domain, 2)

    @property
    def heights(self) -> int:
        """`⌈log₂ n⌉`."""
        return self.tree.levels - 1

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The numbers of answers: the total, then those of each height from the root's on."""
        return (1, *self.tree.sizes[:-1])

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(1 + self.heights)

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        heights = range(self.heights, 0, -1)
        return ((0, 0), *((h, i) for h in heights for i in range(self._nodes(h))))

    def _nodes(self, height: int) -> int:
        return self.tree.sizes[self.heights - height]

    def elements(self, bin: Any) -> list[Coefficient]:
        found: list[Coefficient] = [(F.record(height=0, position=0), 1.0)]
        for h in range(1, self.heights + 1):
            half = bin if h == 1 else bin // 2 ** (h - 1)
            found.append((F.record(height=h, position=bin // 2**h), F.where(half % 2 == 0, 1.0, -1.0)))
        return found

    def apply(self, histogram: Floats) -> Floats:
        sums, details = np.asarray(histogram, dtype=np.float64), []
        for _ in range(self.heights):
            if len(sums) % 2:
                sums = np.concatenate((sums, np.zeros((1, *sums.shape[1:]))))
            details.append(sums[0::2] - sums[1::2])
            sums = sums[0::2] + sums[1::2]
        return np.concatenate([sums, *reversed(details)])

    def _split(self, answers: Floats) -> tuple[Floats, list[Floats]]:
        """The total, and the details of each height, from 1 on."""
        total, *details = np.split(np.asarray(answers, dtype=np.float64), np.cumsum(self._sizes)[:-1])
        return total, details[::-1]

    def transpose(self, answers: Floats) -> Floats:
        sums, details = self._split(answers)
        for h in range(self.heights, 0, -1):
            sums = _interleaved(sums + details[h - 1], sums - details[h - 1])[: self._nodes(h - 1)]
        return sums

    def _partial(self, height: int) -> bool:
        """Whether the last node of a height reaches beyond the domain.

        Its detail then has information on totals.
        """
        return self.domain % (1 << height) > 0

    @cached_property
    def _last(self) -> Floats:
        """The shares of the total and of the last nodes' details in the last node's total.

        There is a row for each height, from 1 on for details. It is least squares over these. A detail is the total of
        its node less twice the right child's, which is the last node below. Where there is no right child, it is that
        of the left one, which is the node's own.
        """
        alone = np.array([self._nodes(h - 1) % 2 for h in range(1, self.heights + 1)], dtype=np.int64)
        different = np.cumsum([0, *(1 - alone)])
        totals = np.eye(different[-1] + 1)[different]
        details = totals[1:] - np.where(alone, 0, 2)[:, None] * totals[:-1]
        return np.asarray(totals @ np.linalg.pinv(np.concatenate((totals[-1:], details))))

    def estimate(self, answers: Floats) -> Floats:
        total, details = self._split(answers)
        last = np.tensordot(self._last, np.concatenate([total, *(detail[-1:] for detail in details)]), 1)
        sums = last[-1:] if self._partial(self.heights) else total
        for h in range(self.heights, 0, -1):
            below = _interleaved((sums + details[h - 1]) / 2, (sums - details[h - 1]) / 2)[: self._nodes(h - 1)]
            if self._partial(h):
                below[-1] = last[h - 1]
                if len(below) % 2 == 0:
                    below[-2] = sums[-1] - last[h - 1]
            sums = below
        return sums

    def range_variances(self, starts: Integers, stops: Integers) -> Floats:
        known = self._last @ self._last.T
        slopes, own = [], []
        for h in range(self.heights, 0, -1):
            slope, spread = np.full(self._nodes(h - 1), 0.5), np.full(self._nodes(h - 1), 0.5)
            if len(slope) % 2:
                slope[-1], spread[-1] = 1.0, 0.0
            elif self._partial(h):
                taken = known[h - 1, h] / known[h, h]
                slope[-2:], spread[-2:] = (1 - taken, taken), 2 * (known[h - 1, h - 1] - taken**2 * known[h, h])
            slopes.append(slope)
            own.append(spread)
        return range_variances(self.tree, Spread(float(known[-1, -1]), slopes, own), starts, stops)

    def coefficients(self, queries: Floats) -> Floats:
        # Aᵀ y = w for y = A w, each row over its squared norm as if padded: the leaves below it
        leaves = np.repeat([2.0**self.heights, *(2.0**h for h in range(self.heights, 0, -1))], self._sizes)
        answers = self.apply(queries) / along(leaves, queries)
        return answers if self.domain & (self.domain - 1) == 0 else self.apply(self.estimate(answers))


def _interleaved(left: Floats, right: Floats) -> Floats:
    return np.stack((left, right), axis=1).reshape(-1, *left.shape[1:])
