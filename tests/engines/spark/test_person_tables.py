"""People with several tables on Spark: the records are those of the definition, and of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.person_tables import people_of
from wpinq import functions as F
from wpinq.columns.dataset import EngineDataset
from wpinq.data import read_source
from wpinq.data.layout import canonical_value
from wpinq.errors import SourceRejected
from wpinq.expr.types import ListOf, TupleOf, Type

pytestmark = pytest.mark.long

TEXTS = ["", " ", "a", "A", "a ", "é", "e\u0301", "\U0001f600", "ß", "\x01"]
FIELDS: dict[str, tuple[Any, str, list[Any]]] = {
    "n": (int, "bigint", [0, 1, -1, 2**63 - 1, -(2**63)]),
    "x": (float, "double", [0.0, -0.0, 1.5, -1.5, 5e-324, 1.7e308, 0.1]),
    "b": (bool, "boolean", [True, False]),
    "s": (str, "string", TEXTS),
    "d": (date, "date", [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "c": (wp.decimal(2), "decimal(18,2)", [Decimal("0.00"), Decimal("-1.25"), Decimal("99999999.99")]),
    "k": (wp.category("b", "a", "é"), "string", ["a", "b", "é"]),
    "r": ({"u": int, "v": str}, "struct<u: bigint, v: string>", [(1, "a"), (1, ""), (-2, "é")]),
    "l": (list[int], "array<bigint>", [[], [1], [1, 1], [2**63 - 1]]),
}


def declared_at_random(rng: Random) -> tuple[wp.Query, dict[str, str]]:
    """A source, and the schema of a Spark frame for each of its tables."""
    id_type = rng.choice([int, str])
    tables, schemas = {}, {}
    for table in rng.sample(["home", "visits", "Visits", "tests"], rng.randint(1, 3)):
        names = rng.sample([*FIELDS], rng.randint(1, 4))
        fields = {name: FIELDS[name][0] for name in names}
        for name in names:
            if rng.random() < 0.5 and name in "nxbsd":
                fields[name] |= None
        ordered, single = [n for n in names if n in "nxbsdc"], [n for n in names if n not in "rl"]
        rule = (
            {"keep": rng.choice(["first", "last"]), "by": rng.choice(ordered)} if ordered and rng.random() < 0.5 else {}
        )
        rule |= {"distinct": rng.choice(single)} if single and rng.random() < 0.4 else {}
        tables[table] = wp.table(fields, at_most=rng.randint(1, 4), **rule)
        columns = [f"{name} {FIELDS[name][1]}" for name in names]
        schemas[table] = ", ".join(["other int", *columns, f"who {'bigint' if id_type is int else 'string'}"])
    return wp.people("people", id=("who", id_type), **tables), schemas


def rows_at_random(rng: Random, source: wp.Query) -> dict[str, list[tuple[Any, Any]]]:
    """The id and the values of each row of each table: many are cut, and many are the same."""
    declared = source.plan.operator
    ids: list[Any] = (
        [7, -1, 2**63 - 1, 0] if declared.person.id_type == "int" else ["7", "007", "7 ", "", "é", "e\u0301"]
    )
    found: dict[str, list[tuple[Any, Any]]] = {}
    for table, row in declared.person.table_rows(declared.record).items():
        pool = [
            tuple(
                None if type_.nullable and rng.random() < 0.3 else rng.choice(FIELDS[str(name)][2])
                for name, type_ in zip(row.names, row.elements, strict=True)
            )
            for _ in range(5)
        ]
        found[table] = [(rng.choice(ids), rng.choice(pool)) for _ in range(rng.choice([0, 3, 25]))]
    return found


def held_value(leaves: Iterator[Any], type_: Type) -> Any:
    """The record in the columns of a row of Spark."""
    if not isinstance(type_, TupleOf):
        return packed_value(next(leaves), type_)
    there = next(leaves) if type_.nullable else True
    parts = tuple(held_value(leaves, element) for element in type_.elements)
    return parts if there else None


def packed_value(given: Any, type_: Type) -> Any:
    if given is None or not isinstance(type_, (ListOf, TupleOf)):
        return given
    if isinstance(type_, ListOf):
        return tuple(packed_value(item, type_.element) for item in given)
    return tuple(packed_value(item, element) for item, element in zip(given, type_.elements, strict=True))


def frames(spark: Any, schemas: dict[str, str], tables: dict[str, list[tuple[Any, Any]]]) -> dict[str, Any]:
    return {
        name: spark.createDataFrame([(i, *row, who) for i, (who, row) in enumerate(rows)], schemas[name]).repartition(3)
        for name, rows in tables.items()
    }


def read(source: wp.Query, offered: dict[str, Any]) -> dict[Any, float]:
    declared = source.plan.operator
    held = read_source({name: EngineDataset(frame) for name, frame in offered.items()}, declared)
    assert isinstance(held, EngineDataset)
    rows = held.frame.collect()
    found = {held_value(iter(row), declared.record): row[-1] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_spark_makes_the_records_of_the_definition_and_of_duckdb(spark: Any, seed: int) -> None:
    rng = Random(seed)
    source, schemas = declared_at_random(rng)
    declared = source.plan.operator
    types = declared.person.table_rows(declared.record)
    tables = rows_at_random(rng, source)
    canonical = {
        name: [(who, canonical_value(list(row), types[name])) for who, row in rows] for name, rows in tables.items()
    }
    wanted = people_of(source, canonical)
    named = {
        name: [{"who": who, **dict(zip(types[name].names, row, strict=True))} for who, row in rows]
        for name, rows in tables.items()
    }
    assert dict(read_source(named, declared).items()) == wanted
    assert read(source, frames(spark, schemas, tables)) == wanted


def patients() -> wp.Query:
    return wp.people(
        "patients",
        id=("who", int),
        home=wp.table(region=str, at_most=1),
        visits=wp.table(ward=str, at_most=3, columns={"ward": "care_site"}),
    )


def test_a_session_on_spark_counts_people_and_rows(spark: Any) -> None:
    source = patients()
    data = {
        "home": spark.createDataFrame([(who, "ns"[who % 2]) for who in range(20)], "who int, region string"),
        "visits": spark.createDataFrame(
            [(who, "AB"[i % 2]) for who in range(5, 30) for i in range(who % 6)], "who int, care_site string"
        ),
    }
    wards = source.unnest("visits").by("ward", keys=["A", "B"]).agg(n=wp.count(), epsilon=10**7)
    without = source.where(lambda p: F.count(p.visits) == 0).select(lambda p: 0).noisy_count(epsilon=10**7)
    rows = {name: [row.asDict() for row in frame.collect()] for name, frame in data.items()}
    with wp.Session(engine="spark") as session:
        session.protect(source, data, budget=10**9)
        table, answer = session.release(wards), session.release(without)
    with wp.Session() as session:
        session.protect(source, rows, budget=10**9)
        wanted, other = session.release(wards), session.release(without)
    for ward in "AB":
        assert float(table[ward]["n"]) == pytest.approx(float(wanted[ward]["n"]), abs=1e-3)
    assert float(answer[0]) == pytest.approx(float(other[0]), abs=1e-3)


def test_refusals_of_spark_name_the_table_and_no_value(spark: Any) -> None:
    source = patients()
    home = spark.createDataFrame([(1, "n")], "who bigint, region string")
    visits = spark.createDataFrame([(1, "A")], "who bigint, care_site string")
    null = spark.createDataFrame([(1, "A"), (None, "SECRET")], "who bigint, care_site string")
    texts = spark.createDataFrame([("1", "SECRET")], "who string, care_site string")
    for offered, words in (
        ({"home": home, "visits": null}, "table 'visits'"),
        ({"home": home, "visits": texts}, "'who'"),
        ({"home": home, "visits": home}, "care_site"),
    ):
        with pytest.raises(SourceRejected, match=words) as caught:
            read(source, offered)
        assert "SECRET" not in str(caught.value)
    with wp.Session(engine="spark") as session, pytest.raises(SourceRejected, match="all in Spark, or none"):
        session.protect(source, {"home": home, "visits": [{"who": 1, "care_site": "A"}]}, budget=1)
    assert len(read(source, {"home": home, "visits": visits})) == 1
