"""Tables of numpy, pandas, polars and Arrow: columns by field name, values at the speed of their dtype.

None of these libraries is imported unless a table of it is offered: a table names its own library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.ingest.typed_columns import Layout

if TYPE_CHECKING:
    from wpinq.ingest.typed_columns import Column

    _Columns = tuple[list[Column], list[str]]  # and what the messages add of each


def library_of(data: object) -> str | None:
    """The table library that an object comes from, or None; "" for a table of a library not known here."""
    for base in type(data).__mro__:
        root = base.__module__.partition(".")[0]
        if root in _READERS:
            return root
    return "" if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__") else None


def records_of_table(data: Any, library: str, type_: Type) -> list[Value]:
    """The records that the rows of a table hold."""
    if library not in _READERS:
        raise _unsupported(data)
    what, read = _READERS[library]
    layout = Layout.of(type_)
    columns, notes = read(data, layout, what)
    return layout.sound_records(columns, what, {}, notes)


def _unsupported(data: object) -> SourceRejected:
    return SourceRejected(
        f"a {type(data).__module__}.{type(data).__qualname__} cannot be read: offer a pandas or polars frame, an "
        "Arrow table or batches, a numpy array without mask, or plain rows"
    )


def _numpy_columns(data: Any, layout: Layout, what: str) -> _Columns:
    import numpy

    if not isinstance(data, numpy.ndarray) or isinstance(data, numpy.ma.MaskedArray):
        raise _unsupported(data)
    if data.dtype.names is not None and data.ndim == 1:
        columns = [data[data.dtype.names[place]] for place in layout.pick(data.dtype.names, what)]
    elif data.ndim in (1, 2):
        array = data[:, None] if data.ndim == 1 else data
        if array.shape[1] != len(layout.types):
            raise SourceRejected(
                f"{what} has {array.shape[1]} columns where the declared type has {len(layout.types)} fields: "
                "offer just these columns, in order"
            )
        columns = [array[:, place] for place in range(array.shape[1])]
    else:
        raise SourceRejected(f"{what} has {data.ndim} dimensions: offer rows and columns")
    return columns, [f" (dtype {column.dtype})" for column in columns]


def _pandas_columns(data: Any, layout: Layout, what: str) -> _Columns:
    import numpy
    import pandas

    if not isinstance(data, pandas.DataFrame):
        raise _unsupported(data)
    columns: list[Column] = []
    notes: list[str] = []
    for place in layout.pick(list(data.columns), what):
        series = data.iloc[:, place]
        missing = series.isna().to_numpy()
        # Only numpy's own dtypes are named: the name of a categorical one could hold values.
        own = isinstance(series.dtype, numpy.dtype)
        notes.append(f" (dtype {series.dtype})" if own else "")
        if own and not missing.any():
            columns.append(series.to_numpy())
        else:
            pairs = zip(series.tolist(), missing.tolist(), strict=True)
            columns.append([None if absent else value for value, absent in pairs])
    return columns, notes


def _polars_columns(data: Any, layout: Layout, what: str) -> _Columns:
    import polars

    if not isinstance(data, (polars.DataFrame, polars.LazyFrame)):
        raise _unsupported(data)
    try:
        names = data.collect_schema().names()
        frame = data.lazy().select([names[place] for place in layout.pick(names, what)]).collect()
    except polars.exceptions.PolarsError:  # its message may quote values
        raise SourceRejected("the polars frame cannot be computed: collect it yourself to see why") from None
    return [series.to_list() for series in frame.get_columns()], []


def _pyarrow_columns(data: Any, layout: Layout, what: str) -> _Columns:
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    elif isinstance(data, pyarrow.RecordBatchReader):
        try:
            data = data.read_all()
        except pyarrow.ArrowException:
            raise SourceRejected("the Arrow batches cannot be read: read them yourself to see why") from None
    if not isinstance(data, pyarrow.Table):
        raise _unsupported(data)
    return arrow_columns(data, layout, what), []


def arrow_columns(table: Any, layout: Layout, what: str) -> list[Column]:
    """The columns of an Arrow table that a layout asks for."""
    from pyarrow import types

    columns: list[Column] = []
    for place in layout.pick(table.column_names, what):
        column = table.column(place)
        numeric = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
        columns.append(column.to_numpy() if numeric and not column.null_count else column.to_pylist())
    return columns


_READERS: dict[str, tuple[str, Callable[[Any, Layout, str], _Columns]]] = {
    "numpy": ("the array", _numpy_columns),
    "pandas": ("the data frame", _pandas_columns),
    "polars": ("the data frame", _polars_columns),
    "pyarrow": ("the table", _pyarrow_columns),
}
