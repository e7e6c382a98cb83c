"""Functions of records: their fields, and these in another order."""

from __future__ import annotations

from typing import Any

from wpinq.expr import build
from wpinq.expr.build import call, fields
from wpinq.expr.catalogue import precedes
from wpinq.expr.declare import Column, applied, derived, in_python
from wpinq.expr.definition import CallAttributes, Meaning, Mistyped, Types, define, moved
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import ListOf, TupleOf, Type, is_record_type


def _record(types: Types, attributes: CallAttributes) -> Type:
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


def _field(types: Types, attributes: CallAttributes) -> Type:
    (record,), (index,) = types, attributes
    if not isinstance(record, TupleOf) or type(index) is not int or not 0 <= index < len(record.elements):
        raise Mistyped(f"{record} has no field number {index}")
    element = record.elements[index]
    return element.with_nullable(element.nullable or record.nullable)


def _get_field(attributes: CallAttributes) -> Meaning:
    index: Any = attributes[0]  # a number, as its typing rule has seen
    return lambda record: None if record is None else record[index]


define("record", None, _record, lambda *values: values, work=moved)
define("field", 1, _field, implement=_get_field, work=moved)


@in_python
def record(**fields: object) -> Any:
    """A record with named fields: `F.record(src=e.dst, dst=e.src)`."""
    if any(isinstance(value, Column) for value in fields.values()):
        return applied(lambda *values: record(**dict(zip(fields, values, strict=True))), *fields.values())
    return Symbol(build.record(tuple(fields), tuple(lift(value) for value in fields.values())))


SORT_LIMIT = 8
"""The most fields that `sort` orders in a record: its network has n(n-1)/2 exchanges."""


def _arranged(value: Expr, arranged: list[Expr]) -> Expr:
    """The same record with its fields rearranged.

    Names stay in place where all fields have one type.
    """
    assert isinstance(value.type, TupleOf)
    same = all(element == value.type.elements[0] for element in value.type.elements)
    names = value.type.names if same else (None,) * len(arranged)
    return call("record", *arranged, attributes=names)


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
    """A list in canonical order, or a record with its fields in order; null first.

    The fields are all of one type, at most 8.
    """


@derived(lambda value: _arranged(value, fields(value)[1:] + fields(value)[:1]))
def rotate(value: object) -> Any:
    """The record with its fields moved one place to the left: `(a, b, c)` gives `(b, c, a)`."""


@derived(lambda value: _arranged(value, fields(value)[::-1]))
def reverse(value: object) -> Any:
    """The record with its fields in reverse: `(a, b)` gives `(b, a)`."""
