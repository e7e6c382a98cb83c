"""Tables of every library as one relation, with columns by field name.

The libraries are DuckDB relations, Arrow streams, and columns of numpy and pandas. A library is imported only where a
table of it is read. A column of Python objects, or of a kind that DuckDB does not read, is checked value by value in
Python. The column's kind decides that, never a value.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.storage import ArrowStream
from wpinq.columns.unlinked_file import bytes_of, cleanly, in_order
from wpinq.data import rows
from wpinq.data.casts import any_of, of_column, scalar
from wpinq.data.files import check_no_log_of_dataset
from wpinq.data.kinds import INTERVAL, StandIn, counted_kind, counts, duration_of, for_arrow, rounds
from wpinq.data.layout import PLAIN_KINDS, Layout
from wpinq.data.relation import STAGED, UNREADABLE, Relation, computed
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import IDS
from wpinq.expr.types import DATE, INT, DecimalOf, Type

#: Rows that are read at a time.
PIECE = 100_000

#: The share of DuckDB's memory limit that a relation may take, outside of it; a larger one is stored in a file.
IN_MEMORY = 1 / 16

_TABLE = "offered"
#: Arrow types of columns that are records as they lie. A relation's connection can be set to give views of text.
_PLAIN = ("int64", "bool", "string", "large_string")
_MOMENTS = tuple(f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns"))
_NARROW = ("tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger")
_UNSIZED = {"U": "str", "S": "bytes", "V": "void"}
#: The classes of tables in libraries that have other objects, too.
_TABLES = {
    "duckdb": ("DuckDBPyRelation",),
    "numpy": ("ndarray",),
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyspark": ("DataFrame",),
}
_NO_VALUES = "{} holds values that Python has none for: list its columns yourself to see which"


def is_table(data: object) -> bool:
    """Whether an object is a table, or else of a library of tables, or a cursor."""
    return library_of(data) is not None or rows.is_cursor(data)


def library_of(data: object) -> str | None:
    """The library of a table; "arrow" for any other with an Arrow stream; None for no table."""
    for base in type(data).__mro__:
        root = base.__module__.partition(".")[0].removeprefix("_")
        if root in ("numpy", "pandas", "polars", "pyarrow", "duckdb", "deltalake", "pyiceberg", "ibis"):
            return None if base.__name__ == "DuckDBPyConnection" else root  # that is a cursor of Python's DB-API
    batches = data if isinstance(data, (list, tuple)) else ()
    if batches and all(hasattr(each, "schema") and library_of(each) == "pyarrow" for each in batches):
        return "pyarrow"
    return "arrow" if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__") else None


def as_reader(data: object) -> object:
    """A reader of an iterator's Arrow tables or batches; any other data as they are.

    Clients of warehouses give such iterators. Their integers are as narrow as each batch allows.
    """
    if not isinstance(data, Iterator) or isinstance(data, io.IOBase) or is_table(data):  # an open file is refused
        return data
    rows.check_unread(data)
    rows.begin(data)
    first = computed(lambda: list(itertools.islice(data, 1)), rows.FAILS)
    if not first or library_of(first) != "pyarrow":
        return itertools.chain(first, data)
    import pyarrow

    def wide(item: Any) -> Any:
        types = [pyarrow.int64() if str(each) in ("int8", "int16", "int32") else each for each in item.schema.types]
        return pyarrow.table(item).cast(pyarrow.schema(zip(item.schema.names, types, strict=True)))

    batches = (batch for item in itertools.chain(first, data) for batch in wide(item).to_batches())
    schema = computed(lambda: wide(first[0]), f"the table {UNREADABLE}").schema
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def is_no_table(data: object, library: str) -> bool:
    """Whether an object is none of the tables of its library."""
    names = {base.__name__ for base in type(data).__mro__}
    return library in _TABLES and ("MaskedArray" in names or names.isdisjoint(_TABLES[library]))


def of_spark(data: object) -> bool:
    """Whether an object is Spark's, which stays there."""
    return any(base.__module__.partition(".")[0] == "pyspark" for base in type(data).__mro__)


