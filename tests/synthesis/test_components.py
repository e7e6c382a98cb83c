"""Swaps after the walk, which keep degrees: of components, triangles and cores."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.graphs import Bounds, component_count, fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.components import (
    _components,
    _Joiner,
    join_components,
    remove_triangles,
    split_components,
    with_core,
    with_triangles,
)
from wpinq.graphs.synthesis.method import CORE, infeasible
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.mcmc import Settings
from wpinq.runtime.arrays import numbered

RINGS = [(10 * part + i, 10 * part + (i + 1) % 10) for part in range(12) for i in range(10)]
TREES = [(1000 + 5 * part + i, 1000 + 5 * part + i + 1) for part in range(20) for i in range(3)]
CLIQUES = [(2000 + 4 * part + i, 2000 + 4 * part + j) for part in range(5) for i in range(4) for j in range(i)]


def parts(edges: np.ndarray) -> int:
    return nx.number_connected_components(nx.Graph(edges.tolist()))


def degrees(edges: np.ndarray) -> dict[int, int]:
    return dict(nx.Graph(edges.tolist()).degree)


@for_each("count", [1, 20, 30])
@for_each("seed", range(4))
def test_components_are_joined_and_all_else_stays(count: int, seed: int) -> None:
    """Each of 12 rings has an edge for one join; cliques, which would lose triangles, wait and find none left."""
    before = np.array([*RINGS, *TREES[: 3 * 11], *CLIQUES])
    after = join_components(before, count, np.random.default_rng(seed))
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert all(a != b for a, b in after.tolist())
    assert degrees(after) == degrees(before)
    assert sum(nx.triangles(nx.Graph(after.tolist())).values()) == sum(nx.triangles(nx.Graph(CLIQUES)).values())
    assert parts(after) == min(max(count, 12 + 11 + 5 - 12), 12 + 11 + 5)
    assert (after == join_components(before, count, np.random.default_rng(seed))).all()


@for_each("count", [1, 3, 5])
@for_each("seed", range(3))
def test_a_clique_is_joined_by_a_node_in_the_place_of_another(count: int, seed: int) -> None:
    """All degrees and triangles stay; where no node has room for it, the clique stays by itself."""
    wheel = [(4000 + hub, 4010 + i) for hub in range(4) for i in range(24)]
    before = np.array([*wheel, *CLIQUES[: 6 * 4]])
    after = join_components(before, count, np.random.default_rng(seed))
    assert parts(after) == count
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert degrees(after) == degrees(before)
    assert sum(nx.triangles(nx.Graph(after.tolist())).values()) // 3 == 4 * 4
    alone = join_components(np.array([*RINGS[:10], *CLIQUES[:6]]), 1, np.random.default_rng(seed))
    assert parts(alone) == 2


@for_each("size", [3, 4, 6])
@for_each("seed", range(3))
def test_a_clique_that_is_joined_costs_no_clustering(size: int, seed: int) -> None:
    """Its node takes the place of one that is in as large a clique elsewhere; degrees hardly mix otherwise."""
    cliques = [(100 * part + i, 100 * part + j) for part in range(20) for i in range(size) for j in range(i)]
    tied = [(100 * part + i, 100 * ((part + step) % 15) + i) for part in range(15) for i, step in ((0, 1), (1, 2))]
    before = np.array(cliques + tied)
    after = join_components(before, 1, np.random.default_rng(seed))
    assert (parts(before), parts(after)) == (6, 1)
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert degrees(after) == degrees(before)
    old, new = (nx.clustering(nx.Graph(edges.tolist())) for edges in (before, after))
    assert sorted(new.values()) == sorted(old.values())


@for_each("seed", range(4))
def test_only_nodes_whose_triangles_are_in_one_clique_are_exchanged(seed: int) -> None:
    """Most triangles of the large part share edges: a node in the place of one of theirs would have fewer."""
    triangles = [(1000 + 3 * k + i, 1000 + 3 * k + (i + 1) % 3) for k in range(4) for i in range(3)]
    before = np.array([*nx.powerlaw_cluster_graph(300, 3, 0.5, seed=seed).edges, *triangles])
    after = join_components(before, 1, np.random.default_rng(seed))
    assert parts(after) == 1
    old, new = (nx.clustering(nx.Graph(edges.tolist())) for edges in (before, after))
    assert sorted(new.values()) == sorted(old.values())


@for_each("seed", range(4))
def test_neighbours_are_kept_up_by_joins_and_exchanges(seed: int) -> None:
    rings = [(600 + 5 * k + i, 600 + 5 * k + (i + 1) % 5) for k in range(9) for i in range(5)]
    before = np.array([*nx.powerlaw_cluster_graph(300, 3, 0.5, seed=seed).edges, *rings, *CLIQUES])
    edges = numbered(before)[1]
    joiner = _Joiner(edges, _components(edges)[edges[:, 0]], np.random.default_rng(seed))
    after = nx.Graph(joiner.joined(1, np.inf).tolist())
    assert joiner._near == [set(after[node]) for node in range(len(after))]


@for_each("seed", range(3))
def test_triangles_are_taken_apart_only_above_the_most_components(seed: int) -> None:
    """A chain of triangles has no open edge on a cycle: each join takes one apart."""
    chain = [(3 * part + i, 3 * part + j) for part in range(10) for i, j in ((0, 1), (1, 2), (2, 0), (2, 3))]
    before = np.array([*chain, *TREES[: 3 * 6]])
    assert (join_components(before, 1, np.random.default_rng(seed)) == before).all()
    after = join_components(before, 1, np.random.default_rng(seed), most=3)
    assert (parts(before), parts(after)) == (7, 3)
    assert degrees(after) == degrees(before)
    assert triangles(after) == 10 - 4
    alone = np.array([(3 * part + i, 3 * part + (i + 1) % 3) for part in range(10) for i in range(3)])
    assert parts(join_components(alone, 1, np.random.default_rng(seed))) == 10
    assert parts(join_components(alone, 1, np.random.default_rng(seed), most=1)) == 1


@for_each("count", [1, 20, 40, 400])
@for_each("seed", range(3))
def test_pairs_of_near_leaves_are_split_off_and_all_else_stays(count: int, seed: int) -> None:
    """Trees with a triangle: of each two leaves at most one pair, and no triangle, comes or goes."""
    grown = nx.random_labeled_tree(300, seed=seed)
    before = np.array([*RINGS, *grown_edges(grown, 5000), (9000, 9001), (9001, 9002), (9002, 9000)])
    leaves = sum(degree == 1 for _, degree in grown.degree)
    after = split_components(before, count, np.random.default_rng(seed))
    assert parts(before) == 14
    assert parts(after) == count if 14 <= count <= 40 else 14 <= parts(after) <= 14 + leaves // 2
    assert (parts(after) > 40) == (count > 40)
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert all(a != b for a, b in after.tolist())
    assert degrees(after) == degrees(before)
    assert sum(nx.triangles(nx.Graph(after.tolist())).values()) == 3
    assert (after == split_components(before, count, np.random.default_rng(seed))).all()


def grown_edges(graph: nx.Graph, first: int) -> list[tuple[int, int]]:
    return [(first + a, first + b) for a, b in graph.edges]


@for_each("share", [0.0, 0.5])
@for_each("seed", range(4))
def test_triangles_are_taken_apart_and_what_was_connected_still_is(share: float, seed: int) -> None:
    """Triangles on their own, cliques, and triangles in a large part: all go, or as many as clustering asks for."""
    grown = nx.powerlaw_cluster_graph(300, 3, 0.5, seed=seed)
    before = np.array([*RINGS, *CLIQUES, *grown_edges(grown, 5000)])
    most = share * sum(nx.clustering(nx.Graph(before.tolist())).values())
    after = remove_triangles(before, most, np.random.default_rng(seed))
    left = sum(nx.clustering(nx.Graph(after.tolist())).values())
    assert most - 2 < left <= most + 1e-9
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert degrees(after) == degrees(before)
    assert parts(after) <= parts(before)
    assert (after == remove_triangles(before, most, np.random.default_rng(seed))).all()


def test_triangles_are_taken_apart_down_to_a_number() -> None:
    before = np.array(nx.powerlaw_cluster_graph(300, 3, 0.5, seed=1).edges)
    whole = sum(nx.triangles(nx.Graph(before.tolist())).values()) // 3
    after = remove_triangles(before, whole - 20.5, np.random.default_rng(1), count=True)
    left = sum(nx.triangles(nx.Graph(after.tolist())).values()) // 3
    assert whole - 30 < left <= whole - 21
    assert degrees(after) == degrees(before)


def triangles(edges: np.ndarray) -> int:
    return sum(nx.triangles(nx.Graph(edges.tolist())).values()) // 3


@for_each("interval", [(-50, -20), (-5, 0), (0, 9), (1, 1), (5, 9), (14, 15), (19, 30)])
@for_each("seed", range(3))
def test_triangles_come_into_an_interval_and_degrees_stay(interval: tuple[int, int], seed: int) -> None:
    """Inside of it, or below it by more than a fiftieth, nothing moves; each swap closes a triangle, or opens one."""
    before = np.array(nx.powerlaw_cluster_graph(1000, 3, 0.3, seed=1).edges)
    low, high = (triangles(before) + end for end in interval)
    after = with_triangles(before, low, high, np.random.default_rng(seed))
    assert degrees(after) == degrees(before)
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert all(a != b for a, b in after.tolist())
    moved = len({*map(tuple, np.sort(after).tolist())} - {*map(tuple, np.sort(before).tolist())})
    if interval[0] > 18:
        assert moved == 0
    else:
        assert low <= triangles(after) <= high
        assert (moved == 0) == (interval[0] <= 0 <= interval[1])
        assert moved <= 2 * max(abs(end) for end in interval)
    assert (after == with_triangles(before, low, high, np.random.default_rng(seed))).all()


def core(edges: np.ndarray) -> int:
    return max(nx.core_number(nx.Graph(edges.tolist())).values())


SPARSE = nx.gnm_random_graph(300, 750, seed=1)
DENSE = nx.disjoint_union(nx.complete_graph(12), SPARSE)
STARS = nx.disjoint_union_all([nx.star_graph(9)] * 30)
CAVES = nx.windmill_graph(40, 8)


@for_each(
    "case",
    [
        (DENSE, 4, 6, 6),
        (DENSE, 11, 20, 11),
        (SPARSE, 6, 7, 6),
        (STARS, 6, 9, 6),
        (STARS, 50, 60, 9),
        (CAVES, 12, 12, 7),
    ],
)
@for_each("seed", range(3))
def test_a_core_is_brought_into_an_interval_and_degrees_stay(case: tuple[nx.Graph, int, int, int], seed: int) -> None:
    """As far as degrees allow: of more than nine neighbours there is one node, or none."""
    graph, low, high, expected = case
    before = np.array(list(graph.edges))
    after = with_core(before, low, high, np.random.default_rng(seed))
    assert core(after) == expected
    assert len({frozenset(edge) for edge in after.tolist()}) == len(before)
    assert all(a != b for a, b in after.tolist())
    assert degrees(after) == degrees(before)
    moved = len({*map(tuple, np.sort(after).tolist())} - {*map(tuple, np.sort(before).tolist())})
    assert (moved == 0) == (core(before) == expected)
    assert (after == with_core(before, low, high, np.random.default_rng(seed))).all()


def test_a_clique_is_lowered_by_the_fewest_swaps() -> None:
    """Of 12 nodes 5, 4, 3, 2 and 1 edges go: then the rest has a core of 6 by itself."""
    before = np.array(DENSE.edges)
    after = with_core(before, 4, 6, np.random.default_rng(1))
    assert (before < 12).all(axis=1).sum() - (after < 12).all(axis=1).sum() == 5 + 4 + 3 + 2 + 1


def test_trees_alone_cannot_be_joined() -> None:
    before = np.array(TREES)
    assert (join_components(before, 1, np.random.default_rng(1)) == before).all()


def test_ends_that_meet_have_similar_degrees() -> None:
    """Two rings, with a leaf at each node: leaves stay beside the nodes of rings, and these beside one another."""
    spiked = [(100 * k + i, 100 * k + (i + 1) % 50) for k in (1, 2) for i in range(50)]
    spiked += [(100 * k + i, 100 * k + 50 + i) for k in (1, 2) for i in range(50)]
    after = join_components(np.array(spiked), 1, np.random.default_rng(1))
    known = degrees(np.array(spiked))
    mixed = sorted(tuple(sorted((known[a], known[b]))) for a, b in after.tolist())
    assert mixed == sorted(tuple(sorted((known[a], known[b]))) for a, b in spiked)
    assert parts(after) == 1


@pytest.mark.parametrize("public", [False, True])
def test_a_made_graph_has_the_released_components(public: bool) -> None:
    """Among public nodes some may have no edge: then the released number is not that of all components."""
    secret = [(40 * part + i, 40 * part + (i + step) % 40) for part in range(3) for i in range(40) for step in (1, 3)]
    method, nodes = find_method("tags"), PublicNodes.of(range(130)) if public else None
    wanted = method.measurements(method.source(nodes=nodes), 10_000)
    answers = {name: wp.simulate(asked, {"edges": secret}, seed=1) for name, asked in wanted.items()}
    graph = fit_graph(answers, method, Settings(seed=1, steps=4000), nodes=nodes)
    assert parts(graph.edges) <= 3
    assert ("components" in graph.uncertainty) != public
    if not public:
        assert (graph.uncertainty["components"].low, graph.uncertainty["components"].high) == (3, 3)


def test_the_number_is_that_of_components_with_an_edge() -> None:
    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
    for data, count in (([], 0), ([(1, 1)], 0), ([(1, 2), (2, 1), (4, 3)], 2), ([(1, 2), (2, 3), (3, 3)], 1)):
        answers = wp.simulate(component_count(edges, 10_000), {"edges": data}, seed=1)
        assert (answers.value, list(answers.keys)) == (count, ["components"])
        assert answers.value_interval(0.95) == (count, count)


def test_an_answer_below_one_is_an_interval_of_one() -> None:
    """Noise may take the number below 0; a graph of two edges has a component."""
    method = find_method("tags")
    wanted = method.measurements(method.source(), 10_000)
    answers = {name: wp.simulate(asked, {"edges": RINGS}, seed=1) for name, asked in wanted.items()}
    low = answers["component_count"]
    answers["component_count"] = wp.Answers(low.measurement, low.scale, np.array([-50.0]), simulated=True)
    estimates = method.estimate(answers)
    found = estimates.intervals(np.random.default_rng(1))["components"]
    assert (found.low, found.high, estimates.components) == (1, 1, 1)


HUBS = nx.disjoint_union_all([nx.star_graph(15)] * 14)
SECRET = list(nx.disjoint_union_all([nx.complete_graph(10), nx.gnm_random_graph(200, 400, seed=1), HUBS]).edges)


@pytest.mark.parametrize(("name", "public"), [("tags", False), ("directed", True)])
def test_a_made_graph_has_the_released_largest_core(name: str, public: bool) -> None:
    """Whatever the walk makes: a core of 9, the clique's, and any other that is in an answer."""
    method, nodes = find_method(name), PublicNodes.of(range(500)) if public else None
    split = {**method.shares, CORE: 0.1}
    wanted = method.measurements(method.source(nodes=nodes), 10_000, split, Bounds(degree=64))
    answers = {name: wp.simulate(asked, {"edges": SECRET}, seed=1) for name, asked in wanted.items()}
    given = answers[CORE]
    assert given.value == 9
    for value in (5, 9, 12):
        changed = wp.Answers(given.measurement, given.scale, np.array([float(value)]), simulated=True)
        graph = fit_graph({**answers, CORE: changed}, method, Settings(seed=1, steps=500), nodes=nodes)
        interval = graph.uncertainty["largest_core"]
        assert graph.statistics()["largest_core"] == value
        assert (interval.low, interval.high, interval.swamped) == (value, value, False)


