"""What a refusal says to do about a field, done: the data are taken then."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

import wpinq as wp
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, Type, category, decimal
from wpinq.ingest.conversions import conversion

COLUMNS: dict[Type, tuple[Any, Any]] = {
    INT: (["1", "2"], [1, 2]),
    FLOAT: (["1.5", "2"], [1.5, 2.0]),
    STR: ([1, 2], ["1", "2"]),
    BOOL: ([0, 1], [False, True]),
    DATE: (["2024-02-29", "1970-01-01"], [dt.date(2024, 2, 29), dt.date(1970, 1, 1)]),
    TIMESTAMP: (["2024-02-29 12:30:00"] * 2, [dt.datetime(2024, 2, 29, 12, 30)] * 2),
    TIME: (["12:30:00", "00:00:01"], [dt.time(12, 30), dt.time(0, 0, 1)]),
    category("1", "2"): ([1, 2], ["1", "2"]),
}
NAME = "the day"


def converted(library: str, given: Any, type_: Type) -> Any:
    """The values of a column, converted as it is said."""
    said = conversion(library, NAME, type_)
    if library == "numpy":
        return eval(said, {"array": numpy.array(given)}).tolist()
    if library == "pandas":
        return eval(said, {"frame": pandas.DataFrame({NAME: given}), "datetime": dt})[NAME].tolist()
    if library == "polars":
        column = eval(said, {"frame": polars.DataFrame({NAME: given}), "polars": polars})[NAME]
        return column.to_list()
    table = pyarrow.table({NAME: given})
    if library == "pyarrow":
        return eval(said, {"table": table, "pyarrow": pyarrow}).to_pylist()
    rows = duckdb.from_arrow(table).project(said)
    return [value for (value,) in rows.fetchall()]


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow", "duckdb"])
@pytest.mark.parametrize("type_", COLUMNS)
def test_what_is_said_converts(library: str, type_: Type) -> None:
    given, expected = COLUMNS[type_]
    if type_ in (DATE, TIMESTAMP) and library in ("numpy", "pandas"):
        return  # their moments are compared below
    if (library, type_) == ("numpy", TIME):
        assert conversion(library, NAME, type_) == ""  # it has no times of day
        return
    found = converted(library, given, type_)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


MICROSECONDS = [1_500_000, -1]
SPANS: dict[str, Any] = {
    "numpy": lambda said: eval(said, {"array": numpy.array(MICROSECONDS)}),
    "pandas": lambda said: eval(said, {"frame": pandas.DataFrame({NAME: MICROSECONDS})})[NAME],
    "polars": lambda said: eval(said, {"frame": polars.DataFrame({NAME: MICROSECONDS}), "polars": polars})[NAME],
    "pyarrow": lambda said: eval(said, {"table": pyarrow.table({NAME: MICROSECONDS})}).to_pandas(),
}


@pytest.mark.parametrize("library", SPANS)
def test_microseconds_become_durations(library: str) -> None:
    found = list(SPANS[library](conversion(library, NAME, DURATION)))
    assert [numpy.timedelta64(span, "us") for span in found] == [numpy.timedelta64(n, "us") for n in MICROSECONDS]


CSV = [
    ({"b": int}, "b\n1.5\n", "write whole numbers in digits, as 1200"),
    ({"b": float}, "b\n1'000\n", "write numbers with a point, as 1200.5 or 1.2e3"),
    ({"b": bool}, "b\nyes\n", "write true or false, or 1 or 0"),
    ({"b": dt.date}, "b\n29.2.2024\n", "write dates as 2024-02-29"),
    ({"b": dt.datetime}, "b\n29.2.2024\n", "write moments as 2024-02-29T12:30:00"),
    ({"b": dt.time}, "b\nnoon\n", "write times of day as 12:30:00"),
    ({"b": decimal(1)}, 'b\n"1,5"\n', "write digits with a point before the decimals, as 12.5"),
]


@pytest.mark.parametrize(("fields", "content", "said"), CSV)
def test_a_csv_file_is_told_how_to_write_a_field(
    fields: dict[str, Any], content: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(wp.source("data", **fields), path, budget=1)
        assert str(caught.value).endswith(f" To convert field 'b': {said}.")
        path.write_text(f"b\n{said.rpartition(' ')[2]}\n")  # the last word is an example
        session.protect(wp.source("data", **fields), path, budget=1)


def test_a_csv_file_holds_no_durations_but_microseconds(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("b\n1500000\n")
    with wp.Session() as session, pytest.raises(wp.SourceRejected, match="declare int and write microseconds"):
        session.protect(wp.source("spans", b=dt.timedelta), tmp_path / "data.csv", budget=1)


def test_pandas_has_moments_for_dates() -> None:
    frame = pandas.DataFrame({"day": ["2024-02-29", None]})
    source = wp.source("days", {"day": dt.date | None})
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(source, frame, budget=1)
        said = str(caught.value).partition("To convert field 'day': ")[2].removesuffix(".")
        session.protect(source, eval(said, {"frame": frame}), budget=1)


TEXTS = {"a": ["1", "2"], "b": ["77", "78"]}


def parquet_file(folder: Path) -> Path:
    polars.DataFrame(TEXTS).write_parquet(folder / "data.parquet")
    return folder / "data.parquet"


_POLARS = 'frame.with_columns(polars.col("b").cast(polars.Int64))'
OFFERED: dict[str, tuple[Any, str]] = {
    "pandas": (lambda _: pandas.DataFrame(TEXTS), 'frame.astype({"b": "Int64"})'),
    "pandas, objects": (lambda _: pandas.DataFrame(TEXTS, dtype=object), 'frame.astype({"b": "Int64"})'),
    "polars": (lambda _: polars.DataFrame(TEXTS), _POLARS),
    "arrow": (lambda _: pyarrow.table(TEXTS), 'table["b"].cast("int64")'),
    "duckdb": (lambda _: duckdb.from_arrow(pyarrow.table(TEXTS)), 'CAST("b" AS BIGINT)'),
    "parquet": (parquet_file, 'CAST("b" AS BIGINT) in duckdb.sql over the file, and offer that'),
    "rows": (lambda _: [("1", "77"), ("2", "78")], "int(…)"),
    "an edge list": (lambda _: wp.EdgeList(polars.DataFrame({**TEXTS, "a": [1, 2]}), columns=("a", "b")), _POLARS),
}


@pytest.mark.parametrize("kind", OFFERED)
def test_a_refusal_says_how_to_convert_the_fields_that_need_it(kind: str, tmp_path: Path) -> None:
    make, said = OFFERED[kind]
    edges = kind == "an edge list"
    source = wp.source("data", a=int if edges else str, b=int)
    with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
        session.protect(source, make(tmp_path), budget=1)
    text = str(caught.value)
    assert "field 'b'" in text.partition("To convert")[0]
    assert text.endswith(f" To convert field 'b': {said}.")
    assert text.count("To convert") == 1
    assert "77" not in text.replace(str(tmp_path), "")


def test_a_null_or_an_outlier_is_not_to_be_converted() -> None:
    with wp.Session() as session:
        for column in ([1, None], [1, 2**63]):
            with pytest.raises(wp.SourceRejected) as caught:
                session.protect(wp.source("data", b=int), polars.DataFrame({"b": column}), budget=1)
            assert "To convert" not in str(caught.value)
