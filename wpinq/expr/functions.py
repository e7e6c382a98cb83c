"""The functions that lambdas call: `wp.record`, `wp.where`, `wp.count`, `wp.sort` and their like.

They live here and not on symbols, so that a field may be called `count`, `index` or `sort`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol, lift, trace
from wpinq.expr.types import ListOf


def _apply(name: str, *arguments: object) -> Any:
    return Symbol(catalogue.apply(name, *(lift(argument) for argument in arguments)))


def _over_elements(name: str, items: object, function: Callable[..., Any] | None) -> Any:
    expr = lift(items)
    if function is None:
        return Symbol(catalogue.apply(name, expr))
    if not isinstance(expr.type, ListOf):
        raise ExpressionError(f"{name} with a function takes a list, not {expr.type}")
    return Symbol(catalogue.apply(name, expr, trace(function, (expr.type.element,))))


def record(**fields: object) -> Any:
    """A record with named fields: `wp.record(src=e.dst, dst=e.src)`."""
    return Symbol(build.record(tuple(fields), tuple(lift(value) for value in fields.values())))


def where(condition: object, yes: object, no: object) -> Any:
    """`yes` where the condition holds, else `no`; a null condition does not hold."""
    return _apply("where", condition, yes, no)


def is_null(value: object) -> Any:
    """Whether the value is null."""
    return _apply("is_null", value)


def cast(value: object, target: type) -> Any:
    """The value as int, float or str; null where it cannot be said.

    A float is cut toward zero, a string must be a plain decimal number, a bool is 1 or 0, or "true" or "false".
    """
    names = {int: "to_int", float: "to_float", str: "to_str"}
    if target not in names:
        raise ExpressionError(f"cast goes to int, float or str, not {target!r}; for bool compare with !=")
    return _apply(names[target], value)


def count(items: object) -> Any:
    """The number of elements of a list, or of records of a group."""
    return _apply("count", items)


def length(value: object) -> Any:
    """The number of code points of a string, or of elements of a list."""
    return _apply("length", value)


def sum(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The sum of a list of numbers, or of a function over a list; nulls are skipped, floats rounded once."""
    return _over_elements("sum", items, function)


def min(*values: Any) -> Any:
    """The least of a list, of a function over a list (nulls skipped), or of two values or more (null if one is)."""
    return _extreme("min", values)


def max(*values: Any) -> Any:
    """The greatest of a list, of a function over a list (nulls skipped), or of two values or more (null if one is)."""
    return _extreme("max", values)


def _extreme(name: str, values: tuple[Any, ...]) -> Any:
    if len(values) == 2 and callable(values[1]) and not isinstance(values[1], (Symbol, Expr)):
        return _over_elements(name, *values)
    return _apply(name, *values)


def collect(items: object, function: Callable[..., Any] | None = None) -> Any:
    """The elements of a list or group, or a function of each, as a list in canonical order."""
    return _over_elements("collect", items, function)


def map(items: object, function: Callable[..., Any]) -> Any:
    """A function of each element of a list, in order."""
    return _over_elements("map", items, function)


def flatten(lists: object) -> Any:
    """The elements of a list of lists, in order; null lists are empty."""
    return _apply("flatten", lists)


def element(items: object, index: object) -> Any:
    """Element `index` of a list, from 0; null beyond its ends."""
    return _apply("element", items, index)


def range(start: object, stop: object, *, limit: int) -> Any:
    """The integers from `start` up to but not including `stop`, at most `limit` of them."""
    return _apply("range", start, stop, limit)


def subsets(items: object, size: int) -> Any:
    """Every way to take `size` elements of a list, in its order, as a list of records."""
    return _apply("subsets", items, size)


def sort(value: object) -> Any:
    """A list in canonical order, or a record with its fields in order (all of one type, at most 8); null first."""
    return _apply("sort", value)


def rotate(value: object) -> Any:
    """The record with its fields moved one place to the left: `(a, b, c)` gives `(b, c, a)`."""
    return _apply("rotate", value)


def reverse(value: object) -> Any:
    """The record with its fields in reverse: `(a, b)` gives `(b, a)`."""
    return _apply("reverse", value)


def bucket(value: object, width: object) -> Any:
    """`⌊value / width⌋` as an int."""
    return _apply("bucket", value, width)


def floor(value: object) -> Any:
    """The greatest integer not above a float."""
    return _apply("floor", value)


def absolute(value: object) -> Any:
    """The number without its sign; also written `abs(x)`."""
    return _apply("absolute", value)


def lower(text: object) -> Any:
    """The string with A to Z in lower case; other letters stay, so that every engine agrees."""
    return _apply("lower", text)


def substring(text: object, start: object, length: object) -> Any:
    """At most `length` code points of the string from position `start`, counted from 0."""
    return _apply("substring", text, start, length)


def find(text: object, part: object) -> Any:
    """The position of the first occurrence of `part`, from 0, or -1."""
    return _apply("find", text, part)


def contains(text: object, part: object) -> Any:
    """Whether `part` occurs in the string."""
    return _apply("contains", text, part)


def starts_with(text: object, prefix: object) -> Any:
    """Whether the string begins with `prefix`."""
    return _apply("starts_with", text, prefix)


def split(text: object, separator: object) -> Any:
    """The pieces of the string between separators; the string itself where the separator is empty."""
    return _apply("split", text, separator)


def weighted(value: object, weight: object) -> Any:
    """An element of a SelectMany list with its own weight, of either sign."""
    return _apply("weighted", value, weight)
