"""What read_source takes, what it refuses, and what its refusals must not say."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import starmap
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from wpinq.data import EdgeList, read_source, rows as data_rows
from wpinq.data.facts import _CHECKS, norm
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.declarations import FACTS
from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type, record_type, tuple_type, type_from_annotation

EDGE = record_type({"src": INT, "dst": INT})
PERSON = record_type({"name": STR, "age": INT.with_nullable(), "height": FLOAT, "member": BOOL})
ROWS = [("Ann", 31, 1.5, True), ("Bo", None, 2.0, False), ("Ann", 31, 1.5, True)]
WEIGHTS = {("Ann", 31, 1.5, True): 2.0, ("Bo", None, 2.0, False): 1.0}


def read(
    data: object, type_: Type = EDGE, *, unit: object = 1, cap: object = 2**30, facts: tuple[str, ...] = ()
) -> dict[Any, float]:
    held = read_source(data, declared(type_, unit_weight=unit, cap=cap, facts=facts))
    return dict(held.items())


def refused(data: object, type_: Type = EDGE, **options: Any) -> SourceRejected:
    with pytest.raises(SourceRejected) as caught:
        read(data, type_, **options)
    return caught.value


def same(left: Mapping[Any, float], right: Mapping[Any, float]) -> bool:
    """Equal as typed values: 1, 1.0 and True differ."""
    return repr(sorted(left.items(), key=repr)) == repr(sorted(right.items(), key=repr))


# --- rows ------------------------------------------------------------------------------------------------------


def test_rows_of_every_shape_add_up() -> None:
    point = namedtuple("point", "src dst")
    rows: list[object] = [(1, 2), [1, 2], {"dst": 2, "src": 1, "other": "x"}, point(1, 2), np.array([1, 2])]
    rows += [(np.int64(1), np.int32(2)), np.array([(1, 2)], dtype=[("src", "i8"), ("dst", "i4")])[0]]
    assert same(read(rows), {(1, 2): 7.0})


def test_dicts_of_one_shape_are_read_column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": n, "age": a, "height": h, "member": m, "other": object()} for n, a, h, m in ROWS * 2]
    expected = read([MappingProxyType(row) for row in rows], PERSON)
    late = [*rows, {"name": "Cy", "height": 1.0, "member": True}]
    assert "a record without the field 'age'" in str(refused(late, PERSON))
    assert refused(late, PERSON).positions == (6,)
    monkeypatch.setattr(data_rows, "_fields", None)  # rows one by one
    assert same(read(rows, PERSON), expected)
    assert same(read(iter(rows), PERSON), {record: 2 * weight for record, weight in WEIGHTS.items()})


def test_a_dict_whose_own_code_fails_is_unfit_and_says_nothing() -> None:
    class Loud(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            raise KeyError("Rumpelstilzchen")

    error = refused([{"src": 1, "dst": 2}, {Loud("src"): 1, "dst": 2}])
    assert error.positions == (1,)
    assert "Rumpelstilzchen" not in str(error)


def test_rows_that_name_their_fields_are_read_by_name() -> None:
    """By place, another field would be the person's id, and one person could move all of the data."""
    sql = pytest.importorskip("pyspark.sql")
    visit = wp.source("visits", page=str, user=str, person="user", at_most=1)
    pages = wp.source("visits", page=str, person="user", at_most=1)
    frame = pd.DataFrame({"user": ["u1"] * 6 + ["u2"], "page": list("abcdefa")})
    named = namedtuple("named", "user page")
    forms: dict[str, Any] = {
        "frame": frame,
        "named tuples": list(starmap(named, frame.to_numpy().tolist())),
        "of pandas": list(frame.itertuples()),
        "of Spark": [sql.Row(user=user, page=page) for user, page in frame.to_numpy().tolist()],
        "structured": list(np.array([*map(tuple, frame.to_numpy().tolist())], dtype=[("user", "U2"), ("page", "U1")])),
    }
    for form, rows in forms.items():
        for source in (visit, pages):
            kept = wp.evaluate(source.select(lambda r: 1), {"visits": rows})
            assert dict(kept) == {1: 2.0}, (form, source)
    point = namedtuple("point", "x y")
    assert "without the field 'src'" in str(refused([point(1, 2)]))
    assert same(read([point(1, 2)], type_from_annotation(tuple[int, int])), {(1, 2): 1.0})


