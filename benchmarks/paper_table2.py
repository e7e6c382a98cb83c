"""The paper's Table 2: triangles after MCMC towards triangles by intersect (TbI), the paper's figures beside ours.

    python benchmarks/paper_table2.py [DATA] [--graphs ca-GrQc ...] [--steps 5000000] [--seeds 5]
        [--settings simple "simple closing" ...] [--epsilon 0.1] [--beta 10000]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. It reads true values of
public graphs and prints errors against them: a benchmark, not a release. Noise is simulated, for each seed anew.

Degree sequence, CCDF and node count at epsilon each and TbI, 4 uses, at epsilon; 5,000,000 swaps at a beta of 10,000,
as in the paper. The settings differ in the graph that the walk begins from and in its proposals:

- simple:                a random simple graph of the fitted degrees; swaps drawn uniformly
- configuration:         ends paired at random, repeats merged: that has the triangles of the paper's seeds
- ... closing:           the same, 90 % of the proposals chosen to close a triangle, and accounted for in the acceptance

`edges` counts both directions; merging repeats loses some. `off` is how far TbI ends from its answer, as a share of it.
TbI does not tell the number of triangles: it weighs them by their degrees, so graphs with the very same TbI have more
triangles or fewer, and where a walk ends depends on its route.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from paper_data import EPSILON, PAPER, Edges, bills, claim, measure, options, paper_method, read

from wpinq.graphs import fit_graph
from wpinq.graphs.synthesis import graph_statistics
from wpinq.mcmc import Settings
from wpinq.mcmc.run import Update

CLOSING = 0.9
SETTINGS = {
    "simple": (False, 0.0),
    "simple closing": (False, CLOSING),
    "configuration": (True, 0.0),
    "configuration closing": (True, CLOSING),
}
GRAPHS = ["ca-GrQc", "ca-HepPh", "ca-HepTh", "Caltech36"]


def reproduce(name: str, edges: Edges, args: argparse.Namespace) -> dict[str, bool | None]:
    """Run all settings on one graph from the same answers; whether each comes as near as the paper."""
    truth, paper = graph_statistics(edges)["triangles"], PAPER.get(name)
    answers = [measure(edges, paper_method("tbi"), args.epsilon, seed) for seed in range(1, args.seeds + 1)]
    print(f"\n{name}: {bills(answers[0])}; {truth:,.0f} triangles")
    print(f"  {'':24}{'seed':>10}{'after':>11}{'error':>8}{'least':>8}{'most':>8}{'off':>8}{'edges':>9}{'steps/s':>12}")
    if paper is not None and paper.after is not None:
        print(f"  {'paper':24}{paper.seed:10,}{paper.after:11,}{paper.after / paper.triangles - 1:+8.1%}")
    near: dict[str, bool | None] = {}
    for setting in args.settings:
        configurations, closing = SETTINGS[setting]
        method = paper_method("tbi", triad_share=closing, configurations=configurations)
        rows = []
        for seed, known in enumerate(answers, start=1):
            settings = Settings(steps=args.steps, beta=args.beta, seed=seed)
            rates: list[float] = []

            def told(update: Update, rates: list[float] = rates) -> None:
                rates.append(update.rate)

            graph = fit_graph(known, method, settings, statistics=None, on_update=told)
            (wanted,) = known["tbi"].values
            off = graph.samples.traces[0].score[-1] / args.epsilon / abs(wanted)
            begun = graph_statistics(graph.seeds[0])["triangles"]
            after = graph.statistics()["triangles"]
            rows.append((begun, after, off, float(np.median(rates)), 2 * len(graph.edges)))
        begun, after, off, rate, ends = np.median(np.array(rows), axis=0)
        errors = [row[1] / truth - 1 for row in rows]
        print(
            f"  {setting:24}{begun:10,.0f}{after:11,.0f}{after / truth - 1:+8.1%}{min(errors):+8.1%}{max(errors):+8.1%}"
            f"{off:8.1%}{ends:9,.0f}{rate:12,.0f}",
            flush=True,
        )
        near[setting] = None
        if paper is not None and paper.after is not None:
            near[setting] = abs(after - truth) <= abs(paper.after - paper.triangles)
    return near


def main() -> None:
    parser = options(__doc__ or "", GRAPHS, 5_000_000, 5)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--beta", type=float, default=10_000.0)
    args = parser.parse_args()
    print(f"Table 2: median of {args.seeds} seeds, {args.steps:,} steps, epsilon {args.epsilon}, beta {args.beta:,.0f}")
    start = time.process_time()
    near = {name: reproduce(name, read(args.data, name), args) for name in args.graphs}
    print(f"\n{time.process_time() - start:.0f} s of processor time in all\n")
    for setting in args.settings:
        verdicts = {name: found[setting] for name, found in near.items() if found[setting] is not None}
        if verdicts:
            far = [name for name, holds in verdicts.items() if not holds]
            measured = "on all" if not far else f"not on {', '.join(far)}"
            claim(f"{setting}: as near the truth as the paper, or nearer", measured, not far)


if __name__ == "__main__":
    main()
