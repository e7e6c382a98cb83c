"""Files as people have them: read for what they are, or refused with the name of what they are and the mend."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from wpinq.cli.main import main
from wpinq.data import CsvFile, EdgeList, read_source
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import DATE, DURATION, INT, STR, TIMESTAMP, ListOf, TupleOf, Type, record_type

EDGE = record_type({"src": INT, "dst": INT})
MOMENT = record_type({"at": TIMESTAMP})
SPAN = record_type({"span": DURATION})


def read(data: Any, type_: Type = EDGE) -> dict[Any, float]:
    return dict(read_source(data, declared(type_, cap=100)).items())


def refused(data: Any, type_: Type = EDGE) -> str:
    with pytest.raises(SourceRejected) as caught:
        read(data, type_)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    return str(caught.value)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- csv with other delimiters ------------------------------------------------------------------------------------


@for_each("sign", [";", "\t", "|"])
def test_another_delimiter_is_named_and_read_where_it_is_said(sign: str, tmp_path: Path) -> None:
    path = written(tmp_path / "g.csv", f'src{sign}note{sign}dst\n1{sign}"a{sign}b"{sign}2\n1{sign}x, y{sign}2\n')
    mend = f"delimiter={sign!r}"
    assert mend in refused(path)
    with pytest.raises(SourceRejected, match="between fields") as caught:
        wp.schema(path)
    assert mend in str(caught.value)
    told = CsvFile(path, delimiter=sign)
    assert read(told) == {(1, 2): 2.0}
    assert wp.schema(told).text == "source g(src: str, note: str, dst: str);"
    assert "field 'src': text that is not of type int" in refused(CsvFile(written(path, "src;dst\nx;2\n"), ";"))


def test_a_csv_file_of_any_name_is_one_where_that_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "export", gzip.compress(b"src,dst\n1,2\n"))
    assert read(CsvFile(path)) == {(1, 2): 1.0}
    assert os.fspath(CsvFile(path)) == str(path)
    with wp.Session() as session:
        session.protect(wp.source("one", src=int, dst=int), path_of := CsvFile(path), budget=1)
        with pytest.warns(wp.errors.WpinqWarning, match="the same data as 'one'"):
            session.protect(wp.source("two", src=int, dst=int), path_of, budget=1)


@for_each("sign", ["", ",,", '"', "\n", "\r", "\0", None])
def test_what_cannot_stand_between_fields_is_no_delimiter(sign: Any) -> None:
    with pytest.raises(PlanError, match="one character between fields"):
        CsvFile("g.csv", sign)


# --- tsv ------------------------------------------------------------------------------------------------------------


def test_a_tsv_file_that_names_the_fields_is_a_table(tmp_path: Path) -> None:
    path = written(tmp_path / "g.tsv", "note\tdst\tsrc\na b\t2\t1\n\t2\t1\n")
    assert read(path) == {(1, 2): 2.0}
    assert wp.schema(path).text == "source g(note: str, dst: str, src: str);"
    rates = record_type({"id": INT, "rate": STR})
    assert read(written(path, "id\trate\n1\t.1\n"), rates) == {(1, ".1"): 1.0}
    packed = written(tmp_path / "g.tsv.gz", gzip.compress(b"src\tdst\n1\t2\n"))
    assert read(packed) == {(1, 2): 1.0}
    visits = wp.source("visits", page=str, person="user", at_most=1)
    people = written(tmp_path / "people.tsv", "user\tpage\n1\ta\n1\tb\n2\ta\n")
    assert sum(wp.evaluate(visits, {"visits": people}).values()) == 2.0
    assert EdgeList(path.with_name("edges.tsv"), columns=("a", "b")).columns == ("a", "b")
    written(tmp_path / "edges.tsv", "b\ta\n2\t1\n")
    assert EdgeList(tmp_path / "edges.tsv", columns=("a", "b")).edges(int) == [(1, 2)]


def test_no_text_stands_for_null(tmp_path: Path) -> None:
    path = written(tmp_path / "g.csv", "id,rate\n1,\\x01\n2,\x01\n3,NULL\n")
    expected = {(1, "\\x01"): 1.0, (2, "\x01"): 1.0, (3, "NULL"): 1.0}
    assert read(path, record_type({"id": INT, "rate": STR})) == expected
    edges = written(tmp_path / "g.txt", "x1\ty1\n\x01\ty2\n")
    assert EdgeList(edges).edges(str) == [("x1", "y1"), ("\x01", "y2")]
    assert read(edges, record_type({"src": STR, "dst": STR})) == {("x1", "y1"): 1.0, ("\x01", "y2"): 1.0}


def test_by_place_only_where_nothing_names_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "g.tsv", "1\t2\n2\t3\n")
    assert read(path) == {(1, 2): 1.0, (2, 3): 1.0}
    with pytest.raises(SourceRejected, match="the two fields of an edge list"):
        wp.schema(path)
    # one of the names alone names no edge
    assert "no column named 'dst'" in refused(written(path, "src\tto\n1\t2\n"))


NAMES = record_type({"one": STR, "two": STR})


@for_each(
    "text",
    [
        "one\ttwo\t1\nx\ty\t1\n",
        "1\t2\tone\ttwo\n1\t2\tx\ty\n",
        "\none\ttwo\nx\ty\n",
        "\ufeff\r \t\r\none\ttwo\r\nx\ty",
        "two\t2024\tone\ny\t1\tx\n",
    ],
)
def test_a_first_line_with_the_names_of_the_fields_is_no_edge(text: str, tmp_path: Path) -> None:
    for name in ("g.tsv", "g.tsv.gz"):
        content = text.encode()
        path = written(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
        assert read(path, NAMES) == read(EdgeList(path), NAMES) == {("x", "y"): 1.0}
    told = written(tmp_path / "g.csv", text.replace("\t", ","))
    assert read(told, NAMES) == {("x", "y"): 1.0}


def test_without_names_of_fields_a_first_line_may_be_a_record(tmp_path: Path) -> None:
    path, nameless = written(tmp_path / "g.tsv", "ann\tbob\ncat\tdan\n"), TupleOf((None, None), (STR, STR))
    assert "EdgeList(path, columns=(1, 2))" in refused(path, nameless)
    assert read(CsvFile(path, "\t"), nameless) == {("cat", "dan"): 1.0}
    assert read(EdgeList(path, columns=(1, 2)), nameless) == {("ann", "bob"): 1.0, ("cat", "dan"): 1.0}
    assert "EdgeList(path, columns=(1, 2))" in refused(written(path, "ann\tbob\t1\n"), NAMES)
    assert "no column named 'one', 'two'" in refused(EdgeList(path), NAMES)
    assert "EdgeList(path, columns=(1, 2))" in refused(path, TupleOf((None, None), (STR, INT)))


# --- ends of lines, byte order marks ------------------------------------------------------------------------------


@for_each(
    "text",
    ["src,dst\r1,2\r2,3\r", "src,dst\r\n1,2\r\n2,3\r\n", "src,dst\n1,2\r2,3\r\n", "\ufeffsrc,dst\r1,2\r2,3"],
)
def test_ends_of_lines_are_alike_for_the_schema_and_the_data(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "g.csv", text)
    assert wp.schema(path).record == record_type({"src": STR, "dst": STR})
    assert read(path) == {(1, 2): 1.0, (2, 3): 1.0}


def test_a_program_may_begin_with_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = written(
        tmp_path / "p.wpq", "\ufeffsource edges(src: int, dst: int);\nvar n = edges.NoisyCount(1, over: [(1, 2)]);\n"
    )
    assert main(["explain", str(program)]) == 0
    assert "NoisyCount" in capsys.readouterr().out


# --- pipes ----------------------------------------------------------------------------------------------------------


def piped(path: Path, content: bytes, use: Callable[[Path], Any]) -> Any:
    """What `use` makes of a pipe of this content."""
    os.mkfifo(path)

    def write() -> None:
        with open(path, "wb") as file:
            try:
                file.write(content)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return use(path)
    finally:
        writer.join()


def test_pipes_of_text_are_read_once_and_those_of_parquet_are_refused(tmp_path: Path) -> None:
    rows = b"src,dst\n" + b"1,2\n" * 50_000
    assert piped(tmp_path / "a.csv", rows, read_all) == {(1, 2): 50_000.0}
    assert piped(tmp_path / "b.csv.gz", gzip.compress(rows), read_all) == {(1, 2): 50_000.0}
    assert piped(tmp_path / "c.txt", b"1 2\n", read) == {(1, 2): 1.0}
    assert piped(tmp_path / "d.tsv", b"1\t2\n", read) == {(1, 2): 1.0}
    assert "starts with column names" in piped(tmp_path / "e.csv", b"a,b\n1,2\n", refused)
    os.mkfifo(tmp_path / "f.parquet")  # nobody writes into it, and it is not opened
    assert "is a pipe, which is read once" in refused(tmp_path / "f.parquet")


def test_a_pipe_gives_its_rows_once() -> None:
    with pipe(b"1 2\n2 3\n") as path:
        edges = EdgeList(path)
        assert edges.is_directed and edges.facts == ("unit_weights",)  # said before it is read
        assert edges.edges(int) == [(1, 2), (2, 3)]
        assert "gives nothing, or was read before" in refused(edges)
    with pipe(b"src,dst\n1,2\n") as path:
        with pytest.raises(SourceRejected, match="is a pipe, which is read once"):
            wp.schema(CsvFile(path))
        assert read(CsvFile(path)) == {(1, 2): 1.0}
        assert "gives nothing, or was read before" in refused(CsvFile(path))
    assert EdgeList("/dev/null").edges(int) == []


def test_no_schema_of_a_pipe_is_asked_for(tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv", "a.parquet"):
        os.mkfifo(tmp_path / name)  # opened, it would wait for who writes into it
        with pytest.raises(SourceRejected):
            wp.schema(tmp_path / name)


@contextlib.contextmanager
def pipe(content: bytes) -> Iterator[str]:
    """The path of a pipe of this content, as that of standard input is."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


