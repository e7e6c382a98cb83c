"""A simple graph under swaps: its neighbour lists, and proposals of swaps.

A plain proposal draws two edges {a, b}, {p, q}, the second in either direction, and exchanges ends: {a, q}, {p, b}.
A closing proposal draws a wedge a-h-q, by an edge in either direction and a neighbour of h, then a neighbour b of a
and a neighbour p of q: the same exchange makes the edge {a, q}, which closes the wedge.

Both kinds can propose one and the same exchange, so the Metropolis-Hastings ratio is that of the mixture. Of all
proposals let γ be closing. Out of m edges, an exchange is then proposed with density

    (1 − γ) / m²  +  γ / m · ( Σ_w 1/d_w / (d_a d_q)  +  Σ_w 1/d_w / (d_p d_b) )

where the sums go over the common neighbours w of the ends of each pair that is added, those left out that lose an
edge of the wedge. The reverse exchange adds the two pairs that are removed here, whose common neighbours no edge of
the exchange touches; degrees stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.routine import ONE, draw, fixed, inlined
from wpinq.engines.delta.compiled.values import Dictionary
from wpinq.errors import PlanError
from wpinq.expr.types import INT, Type
from wpinq.expr.values import Value, order_key
from wpinq.runtime.arrays import Floats, Integers, distinct

#: Undirected edges, each once: pairs of labels, or an array of shape (edges, 2).
Edges = Sequence[tuple[Value, Value]] | NDArray[np.int64]
Numbers = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """The labels of vertices, of one type, numbered in order.

    Labels are sorted and distinct integers, or objects.
    """

    labels: NDArray[Any]
    type: Type

    def __len__(self) -> int:
        return len(self.labels)

    def words(self, dictionary: Dictionary) -> Integers:
        """The words of each label."""
        if self.labels.dtype != object:
            return self.labels.reshape(-1, 1)
        return dictionary.encode_all(self.labels.tolist(), self.type)

    def named(self, ends: Numbers) -> NDArray[Any]:
        """Edges by label, as an array of shape (edges, 2): integers where labels are, else objects."""
        return np.asarray(self.labels[ends])


def numbered(edges: Edges, type_: Type, least: int, others: Sequence[Value] | None = None) -> tuple[Vertices, Numbers]:
    """The vertices of edges, and the edges by number.

    `others` are vertices that may have no edge.

    Raises
    ------
    PlanError
        When the edges are fewer than `least`, or not a simple graph.
    """
    if type_ == INT and not type_.nullable:
        given = np.asarray(edges)
        if given.size and (given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2):
            raise PlanError("a walk starts from pairs of integers, as its source declares")
        pairs = given.astype(np.int64).reshape(-1, 2)
        more = np.asarray(() if others is None else others, dtype=np.int64)
        labels, dense = np.unique(np.concatenate([pairs.reshape(-1), more]), return_inverse=True)
        ends = dense.reshape(-1)[: pairs.size].reshape(-1, 2)
    else:
        held = [(a, b) for a, b in (edges.tolist() if isinstance(edges, np.ndarray) else edges)]
        names = sorted({end for edge in held for end in edge} | set(others or ()), key=order_key)
        places = {name: number for number, name in enumerate(names)}
        ends = np.array([(places[a], places[b]) for a, b in held], dtype=np.int64).reshape(-1, 2)
        labels = np.fromiter(names, dtype=object, count=len(names))
    vertices = Vertices(labels, type_)
    one = ends.min(axis=1, initial=len(vertices)) * len(vertices) + ends.max(axis=1, initial=0)
    if len(ends) < least or len(distinct(one)) < len(ends) or bool(np.any(ends[:, 0] == ends[:, 1])):
        least_text = {0: "", 1: "one edge or more, ", 2: "two edges or more, "}[least]
        raise PlanError(f"a walk starts from a simple graph: {least_text}each edge once, and no loops")
    return vertices, np.ascontiguousarray(ends.astype(np.uint32))


class Graph:
    """A simple graph: edges by number, and neighbour lists under swaps.

    Vertices are numbered in the order of their labels, so that the canonical direction of an edge, from the smaller
    label to the larger, is that of the numbers. Each vertex keeps its degree, so its list keeps its place. Lists follow
    the order of the edges: a graph built anew from the edges of another is the same to the last bit.

    `ids` is the number of the edge that each entry of `neighbours` belongs to. `marks` is room for the walk to mark the
    neighbours of two vertices, `common` to list those of two others that are marked. `spots` are the places of
    vertices, of no coordinates where there are none, and `reach` are distances of them.
    """

    def __init__(self, vertices: Vertices, edges: Numbers, spots: Floats, reach: Floats) -> None:
        self.vertices, self.edges, self.spots, self.reach = vertices, rt.apart(edges), spots, reach
        self.degrees = np.bincount(edges.reshape(-1), minlength=len(vertices))
        self.starts = rt.apart(np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.uint64))
        self.neighbours = rt.apart(np.zeros(2 * len(edges), dtype=np.uint32))
        self.ids = rt.apart(np.zeros(2 * len(edges), dtype=np.uint32))
        self.marks = rt.apart(np.zeros((len(vertices), 2), dtype=np.uint32))
        self.common = np.zeros((2, 1 + int(self.degrees.max(initial=0))), dtype=np.uint64)
        self.order()

    def order(self) -> None:
        """Have the neighbour lists follow the order of the edges as they are."""
        ends = self.edges.T.reshape(-1)  # all first ends, then all second ones
        order = np.argsort(ends, kind="stable")
        self.ids[:] = order % max(1, len(self.edges))
        self.neighbours[:] = np.roll(ends, len(self.edges))[order]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the generated loops take, in order."""
        return {name: getattr(self, name) for name in SWAPPED}


