"""Python rows into a table, and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from wpinq.columns.flat import column_names, column_types, flattener, has_lists, reader
from wpinq.expr.types import BOOL, FLOAT, INT, Scalar, TupleOf, Type, physical
from wpinq.expr.values import Value, order_key

LOADING = "loading"
"""What a statement calls columns of Python's that it reads."""

_CHUNK = 20_000


def create(connection: Any, table: str, type_: Type) -> None:
    """Make an empty table of records and their weights."""
    columns = zip([*column_names(type_), "w"], [*column_types(type_), "DOUBLE"], strict=True)
    connection.execute(f"CREATE TEMP TABLE {table} ({', '.join(f'{name} {sql}' for name, sql in columns)})")


def insert(connection: Any, table: str, type_: Type, records: Iterable[Value], weights: Any) -> None:
    """Put records and their weights, an array, into a table, in order; records of weight 0 too."""
    type_ = physical(type_)
    if isinstance(type_, Scalar):
        _insert_columns(connection, table, (type_,), zip(records), weights)
    elif isinstance(type_, TupleOf) and not type_.nullable and all(isinstance(leaf, Scalar) for leaf in type_.elements):
        _insert_columns(connection, table, type_.elements, records, weights)
    else:
        _insert_any(connection, table, type_, zip(records, weights.tolist(), strict=True))


def _insert_columns(connection: Any, table: str, types: tuple[Type, ...], records: Iterable[Any], weights: Any) -> None:
    import numpy as np

    size, width = len(weights), len(types)
    columns: dict[str, Any] = {}
    if len(set(types)) == 1 and _dtype(types[0]) is not np.object_ and not any(type_.nullable for type_ in types):
        whole: Any = np.fromiter(itertools.chain.from_iterable(records), dtype=_dtype(types[0]), count=size * width)
        for i in range(width):
            columns[f"c{i}"] = np.ascontiguousarray(whole.reshape(size, width)[:, i])
    else:
        for i, type_ in enumerate(types):
            columns[f"c{i}"] = _column(map(itemgetter(i), records), type_, size)
    columns["w"] = weights
    load(connection, table, columns)


def load(connection: Any, table: str, columns: Mapping[str, Any]) -> None:
    """Append arrays, one a column, to a table."""
    connection.register(LOADING, dict(columns))
    connection.execute(f"INSERT INTO {table} SELECT * FROM {LOADING}")
    connection.unregister(LOADING)


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


def _insert_any(connection: Any, table: str, type_: Type, rows: Iterator[tuple[Value, float]]) -> None:
    flatten = flattener(type_)
    sql_types = [*column_types(type_), "DOUBLE"]
    struct = ", ".join(f"f{i} {sql}" for i, sql in enumerate(sql_types))
    fields = ", ".join(f"struct_extract(u, 'f{i}')" for i in range(len(sql_types)))
    insert = f"INSERT INTO {table} SELECT {fields} FROM (SELECT unnest($1::STRUCT({struct})[]) AS u)"
    while chunk := list(itertools.islice(rows, _CHUNK)):
        packed = [{f"f{i}": item for i, item in enumerate([*flatten(record), weight])} for record, weight in chunk]
        connection.execute(insert, [packed])


def fetch(connection: Any, query: str, type_: Type, given: Any = ()) -> dict[Value, Any]:
    """The output of a query with some parameters, by place or by name: record to weight, in canonical order."""
    connection.execute(query, given)
    if not has_lists(type_):
        return _fetch_columns(connection, type_)
    read = reader(type_)
    result: dict[Value, Any] = {}
    while rows := connection.fetchmany(_CHUNK):
        for row in rows:
            result[read(row)] = row[-1]
    return {record: result[record] for record in sorted(result, key=order_key)}


def _fetch_columns(connection: Any, type_: Type) -> dict[Value, Any]:
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
