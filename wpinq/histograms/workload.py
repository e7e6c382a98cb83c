"""Workloads: the public linear queries for a histogram, never stored as a dense matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, PlanError
from wpinq.inference.checks import MOST_BINS, along, along_axes, array_of, blocks, count_of, flat_product, units
from wpinq.inference.least_squares import check_ranges
from wpinq.marginals.cells import MOST_VIEWS, View
from wpinq.runtime.arrays import Floats, Integers

#: Ranges at a time, or as many as there are bins.
_BLOCK = 1 << 17


class Workload(ABC):
    """Linear queries over the bins 0 … domain − 1: the rows of a matrix W.

    Attributes
    ----------
    domain : int
        The number n of bins.
    queries : int
        The number of rows.
    """

    domain: int
    queries: int

    @abstractmethod
    def answer(self, histogram: Floats) -> Floats:
        """`W x`, along the first axis."""

    @abstractmethod
    def transpose(self, answers: Floats) -> Floats:
        """`Wᵀ y`, along the first axis."""

    def gram(self, vectors: Floats) -> Floats:
        """`Wᵀ W x`, along the first axis."""
        return self.transpose(self.answer(vectors))

    def gram_diagonal(self) -> Floats:
        """The diagonal of `Wᵀ W`: the sum of squared coefficients of each bin."""
        return np.asarray(sum((rows**2).sum(axis=1) for rows in self.row_blocks()))

    def rows(self, start: int, stop: int) -> Floats:
        """The queries start ≤ i < stop, one a column: shape (domain, stop − start)."""
        return self.transpose(units(self.queries, start, stop))

    def row_blocks(self) -> Iterator[Floats]:
        """All queries, some `rows` at a time."""
        return (self.rows(start, stop) for start, stop in blocks(self.queries))

    def ranges(self) -> Iterator[tuple[Integers, Integers]] | None:
        """The starts and stops of the queries, block by block, where all are ranges, else None."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.queries} queries over {self.domain} bins>"


class Ranges(Workload):
    """Sums over ranges `start ≤ i < stop`, as in Python.

    Parameters
    ----------
    domain : int
        The number of bins.
    starts, stops : array-like of int
        `0 ≤ start ≤ stop ≤ domain`; at least one range.

    Raises
    ------
    PlanError
        When a range does not lie in the domain.

    Examples
    --------
    >>> Ranges(4, [0, 2], [4, 3]).answer(np.array([2.0, 0.0, 10.0, 2.0]))
    array([14., 10.])
    """

    def __init__(self, domain: int, starts: Any, stops: Any) -> None:
        self.domain = check_domain_size(domain)
        try:
            self._ends = check_ranges(starts, stops, domain)
        except AnswersError as reason:
            raise PlanError(str(reason)) from None
        self.queries = len(self._ends[0])
        if not self.queries:
            raise PlanError("a workload needs at least one query")

    def ends(self) -> tuple[Integers, Integers]:
        """All starts, and all stops."""
        return self._ends

    def answer(self, histogram: Floats) -> Floats:
        starts, stops = self.ends()
        prefix = np.concatenate((np.zeros((1, *histogram.shape[1:])), np.cumsum(histogram, axis=0)))
        return np.asarray(prefix[stops] - prefix[starts])

    def transpose(self, answers: Floats) -> Floats:
        starts, stops = self.ends()
        marks = np.zeros((self.domain + 1, *answers.shape[1:]))
        np.add.at(marks, starts, answers)
        np.subtract.at(marks, stops, answers)
        return np.asarray(np.cumsum(marks, axis=0)[:-1])

    def gram_diagonal(self) -> Floats:
        return self.transpose(np.ones(self.queries))

    def rows(self, start: int, stop: int) -> Floats:
        bins, (starts, stops) = np.arange(self.domain)[:, None], self.ends()
        return ((bins >= starts[start:stop]) & (bins < stops[start:stop])).astype(np.float64)

    def ranges(self) -> Iterator[tuple[Integers, Integers]] | None:
        (starts, stops), size = self.ends(), max(_BLOCK, self.domain)
        return ((starts[i : i + size], stops[i : i + size]) for i in range(0, self.queries, size))


