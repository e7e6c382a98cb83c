"""The primitives: the only functions that an engine must know.

Each has a typing rule and a meaning. All are total: whatever a 64-bit machine cannot say (division by zero,
overflow, a failed cast, an element out of range) is null, and no primitive raises on any value. Floats are
produced by correctly rounded operations alone, for another last bit would be another record.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.expr.types import (
    BOOL,
    FLOAT,
    INT,
    INT_MAX,
    INT_MIN,
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

Types = tuple[Type, ...]
Attributes = tuple[str | int | None, ...]


TEXT_LIMIT = 1_000_000
"""The most code points that a concatenation gives; beyond it, null. A string added to itself doubles."""

LIST_LIMIT = 1_000_000
"""The most elements that a range or a flattened list has."""


class Mistyped(Exception):
    """The reason why arguments do not fit; the caller adds the expression."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A core function: `typing(argument types, attributes)` and `implement(attributes) -> function of values`."""

    name: str
    typing: Callable[[Types, Attributes], Type]
    implement: Callable[[Attributes], Callable[..., Any]]


PRIMITIVES: dict[str, Primitive] = {}


def _define(
    name: str,
    typing: Callable[[Types, Attributes], Type],
    function: Callable[..., Any] | None = None,
    *,
    implement: Callable[[Attributes], Callable[..., Any]] | None = None,
) -> None:
    if implement is None:
        assert function is not None
        plain = function

        def implement(attributes: Attributes) -> Callable[..., Any]:
            return plain

    PRIMITIVES[name] = Primitive(name, typing, implement)


def _any_null(types: Types) -> bool:
    return any(type_.nullable for type_ in types)


def _expect(types: Types, *allowed: Type, what: str) -> None:
    for type_ in types:
        if type_ not in allowed and type_ != NULL:
            raise Mistyped(f"{what}, not {type_}")


# --- arithmetic -------------------------------------------------------------------------------------------------


def _arithmetic(types: Types, attributes: Attributes) -> Type:
    left, right = types
    _expect(types, INT, FLOAT, what="arithmetic takes int or float")
    common = unify(left, right)
    if common is None:
        raise Mistyped(f"cannot mix {left} and {right} here")
    return (INT if common == NULL else common).with_nullable()


def _integers(types: Types, attributes: Attributes) -> Type:
    _expect(types, INT, what="// and % take integers (for floats use wp.floor(a / b))")
    return INT.with_nullable()


def _floats(types: Types, attributes: Attributes) -> Type:
    _expect(types, FLOAT, what="/ takes numbers")
    return FLOAT.with_nullable()


def fit_number(value: Any) -> Value:
    """The number if 64 bits can say it, else null; -0.0 is 0.0."""
    if type(value) is int:
        return value if INT_MIN <= value <= INT_MAX else None
    return value + 0.0 if math.isfinite(value) else None


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


_define("add", _arithmetic, _add)
_define("subtract", _arithmetic, _subtract)
_define("multiply", _arithmetic, _multiply)
_define("divide", _floats, _divide)
_define("floor_divide", _integers, _floor_divide)
_define("modulo", _integers, _modulo)


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
    return BOOL.with_nullable(_any_null(types))


def _booleans(types: Types, attributes: Attributes) -> Type:
    _expect(types, BOOL, what="logic takes bool")
    return BOOL.with_nullable(_any_null(types))


def _choice(types: Types, attributes: Attributes) -> Type:
    _expect(types[:1], BOOL, what="a condition must be bool")
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


_define("equal", _same_type, _equal)
_define("less", _ordered, _less)
_define("and", _booleans, _and)
_define("not", _booleans, _not)
_define("where", _choice, _where)
_define("is_null", lambda types, attributes: BOOL, lambda a: a is None)


# --- casts ------------------------------------------------------------------------------------------------------

_INT_TEXT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_FLOAT_TEXT = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,5})?", re.ASCII)


def _cast_to(target: Type, *sources: Type) -> Callable[[Types, Attributes], Type]:
    def typing(types: Types, attributes: Attributes) -> Type:
        _expect(types, *sources, what=f"only {', '.join(map(str, sources))} can be cast to {target}")
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


_define("to_int", _cast_to(INT, INT, FLOAT, BOOL, STR), _to_int)
_define("to_float", _cast_to(FLOAT, INT, FLOAT, STR), _to_float)
_define("to_str", _cast_to(STR, INT, BOOL, STR), _to_str)


