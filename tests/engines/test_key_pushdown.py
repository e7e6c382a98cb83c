"""Keys that are asked for narrow the rows of an output: the weights have the bits of the whole output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each, sizes
from tests.support.plans import random_case
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb import table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.table_cache import narrowing
from wpinq.graphs import squares_by_degree, symmetrize, triangles_by_degree

EDGES = wp.source("edges", src=int, dst=int, weights=True)
ITEMS = wp.source("items", key=int, size=float, name=str, maybe=int | None, flag=bool, tags=list[int], weights=True)


def paired(left: Any, right: Any) -> Any:
    return F.record(
        sizes=F.sort((left.size, right.size)),
        name=left.name,
        other=right.name,
        maybe=right.maybe,
        flag=left.flag,
        tags=right.tags,
        size=left.size + right.size,
    )


def halves(query: Query) -> Query:
    degrees = query.group_by(lambda e: e.src, lambda group: F.count(group))
    ends = query.join(degrees, lambda e: e.dst, lambda d: d.key, lambda e, d: F.record(a=e.src, d=d.val))
    return ends.join(ends, lambda x: x.a, lambda y: y.a, lambda x, y: (F.min(x.d, y.d), F.max(x.d, y.d) // 2))


def either(left: Any, right: Any) -> Any:
    """Fields of both in an order that one comparison decides, some of them null and some of them computed."""
    first = left.key < right.key
    return F.record(
        one=F.where(first, left.maybe, right.maybe),
        other=F.where(first, right.maybe, left.maybe),
        low=F.min(left.key, right.key) // 3,
        high=F.max(left.key, right.key) // 3,
        whole=left.maybe // (right.key % 3),
    )


def listed(left: Any, right: Any) -> Any:
    """Sums of lists in which each element is compared on its own: no one comparison decides."""
    less = F.sum(F.map(left.tags, lambda tag: F.where(tag < right.key, tag, left.key)))
    more = F.sum(F.map(left.tags, lambda tag: F.where(tag < right.key, left.key, tag)))
    return F.record(less=less, more=more, name=left.name)


QUERIES: dict[str, Query] = {
    "triangles": triangles_by_degree(EDGES),
    "symmetrized": triangles_by_degree(symmetrize(EDGES)),
    "paths": EDGES.join(EDGES, lambda e: e.dst, lambda e: e.src, lambda e, f: (e.src, f.dst)),
    "halves": halves(EDGES),
    "buckets": triangles_by_degree(EDGES, bucket=3),
    "buckets afterwards": triangles_by_degree(EDGES).select(lambda t: (t[0] // 3, t[1] // 3, t[2] // 3)),
    "squares": squares_by_degree(EDGES),
    "nulls": ITEMS.join(ITEMS, lambda x: x.key % 2, lambda y: y.key % 2, either),
    "lists": ITEMS.join(ITEMS, lambda x: x.key % 2, lambda y: y.key % 2, listed),
    "null alone": ITEMS.join(ITEMS, lambda x: x.key % 2, lambda y: y.key % 2, lambda x, y: x.maybe),
    "types": ITEMS.join(ITEMS, lambda x: x.key % 2, lambda y: y.key % 2, paired),
}
"""Of which the keys narrow the joins."""


def bits(weights: Any) -> list[tuple[str, str]]:
    return sorted((repr(record), float(weight).hex()) for record, weight in weights.items())


def datasets(rng: Random, weights: list[float]) -> dict[str, Any]:
    edges = [(int(30 * rng.random() ** 2), rng.randrange(30)) for _ in range(120)]
    items = {
        (
            i,
            rng.choice([0.0, 0.1, -1.5, 5e-324, 1e300]),
            rng.choice(["", "a", "é", "$values0", "'"]),
            rng.choice([None, 0, 5]),
            rng.random() < 0.5,
            tuple(rng.choice([(), (1,), (2, 3)])),
        ): rng.choice(weights)
        for i in range(14)
    }
    both = {pair: rng.choice(weights) for edge in edges for pair in (edge, edge[::-1]) if edge[0] != edge[1]}
    return {"edges": both, "items": items}


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


@for_each("name", QUERIES, every=9)
@for_each("weights", [[1.0], [1.0, 0.3, 2.5], [1.0, -0.7]], ids=["equal", "several", "signs"])
def test_narrowed_rows_give_the_bits_of_the_whole_output(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, weights: list[float]
) -> None:
    monkeypatch.setattr(table_cache, "QUERIES_BEFORE_STORING", 10**6)
    rng, plan = Random(f"{name} {weights}"), QUERIES[name].plan
    data = datasets(rng, weights)
    whole = database.evaluate(plan, data)
    assert len(whole) >= 2
    others = list(database.evaluate(plan, datasets(rng, [1.0])))  # of which some records are not in the output
    for number in (1, 1, 1, 2, 5, 30):
        keys = rng.sample(list(whole), min(number, len(whole) - 1)) + rng.sample(others, min(number, len(others)))
        for asked in (keys, keys[:number], [None, *keys]):
            expected = {key: whole[key] for key in asked if key in whole}
            assert bits(database.evaluate(plan, data, keys=asked)) == bits(expected)
    assert (Plan(plan, keyed=True).program().narrowed, Plan(plan).program().narrowed) == (True, False)


def test_random_joins_at_their_keys(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_cache, "QUERIES_BEFORE_STORING", 10**6)
    rng, narrowed = Random("asked"), 0
    for number in range(24):
        case = random_case(rng, ("Join", "Select", "Where")[number % 3])
        narrowed += Plan(case.plan, keyed=True).program().narrowed
        data = {name: {record: float(w) for record, w in given.items()} for name, given in case.data.items()}
        whole = database.evaluate(case.plan, data)
        for keys in (list(whole)[:1], list(whole)[1::2]):
            assert bits(database.evaluate(case.plan, data, keys=keys)) == bits({key: whole[key] for key in keys})
    assert narrowed > 2


def drawn(rng: Random, left: Any, right: Any) -> Any:
    """A record of comparisons, of what they decide between, and of what is computed of it: integers or null."""
    held = [side[field] for side in (left, right) for field in ("a", "b", "maybe", "other")]
    shown: list[Any] = []
    while len(shown) < 4:
        one, other = rng.choice(held), rng.choice(held)
        condition = rng.choice(held) < rng.choice(held)
        kind = rng.randrange(6)
        if kind == 0:
            shown += [F.min(one, other), F.max(one, other)]
        elif kind == 1:
            shown += [F.where(condition, one, other), F.where(condition, other, one)]
        elif kind == 2:
            shown += [F.where(condition, one // 3, other // 2), F.where(condition, other // 2, one // 3)]
        elif kind == 3:
            shown += [F.where(F.is_null(one), other, one), F.where(F.is_null(other), one, other)]
        elif kind == 4:
            ordered = F.sort((left.a, right.b, right.a))
            shown += [ordered[i] for i in range(3)]
        else:
            shown += [one // other]
        held += shown[-2:]
    return tuple(rng.sample(shown, rng.randint(2, 3)))


@pytest.mark.parametrize("many", sizes(20, 60))
def test_random_comparisons_at_their_keys(database: Database, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(table_cache, "QUERIES_BEFORE_STORING", 10**6)
    rows = wp.source("rows", key=int, a=int, b=int, maybe=int | None, other=int | None, weights=True)
    rng, narrowed, nulls = Random("comparisons"), 0, 0
    for _ in range(many):
        data = {
            (i, rng.randrange(-4, 9), rng.randrange(9), *(rng.choice([None, *range(-3, 7)]) for _ in "ab")): weight
            for i, weight in enumerate(rng.choices([1.0, 0.3, -0.7], k=16))
        }
        query = rows.join(rows, lambda x: x.key % 2, lambda y: y.key % 2, lambda x, y: drawn(rng, x, y))
        narrowed += Plan(query.plan, keyed=True).program().narrowed
        whole = database.evaluate(query.plan, {"rows": data})
        records = list(whole)
        with_nulls = [record for record in records if None in record]
        nulls += bool(with_nulls)
        for keys in (*([record] for record in rng.sample(records, 5)), records[1::2], with_nulls[:2], with_nulls[-1:]):
            expected = bits({key: whole[key] for key in keys})
            assert bits(database.evaluate(query.plan, {"rows": data}, keys=keys)) == expected
    assert narrowed > many * 2 / 3
    assert nulls > many / 2


@pytest.mark.parametrize("name", ["triangles", "buckets", "squares"])
def test_no_more_rows_are_joined_than_the_keys_leave(database: Database, name: str) -> None:
    ring = {(i, (i + step) % 60): 1.0 for i in range(60) for step in (1, -1)}
    crowd = {(a, b): 1.0 for a in range(100, 130) for b in range(100, 130) if a != b}
    plan = QUERIES[name].plan
    connection, rows = database.open().connection, []
    real = database.evaluate(plan, {"edges": ring | crowd}, keys=[(2, 2, 2, 2)[: 4 if name == "squares" else 3]])
    assert real == {}
    for asked in (False, True):
        compiled = Plan(plan, keyed=asked).program()
        for statement in compiled.statements:
            connection.execute(statement.sql.replace("CREATE TEMP TABLE", "CREATE OR REPLACE TEMP TABLE"))
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {compiled.output}"
        given = narrowing(query, {f"keys{i}": [2] for i in range(4)})
        ((_, text),) = connection.execute(query, given or None).fetchall()
        rows.append(json.loads(text)["query"]["total_intermediate_rows"])
    whole, narrowed = rows
    assert 4 * narrowed < whole
