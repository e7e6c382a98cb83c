"""One of two mirror images is made and counts for both: where, and the bits, which all stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

import pytest

import wpinq as wp
from tests.engines.test_partner_filter import bits, data, source, turned
from tests.support.parameters import for_each
from tests.support.plans import distance
from tests.support.relational import without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.database import Database
from wpinq.graphs import symmetrize, tags
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties


def wedges(half: Query, other: Query | None = None) -> Query:
    return half.join(
        half if other is None else other,
        lambda x: x.dst,
        lambda y: y.src,
        lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst),
    )


def open_wedges(half: Query) -> Query:
    return wedges(half).where(lambda w: w.a != w.c)


def ends(query: Query) -> Query:
    return query.select(lambda w: F.sort((w.a, w.c)))


def one_way(edges: Query) -> Query:
    return edges.select_many(lambda e: [F.record(src=e[0], dst=e[1]), F.record(src=e[0], dst=e[0])])


def met(a: Query, b: Query) -> Query:
    tagged = open_wedges(turned(a)).join(
        a.select(lambda e: e.dst).shave(lambda node: [0.5, 4.0]),
        lambda w: w.b,
        lambda p: p.record,
        lambda w, p: F.record(ends=F.sort((w.a, w.c)), i=p.index),
    )
    return tagged.intersect(b.select_many(lambda e: [F.record(ends=F.sort((e[0], e[1])), i=i) for i in range(2)]))


SHAPES: dict[str, Callable[[Query, Query], Query]] = {
    "ends": lambda a, b: ends(open_wedges(turned(a))),
    "ends and middle": lambda a, b: open_wedges(turned(a)).select(lambda w: (F.sort((w.a, w.c))[0], w.b)),
    "ends in edges": lambda a, b: ends(open_wedges(turned(a))).intersect(b.select(lambda e: F.sort((e[0], e[1])))),
    "pieces": met,
    "never": lambda a, b: ends(open_wedges(turned(a)).where(lambda w: w.a < w.c).where(lambda w: w.c < w.a)).intersect(
        b.select(lambda e: (e[0], e[1]))
    ),
    "closed": lambda a, b: tags.closed_wedges_by_tag(a, [0, 1, 3, 9], [1.0, 0.5, 0.5]),
}
MADE: dict[str, Callable[[Query, Query], Query]] = {
    "one end": lambda a, b: open_wedges(turned(a)).select(lambda w: w.a),
    "one end in order": lambda a, b: ends(wedges(turned(a)).where(lambda w: w.a < w.c)),
    "closed on itself": lambda a, b: ends(wedges(turned(a))),
    "not both ways": lambda a, b: ends(open_wedges(one_way(a))),
    "some edges": lambda a, b: ends(
        open_wedges(turned(a).where(lambda e: e.src != e.dst).where(lambda e: e.src == e.src))
    ),
    "two graphs": lambda a, b: ends(wedges(turned(a), turned(b)).where(lambda w: w.a != w.c)),
}


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as opened:
        yield opened


def mirrors(query: Query) -> bool:
    """Whether the rewrite changes the program."""
    return Plan(query.plan).program().queries != Plan(query.plan, without("mirror_images")).program().queries


@for_each(
    ("shape", "node"),
    [
        (shape, node)
        for node in ("int", "str", "null")
        for shape in (*SHAPES, *MADE)
        if node != "null" or shape not in ("one end in order", "never")  # what can be null has no order
    ],
    every=8,
)
def test_the_bits_are_those_of_both_images(database: Database, shape: str, node: str) -> None:
    rng = Random(f"{shape} {node}")
    for weights in ((1.0,), (1 / 3,), (1.0, 0.5, 1 / 3, 1e-9), (1.0, 1 / 3, -1.0, -1 / 3)):
        facts = ["unit_weights"] if weights == (1.0,) else ["nonnegative"] if min(weights) > 0 else []
        query = {**SHAPES, **MADE}[shape](source("a", node, *facts), source("b", node, *facts))
        for _ in range(2):
            given = data(rng, node, weights)
            found = database.evaluate(query.plan, given)
            for off in (("mirror_images",), ("mirror_images", "sorted_pairs"), ("side_by_side",), ("sorted_pairs",)):
                assert bits(database.evaluate(query.plan, given, rewrites=without(*off))) == bits(found)
            exact = reference.evaluate(query.plan, given, EXACT)
            assert distance(exact, found) <= plan_properties(query.plan).rounding_error
            assert found or shape == "never" or min(weights) < 0


@pytest.mark.parametrize("shape", SHAPES)
def test_one_of_two_images_is_made(shape: str) -> None:
    assert mirrors(SHAPES[shape](source("a", "int", "nonnegative"), source("b", "int", "nonnegative")))


@pytest.mark.parametrize("shape", MADE)
def test_only_where_there_are_two_of_them(shape: str) -> None:
    assert not mirrors(MADE[shape](source("a", "int", "nonnegative"), source("b", "int", "nonnegative")))


def test_closed_wedges_are_found_from_one_end() -> None:
    edges = source("a", "int", "unit_weights")
    query = tags.closed_wedges_by_tag(edges, [0, 2, 8, 32], [0.75, 0.375, 0.375])
    ((_, summed),) = [held for held in Plan(query.plan).program().queries if 'n" < ' in held[1]]
    assert summed.count(" UNION ALL ") == 1, "one way round, in the order of fewer partners"


BOTH_WAYS: dict[str, Query] = {
    "a list and its reverse": symmetrize(source("a", "int")),
    "some of them": symmetrize(source("a", "int").where(lambda e: e.src % 2 == 0)),
    "a simple list": symmetrize(source("a", "int", "unit_weights", "simple")),
    "declared": wp.source("a", src=int, dst=int, weights=True, facts=["symmetric"], unit_weight=2),
}
ONE_WAY: dict[str, Query] = {
    "twice": source("a", "int").concat(source("a", "int")),
    "less its reverse": source("a", "int").difference(source("a", "int").select(lambda e: F.reverse(e))),
    "another reverse": source("a", "int").concat(source("a", "int").select(lambda e: F.record(src=e.dst, dst=e.dst))),
}


@for_each("name", BOTH_WAYS)
def test_a_list_with_its_reverse_has_two_images(database: Database, name: str) -> None:
    rng, query = Random(name), ends(open_wedges(BOTH_WAYS[name]))
    assert mirrors(query)
    given = {
        "a": {(a, b): 1.0 if "simple" in name else rng.choice([1.0, 0.5, 1 / 3]) for a, b in combinations(range(7), 2)}
    }
    if name == "declared":
        given["a"] |= {(b, a): weight for (a, b), weight in given["a"].items()} | {(3, 3): 0.5}
    found = database.evaluate(query.plan, given)
    assert found
    assert bits(database.evaluate(query.plan, given, rewrites=without("mirror_images"))) == bits(found)


@pytest.mark.parametrize("name", ONE_WAY)
def test_other_lists_have_one(name: str) -> None:
    assert not mirrors(ends(open_wedges(ONE_WAY[name])))
