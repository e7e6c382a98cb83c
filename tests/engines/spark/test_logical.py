"""Dates, timestamps, decimals and categories on Spark: functions as Python has them, and frames at the door."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.logical import CHECKS, SOURCE, compare, query, rows
from wpinq import functions as F
from wpinq.columns.dataset import EngineDataset
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.errors import SourceRejected
from wpinq.expr.values import normalize, presenter

pytestmark = pytest.mark.long


def test_spark_agrees_with_python(database: SparkDatabase) -> None:
    given = rows(Random("logical types on Spark"), 300)
    held = {normalize(tuple(row.values()), SOURCE.plan.type): 1.0 for row in given}
    for start in range(0, len(CHECKS), 12):
        checks = CHECKS[start : start + 12]
        plan = query(checks).plan
        output = database.evaluate(plan, {"given": held})
        compare(map(presenter(plan.type), output), given, checks)


SALES = wp.source(
    "sales",
    day=date | None,
    at=datetime,
    local=datetime,
    price=wp.decimal(2),
    whole=wp.decimal(1),
    colour=wp.category("red", "green"),
    flag=bool,
)
QUERY = """SELECT DATE '{day}' AS day, TIMESTAMP '2024-10-27 02:30:00 Europe/Berlin' AS at,
    TIMESTAMP_NTZ '{local}' AS local, CAST({price} AS DECIMAL(10, 3)) AS price, {whole} AS whole, '{colour}' AS colour,
    {flag} AS flag"""
FIT = {
    "day": "2024-02-29",
    "local": "0001-01-01 00:00:00.000005",
    "price": "-1.500",
    "whole": "7",
    "colour": "red",
    "flag": "1",
}


def test_a_frame_is_read_exactly(spark: Any) -> None:
    frame = spark.sql(QUERY.format(**FIT))
    with wp.Session(engine="spark") as session:
        session.protect(SALES, frame.union(frame), budget=10)
        held = session._protected["sales"].weights
        assert isinstance(held, EngineDataset)
        (row,) = held.frame.collect()
        shown = presenter(SALES.plan.type)(tuple(row)[:-1])
        assert shown[0] == date(2024, 2, 29) and shown[2] == datetime(1, 1, 1, 0, 0, 0, 5)
        assert shown[1] in (datetime(2024, 10, 27, 0, 30), datetime(2024, 10, 27, 1, 30)), "either side of the change"
        assert shown[3:] == (Decimal("-1.50"), Decimal("7.0"), "red", True) and row["w"] == 2.0
        colours = session.release(SALES.select(lambda s: s.colour).noisy_count(epsilon=5))
        assert isinstance(colours, wp.Answers) and colours.keys == ("red", "green")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"day": "10000-01-01"}, "field 'day' a date outside the years"),
        ({"local": "-0001-01-01 00:00:00"}, "field 'local' a timestamp outside the years"),
        ({"price": "1.005"}, "field 'price' a number of more than 2 decimals"),
        ({"price": "9999999.999"}, "field 'price' a number of more than 2 decimals"),
        ({"whole": "9223372036854775807"}, "field 'whole' a number of more than 1 decimals, or outside 64 bits"),
        ({"colour": "blue"}, "field 'colour' a value that is none of the declared categories"),
        ({"flag": "2"}, "field 'flag' an integer that is neither 0 nor 1"),
        ({"flag": "1.5"}, "field 'flag' is of another type than bool"),
    ],
)
def test_a_frame_that_is_not_exactly_of_the_types_is_refused(spark: Any, changes: dict[str, str], message: str) -> None:
    frame = spark.sql(QUERY.format(**{**FIT, **changes}))
    with wp.Session(engine="spark") as session:
        with pytest.raises(SourceRejected) as caught:
            session.protect(SALES, frame, budget=1)
        assert message in str(caught.value)


SPANS = wp.source("spans", at=time | None, span=timedelta, part=timedelta)


@pytest.fixture
def times(spark: Any) -> Iterator[Any]:
    """Spark with the type of times of day, which has to be asked for."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


def test_times_of_day_and_durations_of_a_frame_are_read_exactly(times: Any) -> None:
    spark = times
    columns = """TIME'23:59:59.999999' AS at, INTERVAL '-1 02:03:04.000005' DAY TO SECOND AS span,
        INTERVAL '7' DAY AS part"""
    longest = "INTERVAL '1' SECOND * 9223372036854.775807 AS span, INTERVAL '-90' MINUTE AS part"
    frame = spark.sql(f"SELECT {columns}").union(spark.sql(f"SELECT CAST(NULL AS TIME) AS at, {longest}"))
    with wp.Session(engine="spark") as session:
        session.protect(SPANS, frame, budget=10)
        held = session._protected["spans"].weights
        assert isinstance(held, EngineDataset)
        found = {tuple(row)[:-1] for row in held.frame.collect()}
        span = -(((24 + 2) * 3600 + 3 * 60 + 4) * 10**6 + 5)
        assert found == {
            (86_400 * 10**6 - 1, span, 7 * 86_400 * 10**6),
            (None, 2**63 - 1, -90 * 60 * 10**6),
        }
        hours = session.release(SPANS.select(lambda s: F.hour(s.at)).noisy_count(epsilon=9, over=range(24)))
        assert isinstance(hours, wp.Answers) and hours[23] > 0


def test_what_is_said_of_a_column_of_text(spark: Any) -> None:
    texts = {
        "n": ("7", int), "x": ("1.5", float), "day": ("2024-02-29", date), "at": ("2024-02-29 12:30:00", datetime),
        "price": ("1.25", wp.decimal(2)),
    }  # fmt: skip
    for name, (text, type_) in texts.items():
        frame = spark.createDataFrame([(text,)], f"`{name}` string")
        with wp.Session(engine="spark") as session:
            with pytest.raises(SourceRejected, match="To convert it: declare str and take") as caught:
                session.protect(wp.source("s", {name: type_}), frame, budget=1)
            assert str(caught.value).endswith("in queries, null where the text is none.")
    numbers = spark.createDataFrame([(7,)], "n int")
    with wp.Session(engine="spark") as session:
        with pytest.raises(SourceRejected) as caught:
            session.protect(wp.source("s", n=str), numbers, budget=1)
        said = str(caught.value).partition("To convert it: take ")[2].partition(" in SQL")[0]
        session.protect(wp.source("s", n=str), numbers.selectExpr(f"{said.replace('…', 'n')} AS n"), budget=1)
