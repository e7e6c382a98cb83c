"""Lists of constants: one constant each, however they are written."""

from __future__ import annotations

import pytest

import wpinq as wp
from tests.support.processor import bounded_work
from wpinq import functions as F
from wpinq.errors import ExpressionError
from wpinq.expr.nodes import Call, Constant, show, walk
from wpinq.expr.trace import lift
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, ListOf, Type, signature
from wpinq.language.write import unparse
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.properties import plan_properties

NUMBERS = wp.source("numbers", int, weights=True)


@pytest.mark.parametrize(
    ("given", "element", "value", "text"),
    [
        ([1, 2, -3], INT, (1, 2, -3), "[1, 2, -3]"),
        ([1, 2.5], FLOAT, (1.0, 2.5), "[1.0, 2.5]"),
        ([-0.0, 1.0], FLOAT, (0.0, 1.0), "[0.0, 1.0]"),
        ([True, False], BOOL, (True, False), "[true, false]"),
        (["a", None], STR.with_nullable(), ("a", None), '["a", null]'),
        ([None, 1], INT.with_nullable(), (None, 1), "[null, 1]"),
        ([], NULL, (), "[]"),
        ([[1], [], [2, 3]], ListOf(INT.with_nullable(), bound=2), ((1,), (), (2, 3)), "[[1], [], [2, 3]]"),
    ],
)
def test_a_list_of_constants_is_one_constant(given: list[object], element: Type, value: object, text: str) -> None:
    table = lift(given)
    assert isinstance(table, Constant)
    assert signature(table.type) == signature(ListOf(element, bound=len(given)))
    assert table.value == value
    assert show(table) == text
    program = wp.parse(
        f"source numbers: int with weights = true;\nvar q = numbers.Select(x => (count({text}), {text}));"
    )
    assert program["q"] == NUMBERS.select(lambda x: (F.count(given), given))
    assert wp.parse(str(program))["q"] == program["q"]
    plan = NUMBERS.select(lambda x: (x, given)).plan
    assert plan_from_json(plan_to_json(plan)) == plan


def test_a_list_that_holds_a_symbol_is_none() -> None:
    function = NUMBERS.select(lambda x: [1, x]).plan.operator.function
    assert [node.name for node in walk(function.body) if isinstance(node, Call)] == ["list"]


@pytest.mark.parametrize("given", [[1, "a"], [True, 1], [1, 2**63], [1.0, float("nan")], [[1], 2]])
def test_what_makes_no_list_is_refused(given: list[object]) -> None:
    with pytest.raises(ExpressionError):
        lift(given)


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_engines_read_tables(engine: str) -> None:
    ints, floats = [5, -(2**63), 2**63 - 1], [0.1, 1e308, 5e-324, -1 / 3, 0.0]
    words, gaps, nested = ["a'", 'b"', ""], [None, 2.5], [[1, 2], [], [3]]
    query = NUMBERS.select(
        lambda x: (
            (F.element(ints, x), F.element(floats, x), F.element(words, x)),
            (F.element(gaps, x), F.count(F.element(nested, x)), F.sum([1, 2, 3]), F.max(floats)),
        )
    )
    rows = range(-1, 6)
    found = wp.evaluate(query, {"numbers": list(rows)}, engine=engine)

    def at(items: list, i: int) -> object:
        return items[i] if 0 <= i < len(items) else None

    wanted = {
        (
            (at(ints, i), at(floats, i), at(words, i)),
            (at(gaps, i), None if at(nested, i) is None else len(nested[i]), 6, 1e308),
        )
        for i in rows
    }
    assert set(found) == wanted


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_lists_of_constants_as_widths_and_as_elements(engine: str) -> None:
    widths = [0.5, 0.0, 0.25]
    pieces = wp.evaluate(NUMBERS.shave(lambda x: widths), {"numbers": {7: 2.0}}, engine=engine)
    assert dict(pieces) == {(7, 0): 0.5, (7, 2): 0.25}
    spread = wp.evaluate(NUMBERS.select_many(lambda x: [1, 2, 2, 3]), {"numbers": {7: 2.0}}, engine=engine)
    assert dict(spread) == {1: 0.5, 2: 1.0, 3: 0.5}


def test_tables_keep_domains_and_lattices() -> None:
    items = wp.source("items", int, facts=["unit_weights"])
    assert plan_properties(items.shave(lambda x: [0.5, 0.75]).plan).lattice == pytest.approx(0.25)
    assert plan_properties(items.select_many(lambda x: [1, 2, 3]).plan).lattice * 3 == 1
    assert NUMBERS.select_many(lambda x: [4, 2, 4]).noisy_count(1).domain == (4, 2)


def test_a_large_table_is_quick() -> None:
    table = [i / 3 for i in range(200_000)]
    with bounded_work():
        query = NUMBERS.select(lambda x: F.element(table, x))
        assert wp.parse(unparse({"q": query}))["q"] == query
