"""Columns of any name in Spark frames and parquet: each field is read from the column that its declaration gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.data.test_any_column import NAMES
from wpinq.errors import SourceRejected

pytestmark = pytest.mark.long

SPARKS = ["a.b", "`a`", "``", "g0", "c0", "p", "w", "m", "u0", "x0", "select", "FROM", "{held}", "$1", ":name", "-- ?"]
"""Names that mean something in Spark's SQL, or that the engine gives columns of its own."""
ALL = [*NAMES, *SPARKS]
COLUMNS = {f"f{place}": name for place, name in enumerate(ALL)}
WIDE = wp.source("wide", dict.fromkeys(COLUMNS, int), columns=COLUMNS)


def frame(spark: Any) -> Any:
    """One row, in which each column has its place, and one more column whose name differs by case alone."""
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField(name, LongType()) for name in reversed([*ALL, "age"])])
    return spark.createDataFrame([tuple(reversed([*range(len(ALL)), -1]))], schema)


def test_each_field_is_read_from_its_column(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    sensitive = spark.newSession()
    sensitive.conf.set("spark.sql.caseSensitive", "true")
    frame(sensitive).write.parquet(str(path))
    for data in (frame(spark), frame(sensitive)):
        assert wp.evaluate(WIDE, {"wide": data}, "spark") == {tuple(range(len(ALL))): 1.0}
    with wp.Session(engine="spark") as session:
        session.protect(WIDE, path, budget=10**7)
        answers = session.release(WIDE.select(lambda row: row.f1).noisy_count(10**6, over=[0, 1]))
        assert [round(value, 2) for value in answers.values] == [0.0, 1.0]


def test_ids_sizes_and_facts_are_of_columns_of_any_name(spark: Any) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    names = ["Kunden-`Nr.`", "a.b", "p"]
    schema = StructType([StructField(name, LongType()) for name in names])
    data = spark.createDataFrame([(who, n, n + 1) for who in range(3) for n in range(5)], schema)
    options: dict[str, Any] = {"columns": {"a": "a.b", "b": "p"}}
    visits = wp.source("s", a=int, b=int, person="Kunden-`Nr.`", at_most=2, **options)
    kept = wp.evaluate(visits, {"s": data}, "spark")
    assert sum(kept.values()) == 6
    rows = [row.asDict() for row in data.collect()]
    assert kept == wp.evaluate(visits, {"s": rows}, "duckdb")
    for broken, words in (
        ({"keys_at_most": {"a": 1}, "unit_weight": 3}, "at most 1 record with one a"),
        ({"facts": ["symmetric"], "unit_weight": 2}, "different weight"),
        ({"facts": ["unit_weights"]}, "a row twice"),
    ):
        source = wp.source("s", a=int, b=int, **options, **broken)  # type: ignore[arg-type]
        extra = data.union(data.selectExpr("`Kunden-``Nr.```", "`a.b`", "7L")) if "keys_at_most" in broken else data
        with wp.Session(engine="spark") as session, pytest.raises(SourceRejected, match=words):
            session.protect(source, extra, budget=1)


def test_a_column_that_is_missing_or_unfit_is_named_and_nothing_of_the_data(spark: Any) -> None:
    for name in ("a.b", "`a`", "größe", "select"):
        given = wp.source("s", x=int, columns={"x": name})
        for data, words in (
            (spark.range(1).toDF("other"), "no column named"),
            (spark.range(1).selectExpr("CAST(NULL AS INT)").toDF(name), "null where int is declared"),
            (spark.range(1).selectExpr("'4711'").toDF(name), "of another type than int"),
            (spark.range(1).selectExpr("1", "2").toDF(name, name), "several columns named"),
        ):
            with wp.Session(engine="spark") as session, pytest.raises(SourceRejected) as refused:
                session.protect(given, data, budget=1)
            assert words in str(refused.value)
            assert repr(name) in str(refused.value)
            assert "4711" not in str(refused.value)


def test_fields_of_records_may_be_words_of_sql(spark: Any) -> None:
    inside = {"select": int, "from": str, "ORDER": int, "x0": int, "f1": int, "g0": int}
    source = wp.source("s", at=inside, items=list[inside])  # type: ignore[valid-type]
    struct = "named_struct('g0', 6, 'f1', 5, 'x0', 4, 'ORDER', 3, 'from', 'b', 'select', 1)"
    data = spark.sql(f"SELECT array({struct}) AS items, {struct} AS at")
    record = (1, "b", 3, 4, 5, 6)
    assert wp.evaluate(source, {"s": data}, "spark") == {(record, (record,)): 1.0}


def test_a_schema_of_a_frame_reads_it(spark: Any) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    names = ["First Name", "größe", "a.b", "`", "select"]
    data = spark.createDataFrame([(1, 2, 3, 4, 5)], StructType([StructField(name, LongType()) for name in names]))
    found = wp.schema(data, "s")
    assert set(found.columns.values()) <= set(names)
    assert wp.evaluate(found.source(), {"s": data}, "spark") == {(1, 2, 3, 4, 5): 1.0}
