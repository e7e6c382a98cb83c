"""What Spark refuses, what leaves the cluster, and what is said of failures."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.columns.dataset import EngineDataset
from wpinq.engines.sql.spark import session
from wpinq.engines.sql.spark.cluster import FAILED, SparkDatabase
from wpinq.errors import EvaluationFailed, PlanError, SourceRejected
from wpinq.plan.arithmetic import EXACT

pytestmark = pytest.mark.long

NUMBERS = wp.source("numbers", int, weights=True)


def test_a_sum_of_floats_inside_a_list_is_refused_by_step(database: SparkDatabase) -> None:
    lists = wp.source("lists", list[list[float]])
    nested = lists.select(lambda xs: F.map(xs, lambda x: F.sum(x)))
    with pytest.raises(PlanError, match='"spark" cannot run this plan: Select: a sum of floats, inside'):
        database.evaluate(nested.plan, {"lists": {((0.5, 0.25),): 1.0}})
    flat = wp.source("flat", list[float]).select(lambda x: F.sum(x))
    assert database.evaluate(flat.plan, {"flat": {(0.1, 0.2, 1e100, 0.3, -1e100): 1.0}}) == {0.6: 1.0}


def test_exact_arithmetic_and_missing_data_are_refused(database: SparkDatabase) -> None:
    with pytest.raises(PlanError, match="reference"):
        database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}}, EXACT)
    with pytest.raises(PlanError, match="no data for the source 'numbers'"):
        database.evaluate(NUMBERS.plan, {})
    with pytest.raises(PlanError, match="weigh more than the cap"):
        database.evaluate(wp.source("few", int, cap=1).plan, {"few": {1: 1.0, 2: 1.0}})


def test_a_failure_says_nothing_of_the_data(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark.sql("SELECT CAST(CAST(id + 4711 AS TINYINT) AS BIGINT) AS c0, 1D AS w FROM range(5)")
    with SparkDatabase() as database:
        with pytest.raises(EvaluationFailed) as failed:
            database.evaluate(NUMBERS.plan, {"numbers": EngineDataset(frame)})
        assert str(failed.value) == FAILED
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert "4711" not in "".join(capfd.readouterr())
        assert database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}}) == {1: 1.0}, "and the database goes on"


def test_an_error_with_a_query_is_not_logged_either(
    database: SparkDatabase, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object) -> None:
        database.open().session.sql("SELECT CAST(4711 + id AS TINYINT) FROM range(2)").collect()

    monkeypatch.setattr("wpinq.engines.sql.spark.cluster.run", fail)
    with pytest.raises(EvaluationFailed, match="the reason cannot be shown"):
        database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}})
    assert "4711" not in "".join(capfd.readouterr())


def test_logs_are_off_before_a_frame_is_checked(spark: Any) -> None:
    from pyspark.logger import PySparkLogger

    root = spark._jvm.org.apache.logging.log4j.LogManager
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    frame = spark.sql("SELECT CAST(id + 4711 AS TINYINT) AS x FROM range(2)")
    spark.sparkContext.setLogLevel("WARN")
    logger.disabled = False
    try:
        with wp.Session(engine="spark") as session:
            offered = session._engine.attach(frame)
            assert isinstance(offered, EngineDataset)
            assert offered.frame is frame
            assert str(root.getRootLogger().getLevel()) == "OFF"
            assert logger.disabled
            with pytest.raises(SourceRejected, match="cannot be read by Spark"):
                session.protect(wp.source("bytes", x=int), frame, budget=1)
    finally:
        spark.sparkContext.setLogLevel("OFF")
        logger.disabled = True


def test_logs_are_turned_off_whoever_turned_them_on(spark: Any) -> None:
    log4j = spark._jvm.org.apache.logging.log4j
    name = "org.apache.spark.executor.Executor"
    with SparkDatabase() as database:
        for _ in ("at first", "later on"):
            spark.sparkContext.setLogLevel("WARN")
            log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)
            logging.getLogger("py4j.clientserver").setLevel(logging.DEBUG)
            database.open()
            assert not logging.getLogger("py4j.clientserver").isEnabledFor(logging.CRITICAL)
            levels = [log4j.LogManager.getRootLogger().getLevel(), log4j.LogManager.getLogger(name).getLevel()]
            assert [str(level) for level in levels] == ["OFF", "OFF"]


def test_the_progress_bar_is_stopped(spark: Any) -> None:
    java, context = spark._jvm.java, spark.sparkContext._jsc.sc()
    written, before = java.io.ByteArrayOutputStream(), java.lang.System.err
    place = context.getClass().getDeclaredField("_progressBar")
    place.setAccessible(True)

    def work() -> int:
        written.reset()
        spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 1500L)").collect()
        return int(written.size())

    java.lang.System.setErr(java.io.PrintStream(written))
    bar = spark._jvm.org.apache.spark.ui.ConsoleProgressBar(context)  # as a Spark has it that Python started
    none, held = place.get(context), spark._jvm.scala.Option.apply(bar)
    place.set(context, held)
    try:
        assert work() > 0
        session.start()
        assert work() == 0
    finally:
        bar.stop()
        place.set(context, none)
        java.lang.System.setErr(before)


@pytest.mark.parametrize("shown", [True, False])
def test_a_progress_bar_that_cannot_be_stopped_is_refused(
    spark: Any, monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    monkeypatch.setattr(type(spark.sparkContext._jsc), "sc", None, raising=False)  # of a Spark that keeps it elsewhere
    conf = spark.sparkContext.getConf()
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    conf.set("spark.ui.showConsoleProgress", str(shown).lower())
    if shown:
        with pytest.raises(PlanError, match=r"start it with spark\.ui\.showConsoleProgress=false"):
            session.start()
    else:
        session.start()


def test_the_session_that_was_active_stays_so(spark: Any) -> None:
    active = type(spark).getActiveSession()
    with SparkDatabase() as database:
        assert database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}}) == {1: 1.0}
        assert type(spark).getActiveSession() is active
        assert spark.sql("SHOW VIEWS").count() == 0


def test_programs_that_nest_too_deep_are_refused_from_the_plan() -> None:
    long = NUMBERS
    for _ in range(150):
        long = long.select(lambda n: n * 3 + 1)
    with pytest.raises(PlanError, match="nests more than 100 deep"):
        SparkDatabase.check(long.plan)
    subsets = NUMBERS.select_many(lambda n: F.subsets(F.range(0, 20, limit=20), 9), limit=5)
    with pytest.raises(PlanError, match="stand more than 8 deep inside one another"):
        SparkDatabase.check(subsets.plan)


def test_only_the_keys_asked_for_leave_the_cluster(database: SparkDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = pytest.importorskip("pyspark.sql.classic.dataframe")
    collected = []
    collect = frames.DataFrame.collect

    def watched(self: Any) -> Any:
        rows = collect(self)
        collected.extend(map(tuple, rows))
        return rows

    pairs = wp.source("pairs", a=int | None, b=list[int], weights=True)
    data = {(1, (1, 2)): 2.0, (None, ()): 0.5, (2, (3,)): 1.0, (3, ()): 4.0}
    monkeypatch.setattr(frames.DataFrame, "collect", watched)
    found = database.evaluate(pairs.plan, {"pairs": data}, keys=[(None, ()), (2, (3,)), (9, ())])
    assert found == {(None, ()): 0.5, (2, (3,)): 1.0}
    assert sorted(row[-1] for row in collected) == [0.5, 1.0]


def test_of_a_quantile_only_sums_leave_the_cluster(database: SparkDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = pytest.importorskip("pyspark.sql.classic.dataframe")
    collected: list[tuple[Any, ...]] = []
    collect = frames.DataFrame.collect

    def watched(self: Any) -> Any:
        rows = collect(self)
        collected.extend(map(tuple, rows))
        return rows

    monkeypatch.setattr(frames.DataFrame, "collect", watched)
    data = dict.fromkeys(range(4000, 5000), 1.0)
    found = database.rank_weights(NUMBERS.plan, {"numbers": data}, [4600, 0, 4100])
    assert found == [(600, 1, 399), (0, 0, 1000), (100, 1, 899)]
    assert len(collected) < 9
    assert not {number for row in collected for number in row} & set(data)


def test_weights_of_0_do_not_stop_a_quantile(database: SparkDatabase) -> None:
    """Half of the least float is 0, in a table that is stored before it is summed."""
    counts = NUMBERS.group_by(lambda x: x % 2, lambda group: F.count(group))
    for weight, before in ((1.0, 0.5), (5e-324, 0)):
        sides = database.rank_weights(counts.plan, {"numbers": {1: 1.0, 2: weight}}, [(1, 1)])
        assert sides == [(before, 0.5, 0)]


def test_a_candidate_given_twice_has_the_same_sides_twice(database: SparkDatabase) -> None:
    assert database.rank_weights(NUMBERS.plan, {"numbers": {1: 1.0, 2: 1.0, 3: 1.0}}, [2, 2]) == [(1, 1, 1), (1, 1, 1)]


def test_a_missing_java_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    with pytest.raises(PlanError, match="needs pyspark and Java 17") as refused:
        session.start()
    assert refused.value.__cause__ is None


def test_a_database_that_was_closed_stays_closed(spark: Any) -> None:
    database = SparkDatabase()
    assert database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}}) == {1: 1.0}
    database.close()
    with pytest.raises(PlanError, match="closed"):
        database.evaluate(NUMBERS.plan, {"numbers": {1: 1.0}})
    assert spark.range(3).count() == 3, "the session that was there goes on"
