"""What the output of a plan is to come close to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wpinq.engines.incremental.loss import loss
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.erasure import physical_plan
from wpinq.plan.node import Node


@dataclass(frozen=True, slots=True)
class Goal:
    """`epsilon · Σ_x loss(Q(x) − values[x])` over the domain, the keys of values, is to be small.

    `outside` is whether weight on records outside the domain counts too, against 0; `width` is that of `loss`, which is
    the absolute value without one.
    """

    plan: Node
    epsilon: float
    values: Mapping[Value, float]
    outside: bool = False
    width: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", physical_plan(self.plan))

    def check(self) -> None:
        """Raise PlanError where the price or the width is negative or not finite."""
        if not (0 <= self.epsilon < math.inf and 0 <= self.width < math.inf):
            raise PlanError(
                f"the price of a unit of distance and the width must be finite and at least 0, "
                f"not {self.epsilon!r} and {self.width!r}"
            )

    def cost(self, difference: float) -> float:
        """What a difference costs: `epsilon · loss`."""
        return self.epsilon * loss(difference, self.width)

    def score(self, output: Mapping[Value, float]) -> float:
        """What all the differences of an output cost."""
        distance = math.fsum(self.cost(output.get(record, 0.0) - value) for record, value in self.values.items())
        if self.outside:
            distance += math.fsum(self.cost(weight) for record, weight in output.items() if record not in self.values)
        return distance
