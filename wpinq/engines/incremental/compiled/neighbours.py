"""A graph as neighbour lists, walked by a generated loop; see `adjacency`, which says for which plans."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled.adjacency import Closed
from wpinq.engines.incremental.compiled.modules import import_module
from wpinq.engines.incremental.compiled.tables import Words


class NeighbourWalk:
    """The state of a walk: edges, neighbour lists, norms, and the one output with its target.

    Parameters
    ----------
    closed : Closed
        The generated text and what it needs.
    edges : array of int64, shape (edges, 2)
        The words of the ends of each edge.
    target, price : float
        What the output is to come close to, and the price of a unit of distance.
    """

    def __init__(self, closed: Closed, edges: Words, target: float, price: float) -> None:
        self._labels, dense = np.unique(edges, return_inverse=True)
        ends = dense.reshape(edges.shape).astype(np.uint32)
        self._edges = np.ascontiguousarray(ends)
        both = np.concatenate([ends, ends[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        degrees = np.bincount(both[:, 0], minlength=len(self._labels))
        self._starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint64)
        self._neighbours = np.ascontiguousarray(both[:, 1])
        self._marks = np.zeros((len(self._labels), 2), dtype=np.uint32)
        # both sides of such a join are the edges, and each has as many at a vertex as its degree
        self._norms = np.tile(2.0 * degrees, (max(1, len(closed.joins)), 1))
        self._numbers = np.array([0.0, target, price])
        self._module: ModuleType = import_module(closed.text)
        self.resynchronize()

    def resynchronize(self) -> None:
        """Evaluate the output afresh."""
        self._numbers[0] = self._module.whole(
            self._edges, self._starts, self._neighbours, self._marks, self._labels, self._norms
        )

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float) -> None:
        """Run steps of the walk."""
        self._module.walk(
            self._edges,
            self._starts,
            self._neighbours,
            self._marks,
            self._labels,
            self._norms,
            self._numbers,
            seeds,
            tallies,
            steps,
            power,
        )

    @property
    def output(self) -> float:
        """The weight of the one output record."""
        return float(self._numbers[0])

    @property
    def score(self) -> float:
        """The distance of the output to its target, times the price."""
        output, target, price = self._numbers.tolist()
        return float(price * abs(output - target))

    @property
    def edges(self) -> Words:
        """The words of the ends of each edge."""
        return np.asarray(self._labels[self._edges], dtype=np.int64)

    @property
    def memory(self) -> int:
        """The bytes of the arrays."""
        held = (self._labels, self._edges, self._starts, self._neighbours, self._marks, self._norms)
        return sum(array.nbytes for array in held)
