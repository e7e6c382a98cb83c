"""Spark frames: checked where they are, by Spark; of the rows nothing but yes, no and the norm comes to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from wpinq.dataset import EngineDataset, WeightRange
from wpinq.errors import SourceRejected
from wpinq.expr.types import DURATION, FLOAT, STR, TIME, CategoryOf, ListOf, TupleOf, Type
from wpinq.ingest.spark_columns import SparkColumn, spark_column
from wpinq.ingest.typed_columns import Layout

_WHAT = "the Spark frame"
_UNREADABLE = "cannot be read by Spark: show it yourself to see why"


def read_frame(
    frame: Any, type_: Type, *, unit_weight: Fraction, cap: Fraction, facts: frozenset[str]
) -> EngineDataset:
    """The dataset that the rows of a Spark frame are, checked by Spark against what its source declares.

    Each row weighs 1.0 and repeated rows add up. Columns are found as those of any table.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        It is evaluated once.
    type_ : Type
        The declared type: one or more int, float, bool, str, date, timestamp, decimal or category, each perhaps null.
    unit_weight, cap, facts
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
    places = layout.pick(columns, _WHAT)
    for i, (place, field) in enumerate(zip(places, layout.types, strict=True)):
        if isinstance(field, (ListOf, TupleOf)) or field in (TIME, DURATION):
            raise SourceRejected(
                f"{_WHAT}: {layout.label(i)} is none of int, float, bool, str, date, timestamp, decimal and category: "
                "offer rows instead"
            )
        if spark_column(sql.lit(None), kinds[place], field) is None:
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is of another type than {field}: cast it in Spark")
    given = frame.toDF(*[f"g{i}" for i in range(len(frame.columns))])
    found = [
        spark_column(sql.col(f"g{place}"), kinds[place], field)
        for place, field in zip(places, layout.types, strict=True)
    ]
    fault, read = _checked(given, [column for column in found if column is not None], layout, cap, facts)
    if read is None:
        raise SourceRejected(f"{_WHAT} {fault or _UNREADABLE}")
    return read


def _columns(frame: Any) -> tuple[list[str], list[str]]:
    """The names and types of the columns of a frame."""
    found = None
    with contextlib.suppress(Exception):
        found = list(frame.columns), [kind for _, kind in frame.dtypes]
    if found is None:
        raise SourceRejected(f"{_WHAT} {_UNREADABLE}")
    return found


def _checked(
    given: Any, columns: Sequence[SparkColumn], layout: Layout, cap: Fraction, facts: frozenset[str]
) -> tuple[str, EngineDataset | None]:
    """The dataset, or what is wrong with it. What Spark says of a failure quotes rows: it ends here.

    The rows are read once and held, and what is held is checked: what the frame reads may change at any moment.
    """
    held, fault, read = None, "", None
    with contextlib.suppress(Exception):
        held = _weighed(given, columns).localCheckpoint(eager=True)
        fault, weight_range = _first_fault(held, layout, cap, facts)
        read = None if fault else EngineDataset(held, weight_range)
    if held is None:
        fault = _unfit_column(given, columns, layout)
    elif read is None:
        with contextlib.suppress(Exception):
            held._jdf.queryExecution().analyzed().rdd().unpersist(False)
    return fault, read


def _weighed(given: Any, columns: Sequence[SparkColumn]) -> Any:
    """The rows in canonical form, equal ones added up."""
    from pyspark.sql import functions as sql

    rows = given.select(*[column.checked().alias(f"c{i}") for i, column in enumerate(columns)])
    return rows.groupBy(*rows.columns).agg(sql.count(sql.lit(1)).cast("double").alias("w"))


def _unfit_column(given: Any, columns: Sequence[SparkColumn], layout: Layout) -> str:
    """Which column has what stands for nothing, where one has, read again."""
    from pyspark.sql import functions as sql

    doubtful = [(i, column) for i, column in enumerate(columns) if column.unfit is not None]
    with contextlib.suppress(Exception):
        found = given.agg(*[sql.max(column.unfit) for _, column in doubtful]).collect()[0] if doubtful else ()
        for is_so, (i, column) in zip(found, doubtful, strict=True):
            if is_so:
                return f"has in {layout.label(i)} {column.reason}"
    return ""


def _unfit(layout: Layout) -> dict[str, Any]:
    """What may be wrong with a row, in words, and how Spark tells."""
    from pyspark.sql import functions as sql

    unfit = {}
    for i, field in enumerate(layout.types):
        value, label = sql.col(f"c{i}"), layout.label(i)
        if not field.nullable:
            unfit[f"has a null in {label}, which is declared without"] = value.isNull()
        if field == FLOAT:
            infinite = sql.isnan(value) | (sql.abs(value) == float("inf"))
            unfit[f"has a number in {label} that is not finite"] = sql.coalesce(infinite, sql.lit(False))
        if field == STR or isinstance(field, CategoryOf):
            unfit[f"has a text in {label} that is not UTF-8"] = sql.coalesce(~sql.is_valid_utf8(value), sql.lit(False))
    return unfit


def _first_fault(held: Any, layout: Layout, cap: Fraction, facts: frozenset[str]) -> tuple[str, WeightRange]:
    """What is wrong with the dataset, if anything is; and the range of its weights."""
    from pyspark.sql import functions as sql

    unfit = _unfit(layout)
    found = held.agg(sql.sum("w"), sql.min("w"), sql.max("w"), *map(sql.max, unfit.values())).collect()[0]
    total, least, greatest = found[:3]
    faults = [words for words, is_so in zip(unfit, found[3:], strict=True) if is_so]
    if total is not None and total > cap:
        faults.append(
            f"has a total weight above the cap {cap} that the source declares: declare a larger cap, or offer less data"
        )
    if "unit_weights" in facts and greatest not in (None, 1.0):
        faults.append("has a row twice, where the source declares unit_weights")
    if not faults and "symmetric" in facts and _one_sided(held):
        faults.append("has (a, b) and (b, a) of different weight, where the source declares symmetric")
    return (faults or [""])[0], (least, greatest)


def _one_sided(held: Any) -> bool:
    from pyspark.sql import functions as sql

    reverse = held.select(*[sql.col(name).alias(f"r{name}") for name in held.columns])
    same = [held[name].eqNullSafe(reverse[other]) for name, other in (("c0", "rc1"), ("c1", "rc0"), ("w", "rw"))]
    return bool(held.join(reverse, same, "left_anti").limit(1).count())
