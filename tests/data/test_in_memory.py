"""Relations that fit well into memory are held there as Arrow has them, larger ones in a file: the same data."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each, sizes
from wpinq.columns import storage
from wpinq.columns.storage import StoredColumns, opened
from wpinq.data import read_source, relation, sources
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import SourceRejected

ROWS = "range(250000) AS t(i)"
TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "plain": ({"a": int, "b": str}, "i % 249000 AS a, 'b' || (i % 249000) AS b"),
    "narrow": (
        {"a": int, "b": int | None},
        "(i // 2)::INTEGER AS a, CASE WHEN i % 3 > 0 THEN (i % 9)::UTINYINT END AS b",
    ),
    "floats": ({"a": float, "b": bool}, "CASE WHEN i % 7 = 0 THEN -0.0 ELSE i / 3 END AS a, i % 2 = 0 AS b"),
    "lists": ({"a": list[int], "b": str | None}, "[i, i % 5] AS a, CASE WHEN i % 4 > 0 THEN 'ü' || i END AS b"),
    "few": ({"a": int, "b": str}, "i % 5 AS a, 'b' AS b"),
    "texts": ({"a": str}, "'a' || (i // 2) AS a"),
}


def held(relation: Any, fields: dict[str, Any], facts: frozenset[str] = frozenset()) -> StoredColumns:
    row = wp.source("data", **fields).plan.operator.row
    found = read_source(relation, declared(row, facts=facts))
    assert isinstance(found, StoredColumns)
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "lists" else name for name in TABLES]
)
def test_memory_and_file_hold_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields, columns = TABLES[name]
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT {columns} FROM {ROWS}")
        expected = Counter(relation.fetchall() if name != "lists" else [(tuple(a), b) for a, b in relation.fetchall()])
        inside = held(relation, fields)
        monkeypatch.setattr(sources, "IN_MEMORY", 0)
        outside = held(relation, fields)
    assert (inside.files, len(outside.files)) == ((), 1)
    assert dict(inside.items()) == dict(outside.items()) == expected
    assert inside.norm == outside.norm == 250_000
    assert len(inside) == len(outside) == len(expected)
    with opened() as connection:
        assert inside.same(outside, connection)
        assert outside.same(inside, connection)
    assert inside.arrow().column_names == outside.arrow().column_names


def test_what_does_not_fit_is_read_once_and_held_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that were read before it was seen that there are too many are no others than those in the file."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SEQUENCE numbers")
        relation = connection.sql(f"SELECT nextval('numbers') AS a FROM {ROWS}")
        with opened() as small:
            ((limit,),) = small.execute("SELECT current_setting('memory_limit')").fetchall()
        monkeypatch.setattr(sources, "IN_MEMORY", 1e6 / sources.bytes_of(limit))
        found = held(relation, {"a": int})
        assert len(found.files) == 1
        assert len(found) == 250_000
        assert connection.execute("SELECT nextval('numbers')").fetchall() == [(250_001,)]


def test_a_forked_child_and_a_database_opened_anew_read_what_is_in_memory() -> None:
    source = wp.source("data", a=int, b=str)
    plan = source.select(lambda row: row.a % 3).plan
    with duckdb.connect() as connection, Database() as database:
        data = {"data": held(connection.sql(f"SELECT {TABLES['plain'][1]} FROM {ROWS}"), TABLES["plain"][0])}
        before = database.evaluate(plan, data)
        Database.rest()
        assert database.evaluate(plan, data) == before
        child = os.fork()
        if not child:
            os._exit(0 if database.evaluate(plan, data) == before else 1)
        assert os.waitpid(child, 0)[1] == 0


@for_each("place", [0, 150_000, 249_999])
@for_each(("value", "kind"), [("NULL", int), ("'nan'::DOUBLE", float), ("error('secret')", int)])
def test_what_is_unfit_is_refused(value: str, kind: type, place: int) -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT CASE WHEN i = {place} THEN {value} ELSE i END AS a FROM {ROWS}")
        with pytest.raises(SourceRejected) as refused:
            held(relation, {"a": kind})
        assert "secret" not in str(refused.value)
        assert "secret" in value or f"row {place}" in str(refused.value)


DAYS = {"a": datetime.date, "b": wp.decimal(2), "c": wp.decimal(4), "d": wp.decimal(2), "e": wp.decimal(0)}
SHOWN = """DATE '1960-02-29' + CAST(i % 90000 AS INTEGER) AS a, CAST((i - 1000) / 100 AS DECIMAL(15, 2)) AS b, b AS c,
    CAST(b AS DECIMAL(38, 2)) AS d, CAST(i AS DECIMAL(18, 0)) AS e"""


@pytest.mark.parametrize("share", sizes(0, sources.IN_MEMORY))
def test_dates_and_decimals_of_a_relation_are_held_as_numbers(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "IN_MEMORY", share)
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT {SHOWN} FROM {ROWS}")
        found = held(relation, DAYS)
        expected = {
            ((a - datetime.date(1970, 1, 1)).days, int(b * 100), int(c * 10_000), int(d * 100), int(e)): 1.0
            for a, b, c, d, e in relation.fetchall()
        }
    assert found.files == () or not share
    assert dict(found.items()) == expected


@for_each("share", [sources.IN_MEMORY, 0])
@for_each(
    ("value", "kind", "why"),
    [
        ("DATE '9999-12-31' + 1", datetime.date, "a date outside the years 1 to 9999"),
        ("DATE '-infinity'", datetime.date, "a date outside the years 1 to 9999"),
        ("CAST(NULL AS DATE)", datetime.date, "null where date is declared"),
        ("CAST(1e20 AS DECIMAL(38, 2))", wp.decimal(2), "64 bits"),
        ("CAST('1.005' AS DECIMAL(15, 3))", wp.decimal(2), "a number of more than 2 decimals"),
        ("CAST(NULL AS DECIMAL(15, 2))", wp.decimal(2), "null where decimal(2) is declared"),
    ],
)
def test_a_date_or_decimal_that_is_none_is_named_as_it_was_offered(
    value: str, kind: Any, why: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "IN_MEMORY", share)
    with duckdb.connect() as connection:
        fit = "DATE '2000-01-01'" if kind is datetime.date else "CAST(1 AS DECIMAL(15, 2))"
        relation = connection.sql(f"SELECT CASE WHEN i = 7 THEN {value} ELSE {fit} END AS a FROM {ROWS}")
        with pytest.raises(SourceRejected, match="at row 7") as refusal:
            held(relation, {"a": kind})
    assert why in str(refusal.value)


def test_decimals_of_all_widths_are_counted_exactly_to_their_ends() -> None:
    """DuckDB holds the product of two narrow decimals as a narrow one, and fails where that is too narrow."""
    declared = {f"d{scale}": wp.decimal(scale) for scale in (0, 2, 4, 9)}
    with duckdb.connect() as connection:
        for width, scale in (
            (w, s) for w in (1, 4, 9, 13, 15, 16, 17, 18, 19, 24, 38) for s in (0, 2, 3, 6, 9) if s <= w
        ):
            fields = {
                name: type_
                for name, type_ in declared.items()
                if type_.scale >= scale and width - scale + type_.scale < 19
            }
            ends = [f"{sign}{'9' * (width - scale)}.{'9' * scale}" for sign in ("", "-")]
            rows = [
                ", ".join(f"CAST('{end}' AS DECIMAL({width}, {scale})) AS {name}" for name in fields) for end in ends
            ]
            if fields:
                found = held(connection.sql(f"SELECT {rows[0]} UNION ALL SELECT {rows[1]}"), fields)
                units = [tuple(int(Fraction(end) * 10**type_.scale) for type_ in fields.values()) for end in ends]
                assert dict(found.items()) == dict.fromkeys(units, 1.0)


def test_macros_of_the_owner_do_not_stand_in_for_operators() -> None:
    with duckdb.connect() as connection:
        for name in "*-+/":
            connection.execute(f'CREATE MACRO "{name}"(a, b) AS 42')
        relation = connection.sql("SELECT DATE '2000-01-01' AS a, 1.25::DECIMAL(10, 2) AS b, 2.5::DECIMAL(30, 1) AS c")
        found = held(relation, {"a": datetime.date, "b": wp.decimal(2), "c": wp.decimal(2)})
        assert dict(found.items()) == {(10957, 125, 250): 1.0}


def test_a_repeat_breaks_unit_weights_in_memory_too() -> None:
    with duckdb.connect() as connection:
        for end, fits in ((249_999, True), (0, False)):
            relation = connection.sql(f"SELECT CASE WHEN i = 249999 THEN {end} ELSE i END AS a FROM {ROWS}")
            if fits:
                assert len(held(relation, {"a": int}, frozenset({"unit_weights"}))) == 250_000
            else:
                with pytest.raises(SourceRejected, match="unit_weights"):
                    held(relation, {"a": int}, frozenset({"unit_weights"}))


SHARED_HASHES = storage.shared_hashes


@for_each("place", [None, 1, 99_999, 100_000, 100_001, 249_999])
@for_each("step", [1, 4], every=2)
def test_rows_in_increasing_order_are_all_different(
    place: int | None, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless one of them is not, wherever that is: within a batch or at the start of another."""
    looked: list[int] = []
    monkeypatch.setattr(storage, "shared_hashes", lambda hashes: looked.append(1) or SHARED_HASHES(hashes))
    row = "i" if place is None else f"CASE WHEN i = {place} THEN i - 1 ELSE i END"
    with duckdb.connect() as connection:
        numbered = f"SELECT j // {step} AS a, 'x' AS b, -(j // 9) AS d, j AS c FROM (SELECT {row} AS j FROM {ROWS})"
        found = held(connection.sql(numbered), {"a": int, "b": str, "c": int})
        expected = Counter(connection.sql(f"SELECT a, b, c FROM ({numbered})").fetchall())
    assert dict(found.items()) == expected
    assert len(found) == 250_000 - (place is not None)
    assert bool(looked) == (place is not None)


