"""The golden table, run through the reference engine and through compiled functions directly."""

from __future__ import annotations

import pytest

import wpinq as wp
from tests.expressions.golden import GOLDEN, WEIGHTED, Case
from wpinq.expr.catalogue import FUNCTIONS, OPERATORS
from wpinq.expr.compile import compile_iterator, compile_lambda
from wpinq.expr.functions import PRIMITIVES
from wpinq.expr.logical_values import presenter
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import ListOf
from wpinq.expr.values import canonical_bytes, check_canonical, normalize
from wpinq.language.public_values import LITERALS
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.operators import Select

PER_RECORD = pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)


def traced(case: Case) -> Lambda:
    operator = case.source().select(case.function).plan.operator
    assert isinstance(operator, Select)
    return operator.function


@PER_RECORD
def test_the_reference_engine_gives_the_output(case: Case) -> None:
    output = wp.evaluate(case.source().select(case.function), {"given": {case.given: 1.0}}, engine="reference")
    assert repr(dict(output)) == repr({case.output: 1.0})  # by repr: 1, 1.0 and True are equal in Python


@PER_RECORD
def test_the_compiled_function_gives_a_value_of_its_type(case: Case) -> None:
    function = traced(case)
    value = compile_lambda(function)(normalize(case.given, case.source().plan.type))
    assert repr(presenter(function.type)(value)) == repr(case.output)
    assert repr(check_canonical(value, function.type)) == repr(value), "canonical, and null only where the type says so"
    assert normalize(case.output, function.type) == value
    assert canonical_bytes(value, function.type) == canonical_bytes(
        normalize(case.output, function.type), function.type
    )
    if isinstance(function.type, ListOf) and case.output is not None:
        lazily = compile_iterator(function)(normalize(case.given, case.source().plan.type))
        assert repr(presenter(function.type)(tuple(lazily))) == repr(case.output)


@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case.name)
def test_the_elements_of_a_list_share_the_weight(case: Case) -> None:
    query = case.source().select_many(case.function, limit=1000)
    assert dict(wp.evaluate(query, {"given": {case.given: 1.0}})) == case.output


@pytest.mark.parametrize("case", GOLDEN + WEIGHTED, ids=lambda case: case.name)
def test_an_engine_sees_primitives_only(case: Case) -> None:
    function = (
        case.source().select_many(case.function, limit=9).plan.operator.function if case in WEIGHTED else traced(case)
    )
    calls = [node for node in walk(function.core) if isinstance(node, Call)]
    assert all(node.lowered is None for node in calls)
    assert {node.name for node in calls} <= PRIMITIVES.keys()


@pytest.mark.parametrize("case", GOLDEN[::3], ids=lambda case: case.name)
def test_a_file_keeps_the_function(case: Case) -> None:
    plan = case.source().select(case.function).plan
    again = plan_from_json(plan_to_json(plan))
    assert again == plan
    assert repr(again.type) == repr(plan.type)
    value = compile_lambda(again.operator.function)(normalize(case.given, case.source().plan.type))
    assert repr(presenter(again.type)(value)) == repr(case.output)


def test_the_table_covers_every_function_and_every_primitive() -> None:
    written: set[str] = set()
    lowered: set[str] = set()
    for case in GOLDEN:
        written |= {node.name for node in walk(traced(case)) if isinstance(node, Call)}
        lowered |= {node.name for node in walk(traced(case).core) if isinstance(node, Call)}
    for case in WEIGHTED:
        function = case.source().select_many(case.function, limit=9).plan.operator.function
        written |= {node.name for node in walk(function) if isinstance(node, Call)}
        lowered |= {node.name for node in walk(function.core) if isinstance(node, Call)}
    assert FUNCTIONS.keys() - set(LITERALS) <= written, "what a text makes a constant of is no call"
    assert OPERATORS.keys() <= written
    assert lowered == PRIMITIVES.keys()


def test_each_case_has_its_own_name() -> None:
    names = [case.name for case in GOLDEN]
    assert len(set(names)) == len(names) > 500
