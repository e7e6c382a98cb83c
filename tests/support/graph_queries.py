"""The graph recipes over edges that stand once, and graphs on which one edge more moves them far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import networkx as nx

import wpinq as wp
from tests.support import moves
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.graphs import recipes, tags
from wpinq.graphs.recipes import symmetrize
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import topological

LIMITS = [0, 2, 8]
Edge = tuple[int, int]
Graph = frozenset[Edge]


def edges_in_paths(edges: Query) -> Query:
    """The edges between the ends of paths: a triangle adds 1/d for each of its nodes, an edge has room for 1."""
    ends = recipes.paths(symmetrize(edges)).select(lambda path: F.sort((path.a, path.c)))
    return ends.intersect(edges.select(lambda e: F.sort((e[0], e[1]))))


RECIPES: Mapping[str, Callable[[Query], Query]] = {
    "paths": lambda edges: recipes.paths(symmetrize(edges)),
    "joint degrees": lambda edges: recipes.joint_degrees(symmetrize(edges)),
    "triangles by intersect": lambda edges: recipes.triangles_by_intersect(symmetrize(edges)),
    "triangles by degree": lambda edges: recipes.triangles_by_degree(symmetrize(edges)),
    "squares by degree": lambda edges: recipes.squares_by_degree(symmetrize(edges)),
    "closed wedges by tag": lambda edges: tags.closed_wedges_by_tag(edges, LIMITS, [0.75, 0.25]),
    "closed wedges by tag, twice the room": lambda edges: tags.closed_wedges_by_tag(edges, LIMITS, [1.5, 0.5]),
    "closed wedges by tag, a quarter of the second": lambda edges: tags.closed_wedges_by_tag(
        edges, LIMITS, [0.75, 0.25], [1.0, 0.25]
    ),
    "joint degrees by tag": lambda edges: tags.joint_degrees_by_tag(edges, LIMITS),
    "edges in paths": edges_in_paths,
    "edges in paths, one number": lambda edges: edges_in_paths(edges).select(lambda pair: "all"),
    "paths over half-edges": lambda edges: recipes.paths(tags.half_edges(edges)),
    "degrees": lambda edges: recipes.degrees(symmetrize(edges)),
    "degree sequence": lambda edges: recipes.degree_sequence(symmetrize(edges)),
    "degree ccdf": lambda edges: recipes.degree_ccdf(symmetrize(edges)),
    "nodes": lambda edges: recipes.nodes(symmetrize(edges)),
}
DIRECTED: Mapping[str, Callable[[Query], Query]] = {
    "paths": recipes.paths,
    "joint degrees": recipes.joint_degrees,
    "triangles by intersect": recipes.triangles_by_intersect,
    "triangles by degree": recipes.triangles_by_degree,
    "squares by degree": recipes.squares_by_degree,
}


def source(*facts: str) -> Query:
    """Edges between numbered nodes."""
    return wp.source("edges", src=int, dst=int, facts=facts, weights=True, unit_weight=2 if "symmetric" in facts else 1)


class Measured:
    """A query of one source of edges, and what it gives for graphs."""

    def __init__(self, query: Query) -> None:
        self.query = query
        (self.bound,) = query.stability().values()
        self.steps = list(topological([query.plan]))
        self._outputs: dict[Graph, Mapping[Any, Fraction]] = {}

    def output(self, graph: Iterable[Edge]) -> Mapping[Any, Fraction]:
        """The output, exactly."""
        graph = frozenset(graph)
        if graph not in self._outputs:
            weights = {edge: EXACT.number(1) for edge in graph}
            (source,) = (node for node in self.steps if not node.inputs)
            found = moves.outputs(self.steps, {source.digest: weights}, float("inf"))
            assert found is not None
            self._outputs[graph] = found[self.query.plan.digest]
        return self._outputs[graph]

    def moved(self, graph: Iterable[Edge], added: Iterable[Edge]) -> Fraction:
        """How far it moves as these edges are added, for each of them."""
        graph, added = frozenset(graph), frozenset(added)
        gained, lost = moves.norms(moves.difference(self.output(graph), self.output(graph | added)))
        return (gained + lost) / len(added)


def simple_graphs(nodes: int) -> Iterator[tuple[Graph, Edge]]:
    """Every graph of up to so many nodes, up to 7, with every edge that is not there; one of those that look alike."""
    for graph in nx.graph_atlas_g():
        if len(graph) <= nodes:
            for edge in nx.non_edges(graph):
                yield frozenset(graph.edges), edge


def directed_graphs(nodes: int) -> Iterator[tuple[Graph, Edge]]:
    """Every directed graph on so many nodes, loops and both directions among it, with every edge that is not there."""
    pairs = list(product(range(nodes), repeat=2))
    orders = list(permutations(range(nodes)))
    for mask in range(1 << len(pairs)):
        graph = frozenset(pair for place, pair in enumerate(pairs) if mask >> place & 1)
        alike = (sum(1 << pairs.index((p[a], p[b])) for a, b in graph) for p in orders)
        if mask == min(alike):
            for edge in pairs:
                if edge not in graph:
                    yield graph, edge


def block_graph(common: int, left: int, right: int, *, clique: bool = False, tails: int = 0) -> set[Edge]:
    """Nodes 0 and 1 with common neighbours, a clique or apart, and neighbours of their own, each with some more."""
    shared = range(2, 2 + common)
    lone = [*((0, 2 + common + i) for i in range(left)), *((1, 2 + common + left + i) for i in range(right))]
    first = 2 + common + left + right
    found = {(end, node) for end in (0, 1) for node in shared} | set(lone)
    found |= set(combinations(shared, 2)) if clique else set()
    found |= {(node, first + place * tails + i) for place, (_, node) in enumerate(lone) for i in range(tails)}
    return found


def blocks(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, int, int, bool, int], set[Edge]]]:
    """Block graphs of up to 600 edges."""
    for common, left, right, clique, tails in product(sizes, sizes, sizes, (False, True), (0, 1, 3)):
        if left <= right:
            graph = block_graph(common, left, right, clique=clique, tails=tails)
            if len(graph) <= 600:
                yield (common, left, right, clique, tails), graph
