"""Functions of single values: comparison, logic, choice and null; arithmetic; strings."""

from __future__ import annotations

import operator
from typing import Any

from wpinq.expr import build, catalogue, decimals, definition, types
from wpinq.expr.build import call, constant, static_int
from wpinq.expr.catalogue import divide, floor_divide, less, negate, null_if_any
from wpinq.expr.declare import derived, primitive
from wpinq.expr.definition import Amount, Amounts, Mistyped, Types, define, expect, fit_number, handled, moved, strict
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.values import Value


def _same_type(given: Types, attributes: object) -> types.Type:
    left, right = given
    if types.unify(left, right) is None or not (types.is_record_type(left) and types.is_record_type(right)):
        raise Mistyped(f"cannot compare {left} with {right}{_of_text(left, right)}")
    return types.BOOL


def _ordered(given: Types, attributes: object) -> types.Type:
    left, right = given
    common = types.unify(left, right)
    if isinstance(common, types.CategoryOf):
        raise Mistyped(f"categories are in no order: compare their text, F.cast(x, str), not {left}")
    if not isinstance(common, types.Scalar):
        raise Mistyped(f"cannot order {left} and {right}{_of_text(left, right)}")
    return types.BOOL.with_nullable(definition.any_null(given))


def _of_text(*sides: types.Type) -> str:
    """The way from text to the type of the other side, if one is text."""
    other = {side.with_nullable(False) for side in sides} - {types.STR}
    ways = {
        types.DATE: "write a date as datetime.date(2024, 1, 31)",
        types.TIMESTAMP: "write a moment as datetime.datetime(2024, 1, 31)",
        types.TIME: "write a time of day as datetime.time(12, 30)",
        types.INT: "write a number without quotes; of a column, F.cast(x, int)",
        types.FLOAT: "write a number without quotes; of a column, F.cast(x, float)",
    }
    return "".join(f": {ways[one]}" for one in other if len(other) == 1 and one in ways)


def _booleans(given: Types, attributes: object) -> types.Type:
    for type_ in given:
        if type_.with_nullable(False) in (types.INT, types.FLOAT):
            raise Mistyped(f"logic takes bool, not {type_}: compare in parentheses, as in (x > a) & (x < b)")
    expect(given, types.BOOL, what="logic takes bool")
    return types.BOOL.with_nullable(definition.any_null(given))


def _choice(given: Types, attributes: object) -> types.Type:
    expect(given[:1], types.BOOL, what="a condition must be bool")
    common = types.unify(given[1], given[2])
    if common is None:
        raise Mistyped(f"both branches need one type, got {given[1]} and {given[2]}")
    return common


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


define("equal", 2, _same_type, operator.eq, work=handled)
define("less", 2, _ordered, strict(operator.lt), work=handled)
define("and", 2, _booleans, _and, work=handled)
define("not", 1, _booleans, strict(operator.not_), work=handled)


@primitive(
    _choice,
    lambda condition, yes, no: yes if condition else no,
    work=moved,
    call=lambda condition, yes, no: build.call("where", condition, *catalogue.promote(yes, no)),
)
def where(condition: object, yes: object, no: object) -> Any:
    """`yes` if the condition is true, otherwise `no`, also for a null condition."""


@primitive(lambda given, attributes: types.BOOL, lambda a: a is None, work=moved)
def is_null(value: object) -> Any:
    """Whether the value is null."""


# Arithmetic, and the functions of numbers.


def _arithmetic(given: Types, attributes: object) -> types.Type:
    left, right = given
    expect(given, types.INT, types.FLOAT, what="arithmetic takes int or float")
    common = types.unify(left, right)
    if common is None:
        raise Mistyped(f"cannot mix {left} and {right} here")
    return (types.INT if common == types.NULL else common).with_nullable()


def _integers(given: Types, attributes: object) -> types.Type:
    expect(given, types.INT, what="// and % take integers (for floats use F.floor(a / b))")
    return types.INT.with_nullable()


def _floats(given: Types, attributes: object) -> types.Type:
    expect(given, types.FLOAT, what="/ takes numbers")
    return types.FLOAT.with_nullable()


