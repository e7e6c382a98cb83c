"""Families of graphs to begin from: what they draw, and the choice among them by answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import igraph
import numpy as np
import pytest
from scipy.spatial import KDTree

import wpinq as wp
from wpinq.graphs import Bounds, fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.blocks import block_graph
from wpinq.graphs.synthesis.estimates import DegreeClasses
from wpinq.graphs.synthesis.fit import graph_structure
from wpinq.graphs.synthesis.geometric import geometric_graph
from wpinq.graphs.synthesis.random_graphs import graphical, local_clustering
from wpinq.mcmc import Dataset, Settings, Swaps
from wpinq.measure.answers import Answers


@pytest.fixture(autouse=True)
def same_graphs() -> Iterator[None]:
    """The same graphs drawn by igraph in each run."""
    igraph.set_random_number_generator(random.Random(1))
    yield
    igraph.set_random_number_generator(random)


def poisson(mean: float, count: int) -> DegreeClasses:
    degrees = np.sort(graphical(np.random.default_rng(1).poisson(mean, count) + 1))
    return DegreeClasses.of(degrees[degrees > 0])


@pytest.mark.parametrize(
    ("mean", "dimensions", "shortcuts", "crowded"),
    [(mean, *rest) for mean, *rest in product((1.5, 9.0), (1, 2), (0.0, 0.1), (False, True))],
)
def test_a_graph_with_places_has_its_degrees(mean: float, dimensions: int, shortcuts: float, crowded: bool) -> None:
    classes, rng = poisson(mean, 400), np.random.default_rng(2)
    drawn = geometric_graph(classes, np.full(100, 0.2), random_mixing(classes), dimensions, shortcuts, crowded, rng)
    assert drawn is not None
    assert (np.bincount(drawn.edges.ravel()) == classes.degrees).all()
    pairs = np.sort(drawn.edges, axis=1)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    lengths = np.linalg.norm(drawn.places[pairs[:, 0]] - drawn.places[pairs[:, 1]], axis=1)
    assert (lengths > drawn.reach[-1] + 1e-12).mean() <= 4 * shortcuts + 0.03


def random_mixing(classes: DegreeClasses) -> np.ndarray:
    return np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()


def test_a_graph_with_places_is_in_one_part_and_large() -> None:
    classes = poisson(1.5, 2000)
    drawn = geometric_graph(classes, np.zeros(100), random_mixing(classes), 2, 0.0, False, np.random.default_rng(2))
    parts = igraph.Graph(drawn.edges.tolist()).connected_components()
    assert max(map(len, parts)) > 0.9 * len(classes.degrees)
    assert graph_structure(drawn.edges)["mean_path"] > 20  # 8 of a random graph with these degrees


def test_nodes_of_like_degree_gather_in_the_plane_and_degrees_meet_as_they_mix() -> None:
    """Were places drawn without regard to degrees, means of a hundred would deviate by .1 of these."""
    classes = DegreeClasses.of(np.repeat([2, 4], [1200, 800]))
    mixing = random_mixing(classes)
    unlike = np.array([[50.0, 2350.0], [2350.0, 850.0]])
    shares = []
    for asked in (mixing, unlike):
        drawn = geometric_graph(classes, np.zeros(5), asked, 2, 0.0, False, np.random.default_rng(2))
        near = KDTree(drawn.places).query(drawn.places, 100)[1]
        assert classes.degrees[near].mean(axis=1).std() > 0.2 * classes.degrees.std()
        shares.append((classes.degrees[drawn.edges[:, 0]] != classes.degrees[drawn.edges[:, 1]]).mean())
    assert shares[1] > shares[0] + 0.05


def test_places_are_too_few_for_tight_degrees() -> None:
    clique = DegreeClasses.of(np.full(6, 5))
    drawn = geometric_graph(clique, np.ones(6), random_mixing(clique), 2, 0.0, False, np.random.default_rng(1))
    assert drawn is None or len(drawn.edges) == 15


@pytest.mark.parametrize(("size", "outside", "clustering"), [*product((60, 120), (0.1, 0.4), (0.0, 0.3))])
def test_a_graph_of_groups_has_its_degrees_and_clustering(size: int, outside: float, clustering: float) -> None:
    classes, rng = poisson(9.0, 1200), np.random.default_rng(2)
    drawn = block_graph(classes, np.full(100, clustering), random_mixing(classes), size, outside, rng)
    assert (np.bincount(drawn.edges.ravel()) == classes.degrees).all()
    pairs = np.sort(drawn.edges, axis=1)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    between = (drawn.places[pairs[:, 0]] != drawn.places[pairs[:, 1]]).mean()
    assert between == pytest.approx(outside, abs=0.1)  # repeats of small groups are swapped away
    if clustering:
        _, local = local_clustering(classes.degrees, drawn.edges)
        assert local.mean() == pytest.approx(clustering, abs=0.06)


def test_groups_may_be_as_small_as_the_degrees() -> None:
    classes = poisson(9.0, 1200)
    mixing = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    drawn = block_graph(classes, np.full(100, 0.9), mixing, 10, 0.0, np.random.default_rng(2))
    assert (np.bincount(drawn.edges.ravel()) == classes.degrees).all()


def answers_of(edges: np.ndarray, epsilon: float) -> dict[str, Answers]:
    method = find_method("tags")
    wanted = method.measurements(method.source(), epsilon, bounds=Bounds(degree=64))
    pairs = [(a, b) for a, b in np.sort(edges, axis=1).tolist()]
    return {name: wp.simulate(asked, {"edges": pairs}, seed=1) for name, asked in wanted.items()}


@pytest.fixture(scope="module")
def ring() -> np.ndarray:
    """A ring of 1,200 nodes, each joined to the eight nearest, with a tenth of the edges rewired."""
    rng, places = np.random.default_rng(1), np.arange(1200)
    edges = np.concatenate([np.stack([places, (places + step) % 1200], axis=1) for step in (1, 2, 3, 4)])
    moved = rng.random(len(edges)) < 0.1
    edges[moved, 1] = rng.integers(0, 1200, moved.sum())
    edges = edges[edges[:, 0] != edges[:, 1]]
    return np.unique(np.sort(edges, axis=1), axis=0)


def test_answers_choose_a_ring_for_a_small_world(ring: np.ndarray) -> None:
    answers = answers_of(ring, 20)
    graph = fit_graph(answers, "tags", Settings(100_000, seed=1))
    assert graph.families == ("places in 1 dimensions, even, 5% shortcuts",)
    made, true = graph.statistics(), graph_structure(ring)
    assert made["modularity"] == pytest.approx(true["modularity"], abs=0.06)
    assert made["mean_path"] == pytest.approx(true["mean_path"], abs=0.7)
    without = {name: table for name, table in answers.items() if name != "pair_slices"}
    plain = fit_graph(without, "tags", Settings(100_000, seed=1))
    assert plain.families == ("",)
    assert abs(plain.statistics()["modularity"] - true["modularity"]) > 0.06


def test_answers_choose_groups_for_blocks() -> None:
    inside, between = 12 * 0.75 / 119, 12 * 0.25 / 1080
    chances = np.where(np.eye(10, dtype=bool), inside, between).tolist()
    edges = np.array(igraph.Graph.SBM(chances, [120] * 10).get_edgelist())
    graph = fit_graph(answers_of(edges, 10), "tags", Settings(100_000, seed=1))
    assert graph.families[0].startswith("groups of ")
    assert graph.statistics()["modularity"] == pytest.approx(graph_structure(edges)["modularity"], abs=0.06)


def test_graphs_with_hubs_have_no_places_or_groups() -> None:
    edges = np.array(igraph.Graph.Barabasi(2500, 3, power=1.2).simplify().get_edgelist())
    seed = find_method("tags").estimate(answers_of(edges, 4)).seed(np.random.default_rng(1))
    assert (seed.family, seed.places) == ("cliques", None)


def test_words_say_so_where_answers_do_not_tell_families_apart() -> None:
    tree = np.array(igraph.Graph.Tree_Game(800).get_edgelist())
    seed = find_method("tags").estimate(answers_of(tree, 0.5)).seed(np.random.default_rng(1))
    assert seed.family.endswith("the answers do not tell it from another family")


def test_swaps_drawn_in_python_keep_the_numbers_of_long_edges(ring: np.ndarray) -> None:
    rng, places, reach = np.random.default_rng(1), np.random.default_rng(2).random((1200, 2)), np.array([0.3, 0.6])
    held = Dataset(dict.fromkeys(map(tuple, ring[:400].tolist()), 1.0))

    def lengths() -> list[int]:
        ends = np.array(list(held))
        off = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
        return np.bincount(np.searchsorted(reach, off), minlength=3).tolist()

    before, walk, moved = lengths(), Swaps(symmetric=False, places=places, reach=reach), 0
    for _ in range(300):
        if (proposed := walk.propose(rng, {"edges": held})) is not None:
            held.change(proposed[0]["edges"])
            moved += 1
    assert moved > 20
    assert lengths() == before
