"""4-cycles are closed as far as the slices of pairs tell, and nothing else changes."""

from __future__ import annotations

import random

import igraph
import numpy as np
import pytest

from wpinq.graphs.synthesis.common_neighbours import close_cycles, slices_of_graph
from wpinq.graphs.synthesis.estimates import DegreeClasses
from wpinq.graphs.synthesis.random_graphs import class_mixing
from wpinq.runtime.arrays import Integers

LIMITS = [0.0, 2**-6, 2**-5, 2**-4, 2**-3, 2**-2, 0.5]
NODES = 600


def hub_graph(seed: int) -> Integers:
    """A random simple graph of a heavy tail, in which every node has an edge."""
    igraph.set_random_number_generator(random.Random(seed))
    made = igraph.Graph.Barabasi(NODES, 3)
    return np.array(made.simplify().get_edgelist(), dtype=np.int64)


def triangles(edges: Integers) -> set[frozenset[int]]:
    return {frozenset(each) for each in igraph.Graph(edges.tolist()).list_triangles()}


def squares(edges: Integers) -> int:
    graph = igraph.Graph(edges.tolist())
    shared = np.array(graph.get_adjacency().data)
    shared = np.triu(shared @ shared, 1)
    return int((shared * (shared - 1)).sum()) // 4


@pytest.mark.parametrize("seed", range(4))
def test_swaps_come_near_to_the_slices_and_keep_degrees_triangles_and_classes(seed: int) -> None:
    before = hub_graph(seed)
    concentrated = slices_of_graph(before, NODES, LIMITS) * np.linspace(0.9, 1.3, len(LIMITS) - 1)
    wanted = slices_of_graph(
        close_cycles(before, np.random.default_rng(seed), LIMITS, concentrated, 1.0), NODES, LIMITS
    )
    after = close_cycles(before, np.random.default_rng(seed + 100), LIMITS, wanted, 1.0)
    far, near = (np.abs(slices_of_graph(edges, NODES, LIMITS) - wanted).sum() for edges in (before, after))
    assert near < far / 3
    assert squares(before) < squares(after)
    assert len(np.unique(after, axis=0)) == len(before) and (after[:, 0] < after[:, 1]).all()
    degrees = np.bincount(before.ravel())
    assert (np.bincount(after.ravel()) == degrees).all()
    assert triangles(after) == triangles(before)
    classes = DegreeClasses.of(degrees)
    assert (class_mixing(after, classes) == class_mixing(before, classes)).all()


def test_a_graph_that_fits_stays() -> None:
    edges = hub_graph(5)
    wanted = slices_of_graph(edges, NODES, LIMITS)
    after = close_cycles(edges, np.random.default_rng(1), LIMITS, wanted, 1.0)
    assert {tuple(edge) for edge in after.tolist()} == {tuple(sorted(edge)) for edge in edges.tolist()}


def test_noise_of_single_slices_is_not_fitted() -> None:
    """Noise that swaps could follow slice by slice hardly moves the one number that is fitted."""
    edges, moved = hub_graph(6), []
    exact = slices_of_graph(edges, NODES, LIMITS)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        after = close_cycles(edges, rng, LIMITS, exact + rng.laplace(scale=10, size=len(exact)), 10.0)
        moved.append(squares(after) / squares(edges) - 1)
    assert np.median(moved) < 0.1
