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

from wpinq.errors import AnswersError, EpsilonError
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
    >>> noise = LaplaceNoise(10.0)
    >>> round(noise.interval(0.95), 3)
    29.957
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

    def survival(self, threshold: float) -> float:
        """The probability that a draw is more than the threshold.

        `exp(-t / b) / 2` for t ≥ 0, and `1 - exp(t / b) / 2` below. The sampler rounds to a float, which
        shifts the threshold by at most half a unit in its last place.

        Parameters
        ----------
        threshold : float
            Any number t but nan.

        Returns
        -------
        float
            A probability.

        Raises
        ------
        AnswersError
            When the threshold is nan.

        Notes
        -----
        Privacy cost: none. It is about the noise, not the data.

        Examples
        --------
        >>> LaplaceNoise(10.0).survival(0.0)
        0.5
        """
        if math.isnan(threshold):
            raise AnswersError("nan is no threshold: give a number")
        if threshold >= 0:
            return math.exp(-threshold / self.scale) / 2
        return 1 - math.exp(threshold / self.scale) / 2

    def quantile(self, probability: float) -> float:
        """The number that a draw stays at or below with the given probability: the inverse of 1 - survival.

        `b * ln(2p)` for p < 1/2, and `b * ln(1 / (2(1 - p)))` from there on.

        Parameters
        ----------
        probability : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            The quantile.

        Raises
        ------
        AnswersError
            When the probability is not between 0 and 1.

        Notes
        -----
        Privacy cost: none. It is about the noise, not the data.

        Examples
        --------
        >>> LaplaceNoise(10.0).quantile(0.5)
        0.0
        """
        _check_probability(probability, "a probability")
        if probability < 0.5:
            return self.scale * math.log(2 * probability)
        return self.scale * math.log(0.5 / (1 - probability))

    def interval(self, confidence: float) -> float:
        """The half-width around a released value that holds the true one with the given probability.

        `b * ln(1 / (1 - confidence))`.

        Parameters
        ----------
        confidence : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            The half-width.

        Raises
        ------
        AnswersError
            When the confidence is not between 0 and 1.

        Notes
        -----
        Privacy cost: none. It is about the noise, not the data.

        Examples
        --------
        >>> round(LaplaceNoise(1.0).interval(0.9), 4)
        2.3026
        """
        _check_probability(confidence, "a confidence")
        return -self.scale * math.log1p(-confidence)


def _check_probability(probability: float, what: str) -> None:
    if not 0 < probability < 1:
        raise AnswersError(f"{what} lies strictly between 0 and 1: give for example 0.95")


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
