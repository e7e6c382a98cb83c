"""Names of columns and `wp.col` mean what the lambdas mean; what is wrong with them is said in one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query

ORDERS = wp.source("orders", city=str | None, sex=str, price=float)

SAME: dict[str, tuple[Callable[[Query], Query], Callable[[Query], Query]]] = {
    "where": (lambda p: p.where(wp.col("age") > 30), lambda p: p.where(lambda r: r.age > 30)),
    "reflected": (lambda p: p.where(wp.col("age") + 1 > 30), lambda p: p.where(lambda r: r.age + 1 > 30)),
    "logic": (
        lambda p: p.where((wp.col("age") > 30) & ~(wp.col("sex") == "f") | F.is_null(wp.col("city"))),
        lambda p: p.where(lambda r: (r.age > 30) & ~(r.sex == "f") | F.is_null(r.city)),
    ),
    "functions": (
        lambda p: p.select(F.where(wp.col("age") > 30, F.lower(wp.col("city")), "young")),
        lambda p: p.select(lambda r: F.where(r.age > 30, F.lower(r.city), "young")),
    ),
    "one": (lambda p: p.select("city"), lambda p: p.select(lambda r: r.city)),
    "several": (lambda p: p.select("city", "age"), lambda p: p.select(lambda r: {"city": r.city, "age": r.age})),
    "named": (
        lambda p: p.select("city", d=wp.col("age") // 10, one=1),
        lambda p: p.select(lambda r: {"city": r.city, "d": r.age // 10, "one": 1}),
    ),
    "alias": (
        lambda p: p.select("city", abs(wp.col("age")).alias("a")),
        lambda p: p.select(lambda r: {"city": r.city, "a": abs(r.age)}),
    ),
    "record": (
        lambda p: p.select(F.record(a=wp.col("age"), b=2)),
        lambda p: p.select(lambda r: F.record(a=r.age, b=2)),
    ),
    "group": (lambda p: p.group_by("city"), lambda p: p.group_by(lambda r: r.city)),
    "group of several": (
        lambda p: p.group_by(["city", "sex"]),
        lambda p: p.group_by(lambda r: {"city": r.city, "sex": r.sex}),
    ),
    "keys": (
        lambda p: p.join(ORDERS, "city", "city"),
        lambda p: p.join(ORDERS, lambda r: r.city, lambda o: o.city),
    ),
}


@for_each("name", SAME)
def test_names_make_the_plans_that_lambdas_make(people: Query, name: str) -> None:
    by_name, by_lambda = SAME[name]
    assert by_name(people) == by_lambda(people)


def test_sinks_take_names(people: Query) -> None:
    assert people.noisy_sum(1, "age", 0, 9) == people.noisy_sum(1, lambda r: r.age, 0, 9)
    assert people.noisy_average(1, wp.col("age"), 0, 9) == people.noisy_average(1, lambda r: r.age, 0, 9)


def test_with_columns_adds_and_replaces_in_place(people: Query) -> None:
    made = people.select("city", "age").with_columns(age=wp.col("age") + 1, old=wp.col("age") > 50)
    assert made.plan.type.names == ("city", "age", "old")
    rows = {("a", 50): 1.0, ("b", 60): 1.0}
    small = wp.source("small", city=str, age=int).with_columns(age=wp.col("age") + 1, old=wp.col("age") > 50)
    assert wp.evaluate(small, {"small": rows}) == wp.WeightedDataset({("a", 51, False): 1.0, ("b", 61, True): 1.0})


def test_join_on_has_the_columns_of_both(people: Query) -> None:
    joined = people.select("city", "sex", "age").join(ORDERS, on="city")
    assert joined.plan.type.names == ("city", "sex", "age", "sex_right", "price")
    assert people.select("city", "age", sex=F.cast(wp.col("sex"), str)).join(
        ORDERS, on=["city", "sex"]
    ).plan.type.names == (
        "city",
        "age",
        "sex",
        "price",
    )


def test_count_is_one_number(people: Query) -> None:
    assert wp.simulate(people.count(10**9), {"people": {}}, seed=1).value == pytest.approx(0, abs=1e-6)
    assert people.count(1).domain == ("count",)


MISTAKES: dict[str, tuple[Callable[[Query], object], str]] = {
    "where": (lambda p: p.where(wp.col("salry") > 3), "did you mean 'salary'"),
    "select": (lambda p: p.select("cty"), "did you mean 'city'"),
    "nothing": (lambda p: p.select(), "needs a function or columns"),
    "sink": (lambda p: p.noisy_average(1, "sallary", 0, 1), "did you mean 'salary'"),
    "no function": (lambda p: p.noisy_sum(1, 3, 0, 1), "or the name of a column"),
    "truth": (lambda p: p.where(wp.col("age") and True), "no truth value"),
    "in": (lambda p: 3 in wp.col("age"), "cannot be searched"),
    "unnamed": (lambda p: p.select("city", lambda r: r.age), "give each function a name"),
    "twice": (lambda p: p.select("city", city=wp.col("age")), "two columns 'city'"),
    "with": (lambda p: p.with_columns(wp.col("age") + 1), "give each function a name"),
    "scalar": (lambda p: p.select("age").with_columns(a=1), "need columns with names"),
    "col": (lambda p: wp.col(3), "named by a string"),
    "join": (lambda p: p.join(ORDERS, "city"), "needs a key of each side"),
    "join both": (lambda p: p.join(ORDERS, "city", on="city"), "not both"),
    "join on": (lambda p: p.join(ORDERS, on="age"), "no field 'age'"),
    "join function": (lambda p: p.join(ORDERS, on=lambda r: r.city), "on is the name of a column"),
    "by": (lambda p: p.by("cty"), "did you mean 'city'"),
    "by keys": (lambda p: p.by("city", keys=3), "list of public groups"),
    "by text": (lambda p: p.by("city", keys="Oslo"), "list of public groups"),
    "by tuples": (lambda p: p.by("city", "sex", keys=["Oslo"]), "tuple of as many values"),
    "by mapping": (lambda p: p.by("city", keys={"cty": []}), "did you mean `city`"),
    "by private": (lambda p: p.by("city", "sex", keys={"sex": ["f"]}), "'city' are not public"),
    "by other": (lambda p: p.by("city", keys=["a"], other="a"), "one of the keys"),
    "by other alone": (lambda p: p.by("city", other="a"), "needs the keys that it is not"),
    "agg nothing": (lambda p: p.agg(epsilon=1), "nothing to ask for"),
    "agg text": (lambda p: p.agg(n="mean", epsilon=1), "no aggregate"),
    "agg unnamed": (lambda p: p.agg(wp.count(), epsilon=1), "give each aggregate the name"),
    "agg taken": (lambda p: p.by("sex").agg(sex=wp.count(), epsilon=1), "two columns 'sex'"),
    "agg suffix": (lambda p: p.agg(n=wp.count(), n_low=wp.count(), epsilon=1), "two columns 'n_low'"),
    "split": (lambda p: p.agg(n=wp.count(), epsilon=1, split={"m": 1}), "no aggregate"),
    "split short": (lambda p: p.agg(n=wp.count(), m=wp.count(), epsilon=1, split={"n": 1}), "no share to 'm'"),
    "split number": (lambda p: p.agg(n=wp.count(), epsilon=1, split=3), "share to each"),
    "mean": (lambda p: p.agg(n=wp.mean("age", 3, 3), epsilon=1), "lower < upper"),
    "sum": (lambda p: p.agg(n=wp.sum("age"), epsilon=1), "needs the public range"),
    "median": (lambda p: p.agg(n=wp.median("age", "abc"), epsilon=1), "list of public values"),
    "no candidates": (lambda p: p.agg(n=wp.median("age", []), epsilon=1), "at least one candidate"),
    "categories": (lambda p: p.agg(n=wp.median("sex", ["f"]), epsilon=1), "in no order"),
    "quantile": (lambda p: p.agg(n=wp.quantile("age", 2, [1]), epsilon=1), "between 0 and 1"),
}


@for_each("name", MISTAKES)
def test_mistakes_say_what_to_do(people: Query, name: str) -> None:
    act, said = MISTAKES[name]
    with pytest.raises(wp.WpinqError, match=said.replace("(", r"\(")):
        act(people)
