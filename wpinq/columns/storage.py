"""Weighted datasets as columns: checked once, inaccessible to others, read by any database.

The file is a DuckDB database with one table. It never has a name while there is anything in it (`unlinked_file`). So it
goes with the last process that has it open, however that ends. Until then it can be read again after a database failed
and was thrown away, and in a forked child.

Data that are in memory as Arrow has them stay there instead. No database copies these, and any reads them in place. The
memory is the process's own: a database that failed does not take it along, and a forked child has it too.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from wpinq.columns.records import LOADING, column_names, column_types, fetch
from wpinq.columns.unlinked_file import UnlinkedFile, cleanly, in_order, stop_progress_bar
from wpinq.errors import SessionError
from wpinq.expr.types import Type
from wpinq.expr.values import Value

# Equal rows of a table added up where there are any: found by a hash, so that only those are grouped.
#
# Most tables of people repeat few records or none, and grouping by all columns takes longer than all else that
# protecting does. Equal rows have equal hashes. So rows whose hash no other row has are records already, to the last
# bit, and rows that share a hash are grouped by what they are, whether equal or of one hash by chance: no hash
# decides what is equal.
#
# The hashes are sorted outside of the database, `AT_ONCE` or so of them at a time.

#: About how many hashes are sorted at a time: 64 MB of them.
AT_ONCE = 2**23

#: Parts of hashes are at most two to this power, for each is an open file; of more than 2·10⁹ rows parts grow.
_MOST_BITS = 8

#: How many rows are looked at first, to see whether it is worth while to look for the few that repeat.
LOOKED_AT = 2**14

#: The share of rows with a hash in common from which on all rows are grouped.
_OFTEN = 1 / 8

#: The share of different ones among a column's first texts from which on no repeats are looked for.
_VARIED = 1 / 2

_SUSPECTS = "suspects"
_TAKEN = "taken"


def repeats_often(connection: Any, rows: str, names: Sequence[str]) -> bool:
    """Whether the first rows of a query are few, or repeat often.

    Then grouping all of them takes less time.
    """
    first = f"SELECT {hash_sql(names)} AS h FROM (SELECT * FROM ({rows}) LIMIT {LOOKED_AT})"
    ((count, distinct),) = connection.execute(f"SELECT count(*), count(DISTINCT h) FROM ({first})").fetchall()
    return bool(count < LOOKED_AT or often(count - distinct, count))


def varied_texts(connection: Any, rows: str, type_: Type) -> frozenset[str]:
    """The columns of text that hardly repeat in the first rows of a query, if there are so many.

    Looking for repeats to write less of them takes most of the time of protecting such a column.
    """
    columns = zip(column_names(type_), column_types(type_), strict=True)
    texts = [name for name, kind in columns if kind == "VARCHAR"]
    if not texts:
        return frozenset()
    distinct = ", ".join(f"count(DISTINCT {name})" for name in texts)
    first = f"SELECT * FROM ({rows}) LIMIT {LOOKED_AT}"
    ((count, *found),) = connection.execute(f"SELECT count(*), {distinct} FROM ({first})").fetchall()
    return frozenset(name for name, n in zip(texts, found, strict=True) if n > _VARIED * max(count, LOOKED_AT))


def shared_hashes(hashes: Any) -> Any:
    """The hashes that several rows have, of an array of the hashes of all rows, which is sorted.

    In order, each as often as rows have it, but for one of them.
    """
    hashes.sort()
    return hashes[1:][hashes[1:] == hashes[:-1]]


def places_of(hashes: Any, shared: Any) -> Any:
    """The places of some sorted hashes in an array of the hashes of all rows in order."""
    import numpy as np

    # Most rows are left out by a few bits of their hash, some at a time, in a table that a core keeps at hand.
    few, some = hashes.dtype.type(2**18 - 1), 2**16
    may = np.zeros(2**18, dtype=np.bool_)
    may[shared & few] = True
    looked_at = [np.flatnonzero(may[hashes[at : at + some] & few]) + at for at in range(0, len(hashes), some)]
    places = np.concatenate(looked_at)
    found = hashes[places]
    return places[np.searchsorted(shared, found, side="left") < np.searchsorted(shared, found, side="right")]


def often(rows: int, count: int) -> bool:
    """Whether so many of some rows repeat that grouping all takes less time than a search."""
    return rows > _OFTEN * count


def merge(connection: Any, table: str, names: Sequence[str], weight: str) -> None:
    """Have equal rows of a table stand once.

    Parameters
    ----------
    connection : DuckDBPyConnection
        To the database of the table.
    table : str
        With columns of records, and the weight `w`, which is 1 in each row.
    names : sequence of str
        The columns of the records.
    weight : str
        The SQL of what equal rows weigh together; for a row alone it is 1.
    """
    import numpy as np

    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    shared, rows = [], 0
    for hashes in _hashes_of_table(connection, table, names, count):
        shared.append(shared_hashes(hashes))
        rows += len(shared[-1])
        if often(rows, count):  # what repeats would take memory for nothing
            break
    if often(rows, count):
        _group(connection, table, names, weight, "TRUE")
    elif rows:
        connection.register(LOADING, {"h": np.concatenate(shared)})
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_SUSPECTS} AS SELECT h FROM {LOADING}")
        connection.unregister(LOADING)
        _group(connection, table, names, weight, f"{hash_sql(names)} IN (SELECT h FROM {_SUSPECTS})")
        connection.execute(f"DROP TABLE {_SUSPECTS}")


def _hashes_of_table(connection: Any, table: str, names: Sequence[str], count: int) -> Iterator[Any]:
    """The hashes of all rows, in parts such that equal ones are in one part."""
    import numpy as np

    bits = min((count // AT_ONCE).bit_length(), _MOST_BITS)
    query = f"SELECT {hash_sql(names)} AS h FROM {table}"
    if not bits:
        yield connection.execute(query).fetchnumpy()["h"]
        return
    # The table is read once; a part's hashes wait in a file without a name, in runs that are sorted.
    bounds = np.arange(1, 2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    with contextlib.ExitStack() as stack:
        parts = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2**bits)]
        for batch in connection.sql(query).to_arrow_reader(AT_ONCE // 8):
            hashes = np.sort(_numbers(batch.column(0), np.uint64))
            for part, run in zip(parts, np.split(hashes, np.searchsorted(hashes, bounds)), strict=True):
                part.write(run.data)
        for part in parts:
            part.seek(0)
            yield np.fromfile(part, dtype=np.uint64)
            part.truncate(0)


def _group(connection: Any, table: str, names: Sequence[str], weight: str, condition: str) -> None:
    """Group the rows that satisfy a condition, which equal rows do together."""
    listed = ", ".join(names)
    taken = f"SELECT {listed}, rowid AS place FROM {table} WHERE {condition}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_TAKEN} AS {taken}")
    connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM {_TAKEN})")
    connection.execute(f"INSERT INTO {table} SELECT {listed}, {weight} AS w FROM {_TAKEN} GROUP BY {listed}")
    connection.execute(f"DROP TABLE {_TAKEN}")


def hash_sql(names: Sequence[str]) -> str:
    """The hash of some columns."""
    return f"hash({', '.join(names)})"


_PIECE = 100_000
_ROWS = "rows_in_memory"
_TAKEN_ROWS = "rows_in_memory_taken"


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
    """The records of a table whose rows weigh 1, with equal rows merged.

    `weight` is their weight together, in SQL. Rows in increasing order of their integers, as those of a table with a
    key often are, are all different. Else equal rows are found by hashes: of the integers, where these tell the first
    rows apart, for hashing texts takes several times as long. One of equal rows stands for all, and the others have no
    weight.
    """
    import numpy as np

    columns = zip(column_names(type_), column_types(type_), strict=True)
    rows, names = _plain(table), ", ".join(column_names(type_))
    choices = dict.fromkeys([tuple(name for name, kind in columns if kind == "BIGINT"), tuple(column_names(type_))])
    if _increases(table):
        return rows
    try:
        first = _plain(table.slice(0, LOOKED_AT)).attach(connection, _ROWS)
        telling = [each for each in choices if each and not repeats_often(connection, first, each)]
        shown = rows.attach(connection, _ROWS)
        for hashed in telling:
            hashes = _hashes_of_rows(connection, hashed)
            shared = shared_hashes(hashes.copy())
            if not len(shared):
                return rows
            places = places_of(hashes, shared)
            if not often(len(places), len(table)):
                return _weighed(connection, table, names, weight, places)
        grouped = gathered(connection, f"SELECT {names}, {weight} AS w FROM {shown} GROUP BY {names}")
    finally:
        rows.detach(connection, _ROWS)
    total = sum(int(_numbers(piece, np.float64).sum()) for piece in grouped.column("w").chunks)
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
    """Whether each row of some columns is greater than the one before, in order of the columns."""
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


def _hashes_of_rows(connection: Any, names: Sequence[str]) -> Any:
    """Hashes of all rows, in order, of 32 bits.

    The few rows that have one in common by chance are compared as those that are equal are, and it takes less time to
    sort them than hashes of 64 bits, and less memory.
    """
    with in_order(connection):
        query = f"SELECT CAST({hash_sql(names)} >> 32 AS UINTEGER) AS h FROM {_ROWS}"
        return connection.execute(query).fetchnumpy()["h"]


def _weighed(connection: Any, table: Any, names: str, weight: str, places: Any) -> ArrowRows:
    """The same table with weights, where only the rows in some places may be equal to others."""
    import numpy as np

    suspects = _plain(_at(table, places).append_column("place", _column(places)))
    try:
        suspects.attach(connection, _TAKEN_ROWS)
        query = f"SELECT min(place) AS place, {weight} AS w FROM {_TAKEN_ROWS} GROUP BY {names}"
        found = connection.execute(query).fetchnumpy()
    finally:
        suspects.detach(connection, _TAKEN_ROWS)
    weights = np.ones(len(table))
    weights[places] = 0
    weights[found["place"]] = found["w"]
    count = len(table) - len(places) + len(found["w"])
    return ArrowRows(table.append_column("w", _column(weights)), count, int(weights.sum()))


def _at(table: Any, places: Any) -> Any:
    """The rows in some places, in order.

    Arrow's own way puts all pieces of a table together first.
    """
    import numpy as np
    import pyarrow as pa

    pieces = table.to_batches()
    begins = np.cumsum([0, *map(len, pieces)])
    inside = np.split(places, np.searchsorted(places, begins[1:-1]))
    wanted = zip(pieces, begins, inside, strict=False)
    taken = [piece.take(_column(at - begin)) for piece, begin, at in wanted if len(at)]
    return pa.Table.from_batches(taken, table.schema)


def _column(numbers: Any) -> Any:
    """An array as a column, as it lies; `pyarrow.array` would import pandas to make it."""
    import pyarrow as pa

    type_ = pa.float64() if numbers.dtype.kind == "f" else pa.int64()
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)])


# What is held, in a file or in memory.

#: What every DuckDB is opened with, whatever it is for.
SETTINGS_OF_ALL = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # what is held is written once; to write groups of rows anew, so that they are fewer, takes as long again
    "max_vacuum_tasks": "0",
}

_SETTINGS = {
    **SETTINGS_OF_ALL,
    "temp_directory": "",
    # DuckDB 2.0.0 can lose rows by it (its issues 25702 and 22075), and what is joined here decides what is refused
    "disabled_optimizers": "join_filter_pushdown",
}


#: Types that are held as they are: finding how to write less of them takes a fifth of the time of protecting.
_NUMBERS = ("BIGINT", "DOUBLE", "BOOLEAN")


class StoredColumns(Mapping[Value, float]):
    """Checked data: record to weight, each record once and none of weight 0.

    As a mapping it reads its rows whenever it is asked, which is for engines that compute with Python rows.

    Attributes
    ----------
    type : Type
        Of the records.
    norm : Fraction
        The sum of the absolute weights, without rounding.
    """

    __slots__ = ("__weakref__", "_count", "_stored", "norm", "type")

    def __init__(self, type_: Type, norm: Fraction, count: int, kept: UnlinkedFile | ArrowRows) -> None:
        self.type, self.norm, self._count, self._stored = type_, norm, count, kept

    @property
    def files(self) -> tuple[int, ...]:
        """The numbers of its files, which a forked child keeps open."""
        return (self._stored.number,) if isinstance(self._stored, UnlinkedFile) else ()

    @property
    def each_weighs_one(self) -> bool:
        """Whether it holds no weights, for each record weighs 1."""
        return isinstance(self._stored, ArrowRows) and not self._stored.weighted

    @contextlib.contextmanager
    def attached(self, connection: Any, name: str) -> Iterator[str]:
        """What to read the columns from, for a while."""
        try:
            yield self.attach(connection, name)
        finally:
            cleanly(self.detach, connection, name)

    def attach(self, connection: Any, name: str) -> str:
        """What to read the columns from, until they are hidden under this name."""
        return self._stored.attach(connection, name)

    def detach(self, connection: Any, name: str) -> None:
        """Have a database let go of them."""
        self._stored.detach(connection, name)

    def same(self, other: StoredColumns, connection: Any) -> bool:
        """Whether the other holds the same records with the same weights."""
        if (self.norm, self._count) != (other.norm, other._count):
            return False
        names = column_names(self.type)
        on = " AND ".join(["a.w = b.w", *[f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names]])
        with self.attached(connection, "one") as one, other.attached(connection, "another") as another:
            query = f"SELECT count(*) FROM {one} AS a SEMI JOIN {another} AS b ON {on}"
            ((common,),) = connection.execute(query).fetchall()
        return bool(common == self._count)

    def arrow(self) -> Any:
        """All of it as an Arrow table: `c0`, `c1`, … and `w`, for engines that read no DuckDB files."""
        with opened() as connection, self.attached(connection, "shown") as table:
            return connection.sql(f"SELECT * FROM {table}").to_arrow_table()

    def items(self) -> Any:
        with opened() as connection, self.attached(connection, "shown") as table:
            return fetch(connection, f"SELECT * FROM {table}", self.type).items()

    def __getitem__(self, record: Value) -> float:
        return float(dict(self.items())[record])

    def __iter__(self) -> Iterator[Value]:
        return iter(dict(self.items()))

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> NoReturn:
        raise SessionError("protected data cannot be pickled or copied")


@contextlib.contextmanager
def opened() -> Iterator[Any]:
    """A DuckDB of no engine's, for a while."""
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(_SETTINGS))
    try:
        stop_progress_bar(connection)
        yield connection
    finally:
        connection.close()


