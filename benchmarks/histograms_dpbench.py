"""Mean squared error per range query of every strategy on the 18 DPBench vectors, and what `choose` picks.

    python benchmarks/histograms_dpbench.py [DATA] [--draws 5]

1000 random ranges of 4096 bins, the same for all. Unbiased estimates have errors that do not depend on the data, so
they are listed once with their prediction. Non-negative estimates (`nonnegative="top down"`) depend on the data: their
table says how well a choice made without data does.
"""

from __future__ import annotations

import time

import numpy as np
from histograms_data import DPBENCH, claim, histogram, options

from wpinq.histograms import Ranges, choose, range_sums

EPSILONS = [0.01, 0.1, 1.0]


def main() -> None:
    args = options("Every strategy on the DPBench vectors.", draws=5)
    rng = np.random.default_rng(args.seed)
    ends = np.sort(rng.integers(0, 4097, (1000, 2)), axis=1)
    workload = Ranges(4096, ends[:, 0], np.maximum(ends[:, 1], ends[:, 0]))
    start = time.perf_counter()
    ranking = choose(workload, 1)
    print(f"choose took {time.perf_counter() - start:.1f} s\n{ranking}\n")
    strategies = [choice.strategy for choice in ranking.choices]
    predicted = np.array([choice.mean for choice in ranking.choices])

    plain = np.zeros((len(DPBENCH), len(EPSILONS), len(strategies)))
    kept = np.zeros_like(plain)
    for i, name in enumerate(DPBENCH):
        truth = histogram(args.data, name)
        true = workload.answer(truth)
        for j, epsilon in enumerate(EPSILONS):
            for k, strategy in enumerate(strategies):
                scale = float(strategy.sensitivity) / epsilon
                for _ in range(args.draws):
                    noisy = strategy.apply(truth) + rng.laplace(0, scale, len(strategy.keys))
                    for table, estimate in ((plain, strategy.infer(noisy)), (kept, strategy.infer(noisy, "top down"))):
                        answers = range_sums(estimate, workload.starts, workload.stops)
                        table[i, j, k] += ((answers - true) ** 2).mean() / args.draws

    print("unbiased estimates, over all 18 vectors: mean squared error times epsilon²")
    for k, strategy in enumerate(strategies):
        scaled = (plain[:, :, k] * np.array(EPSILONS) ** 2).mean(axis=0)
        print(f"  {strategy!r:44} predicted {predicted[k]:10.1f}   measured " + " ".join(f"{v:10.1f}" for v in scaled))
    worst = max(
        abs((plain[:, :, k] * np.array(EPSILONS) ** 2).mean() / predicted[k] - 1) for k in range(len(strategies))
    )
    claim("expected_error is exact", f"largest deviation of the means {worst:.1%}", worst < 0.1)
    for label, table in (("unbiased", plain), ("non-negative", kept)):
        picked = table[:, :, 0] / table.min(axis=2)
        share = (picked <= 1.1).mean()
        print(f"{label}: the pick's error over the least one")
        if label == "non-negative":
            print(f"  {'data':14}" + "".join(f"{f'eps {e}':>12}" for e in EPSILONS) + "   best")
            for i, name in enumerate(DPBENCH):
                best = [type(strategies[k]).__name__ for k in table[i].argmin(axis=1)]
                print(f"  {name:14}" + "".join(f"{r:12.2f}" for r in picked[i]) + "   " + ", ".join(best))
        claim(
            "choose is within 10 % of the best in at least 90 % of the cells", f"{share:.0%} of the cells", share >= 0.9
        )


if __name__ == "__main__":
    main()
