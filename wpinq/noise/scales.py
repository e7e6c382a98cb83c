"""The scale of the noise that a plan needs, from its certificate and epsilon: exact, and rounded up once."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import EpsilonError
from wpinq.plan.properties import PlanProperties

LEAST_LADDER_SCALE = 1 / 32
"""Rungs of a ladder are told apart by no more than exp(-32)."""

_ONE = Fraction(1)
_LARGEST = 2**62
"""What weights on a lattice stay below, in steps."""


def exact_number(number: object, what: str) -> Fraction:
    """An int or a Fraction as a Fraction; EpsilonError, which names it, for anything else."""
    if isinstance(number, bool) or not isinstance(number, (int, Fraction)):
        raise EpsilonError(f"{what} must be an exact number: pass a Fraction or an int")
    return Fraction(number)


def round_up(number: Fraction, what: str) -> float:
    """The least float that is at least a positive number; EpsilonError, which names it, outside of normal floats."""
    # Normal floats only, where one rounding is a relative error of 2**-53; half the range leaves room for a map
    # that doubles a distance.
    if not sys.float_info.min <= number <= sys.float_info.max / 2:
        raise EpsilonError(
            f"{what} is out of the range of floating point: use a source fewer times, or choose a unit weight "
            "and an epsilon nearer to 1"
        )
    rounded = float(number)
    return rounded if rounded >= number else math.nextafter(rounded, math.inf)


@lru_cache(maxsize=1024, typed=True)  # a float that equals a Fraction is refused all the same
def laplace_scale(epsilon: Fraction, slack: Fraction, sensitivity: Fraction = _ONE) -> float:
    """The scale of Laplace or exponential noise: the least float from `sensitivity · (1 + slack) / epsilon` on.

    Parameters
    ----------
    epsilon : Fraction
        More than 0.
    slack : Fraction
        The rounding slack η ≥ 0 of the plan and its engine.
    sensitivity : Fraction
        More than 0. Of noise on weights 1. Of a choice the range of the moves of scores: how far the moves of two
        scores differ, at most, where the output moves by 1.

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
    source's `stability * unit_weight`. Exact noise of scale b loses `k * d * (1 + slack) / b ≤ k * d * epsilon`: the
    bill.

    A choice is the largest `u_i + Exp(b)`. Let one unit change scores u to v, and let r be the range of the move,
    `max_i (v_i − u_i) − min_i (v_i − u_i)`, at most `sensitivity * d * (1 + slack)`. So i is chosen with probability
    `E min(1, exp(−(m_i − u_i) / b))`, m_i being the largest among the others. Each `u_j − u_i` moves by at most r, so
    `m_i − u_i` does, and the probability by a factor of at most `exp(r / b) ≤ exp(d * epsilon)`, as billed. A source
    that changes by k ≥ 1 units moves scores by a range of at most k times as much, and loses k times the loss.

    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Source: Proserpio, Goldberg, McSherry, VLDB 2014, section 2.2 (NoisyCount).

    Examples
    --------
    >>> laplace_scale(Fraction(1, 2), Fraction(0)), laplace_scale(Fraction(1, 2), Fraction(0), Fraction(2))
    (2.0, 4.0)
    """
    if exact_number(epsilon, "epsilon") <= 0:
        raise EpsilonError("epsilon must be more than 0 to scale noise: parse it with parse_epsilon")
    if exact_number(slack, "the rounding slack") < 0:
        raise EpsilonError("the rounding slack must be at least 0: take the bound that the plan analysis gives")
    if exact_number(sensitivity, "the sensitivity") <= 0:
        raise EpsilonError("the sensitivity must be more than 0: it is 2 where scores move by 1, up and down")
    return round_up(sensitivity * (1 + slack) / epsilon, "the noise scale")


def geometric_scale(epsilon: Fraction, step: Fraction, slack: Fraction) -> float:
    """The scale, in steps of the lattice, of double-geometric noise: the least float from `(1 + slack)/(ε·g)` on.

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
        raise EpsilonError(
            "the lattice is too fine for exact evaluation: declare a smaller cap on the sources, or use Laplace noise"
        )


def on_lattice(weights: Sequence[float], step: Fraction) -> list[int]:
    """Protected float weights as numbers of steps, rounded to the nearest: exact where the error is below g/2.

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
    """The scale, in steps, of double-geometric noise for a plan, where floats hold its lattice exactly.

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


def ladder_scale(certificate: PlanProperties, epsilon: Fraction, sensitivity: Fraction) -> float:
    """The scale of the rungs of a ladder, where floats hold the weights of its edges exactly.

    The least float from sensitivity/ε on, and no less than 1/32. At 1/32 the count itself is as good as certain, and
    the draw works with short numbers.

    Parameters
    ----------
    certificate : PlanProperties
        Of the plan that gives the edges.
    epsilon : Fraction
        More than 0.
    sensitivity : Fraction
        In rungs: 2 where an edge moves an integer by one rung and the sum of all their weights as much again, 1 where
        the sum is the same for all graphs.

    Raises
    ------
    EpsilonError
        When the floats of an engine do not tell an edge from none, or cannot hold the scale.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.plan.properties import plan_properties
    >>> edges = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
    >>> ladder_scale(plan_properties(edges.plan), Fraction(1, 2), Fraction(2))
    4.0
    """
    check_exact(Fraction(1), certificate.rounding_error, certificate.output.norm_bound)
    return max(LEAST_LADDER_SCALE, geometric_scale(exact_number(epsilon, "epsilon") / sensitivity, _ONE, Fraction(0)))
