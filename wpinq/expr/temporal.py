"""Arithmetic of dates, timestamps, times of day and durations, in integers.

Results beyond the years 1 to 9999 are null.
"""

from __future__ import annotations

from typing import NamedTuple

from wpinq.errors import ExpressionError
from wpinq.expr.build import call, stored
from wpinq.expr.decimals import below, choose, least, minus, over, plus, rest, times, within
from wpinq.expr.nodes import Expr, show
from wpinq.expr.types import DATE, DURATION, INT, NULL, TIME, TIMESTAMP, Logical, Type
from wpinq.expr.values import DAY, RANGES

MOMENTS: tuple[Logical, ...] = (DATE, TIMESTAMP, TIME, DURATION)

_HINT = (
    "the difference of two dates or timestamps is a duration, a duration can be added (datetime.timedelta(days=7), in "
    'text duration("P7D")) or cut to a date, F.offset(x, n, "month") goes by the calendar, and F.cast(x, int) counts'
)


def kept(moment: Expr, type_: Type) -> Expr:
    """The number of a moment within the type's range; else null.

    A duration may be all of 64 bits.
    """
    return within(moment, *RANGES[type_]) if type_ in RANGES else moment


def arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """`+ - *` of two moments, a moment and a duration, or durations.

    The difference of two moments is a duration.
    """
    one, other = left.type, right.type
    if name == "add" and one == DURATION and other in (DATE, TIMESTAMP):
        return stored(name, other, lambda length, moment: _moved(name, moment, length, other), left, right)
    if name in ("add", "subtract") and one in (DATE, TIMESTAMP) and other == DURATION:
        return stored(name, one, lambda moment, length: _moved(name, moment, length, one), left, right)
    if name == "subtract" and one == other and one in (DATE, TIMESTAMP, TIME):
        unit = DAY if one == DATE else 1
        return stored(name, DURATION, lambda a, b: times(minus(a, b), unit), left, right)
    if name in ("add", "subtract") and one in (DURATION, NULL) and other in (DURATION, NULL):
        return stored(name, DURATION, lambda a, b: call(name, a, b), left, right)
    if name == "multiply" and {one, other} <= {DURATION, INT, NULL} and one != other:
        return stored(name, DURATION, times, left, right)
    raise refused(name, left, right)


def _moved(name: str, moment: Expr, length: Expr, type_: Type) -> Expr:
    """A moment a duration later or earlier; a date moves by whole days, rounded down.

    This is as in Python.
    """
    return kept(call(name, moment, over(length, DAY) if type_ == DATE else length), type_)


def floor_quotient(left: Expr, right: Expr) -> Expr:
    """`//`: of two durations an int, of a duration and an int a duration."""
    if left.type == DURATION and right.type in (DURATION, INT):
        given = INT if right.type == DURATION else DURATION
        return stored("floor_divide", given, over, left, right)
    raise refused("floor_divide", left, right)


def remainder(left: Expr, right: Expr) -> Expr:
    """`%`: what is left of a duration."""
    if left.type == right.type == DURATION:
        return stored("modulo", DURATION, rest, left, right)
    raise refused("modulo", left, right)


def negated(value: Expr) -> Expr:
    """`-value` of a duration."""
    if value.type != DURATION:
        raise ExpressionError(f"- takes numbers and durations, not {value.type}, in `{show(value)}`")
    return stored("negate", DURATION, lambda length: minus(0, length), value)


def refused(name: str, left: Expr, right: Expr) -> ExpressionError:
    """The error for an operation that times do not have."""
    words = {"floor_divide": "//", "modulo": "%", "divide": "/", "add": "+", "subtract": "-", "multiply": "*"}
    advice = f"; // counts how often one duration goes into another, {_HINT}"
    return ExpressionError(f"there is no {left.type} {words[name]} {right.type}{advice}, in `{show(left)}`")


# The calendar in integers: years, months and days of the days since 1970-01-01, and back.
#
# The Gregorian calendar for all years, as Python's `datetime` has it. Years begin in March here, so that the day that a
# leap year has more comes last (Hinnant, "chrono-compatible low-level date algorithms", 2013).

#: Days from 0000-03-01 to 1970-01-01.
_TO_MARCH = 719_468
#: Days of 400 years, after which the calendar repeats.
_CYCLE = 146_097


class Civil(NamedTuple):
    """A day by the calendar."""

    year: Expr
    month: Expr
    day: Expr


def civil(days: Expr) -> Civil:
    """Year, month and day of a number of days since 1970-01-01."""
    shifted = plus(days, _TO_MARCH)
    of_cycle = rest(shifted, _CYCLE)
    leaps = minus(plus(minus(of_cycle, over(of_cycle, 1460)), over(of_cycle, 36_524)), over(of_cycle, 146_096))
    year_of_cycle = over(leaps, 365)
    day_of_year = minus(of_cycle, _days_of_years(year_of_cycle))
    month = over(plus(times(day_of_year, 5), 2), 153)  # from March, 0
    day = plus(minus(day_of_year, _days_of_months(month)), 1)
    year = plus(year_of_cycle, times(over(shifted, _CYCLE), 400))
    return Civil(choose(below(month, 10), year, plus(year, 1)), plus(rest(plus(month, 2), 12), 1), day)


def days_of(year: Expr, month: Expr | int, day: Expr | int) -> Expr:
    """Days from 1970-01-01 to a day by the calendar."""
    year = choose(below(month, 3), minus(year, 1), year)
    year_of_cycle = rest(year, 400)
    of_cycle = plus(_days_of_years(year_of_cycle), plus(_days_of_months(rest(plus(month, 9), 12)), minus(day, 1)))
    return minus(plus(times(over(year, 400), _CYCLE), of_cycle), _TO_MARCH)


def _days_of_years(years: Expr) -> Expr:
    return minus(plus(times(years, 365), over(years, 4)), over(years, 100))


def _days_of_months(months: Expr) -> Expr:
    return over(plus(times(months, 153), 2), 5)


def moved_by_months(days: Expr, months: Expr) -> Expr:
    """The same day so many months later, or the last of that month where it has no such day."""
    year, month, day = civil(days)
    count = plus(plus(times(year, 12), minus(month, 1)), months)
    start = _month_start(count)
    length = minus(_month_start(plus(count, 1)), start)
    return plus(start, minus(least(day, length), 1))


def _month_start(count: Expr) -> Expr:
    """Days to the first of a month, counted from January of the year 0."""
    return days_of(over(count, 12), plus(rest(count, 12), 1), 1)


def weekday(days: Expr) -> Expr:
    """0 for Monday to 6 for Sunday: 1970-01-01 was a Thursday."""
    return rest(plus(days, 3), 7)
