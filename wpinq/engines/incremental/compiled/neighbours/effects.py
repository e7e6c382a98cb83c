"""What a proposed swap changes, where the text is the same for all plans: outputs, and the rows of edges.

Outputs are numbered; what a swap adds to them is gathered in `delta` at the places `touched`, and in `acc` where the
place is known beforehand. A row of an edge changes by what one vertex adds: such an event is the place of the row among
those that change, the vertex, and whether it is won. Copies of these rows, side by side in `spare`, are changed, and
replace the rows where the swap is accepted: few are, and rows are far apart in memory.
"""

from __future__ import annotations

import numpy as np

from wpinq.engines.incremental.compiled.routines.machine import ONE
from wpinq.engines.incremental.compiled.routines.routine import (
    Float64Rows,
    Float64s,
    Int64,
    Int64s,
    Uint32,
    Uint32Rows,
    Uint32s,
    Uint64,
    Uint64Rows,
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
            o = np.uint64(acc_at[r])
            if stamps[o] != stamp:
                stamps[o] = stamp
                delta[o] = 0.0
                touched[np.uint64(counts[0])] = o
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
    lost_side: Uint64,
    won: Uint32,
    won_side: Uint64,
    other: Uint32,
    mark: Uint32,
    neighbours: Uint32s,
    ids: Uint32s,
    marks: Uint32Rows,
    found: Uint32Rows,
    common: Uint64Rows,
    weights: Float64Rows,
    fresh: Float64Rows,
    events: Uint32Rows,
    edge_slots: Uint32Rows,
    held_edges: Uint64s,
    counts: Int64s,
) -> None:
    """Note the events at the common neighbours of the pair that a vertex loses, and of the pair that it wins.

    A pair is the vertex and another, with the side on which the neighbours of that one are marked. `other` is the
    vertex that the swap parts from the one that is won. `fresh` sums the new row.
    """
    n, held = np.uint64(counts[1]), np.uint64(counts[2])
    for listed in range(common[lost_side, 0]):
        k = common[lost_side, listed + ONE]
        w = neighbours[k]
        for won_one in (False, True):
            side, far = (won_side, won) if won_one else (lost_side, lost)
            there = marks[w, side] == mark and (not won_one or (w != lost and w != other))
            if not there:
                continue
            for from_near in (True, False):
                e = ids[k] if from_near else found[w, side]
                if edge_slots[e, 0] != mark:
                    edge_slots[e, 0], edge_slots[e, 1] = mark, held
                    held_edges[held] = e
                    held += ONE
                events[n, 0], events[n, 1], events[n, 2] = edge_slots[e, 1], far if from_near else near, won_one
                n += ONE
            if won_one:
                for r in range(np.uint64(fresh.shape[1])):
                    fresh[won_side, r] += weights[w, r]
    counts[1], counts[2] = n, held


@inlined
def copy_rows(held: Int64, held_edges: Uint64s, rows: Float64Rows, spare: Float64Rows) -> None:
    """Copy the rows that have events, side by side."""
    for n in range(np.uint64(held)):
        e = held_edges[n]
        for r in range(np.uint64(rows.shape[1])):
            spare[n, r] = rows[e, r]


@inlined
def change_rows(event_count: Int64, events: Uint32Rows, spare: Float64Rows, weights: Float64Rows) -> None:
    """Change the copies by the events."""
    for n in range(np.uint64(event_count)):
        slot, v, sign = events[n, 0], events[n, 1], 1.0 if events[n, 2] else -1.0
        for r in range(np.uint64(spare.shape[1])):
            spare[slot, r] += sign * weights[v, r]


@inlined
def keep_rows(held: Int64, held_edges: Uint64s, rows: Float64Rows, spare: Float64Rows) -> None:
    """The swap is accepted: rows are what their copies are."""
    for n in range(np.uint64(held)):
        e = held_edges[n]
        for r in range(np.uint64(rows.shape[1])):
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
            for r in range(np.uint64(rows.shape[1])):
                rows[edge, r] += weights[w, r]
