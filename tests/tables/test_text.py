"""Tables in text: what is printed reads back as the same table, and mistakes are explained where they stand."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.api.query import Query
from wpinq.tables.agg import AGGREGATES
from wpinq.tables.tabulation import Tabulation

DAYS = [datetime.date(2024, 1, day) for day in range(1, 6)]
TABLES: dict[str, Callable[[Query], Tabulation]] = {
    "one column": lambda p: p.by("city", keys=["Oslo", "Bergen"]).agg(n=wp.count(), epsilon=1),
    "public": lambda p: p.by("sex").agg(n=wp.count(), m=wp.mean("salary", -1.5, 2), epsilon="1/3"),
    "one by one": lambda p: p.by("city").agg(n=wp.count(), epsilon=1),
    "no column": lambda p: p.where(wp.col("age") > 3).agg(n=wp.count(), s=wp.sum(lambda p: p.age + 1, 0, 9), epsilon=1),
    "expressions": lambda p: p.by("sex", decade=wp.col("age") // 10, keys={"decade": range(9)}).agg(
        n=wp.count_distinct("city"), epsilon=1
    ),
    "renamed": lambda p: p.by(town="city", keys=["Oslo"]).agg(n=wp.count(), epsilon=1),
    "others": lambda p: p.by("city", "sex", keys=[("Oslo", "f"), (None, "m")], other=("", "f")).agg(
        n=wp.count(), epsilon=1
    ),
    "choices": lambda p: p.by("joined", keys=DAYS).agg(
        a=wp.median("age", range(9)), b=wp.quantile("joined", "1/3", DAYS), c=wp.most_common("sex", ["f"]), epsilon=1
    ),
    "several candidates": lambda p: p.by("city", keys=["Oslo"]).agg(
        a=wp.stats.quantiles("age", [0.25, "1/3"], range(9)), b=wp.stats.top_k("sex", 2, ["m", "f"]), epsilon=1
    ),
    "a policy": lambda p: p.by("city", keys=["Oslo"]).agg(
        n=wp.count(), a=wp.stats.quantiles("age", ["1/2"], range(9)), epsilon=1, k_rule=11
    ),
    "a split": lambda p: p.agg(n=wp.count(), d=wp.count_distinct("age"), epsilon="0.7", split={"n": 2, "d": "1/3"}),
    "moments": lambda p: p.by("sex").agg(
        v=wp.stats.var("salary", -1.5, 2),
        s=wp.stats.std(lambda r: r.age + 1, 0, 9),
        c=wp.stats.cov("salary", 0, 1, "age", 0, 9),
        r=wp.stats.corr("salary", 0, 1, lambda r: r.age * 2, 0, 9),
        o=wp.stats.ols("age", 0, 9, "salary", 0, 1),
        epsilon=1,
    ),
    "a reading": lambda p: p.read_as("half a person").by("sex").agg(n=wp.count(), epsilon=1),
}


@for_each("name", TABLES)
def test_a_table_reads_back_as_it_was_printed(people: Query, name: str) -> None:
    table = TABLES[name](people)
    text = wp.unparse({"table": table, "again": table, "query": people.select("city")})
    program = wp.parse(text)
    assert program["table"] == program["again"] == table
    assert [one.digest for one in program.tables["table"].measurements] == [one.digest for one in table.measurements]
    assert [one.domain for one in program.tables["table"].measurements] == [one.domain for one in table.measurements]
    assert program.tables["table"].reading == table.reading
    assert str(program) == text


def test_every_aggregate_is_written_by_some_table(people: Query) -> None:
    made = {type(one).__name__ for table in TABLES.values() for one in table(people).aggregates.values()}
    assert made == AGGREGATES.keys()


MISTAKES = {
    'people.By("cty").Agg(1, n: Count())': "did you mean 'city'?",
    'people.By("city")': r"By needs aggregates: \.Agg",
    'people.By("city").NoisyCount(1)': r"only \.Agg\(epsilon",
    "people.By(p => p.age).Agg(1, n: Count())": "give each function a name",
    "people.By(1).Agg(1, n: Count())": "needs the name of a column",
    "people.Agg(1, n: Cuont())": "did you mean `Count`?",
    "people.Agg(1, Count())": "give each aggregate a name",
    "people.Agg(n: Count())": "Agg needs epsilon",
    "people.Agg(1, n: Mean(p => p.age, 0))": "Mean needs upper",
    'people.Agg(1, n: Mean("city", 0, 1))': "needs a function to numbers, not to str",
    'people.Agg(1, n: Median("age", 3))': "expected the public keys",
    'people.Agg(1, n: Quantiles("age", 3, range(0, 3)))': "expected a list of numbers",
    'people.By("city").Agg(1, n: Count(), k_rule: 11)': "k_rule hides groups of given keys",
    "people.Agg(1, n: Count(), split: {m = 1})": "split names 'm'",
    "people.Agg(1, n: Count(), split: 3)": "split is the share of each",
    "people.Agg(1, n: Count()).Select(p => p)": "nothing can follow a release",
    'people.By("city", keys: [1]).Agg(1, n: Count())': "not of type str",
    "people.Concat(people.Agg(1, n: Count()))": "a query is needed",
}


@for_each("text", MISTAKES)
def test_mistakes_are_explained(text: str) -> None:
    with pytest.raises(wp.LanguageError, match=MISTAKES[text]):
        wp.parse(f"source people(city: str, age: int); var t = {text};")


def test_the_work_of_a_program_is_bounded() -> None:
    text = 'source p(a: int); var t = p.By("a", keys: range(0, 1000000)).Agg(1, m: Mean("a", 0, 1));'
    with pytest.raises(wp.LanguageError, match="1,000,000 keys"):
        wp.parse(text)


def test_a_name_that_text_has_no_place_for_is_refused(people: Query) -> None:
    table: Any = people.agg(epsilon=1, größe=wp.count())
    with pytest.raises(wp.LanguageError, match="cannot name a column"):
        wp.unparse({"table": table})


def test_tables_promise_more_facts_as_queries_do() -> None:
    program = wp.parse(
        'source e(src: int, dst: int) with weights = true; var t = e.By("src", keys: [1]).Agg(1, n: Count());'
    )
    assert program.tables["t"].kind("n").name == "weight, not a count"
    promised = program.promising({"e": ["whole_weights"]})
    assert promised.tables["t"].kind("n").name == "count"
    assert promised.tables["t"].measurements[0].kind.name == "count"
