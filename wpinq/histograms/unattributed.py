"""Counts without their groups: sorted counts, and the number of groups of each size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, Literal

import numpy as np

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import AnswersError, PlanError, described
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.histograms.strategy import Mechanism, Strategy, bins_of, checked_query, noise_of, noisy
from wpinq.inference import checks
from wpinq.inference.intervals import Bootstrap, bootstrap
from wpinq.inference.least_squares import isotonic, pool_sizes, project_to_total, round_to_total
from wpinq.inference.tree import Tree, consistent_sizes
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.runtime.arrays import Floats, Integers


@dataclass(frozen=True)
class Sorted(Strategy):
    """The counts in ascending order, S (unattributed histogram, degree sequence).

    Sensitivity 1.

    `Select(bin).Shave(1).Select(index)` is the number of bins with more than i records; again
    `Shave(1).Select(index)` is the (j + 1)-th largest count.

    Parameters
    ----------
    domain : int
        The number of bins, empty ones included.

    Notes
    -----
    Source: Hay et al. 2010, section 3. Records weigh 1 each; a bin of fractional weight counts by whole units and
    the rest.

    Examples
    --------
    >>> Sorted(3).infer([9, 14, 10])
    array([ 9., 12., 12.])
    """

    domain: int

    @property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.domain - 1, -1, -1))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: record j weighs the (j + 1)-th largest count.

        Uses of the source: 1.
        """
        above = bins_of(source, bin, self.domain).shave(1.0).select(lambda piece: piece.index)
        return above.shave(1.0).select(lambda piece: piece.index)

    def infer(self, answers: Any, p: int = 2, lower: float = 0.0, upper: float = math.inf) -> Floats:
        """The ascending counts nearest to the noisy ones, from the smallest to the largest.

        Parameters
        ----------
        answers : Answers or array-like
            Noisy counts from the smallest to the largest.
        p : {1, 2}
            Least absolute values or least squares.
        lower, upper : float
            Public bounds.

        Notes
        -----
        Expected squared error `O(Σ_i (c₁ log³ n_i + c₂)/ε²)`, n_i the times that each distinct count occurs, against
        `2n/ε²` for the noisy counts (Hay et al. 2010, theorem 2).
        """
        return isotonic(self.answers_of(answers), p, lower, upper)

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """Refused, because the error depends on unknown repeats of counts.

        See `error_bound`.
        """
        raise PlanError("the error of sorted counts depends on the data: error_bound(epsilon) bounds it for all data")

    def error_bound(self, epsilon: object) -> float:
        """An upper bound on the expected total squared error for all data, `2n/ε²`.

        It is the error of the noisy counts. `epsilon` is a number, or what `measure` gave: with double-geometric noise
        the bound is n times its variance. A projection on a convex set that holds the truth never moves away from it.

        Examples
        --------
        >>> Sorted(10).error_bound(1)
        20.0
        """
        return self.domain * self.noise(epsilon=epsilon).variance

    def interval(self, answers: Any, confidence: float = 0.95, epsilon: object = None, seed: int = 0) -> Bootstrap:
        """Approximate intervals around the sorted counts, by parametric bootstrap.

        Its noise is of the same law.
        """
        noise = self.noise(answers, epsilon)
        return bootstrap(self.infer(answers), np.asarray, self.infer, noise, confidence, seed=seed)


# --- counts of counts -------------------------------------------------------------------------------------------------

CountingMethod = Literal["naive", "cumulative", "unattributed"]
_METHODS = ("naive", "cumulative", "unattributed")


