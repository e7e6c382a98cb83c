"""Double-geometric noise: whole steps of a lattice, where the plan proves that all weights lie on it.

`Pr[noise = g·k] ∝ exp(−ε·g·|k|)`. The values are integers (weights over g) and so is the noise; OpenDP draws it
in exact arithmetic. The promise is for neighbours whose outputs lie on the same lattice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import AnswersError, EpsilonError, EvaluationFailed
from wpinq.privacy.mechanism import FAILED, Measurement, contrib

_MAX_STEPS = 16
_LARGEST = 2**62


def geometric_scale(epsilon: Fraction, step: Fraction, distances: Iterable[Fraction]) -> float:
    """The scale, in steps of the lattice, of double-geometric noise: `1/(ε·g)`, certified by OpenDP.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    step : Fraction
        The lattice g > 0 of the plan: `wpinq.plan.lattice.require_lattice` proves it.
    distances : iterable of Fraction
        `uses · unit_weight` of every source of the plan, each more than 0.

    Returns
    -------
    float
        The least float of at least `1/(ε·g)`, raised by `nextafter` until OpenDP's map of the steps that one unit can
        move the output by, `⌊d/g⌋`, is at most the bill `d·ε` of every source.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or floating point cannot hold the scale.

    Notes
    -----
    k units move the output by n ≤ k·d/g steps, a loss of `n / scale ≤ k·d·ε`. No slack is added for floating
    point: outputs within g/2 of the exact ones are rounded to the lattice, which makes them exact.

    Privacy cost: none. Source: Ghosh, Roughgarden, Sundararajan, STOC 2009.

    Examples
    --------
    >>> geometric_scale(Fraction(1, 2), Fraction(1, 2), [Fraction(1)])
    4.0
    """
    billed = sorted(set(distances))
    if epsilon <= 0 or step <= 0 or not billed or billed[0] <= 0:
        raise EpsilonError("geometric noise needs epsilon, lattice and uses × unit weight of more than 0")
    exact = 1 / (epsilon * step)
    if not 2.0**-50 <= exact <= 2.0**60:
        raise EpsilonError("epsilon times the lattice is out of the range of geometric noise: use Laplace noise")
    scale = float(exact)
    scale = scale if scale >= exact else math.nextafter(scale, math.inf)
    for _ in range(_MAX_STEPS):
        measurement = _geometric(scale)
        if all(Fraction(measurement.map(int(d / step))) <= d * epsilon for d in billed):
            return scale
        scale = math.nextafter(scale, math.inf)
    raise EpsilonError("OpenDP does not certify this noise within the bill: report it with the version of OpenDP")


@lru_cache(maxsize=64)
def _geometric(scale: float) -> Measurement:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_geometric
    from opendp.metrics import l1_distance

    with contrib():
        return make_geometric(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Double-geometric noise on the integers: `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`.

    Parameters
    ----------
    scale : float
        In steps, positive and finite: `geometric_scale` gives it.

    Raises
    ------
    EpsilonError
        When the scale is not a positive finite float.

    Examples
    --------
    >>> GeometricNoise(1.0).interval(0.95)
    3
    """

    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale < math.inf:
            raise EpsilonError("the scale of noise must be a positive finite float: take it from geometric_scale")

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
            release = _draw(_geometric(self.scale), values)
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


def _draw(measurement: Measurement, values: Sequence[int]) -> list[int] | None:
    numbers = [int(value) for value in values]
    if not all(-_LARGEST < number < _LARGEST for number in numbers):
        return None
    return [int(number) for number in measurement(numbers)]


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
    return [round(Fraction(weight) / step) for weight in weights]


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
