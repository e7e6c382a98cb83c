"""Columns of Spark frames: the canonical value of the declared type, and what of the given one is unfit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wpinq.expr.logical_values import limits
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
    TupleOf,
    Type,
)

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KINDS: dict[Type, tuple[str, ...]] = {
    BOOL: ("boolean",),
    INT: _INTEGERS,
    FLOAT: ("float", "double"),
    STR: ("string",),
}
"""What Spark may call a type; the last is the canonical form."""
_DAY = 86_400_000_000
_CLOCK = re.compile(r"time\([0-6]\)")
_SPAN = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")


SparkFault = tuple[Any, str]
"""A condition that holds of an unfit value, never null; and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class SparkCast:
    """The leaves of a column, as `columns.records` lays them out, and what may be wrong with its values."""

    leaves: tuple[Any, ...]
    unfit: tuple[SparkFault, ...] = ()

    def checked(self) -> list[Any]:
        """The leaves; an unfit value ends the query."""
        from pyspark.sql import functions as sql

        leaves = list(self.leaves)
        for condition, _ in self.unfit:
            leaves[0] = sql.when(condition, sql.raise_error(sql.lit("unfit"))).otherwise(leaves[0])
        return leaves


def spark_cast(column: Any, given: Any, type_: Type) -> SparkCast | None:
    """A column of a type of Spark's as a declared type; None where the given type is another."""
    if not isinstance(type_, TupleOf):
        return _packed(column, given, type_)
    places = _places(given, type_)
    if places is None:
        return None
    there = column.isNotNull()
    leaves, unfit = [there] if type_.nullable else [], _null(column, type_)
    for place, element in zip(places, type_.elements, strict=True):
        inside = spark_cast(column[place.name], place.dataType, element)
        if inside is None:
            return None
        leaves += inside.leaves
        unfit += [(there & condition, reason) for condition, reason in inside.unfit]
    return SparkCast(tuple(leaves), tuple(unfit))


def _sure(condition: Any) -> Any:
    from pyspark.sql import functions as sql

    return sql.coalesce(condition, sql.lit(False))


# --- lists and records ------------------------------------------------------------------------------------------------


def _packed(column: Any, given: Any, type_: Type) -> SparkCast | None:
    """A value as one leaf."""
    from pyspark.sql import functions as sql

    if isinstance(type_, ListOf):
        return _list(column, given, type_)
    if isinstance(type_, TupleOf):
        return _struct(column, given, type_)
    single = _single(column, given.simpleString(), type_)
    if single is None:
        return None
    (value,), unfit = single.leaves, _null(single.leaves[0], type_)
    if type_ == FLOAT:
        unfit.append((_sure(sql.isnan(value) | (sql.abs(value) == float("inf"))), "nan or infinity"))
    if type_ == STR or isinstance(type_, CategoryOf):
        unfit.append((_sure(~sql.is_valid_utf8(value)), "a text that is not UTF-8"))
    return SparkCast(single.leaves, (*single.unfit, *unfit))


def _list(column: Any, given: Any, type_: ListOf) -> SparkCast | None:
    from pyspark.sql import functions as sql
    from pyspark.sql.types import ArrayType

    if not isinstance(given, ArrayType):
        return None
    probe = _packed(sql.lit(None), given.elementType, type_.element)
    if probe is None:
        return None

    def of_element(part: Callable[[SparkCast], Any]) -> Callable[[Any], Any]:
        def chosen(item: Any) -> Any:
            made = _packed(item, given.elementType, type_.element)
            assert made is not None
            return part(made)

        return chosen

    def fault(number: int) -> Callable[[SparkCast], Any]:
        return lambda made: made.unfit[number][0]

    unfit = _null(column, type_)
    if type_.bound is not None:
        unfit.append((_sure(sql.size(column) > type_.bound), f"a list of more than {type_.bound} elements"))
    for number, (_, reason) in enumerate(probe.unfit):
        unfit.append((_sure(sql.exists(column, of_element(fault(number)))), reason))
    return SparkCast((sql.transform(column, of_element(lambda made: made.leaves[0])),), tuple(unfit))


def _struct(column: Any, given: Any, type_: TupleOf) -> SparkCast | None:
    from pyspark.sql import functions as sql

    places = _places(given, type_)
    if places is None:
        return None
    unfit, fields = _null(column, type_), []
    for i, (place, element) in enumerate(zip(places, type_.elements, strict=True)):
        inside = _packed(column[place.name], place.dataType, element)
        if inside is None:
            return None
        fields.append(inside.leaves[0].alias(f"f{i}"))
        unfit += [(column.isNotNull() & condition, reason) for condition, reason in inside.unfit]
    packed = sql.struct(*(fields or [sql.lit(True).alias("f")]))
    return SparkCast((sql.when(column.isNotNull(), packed),), tuple(unfit))


