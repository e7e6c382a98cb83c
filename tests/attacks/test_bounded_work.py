"""One record cannot blow up time or memory, nor make an accepted plan raise: its presence would show."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.display.explanation import gap
from wpinq.expr import build, catalogue
from wpinq.expr.functions import LIST_LIMIT, PRIMITIVES
from wpinq.expr.nodes import Constant, Expr, Variable, make_lambda
from wpinq.expr.types import BOOL, FLOAT, INT, STR
from wpinq.expr.work import work
from wpinq.plan.format import plan_from_json, plan_to_json

PEOPLE = wp.source("people", name=str)
NUMBERS = wp.source("numbers", int)
MILLION = 10**6


def ranges(query: Query, count: int) -> Query:
    return query.select_many(lambda x: F.range(0, count, limit=count))


def doubled(name: Any, times: int) -> Any:
    text = name + "x"
    for _ in range(times):
        text = text + text
    return text


def spread(query: Query, steps: int) -> Query:
    for _ in range(steps):
        query = query.concat(query.select(lambda x: x * 2 + 1))
    return query


def mapped(count: int, function: Callable[[Any], Any]) -> Any:
    return F.map(F.range(0, count, limit=count), function)


@pytest.mark.parametrize("limit", [LIST_LIMIT + 1, 2**63 - 1, 2**63, 10**30])
def test_a_limit_beyond_what_python_can_count_is_refused_when_the_plan_is_made(limit: int) -> None:
    writings: tuple[Callable[[], Query], ...] = (
        lambda: PEOPLE.select_many(lambda p: F.split(p.name, ","), limit=limit),
        lambda: PEOPLE.shave(lambda p: F.map(F.split(p.name, ","), lambda x: 1.0), limit=limit),
        lambda: PEOPLE.shave(1.0, limit=limit),
    )
    for write in writings:
        with pytest.raises(wp.PlanError, match="at most 1,000,000"):
            write()


IN_PROCESS = ("duckdb", "reference")  # Spark has tests of its own, with a Spark that is started for them

EXTREME: dict[str, Callable[[], Query]] = {
    "split": lambda: PEOPLE.select_many(lambda p: F.split(p.name, ","), limit=LIST_LIMIT),
    "widths": lambda: PEOPLE.shave(lambda p: F.map(F.split(p.name, ","), lambda x: 5e-324), limit=LIST_LIMIT),
    "tiny pieces": lambda: PEOPLE.shave(5e-324, limit=3),
    "limited pieces": lambda: PEOPLE.shave(1.0, limit=LIST_LIMIT),
    "wide pieces": lambda: PEOPLE.shave(1.7e308),
    "weights": lambda: PEOPLE.select_many(lambda p: [F.weighted(p.name, 1.7e308), F.weighted("", -1.7e308)]),
    "empty range": lambda: PEOPLE.select_many(lambda p: F.range(2**63 - 1, -(2**63), limit=LIST_LIMIT)),
    "high range": lambda: PEOPLE.select_many(lambda p: F.range(2**63 - 3, 2**63 - 1, limit=LIST_LIMIT)),
    "substring": lambda: PEOPLE.select(lambda p: F.substring(p.name, 2**63 - 1, 2**63 - 1)),
    "subsets": lambda: PEOPLE.select_many(lambda p: F.subsets(F.split(p.name, ","), 8), limit=4),
}


@for_each("name", EXTREME)
def test_extreme_arguments_that_are_accepted_raise_nothing_on_a_record(name: str) -> None:
    query = EXTREME[name]()
    for record in ("mallory", "a,b,,c", ""):
        wp.evaluate(query, {"people": [(record,)]}, exact=True)
        for engine in IN_PROCESS:
            if not gap(query.plan, engine):
                wp.evaluate(query, {"people": [(record,)]}, engine)


def test_arguments_of_every_primitive_are_counted() -> None:
    samples = [Constant(INT, 1), Constant(BOOL, True), Constant(STR, "a"), Constant(FLOAT, 1.0)]
    for name, primitive in PRIMITIVES.items():
        if primitive.arity is None or name == "map":
            continue
        for count in {0, primitive.arity - 1, primitive.arity + 1, primitive.arity + 4} - {primitive.arity}:
            for sample in samples:
                with pytest.raises(wp.ExpressionError, match=r"takes \d argument"):
                    build.call(name, *[sample] * count, attributes=(0,))


@for_each("name", sorted(catalogue.OPERATORS))
def test_arguments_of_every_operator_are_counted(name: str) -> None:
    for count in (0, 3):
        with pytest.raises(wp.ExpressionError, match="takes"):
            catalogue.rebuild(name, (Constant(BOOL, True),) * count)


def test_a_function_of_functions_is_refused() -> None:
    x = Variable(INT, 1, "x")
    inner = make_lambda((x,), x, 1)
    with pytest.raises(wp.ExpressionError, match="not another function"):
        make_lambda((Variable(INT, 0, "y"),), inner)


class _AnyDigest(str):
    """A digest that agrees with all: whoever writes a file can compute the right one."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def tampered(query: Query, change: Callable[[list[dict[str, Any]]], None]) -> dict[str, Any]:
    data: dict[str, Any] = copy.deepcopy(dict(plan_to_json(query.plan)))
    change(data["nodes"][-1]["arguments"]["function"]["expression"])
    data["digest"] = _AnyDigest()
    return data


