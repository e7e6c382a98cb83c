"""What a table is made of weighs what the plain operators say, on every engine, for every kind of group."""

from __future__ import annotations

import datetime
import statistics
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.api.query import Query
from wpinq.sinks.clamped import ENDS, average_elements
from wpinq.tables.tabulation import Tabulation

ENGINES = ["reference", "duckdb"]
GREAT = 10**9
"""An epsilon at which noise is next to nothing: simulated answers are the truth, for public data."""

GROUPS: dict[str, Callable[[Query], Any]] = {
    "text": lambda people: people.by("city", keys=["Oslo", "Rome"]),
    "null": lambda people: people.by("city", keys=[None, "Oslo"]),
    "category": lambda people: people.by("sex"),
    "dates": lambda people: people.by("joined", keys=[datetime.date(2024, 1, 2), datetime.date(2030, 1, 1)]),
    "bool": lambda people: people.by(old=wp.col("age") > 50),
    "several": lambda people: people.by("city", "sex", keys={"city": ["Oslo", None]}),
    "expression": lambda people: people.by(decade=lambda p: p.age // 10, keys=range(2, 8)),
    "others": lambda people: people.by("city", keys=["Oslo", None], other="elsewhere"),
    "others of several": lambda people: people.by(
        "city", "joined", keys=[("Oslo", datetime.date(2024, 1, 2))], other=("", datetime.date(1, 1, 1))
    ),
    "none": lambda people: people.by(),
}

KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": lambda p: p["city"],
    "null": lambda p: p["city"],
    "category": lambda p: p["sex"],
    "dates": lambda p: p["joined"],
    "bool": lambda p: None if p["age"] is None else p["age"] > 50,
    "several": lambda p: (p["city"], p["sex"]),
    "expression": lambda p: None if p["age"] is None else p["age"] // 10,
    "others": lambda p: p["city"] if p["city"] in ("Oslo", None) else "elsewhere",
    "others of several": lambda p: (
        (p["city"], p["joined"])
        if (p["city"], p["joined"]) == ("Oslo", datetime.date(2024, 1, 2))
        else ("", datetime.date(1, 1, 1))
    ),
    "none": lambda p: (),
}

AGGREGATES = {
    "n": wp.count(),
    "total": wp.sum("age", 0, 60),
    "mean": wp.mean("salary", 50, 250),
    "ages": wp.count_distinct("age"),
    "typical": wp.median("age", range(100)),
    "upper": wp.quantile("age", 0.9, range(100)),
    "day": wp.most_common("joined", [datetime.date(2024, 1, day) for day in range(1, 6)]),
}


def records(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(("city", "sex", "age", "salary", "joined"), row, strict=True)) for row in rows]


def test_the_groups_that_are_tried_are_told_twice() -> None:
    assert GROUPS.keys() == KEYS.keys()


