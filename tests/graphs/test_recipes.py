"""Recipes against their closed forms, in exact arithmetic, on graphs enough to tell wrong formulas apart."""

from __future__ import annotations

import doctest
import os
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each, sizes
from wpinq.api.query import Query
from wpinq.errors import EpsilonError, PlanError
from wpinq.graphs import (
    count_noise_scale,
    degree_ccdf,
    degree_sequence,
    degrees,
    edges_from_joint_degrees,
    joint_degree_weight,
    joint_degrees,
    nodes,
    nodes_from_weight,
    path_weight,
    paths,
    read_edges,
    square_weight,
    squares_by_degree,
    squares_from_weight,
    symmetrize,
    triangle_weight,
    triangles_by_degree,
    triangles_by_intersect,
    triangles_from_weight,
)

SYMMETRIC = wp.source("edges", src=int, dst=int)
ONCE = wp.source("once", one=int, other=int)

GRAPHS: dict[str, nx.Graph] = {
    "cycle": nx.cycle_graph(6),
    "square": nx.cycle_graph(4),
    "complete": nx.complete_graph(5),
    "star": nx.star_graph(5),
    "random": nx.gnm_random_graph(12, 30, seed=3),
    "sparse": nx.gnm_random_graph(20, 30, seed=4),
    "bipartite": nx.complete_bipartite_graph(2, 4),
    "isolated edges": nx.Graph([(0, 1), (2, 3), (4, 5), (6, 7), (7, 8), (8, 6)]),
    "no edges": nx.Graph(),
    "les miserables": nx.convert_node_labels_to_integers(nx.les_miserables_graph()),
}


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> nx.Graph:
    return GRAPHS[request.param]


@pytest.fixture(params=["symmetric", "undirected"])
def edges(request: pytest.FixtureRequest) -> Query:
    return SYMMETRIC if request.param == "symmetric" else symmetrize(ONCE)


def exact(query: Query, graph: nx.Graph) -> dict[Any, Fraction]:
    """The output over a graph, given in both directions, or once in either direction."""
    toss = random.Random(1)
    once = [edge if toss.random() < 0.5 else edge[::-1] for edge in graph.edges()]
    return dict(wp.evaluate(query, {"edges": both_directions(graph), "once": once}, exact=True))


def summed(items: Iterator[tuple[Any, Fraction]]) -> dict[Any, Fraction]:
    totals: dict[Any, Fraction] = {}
    for record, weight in items:
        totals[record] = totals.get(record, Fraction(0)) + weight
    return totals


def both_directions(graph: nx.Graph) -> Iterator[tuple[int, int]]:
    for u, v in graph.edges():
        yield u, v
        yield v, u


def triangles(graph: nx.Graph) -> Iterator[tuple[int, int, int]]:
    return ((a, b, c) for a, b in graph.edges() for c in nx.common_neighbors(graph, a, b) if c > max(a, b))


def squares(graph: nx.Graph) -> Iterator[tuple[int, int, int, int]]:
    """Each cycle a, b, c, d once: a is the least of its diagonal, b of the other, and a < b."""
    for a, c in combinations(sorted(graph), 2):
        for b, d in combinations(sorted(set(graph[a]) & set(graph[c])), 2):
            if a < b:
                yield a, b, c, d


def least_way(quadruple: tuple[int, ...]) -> tuple[int, ...]:
    turns = [quadruple[i:] + quadruple[:i] for i in range(4)]
    return min(turns + [turn[::-1] for turn in turns])


# --- closed forms ---------------------------------------------------------------------------------------------------


def test_symmetrize(graph: nx.Graph) -> None:
    assert exact(symmetrize(ONCE), graph) == dict.fromkeys(both_directions(graph), 1)


def test_nodes(graph: nx.Graph, edges: Query) -> None:
    assert exact(nodes(edges), graph) == {a: Fraction(1, 2) for a, d in graph.degree() if d}


