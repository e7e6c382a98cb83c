"""Rényi divergences of the noise that is released, and what a sum of them says at a δ. Public arithmetic, no draws.

Each curve takes orders α = 1 + t, for an array of t > 0, and the pure ε of one release, and bounds the divergence of
order α between its answers about two datasets that differ by one unit, in either direction. Divergences of releases
add up. Proofs: docs/proofs/delta.md.

Every curve f has f(λε) ≤ λ f(ε) for λ between 0 and 1, which sums over the parts of a partition rest on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Orders = npt.NDArray[np.float64]
"""Orders of divergences less 1: more than 0, in floats that are taken for the reals that they are."""

LAPLACE = "Laplace"
BOUNDED_RANGE = "ladder"
DOUBLE_GEOMETRIC = "double-geometric"
"""It has no curve of its own, for it is the worst case."""
BUCKETS = "buckets"

_MARGIN = 2.0**-30
"""What floats may err by, of a number and of those it is made from: sums of up to four million terms stay within it."""


def laplace(t: Orders, epsilon: float) -> Orders:
    """Of Laplace noise on any number of weights, whose L1 distance is ε times the scale.

    >>> float(laplace(np.array([1.0]), 0.1)[0]) < 0.1**2
    True
    """
    up, down = (1 + t) / (1 + 2 * t), t / (1 + 2 * t)  # they add up to 1
    rising, falling = t * epsilon, (1 + t) * epsilon
    near = np.log1p(up * np.expm1(np.minimum(rising, 1.0)) + down * np.expm1(-falling))
    far = rising + np.log(up) + np.log1p(down / up * np.exp(-rising - falling))
    return np.where(rising < 1, near, far) / t


def pure(t: Orders, epsilon: float) -> Orders:
    """The worst case of any release of pure ε, randomised response: and of double-geometric noise, which reaches it.

    >>> float(pure(np.array([9.0]), 0.1)[0]) < 10 * 0.1**2 / 2
    True
    """
    rising = t * epsilon
    far = rising + np.log1p(np.exp(-2 * rising - epsilon)) - math.log1p(math.exp(-epsilon))
    if epsilon > 30:
        return far / t
    capped = np.minimum(rising, 1.0)  # the same in other words, of which small ones cancel nothing
    near = np.log1p(2 * np.sinh((capped + epsilon) / 2) * np.sinh(capped / 2) / math.cosh(epsilon / 2))
    return np.where(rising < 1, near, far) / t


def bounded_range(t: Orders, epsilon: float) -> Orders:
    """Of a release whose log-likelihood ratio between two neighbours lies in an interval of length ε.

    >>> bounded_range(np.array([1.0, 99.0]), 0.1).tolist()
    [0.0025000000000000005, 0.1]
    """
    return np.minimum(epsilon, (1 + t) * (epsilon * epsilon / 8))


_CURVES: dict[str, Callable[[Orders, float], Orders]] = {
    LAPLACE: laplace,
    BOUNDED_RANGE: bounded_range,
    BUCKETS: bounded_range,
}


def divergence(noise: str, t: Orders, epsilon: float) -> Orders:
    """A bound, for all that floats round, on the divergence of one release; the worst case where the noise is unknown.

    Parameters
    ----------
    noise : str
        The kind of noise, as the ledger records it.
    t : Orders
        The orders less 1.
    epsilon : float
        The pure ε of the release by itself: never less than it is.
    """
    return _CURVES.get(noise, pure)(t, epsilon) * (1 + _MARGIN) + epsilon * _MARGIN


def least_epsilon(divergences: Callable[[Orders], Orders], delta: float) -> float:
    """The least ε at a δ that divergences of all orders give, up to the choice of the order and rounded upwards.

    `f(α) + ln((α−1)/α) − (ln δ + ln α)/(α−1)`, and at least 0: true for every order, so which are tried is a matter of
    how good it is, and not of whether it holds.

    Notes
    -----
    Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, proposition 12.

    Examples
    --------
    >>> round(least_epsilon(lambda t: 100 * laplace(t, 0.1), 1e-6), 4)
    4.9842
    """

    def epsilons(t: Orders) -> Orders:
        found, price = divergences(t), -math.log(delta) / t
        return found + price - np.log1p(t) / t - np.log1p(1 / t) + (found + price + 1) * _MARGIN

    coarse = np.geomspace(1e-6, 1e12, 361)
    best = coarse[np.argmin(epsilons(coarse))]
    fine = np.geomspace(best / 1.25, best * 1.25, 401)
    return max(0.0, float(np.min(epsilons(fine))))
