"""How often the intervals of a synthesis hold the statistics of the secret graph, on ten kinds of small graphs.

    python benchmarks/synthesis_coverage.py [--epsilon 1 4] [--trials 40] [--kinds tree star ...] [--method tags]
        [--walks N]

It reads true values of public, generated graphs and prints how often intervals of 90 % hold them: a benchmark, not a
release. Noise is simulated from numpy, anew for each trial, kind and epsilon. A row is a kind of graph: for each
statistic the percentage of trials whose interval held the true one; `s`, the percentage in which it said that noise
swamps the statistic; and the middle one of the widths, relative to the true value where that is not 0 (absolute for
assortativity). `-` where a graph has no such statistic: the assortativity of one whose degrees are all equal.

Intervals follow from answers, before any walk. `--walks N` also walks in the first N trials of each kind and prints how
often (`g`) the synthetic graph itself was inside its intervals.
"""

from __future__ import annotations

import argparse
import math
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
from wpinq.graphs.synthesis.fit import STATISTICS
from wpinq.graphs.synthesis.uncertainty import CONFIDENCE, Interval
from wpinq.mcmc import Settings

sys.path.insert(0, str(Path(__file__).parent))
from synthesis_budget import simulated, weights

Edges = npt.NDArray[np.int64]

KINDS = {
    "tree": lambda: networkx.random_labeled_tree(800, seed=1),
    "star": lambda: networkx.star_graph(400),
    "ring": lambda: networkx.cycle_graph(1000),
    "clique": lambda: networkx.complete_graph(50),
    "grid": lambda: networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(30, 30)),
    "random": lambda: networkx.gnm_random_graph(600, 1800, seed=1),
    "power-law-cluster": lambda: networkx.powerlaw_cluster_graph(500, 4, 0.6, seed=1),
    "preferential": lambda: networkx.barabasi_albert_graph(500, 4, seed=1),
    "small-world": lambda: networkx.watts_strogatz_graph(400, 10, 0.1, seed=1),
    "communities": lambda: networkx.planted_partition_graph(2, 60, 0.45, 0.03, seed=1),
}
"""At most 2,000 edges each, the same every time."""


def edges_of(kind: str) -> Edges:
    """The edges of a kind of graph."""
    return np.unique(np.sort(np.array(KINDS[kind]().edges, dtype=np.int64), axis=1), axis=0)


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
    parser.add_argument("--epsilon", nargs="+", default=["1", "4"])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--method", default="tags")
    parser.add_argument("--walks", type=int, default=0)
    args = parser.parse_args()
    method = find_method(args.method)
    outputs: dict[str, dict[str, dict[object, object]]] = defaultdict(dict)
    for epsilon in args.epsilon:
        measurements = method.measurements(method.source(), epsilon)
        totals: dict[str, Tally] = defaultdict(Tally)
        lost = 0
        print(f"\n{args.method}, epsilon = {epsilon}, {args.trials} trials a kind, nominal {CONFIDENCE:.0%}")
        print(f"{'':18}" + "".join(f"{name:>22}" for name in STATISTICS))
        for kind in args.kinds:
            edges = edges_of(kind)
            true = graph_statistics(edges)
            for name, measurement in measurements.items():
                if name not in outputs[kind]:
                    outputs[kind][name] = weights(measurement, edges, method.symmetric)
            tallies: dict[str, Tally] = defaultdict(Tally)
            for trial in range(args.trials):
                rng = np.random.default_rng([zlib.crc32(kind.encode()), int(1000 * float(epsilon)), trial])
                answers = simulated(method, measurements, outputs[kind], rng)
                try:
                    uncertainty = method.estimate(answers).intervals(np.random.default_rng(trial))
                    graph = fit_graph(answers, method, Settings(seed=trial)) if trial < args.walks else None
                except AnswersError:
                    lost += 1
                    continue
                made = graph.statistics() if graph is not None else {}
                for name, interval in uncertainty.items():
                    if math.isnan(true[name]):
                        continue
                    for tally in (tallies[name], totals[name]):
                        tally.add(interval, true[name], name != "assortativity")
                        if name in made and not math.isnan(made[name]):
                            tally.graph.append(interval.holds(made[name]))
            print(f"{kind:18}" + "".join(f"{tallies[name]!s:>22}" for name in STATISTICS), flush=True)
        print(f"{'all':18}" + "".join(f"{totals[name]!s:>22}" for name in STATISTICS))
        print(f"lost in noise, and said so: {lost}", flush=True)


if __name__ == "__main__":
    main()
