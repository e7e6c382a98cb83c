"""Spark frames: checked where they are, by Spark; of the rows nothing but yes, no and the norm comes to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from wpinq.columns.dataset import EngineDataset
from wpinq.data.facts import breach, size_breaches
from wpinq.data.fields import spark_kind
from wpinq.data.kinds import column_advice
from wpinq.data.layout import Layout
from wpinq.data.people import SPARK, asymmetric, kept_of, weighed
from wpinq.data.spark_casts import SparkCast, spark_cast
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import Person, Sizes
from wpinq.expr.types import INT, STR, ListOf, TupleOf, Type

_WHAT = "the Spark frame"
_UNREADABLE = "cannot be read by Spark: show it yourself to see why"


def read_frame(
    frame: Any,
    type_: Type,
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
            if isinstance(field, (ListOf, TupleOf)):
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
    for type_ in (INT, STR):
        found = spark_cast(sql.col(f"g{place}"), kinds[place], type_)
        if found is not None:
            (null, _), *others = found.unfit
            return SparkCast(found.leaves, ((null, "a null among the ids of people"), *others))
    raise SourceRejected(f"{_WHAT}: the ids in {person.column!r} are neither int nor str: cast them in Spark")


def _cut(held: list[Any], type_: Type, person: Person, facts: frozenset[str]) -> str:
    """Add the rows that count of each person, and the dataset of these, to the held frames; or say what is wrong."""
    spark = held[0].sparkSession
    kept = spark.sql(kept_of("{counted}", type_, person.at_most, SPARK), counted=held[0])
    held.append(kept.localCheckpoint(eager=True))
    if "symmetric" in facts and spark.sql(asymmetric("{kept}", type_), kept=held[1]).limit(1).count():
        return "has (a, b) and (b, a) of different weight for one person, where the source declares symmetric"
    held.append(spark.sql(weighed("{kept}", type_, person, SPARK), kept=held[1]).localCheckpoint(eager=True))
    return ""


def _fault(
    dataset: Any, type_: Type, cap: Fraction, facts: frozenset[str], sizes: Sizes | None, *, nested: bool
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
