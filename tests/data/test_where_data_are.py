"""Data in databases, buckets and warehouses, by the interfaces that their clients have."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.postgres import Server, postgres_server
from wpinq.data import read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import type_from_annotation

__all__ = ["postgres_server"]

SECRET = "secretvalue"
FIELDS = {"id": int, "name": str | None, "paid": wp.decimal(2), "day": dt.date, "at": dt.datetime}
MOMENT = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "paid": pa.decimal128(38, 9),
        "day": pa.date32(),
        "at": pa.timestamp("us", "Europe/Berlin"),
    }
)
DAY = dt.date(2024, 2, 29)
ROWS = [(1, "a\0b", decimal.Decimal("1.50"), DAY, MOMENT), (300, None, decimal.Decimal("-2.25"), DAY, MOMENT)]
TABLE = pa.table([list(column) for column in zip(*ROWS, strict=True)], schema=SCHEMA)


def read(data: object, **fields: Any) -> dict[Any, float]:
    return dict(read_source(data, declared(type_from_annotation(fields or FIELDS), cap=10**6)).items())


EXPECTED = read(ROWS)


def narrowed(table: pa.Table) -> pa.Table:
    """As Snowflake has it: an integer is as wide as those of its batch need."""
    narrow = pa.int8() if table["id"][0].as_py() < 100 else pa.int16()
    return table.set_column(0, "id", table["id"].cast(narrow))


class Cursor:
    """The interfaces of the clients of Snowflake, BigQuery and Databricks, over made rows."""

    description = tuple((name, None, None, None, None, None, None) for name in SCHEMA.names)

    def __init__(self, table: pa.Table = TABLE) -> None:
        self._table, self._place = table, 0

    def fetch_arrow_batches(self) -> Iterator[pa.Table]:
        return (narrowed(self._table.slice(i, 1)) for i in range(len(self._table)))

    def to_arrow_iterable(self) -> Iterator[pa.RecordBatch]:
        return (batch for batch in self._table.to_batches(max_chunksize=1))

    def fetchmany_arrow(self, size: int) -> pa.Table:
        self._place += size
        return self._table.slice(self._place - size, size)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return [*zip(*self.fetchmany_arrow(size).to_pydict().values(), strict=True)]


def pieces(cursor: Cursor) -> Iterator[pa.Table]:
    return iter(lambda: cursor.fetchmany_arrow(1), cursor.fetchmany_arrow(0))


CLIENTS: dict[str, Callable[[Cursor], Any]] = {
    "Snowflake": Cursor.fetch_arrow_batches,
    "BigQuery": Cursor.to_arrow_iterable,
    "Databricks": pieces,
    "Databricks, all": lambda cursor: cursor.fetchmany_arrow(10),
    "rows of any": lambda cursor: cursor,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_of_warehouses_give_rows(client: str) -> None:
    assert read(CLIENTS[client](Cursor())) == EXPECTED
    with pytest.raises(SourceRejected, match="field 'name': null where str is declared") as caught:
        read(CLIENTS[client](Cursor()), id=int, name=str)
    assert "300" not in str(caught.value)


@pytest.mark.parametrize("client", ["Snowflake", "BigQuery"])
def test_an_iterator_of_batches_is_read_once(client: str) -> None:
    offered = CLIENTS[client](Cursor())
    assert read(offered) == EXPECTED
    with pytest.raises(SourceRejected, match="gives its rows once and was read already"):
        read(offered)
    with pytest.raises(SourceRejected, match="without rows may have been read before"):
        read(CLIENTS[client](Cursor(TABLE.slice(2))))


def failing() -> Iterator[pa.Table]:
    yield TABLE
    raise ValueError(SECRET)


OTHER = TABLE.select(["name", "id", "paid", "day", "at"])
RENAMED = TABLE.rename_columns(["id", "name", "paid", "at", "day"])
DIFFERENT: dict[str, Callable[[], Any]] = {
    "columns in another order": lambda: iter([TABLE, OTHER]),
    "text where there were integers": lambda: iter([TABLE, TABLE.set_column(0, "id", pa.array(["1", "2"]))]),
    "a row after a table": lambda: iter([TABLE, (1, SECRET)]),
    "a client that fails": failing,
    "a client that fails at once": lambda: (int(each) for each in (SECRET,)),
    "a reader of unlike batches": lambda: pa.RecordBatchReader.from_batches(
        SCHEMA, itertools.chain(TABLE.to_batches(), OTHER.to_batches())
    ),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_batches_that_differ_are_refused_without_words_of_others(kind: str) -> None:
    with pytest.raises(SourceRejected) as caught:
        read(DIFFERENT[kind]())
    error = caught.value
    assert SECRET not in f"{error!r}{error.__cause__!r}{error.__context__!r}"
    assert (error.__cause__, error.__context__) == (None, None)


def test_swapped_columns_of_one_type_are_never_taken_by_place() -> None:
    pair = pa.table({"a": [1], "b": [2]})
    swapped = pair.select(["b", "a"])
    reader = pa.RecordBatchReader.from_batches(pair.schema, iter([*pair.to_batches(), *swapped.to_batches()]))
    for offered in (reader, iter([pair, swapped])):
        with pytest.raises(SourceRejected, match="cannot be read"):
            read(offered, a=int, b=int)


PEOPLE = wp.people("p", id=("person", int), visits=wp.table(place=str, at_most=2), cases=wp.table(kind=str, at_most=1))
VISITS = pa.table({"person": [1, 1, 2], "place": ["a", "b", "a"]})


def test_tables_of_people_come_from_iterators_of_batches() -> None:
    def offered() -> Iterator[pa.RecordBatch]:
        return iter(VISITS.to_batches(max_chunksize=1))

    cases = pa.table({"person": [2], "kind": ["x"]})
    held = [
        dict(read_source({"visits": visits, "cases": iter([cases])}, PEOPLE.plan.operator).items())
        for visits in (offered(), VISITS)
    ]
    assert held[0] == held[1] and len(held[0]) == 2


def test_a_view_is_read_when_it_is_protected() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM range(1000) t(a)")
    connection.execute("CREATE VIEW v AS SELECT a % 2 AS a FROM t")
    source = wp.source("t", a=int)
    with wp.Session() as session:
        session.protect(source, connection.view("v"), budget=10**6)
        connection.execute("DELETE FROM t")
        answers = session.release(source.select(lambda row: row.a).noisy_count(10**5, over=[0, 1]))
        assert [round(each) for each in answers.values] == [500, 500]


def extension(name: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    try:
        connection.load_extension(name)
    except duckdb.Error:
        pytest.skip(f"DuckDB's extension {name} is not installed")
    return connection


def sqlite_file(folder: Path) -> Path:
    connection = sqlite3.connect(folder / "t.db")
    connection.execute("CREATE TABLE t (id INTEGER, name TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, None)])
    connection.commit()
    connection.close()
    return folder / "t.db"


def test_an_attached_sqlite_file_is_read(tmp_path: Path) -> None:
    connection = extension("sqlite")
    connection.execute(f"ATTACH '{sqlite_file(tmp_path)}' AS lite (TYPE sqlite, READ_ONLY)")
    assert read(connection.sql("FROM lite.t"), id=int, name=str | None) == {(1, "a"): 1.0, (2, None): 1.0}


def test_sqlite_is_read_by_adbc(tmp_path: Path) -> None:
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="adbc is no dependency of wpinq")
    with adbc.connect(str(sqlite_file(tmp_path))) as connection, connection.cursor() as cursor:
        for fetch in (cursor.fetch_record_batch, lambda: cursor):
            cursor.execute("SELECT * FROM t")
            assert read(fetch(), id=int, name=str | None) == {(1, "a"): 1.0, (2, None): 1.0}


CREATE = "CREATE TABLE t (id bigint, name text, paid numeric(12, 2), day date, at timestamptz)"
VALUES = "INSERT INTO t VALUES (1, 'a', 1.5, '2024-02-29', '2024-02-29 13:30+01'), "
LAST = "(300, NULL, -2.25, '2024-02-29', '2024-02-29 12:30Z')"


@pytest.fixture
def database(postgres_server: Server) -> str:
    name = postgres_server.database()
    postgres_server.execute(CREATE, name)
    postgres_server.execute(VALUES + LAST, name)
    return postgres_server.url(name)


POSTGRES = read([(1, "a", *ROWS[0][2:]), ROWS[1]])


def test_an_attached_postgresql_is_read(database: str) -> None:
    connection = extension("postgres")
    connection.execute(f"ATTACH '{database}' AS pg (TYPE postgres, READ_ONLY)")
    assert read(connection.sql("FROM pg.t")) == POSTGRES


@pytest.mark.parametrize("name", ["", "streamed"])
def test_postgresql_is_read_by_a_cursor(database: str, name: str) -> None:
    import psycopg

    with psycopg.connect(database) as connection, connection.cursor(name) as cursor:
        cursor.execute("SELECT * FROM t")
        assert read(cursor) == POSTGRES
        if not name:  # such a cursor fails when it executes, and not when it is read
            return
        cursor.execute(f"SELECT id, CASE WHEN id < 300 THEN 1 ELSE ('{SECRET}' || id)::int END AS day FROM t")
        with pytest.raises(SourceRejected) as caught:
            read(cursor, id=int, day=int)
        assert SECRET not in f"{caught.value!r}{caught.value.__context__!r}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of DuckDB, for ibis
def test_ibis_that_fails_says_so_without_its_words() -> None:
    ibis = pytest.importorskip("ibis", reason="ibis is no dependency of wpinq")
    connection = ibis.duckdb.connect()
    connection.con.execute(f"CREATE VIEW v AS SELECT CAST(x AS INT) AS a FROM (VALUES ('{SECRET}')) t(x)")
    for offered in (connection.table("v"), ibis.table({"a": "int64"}, name="unbound")):
        with pytest.raises(SourceRejected, match="the table cannot be read, or there is too little memory") as caught:
            read(offered, a=int)
        assert SECRET not in f"{caught.value!r}{caught.value.__context__!r}"


def test_addresses_are_no_paths() -> None:
    for address in ("postgresql://me:secret@host/db", "s3://bucket/folder", "https://host/a.xlsx"):
        with pytest.raises(SourceRejected, match="this is an address") as caught:
            read(address)
        assert "secret" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # of the server and of its client
def test_a_bucket_is_read_through_fsspec_and_arrow() -> None:
    moto = pytest.importorskip("moto.server", reason="moto is no dependency of wpinq, nor of its tests")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is no dependency of wpinq, nor of its tests")
    from pyarrow import fs

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = {"endpoint_url": f"http://{host}:{port}", "region_name": "eu-west-1"}
        files = s3fs.S3FileSystem(key="k", secret=SECRET, client_kwargs=client, skip_instance_cache=True)
        files.mkdir("bucket")
        for year in (2023, 2024):
            with files.open(f"bucket/t/year={year}/part.parquet", "wb") as file:
                parquet.write_table(pa.table({"a": [1, 2]}), file)
        connection = duckdb.connect()
        connection.register_filesystem(files)
        relation = connection.sql("FROM read_parquet('s3://bucket/t/**/*.parquet', hive_partitioning=true)")
        arrow = fs.S3FileSystem(
            access_key="k", secret_key=SECRET, endpoint_override=f"{host}:{port}", scheme="http", region="eu-west-1"
        )
        folders = [dataset.dataset("bucket/t", filesystem=each, partitioning="hive") for each in (files, arrow)]
        expected = {(a, year): 1.0 for a in (1, 2) for year in (2023, 2024)}
        for offered in (relation, *folders):
            assert read(offered, a=int, year=int) == expected
        with files.open("bucket/t/metadata/1.metadata.json", "wb") as file:
            file.write(b"{}")
        for offered in folders:
            with pytest.raises(SourceRejected, match="table of Iceberg, whose log"):
                read(offered, a=int, year=int)
        files.rm("bucket/t/metadata/1.metadata.json")
        files.rm("bucket/t/year=2023/part.parquet")
        for offered in folders:  # DuckDB may have kept the file
            with pytest.raises(SourceRejected, match="cannot be read") as caught:
                read(offered, a=int, year=int)
            assert "bucket" not in str(caught.value) and SECRET not in f"{caught.value!r}{caught.value.__context__!r}"
        with files.open("bucket/u/part.parquet", "wb") as file:
            parquet.write_table(pa.table({"a": [1, 2]}), file)
        with files.open("bucket/u/_delta_log/0.json", "wb") as file:
            file.write(b"{}")
        for each in (files, arrow):
            with pytest.raises(SourceRejected, match="table of Delta, whose log"):
                read(dataset.dataset("bucket/u/part.parquet", filesystem=each), a=int)
    finally:
        server.stop()