def test_a_name_that_stands_twice_in_a_row_is_no_field() -> None:
    """As of a join in Spark: which of both it is, nobody says."""
    sql = pytest.importorskip("pyspark.sql")
    twice: list[Any] = [sql.Row("src", "dst", "src")(1, 2, 3), pd.Series([1, 2, 3], index=["src", "dst", "src"])]
    person = wp.source("s", dst=int, person="src", at_most=1)
    for row in twice:
        assert "several fields of one name" in str(refused([row]))
        with pytest.raises(SourceRejected, match=r"row 1, counted from 0\. Reasons: a record with several fields"):
            wp.evaluate(person, {"s": [{"src": 1, "dst": 2}, row]})
    aside = sql.Row("src", "dst", "note", "note")(1, 2, 3, 4)
    assert same(read([aside]), {(1, 2): 1.0})


def test_positions_of_rows_that_do_not_say_whose_they_are_count_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wpinq.data.rows.as_columns.__defaults__", (4,))
    person = wp.source("s", dst=int, person="src", at_most=1)
    rows: list[Any] = [{"src": n, "dst": n} for n in range(12)]
    rows[1], rows[9], rows[10] = (1, 1), (9, 9), {"src": 10}
    with pytest.raises(SourceRejected) as caught:
        wp.evaluate(person, {"s": iter(rows)})
    assert caught.value.positions == (1, 9, 10)


def test_a_structured_value_is_read_by_name_with_or_without_a_dimension() -> None:
    array = np.array((2, 1), dtype=[("dst", "i8"), ("src", "i8")])
    assert same(read([array, array[()]]), {(1, 2): 2.0})


def test_a_masked_value_is_null() -> None:
    null = type_from_annotation({"a": float | None, "b": float | None})
    row = np.ma.array([1.0, 2.0], mask=[False, True])
    assert same(read([row, (1.0, np.ma.masked)], null), {(1.0, None): 2.0})
    assert refused([row], type_from_annotation({"a": float, "b": float})).positions == (0,)


class Owed(float):
    def as_integer_ratio(self) -> Any:
        raise ValueError("secret")


def test_a_weight_whose_own_code_fails_is_unfit_and_says_nothing_itself() -> None:
    class Foreign:
        @property
        def dtype(self) -> Any:
            raise ValueError("secret")

    for weight in (Foreign(), Owed(0.5)):
        fault = refused({(1, 2): 1, (1, 3): weight})
        assert fault.positions == (1,) and "secret" not in str(fault) and fault.__context__ is None


class Lazy(Mapping[str, int]):
    """A row that is only read when it is asked for, as of a database."""

    def __getitem__(self, key: str) -> int:
        raise RuntimeError("secret")

    def __iter__(self) -> Iterator[str]:
        return iter(["src", "dst"])

    def __len__(self) -> int:
        return 2


class Long(list[int]):
    def __len__(self) -> int:
        raise RuntimeError("secret")


class Odd(Decimal):
    def as_tuple(self) -> Any:
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("row", "type_"),
    [
        (Lazy(), record_type({"src": INT, "dst": INT})),
        (Long([1, 2]), record_type({"src": INT, "dst": INT})),
        (Odd(1), type_from_annotation(wp.decimal(2))),
        (([Odd(1)],), type_from_annotation({"prices": list[wp.decimal(2)]})),
    ],
)
def test_a_value_whose_own_code_fails_is_unfit_and_says_nothing_itself(row: Any, type_: Type) -> None:
    good = {record_type({"src": INT, "dst": INT}): (1, 2)}.get(type_, row)
    fault = refused([good, row], type_)
    assert "whose own code fails" in str(fault) and "secret" not in str(fault)
    assert fault.positions[-1] == 1 and fault.__context__ is None
    with pytest.raises(wp.WpinqError, match="whose own code fails") as caught:
        wp.evaluate(wp.source("s", type_), {"s": [row]})
    assert caught.value.__context__ is None or "secret" not in str(caught.value.__context__)


def test_a_one_shot_iterator_is_read_once() -> None:
    rows = read((i % 3, 7) for i in range(10))
    assert sorted(rows.items()) == [((0, 7), 4.0), ((1, 7), 3.0), ((2, 7), 3.0)]


def test_bare_values_where_the_type_is_no_record() -> None:
    assert same(read([3, 3, 4], INT), {3: 2.0, 4: 1.0})
    assert same(read(["a", np.str_("a")], STR), {"a": 2.0})
    assert refused([(3,), 4], INT).positions == (0,)
    assert refused([(1, 2), 4]).positions == (1,)


