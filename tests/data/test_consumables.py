"""What gives its rows once is read once: offered again it is refused, not protected as what is left of it."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import dataset

import wpinq as wp
from tests.support.declared import declared
from wpinq.columns.storage import StoredColumns
from wpinq.data import EdgeList, read_source, rows
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, record_type

EDGE = record_type({"src": INT, "dst": INT})
ROWS = [(1, 2), (2, 3)]
TABLE = pa.table({"src": [1, 2], "dst": [2, 3]})


class Rows:
    """An iterator of somebody's own."""

    def __init__(self) -> None:
        self._rows = iter(ROWS)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self

    def __next__(self) -> tuple[int, int]:
        return next(self._rows)


def cursor() -> Any:
    return sqlite3.connect(":memory:").execute("SELECT 1 AS src, 2 AS dst UNION ALL SELECT 2, 3")


class DescribedAnew:
    """A cursor that makes its description whenever it is asked for, as several drivers do."""

    def __init__(self) -> None:
        self._cursor = cursor()
        self.execute, self.fetchmany = self._cursor.execute, self._cursor.fetchmany

    @property
    def description(self) -> list[tuple[Any, ...]]:
        return list(self._cursor.description)


ONE_SHOT: dict[str, Callable[[], Any]] = {
    "a generator": lambda: (row for row in ROWS),
    "an iterator": Rows,
    "an Arrow reader": lambda: TABLE.to_reader(),
    "a cursor": cursor,
    "a cursor described anew": DescribedAnew,
}


def read(data: object, cap: int = 10) -> dict[Any, float]:
    held = read_source(data, declared(EDGE, cap=cap))
    assert isinstance(held, StoredColumns)
    return dict(held.items())


@pytest.mark.parametrize("kind", ONE_SHOT)
def test_it_is_refused_the_second_time(kind: str) -> None:
    offered = ONE_SHOT[kind]()
    assert read(offered) == dict.fromkeys(ROWS, 1.0)
    with pytest.raises(SourceRejected, match="gives its rows once and was read already"):
        read(offered)
    assert read(ONE_SHOT[kind]()) == dict.fromkeys(ROWS, 1.0)


@pytest.mark.parametrize("kind", ONE_SHOT)
def test_so_it_is_after_a_refusal_that_read_rows(kind: str) -> None:
    offered = ONE_SHOT[kind]()
    with pytest.raises(SourceRejected, match="above the cap"):
        read(offered, cap=1)
    with pytest.raises(SourceRejected, match="was read already"):
        read(offered)


def test_in_an_edge_list_too() -> None:
    offered = (row for row in ROWS)
    assert EdgeList(offered).edges(int) == ROWS
    with pytest.raises(SourceRejected, match="was read already"):
        read(EdgeList(offered))


def test_a_generator_that_somebody_else_read_to_its_end_is_refused() -> None:
    offered = (row for row in ROWS)
    assert list(offered) == ROWS
    with pytest.raises(SourceRejected, match="was read already"):
        read(offered)


