"""Loops over public graphs, as machine code where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator

from wpinq.runtime.arrays import Floats, Integers


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as machine code, kept for later processes; without numba the loop itself."""
    try:
        found: Callable[..., Any] = import_module("numba").njit(cache=True)(loop)
    except (ImportError, RuntimeError):  # the second where there is no folder to keep it in
        return loop
    return found


def local_clustering(degrees: Integers, edges: Integers) -> tuple[int, Floats]:
    """The number of triangles, and for each node its clustering coefficient."""
    count, place = len(degrees), np.empty(len(degrees), dtype=np.int64)
    place[np.argsort(degrees, kind="stable")] = np.arange(count)
    low, high = np.sort(place[edges], axis=1).T
    keys = np.sort(low * count + high)
    starts = np.concatenate([[0], np.cumsum(np.bincount(low, minlength=count))])
    found = np.zeros(count, dtype=np.int64)
    compiled(_count_triangles)(starts, keys % max(count, 1), np.full(count, -1), found)
    pairs = np.maximum(degrees * (degrees - 1) / 2, 1)
    return int(found.sum()) // 3, found[place] / pairs


def _count_triangles(starts: Integers, neighbours: Integers, marks: Integers, found: Integers) -> None:
    """Count the triangles at each node, whose neighbours are those of no lower degree."""
    for u in range(len(found)):
        for v in neighbours[starts[u] : starts[u + 1]]:
            marks[v] = u
        for v in neighbours[starts[u] : starts[u + 1]]:
            for w in neighbours[starts[v] : starts[v + 1]]:
                if marks[w] == u:
                    found[u] += 1
                    found[v] += 1
                    found[w] += 1


def swap_away(edges: Integers, good: Any, nodes: int, cliques: int, tries: int, rng: Generator) -> bool:
    """Swap ends of bad edges with those of others until all are good; whether that was done.

    Where possible, the others are outside the first `cliques`.
    """
    held = set()
    for one, other in edges[good]:
        held.add(one * nodes + other)
    bad = np.flatnonzero(~good)
    last = len(bad) - 1
    while last >= 0 and tries > 0:
        for draw in rng.random((min(tries, 4096), 3)):
            tries -= 1
            low = cliques if len(edges) > cliques and draw[0] < 0.9 else 0
            i, j = bad[last], int(low + draw[1] * (len(edges) - low))
            if not good[j]:
                continue
            a, b, c, d = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
            old = c * nodes + d
            if draw[2] < 0.5:
                c, d = d, c
            one, other = min(a, d) * nodes + max(a, d), min(c, b) * nodes + max(c, b)
            if a == d or c == b or one == other or one in held or other in held:
                continue
            held.discard(old)
            held.add(one)
            held.add(other)
            edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1] = min(a, d), max(a, d), min(c, b), max(c, b)
            good[i] = True
            last -= 1
            if last < 0:
                break
    return last < 0
