"""Aggregates that are sums of weights: one measurement over all groups.

So each costs its epsilon once, as the same over all records would.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr import catalogue
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import FLOAT, Type
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.noise_distributions import half_width
from wpinq.plan.node import Node
from wpinq.plan.operators import Select, SelectMany, Shave, Where
from wpinq.sinks.answer_kinds import COUNT, RESCALED, WEIGHT, Kind, kind_of_weights
from wpinq.sinks.clamped_average import NoisyAverage, average_elements
from wpinq.sinks.clamped_sum import ClampedSink, NoisySum, check_range, sum_elements
from wpinq.sinks.laplace import NoisyCount
from wpinq.tables.aggregates import Aggregate, Estimate, OfColumn, ParameterKind, extended
from wpinq.tables.grouping import Groups


@dataclass(frozen=True, slots=True)
class AdditiveAggregate(Aggregate):
    """Aggregates that are read off noisy weights: for each group, of a record for each of their parts."""

    parts: ClassVar[tuple[str, ...]] = ("count",)

    @abstractmethod
    def plan(self, groups: Groups) -> Node:
        """The query whose weights these are."""

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        domain = None if groups.keys is None else groups.labels(groups.keys, self.parts)
        listing = groups.listing if self.lists else None
        return (Measurement(self.plan(groups), NoisyCount(), epsilon, domain, reading, listing),)

    def domains(
        self, groups: Groups, keys: tuple[Value, ...], asked: Sequence[Measurement]
    ) -> list[tuple[Value, ...] | None]:
        return [groups.labels(keys, self.parts)]

    def read(self, answers: Sequence[Answers], group: int, confidence: float) -> Estimate:
        (weights,) = answers
        first = group * len(self.parts)
        numbers = dict(zip(self.parts, map(float, weights.values[first : first + len(self.parts)]), strict=True))
        return self.estimate(numbers, weights, confidence)

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        """The number that the noisy weights of the parts come down to: a count, where the plan tells how they count."""
        (number,) = numbers.values()
        factor = float(self.kind((weights.measurement,)).factor)
        low, high = weights.measurement.ends(number, weights.scale, confidence)
        return Estimate(number / factor, low / factor, high / factor)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        (measurement,) = measurements
        kind = measurement.kind
        # a weight that is divided by another number at each key: a group's has no key to tell by
        return kind if kind.form is None else Kind(WEIGHT, f"{kind.of}, which weigh {kind.form.formula} each")

    def estimate_type(self) -> Type:
        return FLOAT


@dataclass(frozen=True, slots=True)
class Count(AdditiveAggregate):
    """The weight of each group."""

    name: ClassVar[str] = "Count"
    lists: ClassVar[bool] = True

    def bound(self, type_: Type) -> Count:
        return self

    def plan(self, groups: Groups) -> Node:
        return extended(groups.plan, Select, function=lambda record: groups.label(record, "count", alone=True))

    @property
    def description(self) -> str:
        return "count"


@dataclass(frozen=True, slots=True)
class CountDistinct(OfColumn, AdditiveAggregate):
    """How many values a column has in each group, where each row weighs 1 or more: `Σ_v min(1, A(group, v))`."""

    name: ClassVar[str] = "CountDistinct"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"),)

    def plan(self, groups: Groups) -> Node:
        value = self.value

        def pair(record: Symbol) -> tuple[object, object]:
            return groups.label(record, "count", alone=True), value(record)

        def is_there(pair: Symbol) -> Expr:
            return catalogue.apply("not", catalogue.apply("is_null", lift(pair[1])))

        present = extended(extended(groups.plan, Select, function=pair), Where, predicate=is_there)
        return extended(extended(present, Shave, widths=1.0, limit=1), Select, function=lambda piece: piece.record[0])

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        found = AdditiveAggregate.kind(self, measurements)
        if found.name == COUNT:
            (shaved,) = measurements[0].plan.inputs
            return Kind(COUNT, f"of different values of {self.of}, {kind_of_weights(shaved.inputs[0]).of}")
        if found.name == RESCALED:
            return Kind(WEIGHT, f"rows weigh {found.factor}, and a value adds their sum where that is less than 1")
        return found

    @property
    def description(self) -> str:
        return f"count of distinct {self.of}"


@dataclass(frozen=True, slots=True)
class Clamping(OfColumn, AdditiveAggregate):
    """Aggregates of the values of a column, each clamped to a public range."""

    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (
        ("column", "function"),
        ("lower", "real"),
        ("upper", "real"),
    )
    lower: float
    upper: float

    def __post_init__(self) -> None:
        low, high = check_range(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        self.sink()  # what it cannot be read with is refused before it is paid for

    @abstractmethod
    def sink(self) -> ClampedSink:
        """How the number of one group is read off its weights."""

    def stand_in(self, measurement: Measurement) -> Measurement:
        return replace(measurement, sink=self.sink())

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return self.statistic

    @property
    def range(self) -> str:
        """In words."""
        return f"of {self.of}, clamped to {self.lower:g} to {self.upper:g}"


@dataclass(frozen=True, slots=True)
class Sum(Clamping):
    """The sum of the clamped values of each group."""

    name: ClassVar[str] = "Sum"
    parts: ClassVar[tuple[str, ...]] = ("sum",)

    def sink(self) -> NoisySum:
        return NoisySum(self.lower, self.upper)

    def plan(self, groups: Groups) -> Node:
        function = sum_elements(
            self.value, self.lower, self.upper, lambda record, part: groups.label(record, part, alone=True)
        )
        return extended(groups.plan, SelectMany, function=function)

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        factor = float(self.sink().factor)
        half = half_width(weights.scale * factor, confidence)
        total = numbers["sum"] * factor
        return Estimate(total, total - half, total + half)

    @property
    def description(self) -> str:
        return f"sum {self.range}"


@dataclass(frozen=True, slots=True)
class Mean(Clamping):
    """The mean of the clamped values of each group, from a noisy sum about the middle and a noisy count."""

    name: ClassVar[str] = "Mean"
    parts: ClassVar[tuple[str, ...]] = ("sum", "count")

    def __post_init__(self) -> None:
        Clamping.__post_init__(self)
        if self.lower == self.upper:
            raise PlanError("a mean needs lower < upper")

    def sink(self) -> NoisyAverage:
        return NoisyAverage(self.lower, self.upper)

    def plan(self, groups: Groups) -> Node:
        return extended(
            groups.plan, SelectMany, function=average_elements(self.value, self.lower, self.upper, groups.label)
        )

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        sink, held = self.sink(), dict(numbers)
        return Estimate(sink.value(held), *sink.value_interval(held, weights.scale, confidence))

    @property
    def description(self) -> str:
        return f"mean {self.range}"
