"""Spark in local mode beside DuckDB: protecting a graph and two releases, their jobs, and what comes to the driver.

    python benchmarks/spark.py [--edges 1000000] [--seed 1] [--memory 1536m] [--rounds 3] [--plain]

The graph is public, made here: every node has edges to nodes near it, so there are triangles. It is read from one
parquet file, as one undirected edge a row, by each engine in a process of its own:

- protect: the file, checked; repeats refused, for the source declares unit weights;
- CCDF: the noisy degree CCDF of 40 degrees, symmetrized edges and degrees included;
- TbI: the noisy count of triangles by intersection;
- TbD x 1, x 1, x 16 (Spark alone): as many filters over one TbD in one release, each in a session of its own. The first
  warms up Java; the last line is the processor time of 16 over that of the second.

Spark protects and releases in several rounds, each in a session of its own. The first is cold: Java loads and compiles
classes, Spark its stages. The others are warm; last come the ratios of the last round to the first.

Seconds are of the clock; "processor" is that of all threads, of Python and, for Spark, of Java. Starting Spark is a row
of its own. "Jobs" are those that Spark ran. What comes to the driver is counted twice: the rows that Python gets from
Java, with their bytes, and the bytes that Spark's tasks send to the driver's Java: results with their metrics, and
tables on their way to being broadcast. DuckDB's rows are those of outputs, which Python gets from it. Peak memory is
that of the whole process, and for Spark of Python and Java.

--plain   starts Spark without encryption of its local disks, for a comparison
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import wpinq as wp
from wpinq.graphs.recipes import degree_ccdf, symmetrize, triangles_by_degree, triangles_by_intersect

EDGES = wp.source("edges", src=int, dst=int, unit="one undirected edge", facts=["unit_weights", "simple"])
DEGREES = range(40)


def write_graph(path: Path, count: int, seed: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(seed)
    nodes = max(count // 4, 10)
    pairs = np.zeros((0, 2), dtype=np.int64)
    while len(pairs) < count:
        first = rng.integers(0, nodes, count)
        second = (first + 1 + rng.exponential(20, count).astype(np.int64)) % nodes
        new = np.sort(np.stack([first, second], axis=1), axis=1)
        pairs = np.unique(np.concatenate([pairs, new[new[:, 0] != new[:, 1]]]), axis=0)
    pairs = rng.permutation(pairs)[:count]
    parquet.write_table(pa.table({"src": pairs[:, 0], "dst": pairs[:, 1]}), path)


class Meter:
    """What a part of the work took, and what came to the driver meanwhile."""

    def __init__(self) -> None:
        self.java: Any = None
        self.context: Any = None
        self.rows = self.read = 0

    def watch_spark(self, session: Any) -> None:
        self.context = session.sparkContext
        self.java = session._jvm.java.lang.ProcessHandle.current().pid()

    def processor(self) -> float:
        seconds = time.process_time()
        if self.java is not None:
            ticks = Path(f"/proc/{self.java}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
            seconds += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return seconds

    def sent(self) -> tuple[int, int]:
        """Jobs, and bytes that tasks sent to the driver: of all that Spark's own book keeping lists."""
        if self.context is None:
            return 0, 0
        java = self.context._jsc.sc()
        java.listenerBus().waitUntilEmpty()
        book = java.statusStore()
        more = (getattr(book, f"stageList$default${number}")() for number in range(2, 6))
        stages = book.stageList(None, *more)
        sizes = [stages.apply(i).resultSize() for i in range(stages.size())]
        return int(book.jobsList(None).size()), int(sum(sizes))

    def peak(self) -> float:
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if self.java is not None:
            status = Path(f"/proc/{self.java}/status").read_text().splitlines()
            kilobytes += int(next(line for line in status if line.startswith("VmHWM")).split()[1])
        return kilobytes / 2**20

    def part(self, name: str, work: Callable[[], Any]) -> None:
        before = time.perf_counter(), self.processor(), self.rows, self.read, *self.sent()
        work()
        after = time.perf_counter(), self.processor(), self.rows, self.read, *self.sent()
        spent = [late - early for early, late in zip(before, after, strict=True)]
        print(json.dumps({"name": name, "spent": spent, "peak": self.peak()}), flush=True)


class Counted:
    """A socket's file, with what was read of it counted."""

    def __init__(self, file: Any, meter: Meter) -> None:
        self.file, self.meter = file, meter

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(size)
        self.meter.read += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def count_what_spark_gives(meter: Meter) -> None:
    """Whatever pyspark gets of a frame or an RDD comes through a socket that one function opens."""
    import pyspark.util
    from pyspark.sql.classic.dataframe import DataFrame

    opened, collect = pyspark.util._create_local_socket, DataFrame.collect

    def opening(*given: Any) -> Any:
        file, socket = opened(*given)
        return Counted(file, meter), socket

    def collecting(frame: Any) -> Any:
        rows = collect(frame)
        meter.rows += len(rows)
        return rows

    pyspark.util._create_local_socket, DataFrame.collect = opening, collecting


