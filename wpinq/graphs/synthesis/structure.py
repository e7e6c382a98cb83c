"""Figures of a public graph that no method measures: components, mean path, modularity, largest core."""

from __future__ import annotations

import random

import numpy as np

from wpinq.arrays import Integers
from wpinq.graphs.synthesis.degrees import graph_of, import_igraph
from wpinq.graphs.synthesis.statistics import STATISTICS

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
