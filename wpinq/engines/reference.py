"""The reference engine: each operator's own meaning, node by node; the oracle of all others.

Over Fractions it is exact. Over floats sums and shares are correctly rounded, a product, a quotient and a norm round
once each, and what passes a weight on rounds nothing: within the `rounding_units` of each operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.columns.storage import StoredColumns
from wpinq.engines.contract import D, Engine, OnStep, WantedRanges, at_keys
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.node import Node, topological
from wpinq.plan.operators.source import Source


def evaluate(
    root: Node, data: Mapping[str, Mapping[Value, Any]], arithmetic: Arithmetic = FLOAT, on_step: OnStep = None
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
    order = list(topological([root]))
    waiting = Counter(child.digest for node in order for child in node.inputs)
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


class Reference(Engine):
    """The engine of the reference semantics, which keeps no data.

    Of outputs it keeps the last that was evaluated for keys.
    """

    name = "reference"

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        if memory_limit is not None or threads is not None:
            raise PlanError('the engine "reference" has no memory_limit and no threads; engine="duckdb" has both')
        self._last: tuple[Node, str, Mapping[str, Any], Weights] | None = None

    @staticmethod
    def check(root: Node) -> None:
        """It runs every plan."""

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic = FLOAT,
        on_step: OnStep = None,
        keys: Sequence[Value] | None = None,
        within: WantedRanges = (),
    ) -> Weights:
        """The output of a plan: see the contract."""
        if keys is None:
            return evaluate(root, data, arithmetic, on_step)
        last = self._last
        known = last is not None and last[:2] == (root, arithmetic.name)
        if last is None or not known or any(last[2].get(name) is not held for name, held in data.items()):
            last = self._last = root, arithmetic.name, dict(data), evaluate(root, data, arithmetic, on_step)
        return at_keys(last[3], keys)

    def keep(self, checked: D) -> D | dict[Value, float]:
        """The rows themselves, which it computes with."""
        return dict(checked.items()) if isinstance(checked, StoredColumns) else checked

    def forget(self, name: str) -> None:
        if self._last is not None and name in self._last[2]:
            self._last = None

    def close(self) -> None:
        self._last = None
