"""Tables of numpy, pandas, polars, Arrow and DuckDB: scanned as they lie, columns by field name.

None of these libraries is imported unless a table of it is offered: a table names its own library. A column of Python
objects, or of a kind that DuckDB does not read, is checked value by value in Python: by its kind, never by its values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wpinq.columns.arrow_rows import ArrowStream
from wpinq.columns.memory_sizes import bytes_of
from wpinq.columns.row_order import in_order
from wpinq.errors import SourceRejected
from wpinq.expr.person import ID
from wpinq.expr.types import Type
from wpinq.ingest.canonical import Canonical, of_column
from wpinq.ingest.counted_columns import (
    CountedKind,
    counted_kind,
    counts_of_batch,
    counts_of_schema,
    counts_of_table,
)
from wpinq.ingest.duckdb_relations import offered_relation
from wpinq.ingest.exact_scans import INTERVAL, dtype_name, duration_of, is_plain, rounds
from wpinq.ingest.foreign import computed
from wpinq.ingest.offered_table import PIECE, OfferedTable, unsupported
from wpinq.ingest.one_shot import begin, check_unread
from wpinq.ingest.rows import columns_scan
from wpinq.ingest.scan import STAGED, Scan
from wpinq.ingest.typed_columns import PLAIN_KINDS, Layout

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
