"""Functions that put the fields of a record, or a list, in another order."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, fields
from wpinq.expr.declare import derived
from wpinq.expr.definition import Mistyped
from wpinq.expr.infix import precedes
from wpinq.expr.nodes import Expr
from wpinq.expr.types import ListOf, TupleOf

SORT_LIMIT = 8
"""The most fields that `sort` orders in a record: its network has n(n-1)/2 exchanges."""


def _arranged(value: Expr, arranged: list[Expr]) -> Expr:
    """The same record with its fields rearranged. Names stay in place where all fields have one type."""
    assert isinstance(value.type, TupleOf)
    same = all(element == value.type.elements[0] for element in value.type.elements)
    names = value.type.names if same else (None,) * len(arranged)
    return call("record", *arranged, attributes=names)


def _rotated(value: Expr) -> Expr:
    parts = fields(value)
    return _arranged(value, parts[1:] + parts[:1])


def _sorted(value: Expr) -> Expr:
    if isinstance(value.type, ListOf):
        return call("sort_list", value)
    parts = fields(value)
    if any(part.type != parts[0].type for part in parts):
        raise Mistyped(f"sort takes a record whose fields have one type, not {value.type}")
    if len(parts) > SORT_LIMIT:
        raise Mistyped(f"sort takes a record of at most {SORT_LIMIT} fields, or a list")
    for end in range(len(parts) - 1, 0, -1):  # bubble sort as a network: no data-dependent control flow
        for i in range(end):
            a, b = parts[i], parts[i + 1]
            swap = precedes(b, a)
            parts[i], parts[i + 1] = call("where", swap, b, a), call("where", swap, a, b)
    return _arranged(value, parts)


@derived(_sorted)
def sort(value: object) -> Any:
    """A list in canonical order, or a record with its fields in order (all of one type, at most 8); null first."""


@derived(_rotated)
def rotate(value: object) -> Any:
    """The record with its fields moved one place to the left: `(a, b, c)` gives `(b, c, a)`."""


@derived(lambda value: _arranged(value, fields(value)[::-1]))
def reverse(value: object) -> Any:
    """The record with its fields in reverse: `(a, b)` gives `(b, a)`."""
