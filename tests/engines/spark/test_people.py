"""The person as the unit on Spark: the rows that are kept, and what is refused, are those of every engine."""

from __future__ import annotations

import math
import struct
import sys
from datetime import date
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.declared import declared
from tests.support.people import kept_rows, weigh
from wpinq import functions as F
from wpinq.columns.records import read_rows
from wpinq.data import read_source
from wpinq.data.people import canonical_hex
from wpinq.data.spark import SPARK
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import Person
from wpinq.expr.types import BOOL, DATE, FLOAT, INT, STR, ListOf, TupleOf, record_type
from wpinq.expr.values import canonical_bytes, normalize

pytestmark = pytest.mark.long

ROW = record_type({"n": INT.with_nullable(), "x": FLOAT.with_nullable(), "b": BOOL.with_nullable(), "s": STR})
SCHEMA = "n bigint, x double, b boolean, s string"
NUMBERS = [0, 1, -1, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, -1.5, 5e-324, 1.7e308, 0.1, None]
TEXTS = ["", "a", "é", "\U0001f600", "aa", "z\x01", "Z"]


def table(rng: Random, ids: list[Any], size: int) -> list[tuple[Any, ...]]:
    """Rows of few people and few values, so that many are cut and rows stand there many times."""
    pool = [
        (rng.choice(NUMBERS), rng.choice(FLOATS), rng.choice([True, False, None]), rng.choice(TEXTS)) for _ in range(9)
    ]
    return [(rng.choice(ids), *rng.choice(pool)) for _ in range(size)]


def read(frame: Any, person: Person, type_: Any = ROW, **more: Any) -> Any:
    from wpinq.columns.dataset import EngineDataset

    return read_source(EngineDataset(frame), declared(type_, person=person, **{"cap": 10**6, **more}))


def record_of(row: Any, nested: bool) -> Any:
    if not nested:
        return tuple(row)[:-1]
    return tuple(tuple(item) for item in row[0])


@pytest.mark.parametrize("nested", [False, True], ids=["rows", "lists"])
@pytest.mark.parametrize("kind", ["bigint", "string"])
def test_spark_keeps_the_rows_that_every_engine_keeps(spark: Any, kind: str, nested: bool) -> None:
    rng = Random(5)
    ids: list[Any] = [1, 2, -3] if kind == "bigint" else ["a", "b", "é"]
    for at_most, size in ((1, 30), (4, 60), (50, 40)):
        rows = table(rng, ids, size)
        data = [(who, n, None if x is None else x + 0.0, b, s) for who, n, x, b, s in rows]
        want = weigh(
            kept_rows([row[0] for row in data], [row[1:] for row in data], ROW, at_most), Person("who", at_most, nested)
        )
        frame = spark.createDataFrame(rows, f"who {kind}, {SCHEMA}").repartition(3)
        held = read(frame, Person("who", at_most, nested))
        got = {record_of(row, nested): row[-1] for row in held.frame.collect()}
        assert repr(sorted(got.items(), key=repr)) == repr(sorted(want.items(), key=repr))


def test_a_session_on_spark_releases_what_a_session_on_duckdb_releases(spark: Any) -> None:
    flat = wp.source("flat", page=str, person="who", at_most=2, account="people")
    lists = wp.source("lists", page=str, person="who", at_most=2, nested=True, account="people")
    rows = [(1, "a"), (1, "b"), (1, "a"), (2, "a"), (3, "b"), (3, "b")]
    asked = [
        flat.noisy_count(10**6, over=[("a",), ("b",)]),
        lists.select(lambda pages: F.count(pages)).noisy_count(10**6, over=[1, 2, 3]),
        lists.select(lambda pages: F.element(pages, 0).page).noisy_count(10**6, over=["a", "b"]),
    ]
    released = []
    for engine in ("spark", "duckdb"):
        with wp.Session(engine=engine) as session:
            for source in (flat, lists):
                data: Any = [{"who": who, "page": page} for who, page in rows]
                if engine == "spark":
                    data = spark.createDataFrame(rows, "who int, page string")
                session.protect(source, data, budget=10**8)
            released.append([[round(value, 2) for value in answers.values] for answers in session.release(asked)])
            assert session.spent("people") == 10**6 * (2 + 1 + 1)
    assert released[0] == released[1]


BASKET = record_type(
    {
        "when": TupleOf(("day", "hour"), (DATE, INT.with_nullable()), nullable=True),
        "items": ListOf(TupleOf(("what", "prices"), (STR, ListOf(FLOAT.with_nullable())), nullable=True)),
    }
)
BASKETS = "when struct<hour: int, day: date>, items array<struct<what: string, prices: array<double>>>"