def count_what_duckdb_gives(meter: Meter) -> None:
    from wpinq.engines.sql.duckdb import database, table_cache

    for module, name in (
        *((database, "fetch"), (table_cache, "fetch_keys")),
        *((table_cache, "fetch"), (table_cache, "fetch_keys")),
    ):
        real = getattr(module, name)

        def counting(*given: Any, real: Callable[..., Any] = real) -> Any:
            output = real(*given)
            meter.rows += len(output)
            return output

        setattr(module, name, counting)


def run(task: dict[str, Any]) -> None:
    meter = Meter()
    spark = task["engine"] == "spark"
    (count_what_spark_gives if spark else count_what_duckdb_gives)(meter)
    session = wp.Session(engine=task["engine"], **({} if spark else {"threads": 2}))
    if spark:
        meter.part("start", lambda: start_spark(task, session, meter))
    symmetric = symmetrize(EDGES)
    ccdf = degree_ccdf(symmetric).noisy_count(epsilon=1, over=DEGREES)
    triangles = triangles_by_intersect(symmetric).noisy_count(epsilon=1, over=["triangle!"])
    for number in range(task["rounds"]):
        warmth = f", round {number + 1}" if spark else ""
        with session if number == 0 else wp.Session(engine=task["engine"]) as each:
            meter.part(f"protect{warmth}", partial(each.protect, EDGES, task["path"], budget=100))
            meter.part(f"CCDF{warmth}", partial(each.release, ccdf))
            meter.part(f"TbI{warmth}", partial(each.release, triangles))
    if not spark:
        return
    for size in (1, 1, 16):  # the first of them warms up Java
        with wp.Session(engine="spark") as apart:
            apart.protect(EDGES, task["path"], budget=100)
            meter.part(f"TbD x {size}", partial(apart.release, filters(symmetric, size)))


def filters(edges: wp.Query, count: int) -> list[wp.Measurement]:
    """Counts of the triangles whose least degree is more than 0, 1, 2, ..."""
    tbd = triangles_by_degree(edges)
    return [tbd.where(lambda t, i=i: t[0] > i).select(lambda t: 0).noisy_count(0.1, over=[0]) for i in range(count)]


def start_spark(task: dict[str, Any], session: Any, meter: Meter) -> None:
    from wpinq.engines.sql.spark import session as settings

    wanted = {
        "spark.master": "local[2]",
        "spark.driver.memory": task["memory"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.retainedJobs": "100000",
        "spark.ui.retainedStages": "100000",
    }
    options = [f"--conf {name}={value}" for name, value in wanted.items()]
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*options, "pyspark-shell"])
    if task["plain"]:
        del settings._OWN["spark.io.encryption.enabled"]
    meter.watch_spark(session._engine.open().session)


def in_a_process(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of one engine's work, as they are done."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        raise SystemExit(f"{task['engine']} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="1536m")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        run(given.task)
        return
    print(f"{given.edges:,} edges; 2 threads; load before: {os.getloadavg()[0]:.1f}")
    print("| engine | part | seconds | processor | jobs | rows to Python | bytes of them | bytes to Java | peak GB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        write_graph(path, given.edges, given.seed)
        spent: dict[str, list[float]] = {}
        for engine in ("duckdb", "spark"):
            task = {"engine": engine, "path": str(path), "memory": given.memory, "plain": given.plain}
            task["rounds"] = given.rounds if engine == "spark" else 1
            for part in in_a_process(task):
                seconds, processor, rows, read, jobs, results = part["spent"]
                if engine == "spark":
                    spent.setdefault(part["name"].partition(",")[0].partition(" ")[0], []).append(processor)
                sent = f"{read:,} | {results:,}" if engine == "spark" else " | "
                print(
                    f"| {engine} | {part['name']} | {seconds:.1f} | {processor:.1f} | {jobs} | {rows:,} | {sent} "
                    f"| {part['peak']:.2f} |",
                    flush=True,
                )
        for name in ("protect", "CCDF", "TbI"):
            print(f"{name}, warm against cold: {spent[name][-1] / spent[name][0]:.2f}")
        print(f"16 filters over one TbD against one: {spent['TbD'][2] / spent['TbD'][1]:.2f}")


if __name__ == "__main__":
    main()