def test_canonical_forms() -> None:
    assert repr(sorted(read([-0.0, 0.0, 1], FLOAT).items())) == "[(0.0, 2.0), (1.0, 1.0)]"
    assert repr(read([-0.0], FLOAT)) == "{0.0: 1.0}"
    assert repr(read(np.array([-0.0, 0.0]), FLOAT)) == "{0.0: 2.0}"
    nested = type_from_annotation({"tags": list[str], "at": {"x": int, "y": int}})
    rows = [(["a", "b"], {"x": 1, "y": 2}), {"tags": ("a", "b"), "at": (np.int8(1), 2)}]
    assert same(read(rows, nested), {(("a", "b"), (1, 2)): 2.0})


def test_subclasses_become_their_plain_kind() -> None:
    class Colour(str, Enum):  # noqa: UP042 - StrEnum has no such trap
        RED = "red"

    class Flag(int):
        pass

    (record,) = read([(Colour.RED, Flag(3))], record_type({"a": STR, "b": INT}))
    assert record == ("red", 3)
    assert type(record[0]) is str
    assert type(record[1]) is int


@for_each(
    ("value", "type_"),
    [
        (float("nan"), FLOAT),
        (float("inf"), FLOAT),
        (np.float64("nan"), FLOAT),
        (float("nan"), FLOAT.with_nullable()),
        (2**53 + 1, FLOAT),
        (10**400, FLOAT),
        (True, FLOAT),
        (1.0, INT),
        (True, INT),
        (np.True_, INT),
        (2**63, INT),
        (np.uint64(2**63), INT),
        (np.datetime64(1, "ns"), INT),
        (np.timedelta64(1, "ns"), INT),
        (None, INT),
        (Decimal(1), FLOAT),
        (2, BOOL),
        (b"a", STR),
        ("\ud800", STR),
        (np.longdouble(1), FLOAT),
    ],
)
def test_what_is_not_of_the_type_is_refused(value: object, type_: Type) -> None:
    fit = {"int": 1, "float": 1.0, "bool": True, "str": "a"}[str(type_)]
    assert refused([fit, value, fit], type_).positions == (1,)
    assert refused([(1, fit), (1, value)], record_type({"a": INT, "b": type_})).positions == (1,)


@pytest.mark.parametrize("row", [(1,), (1, 2, 3), "ab", 5, None, {"src": 1}, {1, 2}, {}])
def test_rows_of_another_shape_are_refused(row: object) -> None:
    assert refused([(1, 2), row, (3, 4)]).positions == (1,)


def test_a_refusal_names_ten_positions_how_many_and_why_but_no_value() -> None:
    rows: list[tuple[object, object]] = [(i, i) for i in range(1000, 1030)]
    for i in range(5, 25):
        rows[i] = ("secret-name", 1.5)
    rows[7] = (123456789, 2**77)
    error = refused(rows)
    assert error.positions == tuple(range(5, 15))
    text = str(error)
    assert "20 rows are unfit" in text
    assert "field 'src': a value that is not of type int (19)" in text
    assert "field 'dst': an integer outside 64 bits (1)" in text
    assert "and 10 more" in text
    for value in ("secret", "123456789", "1.5", str(2**77)):
        assert value not in text


