"""Equal rows that are found by their hashes: the weights of grouping all rows by what they are, bit by bit."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each, tenth
from wpinq.columns import storage
from wpinq.columns.storage import StoredColumns
from wpinq.data import read_source, relation as scans
from wpinq.errors import SourceRejected
from wpinq.expr.types import Type

RECORDS: dict[str, tuple[dict[str, Any], str]] = {
    "int": ({"a": int}, "(r * 7919) % 1099511627776"),
    "text": ({"a": str, "b": int | None}, "'ü' || (r % 977), CASE WHEN r % 5 > 0 THEN r END"),
    "float": ({"a": float, "b": bool}, "CASE WHEN r % 3 = 0 THEN -0.0::DOUBLE ELSE r / 7 END, r % 2 = 0"),
    "null": (
        {"a": int | None, "b": str | None},
        "CASE WHEN r % 2 = 0 THEN r END, CASE WHEN r % 3 > 0 THEN r::text END",
    ),
    "date": ({"a": datetime.date, "b": datetime.timedelta}, "DATE '1992-01-01' + (r % 999)::INT, to_microseconds(r)"),
    "list": ({"a": list[int], "b": list[str | None]}, "[r, r % 3], [r::text, NULL]"),
}


def type_of(fields: dict[str, Any]) -> Type:
    return wp.source("data", **fields).plan.operator.row


@contextmanager
def rows_of(fields: dict[str, Any], columns: str, rows: int, repeat: str) -> Iterator[Any]:
    """A relation of some rows; `repeat` gives the number of the record of row i."""
    numbers = f"SELECT {repeat} AS r FROM range({rows}) AS t(i)"
    with duckdb.connect() as connection:
        yield connection.sql(f"SELECT * FROM (SELECT {columns} FROM ({numbers})) AS q({', '.join(fields)})")


def held(data: Any, type_: Type, facts: frozenset[str] = frozenset()) -> StoredColumns:
    found = read_source(data, declared(type_, unit_weight=Fraction(3, 2), facts=facts))
    assert isinstance(found, StoredColumns)
    return found


def bits(found: StoredColumns) -> dict[Any, str]:
    return {record: weight.hex() for record, weight in found.items()}


@for_each("at_once", [2**23, 500])
@for_each("repeat", ["i", "i % 2900", "i % 40", "i // 3", "0"])
@for_each("name", RECORDS, every=3)
def test_weights_are_those_of_grouping(name: str, repeat: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fields, columns = RECORDS[name]
    type_ = type_of(fields)
    monkeypatch.setattr(storage, "AT_ONCE", at_once)
    with rows_of(fields, columns, 3000, repeat) as relation:
        found = held(relation, type_)
        table = relation.to_arrow_table()
        monkeypatch.setattr(scans, "repeats_often", lambda *_: True)
        grouped = held(table, type_)
    assert bits(found) == bits(grouped)
    assert found.norm == grouped.norm == 3000
    assert len(found) == len(grouped) == len(bits(found))


def test_equal_hashes_make_no_rows_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share a hash by chance are told apart by what they are, whether few do or all."""
    type_ = type_of({"a": int})
    for of in ("c0 % 977", "c0 // 40", "0"):
        monkeypatch.setattr(storage, "hash_sql", lambda _, of=of: f"CAST({of} AS UBIGINT)")
        for rows in (range(3000), [*range(2990), *range(10)], [5] * 100):
            with duckdb.connect() as connection:
                relation = connection.sql(f"SELECT unnest({list(rows)}) AS a")
                found = dict(held(relation, type_).items())
            assert found == {(row,): float(times) for row, times in Counter(rows).items()}


def test_no_more_is_looked_for_once_many_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, whole = [0], storage._hashes_of_table

    def counted(*given: Any) -> Iterator[Any]:
        for hashes in whole(*given):
            parts[0] += 1
            yield hashes

    monkeypatch.setattr(storage, "AT_ONCE", 100)
    monkeypatch.setattr(storage, "_hashes_of_table", counted)
    for repeat, most in (("i // 2", 16), ("i", 32)):
        parts[0] = 0
        with rows_of({"a": int}, "r", 3000, repeat) as relation:
            found = held(relation.to_arrow_reader(), type_of({"a": int}))
        assert len(found) == (1500 if most == 16 else 3000)
        assert parts[0] == most if repeat == "i" else 0 < parts[0] <= most


def test_what_is_looked_at_first_changes_no_weight(tmp_path: Any) -> None:
    """Of a file: whether its first rows repeat, and the others do not, or the other way round."""
    size, draw = 3 * storage.LOOKED_AT, random.Random(1)
    often, never = [draw.randrange(9) for _ in range(size)], list(range(10, 10 + size))
    for name, rows in (("first", often + never), ("last", never + often)):
        path = tmp_path / f"{name}.csv"
        path.write_text("a\n" + "\n".join(map(str, rows)) + "\n", encoding="utf-8")
        found = held(path, type_of({"a": int}))
        assert dict(found.items()) == {(row,): float(times) for row, times in Counter(rows).items()}
        assert found.norm == 2 * size


