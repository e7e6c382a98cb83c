"""What a column of a table becomes, as SQL: the canonical value of the declared type, and what makes it unfit.

One rule for each declared scalar, from the type that the column has in DuckDB; another for text, of which csv is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.flat import type_name
from wpinq.expr.person import ID, NO_ID
from wpinq.expr.types import BOOL, FLOAT, INT, STR, ListOf, Logical, TupleOf, Type
from wpinq.ingest.logical_columns import logical_column, logical_text, text_says
from wpinq.ingest.typed_columns import NO_BOOL

Unfit = tuple[str, str]
"""A condition that holds of an unfit value and of no other (null is as good as false), and the reason in words."""

UNFIT = "error('unfit')"
"""What ends a query."""

_SIGNED = ("tinyint", "smallint", "integer", "bigint")
_SMALL = (*_SIGNED, "utinyint", "usmallint", "uinteger")
_WIDE = ("ubigint", "hugeint", "uhugeint")


@dataclass(frozen=True, slots=True)
class Canonical:
    """The leaves of a value as `columns.flat` lays them, and what makes it unfit, in the order of looking.

    `checked` are the leaves of fit values, which end a query with an error where the value is unfit: one look at text
    that finds whether it is fit need not be followed by another. None where `unfit` has to be asked.
    """

    leaves: tuple[str, ...]
    unfit: tuple[Unfit, ...]
    checked: tuple[str, ...] | None = None


def of_column(column: str, given: Any, type_: Type) -> Canonical:
    """A column of some DuckDB type (`DuckDBPyType`), as a declared type."""
    if not isinstance(type_, TupleOf):
        value, unfit = _value(column, given, type_)
        return Canonical((value,), tuple(unfit))
    unfit = _null(column, type_)
    leaves = [f"({column} IS NOT NULL)"] if type_.nullable else []
    parts, more = _fields(column, given, type_)
    unfit += more
    for part, part_given, element in parts:
        inside = of_column(part, part_given, element)
        leaves += inside.leaves
        there = f"{column} IS NOT NULL AND "
        unfit += [(there + f"({condition})", reason) for condition, reason in inside.unfit]
    return Canonical(tuple(leaves), tuple(unfit))


def of_text(column: str, type_: Type) -> Canonical:
    """A column of text, as a declared scalar. An empty field is null where the type allows null."""
    value, unfit, fit = logical_text(column, type_) if isinstance(type_, Logical) else _TEXT[type_](column)
    empty = f"{column} = ''"
    if_empty = "NULL" if type_.nullable else UNFIT
    checked = f"CASE WHEN {empty} THEN {if_empty} WHEN {fit} THEN {value} ELSE {UNFIT} END"
    if type_.nullable:
        return Canonical((f"CASE WHEN {empty} THEN NULL ELSE {value} END",), tuple(unfit), (checked,))
    unfit.insert(0, (empty, NO_ID if type_ == ID else f"an empty field where {type_} is declared"))
    return Canonical((value,), tuple(unfit), (checked,))


def readable_as_text(type_: Type) -> bool:
    """Whether text can say values of a type."""
    return type_ in _TEXT or text_says(type_)


def _null(column: str, type_: Type) -> list[Unfit]:
    if type_.nullable:
        return []
    if type_ == ID:
        return [(f"{column} IS NULL", NO_ID)]
    return [(f"{column} IS NULL", f"null where {type_} is declared (declare it as `T | None` to allow null)")]


def _value(column: str, given: Any, type_: Type, level: int = 0) -> tuple[str, list[Unfit]]:
    """A value as one term, packed, and what makes it unfit."""
    unfit = _null(column, type_)
    if isinstance(type_, ListOf):
        value, more = _list(column, given, type_, level)
    elif isinstance(type_, TupleOf):
        parts, more = _fields(column, given, type_)
        packed = []
        for i, (part, part_given, element) in enumerate(parts):
            inside, unfit_inside = _value(part, part_given, element, level)
            packed.append(f"f{i} := {inside}")
            more += [(f"{column} IS NOT NULL AND ({condition})", reason) for condition, reason in unfit_inside]
        value = f"CASE WHEN {column} IS NULL THEN NULL ELSE struct_pack({', '.join(packed) or 'f := true'}) END"
    elif isinstance(type_, Logical):
        value, more = logical_column(column, given, type_) or _other(column, str(given.id), type_)
    elif _is_whole(given):  # which is how Arrow has the wide integers of DuckDB, such as every sum
        value, more = _SCALARS[type_](f"CAST({column} AS HUGEINT)", "hugeint")
    else:
        value, more = _SCALARS[type_](column, str(given.id))
    return value, unfit + more


def _is_whole(given: Any) -> bool:
    return bool(given.id == "decimal" and dict(given.children)["scale"] == 0)


def _fields(column: str, given: Any, type_: TupleOf) -> tuple[list[tuple[str, Any, Type]], list[Unfit]]:
    """The parts of a record, by name; and why it is none."""
    null = f"CAST(NULL AS {type_name(type_)})"
    fallback = [(f"struct_extract_at({null}, {i + 1})", _Null, element) for i, element in enumerate(type_.elements)]
    if given.id != "struct":
        return fallback, _mismatch(column, given, type_)
    places = {name: place for place, (name, _) in enumerate(given.children)}
    for name in type_.names:
        if name is None:
            return fallback, [(f"{column} IS NOT NULL", "a record by field name where the fields have no names")]
        if name not in places:
            return fallback, [(f"{column} IS NOT NULL", f"a record without the field {name!r}")]
    chosen = [places[name] for name in type_.names if name is not None]
    parts = [
        (f"struct_extract_at({column}, {place + 1})", given.children[place][1], element)
        for place, element in zip(chosen, type_.elements, strict=True)
    ]
    return parts, []


class _Null:
    id = "null"


def _mismatch(column: str, given: Any, type_: Type) -> list[Unfit]:
    return [] if given.id == "null" else [(f"{column} IS NOT NULL", f"a value that is not of type {type_}")]


def _list(column: str, given: Any, type_: ListOf, level: int) -> tuple[str, list[Unfit]]:
    if given.id not in ("list", "array"):
        return f"CAST(NULL AS {type_name(type_)})", _mismatch(column, given, type_)
    child = given.children[0][1]
    items = f"CAST({column} AS {child}[])" if given.id == "array" else column
    item = f"x{level}"
    inside, unfit_inside = _value(item, child, type_.element, level + 1)
    unfit = [
        (f"len(list_filter({items}, lambda {item}: {condition})) > 0", reason) for condition, reason in unfit_inside
    ]
    if type_.bound is not None:
        unfit.insert(0, (f"len({items}) > {type_.bound}", f"a list of more than {type_.bound} elements"))
    value = items if inside == item else f"list_transform({items}, lambda {item}: {inside})"
    return f"CAST({value} AS {type_name(type_)})", unfit


# --- scalars ----------------------------------------------------------------------------------------------------------

_Packed = tuple[str, list[Unfit]]
"""A value as one term, and what makes it unfit."""


def _other(column: str, kind: str, type_: Type) -> _Packed:
    value = f"CAST(NULL AS {type_name(type_)})"
    unfit = f"a value that is not of type {type_}"
    return value, [] if kind == "null" else [(f"{column} IS NOT NULL", unfit)]


def _bool(column: str, kind: str) -> _Packed:
    if kind in (*_SMALL, *_WIDE):
        return f"({column} = 1)", [(f"{column} NOT IN (0, 1)", NO_BOOL)]
    return (column, []) if kind == "boolean" else _other(column, kind, BOOL)


def _int(column: str, kind: str) -> _Packed:
    if kind == "bigint":
        return column, []
    if kind in _SMALL:
        return f"CAST({column} AS BIGINT)", []
    if kind in _WIDE:
        value = f"TRY_CAST({column} AS BIGINT)"
        return value, [(f"{column} IS NOT NULL AND {value} IS NULL", "an integer outside 64 bits")]
    return _other(column, kind, INT)


def _float(column: str, kind: str) -> _Packed:
    value = f"(CAST({column} AS DOUBLE) + CAST(0 AS DOUBLE))"  # -0.0 becomes 0.0
    if kind in ("float", "double"):
        return value, [(f"NOT isfinite({column})", "nan or infinity")]
    if kind in ("tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger"):
        return value, []
    if kind in ("bigint", *_WIDE):
        back = f"TRY_CAST(CAST({column} AS DOUBLE) AS {'HUGEINT' if kind != 'uhugeint' else 'UHUGEINT'})"
        inexact = f"{column} IS NOT NULL AND {back} IS DISTINCT FROM {column}"
        return value, [(inexact, "an integer that float cannot represent exactly")]
    return _other(column, kind, FLOAT)


def _str(column: str, kind: str) -> _Packed:
    if kind == "varchar":
        return column, []
    return (f"CAST({column} AS VARCHAR)", []) if kind == "enum" else _other(column, kind, STR)


def _id(column: str, kind: str) -> _Packed:
    if kind in (*_SMALL, *_WIDE):
        return _int(column, kind)
    return _str(column, kind) if kind in ("varchar", "enum") else _other(column, kind, ID)


_SCALARS: dict[Type, Callable[[str, str], _Packed]] = {BOOL: _bool, INT: _int, FLOAT: _float, STR: _str, ID: _id}


# --- text -------------------------------------------------------------------------------------------------------------

# What DuckDB reads and csv files do not mean is kept out: blanks, 1_000, 0x10, an int of 1.5, digits of other scripts.
_INTEGER = "[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


_Reading = tuple[str, list[Unfit], str]
"""A value, what makes text unfit that is not empty, and whether it is fit."""


def _int_text(column: str) -> _Reading:
    value = f"TRY_CAST({column} AS BIGINT)"
    digits = f"regexp_full_match({column}, '{_INTEGER}')"
    unfit = [
        (f"{column} <> '' AND NOT {digits}", "text that is not of type int"),
        (f"{column} <> '' AND {value} IS NULL", "an integer outside 64 bits"),
    ]
    return value, unfit, f"CAST({value} AS VARCHAR) = {column} OR ({digits} AND {value} IS NOT NULL)"


def _float_text(column: str) -> _Reading:
    value = f"(TRY_CAST({column} AS DOUBLE) + CAST(0 AS DOUBLE))"
    special = f"lower(ltrim({column}, '+-')) IN ('nan', 'inf', 'infinity')"
    digits, finite = f"regexp_full_match({column}, '{_DECIMAL}')", f"coalesce(isfinite({value}), false)"
    unfit = [
        (f"{column} <> '' AND NOT {digits} AND {special}", "nan or infinity"),
        (f"{column} <> '' AND NOT {digits}", "text that is not of type float"),
        (f"{column} <> '' AND NOT {finite}", "nan or infinity"),
    ]
    return value, unfit, f"{digits} AND {finite}"


def _bool_text(column: str) -> _Reading:
    known = f"lower({column}) IN ('true', 'false', '1', '0')"
    unfit = [(f"{column} <> '' AND NOT {known}", "text that is not of type bool (true or false, 1 or 0)")]
    return f"(lower({column}) IN ('true', '1'))", unfit, known


def _str_text(column: str) -> _Reading:
    zero = f"contains({column}, chr(0))"
    return column, [(zero, "a zero character (NUL), which text has not")], f"NOT {zero}"


_TEXT: dict[Type, Callable[[str], _Reading]] = {
    INT: _int_text,
    FLOAT: _float_text,
    BOOL: _bool_text,
    STR: _str_text,
    ID: _str_text,
}


def any_of(conditions: Sequence[str]) -> str:
    """Whether one of some conditions holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"
