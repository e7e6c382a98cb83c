"""Walks over graphs by swaps that preserve every degree, scored against answers, inside compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled.columns import Dictionary
from wpinq.engines.incremental.compiled.evaluator import Weights
from wpinq.engines.incremental.compiled.graph import Edges, Graph, Numbers, numbered
from wpinq.engines.incremental.compiled.loop import generate
from wpinq.engines.incremental.compiled.lower import lower
from wpinq.engines.incremental.compiled.neighbours import NeighbourWalk
from wpinq.engines.incremental.compiled.runtime import DUST
from wpinq.engines.incremental.compiled.tables import Words
from wpinq.engines.incremental.compiled.targets import Target, huber
from wpinq.engines.incremental.compiled.terms import OutOfReach
from wpinq.engines.incremental.compiled.walk import Walk
from wpinq.engines.incremental.compiled.walks import GraphWalk, State, Tables, edges_of, vertex_type
from wpinq.errors import PlanError
from wpinq.expr.values import Value


class SwapWalk(GraphWalk):
    """A Metropolis-Hastings walk over simple graphs with given degrees.

    A step draws two edges and exchanges ends: {a, b}, {p, q} become {a, q}, {p, b}. Loops and edges that are there
    already are refused. The new graph is kept with probability
    `min(1, ratio · exp(power · (score before − score after)))`, where the ratio of the proposal
    probabilities is 1 unless proposals are chosen to close wedges. The score is the sum over the targets; see `Aim`.

    Parameters
    ----------
    targets : sequence of Target
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
    >>> walk = SwapWalk([Target(near.plan, 1.0, {"near": 14.0})], "edges", ring, seed=1)
    >>> walk.run(2000, power=1.0).score < 14
    True
    """

    def __init__(
        self,
        targets: Sequence[Target],
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
        vertices, numbers = numbered(edges, vertex_type(targets, source), 2)
        super().__init__(targets, source, vertices, symmetric, virtual, seed)
        self._closing = float(closing)
        self._begin(numbers)

    @classmethod
    def restore(
        cls,
        targets: Sequence[Target],
        source: str,
        state: State,
        *,
        symmetric: bool = True,
        virtual: bool = True,
        closing: float = 0.0,
    ) -> SwapWalk:
        """The walk that gave this `state`, going on as it does, to the last bit, with the same arguments."""
        edges = edges_of(state, vertex_type(targets, source))
        walk = cls(targets, source, edges, symmetric=symmetric, virtual=virtual, closing=closing)
        walk._resume(state)
        return walk

    @property
    def specialised(self) -> bool:
        """Whether the plan allowed the loop over neighbour lists (see `terms`); tables serve all others."""
        return isinstance(self._walk, _Lists)

    @property
    def outputs(self) -> list[Weights]:
        """The output of each plan on the graph as it is."""
        return self._walk.outputs

    @property
    def memory(self) -> int:
        """The bytes of the walk's arrays."""
        return self._graph.memory + self._walk.memory

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights. Neighbour lists follow the order of the edges again."""
        if isinstance(self._walk, _Lists):
            self._walk.resynchronize()
        else:
            self._begin(self._graph.edges)

    def _begin(self, numbers: Numbers) -> None:
        self._graph = Graph(self._vertices, numbers)
        self._walk = self._lists() or _Tables(self._targets, self._source, self._graph, self._symmetric, self._virtual)

    def _lists(self) -> _Lists | None:
        if not self._virtual:
            return None
        dictionary = Dictionary()
        steps = lower([target.plan for target in self._targets], dictionary)
        loop = generate(steps, self._source, self._symmetric)
        if loop is None:
            return None
        try:
            walk = NeighbourWalk(loop, steps, self._symmetric, self._graph, dictionary)
        except OutOfReach:
            return None
        return _Lists(self._targets, walk, dictionary)

    def _run(self, steps: int, power: float) -> None:
        self._walk.run(self._seeds, self._tallies, steps, power, self._closing)

    def _score(self) -> float:
        return self._walk.score

    def _numbers(self) -> Numbers:
        return self._graph.edges


class _Tables(Tables):
    """A walk over tables."""

    def __init__(self, targets: Sequence[Target], source: str, graph: Graph, symmetric: bool, virtual: bool) -> None:
        super().__init__(targets, Walk(source, swaps=True), graph.vertices, graph.edges, symmetric, virtual)
        self._graph, self._symmetric = graph, symmetric

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float, closing: float) -> None:
        fixed = (self.labels, seeds, tallies, int(self._symmetric))

        def loop(module: ModuleType, words: Words, steps: int) -> None:
            module.swap_chunk(*self._graph.arrays, words, *fixed, steps, power, closing)

        self.evaluator.walk(loop, tallies, steps)


class _Lists:
    """A walk over neighbour lists."""

    def __init__(self, targets: Sequence[Target], walk: NeighbourWalk, dictionary: Dictionary) -> None:
        self._targets, self._walk, self._dictionary = targets, walk, dictionary
        self._elsewhere = 0.0
        for number, target in enumerate(targets):
            self._aim(number, target)

    def _aim(self, number: int, target: Target) -> None:
        words, weights = self._walk.output(number)
        records = self._decoded(words, target)
        goals = np.array([float(target.values.get(record, 0.0)) for record in records])
        inside = np.array([record in target.values for record in records], dtype=bool)
        prices = np.where(inside | target.outside, float(target.epsilon), 0.0)
        known = set(records)
        missing = np.array([float(value) for record, value in target.values.items() if record not in known])
        self._elsewhere += target.epsilon * float(np.sum(huber(missing, target.width)))
        if self._walk.is_frozen(number):
            self._elsewhere += float(np.sum(prices * huber(weights - goals, target.width)))
        else:
            self._walk.aim(number, goals, prices, target.width)

    def _decoded(self, words: Words, target: Target) -> list[Value]:
        return [self._dictionary.decode(row, target.plan.type) for row in words.tolist()]

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float, closing: float) -> None:
        self._walk.run(seeds, tallies, steps, power, closing)

    def resynchronize(self) -> None:
        self._walk.resynchronize()

    @property
    def score(self) -> float:
        return self._walk.score + self._elsewhere

    @property
    def outputs(self) -> list[Weights]:
        found = []
        for number, target in enumerate(self._targets):
            words, weights = self._walk.output(number)
            held = zip(self._decoded(words, target), weights.tolist(), strict=True)
            found.append({record: weight for record, weight in held if abs(weight) >= DUST})
        return found

    @property
    def memory(self) -> int:
        return self._walk.memory
