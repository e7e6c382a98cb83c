"""The closed set of record types, and what it means for two of them to agree.

A dataset has one static type, so two records of it that are equal in Python are equal as typed values: `1`, `1.0` and
`True` never meet in one position. Two properties ride along without taking part in equality: whether a value may be
null, and the most elements of a list.
"""

from __future__ import annotations

import datetime
import json
import types as python_types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wpinq.errors import ExpressionError

# The types of single values: those that engines know, and the logical ones that are said in them.

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
#: The most fields, at any depth, that a record may have.
PARTS_LIMIT = 1000
#: How deep records and lists may nest in one another.
TYPE_DEPTH_LIMIT = 64
#: The most values in one record, by the bounds of its lists.
VALUES_LIMIT = 20_000_000
#: The most decimals of a `decimal`: 64 bits represent 18 digits of any value.
SCALE_LIMIT = 18
#: The most values of a `category`.
CATEGORIES_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Type:
    """A type of values.

    `nullable` is whether null may take the place of a value; it is not part of equality.

    `parts`, `depth` and `values` measure it: parts at any depth, levels of nesting, and the most values where lists
    have bounds. They are limited, for a record nested in itself doubles with each step of a short query.
    """

    nullable: bool = field(default=False, compare=False, kw_only=True)
    parts: int = field(init=False, default=1, compare=False, repr=False)
    depth: int = field(init=False, default=0, compare=False, repr=False)
    values: int = field(init=False, default=1, compare=False, repr=False)

    def with_nullable(self, nullable: bool = True) -> Type:
        """The same type, with null allowed or not."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def __or__(self, other: None) -> Type:
        return self.with_nullable() if other is None else NotImplemented

    __ror__ = __or__

    def _measure(self, elements: tuple[Type, ...], times: int = 1) -> None:
        parts = 1 + sum(element.parts for element in elements)
        depth = 1 + max((element.depth for element in elements), default=0)
        values = 1 + times * sum(element.values for element in elements)
        if parts > PARTS_LIMIT:
            raise ExpressionError(f"a record may have {PARTS_LIMIT:,} fields at any depth, and no more")
        if depth > TYPE_DEPTH_LIMIT:
            raise ExpressionError(f"records and lists may nest {TYPE_DEPTH_LIMIT} deep in one another, and no deeper")
        if values > VALUES_LIMIT:
            raise ExpressionError(
                f"a record may hold {VALUES_LIMIT:,} values, but the bounds of its lists allow more: lower the limits"
            )
        for name, measure in (("parts", parts), ("depth", depth), ("values", values)):
            object.__setattr__(self, name, measure)


@dataclass(frozen=True, slots=True)
class Scalar(Type):
    """`int` (signed 64 bits), `float` (finite 64 bits), `bool`, `str` (code points), or `null`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Logical(Scalar):
    """A scalar with a meaning beyond its `stored` scalar, an int or a str, that engines see.

    `date` counts days and `timestamp` microseconds since 1970 (UTC), `time` microseconds since midnight, `duration`
    microseconds.
    """

    stored: Scalar


@dataclass(frozen=True, slots=True)
class DecimalOf(Logical):
    """An exact number with so many decimals, as a 64-bit count of its last decimal."""

    scale: int


