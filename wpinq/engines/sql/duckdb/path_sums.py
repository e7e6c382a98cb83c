"""Sums of paths by their ends as machine code, with the bits of the SQL (see `rules.paths`)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.columns.records import load
from wpinq.runtime.arrays import Floats, Integers, compiled, numbered

#: About how many pairs of ends have their sums at a time.
PAIRS = 2**22


def count_sums(connection: Any, table: str, first: str, second: str, step: str) -> int | None:
    """Make a table of numbers of sums from the legs of paths, and return the number of its rows.

    None where there is no numba, or a middle is no integer. No total of `sums` overflows, and the halves of one are
    added with a carry.
    """
    halves = f"CAST(w // {2**64} AS BIGINT) AS high, CAST(w % {2**64} AS UBIGINT) AS low"
    one = connection.execute(f"SELECT c0, c1, {halves} FROM ({first})").fetchnumpy()
    two = connection.execute(second).fetchnumpy()
    if one["c1"].dtype != np.int64 or (add := compiled(_add_paths)) is _add_paths:
        return None
    nodes, ends = numbered(np.stack([np.concatenate([one[c], two[c]]) for c in ("c0", "c1")], axis=1))
    (start, middle), seconds = ends[: len(one["c0"])].T, np.sort(ends[len(one["c0"]) :] @ (nodes, 1))
    order, numbers = np.argsort(start, kind="stable"), np.arange(nodes + 1)
    legs = np.searchsorted(start[order], numbers), middle[order], one["high"][order], one["low"][order]
    after = np.searchsorted(seconds, numbers * nodes), seconds % max(nodes, 1)
    paths = np.concatenate([[0], np.cumsum(np.diff(after[0])[legs[1]])])[legs[0]]
    pairs = np.cumsum(np.minimum(np.diff(paths), nodes))  # from each start, at most, and those before
    blocks = [0, *np.flatnonzero(np.diff(pairs // PAIRS)) + 1, nodes]
    sums, alone, rows = np.zeros(PAIRS + nodes), np.zeros(len(order), np.int64), 0
    held = np.zeros(nodes, np.int64), np.zeros(nodes, np.uint64), *np.full((3, nodes), -1)
    connection.execute(f"CREATE TEMP TABLE {table} (n BIGINT, w DOUBLE)")
    for first_, last in pairwise(blocks):
        found = np.unique(sums[: add(first_, last, legs, after, held, sums, alone)], return_counts=True)
        load(connection, table, {"n": found[1], "w": found[0] * float(step)})
        rows += len(found[0])
    totals, places = np.unique(legs[3] + legs[2] * 2.0**64, return_inverse=True)
    load(connection, table, {"n": np.bincount(places, alone).astype(np.int64), "w": totals * float(step)})
    return rows + len(totals)


def _add_paths(first: int, last: int, legs: Any, after: Any, held: Any, sums: Floats, alone: Integers) -> int:
    """Write the sums of several paths between ends, and return how many there are.

    Of ends with one path, the leg of the path is counted. A total becomes a float as DuckDB has it: half by half.
    """
    (starts, middles, highs, lows), (places, ends), (high, low, marks, via, found) = legs, after, held
    size = 0
    for a in range(first, last):
        count = 0
        for i in range(starts[a], starts[a + 1]):
            for j in range(places[middles[i] + 1] - 1, places[middles[i]] - 1, -1):
                c = ends[j]
                if c <= a:
                    break
                if marks[c] != a:
                    marks[c], via[c], high[c], low[c] = a, i, highs[i], lows[i]
                    found[count] = c
                    count += 1
                else:
                    via[c] = -1
                    low[c] += lows[i]
                    high[c] += highs[i] + (low[c] < lows[i])  # the carry
        for c in found[:count]:
            if via[c] >= 0:
                alone[via[c]] += 1
            else:
                sums[size] = np.float64(low[c]) + np.float64(high[c]) * 18446744073709551616.0
                size += 1
    return size
