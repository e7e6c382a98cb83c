"""Spark beside DuckDB: two graphs protected, four releases, what they spill, and what comes to the driver.

    python benchmarks/spark.py [--rows 1000000] [--edges 1000000] [--master local[2]] [--memory 1536m] [--rounds 1]
                               [--limit 20] [--filters] [--plain] [--growth 10000 100000 1000000]
    python benchmarks/spark.py --rows 100000000 --edges 10000000 --master "local-cluster[2,1,1024]"

The graphs are public, made here: every node has edges to nodes near it, so there are triangles. Each is read from one
parquet file, as one undirected edge a row, by each engine in a process of its own:

- protect: the file of `--rows`, checked; repeats refused, for the source declares unit weights;
- CCDF: the noisy degree CCDF of 40 degrees, and of 400, symmetrized edges and degrees included;
- table: numbers of edges, and means, in 50 groups;
- protect and TbI: the file of `--edges`, and the noisy count of triangles by intersection;
- TbD x 1, x 1, x 16 (Spark alone, with `--filters`): as many filters over one TbD in one release, each in a session of
  its own. The first warms up Java; the last line is the processor time of 16 over that of the second.

In each round, Spark protects and releases in sessions of its own. The first is cold: Java loads and compiles classes,
Spark its stages. The others are warm; last come the ratios of the last round to the first. An engine that has not ended
after `--limit` minutes is stopped, and a line says so.

Seconds are of the clock; "processor" is that of all threads, of Python and, for Spark, of Java and its executors.
Starting Spark is a row of its own. "Jobs" are those that Spark ran. What comes to the driver is counted twice: the rows
that Python gets from Java, with their bytes, and the bytes that Spark's tasks send to the driver's Java: results with
their metrics, and tables on their way to being broadcast. DuckDB's rows are those of outputs, which Python gets.
"Spilled" is what Spark's tasks wrote to disk for want of memory, and "written" what the processes wrote to disk in all.
DuckDB has as much memory as the executors together. Peak memory is the sum of the processes' own peaks.

--growth  a table for each of these sizes, of both files, instead
--plain   starts Spark without encryption of its local disks, for a comparison
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import wpinq as wp
from wpinq.engines.sql.spark.session import EXPOSURES
from wpinq.graphs.recipes import degree_ccdf, symmetrize, triangles_by_degree, triangles_by_intersect

EDGES = wp.source("edges", src=int, dst=int, unit="one undirected edge", facts=["unit_weights", "simple"])
GROUPS = range(50)
COLUMNS = ("seconds", "processor", "rows", "bytes of them", "written GB", "jobs", "bytes to Java", "spilled GB")


def write_graph(path: Path, count: int, seed: int) -> None:
    """Four edges from each node, to nodes at most 32 further on; no two are equal."""
    import duckdb

    ends = f"i AS src, i + 1 + 8 * k + CAST(hash(4 * i + k + {seed}) % 8 AS BIGINT) AS dst"
    duckdb.sql(f"SELECT {ends} FROM range({count // 4}) AS a(i), range(4) AS b(k)").write_parquet(str(path))


def processes() -> list[int]:
    """This process and all that it started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def numbers(process: int, file: str) -> dict[str, int]:
    """The numbers of a file of a process, by name; none if it ended."""
    with contextlib.suppress(OSError):
        lines = [line.split() for line in Path(f"/proc/{process}/{file}").read_text().splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}
    return {}


