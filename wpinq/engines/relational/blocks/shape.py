"""Values as terms: a record is its leaves side by side, as `columns.flat` lays them in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wpinq.columns.flat import plain, type_name
from wpinq.engines.relational.blocks.term import FALSE, TRUE, SqlTerm, both, call, function, literal, parameter, same
from wpinq.expr.types import NULL, ListOf, TupleOf, Type


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