def test_degrees(graph: nx.Graph, edges: Query) -> None:
    assert exact(degrees(edges), graph) == {(a, d): Fraction(1, 2) for a, d in graph.degree() if d}


def test_ccdf_and_sequence(graph: nx.Graph, edges: Query) -> None:
    in_order = sorted((d for _, d in graph.degree() if d), reverse=True)
    above = {y: sum(d > y for d in in_order) for y in range(max(in_order, default=0))}
    assert exact(degree_ccdf(edges), graph) == above
    assert exact(degree_sequence(edges), graph) == dict(enumerate(in_order))


def test_paths(graph: nx.Graph, edges: Query) -> None:
    expected = {
        (a, b, c): Fraction(1, 2 * d) for b, d in graph.degree() for a, c in product(graph[b], repeat=2) if a != c
    }
    found = exact(paths(edges), graph)
    assert found == expected
    assert all(weight == path_weight(graph.degree(b)) for (_, b, _), weight in found.items())


def test_joint_degrees(graph: nx.Graph, edges: Query) -> None:
    pairs = Counter((graph.degree(a), graph.degree(b)) for a, b in both_directions(graph))
    found = exact(joint_degrees(edges), graph)
    assert found == {(i, j): Fraction(count, 2 + 2 * i + 2 * j) for (i, j), count in pairs.items()}
    for record, count in pairs.items():
        assert found[record] / joint_degree_weight(record) == count
        assert edges_from_joint_degrees(float(found[record]), record) == pytest.approx(count)


def test_triangles_by_degree(graph: nx.Graph, edges: Query) -> None:
    triples = Counter(tuple(sorted(graph.degree(v) for v in triangle)) for triangle in triangles(graph))
    found = exact(triangles_by_degree(edges), graph)
    assert found == {(x, y, z): Fraction(3 * n, x * x + y * y + z * z) for (x, y, z), n in triples.items()}
    for record, count in triples.items():
        assert found[record] / triangle_weight(record) == count
        assert triangles_from_weight(float(found[record]), record) == pytest.approx(count)


