"""Columns of records that stay in the process as an Arrow table: no database copies them, and any reads them in place.

The memory is the process's own: a database that failed does not take it along, and a forked child has it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wpinq.columns.flat import column_names
from wpinq.columns.merging import LOOKED_AT, hashed_first, often, places_of, shared_hashes
from wpinq.columns.row_order import in_order
from wpinq.expr.types import Type

_PIECE = 100_000
_ROWS = "rows_in_memory"
_TAKEN = "rows_in_memory_taken"


class ArrowStream:
    """Something with an Arrow stream, and with nothing else that DuckDB could take it for."""

    def __init__(self, offered: Any) -> None:
        self._offered = offered

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._offered.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
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

    def show(self, connection: Any, name: str) -> str:
        """What to read the records from, until they are hidden."""
        connection.register(name, ArrowStream(self.table))
        if "w" in self.table.column_names:
            return f"(SELECT * FROM {name} WHERE w <> 0)"
        return f"(SELECT *, CAST(1 AS DOUBLE) AS w FROM {name})"

    def hide(self, connection: Any, name: str) -> None:
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
    rows are found as `merging` says. One of them stands for all, and the others have no weight.
    """
    rows, names = _plain(table), ", ".join(column_names(type_))
    if _increases(table):
        return rows
    try:
        _plain(table.slice(0, LOOKED_AT)).show(connection, _ROWS)
        hashed = hashed_first(connection, f"SELECT * FROM {_ROWS}", type_)
        shown = rows.show(connection, _ROWS)
        if hashed is not None:
            shared = shared_hashes(_hashes(connection, hashed, len(table)))
            if not len(shared):
                return rows
            places = places_of(_hashes(connection, hashed, len(table)), shared)
            if not often(len(places), len(table)):
                return _weighed(connection, table, names, weight, places)
        grouped = gathered(connection, f"SELECT {names}, {weight} AS w FROM {shown} GROUP BY {names}")
    finally:
        rows.hide(connection, _ROWS)
    rows = ArrowRows(grouped, len(grouped), 0)
    try:
        query = f"SELECT coalesce(sum(w::HUGEINT), 0) FROM {rows.show(connection, _ROWS)}"
        ((total,),) = connection.execute(query).fetchall()
    finally:
        rows.hide(connection, _ROWS)
    return ArrowRows(grouped, len(grouped), total)


def _plain(table: Any) -> ArrowRows:
    return ArrowRows(table, len(table), len(table))


def _increases(table: Any) -> bool:
    """Whether each row is greater than the one before it, by its integers that are never null."""
    import numpy as np

    places = [i for i, column in enumerate(table.columns) if str(column.type) == "int64" and not column.null_count]
    before: list[Any] = []
    for piece in table.to_batches():
        columns = [_numbers(piece.column(i), np.int64) for i in places]
        ends = [np.concatenate([last, column[:1]]) for last, column in zip(before, columns, strict=False)]
        if len(piece):
            if not _greater(columns) or not _greater(ends):
                return False
            before = [column[-1:] for column in columns]
    return bool(places)


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


def _hashes(connection: Any, hashed: str, count: int) -> Any:
    """The hashes of all rows, in order. Memory that was not used before takes longer to get than hashes to compute."""
    import numpy as np

    hashes, place = np.empty(count, dtype=np.uint64), 0
    with in_order(connection):
        for piece in connection.sql(f"SELECT {hashed} AS h FROM {_ROWS}").to_arrow_reader(_PIECE):
            hashes[place : place + len(piece)] = _numbers(piece.column(0), np.uint64)
            place += len(piece)
    if place != count:
        raise OSError("there are not as many hashes as rows")
    return hashes


def _weighed(connection: Any, table: Any, names: str, weight: str, places: Any) -> ArrowRows:
    """The same table with weights, where only the rows in some places may be equal to others."""
    import numpy as np

    weights = np.ones(len(table))
    taken = _plain(_at(table, places).append_column("place", _column(places)))
    try:
        taken.show(connection, _TAKEN)
        query = f"SELECT min(place) AS place, {weight} AS w FROM {_TAKEN} GROUP BY {names}"
        found = connection.execute(query).fetchnumpy()
    finally:
        taken.hide(connection, _TAKEN)
    weights[places] = 0
    weights[found["place"]] = found["w"]
    count = len(table) - len(places) + len(found["w"])
    return ArrowRows(table.append_column("w", _column(weights)), count, int(weights.sum()))


def _column(numbers: Any) -> Any:
    """An array as a column, as it lies; `pyarrow.array` would import pandas to make it."""
    import pyarrow as pa

    type_ = pa.float64() if numbers.dtype.kind == "f" else pa.int64()
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)])


def _at(table: Any, places: Any) -> Any:
    """The rows in some places, in order; Arrow's own way puts all pieces of a table together first."""
    import numpy as np
    import pyarrow as pa

    pieces = table.to_batches()
    starts = np.cumsum([0, *map(len, pieces)])
    numbers = np.searchsorted(starts, places, side="right") - 1
    inside = zip(numbers.tolist(), (places - starts[numbers]).tolist(), strict=True)
    return pa.Table.from_batches([pieces[number].slice(at, 1) for number, at in inside]).combine_chunks()
