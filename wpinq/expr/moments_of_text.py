"""Timestamps and durations of text in ISO 8601, as `logical_values.parse` reads them; null of whatever else it says.

Fields are cut out where they stand and read as whole numbers, once each. To write the moment out anew and compare, as
is done for a date, would make a query of a text that is itself computed too deep for Spark.
"""

from __future__ import annotations

from functools import reduce

from wpinq.expr.build import call, constant
from wpinq.expr.calendar import days_of
from wpinq.expr.integers import below, both, choose, minus, no, over, plus, rest, same, times
from wpinq.expr.logical_values import SECOND
from wpinq.expr.moments import kept
from wpinq.expr.nodes import Expr
from wpinq.expr.types import TIMESTAMP

_SHORTEST, _WHOLE = 16, 26
"""Characters of a date with hours and minutes, and with six decimals of a second."""
_LONGEST = _WHOLE + len("+01:00")
_NO_DURATION = 100
"""More characters than any duration has: 19 digits a number at most, and 6 of decimals."""


def timestamp_of_text(text: Expr) -> Expr:
    """Of a date and a time with T or a blank between them, the microseconds since 1970; with Z or +HH:MM in UTC."""
    text = _part(text, 0, _LONGEST + 1)
    length = call("length", text)
    zulu, sign = _is(text, minus(length, 1), "Z"), _part(text, minus(length, 6), 1)
    zoned = both(no(zulu), no(below(call("find", constant("+-"), sign), 0)))
    end = minus(length, choose(zulu, 1, choose(zoned, 6, 0)))
    zone = choose(zoned, _part(text, end, 6), constant("+00:00"))
    sized = no(
        both(no(same(end, _SHORTEST)), both(no(same(end, 19)), no(both(below(20, end), below(end, _WHOLE + 1)))))
    )
    missing = _part(constant(":00.000000"), minus(end, _SHORTEST), _WHOLE - _SHORTEST)
    full = choose(sized, call("concatenate", _part(text, 0, end), missing), "")
    marks = [_is(full, at, mark) for at, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":"), (19, "."))]
    marks += [_is(zone, 3, ":"), no(below(call("find", constant("T "), _part(full, 10, 1)), 0))]
    # a number takes a sign: there are those of the date and of the zone, and no more
    signs = plus(*(call("length", call("split", text, constant(sign))) for sign in "+-"))
    marks.append(same(signs, choose(zoned, 5, 4)))
    year, month, day, hour, minute, second, decimals = (
        call("to_int", _part(full, at, width))
        for at, width in ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2), (20, 6))
    )
    hours, minutes = (call("to_int", _part(zone, at, 2)) for at in (1, 4))
    sixties = [below(number, 60) for number in (minute, second, minutes)]
    ranges = [_is_day(year, month, day), below(hour, 24), below(hours, 24), *sixties]
    offset = plus(times(hours, 60), minutes)
    offset = choose(call("equal", sign, constant("-")), minus(0, offset), offset)
    passed = minus(plus(times(plus(times(days_of(year, month, day), 24), hour), 60), minute), offset)
    moment = plus(times(plus(times(passed, 60), second), SECOND), decimals)
    return choose(reduce(both, [*marks, *ranges]), kept(moment, TIMESTAMP), None)


def _is_day(year: Expr, month: Expr, day: Expr) -> Expr:
    """Whether a year from 0 to 9999 has a month and that month a day."""
    divided = [same(rest(year, by), 0) for by in (4, 100, 400)]
    leap = both(divided[0], no(both(divided[1], no(divided[2]))))
    length = plus(rest(plus(month, over(month, 8)), 2), 30)
    length = choose(same(month, 2), choose(leap, 29, 28), length)
    there = [below(0, number) for number in (year, month, day)]
    return reduce(both, [*there, below(month, 13), no(below(length, day))])


def duration_of_text(text: Expr) -> Expr:
    """Of `P1DT2H30M`, `PT0.5S` or `-P1D`, with whatever of it is there, the microseconds.

    All is counted below 0, where 64 bits have one more: `-` before digits says too that there is no sign among them.
    """
    text = _part(text, 0, _NO_DURATION)
    negative = _is(text, 0, "-")
    begin = choose(negative, 1, 0)
    left = call("substring", text, plus(begin, 1), call("length", text))
    halves = call("split", left, constant("T"))
    days, nothing = _taken(_piece(halves, 0), "D")
    hours, clock = _taken(_piece(halves, 1), "H")
    minutes, clock = _taken(clock, "M")
    seconds, end = _taken(clock, "S", decimals=True)
    timed = same(call("length", halves), 2)
    clocked = plus(times(plus(times(hours, 60), minutes), 60 * SECOND), seconds)
    length = plus(times(days, 86_400 * SECOND), choose(timed, clocked, 0))
    well = [_is(text, begin, "P"), _empty(nothing), no(both(timed, no(_empty(end))))]
    well += [below(call("length", halves), 3), no(_empty(left)), no(call("equal", left, constant("T")))]
    return choose(reduce(both, well), choose(negative, length, minus(0, length)), None)


def _taken(text: Expr, unit: str, decimals: bool = False) -> tuple[Expr, Expr]:
    """The number before a unit, below 0, and what comes after; 0 and the text where the unit is not there."""
    pieces = call("split", text, constant(unit))
    there = same(call("length", pieces), 2)
    number = (_seconds if decimals else _below_0)(_piece(pieces, 0))
    return choose(there, number, 0), choose(there, _piece(pieces, 1), text)


def _seconds(text: Expr) -> Expr:
    """The microseconds of so many seconds, with one to six decimals or none, below 0."""
    pieces = call("split", text, constant("."))
    whole, decimals = times(_below_0(_piece(pieces, 0)), SECOND), _piece(pieces, 1)
    count, given = call("length", pieces), call("length", decimals)
    padded = call("concatenate", decimals, _part(constant("00000"), minus(given, 1), 5))
    fraction = choose(both(below(0, given), below(given, 7)), _below_0(padded), None)
    return choose(same(count, 1), whole, choose(same(count, 2), plus(whole, fraction), None))


def _below_0(digits: Expr) -> Expr:
    return call("to_int", call("concatenate", constant("-"), digits))


def _empty(text: Expr) -> Expr:
    return call("equal", text, constant(""))


def _is(text: Expr, at: Expr | int, mark: str) -> Expr:
    """Whether a text has a mark at a place."""
    return call("equal", _part(text, at, 1), constant(mark))


def _piece(pieces: Expr, number: int) -> Expr:
    return call("element", pieces, constant(number))


def _part(text: Expr, start: Expr | int, length: Expr | int) -> Expr:
    start, length = (value if isinstance(value, Expr) else constant(value) for value in (start, length))
    return call("substring", text, start, length)
