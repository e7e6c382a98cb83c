"""Sums of paths by their ends as machine code, with the bits of the SQL (see `rules.paths`)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.columns.records import LOADING
from wpinq.runtime.arrays import Integers, compiled, numbered

#: About how many pairs of ends have their sums at a time, and how many paths are added up before a signal is heard.
PAIRS, PATHS = 2**22, 2**27


def count_sums(connection: Any, table: str, first: str, second: str, step: str) -> int | None:
    """Make a table of numbers of sums from the legs of paths, and return the number of its rows.

    None where there is no machine code, or a middle is null or no integer. No total of `sums` overflows, and the halves
    of one are added with a carry; DuckDB makes them a float, as it does in the SQL.
    """
    halves = f"CAST(w >> 64 AS BIGINT) AS high, CAST(w & {2**64 - 1} AS UBIGINT) AS low"
    if (add := compiled(_add_paths)) is _add_paths:
        return None
    one = connection.execute(f"SELECT c0, c1, {halves} FROM ({first})").fetchnumpy()
    if one["c1"].dtype != np.int64 or np.ma.is_masked(one["c1"]):
        return None
    two = connection.execute(second).fetchnumpy()
    nodes, ends = numbered(np.stack([np.concatenate([one[c], two[c]]) for c in ("c0", "c1")], axis=1))
    (start, middle), seconds = ends[: len(one["c0"])].T, np.sort(ends[len(one["c0"]) :] @ (nodes, 1))
    order, numbers = np.argsort(start, kind="stable"), np.arange(nodes + 1)
    legs = np.searchsorted(start[order], numbers), middle[order], one["high"][order], one["low"][order]
    after = np.searchsorted(seconds, numbers * nodes), seconds % max(nodes, 1)
    paths = np.concatenate([[0], np.cumsum(np.diff(after[0])[legs[1]])])[legs[0]]
    pairs = np.cumsum(np.minimum(np.diff(paths), nodes))  # from each start, at most, and those before
    blocks = [0, *np.flatnonzero(np.diff(pairs // PAIRS + paths[1:] // PATHS)) + 1, nodes]
    high, low, alone = np.zeros(PAIRS + nodes, np.int64), np.zeros(PAIRS + nodes, np.uint64), np.zeros_like(order)
    held = np.zeros(nodes, np.int64), np.zeros(nodes, np.uint64), *np.full((3, nodes), -1)
    try:
        add(0, 0, legs, after, held, high, low, alone)
    except Exception:  # machine code that cannot be made, read or kept, whatever the data are
        return None
    connection.execute(f"CREATE TEMP TABLE {table} (n BIGINT, w DOUBLE)")
    for begin, end in [*pairwise(blocks), (nodes, nodes)]:  # at the end sums of single paths, by their legs
        size = add(begin, end, legs, after, held, high, low, alone)
        sums = {"n": np.ones(size, np.int64), "h": high[:size], "l": low[:size]}
        connection.register(LOADING, sums if begin < end else {"n": alone, "h": legs[2], "l": legs[3]})
        total = f"CAST(CAST(h AS HUGEINT) * {2**64} + l AS DOUBLE) * {step}"
        connection.execute(f"INSERT INTO {table} SELECT sum(n), {total} AS total FROM {LOADING} GROUP BY total")
        connection.unregister(LOADING)
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def _add_paths(
    first: int, last: int, legs: Any, after: Any, held: Any, highs: Integers, lows: Any, alone: Integers
) -> int:
    """Write the sums of several paths between ends, and return how many there are.

    Of ends with one path, the leg of the path is counted.
    """
    (starts, middles, upper, lower), (places, ends), (high, low, marks, via, found) = legs, after, held
    size = 0
    for a in range(first, last):
        count = 0
        for i in range(starts[a], starts[a + 1]):
            for j in range(places[middles[i] + 1] - 1, places[middles[i]] - 1, -1):
                c = ends[j]
                if c <= a:
                    break
                if marks[c] != a:
                    marks[c], via[c], high[c], low[c] = a, i, upper[i], lower[i]
                    found[count] = c
                    count += 1
                else:
                    via[c] = -1
                    low[c] += lower[i]
                    high[c] += upper[i] + (low[c] < lower[i])  # the carry
        for c in found[:count]:
            if via[c] >= 0:
                alone[via[c]] += 1
            else:
                highs[size], lows[size] = high[c], low[c]
                size += 1
    return size
