"""Checks of public numbers and arrays, and operations along the axes of an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, WpinqError, described
from wpinq.runtime.arrays import Floats, Integers

#: The most bins of a domain, leaves of a tree and numbers of a release: a vector of them takes 8 GiB.
MOST_BINS = 2**30
#: The most records or groups: floats count exactly up to here.
MOST_RECORDS = 2**53


def number(value: Any, what: str) -> float:
    """A number as float, nan and infinity among them, or AnswersError.

    Strings are not numbers here.

    Examples
    --------
    >>> number(1, "q")
    1.0
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise AnswersError(f"{what} must be a number, not {described(value)}") from None


def positive(value: Any, what: str) -> float:
    """A finite number of more than 0 as float, or AnswersError.

    Examples
    --------
    >>> positive(2, "a scale")
    2.0
    """
    found = number(value, what)
    if not 0 < found < math.inf:
        raise AnswersError(f"{what} must be a positive finite number, not {described(value)}")
    return found


def count_of(
    value: Any, what: str, least: int, most: int = MOST_RECORDS, error: type[WpinqError] = AnswersError
) -> int:
    """An integer in a range, or the error.

    Examples
    --------
    >>> count_of(20, "the draws", 20)
    20
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise error(f"{what} must be an integer of at least {least}, not {described(value)}")
    if value > most:
        raise error(f"{what} must be at most {most}")
    return value


def confidence_of(confidence: Any) -> float:
    """A confidence, strictly between 0 and 1, or AnswersError.

    Examples
    --------
    >>> confidence_of(0.9)
    0.9
    """
    found = number(confidence, "a confidence")
    if not 0 < found < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {described(confidence)}")
    return found


def is_one_of(value: Any, choices: Collection[Any]) -> bool:
    """Whether any value is one of some names or integers; True is not 1.

    Examples
    --------
    >>> is_one_of(2, (1, 2)), is_one_of([2], (1, 2)), is_one_of(True, (1, 2))
    (True, False, False)
    """
    return isinstance(value, (str, int, np.integer)) and not isinstance(value, bool) and value in choices


def sequence_of(values: Any, what: str, error: type[WpinqError] = AnswersError) -> list[Any]:
    """The members of a list, a tuple or an array, or the error.

    Examples
    --------
    >>> sequence_of((1, [2]), "levels")
    [1, [2]]
    """
    array = isinstance(values, np.ndarray) and values.ndim > 0
    if not (array or (isinstance(values, Sequence) and not isinstance(values, (str, bytes)))):
        raise error(f"{what}: give a list, not a {type(values).__name__}")
    return list(values)


def array_of(values: Any, what: str, error: type[WpinqError] = AnswersError) -> Floats:
    """Real numbers as an array of float64 of any shape, nan and infinity included; or the error.

    Examples
    --------
    >>> array_of([[1, 2]], "levels")
    array([[1., 2.]])
    """
    try:
        array = np.asarray(values)
        kind = array.dtype.kind
        if kind not in "biufO" or (kind == "O" and any(isinstance(x, (str, bytes, type(None))) for x in array.flat)):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} must be real numbers, as many in one row as in another: give a list or an array") from None


def matrix_of(matrix: Any, rows: int) -> Any:
    """A dense matrix of finite numbers as float64; sparse ones and operators as they are.

    AnswersError for others.

    Examples
    --------
    >>> matrix_of([[1, 2]], 1)
    array([[1., 2.]])
    """
    if not (hasattr(matrix, "tocsr") or hasattr(matrix, "matvec")):
        matrix = array_of(matrix, "a matrix")
    if len(matrix.shape) != 2 or matrix.shape[0] != rows or min(matrix.shape) < 1:
        raise AnswersError(f"a matrix of shape {matrix.shape} does not fit {rows} answers")
    held = matrix.data if hasattr(matrix, "tocsr") else matrix
    if isinstance(held, np.ndarray) and not np.isfinite(held).all():
        raise AnswersError("a matrix must be finite: nan and infinity are no coefficients")
    return matrix


def integer_row(values: Any) -> Integers | None:
    """Integers of at least 1 in one row, at least one of them; None for anything else."""
    try:
        row = np.asarray(values)
    except ValueError:
        return None
    whole = row.ndim == 1 and len(row) > 0 and np.issubdtype(row.dtype, np.integer)
    return row if whole and not (row < 1).any() else None


def vector(values: Any, what: str, length: int | None = None) -> Floats:
    """One row of finite numbers of a given length as float64, or AnswersError with the reason.

    Examples
    --------
    >>> vector([1, 2], "counts")
    array([1., 2.])
    """
    array = array_of(values, what)
    if array.ndim != 1:
        raise AnswersError(f"{what} must be numbers in one row, not an array of shape {array.shape}")
    if length is not None and len(array) != length:
        raise AnswersError(f"{what}: expected {length} numbers, not {len(array)}")
    if not np.isfinite(array).all():
        raise AnswersError(f"{what} must be finite: nan and infinity are no counts")
    return array


# --- operations along the first axis ----------------------------------------------------------------------------------

_BLOCK = 128


def along(factor: Any, values: Floats) -> Any:
    """A factor of each number, shaped to multiply arrays with further axes."""
    return factor if np.ndim(factor) == 0 else np.reshape(factor, (-1,) + (1,) * (values.ndim - 1))


def blocks(size: int) -> Iterator[tuple[int, int]]:
    """0 … size − 1 as ranges start ≤ i < stop of a few numbers."""
    for start in range(0, size, _BLOCK):
        yield start, min(start + _BLOCK, size)


def units(size: int, start: int, stop: int) -> Floats:
    """The unit vectors start ≤ i < stop of a space, one a column."""
    return np.eye(size, stop - start, -start)


def along_axes(values: Floats, parts: Iterable[tuple[int, Callable[[Floats], Floats]]]) -> Floats:
    """Functions of the first axis, applied along each attribute of a flattened product.

    Each has its size.
    """
    sizes, functions = zip(*parts, strict=True)
    cube = np.reshape(values, (*sizes, *values.shape[1:]))
    for axis, function in enumerate(functions):
        front = np.moveaxis(cube, axis, 0)
        result = function(front.reshape(len(front), -1))
        cube = np.moveaxis(result.reshape(len(result), *front.shape[1:]), 0, axis)
    return np.reshape(cube, (-1, *values.shape[1:]))


def flat_product(factors: Iterable[Floats]) -> Floats:
    """The outer product of vectors in one row, the last fastest."""
    found = np.ones(1)
    for factor in factors:
        found = np.outer(found, factor).ravel()
    return found
