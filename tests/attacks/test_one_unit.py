"""One unit more, as bad as its type allows: no engine takes longer for it, or more memory, than the plan's bound says.

Every function of the language and every operator has a case. Processor time is compared, generously: what is looked for
grows with the square of what the record holds, and is off by factors of hundreds.
"""

from __future__ import annotations

import datetime
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
from tests.support.processor import bounded_work
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.nodes import Lambda
from wpinq.expr.work import work
from wpinq.plan.node import Node
from wpinq.plan.operator import REGISTRY

LONG = 3000
"""The code points of the bad record's text, each a separator, and the elements of its list."""

SECONDS, A_STEP = 1.0, 2e-6
"""What an evaluation may take more in any case, and for each step that the plan allows one unit."""

MEMORY = "150MB"
BYTES, BYTES_A_STEP = 20_000_000, 1000

ROWS = wp.source("rows", text=str, items=list[str], numbers=list[int], number=int)
WORST = ("," * LONG, ("ab",) * LONG, tuple(range(LONG)), 2**62)
PLAIN = {("a,b" + str(i), ("a", "b"), (i, 2), i): 1.0 for i in range(20)}

LISTS: dict[str, Callable[[Any], Any]] = {
    "split": lambda r: F.split(r.text, ","),
    "map": lambda r: F.map(r.items, lambda s: F.length(s)),
    "flatten": lambda r: F.flatten(F.map(F.split(r.text, ","), lambda s: F.split(s, "b"))),
    "subsets": lambda r: F.subsets(F.split(r.text, ","), 2),
    "first": lambda r: F.first(F.split(r.text, ","), 20),
    "filter": lambda r: F.filter(r.numbers, lambda n: n > 3),
    "pairwise": lambda r: F.pairwise(r.numbers),
    "sort_by": lambda r: F.sort_by(r.numbers, lambda n: -n),
    "range": lambda r: F.range(0, r.number, limit=1000),
    "sort": lambda r: F.sort(F.split(r.text, ",")),
    "collect": lambda r: F.collect(r.items, lambda s: F.lower(s)),
    "list": lambda r: [r.text, r.text, F.lower(r.text)],
    "weighted": lambda r: [F.weighted(r.text, 1.0), F.weighted("", 2.0)],
}
"""Functions that give a list: of a SelectMany with a limit of 10."""

VALUES: dict[str, Callable[[Any], Any]] = {
    "count": lambda r: F.count(F.split(r.text, ",")),
    "length": lambda r: F.length(r.text),
    "sum": lambda r: F.sum(F.map(r.numbers, lambda n: F.sum(F.range(0, n, limit=20)))),
    "min": lambda r: F.min(r.items),
    "max": lambda r: F.max(r.numbers, lambda n: -n),
    "element": lambda r: F.element(F.sort(r.items), 7),
    "any": lambda r: F.any(r.numbers, lambda n: n > 3),
    "all": lambda r: F.all(r.numbers, lambda n: n > 3),
    "concatenate": lambda r: r.text + r.text + r.text,
    "lower": lambda r: F.lower(r.text),
    "find": lambda r: F.find(r.text, "x"),
    "contains": lambda r: F.contains(r.text, ",,,x"),
    "starts_with": lambda r: F.starts_with(r.text, r.text),
    "substring": lambda r: F.substring(r.text, 5, r.number),
    "to_float": lambda r: F.cast(r.text, float),
    "to_int": lambda r: F.cast(r.text, int),
    "to_str": lambda r: F.cast(r.number, str),
    "to_date": lambda r: F.cast(r.text, datetime.date),
    "to_time": lambda r: F.cast(r.text, datetime.time),
    "to_decimal": lambda r: F.cast(r.text, wp.decimal(2)),
    "to_category": lambda r: F.cast(r.text, wp.category("a", "b")),
    "where": lambda r: F.where(r.number > 3, F.length(r.text), F.count(r.items)),
    "map inside map": lambda r: F.sum(F.map(r.numbers, lambda n: F.sum(F.map(F.first(r.numbers, 9), lambda m: n * m)))),
    "sort inside map": lambda r: F.map(F.range(0, 9, limit=9), lambda i: F.element(F.sort(F.split(r.text, ",")), i)),
    "subsets inside a value": lambda r: F.count(F.subsets(F.first(r.items, 20), 3)),
}
"""All others that handle texts or lists, and some inside one another: of a Select."""

OF_ONE_NUMBER = {
    "absolute", "bucket", "date", "day", "day_of_year", "decimal", "duration", "floor", "hour", "is_null",
    "microsecond", "minute", "month", "offset", "quarter", "quotient", "reverse", "rotate", "second", "time",
    "timestamp", "to_duration", "to_timestamp", "truncate", "week", "weekday", "year",
}  # fmt: skip
"""Functions of single values, or of the fields of a record, that take the same for all of them."""

