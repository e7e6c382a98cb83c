"""Rates and memory of the incremental engines, under walks over public graphs.

    python benchmarks/incremental.py [DATA] [--steps 200000] [--queries tbi jdd ...] [--growth] [--chains] [--quick]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. One thread, but for
`--chains`. This reads true values of public graphs: it is a benchmark, not a release.

- C:            a loop in C for triangles by intersect (TbI) alone, by the compiler at hand, as a yardstick
- lists:        the loop over neighbour lists that is generated where swaps allow it (see docs/engines.md)
- tables:       the module that keeps tables, with virtual steps
- materialised: the same, every step keeping its output
- python:       the python engine

`swaps` keep degrees; `closing` are swaps of which two fifths close wedges; `edges` replace, add and remove edges. All
walk at a power of 10,000 towards the answers of the data, without noise; `random` starts from a random graph with the
degrees of the data (20 swaps an edge away from it), `data` from the data itself, where a change touches the most.
`setup` is processor time until the first step: generating, compiling or loading compiled code, evaluating the start.
Memory is that of the engine's arrays; the peak is that of the process so far.
Before the table, for each query: processor time until the first step on a small graph in a new process, numba imported,
with an empty cache (cold), and in another with what that one kept (cached).
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wpinq as wp
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import EdgeWalk, Goal, SwapWalk
from wpinq.graphs import recipes
from wpinq.graphs.motifs import motif
from wpinq.graphs.synthesis import find_method

EDGES = wp.source("edges", src=int, dst=int)
POWER, EPSILON = 10_000.0, 0.1
Edges = NDArray[np.int64]


def default_method() -> tuple[wp.Query, ...]:
    """What the default of `wpinq synthesize` walks towards: closed wedges by tag and joint degrees by tag."""
    method = find_method("tags")
    measured = method.measurements(method.source(), 1)
    return tuple(wp.Query(measured[name].plan) for name in ("closed_wedges", "joint_degrees"))


@dataclass(frozen=True)
class Plans:
    """Queries to fit together, from edges in both directions or once."""

    queries: tuple[wp.Query, ...]
    symmetric: bool = True


QUERIES: dict[str, Plans] = {
    "tbi": Plans((recipes.triangles_by_intersect(EDGES),)),
    "jdd": Plans((recipes.joint_degrees(EDGES),)),
    "tbd": Plans((recipes.triangles_by_degree(EDGES, 20),)),
    "tags": Plans(default_method(), symmetric=False),
    "ccdf": Plans((recipes.degree_ccdf(EDGES),)),
    "sbd": Plans((recipes.squares_by_degree(EDGES),)),
    "motif": Plans((motif(EDGES, [(0, 1), (1, 2), (2, 0)]).select(lambda copy: "triangle"),)),
}
WALKS = {
    "tbi": ("swaps", "closing"),
    "jdd": ("swaps", "edges"),
    "tbd": ("swaps",),
    "tags": ("swaps", "closing"),
    "ccdf": ("edges",),
    "sbd": ("swaps",),
    "motif": ("swaps",),
}
SLOWER = {"sbd": 400, "motif": 100}
"""How many times fewer steps than of other queries are enough."""
COMPILE_LIMITS = 3.0, 0.6
"""Seconds that TbI may take to compile, and to load compiled code."""


def read(path: Path) -> Edges:
    with gzip.open(path, "rt") as lines:
        pairs = np.array([line.split()[:2] for line in lines if not line.startswith("#")], dtype=np.int64)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    simple: Edges = pairs[pairs[:, 0] != pairs[:, 1]]
    return simple


def barabasi_albert(nodes: int, attached: int, seed: int) -> Edges:
    """Preferential attachment: each new node takes as many distinct neighbours, by degree."""
    rng = Random(seed)
    edges = np.zeros(((nodes - attached) * attached, 2), dtype=np.int64)
    ends = np.zeros(attached + 2 * len(edges), dtype=np.int64)
    ends[:attached] = range(attached)
    count, used = 0, attached
    for node in range(attached, nodes):
        chosen: set[int] = set()
        while len(chosen) < attached:
            chosen.add(int(ends[int(rng.random() * used)]))
        for other in chosen:
            edges[count] = other, node
            ends[used : used + 2] = other, node
            count, used = count + 1, used + 2
    return edges


def randomised(edges: Edges) -> Edges:
    """A random graph with the same degrees."""
    walk = SwapWalk([Goal(QUERIES["tbi"].queries[0].plan, EPSILON, {})], "edges", edges, seed=99)
    walk.run(20 * len(edges), 0.0)
    return walk.edge_array


def targets(query: str, edges: Edges) -> list[Goal]:
    """What the queries say of the data."""
    plans = QUERIES[query]
    true = SwapWalk(
        [Goal(each.plan, 0.0, {}) for each in plans.queries], "edges", edges, symmetric=plans.symmetric
    ).outputs
    return [Goal(each.plan, EPSILON, values) for each, values in zip(plans.queries, true, strict=True)]


def compiled(
    query: str, wanted: list[Goal], edges: Edges, steps: int, kind: str = "swaps", virtual: bool = True
) -> tuple[str, str]:
    start = time.process_time()
    walk = begun(query, wanted, edges, kind, virtual)
    setup = time.process_time() - start
    lists = isinstance(walk, SwapWalk) and walk.specialised
    engine = "lists" if lists else "tables" if virtual else "materialised"
    steps = max(5, steps // SLOWER.get(query, 1))
    walk.run(max(1, steps // 20), POWER)
    return engine, shown(best(lambda: walk.run(steps // 5, POWER)) * (steps // 5), setup, walk.memory / 1e6)


def begun(
    query: str, wanted: list[Goal], edges: Edges, kind: str = "swaps", virtual: bool = True
) -> SwapWalk | EdgeWalk:
    symmetric = QUERIES[query].symmetric
    if kind == "edges":
        return EdgeWalk(wanted, "edges", edges, np.unique(edges).tolist(), symmetric=symmetric, seed=1, virtual=virtual)
    closing = 0.4 if kind == "closing" else 0.0
    return SwapWalk(wanted, "edges", edges, symmetric=symmetric, seed=1, virtual=virtual, closing=closing)


def compile_times(queries: list[str]) -> None:
    """Time to compile each query's walk, and to load what was compiled, each in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    for query in queries:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--compile", query]
            cold, cached = (
                float(
                    subprocess.run(
                        command, env={**environment, "WPINQ_CACHE": folder}, capture_output=True, text=True, check=True
                    ).stdout
                )
                for _ in range(2)
            )
        limits = "" if query != "tbi" else "   (limits {} s and {} s)".format(*COMPILE_LIMITS)
        print(f"compile {query:<6} cold {cold:5.2f} s   cached {cached:5.2f} s{limits}", flush=True)


