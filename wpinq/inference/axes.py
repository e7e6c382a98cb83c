"""Numbers along the first axis of an array, whose further axes are further vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wpinq.arrays import Floats

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
    """Functions of the first axis, each with its size, applied along each attribute of a flattened product."""
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