# --- strings ----------------------------------------------------------------------------------------------------


def _text(result: Type, *parameters: Type) -> Callable[[Types, Attributes], Type]:
    def typing(types: Types, attributes: Attributes) -> Type:
        for type_, expected in zip(types, parameters, strict=True):
            _expect((type_,), expected, what=f"expected {expected}")
        return result.with_nullable(_any_null(types))

    return typing


def _strict(function: Callable[..., Value]) -> Callable[..., Value]:
    def null_in_null_out(*values: Value) -> Value:
        return None if None in values else function(*values)

    return null_in_null_out


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _concatenate(a: str, b: str) -> Value:
    return a + b if len(a) + len(b) <= TEXT_LIMIT else None


_define(
    "concatenate",
    lambda types, attributes: _text(STR, STR, STR)(types, attributes).with_nullable(),
    _strict(_concatenate),
)
_define("find", _text(INT, STR, STR), _strict(lambda text, part: text.find(part)))
_define("lower", _text(STR, STR), _strict(lambda text: text.translate(_LOWER)))
_define(
    "substring",
    _text(STR, STR, INT, INT),
    _strict(lambda text, start, length: text[max(0, start) : max(0, start, start + length)]),
)
_define(
    "split",
    lambda types, attributes: ListOf(STR, nullable=_text(STR, STR, STR)(types, attributes).nullable),
    _strict(lambda text, separator: tuple(text.split(separator)) if separator else (text,)),
)


# --- records and lists --------------------------------------------------------------------------------------------


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
    _expect(types[1:], INT, what="an index must be int")
    if types[0] == STR:
        raise Mistyped("a string has no elements: use wp.substring(text, start, length)")
    element = list_type(types[0]).element
    if isinstance(element, Weighted):
        raise Mistyped("a weighted element cannot be taken out of its list: weigh it after taking it")
    return element.with_nullable()


def _length(types: Types, attributes: Attributes) -> Type:
    if types[0] != STR:
        list_type(types[0])
    return INT.with_nullable(_any_null(types))


def _range(types: Types, attributes: Attributes) -> Type:
    _expect(types, INT, what="a range takes integers")
    (limit,) = attributes
    if limit is not None and not (type(limit) is int and 0 <= limit <= LIST_LIMIT):
        raise Mistyped(f"the limit of a range must lie between 0 and {LIST_LIMIT:,}")
    return ListOf(INT, bound=limit, nullable=_any_null(types))


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
    _expect((weight,), FLOAT, what="a weight must be a number")
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
        return _strict(range)
    assert isinstance(limit, int)
    most = limit
    return _strict(lambda start, stop: range(start, min(stop, start + most)))


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
    return _strict(_sum_floats if element == FLOAT.name else _sum_ints)


def _extreme_of(choose: Callable[[Iterable[Any]], Any]) -> Callable[[tuple[Value, ...] | None], Value]:
    def extreme(items: tuple[Value, ...] | None) -> Value:
        present = [item for item in items or () if item is not None]
        return choose(present) if present else None

    return extreme


_define("record", _record, lambda *values: values)
_define("field", _field, implement=_get_field)
_define("list", _list, lambda *values: values)
_define("element", _element, _get_element)
_define("length", _length, _strict(len))
_define("range_list", _range, implement=_limited_range)
_define("map", _map, lambda items, function: None if items is None else map(function, items))
_define(
    "flatten",
    _flatten,
    _strict(lambda lists: itertools.islice(itertools.chain.from_iterable(items or () for items in lists), LIST_LIMIT)),
)
_define("sort_list", _sort_list, _strict(lambda items: tuple(sorted(items, key=order_key))))
_define("sum_list", _sum, implement=_sum_of)
_define("min_list", _extreme, _extreme_of(min))
_define("max_list", _extreme, _extreme_of(max))
_define("weighted", _weighted, lambda record, weight: (record, weight))

LAZY = frozenset({"range_list", "map", "flatten"})
"""Primitives whose value may be an iterable that was not walked yet; see `compile`."""


def typed(name: str, types: Types, attributes: Attributes) -> Type:
    """The type of a primitive call, or Mistyped."""
    return PRIMITIVES[name].typing(types, attributes)
