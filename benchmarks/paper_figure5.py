"""The paper's Figures 4 and 5: TbI at four epsilons, on ca-GrQc and on a random graph with its degrees.

    python benchmarks/paper_figure5.py [DATA] [--graphs ca-GrQc] [--steps 500000] [--seeds 5]
        [--epsilons 0.01 0.1 1 10] [--beta 10000]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. It reads true values of
public graphs: a benchmark, not a release. Noise is simulated, for each seed anew.

Triangles of the synthetic graph after MCMC, mean and standard deviation over the seeds, when the measured graph is the
real one and when it is a random graph of the same degrees. Each epsilon is that of one use; all cost seven. The
paper has plots, no numbers: its claims are compared. At epsilon 0.01 the degrees are fitted, too, to noise of 100.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from paper_data import Edges, claim, measure, options, paper_method, random_counterpart, read

from wpinq.graphs import fit_graph
from wpinq.graphs.synthesis import graph_statistics
from wpinq.mcmc import Settings

EPSILONS = [0.01, 0.1, 1.0, 10.0]


def triangles(edges: Edges, epsilon: float, args: argparse.Namespace) -> tuple[list[float], list[float], list[float]]:
    """For each seed the triangles before and after MCMC, and TbI as released."""
    method = paper_method("tbi")
    before, after, released = [], [], []
    for seed in range(1, args.seeds + 1):
        answers = measure(edges, method, epsilon, seed)
        settings = Settings(steps=args.steps, beta=args.beta, seed=seed)
        graph = fit_graph(answers, method, settings, statistics=None)
        before.append(graph_statistics(graph.seeds[0])["triangles"])
        after.append(graph.statistics()["triangles"])
        released.append(float(answers["tbi"].values[0]))
    return before, after, released


def shown(values: list[float]) -> str:
    return f"{np.mean(values):9,.0f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:7,.0f}"


def reproduce(name: str, args: argparse.Namespace) -> None:
    edges = read(args.data, name)
    measured = {"real": edges, "random": random_counterpart(edges, 1)}
    truths = {kind: graph_statistics(graph)["triangles"] for kind, graph in measured.items()}
    print(f"\n{name}: true triangles {truths['real']:,.0f}, of the random graph {truths['random']:,.0f}")
    print(f"{'epsilon':>8}{'of 7':>7} {'graph':7}{'seed graph':>19}{'after MCMC':>21}{'TbI released':>21}")
    ends: dict[tuple[float, str], list[float]] = {}
    for epsilon, (kind, graph) in itertools.product(args.epsilons, measured.items()):
        before, after, released = triangles(graph, epsilon, args)
        ends[epsilon, kind] = after
        print(
            f"{epsilon:8g}{7 * epsilon:7g} {kind:7}{shown(before):>19}{shown(after):>21}{shown(released):>21}",
            flush=True,
        )
    real = [np.mean(ends[epsilon, "real"]) for epsilon in args.epsilons]
    apart = all(min(ends[epsilon, "real"]) > max(ends[epsilon, "random"]) for epsilon in args.epsilons)
    claim("real and random graph are told apart (Figure 4)", "in every run" if apart else "not in every run", apart)
    if len(real) == 1:
        return
    claim(
        "epsilon hardly changes where MCMC ends (Figure 5): within a tenth of the mean at the largest epsilon",
        ", ".join(f"{mean / real[-1] - 1:+.1%}" for mean in real) + " against the last, in their order",
        all(abs(mean / real[-1] - 1) < 0.1 for mean in real),
    )
    if args.seeds > 1:
        spreads = [float(np.std(ends[epsilon, "real"], ddof=1)) for epsilon in args.epsilons]
        claim(
            "noisier queries vary more",
            "standard deviations " + ", ".join(f"{spread:,.0f}" for spread in spreads) + ", in the order of epsilons",
            spreads == sorted(spreads, reverse=True),
        )


def main() -> None:
    parser = options(__doc__ or "", ["ca-GrQc"], 500_000, 5)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--beta", type=float, default=10_000.0)
    args = parser.parse_args()
    print(f"Figures 4 and 5: {args.seeds} seeds, {args.steps:,} steps, beta {args.beta:,.0f}; ± standard deviation")
    for name in args.graphs:
        reproduce(name, args)


if __name__ == "__main__":
    main()
