"""The arrays that numbers come in, and loops over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def numbered(pairs: NDArray[Any]) -> tuple[int, Integers]:
    """How many labels there are, and the pairs with each replaced by its place among them."""
    if pairs.dtype.kind in "iu" and pairs.size and pairs.min() >= 0 and pairs.max() < 4 * pairs.size:
        there = np.zeros(int(pairs.max()) + 1, dtype=bool)  # a table, where the labels are dense: no sorting
        there[pairs] = True
        return int(there.sum()), (np.cumsum(there) - 1)[pairs]
    labels, dense = np.unique(pairs, return_inverse=True)
    return len(labels), dense.reshape(-1, 2)


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as machine code, kept for later processes; without numba the loop itself."""
    try:
        found: Callable[..., Any] = import_module("numba").njit(cache=True, nogil=True)(loop)
    except (ImportError, RuntimeError):  # the second where there is no folder to keep it in
        return loop
    return found


def distinct(numbers: Integers) -> Integers:
    """The different ones among numbers of at least 0, in order."""
    held = np.sort(numbers)
    return held[np.diff(held, prepend=-1) > 0]
