"""Labels of public nodes: one edge moves one cell, and the synthetic graph has the released matrix."""

from __future__ import annotations

import itertools
import json
import traceback
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.synthesis.test_public_nodes import EDGES, NAMES, STRANGER, run
from wpinq.errors import AnswersError, PlanError, SourceRejected
from wpinq.graphs import Bounds, SyntheticGraph, fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.fit import load_run
from wpinq.graphs.synthesis.labels import LABELS, LabelMixing, label_mixing, label_starts, labelled_measurements
from wpinq.graphs.synthesis.method import UNBOUNDED
from wpinq.graphs.synthesis.public_nodes import OUTSIDE, PublicNodes, read_nodes
from wpinq.graphs.synthesis.report import report
from wpinq.mcmc import Settings

GROUPS = ["qqnorth", "qqsouth", "qqwest"]
LABEL = {name: GROUPS[i // 40] for i, name in enumerate(NAMES)}
NODES = PublicNodes.of(NAMES, str, LABEL)


def made(epsilon: float = 4000, **more: Any) -> SyntheticGraph:
    settings = Settings(steps=20_000, seed=3)
    given: dict[str, Any] = {"graph": EDGES, "epsilon": epsilon, "node": str, "nodes": NAMES, "labels": LABEL}
    return wp.graphs.synthesize(settings=settings, bounds=Bounds(degree=64), **given | more)


def cells(edges: Any, label: dict[Any, str]) -> dict[tuple[str, str], int]:
    """The number of edges for each unordered pair of labels."""
    found = dict.fromkeys(itertools.combinations_with_replacement(sorted(set(label.values())), 2), 0)
    for a, b in edges:
        one, other = sorted((label[a], label[b]))
        found[one, other] += 1
    return found


def released(graph: SyntheticGraph) -> dict[tuple[str, str], float]:
    """The released matrix by the names of labels."""
    assert graph.nodes is not None
    names = sorted(set(graph.nodes.labels))
    return {(names[i], names[j]): value for (i, j), value in graph.answers[LABELS].items()}


def test_one_undirected_edge_moves_one_cell_by_one_in_small_graphs() -> None:
    """Of graphs of 5 nodes under several ways to label them, and each of their pairs, in either direction."""
    edges = find_method("tags").source()
    pairs = list(itertools.combinations(range(5), 2))
    rng = np.random.default_rng(2)
    for starts in ([0, 1], [0, 3], [0, 1, 2], [0, 2, 4], [0, 1, 2, 3, 4]):
        query = label_mixing(edges, starts)
        assert query.stability() == {"edges": 1}
        label = np.searchsorted(starts, range(5), side="right") - 1
        for bits in rng.integers(0, 2 ** len(pairs), 12).tolist():
            held = [edge for i, edge in enumerate(pairs) if bits >> i & 1]
            before = wp.evaluate(query, {"edges": held}, exact=True)
            for edge in pairs:
                near = [each for each in held if each != edge] if edge in held else [*held, edge]
                for turned in (near, [each[::-1] for each in near]):
                    after = wp.evaluate(query, {"edges": turned}, exact=True)
                    moved = {k: after.get(k, 0) - before.get(k, 0) for k in {*before, *after}}
                    cell = tuple(sorted(label[list(edge)].tolist()))
                    assert {k: v for k, v in moved.items() if v} == {cell: 1 if edge not in held else -1}


@for_each("method", ["tags", "directed"])
def test_the_bill_is_epsilon_and_the_matrix_costs_its_share_once(method: str) -> None:
    chosen = find_method(method)
    source = chosen.source(nodes=NODES)
    for epsilon, split, share in ((1, None, 0.1), ("0.3", None, 0.1), (2, {**chosen.shares, LABELS: 0.25}, 0.2)):
        asked = labelled_measurements(chosen, source, epsilon, split, UNBOUNDED, NODES)
        bill = wp.bill(asked)["edges"]
        assert float(epsilon) - 1e-8 < bill <= float(epsilon)
        assert float(asked[LABELS].epsilon) == pytest.approx(share * float(epsilon))
        assert asked[LABELS].sink.stability(asked[LABELS].plan) == {"edges": 1}
        assert len(asked[LABELS].domain) == 6
    with pytest.raises(PlanError, match=f"share for {LABELS}"):
        labelled_measurements(chosen, source, 1, dict(chosen.shares), UNBOUNDED, NODES)


@for_each("method", ["tbi", "tbi+jdd"])
def test_methods_that_hold_edges_in_both_directions_refuse_labels_before_anything_is_spent(
    method: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match="labels need"):
        made(method=method, ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


def test_with_answers_without_noise_every_cell_is_within_five_percent_and_names_keep_their_labels() -> None:
    graph = made()
    true, found = cells(EDGES, LABEL), cells(graph.to_networkx().edges, LABEL)
    assert released(graph) == true
    assert all(abs(found[cell] - true[cell]) <= max(1, 0.05 * true[cell]) for cell in true)
    assert sum(found.values()) == len(EDGES)
    assert set(graph.to_networkx()) == set(NAMES)


def test_cells_above_five_times_their_noise_are_within_five_percent_of_the_released_ones() -> None:
    """And triangles, clustering and the mixing of degrees are those of a walk without labels.

    Swaps within groups, which mend the matrix, close 1 to 8 % more triangles (five seeds).
    """
    rng = np.random.default_rng(1)
    group = np.sort(rng.integers(0, 6, 600))  # so that nodes have the numbers of their names
    pairs, near = rng.integers(0, 600, (24_000, 2)), rng.random(24_000)
    kept = (pairs[:, 0] < pairs[:, 1]) & ((group[pairs[:, 0]] == group[pairs[:, 1]]) | (near < 0.1))
    edges = sorted({*map(tuple, pairs[kept].tolist())})
    label = {i: f"g{group[i]}" for i in range(600)}
    method, nodes = find_method("tags"), PublicNodes.of(label, int, label)
    assert list(nodes.names) == sorted(label)
    asked = labelled_measurements(method, method.source(nodes=nodes), 2, None, UNBOUNDED, nodes)
    drawn = {name: wp.simulate(each, {"edges": edges}, seed=seed) for seed, (name, each) in enumerate(asked.items())}
    graph = fit_graph(drawn, method, Settings(seed=1), nodes=nodes)
    found, scale = cells(graph.to_networkx().edges, label), graph.answers[LABELS].scale
    clear = {cell: value for cell, value in released(graph).items() if value > 5 * scale}
    assert len(clear) >= 6
    assert all(abs(found[cell] - value) <= 0.05 * value for cell, value in clear.items())
    answers = {name: table for name, table in graph.answers.items() if name != LABELS}
    plain = fit_graph(answers, "tags", Settings(seed=1)).statistics()
    labelled = graph.statistics()
    assert labelled["triangles"] == pytest.approx(plain["triangles"], rel=0.1)
    assert labelled["average_clustering"] == pytest.approx(plain["average_clustering"], abs=0.02)
    assert labelled["assortativity"] == pytest.approx(plain["assortativity"], abs=0.05)


def test_directed_graphs_have_the_matrix_of_their_undirected_pairs() -> None:
    rng = np.random.default_rng(1)
    arcs = [edge if rng.random() < 0.5 else edge[::-1] for edge in EDGES] + [edge[::-1] for edge in EDGES[:30]]
    graph = made(graph=sorted(set(arcs)), method="directed")
    pairs = {tuple(sorted(edge)) for edge in arcs}
    true, found = cells(pairs, LABEL), cells(graph.to_networkx().to_undirected().edges, LABEL)
    assert released(graph) == true
    assert all(abs(found[cell] - true[cell]) <= max(1, 0.05 * true[cell]) for cell in true)


def test_a_seed_gives_one_graph_in_any_order_of_nodes_and_labels() -> None:
    graph = made()
    assert graph.nodes is not None
    again = fit_graph(graph.answers, "tags", Settings(steps=20_000, seed=3), nodes=graph.nodes)
    assert np.array_equal(graph.edges, again.edges)
    other = fit_graph(graph.answers, "tags", Settings(steps=20_000, seed=4), nodes=graph.nodes)
    assert not np.array_equal(graph.edges, other.edges)
    turned = PublicNodes.of(NAMES[::-1], str, [LABEL[name] for name in NAMES[::-1]])
    assert turned == NODES == PublicNodes.of(NODES, str)
    assert label_starts(NODES) == [0, 40, 80]


def test_plans_and_ledgers_hold_a_digest_and_neither_a_name_nor_a_label(tmp_path: Path) -> None:
    graph, ledger = made(ledger=tmp_path / "ledger.db"), tmp_path / "ledger.db"
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + json.dumps(report(graph)).encode()
    held += "".join(str(table.to_json()) for table in graph.answers.values()).encode()
    assert NODES.words.encode() in held
    assert "120 public nodes of 3 labels, digest " in NODES.words
    assert not any(word.encode() in held for word in [*NAMES, *GROUPS])
    moved = LABEL | {NAMES[0]: GROUPS[1]}
    with pytest.raises(wp.errors.LedgerError):  # another table is another declaration
        made(ledger=ledger, labels=moved)
    for others in (PublicNodes.of(NAMES, str, moved), PublicNodes.of(NAMES, str)):
        with pytest.raises(AnswersError, match="other public nodes"):
            fit_graph(graph.answers, "tags", Settings(steps=10), nodes=others)
    plain = {name: table for name, table in graph.answers.items() if name != LABELS}
    with pytest.raises(AnswersError, match=LABELS):
        fit_graph(plain, "tags", Settings(steps=10), nodes=NODES)


def test_an_edge_with_an_end_outside_of_the_table_refuses_all_and_says_nothing_of_it(tmp_path: Path) -> None:
    for stranger in ([(NAMES[0], STRANGER)], [(STRANGER, NAMES[7])] * 3 + [("x", "y")]):
        with pytest.raises(SourceRejected) as caught:
            wp.graphs.synthesize([*EDGES, *stranger], 1, node=str, nodes=NAMES, labels=LABEL)
        assert not caught.value.__cause__
        assert not caught.value.__context__
        said = "".join(traceback.format_exception_only(caught.value))
        assert said == f"wpinq.errors.SourceRejected: {OUTSIDE}\n"


@for_each(
    "labels",
    [
        dict.fromkeys(NAMES, "a"),
        {name: i for i, name in enumerate(NAMES[1:])},
        ["a", "b"],
        dict.fromkeys(NAMES),
        {name: 0.5 * i for i, name in enumerate(NAMES)},
        [""] * 60 + ["b"] * 60,
        "dept",
        7,
    ],
)
def test_what_is_no_label_of_each_node_is_refused(labels: Any) -> None:
    with pytest.raises(PlanError, match="label"):
        PublicNodes.of(NAMES, str, labels)


def test_labels_without_nodes_and_too_many_are_refused() -> None:
    with pytest.raises(PlanError, match="give nodes="):
        wp.graphs.synthesize(EDGES, 1, node=str, labels=LABEL)
    with pytest.raises(PlanError, match="2 to 200"):
        PublicNodes.of(range(300), labels=range(300))


def test_cells_that_are_noise_add_up_with_the_others_and_none_has_more_edges_than_pairs() -> None:
    nodes = PublicNodes.of(range(60), labels=[0] * 2 + [1] * 28 + [2] * 30)
    source = find_method("tags").source(nodes=nodes)
    asked = labelled_measurements(find_method("tags"), source, 1, None, UNBOUNDED, nodes)[LABELS]
    ring = [(i, (i + 1) % 60) for i in range(59)] + [(0, 59)]
    for seed in range(20):
        mixing = LabelMixing.of(wp.simulate(asked, {"edges": ring}, seed=seed), nodes, 60)
        assert mixing.wanted.sum() == pytest.approx(60)
        assert (mixing.wanted >= 0).all()
        assert not np.tril(mixing.wanted, -1).any()


def test_the_command_takes_a_column_and_resumes_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, nodes, out = tmp_path / "edges.txt", tmp_path / "nodes.csv", tmp_path / "made.txt"
    graph.write_text("".join(f"{a} {b}\n" for a, b in EDGES))
    nodes.write_text("id,floor,dept\n" + "".join(f"{name},1,{LABEL[name]}\n" for name in NAMES))
    assert read_nodes(nodes, str, "dept") == NODES == PublicNodes.of(nodes, str, LABEL)
    given = ["synthesize", str(graph), "--node", "str", "--epsilon", "4000", "--max-degree", "64", "--quiet"]
    command = [*given, "--nodes", str(nodes), "--label", "dept", "--steps", "5000"]
    assert run([*command, "--out", str(out)]) == 0
    assert "public nodes of 3 labels, digest " in capsys.readouterr().out
    true, found = (cells(map(str.split, path.read_text().splitlines()), LABEL) for path in (graph, out))
    assert all(abs(found[cell] - true[cell]) <= max(1, 0.05 * true[cell]) for cell in true)
    assert load_run(tmp_path / "made.txt.run")[-1] == NODES
    again = tmp_path / "again.txt"
    assert run(["synthesize", "--resume", "--folder", f"{out}.run", "--out", str(again), "--quiet"]) == 0
    assert again.read_text() == out.read_text()
    other = ["--out", str(tmp_path / "o.txt")]
    assert run([*given, *other, "--label", "dept"]) == 2
    capsys.readouterr()
    assert run([*given, *other, "--nodes", str(nodes), "--label", "team"]) == 1
    assert "no column 'team'" in capsys.readouterr().err
    assert run([*command, *other, "--query", "tbi"]) == 1
    assert networkx.read_edgelist(out).number_of_nodes() <= len(NAMES)
