"""Turns of one choice of rows are made once: where it can be proved, and with the same bits."""

from __future__ import annotations

from itertools import permutations
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
from wpinq.engines.sql.rewrites.symmetry import NormalForms
from wpinq.engines.sql.terms import SqlTerm, call, column
from wpinq.graphs.recipes import paths, symmetrize, triangles_by_degree, triangles_by_intersect

ALONE = without("symmetry")
UNIT = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
SIMPLE = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
ANY = wp.source("edges", src=int, dst=int, weights=True)


def triangles(edges: Query) -> Query:
    """Records (a, b, c) of edges a → b → c → a; what two are equal is not said."""
    steps = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    return steps.select(lambda p: (p[1], p[2], p[0])).intersect(steps)


def common_target(edges: Query) -> Query:
    steps = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    both = steps.select(lambda p: (p[1], p[0], p[2])).intersect(steps)
    return both.select(lambda p: (F.sort((p[0], p[1])), p[2]))


SYMMETRIC = {
    "triangles": lambda edges: triangles(edges).select(lambda p: "triangle"),
    "sorted vertices": lambda edges: triangles(edges).select(F.sort),
    "of all three, alike": lambda edges: (
        triangles(edges).where(lambda p: (p[0] < 9) & (p[1] < 9) & (p[2] < 9)).select(F.sort)
    ),
    "common target": common_target,
    "by degree": triangles_by_degree,
    "by bucketed degree": lambda edges: triangles_by_degree(edges, bucket=2),
    "by intersect": triangles_by_intersect,
}
NOT_SYMMETRIC = {
    "one vertex": lambda edges: triangles(edges).select(lambda p: p[0]),
    "two vertices, sorted": lambda edges: triangles(edges).select(lambda p: F.sort((p[0], p[1]))),
    "of one, a condition": lambda edges: triangles(edges).where(lambda p: p[0] < 9).select(F.sort),
    "paths": lambda edges: paths(edges).select(lambda p: "path"),
}


def programs(query: Query) -> tuple[Any, Any]:
    """With and without; where only aliases differ, they are equal."""
    return Plan(query.plan).program(), Plan(query.plan, ALONE).program()


@pytest.mark.parametrize("name", SYMMETRIC)
def test_turns_are_made_once(name: str) -> None:
    once, thrice = programs(SYMMETRIC[name](UNIT))
    assert once != thrice
    assert "w1" in once.query


@pytest.mark.parametrize("name", NOT_SYMMETRIC)
def test_what_turns_change_is_left_alone(name: str) -> None:
    once, thrice = programs(NOT_SYMMETRIC[name](UNIT))
    assert once == thrice


@for_each("name", SYMMETRIC)
@for_each("weights", [(1.0,), (1.0, 0.5, 1 / 3), (1.0, -2.0, 0.1)], ids=["unit", "positive", "any"])
def test_the_bits_are_those_of_all_turns(name: str, weights: tuple[float, ...]) -> None:
    rng = Random(f"{name} {weights}")
    query = SYMMETRIC[name](UNIT if weights == (1.0,) else ANY)
    once, thrice = programs(query)
    if "degree" in name and weights != (1.0,):  # a degree is one number of a vertex only where weights are equal
        assert once == thrice
        return
    assert once != thrice
    with Database(threads=2) as database:
        for density in (30, 60, 90):
            records = {(rng.randrange(12), rng.randrange(12)) for _ in range(density)}  # loops among them
            data = {"edges": {record: rng.choice(weights) for record in sorted(records)}}
            found = database.evaluate(query.plan, data)
            assert found == database.evaluate(query.plan, data, rewrites=ALONE)
        assert found


@for_each("name", ["sorted vertices", "by degree", "by intersect"])
@for_each("weights", [(1.0,), (1.0, 0.5, 1 / 3), (1.0, -2.0, 0.1)], ids=["unit", "positive", "any"])
def test_edges_with_their_reverses_are_put_in_order_once(name: str, weights: tuple[float, ...]) -> None:
    """One of the tables in which a column comes before the others is the other, read the other way.

    It is made of the edges in one direction, each turned where its target comes first.
    """
    rng, simple = Random(f"{name} both"), wp.source("edges", src=int, dst=int, facts=["simple"], weights=True)
    loops = -2.0 in weights  # and both directions, of weights of their own
    query = SYMMETRIC[name](symmetrize(ANY if loops else SIMPLE if weights == (1.0,) else simple))
    once, thrice = programs(query)
    if once != thrice:
        (ordered,) = (statement.query for statement in once.statements if "CASE WHEN" in statement.query)
        assert "END AS c1" in ordered
        assert ordered.endswith('(a0."c0" < a0."c1")')
        assert once.query.count("CAST(w") == 6, "of both directions around a triangle one is made"
    pairs = sorted({(a, b) for a, b in ((rng.randrange(14), rng.randrange(14)) for _ in range(80)) if a < b or loops})
    data = {"edges": {pair: rng.choice(weights) for pair in pairs}}
    with Database(threads=2) as database:
        found = database.evaluate(query.plan, data)
        assert found == database.evaluate(query.plan, data, rewrites=ALONE)
    assert found


