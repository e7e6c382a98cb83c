"""What walks converge to, against every graph enumerated; and that a walk resumed goes on as it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest

import wpinq as wp
from tests.incremental import research
from tests.incremental.test_compiled_swaps import degrees, graph, use_interpreter
from tests.support.parameters import for_each, tenth
from wpinq.engines.delta.compiled import EdgeWalk, Goal, SwapWalk
from wpinq.engines.delta.compiled.adjacency import graph as walked
from wpinq.errors import PlanError
from wpinq.expr.types import INT
from wpinq.graphs import recipes
from wpinq.plan.node import Node

EDGES = wp.source("edges", src=int, dst=int)
TRIANGLES = recipes.triangles_by_intersect(EDGES)
LOW = EDGES.where(lambda e: e.src + e.dst < 4).select(lambda e: "low")

Graph = frozenset[tuple[int, int]]


def quantile(freedom: int) -> float:
    """Chi-squared at 1 − 1e-4, by Wilson and Hilferty."""
    return freedom * (1 - 2 / (9 * freedom) + 3.719 * math.sqrt(2 / (9 * freedom))) ** 3


def canonical(edges: list[tuple[int, int]]) -> Graph:
    return frozenset((min(edge), max(edge)) for edge in edges)


def graphs(vertices: int, keep: Callable[[Graph], bool]) -> list[Graph]:
    pairs = list(combinations(range(vertices), 2))
    sets = (frozenset(chosen) for size in range(len(pairs) + 1) for chosen in combinations(pairs, size))
    return [held for held in sets if keep(held)]


def score(held: Graph, plan: Node, target: Goal, symmetric: bool) -> float:
    weights = {edge: 1.0 for a, b in held for edge in ([(a, b), (b, a)] if symmetric else [(a, b)])}
    found = wp.evaluate(wp.Query(plan), {"edges": weights}, engine="reference") if weights else {}
    return target.epsilon * sum(abs(float(found.get(x, 0)) - value) for x, value in target.values.items())


def check(walk: SwapWalk | EdgeWalk, target: Goal, power: float, space: list[Graph], symmetric: bool) -> None:
    """Counts of the graphs met against their probabilities, by chi-squared; a false alarm in one of 10⁴."""
    chances = np.exp([-power * score(held, target.plan, target, symmetric) for held in space])
    chances /= chances.sum()
    samples, counts = 4000, Counter[Graph]()
    for _ in range(samples):
        walk.run(60, power)
        counts[canonical(walk.edges)] += 1
    assert set(counts) <= set(space)
    expected = samples * chances
    statistic = sum((counts[held] - e) ** 2 / e for held, e in zip(space, expected, strict=True))
    assert statistic < quantile(len(space) - 1)


CYCLE_WITH_CHORDS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 3)]


@pytest.mark.long
@for_each("closing", [0.0, 0.5, 0.9])
@for_each(("symmetric", "virtual"), [(True, True), (False, True), (False, False)])
def test_swaps_converge_to_the_posterior_whatever_share_closes_wedges(
    closing: float, symmetric: bool, virtual: bool
) -> None:
    target = Goal((TRIANGLES if symmetric else LOW).plan, 0.5, {"triangle!": 1.0} if symmetric else {"low": 1.0})
    wanted = degrees(CYCLE_WITH_CHORDS)
    space = graphs(6, lambda held: len(held) == 7 and degrees(list(held)) == wanted)
    assert len(space) > 20
    walk = SwapWalk([target], "edges", CYCLE_WITH_CHORDS, symmetric=symmetric, seed=5, virtual=virtual, closing=closing)
    assert walk.specialised == virtual
    check(walk, target, 1.5, space, symmetric)


@pytest.mark.long
@pytest.mark.parametrize("changing", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("symmetric", [True, False])
def test_edge_walks_converge_to_the_posterior(changing: float, symmetric: bool) -> None:
    target = Goal(LOW.plan, 0.25 if symmetric else 0.5, {"low": 2.0 if symmetric else 1.0})
    start = [(0, 1), (1, 2), (2, 3)]
    space = graphs(4, lambda held: changing > 0 or len(held) == 3)
    walk = EdgeWalk([target], "edges", start, range(4), symmetric=symmetric, seed=6, changing=changing)
    check(walk, target, 3.0, space, symmetric)


def walks(edges: list[tuple[int, int]]) -> dict[str, SwapWalk | EdgeWalk]:
    triangles, low = Goal(TRIANGLES.plan, 0.5, {"triangle!": 9.0}), Goal(LOW.plan, 0.5, {"low": 3.0})
    return {
        "lists": SwapWalk([triangles], "edges", edges, seed=1, closing=0.3),
        "tags": SwapWalk(tagged(), "edges", edges, seed=1, closing=0.3, symmetric=False),
        "tables": SwapWalk([triangles, low], "edges", edges, seed=1, closing=0.3, virtual=False),
        "one direction": SwapWalk([low], "edges", edges, seed=1, symmetric=False),
        "edges": EdgeWalk([triangles, low], "edges", edges, range(-20, 70), seed=1),
    }


def tagged() -> list[Goal]:
    closed, joint = (query(research.EDGES).plan for query in (research.closed_by_intersect, research.joint_tags))
    return [Goal(closed, 0.5, {1: 0.3, 2: 0.1}), Goal(joint, 0.5, {(1, 2): 2.0}, outside=True)]


@pytest.mark.parametrize("name", tenth(["lists", "tags", "tables", "one direction", "edges"], 2))
def test_a_restored_walk_goes_on_to_the_last_bit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    use_interpreter(monkeypatch)
    walk = walks(graph(3, 16, 40))[name]
    walk.run(60, 2.0)
    state = {key: held.copy() for key, held in walk.save().items()}
    other = walks(graph(3, 16, 40))[name]
    other.run(25, 1.0)
    other.restore(state)
    assert other.progress == walk.progress
    for each in (walk, other):
        each.run(60, 2.0)
    assert other.progress == walk.progress
    assert np.array_equal(other.edge_array, walk.edge_array)
    assert other.outputs == walk.outputs
    assert walk.progress.accepted > state["tallies"][1]


def test_vertices_may_be_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    use_interpreter(monkeypatch)
    friends = wp.source("friends", a=str, b=str)
    near = friends.where(lambda e: e.a == "ann").select(lambda e: e.b)
    edges = [("eve", "bob"), ("ann", "bob"), ("dan", "eve"), ("ann", "cat"), ("dan", "cat")]
    target = Goal(near.plan, 1.0, {"eve": 1.0})
    walk = SwapWalk([target], "friends", edges, symmetric=False, seed=3)
    walk.run(50, 1.0)
    other = SwapWalk([target], "friends", edges, symmetric=False, seed=4)
    other.restore(walk.save())
    for each in (walk, other):
        each.run(50, 1.0)
    assert walk.edges == other.edges
    friends_of_ann = {max(edge) for edge in walk.edges if "ann" in edge}
    assert set(walk.outputs[0]) == friends_of_ann, "each edge runs from the smaller vertex to the larger"


def test_edges_may_be_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    use_interpreter(monkeypatch)
    start = graph(3, 16, 40)
    target = Goal(recipes.joint_degrees(EDGES).plan, 0.5, {(3, 4): 2.0})
    first, second = (SwapWalk([target], "edges", edges, seed=1) for edges in (start, np.array(start)))
    assert first.run(30, 1.0) == second.run(30, 1.0)
    assert first.edges == second.edges == [tuple(edge) for edge in second.edge_array.tolist()]
    for wrong in (np.array(start) + 0.5, np.arange(6).reshape(2, 3)):
        with pytest.raises(PlanError, match="pairs of integers"):
            SwapWalk([target], "edges", wrong)


def test_an_edge_walk_finds_room_for_more_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    use_interpreter(monkeypatch)
    target = Goal(EDGES.select(lambda e: "edges").plan, 1.0, {"edges": 150.0})
    walk = EdgeWalk([target], "edges", [], range(20), symmetric=False, changing=1.0)
    walk.run(700, 9.0)
    assert walk.outputs[0]["edges"] == len(walk.edges) == len(canonical(walk.edges)) > 140


@pytest.mark.parametrize("closing", [1e-18, 0.4, 0.999])
def test_no_exchange_is_likelier_to_be_reversed_than_the_bound_says(closing: float) -> None:
    # two stars with common leaves, whose ends lose all common neighbours at once: the largest ratios there are
    pairs = [(0, 1), *((end, leaf) for end in (0, 1) for leaf in range(2, 6)), (6, 7), (7, 8), (8, 6), (9, 10)]
    vertices, numbers = walked.numbered(pairs, INT, 2)
    held = walked.Graph(vertices, numbers, np.zeros((len(vertices), 0)), np.zeros(0))
    bound, most = walked.most_chances(closing, held), 0.0
    ways = [(*ends, *others) for ends, others in permutations(held.edges.tolist(), 2)]
    for a, b, p, q in [*ways, *((a, b, q, p) for a, b, p, q in ways)]:
        if len({a, b, p, q}) < 4:
            continue
        held.marks[:] = 0
        for vertex, side in ((a, 0), (p, 1)):
            walked.mark_neighbours(vertex, side, 1, held)
        for vertex, side in ((b, 0), (q, 1)):
            walked.list_common(vertex, side, 1, held)
        most = max(most, walked.chances(a, b, p, q, 1, closing, held))
    assert 0.999 < most < bound
    assert closing < 0.1 or most > 1.5


@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("closing", [0.0, 0.5])
def test_a_walk_with_places_keeps_the_number_of_long_edges(virtual: bool, closing: float) -> None:
    rng = np.random.default_rng(1)
    places, reach = rng.random((30, 2)), np.array([0.2, 0.4])
    edges = np.array([pair for pair in combinations(range(30), 2) if rng.random() < 0.2])

    def lengths(held: np.ndarray) -> list[int]:
        off = np.linalg.norm(places[held[:, 0]] - places[held[:, 1]], axis=1)
        return np.bincount(np.searchsorted(reach, off), minlength=3).tolist()

    free, guarded = (
        SwapWalk([Goal(LOW.plan, 1.0, {})], "edges", edges, closing=closing, virtual=virtual, **guard)
        for guard in ({}, {"places": places, "reach": reach})
    )
    assert free.run(3000, 0.0).accepted > guarded.run(3000, 0.0).accepted > 100
    assert lengths(guarded.edge_array) == lengths(edges) != lengths(free.edge_array)


def test_shares_are_checked() -> None:
    with pytest.raises(PlanError, match="closing is a share"):
        SwapWalk([Goal(LOW.plan, 1.0, {})], "edges", [(0, 1), (2, 3)], closing=1.0)
    with pytest.raises(PlanError, match="changing is a share"):
        EdgeWalk([Goal(LOW.plan, 1.0, {})], "edges", [], range(3), changing=1.5)
