"""Targets of a fit: released answers, the score that noise alone would leave, and priors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from wpinq.api.query import Query
from wpinq.engines.delta.evaluator import Goal
from wpinq.errors import AnswersError, PlanError, described
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.plan.format import plan_to_json, values_to_json
from wpinq.plan.node import Node
from wpinq.sinks.keys import check_domain

NO_NOISE_LEVEL = (
    "chains fit smoothed estimates here, and a candidate at the noise level of the answers may be far from them: leave "
    "stop_at_noise out, and give a number of steps"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Answers as the target of a candidate A: `ε · Σ_x |Q(A)(x) − answers[x]|` over their keys.

    Attributes
    ----------
    answers : Answers
        Answers of a NoisyCount or GeometricCount with at least one key. Q is their plan, ε their epsilon.
    outside : bool
        Whether weight of Q(A) on other records adds to the score, ε times the weight, as if they had been released as
        0. Use it only if the keys are all possible records of Q.

    Raises
    ------
    AnswersError
        When these are not answers of such a sink, or there are none.

    Notes
    -----
    Privacy cost: none; answers hold nothing that was not released. Source: paper, sections 4.1 and 4.2.

    Examples
    --------
    >>> import wpinq as wp
    >>> bits = wp.source("bits", bool)
    >>> answers = wp.simulate(bits.noisy_count(epsilon=0.5), {"bits": [True, True, False]}, seed=1)
    >>> target = Target(answers)
    >>> target.epsilon, round(target.score({True: answers[True] + 3, False: answers[False]}), 9)
    (0.5, 1.5)
    """

    answers: Answers
    outside: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.answers, Answers):
            raise AnswersError(f"a target needs Answers, not a {type(self.answers).__name__}: of a Release, at(keys)")
        if not self.answers.measurement.sink.per_key:
            raise AnswersError("a candidate is scored against answers of NoisyCount or GeometricCount only")
        if not len(self.answers):
            raise AnswersError("a target needs answers with at least one key")

    @property
    def plan(self) -> Node:
        """The query."""
        return self.answers.plan

    @property
    def epsilon(self) -> float:
        """The factor of the distance in the score."""
        return float(self.answers.epsilon)

    @property
    def width(self) -> float:
        """The distance of an answer up to which the loss is quadratic, here 0.

        Source: Huber, Ann. Math. Stat. 1964.

        A difference u costs `ε · |u|`; with a width w, `ε · u²/(2w)` below it and `ε · (|u| − w/2)` beyond.
        """
        return 0.0

    @property
    def values(self) -> dict[Value, float]:
        """The answer for each key of the domain."""
        return dict(self.answers.items())

    @property
    def noise(self) -> float:
        """The average score of the measured dataset itself: `ε · Σ_x E|noise(x)|`.

        For Laplace noise, E|noise| is its scale, so that each key adds one, up to the slack of the scale.
        """
        lattice, scale = self.answers.measurement.sink.lattice, self.answers.scale
        size = scale
        if lattice is not None:
            step = float(lattice)
            decay = DoubleGeometric(scale / step).ratio
            size = step * 2 * decay / (1 - decay * decay)
        return self.epsilon * size * len(self.answers)

    @property
    def goal(self) -> Goal:
        """The form of the target for an engine."""
        return Goal(self.plan, self.epsilon, self.values, self.outside, self.width)

    def score(self, output: Mapping[Value, float]) -> float:
        """The cost of the differences from the answers, over the keys.

        If `outside`, it is over the other records too.
        """
        return self.goal.score(output)

    def to_json(self) -> list[Any]:
        """The target as plain data, for the identity of a run."""
        return [self.answers.to_json(), self.outside, self.width]


def noise_level(targets: Sequence[Target]) -> float:
    """The average score of the measured dataset itself, `Σ_i ε_i · Σ_x E|noise_i(x)|`.

    A candidate that scores less fits the noise as well; see `stop_at_noise` of `Settings`. It is nan where a target is
    an estimate made from answers: the measured dataset differs from that by no known amount.
    """
    return math.fsum(target.noise for target in targets)


@dataclass(frozen=True, slots=True)
class Prior:
    """A log prior of candidates, up to a constant: the weight of a query, or a desired value.

    It is `weight · Σ_x Q(A)(x)` of a candidate A without `values`, else `−weight · Σ_x loss(Q(A)(x) − values[x])`.

    The first form is a log-linear model: with Q the triangles of a graph, an exponential random graph. A log
    probability of a record is a weight in the query, of either sign and at most 1 in size: divide it, and multiply
    `weight`. The second form is a target of your own.

    Attributes
    ----------
    query : Query
        Q, over sources of the candidate. It is evaluated on the candidate without noise.
    weight : float
        The factor: of either sign in the first form, at least 0 in the second.
    values : mapping, optional
        Key to desired value. Other keys do not count.
    width : float
        The distance up to which the loss is quadratic, as of a normal prior; with 0, it is the distance.

    Raises
    ------
    PlanError
        When the query is none, a number is not finite, or a key is no record of the query.

    Notes
    -----
    Privacy cost: none. A prior reads the candidate, which is public, so the chain stays a function of released answers.
    Choose it by public knowledge: a choice by protected data would be a release that no ledger records.
    Source: paper, section 4.1.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> towns = wp.source("towns", str)
    >>> chances = towns.select_many(lambda town: [F.weighted(town, F.where(town == "York", -0.1, -0.6))])
    >>> candidate = {"towns": ["York", "York", "Hull"]}
    >>> round(Prior(chances, 5.0).log(wp.evaluate(chances, candidate)), 9)  # log probabilities of -0.5 and -3
    -4.0
    >>> Prior(towns, 2.0, {"York": 8.0}).log(wp.evaluate(towns, candidate))
    -12.0
    """

    query: Query
    weight: float = 1.0
    values: Mapping[Value, float] | None = None
    width: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.query, Query):
            raise PlanError(f"a prior needs a query over the candidate, not {described(self.query)}")
        numbers = self.weight, self.width, *(self.values or {}).values()
        finite = all(isinstance(number, Real) and math.isfinite(number) for number in numbers)
        if not finite or (self.width and self.values is None):
            raise PlanError("a prior has a finite weight, finite values, and a finite width only where it has values")
        if self.values is not None:
            keys = check_domain(self.values, self.plan.type)
            object.__setattr__(self, "values", dict(zip(keys, map(float, self.values.values()), strict=True)))
        self.goal.check()

    @property
    def plan(self) -> Node:
        """The query."""
        return self.query.plan

    @property
    def goal(self) -> Goal:
        """The form of the negated log prior for an engine."""
        if self.values is None:
            return Goal(self.plan, -self.weight, {}, True, math.inf)
        return Goal(self.plan, self.weight, self.values, False, self.width)

    def log(self, output: Mapping[Value, float]) -> float:
        """The log prior, up to a constant, of a candidate with this output of the query."""
        return -self.goal.score(output)

    def to_json(self) -> dict[str, Any]:
        """The prior as plain data, for reports and the identity of a run."""
        values = self.values and [values_to_json(self.values, self.plan.type), [*self.values.values()]]
        numbers = {"weight": float(self.weight), "width": float(self.width)}
        return {"plan": plan_to_json(self.plan), **numbers, "values": values}