def compile_once(query: str) -> None:
    """What a process of `compile_times` does."""
    import numba

    assert numba
    edges = barabasi_albert(100, 3, seed=1)
    wanted = [Goal(each.plan, EPSILON, {}) for each in QUERIES[query].queries]
    start = time.process_time()
    begun(query, wanted, edges, WALKS[query][0]).run(1, POWER)
    print(time.process_time() - start)


def best(run: Callable[[], object]) -> float:
    """The most runs a second of processor time, out of five: other work on the machine only slows."""
    rates = []
    for _ in range(5):
        start = time.process_time()
        run()
        rates.append(1 / (time.process_time() - start))
    return max(rates)


def python(target: Goal, edges: Edges, steps: int) -> str:
    """The python engine under swaps, for one query of symmetric edges."""
    values = target.values
    held = [(a, b) for a, b in edges.tolist()]
    start = time.process_time()
    engine = Evaluator([target.plan], {"edges": {e: 1.0 for a, b in held for e in ((a, b), (b, a))}})
    setup = time.process_time() - start
    rng, present = Random(1), {frozenset(edge) for edge in held}
    start = time.process_time()
    for _ in range(steps):
        i, j = rng.randrange(len(held)), rng.randrange(len(held))
        (a, b), (c, d) = held[i], held[j][:: rng.choice([1, -1])]
        if len({a, b, c, d}) < 4 or frozenset((a, d)) in present or frozenset((c, b)) in present:
            continue
        before = engine.outputs[0]
        swap = {
            (a, b): -1.0,
            (b, a): -1.0,
            (c, d): -1.0,
            (d, c): -1.0,
            (a, d): 1.0,
            (d, a): 1.0,
            (c, b): 1.0,
            (b, c): 1.0,
        }
        (change,) = engine.propose({"edges": swap})
        worse = sum(
            abs(before.get(x, 0) + w - values[x]) - abs(before.get(x, 0) - values[x])
            for x, w in change.items()
            if x in values
        )
        if worse <= 0 or rng.random() < np.exp(-POWER * EPSILON * worse):
            engine.commit()
            present -= {frozenset((a, b)), frozenset((c, d))}
            present |= {frozenset((a, d)), frozenset((c, b))}
            held[i], held[j] = (a, d), (c, b)
        else:
            engine.rollback()
    return shown(steps / (time.process_time() - start), setup, None)


