"""Every kind of data becomes the same columns: bit by bit what rows become, wherever they come from."""

from __future__ import annotations

import contextlib
import csv
import datetime
import gc
import gzip
import io
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each, sizes
from wpinq import functions as F
from wpinq.columns import unlinked_file
from wpinq.columns.storage import StoredColumns, opened
from wpinq.data import read_source
from wpinq.data.files import _ROWS
from wpinq.data.rows import _PIECE
from wpinq.errors import SourceRejected
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, Type, record_type, type_from_annotation

THING = record_type(
    {
        "count": INT,
        "size": FLOAT.with_nullable(),
        "name": STR,
        "here": BOOL.with_nullable(),
        "spare": INT.with_nullable(),
    }
)
SECRET = "Wilhelmina-4711"


@contextlib.contextmanager
def one_database() -> Iterator[Any]:
    """The same for all: what one reading leaves behind is in the way of the next."""
    if _OPEN.connection is None:
        _OPEN.connection = _OPEN.stack.enter_context(opened())
    yield _OPEN.connection


class _OPEN:
    stack: ExitStack = ExitStack()
    connection: Any = None


@pytest.fixture(scope="module", autouse=True)
def close_it() -> Iterator[None]:
    yield
    _OPEN.connection = None
    _OPEN.stack.close()


def read(data: object, type_: Type, facts: tuple[str, ...] = ()) -> dict[Any, float]:
    held = read_source(data, declared(type_, unit_weight=2, cap=2**40, facts=facts), one_database)
    assert isinstance(held, StoredColumns)
    found = dict(held.items())
    assert len(held) == len(found)
    assert held.norm == sum(map(Fraction, found.values()))
    return found


def refused(data: object, type_: Type, facts: tuple[str, ...] = ()) -> SourceRejected:
    with pytest.raises(SourceRejected) as caught:
        read(data, type_, facts)
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    return error


def things(number: int, seed: int = 3) -> list[tuple[Any, ...]]:
    """Rows with every edge of their types, often repeated; texts that csv can hold."""
    draw = random.Random(seed)
    counts = [-(2**63), 2**63 - 1, 0, 1, 2**53 + 1]
    sizes = [None, -0.0, 0.0, 0.1, 5e-324, -1.7976931348623157e308, 1e16, 0.30000000000000004]
    names = ["a", "NULL", "é\U0001f600", 'q"uote', "comma,", "line\nbreak", " blank ", "1", "nan"]
    return [
        (
            draw.choice(counts) if draw.random() < 0.3 else draw.randrange(40),
            draw.choice(sizes) if draw.random() < 0.5 else draw.random(),
            draw.choice(names),
            draw.choice([True, False, None]),
            draw.choice([None, 7]),
        )
        for _ in range(number)
    ]


def former(rows: list[tuple[Any, ...]]) -> dict[Any, float]:
    """What rows became before there were columns: counted in Python, each count once made a float."""
    canonical = [tuple(item + 0.0 if isinstance(item, float) else item for item in row) for row in rows]
    return {record: float(count) for record, count in Counter(canonical).items()}


def bits(weights: dict[Any, float]) -> list[str]:
    return sorted(f"{record!r} {weight.hex()}" for record, weight in weights.items())


NAMES = ["count", "size", "name", "here", "spare"]


def arrow(rows: list[tuple[Any, ...]]) -> Any:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(NAMES)
    types = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.int64()]
    table = {name: pa.array(column, type_) for name, column, type_ in zip(NAMES, columns, types, strict=True)}
    return pa.table({"other": pa.array([SECRET] * len(rows)), **dict(reversed(table.items()))})


def parquet_file(rows: list[tuple[Any, ...]], folder: Path) -> Path:
    parquet.write_table(arrow(rows), folder / "things.parquet", row_group_size=100)
    return folder / "things.parquet"


def parquet_folder(rows: list[tuple[Any, ...]], folder: Path) -> Path:
    inside = folder / "many [1]" / "k=1"
    inside.mkdir(parents=True)
    for i in range(0, len(rows), 400):
        parquet.write_table(arrow(rows[i : i + 400]), inside / f"part-{i:05}.parquet")
    (inside / "_started.parquet").write_text("left aside")
    return inside.parent


