"""Plans whose last step gives each record another weight, public and by the record alone: a walk serves what is below.

`loss(w·x − v; width) = w · loss(x − v/w; width/w)`, so that goals of what is below say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.arrays import Floats
from wpinq.engines.incremental.compiled.neighbours.decomposition import OutOfReach
from wpinq.expr.nodes import Call
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT
from wpinq.plan.node import Node
from wpinq.plan.operators import SelectMany

_LEAST = 1e-100
"""Goals are divided by factors, and squared: by less they might overflow."""


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A plan without its last step, where that does no more than to scale weights.

    Attributes
    ----------
    plan : Node
        What the walk serves.
    last : SelectMany, optional
        The step that scales.
    """

    plan: Node
    last: SelectMany | None

    @staticmethod
    def of(plan: Node) -> Rescaled:
        """The plan without a step that scales, or all of it."""
        operator = plan.operator
        if isinstance(operator, SelectMany) and operator.weighted and operator.bound == 1:
            core = operator.function.core
            items = core.body.arguments if isinstance(core.body, Call) and core.body.name == "list" else ()
            elements = [item.arguments[0] for item in items if isinstance(item, Call) and item.name == "weighted"]
            if elements == [core.parameters[0]]:
                return Rescaled(plan.inputs[0], operator)
        return Rescaled(plan, None)

    def factors(self, records: Sequence[Value]) -> Floats:
        """What weight 1 of each record becomes; OutOfReach where that is next to nothing, or of another sign."""
        if self.last is None:
            return np.ones(len(records))
        images = self.last.images(FLOAT)
        found = np.array([sum(float(weight) for _, weight in images(record)) for record in records])
        if not np.all(found > _LEAST):
            raise OutOfReach("a record whose weight is dropped")
        return found