def in_c(target: Goal, edges: Edges, steps: int) -> str:
    library = yardstick()
    labels, dense = np.unique(edges, return_inverse=True)
    ends = np.ascontiguousarray(dense.reshape(-1, 2).astype(np.uint32))
    both = np.concatenate([ends, ends[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    degrees = np.bincount(both[:, 0])
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint32)
    neighbours = np.ascontiguousarray(both[:, 1])
    marks = np.zeros((len(labels), 2), dtype=np.uint32)
    arrays = (ends, starts, neighbours, 1.0 / degrees, marks)
    places = [ends.ctypes.data, len(ends), *(array.ctypes.data for array in arrays[1:])]
    goal = target.values["triangle!"]
    start = time.process_time()
    outputs = [library.total(*places)]
    setup = time.process_time() - start

    def run() -> None:
        marks[:] = 0
        outputs.append(library.walk(*places, steps // 5, outputs[-1], goal, EPSILON, POWER, len(outputs)))

    rate = best(run) * (steps // 5)
    return shown(rate, setup, sum(array.nbytes for array in arrays) / 1e6)


YARDSTICK = r"""
#include <math.h>
#include <stdint.h>
typedef uint32_t u32;
typedef uint64_t u64;
static u64 s0, s1;

static double draw(void) {  /* xoroshiro128+ by Blackman and Vigna */
    u64 result = s0 + s1;
    s1 ^= s0;
    s0 = ((s0 << 24) | (s0 >> 40)) ^ s1 ^ (s1 << 16);
    s1 = (s1 << 37) | (s1 >> 27);
    return (double)(result >> 11) * 0x1p-53;
}

static double least(double x, double y) { return x < y ? x : y; }

static double triangle(double x, double y, double z) { return least(x, y) + least(x, z) + least(y, z); }

static void mark_all(u32 v, int side, u32 mark, const u32 *starts, const u32 *neighbours, u32 (*marks)[2]) {
    for (u32 k = starts[v]; k < starts[v + 1]; k++) marks[neighbours[k]][side] = mark;
}

/* The change at near, which loses the neighbour whose own are marked on one side, and wins that of the other. */
static double changed(u32 near, u32 lost, u32 won, u32 other, int side, u32 mark, const u32 *starts,
                      const u32 *neighbours, const double *inverse, u32 (*marks)[2]) {
    double change = 0.0;
    for (u32 k = starts[near]; k < starts[near + 1]; k++) {
        u32 w = neighbours[k];
        if (marks[w][side] == mark) change -= triangle(inverse[near], inverse[lost], inverse[w]);
        if (marks[w][1 - side] == mark && w != lost && w != other)
            change += triangle(inverse[near], inverse[won], inverse[w]);
    }
    return change;
}

static void put(u32 a, u32 b, u32 q, const u32 *starts, u32 *neighbours) {
    u32 k = starts[a];
    while (neighbours[k] != b) k++;
    neighbours[k] = q;
}

double total(u32 (*edges)[2], u64 count, const u32 *starts, u32 *neighbours, const double *inverse, u32 (*marks)[2]) {
    double output = 0.0;
    u32 mark = 0;
    for (u64 i = 0; i < count; i++) {
        u32 a = edges[i][0], b = edges[i][1];
        mark_all(a, 0, ++mark, starts, neighbours, marks);
        for (u32 k = starts[b]; k < starts[b + 1]; k++)
            if (marks[neighbours[k]][0] == mark)
                output += triangle(inverse[a], inverse[b], inverse[neighbours[k]]) / 3.0;
    }
    return output;
}

double walk(u32 (*edges)[2], u64 count, const u32 *starts, u32 *neighbours, const double *inverse, u32 (*marks)[2],
            u64 steps, double output, double target, double price, double power, u64 seed) {
    u32 mark = 0;
    s0 = seed * 0x9E3779B97F4A7C15u + 1, s1 = seed ^ 0xD1B54A32D192ED03u;
    while (steps--) {
        u64 i = draw() * count, j = draw() * count;
        u32 a = edges[i][0], b = edges[i][1], p = edges[j][0], q = edges[j][1];
        if (draw() < 0.5) { u32 turned = p; p = q; q = turned; }
        if (a == q || p == b || a == p || b == q) continue;
        mark_all(a, 0, ++mark, starts, neighbours, marks);
        if (marks[q][0] == mark) continue;
        mark_all(p, 1, mark, starts, neighbours, marks);
        if (marks[b][1] == mark) continue;
        double change = changed(b, a, p, q, 0, mark, starts, neighbours, inverse, marks)
                      + changed(q, p, a, b, 1, mark, starts, neighbours, inverse, marks);
        double worse = price * (fabs(output + change - target) - fabs(output - target));
        if (worse <= 0 || draw() < exp(-power * worse)) {
            output += change;
            put(a, b, q, starts, neighbours);
            put(b, a, p, starts, neighbours);
            put(p, q, b, starts, neighbours);
            put(q, p, a, starts, neighbours);
            edges[i][0] = a, edges[i][1] = q, edges[j][0] = p, edges[j][1] = b;
        }
    }
    return output;
}
"""
"""Triangles by intersect under swaps, as one would write it in C for this query and no other."""


def yardstick() -> Any:
    """The library of the yardstick, compiled by the compiler at hand."""
    folder = tempfile.mkdtemp()
    source, library = Path(folder, "walk.c"), Path(folder, "walk.so")
    source.write_text(YARDSTICK)
    command = [os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run([*command, "-lm"], check=True)
    found = ctypes.CDLL(str(library))
    shutil.rmtree(folder)
    found.total.argtypes = [ctypes.c_void_p, ctypes.c_uint64, *[ctypes.c_void_p] * 4]
    found.walk.argtypes = [*found.total.argtypes, ctypes.c_uint64, *[ctypes.c_double] * 4, ctypes.c_uint64]
    found.total.restype = found.walk.restype = ctypes.c_double
    return found


def shown(rate: float, setup: float, megabytes: float | None) -> str:
    memory = "" if megabytes is None else f"{megabytes:10.1f}"
    return f"{rate:12,.0f} {setup:8.1f} {memory:>10}"


def row(graph: str, query: str, kind: str, start: str, engine: str, figures: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{graph:<15} {query:<6} {kind:<8} {start:<7} {engine:<13} {figures} {peak:10.0f}", flush=True)


def growth(steps: int) -> None:
    """Barabási–Albert graphs from 10⁴ to 10⁷ edges."""
    for nodes in (1_000, 10_000, 100_000, 1_000_000):
        edges = barabasi_albert(nodes, 10, seed=1)
        (wanted,) = targets("tbi", edges)
        edges = randomised(edges)
        name = f"BA {len(edges):,}"
        row(name, "tbi", "swaps", "random", *compiled("tbi", [wanted], edges, steps))
        row(name, "tbi", "swaps", "random", "C", in_c(wanted, edges, steps))


def chains(edges: Edges, query: str, steps: int) -> None:
    """Two chains in two threads beside one: wall time, so only a quiet machine tells."""
    wanted = targets(query, edges)
    start = randomised(edges)
    symmetric = QUERIES[query].symmetric
    pair = [SwapWalk(wanted, "edges", start, symmetric=symmetric, seed=seed) for seed in (1, 2)]
    for walk in pair:
        walk.run(steps // 10, POWER)

    def took(walks: list[SwapWalk]) -> float:
        threads = [threading.Thread(target=walk.run, args=(steps, POWER)) for walk in walks]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    ratios = sorted(2 * took(pair[:1]) / took(pair) for _ in range(5))
    print(f"two chains of {query}: {ratios[2]:.2f} times the rate of one (median of 5)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("WPINQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--growth", action="store_true", help="Barabási–Albert graphs from 10⁴ to 10⁷ edges, TbI")
    parser.add_argument("--chains", action="store_true", help="two chains in two threads beside one, ca-GrQc")
    parser.add_argument("--quick", action="store_true", help="ca-GrQc only, without the slow engines")
    parser.add_argument("--compile", choices=list(QUERIES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        compile_once(options.compile)
        return
    if options.chains:
        for query in options.queries:
            if "swaps" in WALKS.get(query, ()):
                chains(read(options.data / "graphs" / "ca-GrQc.txt.gz"), query, options.steps)
        return
    if not options.growth:
        compile_times(options.queries)
    print(
        f"{'graph':<15} {'query':<6} {'walk':<8} {'start':<7} {'engine':<13} {'steps/s':>12} {'setup s':>8} "
        f"{'arrays MB':>10} {'peak MB':>10}"
    )
    if options.growth:
        growth(options.steps)
        return
    graphs: dict[str, Callable[[], Edges]] = {"ca-GrQc": lambda: read(options.data / "graphs" / "ca-GrQc.txt.gz")}
    if not options.quick:
        graphs["BA 1M"] = lambda: barabasi_albert(100_000, 10, seed=1)
        graphs["soc-Epinions1"] = lambda: read(options.data / "graphs" / "soc-Epinions1.txt.gz")
    for name, load in graphs.items():
        compare(name, load(), options.queries, options.steps, options.quick)


def compare(name: str, edges: Edges, queries: list[str], steps: int, quick: bool) -> None:
    all_queries = name == "ca-GrQc"
    start = randomised(edges)
    for query in queries:
        if not all_queries and query not in ("tbi", "tags"):
            continue
        wanted = targets(query, edges)
        for kind in WALKS[query]:
            figures = compiled(query, wanted, start, steps if kind != "edges" else steps // 5, kind)
            row(name, query, kind, "random", *figures)
            if all_queries and kind != "edges":
                row(name, query, kind, "data", *compiled(query, wanted, edges, steps, kind))
        if query == "tbi":
            row(name, query, "swaps", "random", "C", in_c(wanted[0], start, steps))
        if all_queries and query in ("tbi", "jdd") and not quick:
            row(name, query, "swaps", "random", *compiled(query, wanted, start, steps // 100, virtual=False))
            row(name, query, "swaps", "random", "python", python(wanted[0], start, 300))


if __name__ == "__main__":
    main()
