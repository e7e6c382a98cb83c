"""Columns of records that stay in the process as an Arrow table: no database copies them, and any reads them in place.

The memory is the process's own: a database that failed does not take it along, and a forked child has it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.duckdb_settings import in_order
from wpinq.columns.duplicates import LOOKED_AT, hash_sql, hashed_first, often, places_of, shared_hashes
from wpinq.columns.records import column_names
from wpinq.expr.types import Type

_PIECE = 100_000
_BLOCK = 2**13
_FACTOR = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: odd, with bits all over
_ROWS = "rows_in_memory"
_TAKEN = "rows_in_memory_taken"


class ArrowStream:
    """Something with an Arrow stream, and with nothing else that DuckDB could take it for."""

    def __init__(self, offered: Any) -> None:
        self._offered = offered

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._offered.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True, repr=False)  # which would quote rows
class ArrowRows:
    """Records that are held in memory.

    Attributes
    ----------
    table : pyarrow.Table
        Columns of records, and their weights `w`; a row of weight 0 is none. Without weights each record weighs 1.
    count : int
        How many records there are.
    total : int
        What they weigh together, where weights are numbers of rows.
    """

    table: Any
    count: int
    total: int

    @property
    def weighted(self) -> bool:
        """Whether there are weights."""
        return "w" in self.table.column_names

    def attach(self, connection: Any, name: str) -> str:
        """What to read the records from, until they are hidden."""
        connection.register(name, ArrowStream(self.table))
        if self.weighted:
            return f"(SELECT * FROM {name} WHERE w <> 0)"
        return f"(SELECT *, CAST(1 AS DOUBLE) AS w FROM {name})"

    def detach(self, connection: Any, name: str) -> None:
        """Have a database know nothing of them."""
        connection.unregister(name)


def gathered(connection: Any, query: str) -> Any:
    """What a query gives, as a table."""
    import pyarrow as pa

    try:
        return connection.sql(query).to_arrow_table(_PIECE)
    except pa.ArrowException:  # whose words may quote rows
        pass
    raise OSError("the rows cannot be made an Arrow table")


def merged(connection: Any, table: Any, type_: Type, weight: str) -> ArrowRows:
    """The records of a table, each row of which weighs 1, where equal rows weigh together what SQL says.

    Rows in increasing order of their integers, as those of a table with a key often are, are all different. Else equal
    rows are found as `duplicates` says. One of them stands for all, and the others have no weight.
    """
    rows, names = _plain(table), ", ".join(column_names(type_))
    if _increases(table):
        return rows
    try:
        _plain(table.slice(0, LOOKED_AT)).attach(connection, _ROWS)
        hashed_by = hashed_first(connection, f"SELECT * FROM {_ROWS}", type_)
        shown = rows.attach(connection, _ROWS)
        for hashed in hashed_by:
            hashes = _hashes(connection, table, hashed)
            shared = shared_hashes(hashes.copy())
            if not len(shared):
                return rows
            places = places_of(hashes, shared)
            if not often(len(places), len(table)):
                return _weighed(connection, table, names, weight, places)
        grouped = gathered(connection, f"SELECT {names}, {weight} AS w FROM {shown} GROUP BY {names}")
    finally:
        rows.detach(connection, _ROWS)
    rows = ArrowRows(grouped, len(grouped), 0)
    try:
        query = f"SELECT coalesce(sum(w::HUGEINT), 0) FROM {rows.attach(connection, _ROWS)}"
        ((total,),) = connection.execute(query).fetchall()
    finally:
        rows.detach(connection, _ROWS)
    return ArrowRows(grouped, len(grouped), total)


def _plain(table: Any) -> ArrowRows:
    return ArrowRows(table, len(table), len(table))


def _increases(table: Any) -> bool:
    """Whether each row is greater than the one before it, by its integers that are never null."""
    import numpy as np

    places = [i for i, column in enumerate(table.columns) if _is_plain_integer(column)]
    before: list[Any] = []
    for piece in table.to_batches():
        columns = [_numbers(piece.column(i), np.int64) for i in places]
        ends = [np.concatenate([last, column[:1]]) for last, column in zip(before, columns, strict=False)]
        if len(piece):
            if not _greater(columns) or not _greater(ends):
                return False
            before = [column[-1:] for column in columns]
    return bool(places)


def _is_plain_integer(column: Any) -> bool:
    return str(column.type) == "int64" and not column.null_count


def _greater(columns: list[Any]) -> bool:
    """Whether each row of some columns is greater than the one before it, the first column before others."""
    tied: Any = True  # which rows are equal to the one before, as far as was looked
    for column in columns:
        if (tied & (column[1:] < column[:-1])).any():
            return False
        tied = tied & (column[1:] == column[:-1])
        if not tied.any():
            return True
    return not columns


def _numbers(column: Any, kind: Any) -> Any:
    """A column of numbers without nulls, as it lies."""
    import numpy as np

    return np.frombuffer(column.buffers()[1], dtype=kind)[column.offset : column.offset + len(column)]


def _hashes(connection: Any, table: Any, names: Sequence[str]) -> Any:
    """Hashes of all rows, in order, of 32 bits.

    The few rows that have one in common by chance are compared as those that are equal are, and it takes less time to
    sort them than hashes of 64 bits, and less memory. Those of integers that are never null are the upper bits of a
    polynomial, which take half the time of the database's.
    """
    import numpy as np

    hashes, place = np.empty(len(table), dtype=np.uint32), 0
    if all(map(_is_plain_integer, table.select(names).columns)):
        for piece in table.select(names).to_batches():
            mixed = np.zeros(len(piece), dtype=np.uint64)
            for power, column in enumerate(piece.columns, 1):
                mixed += _numbers(column, np.uint64) * np.uint64(pow(_FACTOR, power, 2**64))
            hashes[place : place + len(piece)] = mixed >> np.uint64(32)
            place += len(piece)
        return hashes
    with in_order(connection):
        query = f"SELECT CAST({hash_sql(names)} >> 32 AS UINTEGER) AS h FROM {_ROWS}"
        for piece in connection.sql(query).to_arrow_reader(_PIECE):
            hashes[place : place + len(piece)] = _numbers(piece.column(0), np.uint32)
            place += len(piece)
    if place != len(table):
        raise OSError("there are not as many hashes as rows")
    return hashes


def _weighed(connection: Any, table: Any, names: str, weight: str, places: Any) -> ArrowRows:
    """The same table with weights, where only the rows in some places may be equal to others."""
    import numpy as np

    taken = _plain(_at(table, places).append_column("place", _column(places)))
    try:
        taken.attach(connection, _TAKEN)
        query = f"SELECT min(place) AS place, {weight} AS w FROM {_TAKEN} GROUP BY {names}"
        found = connection.execute(query).fetchnumpy()
    finally:
        taken.detach(connection, _TAKEN)
    weights = np.zeros(len(places))
    weights[np.searchsorted(places, found["place"])] = found["w"]
    count, total = len(table) - len(places) + len(found["w"]), len(table) - len(places) + int(weights.sum())
    repeated = weights != 1
    column = _ones_but_for(len(table), places[repeated], weights[repeated])
    return ArrowRows(table.append_column("w", column), count, total)


def _ones_but_for(size: int, places: Any, weights: Any) -> Any:
    """A column of ones, but for the weights in some places, in order. Blocks of nothing but ones share their memory."""
    import numpy as np
    import pyarrow as pa

    pieces: list[Any] = []
    end, ones = 0, _column(np.ones(min(size, _PIECE)))

    def fill(begin: int) -> None:
        pieces.extend(ones.slice(0, begin - at) for at in range(end, begin, len(ones)))

    blocks, first = np.unique(places // _BLOCK, return_index=True)
    for block, inside in zip(blocks.tolist(), np.split(np.arange(len(places)), first)[1:], strict=True):
        fill(block * _BLOCK)
        own = np.ones(min(_BLOCK, size - block * _BLOCK))
        own[places[inside] - block * _BLOCK] = weights[inside]
        pieces.append(_column(own))
        end = block * _BLOCK + len(own)
    fill(size)
    return pa.chunked_array(pieces, pa.float64())


def _column(numbers: Any) -> Any:
    """An array as a column, as it lies; `pyarrow.array` would import pandas to make it."""
    import pyarrow as pa

    type_ = pa.float64() if numbers.dtype.kind == "f" else pa.int64()
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)])


def _at(table: Any, places: Any) -> Any:
    """The rows in some places, in order; Arrow's own way puts all pieces of a table together first.

    The function is asked for where `pyarrow.compute` has it from: to import that takes longer than to protect a
    hundred thousand rows, for it writes a Python function for each of Arrow's. Where it is no longer there, that does.
    """
    import numpy as np
    import pyarrow as pa

    try:
        from pyarrow._compute import call_function
    except ImportError:
        from pyarrow.compute import call_function

    pieces = table.to_batches()
    ends = np.cumsum([len(piece) for piece in pieces])
    inside = np.split(places, np.searchsorted(places, ends[:-1]))
    taken = []
    for piece, end, of_piece in zip(pieces, ends, inside, strict=True):
        if len(of_piece):
            at = _column(of_piece - (end - len(piece)))
            columns = [call_function("array_take", [column, at]) for column in piece.columns]
            taken.append(pa.RecordBatch.from_arrays(columns, schema=table.schema))
    return pa.Table.from_batches(taken, table.schema)