class Bins(Ranges):
    """Every bin by itself: W is the identity.

    Examples
    --------
    >>> Bins(3)
    <Bins: 3 queries over 3 bins>
    """

    def __init__(self, domain: int) -> None:
        self.domain = self.queries = check_domain_size(domain)

    def ends(self) -> tuple[Integers, Integers]:
        return np.arange(self.domain), np.arange(self.domain) + 1

    def answer(self, histogram: Floats) -> Floats:
        return np.asarray(histogram)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(answers)


class Prefixes(Ranges):
    """The cumulative counts, `Σ_{j ≤ i} x_j` for every i.

    Examples
    --------
    >>> Prefixes(3).answer(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """

    def __init__(self, domain: int) -> None:
        self.domain = self.queries = check_domain_size(domain)

    def ends(self) -> tuple[Integers, Integers]:
        return np.zeros(self.domain, dtype=np.int64), np.arange(self.domain) + 1

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(np.cumsum(answers[::-1], axis=0)[::-1])


class AllRanges(Ranges):
    """All `n(n + 1)/2` non-empty ranges, in order of start, then stop.

    Examples
    --------
    >>> AllRanges(3).queries
    6
    """

    def __init__(self, domain: int) -> None:
        self.domain = check_domain_size(domain)
        self.queries = domain * (domain + 1) // 2

    def ends(self) -> tuple[Integers, Integers]:
        if self.queries > MOST_BINS:
            raise PlanError(f"all {self.queries} ranges are too many to answer one by one: give the Ranges that count")
        starts, stops = np.triu_indices(self.domain)
        return starts, stops + 1

    def gram(self, vectors: Floats) -> Floats:
        # bins i and j lie together in (min(i, j) + 1)(n − max(i, j)) ranges
        up = along(np.arange(1.0, self.domain + 1), vectors)
        down = up[::-1]
        before = np.cumsum(up * vectors, axis=0)
        after = np.cumsum((down * vectors)[::-1], axis=0)[::-1]
        return np.asarray(down * before + up * (after - down * vectors))

    def gram_diagonal(self) -> Floats:
        up = np.arange(1.0, self.domain + 1)
        return np.asarray(up * up[::-1])

    def ranges(self) -> None:
        return None  # there are fewer columns than ranges


