"""Columns and text of dates, timestamps, decimals and their like, as SQL: what stands for a value, what is unfit.

The same rules as `expr.logical_values` has for Python's values: exact or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpinq.columns.nameless import quoted
from wpinq.expr.logical_values import FORMS, limits
from wpinq.expr.types import DATE, DURATION, TIME, TIMESTAMP, CategoryOf, DecimalOf, Logical, Type
from wpinq.ingest.counted_columns import COUNTED_DURATIONS, COUNTED_MOMENTS

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
