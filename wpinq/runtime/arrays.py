"""The arrays that numbers come in."""

from __future__ import annotations

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


def distinct(numbers: Integers) -> Integers:
    """The different ones among numbers of at least 0, in order."""
    held = np.sort(numbers)
    return held[np.diff(held, prepend=-1) > 0]