def read_all(path: Path) -> dict[Any, float]:
    return dict(read_source(path, declared(EDGE, cap=10**6)).items())


# --- what is not read ---------------------------------------------------------------------------------------------


@for_each(
    ("name", "format_", "mend"),
    [
        ("a.jsonl", "JSON", "duckdb.read_json(path)"),
        ("a.json.gz", "JSON", "duckdb.read_json(path)"),
        ("a.xlsx", "a spreadsheet", "pandas.read_excel(path)"),
        ("a.db", "a database of SQLite", "sqlite3.connect(path).execute("),
        ("a.feather", "Arrow", "pyarrow.feather.read_table(path)"),
        ("a.csv.bz2", "another compression than gzip", "what is in it"),
    ],
)
def test_a_file_of_another_format_is_named_for_what_it_is(name: str, format_: str, mend: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, "secret")
    for said in (refused(path), schema_refused(path)):
        assert f"says {format_}, which is not read: offer {mend}" in said
        assert "secret" not in said


def schema_refused(path: Path) -> str:
    with pytest.raises(SourceRejected) as caught:
        wp.schema(path)
    return str(caught.value)


def test_the_command_line_names_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = written(
        tmp_path / "p.wpq", "source edges(src: int, dst: int);\nvar n = edges.NoisyCount(1, over: [(1, 2)]);\n"
    )

    def run(file: str, content: str | bytes, *more: str) -> int:
        path = written(tmp_path / file, content)
        ledger = str(tmp_path / f"{file}.db")
        given = ["--source", f"edges={path}", "--budget", "edges=1", "--ledger", ledger]
        return main(["run", str(program), *given, *more])

    assert run("a.jsonl", "{}") == 2
    assert "says JSON, which is not read: offer duckdb.read_json(path)" in capsys.readouterr().err
    assert run("a.csv", "src;dst\n1;2\n") == 4
    assert "--delimiter ';'" in capsys.readouterr().err
    assert run("b.csv", "src;dst\n1;2\n", "--delimiter", "edges=;") == 0
    assert run("c.dat", "src,dst\n1,2\n", "--delimiter", "edges=,") == 0
    assert run("d.tsv", "src\tdst\n1\t2\n") == 0
    assert run("e.tsv", "1\t2\n") == 2
    (tmp_path / "_delta_log").mkdir()
    parquet.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "f.parquet")
    assert run("f.parquet", (tmp_path / "f.parquet").read_bytes()) == 4
    assert "deltalake.DeltaTable(path).to_pyarrow_dataset()" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["schema", str(tmp_path / "b.csv"), "--delimiter", ";"]) == 0
    assert "source b(src: str, dst: str);" in capsys.readouterr().out


