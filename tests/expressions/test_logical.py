"""Dates, timestamps, durations, decimals and categories: against Python's own, on every engine in the process."""

from __future__ import annotations

import datetime
import json
import pickle
import re
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.logical import CHECKS, SOURCE, compare, query, rows
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CompiledEvaluator
from wpinq.expr.types import DATE, DURATION, INT, STR, TIME, TIMESTAMP, Type, physical, signature
from wpinq.expr.values import (
    UnfitValue,
    canonical_bytes,
    check_canonical,
    normalize,
    parse,
    presenter,
    to_stored,
    to_text,
)
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, value_to_json
from wpinq.plan.lowering import physical_plan
from wpinq.plan.properties import plan_properties

GIVEN = rows(Random("logical types"), 400)
RECORDS = [tuple(row.values()) for row in GIVEN]


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_an_engine_agrees_with_python(engine: str) -> None:
    compare(wp.evaluate(query(CHECKS), {"given": RECORDS}, engine=engine), GIVEN, CHECKS)


COMPILED = ("week", "months", "hours", "earlier by", "rest", "quotient", "same", "of float", "as float", "as text")
"""Enough for the compiled engine, which takes long to compile: all that they share is in these."""


@pytest.mark.parametrize(
    ("make", "step"),
    [(Evaluator, 1), (CompiledEvaluator, 3), pytest.param(CompiledEvaluator, 1, marks=pytest.mark.long)],
)
def test_an_incremental_engine_agrees_with_python(make: Any, step: int) -> None:
    held = {normalize(record, SOURCE.plan.type): 1.0 for record in RECORDS}
    checks = [check for check in CHECKS if check[0] in COMPILED]
    assert len(checks) == len(COMPILED)
    checks = checks[::step]
    plan = query(checks).plan
    (output,) = make([plan], {"given": held}).outputs
    compare(map(presenter(plan.type), output), GIVEN, checks)


# --- types ------------------------------------------------------------------------------------------------------------

TYPES: list[Type] = [DATE, TIMESTAMP, TIME, DURATION, wp.decimal(0), wp.decimal(18), wp.category("a", 'q"é', "")]


def random_stored(rng: Random, type_: Type) -> Any:
    from wpinq.expr.types import CategoryOf
    from wpinq.expr.values import limits

    if isinstance(type_, CategoryOf):
        return rng.choice(type_.listed)
    least, most = limits(type_)
    return rng.choice([least, most, 0, rng.randint(least, most), rng.randint(max(least, -(10**9)), min(most, 10**9))])


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_way_out_leads_back(type_: Any) -> None:
    rng = Random(f"back {type_}")
    for _ in range(500):
        value = random_stored(rng, type_)
        assert to_stored(presenter(type_)(value), type_) == value
        assert parse(to_text(value, type_), type_) == value
        assert value_from_json(json.loads(json.dumps(value_to_json(value, type_))), type_) == value
        assert check_canonical(value, type_) == value
    for optional in (type_ | None, type_.with_nullable()):
        assert presenter(optional)(None) is None and value_from_json(value_to_json(None, optional), optional) is None


def test_types_are_told_apart() -> None:
    types = [*TYPES, wp.decimal(2), wp.category("b"), INT, STR]
    assert len({signature(type_) for type_ in types}) == len(types)
    assert len({canonical_bytes(1, type_) for type_ in (DATE, TIMESTAMP, TIME, DURATION, wp.decimal(1), INT)}) == 6
    assert canonical_bytes("a", wp.category("a")) != canonical_bytes("a", STR)
    assert wp.decimal(2) != wp.decimal(3) and wp.category("a", "b") != wp.category("b", "a")
    declared = wp.source("t", day=date | None, price=wp.decimal(2) | None, at=list[datetime.datetime])
    assert signature(declared.plan.type) == "(day:date?,price:decimal(2)?,at:[timestamp;])"


@pytest.mark.parametrize("given", [-1, 19, 2.0, True, "2"])
def test_a_scale_is_an_integer_from_0_to_18(given: Any) -> None:
    with pytest.raises(wp.ExpressionError, match="from 0 to 18"):
        wp.decimal(given)


