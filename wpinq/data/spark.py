"""Spark frames: checked where they are, by Spark; of the rows nothing but yes, no and the norm comes to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from wpinq.columns.dataset import EngineDataset
from wpinq.columns.records import column_names
from wpinq.data.column_kinds import spark_kind
from wpinq.data.facts import columns_of_fields, same_reversed
from wpinq.data.fields import conversion, kind_type
from wpinq.data.layout import Layout
from wpinq.data.people import SPARK, asymmetric, kept_of, weighed
from wpinq.data.spark_casts import SparkColumn, flaws, spark_column
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
    places = layout.pick(columns, _WHAT)
    for i, (place, field) in enumerate(zip(places, layout.types, strict=True)):
        if spark_column(sql.lit(None), kinds[place], field) is None:
            words = conversion("spark", columns[place], field, kind_type(spark_kind(kinds[place]), "pyspark"))
            how = f" To convert it: {words}." if words else ""
            if isinstance(field, (ListOf, TupleOf)):
                how = " A list is an array (functions.collect_list, functions.array), and a record a struct that has "
                how += "all fields of the declared one by name (functions.struct)."
            raise SourceRejected(f"{_WHAT}: {layout.label(i)} is of another type than {field}.{how}")
    given = frame.toDF(*[f"g{i}" for i in range(len(frame.columns))])
    found = [
        spark_column(sql.col(f"g{place}"), kinds[place], field)
        for place, field in zip(places, layout.types, strict=True)
    ]
    canonical = [column for column in found if column is not None]
    if person is None:
        fault, read = _checked(given, canonical, type_, cap, facts, sizes)
    else:
        ids = _ids(columns, kinds, person)
        fault, read = _checked_people(given, canonical, ids, type_, layout, cap, facts, person, sizes)
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


def _checked(
    given: Any,
    columns: Sequence[SparkColumn],
    type_: Type,
    cap: Fraction,
    facts: frozenset[str],
    sizes: Sizes | None,
) -> tuple[str, EngineDataset | None]:
    """The dataset, or what is wrong with it. What Spark says of a failure quotes rows: it ends here.

    The rows are read once and held, and what is held is checked: what the frame reads may change at any moment.
    """
    layout = Layout.of(type_)
    held, fault, read = None, "", None
    with contextlib.suppress(Exception):
        held = _weighed(given, columns).localCheckpoint(eager=True)
        fault = _first_fault(held, type_, _unfit(layout), cap, facts) or _broken_size(held, type_, sizes)
        read = None if fault else EngineDataset(held)
    if held is None:
        fault = _unfit_column(given, columns, layout)
    elif read is None:
        _let_go(held)
    return fault, read


def _ids(columns: Sequence[str], kinds: Sequence[Any], person: Person) -> tuple[Type, SparkColumn]:
    """The type and the column of the ids of people."""
    from pyspark.sql import functions as sql

    if columns.count(person.column) != 1:
        raise SourceRejected(f"{_WHAT} must have one column {person.column!r}, with the ids of people")
    whose = columns.index(person.column)
    for type_ in (INT, STR):
        found = spark_column(sql.col(f"g{whose}"), kinds[whose], type_)
        if found is not None:
            return type_, found
    raise SourceRejected(f"{_WHAT}: the ids in {person.column!r} are neither int nor str: cast them in Spark")


def _checked_people(
    given: Any,
    columns: Sequence[SparkColumn],
    ids: tuple[Type, SparkColumn],
    type_: Type,
    layout: Layout,
    cap: Fraction,
    facts: frozenset[str],
    person: Person,
    sizes: Sizes | None,
) -> tuple[str, EngineDataset | None]:
    """The dataset of what counts of each person's rows, or what is wrong with it or with any row."""
    from pyspark.sql import functions as sql

    holding: list[Any] = []
    fault, read = "", None
    with contextlib.suppress(Exception):
        rows = given.select(*_checked_columns(columns), ids[1].checked()[0].alias("p"))
        holding.append(rows.groupBy(*rows.columns).agg(sql.count(sql.lit(1)).alias("m")).localCheckpoint(eager=True))
        fault = _row_fault(holding[0], {**_unfit(layout), **_unfit_ids(ids[0], person.column)})
        if not fault:
            spark = given.sparkSession
            kept = spark.sql(kept_of("{counted}", type_, person.at_most, SPARK), counted=holding[0])
            holding.append(kept.localCheckpoint(eager=True))
            if "symmetric" in facts and spark.sql(asymmetric("{kept}", type_), kept=holding[1]).limit(1).count():
                fault = "has (a, b) and (b, a) of different weight for one person, where the source declares symmetric"
        if not fault:
            made = spark.sql(weighed("{kept}", type_, person, SPARK), kept=holding[1])
            holding.append(made.localCheckpoint(eager=True))
            fault = _first_fault(holding[2], type_, {}, cap, facts, person) or _broken_size(holding[2], type_, sizes)
            read = None if fault else EngineDataset(holding.pop())
    if not holding and read is None:
        fault = _unfit_column(given, columns, layout)
    for held in holding:
        _let_go(held)
    return fault, read