def _places(given: Any, type_: TupleOf) -> list[Any] | None:
    """The fields of Spark's record that a declared one means, by name; None where one is missing, or there twice."""
    from pyspark.sql.types import StructType

    if not isinstance(given, StructType):
        return None
    found = [[field for field in given.fields if field.name == name] for name in type_.names]
    return [fields[0] for fields in found] if all(len(fields) == 1 for fields in found) else None


def _null(column: Any, type_: Type) -> list[SparkFault]:
    reason = f"null where {type_} is declared (declare it as `T | None` to allow null)"
    return [] if type_.nullable else [(column.isNull(), reason)]


# --- single values ----------------------------------------------------------------------------------------------------


def _single(column: Any, kind: str, type_: Type) -> SparkCast | None:
    """A value of a kind, as Spark calls it, as a declared type; None where the kind is another."""
    from pyspark.sql import functions as sql

    if isinstance(type_, DecimalOf):
        return _decimal(column, kind, type_)
    if isinstance(type_, CategoryOf):
        known = sql.coalesce(column.isin(list(type_.listed)), sql.lit(True))
        unknown = (~known, "a value that is none of the declared categories")
        return SparkCast((column,), (unknown,)) if kind == "string" else None
    if type_ == DATE and kind == "date":
        return _in_range(sql.unix_date(column).cast("bigint"), type_)
    if type_ == TIMESTAMP and kind == "timestamp":
        return _in_range(sql.unix_micros(column), type_)
    if type_ == TIMESTAMP and kind == "timestamp_ntz":
        return _in_range(_of_clock(column), type_)
    if type_ == TIME and _CLOCK.fullmatch(kind):
        return _in_range(_microseconds(column), type_)
    if type_ == DURATION and _SPAN.fullmatch(kind):
        return SparkCast((_microseconds(column.cast("interval day to second")),))
    if type_ == BOOL and kind in _INTEGERS:
        bit = sql.coalesce(column.isin(0, 1), sql.lit(True))
        return SparkCast((column == 1,), ((~bit, "an integer that is neither 0 nor 1, where bool is declared"),))
    if type_ in _KINDS and kind in _KINDS[type_]:
        typed = column.cast(_KINDS[type_][-1])
        return SparkCast((typed + sql.lit(0.0) if type_ == FLOAT else typed,))  # -0.0 becomes 0.0
    return None


def _in_range(value: Any, type_: Type) -> SparkCast:
    from pyspark.sql import functions as sql

    beyond = "a day" if type_ == TIME else "the years 1 to 9999"
    outside = sql.coalesce(~value.between(*limits(type_)), sql.lit(False))
    return SparkCast((value,), ((outside, f"a {type_} outside {beyond}"),))


def _microseconds(column: Any) -> Any:
    """Of a time of day, or of days and seconds, of which Spark makes seconds with six decimals, exactly."""
    return (column.cast("decimal(20,6)") * 1_000_000).cast("bigint")


def _of_clock(column: Any) -> Any:
    """The microseconds of a timestamp without a zone, as if it were one in UTC, whatever zone Spark is set to."""
    from pyspark.sql import functions as sql

    seconds = (sql.hour(column) * 60 + sql.minute(column)) * 60
    part = sql.date_part(sql.lit("SECOND"), column) * 1_000_000
    return (
        sql.unix_date(column.cast("date")).cast("bigint") * _DAY
        + seconds.cast("bigint") * 1_000_000
        + part.cast("bigint")
    )


def _decimal(column: Any, kind: str, type_: DecimalOf) -> SparkCast | None:
    from pyspark.sql import functions as sql

    if kind not in _INTEGERS and not kind.startswith("decimal("):
        return None
    given = "decimal(38,0)" if kind in _INTEGERS else kind
    exact = column.cast(given)
    held = exact.try_cast(f"decimal(38,{type_.scale})")  # rounds where there are more decimals; null beyond 38 digits
    units = sql.try_multiply(held, sql.lit(10**type_.scale).cast("decimal(19,0)")).try_cast("bigint")
    # back in the type that was given: Spark compares decimals of two scales after rounding one of them
    same = sql.coalesce(held.try_cast(given) == exact, sql.lit(False))
    unfit = column.isNotNull() & (units.isNull() | ~same)
    return SparkCast((units,), ((unfit, f"a number of more than {type_.scale} decimals, or outside 64 bits"),))
