"""Time and peak memory of graph queries on the engines, each in a process of its own.

    python benchmarks/engines.py [DATA] [--growth] [--facts none] [--reference] [--off REWRITE ...] [--only tbi ...]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. Edges are read before
the clock starts; what is timed is one call of the engine: compiling the plan, loading the edges, evaluating, and
the output as a dict. Peak memory is that of the whole process, interpreter and edges included; in parentheses, how
much of it was there before the call. Processor time is that of all threads: what to compare by where other work runs.
`warm` calls a database again that holds the edges already.

--facts none     declares nothing about the edges; by default they have unit weights
--reference      the reference engine too, on the small graphs (minutes)
--spark          Spark in local mode too, on two graphs: a second call, and warm ones; the first compiles Spark itself
--off            leaves rewrites out, by name, for a comparison

--growth         random graphs of 10⁴ to 10⁷ edges, ten a node, each query until one takes more than two minutes

The exact number of triangles, without weights and without privacy to keep, is for scale: by NetworKit's scores of
edges, by SQL in DuckDB that joins edges from lower degree to higher, and by igraph, which lists all triangles.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wpinq as wp
from wpinq.api.query import Query
from wpinq.data.read import read_source
from wpinq.graphs.recipes import (
    degree_ccdf,
    joint_degrees,
    squares_by_degree,
    triangles_by_degree,
    triangles_by_intersect,
)

QUERIES: dict[str, Callable[[Query], Query]] = {
    "ccdf": degree_ccdf,
    "jdd": joint_degrees,
    "tbi": triangles_by_intersect,
    "tbd": triangles_by_degree,
    "sbd": squares_by_degree,
}
RUNS = [
    ("soc-Epinions1", "tbi", "3 s, 0.5 GB"),
    ("ca-HepPh", "tbi", "1.2 s, 0.3 GB"),
    ("soc-Epinions1", "tbd", "8 s, 2.5 GB"),
    ("ca-HepPh", "tbd", "7 s, 4 GB"),
    ("soc-Epinions1", "jdd", "1 s, 0.5 GB"),
    ("ca-GrQc", "sbd", "3 s, 1.5 GB"),
]
SPARK = [("ca-GrQc", "ccdf"), ("ca-GrQc", "jdd"), ("ca-GrQc", "tbi"), ("ca-GrQc", "tbd"), ("soc-Epinions1", "tbi")]
WARM = [("ca-GrQc", "ccdf", "10 ms"), ("ca-GrQc", "jdd", "15 ms"), ("ca-GrQc", "tbd", "25 ms")]
GRAPHS = ["ca-GrQc", "ca-HepPh", "soc-Epinions1"]
PEERS = ("networkit", "sql", "igraph")


def held(source: Query, path: str) -> Any:
    """The edges of a file or a random graph in both directions, as a session holds them."""
    import numpy as np

    edges = once(path)
    return read_source(np.concatenate([edges, edges[:, ::-1]]), source.plan.operator)


def peak() -> float:
    """Gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run(task: dict[str, Any]) -> dict[str, Any]:
    """One measurement, in the process that was started for it."""
    if task["engine"] in PEERS:
        return count_triangles(task)
    source = wp.source("edges", src=int, dst=int, facts=task["facts"])
    edges: dict[str, Any] = {"edges": held(source, task["path"])}
    plan = QUERIES[task["query"]](source).plan
    before = peak()
    started = time.perf_counter()
    if task["engine"] == "reference":
        from wpinq.engines import reference

        output = reference.evaluate(plan, edges)
        return {"seconds": time.perf_counter() - started, "before": before, "peak": peak(), "records": len(output)}
    if task["engine"] == "spark":
        return run_spark(plan, edges, task)
    from wpinq.engines.sql.duckdb.database import Database
    from wpinq.engines.sql.rewrites import REWRITES

    rewrites = tuple(rewrite for rewrite in REWRITES if rewrite.name not in task["off"])
    worked = time.process_time()
    with Database(threads=task["threads"]) as database:
        output = database.evaluate(plan, edges, rewrites=rewrites)
        seconds, first, most = time.perf_counter() - started, time.process_time() - worked, peak()
        warm, busy = list[float](), list[float]()
        for _ in range(task["repeats"]):
            started, worked = time.perf_counter(), time.process_time()
            database.evaluate(plan, edges, rewrites=rewrites)
            warm.append(time.perf_counter() - started)
            busy.append(time.process_time() - worked)
    return {
        "seconds": seconds,
        "before": before,
        "peak": most,
        "records": len(output),
        "warm": min(warm, default=0.0),
        "busy": (first, min(busy, default=0.0)),
    }


