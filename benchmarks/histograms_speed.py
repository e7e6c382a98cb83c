"""Speed of inference, beside numpy or a reference solver in the same run. CPU time: all runs on one core.

python benchmarks/histograms_speed.py [DATA]
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from histograms_data import claim, histogram, options
from scipy.sparse import csr_matrix, vstack
from scipy.sparse.linalg import lsmr

import wpinq as wp
from wpinq.histograms import (
    AllRanges,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    MatrixMechanism,
    PIdentity,
    Ranges,
    Tree,
    Wavelet,
    isotonic_l1,
    isotonic_l2,
    range_sums,
    tree_least_squares,
)
from wpinq.language.unparse import unparse


def best(function: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def tables(rng: np.random.Generator) -> None:
    """Strategies whose queries hold large tables of constants: plan, text and evaluation of 100,000 records."""
    n = 4096
    records = wp.source("records", id=int, bin=int, cap=10**6)
    rows = {(i, int(b)): 1.0 for i, b in enumerate(rng.integers(0, n, 100_000))}
    truth = np.bincount([b for _, b in rows], minlength=n).astype(float)
    tree = csr_matrix(vstack([csr_matrix(level) for level in Tree.uniform(n, 2).totals(np.eye(n))]))
    strategies = {
        "p-identity, 64 sums": PIdentity(rng.uniform(0, 0.1, (64, n))),
        "binary tree as a sparse matrix": MatrixMechanism(tree),
        "dense matrix, 64 rows": MatrixMechanism(rng.normal(size=(64, n))),
    }
    print(f"  strategies with tables over {n} bins, 100,000 records, seconds of CPU time")
    print(f"  {'':32}" + "".join(f"{head:>12}" for head in ("plan", "print", "parse", "characters", "DuckDB", "error")))
    for name, strategy in strategies.items():
        times = [time.process_time()]
        query = strategy.query(records, bin=lambda r: r.bin)
        times.append(time.process_time())
        text = unparse({"q": query})
        times.append(time.process_time())
        assert wp.parse(text)["q"] == query
        times.append(time.process_time())
        found = wp.evaluate(query, {"records": rows}, engine="duckdb")
        times.append(time.process_time())
        released = np.array([found[key] for key in strategy.keys]) * float(strategy.sensitivity)
        steps = np.diff(times)
        gap = np.abs(released - strategy.apply(truth)).max()
        print(f"  {name:32}" + "".join(f"{s:12.2f}" for s in steps[:3]) + f"{len(text):12,}{steps[3]:12.2f}{gap:12.1e}")
    print()


def main() -> None:
    args = options("Speed of histogram inference.", draws=1)
    rng = np.random.default_rng(args.seed)

    tree = Tree.uniform(2**20, 2)
    levels = tree.split(rng.normal(size=sum(tree.sizes)))
    ours, copy = best(lambda: tree_least_squares(tree, levels)), best(lambda: np.concatenate(levels))
    claim(
        "least squares on 2^20 leaves in at most 50 ms",
        f"{1e3 * ours:.1f} ms (numpy copies the nodes in {1e3 * copy:.1f} ms)",
        ours <= 0.05,
    )
    small = Tree.uniform(2**12, 2)
    a = vstack([csr_matrix(level) for level in small.totals(np.eye(2**12))]).tocsr()
    y = rng.normal(size=sum(small.sizes))
    fast = best(lambda: tree_least_squares(small, small.split(y)))
    reference = best(lambda: lsmr(a, y, atol=1e-12, btol=1e-12), 1)
    gap = np.abs(lsmr(a, y, atol=1e-12, btol=1e-12)[0] - tree_least_squares(small, small.split(y))[-1]).max()
    print(
        f"  2^12 leaves: {1e3 * fast:.2f} ms against {1e3 * reference:.1f} ms by LSMR, largest difference {gap:.1e}\n"
    )

    counts = np.sort(rng.zipf(1.7, 10**6).clip(max=10**5)).astype(float) + rng.laplace(0, 10, 10**6)
    seconds, plain = best(lambda: isotonic_l2(counts)), best(lambda: np.sort(counts), 2)
    claim(
        "isotonic L2 on 10^6 values in at most 100 ms",
        f"{1e3 * seconds:.1f} ms (numpy sorts them in {1e3 * plain:.1f} ms)",
        seconds <= 0.1,
    )
    seconds = best(lambda: isotonic_l1(counts), 2)
    claim("isotonic L1 on 10^6 values in at most 1 s", f"{seconds:.2f} s", seconds <= 1)

    strategy = Hierarchical(4096)
    noisy = strategy.apply(histogram(args.data, "HEPTH")) + rng.laplace(0, 130, len(strategy.keys))
    ends = np.sort(rng.integers(0, 4097, (1000, 2)), axis=1)
    seconds = best(lambda: range_sums(strategy.infer(noisy), ends[:, 0], ends[:, 1]))
    claim("1000 random ranges of 4096 bins in at most 0.3 s after the noise", f"{1e3 * seconds:.2f} ms", seconds <= 0.3)

    workload = Ranges(4096, ends[:, 0], ends[:, 1])
    for chosen in (strategy, Hierarchical(4096, 16), Wavelet(4096), Identity(4096)):
        values = chosen.apply(histogram(args.data, "HEPTH")) + rng.laplace(0, 130, chosen.size)
        seconds = best(lambda c=chosen, v=values: c.intervals(v, workload, epsilon=0.1), 2)
        one = best(lambda c=chosen, v=values: c.interval(v, workload.rows(7, 8)[:, 0], epsilon=0.1), 2)
        print(f"  {chosen!r:40} exact intervals of the 1000: {seconds:.2f} s, of one: {1e3 * one:.1f} ms")
    many = np.sort(rng.integers(0, 4097, (5000, 2)), axis=1)
    queries = Ranges(4096, many[:, 0], many[:, 1])
    seconds = best(lambda: strategy.expected_error(queries, 1), 2)
    every = best(lambda: strategy.expected_error(AllRanges(4096), 1), 1)
    claim(
        "expected_error of 5000 ranges of 4096 bins in at most 1 s",
        f"{1e3 * seconds:.1f} ms; of all {AllRanges(4096).queries:,} ranges {every:.1f} s",
        seconds <= 1,
    )
    tables(rng)

    folder = args.data / "count-of-counts"
    taxi = [np.atleast_2d(np.load(folder / f"taxi_level{i}.npy")) for i in (1, 2, 3)]
    where = Tree([[2], [18, 10]])
    for method in ("cumulative", "unattributed"):
        counted = HierarchicalCounts(where, taxi[2].sum(axis=1), 4919, method)
        given = [
            [(np.cumsum(row)[:-1] if method == "cumulative" else np.repeat(np.arange(len(row)), row)) for row in level]
            for level in taxi
        ]
        given = [[row + rng.laplace(0, 3, len(row)) for row in level] for level in given]
        seconds = best(lambda counted=counted, given=given: counted.infer(given, [1 / 3] * 3), 2)
        claim(f"taxi, {method}, p = 1, in at most 10 s", f"{seconds:.2f} s", seconds <= 10)


if __name__ == "__main__":
    main()
