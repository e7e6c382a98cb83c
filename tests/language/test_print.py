"""Parse, print, parse is the identity, whichever notation a plan was written in first."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from tests.support.plans import OPERATORS, random_case
from tests.support.sinks import CASES
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import LanguageError
from wpinq.expr.catalogue import FUNCTIONS
from wpinq.expr.types import INT, STR, ListOf
from wpinq.language import parse, unparse
from wpinq.language.chains import SINKS
from wpinq.measure.measurement import Measurement
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.operator import REGISTRY

edges = wp.source("edges", src=int, dst=int)
people = wp.source("people", name=str, age=int | None, score=float, tags=ListOf(STR, bound=5), home=tuple[int, str])
numbers = wp.source("numbers", int)


def check(named: Mapping[str, Query | Measurement]) -> str:
    """The text of plans, after checking that it parses to them and prints to itself."""
    text = unparse(named)
    program = parse(text)
    for name, value in named.items():
        assert program[name] == value
        if isinstance(value, Query):
            assert isinstance(back := program[name], Query)
            assert back.reading == value.reading
    assert str(program) == text
    return text


@pytest.mark.parametrize("seed", tenth(range(len(OPERATORS) * 25)))
def test_random_plans(seed: int) -> None:
    rng = random.Random(seed)
    named: dict[str, Query | Measurement] = {}
    for letter in "uvw"[: rng.randint(1, 3)]:
        query = Query(random_case(rng, OPERATORS[seed % len(OPERATORS)]).plan)
        try:
            unparse({**named, letter: query})
        except wp.PlanError:  # two plans may declare one source in two ways
            continue
        named[letter] = query
        named[f"{letter}_count"] = query.noisy_count(Fraction(rng.randint(1, 50), rng.randint(1, 50)))
    check(named)


OPERATOR_TEXTS = {
    "Select": "edges.Select(e => e.src)",
    "Where": "edges.Where(e => e.src < e.dst)",
    "SelectMany": "edges.SelectMany(e => [e.src, e.dst])",
    "GroupBy": "edges.GroupBy(e => e.src, g => count(g))",
    "Shave": "edges.Shave(0.5)",
    "Join": "edges.Join(edges, x => x.dst, y => y.src, (x, y) => (x.src, y.dst))",
    "Union": "edges.Union(edges.Select(e => reverse(e)))",
    "Intersect": "edges.Intersect(edges.Select(e => reverse(e)))",
    "Concat": "edges.Concat(edges.Select(e => reverse(e)))",
    "Except": "edges.Except(edges.Select(e => reverse(e)))",
    "Partition": "edges.Partition(e => e.src % 3, part: 1)",
}


@for_each("name", REGISTRY)
def test_every_operator_can_be_written_and_is_printed_as_written(name: str) -> None:
    text = f"source edges(src: int, dst: int);\nvar q = {OPERATOR_TEXTS[name]};\n"
    program = parse(text)
    assert program.queries["q"].plan.operator.name == name
    assert str(program) == text


FUNCTION_TEXTS = {
    "where": "p.age > 3 ? 1 : 2",
    "is_null": "is_null(p.age)",
    "to_int": "to_int(p.score)",
    "to_float": "to_float(p.age)",
    "to_str": "to_str(p.age)",
    "concatenate": 'p.name + "!"',
    "find": 'find(p.name, "a")',
    "lower": "lower(p.name)",
    "substring": "substring(p.name, 0, 2)",
    "split": 'split(p.name, " ")',
    "contains": 'contains(p.name, "a")',
    "starts_with": 'starts_with(p.name, "a")',
    "length": "length(p.name)",
    "count": "count(p.tags)",
    "element": "element(p.tags, 0)",
    "range": "range(0, p.age, 10)",
    "map": 'map(p.tags, t => t + "!")',
    "flatten": 'flatten(map(p.tags, t => split(t, ",")))',
    "collect": "collect(p.tags, t => lower(t))",
    "sum": "sum(p.tags, t => length(t))",
    "min": "min(p.tags, t => lower(t))",
    "max": "max(p.age, 10)",
    "absolute": "absolute(p.score)",
    "floor": "floor(p.score)",
    "bucket": "bucket(p.score, 2)",
    "sort": "sort(p.tags)",
    "rotate": "rotate(p.home)",
    "reverse": "reverse(p.home)",
    "subsets": "subsets(p.tags, 2)",
    "first": "first(p.tags, 3)",
    "filter": 'filter(p.tags, t => t == "a")',
    "any": 'any(p.tags, t => t == "a")',
    "all": 'all(p.tags, t => t == "a")',
    "pairwise": "pairwise(p.tags)",
    "sort_by": "sort_by(p.tags, t => length(t))",
    "list": "[p.name, p.home[1]]",
    "date": 'p.day < date("2024-02-29")',
    "timestamp": 'p.at != timestamp("2024-02-29T12:30:00.000005")',
    "time": 'to_time(p.at) >= time("12:30:00")',
    "duration": 'p.at + duration("-P1DT3600.500000S")',
    "decimal": 'p.price * decimal("-1.50")',
    "to_date": "to_date(p.name)",
    "to_timestamp": "to_timestamp(p.day)",
    "to_time": "to_time(p.at)",
    "to_duration": "to_duration(p.age)",
    "to_decimal": "to_decimal(p.score, 2)",
    "to_category": 'to_category(p.name, ["a", "b"])',
    "year": "year(p.day)",
    "quarter": "quarter(p.day)",
    "month": "month(p.at)",
    "week": "week(p.day)",
    "day": "day(p.day)",
    "weekday": "weekday(p.at)",
    "day_of_year": "day_of_year(p.day)",
    "hour": "hour(p.at)",
    "minute": "minute(p.at)",
    "second": "second(p.at)",
    "microsecond": "microsecond(p.at)",
    "truncate": 'truncate(p.at, "hour")',
    "offset": 'offset(p.day, -p.age, "month")',
    "quotient": "quotient(p.price, 3, 2)",
}


@for_each("name", [name for name in FUNCTIONS if name != "weighted"])
def test_every_function_can_be_written_and_is_printed_as_written(name: str) -> None:
    head = (
        "source people(name: str, age: int?, score: float, tags: list[str, 5], home: (int, str), "
        'day: date, at: timestamp?, price: decimal(2), colour: category("red", "green"));\n'
    )
    text = f"{head}var q = people.Select(p => {FUNCTION_TEXTS[name]});\n"
    assert str(parse(text)) == text


def test_weighted_elements() -> None:
    text = "source numbers: int;\nvar q = numbers.SelectMany(x => [weighted(x, -0.5), weighted(x + 1, 0.25)]);\n"
    assert str(parse(text)) == text


def test_every_release_can_be_written_and_is_printed_as_written() -> None:
    written = {text: case for case in CASES.values() for text in case.texts}
    assert {text.partition("(")[0] for text in written} == SINKS.keys()
    for release, case in written.items():
        records = "(int, int)" if "edges" in case.kinds else "int"
        text = f"source numbers: {records} with facts = [unit_weights];\nvar m = numbers.{release};\n"
        assert str(parse(text)) == text


def test_domains_of_listings_are_printed_as_they_are_described() -> None:
    text = """source sales(zip: str, shop: int, size: str);