def run_spark(plan: Any, edges: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    """Peak memory is that of the Java process."""
    from pyspark.sql import SparkSession

    from wpinq.engines.sql.spark.cluster import SparkDatabase

    builder = SparkSession.builder.master(f"local[{task['threads']}]").config("spark.sql.shuffle.partitions", "4")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    for name, value in {**quiet, "spark.driver.memory": "4g"}.items():
        builder = builder.config(name, value)
    builder.getOrCreate()
    times, records, busy = [], 0, []
    with SparkDatabase() as database:
        pid = database.open().session._jvm.java.lang.ProcessHandle.current().pid()

        def processor_time() -> float:
            ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
            return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

        for _ in range(1 + task["repeats"]):
            started, before = time.perf_counter(), processor_time()
            records = len(database.evaluate(plan, edges))
            times.append(time.perf_counter() - started)
            busy.append(processor_time() - before)
        status = Path(f"/proc/{pid}/status").read_text()
    highest = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 2**20
    return {
        "seconds": times[0],
        "before": 0.0,
        "peak": highest,
        "records": records,
        "warm": min(times[1:], default=0.0),
        "busy": (busy[0], min(busy[1:], default=0.0)),
    }


def count_triangles(task: dict[str, Any]) -> dict[str, Any]:
    """The number of triangles by a peer, from edges in memory."""
    edges = once(task["path"])
    count = {"igraph": by_igraph, "networkit": by_networkit, "sql": by_sql}[task["engine"]](edges, task["threads"])
    before, started, worked = peak(), time.perf_counter(), time.process_time()
    triangles = count()
    seconds, busy = time.perf_counter() - started, time.process_time() - worked
    return {"seconds": seconds, "before": before, "peak": peak(), "records": triangles, "busy": (busy, 0.0)}


def once(path: str) -> Any:
    """The undirected edges of a file, or of a random graph of so many edges, each once, over nodes 0, 1, 2, …."""
    import numpy as np

    if path.isdigit():
        drawn = np.random.default_rng(1).integers(max(int(path) // 10, 2), size=(int(path), 2))
    else:
        with gzip.open(path, "rt") as lines:
            drawn = np.loadtxt(lines, dtype=np.int64)
    pairs = np.unique(np.sort(drawn, axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(pairs, return_inverse=True)[1].reshape(pairs.shape)


def by_igraph(edges: Any, threads: int) -> Callable[[], int]:
    import igraph

    graph = igraph.Graph(edges=edges.tolist())
    return lambda: len(graph.list_triangles())


def by_networkit(edges: Any, threads: int) -> Callable[[], int]:
    import networkit

    networkit.setNumberOfThreads(threads)
    graph = networkit.GraphFromCoo((edges[:, 0].copy(), edges[:, 1].copy()), n=int(edges.max()) + 1)

    def count() -> int:
        graph.indexEdges()
        return int(sum(networkit.sparsification.TriangleEdgeScore(graph).run().scores())) // 3

    return count


BY_DEGREE = """
    WITH degrees AS (SELECT v, count(*) AS d FROM (SELECT a AS v FROM edges UNION ALL SELECT b FROM edges) GROUP BY v),
    upward AS (
        SELECT if((x.d, a) < (y.d, b), a, b) AS low, if((x.d, a) < (y.d, b), b, a) AS high
        FROM edges JOIN degrees AS x ON x.v = a JOIN degrees AS y ON y.v = b
    )
    SELECT count(*) FROM upward AS p JOIN upward AS q ON p.low = q.low AND p.high < q.high
    JOIN edges AS r ON r.a = p.high AND r.b = q.high
"""


def by_sql(edges: Any, threads: int) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.register("given", {"a": edges[:, 0].copy(), "b": edges[:, 1].copy()})
    connection.execute("CREATE TABLE edges AS SELECT * FROM given")
    return lambda: int(connection.execute(BY_DEGREE).fetchall()[0][0])


def growth(common: dict[str, Any], queries: list[str]) -> None:
    """Queries and peers on larger and larger random graphs."""
    print("| edges | query | engine | processor seconds | a million edges | peak GB |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows = [(query, "duckdb") for query in queries]
    for query, engine in [*rows, *(("triangles", peer) for peer in PEERS)]:
        for edges in (10**4, 10**5, 10**6, 10**7):
            found = in_a_process({**common, "engine": engine, "query": query, "path": str(edges)})
            if not found:
                print(f"| {edges:,} | {query} | {engine} | failed | | |")
                break
            busy = found["busy"][0]
            shown = f"{busy:.2f} | {busy * 1e6 / edges:.2f} | {found['peak']:.2f}"
            print(f"| {edges:,} | {query} | {engine} | {shown} |", flush=True)
            if busy > 120:
                break


def in_a_process(task: dict[str, Any]) -> dict[str, Any]:
    root = Path(__file__).resolve().parent.parent
    environment = dict(os.environ, PYTHONPATH=str(root))
    done = subprocess.run(
        [sys.executable, __file__, "--task", json.dumps(task)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("WPINQ_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--facts", nargs="*", default=["unit_weights"])
    parser.add_argument("--off", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=list(QUERIES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(run(given.task)))
        return
    facts = [fact for fact in given.facts if fact != "none"]
    common = {"facts": facts, "off": given.off, "threads": given.threads, "repeats": 0}
    if given.growth:
        growth(common, given.only)
        return
    load = os.getloadavg()[0]
    print(f"{given.threads} threads; facts: {', '.join(facts) or 'none'}; load before: {load:.1f}")
    print("| graph | query | engine | seconds | peak GB (before) | records | asked for |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    tasks = [(graph, query, "duckdb", goal, 0) for graph, query, goal in RUNS if query in given.only]
    tasks += [(graph, query, "duckdb", goal, 30) for graph, query, goal in WARM if query in given.only]
    if given.reference:
        tasks += [("ca-GrQc", query, "reference", "", 0) for query in QUERIES if query in given.only]
    if given.spark:
        tasks += [(graph, query, "spark", "", 3) for graph, query in SPARK if query in given.only]
    tasks += [(graph, "triangles", peer, "", 0) for graph in GRAPHS for peer in PEERS]
    for graph, query, engine, goal, repeats in tasks:
        path = str(given.data / "graphs" / f"{graph}.txt.gz")
        task = {**common, "engine": engine, "query": query, "path": path, "repeats": repeats}
        found = in_a_process(task)
        if not found:
            print(f"| {graph} | {query} | {engine} | failed | | | {goal} |")
            continue
        shown = f"{found['seconds']:.2f}"
        if engine == "duckdb" or engine in PEERS:
            shown = f"{shown}; processor {found['busy'][0]:.2f}"
        if engine == "duckdb" and repeats:
            shown = f"{1000 * found['warm']:.1f} ms warm; processor {1000 * found['busy'][1]:.1f} ms"
        if engine == "spark":
            first, warm = found["busy"]
            shown = f"{found['seconds']:.1f}, warm {found['warm']:.1f}; processor {first:.1f}, warm {warm:.1f}"
        print(
            f"| {graph} | {query} | {engine} | {shown} | {found['peak']:.2f} ({found['before']:.2f}) | "
            f"{found['records']:,} | {goal} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
