"""Nodes that are public: what the graph, the report, errors and ledgers hold of them, and of the edges nothing."""

from __future__ import annotations

import contextlib
import json
import traceback
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.cli.main import main
from wpinq.errors import AnswersError, PlanError, SourceRejected
from wpinq.graphs import Bounds, SyntheticGraph, fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.fit import graph_statistics, graph_structure, holds_answers, load_run
from wpinq.graphs.synthesis.public_nodes import OUTSIDE, PublicNodes, read_nodes
from wpinq.graphs.synthesis.report import report
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.mcmc import Settings
from wpinq.synthesis import measure_graph

NAMES = [f"person{i:03}" for i in range(120)]
RNG = np.random.default_rng(5)
EDGES = sorted({(NAMES[i], NAMES[j]) for i, j in RNG.integers(0, 100, (400, 2)).tolist() if i < j and abs(i - j) < 20})
STRANGER = "maria.secret"


def made(method: str = "tags", epsilon: float = 400, **more: Any) -> SyntheticGraph:
    settings = Settings(steps=2000, seed=3)
    return wp.graphs.synthesize(
        EDGES, epsilon, method=method, node=str, nodes=NAMES, settings=settings, bounds=Bounds(degree=64), **more
    )


@for_each("method", ["tags", "tbi"])
def test_the_graph_is_over_the_public_names_and_some_have_no_edge(method: str, tmp_path: Path) -> None:
    graph = made(method)
    found, library = graph.statistics(), graph.to_networkx()
    assert found["nodes"] == len(NAMES) == len(library) == graph.to_igraph().vcount()
    assert set(library) == set(NAMES)
    assert found["edges"] == len(EDGES) == library.number_of_edges()
    alone = sum(degree == 0 for _, degree in library.degree)
    assert alone == pytest.approx(sum(NAMES[i] not in {n for e in EDGES for n in e} for i in range(120)), abs=1)
    assert found["components"] == networkx.number_connected_components(library)
    assert found["average_clustering"] == pytest.approx(networkx.average_clustering(library))
    graph.write(tmp_path / "graph.txt")
    read = wp.graphs.read_edges(tmp_path / "graph.txt", node=str)
    assert {tuple(sorted(edge)) for edge in read} == {tuple(sorted(edge)) for edge in library.edges}
    assert graph.uncertainty["nodes"].public
    assert report(graph)["uncertainty"]["statistics"]["nodes"]["words"] == "public"


def test_their_number_is_never_exceeded_where_noise_would() -> None:
    method, nodes = find_method("tags"), PublicNodes.of(range(60))
    ring = [(i, (i + 1) % 60) for i in range(60)]
    for seed in range(2):
        answers = measure_graph(ring, method, 1, nodes=nodes, bounds=Bounds(degree=8))
        graph = fit_graph(answers, method, Settings(steps=200, seed=seed), nodes=nodes)
        assert graph.statistics()["nodes"] == 60
        assert graph.uncertainty["edges"].holds(len(graph.edges))


def test_an_edge_with_another_end_refuses_all_and_says_nothing_of_it(tmp_path: Path) -> None:
    """Neither the node, nor the line, nor how many there are: in no message and no cause, and nothing is paid."""
    said = set()
    for stranger in ([(NAMES[0], STRANGER)], [(STRANGER, NAMES[7])] * 3 + [("x", "y")]):
        for place in (0, len(EDGES)):
            edges, ledger = [*EDGES[:place], *stranger, *EDGES[place:]], tmp_path / f"{len(said)}.db"
            with pytest.raises(SourceRejected) as caught:
                wp.graphs.synthesize(edges, 1, node=str, nodes=NAMES, ledger=ledger)
            assert not caught.value.__cause__
            assert not caught.value.__context__
            said.add("".join(traceback.format_exception_only(caught.value)))
            if ledger.exists():
                with Ledger(ledger) as kept:
                    assert not any(account.spent for account in kept.accounts())
    assert said == {f"wpinq.errors.SourceRejected: {OUTSIDE}\n"}


