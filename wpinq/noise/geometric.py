"""Double-geometric noise: whole steps of a lattice that the plan proves for all weights.

`Pr[noise = g·k] ∝ exp(−ε·g·|k|)`. The values are integers (weights over g) and so is the noise: the whole part of
exponential noise whose digits are drawn exactly. The guarantee is for neighbours with outputs on the same lattice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from wpinq.errors import EpsilonError
from wpinq.noise.exact_bernoulli import AT_ONCE, DIGITS, RandomBytes, exponential
from wpinq.noise.laplace import round_up
from wpinq.plan.properties import PlanProperties

#: Weights on a lattice stay below it, in steps.
_LARGEST = 2**62


def geometric_scale(epsilon: Fraction, step: Fraction, slack: Fraction) -> float:
    """The scale of double-geometric noise, in steps: the least float from `(1 + slack)/(ε·g)`.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    step : Fraction
        The lattice g > 0 of the plan: `PlanProperties.require_lattice` proves it.
    slack : Fraction
        What the plan widens exact noise by: `PlanProperties.slack(exact=True)`, 0 but over parts.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EpsilonError
        When a parameter is out of range, or the scale is out of the range of floats.

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


def check_exact(step: Fraction, rounding_error: Fraction, mass: Fraction) -> None:
    """Refuse, before any budget is spent, a lattice too fine for the floats of the engine.

    Parameters
    ----------
    step : Fraction
        The lattice g.
    rounding_error : Fraction
        `PlanProperties.rounding_error` of the plan: must be below g/2.
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
        raise EpsilonError("the lattice is too fine for exact evaluation: declare a smaller cap, or use Laplace noise")


def on_lattice(weights: Sequence[float], step: Fraction) -> list[int]:
    """Protected float weights as numbers of steps, rounded to the nearest.

    This is exact where the error is below g/2.

    Parameters
    ----------
    weights : sequence of float
        The engine's output. The caller has proven, statically, that the plan's rounding error is below g/2.
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


def lattice_scale(certificate: PlanProperties, epsilon: Fraction) -> float:
    """The scale, in steps, of noise for a plan with a lattice that floats represent exactly.

    Raises
    ------
    PlanError
        When the plan proves no lattice; it names the step that breaks it.
    EpsilonError
        When the lattice is too fine for the floats of an engine, or for the noise.
    """
    step = certificate.require_lattice()
    check_exact(step, certificate.rounding_error, certificate.output.norm_bound)
    return geometric_scale(epsilon, step, certificate.slack(exact=True))


def add_geometric(values: Sequence[int], scale: float, random: RandomBytes) -> list[int]:
    """Each integer, below 2⁶² in size, plus an independent draw of double-geometric noise."""
    if not all(-_LARGEST < value < _LARGEST for value in values):
        raise OverflowError("weights are below 2^62 steps: the plan's bound on their norm does not hold")
    draws = double_geometric(len(values), scale, random)
    return [value + draw for value, draw in zip(values, draws, strict=True)]


def double_geometric(count: int, scale: float, random: RandomBytes) -> list[int]:
    """Independent draws of `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`, exactly.

    Parameters
    ----------
    count : int
        How many.
    scale : float
        At most 2⁶⁰, taken for the rational that it is.
    random : callable
        The source of random bytes.

    Notes
    -----
    With a fair sign and `Pr[n] = (1 − a) a^n` for the size n, −0 is refused and drawn again: what is left of 0 has
    `(1 − a)/2`, every other number `(1 − a) a^|k| / 2`, and all together `(1 + a)/2`.

    Examples
    --------
    >>> import os
    >>> len(double_geometric(3, 10.0, os.urandom))
    3
    """
    drawn: list[int] = []
    while len(drawn) < count:
        pairs = geometric(min(count - len(drawn), AT_ONCE), scale, random)
        drawn += [size if sign > 0 else -size for sign, size in pairs if sign > 0 or size]
    return drawn


def geometric(count: int, scale: float, random: RandomBytes) -> list[tuple[float, int]]:
    """Independent draws of a fair sign and a geometric number, exactly.

    `Pr[n] = (1 − a) · a^n`, n ≥ 0, with `a = exp(−1/scale)`.

    Parameters
    ----------
    count, scale, random
        As for `double_geometric`.

    Examples
    --------
    >>> import os
    >>> all(abs(sign) == 1 and size >= 0 for sign, size in geometric(3, 10.0, os.urandom))
    True
    """
    law = exponential(scale)
    signs, whole, digits = law.draw(count, random)
    # E = c · (whole + digits), and c = 2^exponent: its whole part is what is before the point after a shift.
    shift = DIGITS - law.exponent
    sizes = [(k << DIGITS | d) >> shift for k, d in zip(whole.tolist(), digits.tolist(), strict=True)]
    return list(zip(signs.tolist(), sizes, strict=True))
