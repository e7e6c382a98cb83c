"""Counts and local sensitivities by their definitions, over all pairs of vertices; and small graphs to try them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

Edge = tuple[int, int]


@dataclass(frozen=True)
class Counted:
    """A count and `LS_t`, found by looking at everything."""

    count: int
    sensitivity: Callable[[int], int]


def neighbours(edges: Iterable[Edge]) -> list[set[int]]:
    """The neighbours of every vertex, and of two without an edge: there are always such."""
    edges = list(edges)
    found: list[set[int]] = [set() for _ in range(max((b for edge in edges for b in edge), default=-1) + 3)]
    for a, b in edges:
        found[a].add(b)
        found[b].add(a)
    return found


def all_pairs(adjacent: list[set[int]]) -> Iterator[Edge]:
    return combinations(range(len(adjacent)), 2)


def triangles(edges: Iterable[Edge]) -> Counted:
    adjacent = neighbours(edges)
    count = sum(len(adjacent[a] & adjacent[b]) for a, b in all_pairs(adjacent) if b in adjacent[a]) // 3
    pairs = set()
    for i, j in all_pairs(adjacent):
        one, other = adjacent[i] - {j}, adjacent[j] - {i}
        pairs.add((len(one & other), len(one ^ other)))  # adjacent to both, and to exactly one
    return Counted(count, lambda t: max(a + (t if t <= b else (t + b) // 2) for a, b in pairs))


def stars(edges: Iterable[Edge], k: int) -> Counted:
    adjacent = neighbours(edges)
    pairs = {tuple(sorted((len(adjacent[i] - {j}), len(adjacent[j] - {i})))) for i, j in all_pairs(adjacent)}
    return Counted(
        sum(comb(len(row), k) for row in adjacent),
        lambda t: max(comb(y + s, k - 1) + comb(x + t - s, k - 1) for y, x in pairs for s in range(t + 1)),
    )


def cliques(edges: Iterable[Edge]) -> Counted:
    adjacent = neighbours(edges)
    pairs = set()
    count = 0
    for i, j in all_pairs(adjacent):
        shared = adjacent[i] & adjacent[j]
        inside = sum(b in adjacent[a] for a, b in combinations(shared, 2))
        pairs.add((inside, len(shared)))
        count += inside if j in adjacent[i] else 0
    return Counted(count // 6, lambda t: max(e + t * a + t * (t - 1) // 2 for e, a in pairs))
