"""Files of Matrix Market, METIS, Pajek, GML and GraphML, against the libraries."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.parameters import for_each, sizes

pytest.importorskip("networkx", reason="graphs are made and read by networkx")
pytest.importorskip("igraph", reason="graphs are made and read by igraph")
import igraph
import networkx as nx
import numpy as np
import scipy.io
import scipy.sparse

import wpinq as wp
from wpinq.data import EdgeList, read_source
from wpinq.data.graphs import formats_of
from wpinq.errors import PlanError, SourceRejected
from wpinq.graphs import read_edges

Pairs = list[tuple[Any, Any]]


def canonical(pairs: Pairs, directed: bool) -> Counter[tuple[Any, Any]]:
    return Counter(pairs if directed else [tuple(sorted(pair)) for pair in pairs])


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path: Path, content: str | bytes, **options: Any) -> str:
    """The words of a refusal, which name the file and nothing in it."""
    written(path, content)
    with warnings.catch_warnings(record=True) as told, pytest.raises(SourceRejected) as caught:
        read_edges(path, **options)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert told == []
    said = str(caught.value).replace(str(path), "")
    assert "secret" not in said and "7777" not in said
    return said


# --- fifty graphs, written by one library and read by another ----------------------------------------------------


def metis(graph: Any, path: Path, kind: str) -> None:
    """Write a graph of networkx as METIS, with the sizes and weights of its kind."""
    sizes, weights, valued = (digit == "1" for digit in f"{kind:0>3}")
    lines = ["% made", f"{len(graph)} {graph.number_of_edges()} {kind}".rstrip()]
    for node in graph:
        before = ["5"] * sizes + ["2"] * weights
        ends = [word for end in graph[node] for word in ([str(end + 1), "7"] if valued else [str(end + 1)])]
        lines.append(" ".join(before + ends))
    path.write_text("\n".join(lines) + "\n")


def matrix_market(graph: Any, path: Path, how: str) -> None:
    matrix = nx.to_scipy_sparse_array(graph, dtype=int)
    symmetry = "general" if graph.is_directed() else "symmetric"
    field = "pattern" if how == "pattern" else "integer"
    scipy.io.mmwrite(path, scipy.sparse.coo_matrix(matrix), field=field, symmetry=symmetry)


# name of the file -> how a graph of nodes from 0 is written there, and what is added to its nodes
FORMATS: dict[str, tuple[Callable[[Any, Path], Any], int]] = {
    "a.mtx": (lambda graph, path: matrix_market(graph, path, "pattern"), 1),
    "b.mtx": (lambda graph, path: matrix_market(graph, path, "integer"), 1),
    "a.graph": (lambda graph, path: metis(graph, path, ""), 1),
    "b.metis": (lambda graph, path: metis(graph, path, "1"), 1),
    "c.graph": (lambda graph, path: metis(graph, path, "011"), 1),
    "d.graph": (lambda graph, path: metis(graph, path, "111"), 1),
    "a.net": (lambda graph, path: igraph.Graph.from_networkx(graph).write_pajek(str(path)), 1),
    "a.gml": (nx.write_gml, 0),
    "b.gml": (lambda graph, path: igraph.Graph.from_networkx(graph).write_gml(str(path)), 0),
    "a.graphml": (nx.write_graphml, 0),
    "a.ncol": (lambda graph, path: nx.write_weighted_edgelist(graph, path), 0),
    "a.edgelist": (lambda graph, path: nx.write_edgelist(graph, path, data=False), 0),
    "b.edgelist": (lambda graph, path: nx.write_edgelist(graph, path, delimiter="\t"), 0),
}


@pytest.mark.parametrize("many", sizes(50, 400))
def test_graphs_are_read_as_they_were_written(many: int, tmp_path: Path) -> None:
    draw, names = random.Random(5), list(FORMATS)
    for i in range(many):
        name = names[i % len(names)]
        write, first = FORMATS[name]
        directed = draw.random() < 0.5 and not name.endswith((".graph", ".metis"))
        graph = nx.gnp_random_graph(draw.randrange(1, 30), draw.random() * 0.3, seed=i, directed=directed)
        nx.set_edge_attributes(graph, 1, "weight")
        path = tmp_path / name
        write(graph, path)
        told = directed if name.endswith((".ncol", ".edgelist")) or (directed and name.endswith(".mtx")) else None
        expected = canonical([(a + first, b + first) for a, b in graph.edges()], directed)
        assert Counter(read_edges(path, directed=told)) == expected, (name, i)
        if i % 5 == 0:
            assert EdgeList(path, directed=told).is_directed == directed
            kept = read_source(EdgeList(path, directed=told), wp.source("e", a=int, b=int).plan.operator)
            assert dict(kept.items()) == dict(expected)
            assert set(read_edges(path, directed=False, duplicates="drop")) == set(canonical(list(expected), False))


def test_other_readers_find_the_same(tmp_path: Path) -> None:
    """What networkx, igraph and scipy read themselves, where they read it right."""
    for seed in range(6):
        graph = nx.gnm_random_graph(12, 20, seed=seed, directed=bool(seed % 2))
        for name in ("a.gml", "b.gml", "a.graphml", "a.net"):
            path, (write, first) = tmp_path / name, FORMATS[name]
            write(graph, path)
            found = Counter(read_edges(path))
            other = igraph.Graph.Read(str(path), format={"net": "pajek"}.get(path.suffix[1:], path.suffix[1:]))
            ids = other.vs["id"] if "id" in other.vs.attributes() else range(first, 12 + first)
            pairs = [(int(ids[a]), int(ids[b])) for a, b in other.get_edgelist()]
            assert found == canonical(pairs, other.is_directed()), name
            if name == "a.graphml":
                assert found == canonical(list(nx.read_graphml(path, node_type=int).edges()), graph.is_directed())
            if name == "a.gml":
                assert found == canonical(list(nx.read_gml(path, label="id").edges()), graph.is_directed())
        matrix_market(graph, path := tmp_path / "a.mtx", "pattern")
        matrix = scipy.io.mmread(path)
        both = list(zip((matrix.row + 1).tolist(), (matrix.col + 1).tolist(), strict=True))
        expected = canonical(both, True) if graph.is_directed() else Counter(set(canonical(both, False)))
        assert Counter(read_edges(path, directed=graph.is_directed())) == expected


def test_names_of_nodes(tmp_path: Path) -> None:
    names = ["Zoë", "O'Neill", "Ann Lee", 'a"b', "x & y", "<z>", "#tag", "9"]
    graph = nx.Graph([(names[i], names[i + 1]) for i in range(len(names) - 1)])
    expected = canonical(list(graph.edges()), False)
    nx.write_gml(graph, tmp_path / "g.gml")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    for name in ("g.gml", "g.graphml"):
        assert Counter(read_edges(tmp_path / name, node=str)) == expected, name
    plain = igraph.Graph([(0, 1), (1, 2)])
    plain.vs["name"] = ["Zoë", "Ann Lee", "9"]
    plain.write_pajek(str(tmp_path / "g.net"))
    text = (tmp_path / "g.net").read_text()
    assert '"Ann Lee"' in text
    assert read_edges(tmp_path / "g.net", node=str) == [("Ann Lee", "Zoë"), ("9", "Ann Lee")]
    assert read_edges(written(tmp_path / "h.net", "*vertices 2\n1 Zoë 0.1 0.2\n2 Bo\n*edges\n1 2 5\n"), node=str) == [
        ("Bo", "Zoë")
    ]
    assert read_edges(written(tmp_path / "g.graph", "2 1\n2\n1\n"), node=str) == [("1", "2")]
    blank = "*vertices 2\n1 a\u00a0b\n2 b\u2028\n*arcs\n1 2\n"
    assert read_edges(written(tmp_path / "i.net", blank), node=str) == [("a\u00a0b", "b\u2028")]
    kept = 'GRAPH [ NODE [ id 1 label "Node" ] NODE [ id 2 label "edge" ] EDGE [ SOURCE 1 TARGET 2 ] ]'
    assert read_edges(written(tmp_path / "i.gml", kept), node=str) == [("Node", "edge")]


# --- small files of the forms of public ones ---------------------------------------------------------------------

MM = "%%MatrixMarket matrix coordinate "
FORMS = {
    "METIS with weights": ("g.graph", "4 4 1\n2 5 3 1\n1 5 3 1\n1 1 2 1 4 2\n3 2\n", {}, 4),
    "METIS, ended by a node without neighbours": ("g.graph", "3 1\n2\n1\n\n", {}, 1),
    "symmetric pattern": ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 1\n3 3\n", {}, 3),
    "general pattern": (
        "g.mtx",
        "%%MatrixMarket matrix coordinate pattern general\n% a\n3 3 3\n2 1\n1 2\n3 1\n",
        {"directed": True},
        3,
    ),
    "weights": (
        "g.mtx",
        "%%MatrixMarket matrix coordinate integer general\n3 3 3\n2 1 3\n1 2 1\n3 1 2\n",
        {"directed": True, "columns": (1, 2)},
        3,
    ),
    "a banner of ##": ("g.mtx", "##MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n", {}, 2),
    "a banner of one %, under any name": (
        "g.txt",
        "%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n",
        {},
        2,
    ),
    "an edge list of letters": ("g.edgelist", "a b\na c\nb d\n", {"node": str}, 3),
    "an edge list with comments": ("g.edgelist", "# made\n# today\n0 1\n0 2\n", {}, 2),
    "KONECT": ("g.konect", "% asym posweighted\n1 2 0.5\n2 1 0.1\n1 3 9\n", {}, 3),
    "ncol": ("g.ncol", "a b 1.5\nc b 2\n", {"node": str, "columns": (1, 2)}, 2),
    "Pajek of Windows": ("g.net", "*Vertices 3\r\n1 \"a\"\r\n\r\n*Arcs\r\n1 2 1\r\n2 3 1\r\n\r\n", {}, 2),
    "Pajek without labels": ("g.txt", "% made\n*Network n\n*Vertices 3\n*Edges\n1 2\n2 3\n", {}, 2),
    "GML with an edge twice": (
        "g.gml",
        "# made\nCreator \"é\"\nVersion 1\ngraph\n[\n node [ id 1 ]\n node [ id 2 ]\n"
        " edge [ source 1 target 2 ]\n edge [ source 1 target 2 ]\n]\n",
        {},
        2,
    ),
    "GML of any case": (
        "g.gml",
        '# "1" wide Node\nGraph [ Directed 1\n Node [ id 1 label "Directed 7 Edge" ] node [ id 2 label "b" ]\n'
        " Edge [ Source 1 target 2 ] edge [ source 2 Target 1 ]\n]\n",
        {},
        2,
    ),
    "Pajek below many comments": ("g.txt", "% made\n" * 20_000 + "*Vertices 3\n*Arcs\n1 2\n2 3\n", {}, 2),
    "columns beyond a pattern": ("g.mtx", MM + "pattern symmetric\n3 3 1\n2 1 5\n", {"columns": (1, 2)}, 1),
    "GraphML without a name space": (
        "g.graphml",
        "<graphml><graph edgedefault='directed'><node id='1'/><node id='2'/><edge source='1' target='2'/>"
        "<edge source='1' target='2'/></graph></graphml>",
        {},
        2,
    ),
    "GraphML in another encoding, it says": (
        "g.graphml",
        "<?xml version='1.0' encoding='cp037'?><graphml><graph edgedefault='directed'><node id='é'/><node id='2'/>"
        "<edge source='é' target='2'/></graph></graphml>",
        {"node": str},
        1,
    ),
}  # fmt: skip


@for_each("case", FORMS)
def test_small_files_of_public_forms(case: str, tmp_path: Path) -> None:
    name, content, options, edges = FORMS[case]
    assert len(read_edges(written(tmp_path / name, content), **options)) == edges
    assert len(read_edges(written(tmp_path / name, b"\xef\xbb\xbf" + content.encode()), **options)) == edges


def test_paths_of_these_formats_are_taken(tmp_path: Path) -> None:
    edges = wp.source("e", a=int, b=int, facts=["unit_weights"])
    for name in ("g.graph", "g.mtx", "g.net", "g.gml", "g.graphml"):
        content = {
            ".graph": "2 1\n2\n1\n",
            ".mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n",
            ".net": "*Vertices 2\n*Edges\n2 1\n",
            ".gml": "graph [ node [ id 1 ] node [ id 2 ] edge [ source 2 target 1 ] ]",
            ".graphml": "<graphml><graph edgedefault='undirected'><node id='1'/><node id='2'/>"
            "<edge source='2' target='1'/></graph></graphml>",
        }[Path(name).suffix]
        assert dict(wp.evaluate(edges, {"e": written(tmp_path / name, content)})) == {(1, 2): 1.0}, name


# --- directedness ------------------------------------------------------------------------------------------------


def test_directedness_follows_the_format_or_is_asked(tmp_path: Path) -> None:
    graph = nx.path_graph(4)
    for name, (write, first) in FORMATS.items():
        if name.endswith((".ncol", ".edgelist")):
            continue
        write(graph, path := tmp_path / name)
        assert not EdgeList(path).is_directed, name
        with pytest.raises(SourceRejected, match="holds an undirected graph"):
            read_edges(path, directed=True)
        assert read_edges(path) == [(i + first, i + first + 1) for i in range(3)]
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    matrix_market(directed, path := tmp_path / "a.mtx", "pattern")
    with pytest.raises(SourceRejected, match="does not say if edges are directed"):
        read_edges(path)
    assert sorted(read_edges(path, directed=True)) == [(1, 2), (2, 1), (2, 3)]
    with pytest.raises(SourceRejected, match="drop duplicates"):
        EdgeList(path, directed=False).edges(int)
    assert sorted(read_edges(path, directed=False, duplicates="drop")) == [(1, 2), (2, 3)]


def test_a_file_that_says_it_is_undirected_is_not_warned_of(tmp_path: Path) -> None:
    source = wp.source("e", a=int, b=int, unit="one undirected edge")
    path = written(tmp_path / "g.graph", "2 1\n2\n1\n")
    with wp.Session() as session:
        session.protect(source, path, budget=1)
    person = wp.source("e", a=int, b=int, person="a", at_most=2)
    with wp.Session() as session, pytest.raises(SourceRejected, match="both directions"):
        session.protect(person, path, budget=1)


# --- what is refused ---------------------------------------------------------------------------------------------

XML = "<graphml><graph edgedefault='undirected'><node id='secret'/><node id='b'/>{}</graph></graphml>"
EDGE = "<edge source='secret' target='b'/>"
BAD = {
    "a dense matrix": ("g.mtx", "%%MatrixMarket matrix array real general\n1 1\n7777\n", {}, "coordinate matrix"),
    "skew": ("g.mtx", MM + "real skew-symmetric\n2 2 1\n2 1 7777\n", {}, "general or symmetric"),
    "weights": ("g.mtx", MM + "real symmetric\n2 2 1\n2 1 7777\n", {}, "columns=(1, 2) leaves weights out"),
    "zeros": ("g.mtx", MM + "real symmetric\n2 2 1\n2 1 0\n", {"columns": (1, 2)}, "zeros are refused"),
    "not square": ("g.mtx", MM + "pattern general\n2 7777 1\n2 5\n", {"directed": True}, "not square"),
    "cut": ("g.mtx", MM + "pattern symmetric\n3 3 2\n2 1\n", {}, "damaged"),
    "too long": ("g.mtx", MM + "pattern symmetric\n3 3 1\n2 1\n3 1\n", {}, "damaged"),
    "cut in a line": ("g.mtx", MM + "pattern symmetric\n3 3 2\n2 1 ", {}, "damaged"),
    "an open end": ("g.mtx", MM + "real symmetric\n3 3 2\n2 1 1\n3 2 11_00", {}, ""),
    "a zero character": ("g.mtx", MM + "pattern symmetric\n3 3 2\n2 1\n3 2\0\n", {}, "no UTF-8 text"),
    "beyond": ("g.mtx", MM + "pattern symmetric\n3 3 1\n7777 1\n", {}, "damaged"),
    "more columns than a pattern has": ("g.mtx", MM + "pattern symmetric\n3 3 1\n2 1 7777\n", {}, "leaves them"),
    "more columns than integers have": ("g.mtx", MM + "integer symmetric\n3 3 1\n2 1 1 7777\n", {}, "more columns"),
    "METIS, one way": ("g.graph", "3 2\n2\n1\n2\n", {}, "n lines of neighbours"),
    "METIS, too few lines": ("g.graph", "3 1\n2\n1", {}, "n lines of neighbours"),
    "METIS, too many": ("g.graph", "2 1\n2\n1\n7777\n", {}, "n lines of neighbours"),
    "METIS, other number": ("g.graph", "2 7777\n2\n1\n", {}, "n lines of neighbours"),
    "METIS, a loop": ("g.graph", "2 1\n1 2\n1\n", {}, "n lines of neighbours"),
    "METIS, another kind": ("g.graph", "2 1 7\n2\n1\n", {}, "damaged"),
    "METIS, names": ("g.graph", "2 1\nsecret\n1\n", {}, "damaged"),
    "METIS, odd digits": ("g.graph", "2 1\n2_0\n1\n", {}, "damaged"),
    "METIS, a weight missing": ("g.graph", "2 1 1\n2 5\n1\n", {}, "n lines of neighbours"),
    "METIS, an edge list": ("g.graph", "1 2\n2 3\n", {}, "columns=(1, 2)"),
    "Pajek, two sections": ("g.net", "*Vertices 3\n*Arcs\n1 2\n*Edges\n2 3\n", {}, "one section"),
    "Pajek, lists": ("g.net", "*Vertices 3\n*Arcslist\n1 2 3\n", {}, "one section"),
    "Pajek, a matrix": ("g.net", "*Vertices 2\n*Matrix\n0 1\n1 0\n", {}, "one section"),
    "Pajek, relations": ("g.net", '*Vertices 2\n*Arcs :1 "secret"\n1 2\n', {}, "one section"),
    "Pajek, two networks": ("g.net", "*Network a\n*Vertices 2\n*Arcs\n1 2\n*Vertices 2\n*Arcs\n", {}, "one network"),
    "Pajek, two kinds of vertices": ("g.net", "*Vertices 3 2\n*Edges\n1 3\n", {}, "damaged"),
    "Pajek, beyond": ("g.net", "*Vertices 2\n*Edges\n1 7777\n", {}, "beyond their number"),
    "Pajek, from 0": ("g.net", "*Vertices 2\n*Edges\n0 1\n", {}, "beyond their number"),
    "Pajek, a vertex twice": ("g.net", "*Vertices 2\n1 a\n1 b\n*Edges\n1 2\n", {}, "a vertex twice"),
    "Pajek, one label of two": ("g.net", "*Vertices 2\n1 a\n2 a\n*Edges\n1 2\n", {"node": str}, "not unique"),
    "Pajek, a label left out": ("g.net", "*Vertices 2\n1 secret\n2\n*Edges\n1 2\n", {"node": str}, "no text"),
    "Pajek, no line of a vertex": ("g.net", "*Vertices 2\n1 secret\n*Edges\n1 2\n", {"node": str}, "no text"),
    "Pajek, half an edge": ("g.net", "*Vertices 2\n*Edges\n1\n", {}, "damaged"),
    "Pajek, an open quote": ("g.net", '*Vertices 2\n1 "secret\n2 b\n*Edges\n1 2\n', {}, "damaged"),
    "GML, no such node": ("g.gml", "graph [ node [ id 1 ] edge [ source 1 target 7777 ] ]", {}, "damaged"),
    "GML, cut": ("g.gml", "graph [ node [ id 1 label \"secret\" ]", {}, "damaged"),
    "GML, two graphs": ("g.gml", "graph [ node [ id 1 ] ]\ngraph [ node [ id 2 ] ]", {}, "damaged"),
    "GML, one label of two": (
        "g.gml",
        'graph [ node [ id 1 label "secret" ] node [ id 2 label "secret" ] edge [ source 1 target 2 ] ]',
        {"node": str},
        "not unique",
    ),
    "GML, deep": ("g.gml", "graph [ a " + "[ b " * 5000, {}, "damaged"),
    "GraphML, names": ("g.graphml", XML.format(EDGE), {}, "declare str nodes"),
    "GraphML, another direction": (
        "g.graphml",
        XML.format(EDGE.replace("/>", " directed='true'/>")),
        {"node": str},
        "damaged",
    ),
    "GraphML, hyperedges": ("g.graphml", XML.format("<hyperedge/>"), {"node": str}, "damaged"),
    "GraphML, edges of any kind": ("g.graphml", XML.replace(" edgedefault='undirected'", "").format(EDGE), {}, "write"),
    "GraphML, edges of another kind": ("g.graphml", XML.replace("'und", "'unsecretd").format(EDGE), {}, "edgedefault"),
    "GML, directed as text": ("g.gml", 'graph [ directed "0" node [ id 7777 ] ]', {}, "another way than by 0 or by 1"),
    "GML, directed twice": ("g.gml", "graph [ directed 0 Directed 1 node [ id 7777 ] ]", {}, "another way than"),
    "GraphML, two graphs": ("g.graphml", XML.format(EDGE)[:-10] + XML.format(EDGE)[9:], {"node": str}, "one graph"),
    "GraphML, a graph inside": (
        "g.graphml",
        XML.format(f"<node id='c'><graph edgedefault='undirected'>{EDGE}</graph></node>"),
        {"node": str},
        "none inside a node",
    ),
    "GraphML, two edges of one id": (
        "g.graphml",
        XML.format(EDGE.replace("/>", " id='e'/>") * 2),
        {"node": str},
        "no two edges of one id",
    ),
    "GraphML, cut": ("g.graphml", XML.format(EDGE)[:-20], {"node": str}, "damaged"),
    "GraphML, expanding": (
        "g.graphml",
        '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "secret"><!ENTITY b "&a;&a;">]>' + XML.format(EDGE),
        {"node": str},
        "a DOCTYPE",
    ),
    "GraphML, fetching": (
        "g.graphml",
        '<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + XML.format(EDGE),
        {"node": str},
        "a DOCTYPE",
    ),
    "GraphML, declared in another encoding": (
        "g.graphml",
        b"<?xml version='1.0' encoding='cp037'?>" + '<!DOCTYPE g><graphml/>'.encode("cp037"),
        {},
        "",
    ),
    "Latin-1": ("g.net", "*Vertices 1\n1 secrét\n*Edges\n".encode("latin-1"), {}, "no UTF-8 text"),
}  # fmt: skip


@for_each("case", BAD)
def test_what_is_not_the_graph_that_it_says_is_refused(case: str, tmp_path: Path) -> None:
    name, content, options, words = BAD[case]
    assert words in refused(tmp_path / name, content, **options)


def test_words_of_networkx_that_quote_the_file_are_not_passed_on(tmp_path: Path) -> None:
    keyed = XML.format(EDGE).replace("<graph ", "<key id='secret7777' for='node' attr.name='w'/><graph ")
    path = written(tmp_path / "g.graphml", keyed)
    with pytest.warns(UserWarning, match="secret7777"):
        nx.read_graphml(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert read_edges(path, node=str) == [("b", "secret")]
    assert told == []


def test_graphs_need_networkx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    assert "pip install" in refused(tmp_path / "g.gml", "graph [ node [ id 1 ] ]")


def test_columns_by_place_of_what_has_none(tmp_path: Path) -> None:
    path = written(tmp_path / "g.gml", "graph [ node [ id 1 ] ]")
    for options in ({"columns": (1, 2)}, {"comments": "#"}):
        with pytest.raises(PlanError, match="leave them out"):
            read_edges(path, **options)
    written(path, MM + "pattern symmetric\n2 2 1\n2 1\n")
    with pytest.raises(PlanError, match="leave them out"):
        read_edges(path, columns=(2, 1))


def test_heads_that_are_none_are_looked_at_in_time_that_grows_with_them() -> None:
    """No sign of a format backtracks without end: these would take hours."""
    pieces = [
        "/**/",
        "graph ",
        "#\n",
        "c\n",
        "%\n",
        "< ",
        '"',
        "# a\n",
        "strict ",
        " \n",
        "graph\n\n",
        "digraph a ",
        "{ ",
    ]
    for piece in pieces:
        text = (piece * 2**16)[: 2**16].encode()
        for start in (b"", b"graph ", b"c a\n", b"/* "):
            assert len(formats_of(start + text, "")) < 4


def test_a_large_matrix_is_read_as_it_is(tmp_path: Path) -> None:
    """Ids up to what its first line says, which is no memory taken."""
    path = written(tmp_path / "g.mtx", MM + f"pattern symmetric\n{10**12} {10**12} 1\n{10**12} 1\n")
    assert read_edges(path) == [(1, 10**12)]
    path = written(tmp_path / "g.net", f"*Vertices {10**12}\n*Edges\n{10**12} 1\n")
    assert read_edges(path) == [(1, 10**12)]
    assert np.iinfo(np.int64).max > 10**12
