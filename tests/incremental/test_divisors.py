"""Lists with a divisor: candidates that change weigh what the reference says, in Python and in generated code."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CompiledEvaluator
from wpinq.expr.trace import trace
from wpinq.plan.arithmetic import FLOAT
from wpinq.plan.node import Node
from wpinq.plan.operators import SelectMany

NUMBERS = wp.source("numbers", int)
LISTS = {
    "of any length": lambda x: F.range(0, x, limit=7),
    "with repeats": lambda x: F.map(F.range(0, x, limit=7), lambda i: i % 2),
    "filtered": lambda x: F.filter(F.range(0, x, limit=7), lambda i: i > 1),
    "written": lambda x: [x, x + 1, x],
}


@for_each("name, limit, divisor", [(name, *each) for name in LISTS for each in ((None, 7), (2, 50), (None, 3))])
def test_a_divisor_along_changes(interpreted_modules: None, name: str, limit: int | None, divisor: int) -> None:
    rng = Random(1)
    plan = Node(SelectMany(trace(LISTS[name], (NUMBERS.plan.type,)), limit, divisor), (NUMBERS.plan,))
    held: dict[Any, float] = dict.fromkeys((0, 1, 3, 7), 1.0)
    evaluators = [kind([plan], {"numbers": dict(held)}) for kind in (Evaluator, CompiledEvaluator)]
    for _ in range(5):
        change = {rng.randrange(9): 1.0, rng.choice([x for x in held if held[x]]): -1.0}
        held = {x: held.get(x, 0.0) + change.get(x, 0.0) for x in {*held, *change}}
        wanted = reference.evaluate(plan, {"numbers": {x: w for x, w in held.items() if w}}, FLOAT)
        for evaluator in evaluators:
            evaluator.propose({"numbers": change})
            evaluator.commit()
            (output,) = evaluator.outputs
            for record in {*output, *wanted}:
                assert output.get(record, 0.0) == pytest.approx(wanted.get(record, 0.0), abs=1e-9)
