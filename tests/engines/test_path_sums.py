"""Sums of paths by their ends, taken by a loop: where, and with the bits of the SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import duckdb
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb import path_sums, table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.path_sums import count_sums
from wpinq.graphs.tags import half_edges, pair_slices
from wpinq.plan.lowering import physical_plan

WIDTHS = [0.125, 0.0, 0.25, 0.5, 4.0]
SIMPLE = wp.source("edges", src=int, dst=int, facts=["simple", "unit_weights"])
WEIGHED = wp.source("edges", src=int, dst=int, facts=["nonnegative"])
NAMED = wp.source("edges", src=str, dst=str, facts=["simple", "unit_weights"])
VISITS = wp.source("visits", who=int, where=str, facts=["nonnegative"])
SHOPS = wp.source("shops", where=int, owner=int, facts=["unit_weights"])
NAMED_SHOPS = wp.source("named_shops", where=str, owner=int, facts=["unit_weights"])
WALKS = wp.source("walks", who=int, where=int, facts=["nonnegative"])
MAYBE = wp.source("maybe", who=int, where=int | None, facts=["nonnegative"])
MAYBE_SHOPS = wp.source("maybe_shops", where=int | None, owner=int, facts=["unit_weights"])


def sliced(paths: Query) -> Query:
    return paths.shave(lambda p: WIDTHS).select(lambda p: p.index)


def pairs(edges: Query) -> Query:
    half = half_edges(edges)
    paths = half.join(half, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, y.dst))
    return sliced(paths.where(lambda p: p[0] != p[1]).select(lambda p: F.sort((p[0], p[1]))))


def onward(left: Query, right: Query) -> Query:
    """Paths of two tables: what the first leg weighs differs by leg, and loops and repeated records are there."""
    paths = left.join(right, lambda x: x[1], lambda y: y[0], lambda x, y: (x[0], y[1]))
    return sliced(paths.where(lambda p: p[0] < p[1]))


LOOPED: dict[str, Callable[[], Query]] = {
    "slices": lambda: pair_slices(SIMPLE, [0, 0.125, 0.25, 4]),
    "pairs": lambda: pairs(SIMPLE),
    "two tables": lambda: onward(WALKS, SHOPS),
    "some legs": lambda: onward(WALKS.where(lambda w: w.who > w.where), SHOPS),
    "text between": lambda: onward(VISITS, NAMED_SHOPS),
}
JOINED: dict[str, Callable[[], Query]] = {
    "second legs that weigh": lambda: pairs(WEIGHED),
    "text at the ends": lambda: pairs(NAMED),
    "to smaller ends": lambda: sliced(
        WALKS.join(SHOPS, lambda x: x[1], lambda y: y[0], lambda x, y: (x[0], y[1])).where(lambda p: p[1] < p[0])
    ),
    "null between": lambda: onward(MAYBE, MAYBE_SHOPS),
    "ends told apart": lambda: sliced(
        WALKS.join(SHOPS, lambda x: x[1], lambda y: y[0], lambda x, y: (x[0], y[1])).where(
            lambda p: (p[0] < p[1]) & (p[1] != 3)
        )
    ),
}


def has_legs(query: Query) -> bool:
    return any(statement.legs for statement in Plan(physical_plan(query.plan)).program().statements)


def data(named: bool, rng: Random) -> dict[str, dict[Any, float]]:
    def node() -> Any:
        return f"n{rng.randrange(12)}" if named else rng.randrange(-6, 6)

    ends = {tuple(sorted((node(), node()))) for _ in range(60)}
    weights = (1.0, 0.75, 1 / 3)
    return {
        "edges": {pair: 1.0 for pair in ends if pair[0] != pair[1]},
        "visits": {(rng.randrange(12), str(rng.randrange(-6, 6))): rng.choice(weights) for _ in range(60)},
        "shops": {(rng.randrange(-6, 6), rng.randrange(12)): 1.0 for _ in range(60)},
        "named_shops": {(str(rng.randrange(-6, 6)), rng.randrange(12)): 1.0 for _ in range(60)},
        "maybe": {(rng.randrange(12), rng.choice([None, 0, 1])): rng.choice(weights) for _ in range(60)},
        "maybe_shops": {(rng.choice([None, 0, 1]), rng.randrange(12)): 1.0 for _ in range(60)},
        "walks": {(rng.randrange(12), rng.randrange(-6, 6)): rng.choice(weights) for _ in range(60)},
    }


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int | None]]:
    """The rows of the tables that a loop made, of data that are few but count as many."""
    made: list[int | None] = []

    def counted(*given: Any) -> int | None:
        made.append(count_sums(*given))
        return made[-1]

    monkeypatch.setattr(table_cache, "PART_ROWS", 8)
    monkeypatch.setattr(path_sums, "PAIRS", 16)
    monkeypatch.setattr(table_cache, "count_sums", counted)
    yield made


@for_each("seed", range(3))
@pytest.mark.parametrize("name", [*LOOPED, *JOINED])
def test_the_bits_are_those_of_the_join(
    monkeypatch: pytest.MonkeyPatch, tables: list[int | None], name: str, seed: int
) -> None:
    query, given = (LOOPED | JOINED)[name](), data(name == "text at the ends", Random(seed))
    assert has_legs(query) == (name in LOOPED)
    with Database(threads=2) as database:
        found = database.evaluate(query.plan, given)
    assert len(found) > 1
    assert [made is not None for made in tables] == [name != "text between"] * (name in LOOPED)
    with Database() as database:
        assert database.evaluate(query.plan, given, rewrites=()) == found
    with monkeypatch.context() as without_numba, Database() as database:
        without_numba.setattr(path_sums, "compiled", lambda loop: loop)
        assert database.evaluate(query.plan, given) == found
    assert tables[1:] == [None] * (name in LOOPED)
    tables.clear()


def test_machine_code_that_cannot_be_read_is_left_out(
    tables: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: Any) -> int:
        raise OSError("no such cache")

    query, given = pairs(SIMPLE), data(False, Random(1))
    with Database() as database:
        found = database.evaluate(query.plan, given)
    monkeypatch.setattr(path_sums, "compiled", lambda loop: unreadable)
    with Database() as database:
        assert database.evaluate(query.plan, given) == found
    assert tables[0] and tables[1] is None


@for_each("seed", range(4))
def test_numbers_of_sums_are_those_of_sql(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng, step = Random(seed), 2.0**-90
    monkeypatch.setattr(path_sums, "PAIRS", 2 ** (4 + 8 * (seed % 2)))
    # with loops and repeats, and integers whose lower halves are nearly full: most sums carry
    first = [(rng.randrange(20), rng.randrange(-9, 9), rng.randrange(4) * 2**64 - 1 + 2**70) for _ in range(300)]
    first += [(rng.randrange(20), rng.randrange(-9, 9), rng.randrange(2**112)) for _ in range(300)]
    second = [(rng.randrange(-9, 9), rng.randrange(20)) for _ in range(100)]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE a (c0 BIGINT, c1 BIGINT, w HUGEINT); CREATE TABLE b (c0 BIGINT, c1 BIGINT)")
    connection.executemany("INSERT INTO a VALUES (?, ?, ?)", first[: 600 if seed else 0] or [(0, 50, 1)])
    connection.executemany("INSERT INTO b VALUES (?, ?)", second)
    rows = count_sums(connection, "counted", "SELECT * FROM a", "SELECT * FROM b", repr(step))
    found = Counter[float]()
    for number, weight in connection.execute("SELECT n, w FROM counted").fetchall():
        found[weight] += number
    assert rows == len(connection.execute("SELECT n FROM counted").fetchall())
    joined = (
        f"SELECT CAST(sum(a.w) AS DOUBLE) * {step!r} FROM a, b WHERE a.c1 = b.c0 AND a.c0 < b.c1 GROUP BY a.c0, b.c1"
    )
    assert +found == Counter(weight for (weight,) in connection.execute(joined).fetchall())
    assert bool(+found) == bool(seed)
    exact = Counter[tuple[int, int]]()
    for start, middle, integer in first if seed else []:
        for own, end in second:
            if own == middle and start < end:
                exact[start, end] += integer
    as_float = "SELECT CAST(CAST(? AS HUGEINT) AS DOUBLE)"
    totals = [connection.execute(as_float, [str(total)]).fetchall()[0][0] for total in exact.values()]
    assert +found == Counter(total * step for total in totals)
