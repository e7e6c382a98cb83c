"""Walks over graphs inside compiled code, by swaps, or by replacing and adding edges."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from wpinq.engines.delta.compiled.adjacency.decomposition import OutOfReach, Rescaled
from wpinq.engines.delta.compiled.adjacency.generation import generate
from wpinq.engines.delta.compiled.adjacency.state import Edges, Graph, NeighbourWalk, Numbers, numbered
from wpinq.engines.delta.compiled.graph_walk import GraphTables, GraphWalk, WalkLoops, vertex_type
from wpinq.engines.delta.compiled.plan_steps import lower
from wpinq.engines.delta.compiled.values import Dictionary
from wpinq.engines.delta.evaluator import Goal
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.runtime.arrays import Integers


class SwapWalk(GraphWalk):
    """A Metropolis-Hastings walk over simple graphs with given degrees.

    A step draws two edges and exchanges ends: {a, b}, {p, q} become {a, q}, {p, b}. Loops and edges that are there
    already are refused. The new graph is kept with probability
    `min(1, ratio · exp(power · (score before − score after)))`, where the ratio of the proposal
    probabilities is 1 unless proposals are chosen to close wedges. The score is the sum over the goals; see `Goal`.

    Parameters
    ----------
    goals : sequence of Goal
        What the graph is to fit, all over one source of edges. Public: answers, never protected data.
    source : str
        The name of that source, whose records are two fields of one type.
    edges : sequence of pairs, or array of shape (edges, 2)
        The undirected edges to start from, each once; no loops.
    symmetric : bool
        Whether the source holds each edge in both directions, as the recipes expect, or once, from its smaller vertex
        to its larger, as where one record is one undirected edge.
    seed : int
        Two walks with one seed and one chunking do the same.
    virtual : bool
        See `CompiledEvaluator`.
    closing : float
        The share of proposals that are chosen to close a wedge: draw a wedge a-h-q, a neighbour b of a and a neighbour
        p of q; from 0 to 1. Below 1, so that every graph can be reached. The ratio of the proposal probabilities is
        exact, so what the walk converges to is the same.

    Raises
    ------
    CannotCompile
        When a plan has no integer form, or numba is not installed.
    PlanError
        When the source is not one of edges, the edges are not a simple graph, or closing is out of range.

    Notes
    -----
    Privacy cost: none; all that comes in is public.
    Source: paper, sections 4.2 and 5.1; xoroshiro128+ is by Blackman and Vigna.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> near = edges.where(lambda e: (e.src - e.dst) * (e.src - e.dst) == 1).select(lambda e: "near")
    >>> ring = [(i, (i + 3) % 8) for i in range(8)]
    >>> walk = SwapWalk([Goal(near.plan, 1.0, {"near": 14.0})], "edges", ring, seed=1)
    >>> walk.run(2000, power=1.0).score < 14
    True
    """

    def __init__(
        self,
        goals: Sequence[Goal],
        source: str,
        edges: Edges,
        *,
        symmetric: bool = True,
        seed: int = 0,
        virtual: bool = True,
        closing: float = 0.0,
    ) -> None:
        if not 0 <= closing < 1:
            raise PlanError("closing is a share of proposals, at least 0 and less than 1")
        vertices, numbers = numbered(edges, vertex_type(goals, source), 2)
        super().__init__(goals, source, vertices, symmetric, virtual, seed)
        self._closing = float(closing)
        self._begin(numbers)

    @property
    def specialised(self) -> bool:
        """Whether the plan allowed the loop over neighbour lists (see `adjacency`); tables serve all others."""
        return isinstance(self._engine, NeighbourWalk)

    @property
    def memory(self) -> int:
        """The bytes of the walk's arrays."""
        return self._graph.memory + self._engine.memory

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights. Neighbour lists follow the order of the edges again."""
        if isinstance(self._engine, NeighbourWalk):
            self._engine.resynchronize()
        else:
            self._begin(self._graph.edges)

    def _begin(self, numbers: Numbers) -> None:
        self._graph = Graph(self._vertices, numbers)
        self._engine = self._neighbours() or self._tables(WalkLoops(self._source, swaps=True), numbers)

    def _neighbours(self) -> NeighbourWalk | None:
        if not self._virtual:
            return None
        dictionary = Dictionary()
        rescaled = [Rescaled.of(goal.plan) for goal in self._goals]
        steps = lower([each.plan for each in rescaled], dictionary)
        try:
            code = generate(steps, self._source, self._symmetric)
            return NeighbourWalk(code, steps, self._goals, rescaled, self._symmetric, self._graph)
        except OutOfReach:
            return None

    def _run(self, steps: int, power: float) -> None:
        engine = self._engine
        if isinstance(engine, NeighbourWalk):
            engine.run(self._seeds, self._tallies, steps, power, self._closing)
            return
        fixed = (engine.labels, self._seeds, self._tallies, int(self._symmetric))

        def run(module: ModuleType, words: Integers, steps: int) -> None:
            module.swap_chunk(*self._graph.arrays.values(), words, *fixed, steps, power, self._closing)

        engine.walk(run, self._tallies, steps)

    def _numbers(self) -> Numbers:
        return self._graph.edges


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
