"""The matrix mechanism with a dense, a sparse and a structured matrix: one strategy in three forms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_matrix
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import PlanError
from wpinq.histograms import AllRanges, Bins, Hierarchical, Identity, MatrixMechanism, Prefixes, Product, Ranges

WIDE = np.array([[1.0, 1, 1, 1, 0], [0, 0, 2, -1, 0], [1, 1, 0, 0, 0.375]])
RNG = np.random.default_rng(8)
MATRICES = {
    "fewer rows than bins": WIDE,
    "determined": np.vstack([WIDE, np.eye(5)]),
    "real numbers": RNG.normal(size=(7, 5)),
    "many bins": np.vstack([np.ones((1, 140)), np.eye(140)[::20], np.tri(140)[::50]]),
}
FORMS = {
    "dense": lambda a: a,
    "nested lists": lambda a: a.tolist(),
    "csr": csr_matrix,
    "csc": csc_matrix,
    "coo": coo_array,
    "operator": aslinearoperator,
    "operator of vectors": lambda a: LinearOperator(a.shape, matvec=lambda x: a @ x, dtype=float),
}


@for_each("form", FORMS)
@for_each("name", MATRICES)
def test_every_form_is_the_same_strategy(name, form):
    a = MATRICES[name]
    strategy, dense = MatrixMechanism(FORMS[form](a)), MatrixMechanism(a)
    n = strategy.domain
    assert strategy.sensitivity == dense.sensitivity
    assert strategy.sensitivity == pytest.approx(float(np.abs(a).sum(axis=0).max()))
    assert strategy.keys == tuple(range(len(a)))
    np.testing.assert_allclose(strategy.apply(np.eye(n)), a, atol=1e-13)
    np.testing.assert_allclose(strategy.transpose(np.eye(len(a))), a.T, atol=1e-13)
    noisy = np.random.default_rng(1).normal(size=len(a))
    np.testing.assert_allclose(strategy.infer(noisy), np.linalg.pinv(a) @ noisy, atol=1e-6)
    workload = np.random.default_rng(2).normal(size=(4, len(a))) @ a
    norm = ((workload @ np.linalg.pinv(a)) ** 2).sum()
    wanted = 2 * float(dense.sensitivity) ** 2 / 0.25 * norm
    assert strategy.expected_error(workload, 0.5) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_queries_of_every_form_weigh_the_same(form):
    bins = wp.source("bins", int)
    for name in ("fewer rows than bins", "determined"):
        strategy = MatrixMechanism(FORMS[form](MATRICES[name]))
        for column in range(strategy.domain):
            weights = wp.evaluate(strategy.query(bins), {"bins": [column]}, exact=True)
            released = [Fraction(weights[key]) * strategy.sensitivity for key in strategy.keys]
            assert released == [Fraction(float(w)) for w in MATRICES[name][:, column]]


@pytest.mark.parametrize("form", FORMS)
def test_workloads_outside_of_the_row_space_are_refused_in_every_form(form):
    given = FORMS[form](WIDE)
    for workload in (Bins(5), AllRanges(5), Prefixes(5), Ranges(5, [0], [3]), [[0, 0, 0, 0, 1]], csr_matrix(np.eye(5))):
        with pytest.raises(PlanError, match="row space"):
            MatrixMechanism(given, workload)
        with pytest.raises(PlanError, match="row space"):
            MatrixMechanism(given).expected_error(workload, 1)
    inside = np.random.default_rng(3).normal(size=(2, 3)) @ WIDE
    MatrixMechanism(given, inside)
    slightly = inside + np.array([[0, 0, 0, 0, 1e-2], [0] * 5])
    with pytest.raises(PlanError, match="row space"):
        MatrixMechanism(given, slightly)
    MatrixMechanism(given, Ranges(5, [0], [4]))
    MatrixMechanism(FORMS[form](MATRICES["determined"]), AllRanges(5))


def test_intervals_and_errors_outside_of_the_row_space_are_refused():
    flat = MatrixMechanism([[1, 1]])
    for strategy in (flat, Product(flat, Identity(2)), Product(Identity(2), flat)):
        with pytest.raises(PlanError, match="row space"):
            strategy.intervals(np.zeros(strategy.size), Bins(strategy.domain), epsilon=1)
        with pytest.raises(PlanError, match="row space"):
            strategy.expected_error(Bins(strategy.domain), 1)
    inside = [[1, 1, 0, 0], [0, 0, 3, 3]]
    assert Product(Identity(2), flat).expected_error(inside, 1) == pytest.approx(2 * 10)


def test_an_operator_whose_matrix_is_structured():
    prefixes = LinearOperator((6, 6), matvec=np.cumsum, dtype=float)
    strategy = MatrixMechanism(prefixes, AllRanges(6))
    assert strategy.sensitivity == 6
    np.testing.assert_allclose(strategy.infer(np.cumsum(np.arange(6.0))), np.arange(6.0), atol=1e-6)
    # a Kronecker product is a Product, which asks the same with no table
    first, second = Hierarchical(3), Hierarchical(2)
    a = np.kron(first.apply(np.eye(3)), second.apply(np.eye(2)))
    product, operator = Product(first, second), MatrixMechanism(aslinearoperator(a))
    assert product.sensitivity == operator.sensitivity
    np.testing.assert_allclose(product.apply(np.eye(6)), operator.apply(np.eye(6)))
    assert product.expected_error(Bins(6), 1) == pytest.approx(operator.expected_error(Bins(6), 1), rel=1e-6)


def test_bad_operators_are_refused():
    def refused(operator, match):
        with pytest.raises(PlanError, match=match):
            MatrixMechanism(operator)

    refused(LinearOperator((2, 2), matvec=lambda x: 1j * x, dtype=complex), "complex")
    refused(LinearOperator((2, 2), matvec=lambda x: 1j * x, dtype=float), "gives complex")
    refused(LinearOperator((2, 3), matvec=lambda x: x, dtype=float), "vectors of 3 numbers to vectors of 2")
    refused(LinearOperator((2, 2), matvec=lambda x: x, matmat=lambda x: x[:1], dtype=float), "shape")
    refused(LinearOperator((2, 2), matvec=lambda x: x * np.nan, dtype=float), "finite")
    refused(LinearOperator((2, 2), matvec=lambda x: 0 * x, dtype=float), "not 0")
    refused(LinearOperator((0, 2), matvec=lambda x: x[:0], dtype=float), "at least one row")
    refused(LinearOperator((2, 0), matvec=lambda x: np.zeros(2), dtype=float), "shape")
