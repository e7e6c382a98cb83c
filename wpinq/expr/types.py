"""The closed set of record types, and what it means for two of them to agree.

A dataset has one static type, so two records of it that are equal in Python are equal as typed values: `1`,
`1.0` and `True` never meet in one position. Two properties ride along without taking part in equality:
whether a value may be null, and the most elements that a list can hold.
"""

from __future__ import annotations

import datetime
import types as python_types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wpinq.errors import ExpressionError
from wpinq.expr.scalars import BOOL as BOOL
from wpinq.expr.scalars import CATEGORIES_LIMIT as CATEGORIES_LIMIT
from wpinq.expr.scalars import DATE as DATE
from wpinq.expr.scalars import DURATION as DURATION
from wpinq.expr.scalars import FLOAT as FLOAT
from wpinq.expr.scalars import INT as INT
from wpinq.expr.scalars import INT_MAX as INT_MAX
from wpinq.expr.scalars import INT_MIN as INT_MIN
from wpinq.expr.scalars import NULL as NULL
from wpinq.expr.scalars import PARTS_LIMIT as PARTS_LIMIT
from wpinq.expr.scalars import SCALE_LIMIT as SCALE_LIMIT
from wpinq.expr.scalars import STR as STR
from wpinq.expr.scalars import TIME as TIME
from wpinq.expr.scalars import TIMESTAMP as TIMESTAMP
from wpinq.expr.scalars import TYPE_DEPTH_LIMIT as TYPE_DEPTH_LIMIT
from wpinq.expr.scalars import VALUES_LIMIT as VALUES_LIMIT
from wpinq.expr.scalars import CategoryOf as CategoryOf
from wpinq.expr.scalars import DecimalOf as DecimalOf
from wpinq.expr.scalars import Logical as Logical
from wpinq.expr.scalars import Scalar as Scalar
from wpinq.expr.scalars import Type as Type
from wpinq.expr.scalars import category as category
from wpinq.expr.scalars import decimal as decimal


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """A list of values of one type. `bound` is the most elements it can hold, or None when no plan says."""

    element: Type
    bound: int | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        self._measure((self.element,), self.bound or 1)

    def __str__(self) -> str:
        return f"list[{self.element}]"


@dataclass(frozen=True, slots=True)
class TupleOf(Type):
    """A record: values side by side, each with a name or None. Names are part of the type, not of the value."""

    names: tuple[str | None, ...]
    elements: tuple[Type, ...]

    def __post_init__(self) -> None:
        self._measure(self.elements)

    def __str__(self) -> str:
        inside = ", ".join(str(t) if n is None else f"{n}: {t}" for n, t in zip(self.names, self.elements, strict=True))
        return f"({inside},)" if len(self.elements) == 1 and self.names == (None,) else f"({inside})"


@dataclass(frozen=True, slots=True)
class Weighted(Type):
    """An element of a SelectMany list that carries its own weight. It cannot be part of a record."""

    record: Type

    def __str__(self) -> str:
        return f"weighted[{self.record}]"


_ANNOTATIONS: dict[object, Type] = {
    int: INT,
    float: FLOAT,
    bool: BOOL,
    str: STR,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
    datetime.time: TIME,
    datetime.timedelta: DURATION,
}


def physical(type_: Type) -> Type:
    """The type of what engines hold: the same, with every logical type by the one that stands for it."""
    if isinstance(type_, Logical):
        return type_.stored.with_nullable(type_.nullable)
    if isinstance(type_, ListOf):
        element = physical(type_.element)
        return type_ if element is type_.element else replace(type_, element=element)
    if isinstance(type_, TupleOf):
        elements = tuple(map(physical, type_.elements))
        same = all(one is other for one, other in zip(elements, type_.elements, strict=True))
        return type_ if same else replace(type_, elements=elements)
    if isinstance(type_, Weighted):
        record = physical(type_.record)
        return type_ if record is type_.record else replace(type_, record=record)
    return type_


def is_number(type_: Type) -> bool:
    """Whether arithmetic applies."""
    return type_ in (INT, FLOAT)


def is_record_type(type_: Type) -> bool:
    """Whether values of the type can stand in a dataset: everything but a weighted element."""
    if isinstance(type_, TupleOf):
        return all(is_record_type(element) for element in type_.elements)
    if isinstance(type_, ListOf):
        return is_record_type(type_.element)
    return not isinstance(type_, Weighted)


