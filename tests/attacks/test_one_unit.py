"""One unit more, as bad as its type allows: no engine takes longer for it, or more memory, than the plan's bound says.

Every function of the language and every operator has a case. Processor time is compared, generously: what is looked for
grows with the square of what the record holds, and is off by factors of hundreds.
"""

from __future__ import annotations

import datetime
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
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
    "split": lambda r: wp.split(r.text, ","),
    "map": lambda r: wp.map(r.items, lambda s: wp.length(s)),
    "flatten": lambda r: wp.flatten(wp.map(wp.split(r.text, ","), lambda s: wp.split(s, "b"))),
    "subsets": lambda r: wp.subsets(wp.split(r.text, ","), 2),
    "first": lambda r: wp.first(wp.split(r.text, ","), 20),
    "range": lambda r: wp.range(0, r.number, limit=1000),
    "sort": lambda r: wp.sort(wp.split(r.text, ",")),
    "collect": lambda r: wp.collect(r.items, lambda s: wp.lower(s)),
    "list": lambda r: [r.text, r.text, wp.lower(r.text)],
    "weighted": lambda r: [wp.weighted(r.text, 1.0), wp.weighted("", 2.0)],
}
"""Functions that give a list: of a SelectMany with a limit of 10."""

VALUES: dict[str, Callable[[Any], Any]] = {
    "count": lambda r: wp.count(wp.split(r.text, ",")),
    "length": lambda r: wp.length(r.text),
    "sum": lambda r: wp.sum(wp.map(r.numbers, lambda n: wp.sum(wp.range(0, n, limit=20)))),
    "min": lambda r: wp.min(r.items),
    "max": lambda r: wp.max(r.numbers, lambda n: -n),
    "element": lambda r: wp.element(wp.sort(r.items), 7),
    "concatenate": lambda r: r.text + r.text + r.text,
    "lower": lambda r: wp.lower(r.text),
    "find": lambda r: wp.find(r.text, "x"),
    "contains": lambda r: wp.contains(r.text, ",,,x"),
    "starts_with": lambda r: wp.starts_with(r.text, r.text),
    "substring": lambda r: wp.substring(r.text, 5, r.number),
    "to_float": lambda r: wp.cast(r.text, float),
    "to_int": lambda r: wp.cast(r.text, int),
    "to_str": lambda r: wp.cast(r.number, str),
    "to_date": lambda r: wp.cast(r.text, datetime.date),
    "to_time": lambda r: wp.cast(r.text, datetime.time),
    "to_decimal": lambda r: wp.cast(r.text, wp.decimal(2)),
    "to_category": lambda r: wp.cast(r.text, wp.category("a", "b")),
    "where": lambda r: wp.where(r.number > 3, wp.length(r.text), wp.count(r.items)),
    "map inside map": lambda r: wp.sum(
        wp.map(r.numbers, lambda n: wp.sum(wp.map(wp.first(r.numbers, 9), lambda m: n * m)))
    ),
    "sort inside map": lambda r: wp.map(
        wp.range(0, 9, limit=9), lambda i: wp.element(wp.sort(wp.split(r.text, ",")), i)
    ),
    "subsets inside a value": lambda r: wp.count(wp.subsets(wp.first(r.items, 20), 3)),
}
"""All others that handle texts or lists, and some inside one another: of a Select."""

OF_ONE_NUMBER = {
    "absolute", "bucket", "date", "day", "day_of_year", "decimal", "duration", "floor", "hour", "is_null",
    "microsecond", "minute", "month", "offset", "quarter", "quotient", "reverse", "rotate", "second", "time",
    "timestamp", "to_duration", "to_timestamp", "truncate", "week", "weekday", "year",
}  # fmt: skip
"""Functions of single values, or of the fields of a record, that take the same for all of them."""

