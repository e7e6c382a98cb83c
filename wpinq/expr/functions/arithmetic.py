"""Primitives of arithmetic."""

from __future__ import annotations

from typing import Any

from wpinq.expr.definition import CallAttributes, Mistyped, Types, define, expect, fit_number, handled
from wpinq.expr.types import FLOAT, INT, NULL, Type, unify
from wpinq.expr.values import Value


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


def _add(a: Any, b: Any) -> Value:
    return None if a is None or b is None else fit_number(a + b)


def _subtract(a: Any, b: Any) -> Value:
    return None if a is None or b is None else fit_number(a - b)


def _multiply(a: Any, b: Any) -> Value:
    return None if a is None or b is None else fit_number(a * b)


def _divide(a: float | None, b: float | None) -> Value:
    return None if a is None or b is None or b == 0 else fit_number(a / b)


def _floor_divide(a: int | None, b: int | None) -> Value:
    return None if a is None or b is None or b == 0 else fit_number(a // b)


def _modulo(a: int | None, b: int | None) -> Value:
    return None if a is None or b is None or b == 0 else a % b


define("add", 2, _arithmetic, _add, work=handled)
define("subtract", 2, _arithmetic, _subtract, work=handled)
define("multiply", 2, _arithmetic, _multiply, work=handled)
define("divide", 2, _floats, _divide, work=handled)
define("floor_divide", 2, _integers, _floor_divide, work=handled)
define("modulo", 2, _integers, _modulo, work=handled)