# --- proposals of swaps -----------------------------------------------------------------------------------------------

EDGES, MARKS, COMMON = rt.arrays(edges=rt.UINT32_ROWS, marks=rt.UINT32_ROWS, common=rt.UINT64_ROWS)
STARTS, NEIGHBOURS, _ = rt.arrays(starts=rt.UINT64S, neighbours=rt.UINT32S, ids=rt.UINT32S)
rt.arrays(spots=rt.FLOAT64_ROWS, reach=rt.FLOAT64S)
SWAPPED = ("edges", "starts", "neighbours", "ids", "marks", "common", "spots", "reach")

#: Whether an exchange is one, its vertices a, b, p, q, and the numbers of the edges {a, b} and {p, q}.
Ends = Annotated[
    tuple[bool, Any, Any, Any, Any, Any, Any], "Tuple((boolean, uint32, uint32, uint32, uint32, uint64, uint64))"
]


@fixed
def far(u: rt.Uint32, v: rt.Uint32, on: rt.Arrays) -> rt.Int64:
    """How many reaches two vertices are farther apart than, as 0, 1, 4, 13, ….

    The sum of two tells both.
    """
    square, level = 0.0, 0
    for k in range(on.spots.shape[1]):
        square += (on.spots[u, k] - on.spots[v, k]) ** 2
    for k in range(len(on.reach)):
        level = 3 * level + 1 if square > on.reach[k] ** 2 else level
    return level


@inlined
def draw_ends(seeds: rt.Uint64s, closing: rt.Float64, on: rt.Arrays) -> Ends:
    """Draw an exchange; whether its pairs are there already is to be seen."""
    i = np.uint64(draw(seeds) * len(on.edges))
    if closing > 0.0 and draw(seeds) < closing:
        h, a = on.edges[i, 0], on.edges[i, 1]
        if draw(seeds) < 0.5:
            h, a = a, h
        q = on.neighbours[on.starts[h] + np.uint64(draw(seeds) * (on.starts[h + ONE] - on.starts[h]))]
        k = on.starts[a] + np.uint64(draw(seeds) * (on.starts[a + ONE] - on.starts[a]))
        b, i = on.neighbours[k], np.uint64(on.ids[k])
        k = on.starts[q] + np.uint64(draw(seeds) * (on.starts[q + ONE] - on.starts[q]))
        p, j = on.neighbours[k], np.uint64(on.ids[k])
        if b == h or p == h:
            return False, a, b, p, q, i, j
    else:
        j = np.uint64(draw(seeds) * len(on.edges))
        turned = draw(seeds) < 0.5
        a, b = on.edges[i, 0], on.edges[i, 1]
        p, q = on.edges[j, 0], on.edges[j, 1]
        if turned:
            p, q = q, p
    drawn = a != q and p != b and a != p and b != q
    if drawn and len(on.reach) > 0:
        drawn = far(a, b, on) + far(p, q, on) == far(a, q, on) + far(p, b, on)
    return drawn, a, b, p, q, i, j


