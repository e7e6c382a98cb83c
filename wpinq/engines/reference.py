"""The reference engine: each operator's own meaning, node by node. The oracle of every other engine.

Over Fractions it is exact. Over floats sums and shares are correctly rounded, a product, a quotient and a norm round
once each, and what passes a weight on rounds nothing: within the `roundoffs` of each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source


def evaluate(
    root: Node,
    data: Mapping[str, Mapping[Value, Any]],
    arithmetic: Arithmetic = FLOAT,
    on_step: Callable[[str], None] | None = None,
) -> Weights:
    """The output of a plan on datasets given by source name.

    Parameters
    ----------
    root : Node
        The plan.
    data : mapping
        For each source name, record to weight.
    arithmetic : Arithmetic
        `EXACT` for rationals, `FLOAT` for floats.
    on_step : callable, optional
        Told the name of each operator before it runs; nothing else.
    """
    waiting: dict[bytes, int] = {}
    order = list(topological([root]))
    for node in order:
        for child in node.inputs:
            waiting[child.digest] = waiting.get(child.digest, 0) + 1
    outputs: dict[bytes, Weights] = {}
    for node in order:
        operator = node.operator
        if on_step is not None:
            on_step(operator.name)
        if isinstance(operator, Source):
            if operator.source not in data:
                raise PlanError(f"no data for the source {operator.source!r}")
            number = arithmetic.number
            outputs[node.digest] = {x: number(w) for x, w in data[operator.source].items() if w != 0}
        else:
            inputs = tuple(outputs[child.digest] for child in node.inputs)
            outputs[node.digest] = operator.evaluate(inputs, arithmetic)
        for child in node.inputs:  # free what nothing waits for: intermediate results dwarf the rest
            waiting[child.digest] -= 1
            if waiting[child.digest] == 0:
                del outputs[child.digest]
    return outputs[root.digest]
