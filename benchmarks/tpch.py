"""TPC-H Q1, Q4, Q13 and Q16: time and memory beside plain SQL, and noisy answers beside exact ones.

    python benchmarks/tpch.py [FOLDER] [--scale 0.1 1] [--reference 0.1] [--only q1 ...] [--epsilon 1]

FOLDER keeps the tables between runs, generated where they are missing (tpchgen-cli, `pip install
'wpinq[benchmarks]'`); a temporary folder unless given. The programs are those of examples/tpch. Every figure has a
process of its own:

- sql: DuckDB answers the same questions over the parquet files, exactly and with no privacy to keep;
- protect and release: a session, from the parquet files to noisy answers, all measurements of the program as one batch;
- engine: the plans alone, in seconds of a database that holds the sources already; "load" is what puts them there;
- reference: the plans alone on the reference engine, at the scale factor of --reference.

Seconds are of the clock, with those of the processor in parentheses; modules are imported before, on all sides. Peak
memory is that of the whole process. "Times" is the processor time of protect and release over that of sql, for which
the tables are open before; "opened" is the same with their opening counted on both sides, for a session opens a
database of its own.
"Off" is the largest difference between an exact answer and its weight times the factor.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "examples" / "tpch"))  # the example is no package

from queries import EXAMPLES, TABLES, Example, generate, open_tables

import wpinq as wp
from wpinq.engines.contract import find_engine

ROOT = Path(__file__).resolve().parents[1]


class Clock:
    """Seconds of the clock and of the processor since it was last read."""

    def __init__(self) -> None:
        self.now = time.perf_counter(), time.process_time()

    def lap(self) -> tuple[float, float]:
        wall, processor = self.now
        self.now = time.perf_counter(), time.process_time()
        return self.now[0] - wall, self.now[1] - processor


def peak() -> float:
    """Gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run(task: dict[str, Any]) -> dict[str, Any]:
    """One figure, in the process that was started for it."""
    example = next(example for example in EXAMPLES if example.name == task["query"])
    import duckdb  # before any clock runs

    assert duckdb
    clock = Clock()
    connection = open_tables(Path(task["folder"]))
    connection.execute("SET threads = 2")
    opening = clock.lap()
    if task["what"] == "sql":
        return {**run_sql(example, connection), "opening": opening}
    if task["what"] == "session":
        return {**run_session(example, connection, task["epsilon"], task["engine"]), "opening": opening}
    return run_engine(example, connection, task["what"])


def run_sql(example: Example, connection: Any) -> dict[str, Any]:
    clock = Clock()
    for sql in {exact.sql for exact in example.exact.values()}:
        connection.sql(sql).fetchall()
    seconds = clock.lap()
    exact = {name: list(found.rows(connection).items()) for name, found in example.exact.items()}
    return {"seconds": seconds, "peak": peak(), "exact": exact}


def run_session(example: Example, connection: Any, epsilon: str, engine: str) -> dict[str, Any]:
    program = example.program(epsilon=epsilon)
    measurements = program.measurements
    # by DuckDB, a relation in Python and a session, as `duckdb` itself is for SQL
    for needed in ("fsspec", "pyarrow", "wpinq.kernel.session"):
        importlib.import_module(needed)
    find_engine(engine)
    clock = Clock()
    with wp.Session(engine=engine) as session:
        for name, data in example.data(connection).items():
            session.protect(program.sources[name], data, budget=epsilon)
        data = None
        protect = clock.lap()
        released = session.release(list(measurements.values()))
        release = clock.lap()
    pairs = zip(measurements, released, strict=True)
    answers = {name: list(found.items()) for name, found in pairs if isinstance(found, wp.Answers)}
    bill = {name: float(spent) for name, spent in wp.bill(list(measurements.values())).items()}
    return {"protect": protect, "release": release, "peak": peak(), "answers": answers, "bill": bill}


def run_engine(example: Example, connection: Any, engine: str) -> dict[str, Any]:
    """The weights without noise, of tables that anyone can generate."""
    from wpinq.data import read_source
    from wpinq.engines import reference
    from wpinq.engines.sql.duckdb.database import Database

    program = example.program()
    datasets = {}
    for name, table in example.data(connection).items():
        declared: Any = program.sources[name].plan.operator
        datasets[name] = read_source(table, declared)
    rows = sum(map(len, datasets.values()))
    plans = {name: measurement.plan for name, measurement in program.measurements.items()}
    if engine == "reference":
        clock = Clock()
        weights = {name: reference.evaluate(plan, datasets) for name, plan in plans.items()}
        return {"seconds": clock.lap(), "peak": peak(), "rows": rows, "weights": _listed(weights)}
    with Database(threads=2) as database:
        clock = Clock()
        for source in program.sources.values():
            database.evaluate(source.select(lambda record: 0).plan, datasets)
        load = clock.lap()
        weights = {name: database.evaluate(plan, datasets) for name, plan in plans.items()}
        return {"load": load, "seconds": clock.lap(), "peak": peak(), "rows": rows, "weights": _listed(weights)}