def test_a_connection_is_no_result() -> None:
    connection = sqlite3.connect(":memory:")
    assert "a connection has no rows: offer connection.execute(" in refused(connection)
    assert read(connection.execute("SELECT 1 AS src, 2 AS dst")) == {(1, 2): 1.0}
    assert "execute a query first" in refused(duckdb.connect())


# --- parquet --------------------------------------------------------------------------------------------------------


@for_each(("unit", "microseconds"), [("s", 3_000_000), ("ms", 3000), ("us", 3)])
def test_durations_in_parquet_count_in_their_unit(unit: str, microseconds: int, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"span": pa.array([3, None], pa.duration(unit))}), path)
    assert wp.schema(path).text == "source d(span: duration);"
    assert read(path, record_type({"span": DURATION.with_nullable()})) == {(microseconds,): 1.0, (None,): 1.0}
    said = refused(path, record_type({"span": INT}))
    assert "declare datetime.timedelta and take F.cast(x, int) in queries, the microseconds" in said


def test_nanoseconds_are_whole_microseconds_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"span": pa.array([3000, 5001], pa.duration("ns"))}), path)
    assert "row 1, counted from 0. Reasons: field 'span': a duration finer than microseconds" in refused(path, SPAN)
    pl.DataFrame({"span": [dt.timedelta(milliseconds=2)]}).write_parquet(path)
    assert read(path, SPAN) == {(2000,): 1.0}


