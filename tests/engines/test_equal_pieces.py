"""Records of one weight are cut once where only numbers of pieces are added up: where, and with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.dialect import ALL_ROWS
from wpinq.engines.sql.duckdb import table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.instance import Connection
from wpinq.plan.lowering import physical_plan

EDGES = wp.source("edges", src=int, dst=int, facts=["nonnegative"])
NAMED = wp.source("edges", src=str, dst=str, facts=["nonnegative"])
WIDTHS = [0.125, 0.0, 0.25, 0.5, 4.0]


def pairs(edges: Query) -> Query:
    half = edges.select_many(lambda e: [(e.src, e.dst), (e.dst, e.src)])
    paths = half.join(half, lambda x: x[1], lambda y: y[0], lambda x, y: (x[0], y[1]))
    return paths.where(lambda p: p[0] != p[1]).select(lambda p: F.sort((p[0], p[1])))


COUNTED: dict[str, Callable[[Query], Query]] = {
    "numbers": lambda q: pairs(q).shave(lambda p: WIDTHS).select(lambda p: p.index),
    "some of them": lambda q: pairs(q).shave(lambda p: WIDTHS).where(lambda p: p.index > 0).select(lambda p: p.index),
    "a term of them": lambda q: pairs(q).shave(lambda p: WIDTHS).select(lambda p: (p.index // 2, "half")),
    "all together": lambda q: pairs(q).shave(lambda p: WIDTHS).select(lambda p: 0),
    "cut again": lambda q: pairs(q).shave(lambda p: WIDTHS).select(lambda p: p.index).shave(0.5),
    "of two": lambda q: (
        pairs(q).concat(q.select(lambda e: F.sort((e.src, e.dst)))).shave(lambda p: WIDTHS).select(lambda p: p.index)
    ),
}
EACH_RECORD: dict[str, Callable[[Query], Query]] = {
    "records": lambda q: pairs(q).shave(lambda p: WIDTHS).select(lambda p: (p.record[0], p.index)),
    "filtered records": lambda q: (
        pairs(q).shave(lambda p: WIDTHS).where(lambda p: p.record[0] != p.record[1]).select(lambda p: p.index)
    ),
    "off the grid": lambda q: pairs(q).shave(lambda p: [1e-40, 0.25]).select(lambda p: p.index),
    "one width": lambda q: pairs(q).shave(0.25).select(lambda p: p.index),
    "no join": lambda q: q.select(lambda e: e.src).shave(lambda p: WIDTHS).select(lambda p: p.index),
}


def reads_in_parts(query: Query) -> bool:
    """Whether the output comes from a table that is made in parts."""
    program = Plan(physical_plan(query.plan)).program()
    reads, whole = {*program.reads}, program.statements
    for statement in reversed(whole):
        reads |= {*statement.reads} if statement.creates in reads else set()
    return any(statement.in_parts and statement.creates in reads for statement in whole)


def edges(named: bool) -> dict[Any, float]:
    rng = Random("equal pieces")
    ends = [[f"n{rng.randrange(12)}" if named else rng.randrange(-6, 6) for _ in range(2)] for _ in range(60)]
    return {tuple(pair): rng.choice((1.0, 0.75, 1 / 3)) for pair in ends}


@for_each("name", COUNTED)
@pytest.mark.parametrize("source", [EDGES, NAMED], ids=["int", "str"])
@pytest.mark.parametrize("rows", [2**15, 16], ids=["at once", "in parts"])
def test_the_bits_are_those_of_pieces_of_each_record(
    monkeypatch: pytest.MonkeyPatch, name: str, source: Query, rows: int
) -> None:
    query, data = COUNTED[name](source), {"edges": edges(source is not EDGES)}
    assert reads_in_parts(query) == (name != "of two")  # of one block alone
    monkeypatch.setattr(table_cache, "PART_ROWS", rows)
    with Database(threads=2) as database:
        found = database.evaluate(query.plan, data)
        assert found == database.evaluate(query.plan, data, rewrites=())
        assert found


@pytest.mark.parametrize("name", EACH_RECORD)
def test_pieces_of_which_more_is_read_are_made_of_each_record(name: str) -> None:
    assert not reads_in_parts(EACH_RECORD[name](EDGES))


def test_pairs_are_never_stored_and_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, query = list[str](), COUNTED["numbers"](EDGES)
    execute = Connection.execute
    monkeypatch.setattr(table_cache, "PART_ROWS", 16)

    def executed(self: Connection, sql: str, given: Any = ()) -> Any:
        ran.append(sql)
        return execute(self, sql, given)

    monkeypatch.setattr(Connection, "execute", executed)
    with Database(threads=1) as database:
        database.evaluate(query.plan, {"edges": edges(False)})
    summed = [sql for sql in ran if "% " in sql and "hash(" in sql]
    assert len(summed) > 2, "the data are to be more than a part"
    assert all("ORDER BY" in sql for sql in summed), "sums by one node follow one another"
    for part, sql in enumerate(summed):
        assert f"% {len(summed)} = {part})" in sql
    assert all("hash(" in sql for sql in ran if "NOT (" in sql), "pairs are made in parts alone"


def test_a_text_that_looks_like_the_mark_of_a_part_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_cache, "PART_ROWS", 16)
    marked = pairs(NAMED).where(lambda p: (p[0] != ALL_ROWS) & (p[1] != ALL_ROWS))
    query = marked.shave(lambda p: WIDTHS).select(lambda p: p.index)
    data = {"edges": edges(True) | {(ALL_ROWS, "n1"): 1.0}}
    with Database(threads=1) as database:
        assert reads_in_parts(query)
        assert database.evaluate(query.plan, data) == database.evaluate(query.plan, data, rewrites=())