def _listed(weights: dict[str, dict[Any, float]]) -> dict[str, list[tuple[Any, float]]]:
    return {name: list(found.items()) for name, found in weights.items()}


def in_a_process(task: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--task", json.dumps(task)],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _numbers(pairs: list[Any]) -> dict[Any, float]:
    return {tuple(key) if isinstance(key, list) else key: number for key, number in pairs}


def _shown(seconds: list[float]) -> str:
    return f"{seconds[0]:.2f} ({seconds[1]:.2f})"


def speed(example: Example, scale: float, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Run what is asked for one query at one scale factor, and print its line."""
    task = {"query": example.name, "folder": str(folder), "epsilon": given.epsilon, "engine": given.engine}
    found = {what: in_a_process({**task, "what": what}) for what in ("sql", "session", "duckdb")}
    found["reference"] = in_a_process({**task, "what": "reference"}) if scale in given.reference else {}
    if not all(found[what] for what in ("sql", "session", "duckdb")):
        print(f"| {scale:g} | {example.name} | failed | | | | | | | | | |", flush=True)
        return {}
    sql, session, engine, reference = (found[what] for what in ("sql", "session", "duckdb", "reference"))
    ours, theirs = session["protect"][1] + session["release"][1], sql["seconds"][1]
    times, opened = ours / theirs, (ours + session["opening"][1]) / (theirs + sql["opening"][1])
    oracle = _shown(reference["seconds"]) if reference else ""
    print(
        f"| {scale:g} | {example.name} | {engine['rows']:,} | {_shown(sql['seconds'])} | "
        f"{_shown(session['protect'])} | {_shown(session['release'])} | {times:.1f} | {opened:.1f} | "
        f"{session['peak']:.2f} | "
        f"{_shown(engine['load'])} | {_shown(engine['seconds'])} | {oracle} |",
        flush=True,
    )
    return found


def accuracy(example: Example, scale: float, found: dict[str, Any], rows: int) -> None:
    """Exact and noisy numbers of the largest groups of each measurement, and the errors over all its keys."""
    bill = ", ".join(f"{name} {spent:g}" for name, spent in found["session"]["bill"].items())
    print(f"\n{example.name} at scale factor {scale:g}; the bill: {bill}\n")
    print("| measurement | key | exact | weight | factor | noisy | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    totals = []
    for name, sql in example.exact.items():
        exact, weights = _numbers(found["sql"]["exact"][name]), _numbers(found["duckdb"]["weights"][name])
        noisy = {key: sql.factor * answer for key, answer in _numbers(found["session"]["answers"][name]).items()}
        errors = {key: answer - exact.get(key, 0.0) for key, answer in noisy.items()}
        for key in sorted(noisy, key=lambda key: -exact.get(key, 0.0))[:rows]:
            words = " ".join(map(str, key)) if isinstance(key, tuple) else key
            print(
                f"| {name} | {words} | {exact.get(key, 0.0):,.2f} | {weights.get(key, 0.0):,.4f} | {sql.factor:g} | "
                f"{noisy[key]:,.2f} | {errors[key]:,.2f} |"
            )
        off = max(abs(sql.factor * weights.get(key, 0.0) - exact.get(key, 0.0)) for key in {*exact, *weights})
        median = statistics.median(map(abs, errors.values()))
        totals.append(f"{name}: {len(noisy):,} keys, half of the errors below {median:,.2f}, off by {off:.2g}")
    print("\n" + "\n".join(totals))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--scale", nargs="*", type=float, default=[0.1, 1.0])
    parser.add_argument("--reference", nargs="*", type=float, default=[0.1])
    parser.add_argument("--only", nargs="*", default=[example.name for example in EXAMPLES])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--rows", type=int, default=2, help="groups shown of each measurement")
    parser.add_argument("--task", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        print(json.dumps(run(given.task)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folders = {}
        for scale in given.scale:
            folders[scale] = (given.folder or Path(temporary)) / f"sf{scale:g}"
            if not all((folders[scale] / f"{table}.parquet").exists() for table in TABLES):
                generate(scale, folders[scale])
        print(f"2 threads; epsilon {given.epsilon}; session on {given.engine}; load before: {os.getloadavg()[0]:.1f}")
        print(
            "| scale | query | rows | sql s | protect s | release s | times | opened | peak GB | load s | engine s "
            "| reference s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        )
        runs = [(scale, e) for scale in given.scale for e in EXAMPLES if e.name in given.only]
        results = [(scale, e, speed(e, scale, folders[scale], given)) for scale, e in runs]
        for scale, example, found in results:
            if found:
                accuracy(example, scale, found, given.rows)


if __name__ == "__main__":
    main()
