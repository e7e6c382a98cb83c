"""Casts between types, and constants of the logical types as text writes them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr import casts
from wpinq.expr.build import static_int, static_text
from wpinq.expr.declare import derived, function, in_python, primitive
from wpinq.expr.definition import Amount, CallAttributes, Mistyped, Types, TypingRule, expect, fit_number, handled, most
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    SCALE_LIMIT,
    STR,
    TIME,
    TIMESTAMP,
    CategoryOf,
    DecimalOf,
    Logical,
    Type,
)
from wpinq.expr.types import (
    decimal as decimal_type,
)
from wpinq.expr.values import UnfitValue, Value, decimals_of, parse

INT_TEXT = 20
"""The most code points of an int as text."""

_PLAIN_INT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PLAIN_FLOAT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?", re.ASCII)


def _cast_to(target: Type, *sources: Type) -> TypingRule:
    def typing(types: Types, attributes: CallAttributes) -> Type:
        expect(types, *sources, what=f"only {', '.join(map(str, sources))} can be cast to {target}")
        lossless = (types[0], target) in ((BOOL, INT), (INT, FLOAT), (INT, STR), (BOOL, STR), (STR, STR))
        return target.with_nullable(types[0].nullable or not (lossless or types[0] == target))

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


def _written(sizes: tuple[Amount, ...], texts: tuple[Amount, ...], given: Type) -> tuple[Amount, Amount]:
    steps, text = handled(sizes, texts, given)
    return steps, most(text, INT_TEXT)


@primitive(_cast_to(INT, INT, FLOAT, BOOL, STR), _int_of, work=handled, call=casts.to_int, in_python=False)
def to_int(value: object) -> Any:
    """The value as an int; null where it cannot be said."""


@primitive(_cast_to(FLOAT, INT, FLOAT, STR), _float_of, work=handled, call=casts.to_float, in_python=False)
def to_float(value: object) -> Any:
    """The value as a float; null where it cannot be said."""


@primitive(_cast_to(STR, INT, BOOL, STR), _str_of, work=_written, call=casts.to_str, in_python=False)
def to_str(value: object) -> Any:
    """The value as a string."""


def _literal(type_: Logical) -> Callable[[Expr], Expr]:
    return lambda text: _read(text, type_)


def _read(text: Expr, type_: Logical) -> Constant:
    try:
        return Constant(type_, parse(static_text(text, f"a {type_}"), type_))
    except (UnfitValue, Mistyped) as reason:
        moment = type_ in (DATE, TIMESTAMP, TIME, DURATION)
        fix = f"; of a text in records, to_{type_}(text)" if moment else ""
        raise ExpressionError(f"a constant {type_} cannot be made: {reason}{fix}") from None


def _decimal_literal(text: Expr) -> Expr:
    scale = decimals_of(text.value) if isinstance(text, Constant) and isinstance(text.value, str) else None
    if scale is None or scale > SCALE_LIMIT:
        raise ExpressionError(
            f'a constant decimal is its digits in quotes, at most {SCALE_LIMIT} of them decimals: decimal("1.50")'
        )
    return _read(text, decimal_type(scale))


@function(_literal(DATE), in_python=False)
def date(text: str) -> Any:
    """A constant date: `date("2024-02-29")`."""


@function(_literal(TIMESTAMP), in_python=False)
def timestamp(text: str) -> Any:
    """A constant timestamp, with a zone converted to UTC: `timestamp("2024-02-29T12:30:00+01:00")`."""


@function(_literal(TIME), in_python=False)
def time(text: str) -> Any:
    """A constant time of day: `time("12:30:00")`."""


@function(_literal(DURATION), in_python=False)
def duration(text: str) -> Any:
    """A constant duration, in ISO 8601 form: `duration("P1DT2H30M")`."""


@function(_decimal_literal, in_python=False)
def decimal(text: str) -> Any:
    """A constant decimal, with the decimals that it is written with: `decimal("1.50")`."""


@derived(casts.to_date, in_python=False)
def to_date(value: object) -> Any:
    """The day of a timestamp, of text `YYYY-MM-DD`, or of days since 1970-01-01; null where there is none."""


@derived(casts.to_timestamp, in_python=False)
def to_timestamp(value: object) -> Any:
    """The midnight that begins a date; of ISO 8601 text, in UTC where it has a zone; of microseconds since 1970.

    Null where there is none.
    """


@derived(casts.to_time, in_python=False)
def to_time(value: object) -> Any:
    """The time of day of a timestamp, of text `HH:MM[:SS[.f]]`, or of microseconds since midnight; else null."""


@derived(casts.to_duration, in_python=False)
def to_duration(value: object) -> Any:
    """The duration of so many microseconds, of text such as `P1DT2H30M` or `-PT0.5S`, or since midnight of a time.

    Null where there is none; a number in the text has at most 19 digits.
    """


def _to_decimal(value: Expr, scale: Expr) -> Expr:
    return casts.to_decimal(value, static_int(scale, "a scale", most=SCALE_LIMIT))


@derived(_to_decimal, in_python=False)
def to_decimal(value: object, scale: int) -> Any:
    """With so many decimals, half to even where there are fewer; null beyond 64 bits.

    Of text, digits with at most so many decimals, exactly; null of any other text.
    """


@derived(casts.to_category, in_python=False)
def to_category(value: object, values: list[str]) -> Any:
    """The string as a category of this list; null where it is none of it."""


@in_python
def cast(value: object, target: Any) -> Any:
    """The value as another type; null where it cannot be said.

    To int, float or str: a float is cut toward zero, a string must be a plain decimal number, a bool is 1 or 0, or
    "true" or "false". To `datetime.date`, `datetime.datetime`, `datetime.time`, `datetime.timedelta`,
    `wp.decimal(2)` or `wp.category("a", "b")`, and back.
    """
    if isinstance(target, DecimalOf):
        return to_decimal(value, target.scale)
    if isinstance(target, CategoryOf):
        return to_category(value, list(target.listed))
    casts: dict[object, Callable[[object], Any]] = {
        int: to_int,
        float: to_float,
        str: to_str,
        datetime.date: to_date,
        datetime.datetime: to_timestamp,
        datetime.time: to_time,
        datetime.timedelta: to_duration,
    }
    made = casts.get(target) if isinstance(target, type) else None
    if made is None:
        raise ExpressionError(
            "cast goes to int, float, str, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, "
            f"wp.decimal(2) or wp.category(...), not {target!r}; for bool compare with !="
        )
    return made(value)
