"""The law of a ladder by its definition."""

from __future__ import annotations

import math

import numpy as np

from wpinq.noise.ladder import Ladder


def rung_law(ladder: Ladder, scale: float, rungs: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """The chance of each rung, as many as have any, and how far each reaches."""
    steps = [1, *(2 * ladder.sensitivity(t) for t in range(rungs))]
    weights = np.array([step * math.exp(-j / scale) for j, step in enumerate(steps)])
    assert weights[-1] < 1e-12 * weights.sum()
    return weights / weights.sum(), np.array([ladder.reach(j) for j in range(rungs + 1)])
