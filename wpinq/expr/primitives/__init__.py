"""The primitives: the only functions that an engine must know.

Each has a typing rule and a meaning. All are total: whatever a 64-bit machine cannot say (division by zero,
overflow, a failed cast, an element out of range) is null, and no primitive raises on any value. Floats are
produced by correctly rounded operations alone, for another last bit would be another record.
"""

from __future__ import annotations

from wpinq.expr.primitives import collections, scalars
from wpinq.expr.primitives.base import (
    LIST_LIMIT,
    PRIMITIVES,
    TEXT_LIMIT,
    Attributes,
    Mistyped,
    Primitive,
    Types,
    fit_number,
)
from wpinq.expr.primitives.collections import list_type
from wpinq.expr.types import Type

LAZY = frozenset({"range_list", "map", "flatten"})
"""Primitives whose value may be an iterable that was not walked yet; see `compile`."""


def typed(name: str, types: Types, attributes: Attributes) -> Type:
    """The type of a primitive call, or Mistyped."""
    return PRIMITIVES[name].typing(types, attributes)


__all__ = [
    "LAZY",
    "LIST_LIMIT",
    "PRIMITIVES",
    "TEXT_LIMIT",
    "Attributes",
    "Mistyped",
    "Primitive",
    "Types",
    "collections",
    "fit_number",
    "list_type",
    "scalars",
    "typed",
]
