"""Aggregates of groups: what each is made of, as measurements, and how it is read off their answers.

Those of the first family are weights: one measurement over all groups, in which a record gives its weight to its own
group alone. Those of the second are choices among candidates: one measurement a group, over the parts of a partition,
which cost the largest of them and not the sum. So each costs its epsilon once, however many groups there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr import catalogue
from wpinq.expr.logical_values import presenter
from wpinq.expr.nodes import Constant, Lambda
from wpinq.expr.printing import write
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, trace
from wpinq.expr.types import FLOAT, CategoryOf, Type
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.measure.clamped import average_elements, check_range, sum_elements
from wpinq.measure.epsilon import format_epsilon, parse_epsilon
from wpinq.measure.kinds import STATISTIC, Kind
from wpinq.measure.laws import half_width
from wpinq.measure.measurement import (
    Choose,
    Measurement,
    NoisyAverage,
    NoisyCount,
    NoisySum,
    check_domain,
)
from wpinq.plan.node import Node, construct
from wpinq.plan.operator import Operator
from wpinq.plan.operators import Partition, Select, SelectMany, Shave, Where
from wpinq.tables.grouping import Groups

ParameterKind = Literal["number", "real", "function", "keys"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released number or choice of one group.

    Attributes
    ----------
    estimate : value
        The number, or the candidate that was chosen.
    low, high : float or None
        The interval that holds the noiseless number with the confidence that was asked for; None for a choice.
    """

    estimate: Value
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """What is asked of each group. `wp.count()`, `wp.mean("salary", 0, 200_000)` and their like make it."""

    name: ClassVar[str]
    """What text programs call it."""
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = ()
    """What it takes, as text programs write it."""
    candidates: ClassVar[bool] = False
    """Whether it chooses, and so needs to know the groups."""

    @abstractmethod
    def bound(self, type_: Type) -> Aggregate:
        """The same for records of a type, its function traced: what tells it from others."""

    @abstractmethod
    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        """What is released."""

    @abstractmethod
    def read(self, answers: Sequence[Answers], group: int, confidence: float) -> Estimate:
        """What was released of a group, by its place among the keys."""

    @property
    @abstractmethod
    def description(self) -> str:
        """In words, for whoever asked."""

    @abstractmethod
    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        """What its numbers are, for what is released."""

    @property
    def statistic(self) -> Kind:
        """What numbers are that neither are counts nor weights."""
        return Kind(STATISTIC, self.description)

    @abstractmethod
    def estimate_type(self) -> Type:
        """The type of its numbers, or of what is chosen; of a bound one."""


# --- weights ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weighing(Aggregate):
    """Aggregates that are read off noisy weights: for each group, of a record for each of their parts."""

    parts: ClassVar[tuple[str, ...]] = ("count",)

    @abstractmethod
    def plan(self, groups: Groups) -> Node:
        """The query whose weights these are."""

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        domain = None if groups.keys is None else groups.labels(groups.keys, self.parts)
        return (Measurement(self.plan(groups), NoisyCount(), epsilon, domain, reading),)

    def read(self, answers: Sequence[Answers], group: int, confidence: float) -> Estimate:
        (weights,) = answers
        first = group * len(self.parts)
        numbers = dict(zip(self.parts, map(float, weights.values[first : first + len(self.parts)]), strict=True))
        return self.estimate(numbers, weights, confidence)

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        """The number that the noisy weights of the parts come down to: a count, where the plan tells how they count."""
        (number,) = numbers.values()
        factor = float(weights.kind.factor)
        half = half_width(weights.scale, confidence)
        return Estimate(number / factor, (number - half) / factor, (number + half) / factor)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        (measurement,) = measurements
        return measurement.kind

    def estimate_type(self) -> Type:
        return FLOAT


@dataclass(frozen=True, slots=True)
class Count(Weighing):
    """The weight of each group."""

    name: ClassVar[str] = "Count"

    def bound(self, type_: Type) -> Count:
        return self

    def plan(self, groups: Groups) -> Node:
        return _then(groups.plan, Select, function=lambda record: groups.label(record, "count", alone=True))

    @property
    def description(self) -> str:
        return "count"


@dataclass(frozen=True, slots=True)
class OfColumn(Aggregate):
    """Aggregates of a column."""

    column: RecordFunction | Lambda

    def bound(self, type_: Type) -> OfColumn:
        try:
            return replace(self, column=trace(self.column, (type_,)))
        except ExpressionError as error:
            raise type(error)(f"{self.name}: {error}") from None

    @property
    def value(self) -> UserFunction:
        """The column as a function, while it is not traced yet."""
        return as_function(self.column)

    @property
    def of(self) -> str:
        """The column, in words."""
        if isinstance(self.column, Lambda):
            return column_name(self.column) or write(self.column)
        return self.column if isinstance(self.column, str) else "a function"


def column_name(function: Lambda) -> str | None:
    """The name of the column that a function gives, where it gives one as it is."""
    type_ = function.parameters[0].type
    for name in getattr(type_, "names", ()):
        if name is not None and trace(name, (type_,)) == function:
            return str(name)
    return None


