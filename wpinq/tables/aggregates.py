"""Aggregates of groups: the measurements of each, and its value from their answers.

Those here are weights, of one measurement over all groups; `choices` has those that are public candidates. Each costs
its epsilon once, however many groups there are, as the same over all records would.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from wpinq.errors import AnswersError, ExpressionError
from wpinq.expr import catalogue
from wpinq.expr.nodes import Constant, Expr, Lambda, write, write_value
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, trace
from wpinq.expr.types import FLOAT, INT, DecimalOf, Type
from wpinq.expr.values import Value
from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.noise.noise_distributions import half_width, half_width_of_two
from wpinq.plan.construct import construct
from wpinq.plan.domain import Counted
from wpinq.plan.format import expression_to_json, value_to_json
from wpinq.plan.node import Node
from wpinq.plan.operator import Operator
from wpinq.plan.operators import Select, SelectMany, Shave, Where
from wpinq.plan.work import counted
from wpinq.runtime.arrays import Floats
from wpinq.runtime.public import public
from wpinq.sinks import clamped
from wpinq.sinks.answer_kinds import WEIGHT, Kind, Stated, kind_of_weights
from wpinq.sinks.clamped import ENDS, ClampedSink, NoisyAverage, NoisySum, check_range, interval_of_ends, mean_of_ends
from wpinq.sinks.laplace import NoisyCount
from wpinq.sinks.sink import PublicKeys
from wpinq.tables.grouping import Groups

ParameterKind = Literal["number", "numbers", "real", "integer", "function", "keys"]
Parameters = tuple[tuple[str, ParameterKind], ...]


@dataclass(frozen=True, slots=True)
class ColumnOfTable:
    """A column of an aggregate: its type, and whether its estimates have intervals."""

    type: Type
    has_interval: bool

    @property
    def drawn(self) -> bool:
        """Whether the intervals are between numbers."""
        return self.has_interval and (self.type in (INT, FLOAT) or isinstance(self.type, DecimalOf))


#: Columns by their names, or for one aggregate by what its name is followed by.
Columns = Mapping[str, ColumnOfTable]


def _ordered(name: str) -> Callable[[Any, float | Estimate], bool]:
    compare = getattr(operator, name)
    return lambda self, other: compare(float(self), other)


def _written(value: Any) -> str:
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    return f"{value:.6g}" if is_number else write_value(value)


@public
@dataclass(frozen=True, slots=True)
class Estimate:
    """A released number or choice of one group.

    Attributes
    ----------
    estimate : value
        The number, or the candidate that was chosen; None where a statistic has no positive variance to go by.
    low, high : value or None
        The interval that holds the noiseless number with the confidence that was asked for; None where there is none.

    Notes
    -----
    It is a number where numbers are taken: `float(e)`, `round(e)`, `f"{e:.1f}"`, `e > 100`. A constant that is added
    or multiplied keeps the interval; the arithmetic of two estimates is refused.

    Examples
    --------
    >>> 2 * Estimate(10.0, 8.0, 12.0) - 1
    Estimate(estimate=19.0, low=15.0, high=23.0)
    >>> f"{Estimate(10.25, 8.0, 12.0):.1f}", str(Estimate(10.25, 8.0, 12.0))
    ('10.2', '10.25 (8 to 12)')
    """

    estimate: Value
    low: Any = None
    high: Any = None

    @property
    def _number(self) -> float:
        if isinstance(self.estimate, (int, float, Decimal)):
            return self.estimate if isinstance(self.estimate, int) else float(self.estimate)
        raise AnswersError(f"the choice {write_value(self.estimate)} is no number: take .estimate")

    def __float__(self) -> float:
        return float(self._number)

    def __round__(self, digits: int | None = None) -> float:
        return round(self._number, digits)

    def __format__(self, spec: str) -> str:
        return format(self._number, spec) if spec else str(self)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return write_value(self.estimate)
        estimate, low, high = map(_written, (self.estimate, self.low, self.high))
        return f"{estimate} ({low} to {high})"

    def _moved(self, other: object, change: Callable[[float, float], float]) -> Estimate:
        """Each of the three numbers changed by a constant."""
        if isinstance(other, Estimate):
            raise AnswersError(
                "two estimates have an interval each, and their sum, product or ratio has none of these: take "
                "float(a) and float(b) for the number alone, or ask for it as an aggregate of its own"
            )
        if not isinstance(other, Real):
            return NotImplemented  # type: ignore[no-any-return]  # Python refuses the operator then
        constant = other if isinstance(other, int) else float(other)
        moved = change(self._number, constant)
        return Estimate(moved, *sorted(change(end, constant) for end in (self.low, self.high) if end is not None))

    def __add__(self, other: float) -> Estimate:
        return self._moved(other, operator.add)

    def __sub__(self, other: float) -> Estimate:
        return self._moved(other, operator.sub)

    def __rsub__(self, other: float) -> Estimate:
        return self._moved(other, lambda number, constant: constant - number)

    def __mul__(self, other: float) -> Estimate:
        return self._moved(other, lambda number, constant: number * constant if constant else 0.0)  # also of infinity

    def __truediv__(self, other: float) -> Estimate:
        return self._moved(other, operator.truediv)

    def __rtruediv__(self, other: float) -> Estimate:
        raise AnswersError("a constant over an estimate has no interval: take float(estimate) for the number alone")

    def __neg__(self) -> Estimate:
        return self * -1

    __radd__, __rmul__ = __add__, __mul__

    __lt__, __le__, __gt__, __ge__ = map(_ordered, ("lt", "le", "gt", "ge"))


@dataclass(frozen=True, slots=True)
class Aggregate(ABC):
    """An aggregate of each group, as `wp.count()` or `wp.mean("salary", 0, 200_000)` makes it.

    Attributes
    ----------
    name : str
        What text programs call it.
    parameters : Parameters
        What it takes, as text programs write it.
    lists : bool
        Whether groups are listed by it: the records that it releases are the groups themselves.
    ends : Mean or None
        The mean from whose two ends it is read, where one measurement serves both.
    """

    name: ClassVar[str]
    parameters: ClassVar[Parameters] = ()
    has_interval: ClassVar[bool] = True
    lists: ClassVar[bool] = False
    ends: Mean | None = field(default=None, kw_only=True, repr=False)

    @abstractmethod
    def bound(self, type_: Type) -> Aggregate:
        """The same for records of a type, its function traced: what tells it from others."""

    @abstractmethod
    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        """The released measurements."""

    @abstractmethod
    def columns(self, answers: Sequence[Answers], confidence: float, groups: slice) -> tuple[Any, ...]:
        """The estimates of groups by their places, and the ends of their intervals, if any.

        Those of each column that is shown, one after another.
        """

    @property
    @abstractmethod
    def parts(self) -> Sequence[Value]:
        """The parts that a group has in the measurements."""

    def shown(self) -> Columns:
        """The columns of the table that a bound one has."""
        return {"": ColumnOfTable(self.estimate_type(), self.has_interval)}

    def to_json(self) -> dict[str, Any]:
        """Of a bound one, as plain data: its name, and what it takes."""
        return {"name": self.name, "arguments": {name: self._argument(name, kind) for name, kind in self.parameters}}

    def _argument(self, name: str, kind: ParameterKind) -> Any:
        value = getattr(self, name)
        return str(value) if kind == "number" else [*map(str, value)] if kind == "numbers" else value

    def stand_in(self, measurement: Measurement) -> Measurement:
        """A measurement as exact as a number that is read off this one of its own."""
        return measurement

    @property
    @abstractmethod
    def description(self) -> str:
        """In words, for whoever asked."""

    @abstractmethod
    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        """The kind of its released numbers."""

    @abstractmethod
    def estimate_type(self) -> Type:
        """The type of its numbers, or of what is chosen; of a bound one."""


@dataclass(frozen=True, slots=True)
class OfColumn(Aggregate):
    """Aggregates of a column."""

    column: RecordFunction | Lambda

    def bound(self, type_: Type) -> OfColumn:
        try:
            columns = (name for name, kind in self.parameters if kind == "function")
            traced: dict[str, Any] = {name: trace(getattr(self, name), (type_,)) for name in columns}
            return replace(self, **traced)
        except ExpressionError as error:
            raise type(error)(f"{self.name}: {error}") from None

    def _argument(self, name: str, kind: ParameterKind) -> Any:
        if kind == "function":
            return expression_to_json(getattr(self, name))
        if kind == "keys":
            assert isinstance(self.column, Lambda)
            type_ = self.column.type
            return [value_to_json(key, type_) for key in check_domain(getattr(self, name), type_)]
        return Aggregate._argument(self, name, kind)

    @property
    def value(self) -> UserFunction:
        """The column as a function, while it is not traced yet."""
        return as_function(self.column)

    @property
    def of(self) -> str:
        """The column, in words."""
        return words_of(self.column)


def words_of(column: RecordFunction | Lambda) -> str:
    """A column, in words."""
    if isinstance(column, Lambda):
        return column_name(column) or write(column)
    return column if isinstance(column, str) else "a function"


def column_name(function: Lambda) -> str | None:
    """The name of the column that a function gives, where it gives one as it is."""
    type_ = function.parameters[0].type
    for name in getattr(type_, "names", ()):
        if name is not None and trace(name, (type_,)) == function:
            return str(name)
    return None


def extended(node: Node, operator: type[Operator], **arguments: Any) -> Node:
    """The next step of a plan."""
    return construct(operator, (node,), arguments, _convert)


def _convert(given: Any, types: tuple[Type, ...]) -> Lambda:
    return Lambda(given.type, 0, (), given) if isinstance(given, Constant) else trace(given, types)


# Aggregates that are sums of weights: one measurement over all groups.


@dataclass(frozen=True, slots=True)
class AdditiveAggregate(Aggregate):
    """Aggregates from noisy weights, of a record for each of their parts in each group."""

    own_parts: ClassVar[tuple[str, ...]] = ("count",)

    @property
    def parts(self) -> Sequence[Value]:
        """The records of each group, in order."""
        return self.own_parts if self.ends is None else ENDS

    @abstractmethod
    def own_plan(self, groups: Groups) -> Node:
        """The query whose weights these are, where it is measured alone."""

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        plan = (self if self.ends is None else self.ends).own_plan(groups)
        domain = None if groups.keys is None else groups.labels(groups.keys, self.parts, plan.type)
        listing = groups.listing if self.lists else None
        if listing is not None:  # a count is given in rows, and so is its threshold
            listing = replace(listing, above=float(Fraction(listing.above) * row_weight(plan)))
        return (Measurement(plan, NoisyCount(), epsilon, domain, reading, listing),)

    def columns(self, answers: Sequence[Answers], confidence: float, groups: slice) -> tuple[Any, ...]:
        (weights,) = answers
        parts = weights.values.reshape(-1, len(self.parts))[groups].T
        return self.estimates(parts, weights, confidence)

    def estimates(self, parts: Floats, weights: Answers, confidence: float) -> tuple[Floats, Floats, Floats]:
        """The number that the noisy parts of each group amount to, with its interval.

        They are counts where the plan shows how they count.
        """
        measurement = weights.measurement
        first, second = self.factors(measurement)
        number = first * parts[0] + second * parts[-1]
        if measurement.listing is None:
            half = half_width_of_two(first, second, weights.scale, confidence)
            return number, number - half, number + half
        ends = [measurement.ends(weight, weights.scale, confidence) for weight in parts[0].tolist()]
        low, high = np.array(ends).reshape(-1, 2).T * first
        return number, low, high

    def factors(self, measurement: Measurement) -> tuple[float, float]:
        """The multiple of the first part, and that of the second, which add up to the number."""
        factor = 1 / float(self.kind((measurement,)).factor)
        return factor, 0.0 if self.ends is None else factor

    def stand_in(self, measurement: Measurement) -> Measurement:
        if self.ends is None:
            return measurement
        first, second = (factor * float(self.kind((measurement,)).factor) for factor in self.factors(measurement))
        return replace(measurement, sink=ReadOff(lambda confidence: half_width_of_two(first, second, 1.0, confidence)))

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        (measurement,) = measurements
        kind = measurement.kind if self.ends is None else kind_of_weights(measurement.plan.inputs[0])
        # a weight that is divided by another number at each key: a group's has no key to tell by
        return kind if kind.form is None else Kind(WEIGHT, f"{kind.form.of}, each of weight {kind.form.formula}")

    def estimate_type(self) -> Type:
        return FLOAT


@dataclass(frozen=True, slots=True)
class ReadOff(NoisyCount):
    """A noisy count of which numbers are read off, for their accuracy.

    Attributes
    ----------
    reach : callable
        From the confidence to their half-width, for noise of scale 1.
    """

    reach: Callable[[float], float]

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        return self.scales(plan, epsilon)[0] * self.reach(confidence)


@dataclass(frozen=True, slots=True)
class Count(AdditiveAggregate):
    """The weight of each group."""

    name: ClassVar[str] = "Count"
    lists: ClassVar[bool] = True

    def bound(self, type_: Type) -> Count:
        return self

    def own_plan(self, groups: Groups) -> Node:
        return extended(groups.plan, Select, function=lambda record: groups.label(record, "count", alone=True))

    @property
    def description(self) -> str:
        return "count"


@dataclass(frozen=True, slots=True)
class CountDistinct(OfColumn, AdditiveAggregate):
    """The number of values of a column in each group: `Σ_v min(w, A(group, v)) / w`.

    w is the weight of a row, at most 1.
    """

    name: ClassVar[str] = "CountDistinct"
    parameters: ClassVar[Parameters] = (("column", "function"),)

    def own_plan(self, groups: Groups) -> Node:
        value = self.value

        def pair(record: Symbol) -> tuple[object, object]:
            return groups.label(record, "count", alone=True), value(record)

        def is_there(pair: Symbol) -> Expr:
            return catalogue.apply("not", catalogue.apply("is_null", lift(pair[1])))

        present = extended(extended(groups.plan, Select, function=pair), Where, predicate=is_there)
        one = extended(present, Shave, widths=min(1.0, float(row_weight(present))), limit=1)
        return extended(one, Select, function=lambda piece: piece.record[0])

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        found = AdditiveAggregate.kind(self, measurements)
        if found.name == WEIGHT:
            return found
        (shaved,) = measurements[0].plan.inputs
        rows = kind_of_weights(shaved.inputs[0]).words.removeprefix("number of ")
        return replace(found, words=f"number of different values of {self.of} in {rows}")

    @property
    def description(self) -> str:
        return f"count of distinct {self.of}"


@dataclass(frozen=True, slots=True)
class Clamping(OfColumn, AdditiveAggregate):
    """Aggregates of the values of a column, each clamped to a public range."""

    parameters: ClassVar[Parameters] = (("column", "function"), ("lower", "real"), ("upper", "real"))
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
        return Kind(self.sink().kind(measurements[0].plan).name, self.description)

    @property
    def range(self) -> str:
        """In words."""
        return f"of {self.of}, clamped to {self.lower:g} to {self.upper:g}"


def row_weight(rows: Node) -> Fraction:
    """The weight of each thing of a plan, or 1 where its weights are no counts."""
    things = counted(rows)
    return things.factor if isinstance(things, Counted) else Fraction(1)


@dataclass(frozen=True, slots=True)
class _SumOfRows(NoisySum):
    """A sum of values in rows of some weight, for its accuracy."""

    row_weight: Fraction

    @property
    def factor(self) -> Fraction:
        return Fraction(max(abs(self.lower), abs(self.upper))) / self.row_weight


@dataclass(frozen=True, slots=True)
class Sum(Clamping):
    """The sum of the clamped values of each group."""

    name: ClassVar[str] = "Sum"
    own_parts: ClassVar[tuple[str, ...]] = ("sum",)

    def sink(self) -> NoisySum:
        return NoisySum(self.lower, self.upper)

    def own_plan(self, groups: Groups) -> Node:
        function = clamped.sum_elements(self.value, self.lower, self.upper, partial(groups.label, alone=True))
        return extended(groups.plan, SelectMany, function=function)

    def factors(self, measurement: Measurement) -> tuple[float, float]:
        upper, lower = (self.sink().factor, 0) if self.ends is None else (Fraction(self.upper), Fraction(self.lower))
        weight = row_weight(measurement.plan.inputs[0])
        return float(upper / weight), float(lower / weight)

    def stand_in(self, measurement: Measurement) -> Measurement:
        if self.ends is not None:
            return AdditiveAggregate.stand_in(self, measurement)
        return replace(measurement, sink=_SumOfRows(self.lower, self.upper, row_weight(measurement.plan.inputs[0])))

    @property
    def description(self) -> str:
        return f"sum {self.range}"


@dataclass(frozen=True, slots=True)
class Mean(Clamping):
    """The mean of the clamped values of each group, from both ends of the range."""

    name: ClassVar[str] = "Mean"
    own_parts: ClassVar[tuple[str, ...]] = ENDS

    def sink(self) -> NoisyAverage:
        return NoisyAverage(self.lower, self.upper)

    def own_plan(self, groups: Groups) -> Node:
        function = clamped.average_elements(self.value, self.lower, self.upper, groups.label)
        return extended(groups.plan, SelectMany, function=function)

    def estimates(self, parts: Floats, weights: Answers, confidence: float) -> tuple[Floats, Floats, Floats]:
        mean, low, high = found = np.empty((3, parts.shape[1]))
        for start in range(0, parts.shape[1], clamped.AT_ONCE):
            upper, lower = parts[:, start : start + clamped.AT_ONCE]
            shares = mean_of_ends(upper, lower), *interval_of_ends(upper, lower, weights.scale, confidence)
            found[:, start : start + clamped.AT_ONCE] = self.sink().within(np.array(shares))
        return mean, low, high

    @property
    def description(self) -> str:
        return f"mean {self.range}"


def measured_together(
    aggregates: Mapping[str, Aggregate], epsilons: Mapping[str, Fraction], listed: bool
) -> dict[str, list[str]]:
    """The aggregates that are read off one measurement of two ends, by one with their range.

    These are means, sums and counts. All their epsilon serves each of them, which is done where each is predicted to
    be off by less so than by its own share. A count joins the first range that suits it. It is of all records, so no
    value may be null; and one that lists groups is measured by the groups alone.
    """
    ranges: dict[Mean, list[str]] = {}
    for name, each in aggregates.items():
        if isinstance(each, (Mean, Sum)) and each.lower < each.upper:
            ranges.setdefault(ends_of(each), []).append(name)
    counts = [name for name, each in aggregates.items() if isinstance(each, Count) and not listed]
    found = {}
    for mean, whole in ranges.items():
        assert isinstance(mean.column, Lambda)
        for joined in ([*whole, *([] if mean.column.type.nullable else counts)], whole):
            total = sum((epsilons[name] for name in joined), Fraction(0))
            if len(joined) > 1 and all(_gains(aggregates[name], epsilons[name] / total) for name in joined):
                found[whole[0]] = joined
                counts = [name for name in counts if name not in joined]
                break
    return found


def ends_of(aggregate: Aggregate) -> Mean:
    """The mean by whose ends a mean or a sum is measured."""
    assert isinstance(aggregate, Clamping)
    return Mean(aggregate.column, aggregate.lower, aggregate.upper)


def _gains(aggregate: Aggregate, share: Fraction) -> bool:
    """Whether both ends at epsilon are expected to be off by less than its share alone."""
    if isinstance(aggregate, Mean):
        return True
    first, second = (aggregate.upper, aggregate.lower) if isinstance(aggregate, Sum) else (1.0, 1.0)
    alone = half_width(max(abs(first), abs(second)), CONFIDENCE) / float(share)
    return half_width_of_two(first, second, 1.0, CONFIDENCE) < alone
