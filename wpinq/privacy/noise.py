"""Laplace noise that survives floating point.

The textbook `value + scale * log(uniform)` leaves holes in the floats that it can reach, and the holes tell the
value (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012). Here the
sum is exact in the real numbers, and is rounded once (`wpinq.privacy.laplace`): a release is a function of what the
Laplace mechanism of the paper releases. One value and a million go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from wpinq.errors import EpsilonError
from wpinq.privacy.laplace import add_laplace
from wpinq.privacy.mechanism import exact_number, invoke, round_up


def laplace_scale(epsilon: Fraction, slack: Fraction) -> float:
    """The scale of Laplace noise for a query: the least float that is at least `(1 + slack) / epsilon`.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the plan and its engine.

    Returns
    -------
    float
        The scale b.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or floating point cannot hold the scale.

    Notes
    -----
    When a source changes by k ≥ 1 units, the computed output moves by at most `k * d * (1 + slack)` in L1, d being the
    source's `uses * unit_weight`. Exact noise of scale b loses `k * d * (1 + slack) / b ≤ k * d * epsilon`, as billed.

    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Source: Proserpio, Goldberg, McSherry, VLDB 2014, section 2.2 (NoisyCount).

    Examples
    --------
    >>> laplace_scale(Fraction(1, 2), Fraction(0))
    2.0
    """
    if exact_number(epsilon, "epsilon") <= 0:
        raise EpsilonError("epsilon must be more than 0 to scale noise: parse it with parse_epsilon")
    if exact_number(slack, "the rounding slack") < 0:
        raise EpsilonError("the rounding slack must be at least 0: take the bound that the plan analysis gives")
    return round_up((1 + slack) / epsilon, "the noise scale")


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


def simulate_laplace(values: Sequence[float], scale: float, seed: int) -> list[float]:
    """Public values plus reproducible Laplace noise from numpy. NOT private: for experiments on public data.

    Parameters
    ----------
    values : sequence of float
        Public.
    scale : float
        The scale of the noise, positive and finite.
    seed : int
        At least 0. The same seed gives the same noise.

    Returns
    -------
    list of float
        As many noisy numbers.

    Raises
    ------
    EpsilonError
        When the scale is not a positive finite float.

    Notes
    -----
    Privacy: none whatever. A seed can be guessed, and numpy's sums show the value in their low bits.

    Examples
    --------
    >>> simulate_laplace([1.0, 2.0], 0.5, seed=1) == simulate_laplace([1.0, 2.0], 0.5, seed=1)
    True
    """
    draws = np.random.default_rng(seed).laplace(0.0, LaplaceNoise(scale).scale, len(values))
    return [float(value + draw) for value, draw in zip(values, draws, strict=True)]
