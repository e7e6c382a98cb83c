"""Primitives that cast a value to another type."""

from __future__ import annotations

import re
from typing import Any

from wpinq.expr import casts
from wpinq.expr.declare import primitive
from wpinq.expr.definition import Amount, CallAttributes, Types, TypingRule, expect, fit_number, handled, most
from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type
from wpinq.expr.values import Value

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
