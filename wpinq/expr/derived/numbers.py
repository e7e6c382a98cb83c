"""Functions of numbers."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, constant, divide, less
from wpinq.expr.declare import derived
from wpinq.expr.definition import Mistyped
from wpinq.expr.nodes import Expr
from wpinq.expr.types import FLOAT


def _absolute(value: Expr) -> Expr:
    zero = constant(0.0) if value.type == FLOAT else constant(0)
    return call("where", less(value, zero), call("subtract", zero, value), value)


def _floor(value: Expr) -> Expr:
    if value.type != FLOAT:
        raise Mistyped(f"floor takes a float, not {value.type}")
    whole = call("to_int", value)
    below = call("less", value, call("to_float", whole))
    return call("where", below, call("subtract", whole, constant(1)), whole)


def _bucket(value: Expr, width: Expr) -> Expr:
    if FLOAT not in (value.type, width.type):
        return call("floor_divide", value, width)
    return _floor(divide(value, width).core)


@derived(_absolute)
def absolute(value: object) -> Any:
    """The number without its sign; also written `abs(x)`."""


@derived(_floor)
def floor(value: object) -> Any:
    """The greatest integer not above a float."""


@derived(_bucket)
def bucket(value: object, width: object) -> Any:
    """`⌊value / width⌋` as an int."""
