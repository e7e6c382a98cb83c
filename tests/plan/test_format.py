"""Plans as JSON: read back as they were, and refused when they are not plans."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.plan.format import plan_from_json, plan_to_json, ratio_from_json
from wpinq.plan.operator import REGISTRY

EDGES = wp.source("edges", src=int, dst=int, unit="one edge", unit_weight="2.5", cap=1000, facts=["symmetric"])
VISITS = wp.source("visits", page=str, ms=float | None, person="who", at_most=3, nested=True, account="people")
ITEMS = wp.source("items", {"id": int | None, "tags": list[str], "at": tuple[float, bool]})


def queries() -> Iterator[Query]:
    yield EDGES
    yield VISITS
    yield VISITS.select(lambda rows: F.count(rows))
    yield wp.source("words", word=str, person="author", at_most=7)
    yield EDGES.select(lambda e: F.record(a=e.dst, b=[e.src, None], c=("x", 1.5, True, None)))
    yield EDGES.where(lambda e: (e.src < e.dst) | ~(e.src != 3))
    yield EDGES.select_many(lambda e: [F.weighted(e.src, 0.5), F.weighted(-e.dst, e.src / 2)])
    yield ITEMS.select_many(lambda i: F.subsets(F.sort(i.tags), 2), limit=50)
    yield ITEMS.select(lambda i: (F.max(i.id, 3, 4), F.sum(i.tags, lambda t: F.length(t)), i.at[0] + 1))
    yield ITEMS.select(
        lambda i: F.map(F.first(i.tags, 5), lambda t: F.map(F.first(i.tags, 5), lambda u: (t < u, F.find(t + u, "é"))))
    )
    yield EDGES.group_by(lambda e: e.src)
    yield EDGES.group_by(lambda e: e.src, lambda g: F.min(g, lambda e: F.bucket(e.dst, 2)))
    yield EDGES.shave(0.25)
    yield EDGES.shave(lambda e: [e.src, 1, 2], limit=2)
    yield EDGES.join(ITEMS, lambda e: e.src, lambda i: i.id)
    yield EDGES.join(EDGES, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, y.dst))
    yield EDGES.union(EDGES.select(lambda e: F.reverse(e)))
    yield EDGES.intersect(EDGES.select(lambda e: F.rotate(e)))
    yield EDGES.concat(EDGES.where(lambda e: e < F.reverse(e)))
    yield EDGES.difference(EDGES.where(lambda e: e.src >= abs(e.dst)))
    yield from EDGES.partition(lambda e: (e.src % 2, "é"), [(0, "é"), (1, "\U0001f600")]).values()


@for_each("query", list(queries()), ids=lambda query: query.plan.operator.name)
def test_plans_come_back_as_they_were(query: Query) -> None:
    data = json.loads(json.dumps(plan_to_json(query.plan)))
    again = plan_from_json(data)
    assert again == query.plan
    assert repr(again.type) == repr(query.plan.type)
    assert plan_to_json(again) == data
    assert pickle.loads(pickle.dumps(query)) == query


def test_every_operator_is_covered() -> None:
    assert {query.plan.operator.name for query in queries()} == {*REGISTRY, "Source"}


def test_a_pickled_query_keeps_its_reading() -> None:
    assert pickle.loads(pickle.dumps(EDGES.read_as("edges"))).reading == "edges"


def test_random_plans_come_back_as_they_were() -> None:
    rng = Random(3)
    for _ in range(150):
        query = EDGES.select(lambda e: (e.src, e.dst))
        for _ in range(rng.randrange(1, 7)):
            k = rng.randrange(-3, 9)
            other = rng.choice([query, EDGES.select(lambda e: (e.dst, e.src))])
            query = rng.choice(
                [
                    lambda q=query, k=k: q.select(lambda p: (p[1] % (k or 1), F.min(p[0], k))),
                    lambda q=query, k=k: q.where(lambda p: (p[0] + k < p[1]) & (p != (k, k))),
                    lambda q=query, k=k: q.select_many(lambda p: [p, F.sort(p), (k, None)]),
                    lambda q=query: q.group_by(lambda p: p[0], lambda g: F.count(g)).select(lambda r: (r.key, r.val)),
                    lambda q=query, k=k: q.shave(abs(k) + 0.5).select(lambda r: (r.index, r.record[1])),
                    lambda q=query, o=other: q.join(o, lambda p: p[1], lambda p: p[0], lambda a, b: (a[0], b[1])),
                    lambda q=query, o=other: q.union(o),
                    lambda q=query, o=other: q.difference(o),
                    lambda q=query, k=k: q.partition(lambda p: p[0], [k])[k],
                ]
            )()
        assert plan_from_json(json.loads(json.dumps(plan_to_json(query.plan)))) == query.plan


def paths(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield from paths(value, (*at, key))


POISON: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    99,
    2**70,
    0.5,
    float("nan"),
    "x",
    "Join",
    "range_list",
    [],
    [0],
    {},
    {"x": 1},
)


def test_tampered_plans_are_refused_and_nothing_else_happens() -> None:
    rng = Random(5)
    refused = 0
    for query in queries():
        data = plan_to_json(query.plan)
        everywhere = [path for path in paths(data) if path]
        for _ in range(120):
            changed = copy.deepcopy(data)
            *parents, last = rng.choice(everywhere)
            inside = changed
            for key in parents:
                inside = inside[key]
            if rng.random() < 0.2:
                del inside[last]
            else:
                inside[last] = rng.choice(POISON)
            try:
                again = plan_from_json(changed)
            except PlanError:
                refused += 1
            else:  # what is not part of the meaning may change: the name of a variable, a default left out
                assert again == query.plan
    assert refused > 1500


def forged(data: Any) -> Any:
    """The data with the digest that it would have: what the digest alone cannot catch."""
    data = {**data, "digest": ""}
    with pytest.raises(PlanError) as caught:
        plan_from_json(data)
    return str(caught.value)


def expression(data: Any) -> list[Any]:
    table: list[Any] = data["nodes"][1]["arguments"]["function"]["expression"]
    return table


def test_unsound_plans_are_refused_whatever_their_digest() -> None:
    def plan() -> Any:
        return plan_to_json(wp.source("x", int | None).select(lambda x: x < 3).plan)

    data = plan()
    for row in expression(data):
        if "variable" in row:
            row["type"] = {"scalar": "int"}  # as if it could not be null
    assert "symbol of another lambda" in forged(data)
    data = plan()
    for row in expression(data):
        if "variable" in row:
            row["type"] = {"scalar": "int"}
        if "lambda" in row:
            row["lambda"][0][1] = {"scalar": "int"}
    data["nodes"][0]["arguments"]["record"]["type"] = {"scalar": "str"}
    assert "schema" in forged(data)
    data["nodes"][0]["arguments"] = plan()["nodes"][0]["arguments"]
    data["nodes"][0]["arguments"]["record"]["type"] = {"scalar": "int", "nullable": True}
    assert "matches" in forged(data) or "the records are" in forged(data)
    data = plan()
    expression(data).insert(-1, {"call": "range_list", "arguments": [0, 0], "attributes": [None]})
    assert "there is no function 'range_list'" in forged(data)
    for name, value in (("unit_weight", "-1"), ("unit_weight", "0"), ("cap", "-5")):
        data = plan()
        data["nodes"][0]["arguments"][name] = {"fraction": value}
        assert "makes no sense" in forged(data)
    assert "does not match its digest" in forged(plan())


@pytest.mark.parametrize(
    "data", [{}, {"nodes": []}, {"nodes": 3}, {"nodes": [], "digest": ""}, {"nodes": [{}]}, [], None]
)
def test_what_is_no_plan_is_refused(data: Any) -> None:
    with pytest.raises(PlanError):
        plan_from_json(data)


def test_ratios_are_read_as_they_are_written_and_nothing_else() -> None:
    for ratio in (Fraction(1, 3), Fraction(-7), Fraction(0), Fraction(10**30, 7)):
        assert ratio_from_json(str(ratio)) == ratio
    # a power of ten in a few letters can ask for hours and gigabytes
    for wrong in (
        "1e3000000",
        "1e-3000000",
        "0.5",
        "1/0",
        "1/-2",
        " 1",
        "1_0",
        "٣",
        "",
        "9" * 5000,
        0.5,
        1,
        None,
        True,
    ):
        with pytest.raises(ValueError, match="ratio"):
            ratio_from_json(wrong)