def test_an_order_that_falls_tells_nothing() -> None:
    with duckdb.connect() as connection:
        for columns in ("-i AS a, i AS c", "i // 9 AS a, -i AS c", "0 AS a, i % 100000 AS c"):
            relation = connection.sql(f"SELECT {columns} FROM {ROWS}")
            assert dict(held(relation, {"a": int, "c": int}).items()) == Counter(relation.fetchall())


@pytest.mark.parametrize(
    "settings",
    [
        ["arrow_output_version = '1.5'", "produce_arrow_string_view = true"],
        ["arrow_large_buffer_size = true"],
        ["arrow_lossless_conversion = true"],
    ],
)
def test_settings_of_the_relations_connection_change_nothing(settings: list[str]) -> None:
    """Views of text and other kinds of columns have to be looked through for repeats like any."""
    rows = f"SELECT i AS a, 'some longer text ' || i AS b, i % 2 = 0 AS c FROM (SELECT i % 249000 AS i FROM {ROWS})"
    with duckdb.connect() as connection:
        for setting in settings:
            connection.execute(f"SET {setting}")
        found = held(connection.sql(rows), {"a": int, "b": str, "c": bool})
        assert (found.files, len(found)) == ((), 249_000)
        assert dict(found.items()) == Counter(connection.sql(rows).fetchall())


