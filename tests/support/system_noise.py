"""The mechanisms with the operating system's source of bytes, as a release draws them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from wpinq.noise import permute_and_flip
from wpinq.noise.geometric import add_geometric
from wpinq.noise.laplace import add_laplace


def with_laplace_noise(values: Sequence[float], scale: float) -> list[float]:
    """Each value plus Laplace noise."""
    return add_laplace(np.array(values, dtype=np.float64), scale, os.urandom).tolist()


def with_geometric_noise(values: Sequence[int], scale: float) -> list[int]:
    """Each integer plus double-geometric noise."""
    return add_geometric(values, scale, os.urandom)


def select(scores: Sequence[float | Fraction], scale: float) -> int:
    """The place of a candidate by permute-and-flip."""
    return permute_and_flip.select(scores, scale, os.urandom)
