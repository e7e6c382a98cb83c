"""Records as flat columns: the layout of a value in a table, in a list, and in Python.

A record becomes its leaves side by side, `c0`, `c1`, …; one that can be null has a leading column that says whether it
is there, and where it is not, every leaf is null. A list is one column, of packed elements: scalars, lists, or structs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, cast

from wpinq.expr.declarations import ID, INT_ID, STR_ID
from wpinq.expr.types import BOOL, FLOAT, INT, ListOf, Scalar, TupleOf, Type, Weighted, physical
from wpinq.expr.values import KeyPairs, Value, order_key
from wpinq.runtime.arrays import Floats, Integers


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


def read_rows(type_: Type, rows: Sequence[Sequence[Any]], place: int = -1) -> dict[Value, Any]:
    """The record of each row, whose columns come first, with the value at a place of the row."""
    columns = [*map(list, zip(*rows, strict=True))]
    return dict(zip(_assembled(type_, iter(columns), len(rows)), columns[place], strict=True)) if rows else {}


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


def leaf_columns(type_: Type, records: Sequence[Value]) -> list[list[Any]]:
    """The columns of some records: column by column, no record is taken apart by itself."""
    if not isinstance(type_, TupleOf):
        return [[*map(packer(type_), records)] if isinstance(type_, ListOf) else list(records)]
    nulls = (None,) * len(type_.elements)
    whole: Any = [nulls if record is None else record for record in records] if None in records else records
    columns: list[list[Any]] = [[record is not None for record in records]] if type_.nullable else []
    for place, element in enumerate(type_.elements):
        columns += leaf_columns(element, [*map(itemgetter(place), whole)])
    return columns


# Python rows into a table, and back.

#: What a statement calls columns of Python's that it reads.
LOADING = "loading"

_CHUNK = 20_000


def create(connection: Any, table: str, type_: Type) -> None:
    """Make an empty table of records and their weights."""
    columns = zip([*column_names(type_), "w"], [*column_types(type_), "DOUBLE"], strict=True)
    connection.execute(f"CREATE TEMP TABLE {table} ({', '.join(f'{name} {sql}' for name, sql in columns)})")


def insert(connection: Any, table: str, type_: Type, records: Iterable[Value], weights: Any) -> None:
    """Put records and their weights, an array, into a table, in order; records of weight 0 too."""
    fields = range(len(type_.elements)) if isinstance(type_, TupleOf) and not type_.nullable else None
    columns = [records] if fields is None else [map(itemgetter(i), records) for i in fields]
    insert_columns(connection, table, type_, columns, weights)


def insert_columns(connection: Any, table: str, type_: Type, columns: Sequence[Iterable[Any]], weights: Any) -> None:
    """The same for records by their fields; bare and nullable records are one column."""
    type_ = physical(type_)
    bare = not isinstance(type_, TupleOf) or type_.nullable
    types = type_.elements if isinstance(type_, TupleOf) and not bare else (type_,)
    if all(isinstance(field, Scalar) for field in types):
        held = {f"c{i}": _column(column, types[i], len(weights)) for i, column in enumerate(columns)}
        load(connection, table, {**held, "w": weights})
    else:
        rows = columns[0] if bare else zip(*columns, strict=True)
        _insert_any(connection, table, type_, zip(rows, weights.tolist(), strict=True))


def load(connection: Any, table: str, columns: Mapping[str, Any]) -> None:
    """Append arrays, one a column, to a table."""
    connection.register(LOADING, dict(columns))
    connection.execute(f"INSERT INTO {table} SELECT * FROM {LOADING}")
    connection.unregister(LOADING)


def _column(values: Iterable[Any], type_: Type, size: int) -> Any:
    """The array that the database reads as a column.

    It is of objects, where None is null, or of numbers behind a mask.
    """
    import numpy as np

    kinds: dict[Type, Any] = {INT: np.int64, FLOAT: np.float64, BOOL: np.bool_}  # types are equal without their nulls
    dtype = kinds.get(type_, np.object_)
    if dtype is np.object_ or not type_.nullable:
        return np.fromiter(values, dtype=dtype, count=size)
    held = np.fromiter(values, dtype=np.object_, count=size)
    missing = np.array([value is None for value in held.tolist()], dtype=np.bool_)
    held[missing] = 0
    return np.ma.masked_array(held.astype(dtype), mask=missing)


def _insert_any(connection: Any, table: str, type_: Type, rows: Iterator[tuple[Value, float]]) -> None:
    sql_types = [*column_types(type_), "DOUBLE"]
    struct = ", ".join(f"f{i} {sql}" for i, sql in enumerate(sql_types))
    fields = ", ".join(f"struct_extract(u, 'f{i}')" for i in range(len(sql_types)))
    insert = f"INSERT INTO {table} SELECT {fields} FROM (SELECT unnest($1::STRUCT({struct})[]) AS u)"
    while chunk := list(itertools.islice(rows, _CHUNK)):
        records, weights = zip(*chunk, strict=True)
        columns = zip(*leaf_columns(type_, records), weights, strict=True)
        packed = [{f"f{i}": item for i, item in enumerate(row)} for row in columns]
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
    result: dict[Value, Any] = {}
    while rows := connection.fetchmany(_CHUNK):
        result |= read_rows(type_, rows)
    return {record: result[record] for record in sorted(result, key=order_key)}


class KeyWeights(Mapping[Value, float]):
    """The weights of keys in their order; no key is hashed before one is looked up."""

    def __init__(self, keys: Sequence[Value], weights: Floats) -> None:
        self.of, self.weights = keys, weights

    @cached_property
    def _by_key(self) -> dict[Value, float]:
        places = self.weights.nonzero()[0]
        found = map(self.of.__getitem__, places.tolist())
        return dict(zip(found, self.weights[places].tolist(), strict=True))

    def __getitem__(self, key: Value) -> float:
        return self._by_key[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self.weights.nonzero()[0])


def in_order(weights: Mapping[Value, Any], keys: Sequence[Value]) -> Sequence[Any]:
    """The weights of keys, in their order; absent records weigh nothing."""
    if isinstance(weights, KeyWeights) and weights.of is keys:
        return cast("Sequence[Any]", weights.weights)
    return [*map(weights.get, keys, itertools.repeat(0.0))]


#: A table whose rows have weights `w0`, `w1`, … of some values of the last field, and these values.
Sums = tuple[str, list[Value]] | None


def fetch_many(
    connection: Any, read_from: str, type_: Type, records: Sequence[Value], sums: Sums = None, computed: bool = False
) -> KeyWeights:
    """The weights of many records without lists, by a join with columns of them.

    Their places are read back. Pairs are joined by their first fields and their second. Where `sums` has the weights
    of all second fields in a row, it is read instead, by the first fields. With `computed`, several threads
    compute the output, and the columns are put in tables: one thread alone reads those of Python.
    """
    import numpy as np

    factors: Sequence[Sequence[Value]] = [records]
    types: Sequence[Type] = [type_]
    weights = ["w"]
    if isinstance(records, KeyPairs) and isinstance(type_, TupleOf):
        factors, types = records.factors, type_.elements
        if sums is not None and {*factors[1]} <= {*sums[1]}:
            read_from, (factors, types) = sums[0], (factors[:1], types[:1])
            weights = [f"w{sums[1].index(value)}" for value in records.factors[1]]
    query, place, names = f"FROM {read_from} AS q", "0", iter(column_names(type_))
    connection.complete()  # a query before, whose rows were not all read: arrays are registered between statements
    for i, (keys, kind) in enumerate(zip(factors, types, strict=True)):
        leaves = zip(column_names(kind), leaf_types(kind), leaf_columns(kind, keys), strict=True)
        size = len(keys)
        arrays = {n: _column(held, (leaf or BOOL).with_nullable(null), size) for n, (leaf, null), held in leaves}
        connection.register(f"{LOADING}{i}", arrays | {"place": np.arange(size)})
        wanted = f"wanted{i}" if computed else f"{LOADING}{i}"
        if computed:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {wanted} AS SELECT * FROM {LOADING}{i}")
        typed = zip(arrays, column_types(kind), strict=True)
        same = (f"q.{next(names)} IS NOT DISTINCT FROM CAST(k{i}.{name} AS {sql})" for name, sql in typed)
        query = f"{query} JOIN {wanted} AS k{i} ON {' AND '.join(same) or 'TRUE'}"
        place = f"{place} * {size} + k{i}.place"
    columns = ", ".join(f"coalesce(q.{name}, 0.0) AS {name}" for name in weights)
    found = connection.execute(f"SELECT {place} AS place, {columns} {query}").fetchnumpy()
    for i in range(len(factors)):
        connection.unregister(f"{LOADING}{i}")
        if computed:
            connection.execute(f"DROP TABLE wanted{i}")
    held = np.zeros((len(records) // len(weights), len(weights)))
    for column, name in zip(held.T, weights, strict=True):
        column[found["place"]] = found[name]
    return KeyWeights(records, held.ravel())


def fetch_rows(connection: Any, query: str, type_: Type) -> Integers:
    """The records of integers that weigh more than 1/2, as rows of an array."""
    import numpy as np

    held = connection.execute(query).fetchnumpy()
    rows: Integers = np.stack([held[name] for name in column_names(type_)], axis=1)[held["w"] > 0.5]
    return rows


def _assembled(type_: Type, columns: Iterator[list[Any]], size: int) -> list[Value]:
    if isinstance(type_, TupleOf):
        valid = next(columns) if type_.nullable else None
        parts = [_assembled(element, columns, size) for element in type_.elements]
        records: list[Value] = list(zip(*parts, strict=True)) if parts else [()] * size
        return records if valid is None else [r if v else None for r, v in zip(records, valid, strict=True)]
    values = next(columns)
    return [*map(unpacker(type_), values)] if type_ == FLOAT or isinstance(type_, ListOf) else values
