"""Patterns: small connected graphs, their automorphisms, and the least way to write a copy of one.

The vertices of a copy are distinct, so the least tuple over the automorphisms is found position by position: the
first takes the least vertex of its orbit, the next the least of its orbit under the automorphisms that leave the
first alone, and so on. Each position costs one step, so nothing grows with the number of automorphisms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from wpinq.errors import PlanError

MOST_VERTICES = 5
"""The most vertices of a pattern."""

Edge = tuple[int, int]
Permutation = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A connected simple graph on the vertices 0 to size − 1; edges `(u, v)` with u < v, in order."""

    size: int
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Ordering:
    """A step towards the least tuple: put the vertices at `positions` in order, or the least of them to the front.

    In order where they are interchangeable, and there are no rearrangements. Else, where the vertex at `positions[i]`
    is the least of them all, the tuple t becomes `(t[r[0]], t[r[1]], …)` with `r = rearrangements[i]`.
    """

    positions: tuple[int, ...]
    rearrangements: tuple[Permutation, ...] = ()


def read_pattern(given: Iterable[Any]) -> Pattern:
    """A pattern from its edges, or PlanError that says what is wrong with them."""
    edges: set[Edge] = set()
    try:
        if isinstance(given, str):
            raise TypeError
        pairs = [tuple(pair) for pair in given]
    except TypeError:
        raise PlanError("a pattern is a list of edges, such as [(0, 1), (1, 2), (2, 0)]") from None
    for pair in pairs:
        if len(pair) != 2 or any(isinstance(v, bool) or not isinstance(v, int) for v in pair):
            raise PlanError(f"{pair!r} is no edge of a pattern: its vertices are the integers 0, 1, 2, …")
        u, v = sorted(pair)
        if u == v:
            raise PlanError(f"the pattern has a loop, {pair!r}; its edges join two vertices")
        if (u, v) in edges:
            raise PlanError(f"the pattern has the edge {pair!r} twice, in one or both directions; give each edge once")
        edges.add((u, v))
    vertices = {v for edge in edges for v in edge}
    size = len(vertices)
    if not 2 <= size <= MOST_VERTICES:
        raise PlanError(f"a pattern has 2 to {MOST_VERTICES} vertices, not {size}")
    if vertices != set(range(size)):
        raise PlanError(f"the vertices of a pattern are numbered 0 to {size - 1} without gaps, not {sorted(vertices)}")
    reached = {0}
    for _ in range(size):
        reached |= {v for edge in edges for v in edge if reached & set(edge)}
    if len(reached) < size:
        raise PlanError("the pattern is not connected; measure its parts on their own")
    return Pattern(size, tuple(sorted(edges)))


def relabelled(pattern: Pattern, labels: Permutation) -> Pattern:
    """The same graph with vertex v called `labels[v]`."""
    pairs = ((labels[u], labels[v]) for u, v in pattern.edges)
    return Pattern(pattern.size, tuple(sorted((min(pair), max(pair)) for pair in pairs)))


def standard_form(pattern: Pattern) -> tuple[Pattern, Permutation]:
    """The first of all relabellings in order of their edges, and the labels that give it.

    Isomorphic patterns have one standard form, and so one join plan.
    """
    labels = min(permutations(range(pattern.size)), key=lambda labels: relabelled(pattern, labels).edges)
    return relabelled(pattern, labels), labels


def automorphisms(pattern: Pattern) -> list[Permutation]:
    """Every relabelling that leaves the pattern as it is."""
    return [labels for labels in permutations(range(pattern.size)) if relabelled(pattern, labels) == pattern]


def least_steps(pattern: Pattern) -> list[Ordering]:
    """Steps that turn any embedding of the pattern into the least of those that cover the same copy."""
    steps: list[Ordering] = []
    group = automorphisms(pattern)
    for vertex in range(pattern.size):
        orbit = tuple(sorted({labels[vertex] for labels in group}))
        if len(orbit) == 1:
            continue
        if all(_exchange(pattern.size, u, v) in group for u, v in combinations(orbit, 2)):
            steps.append(Ordering(orbit))
            group = [labels for labels in group if all(labels[v] == v for v in orbit)]
        else:
            moves = (next(labels for labels in group if labels[vertex] == other) for other in orbit)
            steps.append(Ordering(orbit, tuple(moves)))
            group = [labels for labels in group if labels[vertex] == vertex]
    return steps


def _exchange(size: int, u: int, v: int) -> Permutation:
    return tuple({u: v, v: u}.get(vertex, vertex) for vertex in range(size))