@dataclass(frozen=True)
class CountOfCounts(Strategy):
    """The number of groups of each size 0 … largest, for a public number of groups.

    | method | query program | a record weighs | sensitivity |
    | --- | --- | --- | --- |
    | naive | `GroupBy(group, count).Select(size)` | half the number of groups of that size, from 1 on | 2 |
    | cumulative, H_c | `Select(group).Shave(1).Select(index)` | i: the number of groups of size > i | 1 |
    | unattributed, H_g | that, then `Shave(1).Select(index)` | j: the (j + 1)-th largest size | 1 |

    Parameters
    ----------
    groups : int
        The public number G of groups, empty ones included.
    largest : int
        The public bound K on sizes, at least 1; a larger group counts as one of size K.
    method : {"cumulative", "unattributed", "naive"}
        What is measured. Cumulative does better where sizes are dense, unattributed where they are sparse; naive
        is there to compare with.
    p : {1, 2}, optional
        Isotonic fit in absolute values or in squares; when left out, squares for the unattributed method, whose pools
        then give variances, and absolute values for the cumulative one.

    Notes
    -----
    Source: Kuo, Chiu, Kifer, Hay, Machanavajjhala, *Differentially private hierarchical count-of-counts histograms*,
    PVLDB 11(11), 2018. Protects one item of weight 1; groups are public.

    Examples
    --------
    >>> CountOfCounts(groups=4, largest=4).infer([0.2, 1.8, 3.1, 2.9])
    array([0, 2, 1, 0, 1])
    """

    groups: int
    largest: int
    method: CountingMethod = "cumulative"
    p: int | None = None

    def __post_init__(self) -> None:
        if not checks.is_one_of(self.method, _METHODS):
            raise PlanError(f"a method is one of {', '.join(_METHODS)}, not {described(self.method)}")
        most = checks.MOST_BINS if self.method == "unattributed" else checks.MOST_RECORDS
        checks.count_of(self.groups, "the number of groups, which is public,", 1, most, PlanError)
        checks.count_of(self.largest, "the largest size, a public bound,", 1, checks.MOST_BINS - 1, PlanError)
        if self.p is None:
            object.__setattr__(self, "p", 2 if self.method == "unattributed" else 1)
        if not checks.is_one_of(self.p, (1, 2)):
            raise PlanError(f"p is 1 or 2, not {described(self.p)}")

    @property
    def domain(self) -> int:  # type: ignore[override]  # the sizes
        """The number of sizes, `largest + 1`."""
        return self.largest + 1

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(2 if self.method == "naive" else 1)

    @property
    def keys(self) -> tuple[Value, ...]:
        if self.method == "naive":
            return tuple(range(1, self.largest + 1))
        if self.method == "cumulative":
            return tuple(range(self.largest))
        return tuple(range(self.groups - 1, -1, -1))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program over items; `bin` gives an item's group, of any type.

        Uses of the source: 1.
        """
        group = (lambda record: record) if bin is None else bin
        if self.method == "naive":
            sizes = checked_query(source).group_by(group, lambda items: F.count(items))
            return sizes.select(lambda g: F.min(g.val, self.largest))
        above = checked_query(source).select(group).shave(1.0).select(lambda piece: piece.index)
        if self.method == "cumulative":
            return above
        return above.where(lambda i: i < self.largest).shave(1.0).select(lambda piece: piece.index)

    def answers_of(self, answers: Any) -> Floats:
        """The noisy numbers to fit: H from size 1, H_c from size 0 to K − 1, H_g ascending.

        Of Answers of the cumulative method, `H_c[i] = G − weight of i`. A vector stays as it is.
        """
        values = super().answers_of(answers)
        return self.groups - values if isinstance(answers, Answers) and self.method == "cumulative" else values

    def answers_from(self, histogram: Integers) -> Floats:
        """The noiseless numbers of a public number of groups of each size, as in `answers_of`.

        AnswersError when those are not K + 1 integers of at least 0, of sum G.
        """
        numbers = checks.vector(histogram, "the numbers of groups of each size", self.domain)
        counts = np.clip(np.rint(numbers), 0, self.groups).astype(np.int64)
        if (counts != numbers).any() or counts.sum() != self.groups:
            raise AnswersError(f"the numbers of groups of each size must be integers that sum to {self.groups}")
        if self.method == "unattributed":
            return np.repeat(np.arange(len(counts)), counts).astype(np.float64)
        return np.asarray(counts[1:] if self.method == "naive" else np.cumsum(counts)[:-1], dtype=np.float64)

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """Refused, because the error depends on the unknown sizes.

        See `simulated_distance`.
        """
        raise PlanError(
            "the error of counts of counts depends on the data: simulated_distance(strategy, epsilon, guess) says what "
            "it would be on a public guess"
        )

    def infer(self, answers: Any) -> Integers:
        """The number of groups of each size: K + 1 non-negative integers of sum G.

        `answers` are Answers of `measure`, or noisy numbers as `answers_of` gives them.
        """
        return self._histogram(self.answers_of(answers))

    def _histogram(self, noisy: Floats) -> Integers:
        if self.method == "naive":
            above = project_to_total(noisy, self.groups, at_most=True)
            fitted = np.concatenate(([max(0.0, self.groups - float(above.sum()))], above))
            return round_to_total(fitted, self.groups)
        if self.method == "cumulative":
            fit = np.rint(isotonic(noisy, self.p or 1, 0.0, self.groups)).astype(np.int64)
            return np.diff(fit, prepend=0, append=self.groups)
        fit = np.rint(isotonic(noisy, self.p or 2, 0.0, self.largest)).astype(np.int64)
        return np.bincount(fit, minlength=self.largest + 1).astype(np.int64)

    def sizes(self, answers: Any, epsilon: object = None) -> tuple[Floats, Floats]:
        """The sizes of the groups, ascending, and the estimated variance of each.

        With v the variance of one answer, `2/ε²` for Laplace noise, `8/ε²` for that of the naive method. H_g:
        `v / |S_i|`, S_i the pool of i. H_c and naive: `2v / estimated groups of that size`.

        Returns
        -------
        sizes : numpy array of float64
            G sizes; those of the unattributed method as they were fitted, not rounded: merging them so does better.
        variances : numpy array of float64
            Of each, as weights for merging; not exact.

        Notes
        -----
        Source: Kuo et al. 2018, section 5.1.
        """
        return self.sizes_of(self.answers_of(answers), self.noise(answers, epsilon).variance)

    def sizes_of(self, noisy: Floats, variance: float) -> tuple[Floats, Floats]:
        """`sizes` of noisy numbers, each of this variance."""
        if self.method == "unattributed":
            fit = isotonic(noisy, self.p or 2, 0.0, self.largest)
            return fit, variance / pool_sizes(fit)
        if self.groups > checks.MOST_BINS:
            raise AnswersError(f"the sizes of {self.groups} groups are too many to list: infer counts them by size")
        histogram = self._histogram(noisy)
        sizes = np.repeat(np.arange(self.largest + 1), histogram)
        return sizes.astype(np.float64), np.asarray(2 * variance / histogram[sizes], dtype=np.float64)


def earth_movers_distance(first: Any, second: Any) -> float:
    """The least number of items to add or remove between two histograms of sizes.

    It is `‖H_c − H_c'‖₁`.

    Parameters
    ----------
    first, second : array-like
        Two estimates: numbers of groups of each size 0, 1, …; of equal length and sum. Against protected data it is a
        query of its own.

    Examples
    --------
    >>> earth_movers_distance([0, 2, 1, 0, 1], [0, 2, 0, 1, 1])
    1.0
    """
    one = checks.vector(first, "a histogram")
    return float(np.abs(np.cumsum(one - checks.vector(second, "a histogram", len(one)))).sum())


# Counts of counts over a tree of locations, with a budget for each level.


@dataclass(frozen=True, eq=False)
class HierarchicalCounts:
    """Consistent numbers of groups of each size at every node of a tree of locations.

    One measurement a level. Nodes of a level hold different items, so that they share one use of the source: a
    level costs its epsilon, all levels their sum.

    Parameters
    ----------
    tree : Tree
        The tree of locations; every group lies in one leaf.
    groups : sequence of int
        The public number of groups of each leaf, at least 1.
    largest : int
        The public bound K on sizes; a larger group counts as one of size K.
    methods : str or sequence of str
        "cumulative" or "unattributed", for all levels or for each.
    p : {1, 2}, optional
        The isotonic fit, as for `CountOfCounts`.

    Notes
    -----
    Source: Kuo et al., PVLDB 11(11), 2018, section 5.

    Examples
    --------
    >>> import wpinq as wp
    >>> persons = wp.source("persons", name=str, group=int, location=int)
    >>> strategy = HierarchicalCounts(Tree([[2]]), groups=[2, 2], largest=8)
    >>> levels = strategy.measure(persons, [0.5, 0.5], group=lambda r: r.group, location=lambda r: r.location)
    >>> wp.bill(levels)["persons"]
    1
    """

    tree: Tree
    groups: Sequence[int]
    largest: int
    methods: CountingMethod | Sequence[CountingMethod] = "cumulative"
    p: int | None = None
    nodes: tuple[tuple[CountOfCounts, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Tree):
            raise PlanError(f"locations form a Tree, not a {type(self.tree).__name__}")
        counts, leaves = checks.integer_row(self.groups), self.tree.sizes[-1]
        if counts is None or len(counts) != leaves:
            raise PlanError(
                f"the numbers of groups must be public: an integer of at least 1 for each of the {leaves} leaves"
            )
        given, count = self.methods, self.tree.levels
        methods = [given] * count if isinstance(given, str) else checks.sequence_of(given, "methods", PlanError)
        if len(methods) != count or not all(checks.is_one_of(each, _METHODS[1:]) for each in methods):
            raise PlanError(f"methods are 'cumulative' or 'unattributed', for each of the {count} levels")
        pairs = zip(self.tree.totals(counts.astype(np.float64)), methods, strict=True)
        nodes = tuple(
            tuple(CountOfCounts(int(total), self.largest, method, self.p) for total in level) for level, method in pairs
        )
        object.__setattr__(self, "nodes", nodes)

    def keys(self, level: int) -> tuple[Value, ...]:
        """The public records of a level: (node, key of that node's strategy)."""
        self._check_level(level)
        return tuple((i, key) for i, node in enumerate(self.nodes[level]) for key in node.keys)

    def query(self, source: Query, level: int, group: Callable[..., Any], location: Callable[..., Any]) -> Query:
        """The query program of one level: the strategy of all its nodes side by side.

        Uses of the source: 1.

        Parameters
        ----------
        source : Query
            Items.
        level : int
            From 0, the root.
        group, location : function
            From an item to its group, of any type, and to its leaf, an int from 0. Items of other leaves are left out.
        """
        self._check_level(level)
        checked_query(source)
        if not (callable(group) and callable(location)):
            raise PlanError("group and location are functions, from an item to its group and to its leaf")
        leaves = self.tree.sizes[-1]
        placed = source.select(lambda r: (location(r), group(r)))
        if placed.plan.type.elements[0] != INT:  # type: ignore[attr-defined]  # a pair
            raise PlanError(f"a location is the number of a leaf, an int from 0 to {leaves - 1}")
        node = reduce(np.repeat, self.tree.children[level:], np.arange(self.tree.sizes[level])).tolist()  # of each leaf
        inside = placed.where(lambda r: (r[0] >= 0) & (r[0] < leaves))
        pieces = inside.select(lambda r: (F.element(node, r[0]), r[1])).shave(1.0)
        above = pieces.select(lambda piece: (piece.record[0], piece.index))
        if self.nodes[level][0].method == "cumulative":
            return above
        bounded = above.where(lambda r: r[1] < self.largest).shave(1.0)
        return bounded.select(lambda piece: (piece.record[0], piece.index))

    def _check_level(self, level: int) -> None:
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < self.tree.levels:
            raise PlanError(f"a level is an integer from 0 to {self.tree.levels - 1}, not {described(level)}")

    def measure(
        self,
        source: Query,
        epsilons: Sequence[object],
        group: Callable[..., Any],
        location: Callable[..., Any],
        mechanism: Mechanism = "laplace",
    ) -> tuple[Measurement, ...]:
        """A measurement for each level with its own epsilon.

        Privacy cost: the sum of the epsilons a use.

        Parameters
        ----------
        source : Query
            Items.
        epsilons : sequence of numbers
            One for each level, root first.
        group, location : function
            As for `query`.
        mechanism : {"laplace", "geometric", "automatic"}
            As for `Strategy.measure`, for all levels. Sizes are whole numbers: with `unit_weights` the lattice is 1.

        Raises
        ------
        PlanError
            When there is not one epsilon a level; for "geometric", when the plan proves no lattice: it names the step
            that breaks it.
        """
        epsilons = checks.sequence_of(epsilons, "the epsilons of the levels", PlanError)
        if len(epsilons) != self.tree.levels:
            raise PlanError(f"the tree has {self.tree.levels} levels: give an epsilon for each")
        return tuple(
            noisy(self.query(source, level, group, location), epsilon, self.keys(level), mechanism)
            for level, epsilon in enumerate(epsilons)
        )

    def answers_of(self, level: int, answers: Any) -> list[Floats]:
        """The noisy numbers of each node of a level, as its `CountOfCounts` fits them."""
        self._check_level(level)
        if not isinstance(answers, Answers):
            answers = checks.sequence_of(answers, f"the answers of level {level}")
            if len(answers) != self.tree.sizes[level]:
                raise AnswersError(f"level {level} has {self.tree.sizes[level]} nodes: give a vector for each")
            return [node.answers_of(given) for node, given in zip(self.nodes[level], answers, strict=True)]
        parts = np.split(
            Strategy.weights_at(answers, self.keys(level)),
            np.cumsum([len(node.keys) for node in self.nodes[level]])[:-1],
        )
        pairs = zip(self.nodes[level], parts, strict=True)
        return [node.groups - part if node.method == "cumulative" else np.asarray(part) for node, part in pairs]

    def infer(
        self, answers: Sequence[Any], epsilons: Sequence[object] | None = None, weighted: bool = True
    ) -> list[list[Integers]]:
        """The number of groups of each size in every node: children sum to their parent.

        Parameters
        ----------
        answers : sequence, one of each level, root first
            Answers of `measure`, or for each node a vector of noisy numbers.
        epsilons : sequence of numbers or Measurements, optional
            For levels given as vectors: the epsilon of Laplace noise, or the measurement. Answers know their noise.
        weighted : bool
            Merge by inverse variance; otherwise by plain averages, which did better at the top where all levels are
            unattributed (`docs/histograms.md`).

        Returns
        -------
        list of lists of numpy arrays of int64
            For each node of each level, K + 1 non-negative numbers of sum G.

        Notes
        -----
        Memory: K + 1 numbers a node.
        """
        answers = checks.sequence_of(answers, "the answers of the levels")
        told = [None] * len(answers) if epsilons is None else checks.sequence_of(epsilons, "the epsilons of the levels")
        if len(answers) != self.tree.levels or len(told) != self.tree.levels:
            raise AnswersError(f"the tree has {self.tree.levels} levels: give answers and an epsilon for each")
        sizes, variances = [], []
        for level, (given, epsilon) in enumerate(zip(answers, told, strict=True)):
            numbers = self.answers_of(level, given)
            known = given.measurement if isinstance(given, Answers) else epsilon
            variance = noise_of(known, Fraction(1), self.keys(level)).variance  # of either method
            pairs = [n.sizes_of(part, variance) for n, part in zip(self.nodes[level], numbers, strict=True)]
            sizes.append([pair[0] for pair in pairs])
            variances.append([pair[1] for pair in pairs])
        merged = consistent_sizes(self.tree, sizes, variances if weighted else None)
        return [[np.bincount(node, minlength=self.largest + 1) for node in level] for level in merged]
