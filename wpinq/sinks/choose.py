"""Choose: a noisy choice among public candidates, by weight or by distance to a quantile."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.laplace import laplace_scale
from wpinq.noise.permute_and_flip import select
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import Kind, Stated
from wpinq.sinks.sink import Output, PublicKeys, Sink, register
from wpinq.sinks.syntax import EPSILON, OVER, Measured, SinkParameter, SinkSyntax, Written, write_keys

_CODE = b"choice"
MOST_COMMON = "most common"
_Q = SinkParameter("q", "number")
_RENAMED = {"over": "candidates"}


class NoisyChoice(Sink):
    """A noisy choice among public candidates: permute-and-flip with scores from the weights."""

    __slots__ = ()
    single: ClassVar[bool] = True
    chooses: ClassVar[bool] = True
    readouts: ClassVar[int]
    """How often a score is rounded on its way from the engine's weights."""

    @property
    @abstractmethod
    def by(self) -> str:
        """The criterion of the choice, in words."""

    @abstractmethod
    def scores(self, output: Output, candidates: Sequence[Value]) -> Sequence[float | Fraction]:
        """The score of every candidate, protected."""

    def check_keys(self, plan: Node, keys: PublicKeys) -> None:
        if not keys:
            raise PlanError("a choice needs at least one candidate")
        super().check_keys(plan, keys)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (laplace_scale(epsilon, plan_properties(plan).slack(self.readouts), self.sensitivity),)

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        """The place of the chosen candidate: one number, whatever the number of keys."""
        return [float(select(self.scores(output, keys), scales[0], random))]

    def codes(self, keys: Sequence[Value], type_: Type) -> list[bytes]:
        return [_CODE]

    def answers(self, drawn: Sequence[float], keys: int) -> NDArray[np.float64]:
        values = np.zeros(keys)
        values[int(drawn[0])] = 1.0
        return values

    def answer_scale(self, scale: float) -> float:
        return 0.0

    @property
    def has_interval(self) -> bool:
        return False

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return next(key for key, number in numbers.items() if number == 1.0)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        raise AnswersError("a choice among candidates has no interval")

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The error bound, from the chance `exp(−x/s)/2` that a score less by x wins.

        Permute-and-flip adds exponential noise to the scores and takes the best.
        """
        others = len(keys or ()) - 1
        if others < 1:
            return 0.0
        return self.scales(plan, epsilon)[0] * max(0.0, math.log(others / (2 * (1 - confidence))))

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} picks one of the keys, by {self.by}, with noise of scale {scale:.9g},"
        # the largest of n exponential noises is below scale x ln(n / 0.05) with probability 95 %
        yield f"so 95 % of choices among n keys score within {scale:.4g} x ln(20 n) of the best."


def _write(score: str, fixed: Fraction | None) -> Callable[[Measured], Written | None]:
    def written(m: Measured) -> Written | None:
        quantile, over = m.sink.quantile, f"over: {write_keys(m.domain or (), m.plan.type)}"
        if m.sink.score != score:
            return None
        if quantile == fixed:
            return m.plan, [over]
        return None if quantile is None or fixed is not None else (m.plan, [format_epsilon(quantile), over])

    return written


@register
@dataclass(frozen=True, slots=True)
class Choose(NoisyChoice):
    """The choice of the candidate that has most weight, or that cuts the weight at a quantile.

    `score` is "weight", `score(c) = A(c)`, or "quantile", with L, M and R the weight before, at and after c, each
    record's weight taken as 0 where it is below, `score(c) = min(0, q·(M+R) − (1−q)·L, (1−q)·(L+M) − q·R)`.
    That is, negated, how far `q·(L+M+R)` lies from the interval [L, L+M]: 0 where c is the quantile.
    """

    name: ClassVar[str] = "Choose"
    readouts: ClassVar[int] = 1
    bounded_work: ClassVar[bool] = True
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (
        SinkSyntax("MostCommon", (EPSILON, OVER), _write("weight", None), "most_common", _RENAMED),
        SinkSyntax("Median", (EPSILON, OVER), _write("quantile", Fraction(1, 2)), "median", _RENAMED),
        SinkSyntax("Quantile", (EPSILON, _Q, OVER), _write("quantile", None), "quantile", _RENAMED),
    )
    score: str
    quantile: Fraction | None = None

    def kind(self, plan: Node) -> Kind:
        q = self.quantile
        name = MOST_COMMON if q is None else "median" if q == Fraction(1, 2) else f"quantile {float(q):g}"
        return Kind(name, f"{name} among public candidates, up to noise")

    def __post_init__(self) -> None:
        # The sensitivity of 1 rests on 0 < q < 1, and a Choose may be read from a file.
        weight = self.score == "weight" and self.quantile is None
        if not (weight or (self.score == "quantile" and isinstance(self.quantile, Fraction) and 0 < self.quantile < 1)):
            raise PlanError("a choice is by weight, or by quantile with a Fraction q, 0 < q < 1")

    def identity(self) -> tuple[bytes | str, ...]:
        return ("permute and flip", self.score, str(self.quantile))

    @property
    def sensitivity(self) -> Fraction:
        """The largest difference of the changes of two scores, per unit of weight.

        Notes
        -----
        This is `max_c Δ(c) − min_c Δ(c)`. Weights are of different records, so `max Δ − min Δ ≤ ‖Δ‖`: 1. A score of a
        quantile is the least of 0 and two linear forms of the weights, whose coefficients are ±q and ±(1−q). A unit of
        weight moves each form, and so the least, by at most `max(q, 1−q)`, one score up and another down: `2·max(q,
        1−q)`, 1 for a median. A weight that is taken as 0 where it is below moves no further than it did. Both bounds
        are reached.
        """
        return Fraction(1) if self.quantile is None else 2 * max(self.quantile, 1 - self.quantile)

    @property
    def by(self) -> str:
        return "their weight" if self.quantile is None else f"how near they come to the quantile {self.quantile}"

    @property
    def whole_output(self) -> bool:
        return self.quantile is not None

    def scores(self, output: Output, candidates: Sequence[Value]) -> list[float]:
        """The score of every candidate: of a quantile from exact sums, rounded once."""
        if self.quantile is None:
            weights = output.weights(candidates)
            return [weights.get(candidate, 0.0) for candidate in candidates]
        (share, whole), held = self.quantile.as_integer_ratio(), output.rank_weights(candidates)
        cut = share * sum(held[0]) if held else 0  # L+M+R is all the weight, at every candidate
        return [float(min(0, cut - whole * left, whole * (left + here) - cut) / whole) for left, here, _ in held]