def test_a_refusal_carries_no_chained_exception(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("src,dst\n1,secret\n")
    for data in ([(1, "secret")], path):
        error = refused(data)
        assert error.__cause__ is None
        assert error.__context__ is None


@pytest.mark.parametrize("data", [b"12", bytearray(b"1"), 5, None, "1,2\n3,4\n", "secret.words", object()])
def test_what_is_no_data_is_refused_without_quoting_it(data: object) -> None:
    error = refused(data, INT)
    assert "secret" not in str(error)
    assert "1,2" not in str(error)


def test_an_open_file_is_not_rows(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("a\nb\n")
    with path.open() as file:
        assert "path of a file" in str(refused(file, STR))


def test_a_record_without_fields_is_no_source() -> None:
    with pytest.raises(PlanError, match="at least one field"):
        read([()], tuple_type([]))


# --- mappings --------------------------------------------------------------------------------------------------


def test_weights_of_a_mapping() -> None:
    data = {(1, 2): 0.5, (1, 3): Fraction(1, 4), (2, 3): 1, (4, 4): 0, (5, 5): -0.0, (6, 6): -1.0}
    data |= {(7, 7): np.float32(0.5), (8, 8): np.int8(-1)}
    expected = {(1, 2): 0.5, (1, 3): 0.25, (2, 3): 1.0, (6, 6): -1.0, (7, 7): 0.5, (8, 8): -1.0}
    assert same(read(data), expected)


@for_each(
    ("weight", "unit"),
    [
        (True, 1),
        (np.True_, 1),
        ("1", 1),
        (None, 1),
        (1j, 1),
        (Decimal(1), 1),
        (float("nan"), 1),
        (float("inf"), 1),
        (float("-inf"), 10**400),
        (Fraction(1, 3), 1),
        (Fraction(1, 10), 1),
        (2**53 + 1, 2**60),
        (10**400, 10**401),
        (Fraction(1, 2**1080), 1),
        (np.nextafter(1.0, 2.0), 1),
        (-1.5, 1),
        (2, 1),
        (0.1, Fraction(1, 10)),  # the float 0.1 is above one tenth
    ],
)
def test_unfit_weights_are_refused(weight: object, unit: object) -> None:
    error = refused({(1, 2): Fraction(1, 16), (7, 9): weight}, unit=unit)
    assert error.positions == (1,)
    assert "weight" in str(error)


def test_the_unit_weight_itself_is_allowed() -> None:
    assert read({(1, 2): 2, (2, 1): -2.0}, unit=2) == {(1, 2): 2.0, (2, 1): -2.0}
    below = np.nextafter(0.1, 0.0)
    assert read({(1, 2): below}, unit=Fraction(1, 10)) == {(1, 2): below}
    assert read({(1, 2): sys.float_info.max}, unit=10**400, cap=10**400) == {(1, 2): sys.float_info.max}


def test_whole_weights_of_a_mapping_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_rows, "_weight", None)
    assert same(read({(1, 2): 2, (2, 1): -2.0, (3, 3): 0}, unit=2), {(1, 2): 2.0, (2, 1): -2.0})


def test_evaluate_takes_plain_mappings_and_rows_column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    people = wp.source("people", name=str, age=int | None, height=float, weights=True)
    mapping = {("Ann", 31, 1, 1.5): 2, ("Bo", None, 2.0, 0.0): Fraction(1, 3), ("Cy", -1, -0.0, 2): 0.1}
    mapping = {(name, age, height): weight for (name, age, height, _), weight in mapping.items()}
    expected = {("Ann", 31, 1.0): Fraction(2), ("Bo", None, 2.0): Fraction(1, 3), ("Cy", -1, 0.0): Fraction(0.1)}
    exact = wp.evaluate(people, {"people": mapping}, exact=True)
    assert dict(exact) == expected and repr(list(exact)) == repr(list(expected))
    assert {type(weight) for weight in exact.values()} == {Fraction}
    found = wp.evaluate(people, {"people": mapping})
    assert dict(found) == {record: float(weight) for record, weight in expected.items()}
    mapping = {(name, age, float(height)): weight for (name, age, height), weight in mapping.items()}
    rows = [dict(zip(("name", "age", "height"), record, strict=True)) for record in mapping] * 2
    assert set(wp.evaluate(people, {"people": rows}).values()) == {2.0}
    monkeypatch.setattr("wpinq.data.layout.canonical_value", None)
    monkeypatch.setattr(data_rows, "_fields", None)
    assert dict(wp.evaluate(people, {"people": mapping})) == dict(found)
    assert len(wp.evaluate(people, {"people": rows})) == 3


def test_records_that_a_mapping_writes_in_two_ways_add_up_exactly() -> None:
    class Name(str):
        __hash__ = object.__hash__

    names = wp.source("names", str, weights=True)
    given = {Name("a"): 0.1, Name("b"): 0.5, Name("a"): 0.2, Name("b"): -0.5}
    assert dict(wp.evaluate(names, {"names": given}, exact=True)) == {"a": Fraction(0.1) + Fraction(0.2)}


def test_rows_weigh_one_so_a_smaller_unit_refuses_them() -> None:
    assert "offer a mapping" in str(refused([(1, 2)], unit=Fraction(1, 2)))
    assert read({(1, 2): 0.5}, unit=Fraction(1, 2)) == {(1, 2): 0.5}


def test_a_mapping_with_unfit_records_and_one_of_columns() -> None:
    assert refused({(1, 2): 1, (1, "x"): 1, 3: 1}).positions == (1, 2)
    assert refused({"src": [1, 2], "dst": [2, 3]}).positions == (0, 1)


def test_the_same_record_twice_in_a_mapping_is_refused() -> None:
    class Name(str):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    assert refused({Name("a"): 1, Name("b"): 1, Name("a"): 1}, STR).positions == (2,)


# --- tables ----------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(
    {
        "unused": [0, 0, 0],
        "member": [True, False, True],
        "name": ["Ann", "Bo", "Ann"],
        "age": pd.array([31, None, 31], dtype="Int64"),
        "height": [1.5, 2.0, 1.5],
    }
)
ARROW = pa.table({c: FRAME[c].tolist() for c in FRAME.columns if c != "age"} | {"age": [31, None, 31]})


