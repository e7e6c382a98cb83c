"""Requests: the part of measurements, alone and in groups, that bills and accuracy depend on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from wpinq.errors import PlanError
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type
from wpinq.expr.values import Value, canonical_bytes_of
from wpinq.measure.prepaid import Prepaid
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.demand import charges
from wpinq.plan.node import Node
from wpinq.plan.operators import Partition
from wpinq.plan.properties import plan_properties
from wpinq.plan.sensitivity.stability import stability
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.count_above import Listing
from wpinq.sinks.keys import check_domain
from wpinq.sinks.sink import Sink


def check_text(text: str, what: str) -> str:
    """A text for bills and tables; refused where it could move a cursor or forge a line."""
    if not text.isprintable():
        raise PlanError(f"{what} must be printable text on one line")
    return text


class Request(ABC):
    """One measurement, or several as one: released and billed in one batch, and read as one result."""

    __slots__ = ()

    @property
    @abstractmethod
    def measurements(self) -> tuple[MeasuredPlan, ...]:
        """The released measurements, in order."""

    @property
    @abstractmethod
    def items(self) -> Mapping[str, MeasuredPlan]:
        """The items of a bill by title; one for measurements that differ only in the part.

        The part is of a partition.
        """

    @property
    @abstractmethod
    def stand_ins(self) -> Mapping[str, tuple[MeasuredPlan, Kind]]:
        """For each item, a measurement with the accuracy of its numbers, and their kind."""

    @abstractmethod
    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Self:
        """The same request with new epsilons: a function of the present ones."""

    @abstractmethod
    def read(self, released: Sequence[Any]) -> Any:
        """The result, from the session's result of each measurement.

        Each is Answers, or a Release where the measurement has no keys.
        """

    def labelled(self, name: str) -> Iterator[tuple[str, MeasuredPlan]]:
        """The items of a bill by label, where the request has a name or an empty one."""
        for title, measurement in self.items.items():
            yield ", ".join(filter(None, (name, f"{title}: {measurement.description}"))), measurement


@dataclass(frozen=True)
class MeasuredPlan(Request):
    """A plan with its sink, its epsilon and its public keys: the attributes of a `Measurement`."""

    plan: Node
    sink: Sink
    epsilon: Fraction
    domain: tuple[Value, ...] | None
    reading: str = ""
    listing: Listing | None = None
    prepaid: Prepaid | None = None

    def __post_init__(self) -> None:
        check_text(self.reading, "a reading")
        if isinstance(self.epsilon, (int, Fraction)):  # others are refused where noise is scaled
            object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))  # a digest has its text
        self.sink.check(self.plan)
        if self.listing is not None:
            self.sink.cut(self.listing.above)
        if self.prepaid is not None and self.parted:
            raise PlanError("a running total reads no part of a partition")

    @property
    def measurements(self) -> tuple[Self, ...]:
        return (self,)

    @property
    def items(self) -> Mapping[str, Self]:
        return {"": self}

    @property
    def stand_ins(self) -> Mapping[str, tuple[Self, Kind]]:
        return {"": (self, self.kind)}

    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Self:
        return replace(self, epsilon=epsilon(self.epsilon))

    def read(self, released: Sequence[Any]) -> Any:
        (one,) = released
        return one

    def labelled(self, name: str) -> Iterator[tuple[str, Self]]:
        yield ": ".join(filter(None, (name, self.description))), self

    @property
    def key_type(self) -> Type:
        """The type of the keys."""
        return self.sink.key_of(self.plan)

    @property
    def kind(self) -> Kind:
        """The kind of released number, from the plan and declarations, never from data."""
        return self.sink.kind(self.plan).read_as(self.reading if self.sink.per_key else "")

    @cached_property
    def checked(self) -> Self:
        """The same with checked keys: a measurement can be made by hand."""
        domain, listing = self.domain, self.listing
        if listing is not None:
            domain, listing = None, listing.checked(self.key_type)
        if domain is not None:
            domain = check_domain(domain, self.key_type, canonical=True)
        return replace(self, domain=domain, listing=listing)

    @cached_property
    def costs(self) -> Mapping[str, Fraction]:
        """Account -> the epsilon of this measurement alone, without savings from shared parts."""
        asked = {name: moved * self.epsilon for name, moved in self.sink.stability(self.plan).items()}
        return charges(asked, plan_properties(self.plan).sources)

    @cached_property
    def parted(self) -> bool:
        """Whether it reads parts of partitions, so that its cost depends on other requests."""
        return any(isinstance(cut.operator, Partition) for cut in stability(self.plan))

    @cached_property
    def demand(self) -> tuple[Node, Fraction]:
        """The input of `plan.demand`: a root, and the demand that flows down from it."""
        return self.sink.demand(self.plan, self.epsilon)

    @cached_property
    def digest(self) -> bytes:
        """The identity of the noise: plan, sink and epsilon.

        Two domains over one release share their noise.
        """
        # a choice is made among its candidates: others, another choice
        candidates = canonical_bytes_of(self.domain or (), self.key_type) if self.sink.chooses else []
        # a node of a running total is no other release: it pays all levels, and is no replay of what did not
        what = "measurement" if self.prepaid is None else f"node of {self.prepaid.tree}"
        return digest_of(what, self.plan.digest, *self.sink.identity(), str(self.epsilon), *candidates)

    def ends(self, number: float, scale: float, confidence: float, above: float | None = None) -> tuple[float, float]:
        """The interval around one answer; of a listed one, the interval given that it is listed.

        So it is of one that is shown because it is above some number.
        """
        half = self.sink.half_width(scale, confidence)
        above = above if self.listing is None else self.listing.above
        if above is None:
            return number - half, number + half
        low = number - self.sink.listed_reach(number, above, scale, confidence)
        return 0.0 if low == -math.inf and plan_properties(self.plan).output.nonnegative else low, number + half

    @cached_property
    def description(self) -> str:
        """One line for bills and ledgers; no data."""
        return self.sink.called(self.epsilon)