@for_each("kind", GROUPS, every=2)
@for_each("engine", ENGINES)
def test_a_table_says_what_the_rows_say(people: Query, rows: list[tuple[Any, ...]], kind: str, engine: str) -> None:
    asked = GROUPS[kind](people).agg(epsilon=GREAT, **AGGREGATES)
    table = wp.simulate(asked, {"people": rows}, seed=1, engine=engine)
    assert len(table) == len(asked.keys)
    for key in table.keys:
        held = [p for p in records(rows) if KEYS[kind](p) == key]
        row = table.row(key)
        ages = [p["age"] for p in held if p["age"] is not None]
        assert row["n"].estimate == pytest.approx(len(held), abs=1e-3)
        assert row["total"].estimate == pytest.approx(sum(min(60, age) for age in ages), abs=1e-3)
        assert row["ages"].estimate == pytest.approx(len(set(ages)), abs=1e-3)
        if not held:
            continue
        mean = statistics.fmean(min(250.0, max(50.0, float(p["salary"]))) for p in held)
        assert row["mean"].estimate == pytest.approx(mean, abs=1e-3)
        assert row["mean"].low <= row["mean"].estimate <= row["mean"].high
        # a quantile is any candidate with at most its share before it and at most the rest behind
        for name, share in (("typical", Fraction(1, 2)), ("upper", Fraction(9, 10))):
            chosen = row[name].estimate
            assert sum(age < chosen for age in ages) <= share * len(ages)
            assert sum(age > chosen for age in ages) <= (1 - share) * len(ages)
        counts = Counter(p["joined"] for p in held)
        assert counts[row["day"].estimate] == max(counts.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_plans_weigh_the_same_in_every_engine(people: Query, rows: list[tuple[Any, ...]], engine: str) -> None:
    asked = people.by("city", keys=["Oslo", None], other="elsewhere").agg(epsilon=1, **AGGREGATES)
    for measurement in asked.measurements:
        query = Query(measurement.plan)
        exact = wp.evaluate(query, {"people": rows}, exact=True)
        found = wp.evaluate(query, {"people": rows}, engine)
        assert found.distance(exact) < 1e-9


def test_a_mean_is_the_average_of_each_part(people: Query, rows: list[tuple[Any, ...]]) -> None:
    """The one measurement over all groups holds, for each, the very weights that its part would have."""
    asked = people.by("city", keys=["Oslo", None]).agg(mean=wp.mean("salary", 50, 250), epsilon=1)
    (measurement,) = asked.measurements
    together = wp.evaluate(Query(measurement.plan), {"people": rows}, exact=True)
    for key, part in people.partition("city", ["Oslo", None]).items():
        alone = part.select_many(average_elements("salary", 50.0, 250.0))
        apart = wp.evaluate(alone, {"people": rows}, exact=True)
        assert {name: together[(key, name)] for name in ENDS} == {name: apart[name] for name in apart}


def test_without_groups_it_is_what_the_query_itself_releases(people: Query) -> None:
    """So answers that were paid for are answered from the ledger, in whichever way they are asked for."""
    aggregates = {"n": wp.count(), "total": wp.sum("age", 0, 60), "mean": wp.mean("salary", 0, 9)}
    asked = [people.agg(**{name: aggregate}, epsilon=1).measurements[0] for name, aggregate in aggregates.items()]
    plain = [people.count(1), people.noisy_sum(1, "age", 0, 60), people.noisy_average(1, "salary", 0, 9)]
    assert [one.digest for one in asked] == [one.digest for one in plain]
    by_city = people.by("city", keys=["Oslo"]).agg(n=wp.count(), epsilon=1)
    assert by_city.measurements[0].digest == people.select("city").noisy_count(1).digest


def test_lambdas_columns_and_names_are_one(people: Query) -> None:
    ways: list[Tabulation] = [
        people.by("city", keys=["Oslo"]).agg(m=wp.mean("age", 0, 9), epsilon=1),
        people.by(wp.col("city"), keys=["Oslo"]).agg(m=wp.mean(wp.col("age"), 0, 9), epsilon=1),
        people.by(city=lambda p: p.city, keys=["Oslo"]).agg(m=wp.mean(lambda p: p.age, 0, 9), epsilon=1),
    ]
    assert ways[0] == ways[1] == ways[2]
    assert len({way.measurements[0].digest for way in ways}) == 1
    assert people.by("city", keys=["Oslo"]).agg(m=wp.mean("age", 0, 10), epsilon=1) != ways[0]


def test_keys_of_several_columns_are_tuples_or_products(people: Query) -> None:
    listed = people.by("city", "sex", keys=[("Oslo", "f"), ("Oslo", "m")]).agg(n=wp.count(), epsilon=1)
    assert listed == people.by("city", "sex", keys={"city": ["Oslo"], "sex": ["f", "m"]}).agg(n=wp.count(), epsilon=1)
    assert listed == people.by("city", "sex", keys={"city": ["Oslo"]}).agg(n=wp.count(), epsilon=1)


def test_decimals_are_keys(people: Query, rows: list[tuple[Any, ...]]) -> None:
    asked = people.by("salary", keys=[Decimal("1.50")]).agg(n=wp.count(), epsilon=GREAT)
    rows = [*rows, ("Oslo", "f", 3, Decimal("1.50"), rows[0][4])]
    table = wp.simulate(asked, {"people": rows}, seed=1)
    assert table[Decimal("1.50")]["n"].estimate == pytest.approx(sum(row[3] == 1.5 for row in rows), abs=1e-3)
