"""Records as flat columns: the layout of a value in a table, in a list, and in Python.

A record becomes its leaves side by side, `c0`, `c1`, …; one that can be null has a leading column that says whether it
is there, and where it is not, every leaf is null. A list is one column, of packed elements: scalars, lists, or structs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from wpinq.expr.declarations import ID, INT_ID, STR_ID
from wpinq.expr.types import BOOL, FLOAT, INT, ListOf, Scalar, TupleOf, Type, Weighted, physical
from wpinq.expr.values import Value, order_key


def plain(type_: Type) -> Type:
    """The type of the columns of a type: physical types, and a weighted element as a pair."""
    type_ = physical(type_)
    if isinstance(type_, Weighted):
        return TupleOf((None, None), (type_.record, FLOAT.with_nullable()), nullable=type_.nullable)
    return type_


def leaf_types(type_: Type, nullable: bool = False) -> Iterator[tuple[Type | None, bool]]:
    """The type of each column, in order, and whether it can be null.

    None is the column that says "it is there".
    """
    type_ = plain(type_)
    if isinstance(type_, TupleOf):
        if type_.nullable:
            yield None, False
        for element in type_.elements:
            yield from leaf_types(element, nullable or type_.nullable)
    else:
        yield type_, nullable or type_.nullable


def column_names(type_: Type) -> list[str]:
    """The names of a record's columns in a table."""
    return [f"c{i}" for i, _ in enumerate(leaf_types(type_))]


def type_name(type_: Type) -> str:
    """The type of a packed value in the generic SQL of this engine.

    A dialect may name it in another way.
    """
    type_ = plain(type_)
    if isinstance(type_, ListOf):
        return f"{type_name(type_.element)}[]"
    if isinstance(type_, TupleOf):
        inside = ", ".join(f"f{i} {type_name(element)}" for i, element in enumerate(type_.elements))
        return f"STRUCT({inside or 'f BOOLEAN'})"
    assert isinstance(type_, Scalar)
    names = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR", "null": "INTEGER"}
    names |= {ID.name: "VARCHAR", STR_ID.name: "VARCHAR", INT_ID.name: "BIGINT"}
    return names[type_.name]


def column_types(type_: Type) -> list[str]:
    """The types of a record's columns."""
    return ["BOOLEAN" if leaf is None else type_name(leaf) for leaf, _ in leaf_types(type_)]


def has_lists(type_: Type) -> bool:
    """Whether a column of a record is a list."""
    return any(isinstance(leaf, ListOf) for leaf, _ in leaf_types(type_))


# --- Python -------------------------------------------------------------------------------------------------------


def reader(type_: Type) -> Callable[[Sequence[Any]], Value]:
    """The function from a row, its columns in order, to the record."""
    read, _ = _reader(type_, 0)
    return read


def _reader(type_: Type, at: int) -> tuple[Callable[[Sequence[Any]], Value], int]:
    if isinstance(type_, TupleOf):
        here = at if type_.nullable else None
        at += type_.nullable
        parts = []
        for element in type_.elements:
            part, at = _reader(element, at)
            parts.append(part)
        fields = tuple(parts)
        if here is None:
            return (lambda row: tuple([part(row) for part in fields])), at
        return (lambda row: tuple([part(row) for part in fields]) if row[here] else None), at
    if isinstance(type_, ListOf) or type_ == FLOAT:
        unpacked = unpacker(type_)
        return (lambda row: unpacked(row[at])), at + 1
    return (lambda row: row[at]), at + 1


def unpacker(type_: Type) -> Callable[[Any], Value]:
    """The function from a packed value, as the database gives it, to the value."""
    if isinstance(type_, TupleOf):
        parts = [(f"f{i}", unpacker(element)) for i, element in enumerate(type_.elements)]
        return lambda held: None if held is None else tuple([part(held[name]) for name, part in parts])
    if isinstance(type_, ListOf):
        element = unpacker(type_.element)
        return lambda held: None if held is None else tuple([element(item) for item in held])
    if type_ == FLOAT:
        return lambda held: None if held is None else held + 0.0
    return lambda held: held


def packer(type_: Type) -> Callable[[Value], Any]:
    """The function from a value to what the database takes for it, packed."""
    if isinstance(type_, TupleOf):
        parts = [(f"f{i}", packer(element)) for i, element in enumerate(type_.elements)]

        def struct(value: Value) -> Any:
            if value is None:
                return None
            return {name: part(item) for (name, part), item in zip(parts, value, strict=True)} or {"f": True}

        return struct
    if isinstance(type_, ListOf):
        element = packer(type_.element)
        return lambda value: None if value is None else [element(item) for item in value]
    return lambda value: value


def flattener(type_: Type) -> Callable[[Value], list[Any]]:
    """The function from a record to its columns."""
    if not isinstance(type_, TupleOf):
        packed = packer(type_)
        return lambda value: [packed(value)]
    parts = [flattener(element) for element in type_.elements]
    nulls = (None,) * len(parts)
    nullable = type_.nullable

    def flatten(value: Value) -> list[Any]:
        columns = [value is not None] if nullable else []
        for part, item in zip(parts, nulls if value is None else value, strict=True):
            columns += part(item)
        return columns

    return flatten


# Python rows into a table, and back.

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
    """The array that the database reads as a column.

    It is of objects, where None is null, or of numbers behind a mask.
    """
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
    """The output of a query with some parameters: record to weight, in canonical order.

    Parameters are given by place or by name.
    """
    connection.execute(query, given)
    if not has_lists(type_):  # column by column, which takes a tenth of the time of rows
        held = connection.fetchnumpy()
        columns = iter([held[name].tolist() for name in column_names(type_)])
        weights = held["w"].tolist()
        return dict(zip(_assembled(type_, columns, len(weights)), weights, strict=True))
    read = reader(type_)
    result: dict[Value, Any] = {}
    while rows := connection.fetchmany(_CHUNK):
        for row in rows:
            result[read(row)] = row[-1]
    return {record: result[record] for record in sorted(result, key=order_key)}


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
