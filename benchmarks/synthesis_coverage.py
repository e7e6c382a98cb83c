"""How often the intervals of a synthesis hold the statistics of the secret graph, on real graphs and six made kinds.

    python benchmarks/synthesis_coverage.py [DATA] [--epsilon 1] [--trials 200] [--graphs egos ca-GrQc ...]
        [--method tags] [--walks N]

DATA holds `graphs/*.txt.gz` and `pgb/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout.
Graphs are those of the two folders by the names of their files, and made ones: egos, hubs, and some of
`graph_generation.py`.

It reads true values of public graphs and prints how often intervals of 90 % hold them: a benchmark, not a release.
Noise is simulated from numpy, anew for each trial, graph and epsilon. A row is a graph: for each statistic the
percentage of trials whose interval held the true one; `s`, the percentage in which it said that noise swamps the
statistic; and the middle one of the widths, relative to the true value where that is not 0 (absolute for
assortativity). `-` where a graph has no such statistic: the assortativity of one whose degrees are all equal.

Intervals follow from answers, before any walk. `--walks N` also walks in the first N trials of each graph and prints
how often (`g`) the synthetic graph itself was inside its intervals.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import networkx
import numpy as np
import numpy.typing as npt

from wpinq.errors import AnswersError
from wpinq.graphs import fit_graph
from wpinq.graphs.synthesis import find_method, graph_statistics
from wpinq.graphs.synthesis.fit import STATISTICS, graph_structure
from wpinq.graphs.synthesis.uncertainty import CONFIDENCE, Interval
from wpinq.mcmc import Settings
from wpinq.runtime.arrays import numbered

sys.path.insert(0, str(Path(__file__).parent))
from graph_generation import PEERED, graph
from synthesis_budget import simulated, weights

Edges = npt.NDArray[np.int64]

FILED = ["ca-GrQc", "ca-HepTh", "Caltech36", "ca-HepPh", "soc-Epinions1", *PEERED]


def egos() -> Edges:
    """Ten dense groups of 50 to 1,000 of 3,000 people; six of these know everybody in several groups."""
    rng, found = np.random.default_rng(3), list[Edges]()
    sizes, densities = (1000, 700, 500, 350, 250, 180, 130, 90, 70, 50), (5, 6, 8, 10, 15, 20, 25, 30, 40, 50)
    known = rng.choice(3000, 6, replace=False)
    for size, density in zip(sizes, densities, strict=True):
        members = rng.choice(3000, size, replace=False)
        one, other = np.triu_indices(size, 1)
        kept = rng.random(len(one)) < density / 100
        found.append(np.stack([members[one[kept]], members[other[kept]]], axis=1))
        found += [np.stack([np.full(size, hub), members], axis=1) for hub in rng.choice(known, 2, replace=False)]
    return np.concatenate(found)


def hubs() -> Edges:
    """A random graph of 6,000 nodes with a Pareto law of degrees up to 900, most of which are 1."""
    rng = np.random.default_rng(4)
    degrees = np.minimum(rng.pareto(1.0, 6000) + 1, 900).astype(np.int64)
    degrees[0] += degrees.sum() % 2
    return rng.permutation(np.repeat(np.arange(6000), degrees)).reshape(-1, 2)


#: What the default method has intervals for.
COLUMNS = (*STATISTICS, "components")

MADE = {
    "egos": egos,
    "hubs": hubs,
    "tree": lambda: np.array(networkx.random_labeled_tree(2000, seed=1).edges),
    "blocks": None,
    "small-world": None,
    "lfr": None,
}
"""Those without a function are of `graph_generation.py`."""


def edges_of(name: str, data: Path) -> Edges:
    """The edges of a graph, each once, over nodes 0, 1, 2, …."""
    made = MADE.get(name)
    if made is None:
        return graph(name, data)
    edges = made()
    return numbered(np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0))[1]


class Tally:
    """What happened to the intervals of one statistic."""

    def __init__(self) -> None:
        self.held: list[bool] = []
        self.swamped: list[bool] = []
        self.width: list[float] = []
        self.graph: list[bool] = []

    def add(self, interval: Interval, true: float, relative: bool) -> None:
        self.held.append(interval.holds(true))
        self.swamped.append(interval.swamped)
        self.width.append((interval.high - interval.low) / (true if relative and true else 1))

    def __str__(self) -> str:
        if not self.held:
            return f"{'-':>5}{'':16}"
        graph = f" {100 * np.mean(self.graph):3.0f}g" if self.graph else ""
        return (
            f"{100 * np.mean(self.held):5.0f} {100 * np.mean(self.swamped):4.0f}s {np.median(self.width):9.3g} {graph}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=Path(os.environ.get("WPINQ_DATA", here)))
    parser.add_argument("--epsilon", nargs="+", default=["1"])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--graphs", nargs="+", default=[*FILED, *MADE])
    parser.add_argument("--method", default="tags")
    parser.add_argument("--walks", type=int, default=0)
    args = parser.parse_args()
    method = find_method(args.method)
    outputs: dict[str, dict[str, dict[object, object]]] = defaultdict(dict)
    for epsilon in args.epsilon:
        measurements = method.measurements(method.source(), epsilon)
        totals: dict[str, Tally] = defaultdict(Tally)
        lost = 0
        print(f"\n{args.method}, epsilon = {epsilon}, {args.trials} trials a graph, nominal {CONFIDENCE:.0%}")
        print(f"{'':18}" + "".join(f"{name:>22}" for name in COLUMNS))
        for graph_name in args.graphs:
            edges = edges_of(graph_name, args.data)
            true = graph_statistics(edges) | graph_structure(edges)
            for name, measurement in measurements.items():
                if name not in outputs[graph_name]:
                    outputs[graph_name][name] = weights(measurement, edges, method.symmetric)
            tallies: dict[str, Tally] = defaultdict(Tally)
            for trial in range(args.trials):
                rng = np.random.default_rng([zlib.crc32(graph_name.encode()), int(1000 * float(epsilon)), trial])
                answers = simulated(method, measurements, outputs[graph_name], rng)
                try:
                    uncertainty = method.estimate(answers).intervals(np.random.default_rng(trial))
                    made_graph = fit_graph(answers, method, Settings(seed=trial)) if trial < args.walks else None
                except AnswersError:
                    lost += 1
                    continue
                made = made_graph.statistics() if made_graph is not None else {}
                for name, interval in uncertainty.items():
                    if math.isnan(true[name]):
                        continue
                    for tally in (tallies[name], totals[name]):
                        tally.add(interval, true[name], name != "assortativity")
                        if name in made and not math.isnan(made[name]):
                            tally.graph.append(interval.holds(made[name]))
            print(f"{graph_name:18}" + "".join(f"{tallies[name]!s:>22}" for name in COLUMNS), flush=True)
        print(f"{'all':18}" + "".join(f"{totals[name]!s:>22}" for name in COLUMNS))
        print(f"lost in noise, and said so: {lost}", flush=True)


if __name__ == "__main__":
    main()