def tables() -> dict[str, object]:
    structured = np.array(
        [(True, "Ann", 31, 1.5), (False, "Bo", None, 2.0), (True, "Ann", 31, 1.5)],
        dtype=[("member", "?"), ("name", "U3"), ("age", "O"), ("height", "f4")],
    )
    polars = pl.DataFrame(ARROW)
    return {
        "pandas": FRAME,
        "pandas objects": FRAME.astype(object),
        "pandas categories": FRAME.astype({"name": "category", "height": "Float32"}),
        "pandas nan": FRAME.astype(object).assign(age=pd.Series([31, float("nan"), 31], dtype=object)),
        "polars": polars,
        "polars lazy": polars.lazy(),
        "polars categories": polars.with_columns(pl.col("name").cast(pl.Categorical)),
        "arrow": ARROW,
        "arrow batches": ARROW.to_reader(),
        "arrow batch": ARROW.to_batches()[0],
        "arrow dictionary": ARROW.set_column(2, "name", ARROW["name"].dictionary_encode()),
        "numpy structured": structured,
    }


@for_each("kind", tables())
def test_tables_are_read_by_field_name(kind: str) -> None:
    assert same(read(tables()[kind], PERSON), WEIGHTS)


def test_columns_without_names_are_taken_by_place() -> None:
    pairs = tuple_type([INT, INT])
    assert same(read(np.array([[1, 2], [3, 4]])), {(1, 2): 1.0, (3, 4): 1.0})
    assert same(read(pd.DataFrame({"x": [1], "y": [2]}), pairs), {(1, 2): 1.0})
    assert same(read(pa.table({"x": [5, 5]}), INT), {5: 2.0})
    assert same(read(np.array([5, 5]), INT), {5: 2.0})
    assert same(read(np.array([[5], [5]]), INT), {5: 2.0})
    assert read(np.zeros(0, dtype=int), INT) == {}
    assert "3 columns" in str(refused(np.zeros((4, 3), dtype=int)))
    assert "1 columns" in str(refused(pl.DataFrame({"x": [1]}), pairs))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda c: pl.DataFrame(c).lazy()])
def test_missing_columns_and_unfit_ones(make: Any) -> None:
    assert "no column named 'dst'" in str(refused(make({"src": [1], "to": [2]})))
    assert refused(make({"src": [1, 2], "dst": [1.5, 2.0]})).positions == (0, 1)
    assert refused(make({"src": [1, 2], "dst": ["a", "b"]})).positions == (0, 1)
    assert refused(make({"src": [1, 2], "dst": [1, None]})).positions  # pandas makes the whole column float
    heights = record_type({"h": FLOAT})
    assert refused(make({"h": [1.0, float("nan")]}), heights).positions == (1,)
    assert refused(make({"h": [1.0, float("inf"), 2.0]}), heights).positions == (1,)
    assert refused(make({"h": np.array([1, 2], dtype="datetime64[ns]")}), record_type({"h": INT})).positions == (
        0,
        1,
    )
    assert refused(make({"h": np.array([1, 2], dtype="timedelta64[ns]")}), record_type({"h": INT})).positions == (
        0,
        1,
    )
    big = np.array([1, 2**63], dtype="uint64")
    assert refused(make({"h": big}), record_type({"h": INT})).positions == (1,)
    assert same(read(make({"h": big[:1]}), record_type({"h": INT})), {(1,): 1.0})


def test_polars_integers_of_128_bits_are_taken_where_they_fit() -> None:
    wide = pl.DataFrame({"h": pl.Series([1, 2**70], dtype=pl.Int128)})
    assert same(read(wide[:1], record_type({"h": INT})), {(1,): 1.0})
    assert refused(wide, record_type({"h": INT})).positions == (1,)


def test_only_pandas_takes_nan_for_null() -> None:
    heights = record_type({"h": FLOAT.with_nullable()})
    column = [1.5, float("nan")]
    assert same(read(pd.DataFrame({"h": column}), heights), {(1.5,): 1.0, (None,): 1.0})
    assert refused(pl.DataFrame({"h": column}), heights).positions == (1,)
    assert refused(pa.table({"h": column}), heights).positions == (1,)
    assert refused(np.array([(1.5,), (np.nan,)], dtype=[("h", "f8")]), heights).positions == (1,)


