"""Tables of numpy, pandas, polars, Arrow and DuckDB: scanned as they lie, columns by field name.

None of these libraries is imported unless a table of it is offered: a table names its own library. A column of Python
objects, or of a kind that DuckDB does not read, is checked value by value in Python: by its kind, never by its values.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wpinq.columns.arrow_rows import ArrowStream
from wpinq.columns.duckdb_settings import bytes_of, in_order
from wpinq.data.arrow_types import (
    INTERVAL,
    CountedKind,
    counted_kind,
    counts_of_batch,
    counts_of_schema,
    counts_of_table,
    dtype_name,
    duration_of,
    for_arrow,
    is_plain,
    rounds,
)
from wpinq.data.casts import Canonical, any_of, logical_column, of_column
from wpinq.data.consumable import begin, check_unread
from wpinq.data.foreign_errors import computed
from wpinq.data.layout import PLAIN_KINDS, Layout
from wpinq.data.relation import STAGED, Scan
from wpinq.data.rows import columns_scan
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import ID
from wpinq.expr.types import DATE, INT, DecimalOf, Logical, Type

# A table as it is offered to DuckDB, whatever library it is of.

PIECE = 100_000
"""How many rows are read at a time."""


@dataclass(slots=True)
class OfferedTable:
    """A table with the columns of a layout, in its order.

    Attributes
    ----------
    what : str
        What messages call it.
    offered : object
        What DuckDB scans, or gives it; None where it is to be read in Python.
    lists : callable, optional
        The Python values of a column.
    notes : list of str
        What the messages add of each column.
    nan_is_null : sequence of bool
        For each column.
    counted : sequence of CountedKind or None
        For each column, what its integers count, where it is offered as these.
    once : bool
        Whether what is offered can be read only once.
    again : callable, optional
        Another of these with the same rows, which costs as much as the first.
    small : bool
        Whether it is in memory.
    first : callable, optional
        The first rows of what was offered last, read on the way; None where there are none.
    gathered : callable, optional
        All of it as an Arrow table of its own, where that takes no more than some bytes; else None.
    owned : pyarrow.Table, optional
        That table, which nobody else has.
    types : sequence of Type, optional
        What the columns are read as, where not as the types of the layout: as what stands for values of these, null for
        all that is unfit. What is read `again` is none of it.
    """

    what: str
    offered: Any
    lists: Callable[[int], Sequence[Any]] | None = None
    notes: Sequence[str] = ()
    nan_is_null: Sequence[bool] = ()
    counted: Sequence[CountedKind | None] = ()
    once: bool = False
    again: Callable[[], Any] | None = None
    small: bool = True
    first: Callable[[], Any] | None = None
    gathered: Callable[[int], Any] | None = None
    owned: Any = field(default=None, repr=False)
    types: Sequence[Type] | None = None


def of_spark(data: object) -> bool:
    """Whether an object is Spark's, which stays there."""
    return any(base.__module__.partition(".")[0] == "pyspark" for base in type(data).__mro__)


def unsupported(data: object) -> SourceRejected:
    if of_spark(data):
        return SourceRejected(
            'a frame of Spark stays in Spark: offer it, as it is, where engine="spark"; what EdgeList would do, Spark '
            "does before (functions.least and greatest, dropDuplicates, of people with the id among its columns)"
        )
    return SourceRejected(
        f"a {type(data).__module__}.{type(data).__qualname__} cannot be read: offer a pandas or polars frame, an "
        "Arrow table or batches, a DuckDB relation, a numpy array without mask, or plain rows"
    )


# Relations of DuckDB: read once, from their own connection, into memory where they fit there well.

_NARROW = ("tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger")
"""Kinds of integers that a declared int is wider than."""


