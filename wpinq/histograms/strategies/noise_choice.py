"""Which noise a strategy's answers are released with."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.expr.values import Value
from wpinq.inference.checks import is_one_of
from wpinq.inference.noise_law import Noise
from wpinq.measure.answers import Answers
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.measurement import GeometricCount, Measurement, NoisyCount
from wpinq.measure.scales import lattice_scale
from wpinq.plan.certify import certify
from wpinq.plan.node import Node
from wpinq.query import Query

Mechanism = Literal["laplace", "geometric", "automatic"]
"""Laplace noise; double-geometric noise on the lattice that the plan proves; that where it can be, and else Laplace."""


def noisy(query: Query, epsilon: object, keys: Iterable[Value], mechanism: Mechanism) -> Measurement:
    """The noisy count or the geometric count of a query over public keys.

    "automatic" is "geometric" where the plan proves a lattice, and evaluation in floats is exact on it. It looks at the
    plan and at epsilon alone, so that the choice tells nothing of the data. Both cost the same privacy; the promise of
    GeometricCount is for neighbours whose outputs lie on the same lattice. PlanError for "geometric" where the plan
    proves none: it names the step that breaks it.

    Examples
    --------
    >>> import wpinq as wp
    >>> bins = wp.source("bins", int, facts=["unit_weights"])
    >>> noisy(bins, 1, [0, 1], "automatic").sink
    GeometricCount(step=Fraction(1, 1))
    >>> noisy(wp.source("weights", int), 1, [0, 1], "automatic").sink
    NoisyCount()
    """
    check_mechanism(mechanism)
    if mechanism == "geometric" or (mechanism == "automatic" and _fits(query.plan, parse_epsilon(epsilon))):
        return query.geometric_count(epsilon, over=keys)
    return query.noisy_count(epsilon, over=keys)


def check_mechanism(mechanism: object) -> None:
    """PlanError for what is no mechanism."""
    if not is_one_of(mechanism, ("laplace", "geometric", "automatic")):
        raise PlanError(f"a mechanism is 'laplace', 'geometric' or 'automatic', not {mechanism!r}")


def _fits(plan: Node, epsilon: Fraction) -> bool:
    """Whether a session would release the plan with double-geometric noise."""
    certificate = certify(plan)
    if certificate.lattice is None:
        return False
    try:
        lattice_scale(certificate, epsilon)
    except EpsilonError:
        return False
    return True


def noise_of(known: Any, sensitivity: Fraction, keys: tuple[Value, ...] | None = None) -> Noise:
    """The noise in released weights times a sensitivity.

    Parameters
    ----------
    known : Answers, Measurement or number
        Answers, whose scale is certified; the measurement to be released, whose scale is `1/ε` but for what a release
        adds for floating point; or the epsilon of Laplace noise.
    sensitivity : Fraction
        What a weight is multiplied by.
    keys : tuple, optional
        What a measurement must be over, or PlanError. AnswersError for sinks that count nothing.

    Examples
    --------
    >>> import wpinq as wp
    >>> bins = wp.source("bins", int, facts=["unit_weights"])
    >>> noise_of(bins.geometric_count(0.5, over=[0]), Fraction(3)), noise_of(0.5, Fraction(3))
    (Noise(scale=6.0, step=3.0), Noise(scale=6.0, step=None))
    """
    if not isinstance(known, (Answers, Measurement)):
        return Noise(float(sensitivity / parse_epsilon(known)))
    sink = known.measurement.sink if isinstance(known, Answers) else known.sink
    if not isinstance(sink, (NoisyCount, GeometricCount)):
        raise AnswersError(f"a strategy's answers are of NoisyCount or GeometricCount, not of {sink.name}")
    if isinstance(known, Measurement) and keys is not None and known.domain != keys:
        raise PlanError("the measurement is over other keys than this strategy's: give what its own measure gave")
    step = float(sensitivity * sink.step) if isinstance(sink, GeometricCount) else None
    if isinstance(known, Answers):
        return Noise(known.scale * float(sensitivity), step)
    return Noise(float(sensitivity / known.epsilon), step)