DIGRAPH = wp.source("edges", src=int, dst=int, facts=["simple_digraph"])
BOTH_WAYS = symmetrize(SIMPLE)
LOOPED = BOTH_WAYS.concat(BOTH_WAYS.select(lambda e: F.record(src=e.src, dst=e.src)))


@for_each("name", ["sorted vertices", "by intersect"])
@for_each("edges, loops", [(BOTH_WAYS, False), (DIGRAPH, False), (symmetrize(UNIT), True), (LOOPED, True)])
def test_loops_are_read_only_where_two_ends_may_be_one(name: str, edges: Query, loops: bool) -> None:
    query = SYMMETRIC[name](edges)
    once, thrice = programs(query)
    assert once != thrice
    assert (" UNION ALL " in once.query) == loops
    data = {"edges": {(a, b): 1.0 for a in range(12) for b in range(a + 1, 12) if (a * b) % 3}}
    with Database(threads=2) as database:
        found = database.evaluate(query.plan, data)
        assert (
            found
            == database.evaluate(query.plan, data, rewrites=ALONE)
            == database.evaluate(query.plan, data, rewrites=())
        )
    assert found or edges is DIGRAPH


def test_a_term_of_the_degree_stands_beside_its_vertex_where_it_is_the_only_one() -> None:
    carried, _ = programs(triangles_by_intersect(BOTH_WAYS))
    assert len(set(carried.reads)) == 2
    for query in (triangles_by_degree(BOTH_WAYS), triangles_by_intersect(UNIT)):
        assert len(set(programs(query)[0].reads)) > 2


def test_both_directions_around_a_triangle_are_one_where_nothing_tells_them_apart() -> None:
    both = triangles(symmetrize(SIMPLE))
    turning = both.where(lambda p: (p[0] < 9 * p[1]) & (p[1] < 9 * p[2]) & (p[2] < 9 * p[0]))
    data = {"edges": {(a, b): 1.0 for a in range(12) for b in range(a + 1, 12) if (a * b) % 3}}
    for found, made in ((triangles(UNIT), 3), (turning, 3), (both, 6)):
        query = found.select(F.sort)
        once, _ = programs(query)
        assert once.query.count("CAST(w") == made
        with Database(threads=2) as database:
            assert database.evaluate(query.plan, data) == database.evaluate(query.plan, data, rewrites=ALONE)


def test_growth_is_at_the_vertex_of_few_edges() -> None:
    """A star of which every point is in a triangle with the centre: the first two tables are joined at the points."""
    spokes = {pair: 1.0 for i in range(1, 201) for pair in ((0, i), (i, 0))}
    rim = {pair: 1.0 for i in range(1, 201, 2) for pair in ((i, i + 1), (i + 1, i))}
    compiled = Plan(triangles_by_degree(UNIT).plan).program()
    tables = compiled.query.split(" FROM ")[3].split(" WHERE ")[0].split(", ")
    first, second = (table.split(" AS ")[0] for table in tables[:2])
    with Database(threads=1) as database:
        database.evaluate(triangles_by_degree(UNIT).plan, {"edges": spokes | rim})
        connection = database.open().connection
        (rows,) = connection.execute(f"SELECT count(*) FROM {first} a, {second} b WHERE a.c0 = b.c1").fetchone()
        (all_,) = connection.execute("SELECT count(*) FROM source_edges a, source_edges b WHERE a.c0 = b.c1").fetchone()
    assert all_ > 40_000
    assert rows <= 4 * 200


# --- forms ----------------------------------------------------------------------------------------------------------

NAMES = "abcd"


def value(term: SqlTerm, row: dict[str, int]) -> int:
    if term.kind == "column":
        return row[term.text]
    return (min if term.text == "least" else max)(value(part, row) for part in term.arguments)


def grown(rng: Random, atoms: list[SqlTerm], size: int) -> SqlTerm:
    terms = list(atoms)
    for _ in range(size):
        terms.append(call(rng.choice(("least", "greatest")), *rng.choices(terms, k=2)))
    return terms[-1]


def test_choices_have_one_form_where_they_choose_the_same() -> None:
    rng = Random("forms")
    atoms = [column("t", name, False) for name in NAMES]
    rows = [dict(zip(NAMES, numbers, strict=True)) for numbers in permutations(range(4))]
    forms = NormalForms(lambda term: term)
    terms = [grown(rng, atoms, rng.randrange(1, 12)) for _ in range(400)]
    seen: dict[tuple[int, ...], int] = {}
    for term in terms:
        values = tuple(value(term, row) for row in rows)
        assert seen.setdefault(values, forms.number(term)) == forms.number(term)
    assert len(set(seen.values())) == len(seen) > 20


def test_a_choice_of_what_can_be_null_is_as_it_is_written() -> None:
    forms = NormalForms(lambda term: term)
    a, b = column("t", "a", True), column("t", "b", False)
    assert forms.number(call("least", a, b)) != forms.number(call("least", b, a))
    assert forms.number(call("equal", a, b)) == forms.number(call("equal", b, a))
    assert forms.number(call("less", b, a)) != forms.number(call("less", a, b))


def test_columns_that_are_equal_are_one() -> None:
    a, b, c = (column("t", name, False) for name in "abc")
    forms = NormalForms(lambda term: a if term == b else term)
    assert forms.number(call("less", a, c)) == forms.number(call("less", b, c))
    assert forms.number(call("less", a, c)) != forms.number(call("less", c, c))