@pytest.mark.parametrize("seen", ["a", "a % 100000", "a >> 17"])
def test_equal_hashes_make_no_rows_equal(seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that few rows, many or nearly all have in common say nothing of what is equal."""
    monkeypatch.setattr(storage, "hash_sql", lambda names: f"hash({seen.replace('a', names[0])})")
    number = "CASE i % 5000 WHEN 7 THEN i - 7 WHEN 4999 THEN i - 4999 + (1::BIGINT << 32) ELSE i END"
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT {number} AS a FROM {ROWS}")
        found = held(relation, {"a": int})
        assert dict(found.items()) == Counter(relation.fetchall())
    assert len(found) == 250_000 - 50


@pytest.mark.parametrize("kind", ["float", "str"])
def test_integers_that_repeat_behind_the_first_rows_are_looked_at_with_other_columns(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is grouped where the other columns tell all of them apart."""
    monkeypatch.setattr(storage, "gathered", lambda *given: pytest.fail("the rows are grouped"))
    sql = {"float": "-i / 2", "str": "'b' || i"}[kind]
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT 50000 - i % 50000 AS a, {sql} AS b FROM {ROWS}")
        found = held(relation, {"a": int, "b": {"float": float, "str": str}[kind]})
        assert dict(found.items()) == dict.fromkeys(relation.fetchall(), 1.0)


@pytest.mark.parametrize("order", ["", " ORDER BY a DESC"])
def test_a_relation_that_fails_is_named_whenever_it_does(order: str) -> None:
    """A relation that is computed whole before its first row fails before anything is read."""
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT CASE WHEN i = 5 THEN error('secret') ELSE i END AS a FROM {ROWS}{order}")
        with pytest.raises(SourceRejected, match=r"^the relation cannot be read") as refused:
            held(relation, {"a": int})
        assert "secret" not in str(refused.value)


def test_what_holds_the_rows_shows_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a report of an error shows the values of variables, these are among them."""
    shown: list[object] = []
    native, taken = sources._native, relation._stored
    monkeypatch.setattr(sources, "_native", lambda *given: shown.append(given[1]) or native(*given))
    monkeypatch.setattr(relation, "_stored", lambda *given: shown.append(given[1]) or taken(*given))
    with duckdb.connect() as connection:
        found = held(connection.sql("SELECT 6517 + i AS a, 'secret' AS b FROM range(9) AS t(i)"), {"a": int, "b": str})
    assert len(shown) == 2
    for one in (*shown, found, found._stored):
        assert "6517" not in repr(one)
        assert "secret" not in repr(one)
