"""Filters of lists, and sums of what they leave: DuckDB computes them by functions of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines.sql.compile import Plan

ITEM = {"x": int | None, "s": str | None, "inside": list[int | None]}
DATA = [
    ([(1, "a", [1, None, 3]), (None, None, []), (2, "b", [5])], 7),
    ([], 8),
    (None, None),
    ([(7, "a", [None]), (7, "a", [None]), (-1, "", [2, 2])], -1),
]
items = wp.source("items", items=list[ITEM] | None, name=int | None)


def shared(row: Any) -> Any:
    """A predicate of many shared parts, which are put beside the elements first."""
    one = F.where(row.x > 0, row.x * 3 + 1, row.x // 2)
    for _ in range(9):
        one = F.where((one % 2 == 0) | (one > 50), one // 2 + one % 3, one * 3 + one % 5)
    return one > 3


PLANS: list[Callable[[Any], Any]] = [
    lambda r: F.filter(r.items, lambda i: i.x > 1),
    lambda r: F.filter(r.items, lambda i: F.is_null(i.x)),
    lambda r: F.count(F.filter(r.items, lambda i: i.s == "a")),
    lambda r: F.sum(F.filter(r.items, lambda i: i.x > 0), lambda i: i.x),
    lambda r: F.any(r.items, lambda i: i.x == r.name),
    lambda r: F.any(r.items, lambda i: F.any(F.filter(i.inside, lambda n: n > 1), lambda n: n == i.x + 3)),
    lambda r: F.map(r.items, lambda i: F.filter(i.inside, lambda n: n != i.x)),
    lambda r: F.sum(F.map(r.items, lambda i: F.sum(F.filter(i.inside, lambda n: n > 1)))),
    lambda r: F.filter(r.items, shared),
    lambda r: F.filter(F.filter(r.items, shared), lambda i: i.x < 3),
]


@for_each("function", PLANS)
def test_filters_are_those_of_the_reference(function: Callable[[Any], Any]) -> None:
    plan = items.select(function)
    assert wp.evaluate(plan, {"items": DATA}) == wp.evaluate(plan, {"items": DATA}, "reference")


def test_elements_are_computed_once() -> None:
    """The database's own filter, and no copy of the list's elements to see whether there is a list."""
    nested = items.where(
        lambda r: F.any(r.items, lambda i: F.any(F.filter(i.inside, lambda n: n > 1), lambda n: n > 2))
    )
    ((_, sql),) = Plan(nested.plan).program().queries
    assert sql.count("list_filter(") == 1
    assert sql.count("list_transform(") == 2
    assert "flatten" not in sql


@pytest.mark.parametrize("predicate", [shared])
def test_a_predicate_with_shared_parts_is_short(predicate: Callable[[Any], Any]) -> None:
    ((_, sql),) = Plan(items.select(lambda r: F.filter(r.items, predicate)).plan).program().queries
    assert len(sql) < 40_000
