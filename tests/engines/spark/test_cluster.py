"""Spark as a cluster: an executor that dies, a session that is remote, and what others may see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.support.spark_cluster import FIRST
from wpinq.engines.sql.spark import session
from wpinq.errors import PlanError

pytestmark = pytest.mark.long

NUMBERS = wp.source("numbers", int)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own, without what the Spark of these tests put into the environment."""
    own = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS")
    cleared = {name: value for name, value in os.environ.items() if name not in own}
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, *command], env=cleared | paths | environment, capture_output=True, text=True, check=False
    )


def test_an_executor_may_die_in_a_release(spark: Any, tmp_path: Path) -> None:
    done = run("-m", "tests.support.spark_cluster", str(tmp_path), "200")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["went on"], "the release, when the executor was dead"
    assert found["lost"] == 1
    assert found["same"] == [True, True]
    assert found["unlike"] == []
    went_on, (message, cause, context) = found["without both"]
    assert went_on
    assert message.endswith("the reason is not disclosed")
    assert cause == context == "None"
    assert found["spent"] == "3"
    assert found["refused"].endswith("show it yourself to see why")
    logs = [path for path in (tmp_path / "home" / "work").rglob("std*") if path.is_file()]
    assert len(logs) >= 6, "of three executors and more"
    texts = [done.stdout, done.stderr, *(path.read_text(errors="replace") for path in logs)]
    assert not any(str(FIRST)[:4] in text for text in texts)


REMOTE = """
from pyspark.sql import SparkSession
import wpinq as wp

spark = SparkSession.builder.remote("local[1]").getOrCreate()
numbers = wp.source("numbers", int)
for data in (spark.range(3).selectExpr("id AS value"), [1, 2]):
    with wp.Session(engine="spark") as session:
        try:
            session.protect(numbers, data, budget=1)
            session.release(numbers.noisy_count(epsilon=0.5, over=[1]))
        except wp.errors.PlanError as error:
            print(error)
        print(type(spark).__module__, session.debited())
spark.stop()
"""


def test_spark_connect_is_refused_for_what_it_is(spark: Any) -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect is not installed: pip install pyspark[connect]")
    done = run("-c", REMOTE, SPARK_LOCAL_IP="127.0.0.1")
    assert done.stdout.splitlines() == 2 * [session.CONNECT, "pyspark.sql.connect.session {}"], done.stderr


@pytest.mark.parametrize("word", session.EXPOSURES)
def test_a_spark_that_shows_data_is_refused_unless_that_is_accepted(
    spark: Any, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    conf = spark.sparkContext.getConf()
    for name, _, safe in session.EXPOSURES.values():
        conf.set(name, safe)
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    name, _, safe = session.EXPOSURES[word]
    if word in ("network", "executor_log"):
        conf.set(name, "false")
        session.start(accepted=())  # of one process
        conf.set("spark.master", "yarn")
    conf.set(name, "true" if safe == "false" else "false")
    rows = spark.range(3).selectExpr("id AS value")
    with wp.Session(engine="spark") as closed:
        with pytest.raises(PlanError, match=f"start it with {name}={safe}, or .*accept=.'{word}'.") as refused:
            closed.protect(NUMBERS, rows, budget=1)
        assert refused.value.__context__ is None
        closed.protect(NUMBERS, [1, 2], budget=1)
        with pytest.raises(PlanError, match="Spark may show protected data"):
            closed.release(NUMBERS.noisy_count(epsilon=0.5, over=[1]))
        assert closed.spent("numbers") == 0, "refused before the debit"
    with wp.Session(engine="spark", accept=[word]) as told:
        told.protect(NUMBERS, rows, budget=1)
        told.release(NUMBERS.noisy_count(epsilon=0.5, over=[1]))
    assert wp.evaluate(NUMBERS, {"numbers": rows}, engine="spark") == dict.fromkeys(range(3), 1.0), "public data"


def test_what_cannot_be_accepted_is_refused(spark: Any) -> None:
    for accept in (["iu"], "ui"):
        with pytest.raises(PlanError, match="accept takes a list of ui, event_log"):
            wp.Session(engine="spark", accept=accept)
    with pytest.raises(PlanError, match='accept is for engine="spark"'):
        wp.Session(accept=["ui"])
