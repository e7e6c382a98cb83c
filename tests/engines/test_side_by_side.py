"""Weights of few values side by side: where they stand so, and the bits, which all stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random
from typing import Any

import pytest

from tests.engines.test_partner_filter import bits, data, source
from tests.support.parameters import for_each, tenth
from tests.support.plans import distance, random_case
from tests.support.relational import without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.database import Database
from wpinq.graphs.tags import closed_wedges_by_tag
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties

WIDTHS = [0.5, 0.75, 0.0, 1 / 3, 4.0]


def pieces(edges: Query, widths: list[float] = WIDTHS) -> Query:
    return edges.select(lambda e: e.dst).shave(lambda node: widths)


def wedges(edges: Query) -> Query:
    return edges.join(edges, lambda x: x.dst, lambda y: y.dst, lambda x, y: F.record(a=x.src, b=x.dst, c=y.src))


def tagged(edges: Query, cut: Query, result: Callable[[Any, Any], Any]) -> Query:
    return wedges(edges).join(cut, lambda x: x.b, lambda p: p.record, result)


SHAPES: dict[str, Callable[[Query, Query], Query]] = {
    "last": lambda a, b: tagged(a, pieces(a), lambda x, p: (x.a, x.c, p.index)),
    "first": lambda a, b: tagged(a, pieces(a), lambda x, p: (p.index, x.a)),
    "alone": lambda a, b: tagged(a, pieces(a), lambda x, p: p.index),
    "others' pieces": lambda a, b: tagged(a, pieces(b), lambda x, p: (x.c, p.index)),
    "filtered": lambda a, b: tagged(a, pieces(a), lambda x, p: (x.a, x.c, p.index)).where(lambda r: r[0] != r[1]),
    "met": lambda a, b: tagged(a, pieces(a), lambda x, p: (x.a, x.c, p.index)).intersect(
        b.select_many(lambda e: [(e[0], e[1], i) for i in range(5)])
    ),
}
READ: dict[str, Callable[[Query, Query], Query]] = {
    "filtered by the piece": lambda a, b: SHAPES["last"](a, b).where(lambda r: r[2] > 0),
    "twice": lambda a, b: tagged(a, pieces(a), lambda x, p: (x.a, p.index, p.index)),
    "in a term": lambda a, b: tagged(a, pieces(a), lambda x, p: (x.a, p.index + 1)),
    "many": lambda a, b: tagged(a, pieces(a, [0.25] * 9), lambda x, p: (x.a, p.index)),
    "no growth": lambda a, b: pieces(a).select(lambda p: p.index),
}


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as opened:
        yield opened


def stand_so(query: Query) -> bool:
    """Whether the rewrite changes the program."""
    return Plan(query.plan).program().queries != Plan(query.plan, without("side_by_side")).program().queries


def keeps_all(database: Database, query: Query, given: dict[str, dict[Any, float]]) -> dict[Any, float]:
    found = database.evaluate(query.plan, given)
    for off in (("side_by_side",), ("fold_lookups",), ("fold_lookups", "side_by_side")):
        assert bits(database.evaluate(query.plan, given, rewrites=without(*off))) == bits(found)
    assert distance(reference.evaluate(query.plan, given, EXACT), found) <= plan_properties(query.plan).rounding_error
    return found


@for_each("shape", [*SHAPES, *READ], every=6)
@for_each("node", ["int", "str", "null"])
def test_the_bits_are_those_of_a_row_a_piece(database: Database, shape: str, node: str) -> None:
    rng = Random(f"{shape} {node}")
    for weights in ((1.0,), (1 / 3,), (1.0, 0.5, 1 / 3, 1e-9), (1.0, 1 / 3, -1.0, -1 / 3)):
        facts = ["unit_weights"] if weights == (1.0,) else []
        query = {**SHAPES, **READ}[shape](source("a", node, *facts), source("b", node, *facts))
        assert keeps_all(database, query, data(rng, node, weights)) or weights != (1.0,)


@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_stand_side_by_side(shape: str) -> None:
    assert stand_so(SHAPES[shape](source("a", "int", "unit_weights"), source("b", "int", "unit_weights")))


@pytest.mark.parametrize("shape", READ)
def test_only_where_nothing_reads_which_piece_it_is(shape: str) -> None:
    assert not stand_so(READ[shape](source("a", "int", "unit_weights"), source("b", "int", "unit_weights")))


def test_only_where_the_weights_are_those_of_the_node() -> None:
    assert not stand_so(SHAPES["last"](source("a", "int"), source("b", "int")))


def test_a_record_that_has_no_piece_is_left_out(database: Database) -> None:
    query = tagged(source("a", "int", "unit_weights"), pieces(source("b", "int", "unit_weights")), lambda x, p: p.index)
    given = {"a": {(1, 2): 1.0, (3, 2): 1.0, (4, 5): 1.0}, "b": {(0, 5): 1.0}}
    assert keeps_all(database, query, given).keys() == {0, 1}


def test_tags_of_closed_wedges_stand_side_by_side(database: Database) -> None:
    """The half-edges of a simple graph weigh 1/2 each, so that a wedge's weight is its middle node's."""
    simple = source("a", "int", "unit_weights", "simple")
    query = closed_wedges_by_tag(simple, [0, 2, 4, 8])
    assert stand_so(query)
    assert not stand_so(closed_wedges_by_tag(source("a", "int", "unit_weights"), [0, 2, 4, 8]))
    rng = Random("closed wedges")
    for _ in range(5):
        pairs = [pair for pair in combinations(range(9), 2) if rng.random() < 0.6]
        assert keeps_all(database, query, {"a": {pair if rng.random() < 0.5 else pair[::-1]: 1.0 for pair in pairs}})


@pytest.mark.parametrize("operator", tenth(["Shave", "Join"], 4))
def test_random_plans_keep_their_bits(database: Database, operator: str) -> None:
    rng = Random(f"{operator} side by side")
    for _ in range(12):
        case = random_case(rng, operator)
        given = {name: {record: float(w) for record, w in held.items()} for name, held in case.data.items()}
        kept = database.evaluate(case.plan, given, rewrites=without("side_by_side"))
        assert bits(database.evaluate(case.plan, given)) == bits(kept)