class Matrix(Workload):
    """The rows of a given matrix.

    Parameters
    ----------
    matrix : numpy array or scipy sparse matrix, shape (queries, domain)
        Finite coefficients.

    Raises
    ------
    PlanError
        When it is not such a matrix.

    Examples
    --------
    >>> Matrix([[1, 1, 0], [0, 1, 1]]).answer(np.array([1.0, 2.0, 3.0]))
    array([3., 5.])
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = check_matrix(matrix, "a workload")
        self.queries, self.domain = self.matrix.shape

    def answer(self, histogram: Floats) -> Floats:
        return np.asarray(self.matrix @ histogram)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(self.matrix.T @ answers)

    def gram_diagonal(self) -> Floats:
        squared = self.matrix.multiply(self.matrix) if hasattr(self.matrix, "multiply") else self.matrix**2
        return np.asarray(squared.sum(axis=0), dtype=np.float64).ravel()


def check_domain_size(domain: object) -> int:
    """A number of bins, 1 to `MOST_BINS`, or PlanError."""
    return count_of(domain, "a domain, the number of bins,", 1, MOST_BINS, PlanError)


def check_matrix(matrix: Any, what: str) -> Any:
    """A finite matrix of float64, dense or sparse (CSR), or PlanError.

    It has a row and a column at least.
    """
    if hasattr(matrix, "tocsr"):
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise PlanError(f"{what} has real coefficients, not complex ones")
        sparse = matrix.tocsr().astype(np.float64)  # a copy
        sparse.sum_duplicates()
        if min(sparse.shape) < 1 or not np.isfinite(sparse.data).all():
            raise PlanError(f"{what} needs finite coefficients, at least one row and one column")
        return sparse
    dense = array_of(matrix, f"the matrix of {what}", PlanError).copy()
    if dense.ndim != 2 or min(dense.shape) < 1 or not np.isfinite(dense).all():
        raise PlanError(f"{what} must be a matrix of finite numbers, one row a query, not of shape {dense.shape}")
    return dense


def as_workload(workload: Any, domain: int) -> Workload:
    """A workload over this domain, from a workload or a matrix.

    PlanError when the shapes differ.
    """
    found = workload if isinstance(workload, Workload) else Matrix(workload)
    if found.domain != domain:
        raise PlanError(f"the workload is over {found.domain} bins, the strategy over {domain}: make them agree")
    return found


# --- products and stacks of workloads ---------------------------------------------------------------------------------


class Kronecker(Workload):
    """Products of one query over each of several attributes: `W_1 ⊗ W_2 ⊗ …`.

    Bins and queries are numbered with the last attribute fastest.

    Examples
    --------
    >>> from wpinq.histograms import Bins, Prefixes
    >>> Kronecker(Prefixes(2), Bins(3))
    <Kronecker: 6 queries over 6 bins>
    """

    def __init__(self, *factors: Workload) -> None:
        if not factors or not all(isinstance(factor, Workload) for factor in factors):
            raise PlanError("a Kronecker workload needs a workload for each attribute")
        self.factors = factors
        self.sizes = tuple(factor.domain for factor in factors)
        self.domain = check_domain_size(prod(self.sizes))
        self.queries = prod(factor.queries for factor in factors)

    def answer(self, histogram: Floats) -> Floats:
        return along_axes(histogram, ((factor.domain, factor.answer) for factor in self.factors))

    def transpose(self, answers: Floats) -> Floats:
        return along_axes(answers, ((factor.queries, factor.transpose) for factor in self.factors))

    def gram(self, vectors: Floats) -> Floats:
        return along_axes(vectors, ((factor.domain, factor.gram) for factor in self.factors))

    def gram_diagonal(self) -> Floats:
        return flat_product(factor.gram_diagonal() for factor in self.factors)


class Stacked(Workload):
    """Several workloads over the same bins as one: their queries one after another.

    Examples
    --------
    >>> from wpinq.histograms import Bins, Prefixes
    >>> Stacked(Bins(3), Prefixes(3)).queries
    6
    """

    def __init__(self, *workloads: Workload) -> None:
        if not workloads or not all(isinstance(workload, Workload) for workload in workloads):
            raise PlanError("a stack of workloads needs one workload at least")
        if len({workload.domain for workload in workloads}) > 1:
            raise PlanError("the workloads of a stack must be over the same bins")
        self.workloads = workloads
        self.domain = workloads[0].domain
        self.queries = sum(workload.queries for workload in workloads)

    def answer(self, histogram: Floats) -> Floats:
        return np.concatenate([workload.answer(histogram) for workload in self.workloads])

    def transpose(self, answers: Floats) -> Floats:
        parts = np.split(np.asarray(answers), np.cumsum([workload.queries for workload in self.workloads])[:-1])
        pairs = zip(self.workloads, parts, strict=True)
        return np.asarray(sum(workload.transpose(part) for workload, part in pairs))

    def gram(self, vectors: Floats) -> Floats:
        return np.asarray(sum(workload.gram(vectors) for workload in self.workloads))

    def gram_diagonal(self) -> Floats:
        return np.asarray(sum(workload.gram_diagonal() for workload in self.workloads))


# --- workloads that are marginals, recognised by their Gram matrices --------------------------------------------------

# The queries of one attribute are marginal where `WᵀW = a·I + b·11ᵀ`: bins have (1, 0), a total has (0, 1). A product
# of
# such is, in what its error depends on, the marginals of all subsets of its attributes, with the products of a inside
# and of b outside as weights.

#: Numbers of answers to all unit vectors, where a Gram matrix is looked at as such.
_LARGEST_GRAM = 1 << 20
_EQUAL = 1e-9


def flattened(workload: Workload) -> Iterator[Workload]:
    """The parts of a stack, and of stacks in it; another workload by itself."""
    if isinstance(workload, Stacked):
        for part in workload.workloads:
            yield from flattened(part)
    else:
        yield workload


def stacked_products(workload: Workload) -> list[Kronecker] | None:
    """The parts of a stack of Kronecker workloads over the same attributes, two or more.

    None for another workload.
    """
    every = list(flattened(workload))
    parts = [part for part in every if isinstance(part, Kronecker)]
    alike = isinstance(workload, Stacked) and len(parts) == len(every) and len({part.sizes for part in parts}) == 1
    return parts if alike and len(parts[0].sizes) > 1 else None


def marginal_weights(workload: Workload) -> tuple[tuple[int, ...], dict[View, float]] | None:
    """The sizes of the attributes, and the weight of each marginal in a stack of products.

    `‖W A⁺‖²` is the sum over the marginals of their weight times the variance of their cells. None for a workload that
    is no stack of two products or more, over the same attributes, of bins and totals.

    Examples
    --------
    >>> total = Matrix([[1, 1, 1]])
    >>> marginal_weights(Stacked(Kronecker(Bins(2), total), Kronecker(Bins(2), Bins(3))))
    ((2, 3), {(0,): 1.0, (0, 1): 1.0})
    """
    parts = stacked_products(workload)
    if parts is None:
        return None
    found: dict[View, float] = {}
    for part in parts:
        factors = [_factor(factor) for factor in part.factors]
        known = [factor for factor in factors if factor is not None]
        if len(known) < len(factors):
            return None
        # 1 where the attribute is inside
        choices = [[j for j, weight in enumerate((outside, inside)) if weight] for inside, outside in known]
        if prod(map(len, choices)) + len(found) > MOST_VIEWS:
            raise PlanError(f"the workload stands for more than {MOST_VIEWS} marginals: ask for fewer")
        for chosen in product(*choices):
            view = tuple(i for i, inside in enumerate(chosen) if inside)
            weight = prod(pair[0] if inside else pair[1] for pair, inside in zip(known, chosen, strict=True))
            found[view] = found.get(view, 0.0) + weight
    return (parts[0].sizes, found) if found else None


def _factor(workload: Workload) -> tuple[float, float] | None:
    """The a and b of one attribute's queries, both at least 0; None where they are not marginal."""
    size = workload.domain
    if isinstance(workload, Stacked):
        pairs = [_factor(part) for part in workload.workloads]
        known = [pair for pair in pairs if pair is not None]
        return (sum(a for a, _ in known), sum(b for _, b in known)) if len(known) == len(pairs) else None
    if isinstance(workload, Bins):
        return (1.0, 0.0) if size > 1 else (0.0, 1.0)
    if workload.queries == 1 and isinstance(workload, (Ranges, Matrix)):
        row = workload.gram_diagonal()
        signs = workload.answer(np.ones(size))[0] ** 2
        alike = row.max() - row.min() <= _EQUAL * row.max() and abs(signs - size**2 * row[0]) <= _EQUAL * signs
        return (0.0, float(row[0])) if alike and row[0] > 0 else None
    if size * max(size, workload.queries) > _LARGEST_GRAM:
        return None
    gram = workload.gram(np.eye(size))
    apart = float(gram[0, 1]) if size > 1 else float(gram[0, 0])
    same = float(gram[0, 0]) - apart
    if np.abs(gram - apart - same * np.eye(size)).max() > _EQUAL * np.abs(gram).max():
        return None
    slack = _EQUAL * float(np.abs(gram).max())
    if apart < -slack or same < -slack:
        return None
    return (same if same > slack else 0.0, apart if apart > slack else 0.0)