def test_without_pyarrow_they_are_the_integers_that_parquet_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"span": pa.array([3], pa.duration("ns"))}), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read(path, record_type({"span": INT})) == {(3,): 1.0}
    assert "which reads microseconds: of another unit, multiply x before" in refused(path, SPAN)


def test_files_whose_durations_count_in_other_units_are_of_two_schemas(tmp_path: Path) -> None:
    for unit in ("ms", "us"):
        parquet.write_table(pa.table({"span": pa.array([1], pa.duration(unit))}), tmp_path / f"{unit}.parquet")
    assert "differ in the names, the order or the types" in refused(tmp_path, SPAN)


def test_durations_inside_of_a_list_are_no_integers(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    table = pa.table({"spans": pa.array([[1]], pa.list_(pa.duration("ns"))), "duration": [{"duration": 1}]})
    parquet.write_table(table, path)
    assert "not of type" in refused(path, record_type({"spans": ListOf(INT)}))
    assert wp.schema(path, "d").text == "source d(spans: list[duration], duration: (duration: int));"
    assert read(path, record_type({"duration": record_type({"duration": INT})})) == {((1,),): 1.0}


def int96(path: Path, values: list[int | None], type_: Any) -> Path:
    parquet.write_table(pa.table({"at": pa.array(values, type_)}), path, use_deprecated_int96_timestamps=True)
    return path


def test_moments_of_int96_are_whole_microseconds_or_refused(tmp_path: Path) -> None:
    path = int96(tmp_path / "a.parquet", [1000, 10**18 + 1], pa.timestamp("ns"))
    assert "row 1, counted from 0. Reasons: field 'at': a moment finer than microseconds (1)" in refused(path, MOMENT)
    assert wp.schema(path).text == "source a(at: timestamp);"
    ends = [int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) * 10**6 for year in (1, 9999)]
    nullable = record_type({"at": TIMESTAMP.with_nullable()})
    assert read(int96(path, [*ends, -1, None], pa.timestamp("us")), nullable) == {
        (value,): 1.0 for value in (*ends, -1, None)
    }
    assert read(int96(path, [86_400 * 10**6], pa.timestamp("us")), record_type({"at": DATE})) == {(1,): 1.0}
    assert "not midnight" in refused(int96(path, [1], pa.timestamp("us")), record_type({"at": DATE}))