@inlined
def mark_neighbours(vertex: rt.Uint32, side: rt.Int64, mark: rt.Uint32, on: rt.Arrays) -> None:
    """Mark the neighbours of a vertex on one of two sides."""
    for k in range(on.starts[vertex], on.starts[vertex + ONE]):
        on.marks[on.neighbours[k], side] = mark


@inlined
def list_common(vertex: rt.Uint32, side: rt.Uint64, mark: rt.Uint32, on: rt.Arrays) -> None:
    """List the neighbours of a vertex that are marked on either side: their number, then places.

    Few are, so nearly every entry is written over by the next: that is faster than to ask, which no processor guesses.
    """
    n = ONE
    for k in range(on.starts[vertex], on.starts[vertex + ONE]):
        w = on.neighbours[k]
        on.common[side, n] = k
        n += np.uint64((on.marks[w, 0] >= mark) | (on.marks[w, 1] >= mark))
    on.common[side, 0] = n - ONE


@fixed
def chances(
    a: rt.Uint32, b: rt.Uint32, p: rt.Uint32, q: rt.Uint32, mark: rt.Uint32, closing: rt.Float64, on: rt.Arrays
) -> rt.Float64:
    """How much likelier the reverse of an exchange is to be proposed than the exchange itself.

    The neighbours of a and p are marked, and those of b and q among them listed.
    """
    forward = reverse = 0.0
    for side, near, lost, won, other in ((np.uint64(0), b, a, p, q), (ONE, q, p, a, b)):
        added = removed = 0.0
        for n in range(on.common[side, 0]):
            w = on.neighbours[on.common[side, n + ONE]]
            inverse = 1.0 / np.float64(on.starts[w + ONE] - on.starts[w])
            if on.marks[w, side] >= mark:
                removed += inverse
            if on.marks[w, ONE - side] >= mark and w != lost and w != other:
                added += inverse
        degree = np.float64(on.starts[near + ONE] - on.starts[near])
        reverse += removed / (degree * np.float64(on.starts[lost + ONE] - on.starts[lost]))
        forward += added / (degree * np.float64(on.starts[won + ONE] - on.starts[won]))
    plain = (1.0 - closing) / len(on.edges)
    return (plain + closing * reverse) / (plain + closing * forward)


@inlined
def most_chances(closing: rt.Float64, on: rt.Arrays) -> rt.Float64:
    """What `chances` never exceeds, for any exchange, rounded as it may be.

    Two vertices have at most d − 1 common neighbours, d the smaller of their degrees, and each of these has two edges
    or more. So the sum for a pair that is removed is at most 1/4, for both at most 1/2; and the exchange itself is
    proposed with (1 − γ)/m or more. What is over, twofold and a thousandth, is for rounding.
    """
    return 1.001 + closing / (1.0 - closing) * len(on.edges)


@fixed
def put_neighbour(a: rt.Uint32, b: rt.Uint32, q: rt.Uint32, i: rt.Uint64, on: rt.Arrays) -> rt.Uint64:
    """Put q, of edge i, where b stands among the neighbours of a, and return the place."""
    k = on.starts[a]
    while on.neighbours[k] != b:
        k += ONE
    on.neighbours[k] = q
    on.ids[k] = i
    return k


@fixed
def exchange(
    a: rt.Uint32, b: rt.Uint32, p: rt.Uint32, q: rt.Uint32, i: rt.Uint64, j: rt.Uint64, on: rt.Arrays
) -> Annotated[tuple[Any, Any, Any, Any], "UniTuple(uint64, 4)"]:
    """Make edge i {a, q} and edge j {p, b}, and return their places in the four lists."""
    on.edges[i, 0], on.edges[i, 1] = a, q
    on.edges[j, 0], on.edges[j, 1] = p, b
    at_a, at_b = put_neighbour(a, b, q, i, on), put_neighbour(b, a, p, j, on)
    return at_a, at_b, put_neighbour(p, q, b, j, on), put_neighbour(q, p, a, i, on)
