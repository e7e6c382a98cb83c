"""Loops over public graphs: machine code and Python do the same, and both what they say."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from wpinq.graphs import edges as written
from wpinq.graphs.synthesis.random_graphs import local_clustering, swap_away
from wpinq.runtime.arrays import compiled


def test_triangles_and_clustering_are_those_of_networkx() -> None:
    graph = nx.gnm_random_graph(60, 400, seed=1)
    edges = np.array(graph.edges)
    triangles, local = local_clustering(np.bincount(edges.ravel(), minlength=60), edges)
    assert triangles == sum(nx.triangles(graph).values()) // 3
    assert local.tolist() == pytest.approx([nx.clustering(graph)[node] for node in range(60)], abs=1e-12)


def test_a_graph_is_mended_by_machine_code_as_by_python() -> None:
    found = []
    for loop in (compiled(swap_away), swap_away):
        rng = np.random.default_rng(3)
        edges = np.sort(rng.integers(40, size=(120, 2)), axis=1)
        assert len(np.unique(edges, axis=0)) < len(edges)
        assert loop(edges, 40, 20, 200, rng)
        assert len(np.unique(edges, axis=0)) == len(edges)
        assert (edges[:, 0] < edges[:, 1]).all()
        found.append((edges.tolist(), rng.random()))
    assert compiled(swap_away) is not swap_away
    assert found[0] == found[1]


def test_an_array_of_edges_is_written_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    edges = np.array([(0, 1), (1, 2), (2, 5)])
    written.write_edges(edges.tolist(), tmp_path / "one.txt")
    monkeypatch.setattr(written, "EdgeList", None)
    written.write_edges(edges, tmp_path / "other.txt")
    assert (tmp_path / "one.txt").read_bytes() == (tmp_path / "other.txt").read_bytes()
