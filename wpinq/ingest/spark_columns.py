"""Columns of Spark frames: the canonical value of the declared type, and what of the given one is unfit."""

from __future__ import annotations

import re
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


@dataclass(frozen=True, slots=True)
class SparkColumn:
    """What stands for the values of a column; a condition that holds of an unfit one, and what is wrong with it."""

    value: Any
    unfit: Any = None
    reason: str = ""

    def checked(self) -> Any:
        """The value; an unfit one ends the query."""
        from pyspark.sql import functions as sql

        if self.unfit is None:
            return self.value
        return sql.when(self.unfit, sql.raise_error(sql.lit("unfit"))).otherwise(self.value)


def spark_column(column: Any, kind: str, type_: Type) -> SparkColumn | None:
    """A column of a kind, as `dtypes` calls it, as a declared type; None where the kind is another."""
    from pyspark.sql import functions as sql

    if isinstance(type_, DecimalOf):
        return _decimal(column, kind, type_)
    if isinstance(type_, CategoryOf):
        known = sql.coalesce(column.isin(list(type_.listed)), sql.lit(True))
        return (
            SparkColumn(column, ~known, "a value that is none of the declared categories") if kind == "string" else None
        )
    if type_ == DATE and kind == "date":
        return _in_range(sql.unix_date(column).cast("bigint"), type_)
    if type_ == TIMESTAMP and kind == "timestamp":
        return _in_range(sql.unix_micros(column), type_)
    if type_ == TIMESTAMP and kind == "timestamp_ntz":
        return _in_range(_of_clock(column), type_)
    if type_ == TIME and _CLOCK.fullmatch(kind):
        return _in_range(_microseconds(column), type_)
    if type_ == DURATION and _SPAN.fullmatch(kind):
        return SparkColumn(_microseconds(column.cast("interval day to second")))
    if type_ == BOOL and kind in _INTEGERS:
        bit = sql.coalesce(column.isin(0, 1), sql.lit(True))
        return SparkColumn(column == 1, ~bit, "an integer that is neither 0 nor 1, where bool is declared")
    if type_ in _KINDS and kind in _KINDS[type_]:
        typed = column.cast(_KINDS[type_][-1])
        return SparkColumn(typed + sql.lit(0.0) if type_ == FLOAT else typed)  # -0.0 becomes 0.0
    return None


def _in_range(value: Any, type_: Type) -> SparkColumn:
    from pyspark.sql import functions as sql

    beyond = "a day" if type_ == TIME else "the years 1 to 9999"
    outside = sql.coalesce(~value.between(*limits(type_)), sql.lit(False))
    return SparkColumn(value, outside, f"a {type_} outside {beyond}")


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


def _decimal(column: Any, kind: str, type_: DecimalOf) -> SparkColumn | None:
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
    return SparkColumn(units, unfit, f"a number of more than {type_.scale} decimals, or outside 64 bits")
