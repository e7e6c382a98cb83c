"""Spark frames: checked where they are, by Spark; of the rows nothing but yes, no and the norm comes to the driver."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.columns.dataset import EngineDataset
from wpinq.data.facts import breach, size_breaches
from wpinq.data.fields import spark_kind
from wpinq.data.kinds import column_advice
from wpinq.data.layout import Layout
from wpinq.data.people import SPARK, asymmetric, kept_of, weighed
from wpinq.errors import SourceRejected
from wpinq.expr import types
from wpinq.expr.declarations import Person
from wpinq.expr.values import limits
from wpinq.plan.domain import Sizes

# Columns of Spark frames: the canonical value of the declared type, and what of the given one is unfit.

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KINDS: dict[types.Type, tuple[str, ...]] = {
    types.BOOL: ("boolean",),
    types.INT: _INTEGERS,
    types.FLOAT: ("float", "double"),
    types.STR: ("string",),
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


def spark_cast(column: Any, given: Any, type_: types.Type) -> SparkCast | None:
    """A column of a type of Spark's as a declared type; None where the given type is another."""
    if not isinstance(type_, types.TupleOf):
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


def _packed(column: Any, given: Any, type_: types.Type) -> SparkCast | None:
    """A value as one leaf."""
    from pyspark.sql import functions as sql

    if isinstance(type_, types.ListOf):
        return _list(column, given, type_)
    if isinstance(type_, types.TupleOf):
        return _struct(column, given, type_)
    single = _single(column, given.simpleString(), type_)
    if single is None:
        return None
    (value,), unfit = single.leaves, _null(single.leaves[0], type_)
    if type_ == types.FLOAT:
        unfit.append((_sure(sql.isnan(value) | (sql.abs(value) == float("inf"))), "nan or infinity"))
    if type_ == types.STR or isinstance(type_, types.CategoryOf):
        unfit.append((_sure(~sql.is_valid_utf8(value)), "a text that is not UTF-8"))
    return SparkCast(single.leaves, (*single.unfit, *unfit))


def _list(column: Any, given: Any, type_: types.ListOf) -> SparkCast | None:
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


def _struct(column: Any, given: Any, type_: types.TupleOf) -> SparkCast | None:
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


def _places(given: Any, type_: types.TupleOf) -> list[Any] | None:
    """The fields of Spark's record that a declared one means, by name; None where one is missing, or there twice."""
    from pyspark.sql.types import StructType

    if not isinstance(given, StructType):
        return None
    found = [[field for field in given.fields if field.name == name] for name in type_.names]
    return [fields[0] for fields in found] if all(len(fields) == 1 for fields in found) else None


def _null(column: Any, type_: types.Type) -> list[SparkFault]:
    reason = f"null where {type_} is declared (declare it as `T | None` to allow null)"
    return [] if type_.nullable else [(column.isNull(), reason)]


# --- single values ----------------------------------------------------------------------------------------------------


def _single(column: Any, kind: str, type_: types.Type) -> SparkCast | None:
    """A value of a kind, as Spark calls it, as a declared type; None where the kind is another."""
    from pyspark.sql import functions as sql

    if isinstance(type_, types.DecimalOf):
        return _decimal(column, kind, type_)
    if isinstance(type_, types.CategoryOf):
        known = sql.coalesce(column.isin(list(type_.listed)), sql.lit(True))
        unknown = (~known, "a value that is none of the declared categories")
        return SparkCast((column,), (unknown,)) if kind == "string" else None
    if type_ == types.DATE and kind == "date":
        return _in_range(sql.unix_date(column).cast("bigint"), type_)
    if type_ == types.TIMESTAMP and kind == "timestamp":
        return _in_range(sql.unix_micros(column), type_)
    if type_ == types.TIMESTAMP and kind == "timestamp_ntz":
        return _in_range(_of_clock(column), type_)
    if type_ == types.TIME and _CLOCK.fullmatch(kind):
        return _in_range(_microseconds(column), type_)
    if type_ == types.DURATION and _SPAN.fullmatch(kind):
        return SparkCast((_microseconds(column.cast("interval day to second")),))
    if type_ == types.BOOL and kind in _INTEGERS:
        bit = sql.coalesce(column.isin(0, 1), sql.lit(True))
        return SparkCast((column == 1,), ((~bit, "an integer that is neither 0 nor 1, where bool is declared"),))
    if type_ in _KINDS and kind in _KINDS[type_]:
        typed = column.cast(_KINDS[type_][-1])
        return SparkCast((typed + sql.lit(0.0) if type_ == types.FLOAT else typed,))  # -0.0 becomes 0.0
    return None


