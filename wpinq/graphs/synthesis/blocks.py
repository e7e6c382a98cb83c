"""Random graphs of groups: most edges of a node stay in its group, as in communities.

Cliques and random edges alone make communities as small as cliques. In a group of a few hundred, nodes have common
neighbours without being neighbours themselves, which the slices of pairs tell.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.estimates import DegreeClasses
from wpinq.graphs.synthesis.method import SeedGraph
from wpinq.graphs.synthesis.random_graphs import SHUFFLES, SPREADS, Wanted, draw_cliques
from wpinq.runtime.arrays import Floats, Integers

#: Graphs that are drawn for one, and the share of a group that one node may have for neighbours.
_ROUNDS, _MOST_NEIGHBOURS = 3, 0.7


def block_graph(
    classes: DegreeClasses, clustering: Floats, mixing: Floats, size: int, outside: float, rng: Generator
) -> SeedGraph:
    """A simple graph with these degrees, of groups of random nodes with cliques inside them.

    Edges that leave their group are drawn towards the mixing. A dense group closes triangles by itself: so the graph is
    drawn some times, as by `clique_graph`, and the clustering of each class begins with what it lacks by chance.

    Parameters
    ----------
    classes, clustering, mixing
        As for `clique_graph`.
    size : int
        The number of nodes of a group.
    outside : float
        The share of edges that leave their group.
    rng : Generator
        The random generator.

    Returns
    -------
    SeedGraph
        With groups for places: the walk keeps the number of edges between them.

    Examples
    --------
    >>> classes = DegreeClasses.of(np.repeat([2, 3], [60, 40]))
    >>> mixing = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    >>> drawn = block_graph(classes, np.zeros(4), mixing, 20, 0.2, np.random.default_rng(1))
    >>> bool((np.bincount(drawn.edges.ravel()) == classes.degrees).all())
    True
    """
    degrees, count = classes.degrees, len(classes.degrees)
    group = rng.permutation(count) // size
    inside = np.minimum(rng.binomial(degrees, 1 - outside), int(_MOST_NEIGHBOURS * size))
    order = np.lexsort((inside, group))
    order = order[inside[order] > 0]
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)

    def first_edges(wanted: Floats, shuffle: float) -> Integers:
        drawn = [each[draw_cliques(rng, inside[each], wanted[each], shuffle)] for each in members]
        cliques = np.concatenate(drawn)
        stubs = rng.permutation(np.repeat(np.arange(count), inside - np.bincount(cliques.ravel(), minlength=count)))
        stubs = stubs[np.argsort(group[stubs], kind="stable")]
        pairs = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
        return np.concatenate([cliques, pairs[group[pairs[:, 0]] == group[pairs[:, 1]]]])

    wedges = degrees * (degrees - 1) / 2
    by_chance = 2 * wedges.sum() ** 2 / degrees.sum() * (1 - outside) ** 3 / size
    lack = max(1 - by_chance / max(float(clustering[degrees] @ wedges), 1.0), 0.05)
    wanted = Wanted(classes, clustering, mixing, rng, first_edges)
    drawn = wanted.drawn(SPREADS[1], SHUFFLES[0], np.full(len(classes.stubs), lack), _ROUNDS)
    return SeedGraph(drawn.edges, group[:, None].astype(np.float64), np.array([0.5]))
