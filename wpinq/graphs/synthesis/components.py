"""Components of a made graph, joined until they are as many as was released.

A walk by swaps keeps degrees and leaves small parts by themselves, for few of its numbers tell of them. An edge {p, q}
on a cycle and an edge {a, b} of another component become {a, q} and {p, b}: all degrees stay, the components are one,
and where no edge of the two closes a triangle, all triangles stay too.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.random_graphs import import_igraph
from wpinq.runtime.arrays import Integers

#: Edges that are looked at for each swap.
_TRIES = 64


def join_components(edges: Integers, count: int, rng: Generator) -> Integers:
    """The graph with components joined until there are `count`, as far as edges on cycles allow.

    Of the possible swaps some are looked at, and the one taken exchanges ends of the most similar degrees, so that
    degrees hardly mix otherwise than before. Components in which each edge closes a triangle stay by themselves.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        A simple graph.
    count : int
        The number of components to come down to.
    rng : Generator
        The random generator.

    Returns
    -------
    array of int64, shape (edges, 2)
        Its rows are in the order of before.

    Examples
    --------
    >>> squares = np.array([(4 * k + i, 4 * k + (i + 1) % 4) for k in range(5) for i in range(4)])
    >>> made = join_components(squares, 2, np.random.default_rng(1))
    >>> len(import_igraph().Graph(made.tolist()).connected_components())
    2
    """
    return _Joiner(edges, rng).joined(count)


class _Joiner:
    """The edges, those of them that are on a cycle, and their components."""

    def __init__(self, edges: Integers, rng: Generator) -> None:
        self._edges, self._rng = edges.copy(), rng
        graph = import_igraph().Graph(int(edges.max(initial=-1)) + 1)
        graph.add_edges(np.ascontiguousarray(edges).data)
        self._octave = np.log2(np.maximum(graph.degree(), 1))
        self._near = [frozenset(row) for row in graph.get_adjlist()]
        self._free = np.ones(len(edges), dtype=np.bool_)
        self._free[graph.spanning_tree(return_tree=False)] = False
        labels = np.array(graph.connected_components().membership)[edges[:, 0]]
        order = np.argsort(labels, kind="stable")
        parts = sorted(np.split(order, np.flatnonzero(np.diff(labels[order])) + 1), key=len, reverse=True)
        # those with a cycle first: they bring their other edges on cycles along
        self._parts = sorted(parts[1:], key=lambda part: not self._free[part].any())
        self._pool, self._count = self._on_cycles(parts[0]), len(parts)

    def joined(self, count: int) -> Integers:
        """The edges, once components are joined."""
        for part in self._parts:
            if self._count <= count:
                break
            own = self._on_cycles(part)
            one, others = self._open(own or part.tolist()), [i for i in self._open(self._pool) if self._free[i]]
            if one and others:
                self._join(one[0], others)
                self._pool += [i for i in own if i != one[0]]
                self._count -= 1
        return self._edges

    def _on_cycles(self, part: Integers) -> list[int]:
        """Edges outside of a spanning tree: all of them together may go, and no part falls apart."""
        return [int(i) for i in part[self._free[part]]]

    def _open(self, among: list[int]) -> list[int]:
        """Some edges that close no triangle."""
        tries = {among[int(place * len(among))] for place in self._rng.random(_TRIES)} if among else set()
        ends = ((i, *self._edges[i]) for i in sorted(tries))
        return [i for i, u, v in ends if self._near[u].isdisjoint(self._near[v])]

    def _join(self, one: int, others: list[int]) -> None:
        """Swap an edge with the one of the others that has the most similar end."""
        (a, b), octave = self._edges[one], self._octave
        ways = [(i, *ends) for i in others for ends in (self._edges[i], self._edges[i, ::-1])]
        other, p, q = min(ways, key=lambda way: min(abs(octave[way[1]] - octave[a]), abs(octave[way[2]] - octave[b])))
        self._edges[one], self._edges[other] = (a, q), (p, b)
        if self._free[one]:
            self._pool.append(other)  # of the two edges, one joins, and one is on a cycle
        else:
            self._free[other] = False
        self._free[one] = False
