"""Records as flat columns: how a value of each record type lies in a table, in a list, and in Python.

A record becomes its leaves side by side, `c0`, `c1`, …; one that can be null has a leading column that says whether it
is there, and where it is not, every leaf is null. A list is one column, of packed elements: scalars, lists, or structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wpinq.expr.person import ID
from wpinq.expr.types import FLOAT, ListOf, Scalar, TupleOf, Type, Weighted, physical
from wpinq.expr.values import Value


def plain(type_: Type) -> Type:
    """What lies in columns for a type: physical types, and a weighted element as the pair that it is."""
    type_ = physical(type_)
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


def column_names(type_: Type) -> list[str]:
    """The names of a record's columns in a table."""
    return [f"c{i}" for i, _ in enumerate(leaf_types(type_))]


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
    names[ID.name] = "VARCHAR"
    return names[type_.name]


def column_types(type_: Type) -> list[str]:
    """The types of a record's columns."""
    return ["BOOLEAN" if leaf is None else type_name(leaf) for leaf, _ in leaf_types(type_)]


def has_lists(type_: Type) -> bool:
    """Whether a column of a record is a list."""
    return any(isinstance(leaf, ListOf) for leaf, _ in leaf_types(type_))


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