def store(
    connection: Any,
    type_: Type,
    query: str,
    in_memory: bool,
    norm: Fraction | None = None,
    repeated: str | None = None,
    varied: frozenset[str] = frozenset(),
) -> StoredColumns:
    """Hold what a query gives: columns of records, each once, and their weights.

    Parameters
    ----------
    connection : DuckDBPyConnection
        To the database that computes it.
    type_ : Type
        Of the records.
    query : str
        Its columns are those of `column_names(type_)`, and `w`.
    in_memory : bool
        Whether to hold it in the memory file system, where it has room; else where temporary files are.
    norm : Fraction, optional
        The sum of the absolute weights. Unless given, weights are numbers of rows, and are added up.
    repeated : str, optional
        Where the query gives rows of weight 1 that may be equal, what equal ones weigh together, as SQL.
    varied : frozenset of str
        Columns of text that hardly repeat, which are held as they are: see `varied_texts`.
    """
    file = UnlinkedFile(in_memory)
    columns = zip([*column_names(type_), "w"], [*column_types(type_), "DOUBLE"], strict=True)
    plain = " USING COMPRESSION uncompressed"
    declared = [f"{name} {kind}{plain if kind in _NUMBERS or name in varied else ''}" for name, kind in columns]
    try:
        file.attach_empty(connection, "holding")
        connection.execute(f"CREATE TABLE holding.held ({', '.join(declared)})")
        connection.execute(f"INSERT INTO holding.held {query}")
        if repeated is not None:
            merge(connection, "holding.held", column_names(type_), repeated)
        connection.execute("CHECKPOINT holding")
        rows = "coalesce(sum(w::HUGEINT), 0)" if norm is None else "0"
        ((count, rows),) = connection.execute(f"SELECT count(*), {rows} FROM holding.held").fetchall()
    finally:
        cleanly(connection.execute, "DETACH holding")
    return StoredColumns(type_, Fraction(rows) if norm is None else norm, count, file)


def store_table(connection: Any, type_: Type, table: Any, repeated: str) -> StoredColumns:
    """Store an Arrow table that nothing writes to, as columns of records.

    Its rows have weight 1 and may be equal.

    Parameters
    ----------
    connection : DuckDBPyConnection
        To a database that finds equal rows.
    type_, table : Type, pyarrow.Table
        Of the records, and their columns.
    repeated : str
        What equal rows weigh together, as SQL.
    """
    rows = merged(connection, table.rename_columns(column_names(type_)), type_, repeated)
    return StoredColumns(type_, Fraction(rows.total), rows.count, rows)
