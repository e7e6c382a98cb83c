"""Mean squared error per range query of every strategy on the 18 DPBench vectors, and what `choose` picks.

    python benchmarks/histograms_dpbench.py [DATA] [--draws 100]

1000 random ranges of 4096 bins, the same for all. Unbiased estimates, which `infer` gives unless asked, have errors
that do not depend on the data: they are listed once with their prediction. Non-negative estimates
(`nonnegative="top down"`) have errors that do: their table says how well choices do that see the workload only, that
see more but no data, and that see a public guess of the histogram (here a second dataset drawn from the same
distribution: last year's release).

All strategies get a quarter of the draws; those within a factor of 3 of the least error get the rest.
"""

from __future__ import annotations

import time

import numpy as np
from histograms_data import DPBENCH, claim, histogram, options

from wpinq.histograms import Ranges, choose, simulated_error

EPSILONS = [0.01, 0.1, 1.0]
NEAR = 1.1


def errors(args, strategies, workload, truth, epsilon, way, seed) -> np.ndarray:
    """The mean squared error per query of every strategy on one vector."""
    first, rest = max(1, args.draws // 4), args.draws - max(1, args.draws // 4)
    found = np.array(
        [simulated_error(s, workload, epsilon, truth, way, first, seed) / workload.queries for s in strategies]
    )
    for k in np.flatnonzero(found <= 3 * found.min()):
        if rest:
            more = simulated_error(strategies[k], workload, epsilon, truth, way, rest, seed + 1) / workload.queries
            found[k] = (first * found[k] + rest * more) / args.draws
    return found


def best_share(near: np.ndarray) -> float:
    """The share of cells in which the one strategy that suits most of them is near the best."""
    return float(near.mean(axis=0).max())


def main() -> None:
    args = options("Every strategy on the DPBench vectors.", draws=100)
    rng = np.random.default_rng(args.seed)
    ends = np.sort(rng.integers(0, 4097, (1000, 2)), axis=1)
    workload = Ranges(4096, ends[:, 0], ends[:, 1])
    start = time.process_time()
    ranking = choose(workload, 1)
    print(f"choose took {time.process_time() - start:.1f} s of CPU time\n{ranking}\n")
    strategies = [choice.strategy for choice in ranking.choices]
    predicted = np.array([choice.mean for choice in ranking.choices])
    data = [histogram(args.data, name) for name in DPBENCH]

    plain = np.zeros((len(data), len(EPSILONS), len(strategies)))
    kept = np.zeros_like(plain)
    guessed = np.zeros(plain.shape[:2], dtype=int)
    for i, truth in enumerate(data):
        for j, epsilon in enumerate(EPSILONS):
            seed = 1000 * i + 10 * j
            plain[i, j] = [
                simulated_error(s, workload, epsilon, truth, None, args.draws, seed) / 1000 for s in strategies
            ]
            kept[i, j] = errors(args, strategies, workload, truth, epsilon, "top down", seed)
            guess = rng.poisson(truth)
            pick = errors(args, strategies, workload, guess, epsilon, "top down", seed + 5)
            guessed[i, j] = pick.argmin()

    print("unbiased estimates, over all 18 vectors: mean squared error times epsilon²")
    scaled = plain * np.array(EPSILONS)[None, :, None] ** 2
    for k, strategy in enumerate(strategies):
        shown = " ".join(f"{v:10.1f}" for v in scaled[:, :, k].mean(axis=0))
        print(f"  {strategy!r:44} predicted {predicted[k]:10.1f}   measured {shown}")
    worst = np.abs(scaled.mean(axis=(0, 1)) / predicted - 1).max()
    claim("expected_error is exact", f"largest deviation of the means {worst:.1%}", worst < 0.1)
    share = (plain[:, :, 0].mean(axis=0) <= NEAR * plain.mean(axis=0).min(axis=1)).mean()
    exact = (predicted[0] <= NEAR * predicted.min()) and share == 1.0
    claim(
        "unbiased: choose is within 10 % of the best in at least 90 % of the cells",
        "all 54: the errors are the same for every vector",
        exact,
    )

    ratio = kept / kept.min(axis=2, keepdims=True)
    near = ratio <= NEAR
    at_guess = np.take_along_axis(ratio, guessed[..., None], axis=2)[..., 0]
    print("non-negative: the error over the least one, of the workload's pick and of the pick with a guess")
    print(f"  {'data':14}{'records':>12}" + "".join(f"{f'eps {e}':>10}{'guess':>8}" for e in EPSILONS) + "   best")
    for i, name in enumerate(DPBENCH):
        best = ", ".join(repr(strategies[k]) for k in ratio[i].argmin(axis=1))
        cells = "".join(f"{a:10.2f}{b:8.2f}" for a, b in zip(ratio[i, :, 0], at_guess[i], strict=True))
        print(f"  {name:14}{data[i].sum():12,.0f}{cells}   {best}")
    decades = np.floor(np.log10([truth.sum() for truth in data])).astype(int)
    by_epsilon = np.mean([best_share(near[:, j]) for j in range(len(EPSILONS))])
    groups = [near[decades == d, j] for d in np.unique(decades) for j in range(len(EPSILONS))]
    by_size = sum(best_share(group) * len(group) for group in groups) / (len(data) * len(EPSILONS))
    text = "is within 10 % of the best in at least 90 % of the cells"
    claim(
        f"non-negative: choose, which sees the workload, {text}",
        f"{near[..., 0].mean():.0%}",
        near[..., 0].mean() >= 0.9,
    )
    claim(f"the best choice that sees workload and epsilon {text}", f"{by_epsilon:.0%}", by_epsilon >= 0.9)
    claim(
        f"the best choice that also sees the order of magnitude of the number of records {text}",
        f"{by_size:.0%}, {len(groups)} picks fitted to 54 cells",
        by_size >= 0.9,
    )
    good = (at_guess <= NEAR).mean()
    claim(
        f"choose with a guess {text}",
        f"{good:.0%}; within 25 % in {(at_guess <= 1.25).mean():.0%}; without one {(ratio[..., 0] <= 1.25).mean():.0%}",
        good >= 0.9,
    )


if __name__ == "__main__":
    main()
