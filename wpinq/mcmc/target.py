"""Targets of a fit: released answers, and the score that noise alone would leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpinq.engines.delta.evaluator import Goal
from wpinq.errors import AnswersError
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.plan.node import Node

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


def noise_level(targets: Sequence[Target]) -> float:
    """The average score of the measured dataset itself, `Σ_i ε_i · Σ_x E|noise_i(x)|`.

    A candidate that scores less fits the noise as well; see `stop_at_noise` of `Settings`. It is nan where a target is
    an estimate made from answers: the measured dataset differs from that by no known amount.
    """
    return math.fsum(target.noise for target in targets)
