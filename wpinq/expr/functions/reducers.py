"""Functions from a list, or a function over one, to a value: count, collect, sum and the extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr import build
from wpinq.expr.build import call
from wpinq.expr.declare import derived, function
from wpinq.expr.definition import list_type
from wpinq.expr.infix import less, null_if_any, promote
from wpinq.expr.nodes import Expr, Lambda
from wpinq.expr.printing import show
from wpinq.expr.types import DURATION, INT, DecimalOf, ListOf

VALUES_LIMIT = 64
"""The most values that `min` and `max` take side by side."""


def _mapped(items: Expr, function: Expr | None) -> Expr:
    return items if function is None else call("map", items, function)


def _collected(items: Expr, function: Expr | None = None) -> Expr:
    return call("sort_list", _mapped(items, function))


def _reduced(primitive: str, items: Expr, function: Expr | None = None) -> Expr:
    values = _mapped(items, function)
    if primitive != "sum_list":
        return call(primitive, values)
    element = list_type(values.type).element
    if element == DURATION or isinstance(element, DecimalOf):
        return build.stored("sum", element, lambda counts: call(primitive, counts, attributes=(INT.name,)), values)
    # a sum of nothing is 0 or 0.0: the primitive cannot tell which from the values
    return call(primitive, values, attributes=(str(element),))


def _reducer(name: str, primitive: str, pair: Callable[[Expr, Expr], Expr] | None = None) -> Callable[..., Expr]:
    """min, max or sum: of a list, of a function over a list, or of two or more values side by side."""

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


@derived(lambda items: call("length", items))
def count(items: object) -> Any:
    """The number of elements of a list, or of records of a group."""


@derived(_collected, takes_function=True)
def collect(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The elements of a list or group, or a function of each, as a list in canonical order."""


@function(_reducer("sum", "sum_list"), takes_function=True)
def sum(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The sum of a list of numbers or durations, or of a function over a list; nulls skipped, floats rounded once."""


@function(_reducer("min", "min_list", _smaller), takes_function=True, counts=(1, VALUES_LIMIT))
def min(*values: Any) -> Any:
    """The least of a list, of a function over a list (nulls skipped), or of two values or more (null if one is)."""


@function(_reducer("max", "max_list", _larger), takes_function=True, counts=(1, VALUES_LIMIT))
def max(*values: Any) -> Any:
    """The greatest of a list, of a function over a list (nulls skipped), or of two values or more (null if one is)."""