@pytest.mark.parametrize("given", [(), ("a", "a"), (1,), ("\ud800",), tuple(map(str, range(10_001)))])
def test_a_category_lists_each_string_once(given: Any) -> None:
    with pytest.raises(wp.ExpressionError, match="lists its strings, each once"):
        wp.category(*given)


@for_each(
    ("text", "type_"),
    [
        ("2024-02-30", DATE),
        ("20240229", DATE),
        ("2024-W01-1", DATE),
        ("2024-02-29T24:00:00", TIMESTAMP),
        ("2024-02-29T12:00:00.1234567", TIMESTAMP),
        ("0001-01-01T00:00:00+00:01", TIMESTAMP),
        ("12:30:60", TIME),
        ("12:30:00+01:00", TIME),
        ("P", DURATION),
        ("PT", DURATION),
        ("P1M", DURATION),
        ("P999999999999D", DURATION),
        ("1e2", wp.decimal(2)),
        ("1.005", wp.decimal(2)),
        ("nan", wp.decimal(2)),
        ("92233720368547758.08", wp.decimal(2)),
        ("other", wp.category("a")),
    ],
)
def test_text_that_says_no_value_is_refused(text: str, type_: Any) -> None:
    with pytest.raises(UnfitValue) as caught:
        parse(text, type_)
    assert text not in str(caught.value).partition("(")[0]


def test_clocks_that_are_set_back_are_told_apart() -> None:
    from zoneinfo import ZoneInfo

    berlin = ZoneInfo("Europe/Berlin")
    twice = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
    first, second = to_stored(twice, TIMESTAMP), to_stored(twice.replace(fold=1), TIMESTAMP)
    assert second - first == 3600 * 10**6
    assert presenter(TIMESTAMP)(first) == datetime.datetime(2024, 10, 27, 0, 30)
    skipped = datetime.datetime(2024, 3, 31, 2, 30, tzinfo=berlin)
    assert presenter(TIMESTAMP)(to_stored(skipped, TIMESTAMP)) == datetime.datetime(2024, 3, 31, 1, 30)


# --- errors -----------------------------------------------------------------------------------------------------------

THINGS = wp.source(
    "things",
    day=date,
    at=datetime.datetime,
    clock=datetime.time,
    length=timedelta,
    price=wp.decimal(2),
    fine=wp.decimal(17),
    colour=wp.category("red", "green"),
    size=wp.category("s", "m"),
    n=int,
    f=float,
    text=str,
)


@for_each(
    ("function", "message"),
    [
        (lambda r: r.day + r.day, "there is no date + date"),
        (lambda r: r.day + 1, "datetime.timedelta(days=7)"),
        (lambda r: r.day - r.at, "cut to a date"),
        (lambda r: r.clock + r.length, "there is no time + duration"),
        (lambda r: r.length / r.length, "// counts how often"),
        (lambda r: r.length * 0.5, "there is no duration * float"),
        (lambda r: r.day * 2, "there is no date * int"),
        (lambda r: -r.day, "- takes numbers and durations, not date"),
        (lambda r: r.day < r.at, "cannot order date and timestamp"),
        (lambda r: r.day == "2024-01-01", "cannot compare date with str"),
        (lambda r: r.price + r.f, "cannot be combined with float"),
        (lambda r: r.price * 1.5, "F.cast(y, wp.decimal(2))"),
        (lambda r: r.price < 0.5, "cannot be combined with float"),
        (lambda r: F.where(r.f > 0, r.price, r.f), "cannot be combined with float"),
        (lambda r: r.price / 3, "F.quotient(a, b, 2)"),
        (lambda r: r.price * r.fine, "19 decimals, more than 18"),
        (lambda r: r.price + r.day, "there is no decimal(2) + date"),
        (lambda r: F.quotient(r.price, 3, 19), "from 0 to 18"),
        (lambda r: F.quotient(r.price, 3, r.n), "written in the query"),
        (lambda r: r.colour < r.colour, "categories are in no order"),
        (lambda r: F.min([r.colour]), "categories are in no order"),
        (lambda r: r.colour == r.size, "cannot compare category"),
        (lambda r: r.colour == r.text, "cannot compare category"),
        (lambda r: r.colour == "blue", "is none of the values of category"),
        (lambda r: r.colour + "!", "take its text, F.cast(x, str)"),
        (lambda r: F.lower(r.colour), "expected str"),
        (lambda r: F.year(r.n), "year takes a date or a timestamp, not int"),
        (lambda r: F.hour(r.day), "hour takes a timestamp or a time of day, not date"),
        (lambda r: F.truncate(r.day, "hour"), "one of year, quarter, month, week, day, not 'hour'"),
        (lambda r: F.truncate(r.clock, "day"), "one of hour, minute, second"),
        (lambda r: F.truncate(r.day, r.text), "the unit must be a string written in the query"),
        (lambda r: F.offset(r.clock, 1, "hour"), "a time of day has no next day"),
        (lambda r: F.offset(r.day, r.f, "day"), "an integer number of units"),
        (lambda r: F.cast(r.length, str), "its microseconds"),
        (lambda r: F.cast(r.day, float), "a date is no float"),
        (lambda r: F.cast(r.price, date), "decimal(2) cannot be cast to date"),
        (lambda r: F.cast(r.text == "", wp.decimal(2)), "bool cannot be cast to decimal(2)"),
        (lambda r: F.cast(r.n, wp.category("a")), "cast it to str first"),
        (lambda r: r.price == Decimal("NaN"), "a decimal constant is finite"),
        (lambda r: r.price == Decimal("1E-19"), "at most 18 decimals"),
        (lambda r: r.length == timedelta.max, "a duration outside 64 bits"),
        (lambda r: r.clock == datetime.time(1, tzinfo=datetime.UTC), "without a zone"),
        (lambda r: F.sum([r.day]), "sum takes a list of numbers"),
    ],
)
def test_what_is_ill_typed_is_refused_with_what_to_do(function: Any, message: str) -> None:
    with pytest.raises(wp.ExpressionError) as caught:
        THINGS.select(function)
    assert message in str(caught.value)