def parquet_pattern(rows: list[tuple[Any, ...]], folder: Path) -> str:
    return f"{parquet_folder(rows, folder).parent}/*/k=1/p*.parquet"


def csv_text(rows: list[tuple[Any, ...]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["other", *NAMES])
    writer.writerows([SECRET, *row] for row in rows)
    return text.getvalue()


def csv_file(rows: list[tuple[Any, ...]], folder: Path) -> Path:
    (folder / "things.csv").write_text(csv_text(rows), newline="")
    return folder / "things.csv"


def csv_packed(rows: list[tuple[Any, ...]], folder: Path) -> Path:
    (folder / "things.csv.gz").write_bytes(gzip.compress(csv_text(rows).encode()))
    return folder / "things.csv.gz"


def relation(rows: list[tuple[Any, ...]], folder: Path) -> Any:
    return duckdb.connect().from_arrow(arrow(rows))


def cursor(rows: list[tuple[Any, ...]], folder: Path) -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE things (other, count, size, name, spare)")
    connection.executemany("INSERT INTO things VALUES ('x', ?, ?, ?, ?)", [(*row[:3], row[4]) for row in rows])
    return connection.execute("SELECT * FROM things")


KINDS: dict[str, Callable[[list[tuple[Any, ...]], Path], Any]] = {
    "rows": lambda rows, folder: iter(rows),
    "rows by name": lambda rows, folder: [dict(zip(NAMES, row, strict=True)) for row in rows],
    "arrow": lambda rows, folder: arrow(rows),
    "arrow batches": lambda rows, folder: arrow(rows).to_reader(max_chunksize=300),
    "pandas": lambda rows, folder: arrow(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas objects": lambda rows, folder: pd.DataFrame(rows, columns=NAMES, dtype=object),
    "polars": lambda rows, folder: pl.from_arrow(arrow(rows)),
    "polars lazy": lambda rows, folder: pl.from_arrow(arrow(rows)).lazy(),
    "numpy": lambda rows, folder: np.array(rows, dtype=[(name, "O") for name in NAMES]),
    "relation": relation,
    "parquet": parquet_file,
    "parquet folder": parquet_folder,
    "parquet pattern": parquet_pattern,
    "csv": csv_file,
    "csv.gz": csv_packed,
}


@for_each("number", [0, 1, 1000])
@for_each("kind", KINDS)
def test_every_kind_has_the_bits_of_the_former_path(kind: str, number: int, tmp_path: Path) -> None:
    if number == 0 and kind in ("rows", "arrow batches", "parquet folder", "parquet pattern"):
        return  # no file, or none of the rows that are given once: refused
    rows = things(number)
    assert bits(read(KINDS[kind](rows, tmp_path), THING)) == bits(former(rows))


def test_a_cursor_has_the_bits_of_the_former_path(tmp_path: Path) -> None:
    rows = things(1000)
    type_ = record_type({name: THING.elements[NAMES.index(name)] for name in ("count", "size", "name", "spare")})
    assert bits(read(cursor(rows, tmp_path), type_)) == bits(former([(*row[:3], row[4]) for row in rows]))
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        assert "execute a query first" in str(refused(connection.cursor(), type_))


def test_a_cursor_of_duckdb_is_one_of_the_db_api() -> None:
    query = "SELECT i AS \"count\", i / 2 AS size, 'n' || i AS name, NULL AS spare FROM range(250000) AS t(i)"
    type_ = record_type({name: THING.elements[NAMES.index(name)] for name in ("count", "size", "name")})
    with duckdb.connect() as connection:
        found = read(connection.cursor().execute(query), type_)
        assert bits(found) == bits(read(connection.sql(query), type_))
        assert len(found) == 250_000


@for_each("engine", ["duckdb", "reference"])
@for_each("kind", KINDS)
def test_every_kind_is_one_dataset_on_every_engine(kind: str, engine: str, tmp_path: Path) -> None:
    rows = [row for row in things(500) if abs(row[0]) < 100]
    source = wp.source("things", count=int, size=float | None, name=str, here=bool | None, spare=int | None)
    query = source.group_by(lambda r: r.name, lambda group: F.count(group))
    expected = wp.evaluate(query, {"things": rows}, engine)
    assert wp.evaluate(query, {"things": KINDS[kind](rows, tmp_path)}, engine) == expected
    with wp.Session(engine=engine) as session:
        session.protect(source, KINDS[kind](rows, inside(tmp_path)), budget=1e9)
        answers = session.release(query.noisy_count(1e8, over=list(expected)))
        assert np.abs(answers.values - [expected[key] for key in expected]).max() < 1e-3


def inside(folder: Path) -> Path:
    """Another folder."""
    (folder / "again").mkdir()
    return folder / "again"


def test_nested_records_and_lists_in_columns(tmp_path: Path) -> None:
    steps = ListOf(record_type({"n": INT}))
    type_ = type_from_annotation(
        {"at": {"x": int, "y": float | None}, "tags": list[str], "steps": steps, "near": list[list[int]]}
    )
    rows = [
        {"at": {"x": 1, "y": -0.0, "z": "other"}, "tags": ["a", "b"], "steps": [{"n": 1}], "near": [[1], []]},
        {"at": {"x": 1, "y": 0.0, "z": "more"}, "tags": ["a", "b"], "steps": [{"n": 1}], "near": [[1], []]},
        {"at": {"x": 2, "y": None, "z": ""}, "tags": [], "steps": [], "near": []},
    ]
    expected = bits(read(rows, type_))
    table = pa.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "rows.parquet")
    for data in (table, pl.DataFrame(rows), tmp_path / "rows.parquet", duckdb.connect().from_arrow(table)):
        assert bits(read(data, type_)) == expected
    nullable = record_type({"at": type_from_annotation({"x": int}).with_nullable()})
    given = pa.table({"at": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    assert read(given, nullable) == {((1,),): 1.0, (None,): 1.0}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"at": None}, "null where"),
        ({"at": {"x": None}}, "null where int"),
        ({"at": {"x": 2**63}}, "outside 64 bits"),
        ({"tags": [None]}, "null where str"),
        ({"tags": ["a"] * 4}, "a list of more than 3"),
        ({"tags": None}, "null where"),
    ],
)
def test_what_is_unfit_inside_is_found(value: dict[str, Any], reason: str) -> None:
    type_ = type_from_annotation({"at": {"x": int}, "tags": ListOf(STR, bound=3)})
    rows = [{"at": {"x": 1}, "tags": ["a"]}, {"at": {"x": 1}, "tags": ["a"]} | value]
    schema = pa.schema([("at", pa.struct([("x", pa.uint64())])), ("tags", pa.list_(pa.string()))])
    error = refused(pa.Table.from_pylist(rows, schema), type_)
    assert error.positions == (1,)
    assert reason in str(error)