def signature(type_: Type) -> str:
    """The type as text with all that its values can be: nullability (`?`) and bounds included."""
    if isinstance(type_, ListOf):
        text = f"[{signature(type_.element)};{'' if type_.bound is None else type_.bound}]"
    elif isinstance(type_, TupleOf):
        fields = [
            f"{name}:{signature(t)}" if name else signature(t)
            for name, t in zip(type_.names, type_.elements, strict=True)
        ]
        text = f"({','.join(fields)})"
    elif isinstance(type_, Weighted):
        text = f"weighted({signature(type_.record)})"
    else:
        text = str(type_)
    return text + "?" * type_.nullable


def unify(left: Type, right: Type) -> Type | None:
    """The type that holds the values of both, or None.

    Null joins any type and makes it nullable, but for weighted elements: leave those out by a weight of 0. Field
    names must agree where both sides have one: silently pairing `dst` with `src` would be a trap. A list's bound
    is the larger of the two.
    """
    nullable = left.nullable or right.nullable
    for one, other in ((left, right), (right, left)):
        if one == NULL:
            return None if isinstance(other, Weighted) else other.with_nullable()
    if isinstance(left, ListOf) and isinstance(right, ListOf):
        element = unify(left.element, right.element)
        if element is None:
            return None
        bound = None if left.bound is None or right.bound is None else max(left.bound, right.bound)
        return ListOf(element, bound=bound, nullable=nullable)
    if isinstance(left, Weighted) and isinstance(right, Weighted):
        record = unify(left.record, right.record)
        return None if record is None else Weighted(record, nullable=nullable)
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        return _unify_records(left, right, nullable)
    return left.with_nullable(nullable) if left == right else None


def _unify_records(left: TupleOf, right: TupleOf, nullable: bool) -> Type | None:
    if len(left.elements) != len(right.elements):
        return None
    names = tuple(b if a is None else a for a, b in zip(left.names, right.names, strict=True))
    given = [name for name in names if name is not None]
    agree = all(b is None or b == name for b, name in zip(right.names, names, strict=True))
    if not agree or len(set(given)) != len(given):
        return None
    elements = [unify(a, b) for a, b in zip(left.elements, right.elements, strict=True)]
    if any(element is None for element in elements):
        return None
    return TupleOf(names, tuple(e for e in elements if e is not None), nullable=nullable)


def record_type(fields: Mapping[str, Type]) -> TupleOf:
    """The record type with these named fields."""
    for name in fields:
        check_field_name(name)
    return TupleOf(tuple(fields), tuple(fields.values()))


def tuple_type(elements: Iterable[Type]) -> TupleOf:
    """The record type with these unnamed fields."""
    elements = tuple(elements)
    return TupleOf((None,) * len(elements), elements)


def check_field_name(name: str) -> None:
    """Refuse a field name that could not be written after a dot, in Python or in text."""
    if not (name.isidentifier() and name.isascii()) or name.startswith("_"):
        raise ExpressionError(
            f"the field name {name!r} cannot be used: take ASCII letters, digits and underscores, "
            "starting with a letter"
        )


def type_from_annotation(annotation: object) -> Type:
    """The type that a Python annotation of a source schema means.

    `int`, `float`, `bool`, `str`; `datetime.date`, `datetime.datetime`, `datetime.time`, `datetime.timedelta`;
    `list[T]`; `tuple[T, …]` and mappings for nested records; `T | None` where null is allowed; a `Type`, as `decimal`
    and `category` give, stands for itself. Examples: `list[str]`, `int | None`, `{"src": int, "dst": int}`.
    """
    if isinstance(annotation, Type) and is_record_type(annotation):
        return annotation
    if isinstance(annotation, Mapping):
        return record_type({name: type_from_annotation(item) for name, item in annotation.items()})
    if isinstance(annotation, type) and annotation in _ANNOTATIONS:
        return _ANNOTATIONS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and len(arguments) == 1:
        return ListOf(type_from_annotation(arguments[0]))
    if origin is tuple and arguments and Ellipsis not in arguments:
        return tuple_type(type_from_annotation(item) for item in arguments)
    if origin in (typing.Union, python_types.UnionType) and type(None) in arguments:
        rest = [item for item in arguments if item is not type(None)]
        if len(rest) == 1:
            return type_from_annotation(rest[0]).with_nullable()
    quoted = annotation if isinstance(annotation, str) and annotation in ("int", "float", "bool", "str") else None
    if quoted is not None:
        raise ExpressionError(f"{annotation!r} is not a record type: write {quoted}, without quotes")
    declares = origin is not None or isinstance(annotation, (type, Type))
    what = repr(annotation) if declares else f"a {type(annotation).__name__}"  # whose repr may hold data
    raise ExpressionError(
        f"{what} is not a record type: use int, float, bool, str, datetime.date, datetime.datetime, "
        "datetime.time, datetime.timedelta, wp.decimal(2), wp.category('a', 'b'), list[T], tuple[T, U], "
        'T | None, or a mapping {"field": T}'
    )