@pytest.mark.parametrize("bucket", sizes(5, 2))
def test_triangles_by_bucketed_degree(graph: nx.Graph, edges: Query, bucket: int) -> None:
    def items() -> Iterator[tuple[Any, Fraction]]:
        for triangle in triangles(graph):
            of = [graph.degree(v) for v in triangle]
            yield tuple(sorted(d // bucket for d in of)), Fraction(3, sum(d * d for d in of))

    assert exact(triangles_by_degree(edges, bucket=bucket), graph) == summed(items())


def test_squares_by_degree(graph: nx.Graph, edges: Query) -> None:
    def f(p: int, q: int) -> int:
        return p * p * (q - 1) + q * q * (p - 1)

    def items() -> Iterator[tuple[Any, Fraction]]:
        for square in squares(graph):
            a, b, c, d = (graph.degree(v) for v in square)
            weight = Fraction(2, f(b, c) + f(d, a)) + Fraction(2, f(a, b) + f(c, d))
            yield least_way((a, b, c, d)), weight

    found = exact(squares_by_degree(edges), graph)
    assert found == summed(items())
    counts = Counter(least_way(tuple(graph.degree(v) for v in square)) for square in squares(graph))
    for record, count in counts.items():
        assert found[record] / square_weight(record) == count
        assert squares_from_weight(float(found[record]), record) == pytest.approx(count)


def test_the_order_of_degrees_around_a_square_is_kept() -> None:
    # Squares of degrees 2, 2, 3, 3 in either order around, which a sorted quadruple would mix.
    side, crossed = nx.cycle_graph(4), nx.relabel_nodes(nx.cycle_graph(4), {i: i + 10 for i in range(4)})
    graph = nx.union(side, crossed)
    graph.add_edges_from([(0, 4), (1, 5), (10, 14), (12, 15)])
    found = exact(squares_by_degree(SYMMETRIC), graph)
    assert {record: weight / square_weight(record) for record, weight in found.items()} == {
        (2, 2, 3, 3): 1,
        (2, 3, 2, 3): 1,
    }
    assert square_weight((2, 2, 3, 3)) != square_weight((2, 3, 2, 3))


def test_triangles_by_intersect(graph: nx.Graph, edges: Query) -> None:
    total = sum(
        Fraction(1, max(graph.degree(u), graph.degree(v)))
        for triangle in triangles(graph)
        for u, v in combinations(triangle, 2)
    )
    assert exact(triangles_by_intersect(edges), graph) == ({"triangle!": total} if total else {})


# --- uses, readings and refusals ------------------------------------------------------------------------------------

USES = {
    nodes: 1,
    degrees: 1,
    degree_ccdf: 1,
    degree_sequence: 1,
    paths: 2,
    joint_degrees: 4,
    triangles_by_degree: 9,
    squares_by_degree: 12,
    triangles_by_intersect: 4,
}


@for_each(("recipe", "uses"), USES.items(), ids=lambda value: getattr(value, "__name__", None))
def test_uses_and_readings(recipe: Any, uses: int) -> None:
    assert recipe(SYMMETRIC).uses() == {"edges": uses}
    assert recipe(symmetrize(ONCE)).uses() == {"once": 2 * uses}
    assert recipe(SYMMETRIC).reading
    assert recipe(SYMMETRIC) == recipe(SYMMETRIC)


def test_buckets_cost_the_same_and_say_that_they_mix() -> None:
    assert triangles_by_degree(SYMMETRIC, bucket=20).uses() == {"edges": 9}
    assert "of mixed weights" in triangles_by_degree(SYMMETRIC, bucket=20).reading


@for_each("recipe", [*USES, symmetrize], ids=lambda recipe: recipe.__name__)
def test_edges_of_other_shapes_are_refused(recipe: Any) -> None:
    for source in (wp.source("s", int), wp.source("s", a=int, b=str), wp.source("s", a=int, b=int, c=int)):
        with pytest.raises(PlanError, match="two fields of one type"):
            recipe(source)
    with pytest.raises(PlanError, match="expected the query"):
        recipe([(1, 2)])


@pytest.mark.parametrize("bucket", [0, -1, True, 2.0, "2"])
def test_bad_buckets_are_refused(bucket: Any) -> None:
    with pytest.raises(PlanError, match="bucket"):
        triangles_by_degree(SYMMETRIC, bucket=bucket)


@for_each("recipe", USES, ids=lambda recipe: recipe.__name__)
def test_any_type_of_node(recipe: Any) -> None:
    names = wp.source("edges", one=str, other=str)
    graph = GRAPHS["random"]
    as_text = [(f"{u:02}", f"{v:02}") for u, v in both_directions(graph)]
    found = wp.evaluate(recipe(names), {"edges": as_text}, exact=True)
    weights = exact(recipe(SYMMETRIC), graph)
    assert sorted(found.values()) == sorted(weights.values())


# --- rescaling ------------------------------------------------------------------------------------------------------


def test_noise_of_theorem_2() -> None:
    for x, y, z in [(2, 2, 2), (2, 3, 7), (81, 81, 81)]:
        scale = count_noise_scale(triangle_weight((x, y, z)), epsilon="1/10", uses=18)
        assert scale == 60 * (x * x + y * y + z * z)
    own = count_noise_scale(triangle_weight((2, 3, 7)), epsilon="1/10") * 18
    assert own == count_noise_scale(triangle_weight((2, 3, 7)), epsilon="1/10", uses=18)


def test_noise_of_theorem_3() -> None:
    uses = squares_by_degree(symmetrize(ONCE)).uses()["once"]
    for degrees_around in product(range(2, 9), repeat=4):
        v, x, y, z = sorted(degrees_around)
        bound = 6 * (v * x * (v + x) + y * z * (y + z))
        scale = count_noise_scale(square_weight(degrees_around), epsilon=1, uses=uses)
        assert 0 < scale < bound
        if v == z:  # all terms equal: what the theorem leaves out is v² + x² + y² + z², six times
            assert scale == bound - 6 * (v * v + x * x + y * y + z * z)


def test_square_weight_is_that_of_the_square_however_written() -> None:
    assert square_weight((2, 2, 5, 7)) == Fraction(26, 1121)
    assert square_weight((2, 5, 2, 7)) == Fraction(2, 57)
    ways = [(2, 3, 5, 7), (3, 5, 7, 2), (5, 7, 2, 3), (7, 2, 3, 5)]
    assert len({square_weight(way) for way in ways + [way[::-1] for way in ways]}) == 1


def test_rescaling_takes_what_releases_give() -> None:
    assert nodes_from_weight(0.5) == 1.0
    assert triangles_from_weight(np.float64(0.25), np.array([2, 2, 2])) == 1.0
    assert type(edges_from_joint_degrees(1.0, (np.int64(1), 2))) is float


@for_each(
    "call",
    [
        lambda: path_weight(1),
        lambda: joint_degree_weight((0, 1)),
        lambda: joint_degree_weight((1, 2, 3)),
        lambda: triangle_weight((1, 2, 2)),
        lambda: triangle_weight((2.0, 2.0, 2.0)),
        lambda: square_weight((1, 1, 1, 1)),
        lambda: square_weight((2, 2, 2)),
        lambda: count_noise_scale(Fraction(0), 1),
        lambda: count_noise_scale(Fraction(1), 1, uses=0),
    ],
)
def test_records_that_no_item_has_are_refused(call: Any) -> None:
    with pytest.raises(PlanError):
        call()
    with pytest.raises(EpsilonError):
        count_noise_scale(Fraction(1), 0)


# --- a real graph ---------------------------------------------------------------------------------------------------


def test_triangles_by_intersect_of_a_collaboration_graph() -> None:
    data = os.environ.get("WPINQ_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data")
    path = Path(data) / "graphs" / "ca-GrQc.txt.gz"
    if not path.exists():
        pytest.skip("ca-GrQc.txt.gz is not there: set WPINQ_DATA to the folder that holds graphs/")
    once = read_edges(path, directed=False, loops="refuse", duplicates="refuse")
    neighbours: dict[int, set[int]] = {}
    for u, v in once:
        neighbours.setdefault(u, set()).add(v)
        neighbours.setdefault(v, set()).add(u)
    # each side of a triangle adds min(1/d_u, 1/d_v) once for each triangle on it
    expected = sum(len(neighbours[u] & neighbours[v]) / max(len(neighbours[u]), len(neighbours[v])) for u, v in once)
    found = wp.evaluate(triangles_by_intersect(symmetrize(ONCE)), {"once": once})
    assert dict(found) == {"triangle!": pytest.approx(expected, rel=1e-12)}


def test_the_page_about_graphs_is_true() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "graphs.md"
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0 < results.attempted


@pytest.mark.parametrize(
    ("name", "undirected", "both", "times"),
    [
        ("triangles_by_degree", 2, 5, 1),
        ("squares_by_degree", 1, 3, 1),
        ("joint_degrees", 22, 44, 1),
        ("triangles_by_intersect", 600, 1000, 2),  # about
    ],
)
def test_how_many_rows_of_a_person_a_recipe_takes(name: str, undirected: int, both: int, times: int) -> None:
    """As docs/graphs.md says."""
    recipe = getattr(wp.graphs, name)

    def source(at_most: int) -> wp.Query:
        return wp.source("calls", src=int, dst=int, person="phone", at_most=at_most)

    recipe(wp.graphs.symmetrize(source(undirected)))
    recipe(source(both))
    with pytest.raises(wp.PlanError, match="at_most of a person"):
        recipe(wp.graphs.symmetrize(source(times * undirected + 1)))
    with pytest.raises(wp.PlanError, match="at_most of a person"):
        recipe(source(times * both + 1))