def test_plans_and_ledgers_hold_a_digest_and_no_name(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    graph = made(ledger=ledger)
    words = PublicNodes.of(NAMES, str).words
    with Ledger(ledger) as kept:
        (account,) = kept.accounts()
    assert account.unit == f"one undirected edge between two of {words}"
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + json.dumps(report(graph)).encode()
    held += "".join(str(table.to_json()) for table in graph.answers.values()).encode()
    assert words.encode() in held
    assert not any(name.encode() in held for name in NAMES)
    others = [*NAMES[:-1], "another"]
    with pytest.raises(wp.errors.LedgerError):  # another list is another declaration, and never the same account
        wp.graphs.synthesize(EDGES, 1, node=str, nodes=others, ledger=ledger, bounds=Bounds(degree=64))
    with pytest.raises(AnswersError, match="other public nodes"):
        fit_graph(graph.answers, "tags", Settings(steps=10), nodes=PublicNodes.of(others, str))


def test_a_list_has_one_digest_in_any_order_and_names_are_drawn_by_the_public_seed_alone() -> None:
    assert PublicNodes.of(NAMES, str) == PublicNodes.of(NAMES[::-1], str) == PublicNodes.of(iter(NAMES), str)
    assert PublicNodes.of(np.arange(4)).names == (0, 1, 2, 3)
    graph = made()
    again = fit_graph(graph.answers, "tags", Settings(steps=2000, seed=3), nodes=graph.nodes)
    assert np.array_equal(graph.edges, again.edges)
    true = networkx.Graph(EDGES)
    degrees = [(true.degree(name) if name in true else 0, graph.to_networkx().degree(name)) for name in NAMES]
    assert abs(np.corrcoef(degrees, rowvar=False)[0, 1]) < 0.3  # degrees are as exact as can be, and whose is not told


@for_each(
    "nodes, node",
    [
        (networkx.path_graph(4).nodes, int),
        (networkx.path_graph(4), int),
        ([1, 2, 2], int),
        ([1], int),
        (["a", "b c"], str),
        (["a", 1], str),
        ([True, False], int),
        (7, int),
        ([1, 2, 1], int),
    ],
)
def test_what_is_no_public_list_is_refused(nodes: Any, node: type) -> None:
    with pytest.raises(PlanError, match="public node"):
        PublicNodes.of(nodes, node)


def test_lists_are_read_from_text_and_csv(tmp_path: Path) -> None:
    text, table = tmp_path / "nodes.txt", tmp_path / "nodes.csv"
    text.write_text("# all of them\n3 x\n1 y\n\n2 x\n")
    table.write_text("id,floor,dept\nbob,2,sales\nann,1,IT\n")
    assert read_nodes(text) == PublicNodes.of([1, 2, 3]) == PublicNodes.of(text) == PublicNodes((1, 2, 3))
    assert read_nodes(table, str) == PublicNodes(("ann", "bob"))
    for path in (table, tmp_path):
        with pytest.raises(PlanError):
            read_nodes(path)
    text.write_text("1\n2\n1\n")
    with pytest.raises(PlanError, match="twice"):
        read_nodes(text)


def test_statistics_count_nodes_without_an_edge() -> None:
    edges = np.array([(0, 1), (1, 2), (2, 0)])
    assert graph_statistics(edges, 5)["average_clustering"] == pytest.approx(0.6)
    assert graph_structure(edges, 5)["components"] == 3
    assert graph_structure(np.zeros((0, 2), dtype=np.int64), 5)["components"] == 5


def test_the_command_takes_a_file_and_resumes_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, nodes, out = tmp_path / "edges.txt", tmp_path / "nodes.txt", tmp_path / "made.txt"
    graph.write_text("".join(f"{a} {b}\n" for a, b in EDGES))
    nodes.write_text("\n".join(NAMES))
    given = ["synthesize", str(graph), "--node", "str", "--epsilon", "400", "--max-degree", "64", "--quiet"]
    ran = [*given, "--nodes", str(nodes), "--steps", "500", "--out", str(out)]
    assert run(ran) == 0
    assert "nodes: 120 (public)" in capsys.readouterr().out
    assert {name for line in out.read_text().splitlines() for name in line.split()} <= set(NAMES)
    assert load_run(tmp_path / "made.txt.run")[-1] == PublicNodes.of(NAMES, str)
    again = tmp_path / "again.txt"
    assert run(["synthesize", "--resume", "--folder", f"{out}.run", "--out", str(again), "--quiet"]) == 0
    assert again.read_text() == out.read_text()
    graph.write_text(graph.read_text() + f"{STRANGER} {NAMES[3]}\n")
    capsys.readouterr()
    other = ["--nodes", str(nodes), "--out", str(tmp_path / "o.txt")]
    assert run([*given, *other]) == 4
    assert STRANGER not in "".join(capsys.readouterr())
    assert not holds_answers(tmp_path / "o.txt.run")
    assert run([*given, "--nodes", str(graph), "--out", str(tmp_path / "p.txt")]) == 2
    assert run([*given, *other, "--max-nodes", "500"]) == 1


def run(arguments: list[str]) -> int:
    with contextlib.suppress(SystemExit):
        return main(arguments)
    return -1
