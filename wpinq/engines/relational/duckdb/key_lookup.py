"""What some records weigh, asked of DuckDB: no other record leaves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wpinq.columns.flat import column_names, column_types, flattener, reader
from wpinq.columns.python_rows import fetch
from wpinq.engines.contract import at_keys
from wpinq.expr.types import Scalar, Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Weights

FEW = 64
"""Keys, for which a query is written in another way, and whose answers are read row by row."""

_ENDS = {"low": min, "high": max}
_NARROWING = re.compile(r"\$(values|null|low|high)(\d+)")
_TEXT = re.compile(r"'[^']*'")


def fetch_keys(connection: Any, read_from: str, type_: Type, keys: Sequence[Value], narrowed: bool = False) -> Weights:
    """The weights of some records in what a query may read from: a semi-join with a table of them.

    Nulls are found as values are. One record, as a Release is asked for most, takes no join, nor do a few that lie in
    one column. What is narrowed wants to be told the keys itself (see `sql.asked`).
    """
    flatten = flattener(type_)
    records = [flatten(key) for key in keys if key is not None or type_.nullable]
    if not records:
        return {}
    names, types = column_names(type_), column_types(type_)
    lists = {f"keys{i}": list(column) for i, column in enumerate(zip(*records, strict=True))}
    given: dict[str, Any] = dict(lists)
    if len(records) == 1:
        given = {f"key{i}": value for i, value in enumerate(records[0])}
        joined = f"WHERE {_same(names, [f'CAST(${name} AS {sql})' for name, sql in zip(given, types, strict=True)])}"
    elif len(names) == 1 and len(records) <= FEW and isinstance(type_, Scalar) and None not in lists["keys0"]:
        joined = f"WHERE list_contains(CAST($keys0 AS {types[0]}[]), q.{names[0]})"
    else:
        columns = zip(lists, names, types, strict=True)
        table = ", ".join(f"unnest(CAST(${given} AS {sql}[])) AS {name}" for given, name, sql in columns)
        joined = f"SEMI JOIN (SELECT {table}) AS k ON {_same(names, [f'k.{name}' for name in names])}"
    query = f"SELECT q.* FROM {read_from} AS q {joined}"
    if narrowed:
        given |= narrowing(read_from, lists)
    if len(records) > FEW:
        return at_keys(fetch(connection, query, type_, given), keys)
    read = reader(type_)
    return at_keys({read(row): row[-1] for row in connection.execute(query, given or None).fetchall()}, keys)


def narrowing(query: str, lists: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What a narrowed query is told of keys, from their columns `keys0`, `keys1`, …"""
    given: dict[str, Any] = {}
    for end, place in _NARROWING.findall(_TEXT.sub("", query)):
        asked = lists.get(f"keys{place}", [])
        values = [value for value in asked if value is not None]
        ends = {"values": values, "null": None in asked}
        given[end + place] = ends[end] if end in ends else _ENDS[end](values, default=None)
    return given


def _same(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(names, values, strict=True)
    return " AND ".join(f"q.{name} IS NOT DISTINCT FROM {value}" for name, value in pairs) or "TRUE"
