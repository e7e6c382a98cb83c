"""Kuo et al., PVLDB 11(11), 2018: counts of counts, alone and over a tree of locations, by earth mover's distance.

    python benchmarks/histograms_counts.py [DATA] [--draws 3]

Double-geometric noise, as in the paper, drawn with numpy on public data. The public bound on sizes is 100,000, as in
the paper, where it fits in memory: at 52 states it is 65,536.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence

import numpy as np
from histograms_data import claim, options

from wpinq.histograms import (
    CountOfCounts,
    HierarchicalCounts,
    Tree,
    bottom_up,
    earth_movers_distance,
    tree_least_squares,
)

Histogram = np.ndarray


def geometric(rng: np.random.Generator, epsilon: float, size: int) -> np.ndarray:
    chance = -np.expm1(-epsilon)
    return (rng.geometric(chance, size) - rng.geometric(chance, size)).astype(float)


def noisy(rng: np.random.Generator, strategy: CountOfCounts, truth: Histogram, epsilon: float) -> np.ndarray:
    if strategy.method == "naive":
        return truth[1:] + geometric(rng, epsilon / 2, strategy.largest)
    if strategy.method == "cumulative":
        return np.cumsum(truth)[:-1] + geometric(rng, epsilon, strategy.largest)
    return np.repeat(np.arange(len(truth)), truth) + geometric(rng, epsilon, strategy.groups)


def padded(histogram: Histogram, largest: int) -> Histogram:
    return np.pad(histogram.astype(np.int64), (0, largest + 1 - len(histogram)))


def alone(args, rng: np.random.Generator, data: dict[str, Histogram]) -> None:
    print(f"one node, epsilon 1: mean earth mover's distance over {args.draws} draws")
    print(f"{'data':14}{'groups':>12}" + "".join(f"{m:>16}" for m in ("naive", "H_c", "H_g")))
    worst = np.inf
    for name, histogram in data.items():
        truth = padded(histogram, 100_000)
        errors = []
        for method in ("naive", "cumulative", "unattributed"):
            strategy = CountOfCounts(int(truth.sum()), 100_000, method)
            runs = [
                earth_movers_distance(truth, strategy.infer(noisy(rng, strategy, truth, 1.0)))
                for _ in range(args.draws)
            ]
            errors.append(np.mean(runs))
        worst = min(worst, errors[0] / max(errors[1:]))
        print(f"{name:14}{truth.sum():12,}" + "".join(f"{e:16,.0f}" for e in errors))
    claim(
        "naive is several orders of magnitude worse", f"at least {worst:,.0f} times the worse of the two", worst >= 1000
    )


def consistent(
    args,
    rng: np.random.Generator,
    name: str,
    tree: Tree,
    levels: Sequence[Sequence[Histogram]],
    largest: int,
    methods: Sequence[str],
    epsilons: Sequence[float],
) -> None:
    truth = [[padded(node, largest) for node in level] for level in levels]
    groups = [int(node.sum()) for node in truth[-1]]
    print(f"\n{name}: levels of {tree.sizes} nodes, {sum(groups):,} groups; mean earth mover's distance of a node")
    columns = [f"{m} {w}" for m in methods for w in ("weighted", "plain")] + ["bottom-up H_c", "mean consist."]
    print(f"{'total eps':>9}{'level':>6}" + "".join(f"{c:>22}" for c in columns) + f"{'infer s':>9}")
    beats = dict.fromkeys(methods, True)
    gains = []
    for epsilon in epsilons:
        each = epsilon / tree.levels
        table = np.zeros((tree.levels, len(columns)))
        seconds = 0.0
        for _ in range(args.draws):
            found = []
            for method in methods:
                strategy = HierarchicalCounts(tree, groups, largest, method)
                given = [
                    [noisy(rng, node, true, each) for node, true in zip(nodes, level, strict=True)]
                    for nodes, level in zip(strategy.nodes, truth, strict=True)
                ]
                for weighted in (True, False):
                    start = time.perf_counter()
                    found.append(strategy.infer(given, [each] * tree.levels, weighted))
                    seconds = max(seconds, time.perf_counter() - start)
            leaves = [CountOfCounts(g, largest) for g in groups]
            found.append(
                bottom_up(
                    tree,
                    [leaf.infer(noisy(rng, leaf, true, epsilon)) for leaf, true in zip(leaves, truth[-1], strict=True)],
                )
            )
            cumulative = [
                np.array([np.cumsum(node) + geometric(rng, each, largest + 1) for node in level]) for level in truth
            ]
            mean = [np.diff(level, prepend=0.0) for level in tree_least_squares(tree, cumulative)]
            for column, estimate in enumerate([*found, mean]):
                for level in range(tree.levels):
                    pairs = zip(truth[level], estimate[level], strict=True)
                    table[level, column] += np.mean([earth_movers_distance(a, b) for a, b in pairs]) / args.draws
        for level, row in enumerate(table):
            print(f"{epsilon:9}{level:6}" + "".join(f"{e:22,.1f}" for e in row) + f"{seconds:9.1f}")
        for i, method in enumerate(methods):
            beats[method] &= bool(table[0, 2 * i] < table[0, 2 * i + 1])
        if epsilon == 1.0 and "cumulative" in methods:
            place = 2 * list(methods).index("cumulative")
            gains = [(table[0, -2] / table[0, place]), (table[-1, place] / table[-1, -2])]
    claim(
        "the weighted merge beats the plain one at the top",
        ", ".join(f"{method}: {'at every epsilon' if held else 'not always'}" for method, held in beats.items()),
        all(beats.values()),
    )
    if gains:
        claim(
            "against bottom-up, H_c is 2 to 26 times better at level 0 and worse at the leaves (epsilon 1)",
            f"{gains[0]:.1f} times better at level 0, {gains[1]:.1f} times worse at the leaves",
            gains[0] >= 2 and gains[1] > 1,
        )


def block_groups(path) -> tuple[Tree, list[np.ndarray]]:
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, dtype=np.int64, delimiter="\t")
    states = np.unique(table[:, 0])
    return Tree([[len(states)]]), [np.bincount(table[table[:, 0] == state, 4]) for state in states]


def main() -> None:
    args = options("Counts of counts of Kuo et al. 2018.", draws=3)
    rng = np.random.default_rng(args.seed)
    folder = args.data / "count-of-counts"
    taxi = [np.load(folder / f"taxi_level{i}.npy") for i in (1, 2, 3)]
    states, leaves = block_groups(folder / "us_blockgroups_2010.tsv.gz")
    size = max(map(len, leaves))
    nation = sum(np.pad(leaf, (0, size - len(leaf))) for leaf in leaves)
    alone(
        args, rng, {"taxi": taxi[0], "Hawaiian": np.load(folder / "hawaiian_blocks_2010.npy"), "block groups": nation}
    )
    both = ("cumulative", "unattributed")
    tree = Tree([[2], [18, 10]])
    consistent(args, rng, "taxi", tree, [[taxi[0]], list(taxi[1]), list(taxi[2])], 100_000, both, [0.1, 1.0])
    consistent(args, rng, "block groups by state", states, [[nation], leaves], 65_536, both, [1.0])


if __name__ == "__main__":
    main()