class Foreign:
    """What another library may have around a reader: nothing but the stream."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)


def fetched() -> Any:
    found = cursor()
    found.fetchall()
    return found


EMPTY = TABLE.slice(2)
CONSUMED: dict[str, Callable[[pa.RecordBatchReader], Any]] = {
    "a reader": lambda reader: reader,
    "a scanner": dataset.Scanner.from_batches,
    "a stream of somebody's": Foreign,
    "an iterator": lambda reader: iter(reader.read_all().to_pylist()),
    "a zip": lambda reader: zip(*reader.read_all().to_pydict().values(), strict=True),
    "a cursor": lambda reader: fetched(),
}


@pytest.mark.parametrize("kind", CONSUMED)
def test_what_somebody_else_read_to_its_end_is_refused(kind: str) -> None:
    reader = TABLE.to_reader()
    assert len(reader.read_all()) == 2
    with pytest.raises(SourceRejected, match="without rows may have been read before: make a new one"):
        read(CONSUMED[kind](reader))
    if kind != "a cursor":  # nor is it told from one that had none: that has another form
        with pytest.raises(SourceRejected, match="without rows may have been read before"):
            read(CONSUMED[kind](EMPTY.to_reader()))


def test_a_stream_that_gives_its_rows_once_is_refused_the_second_time() -> None:
    offered = Foreign(TABLE.to_reader())
    assert read(offered) == dict.fromkeys(ROWS, 1.0)
    with pytest.raises(SourceRejected, match="may have been read before"):
        read(offered)
    with pytest.raises(SourceRejected, match="may have been read before"):
        read(EdgeList(Foreign(EMPTY.to_reader())))


def test_tables_without_rows_are_empty(tmp_path: Path) -> None:
    file = tmp_path / "none.csv"
    file.write_text("src,dst\n")
    for offered in (
        [],
        {},
        EMPTY,
        EMPTY.to_batches(),
        EMPTY.to_pandas(),
        duckdb.sql("SELECT 1 AS src, 2 AS dst LIMIT 0"),
    ):
        assert read(offered) == {}
    assert read(file) == read(EdgeList([])) == {}


def test_a_session_keeps_what_stood_before() -> None:
    edges, offered = wp.source("edges", src=int, dst=int), TABLE.to_reader()
    with wp.Session() as session:
        session.protect(edges, offered, budget=10**6, version="one")
        with pytest.raises(SourceRejected, match="was read already"):
            session.protect(edges, offered, budget=10**6, version="two")
        answers = session.release(edges.select(lambda e: e.src).noisy_count(10**5, over=[1, 2]))
        assert [round(value) for value in answers.values] == [1, 1]


def test_a_session_takes_a_reader_after_a_release() -> None:
    people = wp.source("people", name=str, number=int)
    table = pa.table({"name": [f"R{i}" for i in range(30_000)], "number": list(range(30_000))})
    pairs = people.join(people, lambda x: x.number // 3, lambda y: y.number // 3, lambda x, y: (x.name, y.number))
    with wp.Session() as session:
        session.protect(people, table, budget=10, version="one")
        session.release(pairs.select(lambda pair: pair[1] % 10).noisy_count(1, over=[3]))
        session.protect(people, table.to_reader(500), budget=10, version="two")


def test_a_refusal_before_a_row_is_read_takes_nothing() -> None:
    reader, executed = TABLE.to_reader(), cursor()
    for offered in (reader, executed):
        with pytest.raises(SourceRejected, match="no column named 'elsewhere'"):
            read_source(offered, declared(record_type({"elsewhere": INT}), cap=10))
        assert read(offered) == dict.fromkeys(ROWS, 1.0)


def test_a_cursor_that_executes_another_query_is_read_again() -> None:
    offered = cursor()
    assert len(read(offered)) == 2
    offered.execute("SELECT 5 AS src, 6 AS dst")
    assert read(offered) == {(5, 6): 1.0}


def test_what_can_be_read_again_is(tmp_path: Any) -> None:
    for offered in (ROWS, TABLE, duckdb.sql("SELECT 1 AS src, 2 AS dst"), dict.fromkeys(ROWS, 1.0)):
        assert read(offered) == read(offered)


def test_no_object_is_kept_for_it() -> None:
    read(row for row in ROWS)
    gc.collect()
    before = len(rows._begun)
    offered = (row for row in ROWS)
    read(offered)
    assert len(rows._begun) == before + 1
    del offered
    gc.collect()
    assert len(rows._begun) == before


@pytest.mark.parametrize("unfinished", ["a result", "a reader"])
def test_a_relation_whose_connection_is_not_free_says_so(unfinished: str) -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT range + 4711 AS src, range AS dst FROM range(100000)")
    if unfinished == "a result":
        connection.execute("SELECT * FROM range(100000)").fetchone()
    else:
        reader = connection.sql("SELECT * FROM range(100000)").to_arrow_reader(10)
        reader.read_next_batch()
    with pytest.raises(SourceRejected, match="its connection has an unfinished result: fetch that to its end") as error:
        read(relation, cap=10**6)
    assert "4711" not in str(error.value)
    assert (error.value.__cause__, error.value.__context__) == (None, None)
    connection.complete() if unfinished == "a result" else reader.close()
    assert len(read(relation, cap=10**6)) == 100_000