# --- refusals ----------------------------------------------------------------------------------------------------


@for_each("kind", [kind for kind in KINDS if kind != "rows by name"])
def test_a_refusal_has_the_positions_of_rows_and_no_value(kind: str, tmp_path: Path) -> None:
    rows = things(1500)
    for i in (17, 420, 1400):
        rows[i] = (1, 0.5, SECRET, True, 4711)
    type_ = record_type({**dict(zip(NAMES, THING.elements, strict=True)), "name": INT})
    error = refused(KINDS[kind](rows, tmp_path), type_)
    good = {"1"} if kind.startswith("csv") else set()  # text of csv is read by the declared type
    unfit = [i for i, row in enumerate(rows) if row[2] not in good]
    assert error.positions == tuple(unfit[:10])
    assert f"{len(unfit)} rows are unfit" in str(error)
    assert f"({len(unfit)})" in str(error)
    assert "field 'name'" in str(error)
    for value in (SECRET, "4711", "Wilhelmina"):
        assert value not in str(error).replace(str(tmp_path), "")


@for_each("kind", KINDS)
def test_a_breach_of_a_fact_has_the_positions_of_its_rows(kind: str, tmp_path: Path) -> None:
    rows = [(i, 0.5, "a", True, None) for i in range(1200)]
    rows[700] = rows[1100] = rows[3]
    error = refused(KINDS[kind](rows, tmp_path), THING, facts=("unit_weights",))
    assert error.positions == (3, 700, 1100)
    assert "3 rows are unfit" in str(error)


