"""Aggregates that are choices: one a group, over the parts of a partition, which cost the largest of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.errors import PlanError
from wpinq.expr.logical_values import presenter
from wpinq.expr.nodes import Constant, Lambda
from wpinq.expr.trace import trace
from wpinq.expr.types import CategoryOf, Type
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.noise.epsilon import format_epsilon, parse_epsilon
from wpinq.plan.operators import Partition, Select
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.choose import Choose
from wpinq.tables.aggregates import Estimate, OfColumn, ParameterKind, extended
from wpinq.tables.grouping import Groups


@dataclass(frozen=True, slots=True)
class SelectedAggregate(OfColumn):
    """Aggregates that are a noisy choice among public candidates, for each group."""

    candidates: Iterable[Any]

    def __post_init__(self) -> None:
        if isinstance(self.candidates, str) or not hasattr(self.candidates, "__iter__"):
            raise PlanError(f"{self.name}: the candidates are a list of public values, such as range(0, 100)")
        object.__setattr__(self, "candidates", tuple(self.candidates))

    @abstractmethod
    def sink(self) -> Choose:
        """How it is chosen."""

    def bound(self, type_: Type) -> SelectedAggregate:
        found = OfColumn.bound(self, type_)
        assert isinstance(found, SelectedAggregate)
        assert isinstance(found.column, Lambda)
        of = found.column.type
        if isinstance(of, CategoryOf) and self.sink().quantile is not None:
            raise PlanError("categories are in no order, so they have no quantile: number them first, or most_common")
        listed = check_domain(self.candidates, of)
        if not listed:
            raise PlanError(f"{self.name}: a choice needs at least one candidate")
        return replace(found, candidates=tuple(map(presenter(of), listed)))

    def measurements(self, groups: Groups, epsilon: Fraction, reading: str) -> tuple[Measurement, ...]:
        if groups.listing is not None:
            raise PlanError(
                f"{self.name} is a choice for each group by itself, so the groups must be known before: release the "
                "listing without it, and then by(..., keys=table.keys).agg(...)"
            )
        if groups.keys is None:
            raise PlanError(
                f"{self.name} is a choice for each group by itself, so the groups must be known: by(..., keys=[...])"
            )
        if not groups.keys:
            raise PlanError(f"{self.name} is a choice for each group, and there is no group: by(..., keys=[...])")
        if not groups.columns:
            plans = [extended(groups.plan, Select, function=self.value)]
        else:
            value = self.value
            pairs = extended(groups.plan, Select, function=lambda record: (groups.key(record), value(record)))
            split = trace(lambda pair: pair[0], (pairs.type,))
            parts = (extended(pairs, Partition, key=split, part=Constant(split.type, key)) for key in groups.keys)
            plans = [extended(part, Select, function=lambda pair: pair[1]) for part in parts]
        domain = check_domain(self.candidates, plans[0].type)
        return tuple(Measurement(plan, self.sink(), epsilon, domain, reading) for plan in plans)

    def read(self, answers: Sequence[Answers], group: int, confidence: float) -> Estimate:
        return Estimate(answers[group].value)

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return self.statistic

    def estimate_type(self) -> Type:
        assert isinstance(self.column, Lambda)
        return self.column.type


@dataclass(frozen=True, slots=True)
class Quantile(SelectedAggregate):
    """The candidate that best cuts the weight of each group at a quantile."""

    name: ClassVar[str] = "Quantile"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (
        ("column", "function"),
        ("q", "number"),
        ("candidates", "keys"),
    )
    q: Any = Fraction(1, 2)

    def __post_init__(self) -> None:
        SelectedAggregate.__post_init__(self)
        exact = parse_epsilon(self.q)
        if not exact < 1:
            raise PlanError(f"a quantile lies between 0 and 1, not {self.q!r}")
        object.__setattr__(self, "q", exact)

    def sink(self) -> Choose:
        return Choose("quantile", self.q)

    @property
    def description(self) -> str:
        cut = "median" if self.q == Fraction(1, 2) else f"quantile {format_epsilon(self.q)}"
        return f"{cut} of {self.of}, one of {len(tuple(self.candidates))} candidates"


@dataclass(frozen=True, slots=True)
class Median(Quantile):
    """The candidate that best halves the weight of each group."""

    name: ClassVar[str] = "Median"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"), ("candidates", "keys"))


@dataclass(frozen=True, slots=True)
class MostCommon(SelectedAggregate):
    """The heaviest candidate of each group."""

    name: ClassVar[str] = "MostCommon"
    parameters: ClassVar[tuple[tuple[str, ParameterKind], ...]] = (("column", "function"), ("candidates", "keys"))

    def sink(self) -> Choose:
        return Choose("weight")

    @property
    def description(self) -> str:
        return f"most common {self.of}, one of {len(tuple(self.candidates))} candidates"