OPERATORS: dict[str, Callable[[], Query]] = {
    "Select": lambda: ROWS.select(lambda r: wp.sort(r.items)),
    "Where": lambda: ROWS.where(lambda r: wp.count(wp.split(r.text, ",")) > 2),
    "SelectMany": lambda: ROWS.select_many(lambda r: r.items, limit=50),
    "GroupBy": lambda: ROWS.group_by(lambda r: wp.count(r.items), lambda g: wp.sum(g, lambda r: wp.length(r.text))),
    "Shave": lambda: ROWS.shave(lambda r: wp.map(r.numbers, lambda n: 0.001), limit=500),
    "Join": lambda: ROWS.join(ROWS, lambda r: r.text, lambda r: r.text, lambda r, s: (r.items, s.numbers)),
    "Union": lambda: ROWS.union(
        ROWS.select(lambda r: wp.record(text=r.text, items=r.items, numbers=r.numbers, number=1))
    ),
    "Intersect": lambda: ROWS.intersect(ROWS.where(lambda r: r.number > 2)),
    "Concat": lambda: ROWS.concat(ROWS),
    "Except": lambda: ROWS.difference(ROWS.where(lambda r: r.number > 2)),
    "Partition": lambda: ROWS.partition(lambda r: wp.lower(r.text), ["a", "b"])["a"],
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
        steps += node.reach.records * node.type.values
        for parameter in node.operator.parameters:
            function = getattr(node.operator, parameter.name, None)
            if isinstance(function, Lambda):
                texts = tuple(node.inputs[i].reach.text for i in parameter.of)
                steps += node.reach.records * work(node.operator.bounded_function(function), texts).steps
    return steps * LONG


@pytest.mark.parametrize("name", QUERIES)
def test_duckdb_takes_no_more_time_and_memory_for_a_bad_unit_than_its_plan_allows(name: str) -> None:
    plan = QUERIES[name]().plan
    taken = []
    for data in (PLAIN, {**PLAIN, WORST: 1.0}):
        with Database(threads=1, memory_limit=MEMORY) as database:
            database.evaluate(plan, {"rows": {}})
            began = time.process_time()
            database.evaluate(plan, {"rows": data})
            taken.append(time.process_time() - began)
    assert taken[1] - taken[0] <= SECONDS + A_STEP * allowed(plan)


@pytest.mark.parametrize("name", QUERIES)
def test_the_reference_takes_no_more_time_and_memory_for_a_bad_unit_than_its_plan_allows(name: str) -> None:
    plan = QUERIES[name]().plan
    taken, held = [], []
    for data in (PLAIN, {**PLAIN, WORST: 1.0}):
        began = time.process_time()
        reference.evaluate(plan, {"rows": data})
        taken.append(time.process_time() - began)
        tracemalloc.start()
        reference.evaluate(plan, {"rows": data})
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert taken[1] - taken[0] <= SECONDS + A_STEP * allowed(plan)
    assert held[1] - held[0] <= BYTES + BYTES_A_STEP * allowed(plan)


def test_a_limit_of_ten_pairs_makes_about_ten_pairs_of_any_text() -> None:
    plan = ROWS.select_many(lambda r: wp.subsets(wp.split(r.text, ","), 2), limit=10).plan
    assert work(plan.operator.bounded_function(plan.operator.function), (1,)).steps < 10_000


@pytest.mark.parametrize(
    "write",
    [
        lambda: ROWS.select(lambda r: wp.subsets(r.items, 2)),
        lambda: ROWS.select(lambda r: wp.count(wp.subsets(wp.split(r.text, ","), 3))),
        lambda: ROWS.select(lambda r: wp.map(r.items, lambda s: wp.map(r.items, lambda t: s == t))),
        lambda: ROWS.select(lambda r: wp.sum(wp.map(r.numbers, lambda n: wp.find(r.text, ",")))),
        lambda: ROWS.where(lambda r: wp.max(wp.map(r.numbers, lambda n: wp.element(wp.sort(r.numbers), n))) > 0),
        lambda: ROWS.group_by(lambda r: r.number, lambda g: wp.map(g, lambda r: wp.count(wp.map(g, lambda s: 1)))),
        lambda: ROWS.join(ROWS, lambda r: 0, lambda s: 0, lambda r, s: wp.map(r.items, lambda t: wp.find(s.text, t))),
    ],
)
def test_lists_without_a_bound_do_not_stand_inside_one_another(write: Callable[[], Query]) -> None:
    with pytest.raises(wp.PlanError, match="nothing bounds stand inside one another"):
        write()


def test_going_over_all_parts_of_a_text_is_in_proportion_to_the_text() -> None:
    ROWS.select(lambda r: wp.map(wp.split(r.text, ","), lambda s: wp.split(wp.lower(s), " ")))
    ROWS.select(lambda r: wp.sum(wp.map(r.items, lambda s: wp.sum(wp.map(wp.split(s, " "), lambda t: wp.length(t))))))
    lists = wp.source("lists", list[list[str]])
    lists.select(lambda x: wp.flatten(wp.map(x, lambda y: wp.map(y, lambda s: s + "!"))))
    with pytest.raises(wp.PlanError, match="stand inside one another"):
        lists.select(lambda x: wp.map(x, lambda y: wp.map(wp.flatten(x), lambda s: s == "")))
