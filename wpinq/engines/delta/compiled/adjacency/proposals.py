"""The proposals of walks by swaps.

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

from typing import Annotated, Any

import numpy as np

from wpinq.engines.incremental.compiled.routines.calculation import draw
from wpinq.engines.incremental.compiled.routines.machine import ONE
from wpinq.engines.incremental.compiled.routines.routine import (
    Float64,
    Int64,
    Uint32,
    Uint32Rows,
    Uint32s,
    Uint64,
    Uint64Rows,
    Uint64s,
    fixed,
    inlined,
)

Ends = Annotated[
    tuple[bool, Any, Any, Any, Any, Any, Any], "Tuple((boolean, uint32, uint32, uint32, uint32, uint64, uint64))"
]
"""Whether an exchange is one, its vertices a, b, p, q, and the numbers of the edges {a, b} and {p, q}."""


@inlined
def draw_ends(
    seeds: Uint64s, closing: Float64, edges: Uint32Rows, starts: Uint64s, neighbours: Uint32s, ids: Uint32s
) -> Ends:
    """Draw an exchange; whether its pairs are there already is to be seen."""
    i = np.uint64(draw(seeds) * len(edges))
    if closing > 0.0 and draw(seeds) < closing:
        h, a = edges[i, 0], edges[i, 1]
        if draw(seeds) < 0.5:
            h, a = a, h
        q = neighbours[starts[h] + np.uint64(draw(seeds) * (starts[h + ONE] - starts[h]))]
        k = starts[a] + np.uint64(draw(seeds) * (starts[a + ONE] - starts[a]))
        b, i = neighbours[k], np.uint64(ids[k])
        k = starts[q] + np.uint64(draw(seeds) * (starts[q + ONE] - starts[q]))
        p, j = neighbours[k], np.uint64(ids[k])
        if b == h or p == h:
            return False, a, b, p, q, i, j
    else:
        j = np.uint64(draw(seeds) * len(edges))
        turned = draw(seeds) < 0.5
        a, b = edges[i, 0], edges[i, 1]
        p, q = edges[j, 0], edges[j, 1]
        if turned:
            p, q = q, p
    return a != q and p != b and a != p and b != q, a, b, p, q, i, j


@inlined
def mark_neighbours(
    vertex: Uint32, side: Int64, mark: Uint32, starts: Uint64s, neighbours: Uint32s, marks: Uint32Rows
) -> None:
    """Mark the neighbours of a vertex on one of two sides."""
    for k in range(starts[vertex], starts[vertex + ONE]):
        marks[neighbours[k], side] = mark


@inlined
def list_common(
    vertex: Uint32,
    side: Uint64,
    mark: Uint32,
    starts: Uint64s,
    neighbours: Uint32s,
    marks: Uint32Rows,
    common: Uint64Rows,
) -> None:
    """List the neighbours of a vertex that are marked on either side: how many, then their places.

    Few are, so nearly every entry is written over by the next: that is faster than to ask, which no processor guesses.
    """
    n = ONE
    for k in range(starts[vertex], starts[vertex + ONE]):
        w = neighbours[k]
        common[side, n] = k
        n += np.uint64((marks[w, 0] == mark) | (marks[w, 1] == mark))
    common[side, 0] = n - ONE


@fixed
def chances(
    a: Uint32,
    b: Uint32,
    p: Uint32,
    q: Uint32,
    mark: Uint32,
    closing: Float64,
    edges: Uint32Rows,
    starts: Uint64s,
    neighbours: Uint32s,
    marks: Uint32Rows,
    common: Uint64Rows,
) -> Float64:
    """How much likelier the reverse of an exchange is to be proposed than the exchange itself.

    The neighbours of a and p are marked, and those of b and q among them listed.
    """
    added_aq = added_pb = removed_ab = removed_pq = 0.0
    for n in range(common[0, 0]):
        w = neighbours[common[0, n + ONE]]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 0] == mark:
            removed_ab += inverse
        if marks[w, 1] == mark and w != a and w != q:
            added_pb += inverse
    for n in range(common[1, 0]):
        w = neighbours[common[1, n + ONE]]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 1] == mark:
            removed_pq += inverse
        if marks[w, 0] == mark and w != b and w != p:
            added_aq += inverse
    d_a, d_b = np.float64(starts[a + ONE] - starts[a]), np.float64(starts[b + ONE] - starts[b])
    d_p, d_q = np.float64(starts[p + ONE] - starts[p]), np.float64(starts[q + ONE] - starts[q])
    plain = (1.0 - closing) / len(edges)
    forward = plain + closing * (added_aq / (d_a * d_q) + added_pb / (d_p * d_b))
    reverse = plain + closing * (removed_ab / (d_a * d_b) + removed_pq / (d_p * d_q))
    return reverse / forward


@inlined
def most_chances(closing: Float64, edges: Uint32Rows) -> Float64:
    """What `chances` never exceeds, for any exchange, rounded as it may be.

    Two vertices have at most d − 1 common neighbours, d the smaller of their degrees, and each of these has two edges
    or more. So the sum for a pair that is removed is at most 1/4, for both at most 1/2; and the exchange itself is
    proposed with (1 − γ)/m or more. What is over, twofold and a thousandth, is for rounding.
    """
    return 1.001 + closing / (1.0 - closing) * len(edges)


@fixed
def put_neighbour(
    a: Uint32, b: Uint32, q: Uint32, i: Uint64, starts: Uint64s, neighbours: Uint32s, ids: Uint32s
) -> None:
    """Put q where b stands among the neighbours of a; the edge there is i now."""
    k = starts[a]
    while neighbours[k] != b:
        k += ONE
    neighbours[k] = q
    ids[k] = i


@fixed
def exchange(
    a: Uint32,
    b: Uint32,
    p: Uint32,
    q: Uint32,
    i: Uint64,
    j: Uint64,
    edges: Uint32Rows,
    starts: Uint64s,
    neighbours: Uint32s,
    ids: Uint32s,
) -> None:
    """Edge i becomes {a, q}, edge j becomes {p, b}."""
    put_neighbour(a, b, q, i, starts, neighbours, ids)
    put_neighbour(b, a, p, j, starts, neighbours, ids)
    put_neighbour(p, q, b, j, starts, neighbours, ids)
    put_neighbour(q, p, a, i, starts, neighbours, ids)
    edges[i, 0], edges[i, 1] = a, q
    edges[j, 0], edges[j, 1] = p, b
