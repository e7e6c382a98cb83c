"""Spark with two executors, one of which is killed while a release reads their rows: `python -m` of a test.

    python -m tests.support.spark_cluster FOLDER PLANS

What it found goes to standard output as JSON. The executors' own files are in FOLDER/home/work.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from math import isclose
from pathlib import Path
from random import Random
from typing import Any

import wpinq as wp
from tests.support.local_spark import SETTINGS
from tests.support.plans import OPERATORS, random_case
from tests.support.relational import evaluate
from wpinq import functions as F
from wpinq.engines.reference import Reference
from wpinq.engines.sql import sums
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.errors import EvaluationFailed, PlanError, SourceRejected
from wpinq.sinks.laplace import LaplaceSink

FIRST = 47_110_000
"""Nodes from here on: numbers that nothing else has."""
LISTS = wp.source("lists", node=int, xs=list[float])
SUMS = LISTS.select(lambda row: (row.node % 7, F.sum(row.xs) > 9)).group_by(lambda pair: pair[1], lambda g: F.count(g))
ROWS = {(FIRST + i, (0.1 * i, 1e100, 0.7, -1e100)): 1.0 for i in range(200)}


def start(folder: Path) -> Any:
    import pyspark
    from pyspark.sql import SparkSession

    home = folder / "home"  # of links, for the executors' files are put there
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    os.environ.update(SPARK_HOME=str(home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    silent = folder / "log4j2.properties"
    appender = "appender.none.type = Null\nappender.none.name = none\nrootLogger.appenderRef.none.ref = none\n"
    silent.write_text(f"{appender}rootLogger.level = off\n")  # without an appender Spark takes its own file
    secret = {"spark.authenticate": "true", "spark.authenticate.secret": "of this test"}
    wanted = SETTINGS | secret | {
        "spark.network.crypto.enabled": "true",
        "spark.executor.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={silent}",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # which makes one partition of few rows
        "spark.default.parallelism": "2",
        "spark.local.dir": str(folder / "local"),
    }  # fmt: skip
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("wpinq tests")
    for name, value in wanted.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def held_up(folder: Path) -> Callable[[Any], float]:
    """The sum of a list, after it said which executor it is in and was let go on."""
    place, real = str(folder), sums.list_sum

    def list_sum(values: Any) -> float:
        if not os.path.exists(f"{place}/go"):
            with open(f"/proc/{os.getppid()}/stat") as daemon:  # of Python, whose parent is the executor
                java = daemon.read().rsplit(")", 1)[1].split()[1]
            open(f"{place}/{java}.executor", "w").close()
            while not os.path.exists(f"{place}/go"):
                time.sleep(0.05)
        return float(real(values))

    return list_sum


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def killed_while(folder: Path, count: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether work went on when some executors in it were dead, and what became of it."""
    for left in [*folder.glob("*.executor"), *folder.glob("go")]:
        left.unlink()
    found: list[Any] = []

    def attempt() -> None:
        try:
            work()
            found.append(None)
        except EvaluationFailed as failed:
            found.append([str(failed), str(failed.__cause__), str(failed.__context__)])

    thread = threading.Thread(target=attempt)
    thread.start()
    while len(list(folder.glob("*.executor"))) < 2 and thread.is_alive():
        time.sleep(0.05)
    executors = [int(path.stem) for path in sorted(folder.glob("*.executor"))]
    assert all("CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_text() for process in executors)
    for process in executors[:count]:
        os.kill(process, signal.SIGKILL)
    while any(map(alive, executors[:count])):
        time.sleep(0.05)
    went_on = thread.is_alive() and not found and len(executors) == 2
    (folder / "go").touch()  # before that the work of neither could end
    thread.join()
    return went_on, found[0]


def bits(weights: Any) -> list[tuple[str, str]]:
    return sorted((repr(record), float(weight).hex()) for record, weight in weights.items())


def unlike(count: int) -> Iterator[str]:
    """The random plans of other bits than in DuckDB, or of weights that the reference has not but for rounding."""
    with SparkDatabase() as database:
        for number in range(count):
            rng = Random(f"{number} on a cluster")
            case = random_case(rng, OPERATORS[number % len(OPERATORS)])
            data = {name: {x: float(w) for x, w in given.items()} for name, given in case.data.items()}
            try:
                found = database.evaluate(case.plan, data)
            except PlanError as gap:
                yield f"{number}: {gap}"
                continue
            exact = Reference().evaluate(case.plan, data)
            near = {*found} == {*exact} and all(isclose(found[x], exact[x], rel_tol=1e-12) for x in exact)
            if bits(found) != bits(evaluate(case.plan, data)) or not near:
                yield f"{number}: {case.operator}"


def main(folder: Path, plans: int) -> None:
    (folder / "go").touch()
    sums.list_sum = held_up(folder)
    seen: list[dict[Any, float]] = []
    draw = LaplaceSink.draw

    def watched(self: LaplaceSink, output: Any, keys: Any, scales: Any, random: Any) -> Any:
        seen.append(output.weights(keys))
        return draw(self, output, keys, scales, random)

    LaplaceSink.draw = watched  # type: ignore[method-assign]
    spark, told = start(folder), dict[str, Any]()
    rows = [(node, list(xs)) for node, xs in ROWS]
    frame = spark.createDataFrame(rows, "node bigint, xs array<double>").repartition(2)
    with wp.Session(engine="spark", accept=["executor_log"]) as session:
        session.protect(LISTS, frame, budget=10)
        expected = evaluate(SUMS.plan, {"lists": ROWS}), Reference().evaluate(SUMS.plan, {"lists": ROWS})
        domain = list(expected[0])
        asked = SUMS.noisy_count(epsilon=1, over=domain)
        told["went on"], _ = killed_while(folder, 1, lambda: session.release(asked))
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        told["lost"] = sum(not executors.apply(place).isActive() for place in range(executors.size()))
        told["same"] = [bits(seen[-1]) == bits(other) for other in expected]
        told["unlike"] = list(unlike(plans))
        again = SUMS.noisy_count(epsilon=2, over=domain)
        told["without both"] = killed_while(folder, 2, lambda: session.release(again))
        told["spent"] = str(session.spent("lists"))
        try:
            unfit = spark.range(5).selectExpr(f"CAST(id + {FIRST} AS TINYINT) AS x")
            session.protect(wp.source("bytes", x=int), unfit, budget=1)
        except SourceRejected as refused:
            told["refused"] = str(refused)
    spark.stop()
    sys.stdout.write(f"{json.dumps(told)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
