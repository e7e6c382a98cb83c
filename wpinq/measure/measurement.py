"""Measurements: a plan with its sink, its epsilon and its public keys. Pure data, also as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wpinq.errors import PlanError, WpinqError
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type
from wpinq.expr.values import Value, canonical_bytes
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.demand import charges
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, value_to_json
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.count_above import Listing, listing_from_json
from wpinq.sinks.keys import check_domain as check_domain
from wpinq.sinks.sink import SINKS, Sink


def check_text(text: str, what: str) -> str:
    """A text that bills and tables will print: refused where it could move a cursor or forge a line."""
    if not text.isprintable():
        raise PlanError(f"{what} must be printable text on one line")
    return text


@dataclass(frozen=True)
class Measurement:
    """A plan with its sink, its epsilon and, usually, its public keys. Holds no data and spends nothing.

    What follows from it is found once, however often it is released.

    Attributes
    ----------
    plan : Node
        The query.
    sink : Sink
        How its output is released.
    epsilon : Fraction
        The privacy parameter of the release, before uses and unit weight multiply it.
    domain : tuple or None
        The public keys that are released, in canonical form (`expr.values`); None where keys are asked for one by one.
    reading : str
        How to read the weights, where the query knows.
    listing : Listing or None
        Where not all keys are released but those of a public domain whose noisy value is above a threshold. The noise
        is that of the sink for every key, listed or not.
    """

    plan: Node
    sink: Sink
    epsilon: Fraction
    domain: tuple[Value, ...] | None
    reading: str = ""
    listing: Listing | None = None

    def __post_init__(self) -> None:
        check_text(self.reading, "a reading")
        if isinstance(self.epsilon, (int, Fraction)):  # others are refused where noise is scaled
            parse_epsilon(self.epsilon)
        self.sink.check(self.plan)
        if self.listing is not None:
            self.sink.cut(self.listing.above)

    @property
    def key_type(self) -> Type:
        """The type of the keys: that of the plan's records, but where the sink has keys of its own."""
        return self.sink.key_type or self.plan.type

    @property
    def kind(self) -> Kind:
        """What kind of number is released: from the plan and its sources' declarations, never from data."""
        return self.sink.kind(self.plan)

    @cached_property
    def checked(self) -> Measurement:
        """The same with keys that were looked at: a Measurement can be made by hand."""
        domain, listing = self.domain, self.listing
        if listing is not None:
            domain, listing = None, listing.checked(self.key_type)
        if domain is not None:
            domain = check_domain(domain, self.key_type, canonical=True)
        return replace(self, domain=domain, listing=listing)

    @cached_property
    def costs(self) -> Mapping[str, Fraction]:
        """Account -> the epsilon that it is charged for this measurement alone, whatever of it parts are charged."""
        asked = {name: moved * self.epsilon for name, moved in self.sink.stability(self.plan).items()}
        return charges(asked, plan_properties(self.plan).sources)

    @cached_property
    def parted(self) -> bool:
        """Whether it reads parts of partitions, so that what it is charged hangs on what else was asked of these."""
        return plan_properties(self.plan).output.splits > 0

    @cached_property
    def asked(self) -> tuple[Node, Fraction]:
        """What `plan.demand` prices: a root, and the demand that flows down from it."""
        return self.sink.asked(self.plan, self.epsilon)

    @cached_property
    def digest(self) -> bytes:
        """What identifies the noise: plan, sink and epsilon. Two domains over one release share their noise."""
        # a choice is made among its candidates: others, another choice
        candidates = [canonical_bytes(key, self.key_type) for key in self.domain or ()] if self.sink.chooses else []
        return digest_of("measurement", self.plan.digest, *self.sink.identity(), str(self.epsilon), *candidates)

    def ends(self, number: float, scale: float, confidence: float) -> tuple[float, float]:
        """The interval around one answer; of a listed one, that which holds given that it is listed."""
        half = self.sink.half_width(scale, confidence)
        if self.listing is None:
            return number - half, number + half
        low = number - self.sink.listed_reach(number, self.listing.above, scale, confidence)
        return 0.0 if low == -math.inf and plan_properties(self.plan).output.nonnegative else low, number + half

    @cached_property
    def description(self) -> str:
        """One line for bills and ledgers; no data."""
        return self.sink.called(self.epsilon)

    def __reduce__(self) -> Any:
        return _unpickle, (plan_to_json(self.plan), self.sink, self.epsilon, self.domain, self.reading, self.listing)


if TYPE_CHECKING:

    class ListedMeasurement(Measurement):
        """A measurement that has its public keys, so that a session gives Answers: for type checkers alone."""

        domain: tuple[Value, ...]

else:
    ListedMeasurement = Measurement


def _unpickle(plan: Mapping[str, Any], *rest: Any) -> Measurement:
    return Measurement(plan_from_json(plan), *rest)


# Measurements as JSON: what travels to a service, and what answers keep of theirs.


def measurement_to_json(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data; `keys` is null where they are asked for one by one."""
    type_, listing = measurement.key_type, measurement.listing
    keys = measurement.domain
    return {
        "sink": measurement.sink.to_json(),
        "epsilon": str(measurement.epsilon),
        "reading": measurement.reading,
        "plan": plan_to_json(measurement.plan),
        "keys": None if keys is None else [value_to_json(key, type_) for key in keys],
        **({} if listing is None else {"listing": listing.to_json(type_)}),
    }


def canonical_plan(measurement: Measurement) -> str:
    """All that identifies the noise of a measurement, as JSON text that `measurement_from_json` reads.

    Keys are left out, unless they belong to the draw.
    """
    drawn = measurement.sink.chooses or measurement.sink.own_keys is not None
    bare = replace(measurement, domain=measurement.domain if drawn else None, reading="", listing=None)
    return json.dumps(measurement_to_json(bare), sort_keys=True, separators=(",", ":"))


def measurement_from_json(data: Any) -> Measurement:
    """The measurement that plain data hold; PlanError when they do not."""
    try:
        return read_measurement(data)
    except WpinqError as reason:
        message = str(reason)
    except Exception:  # data of another make can fail in any way, deep in types and plans
        message = "these data do not hold a measurement"
    raise PlanError(message)


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
