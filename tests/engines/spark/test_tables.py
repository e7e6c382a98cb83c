"""The plans of a table by name, on Spark as in DuckDB."""

from __future__ import annotations

import pytest

import wpinq as wp
from wpinq.api.query import Query
from wpinq.api.simulate import evaluate
from wpinq.engines.sql.spark.cluster import SparkDatabase

pytestmark = pytest.mark.long

PEOPLE = wp.source("people", city=str | None, age=int | None)
ROWS = [("a", 1), ("b", None), (None, 5), ("a", 50), ("c", 9)] * 20


def test_a_table_weighs_the_same(database: SparkDatabase) -> None:
    asked = PEOPLE.by("city", keys=["a", None], other="z").agg(
        n=wp.count(),
        m=wp.mean("age", 0, 40),
        s=wp.sum("age", 0, 9),
        d=wp.count_distinct("age"),
        q=wp.median("age", range(9)),
        epsilon=1,
    )
    for measurement in asked.measurements:
        query = Query(measurement.plan)
        assert evaluate(query, {"people": ROWS}, "spark") == evaluate(query, {"people": ROWS}, "duckdb")
