"""Mean squared error per range query of every strategy on the 18 DPBench vectors, and what `choose` picks.

    python benchmarks/histograms_dpbench.py [DATA] [--draws 1000] [--guesses 3] [--seed 1]

1000 random ranges of 4096 bins, the same for all. A cell is a vector at an epsilon: 18 x 3 of them. In each, every
strategy is simulated on the vector itself. Unbiased estimates, which `infer` gives unless asked, have errors that by
theory do not depend on the data: `expected_error` stands beside them. Non-negative estimates (`nonnegative="top down"`)
have errors that do: their table says how well choices do that see the workload only, that see more but no data, and
that see a public guess of the histogram (here a second dataset drawn from the same distribution: last year's release,
several of them in turn).

Non-negative: all strategies get a tenth of the draws; those within a factor of 2 of the least error get the rest.
Every verdict is given by each half of the draws too. `choose` with a guess draws for itself: with 20 draws, and with
the 100 that it takes unless told.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from histograms_data import DPBENCH, Array, claim, histogram, parser

from wpinq.histograms import Hierarchical, LinearStrategy, PIdentity, Ranges, choose, simulated_error

EPSILONS = [0.01, 0.1, 1.0]
NEAR = 1.1
CHOOSE_DRAWS = [20, 100]  # few, and its default
BATCH = 50  # draws at a time
WITHIN = "is within 10 % of the best in at least 90 % of the cells"


def label(strategy: LinearStrategy) -> str:
    if isinstance(strategy, Hierarchical):
        return f"tree {strategy.branching}"
    return "optimised" if isinstance(strategy, PIdentity) else type(strategy).__name__


def unbiased_errors(
    rng: np.random.Generator, strategy: LinearStrategy, workload: Ranges, truth: Array, epsilon: float, draws: int
) -> Array:
    """The mean squared error per query of every draw."""
    scale, true, noiseless = float(strategy.sensitivity) / epsilon, workload.answer(truth), strategy.apply(truth)
    found = []
    for start in range(0, draws, BATCH):
        noise = rng.laplace(0, scale, (strategy.size, min(BATCH, draws - start)))
        estimate = strategy.estimate(noiseless[:, None] + noise)
        found.append(((workload.answer(estimate) - true[:, None]) ** 2).mean(axis=0))
    return np.concatenate(found)


def halves(
    rng: np.random.Generator, strategy: LinearStrategy, workload: Ranges, truth: Array, epsilon: float, draws: int
) -> Array:
    """The mean squared error per query of non-negative estimates, twice over half of the draws."""
    seeds = rng.integers(2**31, size=2).tolist()
    found = [simulated_error(strategy, workload, epsilon, truth, "top down", draws // 2, seed) for seed in seeds]
    return np.array(found) / workload.queries


def table(title: str, strategies: Sequence[LinearStrategy], values: Array, top: Array | None = None) -> None:
    """Values of shape (vectors, epsilons, strategies), an epsilon after the other."""
    for j, epsilon in enumerate(EPSILONS):
        print(f"{title}, epsilon {epsilon}: mean squared error per query")
        print(f"  {'':13}" + "".join(f"{label(s):>10}" for s in strategies))
        if top is not None:
            print(f"  {'expected':13}" + "".join(f"{v / epsilon**2:10.3g}" for v in top))
        for i, name in enumerate(DPBENCH):
            print(f"  {name:13}" + "".join(f"{v:10.3g}" for v in values[i, j]))


def unbiased(
    args: argparse.Namespace,
    rng: np.random.Generator,
    strategies: Sequence[LinearStrategy],
    workload: Ranges,
    data: list[Array],
) -> None:
    expected = np.array([s.expected_error(workload, 1) / workload.queries for s in strategies])
    mean = np.zeros((len(data), len(EPSILONS), len(strategies)))
    deviation = np.zeros_like(mean)
    for i, truth in enumerate(data):
        for j, epsilon in enumerate(EPSILONS):
            for k, strategy in enumerate(strategies):
                errors = unbiased_errors(rng, strategy, workload, truth, epsilon, args.draws)
                mean[i, j, k] = errors.mean()
                deviation[i, j, k] = (mean[i, j, k] - expected[k] / epsilon**2) / (errors.std() / np.sqrt(args.draws))
    table(f"unbiased estimates, {args.draws} draws", strategies, mean, expected)
    scaled = mean * np.array(EPSILONS)[None, :, None] ** 2 / expected
    print("  measured over expected, all strategies and epsilons of a vector: mean, least, largest")
    for name, row in zip(DPBENCH, scaled, strict=True):
        print(f"  {name:13}{row.mean():8.3f}{row.min():8.3f}{row.max():8.3f}")
    worst = np.abs(deviation).max()
    claim(
        "expected_error is exact, for every vector",
        f"{mean.size} means over {args.draws} draws, {scaled.min():.2f} to {scaled.max():.2f} of it; "
        f"the largest deviation is {worst:.1f} standard errors",
        bool(worst < 5),
    )
    exact, measured = [], []
    for j, epsilon in enumerate(EPSILONS):
        pick = strategies.index(choose(workload, epsilon, candidates=strategies).best)
        exact += [expected[pick] <= NEAR * expected.min()] * len(data)
        measured += (mean[:, j, pick] <= NEAR * mean[:, j].min(axis=1)).tolist()
    claim(
        f"unbiased: choose {WITHIN}",
        f"{sum(exact)} of {len(exact)} cells by the expected error, {sum(measured)} of {len(measured)} by the measured "
        "one of each",
        min(np.mean(exact), np.mean(measured)) >= 0.9,
    )


def best_share(near: np.ndarray) -> float:
    """The share of cells in which the one strategy that suits most of them is near the best."""
    return float(near.mean(axis=0).max())


def nonnegative(
    args: argparse.Namespace,
    rng: np.random.Generator,
    strategies: Sequence[LinearStrategy],
    workload: Ranges,
    data: list[Array],
) -> None:
    first = max(2, args.draws // 10)
    rest = max(2, args.draws - first)
    split = np.zeros((2, len(data), len(EPSILONS), len(strategies)))  # by halves of the draws
    blind = [strategies.index(choose(workload, e, candidates=strategies).best) for e in EPSILONS]
    picks = np.zeros((len(CHOOSE_DRAWS), len(data), len(EPSILONS), args.guesses), dtype=int)
    many = 0
    for i, truth in enumerate(data):
        for j, epsilon in enumerate(EPSILONS):
            found = np.array([halves(rng, s, workload, truth, epsilon, first) for s in strategies])
            near = np.flatnonzero(found.mean(axis=1) <= 2 * found.mean(axis=1).min())
            many += len(near)
            for k in near:
                more = halves(rng, strategies[k], workload, truth, epsilon, rest)
                found[k] = (first * found[k] + rest * more) / (first + rest)
            split[:, i, j] = found.T
            for g in range(args.guesses):
                guess = rng.poisson(truth)
                for d, draws in enumerate(CHOOSE_DRAWS):
                    ranking = choose(workload, epsilon, None, strategies, "top down", guess, draws)
                    picks[d, i, j, g] = strategies.index(ranking.best)
    table(f"non-negative estimates, {first} draws, {first + rest} near the best", strategies, split.mean(axis=0))
    print(f"  near the best: {many / len(data) / len(EPSILONS):.1f} strategies a cell\n")

    ratio = split.mean(axis=0)
    ratio /= ratio.min(axis=2, keepdims=True)
    at_guess = [np.take_along_axis(ratio, each, axis=2) for each in picks]
    print(
        "non-negative: the error over the least one, of the workload's pick and of the pick with a guess "
        f"({CHOOSE_DRAWS[0]} draws, mean of "
        f"{args.guesses} guesses)"
    )
    print(f"  {'data':14}{'records':>12}" + "".join(f"{f'eps {e}':>10}{'guess':>8}" for e in EPSILONS) + "   best")
    for i, name in enumerate(DPBENCH):
        best = ", ".join(label(strategies[k]) for k in ratio[i].argmin(axis=1))
        pairs = zip(np.diag(ratio[i][:, blind]), at_guess[0][i].mean(axis=1), strict=True)
        print(f"  {name:14}{data[i].sum():12,.0f}" + "".join(f"{a:10.2f}{b:8.2f}" for a, b in pairs) + f"   {best}")

    decades = np.floor(np.log10([truth.sum() for truth in data])).astype(int)
    group_count = len(np.unique(decades)) * len(EPSILONS)

    def shares(errors: Array) -> list[float]:
        """Of the choices: workload alone; best by epsilon; best by epsilon and size; with a guess, twice."""
        near = errors <= NEAR * errors.min(axis=2, keepdims=True)
        by_epsilon = np.mean([best_share(near[:, j]) for j in range(len(EPSILONS))])
        groups = [near[decades == d, j] for d in np.unique(decades) for j in range(len(EPSILONS))]
        by_size = sum(best_share(group) * len(group) for group in groups) / (len(data) * len(EPSILONS))
        alone = np.mean([near[:, j, blind[j]].mean() for j in range(len(EPSILONS))])
        guessed = [np.take_along_axis(near, each, axis=2).mean() for each in picks]
        return [float(v) for v in (alone, by_epsilon, by_size, *guessed)]

    whole, each = shares(split.mean(axis=0)), [shares(half) for half in split]
    choices = [
        "non-negative: choose, which sees the workload",
        "the best choice that sees workload and epsilon",
        "the best choice that also sees the order of magnitude of the number of records",
        *(f"choose with a guess, draws={draws}" for draws in CHOOSE_DRAWS),
    ]
    notes = [
        f"within 25 % in {np.mean([ratio[:, j, blind[j]] <= 1.25 for j in range(len(EPSILONS))]):.0%}",
        f"{len(EPSILONS)} picks fitted to {len(data) * len(EPSILONS)} cells",
        f"{group_count} picks fitted to {len(data) * len(EPSILONS)} cells",
        *(
            f"within 25 % in {(found <= 1.25).mean():.0%}, mean {found.mean():.2f} times the least; by guess "
            f"{', '.join(f'{share:.0%}' for share in (found <= NEAR).mean(axis=(0, 1)))}"
            for found in at_guess
        ),
    ]
    for i, (choice, note) in enumerate(zip(choices, notes, strict=True)):
        print(f"  by halves of the draws {each[0][i]:.1%} and {each[1][i]:.1%}")
        claim(f"{choice}, {WITHIN}", f"{whole[i]:.1%}; {note}", whole[i] >= 0.9)


def main() -> None:
    options = parser("Every strategy on the DPBench vectors.", draws=1000)
    options.add_argument("--guesses", type=int, default=3)
    args = options.parse_args()
    rng = np.random.default_rng(args.seed)
    ends = np.sort(rng.integers(0, 4097, (1000, 2)), axis=1)
    workload = Ranges(4096, ends[:, 0], ends[:, 1])
    start = time.process_time()
    ranking = choose(workload, 1)
    print(f"seed {args.seed}; choose took {time.process_time() - start:.1f} s of CPU time\n{ranking}\n")
    strategies = [choice.strategy for choice in ranking.choices]
    data = [histogram(args.data, name) for name in DPBENCH]
    unbiased(args, rng, strategies, workload, data)
    nonnegative(args, rng, strategies, workload, data)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main()