class Meter:
    """What a part of the work took, and what came to the driver meanwhile."""

    def __init__(self) -> None:
        self.context: Any = None
        self.rows = self.read = 0

    def watch_spark(self, session: Any) -> None:
        self.context = session.sparkContext

    def processor(self) -> float:
        ticks = 0
        for process in processes():
            with contextlib.suppress(OSError):
                ticks += sum(map(int, Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def written(self) -> float:
        return sum(numbers(process, "io").get("write_bytes:", 0) for process in processes()) / 1e9

    def sent(self) -> tuple[int, int, float]:
        """Jobs, bytes that tasks sent to the driver, and gigabytes that they spilled, in Spark's own bookkeeping."""
        if self.context is None:
            return 0, 0, 0.0
        java = self.context._jsc.sc()
        java.listenerBus().waitUntilEmpty()
        book = java.statusStore()
        more = (getattr(book, f"stageList$default${number}")() for number in range(2, 6))
        stages = book.stageList(None, *more)
        each = [stages.apply(i) for i in range(stages.size())]
        spilled = sum(stage.diskBytesSpilled() for stage in each) / 1e9
        return int(book.jobsList(None).size()), int(sum(stage.resultSize() for stage in each)), spilled

    def peak(self) -> float:
        return sum(numbers(process, "status").get("VmHWM:", 0) for process in processes()) / 2**20

    def now(self) -> tuple[float, ...]:
        return time.perf_counter(), self.processor(), self.rows, self.read, self.written(), *self.sent()

    def part(self, name: str, work: Callable[[], Any]) -> None:
        before = self.now()
        work()
        spent = [late - early for early, late in zip(before, self.now(), strict=True)]
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
    options: dict[str, Any] = {"accept": list(EXPOSURES)} if spark else {"threads": 2, "memory_limit": "2GB"}
    opened = partial(wp.Session, engine=task["engine"], **options)
    if spark:
        meter.part("start", lambda: start_spark(task, meter))
    symmetric = symmetrize(EDGES)
    ccdf = degree_ccdf(symmetric)
    groups = EDGES.select(lambda e: {"kind": e.src % len(GROUPS), "step": e.dst - e.src}).by("kind", keys=GROUPS)
    triangles = triangles_by_intersect(symmetric).noisy_count(epsilon=1, over=["triangle!"])
    for number in range(task["rounds"] if spark else 1):
        warmth = f", round {number + 1}" if spark else ""
        with opened() as each:
            meter.part(f"protect{warmth}", partial(each.protect, EDGES, task["rows"], budget=100))
            for count in (40, 400):
                part = f"CCDF of {count}{warmth}" if count > 40 else f"CCDF{warmth}"
                meter.part(part, partial(each.release, ccdf.noisy_count(epsilon=40 / count, over=range(count))))
            table = groups.agg(n=wp.count(), step=wp.mean("step", 0, 40), epsilon=1)
            meter.part(f"table{warmth}", partial(each.release, table))
        with opened() as each:
            meter.part(f"protect for TbI{warmth}", partial(each.protect, EDGES, task["edges"], budget=100))
            meter.part(f"TbI{warmth}", partial(each.release, triangles))
    for size in (1, 1, 16) if spark and task["filters"] else ():  # the first of them warms up Java
        with opened() as apart:
            apart.protect(EDGES, task["edges"], budget=100)
            meter.part(f"TbD x {size}", partial(apart.release, filters(symmetric, size)))


def filters(edges: wp.Query, count: int) -> list[wp.Measurement]:
    """Counts of the triangles whose least degree is more than 0, 1, 2, ..."""
    tbd = triangles_by_degree(edges)
    return [tbd.where(lambda t, i=i: t[0] > i).select(lambda t: 0).noisy_count(0.1, over=[0]) for i in range(count)]


def start_spark(task: dict[str, Any], meter: Meter) -> None:
    import pyspark

    from wpinq.engines.sql.spark import session as settings

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))  # where executors of a cluster start
    wanted = {
        "spark.master": task["master"],
        "spark.local.dir": task["folder"],
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
    meter.watch_spark(settings.start().session)


def in_a_process(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of one engine's work, as they are done."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=silent, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        stop = threading.Timer(60 * task["limit"], os.killpg, (process.pid, signal.SIGKILL))
        stop.start()
        yield from map(json.loads, process.stdout)
        stop.cancel()
    if process.returncode:
        stopped = f"not ended after {task['limit']} minutes" if process.returncode == -signal.SIGKILL else "failed"
        print(f"{task['engine']}: {stopped}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="1536m")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=20)
    parser.add_argument("--filters", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--growth", nargs="*", type=int, help="numbers of rows and edges")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        run(given.task)
        return
    for size in [None] if given.growth is None else given.growth or [10**4, 10**5, 10**6]:
        if size is not None:
            given.rows = given.edges = size
        compare(given)


def compare(given: argparse.Namespace) -> None:
    """The table of both engines, and the ratios below it."""
    print(f"{given.rows:,} rows, {given.edges:,} edges; 2 threads; load before: {os.getloadavg()[0]:.1f}")
    print(f"| engine | part | {' | '.join(COLUMNS)} | peak GB |")
    print("| --- " * (len(COLUMNS) + 3) + "|")
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder) / f"{name}.parquet") for name in ("rows", "edges")}
        for name, path in files.items():
            write_graph(Path(path), getattr(given, name), given.seed)
        spent: dict[str, list[float]] = {}
        for engine in ("duckdb", "spark"):
            for part in in_a_process(vars(given) | files | {"engine": engine, "folder": folder}):
                if engine == "spark":
                    spent.setdefault(part["name"].partition(",")[0], []).append(part["spent"][1])
                shown = [f"{number:.1f}" if isinstance(number, float) else f"{number:,}" for number in part["spent"]]
                print(f"| {engine} | {part['name']} | {' | '.join(shown)} | {part['peak']:.2f} |", flush=True)
        for name, processor in spent.items():
            if len(processor) > 1 and "TbD" not in name:
                print(f"{name}, warm against cold: {processor[-1] / processor[0]:.2f}")
        if "TbD x 16" in spent:
            print(f"16 filters over one TbD against one: {spent['TbD x 16'][0] / spent['TbD x 1'][1]:.2f}")


if __name__ == "__main__":
    main()