@for_each(
    ("query", "name"),
    [
        (NUMBERS.select(lambda x: x % 2), "modulo"),
        (NUMBERS.select(lambda x: x // 2), "floor_divide"),
        (NUMBERS.select(lambda x: x / 2), "divide"),
        (NUMBERS.select(lambda x: (x > 2) & (x < 9)), "and"),
    ],
)
@for_each("count", [0, 1, 3])
def test_a_plan_from_a_file_with_the_wrong_number_of_arguments_is_refused(query: Query, name: str, count: int) -> None:
    def change(table: list[dict[str, Any]]) -> None:
        (item,) = [item for item in table if item.get("call") == name]
        item["arguments"] = (item["arguments"] * 2)[:count]

    with pytest.raises(wp.PlanError, match="takes 2 argument"):
        plan_from_json(tampered(query, change))


def test_a_plan_from_a_file_with_a_function_for_a_result_is_refused() -> None:
    def change(table: list[dict[str, Any]]) -> None:
        table.append(dict(table[-1], level=1, body=len(table) - 1))

    with pytest.raises(wp.PlanError, match="not another function"):
        plan_from_json(tampered(NUMBERS.select(lambda x: x + 1), change))


GROWING: dict[str, Callable[[], Query]] = {
    "ranges of ranges": lambda: ranges(ranges(NUMBERS, MILLION), MILLION),
    "lists of records": lambda: ranges(NUMBERS, MILLION).select(lambda x: F.collect(mapped(MILLION, lambda i: i))),
    "built strings": lambda: PEOPLE.select(lambda p: F.collect(mapped(MILLION, lambda i: doubled(p.name, 18)))),
    "strings of a step below": lambda: (
        PEOPLE.select(lambda p: doubled(p.name, 18))
        .select_many(lambda t: mapped(1000, lambda i: (t, i)))
        .select(lambda r: r[0] + F.cast(r[1], str))
    ),
    "pieces of a built string": lambda: PEOPLE.select(
        lambda p: F.sum(F.map(F.split(doubled(p.name, 18), "x"), lambda s: F.sum(mapped(1000, lambda i: i))))
    ),
    "sums of sums": lambda: NUMBERS.select(
        lambda x: F.sum(mapped(10**5, lambda i: F.sum(mapped(10**5, lambda j: i * j))))
    ),
    "own pairs": lambda: ranges(NUMBERS, 10**4).join(ranges(NUMBERS, 10**4), lambda x: 0, lambda x: 0),
    "copies": lambda: spread(NUMBERS, 40),
    "thin pieces": lambda: NUMBERS.shave(1e-7),
    "thin pieces of few": lambda: wp.source("light", int, cap=1).shave(2.0**-30),
    "thin pieces of copies": lambda: ranges(NUMBERS, 100).shave(1e-9, limit=10**5),
}


@for_each("name", GROWING)
def test_a_plan_that_lets_one_record_grow_without_measure_is_refused(name: str) -> None:
    with pytest.raises(wp.PlanError, match=r"one protected unit may|into .* pieces"):
        GROWING[name]()


HOLDING = wp.source("holding", items=list[int], other=list[int], text=str)
SQUARES: dict[str, Callable[[], Query]] = {
    "lists in a list": lambda: HOLDING.select(lambda r: F.map(r.items, lambda i: (i, r.other))),
    "lists in a list that is counted": lambda: HOLDING.select(lambda r: F.count(F.map(r.items, lambda i: [r.items]))),
    "lists chosen": lambda: HOLDING.select(
        lambda r: F.count(F.map(r.items, lambda i: F.where(i > 0, r.items, r.other)))
    ),
    "texts in a list": lambda: HOLDING.select(lambda r: F.map(F.split(r.text, " "), lambda w: (w, r.text))),
    "elements that hold the list": lambda: HOLDING.select_many(
        lambda r: F.sort(F.map(r.items, lambda i: (i, r.items))), limit=3
    ),
}


@pytest.mark.parametrize("name", SQUARES)
def test_a_record_that_would_be_copied_for_each_of_its_own_elements_is_refused(name: str) -> None:
    with pytest.raises(wp.PlanError, match="are nested"):
        SQUARES[name]()


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_of_a_list_that_nothing_bounds_the_first_are_taken_before_a_function_of_each(engine: str) -> None:
    words = HOLDING.select_many(lambda r: F.map(F.split(r.text, " "), lambda w: (w, r.text, r.items)), limit=3)
    held = HOLDING.select_many(lambda r: F.map(r.items, lambda i: F.weighted((i, r.other), i)), limit=2)
    widths = HOLDING.shave(lambda r: F.map(r.items, lambda i: i), limit=2)
    rows = [((2, 1, 5), (7,), "a b c d b"), ((), (), "")]
    texts = {(w, rows[0][2], rows[0][0]): 1 / 3 for w in "abc"} | {("", "", ()): 1.0}
    assert wp.evaluate(words, {"holding": rows}, engine) == texts
    assert wp.evaluate(held, {"holding": rows}, engine) == {(2, (7,)): 2 / 3, (1, (7,)): 1 / 3}
    assert wp.evaluate(widths, {"holding": rows}, engine) == {(rows[0], 0): 1.0}


def test_the_refusal_names_the_step_and_the_number() -> None:
    words = r"^SelectMany: .* become 1,000,000,000,000 records here; more than 4,000,000 would"
    with pytest.raises(wp.PlanError, match=words):
        ranges(ranges(NUMBERS, MILLION), MILLION)


def test_common_plans_are_within_the_bounds() -> None:
    shared = NUMBERS
    for _ in range(200):
        shared = shared.concat(shared)
    edges = wp.source("edges", src=int, dst=int)
    both = edges.concat(edges.select(lambda e: F.record(src=e.dst, dst=e.src)))
    paths = both.join(both, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    ccdf = both.select(lambda e: e.src).shave(1.0).select(lambda p: p.index)
    assert shared.plan.unit_growth.records == 1
    assert both.plan.unit_growth.records == 2
    assert paths.plan.unit_growth.records == 4
    assert ccdf.plan.unit_growth.records == 4  # two records of weight 1 have at most two whole pieces and two rests
    assert ranges(NUMBERS, MILLION).select(lambda x: x % 10).plan.unit_growth.records == MILLION
    labels = PEOPLE.select_many(lambda p: mapped(1000, lambda i: p.name + ": bin " + F.cast(i, str)))
    assert labels.plan.unit_growth.text == 27


def test_the_work_of_a_function_is_counted_once_where_it_is_shared() -> None:
    def steps(body: Expr) -> int:
        return work(make_lambda((x,), body), (1,)).steps

    x = Variable(INT, 0, "x")
    square = catalogue.arithmetic("multiply", x, x)
    once = steps(square)
    assert steps(catalogue.arithmetic("add", square, square)) == once + 1


def test_a_width_that_no_float_can_divide_by_is_refused_in_words() -> None:
    with pytest.raises(wp.PlanError, match=r"into 2\^\d+ pieces"):
        NUMBERS.shave(1e-320)


def test_a_partition_by_a_list_takes_an_empty_one() -> None:
    rows = wp.source("rows", v=list[int])
    parts = rows.partition(lambda r: r.v, [[], [1, 2]])
    data = {"rows": [([],), ([1, 2],), ([3],)]}
    assert {key: dict(wp.evaluate(part, data)) for key, part in parts.items()} == {
        (): {((),): 1.0},
        (1, 2): {((1, 2),): 1.0},
    }
