"""Casts between logical types and others: int, float and text of a value, and values of an int or a text."""

from __future__ import annotations

from functools import reduce

from wpinq.errors import ExpressionError
from wpinq.expr import decimals, types
from wpinq.expr.build import call, constant, stored
from wpinq.expr.catalogue import to_float as number_to_float
from wpinq.expr.decimals import below, both, choose, minus, no, over, plus, rest, same, times
from wpinq.expr.definition import Mistyped
from wpinq.expr.nodes import Constant, Expr, show
from wpinq.expr.temporal import MOMENTS, civil, days_of, kept
from wpinq.expr.values import DAY, SECOND

# Dates, times of day and decimals of text, in ISO 8601 and plain digits; null of whatever else a text says.
#
# Digits are read where they must stand, and written out anew: only where that gives the text again is it one.


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
    days = kept(days_of(*(_number(text, a, n) for a, n in ((0, 4), (5, 2), (8, 2)))), types.DATE)
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
    moment = kept(plus(times(seconds, SECOND), _number(whole, 9, 6)), types.TIME)
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


# Timestamps and durations of text in ISO 8601, as `logical_values.parse` reads them; null of whatever else it says.
#
# Fields are cut out where they stand and read as whole numbers, once each. To write the moment out anew and compare, as
# is done for a date, would make a query of a text that is itself computed too deep for Spark.

_SHORTEST, _WHOLE = 16, 26
"""Characters of a date with hours and minutes, and with six decimals of a second."""
_LONGEST = _WHOLE + len("+01:00")
_NO_DURATION = 100
"""More characters than any duration has: 19 digits a number at most, and 6 of decimals."""


def timestamp_of_text(text: Expr) -> Expr:
    """Of a date and a time with T or a blank between them, the microseconds since 1970; with Z or +HH:MM in UTC."""
    text = _part_moments_of_text(text, 0, _LONGEST + 1)
    length = call("length", text)
    zulu, sign = _is(text, minus(length, 1), "Z"), _part_moments_of_text(text, minus(length, 6), 1)
    zoned = both(no(zulu), no(below(call("find", constant("+-"), sign), 0)))
    end = minus(length, choose(zulu, 1, choose(zoned, 6, 0)))
    zone = choose(zoned, _part_moments_of_text(text, end, 6), constant("+00:00"))
    sized = no(
        both(no(same(end, _SHORTEST)), both(no(same(end, 19)), no(both(below(20, end), below(end, _WHOLE + 1)))))
    )
    missing = _part_moments_of_text(constant(":00.000000"), minus(end, _SHORTEST), _WHOLE - _SHORTEST)
    full = choose(sized, call("concatenate", _part_moments_of_text(text, 0, end), missing), "")
    marks = [_is(full, at, mark) for at, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":"), (19, "."))]
    marks += [_is(zone, 3, ":"), no(below(call("find", constant("T "), _part_moments_of_text(full, 10, 1)), 0))]
    # a number takes a sign: there are those of the date and of the zone, and no more
    signs = plus(*(call("length", call("split", text, constant(sign))) for sign in "+-"))
    marks.append(same(signs, choose(zoned, 5, 4)))
    year, month, day, hour, minute, second, decimals = (
        call("to_int", _part_moments_of_text(full, at, width))
        for at, width in ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2), (20, 6))
    )
    hours, minutes = (call("to_int", _part_moments_of_text(zone, at, 2)) for at in (1, 4))
    sixties = [below(number, 60) for number in (minute, second, minutes)]
    ranges = [_is_day(year, month, day), below(hour, 24), below(hours, 24), *sixties]
    offset = plus(times(hours, 60), minutes)
    offset = choose(call("equal", sign, constant("-")), minus(0, offset), offset)
    passed = minus(plus(times(plus(times(days_of(year, month, day), 24), hour), 60), minute), offset)
    moment = plus(times(plus(times(passed, 60), second), SECOND), decimals)
    return choose(reduce(both, [*marks, *ranges]), kept(moment, types.TIMESTAMP), None)


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
    text = _part_moments_of_text(text, 0, _NO_DURATION)
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
    padded = call("concatenate", decimals, _part_moments_of_text(constant("00000"), minus(given, 1), 5))
    fraction = choose(both(below(0, given), below(given, 7)), _below_0(padded), None)
    return choose(same(count, 1), whole, choose(same(count, 2), plus(whole, fraction), None))


def _below_0(digits: Expr) -> Expr:
    return call("to_int", call("concatenate", constant("-"), digits))


def _empty(text: Expr) -> Expr:
    return call("equal", text, constant(""))


def _is(text: Expr, at: Expr | int, mark: str) -> Expr:
    """Whether a text has a mark at a place."""
    return call("equal", _part_moments_of_text(text, at, 1), constant(mark))


def _piece(pieces: Expr, number: int) -> Expr:
    return call("element", pieces, constant(number))


def _part_moments_of_text(text: Expr, start: Expr | int, length: Expr | int) -> Expr:
    start, length = (value if isinstance(value, Expr) else constant(value) for value in (start, length))
    return call("substring", text, start, length)


