"""Functions of numbers."""

from __future__ import annotations

from typing import Any

from wpinq.expr import decimals
from wpinq.expr.build import call, constant, static_int
from wpinq.expr.declare import derived
from wpinq.expr.definition import Mistyped
from wpinq.expr.infix import divide, floor_divide, less, negate
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.types import DURATION, FLOAT, SCALE_LIMIT, DecimalOf


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
    """`value / divisor` of decimals and ints, as a decimal of `scale` decimals, half to even; null on division by 0."""
