"""`wpinq synthesize` as a whole command, from the edge list to the graph and its statistics, beside what it may take.

    python benchmarks/synthesize.py [DATA] [--only grqc ...] [--epsilon 1] [--runs 3] [--growth 10000 100000 1000000]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. Each run is a process
of its own with a ledger file: seconds of the clock and of the processor, and the peak memory, against the limits. The
first run after an install also compiles the walk, which numba keeps.

grqc        ca-GrQc
facebook    a graph of the size of SNAP's ego-Facebook (4,039 nodes, 88,234 edges, degrees to 1,045, clustering .61)
enron       a graph of the size of SNAP's email-Enron (36,692 nodes, 183,831 edges, degrees to 1,383, clustering .50)
wedges      no synthesis: a session asked for the closed wedges by tag of ca-HepPh, protected and released

The two large graphs are drawn: degrees are the quantiles of a logarithmic normal law with the median degree of the
graph (25, and 3) and its number of edges, edges by `clique_graph`. What was drawn is printed. With `--growth`, it is
the command without its walk, over graphs of the shape of Enron's with so many edges.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"grqc": (6.0, None), "facebook": (30.0, None), "enron": (60.0, 1.5), "wedges": (2.0, 0.4)}
"""Seconds of the clock, and GB."""
SHAPES = {"facebook": (4039, 88234, 25.0, 1045, 0.61), "enron": (36692, 183831, 3.0, 1383, 0.5)}
"""Nodes, edges, median degree, largest degree, clustering."""


def degrees_of(nodes: int, edges: int, median: float, largest: int) -> npt.NDArray[np.int64]:
    """Quantiles of a logarithmic normal law, its spread such that they add up to twice the edges."""
    normal = np.array([NormalDist().inv_cdf((i + 0.5) / nodes) for i in range(nodes)])
    low, high = 0.1, 4.0
    for _ in range(60):
        spread = (low + high) / 2
        degrees = np.clip(np.rint(median * np.exp(spread * normal)), 1, largest).astype(np.int64)
        low, high = (spread, high) if degrees.sum() < 2 * edges else (low, spread)
    return degrees


def shape_of(edges: int) -> tuple[int, int, float, int, float]:
    """Enron's with another number of edges: as many edges a node, and the largest degree with the root of them."""
    nodes, usual, median, largest, clustering = SHAPES["enron"]
    return nodes * edges // usual, edges, median, round(largest * (edges / usual) ** 0.5), clustering


def draw(name: str, path: Path, shape: tuple[int, int, float, int, float]) -> None:
    """Write a graph of a shape, and print what it is."""
    from wpinq.graphs.synthesis import graph_statistics
    from wpinq.graphs.synthesis.estimates import DegreeClasses
    from wpinq.graphs.synthesis.random_graphs import clique_graph, graphical

    nodes, count, median, largest, clustering = shape
    degrees = np.sort(graphical(degrees_of(nodes, count, median, largest)))
    classes = DegreeClasses.of(degrees[degrees > 0])
    at_random = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    wanted = np.full(int(classes.degrees.max()) + 1, clustering)
    edges = clique_graph(classes, wanted, at_random, np.random.default_rng(1))
    np.savetxt(path, edges, fmt="%d", delimiter="\t")
    print(f"{name}: {', '.join(f'{label} {value:.6g}' for label, value in graph_statistics(edges).items())}")


def measure_wedges(path: str) -> None:
    import wpinq as wp
    from wpinq.graphs.tags import closed_wedges_by_tag

    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"], unit="one undirected edge")
    answers = closed_wedges_by_tag(edges, [0, 2, 8, 32, 128]).noisy_count(0.1, over=range(5))
    with wp.Session(threads=2) as session:
        session.protect(edges, wp.EdgeList(path, directed=False, loops="drop", duplicates="drop"), budget=1)
        session.release(answers)


def run(name: str, path: Path, epsilon: str, more: Sequence[str] = ()) -> dict[str, float]:
    """One process: its seconds of the clock and of the processor, and its peak memory in GB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--wedges", str(path)]
        if name != "wedges":
            options = ["--epsilon", epsilon, "--budget", epsilon, "--ledger", f"{folder}/ledger", "--quiet", *more]
            out = f"{folder}/out.txt"
            command = [sys.executable, "-m", "wpinq", "synthesize", str(path), *options, "--out", out]
        environment = dict(os.environ, PYTHONPATH=str(ROOT))
        with open(f"{folder}/errors", "w+", encoding="utf-8") as errors:
            started = time.perf_counter()
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
            _, status, used = os.wait4(running.pid, 0)
            passed = time.perf_counter() - started
            if status:
                errors.seek(0)
                raise SystemExit(errors.read())
    return {"passed": passed, "worked": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 2**20}


def show(name: str, path: Path, epsilon: str) -> None:
    used = run(name, path, epsilon)
    seconds, gigabytes = LIMITS[name]
    most = "" if gigabytes is None else f" ({gigabytes:g})"
    print(
        f"| {name} | {used['passed']:.1f} ({seconds:g}) | {used['worked']:.1f} | {used['peak']:.2f}{most} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("WPINQ_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--only", nargs="*", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--growth", nargs="*", type=int, help="numbers of edges")
    parser.add_argument("--wedges", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.wedges:
        measure_wedges(given.wedges)
        return
    with tempfile.TemporaryDirectory() as folder:
        if given.growth is not None:
            print("| edges | seconds | of the processor | peak GB |\n| --- | --- | --- | --- |")
            for edges in given.growth or (10**4, 10**5, 10**6):
                path = Path(folder) / "edges.txt"
                with contextlib.redirect_stdout(sys.stderr):
                    draw(f"{edges:,} edges", path, shape_of(edges))
                used = run("growth", path, given.epsilon, ("--steps", "1"))
                passed, worked = used["passed"], used["worked"]
                print(f"| {edges:,} | {passed:.1f} | {worked:.1f} | {used['peak']:.2f} |", flush=True)
            return
        paths = {}
        for name in given.only:
            paths[name] = Path(folder) / f"{name}.txt"
            if name in SHAPES:
                draw(name, paths[name], SHAPES[name])
            else:
                graph = {"grqc": "ca-GrQc", "wedges": "ca-HepPh"}[name]
                paths[name].write_bytes(gzip.decompress((given.data / "graphs" / f"{graph}.txt.gz").read_bytes()))
        print(f"epsilon {given.epsilon}; load before: {os.getloadavg()[0]:.1f}; what it may take in parentheses")
        print("| run | seconds | of the processor | peak GB |\n| --- | --- | --- | --- |")
        for name in given.only:
            for _ in range(given.runs):
                show(name, paths[name], given.epsilon)


if __name__ == "__main__":
    main()