# --- plans and releases -----------------------------------------------------------------------------------------------


def test_engines_see_physical_types_and_other_plans_stay_as_they_are() -> None:
    plain = wp.source("numbers", int).select(lambda x: (x, F.sort((x, 1)), F.subsets([x, 2], 1)))
    assert physical_plan(plain.plan) is plain.plan
    plan = THINGS.group_by(lambda r: F.truncate(r.day, "month"), lambda g: F.sum(g, lambda r: r.price)).plan
    erased = physical_plan(plan)
    assert erased.type == physical(plan.type) and str(erased.type) == "(key: int, val: int)"
    assert physical_plan(erased) is erased and erased.digest != plan.digest
    assert plan_properties(erased).slack() == plan_properties(plan).slack()


def test_plans_and_measurements_go_through_files() -> None:
    query = THINGS.where(lambda r: (r.price > Decimal("1.5")) & (r.colour == "red") & (r.at < datetime.datetime.max))
    assert plan_from_json(json.loads(json.dumps(plan_to_json(query.plan)))) == query.plan
    counted = query.select(lambda r: (r.day, r.price)).noisy_count(epsilon=1, over=[(date.min, Decimal("0.1"))])
    assert pickle.loads(pickle.dumps(counted)) == counted
    assert counted.domain == ((-719162, 10),)


def test_a_category_is_a_public_domain() -> None:
    assert THINGS.select(lambda r: r.colour).noisy_count(epsilon=1).domain == ("red", "green")
    pairs = THINGS.select(lambda r: (r.colour, F.weekday(r.day))).noisy_count(epsilon=1)
    assert pairs.domain == tuple((colour, day) for colour in ("red", "green") for day in range(7))
    named = wp.source("votes", colour=wp.category("a", "b") | None)
    assert named.select(lambda r: F.cast(r.colour, str)).noisy_count(epsilon=1).domain == ("a", "b")
    cast = wp.source("words", str).select(lambda w: F.cast(w, wp.category("a", "b")))
    assert cast.noisy_count(epsilon=1).domain == ("a", "b")


def things(**changes: Any) -> tuple[Any, ...]:
    row = {
        "day": date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 12),
        "clock": datetime.time(12),
        "length": timedelta(hours=1),
        "price": Decimal("1.50"),
        "fine": Decimal(0),
        "colour": "red",
        "size": "s",
        "n": 1,
        "f": 1.0,
        "text": "x",
    }
    return tuple({**row, **changes}.values())


