"""What a histogram strategy is: a query program, whose cost the plan bills, and an inference over its answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.histograms.strategies.noise_choice import Mechanism, noise_of, noisy
from wpinq.histograms.workload import check_domain_size
from wpinq.inference.checks import vector
from wpinq.inference.noise_law import Noise
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.query import Query


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
