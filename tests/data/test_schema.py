"""`wp.schema`: what is read of a table or file, what is asked, and that the two lines mean the source that it gives."""

from __future__ import annotations

import datetime
import gzip
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.cli.main import main
from wpinq.data import CsvFile
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    STR,
    TIME,
    TIMESTAMP,
    ListOf,
    decimal,
    record_type,
    tuple_type,
)

TABLE = pa.table(
    {
        "small": pa.array([1, None], pa.int8()),
        "whole": pa.array([1, 2], pa.int64()),
        "large": pa.array([1, 2], pa.uint64()),
        "number": pa.array([1.5, None], pa.float64()),
        "flag": [True, False],
        "name": ["Ann", "Bo"],
        "items": [[1], [2, 3]],
        "at": [{"x": 1, "y": "q"}, {"x": 2, "y": "r"}],
        "day": pa.array([0, 1], pa.date32()),
        "moment": pa.array([0, 1], pa.timestamp("us")),
        "zoned": pa.array([0, 1], pa.timestamp("us", tz="Europe/Rome")),
        "clock": pa.array([0, 1], pa.time64("us")),
        "price": pa.array([Decimal("1.25"), Decimal("2.00")], pa.decimal128(10, 2)),
    }
)
RECORD = record_type(
    {
        "small": INT,
        "whole": INT,
        "large": INT,
        "number": FLOAT,
        "flag": BOOL,
        "name": STR,
        "items": ListOf(INT),
        "at": record_type({"x": INT, "y": STR}),
        "day": DATE,
        "moment": TIMESTAMP,
        "zoned": TIMESTAMP,
        "clock": TIME,
        "price": decimal(2),
    }
)


def parquet_path(folder: Path) -> Path:
    parquet.write_table(TABLE, folder / "table.parquet")
    return folder / "table.parquet"


TABLES: dict[str, Any] = {
    "arrow": lambda _: TABLE,
    "arrow batch": lambda _: TABLE.to_batches()[0],
    "arrow reader": lambda _: TABLE.to_reader(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars, lazy": lambda folder: pl.scan_parquet(parquet_path(folder)),
    "pandas of arrow": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "parquet": parquet_path,
    "parquet as text": lambda folder: str(parquet_path(folder)),
    "duckdb": lambda folder: duckdb.read_parquet(str(parquet_path(folder))),
}


def agree(found: wp.Schema) -> None:
    """The two lines mean the source that the schema gives."""
    built: dict[str, Any] = {"wp": wp, "datetime": datetime}
    exec(found.python, built)
    (declared,) = (value for key, value in built.items() if isinstance(value, wp.Query))
    assert declared == found.source()
    assert list(wp.parse(found.text).sources.values()) == [found.source()]
    assert repr(found).startswith(f"{found.python}\n\n{found.text}\n\n")


@for_each("kind", TABLES)
def test_every_library_says_the_same(kind: str, tmp_path: Path) -> None:
    data = TABLES[kind](tmp_path)
    found = wp.schema(data, "things")
    assert found.record == RECORD
    assert found.record.names == RECORD.names
    assert not found.left_out
    assert any(words.startswith("large: ") for words in found.questions)
    agree(found)


def test_what_is_declared_can_be_protected(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [1.5, 2.5], "d": [True, False]})
    for data in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        source = wp.schema(data, "rows").source(unit="one row of the test", cap=10)
        with wp.Session() as session:
            session.protect(source, data, budget=1)
        assert "protects one row of the test" in str(source.bill(epsilon=1))


