"""Walks over graphs by swaps that preserve every degree, scored against answers, inside compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled.adjacency import Closed, generate
from wpinq.engines.incremental.compiled.columns import Dictionary
from wpinq.engines.incremental.compiled.evaluator import CompiledEvaluator, Weights
from wpinq.engines.incremental.compiled.neighbours import NeighbourWalk
from wpinq.engines.incremental.compiled.runtime import DUST
from wpinq.engines.incremental.compiled.steps import lower
from wpinq.engines.incremental.compiled.tables import Words
from wpinq.errors import PlanError
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node, sources

Edge = tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan's output is to come close to: `epsilon · Σ_x |Q(x) − values[x]|` over the domain, its keys.

    `outside` is whether weight on records outside the domain counts too, against 0.
    """

    plan: Node
    epsilon: float
    values: Mapping[Value, float]
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """A walk so far: steps, proposals that were evaluated, those accepted, and the score."""

    steps: int
    evaluated: int
    accepted: int
    score: float


class SwapWalk:
    """A Metropolis-Hastings walk over simple graphs with given degrees.

    A step draws two edges and exchanges ends: {a, b}, {c, d} become {a, d}, {c, b} or {a, c}, {d, b}. Loops and
    edges that are there already are refused. The new graph is kept with probability
    `min(1, exp(power · (score before − score after)))`, `score = Σ_i epsilon_i · ‖Q_i − values_i‖`.

    Parameters
    ----------
    targets : sequence of Target
        What the graph is to fit, all over one source of edges. Public: answers, never protected data.
    source : str
        The name of that source, whose records are two fields of one type.
    edges : sequence of pairs
        The undirected edges to start from, each once; no loops.
    symmetric : bool
        Whether the source holds each edge in both directions, as the recipes expect, or as it is given here.
    seed : int
        Two walks with one seed and one chunking do the same.
    virtual : bool
        See `CompiledEvaluator`.

    Raises
    ------
    CannotCompile
        When a plan has no integer form, or numba is not installed.
    PlanError
        When the source is not one of edges, or the edges are not a simple graph.

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
        edges: Sequence[Edge],
        *,
        symmetric: bool = True,
        seed: int = 0,
        virtual: bool = True,
    ) -> None:
        plans = [target.plan for target in targets]
        type_ = sources(plans)[source].record if source in sources(plans) else None
        if not (isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]):
            raise PlanError(f"a walk by swaps needs a source of two fields of one type; {source!r} is not one here")
        if len(edges) < 2 or len({frozenset(edge) for edge in edges}) < len(edges) or any(a == b for a, b in edges):
            raise PlanError("a walk by swaps starts from two edges or more, each once, and no loops")
        self._type, self._plans = type_, plans
        self._walk = _begin(targets, source, edges, type_, symmetric, virtual)
        mixed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._seeds: NDArray[np.uint64] = np.ascontiguousarray(mixed | np.array([1, 0], dtype=np.uint64))
        self._tallies = np.zeros(3, dtype=np.int64)

    def run(self, steps: int, power: float) -> Progress:
        """Do so many steps at this power; the walk so far. Other threads run meanwhile."""
        if steps < 0 or not power >= 0:
            raise PlanError("a walk takes a number of steps and a power, both at least 0")
        self._walk.run(self._seeds, self._tallies, steps, float(power))
        return self.progress

    @property
    def specialised(self) -> bool:
        """Whether the plan allowed the loop over neighbour lists (see `adjacency`); tables serve all others."""
        return isinstance(self._walk, _Lists)

    @property
    def progress(self) -> Progress:
        """The walk so far."""
        accepted, done = int(self._tallies[1]), int(self._tallies[2])
        return Progress(done, int(self._tallies[0]), accepted, self._walk.score)

    @property
    def edges(self) -> list[Edge]:
        """The graph as it is, each edge once."""
        return self._walk.edges

    @property
    def outputs(self) -> list[Weights]:
        """The output of each plan on the graph as it is."""
        return self._walk.outputs

    @property
    def memory(self) -> int:
        """The bytes of the walk's arrays."""
        return self._walk.memory

    def resynchronize(self) -> None:
        """Evaluate afresh, which ends the drift of weights."""
        self._walk.resynchronize()


class _Tables:
    """A walk over the tables of a `CompiledEvaluator`."""

    def __init__(
        self, targets: Sequence[Target], source: str, edges: Sequence[Edge], type_: Type, symmetric: bool, virtual: bool
    ) -> None:
        both = [(a, b) for a, b in edges] + ([(b, a) for a, b in edges] if symmetric else [])
        self._evaluator = CompiledEvaluator(
            [target.plan for target in targets], {source: dict.fromkeys(both, 1.0)}, virtual=virtual, walk=source
        )
        self._evaluator.set_targets([(t.epsilon, t.values, t.outside) for t in targets])
        self._edges, self._type, self._symmetric = self._evaluator.encode(edges, type_), type_, symmetric

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float) -> None:
        self._evaluator.swap(self._edges, seeds, tallies, self._symmetric, steps, power)

    def resynchronize(self) -> None:
        self._evaluator.resynchronize()

    @property
    def score(self) -> float:
        return self._evaluator.score

    @property
    def edges(self) -> list[Edge]:
        return self._evaluator.decode(self._edges, self._type)

    @property
    def outputs(self) -> list[Weights]:
        return self._evaluator.outputs

    @property
    def memory(self) -> int:
        return self._evaluator.memory + self._edges.nbytes


class _Lists:
    """A walk over neighbour lists."""

    def __init__(
        self, target: Target, closed: Closed, dictionary: Dictionary, edges: Sequence[Edge], type_: Type
    ) -> None:
        self._dictionary, self._type = dictionary, type_
        self._record = dictionary.decode([int(text.strip("()")) for text in closed.output], target.plan.type)
        values = dict(target.values)
        inside = self._record in values
        self._elsewhere = target.epsilon * sum(abs(value) for key, value in values.items() if key != self._record)
        price = target.epsilon if inside or target.outside else 0.0
        words = dictionary.encode_all(edges, type_)
        self._walk = NeighbourWalk(closed, words, float(values.get(self._record, 0.0)), float(price))

    def run(self, seeds: NDArray[np.uint64], tallies: Words, steps: int, power: float) -> None:
        self._walk.run(seeds, tallies, steps, power)

    def resynchronize(self) -> None:
        self._walk.resynchronize()

    @property
    def score(self) -> float:
        return self._walk.score + self._elsewhere

    @property
    def edges(self) -> list[Edge]:
        return [self._dictionary.decode(row, self._type) for row in self._walk.edges.tolist()]

    @property
    def outputs(self) -> list[Weights]:
        output = self._walk.output
        return [{self._record: output} if abs(output) >= DUST else {}]

    @property
    def memory(self) -> int:
        return self._walk.memory


def _begin(
    targets: Sequence[Target], source: str, edges: Sequence[Edge], type_: Type, symmetric: bool, virtual: bool
) -> _Tables | _Lists:
    if virtual and symmetric and len(targets) == 1:
        dictionary = Dictionary()
        closed = generate(lower([targets[0].plan], dictionary), source)
        if closed is not None:
            return _Lists(targets[0], closed, dictionary, edges, type_)
    return _Tables(targets, source, edges, type_, symmetric, virtual)
