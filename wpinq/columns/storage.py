"""Weighted datasets as columns: checked once, inaccessible to others, read by any database.

The file is a DuckDB database with one table; data that are in memory as Arrow has them stay there instead
(`arrow_rows`). A file never has a name while there is anything in it (`unlinked_file`). So it goes with the last
process that has it open, however that ends. Until then it can be read again after a database failed and was thrown
away, and in a forked child.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from wpinq.columns.arrow_rows import ArrowRows, merge, merged
from wpinq.columns.records import column_names, column_types, fetch
from wpinq.columns.unlinked_file import UnlinkedFile, stop_progress_bar
from wpinq.errors import SessionError
from wpinq.expr.types import Type
from wpinq.expr.values import Value

SETTINGS_OF_ALL = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # what is held is written once; to write groups of rows anew, so that they are fewer, takes as long again
    "max_vacuum_tasks": "0",
}
"""What every DuckDB is opened with, whatever it is for."""

_SETTINGS = {
    **SETTINGS_OF_ALL,
    "temp_directory": "",
    # DuckDB 2.0.0 can lose rows by it (its issues 25702 and 22075), and what is joined here decides what is refused
    "disabled_optimizers": "join_filter_pushdown",
}


_NUMBERS = ("BIGINT", "DOUBLE", "BOOLEAN")
"""Types that are held as they are: finding how to write less of them takes a fifth of the time of protecting."""


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
            import duckdb

            with contextlib.suppress(duckdb.Error):  # where the database is broken, and goes with all that is in it
                self.detach(connection, name)

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
        cleanly(connection, "DETACH holding")
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


def cleanly(connection: Any, statement: str) -> None:
    """Run a statement that cleans up, and ignore errors of a broken database.

    That goes with all that is in it.
    """
    import duckdb

    with contextlib.suppress(duckdb.Error):
        connection.execute(statement)
