"""Dates, times of day and decimals of text, in ISO 8601 and plain digits; null of whatever else a text says.

Digits are read where they must stand, and written out anew: only where that gives the text again is it one.
"""

from __future__ import annotations

from wpinq.expr.build import call, constant
from wpinq.expr.calendar import civil, days_of
from wpinq.expr.integers import below, both, choose, minus, no, over, plus, rest, same, times
from wpinq.expr.logical_values import SECOND
from wpinq.expr.moments import kept
from wpinq.expr.nodes import Expr
from wpinq.expr.types import DATE, TIME


def joined(*texts: Expr) -> Expr:
    """The texts, one after the other."""
    together = texts[0]
    for text in texts[1:]:
        together = call("concatenate", together, text)
    return together


def padded(number: Expr, width: int) -> Expr:
    """The last `width` digits of a number that is not negative and has no more."""
    return call("substring", call("to_str", plus(number, 10**width)), constant(1), constant(width))


def date_text(days: Expr) -> Expr:
    """YYYY-MM-DD."""
    year, month, day = civil(days)
    hyphen = constant("-")
    return joined(padded(year, 4), hyphen, padded(month, 2), hyphen, padded(day, 2))


def clock_text(seconds: Expr) -> Expr:
    """HH:MM:SS."""
    colon = constant(":")
    parts = (over(seconds, 3600), rest(over(seconds, 60), 60), rest(seconds, 60))
    hours, minutes, last = (padded(part, 2) for part in parts)
    return joined(hours, colon, minutes, colon, last)


def date_of_text(text: Expr) -> Expr:
    """Of YYYY-MM-DD, the days since 1970-01-01."""
    days = kept(days_of(*(_number(text, a, n) for a, n in ((0, 4), (5, 2), (8, 2)))), DATE)
    return choose(call("equal", date_text(days), text), days, None)


def time_of_text(text: Expr) -> Expr:
    """Of HH:MM, HH:MM:SS or HH:MM:SS.f with one to six decimals, the microseconds since midnight."""
    length = call("length", text)
    zeros = call("substring", constant("000000"), constant(0), minus(15, length))
    whole = choose(below(length, 16), joined(text, zeros), "")
    whole = choose(below(length, 10), "", whole)
    whole = choose(same(length, 8), joined(text, constant(".000000")), whole)
    whole = choose(same(length, 5), joined(text, constant(":00.000000")), whole)
    hours, minutes, seconds = (_number(whole, a, 2) for a in (0, 3, 6))
    seconds = plus(times(plus(times(hours, 60), minutes), 60), seconds)
    moment = kept(plus(times(seconds, SECOND), _number(whole, 9, 6)), TIME)
    written = joined(clock_text(over(moment, SECOND)), constant("."), padded(rest(moment, SECOND), 6))
    return choose(call("equal", written, whole), moment, None)


def decimal_of_text(text: Expr, scale: int) -> Expr:
    """Of digits, with a sign and a point before at most `scale` decimals, the count of the last decimal."""
    first = _part(text, constant(0), 1)
    negative = call("equal", first, constant("-"))
    signed = call("not", both(no(negative), no(call("equal", first, constant("+")))))
    body = call("substring", text, choose(signed, 1, 0), call("length", text))
    pieces = call("split", body, constant("."))
    whole, decimals = (call("element", pieces, constant(i)) for i in (0, 1))
    count = call("length", pieces)
    units = _scaled(whole, scale, negative)
    given = call("length", decimals)
    # a 1 before them: no sign is taken for a digit, and they are all there are
    digits = joined(constant("1"), decimals, call("substring", constant("0" * scale), constant(0), minus(scale, given)))
    small = minus(call("to_int", choose(below(scale, given), "", digits)), 10**scale)
    small = choose(below(0, given), small, None)
    exact = choose(negative, minus(units, small), plus(units, small))
    return choose(same(count, 1), units, choose(same(count, 2), exact, None))


def _scaled(whole: Expr, scale: int, negative: Expr) -> Expr:
    """Digits before the point, of which the first is none of two signs."""
    first = _part(whole, constant(0), 1)
    unsigned = both(*(no(call("equal", first, constant(sign))) for sign in ("+", "-")))
    text = choose(negative, joined(constant("-"), whole), whole)
    return times(call("to_int", choose(unsigned, text, "")), 10**scale)


def _part(text: Expr, start: Expr, length: int) -> Expr:
    return call("substring", text, start, constant(length))


def _number(text: Expr, start: int, length: int) -> Expr:
    return call("to_int", _part(text, constant(start), length))
