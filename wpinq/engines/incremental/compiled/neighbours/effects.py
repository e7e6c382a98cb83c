"""What a proposed swap changes, where the text is the same for all plans: outputs, and the rows of edges.

Outputs are numbered; what a swap adds to them is gathered in `delta` at the places `touched`, and in `acc` where the
place is known beforehand. A row of an edge changes by what one vertex adds: such an event is the edge, the vertex and
a sign. Rows are changed in place, and put back from `spare` where the swap is not accepted.
"""

from __future__ import annotations

import numpy as np

from wpinq.engines.incremental.compiled.routines.machine import ONE
from wpinq.engines.incremental.compiled.routines.routine import (
    Float64Rows,
    Float64s,
    Int64,
    Int64Rows,
    Int64s,
    Uint32,
    Uint32Rows,
    Uint32s,
    Uint64,
    Uint64s,
    fixed,
    inlined,
)


@fixed
def settle_sums(
    stamp: Uint32, acc: Float64s, acc_at: Int64s, stamps: Uint32s, delta: Float64s, touched: Int64s, counts: Int64s
) -> None:
    """Add to the outputs what was gathered by places known beforehand."""
    for r in range(len(acc)):
        if acc[r] != 0.0 and acc_at[r] >= 0:
            o = acc_at[r]
            if stamps[o] != stamp:
                stamps[o] = stamp
                delta[o] = 0.0
                touched[counts[0]] = o
                counts[0] += 1
            delta[o] += acc[r]


@inlined
def mark_with_edges(
    vertex: Uint32,
    side: Int64,
    mark: Uint32,
    starts: Uint64s,
    neighbours: Uint32s,
    ids: Uint32s,
    marks: Uint32Rows,
    found: Uint32Rows,
) -> None:
    """Mark the neighbours of a vertex, with the edge to each."""
    for k in range(starts[vertex], starts[vertex + ONE]):
        marks[neighbours[k], side] = mark
        found[neighbours[k], side] = ids[k]


@fixed
def note_events(
    near: Uint32,
    lost: Uint32,
    lost_side: Int64,
    won: Uint32,
    won_side: Int64,
    other: Uint32,
    event_count: Int64,
    mark: Uint32,
    starts: Uint64s,
    neighbours: Uint32s,
    ids: Uint32s,
    marks: Uint32Rows,
    found: Uint32Rows,
    weights: Float64Rows,
    fresh: Float64Rows,
    events: Int64Rows,
) -> Int64:
    """Note the events at the common neighbours of the pair that a vertex loses, and of the pair that it wins.

    A pair is the vertex and another, with the side on which the neighbours of that one are marked. `other` is the
    vertex that the swap parts from the one that is won. Gives the number of events so far; `fresh` sums the new row.
    """
    n = event_count
    for k in range(starts[near], starts[near + ONE]):
        w = neighbours[k]
        if marks[w, lost_side] == mark:
            events[n, 0], events[n, 1], events[n, 2] = ids[k], lost, -1
            events[n + 1, 0], events[n + 1, 1], events[n + 1, 2] = found[w, lost_side], near, -1
            n += 2
        if marks[w, won_side] == mark and w != lost and w != other:
            events[n, 0], events[n, 1], events[n, 2] = ids[k], won, 1
            events[n + 1, 0], events[n + 1, 1], events[n + 1, 2] = found[w, won_side], near, 1
            n += 2
            for r in range(fresh.shape[1]):
                fresh[won_side, r] += weights[w, r]
    return n


@inlined
def save_rows(
    event_count: Int64,
    stamp: Uint32,
    events: Int64Rows,
    edge_stamps: Uint32s,
    held_edges: Uint64s,
    rows: Float64Rows,
    spare: Float64Rows,
) -> Int64:
    """Save the row of each edge that has an event, once; their number."""
    held = 0
    for n in range(event_count):
        e = np.uint64(events[n, 0])
        if edge_stamps[e] != stamp:
            edge_stamps[e] = stamp
            held_edges[held] = e
            for r in range(rows.shape[1]):
                spare[held, r] = rows[e, r]
            held += 1
    return held


@inlined
def change_rows(event_count: Int64, events: Int64Rows, rows: Float64Rows, weights: Float64Rows) -> None:
    """Change rows by the events."""
    for n in range(event_count):
        e, v, sign = np.uint64(events[n, 0]), np.uint64(events[n, 1]), float(events[n, 2])
        for r in range(rows.shape[1]):
            rows[e, r] += sign * weights[v, r]


@inlined
def restore_rows(held: Int64, held_edges: Uint64s, rows: Float64Rows, spare: Float64Rows) -> None:
    """The swap is refused: rows are what they were."""
    for n in range(held):
        e = held_edges[n]
        for r in range(rows.shape[1]):
            rows[e, r] = spare[n, r]


@fixed
def sum_rows(
    edge: Uint64,
    mark: Uint32,
    edges: Uint32Rows,
    starts: Uint64s,
    neighbours: Uint32s,
    marks: Uint32Rows,
    rows: Float64Rows,
    weights: Float64Rows,
) -> None:
    """Sum the row of an edge over the common neighbours of its ends, those of the first being marked."""
    v = edges[edge, 1]
    for k in range(starts[v], starts[v + ONE]):
        w = neighbours[k]
        if marks[w, 0] == mark:
            for r in range(rows.shape[1]):
                rows[edge, r] += weights[w, r]