def offered_relation(data: Any, layout: Layout) -> OfferedTable:
    """A relation, with the columns of a layout."""
    import duckdb

    if not isinstance(data, duckdb.DuckDBPyRelation):
        raise unsupported(data)
    what = "the relation"
    places = layout.pick(data.columns, what)
    columns = [for_arrow(f"#{place + 1}", data.types[place], layout.label(i)) for i, place in enumerate(places)]
    columns = [
        f"CAST({column} AS BIGINT)" if type_ == INT and str(data.types[place].id) in _NARROW else column
        for column, type_, place in zip(columns, layout.types, places, strict=True)
    ]
    read = [
        _stored(column, data.types[place], type_)
        for column, place, type_ in zip(columns, places, layout.types, strict=True)
    ]
    picked = data.project(", ".join(column for column, _ in read))
    try:
        import pyarrow
    except ImportError:  # then there is a stream, which is computed again for each look at its schema
        with contextlib.suppress(duckdb.Error):  # of the relation itself: its rows are asked for next
            _unless_busy(lambda: data.limit(0).fetchall())
        return OfferedTable(what, ArrowStream(data.project(", ".join(columns))), small=False)

    reading: list[Any] = []
    first: list[Any] = []

    def gather(room: int) -> bool:
        """Read from the start, until there is no room for more; whether that is all."""
        first.clear()
        while reading:
            reading.pop().close()  # a connection has one result at a time
        reading.append(_unless_busy(lambda: picked.to_arrow_reader(PIECE)))
        try:
            for batch in reading[0]:
                first.append(batch)
                room -= batch.nbytes
                if room < 0:
                    return False
        except (OSError, pyarrow.ArrowException):  # to fail anew in the scan, never to go on behind what failed
            reading.pop().close()
            reading.append(picked.to_arrow_reader(PIECE))
            first.clear()
            return False
        return True

    def rows() -> Any:
        if not reading:
            gather(0)
        return pyarrow.RecordBatchReader.from_batches(reading[0].schema, itertools.chain(first, reading[0]))

    def again() -> Any:
        nonlocal picked
        picked = data.project(", ".join(columns))
        gather(0)
        return rows()

    def gathered(room: int) -> Any:
        table = pyarrow.Table.from_batches(first, reading[0].schema) if gather(room) else None
        # where one is null, why is asked of the rows as they were offered
        return None if table is None or any(table.column(i).null_count for i in made) else table

    def looked_at() -> Any:
        return pyarrow.Table.from_batches(first[:1]) if first else None

    types = [type_ for _, type_ in read]
    made = [i for i, type_ in enumerate(types) if type_ != layout.types[i]]
    return OfferedTable(
        what, rows, once=True, again=again, small=False, first=looked_at, gathered=gathered, types=types
    )


def _stored(column: str, kind: Any, type_: Type) -> tuple[str, Type]:
    """What a relation is asked for in place of a column, and what that is: of a date, the integer that stands for it.

    So the relation hands over numbers, in half the memory of decimals, that are records as they lie. What cannot stand
    for a value is null. It is asked for nothing but DuckDB's own operators: names of functions may be its owner's.
    """
    found = logical_column(column, kind, type_) if isinstance(type_, Logical) and not type_.nullable else None
    if found is None or not (type_ == DATE or isinstance(type_, DecimalOf)) or kind.id not in ("date", "decimal"):
        return column, type_
    value, unfit = found
    return (f"CASE WHEN {any_of([held for held, _ in unfit])} THEN NULL ELSE {value} END" if unfit else value), INT


def _unless_busy(ask: Callable[[], Any]) -> Any:
    """What is asked of a relation; a refusal where its own connection cannot compute it now."""
    import duckdb

    with contextlib.suppress(duckdb.ResourceInUseException):
        return ask()
    raise SourceRejected(
        "the relation cannot be read while its connection has an unfinished result: fetch that to its end "
        "(connection.complete()) or close its reader; or make the relation on another connection, as "
        "connection.cursor() gives one"
    )


_OFFERED = "offered"
_FIRST = "first_rows"

_PLAIN = ("int64", "bool", "string", "large_string")
"""What Arrow calls columns that stay as they lie. Settings of a relation's connection make others, as views of text."""

_MOMENTS_WITHOUT_A_ZONE = ("timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]")

_NOT_IN_PYTHON = "{} holds values that Python has none for: list its columns yourself to see which"

IN_MEMORY = 1 / 16
"""The share of DuckDB's memory limit that a relation may take, outside of it; a larger one is held in a file."""


