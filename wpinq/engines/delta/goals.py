"""Goals: the answers that the output of a plan is to fit, and the loss of a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node


def loss(difference: Annotated[float, "float64"], width: Annotated[float, "float64"]) -> Annotated[float, "float64"]:
    """`u²/(2w)` where |u| is below the width w, else `|u| − w/2`: the absolute value, rounded at its corner.

    Source: Huber, Ann. Math. Stat. 1964. The compiled engine takes its source as it stands.

    Examples
    --------
    >>> [loss(u, 1.0) for u in (-3.0, 1.0, 0.5)], [loss(u, 0.0) for u in (-3.0, 1.0, 0.5)]
    ([2.5, 0.5, 0.125], [3.0, 1.0, 0.5])
    """
    size = abs(difference)
    return size * size / (2.0 * width) if size < width else size - 0.5 * width


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
