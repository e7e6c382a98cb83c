"""Where a chain begins, and on which engine: compiled code where walk and plans allow it, else what they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import CannotCompile
from wpinq.errors import PlanError
from wpinq.expr.values import Value, order_key
from wpinq.synthesis.chain import Chain, GenericChain
from wpinq.synthesis.target import Target
from wpinq.synthesis.walks import EdgeMoves, Swaps, Walk

Start = Mapping[str, Mapping[Value, float] | NDArray[Any]]
"""Source name to weights, or to an array of undirected edges, each once."""


def begin(targets: Sequence[Target], walk: Walk, start: Start, seed: int, compiled: bool = True) -> Chain:
    """A chain on the fastest engine that can run it; its note says which, and why no faster one.

    Raises
    ------
    PlanError
        When targets, walk and start do not fit each other.
    """
    note = ""
    if compiled and isinstance(walk, (Swaps, EdgeMoves)):
        from wpinq.synthesis.compiled_chain import CompiledChain

        try:
            return CompiledChain(targets, walk, _edges(walk, start), seed)
        except CannotCompile as reason:
            note = f" ({reason})"
    candidate = {name: _weights(name, given, walk) for name, given in start.items()}
    if isinstance(walk, Swaps) and walk.closing:
        note += "; closing proposals need the compiled walk, so all swaps are drawn uniformly"
    if compiled and not note:
        try:
            return GenericChain(
                targets, walk, candidate, seed=seed, compiled=True, note="the compiled engine, a call a step"
            )
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