def library_of(data: object) -> str | None:
    """The table library that an object comes from, or None; "" for a table of a library not known here."""
    for base in type(data).__mro__:
        root = base.__module__.partition(".")[0].removeprefix("_")
        if root in _READERS:
            return None if base.__name__ == "DuckDBPyConnection" else root  # that is a cursor of Python's DB-API
    return "" if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__") else None


def table_scan(connection: Any, data: Any, library: str, type_: Type, stack: contextlib.ExitStack) -> Scan:
    """A scan of a table."""
    import duckdb

    if library not in _READERS:
        raise unsupported(data)
    layout = Layout.of(type_)
    table = _READERS[library](data, layout)
    if table.offered is not None:
        with contextlib.suppress(duckdb.Error):  # of a kind of column that it does not know; or of the relation itself
            if table.gathered is not None:
                table = _in_memory(table, table.gathered(_room(connection)))
            return _native(connection, table, layout, stack)
    if table.lists is None:
        raise SourceRejected(f"{table.what} cannot be read: read it into a table yourself, or offer rows")
    columns = [table.lists(i) for i in range(len(layout.types))]
    pieces = ([column[i : i + PIECE] for column in columns] for i in range(0, len(columns[0]), PIECE))
    return columns_scan(connection, ((piece, {}) for piece in pieces), type_, table.what, table.notes)


def _room(connection: Any) -> int:
    """How many bytes of memory a table may take beside what DuckDB may."""
    ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return int(bytes_of(limit) * IN_MEMORY)


def _in_memory(table: OfferedTable, rows: Any) -> OfferedTable:
    """The same table, as it was gathered, if it was."""
    if rows is None:
        return table
    return OfferedTable(table.what, ArrowStream(rows), owned=rows, types=table.types)


def _native(connection: Any, table: OfferedTable, layout: Layout, stack: contextlib.ExitStack) -> Scan:
    connection.register(_OFFERED, table.offered() if callable(table.offered) else table.offered)
    stack.callback(_unregister, connection)
    names = [f"g{i}" for i in range(len(layout.types))]
    source = f"{_OFFERED} AS t({', '.join(names)})"
    types = connection.sql(f"SELECT * FROM {source}").types
    if table.counted:
        types = [kind or type_ for kind, type_ in zip(table.counted, types, strict=True)]
    columns = names
    if table.nan_is_null:
        columns = [f"nullif({g}, 'nan')" if null else g for g, null in zip(names, table.nan_is_null, strict=True)]
    fields = [of_column(*column) for column in zip(columns, types, table.types or layout.types, strict=True)]
    labels = [layout.label(i) + (table.notes[i] if table.notes else "") for i in range(len(names))]
    scan = Scan.of_fields(table.what, source, fields, labels, small=table.small, looks=table.small)
    if table.owned is not None:
        scan.in_arrow = True
        scan.table = table.owned if _lies_plain(table.owned, names, fields) else None
    first = table.first() if table.first is not None else None
    if first is not None:
        connection.register(_FIRST, first)
        scan.first_rows = source.replace(_OFFERED, _FIRST, 1)
    if table.again is not None:
        unread = replace(table, offered=table.again, again=None, types=None)
        scan.places, scan.anew = False, lambda: _native(connection, unread, layout, stack)
    elif table.once:
        with in_order(connection):
            connection.execute(f"CREATE TEMP TABLE {STAGED} AS SELECT * FROM {source}")
        scan.source, scan.number = STAGED, "rowid"
    return scan


def _lies_plain(rows: Any, names: Sequence[str], fields: Sequence[Canonical]) -> bool:
    """Whether the columns of a table are those of the records as they are, and none holds what is unfit."""
    found = zip(names, fields, rows.columns, strict=True)
    return all(
        str(column.type) in _PLAIN
        and canonical.leaves == (name,)
        and (not canonical.unfit or ([c for c, _ in canonical.unfit] == [f"{name} IS NULL"] and not column.null_count))
        for name, canonical, column in found
    )


def _unregister(connection: Any) -> None:
    import duckdb

    with contextlib.suppress(duckdb.Error):  # where the database is broken, and goes with all that is in it
        connection.unregister(_OFFERED)
        connection.unregister(_FIRST)


