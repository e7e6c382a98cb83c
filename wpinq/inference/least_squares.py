"""General least squares: dense by pseudo-inverse, sparse and large by LSMR."""

from __future__ import annotations

from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import matrix_of, positive, vector
from wpinq.runtime.arrays import Floats


def least_squares(matrix: Any, values: Any, tolerance: float = 1e-12) -> Floats:
    """The histogram of least norm among those that fit noisy answers best, `A⁺ y`.

    Parameters
    ----------
    matrix : numpy array, scipy sparse matrix or LinearOperator, shape (m, n)
        The strategy A.
    values : array-like, shape (m,)
        The noisy answers y.
    tolerance : float
        For sparse matrices and operators: LSMR's relative tolerance. AnswersError when it is not reached.

    Notes
    -----
    With noise of one scale in all answers this is the best linear unbiased estimate (Gauss and Markov) of every query
    in the row space of A.

    Source: Li et al., *Optimizing linear counting queries under differential privacy*, PODS 2010, section 3.

    Examples
    --------
    >>> least_squares(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), [3.0, 1.0, 1.0]).round(4)
    array([1.3333, 1.3333])
    """
    numbers = vector(values, "values")
    matrix = matrix_of(matrix, len(numbers))
    positive(tolerance, "the tolerance")
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.linalg.lstsq(matrix, numbers, rcond=None)[0], dtype=np.float64)
    from scipy.sparse.linalg import lsmr

    limit = 20 * min(matrix.shape) + 1000
    found = lsmr(matrix, numbers, atol=tolerance, btol=tolerance, conlim=0.0, maxiter=limit)
    if found[1] == 7:
        raise AnswersError(f"least squares did not converge in {limit} steps: the strategy is nearly singular")
    return np.asarray(found[0], dtype=np.float64)
