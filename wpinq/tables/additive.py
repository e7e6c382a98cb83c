"""Aggregates that are sums of weights: one measurement over all groups.

So each costs its epsilon once, as the same over all records would.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr import catalogue
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import RecordFunction, Symbol, lift
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
from wpinq.tables.aggregates import Aggregate, Estimate, Median, MostCommon, OfColumn, ParameterKind, Quantile, extended
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


# The aggregate functions of `agg`: `wp.count()`, `wp.mean("salary", 0, 200_000)`.


def mean(column: RecordFunction, lower: float, upper: float) -> Mean:
    """The mean of a column in each group, every value clamped to a public range.

    From a noisy sum about the middle of the range, to which a record gives at most half its weight, and a noisy count,
    to which it gives the other half: `NoisyAverage` for all groups at once. Records where the value is null are left
    out.

    Parameters
    ----------
    column : str, Column or function
        To numbers.
    lower, upper : float
        The range, chosen without looking at the data; lower < upper.

    Returns
    -------
    Mean
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, salary=float)
    >>> wanted = people.by("city", keys=["Oslo", "Bergen"]).agg(salary=wp.mean("salary", 0, 200_000), epsilon=1)
    >>> data = {"people": [("Oslo", 60_000.0), ("Oslo", 80_000.0), ("Bergen", 50_000.0)] * 1000}
    >>> round(wp.simulate(wanted, data, seed=1)["Oslo"]["salary"].estimate, -3)
    70000.0
    """
    return Mean(column, lower, upper)


def median(column: RecordFunction, candidates: Iterable[object]) -> Median:
    """The median of a column in each group: a noisy choice among public candidates.

    Parameters
    ----------
    column : str, Column or function
        To values in an order.
    candidates : iterable
        The public values to choose from: `range(0, 100)`.

    Returns
    -------
    Median
        For `agg`. Privacy cost: its share of epsilon, once: the groups are parts of a partition. See `Query.quantile`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> wanted = people.by("city", keys=["Oslo"]).agg(age=wp.median("age", range(0, 100)), epsilon=1)
    >>> wp.simulate(wanted, {"people": [("Oslo", age % 80) for age in range(8000)]}, seed=1)["Oslo"]["age"].estimate
    39
    """
    return Median(column, candidates)


def quantile(column: RecordFunction, q: object, candidates: Iterable[object]) -> Quantile:
    """A quantile of a column in each group: a noisy choice among public candidates.

    Parameters
    ----------
    column : str, Column or function
        To values in an order.
    q : number
        Between 0 and 1.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    Quantile
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> quantile("age", 0.9, range(0, 100)).description
    'quantile 0.9 of age, one of 100 candidates'
    """
    return Quantile(column, candidates, q)


def most_common(column: RecordFunction, candidates: Iterable[object]) -> MostCommon:
    """The most common value of a column in each group, of public candidates, as far as noise lets it be told.

    Parameters
    ----------
    column : str, Column or function
        To values.
    candidates : iterable
        The public values to choose from.

    Returns
    -------
    MostCommon
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> most_common("job", ["nurse", "cook"]).description
    'most common job, one of 2 candidates'
    """
    return MostCommon(column, candidates)


def count_distinct(column: RecordFunction) -> CountDistinct:
    """How many different values a column has in each group, where each row weighs 1 or more; null is none.

    `Σ_v min(1, A(group, v))`, by a Shave that cuts one piece of weight 1 off each value, plus Laplace noise of scale
    1/ε: one unit of weight can bring or take one value, and no more.

    Parameters
    ----------
    column : str, Column or function
        To values.

    Returns
    -------
    CountDistinct
        For `agg`. Privacy cost: its share of epsilon, once.

    Examples
    --------
    >>> import wpinq as wp
    >>> visits = wp.source("visits", page=str, user=int)
    >>> wanted = visits.by("page", keys=["home"]).agg(users=wp.count_distinct("user"), epsilon=2)
    >>> wanted.bill()
    Bill({'visits': Fraction(2, 1)})
    """
    return CountDistinct(column)


def count(*given: object) -> Count:
    """The number of records in each group: the weight of the group, plus Laplace noise of scale 1/ε.

    Returns
    -------
    Count
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Raises
    ------
    PlanError
        When it is given an argument: the number of elements of a list is `wpinq.functions.count`.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str)
    >>> people.by("city", keys=["Oslo", "Bergen"]).agg(rows=wp.count(), epsilon=1).bill()
    Bill({'people': Fraction(1, 1)})
    """
    if given:
        raise PlanError("wp.count() counts the records of a group; the elements of a list are counted by F.count(list)")
    return Count()


def sum(column: RecordFunction, lower: float | None = None, upper: float | None = None) -> Sum:
    """The sum of a column in each group, every value clamped to a public range.

    Parameters
    ----------
    column : str, Column or function
        To numbers.
    lower, upper : float
        The range, chosen without looking at the data; lower < upper.

    Returns
    -------
    Sum
        For `agg`. Privacy cost: its share of epsilon, once, however many groups there are.

    Raises
    ------
    PlanError
        When there is no range: the sum of a list is `wpinq.functions.sum`.

    Examples
    --------
    >>> sum("age", 0, 100).description
    'sum of age, clamped to 0 to 100'
    """
    if lower is None or upper is None:
        raise PlanError(
            'a sum of a column needs the public range that values are clamped to: wp.sum("age", 0, 100); the elements '
            "of a list are summed by F.sum(list)"
        )
    return Sum(column, lower, upper)


AGGREGATES = {made.name: made for made in (Count, Sum, Mean, CountDistinct, Median, Quantile, MostCommon)}
"""Every aggregate, by the name that text programs call it by."""
