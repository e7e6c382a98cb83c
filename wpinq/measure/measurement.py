"""Measurements: a plan with its sink, its epsilon and its public keys, also as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wpinq.display.explanation import explain_plan
from wpinq.display.html import Explanation, ShownAsText
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import PlanError, WpinqError
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type
from wpinq.expr.values import Value, canonical_bytes_of
from wpinq.measure.accuracy import accuracy as accuracy_of
from wpinq.measure.bill import Request, bill as bill_of
from wpinq.measure.prepaid import Prepaid
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.demand import charges
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, values_to_json
from wpinq.plan.node import Node
from wpinq.plan.operators import Partition
from wpinq.plan.properties import plan_properties
from wpinq.plan.sensitivity.stability import stability
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.count_above import Listing, listing_from_json
from wpinq.sinks.keys import check_domain as check_domain
from wpinq.sinks.sink import SINKS, Sink

T = TypeVar("T")


def check_text(text: str, what: str) -> str:
    """A text for bills and tables; refused where it could move a cursor or forge a line."""
    if not text.isprintable():
        raise PlanError(f"{what} must be printable text on one line")
    return text


@public
@dataclass(frozen=True)
class Measurement(ShownAsText, Request):
    """A plan with a sink, an epsilon and, usually, public keys.

    It has no data and spends nothing. Properties that follow from it are found once, however often it is released.

    Attributes
    ----------
    plan : Node
        The query.
    sink : Sink
        How its output is released.
    epsilon : Fraction
        The privacy parameter of the release, before uses and unit weight multiply it.
    domain : tuple or None
        The public keys that are released, in canonical form (`expr.values`); None where keys are requested one by one.
    reading : str
        How to read the weights, where the query knows.
    listing : Listing or None
        Where not all keys are released but those of a public domain whose noisy value is above a threshold. The noise
        is that of the sink for every key, listed or not.
    prepaid : Prepaid or None
        Its place in a running total.
    """

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

    def __repr__(self) -> str:
        return f"<Measurement: {self.description}, keys: {'on request' if self.domain is None else len(self.domain)}>"

    bill = bill_of
    accuracy = accuracy_of

    def explain(self, engine: str = DEFAULT_ENGINE, missing: str | None = None) -> Explanation:
        """The plan as a tree with types, costs and noise, without data.

        It also has uses, weights left, and the engine. The engine finds the reason why it cannot run the plan, unless
        that is given as `missing`.
        """
        keys = None if self.domain is None else len(self.domain)
        return explain_plan(self.plan, self.epsilon, self.reading, engine, self.sink, self.listing, missing, keys)

    @cached_property
    def canonical_plan(self) -> str:
        """The identity of its noise as JSON text, as a ledger keeps it.

        `measurement_from_json` reads it. Keys are left out, unless they belong to the draw.
        """
        written = measurement_to_json(self, bare=True)
        return json.dumps(written, sort_keys=True, separators=(",", ":"), check_circular=False)

    def __reduce__(self) -> Any:
        return measurement_from_json, (measurement_to_json(self),)


if TYPE_CHECKING:

    class ListedMeasurement(Measurement):
        """A measurement with public keys, so that a session gives Answers; for type checkers alone."""

        domain: tuple[Value, ...]

else:
    ListedMeasurement = Measurement


# Measurements as JSON: what travels to a service, and what answers keep of theirs.


def measurement_to_json(measurement: Measurement, bare: bool = False) -> dict[str, Any]:
    """A measurement as plain data; `keys` is null where they are requested one by one.

    With `bare`, it has the identity of the noise alone.
    """
    type_, listing, keys = measurement.key_type, measurement.listing, measurement.domain
    if bare:
        listing, keys = None, keys if measurement.sink.chooses or measurement.sink.own_keys is not None else None
    return {
        "sink": measurement.sink.to_json(),
        "epsilon": str(measurement.epsilon),
        "reading": "" if bare else measurement.reading,
        "plan": plan_to_json(measurement.plan),
        "keys": None if keys is None else values_to_json(keys, type_),
        **({} if listing is None else {"listing": listing.to_json(type_)}),
    }


def measurement_from_json(data: Any) -> Measurement:
    """The measurement that plain data describe; PlanError when they do not."""
    return read_plain(data, read_measurement, "a measurement", PlanError)


def read_plain(data: Any, read: Callable[[Any], T], what: str, refusal: type[WpinqError]) -> T:
    """Read a thing from plain data, or refuse where they do not hold it."""
    try:
        return read(data)
    except WpinqError as reason:
        message = str(reason)
    except Exception:  # data of another make can fail in any way, deep in types and plans
        message = f"these data do not hold {what}"
    raise refusal(message)


def read_measurement(data: Mapping[str, Any]) -> Measurement:
    """The same; whatever else is wrong raises what it raises."""
    sink_data = dict(data["sink"])
    sink = SINKS[sink_data.pop("name")].from_json(sink_data)
    made = Measurement(plan_from_json(data["plan"]), sink, parse_epsilon(data["epsilon"]), None, str(data["reading"]))
    type_, keys = made.key_type, data["keys"]
    listing = listing_from_json(data["listing"], type_) if "listing" in data else None
    if keys is not None:
        keys = check_domain((value_from_json(key, type_) for key in keys), type_, canonical=True)
    return replace(made, domain=keys, listing=listing)
