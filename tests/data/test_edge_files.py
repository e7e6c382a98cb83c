"""Text edge lists: their rules, files that may be another graph, and the form that is read."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.cli.main import main
from wpinq.data import EdgeList, read_source
from wpinq.errors import PlanError, SourceRejected, WpinqError
from wpinq.graphs import read_edges, write_edges
from wpinq.graphs.synthesis.method import Bounds
from wpinq.graphs.synthesis.methods import find_method
from wpinq.synthesis import measure_graph

NAMES: dict[str, Any] = {"node": str}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g.txt"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path: Path, content: str | bytes, **options: Any) -> str:
    """The words of a refusal, without the path, of public and of protected edges alike."""
    written(path, content)
    with pytest.raises(WpinqError) as caught:
        read_edges(path, **options)
    assert caught.value.__context__ is None
    node = options.pop("node", int)
    with pytest.raises(WpinqError) as protected:
        read_source(EdgeList(path, **options), wp.source("e", a=node, b=node).plan.operator)
    assert str(protected.value).replace("field 'a'", "field 0") == str(caught.value)
    return str(caught.value).replace(str(path), "")


# --- one number of columns ---------------------------------------------------------------------------------------

ACCEPTED = {
    "a weight in each line": ("1 2 0.5\n3 4 1e3\n", {}, [(1, 2), (3, 4)]),
    "moments behind a tab": ("1\t2\t2020-01-01 10:00\n3\t4\tat noon\n", {}, [(1, 2), (3, 4)]),
    "an empty column between tabs": ("1\t2\tx\n3\t4\t\n", {}, [(1, 2), (3, 4)]),
    "blanks at ends": ("1 2 \n3 4\n 5   6\n", {}, [(1, 2), (3, 4), (5, 6)]),
    "blanks and tabs in each line": ("1 2\t.5 108\n3 4\t1 109\n", {}, [(1, 2), (3, 4)]),
    "columns told": ("9 1 2\n9 3 4\n", {"columns": (2, 3)}, [(1, 2), (3, 4)]),
    "columns told in the other order": ("9 1 2\n9 3 4\n", {"columns": (3, 2)}, [(2, 1), (4, 3)]),
    "columns that come and go": ("1 2 5\n3 4\n5 6 7 8\n", {"columns": (1, 2)}, [(1, 2), (3, 4), (5, 6)]),
    "columns apart, and several blanks": ("1 9 2\n3  9 4\n", {"columns": (1, 3)}, [(1, 2), (3, 4)]),
    "another sign": ("! a\n! b\n1 2\n", {"comments": "!"}, [(1, 2)]),
    "data of networkx": ("1 2 {}\n3 4 {}\n", {}, [(1, 2), (3, 4)]),
    "data of networkx, some empty": ("1 2 {}\n3 4 {'w': 1}\n", {"columns": (1, 2)}, [(1, 2), (3, 4)]),
    "names in quotes": ('"Ann Lee" "O""x"\nBo "a, b;"\n', NAMES, [("Ann Lee", 'O"x'), ("Bo", "a, b;")]),
    "names in quotes, with tabs": ('"Ann Lee"\tBo\n', NAMES, [("Ann Lee", "Bo")]),
    "names told by place": ("a b 1\nb c 2\n", {"columns": (1, 2), **NAMES}, [("a", "b"), ("b", "c")]),
    "names with quotes inside of the line": ("O'Neill Bo\n", NAMES, [("O'Neill", "Bo")]),
    "titles that are told to be nodes": ("from to\na b\n", {"columns": (1, 2), **NAMES}, [("from", "to"), ("a", "b")]),
    "a title beside a node": ("from Ann\nto Bo\n", NAMES, [("from", "Ann"), ("to", "Bo")]),
    "hashtags, told": ("#a #b\n#b #c\nx y\n#c #d\n", {"comments": "", **NAMES}, 4),
    "hashtags below, told": ("x y\n#c #d\n", {"comments": "%", **NAMES}, 2),
    "comments that look like edges, told": ("#a #b\nx y\n", {"comments": "#", **NAMES}, 1),
    "comments that look like edges, of integers": ("#a #b\n1 2\n", {}, 1),
    "sizes, told": ("4 3\n1 2\n2 3\n3 4\n", {"columns": (1, 2)}, 4),
    "no sizes, for there are more nodes": ("3 3\n1 2\n2 3\n3 5\n", {}, 4),
    "one edge": ("5 0\n", {}, 1),
    "no sizes of a matrix, for an id is larger": ("1 2 1\n2 3 1\n", {}, 2),
    "weights and moments": ("1 2 0.5 100\n3 4 1.5 200\n", {}, [(1, 2), (3, 4)]),
    "weights and moments of KONECT": ("% asym\n1 2 5 100\n3 4 1 200\n", {}, [(1, 2), (3, 4)]),
    "names with tabs, and numbers": ("Ann\tBo\t.5\t1\nBo\tC\t1\t1e3\n", NAMES, [("Ann", "Bo"), ("Bo", "C")]),
    "no sizes, for more lines follow": ("4 3\n1 2\n2 3\n1 3\n1 4\n", {}, 5),
    "KONECT, directed": ("% asym positive\n% 2 2 2\n2 1 1\n1 2 3\n", {}, [(2, 1), (1, 2)]),
    "KONECT, undirected": ("% sym unweighted\n2 1 \n3 1 \n", {}, [(1, 2), (1, 3)]),
    "KONECT, taken as undirected": ("% asym unweighted\n2 1\n", {"directed": False}, [(1, 2)]),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_edge_lists_in_text(path: Path, line_end: str) -> None:
    for case, (content, options, edges) in ACCEPTED.items():
        found = read_edges(written(path, content.replace("\n", line_end)), **options)
        assert (len(found) if isinstance(edges, int) else found) == edges, case


REFUSED = {
    "a comment below": ("1 2\n# y\n2 3\n", {}, "line 2, counted from 1. Reasons: a comment below the first edge"),
    "a hashtag below": ("x y\n#c #d\n", NAMES, "comments='%'"),
    "a comment below, behind blanks": ("1 2\n  % y\n", {}, "a comment below the first edge"),
    "a comment below, and other columns": ("9 1 2\n# 1 2\n", {"columns": (2, 3)}, "a comment below the first edge"),
    "a comment below, and names": ("9 a b\n# a b\n", {"columns": (2, 3), **NAMES}, "a comment below the first edge"),
    "hashtags above": ("#a #b\n#b #c\nx y\n#c #d\n", NAMES, "comments or edges: say comments='#'"),
    "hashtags alone": ("#a #b\n#b #c\n", NAMES, "comments or edges"),
    "more columns": ("1 2\n3 4 5\n", {}, "line 2, counted from 1. Reasons: another number of columns"),
    "fewer columns": ("1\t2\t3\n3\t4\n", {}, "another number of columns"),
    "fewer columns, and two blanks": ("1 2 3 .5\n3  4 5\n", {}, "another number of columns"),
    "fewer columns, and a blank at the end": ("1 2 3\n3 4 \n", {}, "another number of columns"),
    "more columns than blanks at the end": ("1 2 \n3 4 5\n", {}, "another number of columns"),
    "too few for those told": ("1 2 3\n3 4\n", {"columns": (1, 3)}, "fewer than 3 columns"),
    "neighbours": ("1 2 3\n2 3\n3\n", {}, "networkx.read_adjlist"),
    "METIS": ("7 9 1\n1 2 3 4\n2 1\n", {}, "METIS file .graph"),
    "METIS of one width": ("3 3\n2 3\n1 3\n1 2\n", {}, "name METIS .graph"),
    "METIS of one width with a kind": ("3 3 000\n2 3 3\n1 3 3\n1 2 2\n", {}, "name METIS .graph"),
    "sizes": ("4 3\n1 2\n2 3\n3 4\n", {}, "may begin with numbers of nodes and edges"),
    "sizes with tabs": ("5\t5\n1\t2\n2\t3\n3\t4\n4\t5\n5\t1\n", {}, "numbers of nodes and edges"),
    "sizes over blank lines": ("\n4 3\n\n1 2\n \n2 3\n3 4\n\n", {}, "numbers of nodes and edges"),
    "sizes of two": ("3 2\n1 2\n2 3\n", {}, "numbers of nodes and edges"),
    "sizes of one": ("2 1\n1 2", {}, "numbers of nodes and edges"),
    "sizes over larger ids": ("4 3\n100 200\n200 300\n300 400\n", {}, "numbers of nodes and edges"),
    "sizes over names": ("4\t3\nAnn\tBo\nBo\tC\nC\tD\n", NAMES, "numbers of nodes and edges"),
    "sizes over many comments": ("# a\n" * 20_000 + "3 2\n1 2\n2 3\n", {}, "numbers of nodes and edges"),
    "METIS of one width with tabs": ("3\t3\n2\t3\n1\t3\n1\t2\n", {}, "name METIS .graph"),
    "neighbours of one width": ("0 6 5 1\n1 0 6 2\n", {}, "several neighbours"),
    "neighbours of one width with tabs": ("0\t6\t5\t1\n1\t0\t6\t2\n", {}, "several neighbours"),
    "neighbours by name": ("0\t1\t2\n1\t0\t2\n", NAMES, "several neighbours"),
    "two nodes and what is between": ("Ann\tknows\tBo\t.5\nBo\tknows\tC\t1\n", NAMES, "several neighbours"),
    "decimals": (
        "1.0 2.0\n2.0 3.0\n",
        {},
        "lines are unfit, at line 1, 2, counted from 1. Reasons: a node that is not",
    ),
    "sizes of a matrix": ("3 3 3\n1 2 7\n2 3 1\n3 3 3\n", {}, "may begin with numbers of nodes and edges"),
    "a line of titles": ("source\ttarget\n1\t2\n", {}, "line 1, counted from 1. Reasons: names of columns"),
    "a line of any titles": ("here there\n1 2\n", {}, "names of columns"),
    "titles over names": ("from to\na b\n", NAMES, "names of columns"),
    "titles over names, quoted": ('"Source" "Target"\na b\n', NAMES, "names of columns"),
    "titles over names, with ids": ("FromNodeId\tToNodeId\na\tb\n", NAMES, "names of columns"),
    "titles in front of weights": ("Source Target weight\na b 1\n", NAMES, "names of columns"),
    "names with blanks": ("Jean Valjean Bishop Myriel\n", NAMES, "names with blanks"),
    "names with blanks and data": ("Jean Valjean Javert {}\n", NAMES, "names with blanks"),
    "names with a blank between tabs": ("Ann Lee\tBo\tx\nB\tC\ty\n", NAMES, "names with blanks"),
    "a name with a blank, later": ("A\tBo\nAnn Lee\tC\n", NAMES, "a name with a blank"),
    "a comma": ("a, b\nc, d\n", NAMES, "a name with a blank, a bare quote, or at its end , or ;"),
    "a semicolon": ("a; b\n", NAMES, "at its end , or ;"),
    "a bare quote": ('a b"c\n', NAMES, "a bare quote"),
    "a quote that stays open": ('"a b\n', NAMES, "a bare quote"),
    "single quotes": ("'a' 'b'\n", NAMES, "a bare quote"),
    "KONECT, told to be directed": ("% sym unweighted\n2 1\n", {"directed": True}, "an undirected graph"),
    "KONECT of two kinds": ("% bip unweighted\n2 1\n", {"directed": False}, "take out its first line"),
    "names of columns where there are none": ("1 2\n", {"columns": ("a", "b")}, "columns by name are of tables"),
}


@for_each("case", REFUSED)
def test_what_is_refused_with_the_rule_and_the_mend(case: str, tmp_path: Path) -> None:
    content, options, words = REFUSED[case]
    said = refused(tmp_path / "g.txt", content, **options)
    assert words in said
    assert "Valjean" not in said and "Lee" not in said


HEADS = {
    "XML": ("<?xml version='1.0'?>\n<gexf>\n", "networkx.read_gexf"),
    "DOT": ('/* a */ // b\nstrict digraph "G" {\n a -> b;\n}\n', "read_dot"),
    "DOT without a name": ("graph{\n a -- b;\n}\n", "read_dot"),
    "DIMACS": ("c a comment\nc\np edge 3 2\ne 1 2\ne 2 3\n", "columns=(2, 3)"),
    "DIMACS of paths": ("p sp 3 2\na 1 2 5\n", "columns=(2, 3)"),
    "LGL": ("# a\nb 1.0\nc 2\n", "igraph.Graph.Read_LGL"),
    "LGL of numbers": ("# 1\n2 5\n3 1\n", "igraph.Graph.Read_LGL"),
    "LGL without weights": ("# a\nb\nc\n# b\nc\n", "fewer than two columns"),
    "JSON": ('{"nodes": []}\n', "networkx.node_link_graph"),
    "bzip2": (bz2.compress(b"1 2\n"), "is bzip2"),
    "xz": (lzma.compress(b"1 2\n"), "is xz"),
    "zip": (b"", "is zip"),
    "UTF-16": ("1 2\n".encode("utf-16"), "is UTF-16"),
    "UTF-16 without a mark": ("1 2\n".encode("utf-16-le"), "UTF-16"),
    "neighbours of networkx": ("#x.py\n# GMT Sat Nov 28 13:39:56 2026\n# g\n0\t1\n1\t2\n2\t0\n", "read_adjlist"),
    "DIMACS below many comments": ("c a\n" * 20_000 + "p edge 3 2\ne 1 2\n", "columns=(2, 3)"),
    "a part of networkx' adjacency": ("#made\n# today\n1 2 3\n2 4\n3\n4\n", "networkx.read_adjlist"),
}


@for_each("case", HEADS)
def test_other_formats_are_named(case: str, tmp_path: Path) -> None:
    content, words = HEADS[case]
    if case == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as made:
            made.writestr("g.txt", "1 2\n")
        content = packed.getvalue()
    for options in ({}, NAMES):
        with pytest.raises(SourceRejected) as caught:
            read_edges(written(tmp_path / "g.txt", content), **options)
        assert words in str(caught.value)


def test_lists_of_neighbours_of_networkx(tmp_path: Path) -> None:
    uneven = nx.gnp_random_graph(40, 0.1, seed=3, directed=True)
    even = nx.circulant_graph(7, [1, 2], create_using=nx.DiGraph)
    for graph in (uneven, even, nx.complete_graph(3, create_using=nx.DiGraph), nx.path_graph(4)):
        for write in (nx.write_adjlist, nx.write_multiline_adjlist):
            for name in ("g.txt", "g.adjlist"):
                write(graph, tmp_path / name)
                for node in (int, str):
                    with pytest.raises(SourceRejected, match=r"networkx\.read_adjlist"):
                        read_edges(tmp_path / name, node=node)


TITLES = "follower followee, u v, user_id friend_id, vertex1 vertex2, start end, i j, person1 person2, Source ID"


@for_each("titles", TITLES.split(", "))
def test_names_of_columns_are_no_edge(titles: str, tmp_path: Path) -> None:
    for line in (titles, titles.replace(" ", "\t"), '"' + titles.replace(" ", '" "') + '"'):
        assert "names of columns" in refused(tmp_path / "g.txt", f"{line}\nAnn Bo\n", **NAMES)


def test_names_of_fields_are_no_edge(path: Path) -> None:
    source = wp.source("e", one=str, two=str)
    for content in ("one two\nx y\n", "# a\none\ttwo\nx\ty\n", '"one" two 5\nx y 5\n'):
        with pytest.raises(SourceRejected, match="names of columns"):
            wp.evaluate(source, {"e": written(path, content)})
    assert wp.evaluate(source, {"e": written(path, "x y\none two\n")}) == {("x", "y"): 1.0, ("one", "two"): 1.0}


def test_options_of_text_that_make_no_sense(path: Path) -> None:
    written(path, "1 2\n")
    for options in ({"columns": (0, 1)}, {"columns": (1, 1)}, {"columns": (1, "b")}, {"columns": (True, 2)}):
        with pytest.raises(PlanError, match="columns are two names"):
            read_edges(path, **options)
    for comments in ("c", " ", "1", '"', "-", 5, ["#"]):
        with pytest.raises(PlanError, match="comments are the signs"):
            read_edges(path, comments=comments)  # type: ignore[arg-type]
    for offered in ([(1, 2)], nx.Graph([(1, 2)])):
        for options in ({"columns": (1, 2)}, {"comments": "#"}):
            with pytest.raises(PlanError, match="leave them out"):
                read_edges(offered, **options)
    table = written(path.with_name("g.csv"), "a,b\n1,2\n")
    for options in ({"columns": (1, 2)}, {"columns": ("a", "b"), "comments": "#"}):
        with pytest.raises(PlanError, match="leave them out"):
            read_edges(table, **options)


# --- tsv -----------------------------------------------------------------------------------------------------------


def test_a_tsv_file_with_names_is_a_table(tmp_path: Path) -> None:
    path = written(tmp_path / "rates.tsv", 'id\trate\tname\n1001\t.097\ta\n1003\t.1\t"b\tc"\n1001\t.097\ta\n')
    rates = wp.source("rates", id=int, name=str)
    with wp.Session() as session:
        session.protect(rates, path, budget=1)
    assert dict(wp.evaluate(rates, {"rates": path})) == {(1001, "a"): 2.0, (1003, "b\tc"): 1.0}
    assert all(name in str(wp.schema(path)) for name in ("id", "rate", "name"))
    assert EdgeList(path, columns=("id", "name"), duplicates="drop").edges(str) == [("1001", "a"), ("1003", "b\tc")]
    with pytest.raises(SourceRejected, match="names no field: if it is an edge"):
        wp.evaluate(wp.source("e", src=int, dst=int), {"e": path})


def test_a_tsv_file_without_names_is_read_by_place(tmp_path: Path) -> None:
    path, edges = tmp_path / "g.tsv", wp.source("e", src=int, dst=int)
    for content in ("1\t2\n", "# a\tb\n1\t2\n", "1\t2\tx\n"):
        assert dict(wp.evaluate(edges, {"e": written(path, content)})) == {(1, 2): 1.0}
    with pytest.raises(SourceRejected, match="named columns"):  # whether these are nodes it does not say
        read_edges(written(path, "Ann\tBo\n"), node=str)
    assert read_edges(path, node=str, columns=(1, 2)) == [("Ann", "Bo")]


def test_a_csv_file_of_columns_with_blanks(tmp_path: Path) -> None:
    path = written(tmp_path / "strikes.csv", "Airport Name,Origin State\nA B,C D\n")
    assert read_edges(path, node=str, columns=("Airport Name", "Origin State")) == [("A B", "C D")]


# --- what is written reads back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges",
    [
        [("from", "to")],
        [("graph", "[")],
        [("*Vertices", "3")],
        [('a"b', "c")],
        [("a,", "b")],
        [("a", "b;")],
        [("'a'", "b")],
        [("u", "v")],
        [("3", "1"), ("a", "b")],
    ],
)
def test_names_that_would_be_read_otherwise_are_not_written(path: Path, edges: list[tuple[str, str]]) -> None:
    with pytest.raises(SourceRejected, match="at edge 0"):
        write_edges(edges, path)
    assert not path.exists()
    if edges[0][0] in ("from", "graph", "*Vertices", "3"):
        write_edges([("x", "y"), *edges], path)
        assert read_edges(path, node=str) == [("x", "y"), *edges]


# --- the form that is read -------------------------------------------------------------------------------------------

COMMENTS = "; comments begin with # or %"
FORMS = {
    "text": ("g.txt", "# a\n1 2 9\n", {}, "directed edges: columns 1 and 2 of 3, with blanks between" + COMMENTS),
    "tabs": (
        "g.txt",
        "1\t2\n",
        {"directed": False},
        "undirected edges: columns 1 and 2 of 2, with tabs between" + COMMENTS,
    ),
    "told": (
        "g.txt",
        "9 1 2\n",
        {"columns": (3, 2), "comments": ""},
        "directed edges: columns 3 and 2, with blanks between; comments begin with nothing",
    ),
    "nothing": ("g.txt", "", {}, "directed edges: columns 1 and 2 of 2, with blanks between" + COMMENTS),
    "a table": ("g.csv", "a,b\n1,2\n", {"columns": ("a", "b")}, "directed edges: columns 'a' and 'b'"),
    "a graph": ("g.graph", "2 1\n2\n1\n", {}, "undirected edges: METIS, nodes by id, without weights"),
}


@for_each("case", FORMS)
def test_the_form_is_told_on_a_terminal_alone(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content, options, words = FORMS[case]
    path = written(tmp_path / name, content)
    read_edges(path, **options)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    read_edges(path, **options)
    said = f"{path} is read as {words}\n"
    assert capsys.readouterr() == ("", said)
    EdgeList(path, **options).edges(int)
    assert capsys.readouterr() == ("", said)
    with wp.Session() as session:
        session.protect(wp.source("e", a=int, b=int), EdgeList(path, **options), budget=1)
    assert capsys.readouterr() == ("", said)


def test_the_form_is_the_same_of_all_that_a_file_can_hold(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs on the first edge, and on no number of lines, edges, comments or repeats."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = set()
    for content in ("", "1 2\n", "1 2\n" * 9, "# a\n# b\n\n5 6\n7 8\n", "1 2\n  3 4  \n", "% x\n1 2\r\n3 4\r\n"):
        read_edges(written(path, content))
        said.add(capsys.readouterr().err)
    for content in ("1 2 3 4\n2 3\n", "1 2\n2 3\n"):  # of neighbours, as many as the first node has
        read_edges(written(path, content), columns=(1, 2))
        said.add(capsys.readouterr().err.replace("2, with", "2 of 2, with"))
    assert len(said) == 1


def test_the_form_on_the_command_line_comes_before_the_debit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, ledger = tmp_path / "p.wpq", tmp_path / "l.db"
    program.write_text(
        'source edges(src: int, dst: int) with unit = "one edge";\n'
        "var n = edges.Select(e => 0).NoisyCount(1.0, over: [0]);\n"
    )
    graph = written(tmp_path / "g.txt", "! a\n9 1 2\n9 2 3\n")
    told = ["--edge-list", "edges=directed,comments=!", "--columns", "edges=2,3", "--json", "--progress"]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run = ["run", str(program), "--source", f"edges={graph}", "--budget", "edges=5", "--ledger", str(ledger), *told]
    assert main(run) == 0
    out, err = capsys.readouterr()
    form = f"{graph} is read as directed edges: columns 2 and 3, with blanks between; comments begin with !"
    assert form in err.splitlines()
    assert err.index(form) < err.index("s] Source")  # the first step, after the debit
    assert "blanks between" not in out and json.loads(out)["answers"]
    assert b"blanks between" not in ledger.read_bytes()
    written(graph, "1 2\n1 2 3\n")
    assert main([*run[:-6], "--edge-list", "edges=directed"]) == 4
    assert "another number of columns" in capsys.readouterr().err
    with wp.Session(ledger) as session:
        assert session.remaining("edges") == 4


def test_a_graph_that_is_measured_is_read_in_the_form_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A METIS file has all of its nodes, and the form comes after the bill."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    ring = "\n".join(f"{(i - 1) % 9 + 1} {(i + 1) % 9 + 1}" for i in range(9))
    path, said = written(tmp_path / "g.graph", f"9 9\n{ring}\n"), []
    answers = measure_graph(
        path,
        find_method("tbi"),
        epsilon=2,
        bounds=Bounds(nodes=12, degree=8),
        on_bill=lambda bill: said.append(capsys.readouterr().err),
        on_answers=lambda name, table: said.append(capsys.readouterr().err),
    )
    assert list(answers) == ["degree_ccdf", "degree_sequence", "tbi"]
    assert said[:2] == ["", f"{path} is read as undirected edges: METIS, nodes by id, without weights\n"]
    text = written(tmp_path / "g.txt", "! a\n9 1 2\n9 2\n")
    told = ["--columns", "2,3", "--comments", "!", "--epsilon", "1", "--out", str(tmp_path / "o.txt")]
    assert main(["synthesize", str(text), *told]) == 4
    assert "1 line is unfit, at line 3, counted from 1. Reasons: fewer than 3 columns" in capsys.readouterr().err
    table = written(tmp_path / "g.csv", "a,b\n1,2\n")
    assert main(["synthesize", str(table), "--epsilon", "1", "--out", str(tmp_path / "o.txt")]) == 2
    assert "name those of an edge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["--columns", "edges=1,2"], "give --edge-list"),
        (["--columns", "edges=a,b", "--edge-list", "edges=directed"], "in text say 1,2"),
        (["--columns", "edges=1", "--edge-list", "edges=directed"], "takes the names of two columns"),
        (["--edge-list", "edges=directed,comments"], "comments=SIGNS"),
        (["--edge-list", "edges=directed,comments=#,comments=%"], "contradicts or repeats another option"),
    ],
)
def test_a_command_line_that_says_no_form(
    told: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.wpq"
    program.write_text(
        'source edges(src: int, dst: int) with unit = "one edge";\n'
        "var n = edges.Select(e => 0).NoisyCount(1.0, over: [0]);\n"
    )
    graph = written(tmp_path / "g.txt", "1 2\n")
    run = ["run", str(program), "--source", f"edges={graph}", "--budget", "edges=5", "--ledger", str(tmp_path / "l.db")]
    assert main([*run, *told]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "l.db").exists()
