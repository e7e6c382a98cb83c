"""Functions of dates, timestamps and times of day: parts, truncation, and calendar steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpinq.errors import described
from wpinq.expr import temporal
from wpinq.expr.build import static_text, stored
from wpinq.expr.decimals import minus, over, plus, rest, times
from wpinq.expr.declare import derived
from wpinq.expr.definition import Mistyped
from wpinq.expr.nodes import Expr
from wpinq.expr.types import DATE, INT, NULL, TIME, TIMESTAMP, Logical
from wpinq.expr.values import DAY, SECOND

_LENGTHS = {
    "day": DAY,
    "hour": 3600 * SECOND,
    "minute": 60 * SECOND,
    "second": SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_UNITS = ("year", "quarter", "month", "week", *_LENGTHS)


def _part(name: str, plain: Logical, words: str, part: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """A number that a date has, or a time of day; or that of a timestamp."""

    def rule(value: Expr) -> Expr:
        if value.type not in (plain, TIMESTAMP):
            raise Mistyped(f"{name} takes {words}, not {value.type}")
        dated = plain == DATE and value.type == TIMESTAMP
        return stored(name, INT, lambda count: part(over(count, DAY) if dated else count), value)

    return rule


def _of_date(name: str, of_days: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return _part(name, DATE, "a date or a timestamp", of_days)


def _clock(name: str, unit: int, modulus: int) -> Callable[[Expr], Expr]:
    return _part(name, TIME, "a timestamp or a time of day", lambda moment: rest(over(moment, unit), modulus))


def _day_of_year(days: Expr) -> Expr:
    return plus(minus(days, temporal.days_of(temporal.civil(days).year, 1, 1)), 1)


def _week(days: Expr) -> Expr:
    """Of the year that its Thursday is in (ISO 8601)."""
    thursday = plus(minus(days, temporal.weekday(days)), 3)
    return plus(over(minus(_day_of_year(thursday), 1), 7), 1)


def _unit(unit: Expr, name: str, value: Expr) -> tuple[str, Logical]:
    word, type_ = static_text(unit, "the unit"), value.type
    if type_ not in (DATE, TIMESTAMP, TIME) or not isinstance(type_, Logical):
        raise Mistyped(f"{name} takes a date, a timestamp or a time of day, not {type_}")
    known = {DATE: _UNITS[:5], TIMESTAMP: _UNITS, TIME: _UNITS[5:]}[type_]
    if word not in known:
        raise Mistyped(f"the unit of {name} of a {type_} is one of {', '.join(known)}, not {described(word)}")
    return word, type_


def _truncated(value: Expr, unit: Expr) -> Expr:
    word, type_ = _unit(unit, "truncate", value)
    scale = DAY if type_ == TIMESTAMP else 1

    def start(count: Expr, _: Expr) -> Expr:
        if word in _LENGTHS:
            step = _LENGTHS[word] if type_ != DATE else 1
            return minus(count, rest(count, step))
        days = over(count, scale)
        if word == "week":
            first = minus(days, temporal.weekday(days))
        else:
            months = _MONTHS[word]
            year, month, _day = temporal.civil(days)
            first = temporal.days_of(year, minus(month, rest(minus(month, 1), months)), 1)
        return times(first, scale)

    return stored("truncate", type_, start, value, unit)


def _offset(value: Expr, number: Expr, unit: Expr) -> Expr:
    word, type_ = _unit(unit, "offset", value)
    if type_ == TIME:
        raise Mistyped("offset takes a date or a timestamp: a time of day has no next day")
    if number.type not in (INT, NULL):
        raise Mistyped(f"offset takes an integer number of units, not {number.type}")
    scale = DAY if type_ == TIMESTAMP else 1

    def moved(count: Expr, steps: Expr, _: Expr) -> Expr:
        if word in _MONTHS:
            days, clock = over(count, scale), rest(count, scale)
            later = temporal.kept(temporal.moved_by_months(days, times(steps, _MONTHS[word])), DATE)
            return plus(times(later, scale), clock)
        length = 7 * DAY if word == "week" else _LENGTHS[word]
        return temporal.kept(plus(count, times(steps, length // DAY if type_ == DATE else length)), type_)

    return stored("offset", type_, moved, value, number, unit)


@derived(_of_date("year", lambda days: temporal.civil(days).year))
def year(value: object) -> Any:
    """The year of a date or a timestamp, 1 to 9999."""


@derived(_of_date("quarter", lambda days: plus(over(minus(temporal.civil(days).month, 1), 3), 1)))
def quarter(value: object) -> Any:
    """The quarter of a date or a timestamp, 1 to 4."""


@derived(_of_date("month", lambda days: temporal.civil(days).month))
def month(value: object) -> Any:
    """The month of a date or a timestamp, 1 to 12."""


@derived(_of_date("week", _week))
def week(value: object) -> Any:
    """The ISO 8601 week of a date or a timestamp, 1 to 53, of its Thursday's year."""


@derived(_of_date("day", lambda days: temporal.civil(days).day))
def day(value: object) -> Any:
    """The day of the month of a date or a timestamp, 1 to 31."""


@derived(_of_date("weekday", temporal.weekday))
def weekday(value: object) -> Any:
    """The day of the week of a date or a timestamp, 0 for Monday to 6 for Sunday."""


@derived(_of_date("day_of_year", _day_of_year))
def day_of_year(value: object) -> Any:
    """The day of the year of a date or a timestamp, 1 to 366."""


@derived(_clock("hour", _LENGTHS["hour"], 24))
def hour(value: object) -> Any:
    """The hour of a timestamp or a time of day, 0 to 23."""


@derived(_clock("minute", _LENGTHS["minute"], 60))
def minute(value: object) -> Any:
    """The minute of a timestamp or a time of day, 0 to 59."""


@derived(_clock("second", SECOND, 60))
def second(value: object) -> Any:
    """The whole second of a timestamp or a time of day, 0 to 59."""


@derived(_clock("microsecond", 1, SECOND))
def microsecond(value: object) -> Any:
    """The microseconds beyond the whole second, 0 to 999999."""


@derived(_truncated)
def truncate(value: object, unit: str) -> Any:
    """The start of the unit of a date, timestamp or time: `F.truncate(r.day, "month")`.

    Units are year, quarter, month, week (from Monday), day, hour, minute, second, millisecond and microsecond.
    """


@derived(_offset)
def offset(value: object, number: object, unit: str) -> Any:
    """A date or timestamp n units later, at most the last day of the month.

    Null beyond the years 1 to 9999.
    """