@dataclass(frozen=True, slots=True)
class CategoryOf(Logical):
    """A string out of a few that the declaration lists: a public domain."""

    listed: tuple[str, ...]
    known: frozenset[str] = field(init=False, default=frozenset(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", frozenset(self.listed))


INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")
NULL = Scalar("null", nullable=True)
DATE = Logical("date", INT)
TIMESTAMP = Logical("timestamp", INT)
TIME = Logical("time", INT)
DURATION = Logical("duration", INT)


def decimal(scale: int) -> DecimalOf:
    """The type of exact numbers with `scale` decimals, for declarations and casts.

    Parameters
    ----------
    scale : int
        From 0 to 18. Values are whole multiples of `10**-scale`, at most `2**63 - 1` of them.

    Examples
    --------
    >>> import wpinq as wp
    >>> from decimal import Decimal
    >>> sales = wp.source("sales", price=wp.decimal(2))
    >>> wp.evaluate(sales.select(lambda s: s.price * 3), {"sales": [(Decimal("0.10"),)]})
    WeightedDataset({Decimal('0.30'): 1.0})
    """
    if type(scale) is not int or not 0 <= scale <= SCALE_LIMIT:
        raise ExpressionError(f"the scale of a decimal is an integer from 0 to {SCALE_LIMIT}: decimal(2) has cents")
    return DecimalOf(f"decimal({scale})", INT, scale)


def category(*values: str) -> CategoryOf:
    """The type of strings from a public list, for declarations and casts.

    Parameters
    ----------
    *values : str
        Each once; at most 10,000. They are public: part of the declaration, and the keys of a count without `over`.

    Examples
    --------
    >>> import wpinq as wp
    >>> votes = wp.source("votes", colour=wp.category("red", "green"))
    >>> votes.select(lambda v: v.colour).noisy_count(epsilon=1).domain
    ('red', 'green')
    """
    sound = all(type(value) is str and not any(0xD800 <= ord(c) <= 0xDFFF for c in value) for value in values)
    if not values or not sound or len(set(values)) != len(values) or len(values) > CATEGORIES_LIMIT:
        raise ExpressionError(f"a category lists its strings, each once, at most {CATEGORIES_LIMIT:,} of them")
    return CategoryOf(f"category({', '.join(map(json.dumps, values))})", STR, values)


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """A list of values of one type.

    `bound` is the most elements that it can have, or None when no plan says.
    """

    element: Type
    bound: int | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        self._measure((self.element,), self.bound or 1)

    def __str__(self) -> str:
        return f"list[{self.element}]"


@dataclass(frozen=True, slots=True)
class TupleOf(Type):
    """A record: a tuple of values, each with a name or None.

    Names are part of the type, not of the value.
    """

    names: tuple[str | None, ...]
    elements: tuple[Type, ...]

    def __post_init__(self) -> None:
        self._measure(self.elements)

    def __str__(self) -> str:
        inside = ", ".join(str(t) if n is None else f"{n}: {t}" for n, t in zip(self.names, self.elements, strict=True))
        return f"({inside},)" if len(self.elements) == 1 and self.names == (None,) else f"({inside})"


@dataclass(frozen=True, slots=True)
class Weighted(Type):
    """An element of a SelectMany list with its own weight, which cannot be part of a record."""

    record: Type

    def __str__(self) -> str:
        return f"weighted[{self.record}]"


#: What Python's types mean; a bool is an int too, and a datetime a date, so they come before.
PYTHON_TYPES: dict[type, Scalar] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    datetime.datetime: TIMESTAMP,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.timedelta: DURATION,
}


def physical(type_: Type) -> Type:
    """The type in engines: the same, with the stored type of every logical type."""
    if type(type_) is Scalar:
        return type_
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


def uneven_columns(type_: Type) -> int:
    """The number of columns that hold texts or unbounded lists, with their elements."""
    if isinstance(type_, ListOf):
        return uneven_columns(type_.element) if type_.bound is not None else 1 + type_.element.values
    if isinstance(type_, Weighted):
        return uneven_columns(type_.record)
    return sum(map(uneven_columns, type_.elements)) if isinstance(type_, TupleOf) else int(type_ == STR)


def signature(type_: Type) -> str:
    """The type as text with all that its values can be: nullability (`?`) and bounds included."""
    if type(type_) is Scalar:
        return type_.name + "?" * type_.nullable
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
    if isinstance(annotation, type) and annotation in PYTHON_TYPES:
        return PYTHON_TYPES[annotation]
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
    what = repr(annotation) if declares else f"a {type(annotation).__name__}"  # whose repr may contain data
    if not declares and hasattr(annotation, "columns"):
        raise ExpressionError(
            f"{what} is not a record type: declare the types of its columns, which wp.schema(frame) lists, as in "
            'wp.source("people", age=int), and give the data to session.protect'
        )
    raise ExpressionError(
        f"{what} is not a record type: use int, float, bool, str, datetime.date, datetime.datetime, "
        "datetime.time, datetime.timedelta, wp.decimal(2), wp.category('a', 'b'), list[T], tuple[T, U], "
        'T | None, or a mapping {"field": T}'
    )
