"""The calendar in integers: years, months and days of the days since 1970-01-01, and back.

The Gregorian calendar for all years, as Python's `datetime` has it. Years begin in March here, so that the day that a
leap year has more comes last (Hinnant, "chrono-compatible low-level date algorithms", 2013).
"""

from __future__ import annotations

from typing import NamedTuple

from wpinq.expr.integers import below, choose, least, minus, over, plus, rest, times
from wpinq.expr.nodes import Expr

_TO_MARCH = 719_468
"""Days from 0000-03-01 to 1970-01-01."""
_CYCLE = 146_097
"""Days of 400 years, after which the calendar repeats."""


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