@dataclass(frozen=True, slots=True)
class CountDistinct(OfColumn, Weighing):
    """How many values a column has in each group, where each row weighs 1 or more: `Σ_v min(1, A(group, v))`."""

    name: ClassVar[str] = "CountDistinct"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"),)

    def plan(self, groups: Groups) -> Node:
        value = self.value
        function = lambda record: (groups.label(record, "count", alone=True), value(record))  # noqa: E731
        pairs = _then(groups.plan, Select, function=function)
        present = _then(pairs, Where, predicate=lambda pair: ~Symbol(catalogue.apply("is_null", lift(pair[1]))))
        return _then(_then(present, Shave, widths=1.0, limit=1), Select, function=lambda piece: piece.record[0])

    @property
    def description(self) -> str:
        return f"count of distinct {self.of}"


@dataclass(frozen=True, slots=True)
class Clamping(OfColumn, Weighing):
    """Aggregates of the values of a column, each clamped to a public range."""

    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"), ("lower", "real"), ("upper", "real"))
    lower: float
    upper: float

    def __post_init__(self) -> None:
        low, high = check_range(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

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

    def plan(self, groups: Groups) -> Node:
        function = sum_elements(
            self.value, self.lower, self.upper, lambda record, part: groups.label(record, part, alone=True)
        )
        return _then(groups.plan, SelectMany, function=function)

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        factor = float(NoisySum(self.lower, self.upper).factor)
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

    def plan(self, groups: Groups) -> Node:
        return _then(
            groups.plan, SelectMany, function=average_elements(self.value, self.lower, self.upper, groups.label)
        )

    def estimate(self, numbers: Mapping[str, float], weights: Answers, confidence: float) -> Estimate:
        sink, held = NoisyAverage(self.lower, self.upper), dict(numbers)
        return Estimate(sink.value(held), *sink.value_interval(held, weights.scale, confidence))

    @property
    def description(self) -> str:
        return f"mean {self.range}"


# --- choices ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choosing(OfColumn):
    """Aggregates that are a noisy choice among public candidates, for each group."""

    candidates: ClassVar[bool] = True
    among: tuple[Any, ...]

    def __post_init__(self) -> None:
        if isinstance(self.among, str) or not hasattr(self.among, "__iter__"):
            raise PlanError(f"{self.name}: the candidates are a list of public values, such as range(0, 100)")
        object.__setattr__(self, "among", tuple(self.among))

    @abstractmethod
    def sink(self) -> Choose:
        """How it is chosen."""

    def bound(self, type_: Type) -> Choosing:
        found = OfColumn.bound(self, type_)
        assert isinstance(found, Choosing)
        assert isinstance(found.column, Lambda)
        of = found.column.type
        if isinstance(of, CategoryOf) and self.sink().quantile is not None:
            raise PlanError("categories are in no order, so they have no quantile: number them first, or most_common")
        listed = check_domain(self.among, of)
        if not listed:
            raise PlanError(f"{self.name}: a choice needs at least one candidate")
        return replace(found, among=tuple(map(presenter(of), listed)))

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        if groups.keys is None:
            raise PlanError(
                f"{self.name} is chosen for each group by itself, so its groups must be known: give keys=[...] to by(...)"
            )
        if not groups.columns:
            plans = [_then(groups.plan, Select, function=self.value)]
        else:
            value = self.value
            pairs = _then(groups.plan, Select, function=lambda record: (groups.key(record), value(record)))
            split = trace(lambda pair: pair[0], (pairs.type,))
            parts = (_then(pairs, Partition, key=split, part=Constant(split.type, key)) for key in groups.keys)
            plans = [_then(part, Select, function=lambda pair: pair[1]) for part in parts]
        domain = check_domain(self.among, plans[0].type)
        return tuple(Measurement(plan, self.sink(), epsilon, domain, reading) for plan in plans)

    def read(self, answers: Sequence[Answers], group: int, confidence: float) -> Estimate:
        return Estimate(answers[group].value)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return self.statistic

    def estimate_type(self) -> Type:
        assert isinstance(self.column, Lambda)
        return self.column.type


@dataclass(frozen=True, slots=True)
class Quantile(Choosing):
    """The candidate that best cuts the weight of each group at a quantile."""

    name: ClassVar[str] = "Quantile"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"), ("q", "number"), ("among", "keys"))
    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        Choosing.__post_init__(self)
        exact = parse_epsilon(self.q)
        if not exact < 1:
            raise PlanError(f"a quantile lies between 0 and 1, not {self.q!r}")
        object.__setattr__(self, "q", exact)

    def sink(self) -> Choose:
        return Choose("quantile", self.q)

    @property
    def description(self) -> str:
        cut = "median" if self.q == Fraction(1, 2) else f"quantile {format_epsilon(self.q)}"
        return f"{cut} of {self.of}, one of {len(self.among)} candidates"


@dataclass(frozen=True, slots=True)
class MostCommon(Choosing):
    """The heaviest candidate of each group."""

    name: ClassVar[str] = "MostCommon"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"), ("among", "keys"))

    def sink(self) -> Choose:
        return Choose("weight")

    @property
    def description(self) -> str:
        return f"most common {self.of}, one of {len(self.among)} candidates"


def _then(node: Node, operator: type[Operator], **arguments: Any) -> Node:
    return construct(operator, (node,), arguments, _convert)


def _convert(given: Any, types: tuple[Type, ...]) -> Lambda:
    return Lambda(given.type, 0, (), given) if isinstance(given, Constant) else trace(given, types)

