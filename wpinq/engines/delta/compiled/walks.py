"""Walks over graphs: random numbers, tallies, progress and state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.adjacency.decomposition import OutOfReach
from wpinq.engines.delta.compiled.adjacency.graph import Edges, Graph, Numbers, Vertices, numbered
from wpinq.engines.delta.compiled.adjacency.state import NeighbourWalk
from wpinq.engines.delta.compiled.hash_tables.evaluator import CompiledEvaluator, FloatWeights
from wpinq.engines.delta.compiled.hash_tables.generation import ExtraLoops
from wpinq.engines.delta.compiled.values import Dictionary, Rows
from wpinq.engines.delta.compiled.walk_loops import edge_loop, swap_loop
from wpinq.engines.delta.evaluator import Goal
from wpinq.errors import PlanError
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.node import sources
from wpinq.runtime.arrays import Floats, Integers

#: A walk at rest: its edges by label, its random numbers, and its tallies. `numpy.savez` keeps it.
WalkState = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class WalkProgress:
    """A walk so far: steps, proposals that were evaluated, those accepted, and the score."""

    steps: int
    evaluated: int
    accepted: int
    score: float


def vertex_type(goals: Sequence[Goal], source: str) -> Type:
    """The type of the vertices of a source of edges."""
    known = sources([goal.plan for goal in goals])
    type_ = known[source].record if source in known else None
    if len(known) != 1 or not (
        isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]
    ):
        raise PlanError(f"a walk needs plans over one source, of two fields of one type; {source!r} is not one here")
    return type_.elements[0]


#: Of one call: loops number steps in 32 bits.
MOST_STEPS = 1 << 30


class GraphWalk(ABC):
    """A walk over graphs, by swaps (`SwapWalk`) or over single edges (`EdgeWalk`).

    `_engine` keeps the outputs up to date.
    """

    note = "the compiled engine, a chunk a call"
    _engine: CompiledEvaluator | NeighbourWalk

    def __init__(
        self, goals: Sequence[Goal], source: str, vertices: Vertices, symmetric: bool, virtual: bool, seed: int
    ) -> None:
        for goal in goals:
            goal.check()
        self._goals, self._source, self._vertices = tuple(goals), source, vertices
        self._symmetric, self._virtual = symmetric, virtual
        mixed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._seeds: NDArray[np.uint64] = rt.apart(mixed | np.array([1, 0], dtype=np.uint64))
        self._tallies: Integers = rt.apart(np.zeros(5, dtype=np.int64))

    def run(self, steps: int, power: float) -> WalkProgress:
        """Do so many steps at this power, and return the walk so far; other threads run meanwhile."""
        if steps < 0 or not 0 <= power < math.inf:
            raise PlanError("a walk takes a number of steps and a finite power, both at least 0")
        for start in range(0, steps, MOST_STEPS):
            self._run(min(MOST_STEPS, steps - start), float(power))
        return self.progress

    @property
    def progress(self) -> WalkProgress:
        """The walk so far."""
        evaluated, accepted, done = self._tallies[:3].tolist()
        return WalkProgress(done, evaluated, accepted, self._engine.score)

    @property
    def outputs(self) -> list[FloatWeights]:
        """The output of each plan on the graph as it is."""
        return self._engine.outputs

    @property
    def edges(self) -> list[tuple[Value, Value]]:
        """The graph as it is, each edge once."""
        return [(a, b) for a, b in self.edge_array.tolist()]

    @property
    def edge_array(self) -> NDArray[Any]:
        """The current edges, an array of shape (edges, 2): integers if vertices are, else objects."""
        return self._vertices.named(self._numbers())

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        """The dataset of the source."""
        edges = self.edges
        if self._symmetric:
            edges += [(b, a) for a, b in edges]
        return {self._source: dict.fromkeys(edges, 1.0)}

    @property
    def memory(self) -> int:
        """The bytes of the arrays that keep the outputs up to date."""
        return self._engine.memory

    def save(self) -> dict[str, NDArray[Any]]:
        """The state for `restore`.

        The walk is evaluated afresh, so that both go on from the same bits.

        Returns
        -------
        dict
            `edges`, shape (edges, 2), integers or strings; `random`, the random numbers; `tallies`: proposals that
            were evaluated, those accepted, and steps.

        Raises
        ------
        PlanError
            When the vertices are neither integers nor strings.
        """
        edges = self.edge_array
        if self._vertices.type == STR and not any(str(end).endswith("\0") for end in edges.reshape(-1)):
            edges = edges.astype(str)
        elif self._vertices.type != INT:
            raise PlanError("the state of a walk is kept for vertices that are integers or strings; number the others")
        if self._tallies[2]:  # before the first step all is fresh
            self.resynchronize()
        return {"edges": edges, "random": self._seeds.copy(), "tallies": self._tallies[:3].copy()}

    def restore(self, state: WalkState) -> None:
        """Go on as the walk does whose state was saved, to the last bit, where both began alike."""
        self._seeds[:], self._tallies[:3] = state["random"], state["tallies"]
        vertices = self._vertices
        self._begin(numbered(state["edges"], vertices.type, 0, vertices.labels.tolist())[1])

    @abstractmethod
    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights."""

    def _tables(self, loop: ExtraLoops, edges: Numbers) -> CompiledEvaluator:
        """The outputs on a graph, by hash tables."""
        dictionary = Dictionary()
        self._labels = self._vertices.words(dictionary)
        pairs = np.sort(edges, axis=1)
        if self._symmetric:
            pairs = np.concatenate([pairs, pairs[:, ::-1]])
        words: Integers = self._labels[pairs].reshape(len(pairs), 2 * self._labels.shape[1])
        given = {self._source: Rows(words, np.ones(len(words)))}
        options: dict[str, Any] = {"virtual": self._virtual, "dictionary": dictionary, "goals": self._goals}
        return CompiledEvaluator([goal.plan for goal in self._goals], given, loop=loop, **options)

    @abstractmethod
    def _begin(self, numbers: Numbers) -> None:
        """Begin from these edges."""

    @abstractmethod
    def _run(self, steps: int, power: float) -> None: ...

    @abstractmethod
    def _numbers(self) -> Numbers:
        """The edges by number."""