@pytest.mark.parametrize("nested", [False, True], ids=["rows", "lists"])
def test_rows_with_lists_and_records_are_those_that_every_engine_keeps(spark: Any, nested: bool) -> None:
    rng = Random(8)
    days = [None, (date(2024, 2, 29), None), (date(2024, 2, 29), 0), (date(1, 1, 1), 23)]
    sold = [None, ("é", []), ("", [0.5, None]), ("", [None, 0.5]), ("", [-0.0]), ("b", [1e300, 5e-324])]
    pool = [(rng.choice(days), [rng.choice(sold) for _ in range(rng.randint(0, 3))]) for _ in range(8)]
    rows = [(rng.choice([1, 2, 3]), *rng.choice(pool)) for _ in range(60)]
    turned = [(who, when and when[::-1], items) for who, when, items in rows]
    frame = spark.createDataFrame(turned, f"who int, {BASKETS}").repartition(3)
    for at_most in (1, 7, 50):
        records = [normalize(row[1:], BASKET) for row in rows]
        want = weigh(kept_rows([row[0] for row in rows], records, BASKET, at_most), Person("who", at_most, nested))
        held = read(frame, Person("who", at_most, nested), BASKET)
        got = read_rows(ListOf(BASKET) if nested else BASKET, held.frame.collect())
        assert repr(sorted(got.items(), key=repr)) == repr(sorted(want.items(), key=repr))


def test_floats_in_spark_have_the_canonical_bytes_of_every_float(spark: Any) -> None:
    rng = Random(4)
    powers = [2.0**power for power in range(-1074, 1024)]
    numbers = [math.nextafter(power, end) for power in powers for end in (0.0, math.inf)] + powers
    drawn = (struct.unpack(">d", rng.randbytes(8))[0] for _ in range(2000))
    numbers += [0.0, sys.float_info.max, *filter(math.isfinite, drawn)]
    numbers = [number for number in {*numbers, *(-number for number in numbers)} if math.isfinite(number)]
    frame = spark.createDataFrame([(number + 0.0,) for number in numbers], "c0 double")
    rows = spark.sql(f"SELECT c0, {canonical_hex(FLOAT, SPARK)} AS h FROM {{frame}}", frame=frame).collect()
    assert len(rows) == len(numbers)
    assert [row.h for row in rows] == [canonical_bytes(row.c0, FLOAT).hex().upper() for row in rows]


EDGE = record_type({"src": INT, "dst": INT})


def test_two_people_with_the_same_rows_weigh_2_and_break_unit_weights_in_words_of_people(spark: Any) -> None:
    frame = spark.createDataFrame([(who, 1, 2) for who in (1, 2)], "who int, src int, dst int")
    person = Person("who", 2, nested=True)
    held = read(frame, person, EDGE)
    assert [(record_of(row, nested=True), row[-1]) for row in held.frame.collect()] == [(((1, 2),), 2.0)]
    with pytest.raises(SourceRejected, match="has two people with the same rows, where the source declares unit_w"):
        read(frame, person, EDGE, facts=["unit_weights"])
    apart = spark.createDataFrame([(1, 1, 2), (1, 1, 2), (2, 1, 2)], "who int, src int, dst int")
    assert read(apart, person, EDGE, facts=["unit_weights"])


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([(None, 1, 2)], {}, "null as the id of a person"),
        ([(1, 1, 2), (1, 1, None)], {}, "in field 'dst' null"),
        ([(1, 1, 2), (2, 2, 1)], {"facts": ["symmetric"]}, "for one person"),
        ([(1, 1, 2), (2, 1, 2)], {"facts": ["unit_weights"]}, "twice"),
        ([(1, 1, 2), (2, 2, 1)], {"facts": ["simple"]}, "both"),
        ([(1, 3, 3)], {"facts": ["simple"]}, "both"),
        ([(who, 1, 2) for who in range(5)], {"cap": Fraction(4)}, "above the cap"),
    ],
)
def test_what_is_refused(spark: Any, rows: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceRejected, match=said):
        read(spark.createDataFrame(rows, "who int, src int, dst int"), Person("who", 2), EDGE, **options)


def test_facts_that_hold_and_frames_that_do_not_say_whose_rows_they_are(spark: Any) -> None:
    rows = [(1, 1, 2), (1, 2, 1), (2, 5, 5)]
    frame = spark.createDataFrame(rows, "who int, src int, dst int")
    assert read(frame, Person("who", 2), EDGE, facts=["symmetric", "unit_weights"])
    simple = spark.createDataFrame([(1, 1, 2), (2, 3, 1)], "who int, src int, dst int")
    assert read(simple, Person("who", 2), EDGE, facts=["simple"])
    with pytest.raises(SourceRejected, match="one column 'customer'"):
        read(frame, Person("customer", 2), EDGE)
    for kind in ("double", "boolean", "date"):
        other = frame.withColumn(
            "who", frame["who"].cast("string").cast(kind) if kind != "boolean" else frame["who"] > 1
        )
        with pytest.raises(SourceRejected, match="neither int nor str"):
            read(other, Person("who", 2), EDGE)
