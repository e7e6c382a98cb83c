"""Statistics of a public graph: those that a synthesis fits, and those of its structure."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.graphs.synthesis.random_graphs import graph_of, import_igraph
from wpinq.runtime.arrays import Integers

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


# --- structure: components, mean path, modularity, largest core -------------------------------------------------------

STRUCTURE = ("components", "mean_path", "modularity", "largest_core")
"""What `graph_structure` gives."""

ALL_STATISTICS = STATISTICS + STRUCTURE
"""All that is said of a synthetic graph, by name."""

_VISITS = 2_000_000
"""How many edges the searches for the mean path follow, about, and at least `_STARTS` searches."""
_STARTS = 32


def graph_structure(edges: Integers) -> dict[str, float]:
    """The number of components, the mean path, the modularity, and the order of the largest core.

    The mean path is over the pairs of nodes that a path joins; where a graph has more than about 2,000,000 edges times
    nodes, over the pairs of evenly chosen nodes, 32 or more, with all others. Modularity is that of the communities
    that the method of Louvain finds (Blondel et al., J. Stat. Mech. 2008), in an order that is the same every time.
    The largest core is the largest k for which some subgraph has all degrees ≥ k.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        The undirected edges of a PUBLIC simple graph, each once, over nodes 0, 1, 2, …. Nodes are what has an edge.

    Returns
    -------
    dict
        By the names in `STRUCTURE`; a mean path or modularity that does not exist is nan.

    Notes
    -----
    Privacy cost: not applicable. They are for synthetic graphs, never for protected ones.

    Examples
    --------
    >>> graph_structure(np.array([(0, 1), (1, 2), (2, 0), (3, 4)]))
    {'components': 2, 'mean_path': 1.0, 'modularity': 0.375, 'largest_core': 2}
    """
    labels, dense = np.unique(edges, return_inverse=True)
    nodes = len(labels)
    if not nodes:
        return {"components": 0, "mean_path": np.nan, "modularity": np.nan, "largest_core": 0}
    graph, igraph = graph_of(nodes, dense.reshape(-1, 2)), import_igraph()
    searches = min(nodes, max(_STARTS, _VISITS // len(edges)))
    starts = np.linspace(0, nodes - 1, searches).astype(np.int64).tolist()
    lengths = np.array(graph.distances(source=starts), dtype=np.float64)
    igraph.set_random_number_generator(random.Random(0))
    try:
        modularity = float(graph.community_multilevel().modularity)
    finally:
        igraph.set_random_number_generator(random)
    return {
        "components": len(graph.connected_components()),
        "mean_path": float(lengths[(lengths > 0) & np.isfinite(lengths)].mean()),
        "modularity": modularity,
        "largest_core": int(max(graph.coreness())),
    }
