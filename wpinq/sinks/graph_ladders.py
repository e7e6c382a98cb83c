"""The ladder of a graph: triangles, stars, 4-cliques or the largest degree, and the front of the ladder is found.

A front needs the pairs of vertices that no other pair surpasses. Pairs without common neighbours enter by their sum of
degrees alone, which is counted; the others are looked for from the vertex of highest degree on, and no further than to
where what was found surpasses all that can come. Vertices without an edge are in every graph, as many as one likes.
"""

from __future__ import annotations

from math import comb

import numpy as np

from wpinq.arrays import Integers
from wpinq.ladders.rungs import CliqueLadder, DegreeLadder, FrontEntry, StarLadder, TriangleLadder
from wpinq.ladders.simple_graph import SimpleGraph

_AT_ONCE = 2**22
"""Wedges that are held at once."""


def triangle_ladder(graph: SimpleGraph) -> TriangleLadder:
    """The triangles of a graph."""
    front: list[FrontEntry] = [(0, _largest_sum(graph))]
    for vertex in range(len(graph)):
        degree, highest = int(graph.degrees[vertex]), int(graph.degrees[0])
        if any(a >= degree and s >= highest + degree for a, s in front):
            break  # from here on a ≤ degree and s ≤ highest + degree
        others, common = _common_neighbours(graph, vertex)
        adjacent = np.isin(others, graph.row(vertex), assume_unique=True)
        sums = degree + graph.degrees[others] - 2 * adjacent
        front = unsurpassed([*front, *zip(common.tolist(), sums.tolist(), strict=True)])
    return TriangleLadder(_triangles(graph), tuple(front))


def clique_ladder(graph: SimpleGraph) -> CliqueLadder:
    """The cliques of 4 of a graph."""
    upward = graph.upward()
    front: list[FrontEntry] = [(0, 0)]
    for vertex in range(len(graph)):
        degree = int(graph.degrees[vertex])
        if _surpassed((comb(degree, 2), degree), front):
            break  # from here on a ≤ degree and e ≤ C(a, 2)
        others, common = _common_neighbours(graph, vertex)
        for place in np.argsort(-common, kind="stable"):
            a = int(common[place])
            if not _surpassed((comb(a, 2), a), front):
                shared = np.intersect1d(graph.row(vertex), graph.row(int(others[place])), assume_unique=True)
                edges = int(np.isin(upward.rows(shared), shared).sum())
                front = unsurpassed([*front, (edges, a)])
    return CliqueLadder(sum(_triangles_among(upward, vertex) for vertex in range(len(graph))), tuple(front))


def star_ladder(graph: SimpleGraph, edges: int) -> StarLadder:
    """The stars of so many edges of a graph: a vertex, and that many of its neighbours."""
    degrees, numbers = np.unique(graph.degrees, return_counts=True)
    count = sum(comb(d, edges) * times for d, times in zip(degrees.tolist(), numbers.tolist(), strict=True))
    if not len(graph):
        return StarLadder(0, ((0, 0),), edges, 0)
    first, second = graph.degrees[:2].tolist()
    alike = np.flatnonzero(graph.degrees == first)
    # The pair of most edges, once without its edge; the highest degree with the best that is not adjacent to it; and
    # the second highest with its like. What is not below the first of them is one of the others.
    front = [(second - 1, first - 1), (max(_highest_apart(graph, int(vertex)) for vertex in alike), first)]
    if any(_highest_apart(graph, int(v)) >= second for v in np.flatnonzero(graph.degrees == second)):
        front.append((second, second))
    return StarLadder(count, tuple(unsurpassed(front)), edges, first)


def degree_ladder(graph: SimpleGraph) -> DegreeLadder:
    """The largest degree of a graph."""
    return DegreeLadder(int(graph.degrees[0]) if len(graph) else 0, ((0, 0),))