define("add", 2, _arithmetic, strict(lambda a, b: fit_number(a + b)), work=handled)
define("subtract", 2, _arithmetic, strict(lambda a, b: fit_number(a - b)), work=handled)
define("multiply", 2, _arithmetic, strict(lambda a, b: fit_number(a * b)), work=handled)
define("divide", 2, _floats, strict(lambda a, b: fit_number(a / b) if b else None), work=handled)
define("floor_divide", 2, _integers, strict(lambda a, b: fit_number(a // b) if b else None), work=handled)
define("modulo", 2, _integers, strict(lambda a, b: a % b if b else None), work=handled)


def _absolute(value: Expr) -> Expr:
    if value.type == types.DURATION or isinstance(value.type, types.DecimalOf):
        return call("where", call("less", value, Constant(value.type, 0)), negate(value), value)
    zero = constant(0.0) if value.type == types.FLOAT else constant(0)
    return call("where", less(value, zero), call("subtract", zero, value), value)


def _floor(value: Expr) -> Expr:
    if isinstance(value.type, types.DecimalOf):
        return decimals.floor(value)
    if value.type != types.FLOAT:
        raise Mistyped(f"floor takes a float, not {value.type}")
    whole = call("to_int", value)
    below = call("less", value, call("to_float", whole))
    return call("where", below, call("subtract", whole, constant(1)), whole)


def _bucket(value: Expr, width: Expr) -> Expr:
    if types.FLOAT not in (value.type, width.type):
        return floor_divide(value, width)
    return _floor(divide(value, width).core)


def _quotient(value: Expr, divisor: Expr, scale: Expr) -> Expr:
    return decimals.quotient(value, divisor, static_int(scale, "the scale of a quotient", most=types.SCALE_LIMIT))


@derived(_absolute)
def absolute(value: object) -> Any:
    """The number without its sign; also written `abs(x)`."""


@derived(_floor)
def floor(value: object) -> Any:
    """The greatest integer not above a float or a decimal."""


@derived(_bucket)
def bucket(value: object, width: object) -> Any:
    """`⌊value / width⌋` as an int, of numbers or of durations."""


@derived(_quotient)
def quotient(value: object, divisor: object, scale: int) -> Any:
    """`value / divisor` of decimals and ints, half to even; null on division by 0.

    The result is a decimal of `scale` decimals.
    """


# Functions of strings.


def _text(result: types.Type, *parameters: types.Type) -> definition.TypingRule:
    def typing(given: Types, attributes: object) -> types.Type:
        for type_, expected in zip(given, parameters, strict=True):
            expect((type_,), expected, what=f"expected {expected}")
        return result.with_nullable(definition.any_null(given))

    return typing


def _concatenated(given: Types, attributes: object) -> types.Type:
    return _text(types.STR, types.STR, types.STR)(given, ()).with_nullable()


def _within_limit(a: str, b: str) -> Value:
    return a + b if len(a) + len(b) <= definition.TEXT_LIMIT else None


def _both(sizes: Amounts, texts: Amounts, result: types.Type) -> tuple[Amount, Amount]:
    text = sum(texts, Amount()).capped(definition.TEXT_LIMIT)
    return 1 + text, text


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _part(text: str, start: int, length: int) -> Value:
    return text[max(0, start) : max(0, start, start + length)]


def _pieces(given: Types, attributes: object) -> types.Type:
    return types.ListOf(types.STR, nullable=_text(types.STR, types.STR, types.STR)(given, ()).nullable)


@primitive(_concatenated, strict(_within_limit), work=_both)
def concatenate(a: object, b: object) -> Any:
    """`a + b` of two strings."""


@primitive(_text(types.INT, types.STR, types.STR), strict(lambda text, part: text.find(part)), work=handled)
def find(text: object, part: object) -> Any:
    """The position of the first occurrence of `part`, from 0, or -1."""


@primitive(_text(types.STR, types.STR), strict(lambda text: text.translate(_LOWER)), work=handled)
def lower(text: object) -> Any:
    """The string with A to Z in lower case; other letters stay, so that every engine agrees."""


@primitive(_text(types.STR, types.STR, types.INT, types.INT), strict(_part), work=handled)
def substring(text: object, start: object, length: object) -> Any:
    """At most `length` code points of the string from position `start`, counted from 0."""


@primitive(_pieces, strict(lambda text, by: tuple(text.split(by)) if by else (text,)), work=handled)
def split(text: object, separator: object) -> Any:
    """The pieces of a string between separators; the whole string for an empty separator."""


def _starts_with(text: Expr, prefix: Expr) -> Expr:
    head = call("substring", text, constant(0), call("length", prefix))
    return null_if_any((text, prefix), call("equal", head, prefix))


@derived(lambda text, part: call("not", call("less", call("find", text, part), constant(0))))
def contains(text: object, part: object) -> Any:
    """Whether `part` occurs in the string."""


@derived(_starts_with)
def starts_with(text: object, prefix: object) -> Any:
    """Whether the string begins with `prefix`."""