def test_kinds_of_pandas_that_do_not_tell() -> None:
    frame = pd.DataFrame(
        {
            "gaps": [1.0, None],
            "thing": pd.Series(["secret", object()], dtype=object),
            "kind": pd.Categorical(["secret", "other"]),
            "whole": pd.array([1, None], "Int64"),
            "flag": pd.array([True, None], "boolean"),
            "name": pd.array(["secret", None], "string"),
            "when": pd.to_datetime(["2020-01-01", None]),
            "span": pd.to_timedelta([1, None], "s"),
        }
    )
    found = wp.schema(frame)
    types = [FLOAT, STR, STR, INT, BOOL, STR, TIMESTAMP, DURATION]
    assert found.record == record_type(dict(zip(frame.columns, types, strict=True)))
    asked = [words.partition(":")[0] for words in found.questions[2:]]
    assert asked == ["gaps", "thing", "kind", "when"]
    assert "null" in found.questions[1]
    assert found.source().plan.type == found.record
    assert not any(type_.nullable for type_ in found.record.elements)
    agree(found)


# --- values are never read -------------------------------------------------------------------------------------


def test_what_is_said_does_not_depend_on_rows(tmp_path: Path) -> None:
    """Other values, other categories, no nulls, no rows: the same words."""

    def frames(rows: int, word: str, gap: Any) -> list[Any]:
        columns = {"n": [gap] * rows, "w": [word] * rows}
        frame = pd.DataFrame(columns).astype({"n": "float64", "w": "category"})
        polars = pl.DataFrame(columns, schema={"n": pl.Int64, "w": pl.Enum([word])})
        arrow = pa.table({"n": pa.array(columns["n"], pa.int64()), "w": pa.array(columns["w"]).dictionary_encode()})
        parquet.write_table(arrow, tmp_path / f"{word}.parquet")
        frame.to_parquet(tmp_path / f"{word}-pandas.parquet")
        return [frame, polars, arrow, tmp_path / f"{word}.parquet", tmp_path / f"{word}-pandas.parquet"]

    one, other = frames(3, "secret", 1), frames(5, "hidden", None)
    for left, right in zip(one, other, strict=True):
        assert repr(wp.schema(left, "data")) == repr(wp.schema(right, "data"))
        assert "secret" not in repr(wp.schema(left, "data"))


def test_of_parquet_the_footer_alone(tmp_path: Path) -> None:
    path = parquet_path(tmp_path)
    whole = path.read_bytes()
    footer = 8 + int.from_bytes(whole[-8:-4], "little")
    rows = len(whole) - 4 - footer
    path.write_bytes(whole[:4] + b"\xff" * rows + whole[-footer:])
    assert wp.schema(path).record == RECORD
    with pytest.raises(SourceRejected, match="not a sound parquet file"):
        wp.schema(truncated(path, whole[:-9]))


def test_a_folder_name_is_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    assert wp.schema(parquet_path(folder)).record == RECORD


