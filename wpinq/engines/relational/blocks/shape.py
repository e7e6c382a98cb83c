"""Records as flat columns: how a value of each record type lies in a table, in a list, and in Python.

A record becomes its leaves side by side; one that can be null has a leading column that says whether it is there,
and where it is not, every leaf is null. A list is one column, of packed elements: scalars, lists, or structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.engines.relational.blocks.term import FALSE, TRUE, SqlTerm, both, call, function, literal, parameter, same
from wpinq.expr.types import FLOAT, NULL, ListOf, Scalar, TupleOf, Type, Weighted
from wpinq.expr.values import Value


@dataclass(frozen=True, slots=True)
class RecordShape:
    """A record side by side: whether it is there (None where it always is), and its fields."""

    valid: SqlTerm | None
    fields: tuple[Shape, ...]


Shape = SqlTerm | RecordShape
"""A value of any type, as terms."""


def as_term(shape: Shape) -> SqlTerm:
    """A value of no record type, which is one term."""
    assert isinstance(shape, SqlTerm)
    return shape


def plain(type_: Type) -> Type:
    """The type, with a weighted element as the pair that it is."""
    if isinstance(type_, Weighted):
        return TupleOf((None, None), (type_.record, FLOAT.with_nullable()), nullable=type_.nullable)
    return type_


def leaf_types(type_: Type, nullable: bool = False) -> Iterator[tuple[Type | None, bool]]:
    """The type of each column, in order, and whether it can be null; None is the column that says "it is there"."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        if type_.nullable:
            yield None, False
        for element in type_.elements:
            yield from leaf_types(element, nullable or type_.nullable)
    else:
        yield type_, nullable or type_.nullable


def shape_of(type_: Type, leaves: Iterator[SqlTerm]) -> Shape:
    """A value whose leaves are these terms."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        valid = next(leaves) if type_.nullable else None
        return RecordShape(valid, tuple(shape_of(element, leaves) for element in type_.elements))
    return next(leaves)


def leaves(shape: Shape) -> Iterator[SqlTerm]:
    """The terms of a value, in order."""
    if isinstance(shape, SqlTerm):
        yield shape
        return
    if shape.valid is not None:
        yield shape.valid
    for part in shape.fields:
        yield from leaves(part)


def map_shape(function_: Callable[[SqlTerm], SqlTerm], shape: Shape) -> Shape:
    """The same value with every term replaced."""
    if isinstance(shape, SqlTerm):
        return function_(shape)
    valid = None if shape.valid is None else function_(shape.valid)
    return RecordShape(valid, tuple(map_shape(function_, part) for part in shape.fields))


def aligned(shape: Shape, type_: Type) -> Shape:
    """The value with exactly the columns of its type: a "there" column where, and only where, it can be null."""
    type_ = plain(type_)
    if isinstance(shape, SqlTerm) or not isinstance(type_, TupleOf):
        return shape
    valid = (shape.valid or TRUE) if type_.nullable else None
    return RecordShape(valid, tuple(aligned(p, e) for p, e in zip(shape.fields, type_.elements, strict=True)))


def null(type_: Type) -> Shape:
    """Null, of a type."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        return RecordShape(FALSE, tuple(null(element) for element in type_.elements))
    return literal(f"CAST(NULL AS {type_name(type_)})")


def is_null(shape: Shape) -> SqlTerm:
    """Whether a value is null."""
    if isinstance(shape, SqlTerm):
        return call("is_null", shape) if shape.nullable else FALSE
    return FALSE if shape.valid is None else call("not", shape.valid)


def same_value(left: Shape, right: Shape) -> SqlTerm:
    """Whether two values of one type are equal; null equals itself."""
    if isinstance(left, SqlTerm) and isinstance(right, SqlTerm):
        return same(left, right)
    assert isinstance(left, RecordShape)
    assert isinstance(right, RecordShape)
    parts = [same_value(a, b) for a, b in zip(left.fields, right.fields, strict=True)]
    if left.valid is not None or right.valid is not None:
        parts.insert(0, same(left.valid or TRUE, right.valid or TRUE))
    return both(parts)


