"""Random graphs of nodes that have a place: on a ring, or in the plane.

Nodes are joined to near ones, nearest pairs first, until all have their degrees. What is local by itself is large as a
whole, as a road network is: no graph of cliques and random edges has such long paths.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.estimates import DegreeClasses
from wpinq.graphs.synthesis.method import SeedGraph
from wpinq.graphs.synthesis.random_graphs import TRIES, rising, swap_away
from wpinq.runtime.arrays import Floats, Integers, compiled

#: Of each node: how many near ones it may be joined to, in proportion to the largest degree, and at most.
_NEAR_PER_DEGREE, _NEAR, _MOST_NEAR = 5, 12, 150
#: The walk keeps the numbers of edges that are longer than these quantiles of the near ones.
_REACHES = (0.985, 0.998)
#: For each pair of free stubs that one is carried to.
_CARRIES = 2000
#: Towns: of how many nodes, how much degrees differ within one, in deviations of what towns differ by, and of how many
#: nodes the heights are drawn at most: of larger graphs of some, as all would take much memory.
_TOWN, _WITHIN, _MOST_CENTRES = 200, 2.0, 20_000
#: How many times as often as at random two degrees meet, or more rarely, as far as it counts.
_MOST_MIXED = 20.0


def geometric_graph(
    classes: DegreeClasses,
    clustering: Floats,
    mixing: Floats,
    dimensions: int,
    shortcuts: float,
    crowded: bool,
    rng: Generator,
) -> SeedGraph | None:
    """A simple graph with these degrees whose edges are short, but for a share of shortcuts.

    Pairs are joined from the nearest on, and from farther away where such degrees meet often: first those that join two
    parts of the graph, then all. A pair that closes triangles is left out once the graph has all of them. Nodes that
    end with a free stub are brought together: an edge between near nodes gives way for one end, and so on, from
    neighbour to neighbour. With shortcuts no pair is left out, only the nearest are joined, and all stubs left over are
    shortcuts.

    Parameters
    ----------
    classes : DegreeClasses
        Of the nodes, degrees rising; some simple graph has these degrees (`graphical`).
    clustering : array of shape (largest degree + 1,)
        The share of closed wedges at nodes of a degree.
    mixing : array of shape (classes, classes)
        The stubs of each class that lead to each other.
    dimensions : int
        1 for a ring, 2 for the plane.
    shortcuts : float
        The share of edges between random nodes, at least.
    crowded : bool
        Whether places are random, and nodes in crowded ones have higher degrees. Else they are spread evenly, edges
        of nodes of high degree are longer, and in the plane nodes of like degree gather, as in towns.
    rng : Generator
        The random generator.

    Returns
    -------
    SeedGraph or None
        With the places, and the lengths that few edges exceed. None where degrees are too tight.

    Examples
    --------
    >>> classes = DegreeClasses.of(np.repeat([2, 3], [60, 40]))
    >>> mixing = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    >>> drawn = geometric_graph(classes, np.zeros(4), mixing, 2, 0.0, False, np.random.default_rng(1))
    >>> bool((np.bincount(drawn.edges.ravel()) == classes.degrees).all())
    True
    """
    from scipy.spatial import KDTree

    degrees, count = classes.degrees, len(classes.degrees)
    places = _places(count, dimensions, crowded, rng)
    usual = min(round(float(degrees.mean())), count - 1)
    width = usual if shortcuts else min(_NEAR_PER_DEGREE * int(degrees.max()) + _NEAR, _MOST_NEAR, count - 1)
    if crowded:
        density = KDTree(places).query(places, usual + 1)[0][:, -1]
        places = places[np.argsort(-density, kind="stable")]
    elif dimensions > 1:
        step = 1 + count // _MOST_CENTRES
        centres = places[::step]
        _, town = KDTree(centres).query(places, np.arange(1, min(max(_TOWN // step, 1), len(centres)) + 1))
        heights = rng.standard_normal(len(centres))[town].sum(axis=1) / town.shape[1] ** 0.5
        places = places[np.argsort(heights + _WITHIN * rng.standard_normal(count), kind="stable")]
    distance, near = (each[:, 1:] for each in KDTree(places).query(places, width + 1))
    one, other = rising(np.stack([np.repeat(np.arange(count), width), near.ravel()], axis=1))
    order, first = np.unique(one * count + other, return_index=True)
    pull = 1.0 if crowded else (degrees[one[first]] * degrees[other[first]]) ** (0.5 / dimensions)
    often = np.clip(mixing * classes.stubs.sum() / np.outer(classes.stubs, classes.stubs), 1 / _MOST_MIXED, _MOST_MIXED)
    pull = pull * often[classes.label[one[first]], classes.label[other[first]]] ** (1 / dimensions)
    pairs = np.stack(np.divmod(order[np.argsort(distance.ravel()[first] / pull)], count), axis=1)
    triangles = np.inf if shortcuts else clustering[degrees] @ (degrees * (degrees - 1)) / 6
    neighbours, held = np.full((count, int(degrees.max())), -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    compiled(_join)(pairs, rng.binomial(degrees, 1 - shortcuts), triangles, neighbours, held)
    if not shortcuts:
        apart = np.repeat(np.arange(count), degrees - held)
        compiled(_carry)(places, np.ascontiguousarray(near[:, : width // 3 + 1]), apart, neighbours, held, rng)
    ends = np.repeat(np.arange(count), held)
    local = np.stack([ends, neighbours[np.arange(neighbours.shape[1]) < held[:, None]]], axis=1)
    local = local[local[:, 0] < local[:, 1]]
    stubs = rng.permutation(np.repeat(np.arange(count), degrees - held)).reshape(-1, 2)
    edges = np.concatenate([local, np.stack(rising(stubs), axis=1)])
    if not len(local) or not compiled(swap_away)(edges, count, len(local), TRIES, rng):
        return None
    lengths = np.linalg.norm(places[local[:, 0]] - places[local[:, 1]], axis=1)
    return SeedGraph(edges, places, np.quantile(lengths, _REACHES))


def _places(count: int, dimensions: int, crowded: bool, rng: Generator) -> Floats:
    """Random places in the unit cube, or evenly spread ones.

    Those of one dimension are on a ring of length 1. Evenly spread are the multiples of powers of a number g,
    `g^(dimensions + 1) = g + 1`, modulo 1.
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = np.outer(rng.permutation(count), root ** -np.arange(1.0, dimensions + 1))
    places = rng.random((count, dimensions)) if crowded else (rng.random(dimensions) + steps) % 1
    if dimensions > 1:
        return np.asarray(places)
    turn = 2 * np.pi * places[:, 0]
    return np.stack([np.cos(turn), np.sin(turn)], axis=1) / (2 * np.pi)


