"""Common neighbours after the walk: 4-cycles are closed, as many as slices of pairs tell.

A graph with hubs begins from cliques and random edges, and the walk fits its triangles. In many real graphs two nodes
with a common neighbour have further ones, without being neighbours themselves: so fewer nodes are two steps away, and
all are farther apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.estimates import DegreeClasses
from wpinq.runtime.arrays import Floats, Integers, compiled

#: Swaps that are looked at for each end of an edge (one, as long as none is made), the most paths of two edges from the
#: four nodes of one, and scales of the noise by which slices may be farther off than at best before the search ends.
_TRIES, _MOST_PATHS, _PATIENCE = 10, 20_000, 2.0
#: Less than any weight of a pair: what rounding leaves of none.
_TINY = 1e-12


def slices_of_graph(edges: Integers, nodes: int, limits: Sequence[float]) -> Floats:
    """`pair_slices` of a public simple graph over nodes 0, 1, …, by its closed form.

    Examples
    --------
    >>> slices_of_graph(np.array([(0, 1), (1, 2), (2, 3), (0, 3)]), 4, [0, 0.25, 1]).tolist()
    [0.5, 0.5]
    """
    found = np.zeros(len(limits) - 1)
    compiled(_add_slices)(*_neighbours(edges, nodes), np.array(limits, dtype=np.float64), found)
    return found


def close_cycles(edges: Integers, rng: Generator, limits: Sequence[float], slices: Floats, scale: float) -> Integers:
    """The graph with 4-cycles closed, as many as make the slices of pairs likeliest.

    Of a path a–b–c–d the edges {a, x} and {d, y} become {a, d} and {x, y}, where fewer pairs of nodes have a common
    neighbour then. Degrees stay, and so do triangles, and the number of edges between classes of degrees. Such swaps
    are made one by one, and those after the best sum of differences are taken back: a number is fitted, and not the
    noise of each slice.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    rng : Generator
        The random generator.
    limits : sequence of float
        The limits of the slices.
    slices : array of shape (slices,)
        Noisy `pair_slices`.
    scale : float
        The scale of their noise.

    Returns
    -------
    array of int64, shape (edges, 2)

    Examples
    --------
    >>> ring = np.array([(i, (i + 1) % 60) for i in range(60)])
    >>> squares = np.array([(4 * i + j, 4 * i + (j + 1) % 4) for i in range(15) for j in range(4)])
    >>> wanted = slices_of_graph(squares, 60, [0, 0.25, 0.5])
    >>> made = close_cycles(ring, np.random.default_rng(1), [0, 0.25, 0.5], wanted, 1.0)
    >>> slices_of_graph(ring, 60, [0, 0.25, 0.5]).tolist(), slices_of_graph(made, 60, [0, 0.25, 0.5]).tolist()
    ([15.0, 0.0], [7.5, 7.5])
    """
    degrees = np.bincount(edges.ravel())
    starts, near = _neighbours(edges, len(degrees))
    label = DegreeClasses.of(np.maximum(degrees, 1)).label
    off = slices_of_graph(edges, len(degrees), limits) - slices
    compiled(_close)(starts, near, label, np.array(limits, dtype=np.float64), off, _PATIENCE * scale, rng)
    ends = np.stack([np.repeat(np.arange(len(degrees)), degrees), near], axis=1)
    return ends[ends[:, 0] < ends[:, 1]]


def _neighbours(edges: Integers, nodes: int) -> tuple[Integers, Integers]:
    """Where the neighbours of each node start, and the neighbours."""
    one, other = np.concatenate([edges, edges[:, ::-1]]).T
    return np.concatenate([[0], np.cumsum(np.bincount(one, minlength=nodes))]), other[np.argsort(one, kind="stable")]


def _add_slices(starts: Integers, near: Integers, limits: Floats, found: Floats) -> None:
    """Add up the slices of all pairs, by their first node."""
    weight, seen = np.zeros(len(starts) - 1), np.zeros(len(starts) - 1, dtype=np.int64)
    for a in range(len(weight)):
        count = 0
        for b in near[starts[a] : starts[a + 1]]:
            share = 0.5 / (starts[b + 1] - starts[b])
            for c in near[starts[b] : starts[b + 1]]:
                if c > a:
                    seen[count] = c  # written over where it was seen before: that is faster than to ask
                    count += weight[c] == 0
                    weight[c] += share
        for c in seen[:count]:
            for i in range(len(found)):
                found[i] += min(max(weight[c] - limits[i], 0.0), limits[i + 1] - limits[i])
            weight[c] = 0.0


def _close(
    starts: Integers, near: Integers, label: Integers, limits: Floats, off: Floats, patience: float, rng: Generator
) -> None:
    """Swap neighbours in place; `off` is how far slices are from their answers.

    Of the four ends a, x, d, y of a swap, `weight` holds what they share with any other node. It is cleared after each.
    """
    stubs, degree = len(near), np.diff(starts)
    owner, paths = np.repeat(np.arange(len(degree)), degree), np.zeros(len(degree), dtype=np.int64)
    for i in range(stubs):
        paths[owner[i]] += degree[near[i]]
    weight, ends, places = np.zeros((4, len(degree))), np.zeros(4, dtype=np.int64), np.zeros((stubs, 4), dtype=np.int64)
    tried, last, done, kept, least = 0, 0, 0, 0, np.sum(np.abs(off))
    while tried < min(_TRIES * stubs, last + stubs):
        tried += 1
        i = int(rng.random() * stubs)
        b, c = owner[i], near[i]
        a, d = near[starts[b] + int(rng.random() * degree[b])], near[starts[c] + int(rng.random() * degree[c])]
        i, j = starts[a] + int(rng.random() * degree[a]), starts[d] + int(rng.random() * degree[d])
        x, y = near[i], near[j]
        if x == b or y == c or (label[x] != label[d] and label[y] != label[a]):
            continue
        if paths[a] + paths[x] + paths[d] + paths[y] > _MOST_PATHS:
            continue
        if np.any(near[starts[a] : starts[a + 1]] == d) or np.any(near[starts[x] : starts[x + 1]] == y):
            continue
        ends[:] = a, x, d, y
        for k in range(4):
            for m in near[starts[ends[k]] : starts[ends[k] + 1]]:
                for z in near[starts[m] : starts[m + 1]]:
                    weight[k, z] += 0.5 / degree[m]
        moved, fewer = off.copy(), 0
        if weight[0, x] == 0 and weight[2, y] == 0 and weight[0, d] == 0 and weight[1, y] == 0:  # no triangle
            for of, old, new in ((0, 1, 2), (1, 0, 3), (2, 3, 0), (3, 2, 1)):  # an end, and its neighbours that change
                for z in near[starts[ends[of]] : starts[ends[of] + 1]]:
                    if z == ends[old]:
                        continue
                    for own, step in ((old, -0.5), (new, 0.5)):
                        before, after = weight[own, z], weight[own, z] + step / degree[ends[of]]
                        after = after if after > _TINY else 0.0
                        fewer += (before > 0) - (after > 0)
                        for s in range(len(off)):
                            moved[s] += min(max(after - limits[s], 0.0), limits[s + 1] - limits[s])
                            moved[s] -= min(max(before - limits[s], 0.0), limits[s + 1] - limits[s])
                        weight[own, z] = after
                        for other in range(4):
                            if ends[other] == z:
                                weight[other, ends[own]] = after
        for k in range(4):
            weight[:, ends[k]] = 0.0
            for m in near[starts[ends[k]] : starts[ends[k] + 1]]:
                weight[:, m] = 0.0
                for z in near[starts[m] : starts[m + 1]]:
                    weight[k, z] = 0.0
        if fewer <= 0:
            continue
        g = starts[x] + np.argmax(near[starts[x] : starts[x + 1]] == a)
        h = starts[y] + np.argmax(near[starts[y] : starts[y + 1]] == d)
        places[done] = i, g, j, h
        near[i], near[g], near[j], near[h] = d, y, a, x
        paths[a] += degree[d] - degree[x]
        paths[x] += degree[y] - degree[a]
        paths[d] += degree[a] - degree[y]
        paths[y] += degree[x] - degree[d]
        off[:], done, last = moved, done + 1, tried
        if np.sum(np.abs(off)) < least:
            least, kept = np.sum(np.abs(off)), done
        if done == stubs or np.sum(np.abs(off)) > least + patience:
            break
    for swap in range(done - 1, kept - 1, -1):
        i, g, j, h = places[swap]
        near[i], near[g], near[j], near[h] = owner[g], owner[i], owner[h], owner[j]
