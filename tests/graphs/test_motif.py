"""Motifs: the support is exactly the copies of the pattern, whatever its numbering and the graph's."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations
from typing import Any

import networkx as nx
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import ExpressionError, PlanError
from wpinq.expr.nodes import DEPTH_LIMIT, Lambda, write
from wpinq.graphs import motif, motif_total, symmetrize
from wpinq.graphs.motifs import automorphisms, best_cover, read_pattern, standard_form
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import topological

EDGES = wp.source("edges", src=int, dst=int)

CONNECTED = [g for g in nx.graph_atlas_g() if 2 <= len(g) <= 5 and nx.is_connected(g)]
PATTERNS = {f"{len(g)} vertices, {sorted(g.edges())}": [tuple(edge) for edge in g.edges()] for g in CONNECTED}
SMALL = {name: pattern for name, pattern in PATTERNS.items() if name[0] in "234"}

TRIANGLE = [(0, 1), (1, 2), (2, 0)]
FIVE_CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
HOUSE = [*FIVE_CYCLE, (1, 4)]
BULL = [*TRIANGLE, (0, 3), (1, 4)]
K5 = [(u, v) for u in range(5) for v in range(u)]


def both_ways(graph: nx.Graph) -> dict[str, list[tuple[Any, Any]]]:
    return {"edges": [*graph.edges(), *((v, u) for u, v in graph.edges())]}


def copies(graph: nx.Graph, pattern: list[tuple[int, int]]) -> set[tuple[Any, ...]]:
    """Every copy, as the least of its embeddings, by trying all tuples of distinct nodes."""
    size = 1 + max(map(max, pattern))
    embeddings = [
        nodes for nodes in permutations(graph, size) if all(graph.has_edge(nodes[u], nodes[v]) for u, v in pattern)
    ]
    least: dict[frozenset[frozenset[Any]], tuple[Any, ...]] = {}
    for nodes in embeddings:
        copy = frozenset(frozenset((nodes[u], nodes[v])) for u, v in pattern)
        least[copy] = min(nodes, least.get(copy, nodes))
    return set(least.values())


def crowded() -> nx.Graph:
    """Nine nodes with a K5, stars, long cycles and a part that is not connected to the rest."""
    graph = nx.gnm_random_graph(7, 11, seed=4)
    graph.add_edges_from([(u, v) for u in range(5) for v in range(u)])
    graph.add_edge(7, 8)
    return nx.relabel_nodes(graph, dict(enumerate([3, 8, 1, 6, 0, 7, 2, 5, 4])))


def test_all_connected_patterns_are_there() -> None:
    assert [sum(len(g) == n for g in CONNECTED) for n in (2, 3, 4, 5)] == [1, 2, 6, 21]


@for_each("name", PATTERNS, every=3)
def test_support_equals_brute_force(name: str) -> None:
    pattern = PATTERNS[name]
    graph = crowded()
    found = wp.evaluate(motif(EDGES, pattern), both_ways(graph))
    expected = copies(graph, pattern)
    assert expected, "the graph is meant to hold every pattern"
    assert set(found) == expected
    assert min(found.values()) > 0


@for_each("name", SMALL)
@for_each("seed", [1, 2])
def test_support_on_sparse_graphs(name: str, seed: int) -> None:
    graph = nx.gnm_random_graph(9, 13, seed=seed)
    assert set(wp.evaluate(motif(EDGES, SMALL[name]), both_ways(graph))) == copies(graph, SMALL[name])


@pytest.mark.parametrize("pattern", [TRIANGLE, BULL, HOUSE, FIVE_CYCLE, [(0, 1), (0, 2), (0, 3)]], ids=str)
def test_weights_do_not_depend_on_the_names_of_nodes(pattern: list[tuple[int, int]]) -> None:
    graph = nx.gnm_random_graph(7, 13, seed=5)
    names = dict(zip(graph, random.Random(6).sample(range(100), 7), strict=True))
    renamed = nx.relabel_nodes(graph, names)

    def by_copy(graph: nx.Graph, names: dict[int, int]) -> dict[frozenset[frozenset[int]], Fraction]:
        found = wp.evaluate(motif(EDGES, pattern), both_ways(graph), exact=True)
        return {
            frozenset(frozenset((names[copy[u]], names[copy[v]])) for u, v in pattern): weight
            for copy, weight in found.items()
        }

    before = by_copy(graph, names)
    assert before
    assert before == by_copy(renamed, {node: node for node in renamed})


@pytest.mark.parametrize("pattern", [TRIANGLE, BULL, HOUSE, FIVE_CYCLE], ids=str)
def test_weights_do_not_depend_on_the_numbers_of_the_pattern(pattern: list[tuple[int, int]]) -> None:
    graph = nx.gnm_random_graph(7, 13, seed=5)
    size = 1 + max(map(max, pattern))
    totals, supports = set(), set()
    for seed in range(4):
        labels = random.Random(seed).sample(range(size), size)
        renumbered = [(labels[v], labels[u]) for u, v in pattern]
        found = wp.evaluate(motif(EDGES, renumbered), both_ways(graph), exact=True)
        totals.add(tuple(sorted(found.values())))
        supports.add(len(found))
        total = wp.evaluate(motif_total(EDGES, renumbered), both_ways(graph), exact=True)
        assert total["motif"] == sum(found.values()) > 0
    assert len(totals) == len(supports) == 1


@for_each("name", PATTERNS)
def test_uses_are_the_edges_of_the_pattern(name: str) -> None:
    edges = len(PATTERNS[name])
    assert motif(EDGES, PATTERNS[name]).uses() == {"edges": edges}
    assert motif_total(EDGES, PATTERNS[name]).uses() == {"edges": edges}
    assert motif(symmetrize(EDGES), PATTERNS[name]).uses() == {"edges": 2 * edges}


def test_triangle_weights_by_hand() -> None:
    # One triangle with a tail at 2. From each side {a, c}, and either way along it, a path over b, 1/(2 d_b), meets
    # the edge from a to c: the key (a, c) has the norm 1/(2 d_b) + 1.
    graph = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    expected = sum(2 * Fraction(1, 2 * d) / (Fraction(1, 2 * d) + 1) for d in (2, 2, 3))
    found = wp.evaluate(motif(EDGES, TRIANGLE), both_ways(graph), exact=True)
    assert dict(found) == {(0, 1, 2): expected}


def test_an_edge_is_a_motif_that_weighs_two() -> None:
    found = wp.evaluate(motif(EDGES, [(1, 0)]), both_ways(nx.path_graph(3)), exact=True)
    assert dict(found) == {(0, 1): 2, (1, 2): 2}


def test_self_loops_make_no_copies() -> None:
    graph = {"edges": [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]}
    assert not wp.evaluate(motif(EDGES, TRIANGLE), graph)
    assert set(wp.evaluate(motif(EDGES, [(0, 1), (1, 2)]), graph)) == {(0, 1, 2)}
    assert set(wp.evaluate(motif(EDGES, [(0, 1)]), graph)) == {(0, 1), (1, 2)}


def test_nodes_of_other_types_and_fields_of_other_names() -> None:
    names = wp.source("edges", who=str, whom=str)
    graph = nx.relabel_nodes(crowded(), "zyxwvutsr".__getitem__)
    assert set(wp.evaluate(motif(names, HOUSE), both_ways(graph))) == copies(graph, HOUSE)
    pairs = wp.source("edges", one=(pair := tuple[int, str]), other=pair)
    graph = nx.relabel_nodes(crowded(), lambda n: (n % 3, "ab"[n % 2] + str(n)))
    assert set(wp.evaluate(motif(pairs, FIVE_CYCLE), both_ways(graph))) == copies(graph, FIVE_CYCLE)
    lists = wp.source("edges", one=list[int], other=list[int])
    with pytest.raises(ExpressionError, match="cannot order"):
        motif(lists, TRIANGLE)


def test_isomorphic_patterns_share_their_plan() -> None:
    numbered = [(3, 0), (0, 4), (4, 1), (1, 3), (2, 4), (2, 3)]
    plans = [{node.digest for node in topological([motif(EDGES, p).plan])} for p in (numbered, numbered[::-1])]
    assert plans[0] == plans[1]
    renumbered = [(u + 1) % 5 for u in range(5)]
    other = motif_total(EDGES, [(renumbered[u], renumbered[v]) for u, v in numbered])
    assert other == motif_total(EDGES, numbered)


def test_parts_that_are_put_together_alike_are_evaluated_once() -> None:
    square = motif(EDGES, [(0, 1), (1, 2), (2, 3), (3, 0)])
    joins = [node for node in topological([square.plan]) if node.operator.name == "Join"]
    assert len(joins) == 2  # the paths, and the paths with themselves


@for_each("name", PATTERNS)
def test_covers_hold_every_edge_once(name: str) -> None:
    pattern, _ = standard_form(read_pattern(PATTERNS[name]))
    leaves, stack = [], [best_cover(pattern)]
    while stack:
        cover = stack.pop()
        if cover.parts is None:
            leaves += cover.edges
        else:
            stack += cover.parts
    assert sorted(leaves) == list(pattern.edges)


@pytest.mark.parametrize("pattern", [K5, HOUSE, FIVE_CYCLE, [(0, 1), (0, 2), (0, 3), (0, 4)]], ids=str)
def test_plans_are_small_and_travel(pattern: list[tuple[int, int]]) -> None:
    query = motif(EDGES, pattern)
    assert plan_from_json(plan_to_json(query.plan)) == query.plan
    for node in topological([query.plan]):
        for name in node.operator.__dataclass_fields__:
            argument = getattr(node.operator, name)
            if isinstance(argument, Lambda):
                assert len(write(argument)) < 1200 and DEPTH_LIMIT >= 100


@pytest.mark.parametrize(
    ("pattern", "automorphic"),
    [(TRIANGLE, 6), (K5, 120), (FIVE_CYCLE, 10), (HOUSE, 2), (BULL, 2), ([(0, i) for i in range(1, 5)], 24)],
    ids=str,
)
def test_automorphisms(pattern: list[tuple[int, int]], automorphic: int) -> None:
    assert len(automorphisms(read_pattern(pattern))) == automorphic


@for_each(
    ("pattern", "message"),
    [
        ([], "2 to 5 vertices, not 0"),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], "2 to 5 vertices, not 6"),
        ([(0, 0), (0, 1)], "loop"),
        ([(0, 1), (1, 0)], "twice"),
        ([(1, 2)], "numbered 0 to 1"),
        ([(0, 1), (2, 3)], "not connected"),
        ([(0, 1, 2)], "no edge"),
        ([("a", "b")], "no edge"),
        ([(True, 0)], "no edge"),
        ([0, 1], "list of edges"),
        (3, "list of edges"),
    ],
    ids=str,
)
def test_patterns_that_are_refused(pattern: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        motif(EDGES, pattern)
    with pytest.raises(PlanError, match=message):
        motif_total(EDGES, pattern)
