"""Programs of requests: text or JSON plans, over the sources that the curator declared and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wpinq.api.query import Query
from wpinq.errors import PlanError, shorten, suggest
from wpinq.language import parse
from wpinq.language.write import write_source
from wpinq.measure.group import Compound, flattened, waits_for_keys
from wpinq.measure.measurement import Measurement, measurement_from_json
from wpinq.plan.node import sources

Releases = dict[str, Measurement | Compound]

MOST_RELEASES = 500
"""The most that one request may release together."""

PROGRAM = "program"


def releases_of(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    """The releases of a request, by name.

    Parameters
    ----------
    request : mapping
        With `program`, a text, and perhaps its `parameters`; or with `measurements`, by name, as
        `measurement_to_json` writes them.
    declared : mapping
        The declared sources.

    Raises
    ------
    LanguageError, PlanError
        At the first thing that is wrong. They follow from the request and the declarations alone.
    """
    releases = _from_text(request, declared) if request.get(PROGRAM) is not None else _from_plans(request, declared)
    if not releases:
        raise PlanError("nothing is released: end a query with NoisyCount(epsilon, over: ...) and give it a name")
    if len(releases) > MOST_RELEASES:
        raise PlanError(f"a request releases at most {MOST_RELEASES} measurements; split it")
    for name, one in releases.items():
        if waits_for_keys(one):
            raise PlanError(
                f"{name} has no public keys: write NoisyCount(epsilon, over: range(0, 100)) or the like, for a service "
                "answers for all keys at once"
            )
    return releases


def _from_text(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    program = parse(request[PROGRAM], request.get("parameters") or {}, sources=declared)
    return dict(program.releases)


def _from_plans(request: Mapping[str, Any], declared: Mapping[str, Query]) -> Releases:
    made: Releases = {name: measurement_from_json(held) for name, held in (request.get("measurements") or {}).items()}
    for name, source in sources(one.plan for one in flattened(list(made.values()))).items():
        if name not in declared:
            raise PlanError(f"there is no source {shorten(name)!r} here; {suggest(name, declared)}")
        known = declared[name].plan.operator
        if source != known:
            raise PlanError(f"the source {name!r} is declared otherwise here: {write_source(known)}")
    return made
