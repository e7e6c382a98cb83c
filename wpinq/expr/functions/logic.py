"""Primitives of comparison, logic, choice and null."""

from __future__ import annotations

import operator
from typing import Any

from wpinq.expr import build, catalogue, types
from wpinq.expr.declare import primitive
from wpinq.expr.definition import CallAttributes, Mistyped, Types, any_null, define, expect, handled, moved, strict
from wpinq.expr.types import BOOL, FLOAT, INT, STR, CategoryOf, Scalar, Type, is_record_type, unify


def _same_type(types: Types, attributes: CallAttributes) -> Type:
    left, right = types
    if unify(left, right) is None or not (is_record_type(left) and is_record_type(right)):
        raise Mistyped(f"cannot compare {left} with {right}{_of_text(left, right)}")
    return BOOL


def _ordered(types: Types, attributes: CallAttributes) -> Type:
    left, right = types
    common = unify(left, right)
    if isinstance(common, CategoryOf):
        raise Mistyped(f"categories are in no order: compare their text, F.cast(x, str), not {left}")
    if not isinstance(common, Scalar):
        raise Mistyped(f"cannot order {left} and {right}{_of_text(left, right)}")
    return BOOL.with_nullable(any_null(types))


def _of_text(*sides: Type) -> str:
    """The way from text to the type of the other side, if one is text."""
    other = {side.with_nullable(False) for side in sides} - {STR}
    ways = {
        types.DATE: "write a date as datetime.date(2024, 1, 31)",
        types.TIMESTAMP: "write a moment as datetime.datetime(2024, 1, 31)",
        types.TIME: "write a time of day as datetime.time(12, 30)",
        INT: "write a number without quotes; of a column, F.cast(x, int)",
        FLOAT: "write a number without quotes; of a column, F.cast(x, float)",
    }
    return "".join(f": {ways[one]}" for one in other if len(other) == 1 and one in ways)


def _booleans(types: Types, attributes: CallAttributes) -> Type:
    for type_ in types:
        if type_.with_nullable(False) in (INT, FLOAT):
            raise Mistyped(f"logic takes bool, not {type_}: compare in parentheses, as in (x > a) & (x < b)")
    expect(types, BOOL, what="logic takes bool")
    return BOOL.with_nullable(any_null(types))


def _choice(types: Types, attributes: CallAttributes) -> Type:
    expect(types[:1], BOOL, what="a condition must be bool")
    common = unify(types[1], types[2])
    if common is None:
        raise Mistyped(f"both branches need one type, got {types[1]} and {types[2]}")
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


@primitive(lambda types, attributes: BOOL, lambda a: a is None, work=moved)
def is_null(value: object) -> Any:
    """Whether the value is null."""