def _in_range(value: Any, type_: types.Type) -> SparkCast:
    from pyspark.sql import functions as sql

    beyond = "a day" if type_ == types.TIME else "the years 1 to 9999"
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


def _decimal(column: Any, kind: str, type_: types.DecimalOf) -> SparkCast | None:
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


_WHAT = "the Spark frame"
_UNREADABLE = "cannot be read by Spark: show it yourself to see why"


def read_frame(
    frame: Any,
    type_: types.Type,
    *,
    unit_weight: Fraction,
    cap: Fraction,
    facts: frozenset[str],
    person: Person | None = None,
    sizes: Sizes | None = None,
) -> EngineDataset:
    """The dataset that the rows of a Spark frame are, checked by Spark against what its source declares.

    Each row weighs 1.0 and repeated rows add up. Columns are found as those of any table.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        It is evaluated once.
    type_ : Type
        The declared type: one or more fields; lists are Spark's arrays, and records in them its structs, by field name.
    unit_weight, cap, facts, person, sizes
        As `read_source` has them.

    Returns
    -------
    EngineDataset
        Record -> weight, still in Spark, which holds these rows from now on: a later change of what the frame reads
        changes nothing, and rows that Spark loses it does not read again (`localCheckpoint`).

    Raises
    ------
    SourceRejected
        When anything is unfit. The message names the field and the reason, never a value, a place or a number.

    Notes
    -----
    Costs no privacy: nothing is released.
    """
    from pyspark.sql import functions as sql

    if unit_weight < 1:
        raise SourceRejected(f"a row weighs 1, above the unit weight {unit_weight}: declare a larger unit_weight")
    layout = Layout.of(type_)
    columns, kinds = _columns(frame)
    casts: dict[str, SparkCast] = {}
    for i, (place, field) in enumerate(zip(layout.pick(columns, _WHAT), layout.types, strict=True)):
        cast = spark_cast(sql.col(f"g{place}"), kinds[place], field)
        if cast is None:
            words = column_advice(spark_kind(kinds[place]), field)
            how = f" To convert it: {words}." if words else ""
            if isinstance(field, (types.ListOf, types.TupleOf)):
                how = " A list is an array (functions.collect_list, functions.array), and a record a struct that has "
                how += "all fields of the declared one by name (functions.struct)."
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is of another type than {field}.{how}")
        casts[layout.label(i)] = cast
    leaves = [leaf.alias(f"c{i}") for i, leaf in enumerate(leaf for cast in casts.values() for leaf in cast.checked())]
    if person is not None:
        ids = casts[f"the column {person.column!r}"] = _ids(columns, kinds, person)
        leaves.append(ids.checked()[0].alias("p"))
    given = frame.toDF(*[f"g{i}" for i in range(len(columns))])
    held: list[Any] = []
    fault, read = "", None
    with contextlib.suppress(Exception):  # Spark's words of a failure quote rows
        rows = given.select(*leaves)
        times = sql.count(sql.lit(1))
        times = times.cast("double").alias("w") if person is None else times.alias("m")
        counted = rows.groupBy(*rows.columns).agg(times)
        held.append(counted.localCheckpoint(eager=True))
        if person is not None:
            fault = _cut(held, type_, person, facts)
        record = type_ if person is None else person.record(type_)
        fault = fault or _fault(held[-1], record, cap, facts, sizes, nested=person is not None and person.nested)
        read = None if fault else EngineDataset(held.pop())
    if read is None and not held:
        fault = _unfit(given, casts)
    for other in held:
        with contextlib.suppress(Exception):
            other._jdf.queryExecution().analyzed().rdd().unpersist(False)
    if read is None:
        raise SourceRejected(f"{_WHAT} {fault or _UNREADABLE}")
    return read


