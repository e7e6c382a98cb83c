"""What a refusal says to do about a field, done: the data are taken then."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from wpinq import functions as F
from wpinq.expr.types import category, decimal


@pytest.mark.parametrize("wanted", [str, category("1", "2")])
@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_whole_numbers_are_written_as_text_in_sql(make: Any, wanted: Any) -> None:
    frame = make({"the day": [1, 2]})
    source = wp.source("data", wanted)
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(source, frame, budget=1)
        said = str(caught.value).partition(" To convert value: ")[2]
        assert said == f"take {TEXT} in SQL (duckdb.sql, or Spark's) and offer the result."
        session.protect(
            source, duckdb.sql(f"SELECT {TEXT.replace('…', chr(34) + 'the day' + chr(34))} FROM frame"), budget=1
        )


TEXT = "CAST(… AS STRING)"

TO_CAST: list[tuple[Any, str, Any]] = [
    (int, "1.7", None),
    (int, "0x10", None),
    (int, "12", 12),
    (float, "1.5", 1.5),
    (dt.date, "2024-02-29 23:59:59", None),
    (dt.date, "now", None),
    (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
    (dt.datetime, "2024-02-29T12:30:00.123456789", None),
    (dt.datetime, "2024-02-29T12:30:00+02:00", dt.datetime(2024, 2, 29, 10, 30)),
    (dt.time, "12:30", dt.time(12, 30)),
    (decimal(2), "1.555", None),
]


@for_each("library", ["pyarrow", "pandas", "polars", "duckdb"], every=2)
@for_each(("wanted", "text", "expected"), TO_CAST)
def test_text_is_declared_as_text_and_parsed_exactly_or_null(
    library: str, wanted: Any, text: str, expected: Any
) -> None:
    data: Any = {"pandas": pandas.DataFrame, "polars": polars.DataFrame}.get(library, pyarrow.table)({"x": [text]})
    data = duckdb.from_arrow(data) if library == "duckdb" else data
    data = data.astype("string") if library == "pandas" else data
    with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
        session.protect(wp.source("data", x=wanted), data, budget=1)
    assert "declare str and take F.cast(x, " in str(caught.value)
    assert str(caught.value).endswith(" in queries, null where the text is none.")
    query = wp.source("data", x=str).select(lambda r: F.cast(r.x, wanted))
    assert dict(wp.evaluate(query, {"data": data})) == {expected: 1.0}


def test_of_nulls_and_objects_nothing_is_advised() -> None:
    objects = pandas.DataFrame({"b": pandas.Series([1.7, "x"], dtype=object)})
    for wanted, data in (
        (int, objects),
        (float, [(None,)]),
        (str, polars.DataFrame({"b": ["a", None]})),
        (dt.datetime, pandas.DataFrame({"b": pandas.to_datetime(["2024-02-29", None])})),
        (str, pandas.DataFrame({"b": pandas.Series([1], dtype=object)})),
    ):
        with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
            session.protect(wp.source("data", b=wanted), data, budget=1)
        assert "To convert" not in str(caught.value)


WHOLE = (
    'where all are whole, offer .astype("Int64"), else declare float and take F.cast(x, int) in queries, '
    "which cuts toward zero"
)
OTHERS: list[tuple[Any, Any, Any, Any, str]] = [
    (float, int, [1.7], [1], WHOLE),
    (int, bool, [2, 1], [False, True], "declare int and ask for x == 1 in queries"),
    (float, bool, [0.5, 1.0], [False, True], "declare float and ask for x == 1 in queries"),
    (str, bool, ["False", "yes"], [False, True], 'declare str and ask for x == "yes" in queries'),
    (
        int,
        dt.datetime,
        [1_700_000_000_000_000],
        [dt.datetime(2023, 11, 14, 22, 13, 20)],
        "declare int and take F.cast(x, datetime.datetime) in queries, which reads microseconds since 1970",
    ),
    (
        int,
        dt.date,
        [19_000],
        [dt.date(2022, 1, 8)],
        "declare int and take F.cast(x, datetime.date) in queries, which reads days since 1970-01-01",
    ),
    (
        int,
        dt.timedelta,
        [1_500_000],
        [dt.timedelta(seconds=1.5)],
        "declare int and take F.cast(x, datetime.timedelta) in queries, which reads microseconds: of another unit, "
        "multiply x before",
    ),
    (
        dt.datetime,
        dt.date,
        [dt.datetime(2024, 2, 29, 23)],
        [dt.date(2024, 2, 29)],
        "declare datetime.datetime and take F.cast(x, datetime.date) in queries",
    ),
    (
        dt.datetime,
        dt.time,
        [dt.datetime(2024, 2, 29, 23)],
        [dt.time(23)],
        "declare datetime.datetime and take F.cast(x, datetime.time) in queries",
    ),
    (
        str,
        decimal(2),
        ["1.50", "1.555"],
        [Decimal("1.50"), None],
        "declare str and take F.cast(x, wp.decimal(2)) in queries, null where the text is none",
    ),
    (
        float,
        decimal(2),
        [1.5],
        [Decimal("1.50")],
        "declare float and take F.cast(x, wp.decimal(2)) in queries, which rounds",
    ),
]


@pytest.mark.parametrize("library", tenth(["pandas", "polars", "pyarrow", "duckdb"], 2))
@pytest.mark.parametrize(("given", "wanted", "values", "expected", "said"), OTHERS)
def test_what_a_library_would_guess_or_round_is_left_to_queries(
    library: str, given: Any, wanted: Any, values: list[Any], expected: list[Any], said: str
) -> None:
    data = {"pandas": pandas.DataFrame, "polars": polars.DataFrame}.get(library, pyarrow.table)({"x": values})
    data = duckdb.from_arrow(data) if library == "duckdb" else data
    with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
        session.protect(wp.source("data", x=wanted), data, budget=1)
    assert str(caught.value).endswith(f" To convert field 'x': {said}.")
    as_it_is = wp.source("data", x=given)
    if wanted is bool:
        one = "yes" if given is str else 1
        query = as_it_is.select(lambda r: r.x == one)
    else:
        query = as_it_is.select(lambda r: F.cast(r.x, wanted))
    with wp.Session() as session:
        session.protect(as_it_is, data, budget=1)
    assert set(wp.evaluate(query, {"data": data})) == set(expected)


def test_arrays_are_never_cut_nor_guessed() -> None:
    with wp.Session() as session:
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(wp.source("data", int), numpy.array([1.0, 2.0]), budget=1)
        assert str(caught.value).endswith(f" To convert value: {WHOLE}.")
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(wp.source("data", int), numpy.array([1j]), budget=1)
        assert "To convert" not in str(caught.value)


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


TEXTS = {"a": ["1", "2"], "b": ["77", "78"]}


def parquet_file(folder: Path) -> Path:
    polars.DataFrame(TEXTS).write_parquet(folder / "data.parquet")
    return folder / "data.parquet"


def edge_file(folder: Path) -> Path:
    polars.DataFrame({**TEXTS, "a": [1, 2]}).write_parquet(folder / "edges.parquet")
    return folder / "edges.parquet"


_CAST = "declare str and take F.cast(x, int) in queries, null where the text is none"
OFFERED: dict[str, tuple[Any, str]] = {
    "pandas": (lambda _: pandas.DataFrame(TEXTS, dtype="string"), _CAST),
    "polars": (lambda _: polars.DataFrame(TEXTS), _CAST),
    "arrow": (lambda _: pyarrow.table(TEXTS), _CAST),
    "duckdb": (lambda _: duckdb.from_arrow(pyarrow.table(TEXTS)), _CAST),
    "parquet": (parquet_file, _CAST),
    "rows": (lambda _: [("1", "77"), ("2", "78")], "int(…) of text"),
    "a cursor": (
        lambda _: sqlite3.connect(":memory:").execute("SELECT '1' AS a, '77' AS b"),
        "int(…) of text",
    ),
    "an edge list of parquet": (
        lambda folder: wp.EdgeList(edge_file(folder), columns=("a", "b")),
        _CAST,
    ),
    "an edge list": (lambda _: wp.EdgeList(polars.DataFrame({**TEXTS, "a": [1, 2]}), columns=("a", "b")), _CAST),
}


@for_each("kind", OFFERED)
def test_a_refusal_says_how_to_convert_the_fields_that_need_it(kind: str, tmp_path: Path) -> None:
    make, said = OFFERED[kind]
    edges = kind.startswith("an edge list")
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