def _highest_apart(graph: SimpleGraph, vertex: int) -> int:
    """The highest degree among the vertices that are not adjacent to one; 0 is always among them."""
    row = graph.row(vertex)
    beside = np.ones(len(row) + 2, dtype=np.bool_)
    beside[row[row < len(beside)]] = False
    if vertex < len(beside):
        beside[vertex] = False
    others = np.flatnonzero(beside)  # the first of them has the highest degree, if it is a vertex with an edge
    return int(graph.degrees[others[0]]) if others[0] < len(graph) else 0


def _largest_sum(graph: SimpleGraph) -> int:
    """The largest sum of two degrees, without the edge between them, over all pairs of vertices.

    Two vertices of the two highest degrees d₁ and d₂ have at least d₁ + d₂ − 2. A larger sum is of two vertices that
    are not adjacent, of d₁ + d₂ or one less.
    """
    top = int(graph.degrees[:2].sum()) if len(graph) else 0
    return next(total for total in (top, top - 1, top - 2) if total == top - 2 or _apart(graph, total))


def _apart(graph: SimpleGraph, total: int) -> bool:
    """Whether two vertices that are not adjacent have degrees of this sum: more pairs do than pairs with an edge."""
    numbers = np.bincount(graph.degrees, minlength=total + 1)[: total + 1].tolist()
    if total == 0 or numbers[total]:
        return True  # with a vertex without an edge
    pairs = sum(numbers[d] * numbers[total - d] for d in range(1, (total + 1) // 2))
    pairs += comb(numbers[total // 2], 2) if total % 2 == 0 else 0
    first, second = graph.pairs()
    return bool(pairs > (graph.degrees[first] + graph.degrees[second] == total).sum())


def _common_neighbours(graph: SimpleGraph, vertex: int) -> tuple[Integers, Integers]:
    """The vertices of lower number that have neighbours in common with one, and how many."""
    reached = graph.rows(graph.row(vertex))
    others, common = np.unique(reached[reached < vertex], return_counts=True)
    return others, common


def unsurpassed(entries: list[FrontEntry]) -> list[FrontEntry]:
    """The entries that no other surpasses or equals in both numbers, in rising order of the second."""
    kept: list[FrontEntry] = []
    for entry in sorted(set(entries), key=lambda found: (found[1], found[0]), reverse=True):
        if not kept or entry[0] > kept[-1][0]:
            kept.append(entry)
    return kept[::-1]


def _surpassed(entry: FrontEntry, front: list[FrontEntry]) -> bool:
    return any(one >= entry[0] and other >= entry[1] for one, other in front)


def _triangles(graph: SimpleGraph) -> int:
    """The triangles: wedges upward, from a vertex to two of lower number, whose ends are adjacent."""
    from scipy import sparse

    upward = graph.upward()
    n = len(graph)
    ones = np.ones(len(upward.neighbours), dtype=np.int64)
    matrix = sparse.csr_array((ones, upward.neighbours, upward.starts), shape=(n, n))
    wedges = np.concatenate([[0], np.cumsum(upward.degrees[upward.neighbours])])[upward.starts]
    count, start = 0, 0
    while start < n:
        end = max(start + 1, int(np.searchsorted(wedges, wedges[start] + _AT_ONCE, side="right")) - 1)
        count += int((matrix[start:end] @ matrix).multiply(matrix[start:end]).sum())
        start = end
    return count


def _triangles_among(upward: SimpleGraph, vertex: int) -> int:
    """The triangles among the vertices of a row: with the vertex, the cliques of 4 whose highest number it is."""
    row = upward.row(vertex)
    if len(row) < 3:
        return 0
    reached = upward.rows(row)
    places = np.minimum(np.searchsorted(row, reached), len(row) - 1)
    inside = row[places] == reached
    matrix = np.zeros((len(row), len(row)))
    matrix[np.repeat(np.arange(len(row)), upward.degrees[row])[inside], places[inside]] = 1
    return int(((matrix @ matrix) * matrix).sum())