def dtype_name(dtype: Any) -> str:
    """A numpy dtype in messages: without the length of texts, which is that of the longest one."""
    return _UNSIZED.get(dtype.kind, str(dtype.name))


def table_relation(
    connection: Any, data: Any, type_: Type, stack: contextlib.ExitStack, kept: rows.KeptRows | None = None
) -> Relation | None:
    """The relation of the rows of a table or a cursor; None of what is neither.

    Rows that only Python reads are those `kept`.
    """
    import duckdb

    library, layout = library_of(data), Layout.of(type_)
    if library is None:
        return rows.cursor_relation(connection, data, type_, kept) if rows.is_cursor(data) else None
    if of_spark(data) or is_no_table(data, library):
        raise _unsupported(data)
    if library == "duckdb":
        return _of_duckdb(connection, data, layout, stack)
    readers = {"numpy": _of_numpy, "pandas": _of_pandas, "polars": _of_polars}
    table = readers.get(library, _of_arrow)(data, layout)
    if table.columns is not None:
        with contextlib.suppress(duckdb.Error):  # of a kind of column that it does not know
            relation = _native(connection, table, layout, stack)
            if table.consumed and kept is None and not connection.execute(f"SELECT 1 FROM {STAGED} LIMIT 1").fetchall():
                raise SourceRejected(rows.NO_ROWS.format("a stream"))
            return relation
    if table.values is None:
        raise SourceRejected(f"{table.what} cannot be read: read it into a table yourself, or offer rows")
    lists = [table.values(i) for i in range(len(layout.types))]
    starts = range(0, len(lists[0]), PIECE)
    pieces: Iterable[Any] = (([values[i : i + PIECE] for values in lists], {}, None) for i in starts)
    return rows.columns_relation(connection, rows.kept_pieces(pieces, kept), type_, table.what, table.notes)


@dataclass(slots=True, repr=False)  # which would quote rows
class _Table:
    """A table with the columns of a layout, in its order.

    Attributes
    ----------
    what : str
        Its name in messages.
    columns : object
        Arrays by name, an Arrow table or an Arrow reader, for DuckDB to scan; None where only Python reads them.
    values : callable, optional
        The Python values of a column.
    notes : list of str
        What the messages add of each column.
    kinds : sequence of StandIn or None
        For each column, the unit of its integers, where it is counted.
    consumed : bool
        Whether it can be read only once.
    """

    what: str
    columns: Any
    values: Callable[[int], Sequence[Any]] | None = None
    notes: Sequence[str] = ()
    kinds: Sequence[StandIn | None] = ()
    consumed: bool = False


def _native(
    connection: Any, table: _Table, layout: Layout, stack: contextlib.ExitStack, stored: Sequence[Type] | None = None
) -> Relation:
    """The relation that DuckDB scans in place; with `stored`, of columns read as these types."""
    connection.register(_TABLE, table.columns)
    stack.callback(cleanly, connection.unregister, _TABLE)
    names = [f"g{i}" for i in range(len(layout.types))]
    source = f"{_TABLE} AS t({', '.join(names)})"
    types = connection.sql(f"SELECT * FROM {source}").types
    kinds = [kind or given for kind, given in itertools.zip_longest(table.kinds, types)]
    fields = [of_column(*column) for column in zip(names, kinds, stored or layout.types, strict=True)]
    if not table.consumed:
        return Relation.of_fields(table.what, source, fields, layout, notes=table.notes)
    relation = Relation.of_fields(table.what, source, fields, layout, small=False, looks=False)
    if stored is None:
        with in_order(connection):
            connection.execute(f"CREATE TEMP TABLE {STAGED} AS SELECT * FROM {source}")
        relation.source, relation.number = STAGED, "rowid"
    return relation


def _unsupported(data: object) -> SourceRejected:
    if of_spark(data):
        return SourceRejected(
            'a frame of Spark stays in Spark: offer it, as it is, where engine="spark"; what EdgeList would do, Spark '
            "does before (functions.least and greatest, dropDuplicates, of people with the id among its columns)"
        )
    return SourceRejected(
        f"a {type(data).__module__}.{type(data).__qualname__} cannot be read: offer a pandas or polars frame, an "
        "Arrow table or batches, a DuckDB relation, a numpy array without mask, or plain rows"
    )


