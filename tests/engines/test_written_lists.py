"""Written lists of few known shares are rows without a list: where, the weights, and how many queries there are."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.plans import distance
from tests.support.relational import evaluate, without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties

#: The cap is near the data, so that a share that is wrong is more than may be rounded.
PAIRS = wp.source("pairs", a=int | None, b=int | None, weights=True, cap=32)
UNITS = (1.0, 1 / 3, -0.75, 2.0**-80, 3.0)


def tagged(*weights: float) -> Callable[[Any], list[Any]]:
    return lambda p: [F.weighted((number, (p.a, p.b)[number % 2]), weight) for number, weight in enumerate(weights)]


def many(function: Callable[[Any], list[Any]], **options: int) -> Query:
    return PAIRS.select_many(function, **options)


WITHOUT: dict[str, Query] = {
    "one": many(lambda p: [(p.b, p.a)]),
    "both ways": many(lambda p: [(p.a, p.b), (p.b, p.a)]),
    "with repeats and nulls": many(lambda p: [(p.a, p.a), (p.a, p.a), (None, p.b), (7, None)]),
    "eight": many(lambda p: [p.a, p.b, 0, 1, None, p.a, p.b, p.a]),
    "cut": many(lambda p: [p.a, p.b, p.a], limit=2),
    "divided": many(lambda p: [p.a, p.b, 3], divisor=4),
    "weights of the plan": many(tagged(0.1, 0.2, 1 / 3)),
    "weights that are shared out": many(tagged(1.0, 0.3, 7.0, 1e-9)),
    "lists of lists": many(lambda p: [(p.a, p.b), (p.b, p.a)]).select_many(lambda p: [p[0], p[1], 1, 2]),
    "joined": many(lambda p: [p.a, p.b]).join(many(lambda p: [p.b, 1]), lambda x: x, lambda y: y, lambda x, _: x),
    "grouped": many(lambda p: [(p.a, p.b), (p.b, p.a)]).group_by(lambda p: p[0], lambda group: F.length(group)),
}
WITH: dict[str, Query] = {
    "thirds": many(lambda p: [p.a, p.b, 3]),
    "nine": many(lambda p: [p.a] * 9, divisor=16),
    "divided by no power of 2": many(lambda p: [p.a, p.b], divisor=3),
    "a share of nothing": many(tagged(0.5, 0.0, 0.25)),
    "a weight of the record": many(lambda p: [F.weighted((i, p.a), F.where(p.b > 1, 0.5, 0.25)) for i in range(3)]),
    "not apart": many(lambda p: [F.weighted(p.a, 1.0), F.weighted(p.b, 1.0), F.weighted(1, 1.0)]),
    "nested functions": many(lambda p: [F.where(p.a == p.b, p.a, 7), p.b]),
    "two tables": PAIRS.join(PAIRS, lambda x: x.a, lambda y: y.b, lambda x, y: (x.b, y.a)).select_many(
        lambda p: [p[0], p[1]]
    ),
}


def in_lists(query: Query) -> bool:
    return "unnest" in " ".join(sql for _, sql in Plan(query.plan).program().queries)


@pytest.mark.parametrize("name", [*WITHOUT, *WITH])
def test_which_lists_are_written_out(name: str) -> None:
    assert in_lists((WITHOUT | WITH)[name]) == (name in WITH)


@for_each("name", [*WITHOUT, *WITH], every=4)
def test_the_weights_are_those_of_the_reference(name: str) -> None:
    rng, query = Random(name), (WITHOUT | WITH)[name]
    for _ in range(3):
        rows = {(rng.choice([None, 0, 1, 2]), rng.choice([None, 1, 2])): rng.choice(UNITS) for _ in range(9)}
        exact = reference.evaluate(query.plan, {"pairs": rows}, EXACT)
        found = evaluate(query.plan, {"pairs": rows})
        assert exact and distance(exact, found) <= plan_properties(query.plan).rounding_error
        assert distance(exact, evaluate(query.plan, {"pairs": rows}, rewrites=without("fuse"))) < 1e-13


@for_each(("size", "depth"), [(2, 5), (8, 2)])
def test_queries_of_lists_of_lists_are_not_multiplied(size: int, depth: int) -> None:
    query, lengths = PAIRS, list[int]()
    for _ in range(depth + 2):
        query = query.select_many(lambda p: [(p[1], p[0]), *((p[0], i) for i in range(1, size))])
        lengths.append(sum(len(sql) for _, sql in Plan(query.plan).program().queries))
    one, two, three = lengths[-3:]
    assert three - two < 1.5 * (two - one)


def test_weights_that_underflow_are_no_records() -> None:
    light = many(lambda p: [(p.a, p.b)], divisor=16)
    query = light.join(light, lambda p: p[0], lambda p: p[0], lambda p, _: p)
    rows = {(1, 2): 5e-324, (2, 2): 1.0}
    assert evaluate(light.plan, {"pairs": rows}) == {(2, 2): 0.0625}
    assert evaluate(query.plan, {"pairs": rows}) == {(2, 2): 0.03125}
