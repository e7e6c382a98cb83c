"""What walks over graphs have in common: random numbers, tallies, progress and state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers
from wpinq.engines.incremental.compiled.neighbours.graph import Numbers, Vertices
from wpinq.engines.incremental.compiled.neighbours.state import NeighbourWalk
from wpinq.engines.incremental.compiled.routines.machine import apart
from wpinq.engines.incremental.compiled.tables.compiled_evaluator import CompiledEvaluator, FloatWeights
from wpinq.engines.incremental.compiled.walks.table_loops import WalkLoops
from wpinq.engines.incremental.compiled.words.encoding import Dictionary, Rows
from wpinq.engines.incremental.goals import Goal
from wpinq.errors import PlanError
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.node import sources

WalkState = Mapping[str, NDArray[Any]]
"""A walk at rest: its edges by label, its random numbers, and its tallies. `numpy.savez` keeps it."""


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


MOST_STEPS = 1 << 30
"""Of one call: loops number steps in 32 bits."""


class GraphTables(CompiledEvaluator):
    """A compiled evaluator whose candidate is a graph."""

    def __init__(
        self,
        goals: Sequence[Goal],
        loops: WalkLoops,
        vertices: Vertices,
        edges: Numbers,
        symmetric: bool,
        virtual: bool,
    ) -> None:
        dictionary = Dictionary()
        self.labels = vertices.words(dictionary)
        pairs = np.sort(edges, axis=1)
        if symmetric:
            pairs = np.concatenate([pairs, pairs[:, ::-1]])
        words: Integers = self.labels[pairs].reshape(len(pairs), 2 * self.labels.shape[1])
        super().__init__(
            [goal.plan for goal in goals],
            {loops.source: Rows(words, np.ones(len(words)))},
            virtual=virtual,
            walk=loops,
            dictionary=dictionary,
            goals=goals,
        )

    @property
    def memory(self) -> int:
        """The bytes of the arrays."""
        return super().memory + self.labels.nbytes


class GraphWalk(ABC):
    """A walk over graphs: see `SwapWalk` and `EdgeWalk`. `_engine` keeps the outputs up to date."""

    _engine: GraphTables | NeighbourWalk

    def __init__(
        self, goals: Sequence[Goal], source: str, vertices: Vertices, symmetric: bool, virtual: bool, seed: int
    ) -> None:
        for goal in goals:
            goal.check()
        self._goals, self._source, self._vertices = tuple(goals), source, vertices
        self._symmetric, self._virtual = symmetric, virtual
        mixed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._seeds: NDArray[np.uint64] = apart(mixed | np.array([1, 0], dtype=np.uint64))
        self._tallies: Integers = apart(np.zeros(5, dtype=np.int64))

    def run(self, steps: int, power: float) -> WalkProgress:
        """Do so many steps at this power; the walk so far. Other threads run meanwhile."""
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
        return self._vertices.named(self._numbers())

    @property
    def edge_array(self) -> NDArray[Any]:
        """The graph as it is, an array of shape (edges, 2): of integers where the vertices are, else of objects."""
        return self._vertices.array(self._numbers())

    def state(self) -> dict[str, NDArray[Any]]:
        """What `restore` takes. The walk is evaluated afresh, so that both go on from the same bits.

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
        self.resynchronize()
        return {"edges": edges, "random": self._seeds.copy(), "tallies": self._tallies[:3].copy()}

    @classmethod
    def restore(cls, goals: Sequence[Goal], source: str, state: WalkState, *given: Any, **options: Any) -> Self:
        """The walk that gave this `state`, going on as it does, to the last bit, with the same other arguments."""
        type_ = vertex_type(goals, source)
        edges = state["edges"] if type_ == INT else state["edges"].tolist()
        walk = cls(goals, source, edges, *given, **options)  # type: ignore[arg-type]
        walk._seeds[:] = state["random"]
        walk._tallies[:3] = state["tallies"]
        return walk

    @abstractmethod
    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights."""

    def _tables(self, loops: WalkLoops, edges: Numbers) -> GraphTables:
        return GraphTables(self._goals, loops, self._vertices, edges, self._symmetric, self._virtual)

    @abstractmethod
    def _run(self, steps: int, power: float) -> None: ...

    @abstractmethod
    def _numbers(self) -> Numbers:
        """The edges by number."""
