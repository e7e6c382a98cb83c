"""Workloads: the linear queries that a histogram is wanted for. Public, and never held as a dense matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, PlanError
from wpinq.histograms.inference.arrays import Floats, Integers
from wpinq.histograms.inference.ranges import check_ranges


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
        total = np.zeros(self.domain)
        for start in range(0, self.queries, 256):
            block = np.zeros((self.queries, min(256, self.queries - start)))
            block[np.arange(start, start + block.shape[1]), np.arange(block.shape[1])] = 1.0
            total += (self.transpose(block) ** 2).sum(axis=1)
        return total

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.queries} queries over {self.domain} bins>"


def _columns(values: Floats, factor: Any) -> Any:
    return np.reshape(factor, (-1,) + (1,) * (values.ndim - 1))


def _prefix(values: Floats) -> Floats:
    return np.concatenate((np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)))


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
            self.starts, self.stops = check_ranges(starts, stops, domain)
        except AnswersError as reason:
            raise PlanError(str(reason)) from None
        self.queries = len(self.starts)
        if not self.queries:
            raise PlanError("a workload needs at least one query")

    def answer(self, histogram: Floats) -> Floats:
        prefix = _prefix(histogram)
        return np.asarray(prefix[self.stops] - prefix[self.starts])

    def transpose(self, answers: Floats) -> Floats:
        marks = np.zeros((self.domain + 1, *answers.shape[1:]))
        np.add.at(marks, self.starts, answers)
        np.subtract.at(marks, self.stops, answers)
        return np.asarray(np.cumsum(marks, axis=0)[:-1])

    def gram_diagonal(self) -> Floats:
        return self.transpose(np.ones(self.queries))


class Bins(Workload):
    """Every bin by itself: W is the identity.

    Examples
    --------
    >>> Bins(3)
    <Bins: 3 queries over 3 bins>
    """

    def __init__(self, domain: int) -> None:
        self.domain = self.queries = check_domain_size(domain)

    def answer(self, histogram: Floats) -> Floats:
        return np.asarray(histogram)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(answers)

    def gram_diagonal(self) -> Floats:
        return np.ones(self.domain)


class Prefixes(Workload):
    """The cumulative counts, `Σ_{j ≤ i} x_j` for every i.

    Examples
    --------
    >>> Prefixes(3).answer(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """

    def __init__(self, domain: int) -> None:
        self.domain = self.queries = check_domain_size(domain)

    def answer(self, histogram: Floats) -> Floats:
        return np.asarray(np.cumsum(histogram, axis=0))

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(np.cumsum(answers[::-1], axis=0)[::-1])

    def gram_diagonal(self) -> Floats:
        return np.arange(self.domain, 0, -1, dtype=np.float64)


class AllRanges(Workload):
    """Every non-empty range, all `n(n + 1)/2` of them, in order of start, then stop.

    Examples
    --------
    >>> AllRanges(3).queries
    6
    """

    def __init__(self, domain: int) -> None:
        self.domain = check_domain_size(domain)
        self.queries = domain * (domain + 1) // 2

    def _ends(self) -> tuple[Integers, Integers]:
        starts, stops = np.triu_indices(self.domain)
        return starts, stops + 1

    def answer(self, histogram: Floats) -> Floats:
        return Ranges(self.domain, *self._ends()).answer(histogram)

    def transpose(self, answers: Floats) -> Floats:
        return Ranges(self.domain, *self._ends()).transpose(answers)

    def gram(self, vectors: Floats) -> Floats:
        # bins i and j lie together in (min(i, j) + 1)(n − max(i, j)) ranges
        up = _columns(vectors, np.arange(1.0, self.domain + 1))
        down = up[::-1]
        before = np.cumsum(up * vectors, axis=0)
        after = np.cumsum((down * vectors)[::-1], axis=0)[::-1]
        return np.asarray(down * before + up * (after - down * vectors))

    def gram_diagonal(self) -> Floats:
        up = np.arange(1.0, self.domain + 1)
        return np.asarray(up * up[::-1])


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


class Kronecker(Workload):
    """Products of one query over each of several attributes: `W_1 ⊗ W_2 ⊗ …`.

    Bins and queries are numbered with the last attribute fastest.

    Examples
    --------
    >>> Kronecker(Prefixes(2), Bins(3))
    <Kronecker: 6 queries over 6 bins>
    """

    def __init__(self, *factors: Workload) -> None:
        if not factors or not all(isinstance(factor, Workload) for factor in factors):
            raise PlanError("a Kronecker workload needs a workload for each attribute")
        self.factors = factors
        self.domain = int(np.prod([factor.domain for factor in factors]))
        self.queries = int(np.prod([factor.queries for factor in factors]))

    def answer(self, histogram: Floats) -> Floats:
        return along_axes(histogram, [factor.domain for factor in self.factors], [f.answer for f in self.factors])

    def transpose(self, answers: Floats) -> Floats:
        return along_axes(answers, [factor.queries for factor in self.factors], [f.transpose for f in self.factors])

    def gram(self, vectors: Floats) -> Floats:
        return along_axes(vectors, [factor.domain for factor in self.factors], [f.gram for f in self.factors])

    def gram_diagonal(self) -> Floats:
        diagonal = np.ones(1)
        for factor in self.factors:
            diagonal = np.outer(diagonal, factor.gram_diagonal()).ravel()
        return diagonal


def along_axes(values: Floats, sizes: list[int], functions: list[Any]) -> Floats:
    """A function of the first axis applied along each attribute of a flattened product; further axes are kept."""
    cube = np.reshape(values, (*sizes, *values.shape[1:]))
    for axis, function in enumerate(functions):
        front = np.moveaxis(cube, axis, 0)
        result = function(front.reshape(len(front), -1))
        cube = np.moveaxis(result.reshape(len(result), *front.shape[1:]), 0, axis)
    return np.reshape(cube, (-1, *values.shape[1:]))


def check_domain_size(domain: object) -> int:
    """A number of bins, or PlanError."""
    if isinstance(domain, bool) or not isinstance(domain, int) or domain < 1:
        raise PlanError(f"a domain is a number of bins, an integer of at least 1, not {domain!r}")
    return domain


def check_matrix(matrix: Any, what: str) -> Any:
    """A finite matrix of float64, dense or sparse (CSR), with a row and a column at least, or PlanError."""
    if hasattr(matrix, "tocsr"):
        sparse = matrix.tocsr().astype(np.float64)  # a copy
        sparse.sum_duplicates()
        if min(sparse.shape) < 1 or not np.isfinite(sparse.data).all():
            raise PlanError(f"{what} needs finite coefficients, at least one row and one column")
        return sparse
    try:
        dense = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(f"{what} must be a matrix of numbers, one row a query") from None
    if dense.ndim != 2 or min(dense.shape) < 1 or not np.isfinite(dense).all():
        raise PlanError(f"{what} must be a matrix of finite numbers, one row a query, not of shape {dense.shape}")
    return dense


def as_workload(workload: Any, domain: int) -> Workload:
    """A workload over this domain, from a workload or a matrix; PlanError when the shapes differ."""
    found = workload if isinstance(workload, Workload) else Matrix(workload)
    if found.domain != domain:
        raise PlanError(f"the workload is over {found.domain} bins, the strategy over {domain}: make them agree")
    return found
