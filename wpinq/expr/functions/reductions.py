"""Primitives of whole lists: their order, sum and extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from wpinq.expr.definition import (
    CallAttributes,
    Meaning,
    Mistyped,
    Types,
    define,
    fit_number,
    handled,
    list_type,
    strict,
)
from wpinq.expr.types import FLOAT, CategoryOf, Scalar, Type, is_number, is_record_type
from wpinq.expr.values import Value, order_key


def _sort_list(types: Types, attributes: CallAttributes) -> Type:
    if not is_record_type(list_type(types[0]).element):
        raise Mistyped(f"cannot order the elements of {types[0]}")
    return types[0]


def _sum(types: Types, attributes: CallAttributes) -> Type:
    element = list_type(types[0]).element
    if not is_number(element):
        raise Mistyped(f"sum takes a list of numbers, not {types[0]}")
    return element.with_nullable()


def _extreme(types: Types, attributes: CallAttributes) -> Type:
    element = list_type(types[0]).element
    if isinstance(element, CategoryOf):
        raise Mistyped("categories are in no order: take min and max of their text, F.cast(x, str)")
    if not isinstance(element, Scalar):
        raise Mistyped(f"min and max take a list of scalars, not {types[0]}")
    return element.with_nullable()


def _sum_ints(items: Iterable[int | None]) -> Value:
    return fit_number(sum(item for item in items if item is not None))


def _sum_floats(items: Iterable[float | None]) -> Value:
    """The sum of the numbers that are not null, correctly rounded; null where 64 bits cannot say it."""
    numbers = [item for item in items if item is not None]
    try:
        return fit_number(math.fsum(numbers))
    except OverflowError:  # an intermediate sum overflowed; the exact total may still fit
        try:
            return fit_number(float(sum(map(Fraction, numbers))))
        except OverflowError:
            return None


def _sum_of(attributes: CallAttributes) -> Meaning:
    (element,) = attributes
    return strict(_sum_floats if element == FLOAT.name else _sum_ints)


def _extreme_of(choose: Callable[[Iterable[Any]], Any]) -> Meaning:
    def extreme(items: tuple[Value, ...] | None) -> Value:
        present = [item for item in items or () if item is not None]
        return choose(present) if present else None

    return extreme


define("sort_list", 1, _sort_list, strict(lambda items: tuple(sorted(items, key=order_key))), work=handled)
define("sum_list", 1, _sum, implement=_sum_of, work=handled)
define("min_list", 1, _extreme, _extreme_of(min), work=handled)
define("max_list", 1, _extreme, _extreme_of(max), work=handled)