def test_positions_go_on_from_piece_to_piece() -> None:
    rows: list[Any] = [(i, i) for i in range(2 * _PIECE + 5)]
    rows[_PIECE + 1] = rows[2 * _PIECE + 3] = (0, "x")
    edge = record_type({"a": INT, "b": INT})
    assert refused(rows, edge).positions == (_PIECE + 1, 2 * _PIECE + 3)
    rows[_PIECE + 1] = rows[2 * _PIECE + 3] = (0, 0)
    assert refused(rows, edge, facts=("unit_weights",)).positions == (0, _PIECE + 1, 2 * _PIECE + 3)


def test_values_that_a_failing_relation_quotes_are_not_quoted() -> None:
    failing = duckdb.connect().sql(f"SELECT CAST(x AS INT) AS count FROM (VALUES ('1'), ('{SECRET}')) AS t(x)")
    error = refused(failing, record_type({"count": INT}))
    assert SECRET not in str(error)
    schema = pa.schema([("count", pa.int64())])

    def batches() -> Any:
        yield pa.record_batch([pa.array([1])], schema)
        raise ValueError(SECRET)

    assert SECRET not in str(refused(pa.RecordBatchReader.from_batches(schema, batches()), record_type({"count": INT})))


def test_a_relation_is_computed_once() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE SEQUENCE numbers")
    relation = connection.sql("SELECT nextval('numbers') AS x FROM range(10)")
    assert len(read(relation, record_type({"x": INT}))) == 10
    assert connection.sql("SELECT currval('numbers')").fetchall() == [(10,)]


def test_text_that_is_no_utf8_is_refused() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    names = record_type({"name": STR})
    assert "not sound Arrow" in str(refused(pa.table({"name": broken}), names))
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("name", pa.string())]), iter([pa.record_batch({"name": broken})])
    )
    refused(reader, names)


# --- names and paths ---------------------------------------------------------------------------------------------

HOSTILE = ["it's", 'a"b', "*", "?", "[1]", "g0", "c0", "w", "); DROP TABLE x; --", "a b", "é", "--", "held", "staged"]


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "relation", "parquet", "csv"])
def test_columns_of_any_name_stand_beside(kind: str, tmp_path: Path) -> None:
    table = pa.table({**{name: [SECRET, SECRET] for name in HOSTILE}, "x": ["1", "2"], "X": ["3", "4"]})
    if kind == "relation":
        table = table.drop_columns(["X"])
    make: dict[str, Callable[[], Any]] = {
        "arrow": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "pandas": table.to_pandas,
        "relation": lambda: duckdb.connect().from_arrow(table),
        "parquet": lambda: parquet.write_table(table, tmp_path / "x.parquet") or tmp_path / "x.parquet",
        "csv": lambda: table.to_pandas().to_csv(tmp_path / "x.csv", index=False) or tmp_path / "x.csv",
    }
    assert read(make[kind](), record_type({"x": STR})) == {("1",): 1.0, ("2",): 1.0}


@for_each("name", ["it's", "a*b", "q?", "[1]", "a'; DROP TABLE x; --", "s3:x", "é", "a b", "-", "{}"])
@for_each("ending", [".csv", ".parquet", ".csv.gz", ".txt"], every=3)
def test_a_path_means_its_file_and_no_other(name: str, ending: str, tmp_path: Path) -> None:
    path, other = tmp_path / f"{name}{ending}", tmp_path / f"aXb{ending}"
    for file, number in ((path, 1), (other, 99)):
        if ending == ".parquet":
            parquet.write_table(pa.table({"a": [number], "b": [2]}), file)
        elif ending == ".txt":
            file.write_text(f"{number} 2\n")
        else:
            file.write_bytes((gzip.compress if ending == ".csv.gz" else bytes)(f"a,b\n{number},2\n".encode()))
    edge = record_type({"a": INT, "b": INT})
    assert read(path, edge) == {(1, 2): 1.0}
    with contextlib.chdir(tmp_path):
        assert read(f"{name}{ending}", edge) == {(1, 2): 1.0}


