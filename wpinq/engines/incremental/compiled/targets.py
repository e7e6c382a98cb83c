"""What a walk is scored against, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wpinq.expr.values import Value
from wpinq.plan.node import Node


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
