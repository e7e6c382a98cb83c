"""Graph objects: read as a loop over their edges finds them, whatever library holds them; refusals say no node."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

import wpinq as wp
from tests.support.declared import declared
from wpinq.data import EdgeList, read_source
from wpinq.data.graphs import edges_of_graph
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import INT, STR, Type, record_type, type_from_annotation
from wpinq.graphs import read_edges, write_edges

EDGE = record_type({"src": INT, "dst": INT})
NAMES = record_type({"src": STR, "dst": STR})

INTEGERS = st.integers(-3, 12)
PAIRS = st.lists(st.tuples(INTEGERS, INTEGERS), max_size=30)
NX_KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def read(data: object, type_: Type = EDGE) -> dict[Any, Any]:
    found = read_source(data, declared(type_))
    assert isinstance(found, Mapping)
    return dict(found.items())  # not by keys, each of which opens a database


def refused(data: object, type_: Type = EDGE) -> SourceRejected:
    with pytest.raises(SourceRejected) as caught:
        read(data, type_)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


def canonical(pairs: Any) -> list[tuple[Any, Any]]:
    return [(min(a, b), max(a, b)) for a, b in pairs]


def networkx_graph(kind: Any, pairs: Any) -> Any:
    graph = kind(pairs)
    graph.add_node(99)  # without an edge: no record tells of it
    nx.set_edge_attributes(graph, 7, "weight")
    return graph


# --- networkx --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(PAIRS)
@pytest.mark.parametrize("kind", NX_KINDS)
def test_networkx_graphs_and_their_views_are_their_edges(kind: Any, pairs: list[tuple[int, int]]) -> None:
    graph = networkx_graph(kind, pairs)
    expected = pairs if graph.is_directed() else canonical(pairs)
    expected = Counter(expected if graph.is_multigraph() else set(expected))
    offered = [graph, graph.edges, graph.edges(data=True), graph.edges(data="weight"), graph.copy(as_view=True)]
    if graph.is_directed():
        offered += [graph.in_edges, graph.in_edges(data=True), graph.out_edges]
    if graph.is_multigraph():
        offered += [graph.edges(keys=True), graph.edges(keys=True, data=True)]
    for data in offered:
        assert columns(data) == expected


def columns(data: object, directed: bool | None = None) -> Counter[tuple[Any, Any]]:
    """The edges that a graph object holds, an undirected one in canonical order."""
    found = edges_of_graph(data, directed)
    pairs = list(zip(found.sources, found.targets, strict=True))
    return Counter(pairs if found.directed else canonical(pairs))


def test_a_graph_itself_is_protected_as_its_edge_list_is() -> None:
    assert read(nx.Graph([(2, 1), (2, 3)])) == {(1, 2): 1.0, (2, 3): 1.0}
    assert read(nx.DiGraph([(2, 1), (1, 2)])) == {(1, 2): 1.0, (2, 1): 1.0}
    assert refused(nx.MultiGraph([(2, 1), (1, 2)])).positions == (1,)
    graph = nx.karate_club_graph()  # its edges have weights, which edges are not
    assert set(read(graph.edges).values()) == {1.0}
    assert read(graph.edges) == read(graph) == read(list(graph.edges))


def test_a_directed_graph_may_be_taken_as_undirected_and_not_the_other_way() -> None:
    graph = nx.DiGraph([(2, 1), (1, 2), (3, 3)])
    told = EdgeList(graph, directed=False, loops="drop", duplicates="drop")
    assert read(told) == {(1, 2): 1.0}
    assert refused(EdgeList(graph, directed=False)).positions == (1,)
    assert "leave out directed=True" in str(refused(EdgeList(nx.Graph([(1, 2)]), directed=True)))
    both = nx.Graph([(1, 2), (3, 3)]).to_directed()
    assert read(both) == {(1, 2): 1.0, (2, 1): 1.0, (3, 3): 1.0}


def test_names_of_nodes() -> None:
    graph = nx.Graph([("Zoë", "Bo"), (np.str_("Ann"), "Bo")])
    assert read(graph, NAMES) == {("Bo", "Zoë"): 1.0, ("Ann", "Bo"): 1.0}
    assert read(nx.Graph([(np.int64(2), 1)])) == {(1, 2): 1.0}


@pytest.mark.parametrize("node", ["secret", 77.5, (77, 77), None.__class__, True, frozenset({77}), 2**64])
def test_nodes_of_other_kinds_are_refused_without_being_named(node: Any) -> None:
    error = refused(nx.Graph([(1, 2), (1, node)]))
    assert error.positions == (1,)
    assert "convert_node_labels_to_integers" in str(error)
    assert "secret" not in str(error)
    assert "77" not in str(error)


def test_parts_of_a_graph_that_hold_no_edges_are_refused() -> None:
    graph = nx.Graph([(1, 2)])
    for part in (graph.nodes, graph.adj, graph.degree, graph.nodes(data=True)):
        assert "offer the graph, or its edges" in str(refused(part))
    assert "no graph" in str(refused(igraph.Graph([(0, 1)]).vs))


POLICIES = st.sampled_from(["keep", "drop", "refuse"])


def told(pairs: list[tuple[int, int]], directed: bool, loops: str, duplicates: str) -> Any:
    """The edges that an edge list of these pairs gives, or the positions that it refuses."""
    edges = pairs if directed else canonical(pairs)
    unfit = {i for i, (a, b) in enumerate(edges) if a == b and loops == "refuse"}
    dropped = {i for i, (a, b) in enumerate(edges) if a == b and loops == "drop"}
    again = {i for i, edge in enumerate(edges) if edge in edges[:i]} - dropped
    if duplicates == "refuse":
        unfit |= again
    dropped |= again if duplicates == "drop" else set()
    return tuple(sorted(unfit)[:10]) or [edge for i, edge in enumerate(edges) if i not in dropped]


@settings(deadline=None, max_examples=40)
@given(PAIRS, st.booleans(), POLICIES, POLICIES, st.booleans())
def test_what_the_options_say(
    pairs: list[tuple[int, int]], directed: bool, loops: Any, duplicates: Any, graph: bool
) -> None:
    data = nx.MultiDiGraph(pairs) if graph else pairs
    pairs = list(data.edges()) if graph else pairs
    expected = told(pairs, directed, loops, duplicates)
    try:
        found: Any = EdgeList(data, directed, loops, duplicates).edges(int)
    except SourceRejected as error:
        found = error.positions
    assert found == expected


# --- igraph ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.booleans())
def test_igraph_graphs_and_their_edges(pairs: list[tuple[int, int]], directed: bool) -> None:
    graph = igraph.Graph(n=11, edges=pairs, directed=directed)
    graph.es["weight"] = 7
    expected = Counter(pairs if directed else canonical(pairs))
    for data in (graph, graph.es, graph.es.select(weight=7)):
        assert columns(data) == expected
    some = graph.es[: len(pairs) // 2]
    assert columns(some) == Counter(pairs[: len(some)] if directed else canonical(edge.tuple for edge in some))
    graph.vs["name"] = [f"n{i:02}" for i in range(11)]
    assert columns(graph) == Counter((f"n{a:02}", f"n{b:02}") for a, b in expected.elements())


def test_vertices_of_igraph_are_their_names() -> None:
    graph = igraph.Graph.TupleList([("Zoë", "Bo"), ("Bo", "Ann")])
    assert read(graph, NAMES) == {("Bo", "Zoë"): 1.0, ("Ann", "Bo"): 1.0}
    assert "del graph.vs['name']" in str(refused(graph))
    del graph.vs["name"]
    assert read(graph) == {(0, 1): 1.0, (1, 2): 1.0}
    graph.vs["label"] = ["a", "b", "c"]
    assert "graph.vs['name'] = graph.vs['label']" in str(refused(graph, NAMES))
    assert read(igraph.Graph.TupleList([(20, 10)])) == {(10, 20): 1.0}
    graph.vs["name"] = ["secret", "secret", "b"]
    error = refused(graph, NAMES)
    assert "several vertices of one name" in str(error)
    assert "secret" not in str(error)


# --- sparse matrices -------------------------------------------------------------------------------------------

FORMATS = ["coo", "csr", "csc", "lil", "dok", "bsr"]


@settings(deadline=None)
@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))), st.sampled_from(FORMATS), st.booleans())
def test_entries_of_a_sparse_matrix_are_edges(pairs: set[tuple[int, int]], kind: str, array: bool) -> None:
    ends = [a for a, _ in pairs], [b for _, b in pairs]
    made = sparse.coo_array if array else sparse.coo_matrix
    matrix = made((np.ones(len(pairs)), ends), shape=(7, 7)).asformat(kind)
    assert columns(matrix, directed=True) == Counter(pairs)
    graph = set(canonical(pairs))
    for one in (sparse.triu(matrix.maximum(matrix.T)), matrix.maximum(matrix.T), (matrix + matrix.T) > 0):
        assert columns(one, directed=False) == Counter(graph)
    half = {(a, b) for a, b in pairs if (b, a) not in pairs and a != b}
    mirrored = {(a, b) for a, b in pairs if (b, a) in pairs and a != b}
    ups = {a < b for a, b in half}
    if (half and mirrored) or len(ups) == 2:
        with pytest.raises(SourceRejected, match="on one side of its diagonal only"):
            columns(matrix, directed=False)
    else:
        assert columns(matrix, directed=False) == Counter(graph)


def test_sparse_matrices_that_are_refused() -> None:
    matrix = sparse.csr_array(np.array([[0, 1], [1, 0]]))
    assert "does not say if edges are directed" in str(refused(matrix))
    weighted = sparse.csr_array(np.array([[0, 77], [1, 0]]))
    error = refused(EdgeList(weighted, directed=True))
    assert "not 1" in str(error)
    assert "77" not in str(error)
    matrix.data[0] = 0
    assert "not 1" in str(refused(EdgeList(matrix, directed=True)))
    assert read(EdgeList(matrix != 0, directed=True)) == {(1, 0): 1.0}
    wide = sparse.coo_array(np.ones((2, 3)))
    assert len(read(EdgeList(wide, directed=True))) == 6
    assert "as many rows as columns" in str(refused(EdgeList(wide, directed=False)))
    twice = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(2, 2))
    assert refused(EdgeList(twice, directed=True)).positions == (1,)
    assert refused(EdgeList(sparse.coo_array(np.eye(2)), directed=True), NAMES).positions == (0, 1)


def test_an_edge_list_of_an_edge_list_says_what_to_do() -> None:
    for make in (EdgeList, read_edges):
        with pytest.raises(wp.PlanError, match=r"offer it as it is, or list its \.edges"):
            make(EdgeList([(1, 2)]))


# --- tables, rows and named columns ----------------------------------------------------------------------------

TRIPS = {"day": [1, 1, 2], "to": ["b", "a", "b"], "from": ["a", "b", "b"]}


def csv_file(folder: Path) -> Path:
    path = folder / "trips.csv"
    pd.DataFrame(TRIPS).to_csv(path, index=False)
    return path


def parquet_file(folder: Path) -> Path:
    path = folder / "trips.parquet"
    parquet.write_table(pa.table(TRIPS), path)
    return path


@pytest.mark.parametrize(
    "make",
    [csv_file, parquet_file, lambda _: pd.DataFrame(TRIPS), lambda _: pl.DataFrame(TRIPS), lambda _: pa.table(TRIPS)],
)
def test_named_columns(make: Any, tmp_path: Path) -> None:
    data = make(tmp_path)
    pairs = [("a", "b"), ("b", "a"), ("b", "b")]
    assert EdgeList(data, columns=("from", "to")).edges(str) == pairs
    simple = EdgeList(data, False, loops="drop", duplicates="drop", columns=["to", "from"])
    assert read(simple, NAMES) == {("a", "b"): 1.0}
    error = refused(EdgeList(data, directed=False, loops="refuse", columns=("from", "to")), NAMES)
    assert error.positions == (1, 2)
    assert "at row 1, 2, counted from 0" in str(error)
    assert "no column named 'src', 'dst'" in str(refused(EdgeList(data), NAMES))
    assert read(EdgeList(data), record_type({"from": STR, "to": STR})) == Counter(pairs)
    assert read(EdgeList(data, columns=("from", "to")), type_from_annotation(tuple[str, str])) == Counter(pairs)


def test_a_csv_file_is_never_read_by_place(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("1,2\n2,3\n")  # the first line may be an edge
    with pytest.raises(SourceRejected, match="has named columns"):
        read_edges(path)
    assert "named columns" in str(refused(EdgeList(path), type_from_annotation(tuple[int, int])))


def test_pairs_of_numpy_and_rows() -> None:
    pairs = np.array([(2, 1), (1, 2), (3, 3)])
    assert read(EdgeList(pairs)) == {(2, 1): 1.0, (1, 2): 1.0, (3, 3): 1.0}
    simple = EdgeList(pairs, directed=False, loops="drop", duplicates="drop")
    assert read(simple) == {(1, 2): 1.0}
    assert read(EdgeList(iter([(2, 1), [4, 3]]), directed=False)) == {(1, 2): 1.0, (3, 4): 1.0}
    assert refused(EdgeList([(1, 2), (1, 2, 3), (1, "secret")])).positions == (1, 2)
    assert "columns" in str(refused(EdgeList(pairs.T)))


@pytest.mark.parametrize("graph", [{(1, 2): 1.0}, b"1 2", 5, None])
def test_what_is_no_list_of_edges(graph: object) -> None:
    assert "no list of edges" in str(refused(EdgeList(graph)))


@pytest.mark.parametrize(
    "options",
    [{"columns": "ab"}, {"columns": ("a",)}, {"columns": ("a", "a")}, {"columns": (1, "a")}, {"directed": 1}],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        EdgeList(nx.Graph(), **options)


def test_columns_of_what_has_none(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("1 2\n")
    for graph in (nx.Graph([(1, 2)]), [(1, 2)], tmp_path / "graph.txt"):
        with pytest.raises(PlanError, match="leave them out"):
            EdgeList(graph, columns=("a", "b")).edges(int)


def test_a_source_of_another_type() -> None:
    error = refused(nx.Graph([(1, 2)]), record_type({"src": INT, "dst": INT, "weight": INT}))
    assert "to_pandas_edgelist" in str(error)


def test_an_edge_list_knows_whether_it_is_directed() -> None:
    for kind in NX_KINDS:
        graph = kind([(1, 2)])
        for data in (graph, graph.edges, graph.edges(data=True), igraph.Graph.from_networkx(graph).es):
            assert EdgeList(data).is_directed == graph.is_directed()
            assert not EdgeList(data, directed=False).is_directed
    for data in ("graph.txt", [(1, 2)], np.zeros((1, 2))):
        assert EdgeList(data).is_directed
        assert not EdgeList(data, directed=False).is_directed


def test_an_edge_list_shows_no_edges() -> None:
    for graph in (nx.Graph([(1234567, 7654321)]), np.array([(1234567, 7654321)]), [(1234567, 7654321)]):
        text = repr(EdgeList(graph, directed=False))
        assert type(graph).__qualname__ in text
        assert "1234567" not in text
    assert repr(EdgeList("a.txt")).startswith("EdgeList('a.txt', directed=None")


# --- where else graphs are taken -------------------------------------------------------------------------------


def test_evaluate_takes_what_protect_takes() -> None:
    edges = wp.source("edges", src=int, dst=int)
    graph = nx.Graph([(2, 1), (3, 2)])
    expected = {(1, 2): 1.0, (2, 3): 1.0}
    for data in (graph, graph.edges, igraph.Graph.from_networkx(graph, vertex_attr_hashable="name").es):
        assert dict(wp.evaluate(edges, {"edges": data})) == expected
    matrix = nx.to_scipy_sparse_array(nx.Graph([(0, 1)]))
    assert dict(wp.evaluate(edges, {"edges": EdgeList(matrix, directed=False)})) == {(0, 1): 1.0}
    assert wp.simulate(edges.noisy_count(1, over=[(1, 2)]), {"edges": graph}, seed=1).simulated
    with wp.Session() as session:
        session.protect(edges, graph.edges, budget=10**7)
        answers = session.release(edges.noisy_count(10**6, over=[(1, 2), (2, 1), (2, 3)]))
    assert np.round(answers.values, 3).tolist() == [1.0, 0.0, 1.0]  # false alarm: 3 exp(-1000)


def test_graphs_are_written_as_their_edges_are(tmp_path: Path) -> None:
    edges = [(3, 2), (2, 1)]
    graph, path = nx.Graph(edges), tmp_path / "graph.txt"
    for data in (graph, graph.edges, igraph.Graph.TupleList(edges), np.array(edges)):
        write_edges(data, path)
        assert set(read_edges(path, directed=False)) == {(1, 2), (2, 3)}


def test_no_graph_library_is_imported_before_a_graph_is_offered() -> None:
    script = (
        "import sys, wpinq as wp, wpinq.graphs\n"
        "edges = wp.source('edges', src=int, dst=int)\n"
        "wp.evaluate(edges, {'edges': [(1, 2)]})\n"
        "assert not {'networkx', 'igraph', 'pandas', 'polars', 'pyarrow'} & set(sys.modules), sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
