"""Rates and memory of the incremental engines, under swaps that preserve degrees, on public graphs.

    python benchmarks/incremental.py [DATA] [--steps 200000] [--queries tbi jdd tbd] [--growth] [--quick]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. One thread. This reads
true values of public graphs: it is a benchmark, not a release.

- hand-written: a numba loop for triangles by intersect (TbI) alone, written by hand as a yardstick
- compiled:     the module generated from the plan; the loop over neighbour lists where the plan allows it, else tables
- tables:       the same plan with virtual steps over tables (for TbI, which the compiled engine runs on lists)
- materialised: every step keeps its output in a table
- python:       the python engine

All walk at a power of 10,000 towards a target of random answers, from a random graph with the degrees of the data
(20 swaps an edge away from it). `setup` is the time until the first step: generating, compiling or loading compiled
code, and evaluating the start. Memory is that of the engine's arrays.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import wpinq as wp
from wpinq.engines.incremental import Evaluator
from wpinq.engines.incremental.compiled import SwapWalk, Target
from wpinq.graphs import recipes, subgraphs

EDGES = wp.source("edges", src=int, dst=int)
QUERIES: dict[str, tuple[wp.Query, dict[Any, float]]] = {
    "tbi": (subgraphs.triangles_by_intersect(EDGES), {"triangle!": 5000.0}),
    "jdd": (recipes.joint_degrees(EDGES), {(i, j): 1.0 for i in range(80) for j in range(80)}),
    "tbd": (
        subgraphs.triangles_by_degree(EDGES, 20),
        {(i, j, k): 0.1 for i in range(5) for j in range(i, 5) for k in range(j, 5)},
    ),
}
POWER, EPSILON = 10_000.0, 0.1
Edges = list[tuple[int, int]]


def read(path: Path) -> Edges:
    with gzip.open(path, "rt") as lines:
        pairs = {tuple(sorted(map(int, line.split()[:2]))) for line in lines if not line.startswith("#")}
    return sorted((a, b) for a, b in pairs if a != b)


def barabasi_albert(nodes: int, attached: int, seed: int) -> Edges:
    """Preferential attachment: each new node takes as many distinct neighbours, by degree."""
    rng, edges = Random(seed), []
    ends = list(range(attached))
    for node in range(attached, nodes):
        chosen: set[int] = set()
        while len(chosen) < attached:
            chosen.add(rng.choice(ends))
        for other in chosen:
            edges.append((other, node))
            ends += [other, node]
    return edges


def randomised(edges: Edges) -> Edges:
    """A random graph with the same degrees."""
    walk = SwapWalk([Target(QUERIES["tbi"][0].plan, EPSILON, {})], "edges", edges, seed=99)
    walk.run(20 * len(edges), 0.0)
    return list(walk.edges)


def compiled(query: str, edges: Edges, steps: int, *, specialised: bool = True, virtual: bool = True) -> str:
    plan, values = QUERIES[query]
    targets = [Target(plan.plan, EPSILON, values)]
    if not specialised:  # a second plan, of no price: plans together run on tables
        targets.append(Target(EDGES.select(lambda e: 0).plan, 0.0, {}))
    start = time.perf_counter()
    walk = SwapWalk(targets, "edges", edges, seed=1, virtual=virtual)
    setup = time.perf_counter() - start
    walk.run(max(1, steps // 20), POWER)
    start = time.perf_counter()
    walk.run(steps, POWER)
    return shown(steps / (time.perf_counter() - start), setup, walk.memory / 1e6)


def python(query: str, edges: Edges, steps: int) -> str:
    plan, values = QUERIES[query]
    start = time.perf_counter()
    engine = Evaluator([plan.plan], {"edges": {e: 1.0 for a, b in edges for e in ((a, b), (b, a))}})
    setup = time.perf_counter() - start
    rng, held, present = Random(1), list(edges), {frozenset(edge) for edge in edges}
    start = time.perf_counter()
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
    return shown(steps / (time.perf_counter() - start), setup, None)


def hand_written(edges: Edges, steps: int) -> str:
    walk = yardstick()
    labels, dense = np.unique(np.array(edges), return_inverse=True)
    ends = np.ascontiguousarray(dense.reshape(-1, 2).astype(np.uint32))
    both = np.concatenate([ends, ends[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    degrees = np.bincount(both[:, 0])
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint32)
    neighbours = np.ascontiguousarray(both[:, 1])
    marks = np.zeros(len(labels), dtype=np.uint32)
    arrays = (ends, starts, neighbours, 1.0 / degrees, marks)
    start = time.perf_counter()
    walk(*arrays, 5, QUERIES["tbi"][1]["triangle!"], 1)
    setup = time.perf_counter() - start
    start = time.perf_counter()
    walk(*arrays, steps, QUERIES["tbi"][1]["triangle!"], 2)
    return shown(steps / (time.perf_counter() - start), setup, sum(array.nbytes for array in arrays) / 1e6)


def yardstick() -> Callable[..., float]:
    """Triangles by intersect under swaps, as one would write it for this query and no other."""
    from numba import njit

    @njit(nogil=True)
    def common(a, b, starts, neighbours, inverse, marks, mark, skip, skip_too):  # type: ignore[no-untyped-def]
        for k in range(starts[a], starts[a + np.uint32(1)]):
            marks[neighbours[k]] = mark
        total = 0.0
        for k in range(starts[b], starts[b + np.uint32(1)]):
            w = neighbours[k]
            if marks[w] == mark and w != skip and w != skip_too:
                total += min(inverse[a], inverse[b]) + min(inverse[a], inverse[w]) + min(inverse[b], inverse[w])
        return total

    @njit(nogil=True)
    def has(a, b, starts, neighbours):  # type: ignore[no-untyped-def]
        for k in range(starts[a], starts[a + np.uint32(1)]):  # noqa: SIM110 - numba has no any()
            if neighbours[k] == b:
                return True
        return False

    @njit(nogil=True)
    def put(a, b, q, starts, neighbours):  # type: ignore[no-untyped-def]
        k = starts[a]
        while neighbours[k] != b:
            k += np.uint32(1)
        neighbours[k] = q

    @njit(nogil=True)
    def walk(edges, starts, neighbours, inverse, marks, steps, target, seed):  # type: ignore[no-untyped-def]
        np.random.seed(seed)
        nobody = np.uint32(0xFFFFFFFF)
        marks[:] = 0
        output = 0.0
        mark = np.uint32(0)
        for edge in edges:
            mark += np.uint32(1)
            output += common(edge[0], edge[1], starts, neighbours, inverse, marks, mark, nobody, nobody) / 3.0
        for _ in range(steps):
            i, j = np.random.randint(len(edges)), np.random.randint(len(edges))
            a, b, c, d = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
            if np.random.random() < 0.5:
                c, d = d, c
            if (a == d) | (c == b) | (a == c) | (b == d):
                continue
            if has(a, d, starts, neighbours) or has(c, b, starts, neighbours):
                continue
            change = 0.0
            mark += np.uint32(4)
            change -= common(a, b, starts, neighbours, inverse, marks, mark, nobody, nobody)
            change -= common(c, d, starts, neighbours, inverse, marks, mark + np.uint32(1), nobody, nobody)
            change += common(a, d, starts, neighbours, inverse, marks, mark + np.uint32(2), b, c)
            change += common(c, b, starts, neighbours, inverse, marks, mark + np.uint32(3), a, d)
            worse = EPSILON * (abs(output + change - target) - abs(output - target))
            if worse <= 0 or np.random.random() < np.exp(-POWER * worse):
                output += change
                put(a, b, d, starts, neighbours)
                put(b, a, c, starts, neighbours)
                put(c, d, b, starts, neighbours)
                put(d, c, a, starts, neighbours)
                edges[i, 1], edges[j, 0], edges[j, 1] = d, c, b
        return output

    return walk  # type: ignore[no-any-return]


def shown(rate: float, setup: float, megabytes: float | None) -> str:
    memory = "" if megabytes is None else f"{megabytes:10.1f}"
    return f"{rate:12,.0f} {setup:8.1f} {memory:>10}"


def row(graph: str, query: str, engine: str, figures: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{graph:<22} {query:<5} {engine:<13} {figures} {peak:10.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("WPINQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--growth", action="store_true", help="Barabási–Albert graphs from 10⁴ to 10⁶ edges, TbI")
    parser.add_argument("--quick", action="store_true", help="ca-GrQc only, without the slow engines")
    options = parser.parse_args()
    print(f"{'graph':<22} {'query':<5} {'engine':<13} {'steps/s':>12} {'setup s':>8} {'arrays MB':>10} {'peak MB':>10}")
    if options.growth:
        for nodes in (1_000, 3_160, 10_000, 31_600, 100_000):
            edges = randomised(barabasi_albert(nodes, 10, seed=1))
            name = f"BA {nodes:,}/{len(edges):,}"
            row(name, "tbi", "hand-written", hand_written(edges, options.steps))
            row(name, "tbi", "compiled", compiled("tbi", edges, options.steps))
        return
    graphs = {"ca-GrQc": lambda: read(options.data / "graphs" / "ca-GrQc.txt.gz")}
    if not options.quick:
        graphs["BA 100k/1M"] = lambda: barabasi_albert(100_000, 10, seed=1)
        graphs["soc-Epinions1"] = lambda: read(options.data / "graphs" / "soc-Epinions1.txt.gz")
    for name, load in graphs.items():
        edges = randomised(load())
        if "tbi" in options.queries:
            row(name, "tbi", "hand-written", hand_written(edges, options.steps))
            row(name, "tbi", "compiled", compiled("tbi", edges, options.steps))
        if name != "ca-GrQc":
            continue
        for query in options.queries:
            if query == "tbi":
                row(name, query, "tables", compiled(query, edges, options.steps // 5, specialised=False))
            else:
                row(name, query, "compiled", compiled(query, edges, options.steps // 5))
            if not options.quick:
                if query != "tbd":  # 1.3 GB
                    slow = compiled(query, edges, options.steps // 100, specialised=False, virtual=False)
                    row(name, query, "materialised", slow)
                if query != "tbd":
                    row(name, query, "python", python(query, edges, 300))


if __name__ == "__main__":
    main()