def test_a_pandas_integer_column_with_holes_says_which_dtype_it_has() -> None:
    ages = record_type({"age": INT.with_nullable()})
    frame = pd.DataFrame({"age": [1, None]})
    assert "float64" in str(refused(frame, ages))
    assert same(read(frame.astype("Int64"), ages), {(1,): 1.0, (None,): 1.0})


def test_a_refused_category_is_not_quoted() -> None:
    names = ["secret-a", "secret-b"]
    ages = record_type({"age": INT})
    assert "secret" not in str(refused(pl.DataFrame({"age": pl.Series(names, dtype=pl.Enum(names))}), ages))
    assert "secret" not in str(refused(pd.DataFrame({"age": pd.Categorical(names)}), ages))
    failing = pl.LazyFrame({"age": names}).with_columns(pl.col("age").cast(pl.Int64))
    assert "secret" not in str(refused(failing, ages))


def test_doubled_columns_are_refused() -> None:
    assert "several columns named 'src'" in str(refused(pd.DataFrame([[1, 2, 3]], columns=["src", "src", "dst"])))


def test_tables_that_could_be_misread_are_refused() -> None:
    assert "cannot be read" in str(refused(pd.Series([3, 4]).value_counts(), INT))
    assert "cannot be read" in str(refused(pl.Series([3, 4]), INT))
    assert "cannot be read" in str(refused(pa.array([3, 4]), INT))
    assert "without mask" in str(refused(np.ma.masked_array([3, 4], mask=[True, False]), INT))
    assert "3 dimensions" in str(refused(np.zeros((1, 2, 2), dtype=int)))

    class OtherFrame:
        def __dataframe__(self) -> object:
            return self

        def __iter__(self) -> Iterator[str]:
            return iter(["column"])

    assert "cannot be read" in str(refused(OtherFrame(), STR))


def test_lists_in_columns() -> None:
    tags = type_from_annotation({"tags": list[str]})
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert same(read(make({"tags": [["a", "b"], []]}), tags), {(("a", "b"),): 1.0, ((),): 1.0})
    assert same(
        read(np.array([([1, 2],)], dtype=[("x", "i8", 2)]), type_from_annotation({"x": list[int]})),
        {((1, 2),): 1.0},
    )


# --- files -----------------------------------------------------------------------------------------------------

CSV = "member,unused,name,age,height\ntrue,,Ann,31,1.5\n\nFALSE,,Bo,,2\r\nTrue,,Ann,+31,15e-1\n"


def test_csv_plain_and_gzip(tmp_path: Path) -> None:
    plain, packed = tmp_path / "people.csv", tmp_path / "people.csv.gz"
    plain.write_bytes(b"\xef\xbb\xbf" + CSV.encode())
    packed.write_bytes(gzip.compress(CSV.encode()))
    assert same(read(plain, PERSON), WEIGHTS)
    assert same(read(str(packed), PERSON), WEIGHTS)


def test_csv_of_one_column_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text('who\n"a ""b"", c"\nd\nd\n')
    assert same(read(path, STR), {'a "b", c': 1.0, "d": 2.0})


@for_each(
    ("type_", "text"),
    [(INT, t) for t in ("x", "1.0", "1_000", " 1", "٣", "", "9" * 30, "9" * 5000, "+-1", "true")]
    + [(FLOAT, t) for t in ("nan", "inf", "-Infinity", "1e999", "1_0.0", "0x1p0", "1,5", "", "e")]
    + [(BOOL, t) for t in ("2", "yes", "", "t")]
    + [(STR, "")],
)
def test_csv_text_that_is_not_of_the_type(tmp_path: Path, type_: Type, text: str) -> None:
    good = {"int": "1", "float": "1.0", "bool": "true", "str": "a"}[str(type_)]
    path = tmp_path / "data.csv"
    path.write_text(f'k,v\n1,{good}\n1,"{text}"\n')
    error = refused(path, record_type({"k": INT, "v": type_}))
    assert error.positions == (1,)


