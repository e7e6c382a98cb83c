"""What strategies cost as query programs: the widening of their noise, and seconds to plan, print, read and evaluate.

    python benchmarks/histograms_programs.py [DATA]

CPU time of one core. Evaluation is on DuckDB; beside it, numpy counts the same records and multiplies by the matrix.
The records are drawn with numpy; DATA is not read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from histograms_data import best, claim, options
from scipy.sparse import csr_matrix, vstack

import wpinq as wp
from wpinq.histograms import (
    AllRanges,
    CountOfCounts,
    Hierarchical,
    Identity,
    LinearStrategy,
    MatrixMechanism,
    PIdentity,
    Product,
    Sorted,
    Strategy,
    Tree,
    Wavelet,
    choose,
    optimise,
)
from wpinq.language.write import unparse
from wpinq.plan.properties import plan_properties

CAPS = [2**30, 5 * 10**8]  # the first is the default


def p_identity(rng: np.random.Generator, sums: int, domain: int) -> PIdentity:
    return PIdentity(rng.uniform(0, 0.1, (sums, domain)))


def widening(rng: np.random.Generator) -> None:
    long = [p_identity(rng, 64, 4096) for _ in range(2)]
    short = [p_identity(rng, 4, 64) for _ in range(3)]
    strategies: dict[str, tuple[Strategy, int]] = {
        "Identity": (Identity(4096), 1),
        "binary tree": (Hierarchical(4096), 1),
        "Wavelet": (Wavelet(4096), 1),
        "PIdentity, 64 sums": (long[0], 1),
        "dense MatrixMechanism, 64 rows": (MatrixMechanism(rng.normal(size=(64, 4096))), 1),
        "Sorted": (Sorted(4096), 1),
        **{f"CountOfCounts, {m}": (CountOfCounts(1000, 1000, m), 1) for m in ("naive", "cumulative", "unattributed")},
        "Product of binary trees": (Product(Hierarchical(4096), Hierarchical(4096)), 2),
        "Product of PIdentity, 4 sums": (Product(*short[:2]), 2),
        "Product of PIdentity, 64 sums": (Product(*long), 2),
        "Product of three PIdentity, 4 sums": (Product(*short), 3),
    }
    print("noise scale beyond the nominal one, sensitivity over epsilon, in millionths")
    print(f"  {'':36}" + "".join(f"{f'cap {cap:,}':>20}" for cap in CAPS))
    found = []
    for name, (strategy, attributes) in strategies.items():
        row = []
        for cap in CAPS:
            source = wp.source("records", a=int, b=int, c=int, cap=cap)
            fields = ("a", "b", "c")[:attributes]
            query = strategy.query(
                source, lambda r, f=fields: r.a if f == ("a",) else tuple(getattr(r, each) for each in f)
            )
            row.append(1e6 * float(plan_properties(query.plan).slack()))
        found.append(row)
        print(f"  {name:36}" + "".join(f"{value:20.2f}" for value in row))
    worst = np.max(found, axis=0)
    claim(
        "rounding widens the noise of no strategy by more than a millionth",
        "; ".join(
            f"at a cap of {cap:,} records by {value:.2f} at most" for cap, value in zip(CAPS, worst, strict=True)
        ),
        bool(worst[0] <= 1),
    )


def evaluated(
    strategy: LinearStrategy, query: wp.Query, rows: Mapping[Any, float], truth: np.ndarray
) -> tuple[float, float]:
    """Seconds on DuckDB, and the largest difference from the matrix times the histogram."""
    start = time.process_time()
    found = wp.evaluate(query, {"records": rows}, engine="duckdb")
    seconds = time.process_time() - start
    released = np.array([found[key] for key in strategy.keys]) * float(strategy.sensitivity)
    return seconds, float(np.abs(released - strategy.apply(truth)).max())


def tables(rng: np.random.Generator) -> None:
    """Strategies whose queries hold large tables of constants."""
    n, count = 4096, 100_000
    records = wp.source("records", id=int, bin=int, cap=10**6)
    bins = rng.integers(0, n, count)
    rows = {(i, int(b)): 1.0 for i, b in enumerate(bins)}
    truth = np.bincount(bins, minlength=n).astype(float)
    tree = csr_matrix(vstack([csr_matrix(level) for level in Tree.uniform(n, 2).totals(np.eye(n))]))
    strategies: dict[str, LinearStrategy] = {
        "PIdentity, 64 sums": p_identity(rng, 64, n),
        "binary tree as a sparse matrix": MatrixMechanism(tree),
        "dense matrix, 64 rows": MatrixMechanism(rng.normal(size=(64, n))),
    }
    print(f"strategies with tables over {n} bins, {count:,} records: seconds")
    heads = ("plan", "print", "parse", "characters", "DuckDB", "numpy", "difference")
    print(f"  {'':32}" + "".join(f"{head:>12}" for head in heads))
    same = []
    for name, strategy in strategies.items():
        times = [time.process_time()]
        query = strategy.query(records, bin=lambda r: r.bin)
        times.append(time.process_time())
        text = unparse({"q": query})
        times.append(time.process_time())
        same.append(wp.parse(text)["q"] == query)
        times.append(time.process_time())
        seconds, gap = evaluated(strategy, query, rows, truth)
        reference = best(lambda s=strategy: s.apply(np.bincount(bins, minlength=n).astype(float)))
        steps = np.diff(times)
        print(
            f"  {name:32}" + "".join(f"{s:12.2f}" for s in steps) + f"{len(text):12,}{seconds:12.2f}"
            f"{reference:12.4f}{gap:12.1e}"
        )
    claim("what is printed is read back as the same query", f"{sum(same)} of {len(same)}", all(same))


def products(rng: np.random.Generator) -> None:
    count = 20_000
    records = wp.source("records", id=int, a=int, b=int, cap=10**6)
    strategies = {
        "64 × 64 bins, binary trees": Product(Hierarchical(64), Hierarchical(64)),
        "64 × 64 bins, PIdentity, 4 sums": Product(p_identity(rng, 4, 64), p_identity(rng, 4, 64)),
        "256 × 256 bins, PIdentity, 16 sums": Product(p_identity(rng, 16, 256), p_identity(rng, 16, 256)),
    }
    print(f"products over two attributes, {count:,} records: seconds")
    print(f"  {'':36}" + "".join(f"{head:>12}" for head in ("elements", "plan", "DuckDB", "numpy", "difference")))
    for name, strategy in strategies.items():
        a, b = (rng.integers(0, size, count) for size in strategy.sizes)
        rows = {(i, int(x), int(y)): 1.0 for i, (x, y) in enumerate(zip(a, b, strict=True))}
        flat = np.ravel_multi_index((a, b), strategy.sizes)
        truth = np.bincount(flat, minlength=strategy.domain).astype(float)
        elements = np.prod([len(factor.elements(0)) for factor in strategy.strategies])
        start = time.process_time()
        query = strategy.query(records, bin=lambda r: (r.a, r.b))
        planned = time.process_time() - start
        seconds, gap = evaluated(strategy, query, rows, truth)
        reference = best(lambda s=strategy, f=flat: s.apply(np.bincount(f, minlength=s.domain).astype(float)))
        print(f"  {name:36}{elements:12}{planned:12.2f}{seconds:12.2f}{reference:12.4f}{gap:12.1e}")
    print()


def choices() -> None:
    workload = AllRanges(4096)
    start = time.process_time()
    optimised = optimise(workload)
    middle = time.process_time()
    ranking = choose(workload, 1)
    end = time.process_time()
    gain = Identity(4096).expected_error(workload, 1) / optimised.expected_error(workload, 1)
    print(f"all {workload.queries:,} ranges of 4096 bins: optimise {middle - start:.1f} s, choose {end - middle:.1f} s")
    print(f"  {ranking.best!r} is best of {len(ranking.choices)}; error {gain:.1f} times below that of Identity")


def main() -> None:
    args = options("Histogram strategies as programs.", draws=1)
    rng = np.random.default_rng(args.seed)
    widening(rng)
    tables(rng)
    products(rng)
    choices()


if __name__ == "__main__":
    main()
