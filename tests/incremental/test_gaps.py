"""What the compiled engine has no rule for: CannotCompile with the place named, so that the python engine runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

import wpinq as wp
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, EdgeWalk, Goal, SwapWalk, expressions
from wpinq.engines.delta.compiled.values import ScalarCode
from wpinq.expr import build
from wpinq.expr.functions import PRIMITIVES
from wpinq.expr.nodes import Expr, Variable, make_lambda
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.node import Node
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Select
from wpinq.plan.operators.families import PerRecord

EDGES = wp.source("edges", src=int, dst=int).plan
START = [(1, 2), (3, 4), (5, 6), (7, 9)]
WALKS: dict[str, Callable[[Node], object]] = {
    "evaluator": lambda plan: CompiledEvaluator([plan], {"edges": {}}),
    "swaps": lambda plan: SwapWalk([Goal(plan, 1.0, {})], "edges", START),
    "edges": lambda plan: EdgeWalk([Goal(plan, 1.0, {})], "edges", START, []),
}


@dataclass(frozen=True, slots=True)
class _Halved(PerRecord):
    """An operator that no engine knows."""

    name: ClassVar[str] = "Halved"
    method: ClassVar[str] = "halved"

    def output_type(self, *inputs: Type) -> Type:
        return inputs[0]

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        return lambda record: ((record, 0.5),)


@pytest.mark.parametrize("walk", WALKS)
def test_an_operator_without_a_rule_is_named(walk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "Halved", _Halved)
    with pytest.raises(CannotCompile, match="step 2, Halved: it has no compiled rule; the python engine runs it"):
        WALKS[walk](Node(_Halved(), (EDGES,)))


@pytest.fixture
def divisors(monkeypatch: pytest.MonkeyPatch) -> Node:
    """The greatest common divisor of the ends, a primitive that no engine knows."""
    known = replace(PRIMITIVES["modulo"], name="gcd", implement=lambda attributes: math.gcd)
    monkeypatch.setitem(PRIMITIVES, "gcd", known)
    edge = Variable(EDGES.type, 0, "e")
    ends: list[Expr] = [build.call("field", edge, attributes=(at,)) for at in (0, 1)]
    return Node(Select(make_lambda((edge,), build.call("gcd", *ends))), (EDGES,))


def test_a_primitive_without_a_rule_is_computed_by_python_once_for_each_argument(
    interpreted_modules: None, divisors: Node
) -> None:
    data = {"edges": {(4, 6): 1.0, (9, 6): 1.0, (5, 7): 1.0}}
    engine, python = CompiledEvaluator([divisors], data), Evaluator([divisors], data)
    assert engine.outputs == python.outputs == [{2: 1.0, 3: 1.0, 1: 1.0}]
    walk = SwapWalk([Goal(divisors, 1.0, {1: 4.0})], "edges", START)
    assert not walk.specialised
    assert walk.run(50, 1.0).steps == 50


def _wrong(writer: Any, expr: Any, arguments: Any) -> ScalarCode:
    return ScalarCode("int", writer.bind("never_written(1)"))


def test_a_rule_that_numba_does_not_take_is_named(monkeypatch: pytest.MonkeyPatch, divisors: Node) -> None:
    monkeypatch.setitem(expressions._RULES, "gcd", _wrong)
    with pytest.raises(CannotCompile, match="numba does not take map_1, a routine generated for the plan: TypingError"):
        WALKS["evaluator"](divisors)


def test_a_record_too_wide_for_numba_is_refused_like_other_gaps() -> None:
    wide = wp.source("wide", **dict.fromkeys([f"f{i}" for i in range(16)], int))
    halves = wide.select(lambda r: tuple(r[i] // 2 for i in range(16))).plan  # 16 arguments with branches among them
    with pytest.raises(CannotCompile, match="numba does not take"):
        CompiledEvaluator([halves], {"wide": {tuple(range(16)): 1.0}})
