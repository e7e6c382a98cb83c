"""Measurements as JSON: what travels to a service, and what answers keep of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wpinq.errors import PlanError, WpinqError
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.listing import listing_from_json
from wpinq.measure.measurement import SINKS, Measurement, check_domain
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, value_to_json


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