def choose(condition: SqlTerm, yes: Shape, no: Shape) -> Shape:
    """`yes` where the condition holds, else `no`; both of one type."""
    if condition in (TRUE, FALSE):
        return yes if condition == TRUE else no
    if isinstance(yes, SqlTerm) and isinstance(no, SqlTerm):
        return call("where", condition, yes, no)
    assert isinstance(yes, RecordShape)
    assert isinstance(no, RecordShape)
    valid = None
    if yes.valid is not None or no.valid is not None:
        valid = call("where", condition, yes.valid or TRUE, no.valid or TRUE)
    return RecordShape(valid, tuple(choose(condition, a, b) for a, b in zip(yes.fields, no.fields, strict=True)))


# --- lists --------------------------------------------------------------------------------------------------------


def type_name(type_: Type) -> str:
    """The type of a packed value in the generic SQL of this engine; a dialect may say it in another way."""
    type_ = plain(type_)
    if isinstance(type_, ListOf):
        return f"{type_name(type_.element)}[]"
    if isinstance(type_, TupleOf):
        inside = ", ".join(f"f{i} {type_name(element)}" for i, element in enumerate(type_.elements))
        return f"STRUCT({inside or 'f BOOLEAN'})"
    assert isinstance(type_, Scalar)
    names = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR", "null": "INTEGER"}
    return names[type_.name]


def column_types(type_: Type) -> list[str]:
    """The types of a record's columns."""
    return ["BOOLEAN" if leaf is None else type_name(leaf) for leaf, _ in leaf_types(type_)]


def pack(shape: Shape) -> SqlTerm:
    """A value as one term: a record becomes a struct, or null."""
    if isinstance(shape, SqlTerm):
        return shape
    parts = [pack(part) for part in shape.fields]
    packed = call(f"struct:{len(parts)}", *parts)
    return packed if shape.valid is None else call("if_valid", shape.valid, packed)


def unpack(term: SqlTerm, type_: Type) -> Shape:
    """The value that one term holds."""
    type_ = plain(type_)
    if not isinstance(type_, TupleOf):
        return term
    parts = tuple(unpack(call(f"struct_field:{i}", term), element) for i, element in enumerate(type_.elements))
    return RecordShape(call("is_present", term), parts)


def coerce(shape: Shape, given: Type, wanted: Type, level: int = 0) -> Shape:
    """The value as one of a type that it unifies with: null finds its type. Names do not matter."""
    given, wanted = plain(given), plain(wanted)
    if same_layout(given, wanted):
        return shape
    if given == NULL:
        return null(wanted)
    if isinstance(given, TupleOf) and isinstance(wanted, TupleOf):
        assert isinstance(shape, RecordShape)
        pairs = zip(shape.fields, given.elements, wanted.elements, strict=True)
        return RecordShape(shape.valid, tuple(coerce(part, a, b, level) for part, a, b in pairs))
    assert isinstance(given, ListOf)
    assert isinstance(wanted, ListOf)
    assert isinstance(shape, SqlTerm)
    name = f"c{level}"
    element = pack(coerce(unpack(parameter(name), given.element), given.element, wanted.element, level + 1))
    return call(f"cast:{type_name(wanted)}", call("map", shape, function(name, element)))


def merged(left: Type, right: Type) -> Type:
    """The type that holds the values of two types that agree but for names and nulls."""
    if NULL in (left, right):
        return (right if left == NULL else left).with_nullable()
    nullable = left.nullable or right.nullable
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        elements = tuple(merged(a, b) for a, b in zip(left.elements, right.elements, strict=True))
        return TupleOf((None,) * len(elements), elements, nullable=nullable)
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return ListOf(merged(left.element, right.element), nullable=nullable)
    return left.with_nullable(nullable)


