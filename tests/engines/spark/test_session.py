"""A session on Spark: data that stay there, refusals, and the answers that DuckDB would give."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F, graphs
from wpinq.columns.dataset import let_go
from wpinq.engines.sql.script import SqlStatement
from wpinq.engines.sql.spark import session
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.engines.sql.spark.session import DryRunViews, SparkViews
from wpinq.errors import EvaluationFailed, PlanError, SessionError, SourceRejected
from wpinq.kernel.release import Release
from wpinq.sinks.laplace import LaplaceSink

pytestmark = pytest.mark.long

EDGES = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
ROWS = [(1, 2), (1, 3), (2, 3), (4, 1)]
DEGREES = EDGES.select(lambda e: e.src).noisy_count(epsilon=0.5, over=range(1, 6))


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> list[dict[Any, float]]:
    """The outputs that noise was added to: what the driver saw."""
    seen: list[dict[Any, float]] = []

    def watched(self: LaplaceSink, output: Any, keys: Any, scales: Any, random: Any) -> list[float]:
        weights = output.weights(keys)
        seen.append(dict(weights))
        return [weights.get(key, 0.0) for key in keys]

    monkeypatch.setattr(LaplaceSink, "draw", watched)
    return seen


def frame(spark: Any, rows: list[tuple[int | None, ...]], schema: str = "src bigint, dst bigint") -> Any:
    columns = [part.split() for part in schema.split(", ")]
    values = ", ".join(f"({', '.join('NULL' if value is None else str(value) for value in row)})" for row in rows)
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns)
    return spark.sql(f"SELECT {casts} FROM VALUES {values} AS t({', '.join(name for name, _ in columns)})")


def test_a_count_of_triangles_is_drawn_from_the_same_graph_as_in_duckdb(spark: Any) -> None:
    rows = [(a, b) for a in range(6) for b in range(a)]
    for edges in (EDGES, graphs.symmetrize(EDGES.where(lambda e: e.src != 5))):
        asked = graphs.triangle_count(edges, epsilon=10**6)
        counts = []
        for engine, data in (("spark", frame(spark, rows)), ("duckdb", rows)):
            with wp.Session(engine=engine) as session:
                session.protect(EDGES, data, budget=10**6)
                counts.append(session.release(asked).value)
        assert counts == [20 if edges is EDGES else 10] * 2


def test_a_frame_and_parquet_stay_in_spark_and_only_asked_keys_come_back(
    spark: Any, tmp_path: Path, weights: list[dict[Any, float]]
) -> None:
    path = tmp_path / "edges.parquet"
    frame(spark, ROWS).write.parquet(str(path))
    for data in (frame(spark, ROWS), path):
        with wp.Session(engine="spark") as session:
            session.protect(EDGES, data, budget=2.0)
            answers = session.release(DEGREES)
            assert isinstance(answers, wp.Answers)
            assert list(answers.values) == [2.0, 1.0, 0.0, 1.0, 0.0]
            release = session.release(EDGES.select(lambda e: e.dst).noisy_count(epsilon=0.5))
            assert isinstance(release, Release)
            assert release[3] == 2.0
            assert weights[-1] == {3: 2.0}
    assert weights[0] == {1: 2.0, 2: 1.0, 4: 1.0}


def held_by_spark(spark: Any) -> set[int]:
    """The numbers of what Spark keeps, none of which it gives twice: what it forgets of earlier tests changes none."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def test_data_that_change_later_change_nothing(spark: Any, tmp_path: Path, weights: list[dict[Any, float]]) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("1,2\n1,3\n2,3\n")
    data, before = spark.read.csv(str(path), schema="src bigint, dst bigint"), held_by_spark(spark)
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, data, budget=2.0)
        path.write_text("1,2\n1,2\n2,2\n")
        session.release(DEGREES)
        assert weights == [{1: 2.0, 2: 1.0}]
        with pytest.raises(SourceRejected, match="a row twice"):
            session.protect(EDGES, data, budget=2.0)
        path.write_text("4,2\n4,3\n4,4\n")
        session.protect(EDGES, data, budget=2.0)
        session.release(DEGREES)
        assert weights[1:] == [{4: 3.0}]
        kept = held_by_spark(spark) - before
        assert len(kept) == 1, "the rows of the state before are let go, and those refused"
    assert held_by_spark(spark) <= before


def test_rows_that_spark_lost_are_not_read_again(spark: Any) -> None:
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, frame(spark, ROWS), budget=2.0)
        let_go(session._protected["edges"].weights.frame)  # of Spark
        with pytest.raises(EvaluationFailed, match="the reason is not disclosed"):
            session.release(DEGREES)


