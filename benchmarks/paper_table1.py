"""The paper's Table 1: what the graphs are like, and random graphs with their degrees, the paper's figures beside ours.

    python benchmarks/paper_table1.py [DATA] [--graphs ca-GrQc ...] [--seeds 5]

DATA holds `graphs/*.txt.gz`; by default $WPINQ_DATA, else ../shared/data next to the checkout. True values of public
graphs, no privacy. Ours are simple graphs: edges counted in both directions, self-loops left out. Random counterparts,
median of the seeds:

- simple:        random among the simple graphs of these degrees (igraph's edge switching); what the library seeds with
- configuration: ends paired at random, loops dropped, repeated edges merged; loses a little of the large degrees

The paper does not say how its random graphs were made.
"""

from __future__ import annotations

import numpy as np
from paper_data import PAPER, Edges, configuration_graph, degrees, options, random_counterpart, read

from wpinq.graphs.synthesis import graph_statistics

HEAD = f"{'graph':28}{'nodes':>9}{'edges':>11}{'d_max':>7}{'triangles':>11}{'assort.':>9}"


def row(name: str, nodes: float, edges: float, largest: float, triangles: float, assortativity: float) -> str:
    return f"{name:28}{nodes:9,.0f}{edges:11,.0f}{largest:7,.0f}{triangles:11,.0f}{assortativity:9.2f}"


def measured(name: str, graphs: list[Edges]) -> str:
    found = [graph_statistics(graph) for graph in graphs]
    keys = ("nodes", "edges", "largest_degree", "triangles", "assortativity")
    nodes, edges, largest, triangles, assortativity = (float(np.median([f[key] for f in found])) for key in keys)
    return row(name, nodes, 2 * edges, largest, triangles, assortativity)


def main() -> None:
    args = options(__doc__ or "", list(PAPER), 0, 5).parse_args()
    print(HEAD)
    for name in args.graphs:
        edges, paper = read(args.data, name), PAPER.get(name)
        if paper is not None:
            print(row(f"{paper.name}, paper", *paper.table_1))
        print(measured(f"{name}, ours", [edges]))
        if paper is not None:
            print(row(f"Random({paper.name}), paper", *paper.random))
        seeds = range(1, args.seeds + 1)
        print(measured("  simple", [random_counterpart(edges, seed) for seed in seeds]))
        rngs = [np.random.default_rng(seed) for seed in seeds]
        print(measured("  configuration", [configuration_graph(degrees(edges), rng) for rng in rngs]), flush=True)


if __name__ == "__main__":
    main()
