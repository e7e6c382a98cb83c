"""Data in and out of DuckDB: a source becomes a table or a view, and the weights of some records are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.columns.flat import column_names, column_types, flattener
from wpinq.columns.held import HeldColumns
from wpinq.columns.python_rows import create, fetch, insert
from wpinq.engines.contract import at_keys
from wpinq.engines.relational.sql.sums import check_norm, check_weights
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Weights
from wpinq.plan.operators.source import Source


def load(connection: Any, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
    """Have a source's dataset stand under a name: columns that are held as they are, Python rows in a table.

    Records of weight 0 are left out.
    """
    import numpy as np

    if isinstance(weights, HeldColumns):
        check_norm(source, weights.norm)
        columns = weights.show(connection, _held(table))
        connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM {columns}")
        return
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    check_weights(source, numbers)
    create(connection, table, source.record)
    insert(connection, table, source.record, weights, numbers)
    connection.execute(f"DELETE FROM {table} WHERE w = 0")


def unload(connection: Any, table: str, weights: object) -> None:
    """Let go of a source's dataset."""
    if isinstance(weights, HeldColumns):
        connection.execute(f"DROP VIEW {table}")
        connection.execute(f"DETACH {_held(table)}")
    else:
        connection.execute(f"DROP TABLE {table}")


def _held(table: str) -> str:
    return f"held_{table}"


def fetch_keys(connection: Any, read_from: str, type_: Type, keys: Sequence[Value]) -> Weights:
    """The weights of some records in what a query may read from: a semi-join with a table of them.

    Nulls are found as values are. One record, as a Release is asked for most, takes no join.
    """
    flatten = flattener(type_)
    records = [flatten(key) for key in keys if key is not None or type_.nullable]
    if not records:
        return {}
    names, types = column_names(type_), column_types(type_)
    if len(records) == 1:
        found = [f"CAST(${i} AS {sql})" for i, sql in enumerate(types, 1)]
        given, joined = records[0], "WHERE"
    else:
        found = [f"k.{name}" for name in names]
        given = [list(column) for column in zip(*records, strict=True)]
        table = ", ".join(
            f"unnest(CAST(${i} AS {sql}[])) AS {name}"
            for i, (name, sql) in enumerate(zip(names, types, strict=True), 1)
        )
        joined = f"SEMI JOIN (SELECT {table}) AS k ON"
    on = " AND ".join(f"q.{name} IS NOT DISTINCT FROM {value}" for name, value in zip(names, found, strict=True))
    query = f"SELECT q.* FROM {read_from} AS q {joined} {on or 'TRUE'}"
    return at_keys(fetch(connection, query, type_, given), keys)
