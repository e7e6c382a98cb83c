"""Primitives of records and lists."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from wpinq.expr.primitives.base import (
    LIST_LIMIT,
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
    FLOAT,
    INT,
    NULL,
    STR,
    ListOf,
    Scalar,
    TupleOf,
    Type,
    Weighted,
    is_number,
    is_record_type,
    unify,
)
from wpinq.expr.values import Value, order_key


def _record(types: Types, attributes: Attributes) -> Type:
    for type_ in types:
        if not is_record_type(type_):
            raise Mistyped(f"a record cannot hold {type_}")
    if not types:
        raise Mistyped('a record needs a field; for one record in all write a constant, such as "all"')
    if len(attributes) != len(types):
        raise Mistyped(f"a record of {len(types)} fields cannot have {len(attributes)} names")
    names = tuple(name for name in attributes if name is not None)
    if len(set(names)) != len(names):
        raise Mistyped("two fields of one record share a name; name them apart")
    return TupleOf(tuple(None if n is None else str(n) for n in attributes), types)


def _field(types: Types, attributes: Attributes) -> Type:
    (record,), (index,) = types, attributes
    if not isinstance(record, TupleOf) or type(index) is not int or not 0 <= index < len(record.elements):
        raise Mistyped(f"{record} has no field number {index}")
    element = record.elements[index]
    return element.with_nullable(element.nullable or record.nullable)


def _list(types: Types, attributes: Attributes) -> Type:
    element: Type = types[0] if types else NULL
    for type_ in types[1:]:
        common = unify(element, type_)
        if common is None:
            raise Mistyped(f"a list has one element type, got {element} and {type_}")
        element = common
    return ListOf(element, bound=len(types))


def list_type(type_: Type) -> ListOf:
    """The type as a list type; Mistyped when it is not one."""
    if isinstance(type_, ListOf):
        return type_
    raise Mistyped(f"expected a list, not {type_}")


def _element(types: Types, attributes: Attributes) -> Type:
    expect(types[1:], INT, what="an index must be int")
    if types[0] == STR:
        raise Mistyped("a string has no elements: use wp.substring(text, start, length)")
    element = list_type(types[0]).element
    if isinstance(element, Weighted):
        raise Mistyped("a weighted element cannot be taken out of its list: weigh it after taking it")
    return element.with_nullable()


def _length(types: Types, attributes: Attributes) -> Type:
    if types[0] != STR:
        list_type(types[0])
    return INT.with_nullable(any_null(types))


def _range(types: Types, attributes: Attributes) -> Type:
    expect(types, INT, what="a range takes integers")
    (limit,) = attributes
    if limit is not None and not (type(limit) is int and 0 <= limit <= LIST_LIMIT):
        raise Mistyped(f"the limit of a range must lie between 0 and {LIST_LIMIT:,}")
    return ListOf(INT, bound=limit, nullable=any_null(types))


def _map(types: Types, attributes: Attributes) -> Type:
    source = list_type(types[0])
    return ListOf(types[1], bound=source.bound, nullable=source.nullable)


def _flatten(types: Types, attributes: Attributes) -> Type:
    outer = list_type(types[0])
    inner = list_type(outer.element)
    bound = None if outer.bound is None or inner.bound is None else min(outer.bound * inner.bound, LIST_LIMIT)
    return ListOf(inner.element, bound=bound, nullable=outer.nullable)


def _sort_list(types: Types, attributes: Attributes) -> Type:
    if not is_record_type(list_type(types[0]).element):
        raise Mistyped(f"cannot order the elements of {types[0]}")
    return types[0]


def _sum(types: Types, attributes: Attributes) -> Type:
    element = list_type(types[0]).element
    if not is_number(element):
        raise Mistyped(f"sum takes a list of numbers, not {types[0]}")
    return element.with_nullable()


def _extreme(types: Types, attributes: Attributes) -> Type:
    element = list_type(types[0]).element
    if not isinstance(element, Scalar):
        raise Mistyped(f"min and max take a list of int, float, bool or str, not {types[0]}")
    return element.with_nullable()


def _weighted(types: Types, attributes: Attributes) -> Type:
    record, weight = types
    expect((weight,), FLOAT, what="a weight must be a number")
    if not is_record_type(record):
        raise Mistyped(f"a record cannot hold {record}")
    return Weighted(record)


def _get_field(attributes: Attributes) -> Callable[[Value], Value]:
    (index,) = attributes
    assert isinstance(index, int)
    position = index
    return lambda record: None if record is None else record[position]


def _limited_range(attributes: Attributes) -> Callable[..., Value]:
    (limit,) = attributes
    if limit is None:
        return strict(range)
    assert isinstance(limit, int)
    most = limit
    return strict(lambda start, stop: range(start, min(stop, start + most)))


def _get_element(items: tuple[Value, ...] | None, index: int | None) -> Value:
    if items is None or index is None or not 0 <= index < len(items):
        return None
    return items[index]


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


def _sum_of(attributes: Attributes) -> Callable[..., Value]:
    (element,) = attributes
    return strict(_sum_floats if element == FLOAT.name else _sum_ints)


def _extreme_of(choose: Callable[[Iterable[Any]], Any]) -> Callable[[tuple[Value, ...] | None], Value]:
    def extreme(items: tuple[Value, ...] | None) -> Value:
        present = [item for item in items or () if item is not None]
        return choose(present) if present else None

    return extreme


define("record", None, _record, lambda *values: values)
define("field", 1, _field, implement=_get_field)
define("list", None, _list, lambda *values: values)
define("element", 2, _element, _get_element)
define("length", 1, _length, strict(len))
define("range_list", 2, _range, implement=_limited_range)
define("map", 2, _map, lambda items, function: None if items is None else map(function, items))
define(
    "flatten",
    1,
    _flatten,
    strict(lambda lists: itertools.islice(itertools.chain.from_iterable(items or () for items in lists), LIST_LIMIT)),
)
define("sort_list", 1, _sort_list, strict(lambda items: tuple(sorted(items, key=order_key))))
define("sum_list", 1, _sum, implement=_sum_of)
define("min_list", 1, _extreme, _extreme_of(min))
define("max_list", 1, _extreme, _extreme_of(max))
define("weighted", 2, _weighted, lambda record, weight: (record, weight))
