"""What makes two expressions or plans equal, and that neither depth nor sharing is a limit."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import sizes
from tests.support.processor import bounded_work
from wpinq import functions as F
from wpinq.expr.compile import compile_lambda
from wpinq.expr.trace import trace
from wpinq.expr.types import INT, ListOf
from wpinq.plan.demand import demand
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.properties import plan_properties

NUMBERS = wp.source("numbers", int)
OPTIONAL = wp.source("optional", int | None)
EDGES = wp.source("edges", src=int, dst=int)


def test_names_of_parameters_do_not_matter() -> None:
    assert EDGES.select(lambda e: e.src) == EDGES.select(lambda other: other[0])
    key = EDGES.join(EDGES, lambda x: x.dst, lambda y: y.src, lambda a, b: (a.src, b.dst))
    assert key == EDGES.join(EDGES, lambda p: p.dst, lambda q: q.src, lambda x, y: (x.src, y.dst))
    nested = NUMBERS.select(lambda x: F.map([x], lambda y: x + y))
    assert nested == NUMBERS.select(lambda u: F.map([u], lambda v: u + v))
    assert nested != NUMBERS.select(lambda x: F.map([x], lambda y: y + y))


def test_constants_are_typed() -> None:
    constants: list[Any] = [1, 1.0, True, "1", None, (1,), (1.0,), [1], [1.0], [], F.record(a=1)]
    plans = [NUMBERS.select(lambda x, c=c: c).plan for c in constants]
    assert len({plan.digest for plan in plans}) == len(constants)
    assert NUMBERS.select(lambda x: 0.0) == NUMBERS.select(lambda x: -0.0)


def test_attributes_and_order_matter() -> None:
    assert EDGES.select(lambda e: (e.src, e.dst)) != EDGES.select(lambda e: (e.dst, e.src))
    assert EDGES.select(lambda e: F.record(a=e.src)) != EDGES.select(lambda e: F.record(b=e.src))
    assert NUMBERS.union(EDGES.select(lambda e: e.src)) != EDGES.select(lambda e: e.src).union(NUMBERS)
    assert NUMBERS.shave(1.0) != NUMBERS.shave(2.0)
    assert NUMBERS.shave(1) == NUMBERS.shave(1.0)


def test_what_may_be_null_and_bounds_are_part_of_the_meaning() -> None:
    plain, nullable = trace(lambda x: x < 3, (INT,)), trace(lambda x: x < 3, (INT.with_nullable(),))
    assert plain != nullable
    assert compile_lambda(plain)(1) is True  # compiled first: the code for what is never null must not serve both
    assert compile_lambda(nullable)(None) is None
    short, long = (trace(lambda x: F.count(x), (ListOf(INT, bound=bound),)) for bound in (2, 3))
    assert short != long


def test_sibling_lambdas_over_different_lists_are_kept_apart() -> None:
    query = NUMBERS.select(lambda x: (F.map([x], lambda v: v < 3), F.map([x, None], lambda v: v < 3)))
    output = {((True,), (True, None)): 1.0}
    assert dict(wp.evaluate(query, {"numbers": [1]})) == output
    assert dict(wp.evaluate(wp.Query(plan_from_json(plan_to_json(query.plan))), {"numbers": [1]})) == output


DEEP = sizes(3_000, 10_000)


@pytest.mark.parametrize("deep", DEEP)
def test_an_expression_may_nest_ten_thousand_deep(deep: int) -> None:
    def tower(x: Any) -> Any:
        for _ in range(deep // 2):
            x = (x * 3) % 1009
        return x % 1000 + x

    query = NUMBERS.select(tower)
    again = plan_from_json(json.loads(json.dumps(plan_to_json(query.plan))))
    assert again == query.plan
    assert plan_properties(query.plan).domain is None
    value = 5 * pow(3, deep // 2, 1009) % 1009
    assert dict(wp.evaluate(query, {"numbers": [5]}, engine="reference")) == {value % 1000 + value: 1.0}
    with pytest.raises(wp.ExpressionError, match="logic takes bool"):
        NUMBERS.select(lambda x: tower(x) & True)


def test_lists_may_be_mapped_thousands_of_times() -> None:
    def tower(x: Any) -> Any:
        items: Any = [x]
        for _ in range(2_000):
            items = F.map(items, lambda v: v + 1)
        return items

    query = NUMBERS.select_many(tower)
    assert dict(wp.evaluate(query, {"numbers": [0]}, engine="reference")) == {2_000: 1.0}
    with pytest.raises(wp.PlanError, match='engine="reference"'):
        wp.evaluate(query, {"numbers": [0]}, engine="duckdb")


@pytest.mark.parametrize("deep", DEEP)
def test_a_plan_may_have_ten_thousand_operators(deep: int) -> None:
    query = NUMBERS
    positive = trace(lambda x: x > 0, (INT,))
    for _ in range(deep):
        query = query.where(positive)
    assert plan_properties(query.plan).uses == {"numbers": 1}
    assert plan_properties(query.plan).rounding_error == 0
    assert plan_properties(query.plan).domain is None
    assert pickle.loads(pickle.dumps(query)) == query
    assert dict(wp.evaluate(query, {"numbers": [1, -1]})) == {1: 1.0}


def test_exponential_plans_are_priced() -> None:
    query = NUMBERS
    for _ in range(200):
        query = query.concat(query)
    with bounded_work():
        assert plan_properties(query.plan).uses == {"numbers": 2**200}
        assert plan_properties(query.plan).paths[NUMBERS.plan.digest] == 2**200
        assert demand([(query.plan, Fraction(1, 10))]).sources == {"numbers": Fraction(2**200, 10)}
        assert query.bill(0.1)["numbers"] == Fraction(2**200, 10)
        assert plan_properties(query.plan).output.norm_bound == 2**230
        assert len(plan_to_json(query.plan)["nodes"]) == 201
        assert plan_properties(query.plan).domain is None


def test_shared_expressions_are_computed_once() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(200):
            x = (x + x) % 1_000_003
        return x

    query = NUMBERS.select(doubled)
    assert dict(wp.evaluate(query, {"numbers": [1]})) == {pow(2, 200, 1_000_003): 1.0}
    assert plan_from_json(plan_to_json(query.plan)) == query.plan


def test_shared_branches_do_not_slow_domains_down() -> None:
    def forked(x: Any) -> Any:
        y = x % 3
        for i in range(200):
            y = F.where(x > i, y, y)
        return y

    assert plan_properties(NUMBERS.select(forked).plan).domain == (0, 1, 2)
