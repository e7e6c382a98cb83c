"""Data into Spark: mappings from record to weight, data that Spark reads itself, and the keys of a domain."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wpinq.columns.flat import column_names, column_types, flattener, leaf_types, plain
from wpinq.columns.held import HeldColumns
from wpinq.dataset import EngineDataset
from wpinq.engines.relational.spark.spark_sql import type_in_spark
from wpinq.engines.relational.sql.sums import check_norm, check_weights
from wpinq.expr.types import ListOf, Scalar, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.operators.source import Source


def frame_of(spark: Any, source: Source, weights: object) -> Any:
    """A source's dataset as a frame: `c0`, `c1`, …, `w`, without records of weight 0."""
    if isinstance(weights, EngineDataset):
        return _adopted(spark, weights.frame)
    if isinstance(weights, HeldColumns):
        return _held(spark, source, weights)
    assert isinstance(weights, Mapping)
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    check_weights(source, numbers)
    there = numbers != 0
    records = [record for record, held in zip(weights, there.tolist(), strict=True) if held]
    return _frame(spark, source.record, records, {"w": numbers[there].tolist()})


def no_rows(spark: Any, source: Source) -> Any:
    """A frame like that of a source's dataset, without rows, of which Spark cannot tell beforehand that it has none."""
    kinds = [*zip(column_names(source.record), map(type_in_spark, column_types(source.record)), strict=True)]
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in [*kinds, ("w", "DOUBLE")])
    return _adopted(spark, spark.sql(f"SELECT {columns} FROM range(0, 1, 1, 1) WHERE id < 0"))


def _held(spark: Any, source: Source, weights: HeldColumns) -> Any:
    """Columns that are held, by Arrow: none of their rows becomes a Python object."""
    import pyarrow as pa

    check_norm(source, weights.norm)
    fields = [*zip(column_names(source.record), _leaf_types(source.record), strict=True), ("w", pa.float64())]
    return _made(spark, weights.arrow().cast(pa.schema(fields)))


def _adopted(spark: Any, frame: Any) -> Any:
    """A frame of another session's as one of this session's: the same rows, read by the executors."""
    held = frame._jdf
    return type(frame)(spark._jsparkSession.createDataFrame(held.rdd(), held.schema()), spark)


def let_go(frame: Any) -> None:
    """Have Spark forget the rows that it holds of a frame (`localCheckpoint`). No trouble where Spark is gone."""
    with contextlib.suppress(Exception):
        frame._jdf.queryExecution().analyzed().rdd().unpersist(False)


def key_frame(spark: Any, type_: Type, keys: Sequence[Value]) -> Any:
    """Records as a frame."""
    return _frame(spark, type_, keys, {"there": [True] * len(keys)})


def _frame(spark: Any, type_: Type, records: Sequence[Value], more: Mapping[str, list[Any]]) -> Any:
    import pyarrow as pa

    flatten = flattener(type_)
    columns = list(zip(*map(flatten, records), strict=True)) or [()] * len(column_names(type_))
    types = _leaf_types(type_)
    arrays = [pa.array(column, held) for column, held in zip(columns, types, strict=True)] if types else []
    arrays += [pa.array(column, {"w": pa.float64(), "there": pa.bool_()}[name]) for name, column in more.items()]
    return _made(spark, pa.table(arrays, names=[*column_names(type_), *more]))


def _made(spark: Any, table: Any) -> Any:
    """A frame of an Arrow table, without the engine's session, and its views, becoming the user's active one."""
    class_ = type(spark)
    java, active = class_._get_j_spark_session_class(spark._jvm), class_.getActiveSession()
    try:
        return spark.createDataFrame(table)
    finally:
        if active is None:
            java.clearActiveSession()
        else:
            java.setActiveSession(active._jsparkSession)
        class_._activeSession = active


def _leaf_types(type_: Type) -> list[Any]:
    import pyarrow as pa

    return [pa.bool_() if leaf is None else _arrow_type(leaf) for leaf, _ in leaf_types(type_)]


def _arrow_type(type_: Type) -> Any:
    import pyarrow as pa

    type_ = plain(type_)
    if isinstance(type_, ListOf):
        return pa.list_(_arrow_type(type_.element))
    if isinstance(type_, TupleOf):
        fields = [pa.field(f"f{i}", _arrow_type(element)) for i, element in enumerate(type_.elements)]
        return pa.struct(fields or [pa.field("f", pa.bool_())])
    assert isinstance(type_, Scalar)
    kinds = {"int": pa.int64, "float": pa.float64, "bool": pa.bool_, "str": pa.string, "null": pa.int32}
    return kinds[type_.name]()
