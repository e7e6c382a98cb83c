"""Functions from a list, or a function over one, to a value: order, sum, extremes, count."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr import build
from wpinq.expr.build import call
from wpinq.expr.catalogue import less, null_if_any, promote
from wpinq.expr.declare import derived, function
from wpinq.expr.definition import CallAttributes, Mistyped, Types, define, fit_number, handled, list_type, strict
from wpinq.expr.nodes import Expr, Lambda, make_lambda, show
from wpinq.expr.types import DURATION, FLOAT, INT, CategoryOf, DecimalOf, ListOf, Scalar, Type, is_record_type
from wpinq.expr.values import Value, order_key


def _sort_list(types: Types, attributes: CallAttributes) -> Type:
    if not is_record_type(list_type(types[0]).element):
        raise Mistyped(f"cannot order the elements of {types[0]}")
    return types[0]


def _sum(types: Types, attributes: CallAttributes) -> Type:
    element = list_type(types[0]).element
    if element not in (INT, FLOAT):
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
    return fit_number(builtins.sum(item for item in items if item is not None))


def _sum_floats(items: Iterable[float | None]) -> Value:
    """The sum of the numbers that are not null, correctly rounded; null beyond 64 bits."""
    numbers = [item for item in items if item is not None]
    try:
        return fit_number(math.fsum(numbers))
    except OverflowError:  # an intermediate sum overflowed; the exact total may still fit
        try:
            return fit_number(float(builtins.sum(builtins.map(Fraction, numbers))))
        except OverflowError:
            return None


def _sum_of(attributes: CallAttributes) -> Callable[..., Value]:
    (element,) = attributes
    return strict(_sum_floats if element == FLOAT.name else _sum_ints)


def _extreme_of(choose: Callable[[Iterable[Any]], Any]) -> Callable[..., Value]:
    def extreme(items: tuple[Value, ...] | None) -> Value:
        present = [item for item in items or () if item is not None]
        return choose(present) if present else None

    return extreme


define("sort_list", 1, _sort_list, strict(lambda items: tuple(sorted(items, key=order_key))), work=handled)
define("sum_list", 1, _sum, implement=_sum_of, work=handled)
define("min_list", 1, _extreme, _extreme_of(builtins.min), work=handled)
define("max_list", 1, _extreme, _extreme_of(builtins.max), work=handled)


#: The most values that `min` and `max` take side by side.
VALUES_LIMIT = 64


def _mapped(items: Expr, function: Expr | None) -> Expr:
    return items if function is None else call("map", items, function)


def _reduced(primitive: str, items: Expr, function: Expr | None = None) -> Expr:
    values = _mapped(items, function)
    if primitive != "sum_list":
        return call(primitive, values)
    element = list_type(values.type).element
    if element == DURATION or isinstance(element, DecimalOf):
        return build.stored("sum", element, lambda counts: call(primitive, counts, attributes=(INT.name,)), values)
    # a sum of nothing is 0 or 0.0: the primitive cannot see which from the values
    return call(primitive, values, attributes=(str(element),))


def _reducer(name: str, primitive: str, pair: Callable[[Expr, Expr], Expr] | None = None) -> Callable[..., Expr]:
    """min, max or sum of a list, of a function over a list, or of two or more values."""

    def reduce(first: Expr, *rest: Expr) -> Expr:
        if isinstance(first.type, ListOf) or pair is None:
            if len(rest) > 1 or (rest and not isinstance(rest[0], Lambda)):
                raise ExpressionError(f"{name} of a list takes the list and, at most, a function of its elements")
            return build.derived(name, lambda *given: _reduced(primitive, *given), first, *rest)
        if not rest:
            raise ExpressionError(f"{name} takes a list, or two values or more, in `{show(first)}`")
        result = first
        for value in rest:
            result = build.derived(name, pair, *promote(result, value))
        return result

    return reduce


def _smaller(a: Expr, b: Expr) -> Expr:
    return null_if_any((a, b), call("where", less(b, a), b, a))


def _larger(a: Expr, b: Expr) -> Expr:
    return null_if_any((a, b), call("where", less(a, b), b, a))


def _any(items: Expr, predicate: Expr, true: int = 1) -> Expr:
    """Whether a predicate is true for some element; with 0 for `true`, whether it is not."""
    assert isinstance(predicate, Lambda)
    counted = call("where", predicate.body, build.constant(true), build.constant(1 - true))
    ones = call("map", items, make_lambda(predicate.parameters, counted, predicate.level))
    return call("less", build.constant(0), call("sum_list", ones, attributes=(INT.name,)))


@derived(_any, takes_function=True)
def any(items: object, predicate: Callable[..., Any]) -> Any:
    """Whether a predicate is true for some element of a list; false of an empty list."""


@derived(lambda items, predicate: call("not", _any(items, predicate, 0)), takes_function=True)
def all(items: object, predicate: Callable[..., Any]) -> Any:
    """Whether a predicate is true for all elements of a list; true of an empty list."""


@derived(lambda items: call("length", items))
def count(items: object) -> Any:
    """The number of elements of a list, or of records of a group."""


@derived(lambda items, function=None: call("sort_list", _mapped(items, function)), takes_function=True)
def collect(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The elements of a list or group, or a function of each, in canonical order."""


@function(_reducer("sum", "sum_list"), takes_function=True)
def sum(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The sum of a list of numbers or durations, or of a function over a list.

    Nulls are skipped, and floats rounded once.
    """


@function(_reducer("min", "min_list", _smaller), takes_function=True, counts=(1, VALUES_LIMIT))
def min(*values: Any) -> Any:
    """The least element of a list, or the least of several values.

    In a list nulls are skipped; of values it is null if one is.
    """


@function(_reducer("max", "max_list", _larger), takes_function=True, counts=(1, VALUES_LIMIT))
def max(*values: Any) -> Any:
    """The greatest element of a list, or the greatest of several values.

    In a list nulls are skipped; of values it is null if one is.
    """
