"""Kuo et al., PVLDB 11(11), 2018: counts of counts, alone and over a tree of locations, by earth mover's distance.

    python benchmarks/histograms_counts.py [DATA] [--draws 3] [--picture kuo_levels.png]

Double-geometric noise, as in the paper, drawn with numpy on public data. The public bound on sizes is 100,000, as in
the paper, where it fits in memory: at 52 states it is 65,536, at 3,221 counties 10,000. The paper's Hawaiian table has
three levels (nation, states, counties); the published file has the blocks of the nation without their places.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence

import numpy as np
from histograms_data import claim, parser

from wpinq.histograms import (
    CountOfCounts,
    HierarchicalCounts,
    Tree,
    consistent_sizes,
    earth_movers_distance,
    mean_consistency,
)

Histogram = np.ndarray
PAPER_ALONE = {"taxi": (208_977_518, 2_819.8, 11_227.6), "Hawaiian": (4_027_891_692, 254.0, 516.2)}
PAPER_TAXI = {"bottom-up": (20_731.0, 10_405.5, 772.8), "H_c weighted": (10_547.0, 5_431.5, 1_601.8)}


def geometric(rng: np.random.Generator, epsilon: float, size: int | tuple[int, int]) -> np.ndarray:
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


def counted(sizes: np.ndarray, largest: int) -> Histogram:
    return np.bincount(np.rint(sizes).astype(np.int64), minlength=largest + 1)


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
        if name in PAPER_ALONE:
            print(f"{'  the paper':26}" + "".join(f"{e:16,.0f}" for e in PAPER_ALONE[name]))
    claim(
        "naive is several orders of magnitude worse", f"at least {worst:,.0f} times the worse of the two", worst >= 1000
    )
    print("  Hawaiian by level: not measured; the data have one level, blocks without their states and counties\n")


def mean_distance(rng: np.random.Generator, tree: Tree, truth: Sequence[Histogram], epsilon: float) -> np.ndarray:
    """Mean consistency of noisy cumulative counts: the mean earth mover's distance of a node of each level.

    `truth` has the cumulative counts of each level, a row a node.
    """
    distance = np.zeros(tree.levels)
    for start in range(0, truth[0].shape[1], 1000):  # sizes at a time: they do not see one another
        true = [level[:, start : start + 1000] for level in truth]
        given = [level + geometric(rng, epsilon, level.shape) for level in true]
        pairs = zip(mean_consistency(tree, given), true, strict=True)
        distance += [np.abs(fit - level).sum(axis=1).mean() for fit, level in pairs]
    return distance


def consistent(
    args,
    rng: np.random.Generator,
    name: str,
    tree: Tree,
    levels: Sequence[Sequence[Histogram]],
    largest: int,
    plans: dict[str, Sequence[str]],
    epsilons: Sequence[float],
    leaf_method: str = "cumulative",
) -> np.ndarray:
    """The mean errors, by epsilon, level and column.

    Columns: each plan's nodes by themselves ("own"), merged by variance and merged plainly; the baselines.
    """
    tables = np.zeros((len(epsilons), tree.levels, 3 * len(plans) + 2))
    truth = [[padded(node, largest) for node in level] for level in levels]
    groups = [int(node.sum()) for node in truth[-1]]
    cumulative = [np.cumsum(np.array(level), axis=1) for level in truth]
    print(
        f"\n{name}: levels of {tree.sizes} nodes, {sum(groups):,} groups; mean earth mover's distance of a node over "
        f"{args.draws} draws"
    )
    columns = [f"{m} {w}" for m in plans for w in ("own", "weighted", "plain")] + ["bottom-up", "mean consist."]
    print(f"{'total eps':>9}{'level':>6}" + "".join(f"{c:>18}" for c in columns) + f"{'infer s':>9}")
    merges: list[str] = []
    beats, gains = True, []
    for epsilon, table in zip(epsilons, tables, strict=True):
        each = epsilon / tree.levels
        seconds = 0.0

        def measure(column: int, estimate: Sequence[Sequence[Histogram]], table: np.ndarray = table) -> None:
            for level in range(tree.levels):
                pairs = zip(truth[level], estimate[level], strict=True)
                table[level, column] += np.mean([earth_movers_distance(a, b) for a, b in pairs]) / args.draws

        for _ in range(args.draws):  # one estimate at a time: each holds every node's histogram
            for place, methods in enumerate(plans.values()):
                strategy = HierarchicalCounts(tree, groups, largest, methods)
                given = [
                    [noisy(rng, node, true, each) for node, true in zip(nodes, level, strict=True)]
                    for nodes, level in zip(strategy.nodes, truth, strict=True)
                ]
                start = time.process_time()
                merged = strategy.infer(given, [each] * tree.levels)
                seconds = max(seconds, time.process_time() - start)
                measure(3 * place + 1, merged)
                del merged
                sizes = [
                    [node.sizes(values, each)[0] for node, values in zip(nodes, level, strict=True)]
                    for nodes, level in zip(strategy.nodes, given, strict=True)
                ]
                for column, found in ((0, sizes), (2, consistent_sizes(tree, sizes))):
                    measure(3 * place + column, [[counted(node, largest) for node in level] for level in found])
            leaves = [CountOfCounts(g, largest, leaf_method) for g in groups]
            answers = [
                leaf.infer(noisy(rng, leaf, true, epsilon)) for leaf, true in zip(leaves, truth[-1], strict=True)
            ]
            measure(len(columns) - 2, tree.totals(np.stack(answers)))
            table[:, -1] += mean_distance(rng, tree, cumulative, each) / args.draws
        for level, row in enumerate(table):
            print(f"{epsilon:9}{level:6}" + "".join(f"{e:18,.1f}" for e in row) + f"{seconds:9.1f}")
        for i, plan in enumerate(plans):
            own, weighted, plain = table[0, 3 * i : 3 * i + 3]
            beats &= bool(weighted < plain)
            merges.append(f"{plan} at {epsilon}: {plain / weighted:.2f} times (its own estimate {own / weighted:.2f})")
        below = table[-1, -2] * tree.sizes[-1]
        gains.append((epsilon, table[0, -2] / table[0, 1], table[-1, 1] / table[-1, -2], below / table[0, -2]))
    claim("the weighted merge beats the plain one at the top", "; ".join(merges), beats)
    claim(
        f"against bottom-up, {next(iter(plans))} is 2 to 26 times better at level 0 and worse at the leaves",
        "; ".join(
            f"at {e}: {top:.1f} times better at level 0, {leaf:.1f} times worse at the leaves (bottom-up's leaf errors "
            f"add up to {cancel:.1f} times its error at the top: so much cancels)"
            for e, top, leaf, cancel in gains
        ),
        all(top >= 2 and leaf > 1 for _, top, leaf, _ in gains),
    )
    return tables


def draw_levels(path: str, epsilons: Sequence[float], tables: np.ndarray) -> None:
    """The figure of the 3-level results: the error of a node at each level over the epsilon of a level."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 2.6), layout="constrained")
    for level, axes in enumerate(figure.subplots(1, 3)):
        axes.set(xscale="log", yscale="log", xlabel="epsilon of a level", title=f"taxi, level {level}")
        for column, name in ((1, "H_c x H_c x H_c"), (4, "H_g x H_g x H_g")):
            axes.plot(np.array(epsilons) / 3, tables[:, level, column], marker=".", label=name)
    figure.axes[0].set_ylabel("earth mover's distance")
    figure.axes[2].legend(fontsize=8)
    figure.savefig(path, dpi=80)


