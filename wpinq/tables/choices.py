"""Aggregates that are public candidates: quantiles and most common values of each group.

A query numbers the candidates: its records are pairs of a group and a place among them. So one scan serves all groups,
either for choices in each of them or for noisy counts of the places.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from wpinq.errors import EpsilonError, PlanError, described
from wpinq.expr import catalogue
from wpinq.expr.nodes import Constant, Expr, Lambda
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import FLOAT, INT, STR, CategoryOf, ListOf, Type
from wpinq.expr.values import Value, order_key, presenter
from wpinq.inference.intervals import linear_half_widths
from wpinq.inference.least_squares import isotonic_l2
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.noise.noise_distributions import half_width
from wpinq.plan.node import Node
from wpinq.plan.operators import Select
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.choose import CONFIDENCE, Choose, ChooseInGroups
from wpinq.tables.aggregates import AdditiveAggregate, ColumnOfTable, Estimate, OfColumn, Parameters, ReadOff, extended
from wpinq.tables.grouping import Groups


@dataclass(frozen=True, slots=True)
class OfCandidates(OfColumn):
    """Aggregates of a column that are values out of public candidates, which are kept in order.

    Attributes
    ----------
    ordered : bool
        Whether the order of the candidates matters.
    """

    ordered: ClassVar[bool] = True
    candidates: Iterable[Any]

    def __post_init__(self) -> None:
        if isinstance(self.candidates, str) or not hasattr(self.candidates, "__iter__"):
            raise PlanError(f"{self.name}: the candidates are a list of public values, such as range(0, 100)")
        object.__setattr__(self, "candidates", tuple(self.candidates))

    def bound(self, type_: Type) -> OfCandidates:
        found = OfColumn.bound(self, type_)
        assert isinstance(found, OfCandidates)
        assert isinstance(found.column, Lambda)
        of = found.column.type
        if isinstance(of, CategoryOf) and self.ordered:
            raise PlanError("categories are in no order, so they have no quantile: number them first, or most_common")
        listed = check_domain(self.candidates, of)
        if not listed:
            raise PlanError(f"{self.name}: a choice needs at least one candidate")
        if self.ordered and None in listed:
            raise PlanError(f"{self.name}: null is in no order, so it is no candidate")
        return replace(found, candidates=tuple(map(presenter(of), sorted(listed, key=order_key))))

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        found = replace(self.bound(groups.plan.type), column=self.column)  # which is traced with the group
        return found.asked(groups, epsilon, reading)

    @abstractmethod
    def asked(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        """The released measurements of one whose candidates are in order."""

    @abstractmethod
    def cells(self, answers: Sequence[Answers], group: int, confidence: float) -> tuple[Estimate, ...]:
        """The estimates of a group, one for each column."""

    def columns(self, answers: Sequence[Answers], confidence: float, groups: slice) -> tuple[Any, ...]:
        places = range(len(answers[0].values) // len(self.parts))[groups]
        held = [self.cells(answers, place, confidence) for place in places]
        found: list[list[Any]] = []
        for number, shown in enumerate(self.shown().values()):
            ends = ("estimate", "low", "high") if shown.has_interval else ("estimate",)
            found += ([getattr(row[number], end) for row in held] for end in ends)
        return tuple(found)

    @property
    def known(self) -> tuple[Value, ...]:
        """The candidates of a bound one, in order."""
        return tuple(self.candidates)

    def place(self, record: Symbol) -> tuple[Expr, Expr]:
        """How many candidates a record's value is not below, and whether it is the last of these."""
        value = lift(self.value(record))
        type_ = value.type.with_nullable(False)
        values = check_domain([key for key in self.known if key is not None], value.type)
        if isinstance(type_, CategoryOf):
            type_, value = STR, catalogue.apply("to_str", value)
        table = Constant(ListOf(type_, bound=len(values)), values)
        place: Expr = lift(0)
        for step in (1 << power for power in reversed(range(len(values).bit_length()))):
            end = catalogue.apply("element", table, catalogue.arithmetic("add", place, lift(step - 1)))
            below = catalogue.apply("or", catalogue.apply("is_null", end), catalogue.less(value, end))
            place = catalogue.apply("where", below, place, catalogue.arithmetic("add", place, lift(step)))
        last = catalogue.apply("element", table, catalogue.arithmetic("subtract", place, lift(1)))
        return place, catalogue.equal(value, last)

    def of_null(self, record: Symbol, null: int, other: Expr) -> Any:
        """A place, or another for null."""
        value = lift(self.value(record))
        return Symbol(catalogue.apply("where", catalogue.apply("is_null", value), lift(null), other))

    def exact(self, record: Symbol) -> Any:
        """The place of a record's value among the candidates; −1 of others."""
        place, same = self.place(record)
        null = self.known[0] is None  # the first in order
        held = catalogue.arithmetic("subtract", place, lift(1 - null))
        return self.of_null(record, null - 1, catalogue.apply("where", same, held, lift(-1)))

    def between(self, record: Symbol) -> Any:
        """The place at or between the candidates, as `ChooseInGroups` numbers them; −1 of null."""
        place, same = self.place(record)
        twice = catalogue.arithmetic("add", place, place)
        at = catalogue.apply("where", same, catalogue.arithmetic("subtract", twice, lift(1)), twice)
        return self.of_null(record, -1, at)

    def estimate_type(self) -> Type:
        assert isinstance(self.column, Lambda)
        return self.column.type

    @property
    def among(self) -> str:
        """The column and the number of candidates, in words."""
        return f"{self.of}, one of {len(self.known)} candidates"


