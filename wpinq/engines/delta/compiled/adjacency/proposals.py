"""Proposals of walks by swaps, and the changes of outputs and rows that they make.

A plain proposal draws two edges {a, b}, {p, q}, the second in either direction, and exchanges ends: {a, q}, {p, b}.
A closing proposal draws a wedge a-h-q, by an edge in either direction and a neighbour of h, then a neighbour b of a
and a neighbour p of q: the same exchange makes the edge {a, q}, which closes the wedge.

Both kinds can propose one and the same exchange, so the Metropolis-Hastings ratio is that of the mixture. Of all
proposals let γ be closing. Out of m edges, an exchange is then proposed with density

    (1 − γ) / m²  +  γ / m · ( Σ_w 1/d_w / (d_a d_q)  +  Σ_w 1/d_w / (d_p d_b) )

where the sums go over the common neighbours w of the ends of each pair that is added, those left out that lose an
edge of the wedge. The reverse exchange adds the two pairs that are removed here, whose common neighbours no edge of
the exchange touches; degrees stay.

Outputs are numbered. The additions of a swap are gathered in `delta` at the places `touched`, and in `acc` where the
place is known beforehand. A row of an edge changes by the additions of vertices. Such an event is the place of the row
among those that change, the vertex, and whether it is won. Copies of these rows, side by side in `spare`, are changed,
and replace the rows where the swap is accepted: few are, and rows are far apart in memory.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.routine import LANES, ONE, draw, fixed, inlined

Ends = Annotated[
    tuple[bool, Any, Any, Any, Any, Any, Any], "Tuple((boolean, uint32, uint32, uint32, uint32, uint64, uint64))"
]
"""Whether an exchange is one, its vertices a, b, p, q, and the numbers of the edges {a, b} and {p, q}."""


@inlined
def draw_ends(
    seeds: rt.Uint64s,
    closing: rt.Float64,
    edges: rt.Uint32Rows,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    ids: rt.Uint32s,
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
    vertex: rt.Uint32, side: rt.Int64, mark: rt.Uint32, starts: rt.Uint64s, neighbours: rt.Uint32s, marks: rt.Uint32Rows
) -> None:
    """Mark the neighbours of a vertex on one of two sides."""
    for k in range(starts[vertex], starts[vertex + ONE]):
        marks[neighbours[k], side] = mark


@inlined
def list_common(
    vertex: rt.Uint32,
    side: rt.Uint64,
    mark: rt.Uint32,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    marks: rt.Uint32Rows,
    common: rt.Uint64Rows,
) -> None:
    """List the neighbours of a vertex that are marked on either side: their number, then places.

    Few are, so nearly every entry is written over by the next: that is faster than to ask, which no processor guesses.
    """
    n = ONE
    for k in range(starts[vertex], starts[vertex + ONE]):
        w = neighbours[k]
        common[side, n] = k
        n += np.uint64((marks[w, 0] >= mark) | (marks[w, 1] >= mark))
    common[side, 0] = n - ONE


@fixed
def chances(
    a: rt.Uint32,
    b: rt.Uint32,
    p: rt.Uint32,
    q: rt.Uint32,
    mark: rt.Uint32,
    closing: rt.Float64,
    edges: rt.Uint32Rows,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    marks: rt.Uint32Rows,
    common: rt.Uint64Rows,
) -> rt.Float64:
    """How much likelier the reverse of an exchange is to be proposed than the exchange itself.

    The neighbours of a and p are marked, and those of b and q among them listed.
    """
    added_aq = added_pb = removed_ab = removed_pq = 0.0
    for n in range(common[0, 0]):
        w = neighbours[common[0, n + ONE]]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 0] >= mark:
            removed_ab += inverse
        if marks[w, 1] >= mark and w != a and w != q:
            added_pb += inverse
    for n in range(common[1, 0]):
        w = neighbours[common[1, n + ONE]]
        inverse = 1.0 / np.float64(starts[w + ONE] - starts[w])
        if marks[w, 1] >= mark:
            removed_pq += inverse
        if marks[w, 0] >= mark and w != b and w != p:
            added_aq += inverse
    d_a, d_b = np.float64(starts[a + ONE] - starts[a]), np.float64(starts[b + ONE] - starts[b])
    d_p, d_q = np.float64(starts[p + ONE] - starts[p]), np.float64(starts[q + ONE] - starts[q])
    plain = (1.0 - closing) / len(edges)
    forward = plain + closing * (added_aq / (d_a * d_q) + added_pb / (d_p * d_b))
    reverse = plain + closing * (removed_ab / (d_a * d_b) + removed_pq / (d_p * d_q))
    return reverse / forward


@inlined
def most_chances(closing: rt.Float64, edges: rt.Uint32Rows) -> rt.Float64:
    """What `chances` never exceeds, for any exchange, rounded as it may be.

    Two vertices have at most d − 1 common neighbours, d the smaller of their degrees, and each of these has two edges
    or more. So the sum for a pair that is removed is at most 1/4, for both at most 1/2; and the exchange itself is
    proposed with (1 − γ)/m or more. What is over, twofold and a thousandth, is for rounding.
    """
    return 1.001 + closing / (1.0 - closing) * len(edges)


@fixed
def put_neighbour(
    a: rt.Uint32, b: rt.Uint32, q: rt.Uint32, i: rt.Uint64, starts: rt.Uint64s, neighbours: rt.Uint32s, ids: rt.Uint32s
) -> None:
    """Put q where b stands among the neighbours of a; the edge there is i now."""
    k = starts[a]
    while neighbours[k] != b:
        k += ONE
    neighbours[k] = q
    ids[k] = i


@fixed
def exchange(
    a: rt.Uint32,
    b: rt.Uint32,
    p: rt.Uint32,
    q: rt.Uint32,
    i: rt.Uint64,
    j: rt.Uint64,
    edges: rt.Uint32Rows,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    ids: rt.Uint32s,
) -> None:
    """Edge i becomes {a, q}, edge j becomes {p, b}."""
    put_neighbour(a, b, q, i, starts, neighbours, ids)
    put_neighbour(b, a, p, j, starts, neighbours, ids)
    put_neighbour(p, q, b, j, starts, neighbours, ids)
    put_neighbour(q, p, a, i, starts, neighbours, ids)
    edges[i, 0], edges[i, 1] = a, q
    edges[j, 0], edges[j, 1] = p, b


# --- changes of a swap: outputs, and the rows of edges ----------------------------------------------------------------


@fixed
def settle_sums(
    stamp: rt.Uint32,
    acc: rt.Float64s,
    acc_at: rt.Int64s,
    stamps: rt.Uint32s,
    delta: rt.Float64s,
    touched: rt.Int64s,
    counts: rt.Int64s,
) -> None:
    """Add to the outputs what was gathered by places known beforehand."""
    for r in range(len(acc)):
        if acc[r] != 0.0 and acc_at[r] >= 0:
            o = np.uint64(acc_at[r])
            if stamps[o] != stamp:
                stamps[o] = stamp
                delta[o] = 0.0
                touched[np.uint64(counts[0])] = o
                counts[0] += 1
            delta[o] += acc[r]


@inlined
def mark_places(
    vertex: rt.Uint32, side: rt.Int64, mark: rt.Uint32, starts: rt.Uint64s, neighbours: rt.Uint32s, marks: rt.Uint32Rows
) -> None:
    """Mark the neighbours of a vertex, with the place of each in its list above the mark."""
    first = starts[vertex]
    for k in range(first, starts[vertex + ONE]):
        marks[neighbours[k], side] = np.uint64(mark) + (np.uint64(k) - first)


@fixed
def note_events(
    near: rt.Uint32,
    lost: rt.Uint32,
    lost_side: rt.Uint64,
    won: rt.Uint32,
    won_side: rt.Uint64,
    other: rt.Uint32,
    mark: rt.Uint32,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    ids: rt.Uint32s,
    marks: rt.Uint32Rows,
    common: rt.Uint64Rows,
    weights: rt.Float64Rows,
    fresh: rt.Float64Rows,
    events: rt.Uint32Rows,
    held_edges: rt.Uint64s,
    counts: rt.Int64s,
) -> None:
    """Note the events at the common neighbours of the pairs that a vertex loses and wins.

    A pair is the vertex and another, with the side on which the neighbours of that one are marked by `mark_places`.
    `other` is the vertex that the swap parts from the one that is won. `fresh` sums the new row. No edge of one common
    neighbour is one of another, so an edge is known by the neighbour and its side: once its row is among those that
    change, the place of the row stands in the mark, beyond all places in lists.
    """
    n, held, places = np.uint64(counts[1]), np.uint64(counts[2]), np.uint64(common.shape[1])
    for listed in range(common[lost_side, 0]):
        k = common[lost_side, listed + ONE]
        w = neighbours[k]
        own = held
        for won_one in (False, True):
            side, far = (won_side, won) if won_one else (lost_side, lost)
            there = marks[w, side] >= mark and (not won_one or (w != lost and w != other))
            if not there:
                continue
            if own == held:
                held_edges[held] = ids[k]
                held += ONE
            events[n, 0], events[n, 1], events[n, 2] = own, far, won_one
            at = np.uint64(marks[w, side]) - np.uint64(mark)
            if at < places:
                held_edges[held] = ids[starts[far] + at]
                at = places + held
                marks[w, side] = np.uint64(mark) + at
                held += ONE
            events[n + ONE, 0], events[n + ONE, 1], events[n + ONE, 2] = at - places, near, won_one
            n += ONE + ONE
            if won_one:
                add_row(weights, w, fresh, won_side, 1.0)
    counts[1], counts[2] = n, held


@inlined
def copy_row(source: rt.Float64Rows, m: rt.Uint64, target: rt.Float64Rows, n: rt.Uint64) -> None:
    """Copy a row, block by block: loops of one length are no loops once they are compiled."""
    for r in range(np.uint64(0), np.uint64(source.shape[1]), LANES):
        for s in range(LANES):
            target[n, r + s] = source[m, r + s]


@inlined
def add_row(source: rt.Float64Rows, m: rt.Uint64, target: rt.Float64Rows, n: rt.Uint64, sign: rt.Float64) -> None:
    """Add a row to another, or take it away."""
    for r in range(np.uint64(0), np.uint64(source.shape[1]), LANES):
        for s in range(LANES):
            target[n, r + s] += sign * source[m, r + s]


@fixed
def sum_rows(
    edge: rt.Uint64,
    mark: rt.Uint32,
    edges: rt.Uint32Rows,
    starts: rt.Uint64s,
    neighbours: rt.Uint32s,
    marks: rt.Uint32Rows,
    rows: rt.Float64Rows,
    weights: rt.Float64Rows,
) -> None:
    """Sum the row of an edge over the common neighbours of its ends.

    The neighbours of its first end are marked.
    """
    v = edges[edge, 1]
    for k in range(starts[v], starts[v + ONE]):
        w = neighbours[k]
        if marks[w, 0] == mark:
            add_row(weights, w, rows, edge, 1.0)