@pytest.mark.parametrize(
    "address", ["s3://bucket/x.parquet", "https://example.org/x.csv", "gcs://b/x.txt", "az://b/*.parquet"]
)
def test_addresses_are_refused_with_a_clear_word(address: str) -> None:
    assert "this is an address" in str(refused_path(address))


def refused_path(path: object) -> SourceRejected:
    with pytest.raises(SourceRejected) as caught:
        read(path, record_type({"a": INT, "b": INT}))
    return caught.value


def test_files_of_different_columns_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"a": [1.0], "b": [2]}), tmp_path / "2.parquet")
    assert "differ in the names, the order or the types of their columns" in str(refused_path(tmp_path))
    (tmp_path / "2.parquet").write_bytes(b"PAR1 and no more")
    assert "not a sound parquet file" in str(refused_path(tmp_path))
    assert "no file that matches" in str(refused_path(tmp_path / "x*.parquet"))
    (tmp_path / "empty").mkdir()
    assert "without .parquet files" in str(refused_path(tmp_path / "empty"))


NESTED = {"v": [1], "many": [[1, 2]], "text": ["x"], "pair": [{"a": 1, "b": "x"}], "day": [datetime.date(2020, 1, 2)]}


def test_files_of_several_writers_are_one_table(tmp_path: Path) -> None:
    pl.DataFrame(NESTED).write_parquet(tmp_path / "polars.parquet")
    parquet.write_table(pa.table(NESTED), tmp_path / "pyarrow.parquet")
    duckdb.connect().from_arrow(pa.table(NESTED)).write_parquet(str(tmp_path / "duckdb.parquet"))
    pd.DataFrame(NESTED).to_parquet(tmp_path / "pandas.parquet")
    type_ = type_from_annotation({"v": int, "many": list[int], "text": str, "day": datetime.date})
    assert list(read(tmp_path, type_).values()) == [4.0]
    parquet.write_table(pa.table({**NESTED, "pair": [{"a": 1, "b": 2}]}), tmp_path / "other.parquet")
    with pytest.raises(SourceRejected, match="differ in the names, the order or the types"):
        read(tmp_path, type_)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".txt"])
def test_a_path_with_a_line_feed_is_a_path_where_the_file_exists(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"1,2\n3,4{ending}"
    if ending == ".parquet":
        parquet.write_table(pa.table({"a": [1], "b": [2]}), path)
    else:
        path.write_text("a,b\n1,2\n" if ending == ".csv" else "1 2\n")
    edge = record_type({"a": INT, "b": INT})
    assert read(str(path), edge) == read(path, edge) == {(1, 2): 1.0}
    assert "never its content" in str(refused_path(f"{path}.csv"))


# --- csv ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", sizes(40, 300))
def test_csv_is_what_pythons_reader_reads(many: int, tmp_path: Path) -> None:
    """Whatever stands in the file: the same rows, or a refusal where it refuses."""
    draw, path = random.Random(9), tmp_path / "x.csv"
    pieces = ["a", ",", '"', " ", "\n", "b,", '"a"', '""', ",\n", "\\", "'", "\t", "\r\n", "\r", "#", "é"]
    agreed = Counter[bool]()
    for i in range(many):
        width = draw.choice([1, 2])
        names = ["x", "y"][:width]
        text = ",".join(names) + "\n" + "".join(draw.choice(pieces[: 12 + i % 5]) for _ in range(draw.randrange(1, 10)))
        path.write_text(text, newline="")
        expected: dict[Any, float] | None = None
        with contextlib.suppress(csv.Error):
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row][1:]
            if all(len(row) == width for row in rows):
                expected = former([tuple(item or None for item in row) for row in rows])
        type_ = record_type(dict.fromkeys(names, STR.with_nullable()))
        if expected is None:
            refused(path, type_)
        else:
            assert read(path, type_) == expected, text
        agreed[expected is None] += 1
    assert min(agreed.values()) > many // 10


