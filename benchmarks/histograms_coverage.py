"""Coverage of intervals of nominal 95 %: exact ones of linear strategies, and parametric bootstraps.

    python benchmarks/histograms_coverage.py [DATA] [--draws 20]

The share of true numbers that lie in their interval, over all numbers and draws. Exact intervals promise 95 % for every
number and all data. Bootstraps promise nothing: constraints bias the estimates, and their intervals inherit that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from histograms_data import Array, claim, histogram, options

import wpinq as wp
from wpinq.histograms import (
    Bins,
    CountOfCounts,
    Hierarchical,
    Identity,
    LinearStrategy,
    Ranges,
    Sorted,
    Wavelet,
    bootstrap,
)

NOMINAL = 0.95


def covered(lower: Array, upper: Array, truth: Array) -> float:
    return float(((lower - 1e-9 <= truth) & (truth <= upper + 1e-9)).mean())


def exact(args, rng: np.random.Generator) -> None:
    truth = histogram(args.data, "NETTRACE")
    ends = np.sort(rng.integers(0, len(truth) + 1, (200, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    print("exact intervals, NETTRACE, epsilon 0.1")
    shares = []
    strategies: list[LinearStrategy] = [Identity(4096), Hierarchical(4096), Hierarchical(4096, 16), Wavelet(4096)]
    for strategy in strategies:
        for workload in (Ranges(4096, ends[:, 0], ends[:, 1]), Bins(4096)):
            noiseless, true = strategy.apply(truth), workload.answer(truth)
            lower, upper = strategy.intervals(noiseless, workload, NOMINAL, epsilon=0.1)
            half, scale = (upper - lower) / 2, float(strategy.sensitivity) / 0.1
            hits = []
            for _ in range(10 * args.draws):
                estimate = workload.answer(strategy.infer(noiseless + rng.laplace(0, scale, len(noiseless))))
                hits.append(covered(estimate - half, estimate + half, true))
            shares.append(float(np.mean(hits)))
            print(f"  {strategy!r:40}{workload!r:40}{shares[-1]:8.3f}")
    claim(
        "exact intervals cover with the probability they say",
        f"{min(shares):.3f} to {max(shares):.3f} of nominal {NOMINAL}",
        max(abs(share - NOMINAL) for share in shares) < 0.01,
    )


def bootstrapped(args, rng: np.random.Generator) -> None:
    print("parametric bootstraps")
    shares = []

    def shown(what: str, data: str, epsilon: float, one: Callable[[], float]) -> None:
        shares.append(float(np.mean([one() for _ in range(args.draws)])))
        print(f"  {what:32}{data:14}epsilon {epsilon:<6}{shares[-1]:8.3f}")

    for name in ("NETTRACE", "SEARCHLOGS", "HEPTH"):
        truth = histogram(args.data, name)
        ascending = np.sort(truth)
        for epsilon in (1.0, 0.1):

            def sorted_counts(truth: Array = ascending, epsilon: float = epsilon) -> float:
                noisy = truth + rng.laplace(0, 1 / epsilon, len(truth))
                found = Sorted(len(truth)).interval(noisy, NOMINAL, epsilon, seed=int(rng.integers(2**31)))
                return covered(found.lower, found.upper, truth)

            shown("sorted counts", name, epsilon, sorted_counts)
        tree = Hierarchical(len(truth), 8)

        def top_down(truth: Array = truth, tree: Hierarchical = tree) -> float:
            scale = float(tree.sensitivity) / 0.1

            def infer(noisy: Array) -> Array:
                return tree.infer(noisy, "top down")

            estimate = infer(tree.apply(truth) + rng.laplace(0, scale, tree.size))
            seed = int(rng.integers(2**31))
            found = bootstrap(estimate, tree.apply, infer, scale, NOMINAL, draws=100, seed=seed)
            return covered(found.lower, found.upper, truth)

        shown('bins of a "top down" tree, k = 8', name, 0.1, top_down)
    sizes = np.load(args.data / "count-of-counts" / "hawaiian_blocks_2010.npy")
    sizes[0] = 50_000
    counts = CountOfCounts(int(sizes.sum()), len(sizes) - 1)

    def cumulative() -> float:
        noisy = counts.answers_from(sizes) + rng.laplace(0, 1 / 0.1, counts.largest)

        def infer(values: Array) -> Array:
            return counts.infer(values).astype(float)

        seed = int(rng.integers(2**31))
        found = bootstrap(infer(noisy), lambda h: counts.answers_from(h.astype(int)), infer, 10.0, NOMINAL, 100, seed)
        return covered(found.lower, found.upper, sizes)

    shown("counts of counts, H_c", "Hawaiian", 0.1, cumulative)
    claim(
        "parametric bootstraps cover nominal 95 % (nothing is promised)",
        f"{min(shares):.2f} to {max(shares):.2f}",
        min(shares) >= NOMINAL,
    )


def on_a_lattice(args, rng: np.random.Generator) -> None:
    print("parametric bootstraps of sorted counts, double-geometric noise")
    bins, shares = wp.source("bins", int, facts=["unit_weights"]), []
    for name in ("NETTRACE", "SEARCHLOGS", "HEPTH"):
        truth = np.sort(histogram(args.data, name))
        strategy = Sorted(len(truth))
        for epsilon in (1.0, 0.1):
            measurement = strategy.measure(bins, epsilon, mechanism="geometric")
            noise, hits = strategy.noise(epsilon=measurement), []
            for _ in range(args.draws):
                noisy, seed = truth + noise.draw(rng, len(truth)), int(rng.integers(2**31))
                found = strategy.interval(noisy, NOMINAL, measurement, seed)
                hits.append(covered(found.lower, found.upper, truth))
            shares.append(float(np.mean(hits)))
            print(f"  {name:14}epsilon {epsilon:<6}{shares[-1]:8.3f}")
    claim(
        "bootstraps with noise on a lattice cover nominal 95 % (nothing is promised)",
        f"{min(shares):.2f} to {max(shares):.2f}",
        min(shares) >= NOMINAL,
    )


def main() -> None:
    args = options("Coverage of intervals.", draws=20)
    rng = np.random.default_rng(args.seed)
    exact(args, rng)
    bootstrapped(args, rng)
    on_a_lattice(args, rng)


if __name__ == "__main__":
    main()
