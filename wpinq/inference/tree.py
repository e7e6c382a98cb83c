"""Trees over bins: levels and sums, consistent estimates, and variances of range sums.

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
from wpinq.inference.checks import MOST_BINS, along, array_of, count_of, integer_row, sequence_of, vector
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


# --- consistent estimates: node counts and group sizes ----------------------------------------------------------------

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
