"""Edge lists: what is read, what is refused with which line, and what is written."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wpinq.data import EdgeList
from wpinq.errors import PlanError, SourceRejected
from wpinq.graphs.edges import read_edges, write_edges


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.txt"


def refused(path: Path, content: bytes | str | None = None, **options: Any) -> SourceRejected:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceRejected) as caught:
        read_edges(path, **options)
    return caught.value


@pytest.mark.parametrize(
    "content",
    [
        b"1\t2\n3\t4\n",
        b"1 2\n3 4",
        b"\xef\xbb\xbf1 2\n3 4\n",
        b"1 2\r\n3 4\r\n",
        b"1 2\r3 4\r",
        b"# Nodes: 4 Edges: 2\n# From\tTo\n1\t2\n3\t4\n",
        b"%% a graph\n  % more\n1 2\n\n \t\n3 4\n\n",
        b"\xef\xbb\xbf# caf\xe9 in Latin-1\n1 2\n3 4\n",
        b"  1   2  \n3    4\n",
        b"1 2 0.5 1082040961\n3\t4\tx\ty\n",
        b"+1 2\n03 4\n",
    ],
)
def test_edge_lists_of_every_make(path: Path, content: bytes) -> None:
    for packed in (content, gzip.compress(content)):
        path.write_bytes(packed)
        assert read_edges(path) == [(1, 2), (3, 4)]


def test_gzip_is_told_by_content_and_may_have_several_members(tmp_path: Path) -> None:
    path = tmp_path / "facebook.gz"
    path.write_bytes(gzip.compress(b"1 2\n") + gzip.compress(b"3 4\n"))
    assert read_edges(path) == [(1, 2), (3, 4)]


def test_extreme_integers_and_an_empty_graph(path: Path) -> None:
    path.write_text(f"{-(2**63)} {2**63 - 1}\n")
    assert read_edges(path) == [(-(2**63), 2**63 - 1)]
    path.write_text("# nothing\n")
    assert read_edges(path) == []


def test_names(path: Path) -> None:
    path.write_text("Zoë Bo\nAnn\tBo\n1 01\n")
    assert read_edges(path, node=str) == [("Zoë", "Bo"), ("Ann", "Bo"), ("1", "01")]
    assert read_edges(path, node=str, directed=False) == [("Bo", "Zoë"), ("Ann", "Bo"), ("01", "1")]


EDGES = "1 2\n2 1\n3 3\n1 2\n3 3\n5 4\n"


@pytest.mark.parametrize(
    ("options", "edges"),
    [
        ({}, [(1, 2), (2, 1), (3, 3), (1, 2), (3, 3), (5, 4)]),
        ({"loops": "drop"}, [(1, 2), (2, 1), (1, 2), (5, 4)]),
        ({"duplicates": "drop"}, [(1, 2), (2, 1), (3, 3), (5, 4)]),
        ({"directed": False}, [(1, 2), (1, 2), (3, 3), (1, 2), (3, 3), (4, 5)]),
        ({"directed": False, "duplicates": "drop"}, [(1, 2), (3, 3), (4, 5)]),
        ({"directed": False, "duplicates": "drop", "loops": "drop"}, [(1, 2), (4, 5)]),
    ],
)
def test_options(path: Path, options: dict[str, Any], edges: list[tuple[int, int]]) -> None:
    path.write_text(EDGES)
    assert read_edges(path, **options) == edges
    assert EdgeList(path, **({"duplicates": "keep"} | options)).edges(int) == edges


def test_public_graphs_keep_duplicates_and_protected_ones_refuse_them(path: Path) -> None:
    path.write_text("1 2\n1 2\n")
    assert read_edges(path) == [(1, 2), (1, 2)]
    with pytest.raises(SourceRejected, match="drop duplicates"):
        EdgeList(path).edges(int)


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        ({"loops": "refuse"}, (3, 5)),
        ({"duplicates": "refuse"}, (4, 5)),
        ({"duplicates": "refuse", "loops": "drop"}, (4,)),
        ({"duplicates": "refuse", "loops": "refuse"}, (3, 4, 5)),
        ({"duplicates": "refuse", "directed": False}, (2, 4, 5)),
    ],
)
def test_refused_edges_are_named_by_line(path: Path, options: dict[str, Any], positions: tuple[int, ...]) -> None:
    error = refused(path, "# first line\n" + EDGES, **options)
    assert error.positions == positions
    assert f"at line {', '.join(str(p + 1) for p in positions)}, counted from 1" in str(error)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7777", "fewer than two columns"),
        ("7777,8", "fewer than two columns"),
        ("7777x dst", "not an integer"),
        ("7777 8.0", "not an integer"),
        ("7777 1_000", "not an integer"),
        ("7777 ٣", "not an integer"),
        ("7777 +-3", "not an integer"),
        (f"7777 {2**63}", "outside 64 bits"),
        (f"7777 {'9' * 5000}", "outside 64 bits"),
    ],
)
def test_lines_that_are_no_edges(path: Path, line: str, reason: str) -> None:
    error = refused(path, f"# comment\n1 2\n\n{line}\n3 4\n{line}\n")
    assert error.positions == (3, 5)
    assert reason in str(error)
    assert "2 lines are unfit, at line 4, 6, counted from 1" in str(error)
    assert "7777" not in str(error)
    assert error.__context__ is None


def test_names_that_would_be_torn_or_garbled(path: Path) -> None:
    assert refused(path, "Ann Bo\nAnn Smith\tBo\n", node=str).positions == (1,)
    assert refused(path, b"Ann Bo\nAnn \xff\n", node=str).positions == (1,)
    assert refused(path, "Ann Bo\nAnn\n", node=str).positions == (1,)


def test_files_that_are_no_edge_list(tmp_path: Path, path: Path) -> None:
    assert "there is no file" in str(refused(path))
    assert "is a directory" in str(refused(tmp_path))
    assert "not UTF-8 text" in str(refused(path, "1 2\n".encode("utf-16")))
    assert "not UTF-8 text" in str(refused(path, bytes(range(256))))
    whole = gzip.compress(b"1 2\n" * 1000)
    assert "truncated" in str(refused(path, whole[:-9]))
    assert "truncated" in str(refused(path, whole[:3]))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    assert "damaged" in str(refused(path, bytes(damaged)))
    assert "not a gzip file" in str(refused(tmp_path / "plain.gz", "1 2\n"))


@pytest.mark.parametrize("options", [{"loops": "ignore"}, {"duplicates": None}, {"directed": 1}, {"node": float}])
def test_options_that_do_not_exist(path: Path, options: dict[str, Any]) -> None:
    path.write_text("1 2\n")
    with pytest.raises(PlanError):
        read_edges(path, **options)


@pytest.mark.parametrize("name", ["graph.txt", "graph.txt.gz"])
@pytest.mark.parametrize(
    ("edges", "node"),
    [
        ([(1, 2), (2, 1), (-5, 5), (3, 3), (1, 2)], int),
        ([("Ann", "Bo"), ("é\xad", "x#y"), ("1", "2")], str),
        ([], int),
    ],
)
def test_what_is_written_reads_back(tmp_path: Path, name: str, edges: list[tuple[Any, Any]], node: type) -> None:
    path = tmp_path / name
    write_edges(iter(edges), path)
    assert read_edges(path, node=node) == edges
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_numpy_integers_are_written_as_integers(path: Path) -> None:
    write_edges([(np.int32(1), np.int64(2))], path)
    assert path.read_bytes() == b"1\t2\n"


def test_written_bytes_depend_on_the_edges_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a.txt.gz", tmp_path / "another-name.txt.gz"
    monkeypatch.setattr(time, "time", lambda: 1.0e9)
    write_edges([(1, 2), (2, 3)], first)
    monkeypatch.setattr(time, "time", lambda: 2.0e9)
    write_edges([(1, 2), (2, 3)], second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    "edge",
    [
        (1, 2, 3),
        (1,),
        5,
        "ab",
        (1, True),
        (1, 2.0),
        (1, None),
        (1, 2**63),
        ("a b", "c"),
        ("#a", "c"),
        ("%a", "c"),
        ("\ufeffa", "c"),
        ("", "c"),
        ("a", "b\n"),
        ("a", "b\0"),
        ("a", "\ud800"),
        ("a", 1),
    ],
)
def test_edges_that_would_not_read_back_are_not_written(path: Path, edge: Any) -> None:
    with pytest.raises(SourceRejected) as caught:
        write_edges([edge], path)
    assert caught.value.positions == (0,)
    assert not path.exists()


def test_names_after_integers_are_not_written(path: Path) -> None:
    with pytest.raises(SourceRejected, match="not of type int") as caught:
        write_edges([(1, 2), (3, 4), ("5", "6")], path)
    assert caught.value.positions == (2,)
    assert not path.exists()


def graphs() -> Path:
    """Where the real graphs are: $WPINQ_DATA, or the directory shared/data beside the checkout."""
    given = os.environ.get("WPINQ_DATA")
    folder = (Path(given) if given else Path(__file__).parents[3] / "shared" / "data") / "graphs"
    if not folder.is_dir():
        pytest.skip("no real graphs: set WPINQ_DATA to the directory that holds graphs/")
    return folder


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("ca-GrQc.txt.gz", 5_241, 14_484),
        ("ca-HepTh.txt.gz", 9_875, 25_973),
        ("Caltech36.txt.gz", 769, 16_656),
        ("soc-Epinions1.txt.gz", 75_879, 405_740),
    ],
)
def test_real_graphs(name: str, nodes: int, edges: int) -> None:
    found = read_edges(graphs() / name, directed=False, loops="refuse", duplicates="refuse")
    assert len(found) == edges
    assert len({end for edge in found for end in edge}) == nodes


def test_real_directed_graph() -> None:
    path = graphs() / "soc-Epinions1.directed.txt.gz"
    assert len(read_edges(path, duplicates="refuse")) == 508_837
    assert len(read_edges(path, directed=False, duplicates="drop")) == 405_740


def test_a_table_of_names_and_numbers_is_read_as_names() -> None:
    path = graphs() / "ca-self-loops.tsv"
    assert len(read_edges(path, node=str, columns=(1, 2))) == 12 + 25 + 32
    assert len(refused(path, columns=(1, 2)).positions) == 10
    assert "or of .tsv (1, 2)" in str(refused(path, node=str))  # it may begin with names of columns
