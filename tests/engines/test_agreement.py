"""The relational engine against the exact reference, on random plans and data, with and without rewrites."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from tests.support.parameters import sizes, tenth
from tests.support.plans import OPERATORS, Case, distance, random_case
from tests.support.relational import SWITCHES, evaluate, only, without
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.table_cache import TableCache
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.script import Rewrite, SqlStatement
from wpinq.expr.values import order_key
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import Node
from wpinq.plan.operator import REGISTRY
from wpinq.plan.properties import plan_properties

PLANS = 12  # for each operator at the root


def floats(case: Case) -> dict[str, dict[Any, float]]:
    return {name: {record: float(weight) for record, weight in given.items()} for name, given in case.data.items()}


def bits(weights: dict[Any, float]) -> list[tuple[Any, str]]:
    return [(repr(record), weight.hex()) for record, weight in weights.items()]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def agrees(database: Database, plan: Node, data: dict[str, dict[Any, float]], rewrites: tuple[Rewrite, ...]) -> None:
    exact = reference.evaluate(plan, data, EXACT)
    found = database.evaluate(plan, data, rewrites=rewrites)
    assert distance(exact, found) <= plan_properties(plan).rounding_error
    assert list(found) == sorted(found, key=order_key)
    assert all(Fraction(weight) != 0 for weight in found.values())


def test_every_operator_has_a_rule() -> None:
    default = relation_of.dispatch(object)
    assert [name for name, operator in REGISTRY.items() if relation_of.dispatch(operator) is default] == []


@pytest.mark.parametrize("plans", sizes(2, PLANS))
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("rewrites", [REWRITES, ()], ids=["rewritten", "literal"])
def test_agrees_with_the_exact_reference(
    database: Database, operator: str, rewrites: tuple[Rewrite, ...], plans: int
) -> None:
    rng = Random(f"{operator} agrees")
    for number in range(plans):
        case = random_case(rng, operator)
        switch = SWITCHES[number % len(SWITCHES)]
        for chosen in (
            rewrites,
            without(switch) if rewrites else only(switch),
        ):  # each plan also with one the other way
            agrees(database, case.plan, floats(case), chosen)


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_agrees_where_all_records_weigh_the_same(database: Database, operator: str) -> None:
    rng = Random(f"{operator} equal")
    for _ in range(4):
        case = random_case(rng, operator)
        for sign in (1.0, -1.0):
            data = {
                name: dict.fromkeys(given, sign * min(map(abs, given.values()))) for name, given in floats(case).items()
            }
            for chosen in (REWRITES, without("equal_weights")):
                agrees(database, case.plan, data, chosen)


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_the_program_is_one_whatever_the_data(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of one weight or of many, negative ones, twice as many, one, none: the same statements in one order."""
    statements: list[str] = []
    create = TableCache.create

    def creating(tables: TableCache, statement: SqlStatement, shared: bool) -> None:
        statements.append(statement.sql)
        create(tables, statement, shared)

    monkeypatch.setattr(TableCache, "create", creating)
    rng = Random(f"{operator} program")
    for _ in range(4):
        case = random_case(rng, operator)
        given = floats(case)
        least = {name: min(map(abs, held.values()), default=1.0) for name, held in given.items()}
        ran = set()
        for data in (
            given,
            {name: dict.fromkeys(held, least[name]) for name, held in given.items()},
            {name: dict.fromkeys(held, -least[name]) for name, held in given.items()},
            {name: dict([*held.items()][:1]) for name, held in given.items()},
            {name: {} for name in given},
        ):
            evaluate(case.plan, data, threads=1)
            ran.add(tuple(statements))
            statements.clear()
        assert len(ran) == 1


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_the_bits_do_not_depend_on_threads_or_the_order_of_rows(operator: str) -> None:
    rng = Random(f"{operator} bits")
    for _ in range(3):
        case = random_case(rng, operator)
        data = floats(case)
        shuffled = {}
        for name, given in data.items():
            rows = list(given.items())
            rng.shuffle(rows)
            shuffled[name] = dict(rows)
        first = bits(evaluate(case.plan, data, threads=1))
        assert bits(evaluate(case.plan, shuffled, threads=2)) == first
