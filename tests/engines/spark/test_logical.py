"""Dates, timestamps, decimals and categories on Spark: functions as Python has them, and frames at the door."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.logical import CHECKS, SOURCE, compare, query, rows
from wpinq.dataset import EngineDataset
from wpinq.engines.relational.spark.cluster import SparkDatabase
from wpinq.errors import SourceRejected
from wpinq.expr.logical_values import presenter
from wpinq.expr.values import normalize


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


def test_times_of_day_are_offered_as_rows(spark: Any) -> None:
    clocks = wp.source("clocks", at=time)
    with wp.Session(engine="spark") as session:
        with pytest.raises(SourceRejected, match="offer rows instead"):
            session.protect(clocks, spark.sql("SELECT 1 AS at"), budget=1)
        session.protect(clocks, [(time(12),)], budget=9)
        hours = session.release(clocks.select(lambda c: wp.hour(c.at)).noisy_count(epsilon=9, over=range(24)))
        assert isinstance(hours, wp.Answers) and hours[12] > 0