# Walks over graphs inside compiled code, by swaps, or by replacing and adding edges.


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
    places, reach : array, optional
        The place of each vertex, which are numbers 0, 1, … or texts of these, of shape (vertices, dimensions), and
        distances, rising: a swap that changes the number of edges longer than one of these is refused.

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
        places: Floats | None = None,
        reach: Floats | None = None,
    ) -> None:
        if not 0 <= closing < 1:
            raise PlanError("closing is a share of proposals, at least 0 and less than 1")
        vertices, numbers = numbered(edges, vertex_type(goals, source), 2)
        super().__init__(goals, source, vertices, symmetric, virtual, seed)
        self._closing = float(closing)
        placed = np.zeros((len(vertices), 0)) if places is None else places[vertices.labels.astype(np.int64)]
        self._guard = placed, np.zeros(0) if reach is None else reach
        self._begin(numbers)

    @property
    def specialised(self) -> bool:
        """Whether the walk runs over neighbour lists (see `adjacency`); tables serve all others."""
        return isinstance(self._engine, NeighbourWalk)

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights.

        Neighbour lists follow the order of the edges again.
        """
        if isinstance(self._engine, NeighbourWalk):
            self._engine.resynchronize()
        else:
            self._begin(self._graph.edges)

    def _begin(self, numbers: Numbers) -> None:
        self._graph = Graph(self._vertices, numbers, *self._guard)
        self._engine = self._neighbours() or self._tables(swap_loop, numbers)

    def _neighbours(self) -> NeighbourWalk | None:
        try:
            return NeighbourWalk(self._goals, self._source, self._symmetric, self._graph) if self._virtual else None
        except OutOfReach:
            return None

    def _run(self, steps: int, power: float) -> None:
        engine = self._engine
        if isinstance(engine, NeighbourWalk):
            engine.run(self._seeds, self._tallies, steps, power, self._closing)
            return
        fixed = (self._labels, self._seeds, self._tallies, int(self._symmetric))

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

    _engine: CompiledEvaluator

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

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights."""
        self._begin(self._numbers())

    def _begin(self, numbers: Numbers) -> None:
        count = len(numbers)
        self._tallies[3] = count
        self._edges = np.zeros((max(64, count + count // 4), 2), dtype=np.uint32)
        self._edges[:count] = numbers
        self._engine = self._tables(edge_loop, numbers)

    def _run(self, steps: int, power: float) -> None:
        def run(module: ModuleType, words: Integers, steps: int) -> None:
            fixed = (self._labels, self._seeds, self._tallies, int(self._symmetric))
            module.edge_chunk(words, self._edges, *fixed, steps, power, self._changing)
            if self._tallies[4]:  # no room for another edge
                self._tallies[4] = 0
                self._edges = np.concatenate([self._edges, np.zeros_like(self._edges)])

        self._engine.walk(run, self._tallies, steps)

    def _numbers(self) -> Numbers:
        return self._edges[: int(self._tallies[3])].copy()
