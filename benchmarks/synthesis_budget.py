"""Ways to spend a budget on a synthetic graph, compared: the default method, and the paper's queries.

    python benchmarks/synthesis_budget.py [DATA] [--graphs ca-GrQc ...] [--epsilon 0.5 1 2] [--methods tags tbi ...]
        [--seeds 5] [--steps N] [--each] [--estimates [--quiet NAME ...]]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. It reads true values of
public graphs and prints errors against them: a benchmark, not a release. Noise is simulated from numpy, anew for each
seed. `--graphs` also takes the names of generated graphs, which no constant of the library was chosen on: small-world,
geometric, forest-fire, power-law-cluster, communities.

One undirected edge is protected, and epsilon is the whole cost. For each cell the median over seeds, and the largest in
parentheses, of: the relative error of triangles, the error of assortativity, the relative error of average clustering,
all absolute, and the Kolmogorov-Smirnov distance of degrees; then of the relative error of the largest degree the mean
with its sign and, in parentheses, the mean without; then the seconds a graph took from answers to the end, and
steps a second of the walk. `start` is the graph that the walk of the default method begins from. `--each` prints the
errors of each seed with their signs.

`--estimates` tells what of it is noise and what the walk: it prints the errors of the estimates of the default method
before any graph is drawn, and walks nowhere. `--quiet NAME ...` then takes the named measurements at a hundred times
their epsilon.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import wpinq as wp
from wpinq.api.query import Query
from wpinq.engines.delta.compiled import CannotCompile, Goal, SwapWalk
from wpinq.graphs import fit_graph
from wpinq.graphs.synthesis import find_method, graph_statistics
from wpinq.graphs.synthesis.method import Method
from wpinq.mcmc import Settings
from wpinq.mcmc.run import Update
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.ladder import draw_count
from wpinq.plan.properties import plan_properties
from wpinq.sinks.graph_counts import LadderSink
from wpinq.sinks.graph_ladders import simple_graph

GRAPHS = ["ca-GrQc", "ca-HepTh", "Caltech36", "ca-HepPh", "soc-Epinions1"]
METHODS = ["tags", "tbi", "tbi+jdd", "tbd"]
STATISTICS = ("triangles", "assortativity", "average_clustering")
GENERATED = ["small-world", "geometric", "forest-fire", "power-law-cluster", "communities"]
Edges = npt.NDArray[np.int64]
Degrees = npt.NDArray[np.int64]
Weights = dict[Any, Any]


def read(name: str, data: Path) -> Edges:
    if name in GENERATED:
        pairs = np.array(generated(name), dtype=np.int64)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    else:
        with gzip.open(data / "graphs" / f"{name}.txt.gz", "rt") as lines:
            pairs = np.loadtxt(lines, dtype=np.int64)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def generated(name: str) -> list[tuple[int, int]]:
    """The edges of a graph of 5,000 or 10,000 nodes, the same every time."""
    import igraph
    import networkx

    igraph.set_random_number_generator(random.Random(1))
    if name == "small-world":
        return list(igraph.Graph.Watts_Strogatz(1, 10_000, 5, 0.1).get_edgelist())
    if name == "geometric":
        return list(igraph.Graph.GRG(10_000, 0.02).get_edgelist())
    if name == "forest-fire":
        return list(igraph.Graph.Forest_Fire(10_000, 0.35, 0.3).get_edgelist())
    if name == "power-law-cluster":
        return list(networkx.powerlaw_cluster_graph(10_000, 5, 0.5, seed=1).edges)
    made = networkx.LFR_benchmark_graph(
        5_000, 2.5, 1.5, 0.2, average_degree=12, max_degree=150, min_community=20, seed=1
    )
    return list(made.edges)


def weights(measurement: Measurement, edges: Edges, symmetric: bool) -> Weights:
    """The output of a query on a public graph; of a number of the graph its ladder, under its key."""
    if isinstance(measurement.sink, LadderSink):
        return {measurement.sink.key: measurement.sink.ladder(simple_graph([(a, b) for a, b in edges.tolist()]))}
    query = Query(measurement.plan)
    try:
        walk = SwapWalk([Goal(measurement.plan, 1.0, {})], "edges", edges, symmetric=symmetric)
        return dict(walk.outputs[0])
    except CannotCompile:
        pairs = [(a, b) for a, b in edges.tolist()]
        records = pairs + [(b, a) for a, b in pairs] if symmetric else pairs
        return dict(wp.evaluate(query, {"edges": records}))


def simulated(
    method: Method, measurements: dict[str, Measurement], truth: dict[str, Weights], rng: np.random.Generator
) -> dict[str, Answers]:
    """Answers with simulated noise, over the keys that the method asks for."""
    answers: dict[str, Answers] = {}
    for name, measurement in measurements.items():
        if isinstance(measurement.sink, LadderSink):
            (scale,) = measurement.sink.scales(measurement.plan, measurement.epsilon)
            drawn = draw_count(truth[name][measurement.sink.key], scale, rng.bytes)
            answers[name] = Answers(measurement, scale, np.array([float(drawn)]), simulated=True)
            continue
        scale = float((1 + plan_properties(measurement.plan).slack()) / measurement.epsilon)
        values: Weights = {}

        def asked(keys: Any, name: str = name, scale: float = scale, values: Weights = values) -> list[Any]:
            new = [key for key in keys if key not in values]
            values.update({key: truth[name].get(key, 0.0) + rng.laplace(scale=scale) for key in new})
            return new

        known = measurement
        if measurement.domain is not None:
            asked(measurement.domain)
            answers[name] = Answers(known, scale, np.array(list(values.values())), simulated=True)
            continue
        while asked(method.keys(name, answers)):
            known = Query(measurement.plan).noisy_count(measurement.epsilon, list(values))
            answers[name] = Answers(known, scale, np.array(list(values.values())), simulated=True)
    return answers


def degrees_of(edges: Edges) -> Degrees:
    return np.unique(edges, return_counts=True)[1]


def distance(*degrees: Degrees) -> float:
    """The Kolmogorov-Smirnov distance of the degrees of two graphs."""
    top = max(int(found.max()) for found in degrees) + 1
    below = [np.bincount(found, minlength=top).cumsum() / len(found) for found in degrees]
    return float(np.abs(below[0] - below[1]).max())


def errors(edges: Edges, graph: Edges, truth: dict[str, float]) -> list[float]:
    found = graph_statistics(edges)
    return [
        found["triangles"] / truth["triangles"] - 1,
        found["assortativity"] - truth["assortativity"],
        found["average_clustering"] / truth["average_clustering"] - 1,
        distance(degrees_of(edges), degrees_of(graph)),
        found["largest_degree"] / truth["largest_degree"] - 1,
    ]


def errors_of_estimates(
    method: Method, answers: dict[str, Answers], graph: Edges, truth: dict[str, float]
) -> list[float]:
    """As `errors`, of degrees, clustering and mixing as they are estimated: of what the start and the walk aim at."""
    begin: Any = method.estimate(answers).seed
    wanted = begin.args[0]
    classes, clustering, mixing = wanted.classes, wanted.clustering, wanted.mixing
    degrees = classes.degrees.astype(np.float64)
    shares, means = clustering[classes.degrees], classes.stub_mean(np.arange(degrees.max() + 1.0))
    stubs, middle = degrees.sum(), (degrees**2).sum() / degrees.sum()
    assortativity = (means @ mixing @ means / stubs - middle**2) / ((degrees**3).sum() / stubs - middle**2)
    return [
        float(shares @ (degrees * (degrees - 1) / 2)) / 3 / truth["triangles"] - 1,
        float(assortativity) - truth["assortativity"],
        float(shares.mean()) / truth["average_clustering"] - 1,
        distance(classes.degrees, degrees_of(graph)),
        float(degrees.max()) / truth["largest_degree"] - 1,
    ]


def shown(rows: list[list[float]]) -> str:
    *others, largest = np.transpose(rows)
    cells = [f"{np.median(np.abs(found)):7.3f} ({np.abs(found).max():.3f})" for found in others]
    return " ".join([*cells, f"{largest.mean():+7.3f} ({np.abs(largest).mean():.3f})"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("WPINQ_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(default), help="holds graphs/*.txt.gz")
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, choices=GRAPHS + GENERATED)
    parser.add_argument("--epsilon", nargs="+", default=["0.5", "1", "2"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--steps", type=int, default=None, help="of the walk; as the library does unless told")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--estimates", action="store_true", help="errors before any graph is drawn, of tags alone")
    parser.add_argument("--quiet", nargs="+", default=[], help="with --estimates: measurements with next to no noise")
    args = parser.parse_args()
    if args.quiet and not args.estimates:
        parser.error("--quiet goes with --estimates")
    if args.estimates:
        args.methods = ["tags"]
    for name in args.graphs:
        graph = read(name, args.data)
        facts = graph_statistics(graph)
        steps = args.steps or Settings().settled(len(graph)).total_steps
        print(f"\n{name}: {len(graph):,} edges, {steps:,} steps")
        columns = ("triangles", "assortativity", "clustering", "degrees", "largest")
        print(f"{'method':>10} {'eps':>4} ", *(f"{column:>15}" for column in columns))
        for chosen in args.methods:
            method = find_method(chosen)
            outputs: dict[str, Weights] = {}
            for epsilon in args.epsilon:
                measurements = method.measurements(method.source(), epsilon)
                for query, measurement in measurements.items():
                    if query not in outputs:
                        outputs[query] = weights(measurement, graph, method.symmetric)
                if unknown := set(args.quiet) - set(measurements):
                    parser.error(f"there is no measurement {', '.join(sorted(unknown))}: {', '.join(measurements)}")
                for query in args.quiet:
                    measurements[query] = replace(measurements[query], epsilon=100 * measurements[query].epsilon)
                starts: list[list[float]] = []
                ends: list[list[float]] = []
                seconds: list[float] = []
                rates: list[float] = []
                for seed in range(args.first, args.first + args.seeds):
                    answers = simulated(method, measurements, outputs, np.random.default_rng(seed))
                    if args.estimates:
                        ends.append(errors_of_estimates(method, answers, graph, facts))
                        if args.each:
                            print(f"{chosen:>10} {epsilon:>4} {seed:>4}", *(f"{x:+.3f}" for x in ends[-1]), flush=True)
                        continue
                    began = time.perf_counter()

                    def on_update(update: Update, rates: list[float] = rates) -> None:
                        rates.append(update.rate)

                    settings = Settings(steps=steps, seed=seed)
                    made = fit_graph(answers, method, settings, statistics=None, on_update=on_update)
                    seconds.append(time.perf_counter() - began)
                    starts.append(errors(made.seeds[0], graph, facts))
                    ends.append(errors(made.edges, graph, facts))
                    if args.each:
                        print(f"{chosen:>10} {epsilon:>4} {seed:>4}", *(f"{x:+.3f}" for x in starts[-1] + ends[-1]))
                if args.estimates:
                    print(f"{'estimates':>10} {epsilon:>4} {shown(ends)}", flush=True)
                    continue
                print(f"{'start':>10} {epsilon:>4} {shown(starts)}")
                print(
                    f"{chosen:>10} {epsilon:>4} {shown(ends)} {np.median(seconds):6.0f} s {np.median(rates):10,.0f}/s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
