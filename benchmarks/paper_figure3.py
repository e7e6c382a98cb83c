"""The paper's Figure 3: triangles by degree (TbD), without buckets and in buckets of 20, on ca-GrQc and a random graph.

    python benchmarks/paper_figure3.py [DATA] [--graphs ca-GrQc] [--steps 500000] [--seeds 3]
        [--buckets 1 20] [--epsilon 0.1] [--beta 10000]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. It reads true values of
public graphs: a benchmark, not a release. Noise is simulated, for each seed anew.

Triangles and assortativity along MCMC (mean over the seeds) when the measured graph is the real one and when it is a
random graph of the same degrees. The walk can tell them apart when every run on the real graph ends above every run on
the random one. The paper has plots, no numbers: its claims are compared. `signal` is the true weight of the query, in
all and of its heaviest record; noise has a size of 1/epsilon on every one of the keys.
"""

from __future__ import annotations

import argparse

import numpy as np
from paper_data import EPSILON, Edges, bills, claim, measure, options, paper_method, random_counterpart, read

import wpinq as wp
from wpinq.graphs import fit_graph, triangles_by_degree
from wpinq.graphs.synthesis import graph_statistics
from wpinq.mcmc import Settings

Trace = dict[str, list[float]]
EDGES = wp.source("edges", src=int, dst=int)


def runs(edges: Edges, bucket: int, args: argparse.Namespace) -> tuple[list[Trace], str, int]:
    """The traces of all seeds, begun with the seed graph; the bills; the number of keys."""
    method = paper_method("tbd", bucket)
    traces: list[Trace] = []
    for seed in range(1, args.seeds + 1):
        answers = measure(edges, method, args.epsilon, seed)
        settings = Settings(steps=args.steps, beta=args.beta, seed=seed, chunk=max(1, -(-args.steps // 4)))
        graph = fit_graph(answers, method, settings)
        begun, trace = graph_statistics(graph.seeds[0]), graph.samples.traces[0]
        along = {name: [begun[name], *trace.statistics[name]] for name in ("triangles", "assortativity")}
        traces.append({**along, "score": trace.score, "noise": [graph.samples.noise]})
    return traces, bills(answers), len(answers["tbd"])


def signal(edges: Edges, bucket: int) -> str:
    data = {"edges": [tuple(edge) for edge in np.concatenate([edges, edges[:, ::-1]]).tolist()]}
    weights = wp.evaluate(triangles_by_degree(EDGES, bucket), data)
    total = sum(weights.values())
    heaviest = max(weights.values(), default=0.0)
    return f"signal {total:.1f}, heaviest record {heaviest:.1f} ({heaviest / total if total else 0:.0%})"


def reproduce(name: str, bucket: int, args: argparse.Namespace) -> None:
    edges = read(args.data, name)
    measured = {"real": edges, "random": random_counterpart(edges, 1)}
    print(f"\n{name}, buckets of {bucket}")
    ends: dict[str, list[float]] = {}
    for kind, graph in measured.items():
        truth = graph_statistics(graph)
        traces, bill, keys = runs(graph, bucket, args)
        ends[kind] = [trace["triangles"][-1] for trace in traces]
        if kind == "real":
            print(f"  {bill}; {keys:,} keys")
        print(f"  {kind}: {truth['triangles']:,.0f} triangles, assortativity {truth['assortativity']:+.2f};", end=" ")
        print(signal(graph, bucket))
        for quantity, form in (("triangles", "9,.0f"), ("assortativity", "+9.2f")):
            line = np.mean([trace[quantity] for trace in traces], axis=0)
            print(f"    {quantity:14} seed graph, then each quarter: " + "".join(f"{value:{form}}" for value in line))
        spread = np.std(ends[kind], ddof=1) if args.seeds > 1 else 0.0
        score, noise = (
            np.mean([trace["score"][-1] for trace in traces]),
            np.mean([trace["noise"][0] for trace in traces]),
        )
        print(
            f"    standard deviation of the last triangles {spread:,.0f}; score {score:,.0f}, noise alone {noise:,.0f}"
        )
    apart = min(ends["real"]) > max(ends["random"])
    told = "told apart" if apart else "not told apart"
    means = f"{np.mean(ends['real']):,.0f} against {np.mean(ends['random']):,.0f} triangles: {told}"
    if bucket == 1:
        claim("without buckets the two graphs cannot be told apart", means, not apart)
    else:
        claim(f"buckets of {bucket} tell the two graphs apart", means, apart)
        near = float(abs(np.mean(ends["real"]) / graph_statistics(edges)["triangles"] - 1))
        claim("but MCMC does not come to the real number of triangles", f"{near:.0%} from it", near > 0.1)


def main() -> None:
    parser = options(__doc__ or "", ["ca-GrQc"], 500_000, 3)
    parser.add_argument("--buckets", nargs="+", type=int, default=[1, 20])
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--beta", type=float, default=10_000.0)
    args = parser.parse_args()
    print(f"Figure 3: mean of {args.seeds} seeds, {args.steps:,} steps, beta {args.beta:,.0f}")
    for name in args.graphs:
        for bucket in args.buckets:
            reproduce(name, bucket, args)


if __name__ == "__main__":
    main()
