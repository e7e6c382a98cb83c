"""Speed and memory of inference, beside numpy, a reference solver or brute force in the same run.

    python benchmarks/histograms_speed.py [DATA]

CPU time of one core. Where a reference cannot do the size of the claim, both do the largest it can, and must agree.
Memory is the peak of what Python and numpy allocate during a call, on top of what was there, by tracemalloc.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from histograms_data import Array, best, claim, histogram, options
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_matrix, diags, eye, hstack, vstack
from scipy.sparse.linalg import lsmr

from wpinq.histograms import (
    AllRanges,
    CountOfCounts,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    Ranges,
    Sorted,
    Tree,
    Wavelet,
    isotonic_l1,
    isotonic_l2,
    match_sizes,
    range_sums,
    tree_least_squares,
)


def compared(what: str, ours: float, reference: float, difference: float) -> None:
    print(f"  {what}: {1e3 * ours:.2f} ms against {1e3 * reference:.0f} ms, largest difference {difference:.1e}\n")


def timed(function: Callable[[], Array]) -> tuple[float, Array]:
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def trees(rng: np.random.Generator) -> None:
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
    reference, fit = timed(lambda: lsmr(a, y, atol=1e-12, btol=1e-12)[0])
    compared("2^12 leaves, by LSMR", fast, reference, np.abs(fit - tree_least_squares(small, small.split(y))[-1]).max())


def l1_by_linear_program(values: Array) -> Array:
    """`argmin Σ t` with `−t ≤ s − values ≤ t` and s non-decreasing, by scipy's HiGHS."""
    n = len(values)
    one = eye(n, format="csr")
    falls = diags([np.ones(n - 1), -np.ones(n - 1)], [0, 1], shape=(n - 1, n))
    limits = vstack([hstack([one, -one]), hstack([-one, -one]), hstack([falls, csr_matrix((n - 1, n))])])
    right = np.concatenate((values, -values, np.zeros(n - 1)))
    costs = np.concatenate((np.zeros(n), np.ones(n)))
    return linprog(costs, A_ub=limits, b_ub=right, bounds=(None, None), method="highs").x[:n]


