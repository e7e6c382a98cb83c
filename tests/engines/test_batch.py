"""Plans that are evaluated together: each has the bits that it has alone, and what they share is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, random_case
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import PARTS, Plan
from wpinq.engines.sql.duckdb import database as duckdb_database, table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.table_cache import TableCache
from wpinq.engines.sql.engine import SHARED_USES, Batch, shared_steps
from wpinq.engines.sql.script import SqlStatement
from wpinq.errors import WpinqError
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import Node

EDGES = wp.source("edges", src=int, dst=int)

CONSUMERS: tuple[Callable[[Query], Query], ...] = (
    lambda q: q,
    lambda q: q.select(lambda x: 0),
    lambda q: q.select(lambda x: (x, 1)),
    lambda q: q.where(lambda x: x == x),
    lambda q: q.where(lambda x: x == x).select(lambda x: (x, 2)),
    lambda q: q.select(lambda x: (x, 3)).where(lambda x: x[1] > 2).select(lambda x: x[0]),
    lambda q: q.partition(lambda x: 0, [0, 1])[0].select(lambda x: (x, 4)),
    lambda q: q.concat(q.select(lambda x: x)),
    lambda q: q.difference(q.where(lambda x: x == x)),
    lambda q: q.group_by(lambda x: 0, lambda group: F.count(group)),
    lambda q: q.shave(0.5).select(lambda x: x[1]),
    lambda q: q.join(q, lambda x: 0, lambda y: 0, lambda x, y: x),
)


def bits(weights: Any) -> list[tuple[str, str]]:
    return [(repr(record), float(weight).hex()) for record, weight in weights.items()]


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def consumers(query: Query) -> list[Node]:
    """What can be asked of a query, some of it through a step that several share once more."""
    found = []
    for build in CONSUMERS:
        try:
            found.append(build(query).plan)
        except (WpinqError, AttributeError):  # not of records of this type
            continue
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("operator", tenth(OPERATORS, 6))
def test_a_plan_has_the_bits_in_company_that_it_has_alone(database: Database, operator: str) -> None:
    rng = Random(f"{operator} together")
    for _ in range(2):
        case = random_case(rng, operator)
        data = {name: {record: float(w) for record, w in given.items()} for name, given in case.data.items()}
        roots = consumers(Query(case.plan))
        assert len(roots) > SHARED_USES
        alone = {}
        for root in roots:
            for name in data:
                database.forget(name)
            alone[root] = database.evaluate(root, data)
        for name in data:
            database.forget(name)
        for order in (roots, rng.sample(roots, len(roots))):  # the second over tables that stand
            with database.batch(order):
                for root in order:
                    assert bits(database.evaluate(root, data)) == bits(alone[root])
        with database.batch(roots):
            for root in roots:
                keys = list(alone[root])[::2]
                expected = {key: alone[root][key] for key in keys}
                assert bits(database.evaluate(root, data, keys=keys)) == bits(expected)


def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are made from now on."""
    names: list[str] = []
    create = TableCache.create

    def counting(self: TableCache, statement: SqlStatement, shared: bool) -> None:
        if not self.stands(statement.creates):
            names.append(statement.creates)
        create(self, statement, shared)

    monkeypatch.setattr(TableCache, "create", counting)
    return names


def triangles(least: int) -> Query:
    return triangles_by_degree(symmetrize(EDGES)).where(lambda t: t[0] > least).select(lambda t: 0)


def test_what_the_plans_of_a_batch_share_is_made_once_and_goes_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cache, "KEPT_SHARE", 0)
    rng = Random(3)
    data = {"edges": {(rng.randrange(40), rng.randrange(40)): 1.0 for _ in range(400)}}
    roots = [triangles(least).plan for least in range(6)]
    alone = [database.evaluate(root, data) for root in roots]
    database.forget("edges")
    names = made(monkeypatch)
    with database.batch(roots):
        first = database.evaluate(roots[0], data)
        once = len(names)
        assert [first, *(database.evaluate(root, data) for root in roots[1:])] == alone
        assert len(names) == once, "all that the others read stands"
    assert len(set(names)) == len(names)
    held = database.open().connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert held == [("source_edges",)], "nothing stays that there is no room for"


def test_steps_are_shared_that_several_read() -> None:
    once = EDGES.select(lambda e: e.src)
    filters = [once.where(lambda x, i=i: x > i).plan for i in range(SHARED_USES)]
    assert shared_steps(filters) == {once.plan.digest}
    assert shared_steps(filters[1:]) == frozenset()
    assert shared_steps([*filters[1:], once.plan]) == {once.plan.digest}, "an output is one that reads, too"
    batch = Batch(filters)
    shared = {Plan(root, shared=batch.plan(root).shared).program().statements[0].creates for root in filters}
    assert len(shared) == 1
    assert not Plan(filters[0]).program().statements