def truncated(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("header", [b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa,b\n", b'"a","b"\n', b"a,b"])
def test_of_csv_the_first_line_alone(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(header + (b'1,\xff"secret\n' * 1000 if header.endswith(b"\n") else b""))
    found = wp.schema(path)
    assert found.record == record_type({"a": STR, "b": STR})
    assert found.name == "rows"
    assert "all fields are str" in found.questions[-1]
    agree(found)


def test_of_a_packed_csv_file_what_holds_the_first_line(tmp_path: Path) -> None:
    pack = zlib.compressobj(wbits=31)
    start = pack.compress(b"a,b\n") + pack.flush(zlib.Z_SYNC_FLUSH)  # a file that ends in its middle
    assert wp.schema(truncated(tmp_path / "rows.csv.gz", start)).record == record_type({"a": STR, "b": STR})
    assert wp.schema(truncated(tmp_path / "rows.csv.gz", gzip.compress(b"a\n1\n"))).record == record_type({"a": STR})


def test_names_in_quotes_may_hold_the_end_of_a_line(tmp_path: Path) -> None:
    found = wp.schema(truncated(tmp_path / "rows.csv", b'a,"b\nc",d\n1,2,3\n'))
    assert found.record == record_type({"a": STR, "b_c": STR, "d": STR})
    assert found.columns == {"b_c": "b\nc"}


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\n", b"a," * 2**20, b'"' + b"a\n" * 2**20, b'a"b"c,"d"e\n'])
def test_files_without_a_line_of_names(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SourceRejected, match="does not begin with a line of column names") as caught:
        wp.schema(truncated(tmp_path / "rows.csv", content))
    assert caught.value.__context__ is None


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("no.csv", "no.parquet"):
        with pytest.raises(SourceRejected, match="there is no file"):
            wp.schema(tmp_path / name)
    with pytest.raises(SourceRejected, match="is a directory"):
        (tmp_path / "folder.csv").mkdir()
        wp.schema(tmp_path / "folder.csv")


# --- what no field holds ---------------------------------------------------------------------------------------


def test_columns_that_no_field_holds_are_left_out() -> None:
    names = ["fine", "blob", "", "", "fine2", "fine2", "nothing"]
    columns = [[1], [b"x"], [1], [1], [1], [2], pa.nulls(1)]
    found = wp.schema(pa.Table.from_arrays(list(map(pa.array, columns)), names=names))
    assert found.record == record_type({"fine": INT, "nothing": STR})
    assert [words.partition(":")[0] for words in found.left_out] == [
        "blob",
        "column 3",
        "column 4",
        "column 5",
        "column 6",
    ]
    assert "Left out:" in repr(found)
    agree(found)
    with pytest.raises(SourceRejected, match="no column of the table can be a field"):
        wp.schema(pa.table({"": [1]}))


def test_a_column_of_nothing_but_null_is_declared_as_text_would_be(tmp_path: Path) -> None:
    """That there is no value in it is something that the values say."""
    said = set()
    for column in (pa.nulls(2), pa.array(["a", "b"])):
        table = pa.table({"ssn": column, "b": [1, 2]})
        parquet.write_table(table, tmp_path / "data.parquet")
        said |= {repr(wp.schema(data)) for data in (table, pl.from_arrow(table), duckdb.from_arrow(table))}
        said.add(repr(wp.schema(tmp_path / "data.parquet")))
        with wp.Session() as session:
            session.protect(wp.schema(table).source(), pa.table({"ssn": ["a"], "b": [1]}), budget=1)
            session.protect(wp.source("none", ssn=str | None, b=int), table, budget=1)
    assert len(said) == 1


def test_ranges_are_no_durations() -> None:
    with pytest.raises(SourceRejected, match="no column"):
        wp.schema(pd.DataFrame({"range": pd.interval_range(0, 3)}))


def test_moments_are_cut_to_microseconds_where_that_is_asked_for() -> None:
    text = "2024-02-29T12:30:00.000000999"
    frames: list[Any] = [
        pd.DataFrame({"at": pd.to_datetime([text])}),
        pl.DataFrame({"at": [text]}).select(pl.col("at").str.to_datetime(time_unit="ns")),
        duckdb.sql(f"SELECT TIMESTAMP_NS '{text}' AS at"),
    ]
    source = wp.source("moments", at=datetime.datetime)
    for frame in frames:
        with wp.Session() as session:
            with pytest.raises(SourceRejected, match="finer than microseconds") as caught:
                session.protect(source, frame, budget=1)
            said = str(caught.value).partition("To convert field 'at': ")[2].removesuffix(".")
            sql = said.partition(" in SQL")[0].removeprefix("take ").replace("…", '"at"')
            cut = duckdb.sql(f"SELECT {sql} AS at FROM frame")
            session.protect(source, cut, budget=1)
            assert dict(wp.evaluate(source, {"moments": cut})) == {(datetime.datetime(2024, 2, 29, 12, 30),): 1.0}


def test_columns_without_names() -> None:
    assert wp.schema(np.zeros((3, 2), dtype=np.int32)).record == tuple_type([INT, INT])
    assert wp.schema(np.zeros(3)).record == FLOAT
    structured = np.zeros(3, dtype=[("a", "i4"), ("b", "U7"), ("c", "?")])
    assert wp.schema(structured).record == record_type({"a": INT, "b": STR, "c": BOOL})
    for array in (np.zeros((3, 2)), np.zeros(3), structured):
        agree(wp.schema(array))
    with pytest.raises(SourceRejected):
        wp.schema(np.zeros((2, 2, 2)))


@pytest.mark.parametrize("data", [[(1, 2)], {(1, 2): 1.0}, 5, None, "graph.txt", b"a,b", iter([])])
def test_what_says_no_types(data: object) -> None:
    with pytest.raises(SourceRejected, match="says no types"):
        wp.schema(data)


@pytest.mark.parametrize("name", ["two words", "", "_a", "null", 5])
def test_names_that_a_source_cannot_have(name: Any) -> None:
    with pytest.raises(PlanError):
        wp.schema(pa.table({"a": [1]}), name)


def test_a_file_names_its_source(tmp_path: Path) -> None:
    for file, name in (
        ("trips.csv", "trips"),
        ("2024 trips.csv", "data"),
        ("trips.csv.gz", "trips"),
        ("null.csv", "data"),
    ):
        content = b"a\n"
        path = truncated(tmp_path / file, gzip.compress(content) if file.endswith("gz") else content)
        assert wp.schema(path).name == name


TYPES = st.recursive(
    st.sampled_from(
        [
            pa.int8(),
            pa.int64(),
            pa.float64(),
            pa.bool_(),
            pa.string(),
            pa.date32(),
            pa.duration("us"),
            pa.decimal128(9, 3),
        ]
    ),
    lambda inside: st.one_of(
        inside.map(pa.list_), st.dictionaries(st.sampled_from("abc"), inside, min_size=1).map(lambda d: pa.struct(d))
    ),
    max_leaves=6,
)
NAMES = st.one_of(
    st.sampled_from(["class", "unit", "cap", "facts", "name", "schema", "new", "null", "source", "lambda", "int"]),
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,30}", fullmatch=True),
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, TYPES, min_size=1, max_size=12), NAMES)
def test_the_lines_mean_what_they_say(columns: dict[str, Any], name: str) -> None:
    table = pa.schema(columns).empty_table()
    try:
        found = wp.schema(table, name)
    except PlanError:
        assert name in ("new", "null")
        return
    assert [*found.record.names] == [*columns]
    agree(found)


# --- types from a sample ---------------------------------------------------------------------------------------

MADE = """whole,gaps,number,flag,day,moment,name,code,zoned
1,,1.5,true,2024-02-29,2024-02-29T12:30:00,"a, b",007,2024-02-29T12:30:00Z
2,7,2.0,,2024-03-01,,,010,2024-02-29T12:30:00+01:00
"""
PROPOSED = {
    "whole": INT,
    "gaps": INT.with_nullable(),
    "number": FLOAT,
    "flag": BOOL.with_nullable(),
    "day": DATE,
    "moment": TIMESTAMP.with_nullable(),
    "name": STR.with_nullable(),
    "code": STR,
    "zoned": TIMESTAMP,
}


def samples(folder: Path) -> dict[str, Any]:
    """The rows of `MADE`, as files and frames."""
    path = truncated(folder / "made.csv", MADE.encode())
    text = {"name": str, "code": str}
    moments = ["moment", "zoned"]
    frame = pd.read_csv(path, dtype=text, parse_dates=moments)  # whole numbers with gaps are floats there
    frame["day"] = pd.to_datetime(frame.day).dt.date
    frame["zoned"] = pd.to_datetime(frame.zoned, utc=True)
    exact = duckdb.read_csv(str(path), all_varchar=False, dtype={"code": "VARCHAR"}).to_arrow_table()
    parquet.write_table(exact, folder / "made.parquet")
    found = {"csv": path, "gzip": truncated(folder / "made.csv.gz", gzip.compress(MADE.encode())), "pandas": frame}
    found |= {"semicolons": CsvFile(truncated(folder / "made.txt", MADE.replace(",", ";").encode()), ";")}
    return found | {"arrow": exact, "polars": pl.from_arrow(exact), "parquet": str(folder / "made.parquet")}


@for_each("kind", ["csv", "gzip", "semicolons", "pandas", "arrow", "polars", "parquet"])
def test_types_are_those_of_a_sample(kind: str, tmp_path: Path) -> None:
    path = truncated(tmp_path / "people.csv", b"whole,gaps,number,flag,day,moment,name,code,zoned,more\n1,secret\n")
    found = wp.schema(path, sample=samples(tmp_path)[kind])
    assert dict(zip(found.record.names, found.record.elements, strict=True)) == {**PROPOSED, "more": STR}
    assert "more: the sample has no such column" in repr(found)
    assert "those of the sample" in found.questions[-1]
    assert '"gaps": int | None' in found.python and "gaps: int?" in found.text
    assert "007" not in repr(found) and "secret" not in repr(found)
    agree(found)


def test_a_declaration_from_a_sample_takes_the_data(tmp_path: Path) -> None:
    path = truncated(tmp_path / "people.csv", MADE.replace("007", "008").encode())
    source = wp.schema(path, sample=samples(tmp_path)["csv"]).source(unit="one row")
    with wp.Session() as session:
        session.protect(source, path, budget=1)


def test_the_data_are_no_sample_under_any_name(tmp_path: Path) -> None:
    path = truncated(tmp_path / "people.csv", b"a\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "hard.csv").hardlink_to(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    frame = pd.DataFrame({"a": [1]})
    frame.to_parquet(folder / "part.parquet")
    same: list[tuple[Any, Any]] = [(path, name) for name in (path, str(path), tmp_path / "link.csv", CsvFile(path))]
    same += [(tmp_path / "link.csv", tmp_path / "hard.csv"), (frame, frame), (folder, folder / "part.parquet")]
    for data, sample in same:
        with pytest.raises(SourceRejected, match="the sample is the data itself, whose rows are not public"):
            wp.schema(data, sample=sample)
    wp.schema(path, sample=truncated(tmp_path / "copy.csv", b"a\n2\n"))


@for_each("content", [b'a,b\n1,"secret\n3,4,5,6\nx', b"a,b\n1,secret,2\n", b"a,b\nsecret,\xff\n", b""])
def test_no_value_of_a_sample_is_in_an_error(content: bytes, tmp_path: Path) -> None:
    path, sample = truncated(tmp_path / "people.csv", b"a,b\n"), truncated(tmp_path / "made.csv", content)
    with pytest.raises(SourceRejected) as caught:
        wp.schema(path, sample=sample)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@for_each("sample", [5, [(1, 2)], pd.DataFrame({"a": [object()]}), "no.csv", "graph.txt"])
def test_what_is_no_sample_is_refused(sample: object, tmp_path: Path) -> None:
    with pytest.raises(SourceRejected):
        wp.schema(truncated(tmp_path / "people.csv", b"a\n"), sample=sample)


# --- the command -----------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", str(parquet_path(tmp_path)), "--name", "things"]) == 0
    assert capsys.readouterr().out == f"{wp.schema(TABLE, 'things')!r}\n"
    people = truncated(tmp_path / "people.csv", b"whole,gaps\n1,\n")
    assert main(["schema", str(people), "--sample", str(samples(tmp_path)["csv"])]) == 0
    assert capsys.readouterr().out.startswith('people = wp.source("people", whole=int, gaps=int | None)')
    assert main(["schema", str(people), "--sample", str(people)]) == 4
    assert main(["schema", str(tmp_path / "no.csv")]) == 4
    assert main(["schema", str(tmp_path / "table.parquet"), "--name", "a b"]) == 1
    assert "a source is named by" in capsys.readouterr().err