def test_what_is_no_frame_is_refused(spark: Any) -> None:
    with wp.Session(engine="spark") as session, pytest.raises(SourceRejected, match=r"offer one \(rdd\.toDF\(\)"):
        session.protect(EDGES, frame(spark, ROWS).rdd, budget=1.0)
    with wp.Session() as session, pytest.raises(SourceRejected, match="offer"):
        session.protect(EDGES, frame(spark, ROWS), budget=1.0)


def test_a_program_that_is_too_much_for_spark_is_refused_before_the_debit(spark: Any) -> None:
    """Spark reads this one, and runs out of Java's stack when it analyses or optimises it."""
    deep: wp.Query = wp.source("numbers", int)
    for _ in range(90):
        deep = deep.select(lambda n: (n * 3 + 1) % 1000)
    with wp.Session(engine="spark") as session:
        session.protect(wp.source("numbers", int), [1, 2, 3], budget=1)
        SparkDatabase.check(deep.plan)
        with pytest.raises(PlanError, match="too much for this Spark to plan"):
            session.release(deep.noisy_count(epsilon=0.5, over=[1]))
        assert session.spent("numbers") == 0
        session.release(wp.source("numbers", int).noisy_count(epsilon=0.5, over=[1]))


def test_a_batch_makes_each_step_once_and_changes_no_bit(
    spark: Any, weights: list[dict[Any, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    degrees = EDGES.group_by(lambda e: e.src, lambda group: F.count(group))
    joined = degrees.join(EDGES, lambda d: d[0], lambda e: e.dst, lambda d, e: (d[1], e.src))
    plans = [joined.where(lambda pair, i=i: pair[0] > i).noisy_count(0.1, over=[(1, 2), (2, 1)]) for i in range(4)]
    made: list[tuple[str, bool]] = []
    create = SparkViews.create

    def creating(views: SparkViews, statement: SqlStatement, shared: bool) -> None:
        if not isinstance(views, DryRunViews):
            made.append((statement.creates, shared or statement.creates in views.kept))
        create(views, statement, shared)

    monkeypatch.setattr(SparkViews, "create", creating)
    before = held_by_spark(spark)
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, ROWS, budget=10)
        session.release(plans)
        together = [name for name, _ in made]
        assert len(set(together)) == len(together) > 0
        assert made[-1][1], "what all four read"
        assert spark.sql("SHOW VIEWS").count() == 0
        batch, weights[:] = weights[:], []
        made.clear()
        for plan in plans:
            session.release(plan, fresh=True)
        assert weights == batch
        assert len(made) > len(together)
    assert held_by_spark(spark) <= before


STOPPED = """
import pathlib
import pyspark
import wpinq as wp

numbers = wp.source("numbers", int)
session = wp.Session("ledger.db", engine="spark")
session.protect(numbers, [1, 2, 3], budget=1)
session.release(numbers.noisy_count(epsilon=0.25, over=[1]))
context = pyspark.SparkContext._active_spark_context
data = pyspark.sql.SparkSession(context).range(3).selectExpr("id AS value")
session.protect(wp.source("more", int), data, budget=1)
texts = pyspark.sql.SparkSession(context).range(1000).selectExpr("concat('Rumpelstilzchen ', id) AS value")
session.protect(wp.source("names", str), texts, budget=1)
session.protect(wp.source("rows", str), [f"Rumpelstilzchen {number}" for number in range(1000)], budget=1)
session.release(wp.source("rows", str).noisy_count(epsilon=0.5, over=["nobody"]))
written = [path for path in pathlib.Path(".").rglob("*") if path.is_file()]
print(any(path.name.startswith("shuffle_") for path in written))
print([path for path in written if b"Rumpelstilzchen" in path.read_bytes()])
settings = ("spark.ui.enabled", "spark.ui.showConsoleProgress", "spark.eventLog.enabled", "spark.io.encryption.enabled")
print([context.getConf().get(name) for name in settings])
context.stop()
for act in (
    lambda: session.release(numbers.noisy_count(epsilon=0.5, over=[2])),
    lambda: session.protect(numbers, data, budget=1),
):
    try:
        act()
    except wp.errors.PlanError as error:
        print(error, error.__context__)
print(session.spent("numbers"))
session.close()
try:
    session._ledger.account("numbers")
except wp.errors.LedgerError:
    print("closed")
"""


def test_a_spark_started_here_shows_and_writes_nothing_and_may_be_stopped(spark: Any, tmp_path: Path) -> None:
    wanted = (
        "--master local[2] --driver-memory 1g --conf spark.ui.enabled=true --conf spark.eventLog.enabled=true "
        "--conf spark.cleaner.referenceTracking=false "  # which deletes files whenever Java collects its garbage
        f"--conf spark.local.dir={tmp_path} --conf spark.shuffle.compress=false --conf spark.sql.shuffle.partitions=2"
    )
    environment = os.environ | {
        "PYSPARK_SUBMIT_ARGS": f"{wanted} pyspark-shell",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_LOCAL_DIRS"):  # of the Spark of these tests, if it set them
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    refusal = f"{session.STOPPED} None"
    expected = ["True", "[]", "['false', 'false', 'false', 'true']", refusal, refusal, "0.25", "closed"]
    assert done.stdout.splitlines() == expected, done.stderr


def test_public_data_are_evaluated_and_simulated(spark: Any) -> None:
    query = EDGES.select(lambda e: e.src)
    assert wp.evaluate(query, {"edges": ROWS}, engine="spark") == {1: 2.0, 2: 1.0, 4: 1.0}
    drawn = [wp.simulate(DEGREES, {"edges": ROWS}, seed=1, engine=engine).values for engine in ("spark", "duckdb")]
    assert list(drawn[0]) == list(drawn[1])


def test_rows_and_choices_work_too(spark: Any) -> None:
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, ROWS, budget=100.0)
        chosen = session.release(EDGES.select(lambda e: e.src).most_common(epsilon=80, candidates=[1, 2, 9]))
        assert isinstance(chosen, wp.Answers)
        assert chosen.value == 1


def test_a_quantile_brings_no_record_to_the_driver(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("the whole output")

    monkeypatch.setattr("wpinq.engines.sql.spark.session.fetch_all", refuse)
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, [(place, place + 1) for place in range(101)], budget=100.0)
        median = EDGES.select(lambda e: e.src).median(epsilon=80, candidates=[10, 20, 50, 70])
        chosen = session.release(median)
        assert isinstance(chosen, wp.Answers)
        assert chosen.value == 50


@pytest.mark.parametrize(
    ("source", "rows", "schema", "words"),
    [
        (
            {"src": int, "dst": int},
            [(1, 2), (1, None)],
            "src bigint, dst bigint",
            "has in field 'dst' null where int is",
        ),
        ({"src": int, "dst": int}, [(1, 2)], "src bigint, dst double", "field 'dst' is of another type than int"),
        ({"src": int, "dst": int}, [(1, 2)], "src bigint, other bigint", "no column named 'dst'"),
        ({"x": float}, "SELECT CAST('inf' AS DOUBLE) AS x", "", "has in field 'x' nan or infinity"),
        ({"x": list[int]}, [(1,)], "x int", "another type than list[int]. A list is an array"),
        ({"x": int}, [(5,), (6,), (7,)], "x int", "above the cap 2"),
        ({"x": str}, "SELECT CAST(X'ff' AS STRING) AS x", "", "not UTF-8"),
    ],
)
def test_unfit_frames_are_refused_without_a_value(spark: Any, source: Any, rows: Any, schema: str, words: str) -> None:
    declared = wp.source("given", source, cap=2)
    data = spark.sql(rows) if isinstance(rows, str) else frame(spark, rows, schema)
    with wp.Session(engine="spark") as session, pytest.raises(SourceRejected) as refused:
        session.protect(declared, data, budget=1.0)
    assert words in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    ("fact", "rows", "words"),
    [
        ("unit_weights", [(1, 2), (1, 2)], "a row twice"),
        ("symmetric", [(1, 2), (2, 1), (3, 4)], "of different weight"),
    ],
)
def test_facts_are_enforced(spark: Any, fact: str, rows: Any, words: str) -> None:
    declared = wp.source("given", {"a": int, "b": int}, unit_weight=2, facts=[fact])
    with wp.Session(engine="spark") as session:
        with pytest.raises(SourceRejected, match=words):
            session.protect(declared, frame(spark, rows, "a bigint, b bigint"), budget=1.0)
        session.protect(declared, frame(spark, [(1, 2), (2, 1)], "a bigint, b bigint"), budget=1.0)


def test_values_are_brought_to_canonical_form(spark: Any, weights: list[dict[Any, float]]) -> None:
    numbers = wp.source("numbers", {"x": float | None, "ok": bool, "text": str})
    data = spark.sql(
        "SELECT * FROM VALUES (-0D, TRUE, 'é'), (0D, TRUE, 'é'), (CAST(NULL AS DOUBLE), FALSE, '') AS t(x, ok, text)"
    )
    with wp.Session(engine="spark") as session:
        session.protect(numbers, data, budget=1.0)
        domain = [(0.0, True, "é"), (None, False, ""), (1.5, True, "")]
        answers = session.release(numbers.noisy_count(epsilon=0.5, over=domain))
        assert isinstance(answers, wp.Answers)
        assert list(answers.values) == [2.0, 1.0, 0.0]


def test_a_failure_after_the_debit_is_one_constant(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ZeroDivisionError("the secret is 4711")

    with wp.Session(engine="spark") as session:
        session.protect(EDGES, frame(spark, ROWS), budget=1.0)
        monkeypatch.setattr("wpinq.engines.sql.spark.cluster.SparkDatabase._run", fail)
        with pytest.raises(EvaluationFailed) as failed:
            session.release(DEGREES)
        assert "4711" not in str(failed.value)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert session.spent("edges") == Fraction(1, 2)


def test_what_spark_does_not_take_is_said_before_anything_is_paid(spark: Any) -> None:
    with pytest.raises(PlanError, match="takes memory and threads from the Spark session"):
        wp.Session(engine="spark", threads=2)
    lists = wp.source("lists", list[list[float]])
    with wp.Session(engine="spark") as session:
        session.protect(lists, [[[0.5]]], budget=1.0)
        nested = lists.select(lambda xs: F.map(xs, lambda x: F.sum(x))).noisy_count(epsilon=0.5, over=[(0.5,)])
        with pytest.raises(PlanError, match="cannot run this plan: Select"):
            session.release(nested)
        assert session.spent("lists") == 0
        with pytest.raises(SourceRejected, match="Spark cannot read the parquet"):
            session.protect(EDGES, "/nowhere/edges.parquet", budget=1.0)


def test_other_data_under_the_same_version_are_refused(spark: Any) -> None:
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, frame(spark, ROWS), budget=1.0, version="1")
        with pytest.raises(SessionError, match="give the new data a new version"):
            session.protect(EDGES, frame(spark, ROWS[:2]), budget=1.0, version="1")


def test_the_example_runs(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    frame(spark, ROWS).write.parquet(str(path))
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "spark_degrees.py"))
    answers = example["main"](str(path), str(tmp_path / "ledger.db"))
    again = example["main"](str(path), str(tmp_path / "ledger.db"))
    assert len(answers.keys) == 20
    assert list(again.values) == list(answers.values), "the second run is answered from the ledger"


