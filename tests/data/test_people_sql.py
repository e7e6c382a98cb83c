"""The cut as SQL keeps, on random data of random types, the rows that its meaning in Python keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pytest

from tests.support.parameters import tenth
from tests.support.people import kept_rows, weigh
from wpinq.columns.records import column_names, column_types, leaf_columns, read_rows
from wpinq.data.people import DUCKDB, asymmetric, canonical_hex, counted, kept_of, weighed
from wpinq.expr import types
from wpinq.expr.declarations import Person
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, TupleOf, Type
from wpinq.expr.values import canonical_bytes

VALUES: dict[Type, list[Any]] = {
    INT: [0, 1, -1, 2**63 - 1, -(2**63), 7],
    FLOAT: [0.0, -1.5, 5e-324, 1.7e308, 0.1],
    BOOL: [False, True],
    STR: ["", "a", "é", "\U0001f600", "aa", "z\x01", "ab", "Z", "\x00"],
    types.DATE: [0, -1, 19_000],
    types.TIMESTAMP: [0, -(10**15), 10**15],
    types.TIME: [0, 86_399_999_999],
    types.DURATION: [0, -1, 10**9],
    types.decimal(2): [0, 150, -(2**63)],
    types.category("é", "b", "a"): ["é", "b", "a"],
}
"""What stands for values of each scalar type."""


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        yield opened


def random_type(rng: Random, depth: int = 0) -> Type:
    draw, nullable = rng.random(), rng.random() < 0.4
    if depth < 3 and draw < 0.25:
        return TupleOf((None, None), (random_type(rng, depth + 1), random_type(rng, depth + 1)), nullable=nullable)
    if depth < 3 and draw < 0.4:
        return ListOf(random_type(rng, depth + 1), nullable=nullable)
    return rng.choice(list(VALUES)).with_nullable(nullable)


def random_value(rng: Random, type_: Type) -> Any:
    if type_.nullable and rng.random() < 0.3:
        return None
    if isinstance(type_, TupleOf):
        return tuple(random_value(rng, element) for element in type_.elements)
    if isinstance(type_, ListOf):
        return tuple(random_value(rng, type_.element) for _ in range(rng.randrange(3)))
    return rng.choice(VALUES[type_])


def offer(connection: Any, type_: Type, ids: list[Any], rows: list[Any]) -> None:
    """The rows as the table `offered`, with `p`."""
    kind = "BIGINT" if isinstance(ids[0], int) else "VARCHAR"
    columns = ", ".join(f"{name} {sql}" for name, sql in zip(column_names(type_), column_types(type_), strict=True))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE offered (p {kind}, {columns})")
    values = [*zip(ids, *leaf_columns(type_, rows), strict=True)]
    connection.executemany(f"INSERT INTO offered VALUES ({', '.join('?' for _ in values[0])})", values)


@pytest.mark.parametrize("seed", tenth(range(60)))
def test_the_same_rows_are_kept_as_in_python(connection: Any, seed: int) -> None:
    rng = Random(seed)
    type_ = TupleOf(("x", "y"), (random_type(rng), random_type(rng)))
    pool = [random_value(rng, type_) for _ in range(rng.choice([2, 5, 20]))]
    people: list[Any] = rng.choice([[1, 2, 3], ["a", "b", "é"]])
    size, at_most = rng.randrange(1, 40), rng.choice([1, 2, 5])
    ids, rows = [rng.choice(people) for _ in range(size)], [rng.choice(pool) for _ in range(size)]
    offer(connection, type_, ids, rows)
    kept = kept_rows(ids, rows, type_, at_most)
    query = kept_of(f"({counted('SELECT * FROM offered', type_)})", type_, at_most, DUCKDB)
    for nested in (False, True):
        person = Person("who", at_most, nested)
        found = connection.execute(weighed(f"({query})", type_, person, DUCKDB)).fetchall()
        got = read_rows(person.record(type_), found)
        assert len(got) == len(found)
        assert sorted(got.items(), key=repr) == sorted(weigh(kept, person).items(), key=repr)


def test_canonical_bytes_are_those_of_python(connection: Any) -> None:
    rng = Random(1)
    for _ in range(150):
        type_ = random_type(rng)
        value = random_value(rng, type_)
        offer(connection, type_, [1], [value])
        (said,) = connection.execute(f"SELECT {canonical_hex(type_, DUCKDB)} FROM offered").fetchone()
        assert said == canonical_bytes(value, type_).hex().upper()


def test_every_scalar_has_canonical_bytes() -> None:
    scalars = [found for found in vars(types).values() if isinstance(found, types.Scalar)]
    assert {type_ for type_ in scalars if type_ != types.NULL} <= set(VALUES)
    for type_ in (*scalars, *VALUES):
        canonical_hex(TupleOf(("x",), (type_,)), DUCKDB)


def most_of_one_person(connection: Any, once: str) -> float:
    """The most rows that are kept of one person, of rows that come out differently each time they are read."""
    type_ = TupleOf(("user", "page"), (INT, STR))
    rows = "SELECT floor(random() * 40)::BIGINT AS c0, floor(random() * 9)::VARCHAR AS c1 FROM range(200)"
    rows = f"SELECT *, c0 AS p FROM ({rows})"
    kept = kept_of(f"({counted(rows, type_)})", type_, 5, replace(DUCKDB, once=once))
    owned = f"SELECT max(s) FROM (SELECT sum(m) AS s FROM ({kept}) GROUP BY p)"
    return float(max(connection.execute(owned).fetchone()[0] for _ in range(5)))


def test_rows_are_read_once(connection: Any) -> None:
    """A second look would count a person's rows by one state of a file or relation, and keep them by another."""
    assert most_of_one_person(connection, DUCKDB.once) == 5
    assert most_of_one_person(connection, "NOT MATERIALIZED") > 5


def test_symmetry_is_asked_of_each_person(connection: Any) -> None:
    type_ = TupleOf(("a", "b"), (INT, INT.with_nullable()))
    for ids, rows, broken in (
        ([1, 1], [(1, 2), (2, 1)], set()),
        ([1, 2], [(1, 2), (2, 1)], {(1, 2), (2, 1)}),
        ([1, 1, 1], [(1, 2), (1, 2), (2, 1)], {(1, 2), (2, 1)}),
        ([1, 2, 2, 2], [(3, 3), (1, None), (3, 3), (3, 3)], {(1, None)}),
    ):
        offer(connection, type_, ids, rows)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE kept AS {counted('SELECT * FROM offered', type_)}")
        found = connection.execute(f"SELECT c0, c1 FROM ({asymmetric('kept', type_)})").fetchall()
        assert set(found) == broken
