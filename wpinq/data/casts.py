"""What a column of a table becomes, as SQL: the canonical value of the declared type, and what makes it unfit.

One rule for each declared scalar, from the type that the column has in DuckDB; another for text, of which csv is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.records import type_name
from wpinq.columns.unlinked_file import quoted
from wpinq.data.arrow_types import COUNTED_DURATIONS, COUNTED_MOMENTS
from wpinq.data.layout import NO_BOOL
from wpinq.expr.declarations import ID, NO_ID
from wpinq.expr.logical_values import FORMS, limits
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    STR,
    TIME,
    TIMESTAMP,
    CategoryOf,
    DecimalOf,
    ListOf,
    Logical,
    TupleOf,
    Type,
)

# Columns and text of dates, timestamps, decimals and their like, as SQL: what stands for a value, what is unfit.
#
# The same rules as `expr.logical_values` has for Python's values: exact or refused.

StoredColumn = tuple[str, list[tuple[str, str]]]
"""What stands for a value, and the conditions that make one unfit, with their reasons."""

_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint")
_COARSE = ("timestamp", "timestamp_s", "timestamp_ms")
_ZONED = ("timestamp with time zone", "timestamptz_ns")
_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
"""Microseconds of the units of counted columns; of nanoseconds a microsecond has a thousand."""
_EPOCH = "DATE '1970-01-01'"
_BUILT_IN = "system.main."
"""Before the name of an operator: a relation is asked in the database of its owner, who may have macros of it."""


def logical_column(column: str, given: Any, type_: Logical) -> StoredColumn | None:
    """A column of some DuckDB type as a logical type, or None where no value of it can be one."""
    kind = str(given.id)
    if isinstance(type_, CategoryOf):
        text = column if kind == "varchar" else f"CAST({column} AS VARCHAR)"
        return (text, _unlisted(text, type_)) if kind in ("varchar", "enum") else None
    if isinstance(type_, DecimalOf):
        return _decimal(column, given, type_)
    return _MOMENTS[type_](column, kind)


def logical_text(column: str, type_: Logical) -> tuple[str, list[tuple[str, str]], str]:
    """A column of text as a logical type, and what holds of a fit one; of an empty text nothing is said."""
    if isinstance(type_, CategoryOf):
        value, unfit = column, [(f"{column} <> '' AND {condition}", why) for condition, why in _unlisted(column, type_)]
    else:
        value, unfit = _decimal_text(column, type_) if isinstance(type_, DecimalOf) else _moment_text(column, type_)
    return value, unfit, " AND ".join(f"({condition}) IS NOT TRUE" for condition, _ in unfit)


def text_says(type_: Type) -> bool:
    """Whether a csv file can hold values of a logical type."""
    return isinstance(type_, Logical) and type_ != DURATION


def _in_range(column: str, value: str, type_: Logical) -> list[tuple[str, str]]:
    least, most = limits(type_)
    beyond = "the years 1 to 9999" if type_ in (DATE, TIMESTAMP) else "a day" if type_ == TIME else "64 bits"
    outside = f"{column} IS NOT NULL AND NOT coalesce({value} BETWEEN {least} AND {most}, false)"
    return [(outside, f"a {type_} outside {beyond}")]


def _date(column: str, kind: str) -> StoredColumn | None:
    if kind == "date":
        value = f'CAST({_BUILT_IN}"-"({column}, {_EPOCH}) AS BIGINT)'
        return value, _in_range(column, value, DATE)
    moment = _timestamp(column, kind)
    if moment is None or kind in _ZONED or kind.startswith(COUNTED_MOMENTS):
        return None
    microseconds, unfit = moment
    midnight = "a timestamp, where date is declared, that is not midnight without a zone"
    return f"({microseconds} // 86400000000)", [*unfit, (f"{microseconds} % 86400000000 <> 0", midnight)]


def _timestamp(column: str, kind: str) -> StoredColumn | None:
    if kind.startswith(COUNTED_MOMENTS):
        return _counted(column, kind, TIMESTAMP, "moment")
    if kind not in (*_COARSE, "timestamp_ns", *_ZONED):
        return None
    # There is no epoch_us of nanoseconds with a zone; of whole microseconds the division is exact.
    value = f"(TRY(epoch_ns({column})) // 1000)" if kind == "timestamptz_ns" else f"TRY(epoch_us({column}))"
    unfit = _in_range(column, value, TIMESTAMP)
    if kind in ("timestamp_ns", "timestamptz_ns"):
        unfit.append((f"TRY(epoch_ns({column})) % 1000 <> 0", "a moment finer than microseconds"))
    return value, unfit


def _time(column: str, kind: str) -> StoredColumn | None:
    if kind not in ("time", "time_ns"):
        return None
    value = f"epoch_us({column})"
    unfit = _in_range(column, value, TIME)
    if kind == "time_ns":
        unfit.append((f"epoch_ns({column}) % 1000 <> 0", "a moment finer than microseconds"))
    return value, unfit


def _counted(column: str, kind: str, type_: Logical, noun: str) -> StoredColumn:
    """What a column of integers counts, in the unit that stands last in its kind."""
    unit = kind.rpartition(" ")[2]
    if unit == "ns":
        value = f"({column} // 1000)"  # of whole microseconds it is exact
        return value, [*_in_range(column, value, type_), (f"{column} % 1000 <> 0", f"a {noun} finer than microseconds")]
    value = f"TRY_CAST(CAST({column} AS HUGEINT) * {_MICROSECONDS[unit]} AS BIGINT)"
    return value, _in_range(column, value, type_)


def _duration(column: str, kind: str) -> StoredColumn | None:
    if kind.startswith(COUNTED_DURATIONS):
        return _counted(column, kind, DURATION, "duration")
    if kind != "interval":
        return None
    value = f"TRY(epoch_us({column}))"
    months = f"datepart('year', {column}) <> 0 OR datepart('month', {column}) <> 0"
    return value, [(months, "an interval of months, which are no duration"), *_in_range(column, value, DURATION)]


_MOMENTS: dict[Type, Callable[[str, str], StoredColumn | None]] = {
    DATE: _date,
    TIMESTAMP: _timestamp,
    TIME: _time,
    DURATION: _duration,
}


def _unlisted(text: str, type_: CategoryOf) -> list[tuple[str, str]]:
    listed = ", ".join(map(quoted, type_.listed))
    return [(f"{text} NOT IN ({listed})", "a value that is none of the declared categories")]


def _units(column: str, scale: int) -> str:
    return f'TRY_CAST(TRY({_BUILT_IN}"*"({column}, CAST({10**scale} AS BIGINT))) AS BIGINT)'


def _decimal(column: str, given: Any, type_: DecimalOf) -> StoredColumn | None:
    kind, scale = str(given.id), type_.scale
    if kind in _INTEGERS:
        value = _units(f"CAST({column} AS HUGEINT)", scale)
        return value, _in_range(column, value, type_)
    if kind != "decimal":
        return None
    width, given_scale = (int(dict(given.children)[part]) for part in ("precision", "scale"))
    if given_scale <= scale and width - given_scale + scale < 19 and width + scale < 38:  # all are counted in 64 bits
        # a product of two that 64 bits hold is held in as many, and may overflow where its units do not
        wide = f"CAST({column} AS DECIMAL(19, {given_scale}))" if width < 19 <= width + scale + 1 else column
        return f'CAST({_BUILT_IN}"*"({wide}, CAST({10**scale} AS DECIMAL({scale + 1}, 0))) AS BIGINT)', []
    exact = f"TRY_CAST({column} AS DECIMAL(38, {scale}))"
    value = _units(exact, scale)
    finer = [(f"{exact} <> {column}", f"a number of more than {scale} decimals")] if given_scale > scale else []
    return value, [*finer, *_in_range(column, value, type_)]


# --- text -------------------------------------------------------------------------------------------------------------

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"([+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_PATTERNS: dict[Type, str] = {DATE: _DAY, TIME: _CLOCK, TIMESTAMP: f"{_DAY}[T ]{_CLOCK}(Z|{_ZONE})?"}


def _moment_text(column: str, type_: Logical) -> StoredColumn:
    if type_ == DATE:
        value = f"CAST(TRY_CAST({column} AS DATE) - {_EPOCH} AS BIGINT)"
    elif type_ == TIME:
        value = f"epoch_us(TRY_CAST({column} AS TIME))"
    else:
        moment = f"regexp_extract({column}, '^({_DAY}[T ]{_CLOCK})', 1)"
        zone = f"regexp_extract({column}, '[T ].*{_ZONE}$', 1)"
        minutes = f"CAST({zone}[2:3] AS BIGINT) * 60 + CAST({zone}[5:6] AS BIGINT)"
        east = f"CASE WHEN {zone} = '' THEN 0 WHEN {zone}[1] = '-' THEN -({minutes}) ELSE {minutes} END"
        value = f"(epoch_us(TRY_CAST({moment} AS TIMESTAMP)) - 60000000 * ({east}))"
    form = f"text that is not of type {type_} ({FORMS[type_]})"
    matches = f"regexp_full_match({column}, '{_PATTERNS[type_]}')"
    value = f"CASE WHEN {matches} THEN {value} END"
    least, most = limits(type_)
    return value, [
        (f"{column} <> '' AND {value} IS NULL", form),
        (f"{value} NOT BETWEEN {least} AND {most}", f"a {type_} outside the years 1 to 9999"),
    ]


def _decimal_text(column: str, type_: DecimalOf) -> StoredColumn:
    scale = type_.scale
    number = f"regexp_full_match({column}, '[+-]?[0-9]+(\\.[0-9]+)?')"
    short = f"regexp_full_match({column}, '[+-]?[0-9]+(\\.[0-9]{{0,{scale}}}0*)?')"
    value = f"CASE WHEN {number} AND {short} THEN {_units(f'TRY_CAST({column} AS DECIMAL(38, {scale}))', scale)} END"
    form = f"text that is not of type {type_} (digits, with a point before the decimals)"
    return value, [
        (f"{column} <> '' AND NOT {number}", form),
        (f"{column} <> '' AND NOT {short}", f"a number of more than {scale} decimals"),
        (f"{column} <> '' AND {value} IS NULL", f"a {type_} outside 64 bits"),
    ]


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