def _columns(frame: Any) -> tuple[list[str], list[Any]]:
    """The names and types of the columns of a frame."""
    found = None
    with contextlib.suppress(Exception):
        found = list(frame.columns), [field.dataType for field in frame.schema.fields]
    if found is None:
        raise SourceRejected(f"{_WHAT} {_UNREADABLE}")
    return found


def _ids(columns: Sequence[str], kinds: Sequence[Any], person: Person) -> SparkCast:
    """The column of the ids of people."""
    from pyspark.sql import functions as sql

    if columns.count(person.column) != 1:
        raise SourceRejected(f"{_WHAT} must have one column {person.column!r}, with the ids of people")
    place = columns.index(person.column)
    for type_ in (types.INT, types.STR):
        found = spark_cast(sql.col(f"g{place}"), kinds[place], type_)
        if found is not None:
            (null, _), *others = found.unfit
            return SparkCast(found.leaves, ((null, "a null among the ids of people"), *others))
    raise SourceRejected(f"{_WHAT}: the ids in {person.column!r} are neither int nor str: cast them in Spark")


def _cut(held: list[Any], type_: types.Type, person: Person, facts: frozenset[str]) -> str:
    """Add the rows that count of each person, and the dataset of these, to the held frames; or say what is wrong."""
    spark = held[0].sparkSession
    kept = spark.sql(kept_of("{counted}", type_, person.at_most, SPARK), counted=held[0])
    held.append(kept.localCheckpoint(eager=True))
    if "symmetric" in facts and spark.sql(asymmetric("{kept}", type_), kept=held[1]).limit(1).count():
        return "has (a, b) and (b, a) of different weight for one person, where the source declares symmetric"
    held.append(spark.sql(weighed("{kept}", type_, person, SPARK), kept=held[1]).localCheckpoint(eager=True))
    return ""


def _fault(
    dataset: Any, type_: types.Type, cap: Fraction, facts: frozenset[str], sizes: Sizes | None, *, nested: bool
) -> str:
    """What is wrong with the dataset, if anything is: each record stands there once."""

    def found(query: str) -> bool:
        return bool(dataset.sparkSession.sql(f"{query} LIMIT 1", held=dataset).count())

    total = dataset.agg({"w": "sum"}).collect()[0][0]
    if total is not None and total > cap:
        return f"has a total weight above the cap {cap} of its source: declare a larger cap, or offer less data"
    for fact in sorted(facts & {"unit_weights", "symmetric", "simple"}):
        reason, query = breach(fact, "{held}", type_)
        if found(query):
            twice = "two people with the same rows" if nested else "a row twice"
            return f"has {twice}, where the source declares unit_weights" if fact == "unit_weights" else f"has {reason}"
    for words, query in size_breaches(sizes, "{held}", type_):
        if found(query):
            return f"does not keep to what the source declares, {words}"
    return ""


def _unfit(given: Any, casts: Mapping[str, SparkCast]) -> str:
    """The column with an unfit value, where one has any: the frame is read again."""
    from pyspark.sql import functions as sql

    doubtful = [(label, *unfit) for label, cast in casts.items() for unfit in cast.unfit]
    with contextlib.suppress(Exception):
        found = given.agg(*[sql.max(condition) for _, condition, _ in doubtful]).collect()[0] if doubtful else ()
        for is_so, (label, _, reason) in zip(found, doubtful, strict=True):
            if is_so:
                return f"has in {label} {reason}"
    return ""
