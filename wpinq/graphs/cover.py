"""Covers: how to put a pattern together from its edges by joins.

A cover is a binary tree. Its leaves are the edges of the pattern, each once, so the query uses its source once an
edge, and no query that checks every edge can use it less. An inner node joins two parts on the vertices they share.
Of all such trees, the one kept gives copies the largest weight in a typical graph: one where a vertex has `DEGREE`
neighbours and a path closes with chance `CLOSURE`. A record of a part has then about

    n = 1 + DEGREE^f · CLOSURE^(e − f)        records at its key, itself and others

for f vertices of the part that the key leaves free and e edges at them (n = 1 when f = 0), and a join of records that
weigh a and b gives `a·b / (a·n_a + b·n_b)`. Ties go to the tree that makes fewer records on the way.

The estimate only picks a plan; weights and stability are exact whatever it says. The pick hardly depends on the two
constants: degrees from 4 to 64 with closures from 1/16 to 1/2 change it for at most 4 of the 30 patterns there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from wpinq.graphs.pattern import Edge, Pattern

DEGREE = 16.0
CLOSURE = 0.125


@dataclass(frozen=True, slots=True)
class Cover:
    """A part of a pattern, and how it is put together.

    Attributes
    ----------
    edges : tuple of edges
        The part.
    parts : None or pair of Cover
        The two parts that are joined; None for a single edge.
    weight : float
        The estimated weight of a record.
    records : float
        The estimated number of records made on the way, for each vertex of the graph.
    """

    edges: tuple[Edge, ...]
    parts: tuple[Cover, Cover] | None
    weight: float
    records: float

    @property
    def vertices(self) -> frozenset[int]:
        """The vertices of the part."""
        return frozenset(vertex for edge in self.edges for vertex in edge)


@lru_cache(maxsize=256)
def best_cover(pattern: Pattern) -> Cover:
    """The cover of the largest estimated weight, found by looking at all of them, part by part."""
    best: dict[int, Cover] = {1 << i: Cover((edge,), None, 1.0, DEGREE) for i, edge in enumerate(pattern.edges)}
    whole = (1 << len(pattern.edges)) - 1
    for subset in range(1, whole + 1):
        halves = ((half, subset ^ half) for half in _halves(subset))
        joined = (_join(best[one], best[other]) for one, other in halves if one in best and other in best)
        found = [cover for cover in joined if cover is not None]
        if found:
            best[subset] = max(found, key=lambda cover: (cover.weight, -cover.records))
    return best[whole]


def _halves(subset: int) -> Iterator[int]:
    """Every way to split a set of edges in two, given as the half that has its first edge."""
    first = subset & -subset
    rest = subset ^ first
    half = rest
    while half:
        half = (half - 1) & rest
        yield half | first


def _join(left: Cover, right: Cover) -> Cover | None:
    shared = left.vertices & right.vertices
    if not shared:
        return None
    norm = left.weight * _records_at(shared, left) + right.weight * _records_at(shared, right)
    edges = tuple(sorted(left.edges + right.edges))
    size = len(left.vertices | right.vertices)
    made = DEGREE ** (size - 1) * CLOSURE ** (len(edges) - size + 1)
    return Cover(edges, (left, right), left.weight * right.weight / norm, left.records + right.records + made)


def _records_at(key: frozenset[int], cover: Cover) -> float:
    free = cover.vertices - key
    if not free:
        return 1.0
    touching = sum(1 for u, v in cover.edges if u in free or v in free)
    return 1.0 + DEGREE ** len(free) * CLOSURE ** (touching - len(free))