def test_the_largest_core_is_measured_only_where_a_split_has_a_share_for_it() -> None:
    method = find_method("tags")
    assert CORE not in method.shares
    assert CORE not in method.measurements(method.source(), 1)
    with_share = method.measurements(method.source(), 1, {**method.shares, CORE: 0.25})
    assert with_share[CORE].epsilon == Fraction(1, 5)
    assert wp.bill(with_share)["edges"] == 1
    why = infeasible(with_share, Bounds(nodes=500, degree=10))[CORE]
    assert why == "largest_core of any graph of at most 500 nodes is less than 10, and the noise is ±11"
    assert CORE not in infeasible(with_share, Bounds(nodes=500, degree=20))


def test_a_core_that_is_hidden_by_noise_is_an_interval_from_one() -> None:
    """A graph of two edges has a core of 1; nothing is swapped for it."""
    method = find_method("tags")
    wanted = method.measurements(method.source(), 10_000, {**method.shares, CORE: 0.1})
    answers = {name: wp.simulate(asked, {"edges": RINGS}, seed=1) for name, asked in wanted.items()}
    low = answers[CORE]
    for value, scale, expected in ((-50.0, low.scale, (1, 1)), (2.0, 20.0, (1, 48))):
        answers[CORE] = wp.Answers(low.measurement, scale, np.array([value]), simulated=True)
        found = method.estimate(answers).intervals(np.random.default_rng(1))["largest_core"]
        assert (found.low, found.high) == expected


@for_each("leaves", [0, 40])
def test_too_few_leaves_to_split_off_leave_one_component_possible(leaves: int) -> None:
    """By its own noise alone no graph has one; where degrees have the leaves, the made graph has as many."""
    method = find_method("tags")
    secret = [(i, (i + step) % 200) for i in range(200) for step in (1, 3)] + [(5 * i, 1000 + i) for i in range(leaves)]
    answers = {
        name: wp.simulate(asked, {"edges": secret}, seed=1)
        for name, asked in method.measurements(method.source(), 10_000).items()
    }
    noisy = method.measurements(method.source(), 10)["component_count"]
    answers["component_count"] = wp.Answers(noisy, 10 / 3, np.array([14.0]), simulated=True)
    graph = fit_graph(answers, method, Settings(seed=1, steps=4000))
    held = graph.uncertainty["components"]
    assert (held.low, held.high) == (6 if leaves else 1, 22)
    assert held.holds(parts(graph.edges))
