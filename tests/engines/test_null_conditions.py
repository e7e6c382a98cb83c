"""A choice of two columns by a condition that can be null is no pair that is looked up either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.duckdb.database import Database

FIRST_IF: dict[str, Callable[[Any], Any]] = {
    "a quotient": lambda w: w.a / (w.a - 1) < w.c,
    "a whole quotient": lambda w: w.a // (w.a - 1) < w.c,
    "a choice of null": lambda w: F.where(w.a == 1, None, w.a) < w.c,
    "its negation": lambda w: ~(w.a / (w.a - 1) < w.c),
    "never null": lambda w: w.b < w.c,
}
STAR = {(1, 2): 1.0, **{(2, i): 1.0 for i in range(3, 13)}}
BACK = {(i, 1): 1.0 for i in range(3, 13)}


def looked_up(edges: Query, pairs: Query, first_if: Callable[[Any], Any], by_join: bool) -> Query:
    ways = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst)).select(
        lambda w: (F.where(first_if(w), w.a, w.c), F.where(first_if(w), w.c, w.a))
    )
    if by_join:
        return ways.join(pairs, lambda w: (w[0], w[1]), lambda e: (e[0], e[1]), lambda w, e: w)
    return ways.intersect(pairs.select(lambda e: (e[0], e[1])))


@for_each("by_join", [False, True])
@for_each("facts", [(), ("unit_weights",)])
@for_each("condition", FIRST_IF)
def test_no_row_is_lost_where_the_condition_is_null(condition: str, facts: tuple[str, ...], by_join: bool) -> None:
    edges, pairs = (wp.source(name, src=int, dst=int, facts=facts, weights=True) for name in ("edges", "pairs"))
    query = looked_up(edges, pairs, FIRST_IF[condition], by_join)
    for more in ({},) if facts else ({}, {(50, 60): 1e-6}):  # one record of another weight once switched rows on
        held = {"edges": STAR | more, "pairs": BACK}
        with Database() as database:
            found = database.evaluate(query.plan, held)
        expected = wp.evaluate(query, held, engine="reference")
        assert found.keys() == expected.keys()
        assert all(abs(found[record] - expected[record]) < 1e-12 for record in found)


def test_mirrored_pairs_that_are_still_packed_are_left_alone() -> None:
    edges = wp.source("edges", src=int, dst=int, facts=["nonnegative"], weights=True)

    def both(e: Any) -> Any:
        return [F.record(src=e[0], dst=e[1]), F.record(src=e[1], dst=e[0])]

    one, same = edges.select_many(both), edges.select_many(both, limit=2)
    wedges = one.join(same, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst))
    ends = wedges.where(lambda w: w.a != w.c).select(lambda w: F.sort((w.a, w.c)))
    held = {"edges": {(1, 2): 1.0, (2, 3): 0.5, (4, 2): 2.0}}
    expected = wp.evaluate(ends, held, engine="reference")
    found = wp.evaluate(ends, held)
    assert found.keys() == expected.keys()
    assert found.distance(expected) < 1e-12
