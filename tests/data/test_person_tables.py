"""People with several tables: one record a person, whatever the form of the data."""

from __future__ import annotations

import json
import warnings
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.person_tables import people_of
from wpinq import functions as F
from wpinq.columns.storage import StoredColumns
from wpinq.data import read_source
from wpinq.errors import LanguageError, PlanError, SourceRejected

Tables = dict[str, list[tuple[Any, Any]]]


def patients(id_type: type = int, **more: Any) -> wp.Query:
    return wp.people(
        "patients",
        id=("who", id_type),
        home=wp.table(region=str, born=int | None, at_most=1),
        visits=wp.table(day=int | None, ward=str, at_most=3, keep="last", by="day"),
        drugs=wp.table(code=str, dose=float, at_most=2, distinct="code"),
        tests=wp.table(value=float, at_most=2),
        **more,
    )


def random_tables(rng: Random, ids: list[Any]) -> Tables:
    def some(make: Any) -> list[tuple[Any, Any]]:
        rows = [(who, make()) for who in ids for _ in range(rng.choice([0, 0, 1, 2, 5]))]
        rng.shuffle(rows)
        return rows

    return {
        "home": some(lambda: (rng.choice("ns"), rng.choice([None, 1950, 1990]))),
        "visits": some(lambda: (rng.choice([None, 1, 2, 3]), rng.choice("AB"))),
        "drugs": some(lambda: (rng.choice("xyz"), rng.choice([0.5, 1.0]))),
        "tests": some(lambda: (rng.choice([0.0, -1.5]),)),
    }


def named(source: wp.Query, tables: Tables) -> dict[str, list[dict[str, Any]]]:
    declared = source.plan.operator
    rows = declared.person.table_rows(declared.record)
    return {
        name: [{"who": who, **dict(zip(rows[name].names, row, strict=True))} for who, row in tables[name]]
        for name in tables
    }


def read(source: wp.Query, data: Any) -> dict[Any, float]:
    held = read_source(data, source.plan.operator)
    assert isinstance(held, StoredColumns)
    return dict(held.items())


