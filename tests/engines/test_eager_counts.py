"""Pairs of rows at a key are counted from the counts of their sides: where it is proved, and with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.plans import distance
from tests.support.relational import without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.database import Database
from wpinq.graphs.recipes import squares_by_degree, symmetrize, triangles_by_degree
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties

ALONE = without("eager_counts")
UNIT = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
SIMPLE = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
BOTH = wp.source("edges", src=int, dst=int, facts=["unit_weights", "symmetric"], unit_weight=2)
ANY = wp.source("edges", src=int, dst=int, weights=True)


def steps(edges: Query) -> Query:
    """Paths a → b → c."""
    return edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst))


def met(edges: Query, pairs: Query, key: Callable[[Any], Any], other: Callable[[Any], Any] = lambda e: e.src) -> Query:
    """A join that takes the norm of pairs at a key."""
    return pairs.join(edges, key, other, lambda p, e: (p, e.dst))


COUNTED: dict[str, Callable[[Query], Query]] = {
    "paths": lambda e: met(e, steps(e).where(lambda p: p.a != p.c), lambda p: p.b),
    "there and back": lambda e: met(e, steps(e), lambda p: p.b),
    "three vertices": lambda e: met(
        e, steps(e).where(lambda p: (p.a != p.c) & (p.a != p.b) & (p.b != p.c)), lambda p: p.b
    ),
    "of some ends": lambda e: met(e, steps(e).where(lambda p: (p.a < 7) & (p.c > 2) & (p.a != p.c)), lambda p: p.b),
    "of some middles": lambda e: met(e, steps(e).where(lambda p: (p.b < 7) & (p.a != p.c)), lambda p: p.b),
    "of two columns": lambda e: met(
        e, steps(e).where(lambda p: p.a != p.c), lambda p: (p.b, p.c), lambda e: (e.src, e.dst)
    ),
    "to one vertex": lambda e: met(
        e,
        e.join(e, lambda x: x.dst, lambda y: y.dst, lambda x, y: F.record(a=x.src, b=y.dst, c=y.src)).where(
            lambda p: p.a != p.c
        ),
        lambda p: p.b,
    ),
    "triangles by degree": triangles_by_degree,
    "squares by degree": squares_by_degree,
}
NOT_COUNTED: dict[str, Callable[[Query], Query]] = {
    "in order": lambda e: met(e, steps(e).where(lambda p: p.a < p.c), lambda p: p.b),
    "two inequalities": lambda e: met(e, steps(e).where(lambda p: (p.a != p.c) & (p.a != p.c + 1)), lambda p: p.b),
    "no key of the other": lambda e: met(e, steps(e).where(lambda p: p.a % 2 != p.c % 2), lambda p: p.b),
    "at an end": lambda e: met(e, steps(e).where(lambda p: p.a != p.c), lambda p: p.a),
    "computed": lambda e: met(e, steps(e).where(lambda p: p.a != p.c), lambda p: p.b + 1),
}


def graph(rng: Random, density: int) -> dict[tuple[int, int], float]:
    """Directed edges, some both ways, loops among them."""
    return {(rng.randrange(10), rng.randrange(10)): 1.0 for _ in range(density)}


def changed(query: Query) -> bool:
    return Plan(query.plan).program() != Plan(query.plan, ALONE).program()


@for_each("name", COUNTED)
def test_the_bits_are_those_of_all_pairs(name: str) -> None:
    rng, query = Random(name), COUNTED[name](UNIT)
    assert changed(query)
    with Database(threads=2) as database:
        for density in (0, 4, 25, 60):
            data = {"edges": graph(rng, density)}
            found = database.evaluate(query.plan, data)
            assert found == database.evaluate(query.plan, data, rewrites=ALONE)
            if density == 25 and "degree" not in name:
                exact = reference.evaluate(query.plan, data, EXACT)
                assert found.keys() == exact.keys()
                assert distance(exact, found) <= plan_properties(query.plan).rounding_error
        assert found


@for_each("name", COUNTED)
def test_edges_of_both_directions_are_counted_too(name: str) -> None:
    rng, query = Random(f"{name} both"), COUNTED[name](symmetrize(SIMPLE))
    assert changed(query)
    data = {"edges": {(a, b): 1.0 for a, b in graph(rng, 50) if a < b}}
    with Database(threads=1) as database:
        found = database.evaluate(query.plan, data)
        assert found == database.evaluate(query.plan, data, rewrites=ALONE)
    assert found


@for_each("edges", [symmetrize(SIMPLE), BOTH])
def test_edges_with_their_reverses_are_as_many_as_edges(edges: Query) -> None:
    query, back = COUNTED["paths"](edges), '(a0."c0" = a1."c1")'
    pairs = [pair for pair in graph(Random("back"), 50) if pair[0] < pair[1]]
    pairs += [(b, a) for a, b in pairs if edges is BOTH]
    with Database(threads=1) as database:
        found = database.evaluate(query.plan, {"edges": dict.fromkeys(pairs, 1.0)})
        assert found == database.evaluate(query.plan, {"edges": dict.fromkeys(pairs, 1.0)}, rewrites=ALONE)
    assert found
    for given, joined in ((query, False), (COUNTED["paths"](UNIT), True)):
        assert any(back in made.query for made in Plan(given.plan).program().statements) == joined


@pytest.mark.parametrize("name", NOT_COUNTED)
def test_other_conditions_and_keys_are_left_alone(name: str) -> None:
    assert not changed(NOT_COUNTED[name](UNIT))


def test_pairs_of_many_weights_are_added_up() -> None:
    assert not changed(COUNTED["paths"](ANY))


def test_a_sum_is_counted_row_by_row() -> None:
    assert not changed(steps(UNIT).where(lambda p: p.a != p.c).select(lambda p: p.b))


def test_no_statement_lists_the_pairs_of_a_star() -> None:
    """Each statement but the last gives no more rows than there are edges; the paths are 200 times as many."""
    query = COUNTED["paths"](UNIT)
    data = {"edges": {pair: 1.0 for i in range(1, 401) for pair in ((0, i), (i, 0))}}
    with Database(threads=1) as database:
        database.evaluate(query.select(lambda p: 0).plan, data)
        connection = database.open().connection
        for statement in Plan(query.select(lambda p: 0).plan).program().statements:
            inner = statement.query.split(" FROM (", 1)[1].rsplit(")", 1)[0] if "GROUP BY" in statement.query else ""
            if inner:
                ((rows,),) = connection.execute(f"SELECT count(*) FROM ({inner})").fetchall()
                assert rows <= 2 * len(data["edges"])