# --- columns of numpy and pandas --------------------------------------------------------------------------------------


def _is_plain(array: Any) -> bool:
    """Whether DuckDB scans an array for what it is: native numbers, and timestamps."""
    if array.ndim != 1 or not array.dtype.isnative:
        return False
    if array.dtype.kind == "M":
        return array.dtype.str[3:] in ("[s]", "[ms]", "[us]", "[ns]")
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def _of_numpy(data: Any, layout: Layout) -> _Table:
    import numpy

    what = "the array"
    if data.dtype.names is not None and data.ndim == 1:
        arrays = [data[data.dtype.names[place]] for place in layout.pick(data.dtype.names, what)]
    elif data.ndim in (1, 2) and not IDS.isdisjoint(layout.types):  # by place, a field could be taken for the id
        raise SourceRejected(f"{what} has columns without names, and so no column of ids: name them")
    elif data.ndim in (1, 2):
        array = data[:, None] if data.ndim == 1 else data
        if array.shape[1] != len(layout.types):
            raise SourceRejected(
                f"{what} has {array.shape[1]} columns where the declared type has {len(layout.types)} fields: "
                "offer just these columns, in order"
            )
        arrays = list(array.T)
    else:
        raise SourceRejected(f"{what} has {data.ndim} dimensions: offer rows and columns")
    # DuckDB takes NaN for null, as pandas means it and numpy does not.
    plain = all(_is_plain(array) and not (array.dtype.kind == "f" and numpy.isnan(array).any()) for array in arrays)
    columns = {f"g{i}": array for i, array in enumerate(arrays)} if plain else None
    return _Table(what, columns, lambda i: _values(arrays[i]), [f" (dtype {dtype_name(a.dtype)})" for a in arrays])


def _values(array: Any) -> list[Any]:
    """The Python values of an array.

    Of other kinds than the plain ones, tolist() would turn dates into integers.
    """
    return list(array.tolist() if array.dtype.kind in PLAIN_KINDS + "O" else array)


def _of_pandas(data: Any, layout: Layout) -> _Table:
    import numpy

    what = "the data frame"
    series = [data.iloc[:, place] for place in layout.pick(list(data.columns), what)]
    own = [isinstance(column.dtype, numpy.dtype) for column in series]
    # Only numpy's own dtypes are named: the name of a categorical one could hold values.
    notes = [f" (dtype {dtype_name(column.dtype)})" if plain else "" for column, plain in zip(series, own, strict=True)]

    def values(i: int) -> list[Any]:
        refusal = f"{what} holds what pandas cannot tell from a missing value"
        missing = computed(lambda: series[i].isna().tolist(), refusal)
        found = _values(series[i]) if own[i] else computed(series[i].tolist, _NO_VALUES.format(what))
        found = [None if absent else value for value, absent in zip(found, missing, strict=True)]
        interval = str(getattr(series[i].dtype, "pyarrow_dtype", "")) == INTERVAL
        return list(map(duration_of, found)) if interval else found

    plain = [numpys and _is_plain(column.to_numpy()) for column, numpys in zip(series, own, strict=True)]
    if all(plain):
        return _Table(what, {f"g{i}": column.to_numpy() for i, column in enumerate(series)}, values, notes)
    arrays = None
    with contextlib.suppress(Exception):  # there is no pyarrow, or it knows no such column; its words may quote values
        import pyarrow

        # the frame's own stream would make every NaN null
        arrays = [pyarrow.array(column, from_pandas=numpys) for column, numpys in zip(series, own, strict=True)]
    if arrays is None or plain != own:
        return _Table(what, None, values, notes)
    return _of_arrays(what, pyarrow.table(arrays, names=[f"g{i}" for i in range(len(arrays))]), values, notes)


# --- Arrow streams ----------------------------------------------------------------------------------------------------


