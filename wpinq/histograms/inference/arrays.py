"""Public arrays: released numbers come in here, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wpinq.errors import AnswersError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def vector(values: Any, what: str, length: int | None = None) -> Floats:
    """One row of finite numbers, as float64.

    Parameters
    ----------
    values : array-like
        The numbers.
    what : str
        What they are, for the error.
    length : int, optional
        How many there must be.

    Raises
    ------
    AnswersError
        When they are not that.

    Notes
    -----
    Privacy cost: none. The numbers are public.

    Examples
    --------
    >>> vector([1, 2], "counts")
    array([1., 2.])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise AnswersError(f"{what} must be numbers in one row: give a list or a numpy array") from None
    if array.ndim != 1:
        raise AnswersError(f"{what} must be numbers in one row, not an array of shape {array.shape}")
    if length is not None and len(array) != length:
        raise AnswersError(f"{what}: expected {length} numbers, not {len(array)}")
    if not np.isfinite(array).all():
        raise AnswersError(f"{what} must be finite: nan and infinity are no counts")
    return array