@dataclass(frozen=True, slots=True)
class SelectedAggregate(OfCandidates):
    """Aggregates that are a noisy choice among public candidates, in each group."""

    parts: ClassVar[tuple[str, ...]] = ("choice",)

    def choice(self) -> Choose:
        """The choice of one group."""
        return Choose("weight")

    def asked(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        by, number = self.choice(), len(self.known)
        place = self.exact if by.quantile is None else self.between
        plan = extended(
            groups.plan, Select, function=lambda record: (groups.label(record, "choice", alone=True), place(record))
        )
        domain = None if groups.keys is None else groups.labels(groups.keys, self.parts)
        return (Measurement(plan, ChooseInGroups(by.score, by.quantile, number), epsilon, domain, reading),)

    def cells(self, answers: Sequence[Answers], group: int, confidence: float) -> tuple[Estimate, ...]:
        (chosen,) = answers
        number, shown = int(chosen.values[group]), self.known
        if not self.has_interval:
            return (Estimate(shown[number]),)
        rest, high = divmod(number, len(shown))
        place, low = divmod(rest, len(shown))
        if confidence > CONFIDENCE:  # no end was chosen for it
            low, high = 0, len(shown) - 1
        return (Estimate(shown[place], shown[min(low, place)], shown[max(high, place)]),)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return Kind(measurements[0].kind.name, self.description)


@dataclass(frozen=True, slots=True)
class Quantile(SelectedAggregate):
    """The candidate at a quantile of each group."""

    name: ClassVar[str] = "Quantile"
    parameters: ClassVar[Parameters] = (("column", "function"), ("q", "number"), ("candidates", "keys"))
    q: Any = Fraction(1, 2)

    def __post_init__(self) -> None:
        SelectedAggregate.__post_init__(self)
        object.__setattr__(self, "q", parse_quantile(self.q))

    def choice(self) -> Choose:
        return Choose("quantile", self.q)

    @property
    def description(self) -> str:
        return f"{'median' if self.q == Fraction(1, 2) else f'quantile {format_epsilon(self.q)}'} of {self.among}"


@dataclass(frozen=True, slots=True)
class Median(Quantile):
    """The candidate at the median of each group."""

    name: ClassVar[str] = "Median"
    parameters: ClassVar[Parameters] = (("column", "function"), ("candidates", "keys"))


@dataclass(frozen=True, slots=True)
class MostCommon(SelectedAggregate):
    """The candidate with the most weight in each group."""

    name: ClassVar[str] = "MostCommon"
    parameters: ClassVar[Parameters] = (("column", "function"), ("candidates", "keys"))
    ordered: ClassVar[bool] = False
    has_interval: ClassVar[bool] = False

    @property
    def description(self) -> str:
        return f"most common {self.among}"


def parse_quantile(q: object) -> Fraction:
    """The quantile that a number or a text means, exactly; PlanError for others."""
    with suppress(EpsilonError):
        if (exact := parse_epsilon(q)) < 1:
            return exact
    raise PlanError(f"a quantile lies between 0 and 1, not {described(q)}: write q=0.9 for nine in ten")


# Aggregates of several candidates, from one noisy count of all of them.


@dataclass(frozen=True, slots=True)
class Quantiles(OfCandidates, AdditiveAggregate):
    """The candidates at several quantiles of each group.

    They are a choice each, or all from one noisy cumulative count.
    """

    name: ClassVar[str] = "Quantiles"
    parameters: ClassVar[Parameters] = (("column", "function"), ("qs", "numbers"), ("candidates", "keys"))
    qs: Any = ()

    def __post_init__(self) -> None:
        OfCandidates.__post_init__(self)
        if isinstance(self.qs, str) or not isinstance(self.qs, Iterable):
            raise PlanError("Quantiles: the quantiles are a list of numbers, such as [0.25, 0.5, 0.75]")
        qs = tuple(sorted({*map(parse_quantile, self.qs)}))
        object.__setattr__(self, "qs", qs)
        if len({*map(_suffix, qs)}) != max(len(qs), 1):
            raise PlanError("Quantiles: give one quantile or more, apart in ten digits, such as [0.25, 0.5, 0.75]")

    @property
    def chosen(self) -> bool:
        """Whether each is a choice: where the error in rank is predicted to be less.

        A choice of a k-th of epsilon, of which half goes to its ends, is some scales of its noise off; the cumulative
        count by the standard deviation of a sum over all candidates. Both are so many times 1/ε.
        """
        many = len(self.qs)
        choices = sum(float(2 * max(q, 1 - q) * 2 * many) for q in self.qs)
        return choices <= sum(math.sqrt(2 * q * (1 - q) * len(self.known)) for q in self.qs)

    @property
    def _each(self) -> tuple[Quantile, ...]:
        return tuple(Quantile(self.column, self.candidates, q) for q in self.qs)

    @property
    def parts(self) -> tuple[Any, ...]:
        return SelectedAggregate.parts if self.chosen else tuple(range(len(self.known)))

    def own_plan(self, groups: Groups) -> Node:
        return extended(groups.plan, Select, function=lambda record: groups.label(record, self._cell(record)))

    def _cell(self, record: Symbol) -> Any:
        """The place of the last candidate that a value is not below; of values below all, the first."""
        place, _ = self.place(record)
        below = catalogue.less(place, lift(1))
        minus = catalogue.arithmetic("subtract", place, lift(1))
        return self.of_null(record, -1, catalogue.apply("where", below, lift(0), minus))

    def asked(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        if not self.chosen:
            return AdditiveAggregate.measurements(self, groups, epsilon, reading)
        part = epsilon / len(self.qs)
        return tuple(each for one in self._each for each in one.asked(groups, part, reading))

    def cells(self, answers: Sequence[Answers], group: int, confidence: float) -> tuple[Estimate, ...]:
        if self.chosen:
            each = zip(self._each, answers, strict=True)
            return tuple(cell for one, released in each for cell in one.cells((released,), group, confidence))
        (weights,) = answers
        many = len(self.known)
        sums = np.cumsum(weights.values[group * many : (group + 1) * many])
        return tuple(self._cut(float(q), sums, weights.scale, confidence) for q in self.qs)

    def _cut(self, q: float, sums: Floats, scale: float, confidence: float) -> Estimate:
        """The candidate where noisy sums cross a share of their total, between those where they may.

        A candidate is left out where the noise would have to reach further than all but its share of error: the law of
        a sum of noise is known at each.
        """
        shown, last = self.known, len(sums) - 1
        inner = sums[:-1] - q * sums[-1]  # below 0 where the quantile lies further on
        reach = scale * cut_half_widths(q, len(sums), confidence)
        place = int(np.count_nonzero(isotonic_l2(inner) < 0)) if last else 0
        low = int(np.argmax(np.append(inner >= -reach, True)))
        high = last - int(np.argmax(np.insert(inner <= reach, 0, True)[::-1]))
        if high < last and not (self.estimate_type() == INT and shown[high + 1] == shown[high] + 1):
            high += 1  # values between two candidates count at the lower one
        return Estimate(shown[place], shown[min(low, place)], shown[max(high, place)])

    def shown(self) -> dict[str, ColumnOfTable]:
        return {_suffix(q): ColumnOfTable(self.estimate_type(), True) for q in self.qs}

    def stand_in(self, measurement: Measurement) -> Measurement:
        return measurement if self.chosen else replace(measurement, sink=ReadOff(self._reach))

    def _reach(self, confidence: float) -> float:
        cells = len(self.known)
        return max(float(cut_half_widths(float(q), cells, confidence).max(initial=0.0)) for q in self.qs)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return Kind("quantile", self.description)

    @property
    def description(self) -> str:
        how = "by choices" if self.chosen else "from one noisy count"
        return f"quantiles {', '.join(map(format_epsilon, self.qs))} of {self.among}, {how}"


def _suffix(q: Fraction) -> str:
    return f"_{float(100 * q):.10g}"


@lru_cache(maxsize=64)
def cut_half_widths(q: float, cells: int, confidence: float) -> Floats:
    """The half-widths of `sums − q·total` after each cell but the last, for noise of scale 1."""
    before = np.arange(1.0, cells)
    scales = np.tile([[1 - q], [q]], (1, cells - 1))
    return linear_half_widths(scales, confidence, np.array([before, cells - before])) if cells > 1 else before


@dataclass(frozen=True, slots=True)
class TopK(OfCandidates, AdditiveAggregate):
    """The candidates of the k largest noisy weights of each group, and these weights."""

    name: ClassVar[str] = "TopK"
    parameters: ClassVar[Parameters] = (("column", "function"), ("k", "integer"), ("candidates", "keys"))
    ordered: ClassVar[bool] = False
    k: int = 1

    def bound(self, type_: Type) -> TopK:
        found = OfCandidates.bound(self, type_)
        assert isinstance(found, TopK)
        if type(self.k) is not int or not 1 <= self.k <= len(found.known):
            raise PlanError(f"TopK: k is a whole number from 1 to the number of candidates, {len(found.known)}")
        return found

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(range(len(self.known)))

    def own_plan(self, groups: Groups) -> Node:
        return extended(groups.plan, Select, function=lambda record: groups.label(record, self.exact(record)))

    def asked(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        return AdditiveAggregate.measurements(self, groups, epsilon, reading)

    def cells(self, answers: Sequence[Answers], group: int, confidence: float) -> tuple[Estimate, ...]:
        """The candidates and their weights, with intervals that hold for the k together.

        A candidate is among the k where its noisy weight is above the largest that was left out, as a listed key is
        above its threshold, and then noise below 0 is no more likely than otherwise: the upper end takes half of the
        error, in k shares. A quarter goes to a lower end given that, in k shares, and one to a lower end for all
        candidates at once: the nearer of the two is shown.
        """
        (weights,) = answers
        many, measurement = len(self.known), weights.measurement
        values = weights.values[group * many : (group + 1) * many]
        order = np.argsort(-values, kind="stable")
        above = float(values[order[self.k]]) if self.k < many else None
        factor, error = float(self.kind((measurement,)).factor), 1 - confidence
        found = []
        for place in order[: self.k]:
            number = float(values[place])
            low, high = measurement.ends(number, weights.scale, 1 - error / self.k)
            if above is not None:
                given, _ = measurement.ends(number, weights.scale, 1 - error / (2 * self.k), above)
                low = max(given, number - half_width(weights.scale, 1 - error / (2 * many)))
            found += [Estimate(self.known[place]), Estimate(number / factor, low / factor, high / factor)]
        return tuple(found)

    def shown(self) -> dict[str, ColumnOfTable]:
        value, counted = ColumnOfTable(self.estimate_type(), False), ColumnOfTable(FLOAT, True)
        ranks = range(1, self.k + 1)
        return {f"_{rank}{end}": of for rank in ranks for end, of in (("", value), ("_count", counted))}

    @property
    def description(self) -> str:
        return f"{self.k} most common {self.among}"
