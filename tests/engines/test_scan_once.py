"""Blocks over the same rows that differ in a constant are one scan: where they do, and with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.relational import without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.database import Database
from wpinq.plan.lowering import physical_plan

ALONE = without("scan_once")
ROWS = wp.source("rows", key=int | None, x=float | None, weights=True)
UNIT = wp.source("rows", key=int | None, x=float | None, facts=["unit_weights"])
WEIGHTS = (1.0, 0.75, 2.0, 1 / 3, -1.0, -0.5)

ONCE: dict[str, Callable[[Query], Query]] = {
    "mean": lambda q: q.select_many(lambda r: [F.weighted((r.key, "sum"), r.x), F.weighted((r.key, "count"), 0.5)]),
    "of all": lambda q: q.select_many(lambda r: [F.weighted("sum", r.x / 4), F.weighted("count", 0.5)]),
    "heavy": lambda q: q.select_many(lambda r: [F.weighted((1, r.key), r.x), F.weighted((2, r.key), r.x * 3)]),
    "filtered": lambda q: q.where(lambda r: r.x > 0).select_many(
        lambda r: [F.weighted((r.key, 0), r.x), F.weighted((r.key, 1), 0.25)]
    ),
    "put together": lambda q: (
        q.select(lambda r: (r.key, "one")).concat(q.select(lambda r: (r.key, "other"))).where(lambda r: r[0] > 1)
    ),
    "taken away": lambda q: q.select(lambda r: (r.key, "one")).difference(q.select(lambda r: (r.key, "other"))),
}
NOT_ONCE: dict[str, Callable[[Query], Query]] = {
    "two constants": lambda q: q.select(lambda r: (r.key, "a", 1)).concat(q.select(lambda r: (r.key, "b", 2))),
    "other columns": lambda q: q.select(lambda r: (r.key, "a")).concat(q.select(lambda r: (r.key + 1, "b"))),
    "other rows": lambda q: (
        q.where(lambda r: r.key > 1).select(lambda r: (r.key, "a")).concat(q.select(lambda r: (r.key, "b")))
    ),
    "one of them filtered": lambda q: ONCE["mean"](q).where(lambda r: (r[1] == "sum") | (r[0] > 1)),
    "the same twice": lambda q: q.select(lambda r: (r.key, "a")).concat(q.select(lambda r: (r.key, "a"))),
}


def changed(query: Query) -> bool:
    root = physical_plan(query.plan)
    return Plan(root).program() != Plan(root, ALONE).program()


def rows(rng: Random, weights: tuple[float, ...]) -> dict[Any, float]:
    keys, values = [None, 0, 1, 2, 3], [None, 0.0, -0.25, 0.5, 0.7, 1.0, 4.0, -3.0]
    return {(rng.choice(keys), rng.choice(values)): rng.choice(weights) for _ in range(40)}


@for_each("name", ONCE)
@for_each("source", [ROWS, UNIT], ids=["any", "unit"])
def test_the_bits_are_those_of_a_scan_for_each(name: str, source: Query) -> None:
    rng, query = Random(f"{name} once"), ONCE[name](source)
    assert changed(query)
    with Database(threads=2) as database:
        for weights in (WEIGHTS[:1], WEIGHTS[:4], WEIGHTS) if source is ROWS else (WEIGHTS[:1],):
            data = {"rows": rows(rng, weights)}
            found = database.evaluate(query.plan, data)
            assert found == database.evaluate(query.plan, data, rewrites=ALONE)
            assert found


@pytest.mark.parametrize("name", NOT_ONCE)
def test_what_differs_otherwise_is_read_apart(name: str) -> None:
    assert not changed(NOT_ONCE[name](ROWS))


def test_weights_that_cancel_leave_no_record() -> None:
    with Database(threads=1) as database:
        data = {"rows": {(1, 0.5): 1.0, (1, -0.5): 1.0, (2, None): 1.0}}
        assert database.evaluate(ONCE["mean"](UNIT).plan, data) == {(1, "count"): 1.0, (2, "count"): 0.5}
