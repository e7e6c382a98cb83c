"""Outputs at some keys: each engine gives what these weigh, as in the whole output, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, random_case
from tests.support.relational import without
from wpinq import functions as F
from wpinq.columns.records import in_order
from wpinq.engines import reference
from wpinq.engines.contract import at_keys, find_engine, rank_weights_of
from wpinq.engines.reference import Reference
from wpinq.engines.sql.duckdb import table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.instance import Connection
from wpinq.expr.values import KeyPairs
from wpinq.plan.arithmetic import FLOAT

EDGES = wp.source("edges", src=int, dst=int, weights=True)
DEGREES = EDGES.group_by(lambda e: e.src, lambda group: F.count(group))

RECORDS: dict[str, tuple[Any, list[Any]]] = {
    "ints": (int | None, [None, 0, -(2**63), 2**63 - 1]),
    "floats": (float | None, [None, 0.0, -5e-324, 1.7976931348623157e308, 0.1]),
    "texts": (str | None, [None, "", "a", "é\\0'", "😀"]),
    "records": ({"a": int | None, "b": str | None}, [(None, None), (1, None), (None, ""), (1, "")]),
    "flags": ({"a": bool | None, "b": float}, [(None, 0.5), (True, 0.0), (False, 0.0)]),
    "lists": (list[int | None], [(), (None,), (1,), (1, None), (None, 1)]),
    "nested": (list[tuple[int | None, list[str]]], [(), ((None, ()),), ((1, ("a",)), (1, ())), ((1, ("a",)),)]),
    "deep": ({"a": int, "b": list[float] | None}, [(1, None), (1, ()), (1, (0.0,)), (2, (0.5, 0.25))]),
}


def bits(weights: Any) -> list[tuple[str, str]]:
    return sorted((repr(record), float(weight).hex()) for record, weight in weights.items())


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_every_type_are_found(database: Database, name: str) -> None:
    type_, records = RECORDS[name]
    source = wp.source("given", type_, weights=True)
    data = {"given": {record: 0.1 + i for i, record in enumerate(records[:-1])}}
    for query in (source, source.concat(source)):  # a source as it stands, and an output that is added up
        whole = database.evaluate(query.plan, data)
        assert len(whole) == len(records) - 1
        for keys in ([], records, records[::-1][:2], [None, records[1]]):
            expected = {key: whole[key] for key in keys if key in whole}
            assert bits(database.evaluate(query.plan, data, keys=keys)) == bits(expected)
            assert bits(Reference().evaluate(query.plan, data, keys=keys)) == bits(expected)


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_weights_at_keys_have_the_bits_of_the_whole_output(database: Database, operator: str) -> None:
    rng = Random(f"{operator} keys")
    for _ in range(4):
        case = random_case(rng, operator)
        data = {name: {record: float(w) for record, w in given.items()} for name, given in case.data.items()}
        whole = database.evaluate(case.plan, data)
        keys = rng.sample(list(whole), len(whole) // 2)
        assert bits(database.evaluate(case.plan, data, keys=keys)) == bits({key: whole[key] for key in keys})


def test_many_keys_are_a_table(database: Database) -> None:
    data = {"edges": {(i, i % 1000): 1.0 + i / 7 for i in range(3000)}}
    keys = [(i, i % 1000) for i in range(0, 200_000, 2)]
    whole = database.evaluate(EDGES.plan, data)
    assert bits(database.evaluate(EDGES.plan, data, keys=keys)) == bits(
        {k: w for k, w in whole.items() if not k[0] % 2}
    )


@pytest.mark.parametrize("nullable", [False, True])
def test_pairs_are_joined_by_each_of_their_fields(database: Database, nullable: bool) -> None:
    type_: Any = str | None if nullable else str
    source = wp.source("given", {"group": {"a": type_, "b": int}, "part": str}, weights=True)
    groups = [(None if nullable and i % 9 == 0 else f"g{i % 7}", i) for i in range(100)]
    data = {"given": {(group, part): 0.1 + group[1] for group in groups[::2] for part in ("low", "other")}}
    keys = KeyPairs((groups, ["upper", "low"]), None)
    expected = database.evaluate(source.plan, data, keys=list(keys))
    assert expected == {(group, "low"): 0.1 + group[1] for group in groups[::2]}
    found = database.evaluate(source.plan, data, keys=keys)
    for asked in (keys, list(keys)):  # by place, and by key
        assert in_order(found, asked) == [expected.get(key, 0.0) for key in keys]
    assert list(found.items()) == list(expected.items())


def test_only_the_keys_asked_for_leave_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[dict[Any, float]] = []

    def watched(weights: dict[Any, float], keys: Any) -> dict[Any, float]:
        fetched.append(weights)
        return at_keys(weights, keys)

    monkeypatch.setattr(table_cache, "at_keys", watched)
    fetch_many = table_cache.fetch_many
    monkeypatch.setattr(table_cache, "fetch_many", lambda *given, **how: watched(fetch_many(*given, **how), given[-1]))
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 0)
    data = {"edges": {(i % 5, i): 1.0 for i in range(50)}}
    many = [3, *range(9, 200)]
    for keys in ([3, 9], [3], many, many):
        assert database.evaluate(EDGES.select(lambda e: e.src).plan, data, keys=keys) == {3: 10.0}
    assert fetched == [{3: 10.0}] * 4


def test_a_small_result_is_read_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    fetch = table_cache.fetch
    monkeypatch.setattr(table_cache, "fetch", lambda *given: asked.append(1) or fetch(*given))
    plan = EDGES.select(lambda e: e.src).plan
    for edges in ({(i % 5, i): 1.0 for i in range(50)}, {(i % 3, i): 1.0 for i in range(9)}):
        for key in range(4):
            whole = {k: sum(w for (src, _), w in edges.items() if src == k) for k in {src for src, _ in edges}}
            found = database.evaluate(plan, {"edges": edges}, keys=[key])
            assert found == ({key: whole[key]} if key in whole else {})
            found.clear()
    assert len(asked) == 2, "the first time, for each of two datasets"


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_one_key_after_another_takes_one_evaluation(engine: str) -> None:
    steps: list[str] = []
    with wp.Session(engine=engine, on_step=steps.append) as session:
        session.protect(EDGES, [(i % 7, i) for i in range(40)], budget=10)
        release = session.release(DEGREES.noisy_count(1))
        assert isinstance(release, wp.Release)
        for key in range(6):
            release[key, 6]
            assert steps == ["Source", "GroupBy"]
        session.protect(EDGES, [(i % 7, i) for i in range(40)], budget=10)
        release = session.release(DEGREES.noisy_count(1))
        assert isinstance(release, wp.Release)
        release[0, 6]
        assert steps == ["Source", "GroupBy"] * 2, "other data"


def test_the_last_result_stays_whatever_its_size_and_goes_with_its_data(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_cache, "KEPT_SHARE", 0)
    data = {"edges": {(i % 7, i): 1.0 + i / 3 for i in range(40)}}

    def tables() -> list[str]:
        rows = database.open().connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        return [name for (name,) in rows if not name.startswith("source")]

    def steps(query: wp.Query) -> list[str]:
        told: list[str] = []
        database.evaluate(query.plan, data, on_step=told.append, keys=[(1, 2)])
        return told

    pairs = EDGES.concat(EDGES)
    assert steps(pairs)
    assert not steps(pairs)
    (first,) = tables()
    assert steps(DEGREES)
    assert first not in tables(), "there is room for the last alone"
    assert not steps(DEGREES)
    assert database.evaluate(DEGREES.plan, data) == reference.evaluate(DEGREES.plan, data)
    assert not steps(DEGREES), "the whole output was asked for, and the result stands"
    database.forget("edges")
    assert tables() == []
    assert steps(DEGREES)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_the_sides_are_those_of_the_whole_output(engine: str) -> None:
    numbers = wp.source("numbers", int | None, weights=True)
    opened = find_engine(engine)()
    data = {"numbers": {None: 7.0, 1: 0.5, 2: 1.0, 5: 2.0}}
    assert opened.rank_weights(numbers.plan, data, [2, 0, 9, 2]) == [(0.5, 1, 2), (0, 0, 3.5), (3.5, 0, 0), (0.5, 1, 2)]
    scrambled = numbers.select(lambda x: x * 3 % 5).difference(numbers.where(lambda x: x == 1)).plan
    expected = rank_weights_of(find_engine("reference")().evaluate(scrambled, data), [0, 1, 3, 4])
    assert opened.rank_weights(scrambled, data, [0, 1, 3, 4]) == expected
    opened.close()


def test_what_differs_in_whole_numbers_alone_is_tried_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    execute = Connection.execute

    def counting(self: Connection, sql: str, given: Any = ()) -> Any:
        if sql.startswith("SELECT * FROM (SELECT"):
            tried.append(sql)
        return execute(self, sql, given)

    monkeypatch.setattr(Connection, "execute", counting)

    nothing: dict[str, dict[Any, float]] = {"edges": {}}

    def number(plans: list[wp.Query]) -> int:
        tried.clear()
        for query in plans:
            database.evaluate(query.plan, nothing, keys=())
        return len(tried)

    assert number([EDGES.where(lambda e, i=i: e.src > i).select(lambda e: e.dst) for i in (3, 4, -5)]) == 1
    assert number([EDGES.where(lambda e: e.src > 6).select(lambda e: e.src)]) == 1, "another column is another query"
    assert number([EDGES.where(lambda e: e.src > 2**62).select(lambda e: e.dst)]) == 1, "and a large number"
    lists = [EDGES.select(lambda e, i=i: F.sum(F.range(e.src, e.src + i, limit=9))) for i in (3, 4)]
    assert number(lists) == 2, "and a list so long"
    monkeypatch.setattr(table_cache, "TRIED", 1)
    one, other = (EDGES.select(lambda e: e.src // 3), EDGES.select(lambda e: e.dst // 3))
    assert [number([query]) for query in (one, one, other, one)] == [1, 0, 1, 1]
    assert len(database.open().tables.tried) == 1


@pytest.mark.parametrize("kind", ["text", "null", "pair"])
def test_sums_side_by_side_are_read_once_for_all_their_values(
    database: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    type_, group = {
        "text": ({"k": str, "x": float}, lambda i: f"g{i}"),
        "null": ({"k": int | None, "x": float}, lambda i: i or None),
        "pair": ({"k": int, "m": str, "x": float}, lambda i: (i // 7, f"m{i % 7}")),
    }[kind]
    people = wp.source("people", type_)
    names = ["k", "m"] if kind == "pair" else ["k"]
    asked = people.by(*names, keys=[group(i) for i in range(100)]).agg(x=wp.mean("x", 0, 10), epsilon=1)
    (measurement,) = asked.measurements
    assert isinstance(measurement.domain, KeyPairs)
    rows = [(group(i % 150), float(i % 13 - 1)) for i in range(0, 1000, 3)]  # some groups are absent, others unwanted
    data = {"people": {(*(g if kind == "pair" else (g,)), x): 0.25 + x / 3 + 1 for g, x in rows}}
    whole = database.evaluate(measurement.plan, data, rewrites=without("side_by_side"))
    expected = {key: whole[key] for key in measurement.domain if key in whole}
    ran: list[str] = []
    execute = Connection.execute
    monkeypatch.setattr(Connection, "execute", lambda self, sql, given=(): ran.append(sql) or execute(self, sql, given))
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 0)
    for keys in (measurement.domain, [*measurement.domain], measurement.domain):
        assert bits(database.evaluate(measurement.plan, data, keys=keys)) == bits(expected)
    assert [sql.count("JOIN") for sql in ran if "q.w1" in sql] == [1, 1], "the list of keys is of no pairs"
    (made,) = (sql for sql in ran if sql.startswith("CREATE TEMP TABLE t"))
    assert "unnest" not in made
    other = KeyPairs((measurement.domain.factors[0], ["lower", "neither"]), measurement.key_type)
    for most in (0, 2**14):  # and as a whole, where there are few groups
        monkeypatch.setattr(table_cache, "KEPT_RECORDS", most)
        found = database.evaluate(measurement.plan, data, keys=other)
        assert bits(found) == bits({key: whole[key] for key in other if key in whole})
    assert database.evaluate(measurement.plan, data) == whole


@pytest.mark.parametrize(
    "label", ["a)) AS c1, unnest(list_value(w)) AS w FROM (", "it's", "/* few rows */", "% '1' = '0'"]
)
def test_labels_of_sums_side_by_side_are_no_sql(
    database: Database, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    """Texts like the query around them, and groups of nulls alone, whose sums are null."""
    people = wp.source("people", g=int, x=float | None)
    query = people.select_many(lambda r: [F.weighted((r.g, label), r.x), F.weighted((r.g, "count"), 1.0)])
    data = {"people": {(i % 90, None if i % 90 % 3 == 0 else i / 8): 1.0 for i in range(300)}}
    whole = database.evaluate(query.plan, data, rewrites=without("side_by_side"))
    pairs = KeyPairs((tuple(range(-5, 95)), ("count", label)), query.plan.type)
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 4)
    for keys in (pairs, [*pairs]):
        with Database(threads=1) as opened:
            for _ in range(2):
                found = opened.evaluate(query.plan, data, keys=keys)
                assert bits(found) == bits({key: whole[key] for key in keys if key in whole})


def test_one_thread_reads_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"edges": {(i % 5, i): 1.0 for i in range(50)}}
    threads: list[int] = []
    execute = Connection.execute

    def watched(self: Connection, sql: str, given: Any = ()) -> Any:
        found = execute(self, sql, given)
        if "HUGEINT" in sql:  # it adds weights up
            threads.append(self._state.now)
        return found

    with Database(threads=2) as opened:
        monkeypatch.setattr(Connection, "execute", watched)
        for most in (2**14, 8, 2**14):
            monkeypatch.setattr(table_cache, "KEPT_RECORDS", most)
            opened.forget("edges")
            assert opened.evaluate(EDGES.select(lambda e: e.src).plan, data, keys=[3, 4]) == {3: 10.0, 4: 10.0}
    assert threads == [1, 2, 1]


def test_threads_stop_and_start_only_where_a_statement_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take what DuckDB keeps of memory with them, and the next statement asks for it anew."""
    people = wp.source("people", city=str, pay=float)
    data = {"people": {(f"city {i % 90}", float(i)): 1.0 for i in range(900)}}
    keys = [f"city {i}" for i in range(5, 105)]
    asked = wp.mean("pay", 0, 800), wp.sum("pay", 0, 800), wp.mean("pay", 0, 700)
    tables = [people.by("city", keys=keys).agg(epsilon=1, x=of) for of in asked]
    whole = [reference.evaluate(table.measurements[0].plan, data, FLOAT) for table in tables]
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 8)
    numbers: list[list[int]] = []
    execute = Connection.execute

    def watched(self: Connection, sql: str, given: Any = ()) -> Any:
        found = execute(self, sql, given)
        numbers[-1].append(self._state.now)
        return found

    with Database(threads=2) as opened:
        monkeypatch.setattr(Connection, "execute", watched)
        for table, expected in zip(tables, whole, strict=True):
            (measurement,) = table.measurements
            assert measurement.domain is not None
            numbers.append([])
            found = opened.evaluate(measurement.plan, data, keys=measurement.domain)
            assert found == pytest.approx({key: expected[key] for key in measurement.domain if key in expected})
    of_mean, of_sum, of_next = ([number for number, _ in groupby(each)] for each in numbers)
    assert (of_mean[-1:], of_sum[-2:], of_next) == ([1], [2, 1], [1])


