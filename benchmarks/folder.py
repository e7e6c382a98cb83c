"""A folder of parquet protected, and a CCDF released: wPINQ beside DuckDB's own scan and group.

    python benchmarks/folder.py [--rows 1e6] [--files 8] [--memory-limit 600MB]

Each file has two columns of integers. wPINQ protects the folder and releases a CCDF of the degrees; DuckDB groups the
rows and then the degrees, without noise. Each runs in a process of its own: seconds of the clock, of the processor (all
threads), and peak memory, with interpreter and libraries.
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
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEGREES = range(100)


def make(folder: Path, rows: int, files: int) -> None:
    import duckdb

    nodes = max(rows // 10, 10)
    ends = ", ".join(f"(hash(i + {seed}) % {nodes})::BIGINT AS {name}" for seed, name in ((0, "src"), (2**40, "dst")))
    with duckdb.connect(config={"threads": 2}) as connection:
        for i in range(files):
            piece = f"range({rows * i // files}, {rows * (i + 1) // files}) AS t(i)"
            connection.execute(f"COPY (SELECT {ends} FROM {piece}) TO '{folder}/part-{i:04}.parquet' (FORMAT parquet)")


def run_wpinq(folder: Path, memory_limit: str) -> list[float]:
    import wpinq as wp

    edges = wp.source("edges", src=int, dst=int)
    degrees = edges.select(lambda edge: edge.src)
    ccdf = degrees.shave(1.0, limit=1000).select(lambda piece: piece.index)
    with wp.Session(memory_limit=memory_limit, threads=2) as session:
        session.protect(edges, folder, budget=1)
        answers = session.release(ccdf.noisy_count(1, over=DEGREES))
    return [float(value) for value in answers.values]


def run_duckdb(folder: Path, memory_limit: str) -> list[float]:
    import duckdb

    config = {"threads": 2, "memory_limit": memory_limit, "temp_directory": str(folder / "spilled")}
    with duckdb.connect(config={**config, "preserve_insertion_order": "false"}) as connection:
        degrees = f"SELECT count(*) AS d FROM read_parquet('{folder}/*.parquet') GROUP BY src"
        held = dict(connection.execute(f"SELECT d, count(*) FROM ({degrees}) GROUP BY d").fetchall())
    return [float(sum(count for degree, count in held.items() if degree > i)) for i in DEGREES]


RUNNERS = {"wpinq": run_wpinq, "duckdb": run_duckdb}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--memory-limit", default="600MB", help="of wPINQ and of DuckDB")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        clock, processor = time.perf_counter(), time.process_time()
        values = RUNNERS[given.task[0]](Path(given.task[1]), given.memory_limit)
        found = {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor, "first": values[0]}
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found))
        return
    print(f"{given.rows:.0e} rows in {given.files} files, 2 threads, memory limit {given.memory_limit}")
    print("| | seconds | of the processor | peak GB | records of degree 1 or more |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        make(Path(place), int(given.rows), given.files)
        for runner in RUNNERS:
            command = [sys.executable, __file__, "--memory-limit", given.memory_limit, "--task", runner, place]
            environment = dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=place)
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout)
            print("| {} | {clock:.2f} | {processor:.2f} | {peak:.2f} | {first:,.0f} |".format(runner, **found))


if __name__ == "__main__":
    main()
