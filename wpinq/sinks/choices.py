"""Noisy choices among public candidates: what they have in common, and those by a weight or a quantile."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.engines.contract import rank_weights_of
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.values import Value
from wpinq.plan.node import Node
from wpinq.sinks.answer_kinds import STATISTIC, Kind
from wpinq.sinks.sink import Sink


@dataclass(frozen=True, slots=True)
class NoisyChoice(Sink):
    """A noisy choice among public candidates, by permute-and-flip with scores that the plan's weights determine."""

    single: ClassVar[bool] = True
    readouts: ClassVar[int]
    """How often a score is rounded on its way from the engine's weights."""

    @property
    @abstractmethod
    def score_range(self) -> Fraction:
        """How far the moves of two scores differ, at most, per unit of weight: `max_c Δ(c) − min_c Δ(c)`."""

    @property
    @abstractmethod
    def by(self) -> str:
        """What candidates are chosen by, in words."""

    @abstractmethod
    def scores(self, weights: Mapping[Value, Any], candidates: tuple[Value, ...]) -> Sequence[float | Fraction]:
        """The score of every candidate, protected, from all weights of the plan."""

    @property
    def has_interval(self) -> bool:
        return False

    @property
    def noise(self) -> str:
        return "permute-and-flip"

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return next(key for key, number in numbers.items() if number == 1.0)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        raise AnswersError("a choice among candidates has no interval")


@dataclass(frozen=True, slots=True)
class Choose(NoisyChoice):
    """The choice of the candidate that has most weight, or that cuts the weight at a quantile.

    `score` is "weight", `score(c) = A(c)`, or "quantile", with L, M and R the weight before, at and after c, each
    record's weight taken as 0 where it is below, `score(c) = min(0, q·(M+R) − (1−q)·L, (1−q)·(L+M) − q·R)`.
    That is, negated, how far `q·(L+M+R)` lies from the interval [L, L+M]: 0 where c is the quantile.
    """

    name: ClassVar[str] = "Choose"
    readouts: ClassVar[int] = 1
    score: str
    quantile: Fraction | None = None

    def kind(self, plan: Node) -> Kind:
        which = "the heaviest" if self.quantile is None else f"the quantile {float(self.quantile):g}"
        return Kind(STATISTIC, f"{which} of public candidates, as noise lets it be told")

    def __post_init__(self) -> None:
        # The sensitivity of 1 rests on 0 < q < 1, and a Choose may be read from a file.
        weight = self.score == "weight" and self.quantile is None
        if not (weight or (self.score == "quantile" and isinstance(self.quantile, Fraction) and 0 < self.quantile < 1)):
            raise PlanError("a choice is by weight, or by quantile with a Fraction q, 0 < q < 1")

    def identity(self) -> tuple[bytes | str, ...]:
        return ("permute and flip", self.score, str(self.quantile))

    def former_identity(self) -> tuple[bytes | str, ...]:
        return ("exponential", self.score, str(self.quantile))  # twice the noise; its quantile left M out

    @property
    def score_range(self) -> Fraction:
        """How far the moves of two scores differ, at most, per unit of weight: `max_c Δ(c) − min_c Δ(c)`.

        Notes
        -----
        Weights are of different records, so `max Δ − min Δ ≤ ‖Δ‖`: 1. A score of a quantile is the least of 0 and two
        linear forms of the weights, whose coefficients are ±q and ±(1−q). A unit of weight moves each form, and so the
        least, by at most `max(q, 1−q)`, one score up and another down: `2·max(q, 1−q)`, 1 for a median. A weight that
        is taken as 0 where it is below moves no further than it did. Both bounds are reached.
        """
        return Fraction(1) if self.quantile is None else 2 * max(self.quantile, 1 - self.quantile)

    @property
    def by(self) -> str:
        return "their weight" if self.quantile is None else f"how near they come to the quantile {self.quantile}"

    def scores(self, weights: Mapping[Value, float], candidates: tuple[Value, ...]) -> list[float]:
        """The score of every candidate, from the exact sums of the weights."""
        if self.quantile is None:
            return [weights.get(candidate, 0.0) for candidate in candidates]
        return self.scores_of_sides(rank_weights_of(weights, candidates))

    def scores_of_sides(self, sides: Iterable[tuple[Fraction, Fraction, Fraction]]) -> list[float]:
        """The score of every candidate of a quantile, from the weight before, at and after it: exact, rounded once."""
        assert self.quantile is not None
        held = list(sides)
        cut = self.quantile * sum(held[0]) if held else Fraction(0)  # L+M+R is all the weight, at every candidate
        return [float(min(Fraction(0), cut - left, left + here - cut)) for left, here, _ in held]
