"""Two-stage histograms and top-down inference against every strategy, on the 18 DPBench vectors.

    python benchmarks/histograms_two_stage.py [DATA] [--draws 4] [--seed 1]

A cell is a vector at an epsilon: 18 x 3 of them, for each workload: 2000 random ranges over 256, 1024 and 4096 bins,
all prefixes and all points of 1024. Fewer bins are sums of neighbouring ones. Every strategy that `choose` ranks is
simulated without and with `nonnegative="top down"`; "choose" is the one that it ranks first, "choose+" the same top
down, "two stages" `TwoStage` as it is, and "tuned" the same with the share and the penalty that the claims were made
with. Two stages draw their buckets by the coins that a session draws them by.

*Regret* is the error over that of the best: of choose+ and two stages, as the claims have it, and of all that is here.
It is the geometric mean over the 18 vectors, errors being means over the draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from histograms_data import DPBENCH, Array, claim, histogram, parser

from wpinq.histograms import (
    Bucketed,
    Hierarchical,
    Identity,
    LinearStrategy,
    Prefixes,
    Ranges,
    TwoStage,
    Workload,
    choose,
)
from wpinq.histograms.workload import Bins
from wpinq.noise.bucket_draws import draw_buckets

EPSILONS = [0.01, 0.1, 1.0]
COLUMNS = ["choose", "choose+", "best of all +", "two stages", "tuned"]


@dataclass(frozen=True)
class Claimed:
    """What was claimed for a workload: regrets at each epsilon, and of how many vectors two stages win."""

    kind: str
    bins: int
    share: str
    penalty: int
    chosen: tuple[float, float, float]
    two_stage: tuple[float, float, float]
    wins: tuple[int, int, int]
    top_down: tuple[float, float, float] | None


CLAIMS = [
    Claimed("ranges", 256, "0.1", 1, (1.29, 1.22, 1.26), (2.94, 2.57, 2.29), (5, 5, 3), None),
    Claimed("ranges", 1024, "0.2", 1, (1.36, 1.21, 1.02), (2.51, 2.45, 3.09), (5, 4, 3), (1.46, 1.21, 1.22)),
    Claimed("ranges", 4096, "0.25", 2, (1.77, 1.28, 1.15), (3.46, 2.37, 3.22), (6, 3, 2), (1.41, 1.53, 1.20)),
    Claimed("prefixes", 1024, "0.25", 2, (1.31, 1.06, 1.00), (3.75, 3.43, 3.80), (4, 2, 1), (0.99, 1.15, 1.02)),
    Claimed("points", 1024, "0.25", 2, (1.46, 1.12, 1.02), (3.56, 3.53, 3.44), (2, 2, 1), (2.26, 2.01, 1.59)),
]


def workload_of(claimed: Claimed, rng: np.random.Generator) -> Workload:
    if claimed.kind == "prefixes":
        return Prefixes(claimed.bins)
    if claimed.kind == "points":
        return Bins(claimed.bins)
    ends = np.sort(rng.integers(0, claimed.bins + 1, (2000, 2)), axis=1)
    return Ranges(claimed.bins, ends[:, 0], ends[:, 1])


def error(workload: Workload, estimate: Array, true: Array) -> float:
    return float(((workload.answer(estimate) - true) ** 2).mean())


def two_stage_errors(
    rng: np.random.Generator, two: TwoStage, workload: Workload, truth: Array, epsilon: float, draws: int
) -> Array:
    """The errors of some draws of both stages, and how many buckets there were: shape (draws, 2).

    Which tree suits the workload best is found for the buckets of the first draw, and kept for the others.
    """
    first, second = two.epsilons(Fraction(str(epsilon)))
    found, branching = [], 0
    for draw in range(draws):
        starts = draw_buckets(truth.tolist(), float(2 / first), two.penalty / second, two.split, rng.bytes)
        kept = (Hierarchical(len(starts), branching) if branching else Identity(len(starts))) if draw else None
        strategy = Bucketed(two.domain, starts, kept, workload)
        inner = strategy.strategy
        branching = inner.branching if isinstance(inner, Hierarchical) else 0
        noisy = inner.apply(np.add.reduceat(truth, starts)) + strategy.noise(epsilon=second).draw(rng, inner.size)
        found.append((error(workload, strategy.infer(noisy, "top down"), workload.answer(truth)), len(starts)))
    return np.array(found)


def cell(
    rng: np.random.Generator, strategies: Sequence[LinearStrategy], two: Sequence[TwoStage], workload: Workload,
    truth: Array, epsilon: float, draws: int,
) -> tuple[Array, Array, Array, float]:  # fmt: skip
    """Mean errors of every strategy, of the same top down, and of two stages; and how many buckets the first has."""
    true = workload.answer(truth)
    plain, top_down = np.zeros(len(strategies)), np.zeros(len(strategies))
    for i, strategy in enumerate(strategies):
        noiseless, noise = strategy.apply(truth), strategy.noise(epsilon=epsilon)
        for _ in range(draws):
            noisy = noiseless + noise.draw(rng, strategy.size)
            plain[i] += error(workload, strategy.infer(noisy), true) / draws
            top_down[i] += error(workload, strategy.infer(noisy, "top down"), true) / draws
    drawn = np.array([two_stage_errors(rng, one, workload, truth, epsilon, draws) for one in two])
    return plain, top_down, drawn[:, :, 0].mean(axis=1), float(drawn[0, :, 1].mean())


def mean_of(ratios: Array) -> Array:
    """The geometric mean over the vectors."""
    return np.asarray(np.exp(np.log(ratios).mean(axis=0)))


def shown(numbers: Sequence[float] | Array) -> str:
    return " / ".join(f"{number:.2f}" for number in numbers)


def measure(args: argparse.Namespace, claimed: Claimed, data: list[Array]) -> None:
    rng = np.random.default_rng(args.seed)
    start = time.process_time()
    workload = workload_of(claimed, rng)
    strategies = [choice.strategy for choice in choose(workload, 1).choices]  # the order is that of every epsilon
    two = [TwoStage(claimed.bins), TwoStage(claimed.bins, share=claimed.share, penalty=claimed.penalty)]
    chosen = f"{strategies[0]!r} of {len(strategies)} strategies"
    print(f"\n{claimed.kind}, {claimed.bins} bins: choose takes {chosen}; {args.draws} draws")
    print("regret over the best of all, and N x epsilon with the buckets of two stages")
    print(f"  {'':13}{'eps':>6}{'N eps':>12}{'buckets':>9}" + "".join(f"{name:>15}" for name in COLUMNS), flush=True)
    found = np.zeros((len(COLUMNS), len(data), len(EPSILONS)))
    best = np.zeros((len(data), len(EPSILONS)))
    for i, (name, truth) in enumerate(zip(DPBENCH, data, strict=True)):
        for j, epsilon in enumerate(EPSILONS):
            plain, down, staged, buckets = cell(rng, strategies, two, workload, truth, epsilon, args.draws)
            best[i, j] = min(*plain, *down, *staged)
            found[:, i, j] = plain[0], down[0], min(down), *staged
            ratios = "".join(f"{ratio:15.2f}" for ratio in found[:, i, j] / best[i, j])
            print(f"  {name:13}{epsilon:6}{truth.sum() * epsilon:12,.0f}{buckets:9.0f}{ratios}", flush=True)
    columns = dict(zip(COLUMNS, found, strict=True))
    for name, column in columns.items():
        print(f"  {name:13} mean {shown(mean_of(column / best))}, worst {shown((column / best).max(axis=0))}")
    report(claimed, columns, best)
    print(f"  {time.process_time() - start:.0f} s of CPU time")


def report(claimed: Claimed, columns: dict[str, Array], best: Array) -> None:
    """Claims beside what was measured."""
    chosen, tuned = columns["choose+"], columns["tuned"]
    rival = np.minimum(chosen, tuned)
    found = mean_of(chosen / rival), mean_of(tuned / rival)
    wins = (tuned < chosen).sum(axis=0)
    where = f"{claimed.kind} {claimed.bins}, share {claimed.share}, penalty {claimed.penalty}"
    claim(
        f"{where}: regret over the better of two, choose+ {shown(claimed.chosen)}, two stages "
        f"{shown(claimed.two_stage)}, better in {claimed.wins} of 18",
        f"choose+ {shown(found[0])}, two stages {shown(found[1])}, better in {tuple(map(int, wins))}; as shipped "
        f"{shown(mean_of(columns['two stages'] / np.minimum(chosen, columns['two stages'])))}, better in "
        f"{tuple(map(int, (columns['two stages'] < chosen).sum(axis=0)))}",
        bool((np.array(found) <= 1.25 * np.array([claimed.chosen, claimed.two_stage])).all()),
    )
    gain = mean_of(columns["choose"] / chosen)
    if claimed.top_down is not None:
        claim(
            f"{claimed.kind} {claimed.bins}: top down after choose divides the error by {shown(claimed.top_down)}",
            shown(gain),
            bool((gain >= 0.9 * np.array(claimed.top_down)).all()),
        )
    claim(
        f"{claimed.kind} {claimed.bins}: always choose+ has the better mean regret over the best of all",
        f"choose+ {shown(mean_of(chosen / best))}, two stages {shown(mean_of(columns['two stages'] / best))}, tuned "
        f"{shown(mean_of(tuned / best))}",
        bool((mean_of(chosen / best) <= mean_of(columns["two stages"] / best)).all()),
    )


def main() -> None:
    options = parser("Two-stage histograms on the DPBench vectors.", draws=4)
    options.add_argument("--only", type=int, nargs="*", help="which of the workloads, from 0 on")
    args = options.parse_args()
    for number, claimed in enumerate(CLAIMS):
        if args.only is None or number in args.only:
            data = [histogram(args.data, name) for name in DPBENCH]
            measure(args, claimed, [truth.reshape(claimed.bins, -1).sum(axis=1) for truth in data])


if __name__ == "__main__":
    main()
