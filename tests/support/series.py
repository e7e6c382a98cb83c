"""Data and declarations of series, for tests."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import wpinq as wp
from wpinq.api.series import Series
from wpinq.data import read_source
from wpinq.plan.operators import Source

Moment = datetime.datetime
DAY = "2026-11-27"
Row = dict[str, Any]


def views(**more: Any) -> Series:
    given: dict[str, Any] = {"every": "day", "start": "2026-01-01", "person": "user", "at_most": 2, "budget_each": 10}
    return wp.series("views", **{**given, **more}, on="when", page=str, when=Moment)


def rows_of_day(rng: Random, count: int = 12) -> list[Row]:
    """Rows of the epoch `DAY`: few people and pages, so that there is much to cut."""
    start = Moment(2026, 11, 27)
    moments = [start, start + datetime.timedelta(hours=5), start + datetime.timedelta(days=1, microseconds=-1)]
    return [{"user": rng.choice("abc"), "page": rng.choice("xyz"), "when": rng.choice(moments)} for _ in range(count)]


def late_rows(rng: Random) -> list[Row]:
    """Rows that are in no table of `DAY`: of other days, and without a time."""
    outside = [Moment(2026, 11, 26, 23, 59, 59, 999_999), Moment(2026, 11, 28), Moment(2025, 1, 1), None]
    return [{"user": rng.choice("abc"), "page": rng.choice("xyz"), "when": when} for when in outside]


def held(source: Series, data: Any, label: str = DAY) -> dict[Any, float]:
    """The dataset of an epoch."""
    declared = source.epoch(label).plan.operator
    assert isinstance(declared, Source)
    return dict(read_source(data, declared).items())  # type: ignore[union-attr]


def _csv(rows: Iterable[Row], folder: Path) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "page", "when"])
        writer.writerows([row["user"], row["page"], row["when"] and row["when"].isoformat()] for row in rows)
    return path


def _parquet(rows: list[Row], folder: Path) -> Path:
    pl.DataFrame(rows, schema=_SCHEMA, orient="row").write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def _relation(rows: list[Row], folder: Path) -> Any:
    connection = duckdb.connect()
    connection.register("given", pl.DataFrame(rows, schema=_SCHEMA, orient="row").to_arrow())
    return connection.sql("SELECT * FROM given")


_SCHEMA = {"user": pl.String, "page": pl.String, "when": pl.Datetime("us")}
FORMS: dict[str, Callable[[list[Row], Path], Any]] = {
    "rows": lambda rows, folder: rows,
    "a generator": lambda rows, folder: (row for row in rows),
    "csv": _csv,
    "parquet": _parquet,
    "polars": lambda rows, folder: pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
    "pandas": lambda rows, folder: pd.DataFrame(rows, columns=["user", "page", "when"]),
    "objects of pandas": lambda rows, folder: pd.DataFrame(rows, columns=["user", "page", "when"], dtype=object),
    "arrow": lambda rows, folder: pl.DataFrame(rows, schema=_SCHEMA, orient="row").to_arrow(),
    "a stream": lambda rows, folder: pa.RecordBatchReader.from_batches(
        (table := pl.DataFrame(rows, schema=_SCHEMA, orient="row").to_arrow()).schema, table.to_batches()
    ),
    "a relation": _relation,
}
"""Rows in each form that a session takes."""