def _let_go(held: Any) -> None:
    with contextlib.suppress(Exception):
        held._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _checked_columns(columns: Sequence[SparkColumn]) -> list[Any]:
    """All leaves, under the names of columns."""
    leaves = [leaf for column in columns for leaf in column.checked()]
    return [leaf.alias(f"c{i}") for i, leaf in enumerate(leaves)]


def _weighed(given: Any, columns: Sequence[SparkColumn]) -> Any:
    """The rows in canonical form, equal ones added up."""
    from pyspark.sql import functions as sql

    rows = given.select(*_checked_columns(columns))
    return rows.groupBy(*rows.columns).agg(sql.count(sql.lit(1)).cast("double").alias("w"))


def _unfit_column(given: Any, columns: Sequence[SparkColumn], layout: Layout) -> str:
    """Which column has what stands for nothing, where one has, read again."""
    from pyspark.sql import functions as sql

    doubtful = [(i, *unfit) for i, column in enumerate(columns) for unfit in column.unfit]
    with contextlib.suppress(Exception):
        conditions = [sql.max(condition) for _, condition, _ in doubtful]
        found = given.agg(*conditions).collect()[0] if doubtful else ()
        for is_so, (i, _, reason) in zip(found, doubtful, strict=True):
            if is_so:
                return f"has in {layout.label(i)} {reason}"
    return ""


def _unfit(layout: Layout) -> dict[str, Any]:
    """What may be wrong with a row, in words, and how Spark tells; lists and records were looked at on the way in."""
    from pyspark.sql import functions as sql

    unfit, number = {}, 0
    for i, field in enumerate(layout.types):
        if not isinstance(field, (ListOf, TupleOf)):
            found = flaws(sql.col(f"c{number}"), field)
            unfit.update({f"has in {layout.label(i)} {reason}": condition for condition, reason in found})
        number += len(column_names(field))
    return unfit


def _unfit_ids(type_: Type, column: str) -> dict[str, Any]:
    """The same of the ids of people."""
    from pyspark.sql import functions as sql

    unfit = {f"has a null among the ids in {column!r}": sql.col("p").isNull()}
    if type_ == STR:
        unfit[f"has an id in {column!r} that is not UTF-8"] = sql.coalesce(~sql.is_valid_utf8("p"), sql.lit(False))
    return unfit


def _row_fault(rows: Any, unfit: Mapping[str, Any]) -> str:
    """What is wrong with some row, if anything is."""
    from pyspark.sql import functions as sql

    found = rows.agg(*map(sql.max, unfit.values())).collect()[0]
    return next((words for words, is_so in zip(unfit, found, strict=True) if is_so), "")


def _first_fault(
    held: Any,
    type_: Type,
    unfit: Mapping[str, Any],
    cap: Fraction,
    facts: frozenset[str],
    person: Person | None = None,
) -> str:
    """What is wrong with the dataset, if anything is."""
    from pyspark.sql import functions as sql

    found = held.agg(sql.sum("w"), sql.max("w"), *map(sql.max, unfit.values())).collect()[0]
    total, greatest = found[:2]
    faults = [words for words, is_so in zip(unfit, found[2:], strict=True) if is_so]
    if total is not None and total > cap:
        faults.append(
            f"has a total weight above the cap {cap} that the source declares: declare a larger cap, or offer less data"
        )
    if "unit_weights" in facts and greatest not in (None, 1.0):
        what = "two people with the same rows" if person is not None and person.nested else "a row twice"
        faults.append(f"has {what}, where the source declares unit_weights")
    if not faults and "symmetric" in facts and _has_reverse(held, type_, same_weight=True, how="LEFT ANTI"):
        faults.append("has (a, b) and (b, a) of different weight, where the source declares symmetric")
    if not faults and "simple" in facts and _has_reverse(held, type_, same_weight=False, how="LEFT SEMI"):
        faults.append("has (a, a), or both (a, b) and (b, a), where the source declares simple")
    return (faults or [""])[0]


def _broken_size(held: Any, type_: Type, sizes: Sizes | None) -> str:
    """The bound on records that the dataset does not keep, if there is one."""
    if sizes is None:
        return ""
    from pyspark.sql import functions as sql

    places = columns_of_fields(type_)
    for words, (names, most) in zip(sizes.words, sizes.bounds, strict=True):
        groups = held.groupBy(*[column for name in names for column in places[name]]).agg(
            sql.count(sql.lit(1)).alias("n")
        )
        if groups.where(sql.col("n") > most).limit(1).count():
            return f"does not keep to what the source declares, {words}"
    return ""


def _has_reverse(held: Any, type_: Type, *, same_weight: bool, how: str) -> bool:
    """Whether a record has (`LEFT SEMI`), or lacks (`LEFT ANTI`), its reverse."""
    same = same_reversed(type_) + (" AND a.w = b.w" if same_weight else "")
    query = f"SELECT a.w FROM {{held}} AS a {how} JOIN {{held}} AS b ON {same}"
    return bool(held.sparkSession.sql(query, held=held).limit(1).count())
