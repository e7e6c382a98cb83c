"""Data in and out: from record to weight into columns, and back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from wpinq.engines.contract import at_keys
from wpinq.engines.relational.blocks.relation import column_names, has_lists
from wpinq.engines.relational.blocks.shape import column_types, flattener, reader
from wpinq.engines.relational.sql.sums import check_norm
from wpinq.expr.types import BOOL, FLOAT, INT, Scalar, TupleOf, Type
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import Weights
from wpinq.plan.operators.source import Source

_CHUNK = 20_000
FEW = 64
"""Keys, for which a query is written in another way."""

_ENDS = {"low": min, "high": max}
_NARROWING = re.compile(r"\$(keys|low|high)(\d+)")
_TEXT = re.compile(r"'[^']*'")


def load(connection: Any, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
    """Put a source's dataset into a table; records of weight 0 are left out."""
    import numpy as np

    type_ = source.record
    names, types = column_names(type_), column_types(type_)
    columns = ", ".join(f"{name} {sql}" for name, sql in zip([*names, "w"], [*types, "DOUBLE"], strict=True))
    connection.execute(f"CREATE TEMP TABLE {table} ({columns})")
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    check_norm(source, numbers)
    if isinstance(type_, TupleOf) and not type_.nullable and all(isinstance(leaf, Scalar) for leaf in type_.elements):
        _load_columns(connection, table, type_.elements, weights, numbers)
    else:
        _load_any(connection, table, type_, types, zip(weights, numbers.tolist(), strict=True))


def _load_columns(connection: Any, table: str, types: tuple[Type, ...], records: Iterable[Any], numbers: Any) -> None:
    import numpy as np

    size, width = len(numbers), len(types)
    columns: dict[str, Any] = {}
    if len(set(types)) == 1 and _dtype(types[0]) is not np.object_ and not any(type_.nullable for type_ in types):
        whole: Any = np.fromiter(itertools.chain.from_iterable(records), dtype=_dtype(types[0]), count=size * width)
        for i in range(width):
            columns[f"c{i}"] = np.ascontiguousarray(whole.reshape(size, width)[:, i])
    else:
        for i, type_ in enumerate(types):
            columns[f"c{i}"] = _column(map(itemgetter(i), records), type_, size)
    columns["w"] = numbers
    connection.register("loading", columns)
    connection.execute(f"INSERT INTO {table} SELECT * FROM loading WHERE w <> 0")
    connection.unregister("loading")


def _column(values: Iterator[Any], type_: Type, size: int) -> Any:
    """The array that the database reads as a column: objects where None is null, or numbers behind a mask."""
    import numpy as np

    dtype = _dtype(type_)
    if dtype is np.object_ or not type_.nullable:
        return np.fromiter(values, dtype=dtype, count=size)
    held = np.fromiter(values, dtype=np.object_, count=size)
    missing = np.array([value is None for value in held.tolist()], dtype=np.bool_)
    held[missing] = 0
    return np.ma.masked_array(held.astype(dtype), mask=missing)


def _dtype(type_: Type) -> Any:
    import numpy as np

    kinds: dict[Type, Any] = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}  # types are equal without their nulls
    return kinds.get(type_, np.object_)


def _load_any(
    connection: Any, table: str, type_: Type, sql_types: list[str], rows: Iterator[tuple[Value, float]]
) -> None:
    flatten = flattener(type_)
    sql_types = [*sql_types, "DOUBLE"]
    struct = ", ".join(f"f{i} {sql}" for i, sql in enumerate(sql_types))
    fields = ", ".join(f"struct_extract(u, 'f{i}')" for i in range(len(sql_types)))
    insert = f"INSERT INTO {table} SELECT {fields} FROM (SELECT unnest($1::STRUCT({struct})[]) AS u)"
    while chunk := list(itertools.islice(rows, _CHUNK)):
        packed = [
            {f"f{i}": item for i, item in enumerate([*flatten(record), weight])} for record, weight in chunk if weight
        ]
        if packed:
            connection.execute(insert, [packed])


def fetch(connection: Any, query: str, type_: Type, given: Mapping[str, Any] | None = None, few: bool = False) -> Weights:
    """The output of a query with some parameters: record to weight, in canonical order if the query says so.

    A few records are quicker row by row.
    """
    connection.execute(query, given or None)
    if not few and not has_lists(type_):
        return _fetch_columns(connection, type_)
    read = reader(type_)
    result: Weights = {}
    while rows := connection.fetchmany(_CHUNK):
        for row in rows:
            result[read(row)] = row[-1]
    return {record: result[record] for record in sorted(result, key=order_key)}


def fetch_keys(
    connection: Any, read_from: str, type_: Type, keys: Sequence[Value], narrowed: bool = False
) -> Weights:
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
        for end, place in dict.fromkeys(_NARROWING.findall(_TEXT.sub("", read_from))):
            values = [value for value in lists[f"keys{place}"] if value is not None]
            given[end + place] = values if end == "keys" else _ENDS[end](values, default=None)
    return at_keys(fetch(connection, query, type_, given, len(records) <= FEW), keys)


def _same(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(names, values, strict=True)
    return " AND ".join(f"q.{name} IS NOT DISTINCT FROM {value}" for name, value in pairs) or "TRUE"


def _fetch_columns(connection: Any, type_: Type) -> Weights:
    """Column by column, which takes a tenth of the time of rows."""
    held = connection.fetchnumpy()
    columns = iter([held[name].tolist() for name in column_names(type_)])
    weights = held["w"].tolist()
    return dict(zip(_assembled(type_, columns, len(weights)), weights, strict=True))


def _assembled(type_: Type, columns: Iterator[list[Any]], size: int) -> list[Value]:
    if isinstance(type_, TupleOf):
        valid = next(columns) if type_.nullable else None
        parts = [_assembled(element, columns, size) for element in type_.elements]
        records: list[Value] = list(zip(*parts, strict=True)) if parts else [()] * size
        return records if valid is None else [r if v else None for r, v in zip(records, valid, strict=True)]
    values = next(columns)
    if type_ == FLOAT:
        return [None if value is None else value + 0.0 for value in values]
    return values