def _of_polars(data: Any, layout: Layout) -> _Table:
    import polars

    what, refusal = "the data frame", "the polars frame cannot be computed: collect it yourself to see why"
    places = layout.pick(computed(lambda: data.collect_schema().names(), refusal), what)
    picked = [polars.nth(place).alias(f"g{i}") for i, place in enumerate(places)]  # a name could be a pattern
    frame = computed(lambda: data.lazy().select(picked).collect(), refusal)
    table = None
    with contextlib.suppress(Exception):  # there is no pyarrow, or it knows no such column
        import pyarrow

        table = pyarrow.table(frame)
    if table is None:
        return _Table(what, None, lambda i: frame[f"g{i}"].to_list())
    return _of_arrays(what, table)


def _of_arrow(data: Any, layout: Layout) -> _Table:
    """The columns of anything with an Arrow stream.

    Only tables and batches are known to be in memory.
    """
    rows.check_unread(data)
    if isinstance(data, (list, tuple)) and any(each.schema != data[0].schema for each in data):
        raise SourceRejected(
            "the batches of the list differ in the names, the order or the types of their columns: offer those of one "
            "schema"
        )
    for each in (data, *getattr(data, "children", ())):  # datasets of files
        if (system := getattr(each, "filesystem", None)) is not None:
            check_no_log_of_dataset(system, each.files)
    reader = None
    with contextlib.suppress(Exception):  # there is no pyarrow, or no stream of columns; its words may quote values
        import pyarrow

        given = pyarrow.concat_tables(map(pyarrow.table, data)) if isinstance(data, (list, tuple)) else data
        if library_of(data) == "pyiceberg":
            given = (data if hasattr(data, "to_arrow_batch_reader") else data.scan()).to_arrow_batch_reader()
        elif hasattr(data, "to_pyarrow_dataset"):  # a table of Delta
            given = data.to_pyarrow_dataset()
        given = given.scanner(use_threads=False) if hasattr(given, "scanner") else given  # a dataset of pyarrow
        if hasattr(given, "projected_schema"):  # a scanner of pyarrow, which has no stream of Arrow's protocol
            given = given.to_reader()
        ready = isinstance(given, pyarrow.RecordBatchReader)
        reader = given if ready else pyarrow.RecordBatchReader.from_stream(given)
    what = "the table"
    if reader is None:
        has_stream = any(hasattr(data, name) for name in ("__arrow_c_stream__", "scan", "to_pyarrow_dataset"))
        raise SourceRejected(f"{what} {UNREADABLE}") if has_stream else _unsupported(data)
    places = layout.pick(reader.schema.names, what)
    fields = [pyarrow.field(f"g{i}", reader.schema.field(place).type) for i, place in enumerate(places)]
    schema = pyarrow.schema(fields)

    def batches() -> Iterator[Any]:
        rows.begin(data)
        for batch in reader:
            if not batch.schema.equals(reader.schema):  # which pyarrow leaves to its reader
                raise SourceRejected(UNREADABLE)
            chosen = pyarrow.RecordBatch.from_arrays([batch.column(place) for place in places], schema=schema)
            chosen.validate(full=True)  # what DuckDB takes for text must be UTF-8
            yield chosen

    if isinstance(given, (pyarrow.Table, pyarrow.RecordBatch)):
        unsound = "the table is not sound Arrow: validate it yourself to see why"
        return _of_arrays(what, computed(lambda: pyarrow.Table.from_batches(batches(), schema), unsound))
    kinds = list(map(counted_kind, schema.types))
    counted = counts(schema.empty_table(), kinds).schema
    stream = pyarrow.RecordBatchReader.from_batches(counted, (counts(batch, kinds) for batch in batches()))
    return _Table(what, None if rounds(schema.types) else stream, kinds=kinds, consumed=True)


def _of_arrays(
    what: str, table: Any, values: Callable[[int], Sequence[Any]] | None = None, notes: Sequence[str] = ()
) -> _Table:
    """The columns of an Arrow table in memory."""

    def listed(i: int) -> Sequence[Any]:
        column = table.column(i)
        if str(column.type) in _MOMENTS or str(column.type).startswith("duration"):  # whose lists round
            return list(column.to_numpy())
        found = computed(column.to_pylist, _NO_VALUES.format(what))
        return list(map(duration_of, found)) if str(column.type) == INTERVAL else found

    kinds = list(map(counted_kind, table.schema.types))
    stream = None if rounds(table.schema.types) else ArrowStream(counts(table, kinds))
    return _Table(what, stream, values or listed, notes, kinds)


