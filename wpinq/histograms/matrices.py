"""Strategies given by their coefficients: any matrix, and one optimised for a workload."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from wpinq import functions as F
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.histograms.attributes import Marginals, Product
from wpinq.histograms.strategy import Coefficient, LinearStrategy
from wpinq.histograms.workload import Kronecker, Stacked, Workload, check_matrix, marginal_weights, stacked_products
from wpinq.inference.checks import MOST_BINS, along, blocks, count_of, units
from wpinq.inference.least_squares import least_squares, minimise, single_blas_thread
from wpinq.runtime.arrays import Floats

_GRID_BITS = 48
_SLACK_ROW = -1


class MatrixMechanism(LinearStrategy):
    """The rows of a given matrix A as queries.

    Sensitivity ‖A‖₁, the largest column norm.

    `SelectMany(bin → column of A / ‖A‖₁)`: record i weighs `(A x)_i / ‖A‖₁`. Columns of smaller norm give what
    they lack to a record that is not released. The estimate is least squares, `A⁺ y`.

    Parameters
    ----------
    matrix : numpy array, scipy sparse matrix or scipy LinearOperator, shape (m, n)
        The strategy: finite, real, not all 0. An operator is applied to every bin once and held as a sparse matrix.
        Coefficients that are no integers are rounded to 48 bits below ‖A‖₁, so that sums are exact: `matrix` is what
        is asked.
    workload : Workload or matrix, optional
        Checked to lie in the row space of A.

    Notes
    -----
    The query holds a table of the nonzero coefficients: m · n numbers, or twice the domain times the most
    nonzeros of a column if that is less, for an operator too. Structure that needs no table is given as such: Kronecker
    products as `Product` of a strategy for each attribute, trees as `Hierarchical`, Haar coefficients as `Wavelet`.

    Source: Li et al., *Optimizing linear counting queries under differential privacy*, PODS 2010.

    Examples
    --------
    >>> strategy = MatrixMechanism([[1, 1, 1], [1, 0, 0], [0, 0, 2]])
    >>> strategy.sensitivity
    Fraction(3, 1)
    >>> strategy.infer([6, 1, 6]).round(6)
    array([1., 2., 3.])
    >>> from scipy.sparse.linalg import LinearOperator
    >>> prefixes = LinearOperator((3, 3), matvec=np.cumsum, dtype=np.float64)
    >>> MatrixMechanism(prefixes).infer([1, 3, 6]).round(6)
    array([1., 2., 3.])
    """

    complete: ClassVar[bool] = False  # not known: `check` looks at each workload

    def __init__(self, matrix: Any, workload: Any | None = None) -> None:
        given = check_matrix(_columns(matrix) if hasattr(matrix, "matmat") else matrix, "a strategy")
        self.sparse = hasattr(given, "tocsr")
        data = given.data if self.sparse else given
        norms = np.asarray(abs(given).sum(axis=0), dtype=np.float64).ravel()
        largest = float(norms.max())
        if not 0 < largest < 2.0**500:
            raise PlanError("a strategy needs a coefficient that is not 0, and none beyond 2**500")
        if not (np.rint(data) == data).all() or largest >= 2.0**_GRID_BITS:
            grid = 2.0 ** (math.frexp(largest)[1] - _GRID_BITS)
            data[...] = np.rint(data / grid) * grid
            norms = np.asarray(abs(given).sum(axis=0), dtype=np.float64).ravel()
        if self.sparse:
            given.eliminate_zeros()
        self.matrix = given
        self.domain = given.shape[1]
        self._norms = norms  # exact: integers, or multiples of the grid below 2**53 of it
        if workload is not None:
            self.check(workload)

    def __repr__(self) -> str:
        return f"<MatrixMechanism: {self.matrix.shape[0]} × {self.domain}, {'sparse' if self.sparse else 'dense'}>"

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(float(self._norms.max()))

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.matrix.shape[0]))

    @property
    def _factor(self) -> float:
        # SelectMany divides by the norm from 1 on: a power of two, which rounds nothing, brings a smaller one there
        return 2.0 ** max(0, 1 - math.frexp(float(self.sensitivity))[1])

    @property
    def norm(self) -> Fraction:
        return self.sensitivity * Fraction(self._factor)

    def elements(self, bin: Any) -> list[Coefficient]:
        from scipy.sparse import csc_matrix

        largest, factor = float(self._norms.max()), self._factor
        lacking = ((largest - self._norms) * factor).tolist()
        slack = [(_SLACK_ROW, F.element(lacking, bin))] if any(lacking) else []
        columns = csc_matrix(self.matrix)
        counts = np.diff(columns.indptr)
        rows, most = self.matrix.shape[0], int(counts.max())
        if 2 * most >= rows:
            dense = self.matrix.toarray() if self.sparse else self.matrix
            return [(i, F.element((dense[i] * factor).tolist(), bin)) for i in range(rows)] + slack
        places = np.full((most, self.domain), _SLACK_ROW, dtype=np.int64)
        weights = np.zeros((most, self.domain))
        column = np.repeat(np.arange(self.domain), counts)
        within = np.arange(len(column)) - columns.indptr[column]
        places[within, column], weights[within, column] = columns.indices, columns.data * factor
        tables = zip(places.tolist(), weights.tolist(), strict=True)
        return [(F.element(place, bin), F.element(weight, bin)) for place, weight in tables] + slack

    def apply(self, histogram: Floats) -> Floats:
        return np.asarray(self.matrix @ histogram)

    def transpose(self, answers: Floats) -> Floats:
        return np.asarray(self.matrix.T @ answers)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.pinv(self.matrix, rcond=1e-10))

    def estimate(self, answers: Floats) -> Floats:
        return self._iterate(self.matrix, answers) if self.sparse else np.asarray(self._inverse @ answers)

    def coefficients(self, queries: Floats) -> Floats:
        return self._iterate(self.matrix.T, queries) if self.sparse else np.asarray(self._inverse.T @ queries)

    @staticmethod
    def _iterate(matrix: Any, vectors: Floats) -> Floats:
        flat = vectors.reshape(len(vectors), -1)
        solved = np.stack([least_squares(matrix.tocsr(), column) for column in flat.T], axis=1)
        return solved.reshape(len(solved), *vectors.shape[1:])

    def squared_norm(self, workload: Workload) -> float:
        return super().squared_norm(self.check(workload))


def _columns(operator: Any) -> Any:
    """The sparse matrix of a linear operator, applied to some bins at a time."""
    from scipy.sparse import csc_matrix, hstack

    rows, domain = operator.shape
    if np.issubdtype(operator.dtype, np.complexfloating):
        raise PlanError("a strategy has real coefficients: give the real part of a complex operator")
    found = []
    for start, stop in blocks(domain):
        try:
            block = np.asarray(operator.matmat(units(domain, start, stop)))
        except Exception as error:
            raise PlanError(
                f"the operator cannot be applied to bins {start} to {stop - 1} "
                f"({type(error).__name__}): it must map vectors of {domain} numbers to vectors of {rows}"
            ) from error
        if np.iscomplexobj(block):
            raise PlanError("a strategy has real coefficients: the operator says so, but gives complex numbers")
        if block.shape != (rows, stop - start):
            raise PlanError(f"the operator says it has {rows} rows, but gives arrays of shape {block.shape}")
        found.append(csc_matrix(block))
    return hstack(found, format="csr") if found else np.zeros(operator.shape)


# --- every bin, and a few weighted sums of all bins that suit a workload best -----------------------------------------

_GRID = 2.0**-20  # coarse enough for products of two coefficients and a share to round nothing
_LARGEST_WIDTH = 2.0**12  # where sums alone would do, as for a total, the best lie at infinity: the loss cancels there
_TOO_WIDE = 1e10  # far above every loss, and finite: the line search interpolates between values
_STEPS = 100  # of each start
_START_BRANCHING = 8  # the best start of those tried on all ranges, at 1024 and 4096 bins


class PIdentity(LinearStrategy):
    """The strategy `[I; Θ] · D` with D so that every column sums to 1.

    Sensitivity 1.

    Every bin is asked, and p weighted sums of all bins; the larger Θ, the more of the weight goes to the sums.

    Parameters
    ----------
    theta : array-like, shape (p, n)
        Finite, at least 0: `optimise` finds it. The coefficients `Θ D` are rounded down to multiples of 2⁻²⁰, and D
        gets what is left of 1, so that columns sum to 1 exactly.

    Notes
    -----
    Source: McKenna, Miklau, Hay, Machanavajjhala, *Optimizing error of high-dimensional statistical queries under
    differential privacy* (HDMM), PVLDB 11(10), 2018, section 5.2.

    Examples
    --------
    >>> strategy = PIdentity([[1.0, 1.0]])
    >>> strategy.apply(np.array([1.0, 2.0]))
    array([0.5, 1. , 1.5])
    >>> strategy.infer([0.5, 1.0, 1.5]).round(6)
    array([1., 2.])
    """

    def __init__(self, theta: Any) -> None:
        given = check_matrix(theta, "an optimised strategy")
        if not isinstance(given, np.ndarray) or (given < 0).any():
            raise PlanError("an optimised strategy needs a dense matrix of coefficients of at least 0")
        self.sums = np.floor(given / (1 + given.sum(axis=0)) / _GRID) * _GRID
        self.diagonal = 1.0 - self.sums.sum(axis=0)
        self.domain = given.shape[1]
        if (self.diagonal <= 0).any():
            raise PlanError("the coefficients leave no weight to the bins: make them smaller")

    def __repr__(self) -> str:
        return f"<PIdentity: {len(self.sums)} sums over {self.domain} bins>"

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        return tuple(range(self.domain + len(self.sums)))

    def elements(self, bin: Any) -> list[Coefficient]:
        rows = enumerate(self.sums.tolist(), self.domain)
        return [(bin, F.element(self.diagonal.tolist(), bin)), *((i, F.element(row, bin)) for i, row in rows)]

    def apply(self, histogram: Floats) -> Floats:
        return np.concatenate((histogram * along(self.diagonal, histogram), np.tensordot(self.sums, histogram, 1)))

    def transpose(self, answers: Floats) -> Floats:
        bins, sums = answers[: self.domain], answers[self.domain :]
        return np.asarray(bins * along(self.diagonal, bins) + np.tensordot(self.sums.T, sums, 1))

    @cached_property
    def _small(self) -> tuple[Floats, Floats]:
        theta = self.sums / self.diagonal
        return theta, np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)

    def solve(self, vectors: Floats) -> Floats:
        """`(AᵀA)⁻¹ v`, by Woodbury: `D⁻¹ (I − Θᵀ (I + ΘΘᵀ)⁻¹ Θ) D⁻¹ v`."""
        theta, inverse = self._small
        widths = along(1 / self.diagonal, vectors)
        scaled = vectors * widths
        scaled = scaled - np.tensordot(theta.T, np.tensordot(inverse, np.tensordot(theta, scaled, 1), 1), 1)
        return np.asarray(scaled * widths)

    def squared_norm(self, workload: Workload) -> float:
        theta, _ = self._small
        return _loss(theta, 1 / self.diagonal, workload)[0]


def _loss(theta: Floats, widths: Floats, workload: Workload) -> tuple[float, Floats, Floats, Floats]:
    """`tr[(AᵀA)⁻¹ WᵀW]` for A = [I; Θ] D with D = 1/widths, and what its gradient needs."""
    inverse = np.asarray(np.linalg.inv(np.eye(len(theta)) + theta @ theta.T), dtype=np.float64)
    q = inverse @ theta
    v = workload.gram((theta * widths).T)
    diagonal = workload.gram_diagonal()
    loss = float((widths**2 * diagonal).sum() - ((widths[:, None] * v) * q.T).sum())
    return loss, inverse, q, v


def optimise(
    workload: Workload, sums: int | None = None, restarts: int = 1, seed: int = 0
) -> LinearStrategy | Marginals:
    """The p-identity strategy of least expected error for a workload, by quasi-Newton steps.

    `argmin_{Θ ≥ 0} ‖W A(Θ)⁺‖_F²`; a local optimum, the best of some restarts. A Kronecker workload gets the product of
    the optimised strategies of its factors, which is what its error, a product, asks for; a `Stacked` one of several
    Kronecker workloads the product for the stacks of their factors. A stack of products of bins and totals is one of
    marginals, and gets `Marginals` planned for its total error.

    Parameters
    ----------
    workload : Workload
        The queries; they are public.
    sums : int, optional
        The number of sums p, at least 1; by default the domain over 16, between 1 and 64.
    restarts, seed : int
        Starts, at least 1, the first near a tree of ranges and the others random, and the seed they are drawn with:
        equal seeds give equal strategies.

    Returns
    -------
    LinearStrategy
        A `PIdentity`, a `Product` of such, or `Marginals`.

    Notes
    -----
    It reads the workload, never data. Time of a step: `O(n p²)` and a product with `WᵀW`.

    Source: McKenna et al., PVLDB 11(10), 2018, sections 5.2 and 6.1 (OPT₀, OPT_⊗).

    Examples
    --------
    >>> from wpinq.histograms import AllRanges, Identity
    >>> workload = AllRanges(64)
    >>> best = optimise(workload)
    >>> best.expected_error(workload, 1) < 0.8 * Identity(64).expected_error(workload, 1)
    True
    """
    if not isinstance(workload, Workload):
        raise PlanError("a strategy is optimised for a workload: give Matrix(m) for a matrix")
    if sums is not None:
        count_of(sums, "the number of sums", 1, MOST_BINS // workload.domain, PlanError)
    count_of(restarts, "the number of restarts", 1, error=PlanError)
    count_of(seed, "a seed", 0, error=PlanError)
    marginals = marginal_weights(workload)
    if marginals is not None:
        return Marginals(*marginals, objective="total")
    with single_blas_thread():
        return _optimised(workload, sums, restarts, seed)


def _optimised(workload: Workload, sums: int | None, restarts: int, seed: int) -> LinearStrategy:
    """For a workload that is no stack of marginals."""
    if isinstance(workload, Kronecker):
        return Product(*(_optimised(factor, sums, restarts, seed) for factor in workload.factors))
    parts = stacked_products(workload)
    if parts is not None and len(parts) > 1:
        stacks = (Stacked(*factors) for factors in zip(*(part.factors for part in parts), strict=True))
        return Product(*(_optimised(stack, sums, restarts, seed) for stack in stacks))
    count = max(1, min(64, workload.domain // 16)) if sums is None else sums
    rng = np.random.default_rng(seed)
    shape = (count, workload.domain)
    size = float(workload.gram_diagonal().sum())
    if size <= 0:
        raise PlanError("every query of the workload is 0: nothing can be optimised")

    def objective(flat: Floats) -> tuple[float, Floats]:
        root = flat.reshape(shape)
        theta = root**2  # keeps it non-negative without bounds, which cost the optimiser most of its time
        widths = 1 + theta.sum(axis=0)
        if not widths.max() <= _LARGEST_WIDTH:
            return _TOO_WIDE, flat
        loss, inverse, q, v = _loss(theta, widths, workload)
        k = (widths[:, None] * (v @ inverse)).T
        through_theta = -2 * (k - (k @ theta.T) @ q)
        through_widths = 2 * (workload.gram_diagonal() * widths - (v * q.T).sum(axis=1))
        return loss / size, (2 * root * (through_theta + through_widths) / size).ravel()

    starts = [rng.uniform(0.0, 0.1, shape) for _ in range(restarts)]
    starts[0] += _blocks(*shape)
    found = [minimise(objective, np.sqrt(start).ravel(), _STEPS) for start in starts]
    root, _ = min(found, key=lambda pair: pair[1])
    return PIdentity(root.reshape(shape) ** 2)


def _blocks(sums: int, domain: int) -> Floats:
    """The first rows of a tree of ranges with branching factor 8, from the whole domain down."""
    rows = np.zeros((sums, domain))
    row, size = 0, domain
    while row < sums and size > 1:
        for start in range(0, domain, size):
            if row < sums:
                rows[row, start : start + size] = 1.0
                row += 1
        size = -(-size // _START_BRANCHING)
    return rows
