"""Protecting a file: wPINQ beside DuckDB and polars doing the same checks, each in a process of its own.

    python benchmarks/ingest.py [--rows 1e5 1e6 1e7] [--csv 1e5 1e6 1e7] [--edges 1e5 1e6] [--objects 1e4 1e5 1e6]
                                [--memory-limit 600MB]

The file has two columns of integers, nearly all pairs different, and a third that nobody asks for. All three read it,
check that no value is null or no integer, and add up repeated rows, which are held afterwards; wPINQ then releases a
CCDF of the degrees. Seconds of the clock, of the processor (all threads), and the peak memory of the whole process,
interpreter and libraries included. Files are made in a temporary folder (20 bytes a row of parquet) and removed.

Objects are rows of Python, as tuples, as dicts, and as a mapping from records to weights: the processor time of
protecting them, beside that of a loop that adds up the tuples.

`--rows 1e8 --csv --edges --memory-limit 4GB` is the largest that was measured: it takes 2 GB of disk and some minutes.
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
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEGREES = range(100)


def make(path: Path, rows: int) -> None:
    import duckdb

    nodes = max(rows // 10, 10)
    ends = [f"(hash(i + {seed}) % {nodes})::BIGINT AS {name}" for seed, name in ((0, "src"), (2**40, "dst"))]
    options = {
        ".parquet": "FORMAT parquet",
        ".csv": "FORMAT csv, HEADER",
        ".txt": r"FORMAT csv, HEADER false, DELIMITER '\t'",
    }
    chosen = ", ".join(ends if path.suffix == ".txt" else [*ends, "i AS other"])
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(f"COPY (SELECT {chosen} FROM range({rows}) AS t(i)) TO '{path}' ({options[path.suffix]})")


def run_wpinq(path: Path, memory_limit: str) -> dict[str, float]:
    import wpinq as wp

    edges = wp.source("edges", src=int, dst=int, cap=10**9)
    degrees = edges.select(lambda edge: edge.src)
    ccdf = degrees.shave(1.0, limit=1000).select(lambda piece: piece.index)
    data = wp.EdgeList(path, duplicates="keep") if path.suffix == ".txt" else path
    with wp.Session(memory_limit=memory_limit, threads=2) as session:
        clock = time.perf_counter(), time.process_time()
        session.protect(edges, data, budget=1)
        protect = time.perf_counter() - clock[0], time.process_time() - clock[1]
        answers = session.release(ccdf.noisy_count(1, over=DEGREES))
        release = time.perf_counter() - clock[0] - protect[0], time.process_time() - clock[1] - protect[1]
    assert len(answers) == len(DEGREES)
    return {"clock": protect[0], "processor": protect[1], "release": release[1], "release clock": release[0]}


def run_duckdb(path: Path, memory_limit: str) -> dict[str, float]:
    import duckdb

    folder = tempfile.mkdtemp(dir=path.parent)
    config = {"threads": 2, "memory_limit": memory_limit, "temp_directory": folder, "preserve_insertion_order": "false"}
    clock = time.perf_counter(), time.process_time()
    with duckdb.connect(config=config) as connection:
        types = "columns={'src': 'BIGINT', 'dst': 'BIGINT', 'other': 'BIGINT'}"
        texts = f"read_csv('{path}', auto_detect=false, header=true, delim=',', quote='\"', escape='\"', {types})"
        edges = f"read_csv('{path}', auto_detect=false, delim='\\t', columns={{'src': 'BIGINT', 'dst': 'BIGINT'}})"
        table = {".parquet": f"read_parquet('{path}')", ".csv": texts, ".txt": edges}[path.suffix]
        connection.execute("CREATE TABLE held (src BIGINT NOT NULL, dst BIGINT NOT NULL, w DOUBLE)")
        connection.execute(f"INSERT INTO held SELECT src, dst, count(*) FROM {table} GROUP BY src, dst")
        connection.execute("SELECT count(*), sum(w), max(w) FROM held").fetchone()
    return {"clock": time.perf_counter() - clock[0], "processor": time.process_time() - clock[1]}


def run_polars(path: Path, memory_limit: str) -> dict[str, float]:
    import polars as pl

    clock = time.perf_counter(), time.process_time()
    ends = {"src": pl.Int64, "dst": pl.Int64}
    if path.suffix == ".parquet":
        table = pl.scan_parquet(path)
    elif path.suffix == ".csv":
        table = pl.scan_csv(path, schema=ends | {"other": pl.Int64})
    else:
        table = pl.scan_csv(path, schema=ends, separator="\t", has_header=False)
    held = table.select("src", "dst").group_by("src", "dst").len().collect()
    assert held.schema["src"] == held.schema["dst"] == pl.Int64
    assert not sum(held.null_count().row(0))
    held.select(pl.col("len").sum(), pl.col("len").max().alias("most"))
    return {"clock": time.perf_counter() - clock[0], "processor": time.process_time() - clock[1]}


def measure_objects(rows: int) -> None:
    import numpy as np

    import wpinq as wp

    pairs = [(a, b) for a, b in np.random.default_rng(1).integers(max(rows // 10, 10), size=(rows, 2)).tolist()]
    forms = {"tuples": pairs, "dicts": [{"src": a, "dst": b} for a, b in pairs], "mapping": dict.fromkeys(pairs, 1.0)}
    print(f"| {rows:.0e} |", end="", flush=True)
    for form, data in forms.items():
        edges = wp.source("edges", src=int, dst=int, cap=10**9, weights=form == "mapping")
        with wp.Session(threads=2) as session:
            started = time.process_time()
            session.protect(edges, data, budget=1)
            print(f" {time.process_time() - started:.3f} |", end="", flush=True)
    started = time.process_time()
    Counter(pairs)
    print(f" {time.process_time() - started:.3f} |", flush=True)


RUNNERS = {"wpinq": run_wpinq, "duckdb": run_duckdb, "polars": run_polars}


def in_a_process(path: Path, runner: str, memory_limit: str) -> dict[str, float]:
    task = json.dumps({"path": str(path), "runner": runner, "memory_limit": memory_limit})
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=str(path.parent), POLARS_MAX_THREADS="2")
    done = subprocess.run(
        [sys.executable, __file__, "--task", task], env=environment, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, float] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def measure(rows: int, ending: str, memory_limit: str, runners: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder) / f"edges{ending}"
        make(path, rows)
        print(f"| {rows:.0e} | {ending} | {path.stat().st_size / 1e6:,.0f} |", end="", flush=True)
        for runner in runners:
            found = in_a_process(path, runner, memory_limit)
            if not found:
                print(" failed |", end="", flush=True)
                continue
            print(f" {found['clock']:.2f} ({found['processor']:.2f}), {found['peak']:.2f} |", end="", flush=True)
            if runner == "wpinq":
                print(f" {found['release clock']:.2f} ({found['release']:.2f}) |", end="", flush=True)
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, ending in (("--rows", "parquet"), ("--csv", "csv"), ("--edges", "edge lists")):
        usual = [1e5, 1e6] if option == "--edges" else [1e5, 1e6, 1e7]
        parser.add_argument(option, nargs="*", type=float, default=usual, help=f"how many rows of {ending}")
    parser.add_argument("--objects", nargs="*", type=float, default=[1e4, 1e5, 1e6], help="how many rows of Python")
    parser.add_argument("--memory-limit", default="600MB", help="of wPINQ and of DuckDB")
    parser.add_argument("--only", nargs="*", default=list(RUNNERS), choices=list(RUNNERS))
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        found = RUNNERS[given.task["runner"]](Path(given.task["path"]), given.task["memory_limit"])
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found))
        return
    print(f"2 threads, memory limit {given.memory_limit}; load before: {os.getloadavg()[0]:.1f}")
    print("seconds (of the processor), peak GB of the process")
    heads = [part for name in given.only for part in ([name, "ccdf"] if name == "wpinq" else [name])]
    print(f"| rows | file | MB | {' | '.join(heads)} |\n|{' --- |' * (3 + len(heads))}")
    for sizes, ending in ((given.rows, ".parquet"), (given.csv, ".csv"), (given.edges, ".txt")):
        for rows in sizes:
            measure(int(rows), ending, given.memory_limit, given.only)
    print("\n| rows | tuples | dicts | mapping | a loop |\n| --- | --- | --- | --- | --- |")
    for rows in given.objects:
        measure_objects(int(rows))


if __name__ == "__main__":
    main()
