"""Metropolis-Hastings chains of any walk, on the fastest engine that can run them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, EdgeWalk, SwapWalk, WalkProgress
from wpinq.engines.delta.compiled.hash_tables.evaluator import FloatWeights
from wpinq.errors import PlanError
from wpinq.expr.values import Value, order_key
from wpinq.mcmc.proposal import Dataset, EdgeMoves, Swaps, Walk
from wpinq.mcmc.target import Prior, Target
from wpinq.plan.format import value_from_json, value_to_json
from wpinq.plan.node import sources

#: The terms of a chain's score: targets, then priors, each with the negated log prior.
Terms = Sequence[Target | Prior]
#: All that a chain's future depends on, as named arrays.
ChainState = dict[str, NDArray[Any]]


class Chain(Protocol):
    """A Metropolis-Hastings chain over candidates.

    Its stationary distribution is `exp(−beta · score)`.

    Attributes
    ----------
    note : str
        Which engine runs it, and why no faster one does.
    """

    note: str

    def run(self, steps: int, beta: float, /) -> WalkProgress:
        """Run a number of steps at an inverse temperature, and return the progress."""

    @property
    def progress(self) -> WalkProgress:
        """The chain so far: steps, proposals that were evaluated, those accepted, and the score."""

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        """The current candidate."""

    @property
    def outputs(self) -> list[FloatWeights]:
        """The output of the plan of each target and prior on it."""

    def save(self) -> ChainState:
        """The state of the chain; `restore` continues from it exactly.

        It evaluates afresh, which ends the drift of floats. The place of a save is part of the chain's course, so save
        at given numbers of steps, not at given times.
        """

    def restore(self, state: ChainState) -> None:
        """Continue from the saved state of an equal chain."""


class GenericChain:
    """A chain of any walk.

    Parameters
    ----------
    targets : sequence of Target or Prior
        The targets of the candidate, and its priors.
    walk : Walk
        How it is changed.
    candidate : mapping
        Source name to dataset, where to begin. Public.
    seed : int
        Of numpy's generator.
    compiled : bool
        Whether to evaluate on `CompiledEvaluator` instead of the python engine.
    note : str
        See `Chain`.

    Raises
    ------
    CannotCompile
        When the compiled engine cannot run a plan.

    Notes
    -----
    Privacy cost: none; all that comes in is public. Source: paper, section 4.2.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.mcmc.proposal import ReplaceRecord
    >>> dice = wp.source("dice", int)
    >>> answers = wp.simulate(dice.noisy_count(epsilon=1, over=range(1, 7)), {"dice": [6] * 20}, seed=1)
    >>> chain = GenericChain([Target(answers)], ReplaceRecord("dice", tuple(range(1, 7))), {"dice": {1: 20.0}}, seed=1)
    >>> chain.run(3000, beta=100.0).steps
    3000
    >>> chain.candidate["dice"][6] > 15
    True
    """

    def __init__(
        self,
        targets: Terms,
        walk: Walk,
        candidate: Mapping[str, Mapping[Value, float]],
        *,
        seed: int = 0,
        compiled: bool = False,
        note: str = "the python engine",
    ) -> None:
        self.note = note
        self._targets, self._walk, self._compiled = tuple(targets), walk, compiled
        self._sources = sources([target.plan for target in targets])
        missing = [name for name in self._sources if name not in candidate]
        if missing:
            raise PlanError(f"the candidate lacks {', '.join(missing)}, which the targets' queries use")
        self._candidate = {name: Dataset(candidate[name]) for name in self._sources}
        self._rng = np.random.default_rng(seed)
        self._steps = self._evaluated = self._accepted = 0
        self._load()

    def run(self, steps: int, beta: float) -> WalkProgress:
        if steps < 0 or not beta >= 0:
            raise PlanError("a chain takes a number of steps and a beta, both at least 0")
        rng, scored = self._rng, self._scored
        for _ in range(steps):
            proposal = self._walk.propose(rng, self._candidate)
            if proposal is None:
                continue
            changes, log_ratio = proposal
            self._evaluated += 1
            before = scored.score
            scored.propose(changes)
            advantage = log_ratio + beta * (before - scored.score)
            if rng.random() < math.exp(min(0.0, advantage)):
                self._accepted += 1
                scored.commit()
                for name, moved in changes.items():
                    self._candidate[name].change(moved)
            else:
                scored.rollback()
        self._steps += steps
        return self.progress

    @property
    def progress(self) -> WalkProgress:
        return WalkProgress(self._steps, self._evaluated, self._accepted, self._scored.score)

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        return {name: dict(dataset) for name, dataset in self._candidate.items()}

    @property
    def outputs(self) -> list[FloatWeights]:
        return self._scored.outputs

    def save(self) -> ChainState:
        self._load()
        held = {
            name: [[value_to_json(record, self._sources[name].record), weight] for record, weight in dataset.items()]
            for name, dataset in self._candidate.items()
        }
        return {
            "candidate": _packed(held),
            "generator": _packed(self._rng.bit_generator.state),
            "tallies": np.array([self._steps, self._evaluated, self._accepted], dtype=np.int64),
        }

    def restore(self, state: ChainState) -> None:
        held = _unpacked(state["candidate"])
        self._candidate = {
            name: Dataset({value_from_json(record, source.record): weight for record, weight in held[name]})
            for name, source in self._sources.items()
        }
        self._rng.bit_generator.state = _unpacked(state["generator"])
        self._steps, self._evaluated, self._accepted = state["tallies"].tolist()
        self._load()

    def _load(self) -> None:
        """Evaluate the candidate afresh, in the order of its records."""
        plans, goals = [target.plan for target in self._targets], [target.goal for target in self._targets]
        make: type[CompiledEvaluator | Evaluator] = CompiledEvaluator if self._compiled else Evaluator
        self._scored = make(plans, self._candidate, goals=goals)


def _packed(data: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)


def _unpacked(array: NDArray[Any]) -> Any:
    return json.loads(array.tobytes().decode())


def compiled_walk(targets: Terms, walk: Swaps | EdgeMoves, edges: Any, seed: int) -> SwapWalk | EdgeWalk:
    """A chain of `Swaps` or `EdgeMoves` as one compiled loop, from undirected edges, each once.

    Raises
    ------
    CannotCompile
        When a plan has no integer form, or numba is not installed.
    PlanError
        When the edges are no simple graph, or the plans are not over the walk's source alone.
    """
    goals = [target.goal for target in targets]
    common: dict[str, Any] = {"symmetric": walk.symmetric, "seed": seed}
    if isinstance(walk, Swaps):
        guard: dict[str, Any] = {"places": walk.places, "reach": walk.reach}
        return SwapWalk(goals, walk.source, edges, closing=walk.triad_share, **guard, **common)
    return EdgeWalk(goals, walk.source, edges, walk.nodes, changing=walk.changing, **common)


# --- the start of a chain ---------------------------------------------------------------------------------------------

#: Source name to weights, or to an array of undirected edges, each once.
Start = Mapping[str, Mapping[Value, float] | NDArray[Any]]


def begin(targets: Terms, walk: Walk, start: Start, seed: int, compiled: bool = True) -> Chain:
    """A chain on the fastest engine that can run it; its note says which, and why no faster one.

    Raises
    ------
    PlanError
        When targets, walk and start do not fit each other.
    """
    note = ""
    if compiled and isinstance(walk, (Swaps, EdgeMoves)):
        try:
            return compiled_walk(targets, walk, _edges(walk, start), seed)
        except CannotCompile as reason:
            note = f" ({reason})"
    candidate = {name: _weights(name, given, walk) for name, given in start.items()}
    if isinstance(walk, Swaps) and walk.triad_share:
        note += "; closing proposals need the compiled walk, so all swaps are drawn uniformly"
    if compiled and not note:
        named = "the compiled engine, a call a step"
        try:
            return GenericChain(targets, walk, candidate, seed=seed, compiled=True, note=named)
        except CannotCompile as reason:
            note = f" ({reason})"
    return GenericChain(targets, walk, candidate, seed=seed, note=f"the python engine{note}")


def _edges(walk: Swaps | EdgeMoves, start: Start) -> Any:
    given = start.get(walk.source)
    if given is None:
        raise PlanError(f"the start lacks the source {walk.source!r}, which the walk moves")
    if not isinstance(given, Mapping):
        return given
    if any(weight != 1 for weight in given.values()):
        raise PlanError("a walk over edges starts from edges of weight 1")
    if not walk.symmetric:
        return list(given)
    if any(edge[::-1] not in given for edge in given):
        raise PlanError("a walk over symmetric edges starts from edges that stand in both directions")
    return [edge for edge in given if order_key(edge[0]) < order_key(edge[1])]


def _weights(name: str, given: Mapping[Value, float] | NDArray[Any], walk: Walk) -> dict[Value, float]:
    if isinstance(given, Mapping):
        return dict(given)
    if not (isinstance(walk, (Swaps, EdgeMoves)) and walk.source == name):
        raise PlanError(f"only the source of edges that a walk moves starts from an array, not {name!r}")
    edges = [(a, b) if order_key(a) < order_key(b) else (b, a) for a, b in given.tolist()]
    if walk.symmetric:
        edges += [(b, a) for a, b in edges]
    return dict.fromkeys(edges, 1.0)
