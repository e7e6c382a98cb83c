"""Laplace noise that survives floating point.

The textbook `value + scale * log(uniform)` leaves holes in the floats that it can reach, and the holes tell the
value (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012). Here the
sum is exact in the real numbers, and is rounded once (`wpinq.kernel.laplace`): a release is a function of what the
Laplace mechanism of the paper releases. One value and a million go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.errors import EpsilonError
from wpinq.kernel.laplace import add_laplace
from wpinq.kernel.mechanism import invoke


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise of one scale b: density `exp(-|x| / b) / (2b)`, standard deviation `sqrt(2) * b`.

    Parameters
    ----------
    scale : float
        The scale b, positive and finite: `laplace_scale` gives it.

    Raises
    ------
    EpsilonError
        When the scale is not a positive finite float.

    Notes
    -----
    Privacy cost: none before `add`. The scale is public.

    Examples
    --------
    >>> LaplaceNoise(10.0)
    LaplaceNoise(scale=10.0)
    """

    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale < math.inf:
            raise EpsilonError("the scale of noise must be a positive finite float: take it from laplace_scale")

    def add(self, values: Sequence[float]) -> list[float]:
        """Each value plus a fresh, independent draw, exact but for one rounding of the sum.

        Parameters
        ----------
        values : sequence of float
            Finite, and protected. One call on many values is many times faster than many calls on one.

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
        >>> len(LaplaceNoise(10.0).add([3.0, 4.0]))
        2
        """
        noisy: list[float] = invoke(self._add, values)
        return noisy

    def _add(self, values: list[float]) -> list[float]:
        return list(add_laplace(np.array(values, dtype=np.float64), self.scale).tolist())