def to_int(value: Expr) -> Expr:
    """Decimals cut toward zero; days of a date, microseconds of a timestamp, a time or a duration."""
    if isinstance(value.type, types.DecimalOf):
        return decimals.to_int(value)
    if value.type in MOMENTS:
        return stored("to_int", types.INT, lambda count: count, value)
    return call("to_int", value)


def to_float(value: Expr) -> Expr:
    """The nearest float of a number."""
    if value.type in MOMENTS:
        raise ExpressionError(f"a {value.type} is no float: take F.cast(x, int) first, in `{show(value)}`")
    return number_to_float(value)


def to_str(value: Expr) -> Expr:
    """The text: ISO 8601 of dates, timestamps and times, the digits of a decimal, the string of a category."""
    if isinstance(value.type, types.DecimalOf):
        return decimals.to_str(value)
    if isinstance(value.type, types.CategoryOf):
        return stored("to_str", types.STR, lambda text: text, value)
    if value.type == types.DURATION:
        raise ExpressionError(f"a duration has no text: take F.cast(x, int), its microseconds, in `{show(value)}`")
    if value.type in MOMENTS:
        written = {types.DATE: date_text, types.TIMESTAMP: _timestamp_text, types.TIME: _time_text}[value.type]
        return stored("to_str", types.STR, written, value)
    return call("to_str", value)


def to_date(value: Expr) -> Expr:
    """The day of a timestamp; of text YYYY-MM-DD; of the days since 1970-01-01. Null where there is none."""
    if value.type == types.TIMESTAMP:
        return stored("to_date", types.DATE, lambda moment: over(moment, DAY), value)
    if value.type == types.STR:
        return stored("to_date", types.DATE, date_of_text, value)
    return _counted("to_date", types.DATE, value)


def to_timestamp(value: Expr) -> Expr:
    """The midnight that begins a date; of ISO 8601 text; of the microseconds since 1970. Null where there is none."""
    if value.type == types.DATE:
        return stored("to_timestamp", types.TIMESTAMP, lambda days: times(days, DAY), value)
    if value.type == types.STR:
        return stored("to_timestamp", types.TIMESTAMP, timestamp_of_text, value)
    return _counted("to_timestamp", types.TIMESTAMP, value)


def to_time(value: Expr) -> Expr:
    """The time of day of a timestamp; of ISO 8601 text; of microseconds since midnight. Null where there is none."""
    if value.type == types.TIMESTAMP:
        return stored("to_time", types.TIME, lambda moment: rest(moment, DAY), value)
    if value.type == types.STR:
        return stored("to_time", types.TIME, time_of_text, value)
    return _counted("to_time", types.TIME, value)


def to_duration(value: Expr) -> Expr:
    """The duration since midnight of a time of day; of ISO 8601 text; or of so many microseconds."""
    if value.type in (types.TIME, types.INT):
        return stored("to_duration", types.DURATION, lambda length: length, value)
    if value.type == types.STR:
        return stored("to_duration", types.DURATION, duration_of_text, value)
    return _counted("to_duration", types.DURATION, value)


def _counted(name: str, type_: types.Logical, value: Expr) -> Expr:
    if value.type == type_:
        return value
    if value.type == types.INT:
        return stored(name, type_, lambda count: kept(count, type_), value)
    raise Mistyped(f"{value.type} cannot be cast to {type_}")


def to_decimal(value: Expr, scale: int) -> Expr:
    """With so many decimals: of ints and text exactly, of decimals and floats half to even. Null beyond 64 bits."""
    if value.type == types.FLOAT:
        return decimals.from_float(value, scale)
    if isinstance(value.type, types.DecimalOf) or value.type == types.INT:
        return decimals.from_decimal(value, scale)
    if value.type == types.STR:
        return stored(
            "to_decimal", types.decimal(scale), lambda text, _: decimal_of_text(text, scale), value, constant(scale)
        )
    raise Mistyped(f"{value.type} cannot be cast to decimal({scale})")


def to_category(value: Expr, listed: Expr) -> Expr:
    """The category of a string; null where it is none of the list."""
    if not isinstance(listed, Constant) or not isinstance(listed.value, tuple):
        raise Mistyped("a category is a list of strings written in the query")
    if value.type != types.STR and not isinstance(value.type, types.CategoryOf):
        raise Mistyped(f"{value.type} cannot be cast to a category: cast it to str first")
    type_ = types.category(*listed.value)

    def known(text: Expr, _: Expr) -> Expr:
        found: list[Expr] = [same(text, constant(item)) for item in listed.value]
        while len(found) > 1:  # in pairs: as deep as the logarithm of their number
            pairs = zip(found[::2], [*found[1::2], constant(False)], strict=False)
            found = [call("not", call("and", call("not", a), call("not", b))) for a, b in pairs]
        return choose(found[0], text, None)

    return stored("to_category", type_, known, value, listed)


# --- text -------------------------------------------------------------------------------------------------------------


def _time_text(moment: Expr) -> Expr:
    """HH:MM:SS, and .ffffff where it is not a whole second."""
    fraction = rest(moment, SECOND)
    tail = call("where", same(fraction, 0), constant(""), joined(constant("."), padded(fraction, 6)))
    return joined(clock_text(over(moment, SECOND)), tail)


def _timestamp_text(moment: Expr) -> Expr:
    return joined(date_text(over(moment, DAY)), constant("T"), _time_text(rest(moment, DAY)))
