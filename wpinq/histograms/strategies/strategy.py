"""What a histogram strategy is: a query program, whose cost the plan bills, and an inference over its answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.histograms.workload import check_domain_size
from wpinq.inference.checks import is_one_of, vector
from wpinq.inference.intervals import Noise
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.geometric import lattice_scale
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.runtime.arrays import Floats

# --- the noise of a strategy's answers --------------------------------------------------------------------------------

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
    certificate = plan_properties(plan)
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
    if not sink.per_key:
        raise AnswersError(f"a strategy's answers are of NoisyCount or GeometricCount, not of {sink.name}")
    if isinstance(known, Measurement) and keys is not None and known.domain != keys:
        raise PlanError("the measurement is over other keys than this strategy's: give what its own measure gave")
    step = None if sink.lattice is None else float(sensitivity * sink.lattice)
    if isinstance(known, Answers):
        return Noise(known.scale * float(sensitivity), step)
    return Noise(float(sensitivity / known.epsilon), step)


class Strategy(ABC):
    """A query program over a protected source and an inference over its answers.

    Attributes
    ----------
    domain : int
        The number of bins.

    Notes
    -----
    Only what `measure` gives costs privacy, once released. All else reads released answers, or none.

    What is called `answers` is Answers of `measure`, or noisy answers in the order of `keys`. Answers know their noise;
    for others `epsilon` says it: a number for Laplace noise, or what `measure` gave. Raises, everywhere: AnswersError
    when answers are not the strategy's, EpsilonError when an epsilon is not a positive number, PlanError when another
    parameter is out of range.
    """

    domain: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain)

    @property
    def sensitivity(self) -> Fraction:
        """What a released weight is multiplied by to give an answer; the noise is that over ε in the answers.

        It equals the classical sensitivity of the strategy's queries; 1, unless a strategy says otherwise.
        """
        return Fraction(1)

    @property
    @abstractmethod
    def keys(self) -> tuple[Value, ...]:
        """The public records that are released, in the order of the answers."""

    @property
    def size(self) -> int:
        """The number of answers."""
        return len(self.keys)

    @abstractmethod
    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program over any query whose records `bin` maps to 0 … domain − 1; other bins are left out."""

    @abstractmethod
    def infer(self, answers: Any) -> Any:
        """The estimate, from answers."""

    def measure(
        self, source: Query, epsilon: object, bin: UserFunction | None = None, mechanism: Mechanism = "laplace"
    ) -> Measurement:
        """The measurement to release: the query over the strategy's public keys.

        Parameters
        ----------
        source : Query
            Any query.
        epsilon : number
            More than 0. Privacy cost: ε times the uses of each source, as the plan's bill says.
        bin : function, optional
            From a record to its bin; left out where records are bins.
        mechanism : {"laplace", "geometric", "automatic"}
            "geometric" is double-geometric noise on the lattice that the plan proves, of less variance; its promise is
            for neighbours whose outputs lie on the same lattice. "automatic" is that where the plan proves one,
            and Laplace noise elsewhere.

        Raises
        ------
        PlanError
            When bins are not of the right type; for "geometric", when the plan proves no lattice: it names the step
            that breaks it.

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.histograms import Identity
        >>> people = wp.source("people", age=int, facts=["unit_weights"])
        >>> Identity(100).measure(people, 0.1, bin=lambda p: p.age, mechanism="geometric").sink
        GeometricCount(step=Fraction(1, 1))
        """
        return noisy(self.query(source, bin), epsilon, self.keys, mechanism)

    def noise(self, answers: Any = None, epsilon: object = None) -> Noise:
        """The law of the noise in `answers_of(answers)`: `scale`, `step` (None for Laplace noise) and `variance`.

        PlanError when a measurement is over other keys than the strategy's.
        """
        known = answers if isinstance(answers, Answers) else epsilon
        return noise_of(known, self.sensitivity, self.keys if isinstance(known, Measurement) else None)

    def answers_of(self, answers: Any) -> Floats:
        """Released weights as answers to the strategy's queries: times the sensitivity. A vector stays as it is."""
        if not isinstance(answers, Answers):
            return vector(answers, "the noisy answers", self.size)
        return np.asarray(weights_at(answers, self.keys) * float(self.sensitivity), dtype=np.float64)


def weights_at(answers: Answers, keys: tuple[Value, ...]) -> Floats:
    """The released weights of some keys, in their order."""
    return answers.values if answers.keys == keys else answers.at(keys)


def checked_query(source: object) -> Query:
    """The query, if it is one, or PlanError."""
    if not isinstance(source, Query):
        raise PlanError(f"a strategy is a program over a query, not over a {type(source).__name__}")
    return source


def bins_of(source: Query, bin: UserFunction | None, domain: int) -> Query:
    """The query of each record's bin, those outside of the domain left out; PlanError when bins are no ints."""
    bins = checked_query(source) if bin is None else checked_query(source).select(bin)
    if bins.plan.type != INT:
        raise PlanError(f"bins must be integers 0 to {domain - 1}, not {bins.plan.type}: give bin=lambda record: …")
    return bins.where(lambda x: (x >= 0) & (x < domain))