def _numpy(data: Any, layout: Layout) -> OfferedTable:
    import numpy

    what = "the array"
    if not isinstance(data, numpy.ndarray) or isinstance(data, numpy.ma.MaskedArray):
        raise unsupported(data)
    if data.dtype.names is not None and data.ndim == 1:
        arrays = [data[data.dtype.names[place]] for place in layout.pick(data.dtype.names, what)]
    elif data.ndim in (1, 2) and ID in layout.types:  # by place, a field of the record would be taken for the id
        raise SourceRejected(f"{what} has columns without names, and does not say whose its rows are: name them")
    elif data.ndim in (1, 2):
        array = data[:, None] if data.ndim == 1 else data
        if array.shape[1] != len(layout.types):
            raise SourceRejected(
                f"{what} has {array.shape[1]} columns where the declared type has {len(layout.types)} fields: "
                "offer just these columns, in order"
            )
        arrays = [array[:, place] for place in range(array.shape[1])]
    else:
        raise SourceRejected(f"{what} has {data.ndim} dimensions: offer rows and columns")
    # What is not a number DuckDB would take for null, as pandas means it.
    plain = all(is_plain(array) and not (array.dtype.kind == "f" and numpy.isnan(array).any()) for array in arrays)
    offered = {f"g{i}": array for i, array in enumerate(arrays)} if plain else None
    notes = [f" (dtype {dtype_name(array.dtype)})" for array in arrays]
    return OfferedTable(what, offered, lambda i: _values(arrays[i]), notes)


def _values(array: Any) -> list[Any]:
    """The Python values of an array: of other kinds than the plain ones, tolist() would turn dates into integers."""
    return list(array.tolist() if array.dtype.kind in PLAIN_KINDS + "O" else array)


def _pandas(data: Any, layout: Layout) -> OfferedTable:
    import numpy
    import pandas

    what = "the data frame"
    if not isinstance(data, pandas.DataFrame):
        raise unsupported(data)
    series = [data.iloc[:, place] for place in layout.pick(list(data.columns), what)]
    # Only numpy's own dtypes are named: the name of a categorical one could hold values.
    own = [isinstance(column.dtype, numpy.dtype) for column in series]
    notes = [f" (dtype {dtype_name(column.dtype)})" if plain else "" for column, plain in zip(series, own, strict=True)]

    def lists(i: int) -> list[Any]:
        missing = computed(
            lambda: series[i].isna().tolist(), f"{what} holds what pandas cannot tell from a missing value"
        )
        held = _values(series[i]) if own[i] else computed(series[i].tolist, _NOT_IN_PYTHON.format(what))
        pairs = zip(held, missing, strict=True)
        values = [None if absent else value for value, absent in pairs]
        spans = str(getattr(series[i].dtype, "pyarrow_dtype", "")) == INTERVAL
        return list(map(duration_of, values)) if spans else values

    floats = [plain and column.dtype.kind == "f" for column, plain in zip(series, own, strict=True)]
    offered, counted = _pandas_offered(series, own)
    return OfferedTable(what, offered, lists, notes, floats, counted)


def _pandas_offered(series: Sequence[Any], own: Sequence[bool]) -> tuple[Any, Sequence[CountedKind | None]]:
    """What DuckDB scans of columns, and what these count.

    There is nothing to scan where a column is of Python objects, or only Arrow could hand it over.
    """
    if all(own):
        arrays = [column.to_numpy() for column in series]
        return ({f"g{i}": array for i, array in enumerate(arrays)} if all(map(is_plain, arrays)) else None), ()
    if any(plain and not is_plain(column.to_numpy()) for column, plain in zip(series, own, strict=True)):
        return None, ()
    try:
        import pyarrow
    except ImportError:
        return None, ()
    try:
        table = pyarrow.table([pyarrow.array(column, from_pandas=False) for column in series], names=_names(series))
    except pyarrow.ArrowException:
        return None, ()
    if rounds(table.schema.types):
        return None, ()
    counted = list(map(counted_kind, table.schema.types))
    return counts_of_table(table, counted), counted


