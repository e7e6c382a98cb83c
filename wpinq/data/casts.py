"""Casts: a column of a table as a declared type, in SQL.

A cast has the canonical value, and the conditions of unfit ones. There is one rule for each declared scalar, from the
column's type in DuckDB, and one from text, as csv files have it. As for values of Python (`expr.logical_values`), a
value is exactly of the type or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.records import column_types, type_name
from wpinq.columns.unlinked_file import quoted
from wpinq.data.kinds import COUNTED_DURATIONS, COUNTED_MOMENTS, INT96, column_advice, duckdb_kind, way_to
from wpinq.data.layout import NO_BOOL
from wpinq.expr import types
from wpinq.expr.declarations import ID, IDS, INT_ID, NO_ID, STR_ID
from wpinq.expr.values import FORMS, limits

#: A condition that holds of an unfit value and of no other (null is as good as false), and the reason in words.
Unfit = tuple[str, str]

#: The expression that ends a query.
UNFIT = "error('unfit')"

#: A value as one term, and the conditions of unfit ones.
_Value = tuple[str, list[Unfit]]


class OtherKind(Exception):
    """A column, or what is in it, is of a kind of which no value is of the declared type."""


@dataclass(frozen=True, slots=True)
class CastWords:
    """How a database says what two databases say differently; `{}` stands for a value.

    Attributes
    ----------
    scalar : callable
        A column of some kind as a declared scalar; None where no value of it can be one.
    strict : bool
        Whether a column of another kind than the declared one is an error; else its values are unfit, nulls apart.
    field : callable
        A field of a record, by its name and place.
    mapped : str
        A function of `{1}`, `{2}`, of each element of a list, `{0}`.
    some : str
        Whether it holds of one of them.
    """

    scalar: Callable[[str, Any, types.Type], _Value | None]
    strict: bool
    field: Callable[[str, str, int], str]
    record: Callable[[Sequence[str], types.Type], str]
    mapped: str
    some: str
    length: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A column as a declared type, in SQL.

    Attributes
    ----------
    leaves : tuple of str
        The canonical values, as `columns.records` lays them out.
    unfit : tuple of Unfit
        The conditions of unfit values, in the order of their check.
    checked : tuple of str
        The leaves of fit values, which end a query with an error at an unfit one: text is matched once. Empty where
        `unfit` has to be asked.
    advice : str
        The way from the column as it is to the declared type, where it is of another.
    """

    leaves: tuple[str, ...]
    unfit: tuple[Unfit, ...]
    checked: tuple[str, ...] = ()
    advice: str = ""


def of_column(column: str, given: Any, type_: types.Type, words: CastWords | None = None) -> Cast:
    """A column of some type of DuckDB's (`DuckDBPyType`) as a declared type.

    Another database's types work, too.
    """
    words = words or DUCKDB
    if not isinstance(type_, types.TupleOf):
        value, unfit = _value(column, given, type_, words)
        return Cast((value,), tuple(unfit), advice=column_advice(duckdb_kind(given), type_))
    leaves, unfit = [f"({column} IS NOT NULL)"] if type_.nullable else [], _null(column, type_)
    parts, why = _fields(column, given, type_, words)
    if why is not None:
        nulls = tuple(f"CAST(NULL AS {kind})" for kind in column_types(type_))
        return Cast(nulls, (*unfit, *why))
    for part, part_given, element in parts:
        inside = of_column(part, part_given, element, words)
        leaves += inside.leaves
        unfit += [(f"{column} IS NOT NULL AND ({condition})", reason) for condition, reason in inside.unfit]
    return Cast(tuple(leaves), tuple(unfit))


def of_text(column: str, type_: types.Type) -> Cast:
    """A column of text as a declared scalar.

    An empty field is null where the type allows null.
    """
    if isinstance(type_, types.CategoryOf):
        value, unfit = column, [(f"{column} <> '' AND {condition}", why) for condition, why in _unlisted(column, type_)]
    elif isinstance(type_, types.DecimalOf):
        value, unfit = _decimal_text(column, type_)
    elif isinstance(type_, types.Logical):
        value, unfit = _moment_text(column, type_)
    else:
        value, unfit = _TEXT[type_](column)
    fit = " AND ".join(f"({condition}) IS NOT TRUE" for condition, _ in unfit)
    if type_ == types.INT:  # nearly every integer is written as DuckDB writes it
        fit = f"CAST({value} AS VARCHAR) = {column} OR ({fit})"
    if_empty = "NULL" if type_.nullable else UNFIT
    fit = f"{column} IS NOT NULL AND ({fit})"  # DuckDB cannot be kept from taking some text for null
    checked = f"CASE WHEN {column} = '' THEN {if_empty} WHEN {fit} THEN {value} ELSE {UNFIT} END"
    if type_.nullable:
        value = f"CASE WHEN {column} = '' THEN NULL ELSE {value} END"
    else:
        unfit.insert(0, (f"{column} = ''", NO_ID if type_ in IDS else f"an empty field where {type_} is declared"))
    return Cast((value,), tuple(unfit), (checked,), way_to(type_)[1])


