"""Casts between logical types and others: int, float and text of a value, and values of an int or a text."""

from __future__ import annotations

from wpinq.errors import ExpressionError
from wpinq.expr import decimal_casts
from wpinq.expr.build import call, constant, stored
from wpinq.expr.definition import Mistyped
from wpinq.expr.infix import to_float as number_to_float
from wpinq.expr.integers import choose, over, rest, same, times
from wpinq.expr.logical_values import DAY, SECOND
from wpinq.expr.moments import MOMENTS, kept
from wpinq.expr.moments_of_text import duration_of_text, timestamp_of_text
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.printing import show
from wpinq.expr.text_casts import (
    clock_text,
    date_of_text,
    date_text,
    decimal_of_text,
    joined,
    padded,
    time_of_text,
)
from wpinq.expr.types import (
    DATE,
    DURATION,
    FLOAT,
    INT,
    STR,
    TIME,
    TIMESTAMP,
    CategoryOf,
    DecimalOf,
    Logical,
    category,
    decimal,
)


def to_int(value: Expr) -> Expr:
    """Decimals cut toward zero; days of a date, microseconds of a timestamp, a time or a duration."""
    if isinstance(value.type, DecimalOf):
        return decimal_casts.to_int(value)
    if value.type in MOMENTS:
        return stored("to_int", INT, lambda count: count, value)
    return call("to_int", value)


def to_float(value: Expr) -> Expr:
    """The nearest float of a number."""
    if value.type in MOMENTS:
        raise ExpressionError(f"a {value.type} is no float: take wp.cast(x, int) first, in `{show(value)}`")
    return number_to_float(value)


def to_str(value: Expr) -> Expr:
    """The text: ISO 8601 of dates, timestamps and times, the digits of a decimal, the string of a category."""
    if isinstance(value.type, DecimalOf):
        return decimal_casts.to_str(value)
    if isinstance(value.type, CategoryOf):
        return stored("to_str", STR, lambda text: text, value)
    if value.type == DURATION:
        raise ExpressionError(f"a duration has no text: take wp.cast(x, int), its microseconds, in `{show(value)}`")
    if value.type in MOMENTS:
        written = {DATE: date_text, TIMESTAMP: _timestamp_text, TIME: _time_text}[value.type]
        return stored("to_str", STR, written, value)
    return call("to_str", value)


def to_date(value: Expr) -> Expr:
    """The day of a timestamp; of text YYYY-MM-DD; of the days since 1970-01-01. Null where there is none."""
    if value.type == TIMESTAMP:
        return stored("to_date", DATE, lambda moment: over(moment, DAY), value)
    if value.type == STR:
        return stored("to_date", DATE, date_of_text, value)
    return _counted("to_date", DATE, value)


def to_timestamp(value: Expr) -> Expr:
    """The midnight that begins a date; of ISO 8601 text; of the microseconds since 1970. Null where there is none."""
    if value.type == DATE:
        return stored("to_timestamp", TIMESTAMP, lambda days: times(days, DAY), value)
    if value.type == STR:
        return stored("to_timestamp", TIMESTAMP, timestamp_of_text, value)
    return _counted("to_timestamp", TIMESTAMP, value)


def to_time(value: Expr) -> Expr:
    """The time of day of a timestamp; of ISO 8601 text; of microseconds since midnight. Null where there is none."""
    if value.type == TIMESTAMP:
        return stored("to_time", TIME, lambda moment: rest(moment, DAY), value)
    if value.type == STR:
        return stored("to_time", TIME, time_of_text, value)
    return _counted("to_time", TIME, value)


def to_duration(value: Expr) -> Expr:
    """The duration since midnight of a time of day; of ISO 8601 text; or of so many microseconds."""
    if value.type in (TIME, INT):
        return stored("to_duration", DURATION, lambda length: length, value)
    if value.type == STR:
        return stored("to_duration", DURATION, duration_of_text, value)
    return _counted("to_duration", DURATION, value)


def _counted(name: str, type_: Logical, value: Expr) -> Expr:
    if value.type == type_:
        return value
    if value.type == INT:
        return stored(name, type_, lambda count: kept(count, type_), value)
    raise Mistyped(f"{value.type} cannot be cast to {type_}")


def to_decimal(value: Expr, scale: int) -> Expr:
    """With so many decimals: of ints and text exactly, of decimals and floats half to even. Null beyond 64 bits."""
    if value.type == FLOAT:
        return decimal_casts.from_float(value, scale)
    if isinstance(value.type, DecimalOf) or value.type == INT:
        return decimal_casts.from_decimal(value, scale)
    if value.type == STR:
        return stored(
            "to_decimal", decimal(scale), lambda text, _: decimal_of_text(text, scale), value, constant(scale)
        )
    raise Mistyped(f"{value.type} cannot be cast to decimal({scale})")


def to_category(value: Expr, listed: Expr) -> Expr:
    """The category of a string; null where it is none of the list."""
    if not isinstance(listed, Constant) or not isinstance(listed.value, tuple):
        raise Mistyped("a category is a list of strings written in the query")
    if value.type != STR and not isinstance(value.type, CategoryOf):
        raise Mistyped(f"{value.type} cannot be cast to a category: cast it to str first")
    type_ = category(*listed.value)

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