def test_moments_of_int96_inside_of_lists(tmp_path: Path) -> None:
    lists = record_type({"at": ListOf(TIMESTAMP)})
    path = int96(tmp_path / "a.parquet", [[5000]], pa.list_(pa.timestamp("ns")))  # type: ignore[list-item]
    assert read(path, lists) == {((5,),): 1.0}
    assert "finer" in refused(int96(path, [[5001]], pa.list_(pa.timestamp("ns"))), lists)  # type: ignore[list-item]


def test_names_that_differ_by_case_are_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"src": [1], "SRC": [9], "dst": [2]}), path)
    assert read(path) == {(1, 2): 1.0}
    assert wp.schema(path).text == "source a(src: int, SRC: int, dst: int);"
    assert read(path, record_type({"SRC": INT, "src": INT})) == {(9, 1): 1.0}
    text = written(tmp_path / "a.csv", "SRC,src,dst\n9,1,2\n")
    assert read(text) == {(1, 2): 1.0}
    assert "no column named 'Dst'" in refused(text, record_type({"src": INT, "Dst": INT}))


# --- tables with a log --------------------------------------------------------------------------------------------


@for_each(
    ("log", "name", "mend"),
    [
        ("_delta_log/00000000000000000000.json", "Delta", "DeltaTable(path).to_pyarrow_dataset()"),
        ("metadata/v1.metadata.json", "Iceberg", "pyiceberg"),
        (".hoodie/hoodie.properties", "Hudi", "the frame of Hudi's own reader"),
    ],
)
def test_a_folder_with_the_log_of_a_table_is_refused(log: str, name: str, mend: str, tmp_path: Path) -> None:
    table, inside = tmp_path / "table.parquet", tmp_path / "table.parquet" / "day=1"
    inside.mkdir(parents=True)
    file = inside / "a.parquet"
    parquet.write_table(pa.table({"src": [1], "dst": [2]}), file)
    link = tmp_path / "link.parquet"
    link.symlink_to(file)
    places = (table, inside, file, link, table / "*" / "*.parquet")
    assert read(link) == {(1, 2): 1.0}
    written_log = table / log
    written_log.parent.mkdir()
    written(written_log, "{}")
    for place in places:
        said = refused(place)
        assert mend in said and "deleted rows come back" in said
    with pytest.raises(SourceRejected, match="whose log lists"):
        wp.schema(table)
    files = dataset.dataset(str(file))
    for offered in (files, files.filter(dataset.field("src") == 1), dataset.dataset([files, files])):
        assert f"the dataset is part of a table of {name}" in refused(offered)


def test_a_folder_of_metadata_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    written(tmp_path / "metadata" / "about.json", "{}")
    parquet.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "a.parquet")
    assert read(tmp_path) == {(1, 2): 1.0}


def test_a_path_for_spark_is_looked_at_too(tmp_path: Path) -> None:
    from wpinq.data.files import identities

    (tmp_path / "t.parquet" / "_delta_log").mkdir(parents=True)
    for path in (f"{tmp_path}/t.parquet", f"file:{tmp_path}/t.parquet/", f"{tmp_path}/t.parquet/day=1.parquet"):
        with pytest.raises(SourceRejected, match="whose log lists"):
            identities(path)
