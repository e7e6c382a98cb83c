"""The law of permute-and-flip by its definition, and what it tells of two vectors of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np


def permute_and_flip(scores: Sequence[float], scale: float) -> np.ndarray[Any, Any]:
    """The exact distribution, by summing over the sets of candidates that were visited before and refused."""
    accept = [math.exp((score - max(scores)) / scale) for score in scores]
    n = len(scores)
    chances = []
    for i in range(n):
        others = [accept[j] for j in range(n) if j != i]
        total = 0.0
        for size in range(n):
            refused = sum(math.prod(1 - q for q in before) for before in combinations(others, size))
            total += refused / (n * math.comb(n - 1, size))
        chances.append(accept[i] * total)
    return np.array(chances)


def loss(before: Sequence[float], after: Sequence[float], scale: float) -> float:
    """The exact privacy loss of a choice between two vectors of scores."""
    return float(np.abs(np.log(permute_and_flip(before, scale) / permute_and_flip(after, scale))).max())
