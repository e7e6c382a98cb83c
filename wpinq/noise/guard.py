"""Noise that survives floating point, added in silence: what goes wrong never says with which values.

The textbook `value + scale * log(uniform)` leaves holes in the floats that it can reach, and the holes tell the
value (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012). Here the
sum is exact in the real numbers, and is rounded once (`wpinq.noise.laplace`): a release is a function of what the
Laplace mechanism of the paper releases. One value and a million go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from wpinq.errors import EvaluationFailed
from wpinq.noise.geometric import add_geometric
from wpinq.noise.laplace import add_laplace

FAILED = "the mechanism failed on the evaluated values: the charge stands, and the reason is withheld"

Number = TypeVar("Number", int, float, float | Fraction)
Released = TypeVar("Released")


def silently(mechanism: Callable[[Sequence[Number]], Released], values: Sequence[Number]) -> Released:
    """What a mechanism releases about protected values, or one constant error.

    Parameters
    ----------
    mechanism : callable
        From numbers to what may be shown, which is not None.
    values : sequence of numbers
        Protected. Such as are not finite are refused.

    Raises
    ------
    EvaluationFailed
        When anything fails, a value that is not finite included. The message is constant, and no cause and no
        context is attached.

    Notes
    -----
    Privacy cost: that of the mechanism, debited before the values were evaluated. The frames of a traceback
    still refer to the values, as those of any caller do: do not print the locals of frames.
    """
    try:
        release = mechanism(values) if all(map(math.isfinite, values)) else None
    except Exception:
        release = None
    if release is None:
        # Outside of the handler: there, even `from None` would keep the original error as its context.
        raise EvaluationFailed(FAILED)
    return release


def with_laplace_noise(values: Sequence[float], scale: float) -> list[float]:
    """Each value plus a fresh, independent draw of Laplace noise, exact but for one rounding of the sum.

    Parameters
    ----------
    values : sequence of float
        Finite, and protected. One call on many values is many times faster than many calls on one.
    scale : float
        b > 0: density `exp(-|x| / b) / (2b)`, standard deviation `sqrt(2) * b`. `laplace_scale` gives it.

    Returns
    -------
    list of float
        As many numbers, all finite: a sum beyond the largest float becomes the largest float of its sign.
        Rounding and this are functions of the noisy sum alone, so they cost nothing.

    Raises
    ------
    EvaluationFailed
        When a value is not finite or anything else fails. The message is constant.

    Notes
    -----
    Privacy cost: a source whose changes move `values` by x in L1 loses `x / scale`; `laplace_scale` makes
    that at most its bill. Randomness comes from the operating system.

    Examples
    --------
    >>> len(with_laplace_noise([3.0, 4.0], 10.0))
    2
    """
    return silently(lambda given: add_laplace(np.array(given, dtype=np.float64), scale).tolist(), values)


def with_geometric_noise(steps: Sequence[int], scale: float) -> list[int]:
    """Each integer plus a fresh, independent draw of double-geometric noise, exactly.

    Parameters
    ----------
    steps : sequence of int
        Protected weights over their lattice g, below 2⁶² in size.
    scale : float
        In steps, positive and at most 2⁶⁰: `geometric_scale` gives it.

    Raises
    ------
    EvaluationFailed
        When anything fails. The message is constant.

    Notes
    -----
    Privacy cost: a source whose changes move `steps` by n in L1 loses `n / scale`. Randomness comes from the
    operating system.

    Examples
    --------
    >>> len(with_geometric_noise([3, 4], 2.0))
    2
    """
    return silently(lambda given: add_geometric(given, scale), steps)
