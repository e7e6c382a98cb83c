"""The golden table of expressions on the relational engine: one query a function, with all its rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest

import wpinq as wp
from tests.expressions.golden import GOLDEN, WEIGHTED, Case
from tests.support.parameters import for_each
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.rules.lowering import RULES
from wpinq.expr.functions import PRIMITIVES
from wpinq.expr.types import type_from_annotation
from wpinq.expr.values import normalize, presenter

FUNCTIONS = [list(cases) for _, cases in groupby(GOLDEN, key=lambda case: (case.group, id(case.function)))]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def test_every_primitive_has_a_rule() -> None:
    assert RULES.keys() == PRIMITIVES.keys()


@for_each("cases", FUNCTIONS, ids=lambda cases: cases[0].name)
def test_an_expression_gives_its_output(database: Database, cases: list[Case]) -> None:
    type_ = type_from_annotation(cases[0].schema)
    numbered = wp.source("given", {"number": int, "record": type_}, weights=True)
    query = numbered.select(lambda row: (row.number, cases[0].function(row.record)))
    data = {(number, normalize(case.given, type_)): 1.0 for number, case in enumerate(cases)}
    output = map(presenter(query.plan.type), database.evaluate(query.plan, {"given": data}))
    assert repr(sorted(output, key=lambda record: record[0])) == repr(
        [(number, case.output) for number, case in enumerate(cases)]
    )


@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case.name)
def test_the_elements_of_a_list_share_the_weight(database: Database, case: Case) -> None:
    query = case.source().select_many(case.function, limit=1000)
    given = normalize(case.given, case.source().plan.type)
    output = database.evaluate(query.plan, {"given": {given: 1.0}})
    assert output.keys() == case.output.keys()
    assert all(output[key] == pytest.approx(weight, rel=1e-14) for key, weight in case.output.items())