# --- relations of DuckDB ----------------------------------------------------------------------------------------------


def _of_duckdb(connection: Any, data: Any, layout: Layout, stack: contextlib.ExitStack) -> Relation:
    """A relation of another connection, read once, into memory where it fits there well."""
    what = "the relation"
    places = layout.pick(data.columns, what)
    columns, numbers, stored = [], [], []
    for i, (place, type_) in enumerate(zip(places, layout.types, strict=True)):
        given = data.types[place]
        column = for_arrow(f"#{place + 1}", given, layout.label(i))
        columns.append(f"CAST({column} AS BIGINT)" if type_ == INT and str(given.id) in _NARROW else column)
        number = _number(columns[i], given, type_)
        numbers.append(number or columns[i])
        stored.append(INT if number else type_)
    try:
        import pyarrow
    except ImportError:  # then DuckDB's own stream is computed again for each look at its schema
        stream = ArrowStream(data.project(", ".join(columns)))
        return _native(connection, _Table(what, stream, consumed=True), layout, stack)

    def read(picked: Sequence[str]) -> Any:
        return _read(lambda: data.project(", ".join(picked)).to_arrow_reader(PIECE))

    def anew() -> Relation:
        reader.close()  # a connection has one result at a time
        return _native(connection, _Table(what, read(columns), consumed=True), layout, stack)

    ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    reader, room = read(numbers), int(bytes_of(limit) * IN_MEMORY)

    def gather() -> list[Any]:
        left, found = room, []
        for batch in reader:
            found.append(batch)
            left -= batch.nbytes
            if left < 0:
                break
        return found

    batches = _read(gather)
    if sum(batch.nbytes for batch in batches) > room:
        rest = pyarrow.RecordBatchReader.from_batches(reader.schema, itertools.chain(batches, reader))
        relation = _native(connection, _Table(what, rest, consumed=True), layout, stack, stored)
        relation.places, relation.anew = False, anew
        return relation
    table = pyarrow.Table.from_batches(batches, reader.schema)
    if any(table.column(i).null_count for i, type_ in enumerate(layout.types) if stored[i] != type_):
        return anew()  # which says what is unfit, of the rows as they were offered
    relation = _native(connection, _Table(what, ArrowStream(table)), layout, stack, stored)
    relation.in_arrow = True
    relation.table = table if _lies_plain(table, relation) else None
    return relation


def _number(column: str, given: Any, type_: Type) -> str | None:
    """The SQL of the integer that stands for a date or a decimal; None for other columns.

    It is null for what is unfit.

    So the relation gives numbers, in half the memory of decimals, that are records as they lie. Its SQL has nothing but
    DuckDB's own operators: names of functions may be its owner's.
    """
    if type_.nullable or not (type_ == DATE or isinstance(type_, DecimalOf)) or given.id not in ("date", "decimal"):
        return None
    found = scalar(column, given, type_)
    if found is None:
        return None
    value, unfit = found
    return f"CASE WHEN {any_of([condition for condition, _ in unfit])} THEN NULL ELSE {value} END" if unfit else value


def _lies_plain(table: Any, relation: Relation) -> bool:
    """Whether the columns of a table are those of the records as they are, and none is unfit."""
    nulls = {f"g{i} IS NULL": column.null_count for i, column in enumerate(table.columns)}
    return (
        list(relation.leaves) == [f"g{i}" for i in range(len(table.columns))]
        and all(str(column.type) in _PLAIN for column in table.columns)
        and not any(nulls.get(condition, True) for condition, _ in relation.unfit)
    )


def _read(ask: Callable[[], Any]) -> Any:
    """The result of a relation, or a refusal where its own connection cannot compute it now."""
    import duckdb

    refusal = UNREADABLE
    try:
        return ask()
    except duckdb.ResourceInUseException:
        refusal = (
            "cannot be read while its connection has an unfinished result: fetch that to its end "
            "(connection.complete()) or close its reader; or make the relation on another connection, as "
            "connection.cursor() gives one"
        )
    except Exception:  # its words may quote values
        pass
    raise SourceRejected(f"the relation {refusal}")  # out here, where no error is in hand