@for_each("seed", range(60), every=20)
def test_every_way_of_reading_gives_the_records_of_the_definition(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    source, ids = patients(), rng.sample([-1, 0, 7, 10, 2**62, 3], 5)
    tables = random_tables(rng, ids)
    rows, wanted = named(source, tables), people_of(source, tables)
    assert read(source, rows) == wanted
    columns = {"home": ["region", "born"], "visits": ["day", "ward"], "drugs": ["code", "dose"], "tests": ["value"]}
    frames = {
        name: pd.DataFrame(each, columns=["who", *columns[name]]).astype(
            {column: "Int64" for column in ("who", "day", "born") if column in ["who", *columns[name]]}
        )
        for name, each in rows.items()
    }
    assert read(source, {name: pa.Table.from_pandas(frame) for name, frame in frames.items()}) == wanted
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    assert read(source, {name: tmp_path / f"{name}.csv" for name in rows}) == wanted
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            connection.register(name, pa.Table.from_pandas(frame))
        assert read(source, {name: connection.table(name) for name in rows}) == wanted
    mixed = {**{name: pl.from_pandas(frame) for name, frame in frames.items()}, "home": rows["home"]}
    assert read(source, mixed) == wanted


@for_each("seed", range(30), every=10)
def test_lists_that_are_made_in_parts_are_those_of_one_part(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    source, tables = patients(), random_tables(rng, list(range(40)))
    wanted = people_of(source, tables)
    monkeypatch.setattr("wpinq.data.person_tables._PART", 7)
    assert read(source, named(source, tables)) == wanted


def test_tables_whose_names_differ_by_case_are_two() -> None:
    source = wp.people("p", id=("who", int), A=wp.table(x=int, at_most=2), a=wp.table(y=str, at_most=1))
    assert read(source, {"A": [{"who": 1, "x": 5}], "a": [{"who": 1, "y": "t"}]}) == {(((5,),), ("t",)): 1.0}


def test_repeats_of_a_row_have_no_say_in_which_row_of_a_value_counts() -> None:
    """With `distinct`, copies are dropped before a row of each value is chosen by its hash."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, y=int, at_most=3, distinct="x"))
    for y in range(20):
        once = [(1, (0, y)), (1, (0, y + 1)), (1, (1, 2))]
        wanted = people_of(source, {"a": once})
        assert read(source, named(source, {"a": once})) == wanted
        assert read(source, named(source, {"a": [*once, *once[:1] * 5]})) == wanted
        assert people_of(source, {"a": [*once, *once[:1] * 5]}) == wanted


def test_two_people_with_equal_rows_are_one_record_of_weight_2() -> None:
    source = wp.people("p", id=("who", str), a=wp.table(x=int, at_most=2))
    assert read(source, {"a": [{"who": who, "x": x} for who in ("7", "007") for x in (1, 2)]}) == {(((1,), (2,)),): 2.0}


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_questions_of_people_are_counts(engine: str) -> None:
    source, rng = patients(), Random(3)
    tables = random_tables(rng, list(range(30)))
    data = {"patients": named(source, tables)}
    often = source.where(lambda p: F.count(p.visits) > 1)
    wanted = sum(w for record, w in people_of(source, tables).items() if len(record[1]) > 1)
    assert sum(wp.evaluate(often, data, engine).values()) == wanted
    assert often.count(epsilon=1).kind.name == "count"
    regions = source.select(lambda p: p.home.region)
    north = sum(w for record, w in people_of(source, tables).items() if record[0] and record[0][0] == "n")
    assert wp.evaluate(regions, data, engine).get("n", 0.0) == north


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_an_unnested_row_weighs_the_same_however_many_there_are(engine: str) -> None:
    source, rng = patients(), Random(4)
    tables = random_tables(rng, list(range(30)))
    data = {"patients": named(source, tables)}
    records = people_of(source, tables)
    wards = source.unnest("visits", region=lambda p: p.home.region)
    rows = sum(w * len(record[1]) for record, w in records.items())
    weights = wp.evaluate(wards, data, engine, exact=engine == "reference")
    assert float(sum(weights.values())) == pytest.approx(rows / 3)
    assert wards.stability() == {"patients": 1}
    asked = wards.by("ward", keys=["A", "B"]).agg(n=wp.count(), days=wp.sum("day", 0, 3), epsilon=10**7)
    table = wp.simulate(asked, data, seed=1)
    for ward in "AB":
        of_ward = [(row, w) for record, w in records.items() for row in record[1] if row[1] == ward]
        assert float(table[ward]["n"]) == pytest.approx(sum(w for _, w in of_ward), abs=1e-3)
        assert float(table[ward]["days"]) == pytest.approx(sum(w * (row[0] or 0) for row, w in of_ward), abs=1e-3)
    assert asked.bill()["patients"] == 10**7
    assert "rows of visits of people in patients, each of weight 1/3" in str(wards.noisy_count(1).kind)
    assert wards.select("ward").geometric_count(epsilon=1, over=["A"]).sink.name == "GeometricCount"


def test_a_listing_of_unnested_rows_is_above_a_number_of_rows() -> None:
    """Rows weigh 1/50, and a threshold of 30 is 30 rows, as the table counts them."""
    source = wp.people("p", id=("who", int), a=wp.table(ward=str, at_most=50))
    data = {"p": {"a": [{"who": who, "ward": "AB"[who < 20]} for who in range(60)]}}
    asked = source.unnest("a").by("ward", keys=["A", "B", "C"], above=30).agg(n=wp.count(), epsilon=10**6)
    table = wp.simulate(asked, data, seed=1)
    assert list(table.keys) == ["A"]
    assert float(table["A"]["n"]) == pytest.approx(40, abs=1e-2)
    assert "selected above 30," in str(table)
    again = wp.parse(wp.unparse({"q": asked}))["q"]
    assert again.measurements == asked.measurements


def test_explanations_name_a_divisor() -> None:
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=50))
    assert "SelectMany(record => record.a, divisor: 50)" in source.unnest("a").explain(1)


def test_the_noise_of_rows_is_that_of_a_flat_source() -> None:
    """At a bound of 50, a count of rows at ε has noise of scale 50/ε on the account of the people."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=50))
    asked = source.unnest("a").agg(n=wp.count(), epsilon=1)
    flat = wp.source("q", x=int, person="who", at_most=50).agg(n=wp.count(), epsilon="1/50")
    (row,), (other,) = asked.accuracy().rows, flat.accuracy().rows
    assert row.half_width == pytest.approx(other.half_width, rel=1e-5)


def test_text_json_and_pickles_keep_the_declaration() -> None:
    source = patients(unit="one patient", cap=1000, records_at_most=99)
    text = wp.unparse({"q": source.where(lambda p: F.count(p.visits) > 1)})
    assert "last = {visits = day}, distinct = {drugs = code}" in text
    again = wp.parse(text)
    assert again.sources["patients"] == source
    assert again["q"] == source.where(lambda p: F.count(p.visits) > 1)
    from wpinq.plan.format import plan_from_json, plan_to_json

    assert plan_from_json(plan_to_json(source.plan)) == source.plan
    flat = source.unnest("visits").select("ward")
    assert wp.parse(wp.unparse({"q": flat}))["q"] == flat


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at_most": 0}, "at_most"),
        ({"at_most": True}, "at_most"),
        ({"keep": "last"}, "keep"),
        ({"by": "x"}, "keep"),
        ({"keep": "most", "by": "x"}, "keep"),
        ({"keep": "last", "by": "y"}, "no field"),
        ({"distinct": "y"}, "no field"),
    ],
)
def test_a_rule_that_fits_no_rows_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        wp.people("p", id=("who", int), a=wp.table(x=int, **{"at_most": 3, **change}))


