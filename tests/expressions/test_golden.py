"""The golden table, run through the reference engine and through compiled functions directly."""

from __future__ import annotations

from itertools import groupby

import pytest

import wpinq as wp
from tests.expressions.golden import GOLDEN, WEIGHTED, Case
from tests.support.parameters import for_each
from wpinq.expr.catalogue import FUNCTIONS, OPERATORS
from wpinq.expr.compile import compile_lambda
from wpinq.expr.functions import PRIMITIVES
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import type_from_annotation
from wpinq.expr.values import canonical_bytes, check_canonical, normalize, presenter
from wpinq.language.public_values import LITERALS
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.operators import Select, SelectMany

TABLE = [list(cases) for _, cases in groupby(GOLDEN, key=lambda case: (case.group, id(case.function)))]
PER_FUNCTION = pytest.mark.parametrize("cases", TABLE, ids=lambda cases: cases[0].name)


def traced(case: Case) -> Lambda:
    operator = (case.source().select_many(case.function, limit=9) if case in WEIGHTED else query(case)).plan.operator
    assert isinstance(operator, (Select, SelectMany))
    return operator.function


def query(case: Case) -> wp.Query:
    return case.source().select(case.function)


@PER_FUNCTION
def test_a_function_gives_its_outputs_on_the_reference_engine_compiled_and_read_from_a_file(cases: list[Case]) -> None:
    asked, function = query(cases[0]), traced(cases[0])
    again = plan_from_json(plan_to_json(asked.plan))
    assert again == asked.plan
    assert repr(again.type) == repr(asked.plan.type)
    assert_primitives_only(function)
    compiled, read = compile_lambda(function), compile_lambda(again.operator.function)
    shown = presenter(function.type)
    numbered = wp.source("given", {"number": int, "record": type_from_annotation(cases[0].schema)})
    outputs = wp.evaluate(
        numbered.select(lambda row: (row.number, cases[0].function(row.record))),
        {"given": [(number, case.given) for number, case in enumerate(cases)]},
        engine="reference",
    )
    # by repr: 1, 1.0 and True are equal in Python
    assert repr(sorted(outputs, key=lambda record: record[0])) == repr(
        [(i, case.output) for i, case in enumerate(cases)]
    )
    for case in cases:
        given = normalize(case.given, asked.plan.inputs[0].type)
        value = compiled(given)
        assert repr(shown(value)) == repr(shown(read(given))) == repr(case.output), case.name
        assert repr(check_canonical(value, function.type)) == repr(value), f"{case.name}: null where the type says so"
        assert normalize(case.output, function.type) == value, case.name
        assert canonical_bytes(value, function.type) == canonical_bytes(
            normalize(case.output, function.type), function.type
        )


@for_each("case", WEIGHTED, ids=lambda case: case.name)
def test_the_elements_of_a_list_share_the_weight(case: Case) -> None:
    query = case.source().select_many(case.function, limit=1000)
    assert dict(wp.evaluate(query, {"given": {case.given: 1.0}})) == case.output


@for_each("case", WEIGHTED, ids=lambda case: case.name)
def test_an_engine_sees_primitives_only(case: Case) -> None:
    assert_primitives_only(traced(case))


def assert_primitives_only(function: Lambda) -> None:
    calls = [node for node in walk(function.core) if isinstance(node, Call)]
    assert all(node.lowered is None for node in calls)
    assert {node.name for node in calls} <= PRIMITIVES.keys()


def test_the_table_covers_every_function_and_every_primitive() -> None:
    written: set[str] = set()
    lowered: set[str] = set()
    for case in [cases[0] for cases in TABLE] + WEIGHTED:
        function = traced(case)
        written |= {node.name for node in walk(function) if isinstance(node, Call)}
        lowered |= {node.name for node in walk(function.core) if isinstance(node, Call)}
    assert FUNCTIONS.keys() - set(LITERALS) <= written, "what a text makes a constant of is no call"
    assert OPERATORS.keys() <= written
    assert lowered == PRIMITIVES.keys()


def test_each_case_has_its_own_name() -> None:
    names = [case.name for case in GOLDEN]
    assert len(set(names)) == len(names) > 500