def isotonic(rng: np.random.Generator) -> None:
    counts = np.sort(rng.zipf(1.7, 10**6).clip(max=10**5)).astype(float) + rng.laplace(0, 10, 10**6)
    plain = best(lambda: np.sort(counts), 2)
    for name, fit, limit in (("L2", isotonic_l2, 0.1), ("L1", isotonic_l1, 1.0)):
        seconds = best(lambda fit=fit: fit(counts), 3)
        claim(
            f"isotonic {name} on 10^6 values in at most {limit:g} s",
            f"{1e3 * seconds:.1f} ms (numpy sorts them in {1e3 * plain:.1f} ms)",
            seconds <= limit,
        )
    few = counts[:: len(counts) // 1000]
    fast = best(lambda: isotonic_l1(few))
    reference, fit = timed(lambda: l1_by_linear_program(few))
    gap = abs(np.abs(fit - few).sum() - np.abs(isotonic_l1(few) - few).sum())
    compared("L1 on 1000 values, by HiGHS, difference of the objectives", fast, reference, gap)
    few = counts[:: len(counts) // 2000]
    means = np.concatenate(([0.0], np.cumsum(few)))

    def by_definition() -> Array:  # min over j >= k of max over i <= j of mean(i … j)
        size = np.arange(1, len(few) + 1)
        table = (means[None, 1:] - means[:-1, None]) / np.maximum(size[None, :] - size[:, None] + 1, 1)
        table[size[:, None] > size[None, :]] = -np.inf
        return np.minimum.accumulate(table.max(axis=0)[::-1])[::-1]

    fast = best(lambda: isotonic_l2(few))
    reference, fit = timed(by_definition)
    compared("L2 on 2000 values, by the formula min max mean", fast, reference, np.abs(fit - isotonic_l2(few)).max())


def ranges(args: argparse.Namespace, rng: np.random.Generator) -> None:
    strategy, truth = Hierarchical(4096), histogram(args.data, "HEPTH")
    noisy = strategy.apply(truth) + rng.laplace(0, 130, len(strategy.keys))
    ends = np.sort(rng.integers(0, 4097, (1000, 2)), axis=1)
    starts, stops = ends[:, 0], ends[:, 1]
    seconds = best(lambda: range_sums(strategy.infer(noisy), starts, stops))
    claim("1000 random ranges of 4096 bins in at most 0.3 s after the noise", f"{1e3 * seconds:.2f} ms", seconds <= 0.3)
    a = vstack([csr_matrix(level) for level in strategy.tree.totals(np.eye(4096))]).tocsr()

    def plainly() -> Array:  # a sparse solver, and each range summed by itself
        fit = lsmr(a, noisy, atol=1e-13, btol=1e-13, maxiter=1000)[0]
        return np.array([fit[i:j].sum() for i, j in ends])

    reference, found = timed(plainly)
    gap = np.abs(found - range_sums(strategy.infer(noisy), starts, stops)).max()
    compared("the same by LSMR and a sum for each range", seconds, reference, gap)

    workload = Ranges(4096, starts, stops)
    for chosen in (strategy, Hierarchical(4096, 16), Wavelet(4096), Identity(4096)):
        values = chosen.apply(truth) + rng.laplace(0, 130, chosen.size)
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
    reference, norms = timed(lambda: np.array([(strategy.coefficients(workload.rows(0, 1000)) ** 2).sum()]))
    exact = 2 * float(strategy.sensitivity) ** 2 * norms[0]
    ours = best(lambda: strategy.expected_error(workload, 1))
    gap = abs(strategy.expected_error(workload, 1) / exact - 1)
    compared("expected_error of 1000 ranges, by a coefficient for each answer, relative", ours, reference, gap)


def taxi(args: argparse.Namespace, rng: np.random.Generator) -> None:
    folder = args.data / "count-of-counts"
    levels = [np.atleast_2d(np.load(folder / f"taxi_level{i}.npy")) for i in (1, 2, 3)]
    where = Tree([[2], [18, 10]])
    for method in ("cumulative", "unattributed"):
        counted = HierarchicalCounts(where, levels[2].sum(axis=1), 4919, method, 1)
        given = [
            [(np.cumsum(row)[:-1] if method == "cumulative" else np.repeat(np.arange(len(row)), row)) for row in level]
            for level in levels
        ]
        given = [[row + rng.laplace(0, 3, len(row)) for row in level] for level in given]
        seconds = best(lambda counted=counted, given=given: counted.infer(given, [1 / 3] * 3), 2)
        claim(f"taxi, {method}, p = 1, in at most 10 s", f"{seconds:.2f} s", seconds <= 10)
    children = [rng.choice(np.repeat(np.arange(4920), row), 150).astype(float) for row in levels[2][18:]]
    parent = np.sort(np.concatenate(children) + np.rint(rng.laplace(0, 30, 1500)))
    ours = best(lambda: match_sizes(parent, children))
    costs = np.abs(parent[:, None] - np.concatenate(children)[None, :])
    reference, pairs = timed(lambda: np.array(linear_sum_assignment(costs)))
    gap = abs(costs[pairs[0], pairs[1]].sum() - match_sizes(parent, children)[1])
    compared("matching 1500 taxis with those of 10 places, by scipy's assignment solver, cost", ours, reference, gap)


def memory(rng: np.random.Generator) -> None:
    print("peak memory, bytes a bin")
    sizes = [2**18, 2**20]
    print(f"  {'':36}" + "".join(f"{f'2^{size.bit_length() - 1} bins':>14}" for size in sizes))

    def steps(size: int) -> dict[str, Callable[[], object]]:
        tree, wide, wavelet = Hierarchical(size), Hierarchical(size, 16), Wavelet(size)
        values = {s: rng.laplace(100, 10, s.size) for s in (tree, wide)}
        coefficients = rng.laplace(0, 10, 2 * size)
        counts = rng.laplace(100, 10, size)
        sizes_of = CountOfCounts(size, size)
        return {
            "numpy copies the bins": counts.copy,
            "binary tree": lambda: tree.infer(values[tree]),
            "binary tree, top down": lambda: tree.infer(values[tree], "top down"),
            "tree of branching 16": lambda: wide.infer(values[wide]),
            "Wavelet": lambda: wavelet.estimate(coefficients[:size]),
            "Sorted (isotonic L2)": lambda: Sorted(size).infer(counts),
            "isotonic L1": lambda: isotonic_l1(counts),
            "counts of counts, H_c": lambda: sizes_of.infer(np.sort(counts)),
            "1000 range sums": lambda: range_sums(counts, np.arange(1000), np.arange(1000) + size // 2),
        }

    peaks: dict[str, list[float]] = {}
    for size in sizes:
        for name, function in steps(size).items():
            function()  # what is kept for the next call is not of this one
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            function()
            peaks.setdefault(name, []).append((tracemalloc.get_traced_memory()[1] - before) / size)
            tracemalloc.stop()
    for name, row in peaks.items():
        print(f"  {name:36}" + "".join(f"{value:14.1f}" for value in row))
    growth = max(row[-1] / row[0] for row in peaks.values())
    claim(
        "memory is linear in the domain",
        f"four times the bins take at most {growth:.2f} times the bytes a bin",
        growth <= 1.1,
    )


def main() -> None:
    args = options("Speed and memory of histogram inference.", draws=1)
    rng = np.random.default_rng(args.seed)
    trees(rng)
    isotonic(rng)
    ranges(args, rng)
    taxi(args, rng)
    memory(rng)


if __name__ == "__main__":
    main()
