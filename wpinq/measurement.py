"""Measurements: what is to be released, with which epsilon, over which public keys. Pure data.

Four sinks: NoisyCount releases weights; NoisySum and NoisyAverage release weights of a query made for them;
Choose is the exponential mechanism. The first three are Laplace noise on the weights of a plan, the last a noisy
choice by scores that the weights determine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type
from wpinq.expr.values import UnfitValue, Value, canonical_bytes, normalize, order_key
from wpinq.plan.node import Node
from wpinq.privacy.epsilon import format_epsilon, parse_epsilon


class Sink(ABC):
    """How a plan's output is released."""

    name: ClassVar[str]

    @abstractmethod
    def identity(self) -> tuple[bytes | str, ...]:
        """What two sinks must share for a release of one to replay as the other."""

    @property
    def factor(self) -> Fraction:
        """What a noisy weight is multiplied by to give an answer."""
        return Fraction(1)

    def value(self, numbers: Mapping[Value, float]) -> Value:
        """The one number that the answers come down to."""
        if len(numbers) != 1:
            raise AnswersError(f"these answers have {len(numbers)} keys; ask for one with answers[key]")
        return next(iter(numbers.values()))

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        """The interval around `value`."""
        number = self.value(numbers)
        half = half_width(scale, confidence)
        return number - half, number + half


@dataclass(frozen=True, slots=True)
class NoisyCount(Sink):
    """Every weight plus Laplace noise of scale 1/ε (paper, section 2.2)."""

    name: ClassVar[str] = "NoisyCount"

    def identity(self) -> tuple[bytes | str, ...]:
        return ("laplace",)


@dataclass(frozen=True, slots=True)
class NoisySum(Sink):
    """`Σ A(x) · clamp(f(x))`: the weight of one record that each x adds `clamp(f(x)) / magnitude` to."""

    name: ClassVar[str] = "NoisySum"
    lower: float
    upper: float

    def identity(self) -> tuple[bytes | str, ...]:
        return ("laplace",)

    @property
    def factor(self) -> Fraction:
        return Fraction(max(abs(self.lower), abs(self.upper)))


@dataclass(frozen=True, slots=True)
class NoisyAverage(Sink):
    """The weighted average of clamped values, from a noisy sum about the middle of the range and a noisy count.

    Both are weights of one query, of norm at most 1 a record: each record gives half its weight to "count" and
    up to half to "sum". Answers are both noisy weights; `value` is their ratio, put back in the range.
    """

    name: ClassVar[str] = "NoisyAverage"
    lower: float
    upper: float

    def identity(self) -> tuple[bytes | str, ...]:
        return ("laplace",)

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return self._average(numbers["sum"], numbers["count"])

    def _average(self, total: float, count: float) -> float:
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        offset = half * total / count if count > 0 else 0.0
        return min(self.upper, max(self.lower, middle + offset))

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        # half the chance of error for each number: the average of any pair within both intervals is covered
        reach = half_width(scale, (1 + confidence) / 2)
        total, count = numbers["sum"], numbers["count"]
        if count - reach <= 0:
            return self.lower, self.upper
        ends = [self._average(total + s, count + c) for s in (-reach, reach) for c in (-reach, reach)]
        return min(ends), max(ends)


@dataclass(frozen=True, slots=True)
class Choose(Sink):
    """The exponential mechanism (McSherry and Talwar 2007) over public candidates.

    `score` is "weight", for the most common candidate, `score(c) = A(c)`, or "quantile", `score(c) =
    −|(1−q)·Σ_{x<c} A(x) − q·Σ_{x>c} A(x)|`. Either moves by at most 1 per unit of weight.
    """

    name: ClassVar[str] = "Choose"
    score: str
    quantile: Fraction | None = None

    def identity(self) -> tuple[bytes | str, ...]:
        return ("exponential", self.score, str(self.quantile))

    def scores(self, weights: Mapping[Value, float], candidates: tuple[Value, ...]) -> list[float]:
        """The score of every candidate, from the exact sums of the weights."""
        if self.quantile is None:
            return [weights.get(candidate, 0.0) for candidate in candidates]
        below = sorted((order_key(record), weight) for record, weight in weights.items() if record is not None)
        q = self.quantile
        scores = []
        for candidate in candidates:
            place = order_key(candidate)
            left = Fraction(math.fsum(weight for key, weight in below if key < place))
            right = Fraction(math.fsum(weight for key, weight in below if key > place))
            scores.append(-abs(float((1 - q) * left - q * right)))
        return scores

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return next(key for key, number in numbers.items() if number == 1.0)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        raise AnswersError("a choice among candidates has no interval")


def half_width(scale: float, confidence: float) -> float:
    """The half-width of the interval that holds Laplace noise of this scale with this probability."""
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {confidence!r}")
    return -scale * math.log1p(-confidence)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A plan with its sink, its epsilon and, usually, its public keys. Holds no data and spends nothing.

    Attributes
    ----------
    plan : Node
        The query.
    sink : Sink
        How its output is released.
    epsilon : Fraction
        The privacy parameter of the release, before uses and unit weight multiply it.
    domain : tuple or None
        The public keys that are released; None where keys are asked for one by one.
    reading : str
        How to read the weights, where the query knows.
    """

    plan: Node
    sink: Sink
    epsilon: Fraction
    domain: tuple[Value, ...] | None
    reading: str = ""

    @property
    def digest(self) -> bytes:
        """What identifies the noise: plan, sink and epsilon. Two domains over one release share their noise."""
        extra: tuple[bytes | str, ...] = ()
        if isinstance(self.sink, Choose):  # a choice is made among its candidates: others, another choice
            extra = tuple(canonical_bytes(key, self.plan.type) for key in self.domain or ())
        return digest_of("measurement", self.plan.digest, *self.sink.identity(), str(self.epsilon), *extra)

    @property
    def description(self) -> str:
        """One line for bills and ledgers; no data."""
        return f"{self.sink.name}({format_epsilon(self.epsilon)})"

    def with_epsilon(self, epsilon: object) -> Measurement:
        """The same measurement at another epsilon."""
        return replace(self, epsilon=parse_epsilon(epsilon))


def check_domain(keys: Iterable[object], type_: Type) -> tuple[Value, ...]:
    """Public keys in canonical form, each once, in the order given.

    Raises
    ------
    PlanError
        When a key is not of the type of the plan's records.
    """
    checked: dict[Value, None] = {}
    for key in keys:
        try:
            checked[normalize(key, type_.with_nullable())] = None
        except UnfitValue as reason:
            raise PlanError(f"the key {key!r} cannot be released: {reason}; keys are of type {type_}") from None
    return tuple(checked)
