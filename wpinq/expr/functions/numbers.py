"""Arithmetic, and the functions of numbers."""

from __future__ import annotations

from typing import Any

from wpinq.expr import decimals
from wpinq.expr.build import call, constant, static_int
from wpinq.expr.catalogue import divide, floor_divide, less, negate
from wpinq.expr.declare import derived
from wpinq.expr.definition import CallAttributes, Mistyped, Types, define, expect, fit_number, handled, strict
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.types import DURATION, FLOAT, INT, NULL, SCALE_LIMIT, DecimalOf, Type, unify


def _arithmetic(types: Types, attributes: CallAttributes) -> Type:
    left, right = types
    expect(types, INT, FLOAT, what="arithmetic takes int or float")
    common = unify(left, right)
    if common is None:
        raise Mistyped(f"cannot mix {left} and {right} here")
    return (INT if common == NULL else common).with_nullable()


def _integers(types: Types, attributes: CallAttributes) -> Type:
    expect(types, INT, what="// and % take integers (for floats use F.floor(a / b))")
    return INT.with_nullable()


def _floats(types: Types, attributes: CallAttributes) -> Type:
    expect(types, FLOAT, what="/ takes numbers")
    return FLOAT.with_nullable()


define("add", 2, _arithmetic, strict(lambda a, b: fit_number(a + b)), work=handled)
define("subtract", 2, _arithmetic, strict(lambda a, b: fit_number(a - b)), work=handled)
define("multiply", 2, _arithmetic, strict(lambda a, b: fit_number(a * b)), work=handled)
define("divide", 2, _floats, strict(lambda a, b: fit_number(a / b) if b else None), work=handled)
define("floor_divide", 2, _integers, strict(lambda a, b: fit_number(a // b) if b else None), work=handled)
define("modulo", 2, _integers, strict(lambda a, b: a % b if b else None), work=handled)


def _absolute(value: Expr) -> Expr:
    if value.type == DURATION or isinstance(value.type, DecimalOf):
        negative = call("less", value, Constant(value.type, 0))
        return call("where", negative, negate(value), value)
    zero = constant(0.0) if value.type == FLOAT else constant(0)
    return call("where", less(value, zero), call("subtract", zero, value), value)


def _floor(value: Expr) -> Expr:
    if isinstance(value.type, DecimalOf):
        return decimals.floor(value)
    if value.type != FLOAT:
        raise Mistyped(f"floor takes a float, not {value.type}")
    whole = call("to_int", value)
    below = call("less", value, call("to_float", whole))
    return call("where", below, call("subtract", whole, constant(1)), whole)


def _bucket(value: Expr, width: Expr) -> Expr:
    if FLOAT not in (value.type, width.type):
        return floor_divide(value, width)
    return _floor(divide(value, width).core)


def _quotient(value: Expr, divisor: Expr, scale: Expr) -> Expr:
    return decimals.quotient(value, divisor, static_int(scale, "the scale of a quotient", most=SCALE_LIMIT))


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
