"""Double-geometric noise: whole steps of a lattice, where the plan proves that all weights lie on it.

`Pr[noise = g·k] ∝ exp(−ε·g·|k|)`. The values are integers (weights over g) and so is the noise: the whole part of
exponential noise whose digits are drawn exactly. The promise is for neighbours whose outputs lie on the same lattice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import AnswersError, EpsilonError, EvaluationFailed
from wpinq.privacy.coins import RandomBytes
from wpinq.privacy.exponential import AT_ONCE, DIGITS, exponential
from wpinq.privacy.mechanism import FAILED, round_up

_LARGEST = 2**62


def geometric_scale(epsilon: Fraction, step: Fraction, slack: Fraction) -> float:
    """The scale, in steps of the lattice, of double-geometric noise: the least float from `(1 + slack)/(ε·g)` on.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    step : Fraction
        The lattice g > 0 of the plan: `wpinq.plan.lattice.require_lattice` proves it.
    slack : Fraction
        What the plan widens exact noise by: `wpinq.plan.analysis.slack(plan, exact=True)`, 0 but over parts.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or floating point cannot hold the scale.

    Notes
    -----
    When a source changes by k units, the output moves by at most `n = k·d/g` steps, d being the source's
    `uses · unit_weight`: a loss of `n / scale ≤ k·d·ε`, as billed. Nothing is added for floating point: outputs within
    g/2 of the exact ones are rounded to the lattice, which makes them exact.

    Privacy cost: none. Source: Ghosh, Roughgarden, Sundararajan, STOC 2009.

    Examples
    --------
    >>> geometric_scale(Fraction(1, 2), Fraction(1, 2), Fraction(0))
    4.0
    """
    if epsilon <= 0 or step <= 0 or slack < 0:
        raise EpsilonError("geometric noise needs an epsilon and a lattice of more than 0, and a slack of at least 0")
    exact = (1 + slack) / (epsilon * step)
    if not 2.0**-50 <= exact <= 2.0**60:
        raise EpsilonError("epsilon times the lattice is out of the range of geometric noise: use Laplace noise")
    return round_up(exact, "the noise scale")


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Double-geometric noise on the integers: `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`.

    Parameters
    ----------
    scale : float
        In steps, positive and at most 2⁶⁰: `geometric_scale` gives it.

    Raises
    ------
    EpsilonError
        When the scale is not such a float.

    Examples
    --------
    >>> GeometricNoise(1.0).interval(0.95)
    3
    """

    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale <= 2.0**60:
            raise EpsilonError("the scale of noise must be a float above 0, at most 2^60: take it from geometric_scale")

    @property
    def ratio(self) -> float:
        """`a = exp(−1/scale)`."""
        return math.exp(-1 / self.scale)

    @property
    def variance(self) -> float:
        """`2a / (1 − a)²`, always less than the `2·scale²` of Laplace noise."""
        return 2 * self.ratio / math.expm1(-1 / self.scale) ** 2

    def add(self, values: Sequence[int]) -> list[int]:
        """Each integer plus a fresh, independent draw.

        Parameters
        ----------
        values : sequence of int
            Protected weights over g, below 2⁶² in size.

        Returns
        -------
        list of int
            As many noisy numbers of steps.

        Raises
        ------
        EvaluationFailed
            When anything fails. The message is constant.

        Notes
        -----
        Privacy cost: a source whose changes move `values` by n steps in L1 loses `n / scale`. Randomness comes from
        the operating system.

        Examples
        --------
        >>> len(GeometricNoise(2.0).add([3, 4]))
        2
        """
        try:
            release = _add(values, self.scale)
        except Exception:
            release = None
        if release is None:  # outside of the handler, where no cause and no context is attached
            raise EvaluationFailed(FAILED)
        return release

    def survival(self, threshold: int) -> float:
        """The probability that a draw is more than an integer t: `a^(t+1)/(1 + a)` for t ≥ −1.

        Examples
        --------
        >>> round(GeometricNoise(1.0).survival(0), 6)
        0.268941
        """
        if threshold < -1:
            return 1 - self.survival(-threshold - 1)
        return math.exp(-(threshold + 1) / self.scale) / (1 + self.ratio)

    def interval(self, confidence: float) -> int:
        """The least m with `Pr[|noise| ≤ m] ≥ confidence`, in steps.

        Raises
        ------
        AnswersError
            When the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise AnswersError("a confidence lies strictly between 0 and 1: give for example 0.95")
        # 2 a^(m+1) / (1 + a) ≤ 1 − confidence
        steps = -self.scale * (math.log1p(-confidence) + math.log1p(self.ratio) - math.log(2)) - 1
        m = max(0, math.ceil(steps))
        return m - 1 if m and 2 * self.survival(m - 1) <= 1 - confidence else m


def _add(values: Sequence[int], scale: float) -> list[int] | None:
    numbers = [int(value) for value in values]
    if not all(-_LARGEST < number < _LARGEST for number in numbers):
        return None
    return [number + noise for number, noise in zip(numbers, double_geometric(len(numbers), scale), strict=True)]


def double_geometric(count: int, scale: float, random: RandomBytes = os.urandom) -> list[int]:
    """Independent draws of `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`, exactly.

    Parameters
    ----------
    count : int
        How many.
    scale : float
        At most 2⁶⁰, taken for the rational that it is.
    random : callable
        Where random bytes come from: the operating system, but for tests.

    Notes
    -----
    With a fair sign and `Pr[n] = (1 − a) a^n` for the size n, −0 is refused and drawn again: what is left of 0 has
    `(1 − a)/2`, every other number `(1 − a) a^|k| / 2`, and all together `(1 + a)/2`.

    Examples
    --------
    >>> len(double_geometric(3, 10.0))
    3
    """
    law, drawn = exponential(scale), list[int]()
    while len(drawn) < count:
        signs, whole, digits = law.draw(min(count - len(drawn), AT_ONCE), random)
        # E = c · (whole + digits), and c = 2^exponent: its whole part is what is before the point after a shift.
        shift = DIGITS - law.exponent
        sizes = [(k << DIGITS | d) >> shift for k, d in zip(whole.tolist(), digits.tolist(), strict=True)]
        pairs = zip(signs.tolist(), sizes, strict=True)
        drawn += [size if sign > 0 else -size for sign, size in pairs if sign > 0 or size]
    return drawn


def on_lattice(weights: Sequence[float], step: Fraction) -> list[int]:
    """Protected float weights as numbers of steps, rounded to the nearest: exact where the error is below g/2.

    Parameters
    ----------
    weights : sequence of float
        The engine's output. The caller has proven, statically, that `rounding_error(plan) < g/2`.
    step : Fraction
        The lattice g.

    Returns
    -------
    list of int
        The number of steps of each.

    Notes
    -----
    Privacy cost: none by itself; the result is as protected as the weights.

    Examples
    --------
    >>> on_lattice([1.0000000001, 0.5], Fraction(1, 2))
    [2, 1]
    """
    over, under = step.denominator, step.numerator
    ratios = (weight.as_integer_ratio() for weight in weights)
    return [(2 * top * over + bottom * under) // (2 * bottom * under) for top, bottom in ratios]


def check_exact(step: Fraction, rounding_error: Fraction, mass: Fraction) -> None:
    """Refuse, before any budget is spent, a lattice too fine for the floats of the engine.

    Parameters
    ----------
    step : Fraction
        The lattice g.
    rounding_error : Fraction
        `wpinq.plan.analysis.rounding_error` of the plan: must be below g/2.
    mass : Fraction
        The bound on the output's norm: must be below 2⁶² steps.

    Raises
    ------
    EpsilonError
        When it is too fine.

    Examples
    --------
    >>> check_exact(Fraction(1), Fraction(1, 10**6), Fraction(2**30))
    """
    if 2 * rounding_error >= step or mass / step >= _LARGEST:
        raise EpsilonError(
            "the lattice is too fine for exact evaluation: declare a smaller cap on the sources, or use Laplace noise"
        )


def simulate_geometric(values: Sequence[int], scale: float, seed: int) -> list[int]:
    """Public integers plus reproducible double-geometric noise from numpy. NOT private: for public data.

    The difference of two geometric draws, `Pr[k] ∝ exp(−|k|/scale)`.

    Parameters
    ----------
    values : sequence of int
        Public.
    scale : float
        In steps, positive and finite.
    seed : int
        At least 0.

    Examples
    --------
    >>> simulate_geometric([1, 2], 0.5, seed=1) == simulate_geometric([1, 2], 0.5, seed=1)
    True
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    chance = -math.expm1(-1 / GeometricNoise(scale).scale)
    draws = rng.geometric(chance, len(values)) - rng.geometric(chance, len(values))
    return [int(value + draw) for value, draw in zip(values, draws, strict=True)]