def test_unfit_declarations_are_refused() -> None:
    a = wp.table(x=int, at_most=3)
    for make in (
        lambda: wp.people("p", id=("x", int), a=a),  # ids are no field
        lambda: wp.people("p", id=("who", float), a=a),
        lambda: wp.people("p", id="who", a=a),
        lambda: wp.people("p", id=("who", int)),
        lambda: wp.people("p", id=("who", int), a=int),
        lambda: wp.people("p", id=("who", int), a=wp.table(int, at_most=2)),
    ):
        with pytest.raises(PlanError):
            make()  # type: ignore[no-untyped-call]
    for text in (
        "source p(a: list[(x: int), 3]) with ids = int;",
        'source p(a: list[(x: int)]) with person = "who", ids = int;',
        'source p(a: list[(x: int), 3]) with person = "who", ids = float;',
        'source p(a: list[(x: int), 3]) with person = "who", ids = int, last = {b = x};',
        'source p(a: list[(x: int), 3]) with person = "who", ids = int, facts = [symmetric];',
        'source p(a: list[(x: int), 3]) with person = "who", ids = int, at_most = 3;',
        'source p(a: list[(x: int), 3]) with person = "who", ids = int, first = {a = x}, last = {a = x};',
    ):
        with pytest.raises(LanguageError):
            wp.parse(text)
    with pytest.raises(LanguageError, match="an id of type int or str"):
        wp.parse('source p(a: list[(x: int), 3]) with person = "who", last = {a = x};')


def test_the_bounds_of_all_tables_are_bought_together() -> None:
    source, tables = patients(), random_tables(Random(2), list(range(200)))
    asked = wp.rows_per_person(source, 3, tables=["visits", "drugs", "tests"])
    assert wp.bill(asked)["patients"] == 3
    with wp.Session() as session:
        session.protect(source, named(source, tables), budget=3)
        bought = session.release(asked)
    assert {name: 1 <= answers.value <= 3 for name, answers in bought.items()} == dict.fromkeys(asked, True)
    assert {name: asked.digest for name, asked in wp.rows_per_person(source, 3).items()} == {
        name: one.digest for name, one in asked.items()
    }
    for tables in ("visits", ["home"], []):
        with pytest.raises(PlanError, match="tables is a list of names out of visits, drugs, tests"):
            wp.rows_per_person(source, 3, tables=tables)