def test_public_frames_are_evaluated_where_they_are(spark: Any) -> None:
    query = EDGES.select(lambda e: e.src)
    rows = frame(spark, ROWS)
    assert wp.evaluate(query, {"edges": rows}, "spark") == wp.evaluate(query, {"edges": ROWS})
    answers = wp.simulate(query.noisy_count(1, over=[1, 2]), {"edges": rows}, engine="spark", seed=1)
    assert list(answers.keys) == [1, 2]
    for refuse in (
        lambda: wp.evaluate(query, {"edges": rows}),
        lambda: wp.evaluate(query, {"edges": wp.EdgeList(rows)}, "spark"),
        lambda: wp.Session().protect(EDGES, rows, budget=1),
    ):
        with pytest.raises(SourceRejected, match='engine="spark"'):
            refuse()


def test_a_frame_is_stored_by_one_job_and_checked_by_one_query(spark: Any) -> None:
    declared = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"], records_at_most=9)
    context = spark.sparkContext
    with wp.Session(engine="spark") as session:
        data = frame(spark, [(number, number + 1) for number in range(6)])
        context.setJobGroup("checks", "")
        session.protect(declared, data, budget=1)
        context.setLocalProperty("spark.jobGroup.id", None)
    assert len(context.statusTracker().getJobIdsForGroup("checks")) <= 6


def test_a_plan_is_tried_once_a_process(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = wp.source("tried", int).select(lambda x: x % 7).plan
    with SparkDatabase() as first:
        first.dry_run(plan)
    monkeypatch.delattr("wpinq.engines.sql.spark.session.DryRunViews")
    with SparkDatabase() as second:
        second.dry_run(plan)
        with pytest.raises(PlanError, match="too much for this Spark"):
            second.dry_run(wp.source("tried", float).select(lambda x: x > 7).plan)


def test_a_local_spark_adapts_joins_alone(spark: Any) -> None:
    numbers, data = wp.source("numbers", int, weights=True), {"numbers": {1: 0.75, 2: 2.0}}
    with SparkDatabase() as database:
        for query, adaptive in ((numbers.concat(numbers), "false"), (numbers.intersect(numbers), "true")):
            database.evaluate(query.plan, data)
            assert database.open().session.conf.get("spark.sql.adaptive.enabled") == adaptive
