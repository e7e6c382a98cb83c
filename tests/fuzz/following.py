"""What follows for a plan or a release that was read: it is priced, certified, explained, kept, and evaluated."""

from __future__ import annotations

import itertools
from typing import Any

import wpinq as wp
from wpinq.display.explanation import gap
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import WpinqError
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    NULL,
    STR,
    TIME,
    TIMESTAMP,
    CategoryOf,
    DecimalOf,
    ListOf,
    TupleOf,
    Type,
)
from wpinq.expr.values import canonical_bytes
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators import Source
from wpinq.plan.properties import plan_properties

FEW_RECORDS, FEW_STEPS, SHORT_TEXTS = 200, 30, 1000
"""Of plans that one unit can make no more of, the evaluation is tried too."""

_VALUES: dict[Type, list[Any]] = {
    INT: [0, 2**63 - 1, -(2**63)],
    FLOAT: [0.0, 1.7e308, -5e-324],
    BOOL: [True, False, True],
    STR: ["", "a,b,,é", "9" * 30],
    NULL: [None, None, None],
    DATE: [0, 18321, -1],
    TIME: [0, 1, 86_399_999_999],
    TIMESTAMP: [0, 10**15, -1],
    DURATION: [0, 2**62, -(2**62)],
}


def values(type_: Type) -> list[Any]:
    """Three values of a type at the ends of what it can hold, and null where it may be."""
    plain = type_.with_nullable(False)
    if isinstance(plain, ListOf):
        most = 3 if plain.bound is None else min(3, plain.bound)
        held: list[Any] = [(), tuple(values(plain.element)[:most]), tuple(values(plain.element)[-1:] * most)]
    elif isinstance(plain, TupleOf):
        held = list(itertools.islice(zip(*map(values, plain.elements), strict=True), 3)) or [()] * 3
    elif isinstance(plain, CategoryOf):
        held = [plain.listed[0], plain.listed[-1], plain.listed[0]]
    elif isinstance(plain, DecimalOf):
        held = [0, 2**63 - 1, -(2**63) + 1]
    else:
        held = list(_VALUES[plain])
    return [None, *held[1:]] if type_.nullable else held


def data_for(source: Source) -> dict[Any, float]:
    """Records of a source, those that it can have, with weights that it can have."""
    unit = float(source.unit_weight)
    records = {canonical_bytes(v, source.record): v for v in values(source.record)}
    whole = bool({"unit_weights", "nonnegative"} & set(source.facts)) or not unit > 0
    weights = [1.0 if whole else unit, 1.0 if whole else -unit / 3, 1.0 if whole else unit / 7]
    return dict(zip(records.values(), weights, strict=False))


def follow(plan: Node, engines: bool = True) -> None:
    """All that is asked of a plan: nothing of it may fail but with an error that explains."""
    try:
        certificate = plan_properties(plan)
        query = wp.Query(plan)
        query.uses()
        query.explain(0.5)
    except WpinqError:
        return
    assert plan_from_json(plan_to_json(plan)).digest == plan.digest
    nodes = list(topological([plan]))
    if not engines or len(nodes) > FEW_STEPS or certificate is None:
        return
    if any(node.unit_growth.records > FEW_RECORDS or node.unit_growth.text > SHORT_TEXTS for node in nodes):
        return
    evaluate(plan)


def evaluate(plan: Node) -> None:
    """On records at the ends of their types no engine fails that took the plan."""
    given = {name: data_for(source) for name, source in sources([plan]).items()}
    if not gap(plan, "reference"):
        reference.evaluate(plan, given)
    if not gap(plan, "duckdb"):
        with Database(threads=1, memory_limit="200MB") as database:
            database.evaluate(plan, given)
