"""What a primitive is, where primitives are kept, and what their definitions share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wpinq.expr.types import INT_MAX, INT_MIN, NULL, Type
from wpinq.expr.values import Value

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
    """A core function: `typing(argument types, attributes)` and `implement(attributes) -> function of values`.

    `arity` is the number of its arguments, or None where it takes any.
    """

    name: str
    arity: int | None
    typing: Callable[[Types, Attributes], Type]
    implement: Callable[[Attributes], Callable[..., Any]]


PRIMITIVES: dict[str, Primitive] = {}


def define(
    name: str,
    arity: int | None,
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

    PRIMITIVES[name] = Primitive(name, arity, typing, implement)


def any_null(types: Types) -> bool:
    return any(type_.nullable for type_ in types)


def expect(types: Types, *allowed: Type, what: str) -> None:
    for type_ in types:
        if type_ not in allowed and type_ != NULL:
            raise Mistyped(f"{what}, not {type_}")


def fit_number(value: Any) -> Value:
    """The number if 64 bits can say it, else null; -0.0 is 0.0."""
    if type(value) is int:
        return value if INT_MIN <= value <= INT_MAX else None
    return value + 0.0 if math.isfinite(value) else None


def strict(function: Callable[..., Value]) -> Callable[..., Value]:
    def null_in_null_out(*values: Value) -> Value:
        return None if None in values else function(*values)

    return null_in_null_out
