"""Top-down inference after `choose`, on the 18 DPBench vectors.

    python benchmarks/histograms_top_down.py [DATA] [--draws 4] [--seed 1]

A cell is a vector at an epsilon, 18 x 3 of them, for each workload: 2000 random ranges over 256, 1024 and 4096 bins,
all prefixes and all points of 1024. Vectors of fewer bins are sums of neighbouring ones. The strategy is that which
`choose` ranks first. Printed is the unbiased error divided by the error of `nonnegative="top down"`: the geometric mean
over the vectors, of mean errors over the draws.
"""

from __future__ import annotations

import time

import numpy as np
from histograms_data import DPBENCH, Array, claim, histogram, parser

from wpinq.histograms import Bins, LinearStrategy, Prefixes, Ranges, Workload, choose

EPSILONS = [0.01, 0.1, 1.0]
WORKLOADS = {
    ("ranges", 256): None,
    ("ranges", 1024): (1.46, 1.21, 1.22),
    ("ranges", 4096): (1.41, 1.53, 1.20),
    ("prefixes", 1024): (0.99, 1.15, 1.02),
    ("points", 1024): (2.26, 2.01, 1.59),
}
"""Kind and bins, with the published gain at each epsilon."""


def workload_of(kind: str, bins: int, rng: np.random.Generator) -> Workload:
    if kind == "prefixes":
        return Prefixes(bins)
    if kind == "points":
        return Bins(bins)
    ends = np.sort(rng.integers(0, bins + 1, (2000, 2)), axis=1)
    return Ranges(bins, ends[:, 0], ends[:, 1])


def errors(
    rng: np.random.Generator, strategy: LinearStrategy, workload: Workload, truth: Array, epsilon: float, draws: int
) -> Array:
    """The mean squared errors of some draws: unbiased, and top down."""
    noise, true = strategy.noise(epsilon=epsilon), workload.answer(truth)
    found = np.zeros(2)
    for _ in range(draws):
        noisy = strategy.apply(truth) + noise.draw(rng, strategy.size)
        for i, estimate in enumerate((strategy.infer(noisy), strategy.infer(noisy, "top down"))):
            found[i] += float(((workload.answer(estimate) - true) ** 2).mean()) / draws
    return found


def main() -> None:
    args = parser("Top-down inference on the DPBench vectors.", draws=4).parse_args()
    rng = np.random.default_rng(args.seed)
    for (kind, bins), published in WORKLOADS.items():
        start = time.process_time()
        workload = workload_of(kind, bins, rng)
        strategy = choose(workload, 1).best  # the order is that of every epsilon
        gains = []
        for name in DPBENCH:
            truth = histogram(args.data, name).reshape(bins, -1).sum(axis=1)
            found = [errors(rng, strategy, workload, truth, epsilon, args.draws) for epsilon in EPSILONS]
            gains.append([plain / top_down for plain, top_down in found])
        gain = np.exp(np.log(gains).mean(axis=0))
        shown = " / ".join(f"{one:.2f}" for one in gain)
        print(
            f"{kind}, {bins} bins, {strategy!r}: {shown}; {time.process_time() - start:.0f} s of CPU time", flush=True
        )
        if published is not None:
            holds = bool((gain >= 0.9 * np.array(published)).all())
            claim(f"{kind}, {bins} bins: top down divides the error by {published}", shown, holds)


if __name__ == "__main__":
    main()
