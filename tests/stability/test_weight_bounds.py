"""What no weight exceeds is said for every operator, and there are data that weigh as much."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.moves import heavier
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.plan.node import upward
from wpinq.plan.sensitivity.weights import WeightBound

EDGES = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
DATA = {"edges": [(0, 1), (0, 2), (1, 2)]}


def degrees(edges: Query) -> Query:
    return edges.group_by(lambda e: e.src, lambda group: F.count(group))


def both(edges: Query) -> Query:
    return edges.concat(edges.select(lambda e: F.record(src=e.dst, dst=e.src)))


QUERIES: dict[str, Callable[[Query], Query]] = {
    "a source": lambda edges: edges,
    "both directions": both,
    "twice": lambda edges: edges.concat(edges),
    "groups": degrees,
    "groups of both directions": lambda edges: degrees(both(edges)),
    "pieces": lambda edges: degrees(edges).shave(0.5),
    "a join of groups": lambda edges: degrees(edges).join(
        degrees(edges), lambda x: x.key, lambda y: y.key, lambda x, y: F.record(key=x.key, one=x.val, other=y.val)
    ),
    "an intersection of groups": lambda edges: degrees(edges).intersect(degrees(edges)),
    "groups beside groups": lambda edges: degrees(edges).concat(degrees(edges)),
    "a union of groups": lambda edges: degrees(edges).union(
        degrees(edges).select(lambda r: F.record(key=r.key, val=r.val + 100))
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_ceiling_is_no_higher_than_what_it_is_over(name: str) -> None:
    query = QUERIES[name](EDGES)
    found = upward(query.plan, lambda node, below: node.operator.weight_bound(*below))[query.plan.digest]
    weights = wp.evaluate(query, DATA, exact=True)
    assert found.largest or found.a_key
    assert not heavier(weights, found)
    for fields, bound in found.a_key.items():
        assert heavier(weights, WeightBound(None, {fields: bound * Fraction(99, 100)}))
    if found.largest is not None:
        assert heavier(weights, WeightBound(found.largest * Fraction(99, 100)))