def readable_as_text(type_: types.Type) -> bool:
    """Whether a csv file can hold values of a type."""
    return type_ in _TEXT or (isinstance(type_, types.Logical) and type_ != types.DURATION)


def any_of(conditions: Sequence[str]) -> str:
    """Whether one of some conditions holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"


def _null(column: str, type_: types.Type) -> list[Unfit]:
    if type_.nullable:
        return []
    words = f"null where {type_} is declared (declare it as `T | None` to allow null)"
    return [(f"{column} IS NULL", NO_ID if type_ in IDS else words)]


def _value(column: str, given: Any, type_: types.Type, words: CastWords, level: int = 0) -> _Value:
    """A value as one term, packed, and what makes it unfit."""
    unfit, found = _null(column, type_), None
    if isinstance(type_, types.ListOf):
        found = _list(column, given, type_, words, level)
    elif isinstance(type_, types.TupleOf):
        parts, why = _fields(column, given, type_, words)
        if why is not None:
            return f"CAST(NULL AS {type_name(type_)})", [*unfit, *why]
        packed = []
        for part, part_given, element in parts:
            inside, unfit_inside = _value(part, part_given, element, words, level)
            packed.append(inside)
            unfit += [(f"{column} IS NOT NULL AND ({condition})", reason) for condition, reason in unfit_inside]
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE {words.record(packed, type_)} END", unfit
    elif given.id != "null":
        found = words.scalar(column, given, type_)
    value, more = found or (f"CAST(NULL AS {type_name(type_)})", _mismatch(column, given, type_, words))
    return value, unfit + more


def _mismatch(column: str, given: Any, type_: types.Type, words: CastWords, why: str = "") -> list[Unfit]:
    if words.strict:
        raise OtherKind
    return [] if given.id == "null" else [(f"{column} IS NOT NULL", why or f"a value that is not of type {type_}")]


def _fields(
    column: str, given: Any, type_: types.TupleOf, words: CastWords
) -> tuple[list[tuple[str, Any, types.Type]], list[Unfit] | None]:
    """The parts of a record, by name; or why it is none."""
    if given.id != "struct":
        return [], _mismatch(column, given, type_, words)
    places, parts = {name: place for place, (name, _) in enumerate(given.children)}, []
    for name, element in zip(type_.names, type_.elements, strict=True):
        if name is None:
            return [], _mismatch(column, given, type_, words, "a record by field name where the fields have no names")
        if name not in places:
            return [], _mismatch(column, given, type_, words, f"a record without the field {name!r}")
        place = places[name]
        parts.append((words.field(column, name, place), given.children[place][1], element))
    return parts, None


def _list(column: str, given: Any, type_: types.ListOf, words: CastWords, level: int) -> _Value | None:
    if given.id not in ("list", "array"):
        return None
    child = given.children[0][1]
    items = f"CAST({column} AS {child}[])" if given.id == "array" else column
    item = f"x{level}"
    inside, unfit_inside = _value(item, child, type_.element, words, level + 1)
    unfit = [(words.some.format(items, item, condition), reason) for condition, reason in unfit_inside]
    if type_.bound is not None:
        too_long = f"{words.length.format(items)} > {type_.bound}"
        unfit.insert(0, (too_long, f"a list of more than {type_.bound} elements"))
    return items if inside == item else words.mapped.format(items, item, inside), unfit


# --- scalars ----------------------------------------------------------------------------------------------------------

_SMALL = ("tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger")
_WIDE = ("ubigint", "hugeint", "uhugeint")
_INTEGERS = (*_SMALL, "bigint", *_WIDE)
_EPOCH = "DATE '1970-01-01'"
#: The schema of DuckDB's own operators: a relation is computed in its owner's database, which may have macros.
_BUILT_IN = "system.main."
_UNZONED = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", INT96)
_US, _FINER = "TRY(epoch_us({0}))", "TRY(epoch_ns({0})) % 1000 <> 0"
_COUNTED = ((COUNTED_MOMENTS, types.TIMESTAMP), (COUNTED_DURATIONS, types.DURATION))
#: For each kind, the type that it means, the integers of its values, and what of them is unfit beside their range.
#: Of whole microseconds the division of nanoseconds is exact.
_MOMENTS: dict[str, tuple[types.Type, str, str]] = {
    "date": (types.DATE, f'CAST({_BUILT_IN}"-"({{0}}, {_EPOCH}) AS BIGINT)', ""),
    **dict.fromkeys((*_UNZONED[:3], "timestamp with time zone"), (types.TIMESTAMP, _US, "")),
    "timestamp_ns": (types.TIMESTAMP, _US, _FINER),
    "timestamptz_ns": (types.TIMESTAMP, "(TRY(epoch_ns({0})) // 1000)", _FINER),  # which has no epoch_us
    INT96: (
        types.TIMESTAMP,
        "(TRY(epoch_us(CAST({0}.date AS TIMESTAMP))) + epoch_us({0}.time))",
        "epoch_ns({0}.time) % 1000 <> 0",
    ),
    "time": (types.TIME, "epoch_us({0})", ""),
    "time_ns": (types.TIME, "epoch_us({0})", "epoch_ns({0}) % 1000 <> 0"),
    "interval": (types.DURATION, _US, "datepart('year', {0}) <> 0 OR datepart('month', {0}) <> 0"),
    **{
        f"{kind}{unit}": (type_, f"TRY_CAST(CAST({{0}} AS HUGEINT) * {times} AS BIGINT)", "")
        for kind, type_ in _COUNTED
        for unit, times in (("s", 1_000_000), ("ms", 1000), ("us", 1))
    },
    **{f"{kind}ns": (type_, "({0} // 1000)", "{0} % 1000 <> 0") for kind, type_ in _COUNTED},
}


def scalar(column: str, given: Any, type_: types.Type) -> _Value | None:
    """A column of some DuckDB type as a declared scalar; None where no value of it can be one."""
    kind = INT96 if str(given) == INT96 else str(given.id)
    if isinstance(type_, types.CategoryOf):
        text = column if kind == "varchar" else f"CAST({column} AS VARCHAR)"
        return (text, _unlisted(text, type_)) if kind in ("varchar", "enum") else None
    if isinstance(type_, types.DecimalOf):
        return _decimal(column, given, type_)
    if isinstance(type_, types.Logical):
        return _moment(column, kind, type_)
    if kind == "decimal" and dict(given.children)["scale"] == 0:
        column, kind = f"CAST({column} AS HUGEINT)", "hugeint"  # as Arrow has DuckDB's wide integers, such as every sum
    if type_ in (types.STR, ID, STR_ID) and kind in ("varchar", "enum"):
        return (column if kind == "varchar" else f"CAST({column} AS VARCHAR)"), []
    if type_ in (types.INT, ID, INT_ID) and kind in _INTEGERS:
        return _int(column, kind)
    if type_ == types.BOOL and kind in _INTEGERS:
        return f"({column} = 1)", [(f"{column} NOT IN (0, 1)", NO_BOOL)]
    if type_ == types.BOOL and kind == "boolean":
        return column, []
    return _float(column, kind) if type_ == types.FLOAT else None


def _int(column: str, kind: str) -> _Value:
    if kind in _WIDE:
        value = f"TRY_CAST({column} AS BIGINT)"
        return value, [(f"{column} IS NOT NULL AND {value} IS NULL", "an integer outside 64 bits")]
    return column if kind == "bigint" else f"CAST({column} AS BIGINT)", []


def _float(column: str, kind: str) -> _Value | None:
    value = f"(CAST({column} AS DOUBLE) + CAST(0 AS DOUBLE))"  # -0.0 becomes 0.0
    if kind in ("float", "double"):
        return value, [(f"NOT isfinite({column})", "nan or infinity")]
    if kind in ("bigint", *_WIDE):
        back = f"TRY_CAST(CAST({column} AS DOUBLE) AS {'HUGEINT' if kind != 'uhugeint' else 'UHUGEINT'})"
        inexact = f"{column} IS NOT NULL AND {back} IS DISTINCT FROM {column}"
        return value, [(inexact, "an integer that float cannot represent exactly")]
    return (value, []) if kind in _SMALL else None


def _unlisted(text: str, type_: types.CategoryOf) -> list[Unfit]:
    listed = ", ".join(map(quoted, type_.listed))
    return [(f"{text} NOT IN ({listed})", "a value that is none of the declared categories")]


def in_range(column: str, value: str, type_: types.Logical) -> list[Unfit]:
    """What is unfit where the integer of a value is none that its type has."""
    least, most = limits(type_)
    years = "the years 1 to 9999"
    beyond = {types.DATE: years, types.TIMESTAMP: years, types.TIME: "a day"}.get(type_, "64 bits")
    outside = f"{column} IS NOT NULL AND NOT coalesce({value} BETWEEN {least} AND {most}, false)"
    return [(outside, f"a {type_} outside {beyond}")]


def _moment(column: str, kind: str, type_: types.Logical) -> _Value | None:
    """A column of days, moments, times of day or durations, by their integers."""
    meant, value, unfit = _MOMENTS.get(kind, (None, "", ""))
    if type_ == types.DATE and kind in _UNZONED:
        microseconds, more = _moment(column, kind, types.TIMESTAMP) or ("", [])
        midnight = "a timestamp, where date is declared, that is not midnight without a zone"
        return f"({microseconds} // 86400000000)", [*more, (f"{microseconds} % 86400000000 <> 0", midnight)]
    if meant != type_:
        return None
    value, noun = value.format(column), "duration" if type_ == types.DURATION else "moment"
    why = "an interval of months, which are no duration" if kind == "interval" else f"a {noun} finer than microseconds"
    return value, [*([(unfit.format(column), why)] if unfit else []), *in_range(column, value, type_)]


def _units(column: str, scale: int) -> str:
    return f'TRY_CAST(TRY({_BUILT_IN}"*"({column}, CAST({10**scale} AS BIGINT))) AS BIGINT)'


def _decimal(column: str, given: Any, type_: types.DecimalOf) -> _Value | None:
    kind, scale = str(given.id), type_.scale
    if kind in _INTEGERS and kind != "uhugeint":
        value = _units(f"CAST({column} AS HUGEINT)", scale)
        return value, in_range(column, value, type_)
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
    return value, [*finer, *in_range(column, value, type_)]


def struct(parts: Sequence[str], type_: types.Type) -> str:
    """A record of parts, as `columns.records` packs it."""
    fields = ", ".join(f"f{i} := {part}" for i, part in enumerate(parts))
    return f"struct_pack({fields or 'f := true'})"


DUCKDB = CastWords(
    scalar=scalar,
    strict=False,
    field=lambda column, name, place: f"struct_extract_at({column}, {place + 1})",
    record=struct,
    mapped="list_transform({0}, lambda {1}: {2})",
    some="len(list_filter({0}, lambda {1}: {2})) > 0",
    length="len({})",
)


# --- text -------------------------------------------------------------------------------------------------------------

# What DuckDB reads and csv files do not mean is kept out: blanks, 1_000, 0x10, an int of 1.5, digits of other scripts.
_INTEGER = "[+-]?[0-9]+"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def _int_text(column: str) -> _Value:
    value = f"TRY_CAST({column} AS BIGINT)"
    return value, [
        (f"{column} <> '' AND NOT regexp_full_match({column}, '{_INTEGER}')", "text that is not of type int"),
        (f"{column} <> '' AND {value} IS NULL", "an integer outside 64 bits"),
    ]


def _own_int_text(column: str) -> _Value:
    value = f"TRY_CAST({column} AS BIGINT)"
    other = f"{column} <> '' AND CAST({value} AS VARCHAR) IS DISTINCT FROM {column}"
    return value, [(other, "an id that is no int in its own spelling (7, and not 007): declare the ids as str")]


def _float_text(column: str) -> _Value:
    value = f"(TRY_CAST({column} AS DOUBLE) + CAST(0 AS DOUBLE))"
    special = f"lower(ltrim({column}, '+-')) IN ('nan', 'inf', 'infinity')"
    digits = f"regexp_full_match({column}, '{_NUMBER}')"
    return value, [
        (f"{column} <> '' AND NOT {digits} AND {special}", "nan or infinity"),
        (f"{column} <> '' AND NOT {digits}", "text that is not of type float"),
        (f"{column} <> '' AND NOT coalesce(isfinite({value}), false)", "nan or infinity"),
    ]


def _bool_text(column: str) -> _Value:
    unknown = f"{column} <> '' AND lower({column}) NOT IN ('true', 'false', '1', '0')"
    return f"(lower({column}) IN ('true', '1'))", [(unknown, "text that is not of type bool (true or false, 1 or 0)")]


def _str_text(column: str) -> _Value:
    return column, [(f"contains({column}, chr(0))", "a zero character (NUL), which text has not")]


_TEXT: dict[types.Type, Callable[[str], _Value]] = {
    types.INT: _int_text,
    types.FLOAT: _float_text,
    types.BOOL: _bool_text,
    types.STR: _str_text,
    ID: _str_text,
    STR_ID: _str_text,
    INT_ID: _own_int_text,
}

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"([+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_MOMENT = f"{_DAY}[T ]{_CLOCK}(Z|{_ZONE})?"
_PATTERNS: dict[types.Type, str] = {types.DATE: _DAY, types.TIME: _CLOCK, types.TIMESTAMP: _MOMENT}


def _moment_text(column: str, type_: types.Logical) -> _Value:
    if type_ == types.DATE:
        value = f"CAST(TRY_CAST({column} AS DATE) - {_EPOCH} AS BIGINT)"
    elif type_ == types.TIME:
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


def _decimal_text(column: str, type_: types.DecimalOf) -> _Value:
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
