"""Dates, timestamps, decimals, categories and their like, and 0/1, at the door: from all that can be offered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from wpinq.data import read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import DATE, TIME, TIMESTAMP, type_from_annotation
from wpinq.expr.values import limits, presenter, to_text

D = Decimal


def read(data: object, annotation: Any) -> dict[Any, float]:
    type_ = type_from_annotation(annotation)
    return dict(read_source(data, declared(type_)).items())


def refused(data: object, annotation: Any) -> str:
    with pytest.raises(SourceRejected) as caught:
        read(data, annotation)
    return str(caught.value)


SCHEMA = {"day": date, "at": datetime, "price": wp.decimal(2), "colour": wp.category("x", "y"), "flag": bool}
ROWS = [
    (date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 5), D("1.20"), "x", 1),
    (date.min, datetime.max, D("-7"), "y", 0),
    (date.max, datetime.min, D("0.00"), "x", 1),
]
HELD = {
    (19782, 1709209800000005, 120, "x", True): 1.0,
    (-719162, 253402300799999999, -700, "y", False): 1.0,
    (2932896, -62135596800000000, 0, "x", True): 1.0,
}
COLUMNS = {name: [row[i] for row in ROWS] for i, name in enumerate(SCHEMA)}


def arrow() -> pa.Table:
    fine = pa.array(COLUMNS["price"], pa.decimal128(12, 4))  # more decimals than are declared, all of them 0
    return pa.table({**COLUMNS, "price": fine, "colour": pa.array(COLUMNS["colour"]).dictionary_encode()})


def parquet_file(folder: Path) -> Path:
    parquet.write_table(arrow(), folder / "data.parquet")
    return folder / "data.parquet"


def csv_file(folder: Path) -> Path:
    lines = ["day,at,price,colour,flag"]
    lines += [f"{day},{at.isoformat()},{price},{colour},{flag}" for day, at, price, colour, flag in ROWS]
    (folder / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "data.csv"


class Cursor:
    """What DB-API says of a cursor."""

    description = tuple((name, None, None, None, None, None, None) for name in SCHEMA)

    def __init__(self) -> None:
        self.left = list(ROWS)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows, self.left = self.left[:2], self.left[2:]
        return rows


OFFERED: dict[str, Callable[[Path], Any]] = {
    "rows": lambda folder: ROWS,
    "mappings": lambda folder: [dict(zip(SCHEMA, row, strict=True)) for row in ROWS],
    "weights": lambda folder: dict.fromkeys(ROWS, 1),
    "pandas": lambda folder: pd.DataFrame(COLUMNS),
    "pandas of Arrow": lambda folder: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda folder: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda folder: pl.from_arrow(arrow()).lazy(),
    "Arrow": lambda folder: arrow(),
    "Arrow batches": lambda folder: arrow().to_reader(),
    "parquet": parquet_file,
    "csv": csv_file,
    "a relation": lambda folder: duckdb.from_arrow(arrow()),
    "a cursor": lambda folder: Cursor(),
}


@for_each("offered", OFFERED)
def test_every_form_gives_the_same(offered: str, tmp_path: Path) -> None:
    assert read(OFFERED[offered](tmp_path), SCHEMA) == HELD


BERLIN = ZoneInfo("Europe/Berlin")
ZONED = [
    datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN),
    datetime(2024, 7, 1, tzinfo=BERLIN),
]
IN_UTC = {(1729989000000000,): 1.0, (1729992600000000,): 1.0, (1719784800000000,): 1.0}


@pytest.mark.parametrize(
    "data",
    [
        [(moment,) for moment in ZONED],
        pd.DataFrame({"at": pd.Series(ZONED)}),
        pa.table({"at": pa.array(ZONED, pa.timestamp("us", "Europe/Berlin"))}),
        pl.DataFrame({"at": pl.Series(ZONED).dt.convert_time_zone("Europe/Berlin")}),
    ],
    ids=["rows", "pandas", "Arrow", "polars"],
)
def test_timestamps_with_a_zone_are_converted_to_utc(data: object) -> None:
    assert read(data, {"at": datetime}) == IN_UTC


def test_text_with_a_zone_is_converted_to_utc(tmp_path: Path) -> None:
    text = "at\n2024-10-27T02:30+02:00\n2024-10-27 02:30:00+01:00\n2024-06-30T22:00:00Z\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert read(tmp_path / "a.csv", {"at": datetime}) == IN_UTC


def nanoseconds(*texts: str) -> Any:
    return np.array(texts, dtype="datetime64[ns]")


EXACT_OR_NOT: list[tuple[Any, Any, str]] = [
    (pd.DataFrame({"v": nanoseconds("2024-01-01T00:00:00.000000001", "2024-01-01")}), datetime, "finer than micro"),
    (pa.table({"v": pa.array([1, 1000], pa.timestamp("ns"))}), datetime, "finer than microseconds"),
    (pl.DataFrame({"v": pl.Series([1, 1000]).cast(pl.Datetime("ns"))}), datetime, "finer than microseconds"),
    ([(pd.Timestamp(1),), (datetime.min,)], datetime, "finer than microseconds"),
    ([(np.datetime64(1, "ns"),)], datetime, "finer than microseconds"),
    (pa.table({"v": pa.array([1, 1000], pa.duration("ns"))}), timedelta, "finer than microseconds"),
    (pl.DataFrame({"v": pl.Series([1, 1000]).cast(pl.Duration("ns"))}), timedelta, "finer than microseconds"),
    ([(pd.Timedelta(1),), (timedelta(1),)], timedelta, "finer than microseconds"),
    (pa.table({"v": pa.array([1, 1000], pa.time64("ns"))}), time, "finer than microseconds"),
    (pd.DataFrame({"v": nanoseconds("2024-01-01T01", "2024-01-01")}), date, "not midnight"),
    ([(datetime(2024, 1, 1, tzinfo=UTC),)], date, "not midnight without a zone"),
    (pa.table({"v": pa.array([0], pa.timestamp("us", "UTC"))}), date, "not of type date"),
    ([(20240101,), ("2024-01-01",)], date, "not of type date"),
    (pa.table({"v": [20240101]}), date, "not of type date"),
    (pa.table({"v": [date(2024, 1, 1)]}), datetime, "not of type timestamp"),
    ([(date(2024, 1, 1),)], datetime, "not of type timestamp"),
    (pa.table({"v": [date(2024, 1, 1)]}), int, "not of type int"),
    (pa.table({"v": [date(2024, 1, 1)]}), str, "not of type str"),
    ([(datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),)], datetime, "outside the years 1 to 9999"),
    (duckdb.sql("SELECT date 'infinity' AS v"), date, "outside the years"),
    (duckdb.sql("SELECT date '10000-01-01' AS v"), date, "outside the years"),
    (duckdb.sql("SELECT date '0001-12-31 (BC)' AS v"), date, "outside the years"),
    (duckdb.sql("SELECT timestamp 'infinity' AS v"), datetime, "outside the years"),
    (duckdb.sql("SELECT timestamp '10000-01-01' AS v"), datetime, "outside the years"),
    (duckdb.sql("SELECT time '24:00:00' AS v"), time, "outside a day"),
    (duckdb.sql("SELECT interval 1 month AS v"), timedelta, "interval of months"),
    (duckdb.sql("SELECT interval 2000000000 days AS v"), timedelta, "outside 64 bits"),
    ([(time(1, tzinfo=UTC),)], time, "without a zone"),
    ([(timedelta.max,)], timedelta, "outside 64 bits"),
    (pa.table({"v": [D("1.205")]}), wp.decimal(2), "more than 2 decimals"),
    ([(D("1.205"),), (D("1E-400"),)], wp.decimal(2), "more than 2 decimals"),
    (pa.table({"v": [D("92233720368547758.08")]}), wp.decimal(2), "outside 64 bits"),
    (pa.table({"v": [D("9999999999999999999999999999999999.20")]}), wp.decimal(18), "outside 64 bits"),
    ([(D("92233720368547758.08"),), (D("1E+999999"),)], wp.decimal(2), "outside 64 bits"),
    (pa.table({"v": [2**62]}), wp.decimal(2), "outside 64 bits"),
    ([(D("nan"),), (D("-inf"),)], wp.decimal(2), "nan or infinity"),
    ([(1.5,), (True,), ("1.5",)], wp.decimal(2), "a decimal.Decimal, or an int"),
    (pa.table({"v": [1.5]}), wp.decimal(2), "not of type"),
    (pa.table({"v": ["x", "q"]}), wp.category("x"), "none of the declared categories"),
    ([("X",)], wp.category("x"), "none of the declared categories"),
    ([(1,)], wp.category("x"), "not of type category"),
    (pa.table({"v": [2]}), bool, "neither 0 nor 1"),
    (np.array([0, 1, -1]), bool, "neither 0 nor 1"),
    ([(2,)], bool, "neither 0 nor 1"),
    ([(1.0,), ("1",)], bool, "not of type bool"),
    (pa.table({"v": [1.0]}), bool, "not of type bool"),
]


@for_each(("data", "kind", "message"), EXACT_OR_NOT)
def test_what_is_not_exactly_of_the_type_is_refused(data: Any, kind: Any, message: str) -> None:
    said = refused(data, {"v": kind})
    assert message in said


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"v": pa.array([[1000]], pa.list_(pa.duration("ns")))}),
        pl.DataFrame({"v": pl.Series([[1000]]).cast(pl.List(pl.Duration("ns")))}),
    ],
    ids=["Arrow", "polars"],
)
def test_nanoseconds_inside_of_lists_are_refused_whatever_they_are(data: object) -> None:
    assert "cast them to microseconds" in refused(data, {"v": list[timedelta]})


def out_of_range() -> list[tuple[Any, Any, str]]:
    moments, spans = "a timestamp outside the years 1 to 9999", "a duration outside 64 bits"
    cases: list[tuple[Any, Any, str]] = []
    for unit in ("W", "D", "h", "m", "s", "ms"):
        for kind, wanted, message in (("M8", datetime, moments), ("m8", timedelta, spans)):
            array = np.array([0, 2**62], f"{kind}[{unit}]")
            cases += [
                (np.array([0, -(2**61) - 7], array.dtype), wanted, message),
                ([(value,) for value in array], wanted, message),
                (array, wanted, message),
                (np.array([(value,) for value in array], [("v", array.dtype)]), wanted, message),
                (pd.DataFrame({"v": pd.Series(list(array), dtype=object)}), wanted, message),
            ]
    for unit in ("Y", "M"):
        cases += [(np.array([0, count], f"M8[{unit}]"), datetime, moments) for count in (2**62, 120_000, -120_000)]
        cases.append(([(timedelta(0),), (np.timedelta64(1, unit),)], timedelta, "an interval of months"))
        cases.append((np.array(["NaT", 1], f"m8[{unit}]"), timedelta | None, "an interval of months"))
    cases.append(([(timedelta(0),), (np.timedelta64(5),)], timedelta, "a duration of numpy without a unit"))
    late = np.datetime64(10**15, "s")
    for moment in (pd.Timestamp(late), pd.Timestamp(late).tz_localize("UTC")):
        cases.append(([(datetime.min,), (moment,)], datetime, moments))
        cases.append((pd.DataFrame({"v": pd.Series([datetime(2024, 1, 1), moment], dtype=object)}), datetime, moments))
    series = pd.Series(np.array([np.datetime64(0, "s"), late])).dt.tz_localize("UTC")
    cases.append((pd.DataFrame({"v": series}), datetime, moments))
    zoned, seconds = pa.array([0, 10**15], pa.timestamp("s", "UTC")), pa.array([0, 10**14], pa.duration("s"))
    for column, wanted, message in ((zoned, datetime, moments), (seconds, timedelta, spans)):
        table = pa.table({"v": column})
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)
        cases += [(data, wanted, message) for data in (table, table.to_reader(), frame)]
    for type_, wanted, message in (
        (pl.Duration("ms"), timedelta, spans),
        (pl.Datetime("ms", "UTC"), datetime, moments),
        (pl.Datetime("us", "Europe/Berlin"), datetime, moments),
    ):
        frame = pl.DataFrame({"v": pl.Series([0, 2**58]).cast(type_)})
        cases += [(frame, wanted, message), (frame.lazy(), wanted, message)]
    return cases


@for_each(("data", "kind", "message"), out_of_range())
def test_what_is_out_of_range_is_named_by_its_row(data: Any, kind: Any, message: str) -> None:
    said = refused(data, {"v": kind})
    assert message in said and "1 row is unfit, at row 1," in said


def test_units_of_numpy_are_exact_up_to_the_ends() -> None:
    wanted = {(0,): 1.0, (951782400000000,): 1.0, (-62135596800000000,): 1.0}
    assert read(np.array(["1970", "2000-02-29", "0001-01-01"], "M8[D]"), {"v": datetime}) == wanted
    assert read(np.array(["2000-03"], "M8[3M]"), {"v": date}) == {(10957,): 1.0}  # 30 times 12 months, and 0 of 3
    assert read(np.array(["0001", "9999"], "M8[Y]"), {"v": date}) == {(-719162,): 1.0, (2932532,): 1.0}
    assert read(np.array([-7], "m8[25s]"), {"v": timedelta}) == {(-175000000,): 1.0}
    assert read([(np.timedelta64(2**63 - 1, "us"),)], {"v": timedelta}) == {(2**63 - 1,): 1.0}
    for unit, count in (("ns", 10**3), ("ps", 10**6), ("fs", 10**9), ("as", 10**12)):
        assert read([(np.timedelta64(-count, unit),)], {"v": timedelta}) == {(-1,): 1.0}
        assert "finer than microseconds" in refused([(np.datetime64(count + 1, unit),)], {"v": datetime})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_counts_of_arrow_and_polars_are_exact(unit: str) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    counts = [-per_second, 0, 86_400 * per_second, None]
    wanted = {(-1_000_000,): 1.0, (0,): 1.0, (86_400_000_000,): 1.0, (None,): 1.0}
    for type_, kind in ((pa.duration(unit), timedelta), (pa.timestamp(unit, "Europe/Berlin"), datetime)):
        table = pa.table({"v": pa.array(counts, type_)})
        for data in (table, table.slice(0), table.to_reader(), pl.from_arrow(table)):
            assert read(data, {"v": kind | None}) == wanted
        assert "null where" in refused(table, {"v": kind}) and "not of type int" in refused(table, {"v": int})


def test_columns_of_nothing_but_null_are_null_of_any_type() -> None:
    frame = pl.DataFrame({"v": [None, None]})
    for data in (frame, frame.lazy(), pa.table({"v": pa.nulls(2)})):
        for kind in (str, int, datetime, wp.decimal(2), wp.category("x")):
            assert read(data, {"v": type_from_annotation(kind).with_nullable()}) == {(None,): 2.0}
        said = refused(data, {"v": str})
        assert "null where str is declared" in said and "at row 0, 1," in said
    nested = pl.DataFrame({"v": [[None]], "w": [{"a": None, "b": 1}]})
    assert nested.schema == {"v": pl.List(pl.Null), "w": pl.Struct({"a": pl.Null, "b": pl.Int64})}
    assert read(nested, {"v": list[int | None], "w": {"a": str | None, "b": int}}) == {((None,), (None, 1)): 1.0}
    assert "null where int is declared" in refused(nested, {"v": list[int]})


def test_missing_values_are_null() -> None:
    wanted = {(None,): 1.0, (19723,): 1.0}
    for days in (np.array(["2024-01-01", "NaT"], "M8[D]"), nanoseconds("2024-01-01", "NaT")):
        assert read(days, {"v": date | None}) == wanted
        assert read(pd.DataFrame({"v": days}), {"v": date | None}) == wanted
        assert "null where date is declared" in refused(pd.DataFrame({"v": days}), {"v": date})
    assert read([(date(2024, 1, 1),), (None,)], {"v": date | None}) == wanted
    assert read(pa.table({"v": [1, 0, None]}), {"v": bool | None}) == {(True,): 1.0, (False,): 1.0, (None,): 1.0}


def test_they_stand_in_lists_and_records_too() -> None:
    nested = {"days": list[date | None], "sale": {"price": wp.decimal(3), "colour": wp.category("x")}}
    table = pa.table({"days": [[date(2024, 1, 1), None]], "sale": [{"price": D("1.5"), "colour": "x"}]})
    wanted = {((19723, None), (1500, "x")): 1.0}
    assert (
        read(table, nested) == read([([date(2024, 1, 1), None], {"price": D("1.5"), "colour": "x"})], nested) == wanted
    )
    moments = {"v": list[datetime | None], "w": list[wp.decimal(1)], "x": list[time], "y": list[bool]}
    row = ([datetime(1970, 1, 1), None], [D("1.50")], [time(1)], [1, 0])
    wanted = {((0, None), (15,), (3600000000,), (True, False)): 1.0}
    assert read([row], moments) == wanted
    assert read(pa.table({name: [value] for name, value in zip(moments, row, strict=True)}), moments) == wanted
    assert "none of the declared" in refused(pa.table({"v": [["x", "q"]]}), {"v": list[wp.category("x")]})


TEXTS: list[tuple[Any, str, Any]] = [
    (wp.decimal(2), "1.5", 150),
    (wp.decimal(2), "+1.5000", 150),
    (wp.decimal(2), "-0.07", -7),
    (wp.decimal(2), "-92233720368547758.08", -(2**63)),
    (wp.decimal(0), "7", 7),
    (wp.decimal(2), "92233720368547758.08", "outside 64 bits"),
    (wp.decimal(2), "99999999999999999999999999999999999999999999", "outside 64 bits"),
    (wp.decimal(2), "1.501", "more than 2 decimals"),
    (wp.decimal(2), "1e2", "digits, with a point"),
    (wp.decimal(2), "1.", "digits, with a point"),
    (wp.decimal(2), "nan", "digits, with a point"),
    (date, "2024-02-29", 19782),
    (date, "2024-02-30", "2024-02-29"),
    (date, "2024-2-3", "2024-02-29"),
    (date, "2024-01-01 00:00", "2024-02-29"),
    (date, "0000-01-01", "outside the years"),
    (datetime, "2024-02-29T12:30", 1709209800000000),
    (datetime, "2024-02-29 12:30:00.000005-01:00", 1709213400000005),
    (datetime, "0001-01-01T00:00:00+00:01", "outside the years"),
    (datetime, "9999-12-31T23:59:59-00:01", "outside the years"),
    (datetime, "2024-02-29", "2024-02-29T12:30:00"),
    (datetime, "2024-02-29T24:00", "2024-02-29T12:30:00"),
    (datetime, "2024-02-29T12:30:00.1234567", "2024-02-29T12:30:00"),
    (time, "12:30", 45000000000),
    (time, "23:59:59.999999", 86399999999),
    (time, "24:00", "12:30:00"),
    (time, "12:30:60", "12:30:00"),
    (wp.category("x", "it's"), "it's", "it's"),
    (wp.category("x"), "y", "none of the declared categories"),
    (bool, "1", True),
    (bool, "0", False),
    (bool, "2", "1 or 0"),
]


@for_each(("kind", "text", "wanted"), TEXTS)
def test_text_of_csv_files(kind: Any, text: str, wanted: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f'v,w\n"{text}",1\n', encoding="utf-8")
    if isinstance(wanted, str) and wanted != text:
        assert wanted in refused(tmp_path / "a.csv", {"v": kind})
    else:
        assert repr(read(tmp_path / "a.csv", {"v": kind})) == repr({(wanted,): 1.0})


def test_an_empty_field_is_null_where_null_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("d,t,p,c\n,,,\n", encoding="utf-8")
    schema = {"d": date, "t": datetime, "p": wp.decimal(1), "c": wp.category("x")}
    assert "an empty field where date is declared" in refused(tmp_path / "a.csv", schema)
    optional = {name: type_from_annotation(kind).with_nullable() for name, kind in schema.items()}
    assert read(tmp_path / "a.csv", optional) == {(None, None, None, None): 1.0}


def test_a_duration_is_not_read_from_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\nP1D\n", encoding="utf-8")
    assert "cannot hold a field of type duration" in refused(tmp_path / "a.csv", {"v": timedelta})


@pytest.mark.parametrize("type_", [DATE, TIMESTAMP, TIME, wp.decimal(5)], ids=str)
def test_random_values_are_read_exactly(type_: Any, tmp_path: Path) -> None:
    rng = Random(f"exactly {type_}")
    least, most = limits(type_)
    values = sorted({rng.randint(least, most) for _ in range(2000)} | {least, most, 0})
    shown = list(map(presenter(type_), values))
    wanted = {(value,): 1.0 for value in values}
    assert read([(value,) for value in shown], {"v": type_}) == wanted
    table = pa.table({"v": pa.array(shown, pa.decimal128(38, 5) if type_ == wp.decimal(5) else None)})
    assert read(table, {"v": type_}) == wanted
    text = "v\n" + "".join(f"{to_text(value, type_)}\n" for value in values)
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert read(tmp_path / "a.csv", {"v": type_}) == wanted


def test_positions_are_named_and_no_value() -> None:
    table = pa.table({"v": [D("1.00"), D("77.777"), D("2.00"), D("88.888")]})
    said = refused(table, {"v": wp.decimal(2)})
    assert "2 rows are unfit, at row 1, 3" in said and "77" not in said and "88" not in said


def test_a_large_category_is_quick() -> None:
    names = tuple(f"name {i}" for i in range(10_000))
    rows = [(names[i % len(names)],) for i in range(20_000)]
    assert len(read(rows, {"v": wp.category(*names)})) == len(names)
    assert len(read(pa.table({"v": [row[0] for row in rows]}), {"v": wp.category(*names)})) == len(names)


ZONED_NANOSECONDS = pa.timestamp("ns", "Europe/Berlin")


def zoned(folder: Path, *numbers: int | None) -> list[Any]:
    """Nanoseconds with a zone, in everything that can hold them."""
    table = pa.table({"at": pa.array(numbers, ZONED_NANOSECONDS)})
    parquet.write_table(table, folder / "zoned.parquet")
    frames = [table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(table)]
    return [table, table.to_reader(), *frames, folder / "zoned.parquet"]


def test_nanoseconds_with_a_zone_are_timestamps_in_utc_where_they_are_whole_microseconds(tmp_path: Path) -> None:
    for data in zoned(tmp_path, 1729989000000005000, -1000, None):
        assert read(data, {"at": datetime | None}) == {(1729989000000005,): 1.0, (-1,): 1.0, (None,): 1.0}
    for data in zoned(tmp_path, 1000, -1):
        assert "finer than microseconds" in refused(data, {"at": datetime})
    for data in zoned(tmp_path, 0):
        assert "not of type date" in refused(data, {"at": date})
    assert "at=datetime.datetime" in str(wp.schema(tmp_path / "zoned.parquet"))


def intervals(*given: tuple[int, int, int] | None) -> pa.Table:
    return pa.table({"v": pa.array(given, pa.month_day_nano_interval())})


def test_nanoseconds_of_intervals_are_not_rounded() -> None:
    exact, finer = intervals((0, 1, 5000), (0, 0, -1000), None), intervals((0, 0, 999), (0, 1, 0))
    for data in (exact, exact.to_pandas(types_mapper=pd.ArrowDtype)):
        assert read(data, {"v": timedelta | None}) == {(86400000005,): 1.0, (-1,): 1.0, (None,): 1.0}
    for data in (finer, finer.to_pandas(types_mapper=pd.ArrowDtype)):
        said = refused(data, {"v": timedelta})
        assert "finer than microseconds" in said and "at row 0," in said
    assert "read it into a table" in refused(finer.to_reader(), {"v": timedelta})
    assert "outside 64 bits" in refused(intervals((0, 2**31 - 1, 0)), {"v": timedelta})
    assert "not of type duration" in refused(intervals((1, 0, 0)), {"v": timedelta})


@pytest.mark.parametrize("value", ["v", "[v]", "{'a': v}"])
def test_times_with_a_zone_are_refused_in_a_relation_too(value: str) -> None:
    zoned_time = duckdb.sql(f"SELECT {value} AS v FROM (SELECT timetz '12:00:00+02' AS v)")
    kind = {"v": time, "[v]": list[time], "{'a': v}": {"a": time}}[value]
    assert "field 'v' has times with a zone: cast them to TIME" in refused(zoned_time, {"v": kind})


WIDE = [
    ("sum(x)", int, 3),
    ("sum(x)", bool | None, "neither 0 nor 1"),
    ("sum(x) + 9223372036854775804", int, 2**63 - 1),
    ("sum(x) + 9223372036854775805", int, "an integer outside 64 bits"),
    ("sum(x) + 9007199254740989", float, float(2**53)),
    ("sum(x) + 9007199254740990", float, "float cannot represent exactly"),
    ("170141183460469231731687303715884105727::HUGEINT", int, "an integer outside 64 bits"),
    ("170141183460469231731687303715884105727::HUGEINT", float, "float cannot represent exactly"),
    ("7::UHUGEINT", int, 7),
    ("7::UHUGEINT", wp.decimal(1), 70),
    ("NULL::UHUGEINT", int | None, None),
    ("340282366920938463463374607431768211455::UHUGEINT", int, "an integer outside 64 bits"),
    ("340282366920938463463374607431768211455::UHUGEINT", float, "float cannot represent exactly"),
    ("340282366920938463463374607431768211455::UHUGEINT", wp.decimal(0), "outside 64 bits"),
    ("7::DECIMAL(9, 0)", int, 7),
    ("7::DECIMAL(9, 1)", int, "not of type int"),
    ("[7::UHUGEINT]", list[int], "UHUGEINT in a list"),
    ("[7::HUGEINT]", list[int], (7,)),
]


@for_each(("column", "kind", "wanted"), WIDE)
def test_wide_integers_of_a_relation_are_integers(column: str, kind: Any, wanted: Any) -> None:
    relation = duckdb.sql(f"SELECT {column} AS v FROM range(3) AS t(x)" + ("" if "sum" in column else " LIMIT 1"))
    if isinstance(wanted, str):
        assert wanted in refused(relation, {"v": kind})
    else:
        assert repr(read(relation, {"v": kind})) == repr({(wanted,): 1.0})


def test_refusals_of_numpy_columns_do_not_say_how_long_the_longest_text_is() -> None:
    for texts in (np.array(["a", "s" * 77]), np.array([b"a", b"s" * 77])):
        said = refused(texts, int)
        assert f"(dtype {'str' if texts.dtype.kind == 'U' else 'bytes'})" in said and "77" not in said
    said = str(wp.schema(np.zeros(1, dtype=[("v", "S77"), ("w", "i8")])))
    assert "the kind bytes" in said and "77" not in said
