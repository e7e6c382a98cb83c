"""Speed of inference, beside numpy or a reference solver in the same run.

python benchmarks/histograms_speed.py [DATA]
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from histograms_data import claim, histogram, options
from scipy.sparse import csr_matrix, vstack
from scipy.sparse.linalg import lsmr

from wpinq.histograms import (
    Hierarchical,
    HierarchicalCounts,
    Tree,
    isotonic_l1,
    isotonic_l2,
    range_sums,
    tree_least_squares,
)


def best(function: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


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
