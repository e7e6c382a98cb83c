"""Figure 1 of the paper: the worst graph for counting triangles, and a harmless one that pays for it.

    python benchmarks/paper_figure1.py [--nodes 10 100 1000] [--picture paper_figure1.png]

Left, two nodes with the same n − 2 neighbours: the edge between them makes n − 2 triangles. Right, a ring in which each
node is joined to the next two: degree 4, n triangles. A count needs noise of scale (n − 2)/ε on both. The weights of
`triangles_by_intersect` move by a bounded amount, so the scale is 8/ε for an undirected edge, whatever n.
"""

from __future__ import annotations

import argparse

import numpy as np
from histograms_data import claim

import wpinq as wp
from wpinq.graphs import symmetrize, triangles_by_intersect
from wpinq.graphs.synthesis.fit import graph_statistics

Edges = list[tuple[int, int]]


def worst(nodes: int) -> Edges:
    return [(hub, other) for hub in (0, 1) for other in range(2, nodes)]


def ring(nodes: int) -> Edges:
    return [(node, (node + step) % nodes) for node in range(nodes) for step in (1, 2)]


def weight(edges: Edges) -> float:
    """The weighted triangles of an undirected graph."""
    query = triangles_by_intersect(symmetrize(wp.source("edges", src=int, dst=int)))
    return wp.evaluate(query, {"edges": edges}).get("triangle!", 0.0)


def draw(path: str, nodes: int = 12) -> None:
    from matplotlib.figure import Figure

    left, right = (figure := Figure(figsize=(6, 2.6), layout="constrained")).subplots(1, 2)
    angles = 2 * np.pi * np.arange(nodes) / nodes
    circle = np.column_stack((np.cos(angles), np.sin(angles)))
    column = np.column_stack((np.zeros(nodes - 2), np.linspace(-1, 1, nodes - 2)))
    places = np.concatenate(([[-1.0, 0.0], [1.0, 0.0]], column))
    for axes, edges, at, title in (
        (left, worst(nodes), places, "no triangle, n − 2 with the dashed edge"),
        (right, ring(nodes), circle, "degree 4, n triangles"),
    ):
        for ends in edges:
            axes.plot(*at[list(ends)].T, color="0.6", linewidth=0.8, zorder=1)
        axes.scatter(*at.T, s=18, color="black", zorder=2)
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    left.plot(*places[:2].T, color="black", linestyle="--", zorder=1)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description="Figure 1 of the paper.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--picture", help="where to draw the two graphs")
    args = parser.parse_args()
    print("triangles without and with one more edge, and the noise of scale at epsilon 1 over the answer, right graph")
    heads = ("left: count", "weight", "right: count", "weight")
    print(f"{'nodes':>7}" + "".join(f"{head:>20}" for head in heads) + f"{'count noise':>13}{'weighted':>10}")
    moves, errors = [], []
    for nodes in args.nodes:
        cells = []
        for edges, more in ((worst(nodes), (0, 1)), (ring(nodes), (0, nodes // 2))):
            both = edges, [*edges, more]
            counts, weights = [graph_statistics(each)["triangles"] for each in both], [weight(each) for each in both]
            cells += [f"{counts[0]:,.0f} to {counts[1]:,.0f}", f"{weights[0]:.2f} to {weights[1]:.2f}"]
            moves.append(abs(weights[1] - weights[0]))
        errors.append(((nodes - 2) / counts[0], 8 / weights[0]))
        print(f"{nodes:7}" + "".join(f"{cell:>20}" for cell in cells) + f"{errors[-1][0]:13.1%}{errors[-1][1]:10.1%}")
    claim(
        "one edge moves the weights by a constant; on the right noise is constant too",
        f"at most {max(moves):.2f}; at {args.nodes[-1]} nodes noise is {errors[-1][0]:.0%} of the count, "
        f"{errors[-1][1]:.1%} of the weight",
        max(moves) < 8 and errors[-1][1] < errors[-1][0],
    )
    if args.picture:
        draw(args.picture)


if __name__ == "__main__":
    main()
