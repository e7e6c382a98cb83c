"""Directed graphs: one directed edge is the unit, whatever the other direction does."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each, sizes
from tests.synthesis.test_public_nodes import run
from wpinq.errors import PlanError, SourceRejected
from wpinq.graphs import Bounds
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.directed import IN, OUT, RECIPROCAL, directed_edges, pair_pieces, undirected
from wpinq.graphs.synthesis.method import COUNT, TOP
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.graphs.synthesis.report import report
from wpinq.mcmc import Settings
from wpinq.synthesis import measure_graph

METHOD = find_method("directed")


def digraph(edges: int, nodes: int, reach: int, back: float = 0.3) -> list[tuple[int, int]]:
    rng = np.random.default_rng(4)
    tail, far = rng.integers(0, nodes, edges), rng.integers(1, reach, edges)
    head, both = (tail + far) % nodes, rng.random(edges) < back
    return sorted(
        {*zip(tail.tolist(), head.tolist(), strict=True)}
        | {*zip(head[both].tolist(), tail[both].tolist(), strict=True)}
    )


def test_the_bill_is_epsilon_of_one_directed_edge() -> None:
    bill = wp.bill(METHOD.measurements(METHOD.source(), "0.7"))
    assert bill["edges"] == pytest.approx(0.7, abs=1e-8)
    assert bill["edges"] <= 0.7
    assert "protects one directed edge, of weight 1" in str(bill)
    assert "no loops (a, a), and no (a, b) twice" in str(bill)


@pytest.mark.parametrize("every", sizes(9, 1))
def test_a_directed_edge_moves_pairs_by_one_piece_in_small_graphs(every: int) -> None:
    """Of the 4,096 graphs of 4 nodes, and one of their edges: never both pieces, never more than 1."""
    edges = METHOD.source()
    possible = list(itertools.permutations(range(4), 2))
    rng, moved = np.random.default_rng(1), set[Any]()
    for bits in range(0, 2 ** len(possible), every):
        held = [edge for i, edge in enumerate(possible) if bits >> i & 1]
        one = possible[int(rng.integers(len(possible)))]
        near = [*held, one] if one not in held else [edge for edge in held if edge != one]
        for query in (pair_pieces(edges).select(lambda piece: piece.index), undirected(edges)):
            before, after = (wp.evaluate(query, {"edges": each}, exact=True) for each in (held, near))
            moved.add(sum(abs(before.get(key, 0) - after.get(key, 0)) for key in {*before, *after}))
    assert moved == {0, 1}


def test_ladders_read_a_pair_in_both_directions_as_one_edge() -> None:
    """So a directed edge changes their graph by one edge or by none: of such a change `tests/ladders` has the loss."""
    edges = [(1, 2), (2, 1), (2, 3), (3, 1), (3, 4), (4, 3)]
    asked = METHOD.measurements(METHOD.source(), 10**6, bounds=Bounds(degree=16))
    found = {name: wp.simulate(asked[name], {"edges": edges}, seed=1) for name in (TOP, COUNT)}
    assert (found[TOP].value, found[COUNT].value) == (3, 1)


@for_each("name", [name for name in METHOD.shares if name not in (TOP, COUNT)])
def test_a_directed_edge_moves_each_query_by_no_more_than_its_bill(name: str) -> None:
    measurement = METHOD.measurements(METHOD.source(), 1, bounds=Bounds(degree=16))[name]
    query, rng = wp.Query(measurement.plan), np.random.default_rng(2)
    most = query.stability()["edges"]
    for _ in range(25):
        held = [edge for edge in itertools.permutations(range(6), 2) if rng.random() < 0.4]
        for gone in (held[0], next((e for e in held if e[::-1] in held), held[-1])):
            before, after = (
                wp.evaluate(query, {"edges": each}, exact=True) for each in (held, [e for e in held if e != gone])
            )
            assert sum(abs(before.get(key, 0) - after.get(key, 0)) for key in {*before, *after}) <= most


def test_answers_without_noise_give_the_graph_its_numbers() -> None:
    edges = digraph(1100, 300, 12)
    graph = wp.graphs.synthesize(edges, 3000, method=METHOD, settings=Settings(steps=20_000), bounds=Bounds(degree=64))
    true, made, found = networkx.DiGraph(edges), graph.to_networkx(), graph.statistics()
    assert made.is_directed()
    assert found["edges"] == made.number_of_edges() == len(edges) == graph.to_igraph().ecount()
    assert graph.to_igraph().is_directed()
    assert networkx.reciprocity(made) == networkx.reciprocity(true)
    assert found[RECIPROCAL] == sum(edge[::-1] in set(edges) for edge in edges) // 2
    assert all(graph.uncertainty[name].holds(found[name]) for name in ("edges", RECIPROCAL))
    assert RECIPROCAL in report(graph)["uncertainty"]["statistics"]
    for side in (0, 1):
        ends = (np.array(each)[:, side] for each in (edges, made.edges))
        counts = [np.bincount(np.bincount(each, minlength=300), minlength=64) for each in ends]
        assert np.abs(np.cumsum(counts[0]) - np.cumsum(counts[1])).max() <= 6
    assert sum(networkx.triangles(made.to_undirected()).values()) == pytest.approx(
        sum(networkx.triangles(true.to_undirected()).values()), rel=0.05
    )


def test_reciprocity_of_a_large_graph_is_within_two_percent_at_epsilon_one() -> None:
    """The directions alone, over the true undirected graph: a walk keeps its number of edges."""
    edges = digraph(77_000, 12_000, 600)
    arcs, pairs = {*edges}, np.unique(np.sort(np.array(edges), axis=1), axis=0)
    true = sum(edge[::-1] in arcs for edge in edges) / len(edges)
    assert len(edges) > 95_000
    measurements = METHOD.measurements(METHOD.source(), 1)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        noisy = len(edges) - len(pairs) + rng.laplace(scale=1 / float(measurements["edge_count"].epsilon))
        degrees = [np.bincount(np.array(edges)[:, side]) for side in (0, 1)]
        made = directed_edges(pairs, round(noisy), *degrees, rng)
        found = {*map(tuple, made.tolist())}
        assert sum(edge[::-1] in found for edge in found) / len(found) == pytest.approx(true, rel=0.02)


def test_directions_are_a_search_from_the_seed_alone_and_keep_the_undirected_graph() -> None:
    edges = np.array(sorted({tuple(sorted(edge)) for edge in digraph(330, 90, 9)}))
    wanted = np.repeat([1, 2, 9], 60)
    made, again = (directed_edges(edges, 25, wanted, wanted, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(made, again)
    assert len(made) == len(edges) + 25 == len({tuple(edge) for edge in made.tolist()})
    assert {tuple(sorted(edge)) for edge in made.tolist()} == {tuple(edge) for edge in edges.tolist()}
    assert len(directed_edges(edges, 10**9, wanted, wanted, np.random.default_rng(3))) == 2 * len(edges)
    assert len(directed_edges(edges, -5, wanted, wanted, np.random.default_rng(3))) == len(edges)


def test_a_unit_that_says_undirected_is_refused() -> None:
    for words in ("one undirected edge", "An Undirected friendship"):
        with pytest.raises(PlanError, match="one directed edge, and both directions are two units"):
            wp.source("edges", src=int, dst=int, unit=words, facts=["simple_digraph", "unit_weights"])


def test_data_that_are_no_simple_directed_graph_are_refused_whole() -> None:
    with wp.Session() as session:
        session.protect(METHOD.source(), [(1, 2), (2, 1), (2, 3)], budget=1)
    for rows in ([(1, 2), (3, 3)], [(1, 2), (2, 1), (1, 2)]):
        with wp.Session() as session, pytest.raises(SourceRejected):
            session.protect(METHOD.source(), rows, budget=1)
        with pytest.raises(SourceRejected):
            wp.evaluate(METHOD.source(), {"edges": rows})


def test_both_directions_are_two_edges_and_repeats_and_loops_are_none() -> None:
    answers = measure_graph([(1, 2), (2, 1), (1, 2), (3, 3), (2, 3)], METHOD, 5000, bounds=Bounds(degree=8))
    assert [round(value) for value in answers["edge_count"].values] == [2, 1]
    assert round(sum(answers[OUT].values)) == round(sum(answers[IN].values)) == 3


def test_the_command_writes_directed_edges_over_public_nodes(tmp_path: Path, capsys: Any) -> None:
    edges, nodes, out = tmp_path / "edges.txt", tmp_path / "nodes.txt", tmp_path / "made.txt"
    given = digraph(240, 60, 9)
    edges.write_text("".join(f"{a} {b}\n" for a, b in given))
    nodes.write_text("\n".join(map(str, range(70))))
    command = ["synthesize", str(edges), "--directed", "--epsilon", "900", "--max-degree", "32", "--quiet"]
    assert run([*command, "--nodes", str(nodes), "--steps", "500", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"edges: {len(given)} (90 % interval" in printed
    assert "reciprocal pairs: " in printed
    assert "one directed edge between two of 70 public nodes" in printed
    made = wp.graphs.read_edges(out, directed=True)
    assert len(made) == len(set(made)) == len(given)
    again = tmp_path / "again.txt"
    assert run(["synthesize", "--resume", "--folder", f"{out}.run", "--out", str(again), "--quiet"]) == 0
    assert again.read_text() == out.read_text()
    assert run([*command, "--query", "tbi", "--out", str(tmp_path / "o.txt")]) == 2
    assert METHOD.source(nodes=PublicNodes.of(range(70))).plan.operator.unit.startswith("one directed edge between")  # type: ignore[attr-defined]


def test_a_split_without_the_number_of_pairs_is_refused_before_anything_is_measured() -> None:
    """An estimate needs it, and would fail once all is paid for."""
    method = find_method("directed")
    split = {name: share for name, share in method.shares.items() if name != "edge_count"}
    with pytest.raises(wp.PlanError, match="give a share for each of"):
        method.measurements(method.source(), 1, split)
    assert "edge_count" not in find_method("tags").measurements(
        find_method("tags").source(), 1, find_method("tags").shares
    )
