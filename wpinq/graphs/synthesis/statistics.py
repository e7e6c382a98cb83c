"""What a public graph is like: the figures that synthetic graphs are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers
from wpinq.graphs.synthesis.degrees import graph_of

STATISTICS = ("nodes", "edges", "largest_degree", "triangles", "assortativity", "average_clustering")
"""What `graph_statistics` gives: what methods measure, or may."""


def graph_statistics(edges: Any) -> dict[str, float]:
    """The number of nodes, edges and triangles, the largest degree, assortativity and average clustering.

    Assortativity is the correlation of the degrees of the two ends of an edge, nan where all degrees are equal.
    Average clustering is the mean over nodes of the share of pairs of neighbours that are neighbours, 0 for nodes of
    degree 1.

    Parameters
    ----------
    edges : array-like of shape (edges, 2)
        The undirected edges of a PUBLIC simple graph, each once. Nodes are what has an edge.

    Returns
    -------
    dict
        `nodes`, `edges`, `largest_degree`, `triangles`, `assortativity`, `average_clustering`.

    Notes
    -----
    Privacy cost: not applicable. The figures are exact: they are for synthetic graphs, never for protected ones.

    Examples
    --------
    >>> graph_statistics([(0, 1), (1, 2), (2, 0), (2, 3)])["triangles"]
    1
    """
    pairs = np.asarray(edges).reshape(-1, 2)
    nodes, dense = _numbered(pairs)
    graph = graph_of(nodes, dense)
    degrees = np.array(graph.degree(), dtype=np.float64)
    local = np.array(graph.transitivity_local_undirected(mode="zero"), dtype=np.float64)
    triangles = round(float(local @ (degrees * (degrees - 1) / 2)) / 3)
    return {
        "nodes": nodes,
        "edges": len(pairs),
        "largest_degree": int(degrees.max(initial=0)),
        "triangles": triangles,
        "assortativity": float(graph.assortativity_degree(directed=False)),
        "average_clustering": float(local.mean()) if len(local) else 0.0,
    }


def _numbered(pairs: NDArray[Any]) -> tuple[int, Integers]:
    """How many labels there are, and the pairs with each replaced by its place among them."""
    if pairs.dtype.kind in "iu" and pairs.size and pairs.min() >= 0 and pairs.max() < 4 * pairs.size:
        there = np.zeros(int(pairs.max()) + 1, dtype=bool)  # a table, where the labels are dense: no sorting
        there[pairs] = True
        return int(there.sum()), (np.cumsum(there) - 1)[pairs]
    labels, dense = np.unique(pairs, return_inverse=True)
    return len(labels), dense.reshape(-1, 2)