def same_layout(left: Type, right: Type) -> bool:
    """Whether values of both types lie in the same columns, but for those that say "it is there"."""
    left, right = plain(left), plain(right)
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        pairs = zip(left.elements, right.elements, strict=True)
        return len(left.elements) == len(right.elements) and all(same_layout(a, b) for a, b in pairs)
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        return same_layout(left.element, right.element)
    return left == right


def order_term(term: SqlTerm, type_: Type, level: int = 0) -> SqlTerm:
    """A term that the database orders as the canonical order does: null first, also inside."""
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        parts: list[SqlTerm] = []
        for i, element in enumerate(type_.elements):
            part = call(f"struct_field:{i}", term)
            parts += [call("is_present", part), order_term(part, element, level)]
        return call("if_valid", call("is_present", term), call(f"struct:{len(parts)}", *parts))
    if isinstance(type_, ListOf):
        name = f"o{level}"
        inside = parameter(name)
        key = call("struct:2", call("is_present", inside), order_term(inside, type_.element, level + 1))
        return call("map", term, function(name, key))
    return term


# --- Python -------------------------------------------------------------------------------------------------------


def reader(type_: Type) -> Callable[[Sequence[Any]], Value]:
    """The function from a row, its columns in order, to the record."""
    read, _ = _reader(type_, 0)
    return read


def _reader(type_: Type, at: int) -> tuple[Callable[[Sequence[Any]], Value], int]:
    if isinstance(type_, TupleOf):
        here = at if type_.nullable else None
        at += type_.nullable
        parts = []
        for element in type_.elements:
            part, at = _reader(element, at)
            parts.append(part)
        fields = tuple(parts)
        if here is None:
            return (lambda row: tuple([part(row) for part in fields])), at
        return (lambda row: tuple([part(row) for part in fields]) if row[here] else None), at
    if isinstance(type_, ListOf) or type_ == FLOAT:
        unpacked = unpacker(type_)
        return (lambda row: unpacked(row[at])), at + 1
    return (lambda row: row[at]), at + 1


def unpacker(type_: Type) -> Callable[[Any], Value]:
    """The function from a packed value, as the database gives it, to the value."""
    if isinstance(type_, TupleOf):
        parts = [(f"f{i}", unpacker(element)) for i, element in enumerate(type_.elements)]
        return lambda held: None if held is None else tuple([part(held[name]) for name, part in parts])
    if isinstance(type_, ListOf):
        element = unpacker(type_.element)
        return lambda held: None if held is None else tuple([element(item) for item in held])
    if type_ == FLOAT:
        return lambda held: None if held is None else held + 0.0
    return lambda held: held


def packer(type_: Type) -> Callable[[Value], Any]:
    """The function from a value to what the database takes for it, packed."""
    if isinstance(type_, TupleOf):
        parts = [(f"f{i}", packer(element)) for i, element in enumerate(type_.elements)]

        def struct(value: Value) -> Any:
            if value is None:
                return None
            return {name: part(item) for (name, part), item in zip(parts, value, strict=True)} or {"f": True}

        return struct
    if isinstance(type_, ListOf):
        element = packer(type_.element)
        return lambda value: None if value is None else [element(item) for item in value]
    return lambda value: value


def flattener(type_: Type) -> Callable[[Value], list[Any]]:
    """The function from a record to its columns."""
    if not isinstance(type_, TupleOf):
        packed = packer(type_)
        return lambda value: [packed(value)]
    parts = [flattener(element) for element in type_.elements]
    nulls = (None,) * len(parts)
    nullable = type_.nullable

    def flatten(value: Value) -> list[Any]:
        columns = [value is not None] if nullable else []
        for part, item in zip(parts, nulls if value is None else value, strict=True):
            columns += part(item)
        return columns

    return flatten
