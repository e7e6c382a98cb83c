"""Sums over the same rows that are taken in one statement: each has the bits that it has alone."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import duckdb
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.duckdb import table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.table_cache import TableCache
from wpinq.engines.sql.engine import AT_ONCE, Batch
from wpinq.engines.sql.script import SqlStatement, share

LINES = wp.source("lines", group=int | None, kind=str, amount=float | None, count=int, weights=True)
FEW = LINES.where(lambda line: line.count < 90)
ONES = wp.source("lines", group=int | None, kind=str, amount=float | None, count=int, facts=["unit_weights"])

SUMS: dict[str, Callable[[Query], Query]] = {
    "lines": lambda q: q.select(lambda r: (r.group, r.kind)),
    "amount": lambda q: q.select_many(lambda r: [F.weighted((r.group, r.kind), r.amount)]),
    "signed": lambda q: q.select_many(lambda r: [F.weighted((r.group, r.kind), 0.1 * r.count - 3.0)]),
    "nothing": lambda q: q.select_many(lambda r: [F.weighted((r.group, r.kind), 0.0)]),
    "some": lambda q: q.select_many(
        lambda r: [F.weighted((r.group, r.kind), F.where(r.group == 1, r.count / 7.0, 0.0))]
    ),
}


def bits(weights: Any) -> dict[Any, str]:
    return {record: float(weight).hex() for record, weight in weights.items()}


def data(size: int, weights: Sequence[float] = (1.0, 0.3, -0.7, 2.5)) -> dict[str, Any]:
    draw = Random(size)
    rows = {}
    while len(rows) < size:
        record = (draw.choice([None, 1, 2, 3]), draw.choice("ab"), draw.choice([None, draw.gauss(0, 2)]), len(rows))
        rows[record] = draw.choice(weights)
    return {"lines": rows}


@for_each("size", [0, 1, 100])
@for_each("rows", [LINES, FEW, ONES], ids=["all", "few", "ones"])
def test_sums_have_the_bits_that_they_have_alone(rows: Query, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [build(rows).plan for build in SUMS.values()]
    keys = [(group, kind) for group in (None, 1, 2, 3, 4) for kind in "abc"]
    made: list[SqlStatement] = []
    create = TableCache.create

    def counted(self: TableCache, statement: SqlStatement, shared: bool) -> None:
        made.append(statement)
        create(self, statement, shared)

    given = data(size, (1.0,)) if rows is ONES else data(size)
    with Database() as database:
        alone = [bits(database.evaluate(plan, given, keys=keys)) for plan in plans]
        whole = [bits(database.evaluate(plan, given)) for plan in plans]
    monkeypatch.setattr(TableCache, "create", counted)
    with Database() as database, database.batch(plans):
        together = [bits(database.evaluate(plan, given, keys=keys)) for plan in plans]
        assert len(made) == 1
        again = [bits(database.evaluate(plan, given, keys=keys)) for plan in plans]
    assert together == alone == whole == again
    for plan, found in zip(plans, together, strict=True):
        exact = reference.evaluate(plan, given)
        assert found.keys() == {record for record, weight in exact.items() if weight}


def test_only_sums_over_the_same_rows_by_the_same_columns_are_taken_together() -> None:
    same = SUMS["amount"](LINES)
    others = [
        SUMS["lines"](FEW),
        LINES.select(lambda r: r.group),
        LINES.select(lambda r: (r.kind, r.group)),
        LINES.select_many(lambda r: [F.weighted(r.kind, 0.5)]),
        LINES.group_by(lambda r: r.group, lambda g: F.count(g)),
    ]
    first = SUMS["lines"](LINES)
    batch = Batch([query.plan for query in (first, same, *others)])
    assert [plan.root for plan in batch.alike(first.plan, "rows")] == [first.plan, same.plan]
    batch.begin(first.plan)
    assert [plan.root for plan in batch.alike(same.plan, "rows")] == [same.plan]


def test_plans_of_dates_are_taken_together_too(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = wp.source("visits", day=datetime.date, size=int, weights=True)
    plans = [
        visits.select_many(lambda r, part=part: [F.weighted(F.month(r.day), r.size / part)]).plan for part in (3.0, 7)
    ]
    made: list[SqlStatement] = []
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 0)
    monkeypatch.setattr(Database, "admit", lambda *_: None)
    create = TableCache.create
    monkeypatch.setattr(TableCache, "create", lambda *given: (made.append(given[1]), create(*given)))
    rows = [(datetime.date(2024, 1 + i % 3, 1 + i), i) for i in range(20)]
    with wp.Session() as session:
        session.protect(visits, rows, budget=1)
        session.release([Query(plan).noisy_count(0.1, over=range(1, 4)) for plan in plans])
    assert len(made) == 1


def test_no_statement_takes_more_sums_than_a_limit() -> None:
    plans = [
        LINES.select_many(lambda r, i=i: [F.weighted((r.group, r.kind), r.count / (i + 2.0))]).plan
        for i in range(AT_ONCE + 5)
    ]
    batch = Batch(plans)
    found = batch.alike(plans[-1], "rows")
    assert len(found) == AT_ONCE
    assert found[0].root == plans[-1]


def test_a_share_has_the_bits_of_the_quotient_that_it_stands_for() -> None:
    least, most = 5e-324, 1.7976931348623157e308
    own = [0.0, -0.0, least, 1e-300, 0.1, 1 - 2**-53, 1.0, 1 + 2**-52, 3.0, 2.0**60, most]
    with duckdb.connect() as connection:
        for value in (*own, *(-one for one in own)):
            ((found,),) = connection.execute(f"SELECT {share('x')} FROM (SELECT ?::DOUBLE AS x)", [value]).fetchall()
            assert found.hex() == (value / max(abs(value), 1.0)).hex()


CONSTANTS = [1, 1.0, 3, 100, 2.5, 2**63 - 1, 1.7976931348623157e308, 0.1, 5e-324, -1, -7.0, 0, -0.0]


@for_each("by", CONSTANTS)
def test_an_integer_over_a_constant_is_what_it_is_on_the_reference(by: float) -> None:
    """Also where it stays an infinity or a zero with a sign, which are no numbers of the language."""
    numbers = wp.source("numbers", int, weights=True)
    quotients = numbers.select(lambda n: (n, n / by)).plan
    given = {"numbers": dict.fromkeys([0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)], 1.0)}
    with Database() as database:
        found = database.evaluate(quotients, given)
    expected = reference.evaluate(quotients, given)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))  # which tell -0.0 from 0.0


@for_each("by", [*CONSTANTS, 2.0**900, 2.0**899, 2.0**969, -(2.0**970), 1e308, -1.7976931348623157e308])
def test_arithmetic_with_a_constant_is_what_it_is_on_the_reference(by: float) -> None:
    """Also where the result is no float, or a zero with a sign."""
    most = 1.7976931348623157e308
    numbers = wp.source("numbers", float | None, weights=True)
    each = numbers.select(lambda x: (x, x + by, x - by, by - x, x * by, x / by)).plan
    values = [None, 0.0, 1.0, -1.0, 5e-324, -5e-324, 0.1, 2.0**970, most, -most, float(by), -float(by) + 0.0]
    given = {"numbers": dict.fromkeys(values, 1.0)}
    with Database() as database:
        found = database.evaluate(each, given)
    assert sorted(map(repr, found)) == sorted(map(repr, reference.evaluate(each, given)))
