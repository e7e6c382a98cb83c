"""Matrix mechanism: a strategy given as a matrix."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from wpinq import functions as F
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy
from wpinq.histograms.workload import Workload, check_matrix
from wpinq.inference.checks import blocks, units
from wpinq.inference.least_squares import least_squares
from wpinq.runtime.arrays import Floats

_GRID_BITS = 48
_SLACK_ROW = -1


class MatrixMechanism(LinearStrategy):
    """The rows of a given matrix A as queries. Sensitivity ‖A‖₁, the largest column norm.

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
        kind = "sparse" if self.sparse else "dense"
        return f"<MatrixMechanism: {self.matrix.shape[0]} × {self.domain}, {kind}>"

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
        if vectors.ndim == 1:
            return least_squares(matrix.tocsr(), vectors)
        flat = vectors.reshape(len(vectors), -1)
        solved = np.stack([least_squares(matrix.tocsr(), column) for column in flat.T], axis=1)
        return solved.reshape(len(solved), *vectors.shape[1:])

    @property
    def complete(self) -> bool:
        return False  # not known: `check` looks at each workload

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
