"""Plans of a batch that differ in numbers alone are one statement: each has the bits that it has alone."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan, in_one, numbers_apart
from wpinq.engines.sql.duckdb import table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.instance import Connection

ROWS = wp.source("rows", place=int, size=int, share=float, name=str, weights=True)
EDGES = wp.source("edges", src=int, dst=int)

FAMILIES: dict[str, Callable[[int], Query]] = {
    "filters": lambda n: ROWS.where(lambda r: r.size > n).select(lambda r: r.place),
    "one count": lambda n: ROWS.where(lambda r: (r.size < 9 * n) & (r.place != n)).select(lambda r: 0),
    "buckets": lambda n: ROWS.select(lambda r: (r.size // (n + 2), r.size % (n + 3))),
    "floats": lambda n: ROWS.where(lambda r: r.share < n / 7 + 0.1).select(lambda r: r.place),
    "zeros": lambda n: ROWS.where(lambda r: r.share < [0.0, -0.0, 0.5, 1.5, 2.0, 2.5][n % 6]).select(lambda r: r.name),
    "shares": lambda n: ROWS.select_many(lambda r: [F.weighted(r.place, r.share / (n + 1.0))]),
    "texts": lambda n: ROWS.where(lambda r: r.name != "CAST(1 AS BIGINT) // 2").select(lambda r: r.size + n),
    "groups": lambda n: ROWS.where(lambda r: r.size > n).group_by(lambda r: r.place, lambda g: F.count(g)),
    "joins": lambda n: EDGES.where(lambda e: e.src != n).join(
        EDGES, lambda e: e.dst, lambda e: e.src, lambda x, y: (x.src + n) % 7
    ),
}


def data(size: int = 60) -> dict[str, Any]:
    draw, names = Random(size), ["CAST(1 AS BIGINT) // 2", "it's", "x"]
    rows = {(draw.randrange(-5, 6), i, draw.gauss(0, 2), draw.choice(names)): draw.uniform(-1, 2) for i in range(size)}
    rows |= {(6, 0, 0.0, "x"): 1.0, (6, 1, 0.25, "y"): 0.5}
    return {"rows": rows, "edges": {(draw.randrange(12), draw.randrange(12)): 1.0 for _ in range(size)}}


def bits(weights: Any) -> dict[Any, str]:
    return {record: float(weight).hex() for record, weight in weights.items()}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    run: list[str] = []
    execute = Connection.execute
    monkeypatch.setattr(Connection, "execute", lambda self, sql, *more: run.append(sql) or execute(self, sql, *more))
    return run


@for_each("family", sorted(FAMILIES))
@for_each("size", [0, 60])
def test_similar_plans_have_the_bits_that_they_have_alone(family: str, size: int, statements: list[str]) -> None:
    plans, given = [FAMILIES[family](n).plan for n in (1, 2, 3, 5, 8, 13)], data(size)
    keys = {plan: [*reference.evaluate(plan, given), *([99] if family == "filters" else [])] for plan in plans}
    with Database() as database:
        whole = [bits(database.evaluate(plan, given)) for plan in plans]
        database.forget("rows")
        alone = [bits(database.evaluate(plan, given, keys=keys[plan])) for plan in plans]
        database.forget("rows")
        statements.clear()
        with database.batch(plans):
            together = [bits(database.evaluate(plan, given, keys=keys[plan])) for plan in plans]
    assert together == alone == whole
    if keys[plans[0]]:
        assert 0 < sum("LATERAL" in sql for sql in statements) < len(plans)


def test_what_is_quoted_and_what_is_a_length_or_a_type_is_no_constant() -> None:
    around, numbers = numbers_apart("""SELECT 'CAST(1 AS BIGINT)', "c % 2" // 3 FROM DECIMAL(4, 5) WHERE c0 % 7 < 8""")
    assert numbers == ("3", "7") and "".join(around).count("CAST(1 AS BIGINT)") == 1
    for kept in ("CAST(-0.0 AS DOUBLE)", "CAST(1234567890 AS BIGINT)", "CAST(1e-300 AS DOUBLE)", "CAST(1 AS VARCHAR)"):
        assert numbers_apart(kept) == ((kept,), ())


def test_lists_and_other_columns_are_not_similar() -> None:
    lists = [EDGES.select(lambda e, i=i: F.sum(F.range(e.src, e.src + i, limit=9))).plan for i in (3, 4)]
    assert all(Plan(plan).program().similar is None for plan in lists)
    sides = (EDGES.select(lambda e: e.src // 3), EDGES.select(lambda e: e.dst // 3))
    one, other = (Plan(query.plan).program().similar for query in sides)
    assert one != other


def test_a_table_that_is_read_twice_is_not_written_out() -> None:
    twice = [FAMILIES["groups"](n).concat(FAMILIES["groups"](n).where(lambda g: g[1] > 1)) for n in (1, 2)]
    assert in_one(tuple(Plan(query.plan) for query in twice)) is None
    with Database() as database, database.batch([query.plan for query in twice]):
        for query in twice:
            found = reference.evaluate(query.plan, data())
            assert database.evaluate(query.plan, data(), keys=[*found]).keys() == found.keys()


@for_each("kept", [0, 40])
def test_sources_and_outputs_that_are_not_small_are_taken_one_by_one(
    kept: int, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", kept)
    plans, given = [ROWS.where(lambda r, n=n: r.size > n).plan for n in range(4)], data(30)
    with Database() as database, database.batch(plans):
        for plan in plans:
            whole = reference.evaluate(plan, given)
            assert database.evaluate(plan, given, keys=[*whole]) == {record: float(w) for record, w in whole.items()}
    assert sum("LATERAL" in sql for sql in statements) == (kept > 0), "once, and the others are not asked so"


@for_each("together", [True, False])
def test_a_statement_that_fails_leaves_those_that_were_tried(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plans, given, failed = [FAMILIES["groups"](n).select(lambda g: g[1]).plan for n in (1, 2, 3)], data(), []
    execute = Connection.execute

    def failing(self: Connection, sql: str, *more: Any) -> Any:
        if sql.startswith("SELECT") and "lead(w)" in sql:
            failed.append("LATERAL" in sql)
            sql = "SELECT error('1 2 3')"
        return execute(self, sql, *more)

    with Database() as database:
        expected = [database.evaluate(plan, given) for plan in plans]
    monkeypatch.setattr(Connection, "execute", failing)
    for some in [plans] if together else [[plan] for plan in plans]:
        with Database() as database, database.batch(some):
            assert [database.evaluate(plan, given, keys=range(1, 60)) for plan in some] == [
                expected[plans.index(plan)] for plan in some
            ]
    assert failed[0] == together
