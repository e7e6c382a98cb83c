"""Tables of Delta, Iceberg and ibis, as their own libraries have them, and lists of Arrow's batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset

import wpinq as wp
from tests.support.declared import declared
from wpinq.data import EdgeList, read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, Type, record_type

EDGE = record_type({"src": INT, "dst": INT})
TABLE = pa.table({"note": ["a", "b", "c"], "dst": [2, 3, 2], "src": [1, 2, 1]})
DELETED = pa.table({"note": ["gone"], "dst": [9], "src": [9]})
EDGES = {(1, 2): 2.0, (2, 3): 1.0}

needs_library = "is no dependency of wpinq, nor of its tests"


def read(data: Any, type_: Type = EDGE) -> dict[Any, float]:
    return dict(read_source(data, declared(type_, cap=100)).items())


def check(data: Any) -> None:
    """Read, again, as edges, with an unfit value."""
    assert read(data) == read(data) == EDGES
    assert EdgeList(data, columns=("src", "dst"), duplicates="drop").edges(int) == [(1, 2), (2, 3)]
    assert wp.evaluate(wp.source("edges", src=int, dst=int), {"edges": data}) == EDGES
    with pytest.raises(SourceRejected, match="field 'src'") as caught:
        read(data, record_type({"src": STR, "dst": INT}))
    assert "gone" not in str(caught.value)


def check_schema(data: Any) -> None:
    """Propose a declaration."""
    assert {"note: str", "src: int", "dst: int"} <= {*wp.schema(data, "t").text[len("source t(") : -2].split(", ")}


def test_a_table_of_delta_is_read_without_what_was_deleted(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason=f"deltalake {needs_library}")
    place = tmp_path / "table.parquet"
    deltalake.write_deltalake(str(place), TABLE)
    deltalake.write_deltalake(str(place), DELETED, mode="append")
    table = deltalake.DeltaTable(str(place))
    table.delete("src = 9")
    assert len(list(place.glob("*.parquet"))) > len(table.file_uris())
    check(table)
    check_schema(table)
    check(table.to_pyarrow_dataset())
    assert read(table.to_pyarrow_dataset().scanner()) == EDGES
    raw = dataset.dataset(str(place), format="parquet", exclude_invalid_files=True)
    for folder in (raw, place, place / "*.parquet", *place.glob("*.parquet")):
        with pytest.raises(SourceRejected, match="part of a table of Delta"):
            read(folder)


@pytest.mark.filterwarnings("ignore")  # of pyiceberg and of its catalogue
def test_a_table_of_iceberg_is_read_without_what_was_deleted(tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason=f"pyiceberg {needs_library}")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=TABLE.schema)
    for rows in (TABLE, DELETED):
        table.append(rows)
    table.delete("src == 9")
    check(table)
    check_schema(table)
    check(table.scan())
    check_schema(table.scan())
    assert read(table.scan(row_filter="src > 1")) == {(2, 3): 1.0}
    assert read(table.scan().to_arrow()) == read(table.scan().to_arrow_batch_reader()) == EDGES
    place = Path(table.location().removeprefix("file://"))
    for folder in (place, place / "data"):
        with pytest.raises(SourceRejected, match="part of a table of Iceberg"):
            read(folder)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what ibis asks DuckDB by
def test_a_table_of_ibis_is_read_by_its_stream() -> None:
    ibis = pytest.importorskip("ibis", reason=f"ibis {needs_library}")
    connection = ibis.duckdb.connect()
    connection.con.execute(
        "CREATE TABLE edges AS SELECT * FROM (VALUES ('a', 2, 1), ('b', 3, 2), ('c', 2, 1)) AS t(note, dst, src)"
    )
    edges = connection.table("edges")
    check(edges)
    check_schema(edges)
    assert read(edges.filter(edges.src > 1)) == {(2, 3): 1.0}
    check(ibis.memtable(TABLE.to_pandas()))


def test_lists_of_batches_and_of_tables_are_one_table() -> None:
    check(TABLE.to_batches(max_chunksize=1))
    check(tuple(TABLE.to_batches(max_chunksize=2)))
    assert read([TABLE, *TABLE.to_batches()]) == {(1, 2): 4.0, (2, 3): 2.0}
    assert read(DELETED.slice(1).to_batches()) == {}
    assert read([DELETED.slice(1)]) == {}


def test_other_lists_are_rows() -> None:
    for unlike in ([TABLE, TABLE.drop(["src"])], [TABLE.to_batches()[0], (1, 2)], [TABLE.to_pandas()]):
        with pytest.raises(SourceRejected):
            read(unlike)
    renamed, floats = TABLE.rename_columns(["a", "b", "c"]), TABLE.set_column(1, "dst", pa.array([2.0, 3.0, 2.0]))
    for other in (renamed, TABLE.select(["src", "dst", "note"]), floats):
        with pytest.raises(SourceRejected, match="differ in the names, the order or the types of their columns"):
            read([*TABLE.to_batches(), *other.to_batches()])
    assert read([(1, 2)]) == {(1, 2): 1.0}
