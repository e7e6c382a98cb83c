"""Errors and cost of triangle counts by the ladder mechanism, on five graphs.

    python benchmarks/ladder.py [--draws 200] [--graphs ca-GrQc soc-Epinions1] [--growth 10000 100000 1000000]

The graphs are edge lists in the folder that WPINQ_DATA names, under `graphs/`. For each: the median and the 95th
percentile of the relative error of `graphs.triangle_count` at three epsilons, and the median that its law has, from
which that of 200 draws is off by some 10 %; how far `value_interval` reaches on either side, relative to the count, at
the share of epsilon in whole twentieths that makes it shortest; and a whole release in a fresh process, from the debit
to the stored answer, in seconds of the processor and on the clock, with the peak of its memory. Limits: a median of
0.3 % at epsilon 1 and of 3 % at 0.1; soc-Epinions1 in 2 s and 1 GB. With `--growth`, such a release alone, over random
graphs of so many edges (10⁷ takes some minutes).
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import wpinq as wp
from wpinq import graphs
from wpinq.noise.ladder import Ladder, draw_count
from wpinq.sinks.graph_counts import TriangleCount
from wpinq.sinks.graph_ladders import simple_graph, triangle_ladder

GRAPHS = ("ca-GrQc", "ca-HepTh", "Caltech36", "ca-HepPh", "soc-Epinions1")
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1))
LIMITS = {Fraction(1): 0.003, Fraction(1, 10): 0.03}


def read(name: str) -> list[tuple[int, int]]:
    """The edges of a graph, or of a random graph of so many edges, once each."""
    if name.isdigit():
        drawn = np.sort(np.random.default_rng(1).integers(max(int(name) // 10, 2), size=(int(name), 2)), axis=1)
        return [(a, b) for a, b in np.unique(drawn, axis=0).tolist() if a != b]
    folder = os.environ.get("WPINQ_DATA")
    if not folder:
        sys.exit("WPINQ_DATA names the folder that holds graphs/: set it")
    with gzip.open(Path(folder) / "graphs" / f"{name}.txt.gz", "rt") as lines:
        return [(int(a), int(b)) for a, b in (line.split() for line in lines)]


def errors(name: str, draws: int) -> None:
    """A row of errors for each epsilon."""
    ladder = triangle_ladder(simple_graph(read(name)))
    for epsilon in EPSILONS:
        off = sorted(
            abs(draw_count(ladder, float(2 / epsilon), os.urandom) - ladder.count) / ladder.count for _ in range(draws)
        )
        median, late = statistics.median(off), off[int(0.95 * draws)]
        share, reach = interval(epsilon, ladder.width)
        exact, limit = median_of_the_law(ladder, epsilon), LIMITS.get(epsilon)
        verdict = "" if limit is None else "ok" if exact <= limit else "ABOVE THE LIMIT"
        print(
            f"{name:<14} {float(epsilon):>4} {median:>8.3%} {exact:>8.3%} {late:>8.3%} {reach / ladder.count:>9.2%} "
            f"{float(share):>6} {verdict}",
            flush=True,
        )


def median_of_the_law(ladder: Ladder, epsilon: Fraction) -> float:
    """Half of all draws are this close to the count, relative to it."""
    rungs = int(100 / epsilon)
    weights = [1.0, *(2 * ladder.sensitivity(t) * math.exp(-epsilon / 2 * (t + 1)) for t in range(rungs))]
    half, held = sum(weights) / 2, 0.0
    for rung, weight in enumerate(weights):
        if held + weight >= half:
            within = 0.0 if rung == 0 else ladder.sensitivity(rung - 1) * (half - held) / weight
            return (ladder.reach(max(rung - 1, 0)) + within) / ladder.count
        held += weight
    raise AssertionError("half of the weight is among all rungs")


def interval(epsilon: Fraction, width: int) -> tuple[Fraction, float]:
    """The share that gives the shortest interval of 95 %, where the noisy width is what it is."""
    found = []
    for part in range(1, 20):
        sink = TriangleCount(Fraction(part, 20))
        numbers = {"count": 0.0, sink.width_key: float(width)}
        scale = float(2 / sink.epsilons(epsilon)[0])
        found.append((sink.value_interval(numbers, scale, 0.95)[1], sink.interval_share))
    reach, share = min(found)
    assert share is not None
    return share, reach


def release(name: str) -> None:
    """One release, timed, in this process."""
    edges = wp.source("edges", src=int, dst=int, unit="one edge", facts=["unit_weights"])
    rows = read(name)
    with wp.Session() as session:
        session.protect(edges, rows, budget=1)
        del rows
        session.release(edges.select(lambda e: "edges").noisy_count(epsilon="0.0001"))  # the engine is warm
        clock, processor = time.perf_counter(), time.process_time()
        session.release(graphs.triangle_count(edges, epsilon="0.9"))
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:<14} {processor:>7.2f} s {clock:>7.2f} s {peak:>6.2f} GB", flush=True)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, choices=GRAPHS)
    parser.add_argument("--growth", nargs="*", type=int, help="numbers of edges")
    parser.add_argument("--release", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.release:
        release(options.release)
        return
    if options.growth is None:
        print(f"{'graph':<14} {'eps':>4} {'median':>8} {'of law':>8} {'p95':>8} {'interval':>9} {'share':>6}")
        for name in options.graphs:
            errors(name, options.draws)
    sizes = options.graphs if options.growth is None else options.growth or [10**4, 10**5, 10**6]
    print(f"\n{'one release':<14} {'processor':>9} {'clock':>9} {'peak':>9}")
    for size in sizes:
        subprocess.run([sys.executable, __file__, "--release", str(size)], check=True)


if __name__ == "__main__":
    main()
