"""Primitives of records."""

from __future__ import annotations

from typing import Any

from wpinq.expr import build
from wpinq.expr.column import Column, applied
from wpinq.expr.declare import in_python
from wpinq.expr.definition import CallAttributes, Meaning, Mistyped, Types, define, moved
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import TupleOf, Type, is_record_type


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
    (index,) = attributes
    assert isinstance(index, int)
    position = index
    return lambda record: None if record is None else record[position]


define("record", None, _record, lambda *values: values, work=moved)
define("field", 1, _field, implement=_get_field, work=moved)


@in_python
def record(**fields: object) -> Any:
    """A record with named fields: `F.record(src=e.dst, dst=e.src)`."""
    if any(isinstance(value, Column) for value in fields.values()):
        return applied(lambda *values: record(**dict(zip(fields, values, strict=True))), *fields.values())
    return Symbol(build.record(tuple(fields), tuple(lift(value) for value in fields.values())))
