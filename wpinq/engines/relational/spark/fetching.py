"""What comes from Spark to the driver: an output, its weights at some keys, or before, at and after some."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from wpinq.columns.flat import column_names, column_types, flattener, plain, reader
from wpinq.engines.contract import Sides, WantedRanges, at_keys
from wpinq.engines.relational.compiler import Compiled, in_ranges
from wpinq.engines.relational.spark.frames import key_frame
from wpinq.engines.relational.spark.spark_sql import type_in_spark
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import Weights

_KEYS = "wpinq_keys"


def fetch_all(spark: Any, compiled: Compiled, within: WantedRanges = ()) -> Weights:
    """The whole output, or what of it is wanted: record to weight, in canonical order."""
    return _read(spark, compiled.type, in_ranges(compiled.query, compiled.type, within))


def fetch_keys(spark: Any, compiled: Compiled, keys: Sequence[Value]) -> Weights:
    """The weights of some records: no other record leaves the cluster."""
    key_frame(spark, compiled.type, keys).createOrReplaceTempView(_KEYS)
    names = column_names(compiled.type)
    on = " AND ".join(f"q.{name} <=> k.{name}" for name in names) or "TRUE"
    try:
        semi_join = f"SELECT q.* FROM ({compiled.query}) AS q LEFT SEMI JOIN {_KEYS} AS k ON {on}"
        return at_keys(_read(spark, compiled.type, semi_join), keys)
    finally:
        spark.catalog.dropTempView(_KEYS)


def _read(spark: Any, type_: Type, query: str) -> Weights:
    read = reader(type_)
    output = {read(row): row[-1] for row in spark.sql(query).collect()}
    return {record: output[record] for record in sorted(output, key=order_key)}


def fetch_sides(spark: Any, compiled: Compiled, candidates: Sequence[Value]) -> Sides:
    """The weight of the records before, at and after each candidate, without rounding: not of null, nor below 0.

    Spark adds up the weights at each candidate and between neighbours, and no record leaves the cluster. Sums are
    exact: a weight is an integer of at most 55 bits, scaled by a power of two that its size tells, and integers are
    added by power.
    """
    found = {order_key(candidate): candidate for candidate in candidates if candidate is not None}
    places = [found[key] for key in sorted(found)]
    sums = [Fraction(0)] * (2 * len(places) + 1)  # before the first, at the first, between it and the second, ...
    for slot, power, total in spark.sql(_sums(compiled, places)).collect():
        sums[slot] += int(total) * Fraction(2) ** power
    before = [Fraction(0), *accumulate(sums)]
    slots = {order_key(place): 2 * number + 1 for number, place in enumerate(places)}
    at = [slots.get(order_key(candidate), -1) for candidate in candidates]  # null comes before all
    ends = [(before[max(slot, 0)], before[slot + 1]) for slot in at]
    return [(low, upto - low, before[-1] - upto) for low, upto in ends]


def _sums(compiled: Compiled, places: Sequence[Value]) -> str:
    """The query of the sums by slot and by power of two. Spark orders structs and lists as the canonical order does."""
    kinds = [type_in_spark(generic) for generic in column_types(compiled.type)]
    struct = ", ".join(f"k{i}: {kind}" for i, kind in enumerate(kinds))
    key = ", ".join(f"'k{i}', c{i}" for i, _ in enumerate(kinds))
    flat = flattener(compiled.type)
    rows = [{f"k{i}": value for i, value in enumerate(flat(place))} for place in places]
    text = json.dumps(rows, allow_nan=False)
    table = f"from_json(CAST(X'{text.encode().hex()}' AS STRING), 'ARRAY<STRUCT<{struct}>>')"  # read once: a constant
    steps = ", ".join(str(2**bit) for bit in reversed(range(len(places).bit_length() or 1)))
    there = "c0" if isinstance(plain(compiled.type), TupleOf) else "c0 IS NOT NULL"
    present = there if compiled.type.nullable else "TRUE"
    keyed = f"SELECT w, named_struct({key}) AS k FROM ({compiled.query}) WHERE w > 0 AND {present}"
    placed = (
        f"SELECT w, k, 53 - CAST(floor(log2(w)) AS INT) AS up, aggregate(array({steps}), 0, "
        f"(p, s) -> CASE WHEN get({table}, p + s - 1) < k THEN p + s ELSE p END) AS place FROM ({keyed})"
    )
    scaled = "w * pow(2D, up div 2) * pow(2D, up - up div 2)"  # in two steps, for 2^up may be no float
    slotted = (
        f"SELECT 2 * place + CAST(get({table}, place) <=> k AS INT) AS slot, -up AS power, "
        f"CAST(CAST({scaled} AS BIGINT) AS DECIMAL(20, 0)) AS m FROM ({placed})"
    )
    return f"SELECT slot, power, sum(m) FROM ({slotted}) GROUP BY slot, power"
