"""What releases cost a session: batches that have work in common, keys asked one by one, and a small plan again.

    python benchmarks/release.py [DATA] [--only batch dashboard ...] [--graph ca-HepPh] [--large soc-Epinions1]
                                 [--growth 10000 100000 1000000]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. With `--growth`, graphs
are random, of so many edges, and by default the lines are batch, dashboard and new. Each line is a process of its own.
Processor time is that of all threads. In parentheses stands what was asked for.

batch       16 filters over one TbD in one release, beside one of them in a session of its own
dashboard   64 queries over the degrees of a graph in one release, a query
keys        a Release of TbD asked for its first key, and for further ones
buckets     a Release of TbD in buckets of 20 asked for two keys
squares     a Release of SbD asked for two keys
asked       a Release of degrees asked key by key
fresh       the release of a known plan with a ledger file: Select over ten keys
new         the same of plans that are new, each with a constant of its own, and the building of such a plan
sparse      a release of TbD at two keys over a million random edges of a million vertices, symmetrised
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wpinq as wp
from wpinq import functions as F
from wpinq.graphs.recipes import squares_by_degree, symmetrize, triangles_by_degree

EDGES = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
RICH = 10**9


def read(path: str) -> list[tuple[int, int]]:
    if path.isdigit():
        drawn = np.random.default_rng(1).integers(max(int(path) // 10, 2), size=(int(path) // 2, 2))
        return [*map(tuple, np.unique(np.vstack([drawn, drawn[:, ::-1]]), axis=0).tolist())]
    with gzip.open(path, "rt") as lines:
        pairs = [tuple(map(int, line.split())) for line in lines]
    return [*{(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}]


def spent(action: Callable[[], Any]) -> tuple[float, float]:
    """Processor and wall seconds."""
    worked, started = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - worked, time.perf_counter() - started


def open_session(path: str, threads: int, ledger: str | None = None, most: int | None = None) -> wp.Session:
    session = wp.Session(ledger, threads=threads)
    session.protect(EDGES, read(path)[:most], budget=RICH)
    session.release(EDGES.select(lambda e: 0).noisy_count(0.1, over=[0]))  # the edges are loaded
    return session


def filters(count: int) -> list[wp.Measurement]:
    """Counts of the triangles whose least degree is more than 0, 1, 2, ..."""
    tbd = triangles_by_degree(EDGES)
    return [tbd.where(lambda t, i=i: t[0] > i).select(lambda t: 0).noisy_count(0.1, over=[0]) for i in range(count)]


def batch(path: str, threads: int) -> dict[str, Any]:
    times = []
    for size in (1, 16):
        with open_session(path, threads) as session:
            times.append(spent(partial(session.release, filters(size)))[0])
    one, many = times
    return {"one, s": one, "sixteen, s": many, "ratio (2)": many / one}


def dashboard(path: str, threads: int) -> dict[str, Any]:
    degrees = EDGES.group_by(lambda e: e.src, lambda group: F.count(group)).select(lambda g: g[1])
    plans = []
    for i in range(32):
        plans.append(degrees.where(lambda d, i=i: d % 32 == i).noisy_count(0.1, over=range(100)))
        plans.append(degrees.where(lambda d, i=i: d > 5 * i).select(lambda d: 0).noisy_count(0.1, over=[0]))
    with open_session(path, threads) as session:
        worked, passed = spent(lambda: session.release(plans))
        again, _ = spent(lambda: session.release(plans, fresh=True))
    return {"ms a query (5)": 1000 * worked / 64, "wall": 1000 * passed / 64, "again": 1000 * again / 64}


def keys(path: str, threads: int) -> dict[str, Any]:
    with open_session(path, threads) as session:
        tbd = triangles_by_degree(EDGES)
        release = session.release(tbd.noisy_count(0.1))
        first, _ = spent(lambda: release[2, 2, 2])
        further = [spent(lambda i=i: release[2, 2, 3 + i])[0] for i in range(20)]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"first, s": first, "second": further[0], "median of 20": statistics.median(further), "peak GB": peak}


def two_keys(query: wp.Query, one: tuple[int, ...], other: tuple[int, ...], path: str, threads: int) -> dict[str, Any]:
    with open_session(path, threads) as session:
        release = session.release(query.noisy_count(0.1))
        first, second = (spent(lambda key=key: release[key])[0] for key in (one, other))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"first, s": first, "second": second, "peak GB": peak}


buckets = partial(two_keys, triangles_by_degree(EDGES, bucket=20), (0, 1, 3), (1, 2, 4))
squares = partial(two_keys, squares_by_degree(EDGES), (4, 5, 4, 6), (5, 6, 5, 7))


def asked(path: str, threads: int) -> dict[str, Any]:
    with open_session(path, threads) as session:
        degrees = EDGES.select(lambda e: e.src)
        release = session.release(degrees.noisy_count(0.1))
        release[0]
        further = [spent(lambda i=i: release[1 + i]) for i in range(400)]
    return {"ms a key": 1000 * statistics.median(worked for worked, _ in further)}


def fresh(path: str, threads: int) -> dict[str, Any]:
    measurement = EDGES.select(lambda e: e.src % 10).noisy_count(0.1, over=range(10))
    with tempfile.TemporaryDirectory() as folder, open_session(path, threads, f"{folder}/ledger", 100) as session:
        session.release(measurement, fresh=True)
        found = [spent(lambda: session.release(measurement, fresh=True)) for _ in range(300)]
    worked, passed = ([1000 * one[i] for one in found] for i in (0, 1))
    return {"processor ms, median": statistics.median(worked), "wall ms, median (1.5)": statistics.median(passed)}


def new(path: str, threads: int) -> dict[str, Any]:
    building, releasing = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder, open_session(path, threads, f"{folder}/ledger", 100) as session:
        for i in range(100):
            start = time.process_time()
            measurement = EDGES.where(lambda e, i=i: e.src > i).select(lambda e: e.src % 10)
            measurement = measurement.noisy_count(0.1, over=range(10))
            building.append(time.process_time() - start)
            releasing.append(spent(lambda measurement=measurement: session.release(measurement))[0])
    built, released = (1000 * statistics.median(times) for times in (building, releasing))
    return {"building ms, median": built, "release ms, median": released}


def sparse(path: str, threads: int) -> dict[str, Any]:
    pairs = np.unique(np.sort(np.random.default_rng(1).integers(10**6, size=(10**6, 2)), axis=1), axis=0)
    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    with wp.Session(threads=threads) as session:
        session.protect(edges, pairs[pairs[:, 0] != pairs[:, 1]], budget=RICH)
        session.release(edges.select(lambda e: 0).noisy_count(0.1, over=[0]))  # the edges are loaded
        asked = triangles_by_degree(symmetrize(edges)).noisy_count(0.1, over=[(2, 2, 2), (1, 2, 3)])
        return {"processor s": spent(lambda: session.release(asked))[0]}


LINES: list[tuple[str, Callable[..., dict[str, Any]], bool]] = [
    ("batch", batch, False),
    ("dashboard", dashboard, False),
    ("keys", keys, True),
    ("buckets", buckets, True),
    ("squares", squares, False),
    ("asked", asked, False),
    ("fresh", fresh, False),
    ("new", new, False),
    ("sparse", sparse, False),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("WPINQ_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--growth", nargs="*", type=int, help="numbers of edges")
    parser.add_argument("--graph", default="ca-HepPh")
    parser.add_argument("--large", default="soc-Epinions1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--line", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.line:
        measure = {name: measured for name, measured, _ in LINES}[given.line]
        print(json.dumps(measure(given.path, given.threads)))
        return
    print(f"{given.threads} threads; load before: {os.getloadavg()[0]:.1f}")
    small, wide = (str(given.data / "graphs" / f"{name}.txt.gz") for name in (given.graph, given.large))
    tasks = [(name, wide if large else small) for name, _, large in LINES if not given.only or name in given.only]
    if given.growth is not None:
        sizes, only = given.growth or [10**4, 10**5, 10**6], given.only or ["batch", "dashboard", "new"]
        tasks = [(name, str(size)) for name in only for size in sizes]
    for name, path in tasks:
        command = [sys.executable, __file__, "--line", name, "--path", path, "--threads", str(given.threads)]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=os.getcwd()))
        if done.returncode:
            print(f"{name}: failed\n{done.stderr}")
            continue
        shown = (f"{label} {value:.3f}" for label, value in json.loads(done.stdout).items())
        size = f" over {int(path):,} edges" if path.isdigit() else ""
        print(f"{name}{size}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
