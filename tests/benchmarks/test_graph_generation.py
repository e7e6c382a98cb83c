"""The benchmark of graph generation: its questions against their definitions, and the count of cells."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest


@pytest.fixture(scope="module")
def benchmark() -> Any:
    """The benchmark as a module."""
    path = Path(__file__).parents[2] / "benchmarks" / "graph_generation.py"
    spec = importlib.util.spec_from_file_location("graph_generation", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(5))
def test_profile_is_that_of_networkx(seed: int, benchmark: Any) -> None:
    graph = networkx.gnm_random_graph(40, 45 + 10 * seed, seed=seed)
    found = benchmark.profile(np.array(graph.edges, dtype=np.int64), 40)
    parts = [graph.subgraph(part) for part in networkx.connected_components(graph)]
    lengths = [d for _, reached in networkx.all_pairs_shortest_path_length(graph) for d in reached.values() if d]
    assert found["diam"] == max(map(networkx.diameter, parts))
    assert found["path"] == pytest.approx(np.mean(lengths))
    assert found["triangles"] == sum(networkx.triangles(graph).values()) / 3
    assert found["gcc"] == pytest.approx(networkx.transitivity(graph))
    assert found["acc"] == pytest.approx(networkx.average_clustering(graph))
    assert found["assort"] == pytest.approx(networkx.degree_assortativity_coefficient(graph))
    assert found["squares"] == sum(1 for _ in networkx.simple_cycles(graph, 4) if len(_) == 4)
    leading = np.abs(np.linalg.eigh(networkx.to_numpy_array(graph))[1][:, -1])
    assert found["evc"] == pytest.approx(np.sort(leading)[::-1], abs=1e-6)


def test_errors_are_those_of_the_definition(benchmark: Any) -> None:
    graphs = [networkx.complete_graph(6), networkx.complete_graph(5)]
    true, made = (benchmark.profile(np.array(graph.edges, dtype=np.int64), len(graph)) for graph in graphs)
    assert set(benchmark.errors(true, true, same_nodes=True).values()) <= {0.0, None}
    found = benchmark.errors(true, made, same_nodes=False)
    assert (found["triangles"], found["nmi"]) == (0.5, None)
    assert found["degKL"] == pytest.approx(-np.log(np.finfo(float).eps), rel=1e-6)


def test_cells_are_counted_against_the_best(benchmark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pgb").mkdir()
    names = list(benchmark.QUESTIONS)
    rows = [
        ["graph", "epsilon", "method", *names],
        ["ring", "1", "tmf", *["0.001" if name == "evc" else "0.1" for name in names]],
        ["ring", "1", "dgg", *["1"] * 15],
    ]
    (tmp_path / "pgb" / "peers.tsv").write_text("\n".join("\t".join(row) for row in rows))
    results = benchmark.Results(None)
    ours = dict.fromkeys(names, 0.05) | {"mod": 0.15, "path": 0.3, "diam": 0.9, "nmi": None, "evc": 0.005}
    results.add({"graph": "ring", "epsilon": 1.0, "draw": 1, "public": False, "errors": ours})
    given = argparse.Namespace(data=tmp_path, graphs=["ring"], epsilon=["1"], nodes=False)
    benchmark.show_cells(given, results)
    shown = capsys.readouterr().out
    assert "11 cells, best in 7 (64%), even in 1 where both are below 0.01: together 73%" in shown
    assert "; worse than twice in 1, diameters aside\nmean path of ring at 1" in shown
    assert "best cells: wpinq 7, tmf 4" in shown
