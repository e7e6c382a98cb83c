"""A chain over graphs that never leaves compiled code within a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import EdgeWalk, SwapWalk, WalkProgress
from wpinq.engines.incremental.compiled.tables.compiled_evaluator import FloatWeights
from wpinq.synthesis.chain import ChainState
from wpinq.synthesis.target import Target
from wpinq.synthesis.walks import EdgeMoves, Swaps


class CompiledChain:
    """A chain of `Swaps` or `EdgeMoves` as one compiled loop. It is a `Chain`.

    Parameters
    ----------
    targets : sequence of Target
        What the graph is to fit, all over the walk's source.
    walk : Swaps or EdgeMoves
        How it is changed.
    edges : sequence of pairs, or array of shape (edges, 2)
        The undirected edges to begin from, each once.
    seed : int
        Of the walk's random numbers.

    Raises
    ------
    CannotCompile
        When a plan has no integer form, or numba is not installed.
    PlanError
        When the edges are no simple graph, or the plans are not over the walk's source alone.
    """

    def __init__(self, targets: Sequence[Target], walk: Swaps | EdgeMoves, edges: Any, seed: int) -> None:
        self._rule = walk
        self._goals = [target.goal for target in targets]
        self._kind, self._given, own = _arguments(walk)
        self._options = {"symmetric": walk.symmetric, **own}
        self._walk: SwapWalk | EdgeWalk = self._kind(
            self._goals, walk.source, edges, *self._given, seed=seed, **self._options
        )
        self.note = "the compiled engine, a chunk a call"

    def run(self, steps: int, power: float) -> WalkProgress:
        return self._walk.run(steps, power)

    @property
    def progress(self) -> WalkProgress:
        return self._walk.progress

    @property
    def candidate(self) -> dict[str, FloatWeights]:
        edges: list[Any] = list(self._walk.edges)
        if self._rule.symmetric:
            edges += [(b, a) for a, b in edges]
        return {self._rule.source: dict.fromkeys(edges, 1.0)}

    @property
    def edge_array(self) -> NDArray[Any]:
        """The graph as it is: each undirected edge once, shape (edges, 2)."""
        return self._walk.edge_array

    @property
    def outputs(self) -> list[FloatWeights]:
        return self._walk.outputs

    def save(self) -> ChainState:
        return self._walk.state()

    def restore(self, state: ChainState) -> None:
        self._walk = self._kind.restore(self._goals, self._rule.source, state, *self._given, **self._options)


def _arguments(walk: Swaps | EdgeMoves) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What does a walk, `SwapWalk` or `EdgeWalk`, and what it takes besides what both take."""
    if isinstance(walk, Swaps):
        return SwapWalk, (), {"closing": walk.closing}
    return EdgeWalk, (walk.nodes,), {"changing": walk.changing}
