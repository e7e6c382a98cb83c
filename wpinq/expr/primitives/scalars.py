"""Primitives of single values: arithmetic, comparison, logic, choice, casts, strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from wpinq.expr.primitives.base import (
    TEXT_LIMIT,
    Attributes,
    Mistyped,
    Types,
    any_null,
    define,
    expect,
    fit_number,
    strict,
)
from wpinq.expr.types import (
    BOOL,
    FLOAT,
    INT,
    NULL,
    STR,
    ListOf,
    Scalar,
    Type,
    is_record_type,
    unify,
)
from wpinq.expr.values import Value

# --- arithmetic -------------------------------------------------------------------------------------------------


def _arithmetic(types: Types, attributes: Attributes) -> Type:
    left, right = types
    expect(types, INT, FLOAT, what="arithmetic takes int or float")
    common = unify(left, right)
    if common is None:
        raise Mistyped(f"cannot mix {left} and {right} here")
    return (INT if common == NULL else common).with_nullable()


def _integers(types: Types, attributes: Attributes) -> Type:
    expect(types, INT, what="// and % take integers (for floats use wp.floor(a / b))")
    return INT.with_nullable()


def _floats(types: Types, attributes: Attributes) -> Type:
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


define("add", 2, _arithmetic, _add)
define("subtract", 2, _arithmetic, _subtract)
define("multiply", 2, _arithmetic, _multiply)
define("divide", 2, _floats, _divide)
define("floor_divide", 2, _integers, _floor_divide)
define("modulo", 2, _integers, _modulo)


# --- comparison, logic, choice, null ------------------------------------------------------------------------------


def _same_type(types: Types, attributes: Attributes) -> Type:
    left, right = types
    if unify(left, right) is None or not (is_record_type(left) and is_record_type(right)):
        raise Mistyped(f"cannot compare {left} with {right}")
    return BOOL


def _ordered(types: Types, attributes: Attributes) -> Type:
    left, right = types
    common = unify(left, right)
    if not isinstance(common, Scalar):
        raise Mistyped(f"cannot order {left} and {right}")
    return BOOL.with_nullable(any_null(types))


def _booleans(types: Types, attributes: Attributes) -> Type:
    expect(types, BOOL, what="logic takes bool")
    return BOOL.with_nullable(any_null(types))


def _choice(types: Types, attributes: Attributes) -> Type:
    expect(types[:1], BOOL, what="a condition must be bool")
    common = unify(types[1], types[2])
    if common is None:
        raise Mistyped(f"both branches need one type, got {types[1]} and {types[2]}")
    return common


def _equal(a: Value, b: Value) -> bool:
    return bool(a == b)


def _less(a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else a < b


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _where(condition: bool | None, yes: Value, no: Value) -> Value:
    return yes if condition else no


define("equal", 2, _same_type, _equal)
define("less", 2, _ordered, _less)
define("and", 2, _booleans, _and)
define("not", 1, _booleans, _not)
define("where", 3, _choice, _where)
define("is_null", 1, lambda types, attributes: BOOL, lambda a: a is None)


# --- casts ------------------------------------------------------------------------------------------------------

_INT_TEXT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_FLOAT_TEXT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?", re.ASCII)


def _cast_to(target: Type, *sources: Type) -> Callable[[Types, Attributes], Type]:
    def typing(types: Types, attributes: Attributes) -> Type:
        expect(types, *sources, what=f"only {', '.join(map(str, sources))} can be cast to {target}")
        lossless = (types[0], target) in ((BOOL, INT), (INT, FLOAT), (INT, STR), (BOOL, STR), (STR, STR))
        return target.with_nullable(types[0].nullable or not (lossless or types[0] == target))

    return typing


def _to_int(value: Any) -> Value:
    if isinstance(value, str):
        return fit_number(int(value)) if _INT_TEXT.fullmatch(value) else None
    return None if value is None else fit_number(int(value))


def _to_float(value: Any) -> Value:
    if isinstance(value, str) and not _FLOAT_TEXT.fullmatch(value):
        return None
    return None if value is None else fit_number(float(value))


def _to_str(value: Any) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


define("to_int", 1, _cast_to(INT, INT, FLOAT, BOOL, STR), _to_int)
define("to_float", 1, _cast_to(FLOAT, INT, FLOAT, STR), _to_float)
define("to_str", 1, _cast_to(STR, INT, BOOL, STR), _to_str)


# --- strings ----------------------------------------------------------------------------------------------------


def _text(result: Type, *parameters: Type) -> Callable[[Types, Attributes], Type]:
    def typing(types: Types, attributes: Attributes) -> Type:
        for type_, expected in zip(types, parameters, strict=True):
            expect((type_,), expected, what=f"expected {expected}")
        return result.with_nullable(any_null(types))

    return typing


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _concatenate(a: str, b: str) -> Value:
    return a + b if len(a) + len(b) <= TEXT_LIMIT else None


define(
    "concatenate",
    2,
    lambda types, attributes: _text(STR, STR, STR)(types, attributes).with_nullable(),
    strict(_concatenate),
)
define("find", 2, _text(INT, STR, STR), strict(lambda text, part: text.find(part)))
define("lower", 1, _text(STR, STR), strict(lambda text: text.translate(_LOWER)))
define(
    "substring",
    3,
    _text(STR, STR, INT, INT),
    strict(lambda text, start, length: text[max(0, start) : max(0, start, start + length)]),
)
define(
    "split",
    2,
    lambda types, attributes: ListOf(STR, nullable=_text(STR, STR, STR)(types, attributes).nullable),
    strict(lambda text, separator: tuple(text.split(separator)) if separator else (text,)),
)
