"""The ways to write a release in text, by their names: the registry of sinks, as the reader and the printer use it."""

from __future__ import annotations

from typing import Any

from wpinq.api.query import Query
from wpinq.measure.measurement import Measurement
from wpinq.sinks.sink import SINKS as REGISTRY
from wpinq.sinks.syntax import SinkSyntax

SINKS: dict[str, SinkSyntax] = {way.name: way for sink in REGISTRY.values() for way in sink.syntax}
_OWNERS = {way.name: sink for sink in REGISTRY.values() for way in sink.syntax}


def build(name: str, query: Query, given: dict[str, Any]) -> Measurement:
    """The release of a query that a program writes under a name."""
    made: Measurement = SINKS[name].build(_OWNERS[name], query, given)
    return made
