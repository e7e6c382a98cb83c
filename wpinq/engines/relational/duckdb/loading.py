"""Data into DuckDB: a source becomes a table or a view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wpinq.columns.held import HeldColumns
from wpinq.columns.python_rows import create, insert
from wpinq.engines.relational.sql.sums import check_norm, check_weights
from wpinq.expr.values import Value
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
    if weights:  # there are none where a plan is tried
        insert(connection, table, source.record, weights, numbers)
        connection.execute(f"DELETE FROM {table} WHERE w = 0")


def unload(connection: Any, table: str, weights: object) -> None:
    """Let go of a source's dataset."""
    if isinstance(weights, HeldColumns):
        connection.execute(f"DROP VIEW {table}")
        weights.hide(connection, _held(table))
    else:
        connection.execute(f"DROP TABLE {table}")


def _held(table: str) -> str:
    return f"held_{table}"
