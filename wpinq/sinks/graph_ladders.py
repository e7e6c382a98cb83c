"""Ladders of a graph for subgraphs, components, the largest degree or core, with fronts.

A front needs the pairs of vertices that no other pair surpasses. Pairs without common neighbours enter by their sum of
degrees alone, which is counted. The others are sought from the vertex of highest degree on, and no further than to
where those found surpass all that can come. Vertices without an edge are in every graph, in any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import comb
from typing import Any

import numpy as np

from wpinq.noise.ladder import CliqueLadder, FrontEntry, StarLadder, TriangleLadder, UnitLadder
from wpinq.runtime.arrays import Integers, distinct, numbered

# A simple graph as arrays: its vertices numbered by falling degree, and the neighbours of each in order.


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SimpleGraph:
    """An undirected graph without loops, as rows of neighbours.

    Vertices without an edge are not in it.

    Attributes
    ----------
    degrees : numpy array of int64, shape (n,)
        The length of each row; in falling order.
    starts : numpy array of int64, shape (n + 1,)
        Where the row of each vertex starts in `neighbours`.
    neighbours : numpy array of int64
        The neighbours of each vertex, in rising order.
    """

    degrees: Integers
    starts: Integers
    neighbours: Integers

    def __len__(self) -> int:
        return len(self.degrees)

    def row(self, vertex: int) -> Integers:
        """The neighbours of a vertex."""
        return self.neighbours[self.starts[vertex] : self.starts[vertex + 1]]

    def rows(self, vertices: Integers) -> Integers:
        """The neighbours of several vertices, one row after the other."""
        lengths = self.degrees[vertices]
        return self.neighbours[_consecutive(self.starts[vertices], lengths)]

    def pairs(self) -> tuple[Integers, Integers]:
        """The two ends of every edge, once: the higher number, and the lower.

        The degree of the lower is no less.
        """
        first = np.repeat(np.arange(len(self)), self.degrees)
        upward = first > self.neighbours
        return first[upward], self.neighbours[upward]

    def upward(self) -> SimpleGraph:
        """The same vertices with only those neighbours that have a lower number: each edge once.

        No row is longer than √(2m): all its vertices have at least the degree of the one whose row it is.
        """
        first, second = self.pairs()
        lengths = np.bincount(first, minlength=len(self))
        return SimpleGraph(lengths, _ends(lengths), second)


def simple_graph(records: Iterable[Any] | Integers) -> SimpleGraph:
    """The graph of the pairs {a, b}, a ≠ b, among records of two fields.

    Records count in either direction, and however often.

    Parameters
    ----------
    records : iterable, or array of shape (records, 2)
        Pairs of vertices in canonical form, or None, which is no edge.
    """
    if not isinstance(records, np.ndarray):
        pairs = [record for record in records if record is not None]
        numbers = {vertex: n for n, vertex in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
        records = np.array([numbers[vertex] for pair in pairs for vertex in pair], dtype=np.int64).reshape(-1, 2)
    n, found = numbered(records[records[:, 0] != records[:, 1]])
    low, high = np.divmod(distinct(found.min(axis=1) * n + found.max(axis=1)), max(n, 1))
    degrees = np.bincount(np.concatenate([low, high]), minlength=n)
    order = np.argsort(-degrees, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    one, other = place[low], place[high]
    both = np.sort(np.concatenate([one * n + other, other * n + one]))
    return SimpleGraph(degrees[order], _ends(degrees[order]), both % max(n, 1))


def _ends(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _consecutive(starts: Integers, lengths: Integers) -> Integers:
    """`starts[0], starts[0] + 1, …`, as many as `lengths[0]`, then from `starts[1]`, and so on."""
    first = np.cumsum(lengths) - lengths
    return np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))


#: The most wedges in memory at once, and in the beginning: what is found among few rules out most of the others.
_AT_ONCE, _AT_FIRST = 2**22, 2**16


def triangle_ladder(graph: SimpleGraph) -> TriangleLadder:
    """The triangles of a graph."""
    matrix, degrees, (first, second) = _matrix(graph), graph.degrees, graph.pairs()
    edges = first * len(graph) + second
    front: list[FrontEntry] = [(0, _largest_sum(graph))]
    for start, end in _blocks(graph):
        # of each in the front, by rising number of common neighbours; beyond them all, no sum is enough
        held, largest = np.array([(len(graph), 0), *front])[::-1].T
        least = 1 + held[largest >= degrees[0] + degrees[start]].max(initial=-1)
        if least > degrees[start]:
            break  # pairs with fewer common neighbours than this are surpassed, and none from here on has more
        found = matrix[start:end] @ matrix[:, :end]
        enough = np.flatnonzero(found.data >= least)
        one, other = np.searchsorted(found.indptr, enough, side="right") - 1 + start, found.indices[enough]
        common, sums = found.data[enough], degrees[one] + degrees[other]
        near = (other < one) & (sums > largest[np.searchsorted(held, common)])
        pairs = one[near] * len(graph) + other[near]
        # an edge between them is in both degrees
        sums = sums[near] - 2 * (edges[np.minimum(np.searchsorted(edges, pairs), len(edges) - 1)] == pairs)
        front = unsurpassed([*front, *zip(common[near].tolist(), sums.tolist(), strict=True)])
    upward = graph.upward()
    matrix = _matrix(upward)  # of wedges from a vertex to two of lower number
    count = sum(int((matrix[a:b] @ matrix).multiply(matrix[a:b]).sum()) for a, b in _blocks(upward))
    return TriangleLadder(count, tuple(front))


def clique_ladder(graph: SimpleGraph) -> CliqueLadder:
    """The cliques of 4 of a graph."""
    upward = graph.upward()
    front: list[FrontEntry] = [(0, 0)]
    for vertex in range(len(graph)):
        degree = int(graph.degrees[vertex])
        if _surpassed((comb(degree, 2), degree), front):
            break  # from here on a ≤ degree and e ≤ C(a, 2)
        reached = graph.rows(graph.row(vertex))
        others, common = np.unique(reached[reached < vertex], return_counts=True)
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


def degree_ladder(graph: SimpleGraph) -> UnitLadder:
    """The largest degree of a graph."""
    return UnitLadder(int(graph.degrees[0]) if len(graph) else 0, ((0, 0),))


def component_ladder(graph: SimpleGraph) -> UnitLadder:
    """The connected components of a graph."""
    from scipy.sparse.csgraph import connected_components

    return UnitLadder(int(connected_components(_matrix(graph), directed=False)[0]), ((0, 0),))


def core_ladder(graph: SimpleGraph) -> UnitLadder:
    """The largest core of a graph: the largest k for which some subgraph has all degrees ≥ k.

    Vertices go whose degree among those left is at most k. Where all others have more, k rises to the least of theirs.
    """
    left, core = graph.degrees.copy(), 0
    while left.any():
        core = int(left[left > 0].min())
        gone = np.flatnonzero((left > 0) & (left <= core))
        while len(gone):
            left[gone] = 0
            near, edges = np.unique(graph.rows(gone), return_counts=True)
            left[near] = np.maximum(left[near] - edges, 0)
            gone = near[(left[near] > 0) & (left[near] <= core)]
    return UnitLadder(core, ((0, 0),))


def _highest_apart(graph: SimpleGraph, vertex: int) -> int:
    """The highest degree of the vertices not adjacent to one; 0 is always among them."""
    taken = np.append(graph.row(vertex), vertex)
    beside = np.ones(len(taken) + 1, dtype=np.bool_)
    beside[taken[taken < len(beside)]] = False
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
    """Whether two vertices that are not adjacent have degrees of this sum.

    They do where more pairs have the sum than pairs with an edge.
    """
    numbers = np.bincount(graph.degrees, minlength=total + 1)[: total + 1].tolist()
    if total == 0 or numbers[total]:
        return True  # with a vertex without an edge
    pairs = sum(numbers[d] * numbers[total - d] for d in range(1, (total + 1) // 2))
    pairs += comb(numbers[total // 2], 2) if total % 2 == 0 else 0
    first, second = graph.pairs()
    return bool(pairs > (graph.degrees[first] + graph.degrees[second] == total).sum())


def unsurpassed(entries: list[FrontEntry]) -> list[FrontEntry]:
    """The entries that no other surpasses or equals in both numbers, by the rising second."""
    kept: list[FrontEntry] = []
    for entry in sorted(set(entries), key=lambda found: (found[1], found[0]), reverse=True):
        if not kept or entry[0] > kept[-1][0]:
            kept.append(entry)
    return kept[::-1]


def _surpassed(entry: FrontEntry, front: list[FrontEntry]) -> bool:
    return any(one >= entry[0] and other >= entry[1] for one, other in front)


def _matrix(rows: SimpleGraph) -> Any:
    """The rows as a sparse matrix of ones."""
    from scipy import sparse

    ones = np.ones(len(rows.neighbours), dtype=np.int32)
    return sparse.csr_array((ones, rows.neighbours, rows.starts), shape=(len(rows),) * 2)


def _blocks(rows: SimpleGraph) -> Iterator[tuple[int, int]]:
    """Ranges of vertices with no more wedges than there is room for."""
    wedges = np.concatenate([[0], np.cumsum(rows.degrees[rows.neighbours])])[rows.starts]
    start, room = 0, _AT_FIRST
    while start < len(rows):
        end = max(start + 1, int(np.searchsorted(wedges, wedges[start] + room, side="right")) - 1)
        yield start, end
        start, room = end, min(4 * room, _AT_ONCE)


def _triangles_among(upward: SimpleGraph, vertex: int) -> int:
    """The number of triangles among the vertices of a row.

    With the vertex of the row, they are the cliques of 4 in which its number is the highest.
    """
    row = upward.row(vertex)
    if len(row) < 3:
        return 0
    reached = upward.rows(row)
    places = np.minimum(np.searchsorted(row, reached), len(row) - 1)
    inside = row[places] == reached
    matrix = np.zeros((len(row), len(row)))
    matrix[np.repeat(np.arange(len(row)), upward.degrees[row])[inside], places[inside]] = 1
    return int(((matrix @ matrix) * matrix).sum())
