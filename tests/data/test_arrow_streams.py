"""Sources that give an Arrow stream, whatever library they are of: each is read like the table that it streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from wpinq.data import EdgeList, read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, Type, record_type

EDGE = record_type({"src": INT, "dst": INT})
TABLE = pa.table({"note": ["a", "b", "c"], "dst": [2, 3, 2], "src": [1, 2, 1]})
EDGES = {(1, 2): 2.0, (2, 3): 1.0}


class Foreign:
    """What another library may offer: nothing but the stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, batch in enumerate(TABLE.to_batches(max_chunksize=2)):
        parquet.write_table(pa.Table.from_batches([batch]), tmp_path / f"{number}.parquet")
    return tmp_path


def read(data: object, type_: Type = EDGE) -> dict[Any, float]:
    return dict(read_source(data, declared(type_, cap=100)).items())


STREAMS: list[Callable[[Path], Any]] = [
    lambda folder: Foreign(TABLE),
    lambda folder: dataset.dataset(folder),
    lambda folder: dataset.dataset(TABLE),
    lambda folder: dataset.dataset(folder).scanner(),
    lambda folder: dataset.dataset(folder).scanner(columns=["dst", "src"]),
]


@for_each("stream", STREAMS)
def test_a_stream_is_read_as_the_table_that_it_gives_and_can_be_again(
    stream: Callable[[Path], Any], folder: Path
) -> None:
    data = stream(folder)
    assert read(data) == read(data) == EDGES
    assert wp.evaluate(wp.source("edges", src=int, dst=int), {"edges": data}) == EDGES
    told = EdgeList(data, columns=("src", "dst"), duplicates="drop")
    assert told.edges(int) == [(1, 2), (2, 3)]


def test_only_the_rows_that_a_dataset_or_a_scanner_chooses_are_read(folder: Path) -> None:
    chosen = dataset.field("src") > 1
    assert read(dataset.dataset(folder).filter(chosen)) == {(2, 3): 1.0}
    assert read(dataset.dataset(folder).scanner(filter=chosen)) == {(2, 3): 1.0}


@for_each("stream", STREAMS)
def test_an_unfit_value_is_refused_by_its_place(stream: Callable[[Path], Any], folder: Path) -> None:
    texts = record_type({"src": STR, "dst": INT})
    with pytest.raises(SourceRejected, match="field 'src'") as refused:
        read(stream(folder), texts)
    assert refused.value.positions == (0, 1, 2)


def test_the_columns_of_a_dataset_and_of_a_scanner_are_declared(folder: Path) -> None:
    whole = dataset.dataset(folder)
    assert wp.schema(whole, "edges").text == "source edges(note: str, dst: int, src: int);"
    assert wp.schema(whole.scanner(columns=["src", "dst"]), "edges").text == "source edges(src: int, dst: int);"


def test_a_scanner_that_gives_its_rows_once_is_refused_when_it_is_offered_again() -> None:
    once = dataset.Scanner.from_batches(iter(TABLE.to_batches()), schema=TABLE.schema)
    assert read(once) == EDGES
    with pytest.raises(SourceRejected, match="cannot be read"):
        read(once)


def test_a_stream_that_fails_halfway_is_refused_without_its_words() -> None:
    def batches() -> Any:
        yield from TABLE.to_batches()
        raise ValueError("the salary of Ann is 7")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(SourceRejected) as refused:
        read(Foreign(reader))
    assert "Ann" not in str(refused.value)
    assert refused.value.__context__ is None
