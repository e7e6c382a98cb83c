"""How unlikely Laplace noise makes it that estimates are off their answers by so much.

Where several answers say one thing, the mean absolute difference tells twice what the mean square does: noise of
standard deviation 1 has Fisher information 2 by its law, 1 by that of normal noise. It is rounded where it is 0, so
that a search by gradients ends.
"""

from __future__ import annotations

import numpy as np

from wpinq.arrays import Floats

INFORMATION = 2.0
"""The Fisher information of an answer in deviations: the curvature to count, for at a point it is all or nothing."""
ROUNDED = 0.3
"""In deviations."""


def laplace_misfit(off: Floats, rounded: float = ROUNDED) -> tuple[Floats, Floats]:
    """Minus the logarithm of the likelihood of each difference, up to a constant, and its slope.

    `√2·|u|` of a difference of u deviations, rounded below so many of them.

    Examples
    --------
    >>> misfit, slope = laplace_misfit(np.array([0.0, -4.0]))
    >>> misfit.round(2).tolist(), slope.round(2).tolist()
    ([0.0, 5.25], [0.0, -1.41])
    """
    size = np.hypot(off, rounded)
    return np.asarray(np.sqrt(2) * (size - rounded)), np.asarray(np.sqrt(2) * off / size)
