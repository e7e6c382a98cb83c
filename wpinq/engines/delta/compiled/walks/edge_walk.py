"""Walks over graphs by replacing, adding and removing edges, scored against answers, inside compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from wpinq.engines.delta.compiled.adjacency.state import Edges, Numbers, numbered
from wpinq.engines.delta.compiled.walks.graph_walk import GraphTables, GraphWalk, WalkLoops, vertex_type
from wpinq.engines.delta.goals import Goal
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.runtime.arrays import Integers


class EdgeWalk(GraphWalk):
    """A Metropolis-Hastings walk over simple graphs on given vertices, degrees free.

    A step replaces one edge, drawn uniformly, by a pair of vertices, drawn uniformly and refused where it is an edge or
    a loop; or, with probability `changing`, adds such a pair or removes such an edge, either with probability 1/2. The
    new graph is kept with probability `min(1, ratio · exp(power · (score before − score after)))`, where the ratio of
    the proposal probabilities is 1 for a replacement, `n²/(2(m + 1))` for an addition to m edges on n vertices and
    `2m/n²` for a removal.

    Parameters
    ----------
    goals, source, edges, symmetric, seed, virtual
        As for `SwapWalk`; there may be no edge.
    vertices : sequence, or array of int64
        The vertices; those of the edges are vertices too. Public: nobody's data.
    changing : float
        The share of proposals that change the number of edges, from 0 to 1. At 0 the number stays.

    Raises
    ------
    CannotCompile
        When a plan has no integer form, or numba is not installed.
    PlanError
        When the source is not one of edges, the edges are not a simple graph, or changing is out of range.

    Notes
    -----
    Privacy cost: none; all that comes in is public.
    Source: paper, section 4.2, for the walk that replaces edges.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> count = edges.select(lambda e: "edges")
    >>> goal = Goal(count.plan, 1.0, {"edges": 20.0})
    >>> walk = EdgeWalk([goal], "edges", [(0, 1)], range(30), symmetric=False, changing=1.0)
    >>> walk.run(2000, power=5.0).score <= 5
    True
    """

    _engine: GraphTables

    def __init__(
        self,
        goals: Sequence[Goal],
        source: str,
        edges: Edges,
        vertices: Sequence[Value],
        *,
        symmetric: bool = True,
        seed: int = 0,
        virtual: bool = True,
        changing: float = 0.5,
    ) -> None:
        if not 0 <= changing <= 1:
            raise PlanError("changing is a share of proposals, from 0 to 1")
        known, numbers = numbered(edges, vertex_type(goals, source), 0, vertices)
        if len(known) < 2:
            raise PlanError("a walk over edges needs two vertices or more")
        super().__init__(goals, source, known, symmetric, virtual, seed)
        self._changing = float(changing)
        self._begin(numbers)

    @property
    def memory(self) -> int:
        """The bytes of the walk's arrays."""
        return self._engine.memory + self._edges.nbytes

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights."""
        self._begin(self._numbers())

    def _begin(self, numbers: Numbers) -> None:
        count = len(numbers)
        self._tallies[3] = count
        self._edges = np.zeros((max(64, count + count // 4), 2), dtype=np.uint32)
        self._edges[:count] = numbers
        self._engine = self._tables(WalkLoops(self._source, swaps=False), numbers)

    def _run(self, steps: int, power: float) -> None:
        def run(module: ModuleType, words: Integers, steps: int) -> None:
            fixed = (self._engine.labels, self._seeds, self._tallies, int(self._symmetric))
            module.edge_chunk(words, self._edges, *fixed, steps, power, self._changing)
            if self._tallies[4]:  # no room for another edge
                self._tallies[4] = 0
                self._edges = np.concatenate([self._edges, np.zeros_like(self._edges)])

        self._engine.walk(run, self._tallies, steps)

    def _numbers(self) -> Numbers:
        return self._edges[: int(self._tallies[3])].copy()