def explain(args, rng: np.random.Generator, tree: Tree, levels: Sequence[Sequence[Histogram]], epsilon: float) -> None:
    """Why the weighted merge of H_g does not win: is it the variances, or the weighing? And what does rounding cost?"""
    each = epsilon / tree.levels
    root = np.repeat(np.arange(len(levels[0][0])), levels[0][0])
    errors, spread = np.zeros(4), np.zeros((2, tree.levels))
    for _ in range(args.draws):
        sizes, formula, true = [], [], []
        for level in levels:
            found = []
            for node in level:
                strategy = CountOfCounts(int(node.sum()), 100_000, "unattributed")
                fit, variance = strategy.sizes(noisy(rng, strategy, node, each), each)
                window = np.ones(501) / 501
                squared = np.convolve((fit - np.repeat(np.arange(len(node)), node)) ** 2, window, "same")
                found.append((fit, variance, squared + 1e-3))
            for held, values in zip((sizes, formula, true), zip(*found, strict=True), strict=True):
                held.append(list(values))
        for row, of in zip(spread, (formula, true), strict=True):
            row += [np.mean(np.concatenate(level)) / args.draws for level in of]
        whole = [[np.rint(node) for node in level] for level in sizes]
        for i, (given, weights) in enumerate(((sizes, formula), (sizes, true), (sizes, None), (whole, formula))):
            merged = consistent_sizes(tree, given, weights)[0][0]
            errors[i] += np.abs(merged - root).sum() / args.draws
    print(f"taxi, H_g, epsilon {epsilon}, {args.draws} draws: variances by the pools' formula, and true squared errors")
    for number, (of_formula, of_truth) in enumerate(spread.T):
        print(f"  level {number}: {of_formula:.2f} and {of_truth:.2f}")
    print(
        f"  error at the top, merged by the formula {errors[0]:,.0f}, by the true squared errors {errors[1]:,.0f}, "
        f"plainly {errors[2]:,.0f}:\n  the best weights gain {1 - errors[1] / errors[2]:.0%} over plain ones, for leaf "
        f"errors cancel in the sum\n  merged by the formula, sizes rounded first: {errors[3]:,.0f}, "
        f"{errors[3] / errors[0] - 1:+.0%}\n"
    )


