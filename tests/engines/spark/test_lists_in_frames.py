"""Spark frames with arrays and structs: the datasets that rows of Python are, and what is refused of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.declared import declared
from wpinq import functions as F
from wpinq.columns.dataset import EngineDataset
from wpinq.data import read_source
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.errors import SourceRejected
from wpinq.expr.types import FLOAT, INT, STR, ListOf, TupleOf, record_type

pytestmark = pytest.mark.long

ITEM, PART = record_type({"what": STR, "price": INT}), record_type({"a": INT})
VISIT = {"day": date, "price": wp.decimal(2) | None, "tags": list[str] | None}
MORE = TupleOf(("y", "z"), (FLOAT, ListOf(INT)), nullable=True)
AT = TupleOf(("x", "more"), (INT, MORE), nullable=True)
SOURCES: dict[str, tuple[wp.Query, str, list[tuple[Any, ...]]]] = {
    "scalars": (
        wp.source("s", xs=list[float | None], n=int),
        "n tinyint, xs array<float>",
        [(1, [0.5, None]), (1, [0.5, None]), (1, [None, 0.5]), (2, [-0.0]), (2, [0.0]), (3, [])],
    ),
    "one column": (wp.source("s", list[int] | None), "anything array<smallint>", [([1, 2],), (None,), ([2, 1],)]),
    "lists of lists": (
        wp.source("s", xs=list[list[bool] | None]),
        "xs array<array<int>>",
        [([[0, 1], None, []],), ([],), ([[1, 0]],)],
    ),
    "lists of records": (
        wp.source("s", who=str, visits=list[VISIT]),
        "visits array<struct<tags: array<string>, price: decimal(10,3), day: date>>, who string",
        [
            ([(["a", "é"], Decimal("1.50"), date(2024, 2, 29))], "x"),
            ([(None, None, date(1, 1, 1)), ([], Decimal(0), date(9999, 12, 31))], "x"),
            ([], "y"),
        ],
    ),
    "records": (
        wp.source("s", at=AT, n=int),
        "at struct<more: struct<y: double, z: array<int>>, x: int, unused: string>, n int",
        [(((0.5, [1]), 1, "a"), 1), ((None, 2, "b"), 2), (None, 3), ((None, 2, "c"), 2)],
    ),
}


def plain(value: Any, type_: Any) -> Any:
    """What Python rows say as mappings, from what is given to Spark by place."""
    from pyspark.sql.types import ArrayType, StructType

    if value is None:
        return None
    if isinstance(type_, ArrayType):
        return [plain(item, type_.elementType) for item in value]
    if isinstance(type_, StructType):
        return {field.name: plain(item, field.dataType) for field, item in zip(type_, value, strict=True)}
    return value


def only(value: Any, type_: Any) -> Any:
    """A mapping without what is not declared, as records by place."""
    if value is None:
        return None
    if isinstance(type_, ListOf):
        return [only(item, type_.element) for item in value]
    if isinstance(type_, TupleOf):
        return tuple(only(value[name], part) for name, part in zip(type_.names, type_.elements, strict=True))
    return value


@pytest.mark.parametrize("name", SOURCES)
def test_a_frame_is_what_rows_of_python_are(name: str, spark: Any, database: SparkDatabase) -> None:
    source, schema, rows = SOURCES[name]
    frame = spark.createDataFrame(rows, schema)
    bare = name == "one column"
    type_ = source.plan.type
    given = [plain(row, frame.schema) for row in rows]
    records = [row["anything"] for row in given] if bare else [only(row, type_) for row in given]
    options: dict[str, Any] = {"unit_weight": Fraction(1), "cap": Fraction(10**6), "facts": frozenset()}
    held = read_source(EngineDataset(frame), declared(type_, **options))
    expected = dict(read_source(records, declared(type_, **options)).items())
    same = source.select(lambda record: record).plan
    assert repr(database.evaluate(same, {"s": held})) == repr(database.evaluate(same, {"s": expected}))


def test_lists_of_a_frame_are_released(spark: Any) -> None:
    baskets = wp.source("baskets", items=list[ITEM])
    frame = spark.sql(
        "SELECT array(named_struct('price', 3, 'what', 'a'), named_struct('price', 4, 'what', 'b')) AS items "
        "UNION ALL SELECT array() AS items"
    )
    asked = [
        baskets.select(lambda b: F.count(b.items)).noisy_count(10**6, over=[0, 1, 2]),
        baskets.select_many(lambda b: F.map(b.items, lambda item: item.what), limit=3).noisy_count(
            10**6, over=["a", "b", "c"]
        ),
    ]
    with wp.Session(engine="spark") as session:
        session.protect(baskets, frame, budget=10**7)
        counts, names = session.release(asked)
        assert [round(value, 2) for value in counts.values] == [1.0, 0.0, 1.0]
        assert [round(value, 2) for value in names.values] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("declared", "query", "message"),
    [
        (list[int], "SELECT array(1, NULL) AS x", "has in field 'x' null where int is declared"),
        (list[int], "SELECT CAST(NULL AS ARRAY<INT>) AS x", "has in field 'x' null where list"),
        (list[float], "SELECT array(1D, CAST('NaN' AS DOUBLE)) AS x", "has in field 'x' nan or infinity"),
        (list[str], "SELECT array(CAST(X'ff4711' AS STRING)) AS x", "has in field 'x' a text that is not UTF-8"),
        (list[bool], "SELECT array(0, 2) AS x", "an integer that is neither 0 nor 1"),
        (list[wp.decimal(1)], "SELECT array(1.25) AS x", "a number of more than 1 decimals"),
        (list[list[date]], "SELECT array(array(DATE '10000-01-01')) AS x", "a date outside the years"),
        (list[wp.category("a")], "SELECT array('b') AS x", "none of the declared categories"),
        ({"a": int}, "SELECT CAST(NULL AS STRUCT<a: INT>) AS x", "has in field 'x' null where"),
        ({"a": float}, "SELECT named_struct('a', double('Infinity')) AS x", "has in field 'x' nan or infinity"),
        (list[PART], "SELECT array(named_struct('a', int(NULL))) AS x", "null where int is"),
        (list[int], "SELECT array('4711') AS x", "of another type than list[int]. A list is an array"),
        (list[PART], "SELECT array(named_struct('b', 1)) AS x", "a record a struct that has"),
        ({"a": int}, "SELECT 4711 AS x", "of another type than (a: int)"),
        (list[tuple[int, int]], "SELECT array(named_struct('a', 1, 'b', 2)) AS x", "by name (functions.struct)"),
    ],
)
def test_unfit_lists_are_refused_without_a_value(spark: Any, declared: Any, query: str, message: str) -> None:
    with wp.Session(engine="spark") as session, pytest.raises(SourceRejected) as refused:
        session.protect(wp.source("s", x=declared), spark.sql(query), budget=1)
    assert message in str(refused.value)
    assert "4711" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_a_bound_of_a_list_and_facts_of_records_are_kept(spark: Any) -> None:
    options: dict[str, Any] = {"unit_weight": Fraction(2), "cap": Fraction(10**6)}
    short = record_type({"x": ListOf(INT, bound=2)})
    with pytest.raises(SourceRejected, match="has in field 'x' a list of more than 2 elements"):
        read_source(EngineDataset(spark.sql("SELECT array(1, 2, 3) AS x")), declared(short, **options))
    point = TupleOf(("x", "y"), (INT, ListOf(INT)))
    edge = record_type({"a": point, "b": point})
    for rows, fact, words in (
        ([((1, [2]), (3, []))], "symmetric", "of different weight"),
        ([((1, [2]), (3, [])), ((3, []), (1, [2]))], "simple", "both"),
        ([((1, [2]), (1, [2])), ((3, []), (1, [2]))], "simple_digraph", "twice"),
        ([((1, [2]), (3, [])), ((1, [2]), (3, []))], "simple_digraph", "twice"),
    ):
        frame = spark.createDataFrame(rows, "a struct<x: int, y: array<int>>, b struct<x: int, y: array<int>>")
        with pytest.raises(SourceRejected, match=words):
            read_source(EngineDataset(frame), declared(edge, facts=[fact], **options))
        if fact == "simple_digraph":
            continue
        other = "simple" if fact == "symmetric" else "symmetric"
        assert isinstance(read_source(EngineDataset(frame), declared(edge, facts=[other], **options)), EngineDataset)


def test_sizes_are_of_whole_fields_wherever_their_columns_lie(spark: Any) -> None:
    frame = spark.sql(
        "SELECT named_struct('x', 1, 'y', array(7)) AS point, 'a' AS name UNION ALL "
        "SELECT named_struct('x', 2, 'y', array(7)), 'a' UNION ALL SELECT named_struct('x', 1, 'y', array()), 'b'"
    )
    source = {"point": {"x": int, "y": list[int]}, "name": str}
    kept = wp.source("s", **source, records_at_most=3, keys_at_most={"point": 1, "name": 2})
    with wp.Session(engine="spark") as session:
        session.protect(kept, frame, budget=1)
    for broken, words in (
        ({"records_at_most": 2}, "at most 2 records"),
        ({"keys_at_most": {"name": 1}}, "at most 1 record with one name"),
    ):
        with wp.Session(engine="spark") as session, pytest.raises(SourceRejected, match=words):
            session.protect(wp.source("s", **source, **broken), frame, budget=1)


def test_facts_of_pairs_with_null_are_those_of_every_engine(spark: Any) -> None:
    pair = record_type({"a": INT.with_nullable(), "b": INT.with_nullable()})
    outcomes = set()
    for rows in (
        [(None, 1)],
        [(None, 1), (1, None)],
        [(None, 1), (1, None), (1, None)],
        [(None, None)],
        [(1, 1), (None, 1)],
        [(1, 2), (2, 1), (3, 3), (None, None)],
        [(1, 2), (2, 3), (3, 1)],
    ):
        frame = spark.createDataFrame(rows, "a int, b bigint")
        for fact in ("simple", "symmetric"):
            said = [refusal(data, declared(pair, facts=[fact], unit_weight=2)) for data in (EngineDataset(frame), rows)]
            assert bool(said[0]) == bool(said[1])
            assert said[0].removeprefix("the Spark frame has ").partition(",")[0] in said[1]
            outcomes.add((fact, bool(said[0])))
    assert len(outcomes) == 4


def refusal(data: Any, source: Any) -> str:
    """The reason why data are refused; empty where they are not."""
    try:
        read_source(data, source)
    except SourceRejected as refused:
        return str(refused)
    return ""