def test_csv_in_two_kinds_of_lines_is_read_by_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = [f"{i % 1000}\n" for i in range(_ROWS + 10)]
    path.write_text("x\n" + "".join(lines) + "7\r\n", newline="")
    found = read(path, record_type({"x": INT}))
    assert len(found) == 1000
    assert sum(found.values()) == _ROWS + 11
    path.write_text("x\n" + "".join(lines) + "x\r\n7,7\n", newline="")
    error = refused(path, record_type({"x": INT}))
    assert error.positions == (_ROWS + 10, _ROWS + 11)
    assert "not as many fields" in str(error)


@for_each("number", ["1", "+1", "-0", "007", "1.5", ".5", "1.", "1e3", "-1E-3", "5e-324", "1e-999", "0" * 50])
def test_csv_numbers_are_what_python_reads(tmp_path: Path, number: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"x\n{number}\n")
    assert bits(read(path, record_type({"x": FLOAT}))) == bits({(float(number) + 0.0,): 1.0})
    if not set(number) & set(".eE"):
        assert read(path, record_type({"x": INT})) == {(int(number),): 1.0}


def test_csv_floats_are_rounded_correctly(tmp_path: Path) -> None:
    draw, path = random.Random(4), tmp_path / "x.csv"
    numbers = [f"{draw.random() * 10 ** draw.randrange(-300, 300):.{draw.randrange(1, 25)}e}" for _ in range(3000)]
    path.write_text("x\n" + "\n".join(numbers) + "\n")
    assert bits(read(path, record_type({"x": FLOAT}))) == bits(former([(float(text),) for text in numbers]))


# --- where they are held -----------------------------------------------------------------------------------------


def test_protecting_makes_no_python_rows(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(300_000) % 1000, "b": np.arange(300_000) // 7})
    parquet.write_table(table, tmp_path / "edges.parquet")
    edges = wp.source("edges", a=int, b=int)
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1, version="before")  # so that modules are imported
        tracemalloc.start()
        session.protect(edges, tmp_path / "edges.parquet", budget=1, version="now")
        session.release(edges.noisy_count(0.5, over=[(1, 2)]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 6_000_000  # 300,000 hashes, and a copy; as many tuples take five times as much


def test_the_same_data_in_any_order_and_form_are_the_same_version(tmp_path: Path) -> None:
    rows = [(i % 100, (i * i) % 50) for i in range(1000)]
    edges = wp.source("edges", a=int, b=int)
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in reversed(rows)))
    with wp.Session() as session:
        session.protect(edges, rows, budget=1, version="May")
        session.release(edges.noisy_count(0.1, over=[(0, 0)]))  # the columns are shown to the database by now
        session.protect(edges, path, budget=1, version="May")
        for other in (rows[1:], [*rows[1:], (0, 1)], [*rows[1:], rows[1]], []):
            with pytest.raises(wp.SessionError, match="differ from those"):
                session.protect(edges, other, budget=1, version="May")


