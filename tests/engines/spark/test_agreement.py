"""Spark against DuckDB and the golden table: equal records, and weights equal to the last bit."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from random import Random
from typing import Any

import duckdb
import pytest

import wpinq as wp
from tests.engines.rewrite_fixtures import fixtures
from tests.expressions.golden import GOLDEN, WEIGHTED, Case
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, random_case
from tests.support.relational import evaluate
from wpinq import functions as F
from wpinq.engines.sql.dialect import DUCKDB
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.script import Rewrite
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.engines.sql.spark.dialect import SPARK
from wpinq.errors import PlanError
from wpinq.expr.types import type_from_annotation
from wpinq.expr.values import normalize, order_key, presenter
from wpinq.graphs.recipes import joint_degrees, symmetrize, triangles_by_degree, triangles_by_intersect
from wpinq.plan.operator import REGISTRY

PEOPLE = wp.source("people", str, weights=True)


def by_schema() -> list[list[list[Case]]]:
    """Lists of a few functions of one type, each function as the list of its cases."""
    found = []
    in_order = sorted(GOLDEN, key=lambda case: repr(case.schema))
    for _, alike in groupby(in_order, key=lambda case: repr(case.schema)):
        functions = [list(cases) for _, cases in groupby(alike, key=lambda case: id(case.function))]
        found += [functions[start : start + 9] for start in range(0, len(functions), 9)]
    return found


def bits(weights: dict[Any, float]) -> list[tuple[str, str]]:
    return [(repr(record), weight.hex()) for record, weight in weights.items()]


def same(database: SparkDatabase, plan: Any, data: dict[str, dict[Any, float]], rewrites: tuple[Rewrite, ...]) -> None:
    found = database.evaluate(plan, data, rewrites=rewrites)
    expected = evaluate(plan, data, rewrites=rewrites)
    assert bits(found) == bits({record: expected[record] for record in sorted(expected, key=order_key)})


def test_every_operator_has_a_rule() -> None:
    default = relation_of.dispatch(object)
    assert [name for name, operator in REGISTRY.items() if relation_of.dispatch(operator) is default] == []


@pytest.mark.parametrize("functions", tenth(by_schema()), ids=lambda functions: functions[0][0].name)
def test_expressions_give_their_outputs(database: SparkDatabase, functions: list[list[Case]]) -> None:
    type_ = type_from_annotation(functions[0][0].schema)
    source = wp.source("given", {"number": int, "record": type_}, facts=["unit_weights"])
    query = source.select(lambda row: (row.number, *(cases[0].function(row.record) for cases in functions)))
    cases = [(place, case) for place, cases in enumerate(functions, 1) for case in cases]
    data = {(number, normalize(case.given, type_)): 1.0 for number, (_, case) in enumerate(cases)}
    shown = presenter(query.plan.type)
    output = {record[0]: shown(record) for record in database.evaluate(query.plan, {"given": data})}
    found = [output[number][place] for number, (place, _) in enumerate(cases)]
    assert repr(found) == repr([case.output for _, case in cases])


@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case.name)
def test_the_elements_of_a_list_share_the_weight(database: SparkDatabase, case: Case) -> None:
    query = case.source().select_many(case.function, limit=1000)
    same(database, query.plan, {"given": {normalize(case.given, case.source().plan.type): 1.0}}, REWRITES)


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_random_plans_have_the_weights_that_duckdb_gives(database: SparkDatabase, operator: str) -> None:
    rng = Random(f"{operator} on Spark")
    case = random_case(rng, operator)
    data = {name: {x: float(w) for x, w in given.items()} for name, given in case.data.items()}
    try:
        SparkDatabase.check(case.plan)
    except PlanError as gap:
        assert "a sum of floats, inside of a function over the elements of a list" in str(gap)
        return
    same(database, case.plan, data, REWRITES if OPERATORS.index(operator) % 3 else ())


@pytest.mark.parametrize(
    ("recipe", "weigh"),
    [
        (triangles_by_degree, False),
        (triangles_by_intersect, False),
        (triangles_by_intersect, True),
        (joint_degrees, True),
    ],
)
def test_graph_queries_have_the_weights_that_duckdb_gives(database: SparkDatabase, recipe: Any, weigh: bool) -> None:
    rng = Random(f"{recipe.__name__} on Spark")
    edges = {
        tuple(sorted(rng.sample(range(12), 2))): rng.choice([1 / 3, 2.0, 0.7]) if weigh else 1.0 for _ in range(40)
    }
    same(
        database,
        recipe(symmetrize(wp.source("edges", src=int, dst=int, weights=True))).plan,
        {"edges": edges},
        REWRITES,
    )


@pytest.mark.parametrize(
    "switch", ["intersect_as_join", "late_aggregation", "mirror_images", "side_by_side", "unique_norms"]
)
def test_rewrites_keep_their_weights(database: SparkDatabase, switch: str) -> None:
    rng = Random(f"{switch} on Spark")
    for fixture in [fixture for fixture in fixtures() if fixture.switch == switch]:
        edges = {(rng.randrange(5), rng.randrange(5)): rng.choice([1.0, 1.0, -0.5]) for _ in range(20)}
        if "unit_weights" in fixture.program:
            edges = dict.fromkeys(edges, 1.0)
        same(database, fixture.query.plan, {"edges": edges}, fixture.rewrites(True))


@pytest.mark.parametrize(
    "query",
    [
        PEOPLE.select_many(lambda p: F.split(p, ","), limit=1000),
        PEOPLE.shave(lambda p: F.map(F.split(p, ","), lambda x: 5e-324), limit=1000),
        PEOPLE.shave(5e-324, limit=3).concat(PEOPLE.shave(1.7e308)).select(lambda piece: piece.index),
        PEOPLE.select_many(lambda p: [F.weighted(p, 1.7e308), F.weighted("", -1.7e308)]),
        PEOPLE.select_many(lambda p: F.range(2**63 - 3, 2**63 - 1, limit=1000)),
        PEOPLE.select_many(lambda p: F.subsets(F.split(p, ","), 7), limit=4),
    ],
    ids=["split", "widths", "pieces", "weights", "range", "subsets"],
)
def test_extreme_arguments_raise_nothing(database: SparkDatabase, query: wp.Query) -> None:
    same(database, query.plan, {"people": {"mallory": 1.0, "a,b,,c": 0.5, "": 2.0}}, REWRITES)


SIDES: list[tuple[wp.Query, list[Any]]] = [
    (wp.source("given", int | None, weights=True), [-5, 0, 3, 7, None]),
    (wp.source("given", float, weights=True), [0.0, 0.25, 0.75, 1e300, 5e-324]),
    (wp.source("given", str, weights=True), ["", "a", "é", "\uffff", "𝄞", "'\\\""]),
    (
        wp.source("given", a=int | None, b=tuple[bool, str | None] | None, c=list[int | None], weights=True),
        [(a, b, c) for a in (None, 1) for b in (None, (True, None), (True, "")) for c in ((), (None,), (None, 1))],
    ),
]


@pytest.mark.parametrize(("query", "records"), SIDES, ids=["int", "float", "text", "records"])
def test_the_weight_before_at_and_after_is_exact(database: SparkDatabase, query: wp.Query, records: list[Any]) -> None:
    rng = Random("sides")
    data = {"given": {x: rng.choice([1, -1]) * rng.random() * 2.0 ** rng.randrange(-1074, 20) for x in records}}
    weights = evaluate(query.plan, data)
    output = [(order_key(x), Fraction(w)) for x, w in weights.items() if x is not None and w > 0]
    candidates, expected = records[::-2], []
    for place in map(order_key, candidates):
        here = sum(w for x, w in output if x == place)
        expected.append((sum(w for x, w in output if x < place), here, sum(w for x, w in output if x > place)))
    assert database.rank_weights(query.plan, data, candidates) == expected


def test_sums_of_many_rows_have_the_bits_that_duckdb_gives_however_they_are_spread(database: SparkDatabase) -> None:
    rng = Random(5)
    scales = [1e-9, 1.0, 1 / 3, 7e2, -1 / 7, -1e-12]
    data = {(i, rng.randrange(60)): rng.choice(scales) * rng.random() for i in range(8000)}
    pairs = wp.source("pairs", a=int, b=int, weights=True)
    summed = pairs.select(lambda p: p.b)
    same(database, summed.plan, {"pairs": data}, REWRITES)
    rows = list(data.items())
    rng.shuffle(rows)
    assert database.evaluate(summed.plan, {"pairs": dict(rows)}) == database.evaluate(summed.plan, {"pairs": data})
    normed = pairs.join(summed, lambda p: p.b, lambda b: b, lambda p, b: p.a % 7)
    same(database, normed.plan, {"pairs": data}, REWRITES)


def test_a_side_far_lighter_than_the_other_has_norms_on_two_grids(database: SparkDatabase) -> None:
    light, heavy = wp.source("light", int, cap="1e-10", weights=True), wp.source("heavy", int, cap=2**30, weights=True)
    query = light.join(heavy, lambda x: x % 3, lambda y: y % 3, lambda x, y: (x, y))
    data = {
        "light": {i: 1e-13 * (i + 1) / 3 for i in range(9)},
        "heavy": {i: 1e7 / (i + 3) + 1e-17 * i for i in range(9)},
    }
    same(database, query.plan, data, REWRITES)


def test_a_total_is_the_float_that_duckdb_makes_of_its_halves(database: SparkDatabase) -> None:
    """Around each carry from one part to the next, on both sides of 0, and where rounding has to choose."""
    rng = Random("halves")
    powers, steps = (0, 31, 32, 33, 63, 64, 65, 96, 116), (-1, 0, 1, 2**11)
    near = [sign * (2**power + step) for power in powers for step in steps for sign in (1, -1)]
    totals = [*near, *(rng.randrange(-(2 ** rng.randrange(1, 117)), 2**116) for _ in range(200))]
    rows = [(group, addend) for group, total in enumerate(totals) for addend in addends(rng, total)]
    values = ", ".join(f"({group}, CAST({addend!r} AS DOUBLE))" for group, addend in rows)
    query = f"SELECT g, {{}} AS w FROM (VALUES {values}) AS t(g, w) GROUP BY g ORDER BY g"
    assert "DECIMAL" not in SPARK.grid_sum(["w"])
    found = database.open().session.sql(query.format(SPARK.grid_sum(["w"]))).collect()
    expected = duckdb.sql(query.format(DUCKDB.grid_sum(["w"]))).fetchall()
    assert [(group, total.hex()) for group, total in found] == [(group, total.hex()) for group, total in expected]


def addends(rng: Random, total: int) -> list[float]:
    """Floats without fraction, of either sign, whose exact sum is an integer."""
    parts = [rng.randrange(-(2**115), 2**115) >> rng.randrange(116) for _ in range(3)]
    floats = [float(part) for part in parts]
    rest = total - sum(map(int, floats))
    while rest:
        floats.append(float(rest))
        rest -= int(floats[-1])
    return floats