def test_releases_show_dates_and_decimals() -> None:
    keys = [(date(2024, 2, 29), Decimal("1.5")), (date(2024, 3, 1), Decimal(2))]
    counts = THINGS.select(lambda r: (r.day, r.price)).noisy_count(epsilon=1, over=keys)
    with wp.Session() as session:
        session.protect(THINGS, [things()] * 5000, budget=20)
        answers = session.release(counts)
        assert isinstance(answers, wp.Answers)
        assert answers.keys == ((date(2024, 2, 29), Decimal("1.50")), (date(2024, 3, 1), Decimal("2.00")))
        assert abs(answers[keys[0]] - 5000) < 100 and abs(answers[date(2024, 3, 1), Decimal("2.000")]) < 100
        assert list(answers) == list(answers.keys) and dict(answers.items()).keys() == set(answers.keys)
        assert answers.at(answers.keys).tolist() == answers.values.tolist()
        again = wp.Answers.from_json(json.loads(json.dumps(answers.to_json())))
        assert again.keys == answers.keys and again.to_json() == answers.to_json()
        assert answers.to_json()["keys"] == [["2024-02-29", "1.50"], ["2024-03-01", "2.00"]]
        assert answers.to_pandas()["field_0"].tolist() == [date(2024, 2, 29), date(2024, 3, 1)]
        assert "datetime.date(2024, 2, 29)" in repr(answers)
        assert answers.above(1000).keys == answers.keys[:1]
        days = THINGS.select(lambda r: r.day)
        middle = session.release(days.median(epsilon=1, candidates=[date.min, date(2024, 2, 29), date.max]))
        assert isinstance(middle, wp.Answers) and middle.value == date(2024, 2, 29)
        best = session.release(THINGS.select(lambda r: r.price).most_common(1, [Decimal("1.5"), Decimal("9.99")]))
        assert isinstance(best, wp.Answers) and best.value == Decimal("1.50")
        release = session.release(days.noisy_count(epsilon=1))
        assert isinstance(release, wp.Release) and abs(release[date(2024, 2, 29)] - 5000) < 100
        total = session.release(THINGS.noisy_sum(1, lambda r: r.price, Decimal("0.00"), Decimal("2.00")))
        assert isinstance(total, wp.Answers) and abs(total.value - 7500) < 100
        parts = THINGS.partition(lambda r: r.day, [date(2024, 2, 29), date.max])
        assert parts.keys() == {date(2024, 2, 29), date.max}
        part = session.release(parts[date(2024, 2, 29)].select(lambda r: r.colour).noisy_count(epsilon=1))
        assert isinstance(part, wp.Answers) and part["red"] > 4900


def test_an_average_of_decimals_and_no_quantile_of_categories() -> None:
    average = THINGS.noisy_average(1, lambda r: r.price, Decimal(0), Decimal(2))
    assert 1.4 < wp.simulate(average, {"things": [things()] * 5000}, seed=1).value < 1.6
    assert "record => record.price, lower" in wp.unparse({"m": average})
    with pytest.raises(wp.PlanError, match="categories are in no order"):
        THINGS.select(lambda r: r.colour).median(1, ["red", "green"])


HEARD = wp.source("heard", took=timedelta, at=datetime.datetime, paid=bool, text=str)
_TEXT = (
    "source heard(took: duration, at: timestamp, paid: bool, text: str); var m = heard.NoisySum(1, r => {}, 0, 100);"
)


def total_of(value: Any) -> Any:
    """The noisy sum of what a function, or the text of one, makes of a record."""
    return (
        wp.parse(_TEXT.format(value)).measurements["m"] if isinstance(value, str) else HEARD.noisy_sum(1, value, 0, 100)
    )


