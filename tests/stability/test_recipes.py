"""What the graph recipes are billed, and that no small graph moves them further; the worst graphs reach the bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.graph_queries import (
    DIRECTED,
    RECIPES,
    Measured,
    block_graph,
    blocks,
    directed_graphs,
    simple_graphs,
    source,
)

UNDIRECTED = {
    "paths": (4, "3", "3"),
    "joint degrees": (8, "4", "5"),
    "triangles by intersect": (8, "4", "4"),
    "triangles by degree": (18, "6", "9"),
    "squares by degree": (24, "8", "12"),
    "closed wedges by tag": (4, "59/32", "8/3"),
    "closed wedges by tag, twice the room": (5, "91/32", "11/3"),
    "closed wedges by tag, a quarter of the second": (4, "39/32", "8/3"),
    "joint degrees by tag": (3, "5/3", "5/3"),
    "edges in paths": (5, "4", "4"),
    "edges in paths, one number": (5, "3", "3"),
    "paths over half-edges": (2, "3/2", "3/2"),
    "degrees": (2, "2", "2"),
    "degree sequence": (2, "2", "2"),
    "degree ccdf": (2, "2", "2"),
    "nodes": (2, "2", "2"),
}
"""What paths count, the bound for simple edges, and for edges that may be loops or stand in both directions."""

ONE_WAY = {
    "paths": (2, "2"),
    "joint degrees": (4, "2"),
    "triangles by intersect": (4, "4"),
    "triangles by degree": (9, "171/32"),
    "squares by degree": (12, "57/8"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_one_undirected_edge(name: str) -> None:
    paths, simple, any_edges = UNDIRECTED[name]
    for facts, bound in (
        (("unit_weights", "simple"), simple),
        (("unit_weights",), any_edges),
        (("nonnegative",), any_edges),
    ):
        query = RECIPES[name](source(*facts))
        assert query.stability() == {"edges": Fraction(bound)}
        assert query.uses() == {"edges": paths}


@pytest.mark.parametrize("name", DIRECTED)
def test_one_directed_edge(name: str) -> None:
    paths, bound = ONE_WAY[name]
    query = DIRECTED[name](source("unit_weights"))
    assert query.stability() == {"edges": Fraction(bound)}
    assert query.uses() == {"edges": paths}


@pytest.mark.parametrize("name", DIRECTED)
def test_a_symmetric_source_is_billed_as_one_that_is_made_symmetric(name: str) -> None:
    query = DIRECTED[name](source("unit_weights", "symmetric"))
    assert 2 * query.stability()["edges"] == Fraction(UNDIRECTED[name][1])


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPES)
def test_no_simple_graph_of_up_to_5_nodes_moves_further(name: str) -> None:
    measured = Measured(RECIPES[name](source("unit_weights", "simple")))
    assert max(measured.moved(graph, [edge]) for graph, edge in simple_graphs(5)) <= measured.bound


@pytest.mark.parametrize("name", RECIPES)
def test_no_graph_of_3_nodes_with_loops_and_both_directions_moves_further(name: str) -> None:
    measured = Measured(RECIPES[name](source("unit_weights")))
    assert max(measured.moved(graph, [edge]) for graph, edge in directed_graphs(3)) <= measured.bound


@pytest.mark.parametrize("name", DIRECTED)
def test_no_directed_graph_of_3_nodes_moves_further(name: str) -> None:
    measured = Measured(DIRECTED[name](source("unit_weights")))
    assert max(measured.moved(graph, [edge]) for graph, edge in directed_graphs(3)) <= measured.bound


@pytest.mark.parametrize("name", DIRECTED)
def test_no_symmetric_graph_of_3_nodes_with_loops_moves_further(name: str) -> None:
    measured = Measured(DIRECTED[name](source("unit_weights", "symmetric")))
    graphs = [(graph, edge) for graph, edge in directed_graphs(3) if all(e[::-1] in graph for e in graph)]
    assert max(measured.moved(graph, {edge, edge[::-1]}) for graph, edge in graphs) <= measured.bound


STAR = block_graph(0, 80, 80)
CLIQUE = block_graph(26, 0, 0, clique=True)
BICLIQUE = block_graph(40, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "graph"),
    [
        ("paths", STAR),
        ("joint degrees", STAR),
        ("paths over half-edges", STAR),
        ("edges in paths", CLIQUE),
        ("edges in paths, one number", BICLIQUE),
        ("degrees", STAR),
        ("degree ccdf", STAR),
    ],
)
def test_the_worst_graphs_reach_nine_tenths(name: str, graph: set[tuple[int, int]]) -> None:
    """Two stars that are joined at their centres, a clique but for one edge, and two nodes with common neighbours."""
    measured = Measured(RECIPES[name](source("unit_weights", "simple")))
    assert Fraction(9, 10) * measured.bound <= measured.moved(graph, [(0, 1)]) <= measured.bound


@pytest.mark.parametrize(
    ("name", "reached"), [("closed wedges by tag", "1.34"), ("closed wedges by tag, twice the room", "2.09")]
)
def test_no_block_graph_moves_closed_wedges_further(name: str, reached: str) -> None:
    measured = Measured(RECIPES[name](source("unit_weights", "simple")))
    worst = max(measured.moved(graph, [(0, 1)]) for _, graph in blocks((0, 8)))
    assert Fraction(reached) < worst <= measured.bound
