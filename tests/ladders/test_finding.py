"""Counts and fronts found the fast way, against their definitions."""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx
import pytest

from tests.support.brute_ladders import Edge, cliques, stars, triangles
from tests.support.parameters import tenth
from wpinq.sinks.graph_ladders import clique_ladder, core_ladder, simple_graph, star_ladder, triangle_ladder


def graphs(seed: int, number: int) -> list[list[Edge]]:
    """Random graphs of up to 14 vertices, sparse and dense, some with hubs, some regular, some of cliques."""
    chance = random.Random(seed)
    found: list[list[Edge]] = [[]]
    while len(found) < number:
        n, density = chance.randint(2, 14), chance.random() ** 2
        edges = {pair for pair in combinations(range(n), 2) if chance.random() < density}
        for _ in range(chance.choice([0, 0, 1, 2])):
            hub = chance.randrange(n)
            edges |= {tuple(sorted((hub, v))) for v in range(n) if v != hub and chance.random() < 0.8}
        if chance.random() < 0.2:
            edges = {tuple(sorted((v, (v + step) % n))) for v in range(n) for step in (1, 2) if (v + step) % n != v}
        found.append(sorted(edges))
    return found


@pytest.mark.parametrize("seed", tenth(range(4), 4))
def test_fronts_and_counts_are_those_of_brute_force(seed: int) -> None:
    for edges in graphs(seed, 700):
        graph = simple_graph(edges)
        expected = triangles(edges), cliques(edges), stars(edges, 2), stars(edges, 3), stars(edges, 4)
        ladders = (
            triangle_ladder(graph),
            clique_ladder(graph),
            *(star_ladder(graph, k) for k in (2, 3, 4)),
        )
        for ladder, brute in zip(ladders, expected, strict=True):
            assert ladder.count == brute.count
            steps = [brute.sensitivity(t) for t in range(20)]
            assert [ladder.sensitivity(t) for t in range(20)] == steps, (type(ladder), edges)
            assert [ladder.reach(t) for t in range(21)] == [sum(steps[:t]) for t in range(21)]


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_core_is_that_of_networkx(seed: int) -> None:
    """On the small graphs, and on larger ones whose cores lie in one another, with long paths."""
    grown = [nx.gnp_random_graph(60, 0.2, seed), nx.barabasi_albert_graph(200, 5, seed), nx.path_graph(400)]
    for edges in [*graphs(seed, 300), list(nx.disjoint_union_all(grown).edges), *(list(each.edges) for each in grown)]:
        assert core_ladder(simple_graph(edges)).count == max(nx.core_number(nx.Graph(edges)).values(), default=0)
