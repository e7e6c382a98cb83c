"""Measurements: a plan with its sink, its epsilon and its public keys, also as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wpinq.display.explanation import explain_plan
from wpinq.display.html import Explanation, ShownAsText
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import PlanError, WpinqError
from wpinq.expr.values import Value
from wpinq.measure.accuracy import accuracy as accuracy_of
from wpinq.measure.bill import bill as bill_of
from wpinq.measure.request import MeasuredPlan
from wpinq.measure.request import check_text as check_text
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, values_to_json
from wpinq.runtime.public import public
from wpinq.sinks.count_above import listing_from_json
from wpinq.sinks.keys import check_domain as check_domain
from wpinq.sinks.sink import SINKS


def explanation_of(measurement: MeasuredPlan, engine: str = DEFAULT_ENGINE, missing: str | None = None) -> Explanation:
    """The plan as a tree with types, costs and noise, without data.

    It also has uses, weights left, and the engine. The engine finds the reason why it cannot run the plan, unless that
    is given as `missing`.
    """
    m, keys = measurement, None if measurement.domain is None else len(measurement.domain)
    return explain_plan(m.plan, m.epsilon, m.reading, engine, m.sink, m.listing, missing, keys)


@public
@dataclass(frozen=True)
class Measurement(ShownAsText, MeasuredPlan):
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
    """

    def __repr__(self) -> str:
        return f"<Measurement: {self.description}, keys: {'on request' if self.domain is None else len(self.domain)}>"

    bill = bill_of
    accuracy = accuracy_of

    explain = explanation_of

    @cached_property
    def canonical_plan(self) -> str:
        """The identity of its noise as JSON text, as a ledger keeps it.

        `measurement_from_json` reads it. Keys are left out, unless they belong to the draw.
        """
        drawn = self.sink.chooses or self.sink.own_keys is not None
        bare = replace(self, domain=self.domain if drawn else None, reading="", listing=None)
        return json.dumps(measurement_to_json(bare), sort_keys=True, separators=(",", ":"))

    def __reduce__(self) -> Any:
        return _unpickle, (plan_to_json(self.plan), self.sink, self.epsilon, self.domain, self.reading, self.listing)


if TYPE_CHECKING:

    class ListedMeasurement(Measurement):
        """A measurement with public keys, so that a session gives Answers; for type checkers alone."""

        domain: tuple[Value, ...]

else:
    ListedMeasurement = Measurement


def _unpickle(plan: Mapping[str, Any], *rest: Any) -> Measurement:
    return Measurement(plan_from_json(plan), *rest)


# Measurements as JSON: what travels to a service, and what answers keep of theirs.


def measurement_to_json(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data; `keys` is null where they are requested one by one."""
    type_, listing = measurement.key_type, measurement.listing
    keys = measurement.domain
    return {
        "sink": measurement.sink.to_json(),
        "epsilon": str(measurement.epsilon),
        "reading": measurement.reading,
        "plan": plan_to_json(measurement.plan),
        "keys": None if keys is None else values_to_json(keys, type_),
        **({} if listing is None else {"listing": listing.to_json(type_)}),
    }


def measurement_from_json(data: Any) -> Measurement:
    """The measurement that plain data describe; PlanError when they do not."""
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
