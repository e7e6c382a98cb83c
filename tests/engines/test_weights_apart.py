"""Two weighted elements that a constant tells apart are written without a list: the same weights, at every norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Plan
from wpinq.plan.lowering import physical_plan

ROWS = [(a, b) for a in (None, -3.0, -0.5, 0.0, 0.5, 0.7, 1.0) for b in (None, -1.0, 0.0, 0.3, 0.5, 5.0)]
PAIRS = wp.source("pairs", a=float | None, b=float | None, weights=True)

APART: dict[str, Callable[[Any], list[Any]]] = {
    "words": lambda p: [F.weighted("x", p.a), F.weighted("y", p.b)],
    "within a record": lambda p: [F.weighted((p.a, "x"), p.b), F.weighted((p.a, "y"), p.a)],
    "deeper": lambda p: [F.weighted(((1, p.a), p.b), p.b), F.weighted(((2, p.a), p.b), p.a)],
}
NOT_APART: dict[str, Callable[[Any], list[Any]]] = {
    "one word": lambda p: [F.weighted("x", p.a), F.weighted("x", p.b)],
    "other places": lambda p: [F.weighted((p.a, 1.0), p.b), F.weighted((0.5, p.b), p.a)],
    "null beside a value": lambda p: [F.weighted(F.where(p.a > 0, "x", None), p.b), F.weighted("x", p.a)],
    "three": lambda p: [F.weighted("x", p.a), F.weighted("y", p.b), F.weighted("z", p.b)],
}


def without_lists(query: Query) -> bool:
    return " AS items" not in " ".join(sql for _, sql in Plan(physical_plan(query.plan)).program().queries)


@for_each("limit", [None, 1])
@for_each("name", [*APART, *NOT_APART])
def test_the_weights_are_those_of_the_reference(name: str, limit: int | None) -> None:
    query = PAIRS.select_many((APART | NOT_APART)[name], limit)
    exact = wp.evaluate(query, {"pairs": ROWS}, exact=True)
    assert wp.evaluate(query, {"pairs": ROWS}, "duckdb").distance(exact) < 1e-12
    if limit is None:
        assert without_lists(query) == (name in APART)
