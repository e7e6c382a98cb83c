"""Walks over neighbour lists: every plan of the class, against the reference; and which plans are of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

import wpinq as wp
from tests.incremental import research
from tests.incremental.test_compiled_swaps import degrees, graph
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.delta.compiled import Goal, SwapWalk
from wpinq.engines.delta.evaluator import loss
from wpinq.expr.values import Value
from wpinq.graphs import recipes
from wpinq.plan.arithmetic import FLOAT

SYMMETRIC = wp.source("edges", a=int, b=int)
ONCE = research.EDGES

PLANS: dict[str, tuple[Callable[[Query], Query], bool]] = {
    "triangles": (recipes.triangles_by_intersect, True),
    "joint degrees": (recipes.joint_degrees, True),
    "triangles by degree": (lambda e: recipes.triangles_by_degree(e, 2), True),
    "degree ccdf": (recipes.degree_ccdf, True),
    **{name: (query, False) for name, query in research.QUERIES.items() if name not in research.TABLES},
    **{
        f"{name}, symmetrised": (lambda e, q=query: q(recipes.symmetrize(e)), False)
        for name, query in {"triangles": recipes.triangles_by_intersect, "joint": recipes.joint_degrees}.items()
    },
}


def check(walk: SwapWalk, plans: list[Query], symmetric: bool) -> None:
    held = {tuple(sorted(edge)): 1.0 for edge in walk.edges}
    if symmetric:
        held |= {(b, a): 1.0 for a, b in held}
    for output, query in zip(walk.outputs, plans, strict=True):
        fresh = reference.evaluate(query.plan, {"edges": held}, FLOAT)
        assert {x for x in fresh if abs(fresh[x]) > 1e-9} <= set(output)
        for record, weight in output.items():
            assert weight == pytest.approx(fresh.get(record, 0.0), abs=1e-9)


@for_each("name", PLANS)
def test_outputs_are_true_along_a_walk(interpreted_modules: None, name: str) -> None:
    query, symmetric = PLANS[name]
    plan = query(SYMMETRIC if symmetric else ONCE)
    start = graph(3, 12, 30)
    goal = {edge: 1.0 for a, b in graph(4, 12, 30) for edge in ([(a, b), (b, a)] if symmetric else [(a, b)])}
    values = reference.evaluate(plan.plan, {"edges": goal}, FLOAT)
    walk = SwapWalk([Goal(plan.plan, 1.0, values)], "edges", start, symmetric=symmetric, seed=2, closing=0.3)
    assert walk.specialised
    check(walk, [plan], symmetric)
    for _ in range(12):
        walk.run(5, 2.0)
        check(walk, [plan], symmetric)
    assert walk.progress.accepted > 0
    assert degrees(walk.edges) == degrees(start)


def test_several_plans_walk_together_as_over_tables(interpreted_modules: None) -> None:
    start = graph(5, 10, 22)
    targets = [
        Goal(research.closed_by_intersect(ONCE).plan, 0.4, {0: 0.3, 1: 0.7, 5: 2.0}, width=0.4),
        Goal(research.joint_tags(ONCE).plan, 0.3, {(i, j): 0.5 for i in range(4) for j in range(i, 4)}, outside=True),
        Goal(half_degrees(ONCE).plan, 0.2, dict.fromkeys(range(9), 6.0), width=1.0),
    ]
    lists, tables = (
        SwapWalk(targets, "edges", start, symmetric=False, seed=7, closing=0.4, virtual=virtual)
        for virtual in (True, False)
    )
    assert lists.specialised
    assert not tables.specialised
    for _ in range(3):
        assert lists.run(20, 3.0).score == pytest.approx(tables.run(20, 3.0).score, abs=1e-9)
        assert lists.edges == tables.edges
    assert lists.progress.score == pytest.approx(sum(map(scored, targets, lists.outputs)), abs=1e-9)
    assert 0 < lists.progress.accepted == tables.progress.accepted < lists.progress.evaluated


def scored(target: Goal, output: Mapping[Value, float]) -> float:
    differences = [output.get(key, 0.0) - value for key, value in target.values.items()]
    if target.outside:
        differences += [weight for record, weight in output.items() if record not in target.values]
    return target.epsilon * sum(loss(difference, target.width) for difference in differences)


def half_degrees(edges: Query) -> Query:
    """The degree distribution, from below: frozen under swaps."""
    return research.half_edges(edges).select(lambda e: e.a).shave(0.5).select(lambda p: p.index)


def test_the_lists_serve_what_they_can(interpreted_modules: None) -> None:
    start = graph(6, 9, 18)
    half = research.half_edges(ONCE)
    tags = research.degree_tags(ONCE)
    plans: dict[str, tuple[Query, bool]] = {
        "edges near each other": (ONCE.where(lambda e: e.b - e.a < 4).select(lambda e: "near"), True),
        "two parts": (half.select(lambda e: 1).concat(ONCE.where(lambda e: e.b - e.a < 9).select(lambda e: 2)), True),
        "several images": (half.select_many(lambda e: [1, 2, 2]), True),
        "degrees": (half.select(lambda e: e.a), True),
        "a filter on tags": (
            half.join(tags.where(lambda t: t.i > 0), lambda e: e.a, lambda t: t.v, lambda e, t: t.i),
            True,
        ),
        "the least of a sum over middles": (
            research.wedges(ONCE).select(lambda w: F.record(a=w.a, b=w.c)).intersect(half).select(lambda e: 1),
            True,
        ),
        "a norm by pair": (research.closed_by_join(ONCE), False),
        "wedges": (research.wedges(ONCE).select(lambda w: 1), False),
        "a maximum": (half.union(half.select(lambda e: F.record(a=e.b, b=e.a))).select(lambda e: 1), False),
        "a sum held for an edge, over that edge": (
            half.join(tags, lambda e: e.a, lambda t: t.v, lambda e, t: F.record(ends=F.sort((e.a, e.b)), i=t.i)).join(
                ONCE, lambda x: x.ends, lambda e: F.sort((e.a, e.b)), lambda x, e: x.i
            ),
            False,
        ),
        "larger ends": (ONCE.group_by(lambda e: e.a, lambda g: F.count(g)).select(lambda p: p.val), False),
        "negative": (half.difference(ONCE.select(lambda e: F.record(a=e.a, b=e.b))).select(lambda e: 3), True),
    }
    for name, (query, served) in plans.items():
        values = {"near": 4.0} if str(query.plan.type) == "str" else {1: 3.0, 2: 9.0, 3: 1.0}
        walk = SwapWalk([Goal(query.plan, 0.5, values)], "edges", start, symmetric=False, seed=3)
        assert walk.specialised == served, name
        walk.run(40, 1.0)
        check(walk, [query], False)


def test_vertices_may_be_strings_and_go_by_their_own_order(interpreted_modules: None) -> None:
    edges = wp.source("edges", a=str, b=str)
    names = {vertex: f"v{(7 * vertex) % 31:02}" for edge in graph(6, 9, 18) for vertex in edge}
    start = [(names[a], names[b]) for a, b in graph(6, 9, 18)]
    late = F.record(a="v02", b="z")  # strings of the plan are numbered first
    low = edges.where(lambda e: (e.a != late.a) & (e.b != late.b)).select(lambda e: 1)
    for query in (research.closed_by_intersect(edges), research.joint_tags(edges), low):
        walk = SwapWalk([Goal(query.plan, 0.5, {1: 2.0})] if query is low or str(query.plan.type) == "int" else
                        [Goal(query.plan, 0.5, {(1, 1): 2.0})], "edges", start, symmetric=False, seed=3)  # fmt: skip
        assert walk.specialised
        walk.run(40, 1.0)
        check(walk, [query], False)