KILLED = """
import pathlib, sys, time
import wpinq as wp
words = wp.source("words", word=str)
folder = pathlib.Path(sys.argv[1])
session = wp.Session(memory_limit="200MB")
session.protect(words, folder / "words.csv", budget=1)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("small", [True, False])
def test_nothing_can_be_read_after_a_kill(small: bool, tmp_path: Path) -> None:
    offered, temporary = tmp_path / "offered", tmp_path / "temporary"
    offered.mkdir()
    temporary.mkdir()
    (offered / "words.csv").write_text("word\n" + "".join(f"{SECRET}-{i}\n" for i in range(20_000)))
    program = KILLED if small else f"import wpinq.data.files\nwpinq.data.files.SMALL = 0\n{KILLED}"
    environment = dict(os.environ, TMPDIR=str(temporary), PYTHONPATH=os.pathsep.join([".", *sys.path]))
    command = [sys.executable, "-c", program, str(offered)]

    def held_on_disk() -> list[str]:
        """What can be read by name."""
        return [path.name for path in temporary.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (held,) = (
            path
            for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()
            if path.is_file() and SECRET.encode() in path.read_bytes()
        )
        assert held.stat().st_nlink == 0
        assert os.readlink(held).startswith("/dev/shm/") == (small and unlinked_file.has_room())
        assert held_on_disk() == []
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert held_on_disk() == []


def test_nothing_is_written_where_a_database_opens_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    symlink = os.symlink

    def misled(target: str, link: str) -> None:
        symlink(elsewhere if link.endswith("held (deleted)") else target, link)

    numbers = wp.source("numbers", int)
    monkeypatch.setattr(os, "symlink", misled)
    with wp.Session() as session:
        with pytest.raises(wp.SessionError, match="nothing was written: install another version of duckdb"):
            session.protect(numbers, [7] * 1000, budget=1)
        assert duckdb.connect(elsewhere).execute("SHOW ALL TABLES").fetchall() == []


def test_no_folder_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(unlinked_file, "has_room", lambda: False)
    numbers = wp.source("numbers", int)
    with wp.Session() as session:
        session.protect(numbers, [1, 2], budget=1)
        assert [path.name for path in tmp_path.glob("wpinq-*/*")] == ["held (deleted)"]
        with pytest.raises(SourceRejected):
            session.protect(wp.source("others", int), ["a"], budget=1)
    gc.collect()
    assert not [*tmp_path.iterdir()]


def test_what_is_held_is_let_go_of_with_the_session() -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    numbers = wp.source("numbers", int)
    with wp.Session() as session:
        session.protect(numbers, [1, 2], budget=1)
        session.release(numbers.noisy_count(0.5, over=[1]))
        before = open_files()
        for _ in range(5):
            session.protect(numbers, [1, 2], budget=1)
            session.release(numbers.noisy_count(0.01, over=[1]))
        assert open_files() == before
    assert open_files() < before


# --- edge lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", sizes(8, 200))
def test_edge_lists_are_what_python_reads(many: int, tmp_path: Path) -> None:
    """Whatever stands in the file and is to be done with it: the same edges, or the same refusal."""
    draw, path = random.Random(11), tmp_path / "g.txt"
    lines = [
        "1\t2\n",
        "2\t1\n",
        "3\t3\n",
        "1\t2\n",
        "4\t5\n",
        "+6\t-7\n",
        "1\t02\n",
        "8\t9\t10\n",
        "# mid\tfile\n",
        "\n",
    ]
    lines += [
        "1 2\n",
        "a\tb\n",
        '"a"\tb\n',
        "a b\tc\n",
        " 1\t2\n",
        "1\t2\r\n",
        "1\t\t2\n",
        "1\n",
        "9" * 20 + "\t1\n",
        "é\té\n",
    ]
    starts = ["", "# a graph\n", "# one\n% two\n", "\n# after a blank\n", "# \tx\n\n", "\ufeff# x\n", "\ufeff", "#\r\n"]
    outcomes = Counter[bool]()
    for i in range(many):
        node, type_ = draw.choice([(int, INT), (str, STR)])
        chosen = lines[: draw.choice([3, 7, 8, 10, len(lines)])]
        text = draw.choice(starts) + "".join(draw.choice(chosen) + "\n" for _ in range(draw.randrange(8)))
        path.write_text(text if i % 2 else text.replace("\t", " "), newline="")
        policies = ("keep", "drop", "refuse")
        data = wp.EdgeList(path, draw.random() < 0.5, draw.choice(policies), draw.choice(policies))
        facts = draw.choice([(), ("unit_weights",), ("symmetric",)])
        expected: dict[Any, float] | None = None
        with contextlib.suppress(SourceRejected):
            expected = read(data.edges(node), record_type({"u": type_, "v": type_}))
        if expected is None:
            with pytest.raises(SourceRejected) as said:
                data.edges(node)
            named = str(refused(data, record_type({"u": type_, "v": type_})))
            assert named.replace("field 'u'", "field 0").replace("field 'v'", "field 1") == str(said.value)
        else:
            kept: Any = expected
            with contextlib.suppress(SourceRejected):
                kept = None
                kept = read(data.edges(node), record_type({"u": type_, "v": type_}), facts)
            if kept is None:
                refused(data, record_type({"u": type_, "v": type_}), facts)
            else:
                assert read(data, record_type({"u": type_, "v": type_}), facts) == expected, text
        outcomes[expected is None] += 1
    assert min(outcomes.values()) > many // 8