def test_a_batch_of_a_session_is_as_its_releases_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[float]] = []
    monkeypatch.setattr(
        "wpinq.sinks.laplace.add_laplace", lambda weights, *more: drawn.append(weights.tolist()) or weights
    )
    rng = Random(4)
    edges = list({(rng.randrange(30), rng.randrange(30)) for _ in range(200)})
    parts = EDGES.partition(lambda e: e.src % 4, range(4))
    asked = [
        *(triangles(least).noisy_count(0.1, over=[0]) for least in range(4)),
        *(part.select(lambda e: e.dst).noisy_count(0.1, over=range(30)) for part in parts.values()),
        EDGES.select(lambda e: e.dst).quantile(epsilon=0.1, q=0.5, candidates=range(30)),
        EDGES.select(lambda e: e.src).noisy_count(0.1),
    ]
    answers: list[list[list[float]]] = []
    for together in (True, False):
        with wp.Session() as session:
            session.protect(EDGES, edges, budget=1000)
            released = session.release(asked) if together else [session.release(one) for one in asked]
            released[-1].at([1, 2, 3])
            spent, before = session.spent("edges"), len(drawn)
            session.release(asked)  # what was answered is not evaluated again
            assert (session.spent("edges"), len(drawn)) == (spent, before)
        answers.append(drawn[:])
        drawn.clear()
    assert answers[0] == answers[1]


def parts_of_shares(count: int) -> tuple[list[Node], dict[str, dict[Any, float]]]:
    """Plans over many parts whose weights are sums of thirds, with two functions and a null key."""
    rng = Random(6)
    rows = {(rng.choice([None, *range(count)]), rng.randrange(9), i): 1 / 3 + i % 2 for i in range(600)}
    marks = wp.source("marks", group=int | None, mark=int, place=int, weights=True, unit_weight=2)
    parts = marks.partition("group", [None, *range(count - 1), count + 5])
    asked = [part.select(function).plan for function in ("mark", lambda m: m.mark // 2) for part in parts.values()]
    return [*asked, marks.select("mark").plan], {"marks": rows}


@pytest.mark.parametrize("most", [2**20, 30])  # of which the second is too few for all parts at once
def test_many_parts_of_a_partition_are_read_at_once_with_their_own_bits(
    database: Database, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_database, "MOST_OF_PARTS", most)
    roots, data = parts_of_shares(PARTS)
    alone = [database.evaluate(root, data) for root in roots]
    assert [len(each) > 1 for each in alone[:PARTS]] == [True] * PARTS and not alone[PARTS]
    fetched = counted(monkeypatch)
    for order in (roots, roots[::-1]):
        with database.batch(order):
            fetched.clear()
            together = {root: database.evaluate(root, data) for root in order}
            assert [bits(together[root]) for root in roots] == [bits(each) for each in alone]
            assert len(fetched) == (3 if most > 30 else len(roots))
            keys = [3, 0, 77]
            asked = [database.evaluate(root, data, keys=keys) for root in order]
            assert asked == [{key: together[root][key] for key in keys if key in together[root]} for root in order]
    with database.batch(roots):  # other data in the middle of it
        database.evaluate(roots[0], data)
        other = {"marks": {(None, 4, 0): 1.0}}
        assert database.evaluate(roots[0], other) == {4: 1.0}
    few = roots[: PARTS - 1]
    with database.batch(few):
        fetched.clear()
        assert [bits(database.evaluate(root, data)) for root in few] == [bits(each) for each in alone[: PARTS - 1]]
        assert len(fetched) == len(few)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries of outputs that are fetched from now on."""
    queries: list[str] = []
    fetch = duckdb_database.fetch
    monkeypatch.setattr(
        duckdb_database, "fetch", lambda c, query, *more: queries.append(query) or fetch(c, query, *more)
    )
    return queries


def test_plans_over_many_parts_are_tried_as_one(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    roots, _ = parts_of_shares(PARTS)
    tried: list[Node] = []
    monkeypatch.setattr(Database, "_admit", lambda self, plans: tried.extend(plans))
    database.admit([(root, True) for root in roots])
    wholes = [root for root in tried if root not in roots]
    assert [str(whole.type) for whole in wholes] == ["(int, int)"] * 2
    assert len(tried) == 1 + 2 + 2, "one output of its own, two of all parts, and one part of each"