def _names(columns: Sequence[Any]) -> list[str]:
    return [f"g{i}" for i in range(len(columns))]


def _polars(data: Any, layout: Layout) -> OfferedTable:
    import polars

    what = "the data frame"
    if not isinstance(data, (polars.DataFrame, polars.LazyFrame)):
        raise unsupported(data)
    refusal = "the polars frame cannot be computed: collect it yourself to see why"
    places = layout.pick(computed(lambda: data.collect_schema().names(), refusal), what)
    picked = [polars.nth(place).alias(f"g{i}") for i, place in enumerate(places)]  # a name could be a pattern
    frame = computed(lambda: data.lazy().select(picked).collect(), refusal)
    rounds(frame.schema.values())  # nothing at the top, and what is inside is refused
    counted = list(map(counted_kind, frame.schema.values()))
    counts = [polars.nth(place).to_physical() for place, kind in enumerate(counted) if kind is not None]
    nulls = {name: _without_null(kind) for name, kind in frame.schema.items() if "Null" in str(kind)}
    offered = computed(lambda: frame.with_columns(counts).cast(nulls), refusal)

    def lists(i: int) -> list[Any]:
        series = frame[f"g{i}"]
        moments = series.dtype in (polars.Duration, polars.Datetime)  # whose lists round
        return list(series.to_numpy()) if moments else series.to_list()

    return OfferedTable(what, ArrowStream(offered), lists, counted=counted)


def _without_null(kind: Any) -> Any:
    """A type of polars with text where it has the type of nothing but null, whose batches DuckDB refuses."""
    import polars

    if kind == polars.Null:
        return polars.String()
    if isinstance(kind, polars.List):
        return polars.List(_without_null(kind.inner))
    if isinstance(kind, polars.Array):
        return polars.Array(_without_null(kind.inner), kind.size)
    if isinstance(kind, polars.Struct):
        return polars.Struct({field.name: _without_null(field.dtype) for field in kind.fields})
    return kind


def _pyarrow(data: Any, layout: Layout) -> OfferedTable:
    import pyarrow

    what, once = "the table", isinstance(data, pyarrow.RecordBatchReader)
    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    if not isinstance(data, (pyarrow.Table, pyarrow.RecordBatchReader)):
        raise unsupported(data)
    places = layout.pick(data.schema.names, what)
    schema = pyarrow.schema([pyarrow.field(f"g{i}", data.schema.field(place).type) for i, place in enumerate(places)])
    rounded, counted = rounds(schema.types), list(map(counted_kind, schema.types))
    if once:
        check_unread(data)

        def batches() -> Iterator[Any]:
            begin(data)
            for batch in data:
                chosen = pyarrow.RecordBatch.from_arrays([batch.column(place) for place in places], schema=schema)
                chosen.validate(full=True)  # what DuckDB takes for text must be UTF-8
                yield counts_of_batch(chosen, counted)

        counts = counts_of_schema(schema, counted)
        offered = None if rounded else pyarrow.RecordBatchReader.from_batches(counts, batches())
        return OfferedTable(what, offered, counted=counted, once=True, small=False)
    table, sound = pyarrow.Table.from_arrays([data.column(place) for place in places], schema=schema), False
    try:
        table.validate(full=True)
        sound = True
    except pyarrow.ArrowException:
        pass
    if not sound:
        raise SourceRejected("the table is not sound Arrow: validate it yourself to see why")

    def lists(i: int) -> list[Any]:
        column = table.column(i)
        if pyarrow.types.is_duration(column.type) or str(column.type) in _MOMENTS_WITHOUT_A_ZONE:
            return list(column.to_numpy())
        values = computed(column.to_pylist, _NOT_IN_PYTHON.format(what))
        return list(map(duration_of, values)) if str(column.type) == INTERVAL else list(values)

    return OfferedTable(what, None if rounded else ArrowStream(counts_of_table(table, counted)), lists, counted=counted)


_READERS: dict[str, Callable[[Any, Layout], OfferedTable]] = {
    "numpy": _numpy,
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "duckdb": offered_relation,
}
"""Every library of tables by its module, and what reads them."""