@pytest.mark.parametrize("again", [0, 1, 2999])
def test_a_single_repeat_breaks_unit_weights(again: int) -> None:
    rows = [*range(3000), again]
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT unnest({rows}) AS a")
        with pytest.raises(SourceRejected, match="unit_weights"):
            held(relation, type_of({"a": int}), frozenset({"unit_weights"}))
        assert len(held(relation.limit(3000), type_of({"a": int}), frozenset({"unit_weights"}))) == 3000


@pytest.mark.parametrize("policy", ["keep", "drop", "refuse"])
def test_edges_that_stand_twice_far_apart(policy: Any, tmp_path: Any) -> None:
    path = tmp_path / "graph.txt"
    edges = [(i, i + 1) for i in range(3 * storage.LOOKED_AT)]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in [*edges, edges[7]]), encoding="utf-8")
    read = wp.EdgeList(path, duplicates=policy)
    if policy == "refuse":
        with pytest.raises(SourceRejected, match=f"{len(edges) + 1}|{len(edges)}"):
            held(read, type_of({"src": int, "dst": int}))
    else:
        found = held(read, type_of({"src": int, "dst": int}))
        assert (len(found), found[edges[7]]) == (len(edges), 2.0 if policy == "keep" else 1.0)
        assert found.norm == len(edges) + (policy == "keep")


def test_texts_that_hardly_repeat_are_told_from_others() -> None:
    type_ = type_of({"a": str, "b": int, "c": str | None, "d": str})
    with duckdb.connect() as connection:
        many = "SELECT 'a' || i AS c0, i AS c1, CASE WHEN i % 3 = 0 THEN 'c' || i END AS c2, 'd' || (i % 9) AS c3"
        for rows, expected in ((2**15, {"c0"}), (2**14, {"c0"}), (2**12, set())):
            assert storage.varied_texts(connection, f"{many} FROM range({rows}) AS t(i)", type_) == expected


@pytest.mark.parametrize("offered", tenth(["relation", "table", "reader", "parquet"], 2))
def test_texts_are_held_as_they_come(offered: str, tmp_path: Any) -> None:
    """Of more rows than one batch and one look, whether or not looking for repeats was worth while."""
    fields = {"a": str, "b": str | None, "c": str}
    columns = "'é' || r, CASE WHEN r % 5 > 0 THEN 'b' || (r % 7) END, repeat('x', r % 400)"
    rows = 120_000
    with rows_of(fields, columns, rows, "i % 119990") as relation:
        expected = Counter(relation.fetchall())
        data: Any = relation
        if offered == "parquet":
            data = tmp_path / "rows.parquet"
            relation.write_parquet(str(data))
        elif offered != "relation":
            data = relation.to_arrow_table()
            data = data if offered == "table" else data.to_reader(50_000)
        found = held(data, type_of(fields))
        assert found.norm == rows
        assert dict(found.items()) == expected


def test_the_first_rows_of_a_relation_are_read_once_and_refused_as_others() -> None:
    type_ = type_of({"a": str, "b": int})
    with duckdb.connect() as connection:
        empty = connection.sql("SELECT 'a' AS a, 1 AS b WHERE false")
        assert dict(held(empty, type_).items()) == {}
        for place in (3, 150_000):
            bad = connection.sql(
                f"SELECT 'a' || i AS a, CASE WHEN i <> {place} THEN i END AS b FROM range(200000) t(i)"
            )
            with pytest.raises(SourceRejected, match=rf"row {place}\b"):
                held(bad, type_)
            failing = f"CASE WHEN i = {place} THEN error('secret') ELSE i END"
            broken = connection.sql(f"SELECT 'a' || i AS a, {failing} AS b FROM range(200000) t(i)")
            with pytest.raises(SourceRejected) as refused:
                held(broken, type_)
            assert "secret" not in str(refused.value)
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_places_of_shared_hashes_are_those_of_every_row_that_has_one() -> None:
    generator = random.Random(3)
    for count, kinds in ((1, 1), (50, 2**64), (300, 200), (300, 5)):  # the low bits, looked at first, repeat as well
        rows = [generator.randrange(kinds) << generator.choice((0, 20)) & (2**64 - 1) for _ in range(count)]
        hashes = np.array(rows, dtype=np.uint64)
        counts = Counter(rows)
        shared = storage.shared_hashes(hashes.copy())
        assert len(shared) == count - len(counts)
        assert storage.places_of(hashes, shared).tolist() == [i for i, row in enumerate(rows) if counts[row] > 1]


def test_protecting_does_not_import_what_numpy_has_for_masks() -> None:
    done = subprocess.run([sys.executable, "-c", PROTECTING], capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr


PROTECTING = """
import sys
import duckdb
import wpinq as wp
rows = duckdb.sql("SELECT (r * 7919) % 30000 AS a FROM range(31000) AS t(r)")
with wp.Session() as session:
    session.protect(wp.source("numbers", a=int), rows, budget=1)
print("numpy.ma" in sys.modules)
"""
