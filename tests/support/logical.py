"""Functions of dates, timestamps and decimals beside what Python's datetime and decimal say of them, on random rows."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from random import Random
from typing import Any

import wpinq as wp
from wpinq import functions as F

SOURCE = wp.source(
    "given",
    number=int,
    a=date,
    b=date | None,
    s=datetime,
    u=datetime,
    x=wp.decimal(2),
    y=wp.decimal(4),
    z=wp.decimal(2),
    n=int,
    f=float,
    weights=True,
)

EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN)
LEAST, MOST = -(2**63), 2**63 - 1
MICROSECOND = timedelta(microseconds=1)


def or_null(function: Callable[[], Any]) -> Any:
    """What it gives; None beyond the years 1 to 9999."""
    try:
        return function()
    except (OverflowError, ValueError):
        return None


def later(moment: Any, months: int) -> Any:
    count = moment.year * 12 + moment.month - 1 + months
    year, month = count // 12, count % 12 + 1
    if not 1 <= year <= 9999:
        return None
    last = 29 if month == 2 and calendar.isleap(year) else [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    return moment.replace(year=year, month=month, day=min(moment.day, last))


def fits(number: Decimal | None, scale: int) -> Decimal | None:
    """A number of that scale, or None where 64 bits cannot count it."""
    if number is None or not LEAST <= EXACT.scaleb(number, scale) <= MOST:
        return None
    return EXACT.add(EXACT.quantize(number, Decimal((0, (1,), -scale))), Decimal(0))  # no zero has a sign


def rounded(number: Decimal, scale: int) -> Decimal | None:
    return fits(EXACT.quantize(number, Decimal((0, (1,), -scale))), scale)


def sides(r: Any, scale: int = 4) -> bool:
    """Whether both decimals can be counted at a scale."""
    return fits(r["x"], scale) is not None


def floor_of(a: Decimal, b: Decimal) -> int | None:
    if b == 0:
        return None
    quotient = (EXACT.scaleb(a, 4).to_integral_exact()), (EXACT.scaleb(b, 4).to_integral_exact())
    whole = int(quotient[0]) // int(quotient[1])
    return whole if LEAST <= whole <= MOST else None


Check = tuple[str, Callable[[Any], Any], Callable[[dict[str, Any]], Any]]

CHECKS: list[Check] = [
    ("year", lambda r: F.year(r.a), lambda r: r["a"].year),
    ("month", lambda r: F.month(r.s), lambda r: r["s"].month),
    ("day", lambda r: F.day(r.a), lambda r: r["a"].day),
    ("weekday", lambda r: F.weekday(r.s), lambda r: r["s"].weekday()),
    ("week", lambda r: F.week(r.a), lambda r: r["a"].isocalendar()[1]),
    ("day of year", lambda r: F.day_of_year(r.a), lambda r: r["a"].timetuple().tm_yday),
    ("quarter", lambda r: F.quarter(r.a), lambda r: (r["a"].month + 2) // 3),
    ("hour", lambda r: F.hour(r.s), lambda r: r["s"].hour),
    ("minute", lambda r: F.minute(r.s), lambda r: r["s"].minute),
    ("second", lambda r: F.second(r.s), lambda r: r["s"].second),
    ("microsecond", lambda r: F.microsecond(r.s), lambda r: r["s"].microsecond),
    ("to year", lambda r: F.truncate(r.a, "year"), lambda r: r["a"].replace(month=1, day=1)),
    (
        "to quarter",
        lambda r: F.truncate(r.a, "quarter"),
        lambda r: r["a"].replace(month=(r["a"].month - 1) // 3 * 3 + 1, day=1),
    ),
    ("to month", lambda r: F.truncate(r.a, "month"), lambda r: r["a"].replace(day=1)),
    ("to week", lambda r: F.truncate(r.a, "week"), lambda r: r["a"] - timedelta(days=r["a"].weekday())),
    (
        "to hour",
        lambda r: F.truncate(r.s, "hour"),
        lambda r: r["s"].replace(minute=0, second=0, microsecond=0),
    ),
    ("months", lambda r: F.offset(r.a, r.n, "month"), lambda r: later(r["a"], r["n"])),
    ("years", lambda r: F.offset(r.s, r.n, "year"), lambda r: later(r["s"], 12 * r["n"])),
    ("weeks", lambda r: F.offset(r.a, r.n, "week"), lambda r: or_null(lambda: r["a"] + timedelta(weeks=r["n"]))),
    ("hours", lambda r: F.offset(r.s, r.n, "hour"), lambda r: or_null(lambda: r["s"] + timedelta(hours=r["n"]))),
    ("days between", lambda r: r.a - r.b, lambda r: None if r["b"] is None else r["a"] - r["b"]),
    ("time between", lambda r: r.s - r.u, lambda r: r["s"] - r["u"]),
    (
        "hours between",
        lambda r: (r.s - r.u) // timedelta(hours=1),
        lambda r: (r["s"] - r["u"]) // timedelta(hours=1),
    ),
    ("later by", lambda r: r.s + (r.s - r.u), lambda r: or_null(lambda: r["s"] + (r["s"] - r["u"]))),
    ("earlier by", lambda r: r.a - (r.s - r.u), lambda r: or_null(lambda: r["a"] - (r["s"] - r["u"]))),
    ("before", lambda r: r.s < r.u, lambda r: r["s"] < r["u"]),
    ("date of", lambda r: F.cast(r.s, date), lambda r: r["s"].date()),
    ("time of", lambda r: F.cast(r.s, time), lambda r: r["s"].time()),
    ("date as text", lambda r: F.cast(r.a, str), lambda r: r["a"].isoformat()),
    ("timestamp as text", lambda r: F.cast(r.s, str), lambda r: r["s"].isoformat()),
    ("date from text", lambda r: F.cast(F.cast(r.a, str), date), lambda r: r["a"]),
    ("timestamp from text", lambda r: F.cast(F.cast(r.s, str), datetime), lambda r: r["s"]),
    (
        "timestamp from text with a zone",
        lambda r: F.cast(F.cast(r.s, str) + "-02:30", datetime),
        lambda r: or_null(lambda: r["s"] + timedelta(hours=2.5)),
    ),
    ("time from text", lambda r: F.cast(F.cast(F.cast(r.s, time), str), time), lambda r: r["s"].time()),
    (
        "duration from text",
        lambda r: F.cast("-P" + F.cast(r.n % 1000, str) + "DT" + F.cast(F.second(r.s), str) + "S", timedelta),
        lambda r: -timedelta(days=r["n"] % 1000, seconds=r["s"].second),
    ),
    ("sum", lambda r: r.x + r.y, lambda r: fits(EXACT.add(r["x"], r["y"]), 4) if sides(r) else None),
    ("difference", lambda r: r.x - r.z, lambda r: fits(EXACT.subtract(r["x"], r["z"]), 2)),
    ("product", lambda r: r.x * r.y, lambda r: fits(EXACT.multiply(r["x"], r["y"]), 6)),
    ("less", lambda r: r.x < r.y, lambda r: r["x"] < r["y"]),
    ("greater", lambda r: r.x > r.y, lambda r: r["x"] > r["y"]),
    ("same", lambda r: r.x == r.y, lambda r: r["x"] == r["y"]),
    ("less than an int", lambda r: r.y < r.n, lambda r: r["y"] < r["n"]),
    ("floor of quotient", lambda r: r.x // r.z, lambda r: floor_of(r["x"], r["z"])),
    (
        "rest",
        lambda r: r.x % r.z,
        lambda r: (
            None if r["z"] == 0 else EXACT.subtract(r["x"], r["z"] * ((r["x"] * 100).__int__() // int(r["z"] * 100)))
        ),
    ),
    (
        "quotient",
        lambda r: F.quotient(r.x, r.z, 0),
        lambda r: None if r["z"] == 0 else rounded(EXACT.divide(r["x"], r["z"]), 0),
    ),
    ("tenths", lambda r: F.cast(r.y, wp.decimal(1)), lambda r: rounded(r["y"], 1)),
    ("as int", lambda r: F.cast(r.y, int), lambda r: int(r["y"])),
    ("as float", lambda r: F.cast(r.y, float), lambda r: float(r["y"])),
    ("as text", lambda r: F.cast(r.y, str), lambda r: f"{r['y']:f}"),
    ("of text", lambda r: F.cast(F.cast(r.y, str), wp.decimal(4)), lambda r: r["y"]),
    ("of float", lambda r: F.cast(r.f, wp.decimal(3)), lambda r: rounded(Decimal(r["f"]), 3)),
    ("absolute", lambda r: abs(r.x), lambda r: fits(abs(r["x"]), 2)),
    ("larger", lambda r: F.max(r.x, r.y), lambda r: fits(max(r["x"], r["y"]), 4) if sides(r) else None),
]
"""A name, a function of a record of `SOURCE`, and what it gives, from the record as a mapping."""


def rows(rng: Random, count: int) -> list[dict[str, Any]]:
    """Random records, the ends of the ranges among them."""
    days = [date.min, date.max, date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(1900, 2, 28)]
    moments = [datetime.min, datetime.max, datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)]

    def day() -> date:
        return rng.choice(days) if rng.random() < 0.2 else date.fromordinal(rng.randint(1, date.max.toordinal()))

    def moment() -> datetime:
        if rng.random() < 0.2:
            return rng.choice(moments)
        return datetime.min + rng.randint(0, (datetime.max - datetime.min) // MICROSECOND) * MICROSECOND

    def number(scale: int) -> Decimal:
        size = rng.choice([9, 99, 10**4, 10**9, 2**53 + 10, 10**16, MOST])
        units = rng.choice([LEAST, MOST, 0]) if rng.random() < 0.1 else rng.randint(-size - 1, size)
        return EXACT.scaleb(Decimal(units), -scale)

    def fraction() -> float:
        size = 10.0 ** rng.randint(-5, 17)
        return rng.choice(
            [rng.randint(-(10**6), 10**6) / 2000, rng.uniform(-size, size), float(rng.randint(-MOST, MOST))]
        )

    return [
        {
            "number": place,
            "a": day(),
            "b": None if rng.random() < 0.2 else day(),
            "s": moment(),
            "u": moment(),
            "x": number(2),
            "y": number(4),
            "z": number(2),
            "n": rng.choice([rng.randint(-50, 50), rng.randint(-200_000, 200_000), rng.randint(LEAST, MOST)]),
            "f": fraction(),
        }
        for place in range(count)
    ]


def query(checks: list[Check]) -> wp.Query:
    """Some functions of one record, side by side, after its number."""
    return SOURCE.select(lambda r: (r.number, *(function(r) for _, function, _ in checks)))


def compare(found: Iterable[tuple[Any, ...]], given: list[dict[str, Any]], checks: list[Check]) -> None:
    """Refuse any difference from what Python says, the type and the digits included."""
    by_number = {record[0]: record[1:] for record in found}
    assert by_number.keys() == {row["number"] for row in given}
    for row in given:
        for (name, _, of_python), value in zip(checks, by_number[row["number"]], strict=True):
            assert repr(value) == repr(of_python(row)), (name, row)