def test_csv_null_only_where_declared(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('k,v\n1,\n1,""\n1,7\n')
    for kind, seven in ((INT, 7), (FLOAT, 7.0), (STR, "7")):
        expected = {(1, None): 2.0, (1, seven): 1.0}
        assert same(read(path, record_type({"k": INT, "v": kind.with_nullable()})), expected)


def test_ragged_and_broken_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("src,dst\n1,2\n1\n1,2,3\n4,5\n")
    assert refused(path).positions == (1, 2)
    path.write_text('src,dst\n1,2\n1,"2\n')
    assert refused(path).positions == (1,)
    path.write_text("1,2\n3,4\n")
    assert "starts with column names" in str(refused(path))
    path.write_bytes(b"src,dst\n1,\xff\n")
    assert "UTF-8" in str(refused(path))
    path.write_text("src,dst\n")
    assert read(path) == {}
    assert "cannot hold a field of type list[int]" in str(refused(path, type_from_annotation({"src": list[int]})))


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.parquet"
    parquet.write_table(ARROW, path)
    assert same(read(path, PERSON), WEIGHTS)
    assert "no column named 'src', 'dst'" in str(refused(path))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-20])
    assert "not a sound parquet file" in str(refused(broken, PERSON))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert same(read(path, PERSON), WEIGHTS), "without pyarrow too"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for ending in (".csv", ".csv.gz", ".parquet", ".txt"):
        assert "there is no file" in str(refused(tmp_path / f"missing{ending}"))
    (tmp_path / "folder.csv").mkdir()
    assert "is a directory" in str(refused(tmp_path / "folder.csv"))
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"src,dst\n" + b"1,2\n" * 999)[:-12])
    assert "truncated" in str(refused(cut))
    empty = tmp_path / "empty.txt.gz"
    empty.touch()
    assert "not a gzip file" in str(refused(empty))
    assert "ending" in str(refused(tmp_path / "data.xlsx"))
    assert "ending" in str(refused(tmp_path / "data.parquet.gz"))
    assert "cannot be read" in str(refused("a\0b.csv"))