def block_groups(path) -> tuple[list[list[Histogram]], list[int]]:
    """Nation, states and counties, and the number of counties of each state."""
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, dtype=np.int64, delimiter="\t")
    place = table[:, 0] * 1000 + table[:, 1]
    size = int(table[:, 4].max()) + 1
    counties = np.unique(place)
    leaves = [np.bincount(table[place == county, 4], minlength=size) for county in counties]
    states, counts = np.unique(counties // 1000, return_counts=True)
    middle = [np.bincount(table[table[:, 0] == state, 4], minlength=size) for state in states]
    return [[np.bincount(table[:, 4], minlength=size)], middle, leaves], counts.tolist()


def main() -> None:
    options = parser("Counts of counts of Kuo et al. 2018.", draws=3)
    options.add_argument("--picture", help="where to draw the error over epsilon at three levels")
    args = options.parse_args()
    rng = np.random.default_rng(args.seed)
    folder = args.data / "count-of-counts"
    taxi = [np.load(folder / f"taxi_level{i}.npy") for i in (1, 2, 3)]
    census, counts = block_groups(folder / "us_blockgroups_2010.tsv.gz")
    hawaiian = np.load(folder / "hawaiian_blocks_2010.npy")
    alone(args, rng, {"taxi": taxi[0], "Hawaiian": hawaiian, "block groups": census[0][0]})
    both = {"H_c": "cumulative", "H_g": "unattributed"}
    tree = Tree([[2], [18, 10]])
    epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
    tables = consistent(args, rng, "taxi", tree, [[taxi[0]], list(taxi[1]), list(taxi[2])], 100_000, both, epsilons)
    if args.picture:
        draw_levels(args.picture, epsilons, tables)
    for column, values in PAPER_TAXI.items():
        print(f"  the paper at 1.0, {column}: " + ", ".join(f"{v:,.1f} at level {i}" for i, v in enumerate(values)))
    explain(args, rng, tree, [[taxi[0]], list(taxi[1]), list(taxi[2])], 1.0)
    states = Tree([[len(counts)]])
    consistent(args, rng, "block groups by state", states, census[:2], 65_536, both, [1.0])
    # 3,221 counties: a bound of 10,000, as which the few larger groups count, keeps them in memory
    bounded = [[np.append(node[:10_000], node[10_000:].sum()) for node in level] for level in census]
    mixed = {"H_c": "cumulative", "H_c,c,g": ["cumulative", "cumulative", "unattributed"], "H_g": "unattributed"}
    counties = Tree([[len(counts)], counts])
    consistent(args, rng, "block groups by county", counties, bounded, 10_000, mixed, [1.0])


if __name__ == "__main__":
    main()
