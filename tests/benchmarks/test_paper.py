"""The scripts of the paper's results run, on a small graph that stands in for ca-GrQc."""

from __future__ import annotations

import functools
import gzip
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.long

pytest.importorskip("igraph")
pytest.importorskip("numba")

FOLDER = Path(__file__).parents[2] / "benchmarks"
Run = Callable[..., str]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A script as a module."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def run(
    script: Callable[[str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """What a script prints: its name and arguments, on cliques of 8 in a ring."""
    edges = [(8 * c + i, 8 * c + j) for c in range(6) for i in range(8) for j in range(i)]
    edges += [(8 * c, 8 * ((c + 1) % 6) + 1) for c in range(6)]
    (tmp_path / "graphs").mkdir()
    with gzip.open(tmp_path / "graphs" / "ca-GrQc.txt.gz", "wt") as file:
        file.writelines(f"{a}\t{b}\n" for a, b in edges)

    def printed(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, str(tmp_path), "--graphs", "ca-GrQc", *arguments])
        script(name).main()
        return capsys.readouterr().out

    return printed


def line(text: str, begins: str) -> str:
    (found,) = [row for row in text.splitlines() if row.strip().startswith(begins)]
    return found


def test_table_1(run: Run) -> None:
    text = run("paper_table1", "--seeds", "2")
    assert line(text, "CA-GrQc, paper").split()[2:] == ["5,242", "28,980", "81", "48,260", "0.66"]
    assert line(text, "ca-GrQc, ours").split()[2:6] == ["48", "348", "8", "336"]
    assert line(text, "simple").split()[1:4] == ["48", "348", "8"]


def test_table_2(run: Run) -> None:
    text = run("paper_table2", "--steps", "3000", "--seeds", "1", "--settings", "simple", "configuration closing")
    assert "costs 0.7 to one directed edge, 1.4 to one undirected edge; 336 triangles" in text
    assert line(text, "paper ").split()[1:] == ["643", "35,201", "-27.1%"]
    seed, after = (int(cell.replace(",", "")) for cell in line(text, "simple ").split()[1:3])
    assert seed < after
    assert "claim:    configuration closing: as near the truth as the paper, or nearer" in text


def test_figure_3(run: Run, script: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = script("paper_figure3")
    # Tables of triangles by degree take long to compile, longer than this test may.
    monkeypatch.setattr(module, "fit_graph", functools.partial(module.fit_graph, compiled=False))
    text = run("paper_figure3", "--steps", "8", "--seeds", "1", "--buckets", "20", "--epsilon", "10")
    assert "costs 120 to one directed edge, 240 to one undirected edge" in text
    assert "buckets of 20 tell the two graphs apart" in text


def test_figure_5(run: Run) -> None:
    text = run("paper_figure5", "--steps", "3000", "--seeds", "2", "--epsilons", "0.5", "5")
    assert text.count("±") == 1 + 3 * 4
    assert "real and random graph are told apart" in text


def test_figure_6(run: Run) -> None:
    text = run("paper_figure6", "--exponents", "--epinions-steps", "3000")
    steps = next(row for row in text.splitlines() if " 300: " in row).split()
    assert steps[0] == "ca-GrQc"
    assert float(steps[-1].replace(",", "")) > float(steps[2].replace(",", ""))


def test_the_configuration_graph_is_simple_and_loses_no_more_than_repeats(script: Callable[[str], Any]) -> None:
    falling = np.array([9, 8, 8, 5, 5, 5, 5, 5, 4, 4])
    for seed in range(20):
        edges = script("paper_data").configuration_graph(falling, np.random.default_rng(seed))
        assert (edges[:, 0] < edges[:, 1]).all()
        assert len(np.unique(edges, axis=0)) == len(edges)
        assert (np.bincount(edges.ravel(), minlength=len(falling)) <= falling).all()


def test_growing_graphs_have_ten_new_edges_a_node_and_larger_degrees_with_the_exponent(
    script: Callable[[str], Any],
) -> None:
    largest = []
    for exponent in (0.3, 0.5):
        edges = script("paper_figure6").growing(2000, exponent, 1)
        assert len(np.unique(np.sort(edges, axis=1), axis=0)) == len(edges) == 10 * 1990
        largest.append(np.bincount(edges.ravel()).max())
    assert largest[0] < largest[1]


def test_figure_1(
    script: Callable[[str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "figure1.png"
    monkeypatch.setattr(sys, "argv", ["paper_figure1", "--nodes", "10", "40", "--picture", str(picture)])
    script("paper_figure1").main()
    text = capsys.readouterr().out
    assert line(text, "40 ").split()[1:7] == ["0", "to", "38", "0.00", "to", "2.92"]
    assert "-> holds" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
