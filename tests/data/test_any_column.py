"""Columns of any name: fields by the columns that a declaration gives them."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import LanguageError, PlanError, SourceRejected
from wpinq.kernel.ledger.accounts import declaration
from wpinq.language import parse, unparse
from wpinq.measure.measurement import measurement_from_json, measurement_to_json
from wpinq.service.config import configuration_of

PLAIN = wp.source("people", first_name=str, age=int)
NAMES = [
    "First Name",
    "größe",
    "Total (€)",
    "a \"b\" 'c' `d`",
    "a\\b\\",
    '"; DROP TABLE staged; --',
    "two\nlines",
    "%s {0} $1 ^.*$",
    " ",
    "*",
    "#1",
    "2020",
    "AGE",
]
"""Names that no field can have, and hostile ones."""


def declared(name: str, **more: Any) -> wp.Query:
    return wp.source("people", first_name=str, age=int, columns={"first_name": name}, **more)


def _csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def _parquet(frame: pd.DataFrame, folder: Path) -> Any:
    pyarrow.parquet.write_table(pa.table(frame), folder / "people.parquet")
    return folder / "people.parquet"


def _cursor(frame: pd.DataFrame, folder: Path) -> Any:
    quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in frame.columns)
    made = sqlite3.connect(":memory:").execute(f"CREATE TABLE t ({quoted})")
    made.executemany("INSERT INTO t VALUES (?, ?, ?)", frame.itertuples(index=False, name=None))
    return made.execute("SELECT * FROM t")


FORMS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "lazy polars": lambda frame, _: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, _: pa.table(frame),
    "duckdb": lambda frame, _: duckdb.from_arrow(pa.table(frame)),
    "numpy": lambda frame, _: frame.astype({name: "U9" for name in frame.columns if name != "age"}).to_records(False),
    "mappings": lambda frame, _: frame.to_dict("records"),
    "csv": _csv,
    "parquet": _parquet,
    "cursor": _cursor,
}


@for_each("form", FORMS.values(), ids=FORMS)
def test_each_form_of_data_is_found_by_the_column(form: Any, tmp_path: Path) -> None:
    one_case = form in (_cursor, FORMS["duckdb"])  # their own names differ by more than case
    names = ["First Name", "größe"] if form is FORMS["numpy"] else NAMES[: -1 if one_case else None]
    for name in names:
        frame = pd.DataFrame({"first_name": ["no", "no"], name: ["Ann", "Bo"], "age": [3, 4]})
        assert wp.evaluate(declared(name), {"people": form(frame, tmp_path)}) == {("Ann", 3): 1, ("Bo", 4): 1}


@for_each("form", FORMS.values(), ids=FORMS)
def test_data_without_the_column_are_refused_with_its_name_and_the_mend(form: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"first_name": ["secret"], "other": ["secret"], "age": [3]})
    with pytest.raises((SourceRejected, PlanError), match="First Name") as caught:
        wp.evaluate(declared("First Name"), {"people": form(frame, tmp_path)})
    assert "secret" not in str(caught.value) and "other" not in str(caught.value)
    if form is not FORMS["mappings"]:
        assert 'columns={"first_name": "..."}' in str(caught.value)


def test_two_columns_of_the_name_are_refused() -> None:
    frame = pd.DataFrame([["a", "b", 1]], columns=["First Name", "First Name", "age"])
    with pytest.raises(SourceRejected, match="several columns named 'First Name'"):
        wp.evaluate(declared("First Name"), {"people": frame})


def test_fields_can_take_one_another_s_columns() -> None:
    swapped = wp.source("s", a=int, b=int, columns={"a": "b", "b": "a"})
    assert wp.evaluate(swapped, {"s": pd.DataFrame({"a": [1], "b": [2]})}) == {(2, 1): 1}


@for_each("name", NAMES)
def test_columns_are_layout_and_no_part_of_a_plan_or_an_account(name: str) -> None:
    query = declared(name)
    assert (query.plan, query.plan.digest) == (PLAIN.plan, PLAIN.plan.digest)
    assert declaration(query.plan.operator) == declaration(PLAIN.plan.operator)  # type: ignore[arg-type]
    assert query.noisy_count(1, over=[("a", 1)]).bill() == PLAIN.noisy_count(1, over=[("a", 1)]).bill()


@for_each("name", NAMES)
def test_text_json_and_pickles_keep_the_columns(name: str) -> None:
    query, wanted = declared(name), (name, "age")
    measurement = query.noisy_count(1, over=[("a", 1)])
    for again in (
        parse(unparse({"x": query})).sources["people"],
        pickle.loads(pickle.dumps(query)),
        measurement_from_json(measurement_to_json(measurement)),
    ):
        assert again.plan.operator.columns == wanted
        assert again.plan.sources[0].columns == wanted


def test_a_declaration_says_its_columns_in_text() -> None:
    program = parse('source people(first_name: str, age: int) with columns = {first_name = "First Name"};')
    assert program.sources["people"].plan.operator.columns == ("First Name", "age")  # type: ignore[attr-defined]
    for wrong in ("{}", '["First Name"]', '{"First Name"}', '{age = "a", age = "b"}', "{age = 3}", '{of = "a"}'):
        with pytest.raises(LanguageError, match=r"column|expected"):
            parse(f"source people(first_name: str, age: int) with columns = {wrong};")


@for_each(
    "columns",
    [
        {"first_name": "x", "age": "x"},
        {"first_name": "age"},
        {"no": "x"},
        {"age": ""},
        {"age": "a\0b"},
        {"age": "\ud800"},
        {"age": 3},
        ["a"],
        str,
    ],
)
def test_unfit_columns_are_refused(columns: Any) -> None:
    with pytest.raises(PlanError, match="column"):
        wp.source("people", first_name=str, age=int, columns=columns)


def test_records_without_named_fields_have_no_columns() -> None:
    for record in (int, tuple[int, str]):
        with pytest.raises(PlanError, match="column"):
            wp.source("s", record, columns={"a": "b"})


def test_a_plan_of_any_origin_has_sound_columns() -> None:
    held = measurement_to_json(declared("First Name").noisy_count(1, over=[("a", 1)]))
    source = held["plan"]["nodes"][0]["arguments"]
    for wrong in ({"texts": ["a"]}, {"texts": ["a", "a"]}, {"texts": ["a", "\0"]}, {"value": "ab"}, {"value": 3}):
        source["columns"] = wrong
        with pytest.raises(PlanError):
            measurement_from_json(held)


# --- persons, sizes and edges refer to fields ------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
def test_the_cut_of_persons_is_that_of_the_fields(nested: bool) -> None:
    options: dict[str, Any] = {"person": "who", "at_most": 2, "nested": nested}
    plain = wp.source("s", who=int, page=str, **options)
    mapped = wp.source("s", who=int, page=str, columns={"who": "Kunden-Nr.", "page": "who"}, **options)
    rows = [(i % 3, f"page {i}") for i in range(15)]
    wanted = wp.evaluate(plain, {"s": pd.DataFrame(rows, columns=["who", "page"])})
    assert wp.evaluate(mapped, {"s": pd.DataFrame(rows, columns=["Kunden-Nr.", "who"])}) == wanted


def test_ids_that_are_no_field_stand_in_a_column_of_their_own() -> None:
    visits = wp.source("s", page=str, person="User ID", at_most=1, columns={"page": "Page!"})
    assert wp.evaluate(visits, {"s": [{"User ID": 1, "Page!": "a"}, {"User ID": 2, "Page!": "a"}]}) == {("a",): 2}
    with pytest.raises(PlanError, match="name this field as the person"):
        wp.source("s", page=str, person="Page!", at_most=1, columns={"page": "Page!"})


def test_sizes_are_of_fields() -> None:
    bounded = wp.source("s", a=int, b=int, columns={"a": "b", "b": "B b"}, keys_at_most={"a": 1})
    frame = pd.DataFrame({"b": [1, 1], "B b": [1, 2]})
    with wp.Session() as session, pytest.raises(SourceRejected, match="one a"):
        session.protect(bounded, frame, budget=1)
    with wp.Session() as session:
        session.protect(bounded, frame.assign(b=[1, 2]), budget=1)


def test_edges_are_found_by_the_columns() -> None:
    edges = wp.source("e", src=int, dst=int, columns={"src": "From", "dst": "To!"})
    frame = pd.DataFrame({"From": [2, 2], "To!": [1, 1], "src": [7, 7]})
    assert wp.evaluate(edges, {"e": wp.EdgeList(frame, directed=False, duplicates="drop")}) == {(1, 2): 1}
    owned = wp.source("e", src=int, dst=int, columns={"src": "From", "dst": "To!"}, person="src", at_most=5)
    assert wp.evaluate(owned, {"e": wp.EdgeList(frame, duplicates="keep")}) == {(2, 1): 2}


def test_a_query_declared_again_reads_by_its_own_columns() -> None:
    for name in ("One", "Two"):
        query = declared(name).where(lambda p: p.age > 0)
        assert wp.evaluate(query, {"people": pd.DataFrame({name: ["a"], "age": [1]})}) == {("a", 1): 1}


# --- what others learn ------------------------------------------------------------------------------------------------


def test_a_session_and_a_service_show_no_columns(tmp_path: Path) -> None:
    with wp.Session() as session:
        session.protect(declared("First Name"), pd.DataFrame({"First Name": ["a"], "age": [1]}), budget=1)
        assert session.declared()["people"].source.columns is None
        assert session.release(PLAIN.noisy_count(1, over=[("a", 1)])).measurement.plan == PLAIN.plan
    (tmp_path / "people.csv").write_text("First Name,age\na,1\n")
    given = {
        "declarations": unparse({"x": declared("First Name")}).partition("\n")[0],
        "service": {"ledger": "ledger.db", "users": "users.db"},
        "sources": {"people": {"file": "people.csv", "budget": 1}},
    }
    made = configuration_of(given, tmp_path)
    assert made.sources["people"].query.plan.operator.columns == ("First Name", "age")  # type: ignore[attr-defined]
    assert made.declared["people"].plan.operator.columns is None  # type: ignore[attr-defined]


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_a_schema_proposes_fields_for_columns_of_any_name() -> None:
    names = ["First Name", "größe", "Total (€)", "2020", "***", "first_name", "Straße 1", "class"]
    frame = pd.DataFrame({name: [1] for name in names})
    found = wp.schema(frame, "t")
    assert dict(found.columns) == {
        "first_name_2": "First Name",
        "grosse": "größe",
        "total": "Total (€)",
        "column_2020": "2020",
        "column_5": "***",
        "strasse_1": "Straße 1",
    }
    assert not found.left_out
    for again in (eval(found.python.partition(" = ")[2]), parse(found.text).sources["t"], found.source()):
        assert again.plan.operator.columns == tuple(names)
        assert wp.evaluate(again, {"t": frame}) == {(1,) * len(names): 1}
    assert np.all([name.isascii() for name in found.record.names])  # type: ignore[attr-defined]