var m = sales.NoisyCountAbove(1, over: product(digits(5), range(0, 100000), ["L", "S"]), above: 30.0);
"""
    made = parse(text)["m"]
    sales = wp.source("sales", zip=str, shop=int, size=str)
    assert made == sales.noisy_count_above(1, wp.product(wp.digits(5), range(100_000), ["S", "L"]), above=30)
    assert str(parse(text)) == text
    for wrong, message in (
        ("digits(13)", "from 1 to 12"),
        ("digits(a: 5)", "no named arguments"),
        ("digits(0.5)", "expected an integer"),
        ("range(5, 5)", "from 1 to"),
        ("product(digits(12), digits(12), digits(12))", "1,000,000,000,000 keys"),
        ("product(digits(5))", "records of 1 field"),
        ("digits(5)", "the keys are of type"),
        ("[1]", "cannot be released"),
    ):
        with pytest.raises(wp.WpinqError, match=message):
            parse(text.replace('product(digits(5), range(0, 100000), ["L", "S"])', wrong))


def test_releases_by_methods_and_by_text_are_equal() -> None:
    named = {
        "a": numbers.noisy_count(0.1),
        "b": numbers.select(lambda x: x % 3).noisy_count(0.1),
        "c": edges.noisy_count("1/3", over=[(a, b) for a in range(3) for b in (5, 7)]),
        "d": people.noisy_sum(1, lambda p: p.age, 0, 120),
        "e": people.noisy_average(1, lambda p: p.score, 0, 1),
        "f": people.noisy_sum(1, lambda p: F.max(F.min(p.score, 3.0), -4.0), -1, 1),
        "g": people.select(lambda p: p.name).most_common(1, ["a", 'b"\\\n', "\u202e", "\U0001f600"]),
        "h": numbers.median(1, [3, -(2**63), 2**63 - 1]),
        "i": numbers.quantile(epsilon=1, q=0.25, candidates=range(4)),
        "j": numbers.noisy_count(1, over=[]),
        "k": people.select(lambda p: p.score).noisy_count(1, over=[0.1, 1e300, -5e-324, 3]),
        "l": people.select(lambda p: p.age).noisy_count(1, over=[None, 3]),
        "m": people.select(lambda p: p.home).noisy_count(1, over=[(1, "a"), (2, "b")]),
        "n": people.select(lambda p: p.tags).noisy_count(1, over=[("a",), (), ("a", "b")]),
        "o": numbers.noisy_sum(1, lambda x: 1, 0, 1),
    }
    text = check(named)
    assert "product(range(0, 3), [5, 7])" in text
    assert "x =>" not in text.split("var d")[1].split(";")[0], "the function of a sum is printed, not its clamp"
    assert "NoisySum(1, record => record.age, lower: 0.0, upper: 120.0)" in text


def test_shared_parts_are_named_and_the_rest_is_chained() -> None:
    shared = edges.select(lambda e: e.src).shave(1.0)
    text = check({"q": shared.select(lambda p: p.index).concat(shared.select(lambda p: p.record))})
    assert text == (
        "source edges(src: int, dst: int);\n"
        "var q1 = edges.Select(e => e.src).Shave(1.0);\n"
        "var q = q1.Select(p => p.index).Concat(q1.Select(p => p.record));\n"
    )


def test_generated_names_avoid_names_in_use() -> None:
    shared = edges.select(lambda e: e.src)
    text = check({"q1": shared.concat(shared), "q2": numbers})
    assert "var q3 = edges.Select" in text


def test_a_source_whose_name_a_variable_takes_is_kept() -> None:
    symmetric = edges.select(lambda e: F.record(src=e.dst, dst=e.src)).concat(edges)
    text = check({"edges": symmetric, "other": edges.where(lambda e: e.src > 1), "m": symmetric.noisy_count(1)})
    assert "var q1 = edges;" in text
    assert "var other = q1.Where" in text
    check({"edges": edges.noisy_count(1), "other": edges.shave(0.5)})


def test_chains_nested_in_chains_are_named() -> None:
    query = numbers
    for i in range(60):
        query = numbers.where(lambda x, i=i: x > i).concat(query)
    check({"q": query})
    for i in range(300):
        query = query.where(lambda x, i=i: x != i)
    check({"q": query})


def test_one_plan_under_two_names_and_notes_on_how_to_read_it() -> None:
    nodes = edges.select(lambda e: e.src).shave(0.5)
    noted = nodes.read_as('half a "node"')
    text = check({"a": nodes, "b": noted, "m": noted.noisy_count(1), "n": nodes.noisy_count(1), "s": edges})
    assert 'var b = a.ReadAs("half a \\"node\\"");' in text
    only = check({"m": noted.select(lambda p: p.index).read_as("z").noisy_count(1)})
    assert '.ReadAs("z").NoisyCount(1)' in only
    check({"b": noted, "m": nodes.noisy_count(1)})


def test_sources_with_every_option_and_type() -> None:
    odd = wp.source(
        "odd",
        {
            "a": {"new": int | None, "true": list[list[str]]},
            "b": tuple[int],
            "c": (int | None),
            "d": tuple[str, tuple[bool, float]],
        },
        unit='one "unit"',
        unit_weight=Fraction(1, 3),
        cap=5,
        weights=True,
        facts=["nonnegative"],
    )
    text = check({"q": odd.select(lambda r: r.a.new)})
    assert 'with unit = "one \\"unit\\"", unit_weight = 1/3, cap = 5, weights = true, facts = [nonnegative];' in text
    for facts in ([], ["unit_weights"], ["whole_weights"], ["unit_weights", "whole_weights"]):
        check({"q": wp.source("s", int, facts=facts)})
        check({"q": wp.source("s", int, facts=facts, weights=True)})
        check({"q": wp.source("s", facts=facts, person="id", at_most=3, page=str)})
    for schema in (int, list[int], tuple[int], tuple[int, str], ListOf(INT, bound=3), int | None, {"a": int}):
        check({"q": wp.source("s", schema)})


def test_declared_sources_are_printed_even_where_unused() -> None:
    assert str(parse("source b: int; source a: str; parameter p = 1;")) == "source b: int;\nsource a: str;\n"


def test_lambda_parameters_with_awkward_names() -> None:
    check({"q": edges.select(lambda new, true: (new, true))})
    check({"q": edges.group_by(lambda e: e.src, lambda e: F.sum(e, lambda e: e.dst))})
    text = "source edges(src: int, dst: int);\nvar q = edges.Select(lambda => lambda.src).Where(class => class > 1);"
    assert parse(text)["q"] == edges.select(lambda e: e.src).where(lambda x: x > 1)


def test_what_cannot_be_written_is_refused() -> None:
    query = numbers.select(lambda x: x)
    for name in ("new", "ä", "1a", "a b", ""):
        with pytest.raises(LanguageError, match="cannot name a variable"):
            unparse({name: query})

    def doubled(x: object) -> object:
        for _ in range(60):
            x = x + x
        return x

    with pytest.raises(LanguageError, match="longer"):
        unparse({"q": numbers.select(doubled)})
    with pytest.raises(LanguageError, match="at most 200,000 characters outside of lists of numbers"):
        unparse({"q": wp.source("s", str).noisy_count(1, over=[f"key {i}" for i in range(40_000)])})


def test_long_lists_of_numbers_are_printed_and_read_back() -> None:
    keys = numbers.noisy_count(1, over=range(0, 80_000, 2))
    assert parse(unparse({"q": keys}))["q"] == keys
    table = [i / 7 - 3000 for i in range(100_000)]
    query = numbers.select(lambda x: (F.element(table, x), F.element([1, -2, 3], x), F.count([2.5, 1e300, -1e-9])))
    text = unparse({"q": query})
    assert len(text) > 1_000_000
    assert "[1, -2, 3]" in text
    assert parse(text)["q"] == query


def test_epochs_of_series_are_printed_by_one_declaration_and_read_back() -> None:
    views = wp.series(
        "views", every="day", start="2026-01-01", on="when", page=str, when=datetime.datetime,
        person="user", at_most=10, distinct="page", strict=True, budget_each="0.5", budget_all=30,
    )  # fmt: skip
    terms = wp.series("terms", every=["spring", "a-2"], on="term", term=str, n=int)
    window = views.between("2026-11-27", "2026-11-29").select(lambda v: v.page)
    named: dict[str, Query | Measurement] = {
        "window": window,
        "both": terms.epoch("a-2").concat(terms.epoch("spring")),
        "counts": views.epoch("2026-11-27").count(1),
        "views": views.epoch("2026-11-29"),  # which hides the series
        "hidden": views.epoch("2026-11-28").count(1),
        "again": window.noisy_count(1, over=["p"]),
    }
    text = unparse(named)
    assert text.count("source views(") == text.count("source terms(") == 1
    assert 'views.Epoch("2026-11-27")' in text
    program = parse(text)
    assert {name: program[name] for name in named} == named
    assert str(parse(str(program))) == str(program)
    for value in named.values():
        assert plan_from_json(plan_to_json(value.plan)) == value.plan
    wider = 'source v(d: date) with every = day, start = "2026-01-01", on = d; var w = v.Between("2026-01-01", "{}");'
    assert parse(wider.format("2026-02-01"))["w"].uses().keys() == {f"v:{day}" for day in days(32)}
    for other in ("2099-01-01", "2025-12-31", "2026-2-1"):  # a window has a bound, and the calendar a start
        with pytest.raises(LanguageError):
            parse(wider.format(other))
    with pytest.raises(LanguageError, match="Epoch"):
        parse(wider.replace('Between("2026-01-01", "{}")', "Where(r => true)"))


def days(count: int) -> list[str]:
    return [(datetime.date(2026, 1, 1) + datetime.timedelta(day)).isoformat() for day in range(count)]