@pytest.mark.parametrize("type_", [int, str])
def test_several_threads_compute_what_many_keys_are_sought_in(type_: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread alone reads columns of Python's, and what joins them would run on it, too."""
    edges = wp.source("edges", src=type_, dst=type_)
    ends = edges.join(edges, lambda a: a.dst, lambda b: b.src, lambda a, b: (a.src, b.dst)).select(lambda pair: pair[0])
    data = {"edges": {(type_(i % 90), type_(i // 7)): 1.0 for i in range(900)}}
    keys = [type_(i) for i in range(5, 105)]
    plans = [ends.plan, ends.where(lambda end: end != type_(6)).plan]
    monkeypatch.setattr(table_cache, "KEPT_RECORDS", 8)
    threads: list[int] = []
    execute = Connection.execute

    def watched(self: Connection, sql: str, given: Any = ()) -> Any:
        found = execute(self, sql, given)
        if "HUGEINT" in sql and " AS place" in sql:
            threads.append(self._state.now)
        return found

    with Database(threads=2) as opened, opened.batch(plans):
        monkeypatch.setattr(Connection, "execute", watched)
        for plan in plans:
            whole = reference.evaluate(plan, data, FLOAT)
            found = opened.evaluate(plan, data, keys=keys)
            assert found == pytest.approx({key: whole[key] for key in keys if key in whole})
    assert threads == [2, 2]