def test_a_join_of_tables_of_one_account_says_what_to_write() -> None:
    one = wp.source("one", x=int, who=int, person="who", at_most=2, account="people")
    two = wp.source("two", y=int, who=int, person="who", at_most=2, account="people")
    joined = one.join(two, on="who")
    for text in (str(joined.bill(1)), joined.explain(1)):
        assert "declare them as tables of one wp.people" in text
    apart = one.select(lambda r: r.x).concat(two.select(lambda r: r.y))
    assert "wp.people" not in str(apart.bill(1)) + apart.explain(1)


def test_refusals_name_the_table_and_no_value() -> None:
    source = patients()
    good = named(source, {"home": [(1, ("n", 1950))], "visits": [], "drugs": [], "tests": []})
    for table, row in {
        "visits": {"who": 1, "day": "SECRET", "ward": "A"},
        "tests": {"who": None, "value": 1.0},
    }.items():
        with pytest.raises(SourceRejected, match=f"table '{table}'") as caught:
            read(source, {**good, table: [row]})
        assert "SECRET" not in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(source, good)


def test_columns_of_other_names_are_layout(tmp_path: Path) -> None:
    """Fields and ids may stand in columns of other names: in Python, text and JSON, and no identity depends on it."""
    from wpinq.plan.format import plan_from_json, plan_to_json

    def people(**columns: Any) -> wp.Query:
        visits = wp.table(day=date, ward=str, at_most=2, keep="last", by="day", **columns)
        return wp.people("p", id=("who", int), home=wp.table(region=str, at_most=1), visits=visits)

    source = people(columns={"who": "subject", "day": "visit_start_date", "ward": "care site"})
    text = wp.unparse({"q": source.unnest("visits")})
    assert 'columns = {visits = {who = "subject", day = "visit_start_date", ward = "care site"}}' in text
    rows = [{"subject": 1, "care site": "AB"[i % 2], "visit_start_date": date(2024, 1, 1 + i)} for i in range(4)]
    wanted = read(
        people(),
        {"home": [], "visits": [{"who": 1, "ward": r["care site"], "day": r["visit_start_date"]} for r in rows]},
    )
    pd.DataFrame(rows).to_csv(tmp_path / "visits.csv", index=False)
    pd.DataFrame(rows).to_parquet(tmp_path / "visits.parquet")
    for same in (
        source,
        wp.parse(text).sources["p"],
        wp.Query(plan_from_json(json.loads(json.dumps(plan_to_json(source.plan))))),
    ):
        assert same == people()
        assert same.plan.digest == people().plan.digest
        for visits in (rows, pd.DataFrame(rows), tmp_path / "visits.csv", tmp_path / "visits.parquet"):
            assert read(same, {"home": [], "visits": visits}) == wanted
    for columns in ({"x": "y"}, {"day": "ward"}, {"day": "who"}, {"day": 3}, {"day": ""}):
        with pytest.raises(PlanError, match="a column of its own"):
            people(columns=columns)


def test_any_name_of_a_field_stands_in_a_declaration() -> None:
    for name in ("true", "null", "false", "in", "source", "date"):
        source = wp.people(
            "p",
            id=("who", int),
            a=wp.table({name: int, "y": str}, at_most=5, keep="last", by=name, distinct="y"),
            b=wp.table({name: int, "y": str}, at_most=5, keep="first", by="y", distinct=name),
        )
        assert wp.parse(wp.unparse({"q": source})).sources["p"] == source
    keyed = wp.source("s", {"true": int, "null": int}, keys_at_most={("true", "null"): 3})
    assert wp.parse(wp.unparse({"q": keyed})).sources["s"] == keyed


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_in_records_and_lists_are_read_from_parquet(unit: str, tmp_path: Path) -> None:
    source = wp.people("p", id=("who", int), a=wp.table(r={"x": timedelta, "y": str}, at_most=2, l=list[timedelta]))
    second = timedelta(seconds=1)
    rows = [{"who": 1, "l": [second, 3 * second], "r": {"y": "t", "x": 5 * second}}]
    duration = pa.duration(unit)
    record = pa.struct([("y", pa.string()), ("x", duration)])
    schema = pa.schema([("who", pa.int64()), ("l", pa.list_(duration)), ("r", record)])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet")
    assert read(source, {"a": tmp_path / "a.parquet"}) == read(source, {"a": rows})