# --- edge lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["g.txt", "g.txt.gz", "g.tsv", "g.TSV.GZ", "g.edges"])
def test_edge_list_paths(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = b"# a graph\n1\t2\n2\t1\n3\t2\n"
    path.write_bytes(gzip.compress(content) if name.lower().endswith("gz") else content)
    assert same(read(path), {(1, 2): 1.0, (2, 1): 1.0, (3, 2): 1.0})
    assert same(read(path, record_type({"a": STR, "b": STR})), {("1", "2"): 1.0, ("2", "1"): 1.0, ("3", "2"): 1.0})
    options = EdgeList(path, directed=False, duplicates="drop")
    assert same(read(options, facts=("unit_weights",)), {(1, 2): 1.0, (2, 3): 1.0})


def test_an_edge_that_stands_there_twice_is_refused_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n2 1\n1 2\n")
    assert refused(path).positions == (2,)
    assert refused(EdgeList(path)).positions == (2,)
    assert refused(EdgeList(path, directed=False)).positions == (1, 2)
    assert same(read(EdgeList(path, duplicates="keep")), {(1, 2): 2.0, (2, 1): 1.0})


def test_edge_lists_hold_pairs_only(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n")
    for type_ in (
        INT,
        record_type({"a": INT}),
        record_type({"a": INT, "b": STR}),
        record_type({"a": FLOAT, "b": FLOAT}),
    ):
        assert "two int or two str fields" in str(refused(path, type_))


# --- promises --------------------------------------------------------------------------------------------------


def test_every_fact_has_a_promise_and_a_check() -> None:
    assert set(FACTS) == set(_CHECKS)
    assert all(promise and "\n" not in promise for promise in FACTS.values())


def test_facts_that_hold() -> None:
    everything = ("nonnegative", "unit_weights", "symmetric")
    assert read([(1, 2), (2, 1), (3, 3)], facts=everything, unit=2) == {(1, 2): 1.0, (2, 1): 1.0, (3, 3): 1.0}
    assert read({(1, 2): 1, (3, 4): 0}, facts=("unit_weights",)) == {(1, 2): 1.0}
    assert read([(1, 2), (2, 1), (1, 2)], facts=("whole_weights",)) == {(1, 2): 2.0, (2, 1): 1.0}
    assert read({(1, 2): 3, (2, 1): 0}, facts=("whole_weights",), unit=3) == {(1, 2): 3.0}
    assert read({(1, 2): -1, (2, 1): -1}, facts=("symmetric",), unit=2) == {(1, 2): -1.0, (2, 1): -1.0}
    assert read({(1, 1): 2}, facts=("symmetric",), unit=2) == {(1, 1): 2.0}
    assert read([(1, 2), (3, 1), (1, 2)], facts=("simple",)) == {(1, 2): 2.0, (3, 1): 1.0}


@for_each(
    ("fact", "data", "positions"),
    [
        ("nonnegative", {(1, 2): 1, (2, 1): -0.5}, (1,)),
        ("unit_weights", [(1, 2), (2, 1), (1, 2)], (0, 2)),
        ("unit_weights", {(1, 2): 1, (2, 1): 0.5}, (1,)),
        ("whole_weights", {(1, 2): 1, (2, 1): 0.5}, (1,)),
        ("whole_weights", {(1, 2): -1, (2, 1): 1}, (0,)),
        ("symmetric", [(1, 2), (2, 1), (1, 3)], (2,)),
        ("symmetric", [(1, 2), (2, 1), (1, 2)], (0, 1, 2)),
        ("symmetric", {(1, 1): 1, (1, 2): 0.5, (2, 1): 0.25}, (1, 2)),
        ("symmetric", {(1, 2): 1, (2, 1): 0}, (0,)),
        ("simple", [(1, 2), (3, 3), (2, 3)], (1,)),
        ("simple", [(1, 2), (3, 1), (2, 1)], (0, 2)),
        ("simple", {(1, 2): 1, (2, 1): 0, (3, 3): 1}, (2,)),
        ("simple_digraph", [(1, 2), (2, 1), (3, 3)], (2,)),
        ("simple_digraph", [(1, 2), (2, 1), (1, 2)], (0, 2)),
    ],
)
def test_facts_that_do_not_hold(fact: str, data: object, positions: tuple[int, ...]) -> None:
    error = refused(data, facts=(fact,), unit=2)
    assert error.positions == positions
    assert {"whole_weights": "weights=True"}.get(fact, fact) in str(error)


def test_facts_that_make_no_sense() -> None:
    with pytest.raises(PlanError, match="there is no fact 'unique'"):
        read([(1, 2)], facts=("unique",))
    for type_ in (INT, record_type({"a": INT, "b": STR}), record_type({"a": INT})):
        with pytest.raises(PlanError, match="two fields of one type"):
            read([], type_, facts=("symmetric",), unit=2)
        with pytest.raises(PlanError, match="two fields of one type"):
            read([], type_, facts=("simple",))
    with pytest.raises(PlanError, match="no edge is both"):
        read([], facts=("symmetric", "simple"), unit=2)
    for unit in (1, "1/2", "199/100"):
        with pytest.raises(PlanError, match="unit_weight=2"):
            read([(1, 2), (2, 1)], facts=("symmetric",), unit=unit)


def test_both_directions_of_an_edge_weigh_no_more_than_the_unit_together() -> None:
    error = refused({(3, 3): 2, (1, 2): 2, (2, 1): 2}, facts=("symmetric",), unit=2)
    assert error.positions == (1, 2)
    assert "more than the unit weight 2 together" in str(error)
    assert refused({(1, 2): -1.25, (2, 1): -1.25}, facts=("symmetric",), unit=2).positions == (0, 1)
    assert read({(1, 2): 2, (2, 1): 2}, facts=("symmetric",), unit=4) == {(1, 2): 2.0, (2, 1): 2.0}


def test_bounds_are_positive() -> None:
    with pytest.raises(PlanError, match="positive"):
        read([(1, 2)], unit=0)
    with pytest.raises(PlanError, match="positive"):
        read([(1, 2)], cap=-1)


def test_the_cap_is_compared_without_rounding() -> None:
    tenths = {(i, i): 0.1 for i in range(10)}
    exact = 10 * Fraction(0.1)  # a little above 1, where a rounded sum gives exactly 1.0
    assert norm(tenths.values()) == exact > 1
    assert len(read(tenths, cap=exact)) == 10
    assert "above the cap" in str(refused(tenths, cap=1))
    assert "above the cap" in str(refused([(1, 2), (1, 2), (2, 2)], cap=2))
    assert "above the cap" in str(refused({(1, 2): 1, (2, 1): -1, (3, 3): 5e-324}, cap=2))


def test_the_message_about_the_cap_does_not_tell_the_total() -> None:
    assert "31337" not in str(refused([(1, 2)] * 31337, cap=7))


def test_table_libraries_are_imported_only_when_used() -> None:
    program = (
        "import sys; from wpinq.data import read_source; from wpinq.expr.types import INT; "
        "from tests.support.declared import declared; read_source([1, 2], declared(INT)); "
        "print([m for m in ('pandas', 'polars', 'pyarrow') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_breach_is_refused_also_where_its_rows_cannot_be_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a relation may say something else the second time; what was held is what was checked."""
    from wpinq.data import facts

    monkeypatch.setattr(facts, "listed", lambda connection, found: iter(()))
    assert "cannot be found again" in str(refused([(1, 2), (1, 2)], facts=("unit_weights",)))