@pytest.mark.parametrize(
    ("bare", "words", "made", "total"),
    [
        (lambda r: r.took, "value // datetime.timedelta(seconds=1)", lambda r: r.took // timedelta(seconds=1), 7),
        ("r.took", 'in text value / duration("PT1S")', 'r.took / duration("PT1S")', 7),
        (lambda r: r.at, "take a part of it, year or hour", lambda r: F.hour(r.at), 8),
        (lambda r: r.paid, "a cast to int", lambda r: F.cast(r.paid, int), 1),
        ("r.text", "a cast to float", "to_float(r.text)", 9),
    ],
)
def test_a_sum_says_how_to_make_numbers_and_takes_them(bare: Any, words: str, made: Any, total: int) -> None:
    with pytest.raises(wp.WpinqError, match=re.escape(words)):
        total_of(bare)
    rows = [(timedelta(seconds=7), datetime.datetime(2024, 2, 29, 8), True, "9")] * 3000
    answers = wp.simulate(total_of(made), {"heard": rows}, seed=2)
    assert abs(answers.value / 3000 - total) < 0.5


def test_constants_stand_on_either_side() -> None:
    first, day = date(2024, 1, 1), timedelta(days=1)
    pairs: list[tuple[Any, Any]] = [
        (lambda r: first <= r.day, lambda r: r.day >= first),
        (lambda r: day + r.day, lambda r: r.day + day),
        (lambda r: first - r.day, lambda r: -(r.day - first)),
        (lambda r: Decimal(1) - r.price, lambda r: -(r.price - 1)),
        (lambda r: Decimal("1.5") < r.price, lambda r: r.price > Decimal("1.5")),
        (lambda r: datetime.datetime.max == r.at, lambda r: r.at == datetime.datetime.max),
    ]
    for one, other in pairs:
        assert wp.evaluate(THINGS.select(one), {"things": [things()]}) == wp.evaluate(
            THINGS.select(other), {"things": [things()]}
        )
    assert THINGS.select(lambda r: r.price == Decimal("1.5")) == THINGS.select(lambda r: r.price == Decimal("1.50"))
    assert wp.source("t", a=None | wp.decimal(2)) == wp.source("t", a=wp.decimal(2) | None)


def test_a_part_is_the_same_however_its_key_is_written() -> None:
    one, other = (THINGS.partition(lambda r: r.price, [Decimal(key)]) for key in ("1.5", "1.500"))
    assert one[Decimal("1.50")] == other[Decimal("1.50")]


@pytest.mark.parametrize("key", [0, "2024-02-29", datetime.datetime(2024, 2, 29, 1), 1.5, (date.min,)])
def test_keys_of_another_type_are_refused(key: Any) -> None:
    with pytest.raises(wp.PlanError, match="keys are of type date"):
        THINGS.select(lambda r: r.day).noisy_count(epsilon=1, over=[key])


def test_a_measurement_made_by_hand_is_held_to_its_type() -> None:
    from dataclasses import replace

    counts = THINGS.select(lambda r: r.day).noisy_count(epsilon=1, over=[date.min])
    with wp.Session() as session:
        session.protect(THINGS, [things()], budget=1)
        with pytest.raises(wp.PlanError, match="outside the years 1 to 9999"):
            session.release(replace(counts, domain=(10**9,)))
        assert session.spent("things") == 0


def test_an_account_fixes_the_scale_and_the_categories() -> None:
    def declared(scale: int, *colours: str) -> wp.Query:
        return wp.source("sales", price=wp.decimal(scale), colour=wp.category(*colours))

    from wpinq.kernel.ledger.ledger import Ledger

    ledger = Ledger(None)
    for source, fits in ((declared(2, "a"), True), (declared(3, "a"), False), (declared(2, "a", "b"), False)):
        with wp.Session(ledger) as session:
            if fits:
                session.protect(source, [(Decimal(1), "a")], budget=1)
            else:
                with pytest.raises(wp.LedgerError):
                    session.protect(source, [(Decimal(1), "a")], budget=1)


TEXT = """
source t(day: date, at: timestamp?, clock: time, length: duration, price: decimal(2), colour: category("red", "é"));
var q = t
    .Where(r => r.day >= date("2024-01-01") && r.at != timestamp("2023-12-31T23:00:00") && r.clock < time("12:00:00"))
    .Select(r => (r.length / 2, r.price * decimal("-1.5"), r.colour == "red", -duration("P1D")));
var days = t.Select(r => r.day).NoisyCount(0.1, over: range(date("2024-02-28"), date("2024-03-02")));
var part = t.Partition(r => r.price, part: decimal("1.50")).NoisySum(0.1, r => r.price, lower: 0.0, upper: 2.0);
"""


def test_text_says_all_of_them() -> None:
    program = wp.parse(TEXT)
    assert program["days"].domain == (19781, 19782, 19783)
    again = wp.parse(str(program))
    assert all(again[name] == program[name] for name in program)
    assert str(again) == str(program)
    assert 'NoisyCount(0.1, over: range(date("2024-02-28"), date("2024-03-02")))' in str(program)


@for_each(
    ("text", "message"),
    [
        ("source t: decimal;", "there is no type `decimal`"),
        ("source t: decimal(19);", "from 0 to 18"),
        ("source t: decimal(2, 3);", "a decimal has one scale"),
        ('source t: category("a", "a");', "each once"),
        ('source t: category("a", 1);', "lists its strings"),
        ("source t: int(2);", "takes no `(`"),
        ('source t: date; var q = t.Where(d => d < date("2024-02-30"));', "a constant date cannot be made"),
        ("source t: date; var q = t.Where(d => d < date(d));", "written in the query"),
        ('source t: decimal(2); var q = t.Where(d => d < decimal("1e5"));', "its digits in quotes"),
        ("source t: decimal(2); var q = t.Where(d => d < 1.5);", "cannot be combined with float"),
        ("source t: decimal(2); var q = t.Select(d => d / 2);", "quotient"),
        ('source t: date; var m = t.NoisyCount(1, over: [date("2024-1-1")]);', "a constant date cannot be made"),
        ('source t: date; var m = t.NoisyCount(date("2024-01-01"));', "expected a number"),
        ('parameter p = date("2024-01-01");', "expected a number, a string"),
    ],
)
def test_text_that_is_wrong_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(wp.LanguageError) as caught:
        wp.parse(text)
    assert message in str(caught.value)


PIECES = ["", "-", "+", "P", "T", " ", "1", "07", "9", "24", "59", "60", ".", "5", "D", "H", "M", "S", "Z", "12:30"]


@pytest.mark.parametrize("type_", [datetime.datetime, timedelta])
def test_text_is_cast_as_constants_are_read(type_: Any) -> None:
    """Texts near to being moments, and what `parse` makes of them; null where it refuses."""
    random = Random(f"texts of {type_.__name__}")
    logical = TIMESTAMP if type_ is datetime.datetime else DURATION
    written = ["2024-02-29T12:30:01.000005+01:30", "0001-01-01 00:00", "9999-12-31T23:59:59.9Z", "2023-11-30T07:08:09"]
    texts = {"P1DT2H30M0.5S", "-PT59M7S", "P9DT24H", *written}
    for text in sorted(texts) * 300:
        for _ in range(random.randint(1, 3)):
            at, gone = random.randint(0, len(text)), random.choice([0, 1, 1, 2])
            text = text[:at] + random.choice(PIECES) + text[at + gone :]
        texts.add(text)
    source = wp.source("texts", str)
    output = wp.evaluate(source.select(lambda text: (text, F.cast(text, type_))), {"texts": sorted(texts)})
    expected, fit = {}, 0
    for text in texts:
        try:
            expected[text] = presenter(logical)(parse(text, logical))
            fit += 1
        except UnfitValue:
            expected[text] = None
    assert dict(iter(output)) == expected
    assert fit > 20


@pytest.mark.parametrize(
    ("dividend", "divisor", "most"), [(2, 4, 16), (0, 18, 0), (0, 3, 15), (None, 18, 0), (18, 0, 18)]
)
def test_a_quotient_has_no_more_decimals_than_64_bits_count(dividend: int | None, divisor: int, most: int) -> None:
    given = int if dividend is None else wp.decimal(dividend)
    source = wp.source("quotients", d=given, e=wp.decimal(divisor))
    query = source.select(lambda r: F.quotient(r.d, r.e, most))
    row = (Decimal(0) if dividend is not None else 0, Decimal(1).scaleb(-divisor))
    for engine in ("reference", "duckdb"):
        assert dict(wp.evaluate(query, {"quotients": [row]}, engine=engine).items()) == {Decimal(0): 1.0}
    for decimals in range(most + 1, 19):
        with pytest.raises(wp.ExpressionError, match=f"take at most {most} decimals, or cast the divisor"):
            source.select(lambda r, decimals=decimals: F.quotient(r.d, r.e, decimals))