OPERATORS: dict[str, Callable[[], Query]] = {
    "Select": lambda: ROWS.select(lambda r: F.sort(r.items)),
    "Where": lambda: ROWS.where(lambda r: F.count(F.split(r.text, ",")) > 2),
    "SelectMany": lambda: ROWS.select_many(lambda r: r.items, limit=50),
    "GroupBy": lambda: ROWS.group_by(lambda r: F.count(r.items), lambda g: F.sum(g, lambda r: F.length(r.text))),
    "Shave": lambda: ROWS.shave(lambda r: F.map(r.numbers, lambda n: 0.001), limit=500),
    "Join": lambda: ROWS.join(ROWS, lambda r: r.text, lambda r: r.text, lambda r, s: (r.items, s.numbers)),
    "Union": lambda: ROWS.union(
        ROWS.select(lambda r: F.record(text=r.text, items=r.items, numbers=r.numbers, number=1))
    ),
    "Intersect": lambda: ROWS.intersect(ROWS.where(lambda r: r.number > 2)),
    "Concat": lambda: ROWS.concat(ROWS),
    "Except": lambda: ROWS.difference(ROWS.where(lambda r: r.number > 2)),
    "Partition": lambda: ROWS.partition(lambda r: F.lower(r.text), ["a", "b"])["a"],
}

QUERIES: dict[str, Callable[[], Query]] = {
    **{name: lambda f=f: ROWS.select_many(f, limit=10) for name, f in LISTS.items()},
    **{name: lambda f=f: ROWS.select(f) for name, f in VALUES.items()},
    **OPERATORS,
}


def test_every_function_and_every_operator_has_a_case() -> None:
    assert OPERATORS.keys() == REGISTRY.keys()
    assert set(FUNCTIONS) - {*LISTS, *VALUES} == OF_ONE_NUMBER


def allowed(plan: Node) -> int:
    """The steps that one unit may take at all steps of a plan, by its bounds."""
    steps, stack = 0, [plan]
    while stack:
        node = stack.pop()
        stack += node.inputs
        steps += node.unit_growth.records * node.type.values
        for parameter in node.operator.parameters:
            function = getattr(node.operator, parameter.name, None)
            if isinstance(function, Lambda):
                texts = tuple(node.inputs[i].unit_growth.text for i in parameter.of)
                steps += node.unit_growth.records * work(node.operator.bounded_function(function), texts).steps
    return steps * LONG


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_duckdb_takes_no_more_time_and_memory_for_a_bad_unit_than_its_plan_allows(name: str) -> None:
    plan = QUERIES[name]().plan
    with Database(threads=1, memory_limit=MEMORY) as database:
        database.evaluate(plan, {"rows": {}})
        with bounded_work(SECONDS + A_STEP * allowed(plan)):
            database.evaluate(plan, {"rows": {**PLAIN, WORST: 1.0}})


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_the_reference_takes_no_more_time_and_memory_for_a_bad_unit_than_its_plan_allows(name: str) -> None:
    plan = QUERIES[name]().plan
    held = []
    for data in (PLAIN, {**PLAIN, WORST: 1.0}):
        with bounded_work(SECONDS + A_STEP * allowed(plan)):
            reference.evaluate(plan, {"rows": data})
        tracemalloc.start()
        reference.evaluate(plan, {"rows": data})
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert held[1] - held[0] <= BYTES + BYTES_A_STEP * allowed(plan)


def test_a_limit_of_ten_pairs_makes_about_ten_pairs_of_any_text() -> None:
    plan = ROWS.select_many(lambda r: F.subsets(F.split(r.text, ","), 2), limit=10).plan
    assert work(plan.operator.bounded_function(plan.operator.function), (1,)).steps < 10_000


@pytest.mark.parametrize(
    "write",
    [
        lambda: ROWS.select(lambda r: F.subsets(r.items, 2)),
        lambda: ROWS.select(lambda r: F.count(F.subsets(F.split(r.text, ","), 3))),
        lambda: ROWS.select(lambda r: F.map(r.items, lambda s: F.map(r.items, lambda t: s == t))),
        lambda: ROWS.select(lambda r: F.sum(F.map(r.numbers, lambda n: F.find(r.text, ",")))),
        lambda: ROWS.where(lambda r: F.max(F.map(r.numbers, lambda n: F.element(F.sort(r.numbers), n))) > 0),
        lambda: ROWS.group_by(lambda r: r.number, lambda g: F.map(g, lambda r: F.count(F.map(g, lambda s: 1)))),
        lambda: ROWS.join(ROWS, lambda r: 0, lambda s: 0, lambda r, s: F.map(r.items, lambda t: F.find(s.text, t))),
    ],
)
def test_lists_without_a_bound_do_not_stand_inside_one_another(write: Callable[[], Query]) -> None:
    with pytest.raises(wp.PlanError, match="without a bound are nested"):
        write()


def test_going_over_all_parts_of_a_text_is_in_proportion_to_the_text() -> None:
    ROWS.select(lambda r: F.map(F.split(r.text, ","), lambda s: F.split(F.lower(s), " ")))
    ROWS.select(lambda r: F.sum(F.map(r.items, lambda s: F.sum(F.map(F.split(s, " "), lambda t: F.length(t))))))
    lists = wp.source("lists", list[list[str]])
    lists.select(lambda x: F.flatten(F.map(x, lambda y: F.map(y, lambda s: s + "!"))))
    with pytest.raises(wp.PlanError, match="without a bound are nested"):
        lists.select(lambda x: F.map(x, lambda y: F.map(F.flatten(x), lambda s: s == "")))
