"""A simple graph as arrays: its vertices numbered by falling degree, and the neighbours of each in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.arrays import Integers


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SimpleGraph:
    """An undirected graph without loops, as rows of neighbours. Vertices without an edge are not in it.

    Attributes
    ----------
    degrees : numpy array of int64, shape (n,)
        The length of each row; in falling order.
    starts : numpy array of int64, shape (n + 1,)
        Where the row of each vertex starts in `neighbours`.
    neighbours : numpy array of int64
        The neighbours of each vertex, in rising order.
    """

    degrees: Integers
    starts: Integers
    neighbours: Integers

    def __len__(self) -> int:
        return len(self.degrees)

    def row(self, vertex: int) -> Integers:
        """The neighbours of a vertex."""
        return self.neighbours[self.starts[vertex] : self.starts[vertex + 1]]

    def rows(self, vertices: Integers) -> Integers:
        """The neighbours of several vertices, one row after the other."""
        lengths = self.degrees[vertices]
        return self.neighbours[_consecutive(self.starts[vertices], lengths)]

    def pairs(self) -> tuple[Integers, Integers]:
        """The two ends of every edge, once: the higher number, and the lower one, whose degree is no less."""
        first = np.repeat(np.arange(len(self)), self.degrees)
        upward = first > self.neighbours
        return first[upward], self.neighbours[upward]

    def upward(self) -> SimpleGraph:
        """The same vertices with only those neighbours that have a lower number: each edge once.

        No row is longer than √(2m): all its vertices have at least the degree of the one whose row it is.
        """
        first, second = self.pairs()
        lengths = np.bincount(first, minlength=len(self))
        return SimpleGraph(lengths, _ends(lengths), second)


def simple_graph(records: Iterable[Any]) -> SimpleGraph:
    """The graph of the pairs {a, b}, a ≠ b, among records of two fields: either direction, however often.

    Parameters
    ----------
    records : iterable
        Pairs of vertices in canonical form, or None, which is no edge.
    """
    numbers: dict[Any, int] = {}
    ends: list[int] = []
    for record in records:
        if record is not None and record[0] != record[1]:
            ends += [numbers.setdefault(vertex, len(numbers)) for vertex in record]
    n = len(numbers)
    found = np.array(ends, dtype=np.int64).reshape(-1, 2)
    found.sort(axis=1)
    low, high = np.divmod(np.unique(found[:, 0] * n + found[:, 1]), max(n, 1))
    degrees = np.bincount(np.concatenate([low, high]), minlength=n)
    order = np.argsort(-degrees, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    one, other = place[low], place[high]
    both = np.sort(np.concatenate([one * n + other, other * n + one]))
    return SimpleGraph(degrees[order], _ends(degrees[order]), both % max(n, 1))


def _ends(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _consecutive(starts: Integers, lengths: Integers) -> Integers:
    """`starts[0], starts[0] + 1, …`, as many as `lengths[0]`, then from `starts[1]`, and so on."""
    first = np.cumsum(lengths) - lengths
    return np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))
