"""A simple graph as a walk holds it: edges by number, neighbour lists, and the labels of the vertices.

Vertices are numbered in the order of their labels, so that the canonical direction of an edge, from the smaller label
to the larger, is that of the numbers. Neighbour lists follow the order of the edges: a graph built anew from the
edges of another is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers
from wpinq.engines.incremental.compiled.words.encoding import Dictionary
from wpinq.errors import PlanError
from wpinq.expr.types import INT, Type
from wpinq.expr.values import Value, order_key

Edges = Sequence[tuple[Value, Value]] | NDArray[np.int64]
"""Undirected edges, each once: pairs of labels, or an array of shape (edges, 2)."""
Numbers = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """The labels of vertices, of one type, numbered in order: sorted and distinct integers, or objects."""

    labels: NDArray[Any]
    type: Type

    def __len__(self) -> int:
        return len(self.labels)

    def words(self, dictionary: Dictionary) -> Integers:
        """The words of each label."""
        if self.labels.dtype != object:
            return self.labels.reshape(-1, 1)
        return dictionary.encode_all(self.labels.tolist(), self.type)

    def named(self, ends: Numbers) -> list[tuple[Value, Value]]:
        """Edges by label."""
        return [(a, b) for a, b in self.array(ends).tolist()]

    def array(self, ends: Numbers) -> NDArray[Any]:
        """Edges by label, as an array of shape (edges, 2): of integers where labels are, else of objects."""
        return np.asarray(self.labels[ends])


def numbered(edges: Edges, type_: Type, least: int, others: Sequence[Value] | None = None) -> tuple[Vertices, Numbers]:
    """The vertices of edges and the edges by number; `others` are vertices that may have no edge.

    Raises
    ------
    PlanError
        When the edges are fewer than `least`, or not a simple graph.
    """
    if type_ == INT and not type_.nullable:
        given = np.asarray(edges)
        if given.size and (given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2):
            raise PlanError("a walk starts from pairs of integers, as its source declares")
        pairs = given.astype(np.int64).reshape(-1, 2)
        more = np.asarray(() if others is None else others, dtype=np.int64)
        labels, dense = np.unique(np.concatenate([pairs.reshape(-1), more]), return_inverse=True)
        ends = dense.reshape(-1)[: pairs.size].reshape(-1, 2)
    else:
        held = [(a, b) for a, b in (edges.tolist() if isinstance(edges, np.ndarray) else edges)]
        names = sorted({end for edge in held for end in edge} | set(others or ()), key=order_key)
        places = {name: number for number, name in enumerate(names)}
        ends = np.array([(places[a], places[b]) for a, b in held], dtype=np.int64).reshape(-1, 2)
        labels = np.fromiter(names, dtype=object, count=len(names))
    vertices = Vertices(labels, type_)
    one = ends.min(axis=1, initial=len(vertices)) * len(vertices) + ends.max(axis=1, initial=0)
    if len(ends) < least or len(np.unique(one)) < len(ends) or bool(np.any(ends[:, 0] == ends[:, 1])):
        least_text = {0: "", 1: "one edge or more, ", 2: "two edges or more, "}[least]
        raise PlanError(f"a walk starts from a simple graph: {least_text}each edge once, and no loops")
    return vertices, np.ascontiguousarray(ends.astype(np.uint32))


class Graph:
    """Neighbour lists under swaps: each vertex keeps its degree, so its list keeps its place.

    `ids` is the number of the edge that each entry of `neighbours` belongs to; `marks` is room for the walk to mark
    the neighbours of two vertices, `common` to list those of two others that are marked.
    """

    def __init__(self, vertices: Vertices, edges: Numbers) -> None:
        self.vertices, self.edges = vertices, edges.copy()
        self.degrees = np.bincount(edges.reshape(-1), minlength=len(vertices))
        self.starts = np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.uint64)
        self.neighbours = np.zeros(2 * len(edges), dtype=np.uint32)
        self.ids = np.zeros(2 * len(edges), dtype=np.uint32)
        self.marks = np.zeros((len(vertices), 2), dtype=np.uint32)
        self.common = np.zeros((2, 1 + int(self.degrees.max(initial=0))), dtype=np.uint64)
        self.order()

    def order(self) -> None:
        """Have the neighbour lists follow the order of the edges as they are."""
        ends = self.edges.T.reshape(-1)  # all first ends, then all second ones
        order = np.argsort(ends, kind="stable")
        self.ids[:] = order % max(1, len(self.edges))
        self.neighbours[:] = np.roll(ends, len(self.edges))[order]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the generated loops take, in order."""
        return {name: getattr(self, name) for name in ("edges", "starts", "neighbours", "ids", "marks", "common")}

    @property
    def memory(self) -> int:
        """The bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())
