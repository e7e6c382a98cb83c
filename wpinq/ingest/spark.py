"""Spark frames: checked where they are, by Spark; of the rows nothing but yes, no and the norm comes to the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type
from wpinq.ingest.columns import Layout
from wpinq.ingest.promises import check_facts

_WHAT = "the Spark frame"
_KINDS: dict[Type, tuple[str, ...]] = {
    BOOL: ("boolean",),
    INT: ("tinyint", "smallint", "int", "bigint"),
    FLOAT: ("float", "double"),
    STR: ("string",),
}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SparkFrame:
    """A weighted dataset in Spark: a frame of columns `c0`, `c1`, … and `w`, and its least and greatest weight."""

    frame: Any
    bounds: tuple[float | None, float | None]


def read_frame(frame: Any, type_: Type, *, unit_weight: Fraction, cap: Fraction, facts: frozenset[str]) -> SparkFrame:
    """The dataset that the rows of a Spark frame are, checked by Spark against what its source declares.

    Each row weighs 1.0 and repeated rows add up. Columns are found as those of any table.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its rows must stay what they are: Spark may read them again.
    type_ : Type
        The declared type: one or more int, float, bool or str, each perhaps null.
    unit_weight, cap, facts
        As `read_source` has them.

    Returns
    -------
    SparkFrame
        Record -> weight, still in Spark.

    Raises
    ------
    SourceRejected
        When anything is unfit. The message names the field and the reason, never a value, a place or a number.

    Notes
    -----
    Costs no privacy: nothing is released.
    """
    check_facts(facts, type_)
    if unit_weight < 1:
        raise SourceRejected(f"a row weighs 1, above the unit weight {unit_weight}: declare a larger unit_weight")
    layout = Layout.of(type_)
    places = layout.pick(list(frame.columns), _WHAT)
    kinds = [kind for _, kind in frame.dtypes]
    for i, (place, field) in enumerate(zip(places, layout.types, strict=True)):
        if field not in _KINDS:
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is none of int, float, bool and str: offer rows instead")
        if kinds[place] not in _KINDS[field]:
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is of another type than {field}: cast it in Spark")
    fault, read = _checked(frame, layout, places, cap, facts)
    if read is None:
        raise SourceRejected(f"{_WHAT} {fault or 'cannot be read by Spark: show it yourself to see why'}")
    return read


def _checked(
    frame: Any, layout: Layout, places: Sequence[int], cap: Fraction, facts: frozenset[str]
) -> tuple[str, SparkFrame | None]:
    """The dataset, or what is wrong with it. What Spark says of a failure quotes rows: it ends here."""
    try:
        rows, unfit = _typed(frame, layout, places)
        fault = _first_fault(rows, unfit, cap)
        if fault:
            return fault, None
        return _weighed(rows.select(*[f"c{i}" for i in range(len(places))]), facts)
    except Exception:
        return "", None


def _typed(frame: Any, layout: Layout, places: Sequence[int]) -> tuple[Any, dict[str, str]]:
    """The rows in canonical form, with a column for each thing that may be wrong; and what to say of it."""
    from pyspark.sql import functions as sql

    names: dict[Type, str] = {INT: "bigint", FLOAT: "double", BOOL: "boolean", STR: "string"}
    given = frame.toDF(*[f"g{i}" for i in range(len(frame.columns))])
    columns, unfit = [], {}
    for i, (place, field) in enumerate(zip(places, layout.types, strict=True)):
        value, label = sql.col(f"g{place}"), layout.label(i)
        typed = value.cast(names[field])
        columns.append((typed + sql.lit(0.0) if field == FLOAT else typed).alias(f"c{i}"))  # -0.0 becomes 0.0
        if not field.nullable:
            unfit[f"n{i}"] = f"has a null in {label}, which is declared without"
            columns.append(value.isNull().alias(f"n{i}"))
        if field == FLOAT:
            unfit[f"f{i}"] = f"has a number in {label} that is not finite"
            columns.append(
                sql.coalesce(sql.isnan(value) | (sql.abs(value) == float("inf")), sql.lit(False)).alias(f"f{i}")
            )
        if field == STR:
            unfit[f"u{i}"] = f"has a text in {label} that is not UTF-8"
            columns.append(sql.coalesce(~sql.is_valid_utf8(value), sql.lit(False)).alias(f"u{i}"))
    return given.select(*columns), unfit


def _first_fault(rows: Any, unfit: dict[str, str], cap: Fraction) -> str:
    from pyspark.sql import functions as sql

    (found,) = rows.agg(sql.count(sql.lit(1)), *[sql.max(name) for name in unfit]).collect()
    for words, is_so in zip(unfit.values(), found[1:], strict=True):
        if is_so:
            return words
    if found[0] > cap:
        return (
            f"has a total weight above the cap {cap} that the source declares: declare a larger cap, or offer less data"
        )
    return ""


def _weighed(rows: Any, facts: frozenset[str]) -> tuple[str, SparkFrame | None]:
    """Equal rows added up, where the facts are kept."""
    from pyspark.sql import functions as sql

    weighed = rows.groupBy(*rows.columns).agg(sql.count(sql.lit(1)).cast("double").alias("w"))
    (found,) = weighed.agg(sql.min("w"), sql.max("w")).collect()
    if "unit_weights" in facts and found[1] not in (None, 1.0):
        return "has a row twice, where the source declares unit_weights", None
    if "symmetric" in facts:
        reverse = weighed.select(*[sql.col(name).alias(f"r{name}") for name in weighed.columns])
        pairs = (("c0", "rc1"), ("c1", "rc0"), ("w", "rw"))
        same = [weighed[name].eqNullSafe(reverse[other]) for name, other in pairs]
        if weighed.join(reverse, same, "left_anti").limit(1).collect():
            return "has (a, b) and (b, a) of different weight, where the source declares symmetric", None
    return "", SparkFrame(weighed, (found[0], found[1]))
