"""Casts between types, lists written in place, and constants of the logical types."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from wpinq.errors import ExpressionError, described
from wpinq.expr import decimals, definition, types
from wpinq.expr.build import call, constant, listed, static_int, static_text, stored
from wpinq.expr.catalogue import promote, to_float as number_to_float
from wpinq.expr.decimals import below, both, choose, joined, minus, no, over, part, plus, rest, same, times
from wpinq.expr.declare import derived, function, in_python, primitive
from wpinq.expr.definition import Amount, Amounts, Mistyped, Types, expect, fit_number, handled, most
from wpinq.expr.nodes import Constant, Expr, show
from wpinq.expr.temporal import MOMENTS, civil, days_of, kept
from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type
from wpinq.expr.values import DAY, SECOND, UnfitValue, Value, decimals_of, parse

#: The most code points of an int as text.
INT_TEXT = 20

_PLAIN_INT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PLAIN_FLOAT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?", re.ASCII)


def _cast_to(target: Type, *sources: Type) -> definition.TypingRule:
    def typing(given: Types, attributes: definition.CallAttributes) -> Type:
        expect(given, *sources, what=f"only {', '.join(map(str, sources))} can be cast to {target}")
        lossless = (given[0], target) in ((BOOL, INT), (INT, FLOAT), (INT, STR), (BOOL, STR), (STR, STR))
        return target.with_nullable(given[0].nullable or not (lossless or given[0] == target))

    return typing


def _int_of(value: Any) -> Value:
    if isinstance(value, str):
        return fit_number(int(value)) if _PLAIN_INT.fullmatch(value) else None
    return None if value is None else fit_number(int(value))


def _float_of(value: Any) -> Value:
    if isinstance(value, str) and not _PLAIN_FLOAT.fullmatch(value):
        return None
    return None if value is None else fit_number(float(value))


def _str_of(value: Any) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _written(sizes: Amounts, texts: Amounts, given: Type) -> tuple[Amount, Amount]:
    steps, text = handled(sizes, texts, given)
    return steps, most(text, INT_TEXT)


# Dates, times of day and decimals of text, in ISO 8601 and plain digits; null of whatever else a text says.
#
# Digits are read where they must stand, and written out anew: only where that gives the text again is it one.


def padded(number: Expr, width: int) -> Expr:
    """The last `width` digits of a number that is not negative and has no more."""
    return part(call("to_str", plus(number, 10**width)), 1, width)


def date_text(days: Expr) -> Expr:
    """YYYY-MM-DD."""
    year, month, day = civil(days)
    return joined(padded(year, 4), "-", padded(month, 2), "-", padded(day, 2))


def clock_text(seconds: Expr) -> Expr:
    """HH:MM:SS."""
    hours, minutes = over(seconds, 3600), rest(over(seconds, 60), 60)
    return joined(padded(hours, 2), ":", padded(minutes, 2), ":", padded(rest(seconds, 60), 2))


def date_of_text(text: Expr) -> Expr:
    """Of YYYY-MM-DD, the days since 1970-01-01."""
    days = kept(days_of(*(_number(text, a, n) for a, n in ((0, 4), (5, 2), (8, 2)))), types.DATE)
    return choose(same(date_text(days), text), days, None)


def time_of_text(text: Expr) -> Expr:
    """The microseconds since midnight of HH:MM, HH:MM:SS or HH:MM:SS.f with 1 to 6 decimals."""
    length = call("length", text)
    whole = choose(below(length, 16), joined(text, part("000000", 0, minus(15, length))), "")
    whole = choose(below(length, 10), "", whole)
    whole = choose(same(length, 8), joined(text, ".000000"), whole)
    whole = choose(same(length, 5), joined(text, ":00.000000"), whole)
    hours, minutes, seconds = (_number(whole, a, 2) for a in (0, 3, 6))
    seconds = plus(times(plus(times(hours, 60), minutes), 60), seconds)
    moment = kept(plus(times(seconds, SECOND), _number(whole, 9, 6)), types.TIME)
    written = joined(clock_text(over(moment, SECOND)), ".", padded(rest(moment, SECOND), 6))
    return choose(same(written, whole), moment, None)


def decimal_of_text(text: Expr, scale: int) -> Expr:
    """The count of the last decimal, of digits with a sign and at most `scale` decimals."""
    first = part(text, 0, 1)
    negative = same(first, "-")
    signed = call("not", both(no(negative), no(same(first, "+"))))
    body = part(text, choose(signed, 1, 0), call("length", text))
    pieces = call("split", body, constant("."))
    whole, decimals = (_element(pieces, i) for i in (0, 1))
    count = call("length", pieces)
    units = _scaled(whole, scale, negative)
    given = call("length", decimals)
    # a 1 before them: no sign is taken for a digit, and they are all there are
    digits = joined("1", decimals, part("0" * scale, 0, minus(scale, given)))
    small = minus(call("to_int", choose(below(scale, given), "", digits)), 10**scale)
    small = choose(below(0, given), small, None)
    exact = choose(negative, minus(units, small), plus(units, small))
    return choose(same(count, 1), units, choose(same(count, 2), exact, None))


def _scaled(whole: Expr, scale: int, negative: Expr) -> Expr:
    """Digits before the point, of which the first is none of two signs."""
    first = part(whole, 0, 1)
    unsigned = both(*(no(same(first, sign)) for sign in ("+", "-")))
    text = choose(negative, joined("-", whole), whole)
    return times(call("to_int", choose(unsigned, text, "")), 10**scale)


def _element(pieces: Expr, number: int) -> Expr:
    return call("element", pieces, constant(number))


def _number(text: Expr, start: int, length: int) -> Expr:
    return call("to_int", part(text, start, length))


# Timestamps and durations of text in ISO 8601, as `logical_values.parse` reads them; null of whatever else it says.
#
# Fields are cut out where they stand and read as whole numbers, once each. To write the moment out anew and compare, as
# is done for a date, would make a query of a text that is itself computed too deep for Spark.

#: Characters of a date with hours and minutes, and with six decimals of a second.
_SHORTEST, _WHOLE = 16, 26
_LONGEST = _WHOLE + len("+01:00")
#: More characters than any duration has: 19 digits a number at most, and 6 of decimals.
_NO_DURATION = 100


def timestamp_of_text(text: Expr) -> Expr:
    """The microseconds since 1970 of a date and a time with T or a blank between them.

    With Z or +HH:MM they are in UTC.
    """
    text = part(text, 0, _LONGEST + 1)
    length = call("length", text)
    zulu, sign = same(part(text, minus(length, 1), 1), "Z"), part(text, minus(length, 6), 1)
    zoned = both(no(zulu), no(below(call("find", constant("+-"), sign), 0)))
    end = minus(length, choose(zulu, 1, choose(zoned, 6, 0)))
    zone = choose(zoned, part(text, end, 6), "+00:00")
    sized = no(
        both(no(same(end, _SHORTEST)), both(no(same(end, 19)), no(both(below(20, end), below(end, _WHOLE + 1)))))
    )
    missing = part(":00.000000", minus(end, _SHORTEST), _WHOLE - _SHORTEST)
    full = choose(sized, joined(part(text, 0, end), missing), "")
    marks = [same(part(full, at, 1), mark) for at, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":"), (19, "."))]
    marks += [same(part(zone, 3, 1), ":"), no(below(call("find", constant("T "), part(full, 10, 1)), 0))]
    # a number takes a sign: there are those of the date and of the zone, and no more
    signs = plus(*(call("length", call("split", text, constant(sign))) for sign in "+-"))
    marks.append(same(signs, choose(zoned, 5, 4)))
    places = ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2), (20, 6))
    year, month, day, hour, minute, second, decimals = (_number(full, at, width) for at, width in places)
    hours, minutes = (_number(zone, at, 2) for at in (1, 4))
    sixties = [below(number, 60) for number in (minute, second, minutes)]
    ranges = [_is_day(year, month, day), below(hour, 24), below(hours, 24), *sixties]
    offset = plus(times(hours, 60), minutes)
    offset = choose(same(sign, "-"), minus(0, offset), offset)
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
    text = part(text, 0, _NO_DURATION)
    negative = same(part(text, 0, 1), "-")
    begin = choose(negative, 1, 0)
    left = part(text, plus(begin, 1), call("length", text))
    halves = call("split", left, constant("T"))
    days, nothing = _taken(_element(halves, 0), "D")
    hours, clock = _taken(_element(halves, 1), "H")
    minutes, clock = _taken(clock, "M")
    seconds, end = _taken(clock, "S", decimals=True)
    timed = same(call("length", halves), 2)
    clocked = plus(times(plus(times(hours, 60), minutes), 60 * SECOND), seconds)
    length = plus(times(days, 86_400 * SECOND), choose(timed, clocked, 0))
    well = [same(part(text, begin, 1), "P"), same(nothing, ""), no(both(timed, no(same(end, ""))))]
    well += [below(call("length", halves), 3), no(same(left, "")), no(same(left, "T"))]
    return choose(reduce(both, well), choose(negative, length, minus(0, length)), None)


def _below_0(digits: Expr) -> Expr:
    return call("to_int", joined("-", digits))


def _taken(text: Expr, unit: str, decimals: bool = False) -> tuple[Expr, Expr]:
    """The number before a unit, negated, and the rest; 0 and the text without the unit."""
    pieces = call("split", text, constant(unit))
    there = same(call("length", pieces), 2)
    number = (_seconds if decimals else _below_0)(_element(pieces, 0))
    return choose(there, number, 0), choose(there, _element(pieces, 1), text)


def _seconds(text: Expr) -> Expr:
    """The microseconds of so many seconds, with one to six decimals or none, below 0."""
    pieces = call("split", text, constant("."))
    whole, decimals = times(_below_0(_element(pieces, 0)), SECOND), _element(pieces, 1)
    count, given = call("length", pieces), call("length", decimals)
    padded = joined(decimals, part("00000", minus(given, 1), 5))
    fraction = choose(both(below(0, given), below(given, 7)), _below_0(padded), None)
    return choose(same(count, 1), whole, choose(same(count, 2), plus(whole, fraction), None))


def _time_text(moment: Expr) -> Expr:
    """HH:MM:SS, and .ffffff where it is not a whole second."""
    fraction = rest(moment, SECOND)
    tail = choose(same(fraction, 0), "", joined(".", padded(fraction, 6)))
    return joined(clock_text(over(moment, SECOND)), tail)


def _timestamp_text(moment: Expr) -> Expr:
    return joined(date_text(over(moment, DAY)), "T", _time_text(rest(moment, DAY)))


def _to_int(value: Expr) -> Expr:
    """The integer of a value: decimals cut toward zero, the count of a moment.

    The count is days of a date, microseconds of a timestamp, a time or a duration.
    """
    if isinstance(value.type, types.DecimalOf):
        return decimals.to_int(value)
    if value.type in MOMENTS:
        return stored("to_int", types.INT, lambda count: count, value)
    return call("to_int", value)


def _to_float(value: Expr) -> Expr:
    """The nearest float of a number."""
    if value.type in MOMENTS:
        raise ExpressionError(f"a {value.type} is no float: take F.cast(x, int) first, in `{show(value)}`")
    return number_to_float(value)


def _to_str(value: Expr) -> Expr:
    """The text of a value: ISO 8601, the digits of a decimal, the string of a category.

    ISO 8601 is for dates, timestamps and times.
    """
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


def _to_moment(
    type_: types.Logical, given: types.Logical, of_given: Callable[[Expr], Expr], of_text: Callable[[Expr], Expr]
) -> Callable[[Expr], Expr]:
    """The rule of a cast to a type of time: of another, of text, or of its number."""

    def rule(value: Expr) -> Expr:
        if value.type == type_:
            return value
        rules = {given: of_given, types.STR: of_text, types.INT: lambda count: kept(count, type_)}
        if value.type not in rules:
            raise Mistyped(f"{value.type} cannot be cast to {type_}")
        return stored("cast", type_, rules[value.type], value)

    return rule


def _to_decimal(value: Expr, written: Expr) -> Expr:
    """A decimal of `scale` decimals: ints and text exactly, others half to even.

    Null beyond 64 bits.
    """
    scale = static_int(written, "a scale", most=types.SCALE_LIMIT)
    if value.type == types.FLOAT:
        return decimals.from_float(value, scale)
    if isinstance(value.type, types.DecimalOf) or value.type == types.INT:
        return decimals.from_decimal(value, scale)
    if value.type == types.STR:
        type_ = types.decimal(scale)
        return stored("to_decimal", type_, lambda text, _: decimal_of_text(text, scale), value, constant(scale))
    raise Mistyped(f"{value.type} cannot be cast to decimal({scale})")


def _to_category(value: Expr, values: Expr) -> Expr:
    """The category of a string; null where it is none of the list."""
    if not isinstance(values, Constant) or not isinstance(values.value, tuple):
        raise Mistyped("a category is a list of strings written in the query")
    if value.type != types.STR and not isinstance(value.type, types.CategoryOf):
        raise Mistyped(f"{value.type} cannot be cast to a category: cast it to str first")
    type_ = types.category(*values.value)

    def known(text: Expr, _: Expr) -> Expr:
        found: builtins.list[Expr] = [same(text, item) for item in values.value]
        while len(found) > 1:  # in pairs: as deep as the logarithm of their number
            pairs = zip(found[::2], [*found[1::2], constant(False)], strict=False)
            found = [call("not", call("and", call("not", a), call("not", b))) for a, b in pairs]
        return choose(found[0], text, None)

    return stored("to_category", type_, known, value, values)


@primitive(_cast_to(INT, INT, FLOAT, BOOL, STR), _int_of, work=handled, call=_to_int, in_python=False)
def to_int(value: object) -> Any:
    """The value as an int; null where it cannot be said."""


@primitive(_cast_to(FLOAT, INT, FLOAT, STR), _float_of, work=handled, call=_to_float, in_python=False)
def to_float(value: object) -> Any:
    """The value as a float; null where it cannot be said."""


@primitive(_cast_to(STR, INT, BOOL, STR), _str_of, work=_written, call=_to_str, in_python=False)
def to_str(value: object) -> Any:
    """The value as a string."""


def _literal(type_: types.Logical) -> Callable[[Expr], Expr]:
    return lambda text: _read(text, type_)


def _read(text: Expr, type_: types.Logical) -> Constant:
    try:
        return Constant(type_, parse(static_text(text, f"a {type_}"), type_))
    except (UnfitValue, Mistyped) as reason:
        fix = f"; of a text in records, to_{type_}(text)" if type_ in MOMENTS else ""
        raise ExpressionError(f"a constant {type_} cannot be made: {reason}{fix}") from None


def _decimal_literal(text: Expr) -> Expr:
    scale = decimals_of(text.value) if isinstance(text, Constant) and isinstance(text.value, str) else None
    if scale is None or scale > types.SCALE_LIMIT:
        raise ExpressionError(
            f'a constant decimal is its digits in quotes, at most {types.SCALE_LIMIT} of them decimals: decimal("1.50")'
        )
    return _read(text, types.decimal(scale))


@function(_literal(types.DATE), in_python=False)
def date(text: str) -> Any:
    """A constant date: `date("2024-02-29")`."""


@function(_literal(types.TIMESTAMP), in_python=False)
def timestamp(text: str) -> Any:
    """A constant timestamp, in UTC: `timestamp("2024-02-29T12:30:00+01:00")`.

    A zone is converted.
    """


@function(_literal(types.TIME), in_python=False)
def time(text: str) -> Any:
    """A constant time of day: `time("12:30:00")`."""


@function(_literal(types.DURATION), in_python=False)
def duration(text: str) -> Any:
    """A constant duration, in ISO 8601 form: `duration("P1DT2H30M")`."""


@function(_decimal_literal, in_python=False)
def decimal(text: str) -> Any:
    """A constant decimal, with the decimals that it is written with: `decimal("1.50")`."""


@function(lambda *items: listed(*promote(*items)), counts=(0, definition.LIST_LIMIT), in_python=False)
def list(*items: object) -> Any:
    """A list written in place; an int with a float in it is a float."""


@derived(_to_moment(types.DATE, types.TIMESTAMP, lambda moment: over(moment, DAY), date_of_text), in_python=False)
def to_date(value: object) -> Any:
    """The day of a timestamp, of text `YYYY-MM-DD` or of days since 1970-01-01; else null."""


@derived(_to_moment(types.TIMESTAMP, types.DATE, lambda days: times(days, DAY), timestamp_of_text), in_python=False)
def to_timestamp(value: object) -> Any:
    """The timestamp of a date, of ISO 8601 text, or of microseconds since 1970; else null.

    A date gives its first midnight. Text with a zone is converted to UTC.
    """


@derived(_to_moment(types.TIME, types.TIMESTAMP, lambda moment: rest(moment, DAY), time_of_text), in_python=False)
def to_time(value: object) -> Any:
    """The time of day of a timestamp, of text, or of microseconds since midnight; else null.

    Text is `HH:MM[:SS[.f]]`.
    """


@derived(_to_moment(types.DURATION, types.TIME, lambda moment: moment, duration_of_text), in_python=False)
def to_duration(value: object) -> Any:
    """The duration of microseconds, of text, or since midnight of a time; else null.

    Text is such as `P1DT2H30M` or `-PT0.5S`; a number in it has at most 19 digits.
    """


@derived(_to_decimal, in_python=False)
def to_decimal(value: object, scale: int) -> Any:
    """With so many decimals, half to even where there are fewer; null beyond 64 bits.

    Of text, digits with at most so many decimals, exactly; null of any other text.
    """


@derived(_to_category, in_python=False)
def to_category(value: object, values: builtins.list[str]) -> Any:
    """The string as a category of this list; null where it is none of it."""


@in_python
def cast(value: object, target: Any) -> Any:
    """The value as another type; null if the conversion fails.

    To int, float or str: a float is cut toward zero, a string must be a plain decimal number, a bool is 1 or 0, or
    "true" or "false". To `datetime.date`, `datetime.datetime`, `datetime.time`, `datetime.timedelta`,
    `wp.decimal(2)` or `wp.category("a", "b")`, and back.
    """
    if isinstance(target, types.DecimalOf):
        return to_decimal(value, target.scale)
    if isinstance(target, types.CategoryOf):
        return to_category(value, builtins.list(target.listed))
    known = types.PYTHON_TYPES.get(target) if isinstance(target, type) else None
    made = globals().get(f"to_{known}")
    if made is None:
        raise ExpressionError(
            "cast goes to int, float, str, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, "
            f"wp.decimal(2) or wp.category(...), not {described(target)}; for bool compare with !="
        )
    return made(value)