def _join(pairs: Integers, room: Integers, triangles: float, neighbours: Integers, held: Integers) -> None:
    """Join pairs, in their order, where both nodes have room: parts of the graph first.

    A part is a tree of `above`, and `left` counts its free stubs: two parts are not joined to one without any.
    """
    above, left = np.arange(len(room)), room.copy()
    for parts in (True, False):
        for u, v in pairs:
            if held[u] >= room[u] or held[v] >= room[v]:
                continue
            if parts:
                r, s = u, v
                while above[r] != r:
                    r = above[r]
                while above[s] != s:
                    s = above[s]
                above[u], above[v] = r, s
                if r == s or left[r] + left[s] <= 2:
                    continue
                above[r] = s
                left[s] += left[r] - 2
            else:
                closes, there = 0, False
                for x in neighbours[u, : held[u]]:
                    closes += np.sum(neighbours[v, : held[v]] == x)
                    there = there or x == v
                if there or closes > triangles:
                    continue
                triangles -= closes
            neighbours[u, held[u]], neighbours[v, held[v]] = v, u
            held[u] += 1
            held[v] += 1


def _carry(
    places: Floats, near: Integers, stubs: Integers, neighbours: Integers, held: Integers, rng: Generator
) -> None:
    """Carry free stubs to one another; those that do not meet stay free.

    The stub of a hooks onto a near node u, whose edge to w gives way. So w has the free stub, and w is the neighbour of
    u that is nearest to where the stub is to go, give or take.
    """
    while len(stubs) > 1:
        a, best = stubs[0], np.argmin(np.sum((places[stubs[1:]] - places[stubs[0]]) ** 2, axis=1))
        b, stubs = stubs[1 + best], np.delete(stubs[1:], best)
        for _ in range(_CARRIES):
            row = neighbours[a, : held[a]]
            meets = a != b and np.any(near[a] == b) and not np.any(row == b)
            u = b if meets else near[a, int(rng.random() * near.shape[1])]
            if u == a or np.any(row == u) or (held[u] == 0 and not meets):
                continue
            neighbours[a, held[a]] = u
            held[a] += 1
            if meets:
                neighbours[b, held[b]] = a
                held[b] += 1
                break
            row = neighbours[u, : held[u]]
            at = np.argmin(np.sum((places[row] - places[b]) ** 2, axis=1) * (0.5 + rng.random(len(row))))
            w, row[at] = row[at], a
            held[w] -= 1
            neighbours[w, np.flatnonzero(neighbours[w, : held[w] + 1] == u)[0]] = neighbours[w, held[w]]
            a = w
