"""Of each person at most so many rows: which, whatever the form of the data, and that nothing else has a say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each, sizes
from tests.support.people import kept_rows
from wpinq.columns.storage import StoredColumns
from wpinq.data import read_source
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.declarations import Person
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, Type, record_type, type_from_annotation

VISIT = record_type({"page": STR, "ms": FLOAT.with_nullable()})
FIELDS = ("user", "page", "ms")
ROWS = [(1, "a", 2.0), (1, "b", None), (2, "a", 2.0), (1, "a", 2.0), (3, "c", -0.0), (1, "d", 1.5), (3, "c", 0.0)]


def named(rows: list[tuple[Any, ...]] = ROWS, fields: tuple[str, ...] = FIELDS) -> list[dict[str, Any]]:
    return [dict(zip(fields, row, strict=True)) for row in rows]


def read(data: Any, at_most: int = 2, type_: Type = VISIT, *, nested: bool = False, **options: Any) -> dict[Any, float]:
    person = Person(options.pop("column", "user"), at_most, nested)
    read = read_source(data, declared(type_, person=person, **{"cap": 10**9, **options}))
    assert isinstance(read, StoredColumns)
    return dict(read.items())


def refused(data: Any, *args: Any, **options: Any) -> SourceRejected:
    with pytest.raises(SourceRejected) as caught:
        read(data, *args, **options)
    assert caught.value.__cause__ is None
    return caught.value


# --- the rule ------------------------------------------------------------------------------------------------------


def test_people_with_few_rows_keep_them_all() -> None:
    assert read(named(), 4) == {("a", 2.0): 3.0, ("b", None): 1.0, ("c", 0.0): 2.0, ("d", 1.5): 1.0}
    assert sum(read(named(), 2).values()) == 5.0
    assert sum(read(named(), 1).values()) == 3.0


def test_which_rows_are_kept_is_fixed_for_ever() -> None:
    """A change here is another dataset under an old version: it would answer paid measurements anew."""
    rows = [(text, float(number)) for text in ("a", "b", "é") for number in (-1, 0, 2.5)]
    kept = kept_rows(["x"] * 10, [*rows, rows[0]], VISIT, 4)
    assert kept == {"x": (("a", -1.0), ("a", 0.0), ("é", -1.0), ("é", 2.5))}
    numbered = [(row, 1) for row in rows] + [(rows[0], 2)]
    first = sorted(numbered, key=lambda copy: sha256(f"{written(copy[0])}:{copy[1]}".encode()).hexdigest())[:4]
    assert sorted(row for row, _ in first) == list(kept["x"])


def written(row: tuple[str, float]) -> str:
    """The canonical bytes of a row, in hexadecimal, written out once more."""
    text = row[0].encode()
    return (b"t" + pack(">I", 2) + b"s" + pack(">I", len(text)) + text + b"f" + pack(">d", row[1])).hex().upper()


@pytest.mark.parametrize("many", sizes(1, 3))
def test_the_rows_kept_are_a_function_of_that_persons_rows_alone(many: int) -> None:
    rng = Random(4)
    for _ in range(many):
        rows = [(rng.randrange(4), rng.choice("ab"), rng.choice([0.5, None])) for _ in range(30)]
        at_most = rng.randrange(1, 6)
        apart = {who: read(named([row for row in rows if row[0] == who]), at_most) for who, _, _ in rows}
        together: dict[Any, float] = {}
        for dataset in apart.values():
            for record, weight in dataset.items():
                together[record] = together.get(record, 0.0) + weight
        assert read(named(rows), at_most) == together
        rng.shuffle(rows)
        assert read(named(rows), at_most) == together
        renamed = [(f"person {who}", page, ms) for who, page, ms in rows]
        assert read(named(renamed), at_most) == together
        beside = [{**row, "ip": rng.random(), "at": i} for i, row in enumerate(named(rows))]
        assert read(beside, at_most) == together


def test_copies_of_a_row_are_kept_one_by_one() -> None:
    rows = [(1, "a", 1.0)] * 50 + [(1, "b", 1.0)] * 50
    kept = read(named(rows), 40)
    assert sum(kept.values()) == 40
    assert 10 < kept["a", 1.0] < 30  # 1 - 1e-4 of hashes; the rule has no seed
    assert read(named([(1, "a", 1.0)] * 50), 40) == {("a", 1.0): 40.0}


def test_nested_records_are_lists_in_canonical_order() -> None:
    assert read(named(), 4, nested=True) == {
        (("a", 2.0), ("a", 2.0), ("b", None), ("d", 1.5)): 1.0,
        (("a", 2.0),): 1.0,
        (("c", 0.0), ("c", 0.0)): 1.0,
    }
    assert read(named([(1, "a", 1.0), (2, "a", 1.0)]), 4, nested=True) == {(("a", 1.0),): 2.0}
    flat, lists = read(named(), 2), read(named(), 2, nested=True)
    assert sum(len(rows) * weight for rows, weight in lists.items()) == sum(flat.values())


def test_ids_are_in_the_records_where_they_are_declared() -> None:
    type_ = record_type({"user": INT, "page": STR})
    rows = [(1, "a"), (2, "a"), (1, "b"), (1, "a")]
    assert read(rows, 3, type_) == {(1, "a"): 2.0, (1, "b"): 1.0, (2, "a"): 1.0}
    assert read([{"user": a, "page": b} for a, b in rows], 9, type_, nested=True) == {
        ((1, "a"), (1, "a"), (1, "b")): 1.0,
        ((2, "a"),): 1.0,
    }


# --- the forms of data ---------------------------------------------------------------------------------------------


def parquet_file(directory: Path) -> Path:
    parquet.write_table(arrow(directory), directory / "visits.parquet")
    return directory / "visits.parquet"


def csv_file(directory: Path) -> str:
    lines = "".join(f"{who},{page},{'' if ms is None else ms},x\n" for who, page, ms in ROWS)
    (directory / "visits.csv").write_text("user,page,ms,other\n" + lines)
    return str(directory / "visits.csv")


def arrow(directory: Path) -> pa.Table:
    return pa.table({name: [row[i] for row in ROWS] for i, name in enumerate(FIELDS)})


FORMS: dict[str, Callable[[Path], Any]] = {
    "generator": lambda directory: (row for row in named()),
    "pandas": lambda directory: pd.DataFrame({name: [row[i] for row in ROWS] for i, name in enumerate(FIELDS)}),
    "polars": lambda directory: pl.DataFrame(ROWS, schema=list(FIELDS), orient="row"),
    "polars, lazy": lambda directory: pl.DataFrame(ROWS, schema=list(FIELDS), orient="row").lazy(),
    "arrow": arrow,
    "parquet": parquet_file,
    "csv": csv_file,
    "text ids": lambda directory: named([(f"u{who}", page, ms) for who, page, ms in ROWS]),
    "numpy ids": lambda directory: named([(np.int32(who), page, ms) for who, page, ms in ROWS]),
}


@for_each("form", FORMS)
@for_each("nested", [False, True], ids=["rows", "lists"])
def test_every_form_of_data_is_cut_alike(tmp_path: Path, form: str, nested: bool) -> None:
    assert read(FORMS[form](tmp_path), 2, nested=nested) == read(named(), 2, nested=nested)


def test_ids_of_a_csv_file_are_its_text(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("user,page,ms\n7,a,1\n007,a,1\n")
    assert read(path, 1) == {("a", 1.0): 2.0}
    assert read(path, 1, record_type({"user": INT})) == {(7,): 1.0}
    path.write_text("user,page,ms\n7,a,1\n,a,1\n")
    assert refused(path, 1).positions == (1,)


@for_each(
    ("data", "said"),
    [
        ({("a", 1.0): 1.0}, "have no ids of persons"),
        ([("a", 1.0, 7)], "a row without field names"),
        (np.array([[1, 2]]), "columns without names"),
        (named([(None, "a", 1.0)]), "null"),
        (named([(True, "a", 1.0)]), "not of type"),
        (named([(1.0, "a", 1.0)]), "not of type"),
        (named([(2**63, "a", 1.0)]), "outside 64 bits"),
        (named([("\ud800", "a", 1.0)]), "surrogate"),
        (named([(1, 5, 1.0)]), "not of type str"),
        (pd.DataFrame({"page": ["a"], "ms": [1.0]}), "no column named 'user'"),
        (pd.DataFrame({"user": [1, None], "page": ["a", "a"], "ms": [1.0, 1.0]}), "not of type int or str"),
        (pa.table({"user": [1, None], "page": ["a", "a"], "ms": [1.0, 1.0]}), "null as the id of a person"),
    ],
)
def test_what_does_not_say_whose_it_is_is_refused(data: Any, said: str) -> None:
    assert said in str(refused(data))


def test_an_unfit_row_is_refused_whether_it_would_be_kept_or_not() -> None:
    for place in range(9):
        rows = named([(1, "a", 1.0)] * 9)
        rows[place]["ms"] = float("nan")
        assert refused(rows, 1).positions == (place,)


def test_nobody_is_told_how_many_rows_went(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(named([(1, "a", 1.0)] * 1_337), 2)
    assert not caught
    assert capfd.readouterr() == ("", "")
    assert "1337" not in str(refused(named([(who, "a", 1.0) for who in range(9)] * 1_337), 1, cap=8))


# --- facts -----------------------------------------------------------------------------------------------------------

EDGE = record_type({"src": INT, "dst": INT})


def edges(*rows: tuple[int, int, int]) -> list[dict[str, Any]]:
    return named(list(rows), ("user", "src", "dst"))


def test_the_cut_comes_before_cap_and_facts() -> None:
    assert read(edges(*[(1, 2, 3)] * 5), 1, EDGE, facts=("unit_weights",), cap=1) == {(2, 3): 1.0}
    both_ways = edges((1, 2, 3), (1, 3, 2))
    assert "simple" in str(refused(both_ways, 2, EDGE, facts=("simple",)))
    assert sum(read(both_ways, 1, EDGE, facts=("simple",)).values()) == 1.0


def test_two_people_with_one_row_break_unit_weights_and_nothing_is_cut_for_it() -> None:
    assert refused(edges((1, 2, 3), (2, 2, 3)), 2, EDGE, facts=("unit_weights",)).positions == (0, 1)


def test_symmetric_holds_for_each_person_alone() -> None:
    mixed = edges((1, 2, 3), (2, 3, 2))
    assert refused(mixed, 2, EDGE, facts=("symmetric",)).positions == (0, 1)
    alone = edges((1, 2, 3), (1, 3, 2), (2, 3, 2), (2, 2, 3), (2, 4, 4))
    assert read(alone, 3, EDGE, facts=("symmetric",)) == {(2, 3): 2.0, (3, 2): 2.0, (4, 4): 1.0}
    all_pairs = edges(*[(1, a, b) for a in range(3) for b in range(3)])  # cut to two, which are no pair
    assert "symmetric" in str(refused(all_pairs, 2, EDGE, facts=("symmetric",)))
    with pytest.raises(PlanError, match="unit_weight=2"):
        read(alone, 1, EDGE, facts=("symmetric",))


# --- values of every type --------------------------------------------------------------------------------------------


def test_values_of_every_type_are_cut() -> None:
    type_ = type_from_annotation(
        {"b": bool, "i": int | None, "f": float, "s": str, "l": list[str], "t": tuple[int, bool]}
    )
    row = {"b": True, "i": None, "f": -0.0, "s": "é\U0001f600", "l": ["", "a"], "t": (1, False), "user": "x"}
    rows = [{**row, "i": i, "l": ["z"] * i} for i in range(8)]
    kept = read(rows + rows, 5, type_)
    assert sum(kept.values()) == 5
    assert read(rows[::-1] + rows, 5, type_) == kept
    assert {type(record[0]) for record in kept} == {bool}


def test_declarations() -> None:
    source = wp.source("visits", page=str, person="user", at_most=20).plan.operator
    assert (source.unit_weight, source.unit, source.rows_of_unit) == (20, "one person", ", at most 20 rows")
    nested = wp.source("visits", page=str, person="user", at_most=20, nested=True).plan.operator
    assert (nested.unit_weight, nested.record.bound, nested.row) == (1, 20, source.row)
    assert isinstance(nested.record, ListOf)
    assert wp.source("v", page=str, person="user", at_most=20, unit_weight=20).plan.operator.unit_weight == 20
    fields = wp.source("homes", person=int, account=str, nested=bool, at_most=float).plan.type
    assert fields == record_type({"person": INT, "account": STR, "nested": BOOL, "at_most": FLOAT})


@for_each(
    ("options", "said"),
    [
        ({"person": "user"}, "how many rows of one person"),
        ({"at_most": 3}, "name the column of the ids"),
        ({"account": "users"}, "name the column of the ids"),
        ({"nested": True}, "name the column of the ids"),
        ({"person": "user", "at_most": 0}, "at least 1"),
        ({"person": "user", "at_most": 10**7}, "at most 1,000,000"),
        ({"person": "user", "at_most": True}, "an integer"),
        ({"person": "user", "at_most": 2.5}, "an integer"),
        ({"person": "", "at_most": 3}, "names the column"),
        ({"person": "us\ner", "at_most": 3}, "names the column"),
        ({"person": "user", "at_most": 3, "account": "a b"}, "cannot be used"),
        ({"person": "user", "at_most": 3, "nested": 1}, "True or False"),
        ({"person": "user", "at_most": 3, "unit_weight": 1}, "leave unit_weight out"),
        ({"person": "user", "at_most": 3, "unit_weight": 4}, "leave unit_weight out"),
        ({"person": "user", "at_most": 3, "nested": True, "unit_weight": 3}, "leave unit_weight out"),
        ({"person": "ms", "at_most": 3}, "int or str and never null"),
    ],
)
def test_declarations_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(wp.WpinqError, match=said):
        wp.source("visits", page=str, ms=float, **options)


# --- ids ----------------------------------------------------------------------------------------------------------

MIXED = [
    {"user": 1, "page": "a", "ms": None},
    {"user": 2, "page": "a", "ms": None},
    {"user": "1", "page": "b", "ms": None},
]
TOGETHER = pd.concat([pd.DataFrame(MIXED[:2]), pd.DataFrame(MIXED[2:])])


@for_each("data", [MIXED, iter(MIXED), TOGETHER, TOGETHER.to_records(index=False)], ids=str)
def test_the_ids_of_a_column_have_one_type(data: Any) -> None:
    """1 and "1" would be two people for one unit."""
    error = refused(data)
    assert error.positions == (2,)
    assert "an id that is int where the first is str, or str where it is int: give them one type (1)" in str(error)


def test_so_they_have_in_other_forms_and_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wpinq.data.rows._PIECE", 5)
    many = [{"user": i, "page": "a", "ms": None} for i in range(12)]
    assert refused([*many, MIXED[2]]).positions == (12,)
    assert refused([MIXED[2], *many[:3]]).positions == (1, 2, 3)
    edges = [{"user": "1", "src": 1, "dst": 2}, {"user": 1, "src": 1, "dst": 3}]
    with pytest.raises(SourceRejected, match="give them one type"):
        type_ = record_type({"src": INT, "dst": INT})
        read_source(wp.EdgeList(edges), declared(type_, person=Person("user", 1), cap=9))


@for_each("kind", [INT, STR])
def test_so_they_have_where_they_are_a_field(kind: Type) -> None:
    type_ = record_type({"user": kind, "page": STR})
    for data in (MIXED, TOGETHER):
        assert f"not of type {kind}" in str(refused(data, 2, type_))


def test_ids_of_text_are_compared_as_they_are() -> None:
    names = ["Ann", "ann", "Ann ", "\u00c5sa", "A\u030asa", "01", "1"]
    rows = [{"user": name, "page": "a", "ms": None} for name in names for _ in range(2)]
    assert read(rows, 1) == {("a", None): float(len(names))}
