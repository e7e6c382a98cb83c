"""Fields from the columns of a table or file, by names and kinds, never by values.

Each library has its own kinds.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from wpinq.columns.storage import opened
from wpinq.columns.unlinked_file import quoted
from wpinq.data import files as data_files
from wpinq.data.files import as_csv, check_delimiter, csv_names, identities, open_file, parquet_columns, parquet_files
from wpinq.data.kinds import CSV_TEXT, ColumnKind, NoType, duckdb_kind, proposed_field, type_of_kind
from wpinq.data.relation import computed
from wpinq.data.sources import dtype_name, is_no_table, library_of, of_spark
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import is_column_name
from wpinq.expr.types import TupleOf, Type


def record_fields(data: Any, sample: Any = None) -> tuple[Type, dict[str, str], list[str], list[str]]:
    """The type of the records of a table or file, from the names and kinds of its columns.

    With the columns of other names than their fields, the questions that are open, and the columns that no field holds.

    Nothing else of it is read: of csv the first line, of parquet the schema in the footer. Types are those of the
    columns of a sample, which is read whole, where one is given.

    Raises
    ------
    SourceRejected
        When an object has no columns, a file cannot be read, or no column can be a field; or the sample is the data.
    """
    columns = columns_of(data)
    made = None if sample is None else _sampled(data, sample)
    names: list[str | None] = []
    types: list[Type] = []
    renamed: dict[str, str] = {}
    asked: list[str] = []
    left_out: list[str] = []
    for place, kind in enumerate(columns.kinds):
        name = None
        if columns.names is not None:
            given = columns.names[place]
            if not is_column_name(given) or list(columns.names).count(given) > 1:
                why = "another has its name" if is_column_name(given) else "its name is no text in UTF-8"
                left_out.append(f"column {place + 1}: {why}; rename it to declare it")
                continue
            name = proposed_field(str(given), f"column_{place + 1}")
            taken = {*columns.names, *names} - {given}
            name = next(each for n in itertools.count(1) if (each := f"{name}_{n}" if n > 1 else name) not in taken)
        called = name or f"column {place + 1}"
        questions: list[str] = []
        library, gaps = columns.library, False
        if made is not None and columns.names and columns.names[place] in made:
            library, (kind, gaps) = "sample", made[columns.names[place]]
        elif made is not None:
            questions.append("the sample has no such column: its type is that of the data, in csv str")
        try:
            types.append(type_of_kind(kind, library, questions).with_nullable(gaps and not isinstance(kind, dict)))
        except NoType as gap:
            left_out.append(f"{called}: no field holds {gap}; convert it to declare it")
            continue
        names.append(name)
        renamed |= {name: str(given)} if name is not None and name != given else {}
        asked += [f"{called}: {words}" for words in dict.fromkeys(questions)]
    if not types or (columns.names is None and left_out):
        raise SourceRejected("no column of the table can be a field: rename or convert those that you want")
    if made is not None:
        asked.append("types, and nulls where it has gaps, are those of the sample: codes written in digits are str")
    elif columns.library == "csv":
        asked.append(_ALL_TEXT)
    return types[0] if columns.bare else TupleOf(tuple(names), tuple(types)), renamed, asked, left_out


_ALL_TEXT = (
    "all fields are str, for only the first line was read: say which are int, float, bool, datetime.date or of another "
    'type, or take types from public or made rows, sample="made.csv" (--sample made.csv). pandas and polars propose '
    "types by reading the rows, and those of this file are not public"
)
#: How DuckDB proposes the types of a csv sample: from all of its rows, among those that csv files are read by.
_SNIFFED = (
    "header=true, sample_size=-1, quote='\"', escape='\"', comment='', dateformat='%Y-%m-%d', "
    "auto_type_candidates=['BOOLEAN', 'BIGINT', 'DOUBLE', 'DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ', 'VARCHAR']"
)


def _sampled(data: Any, sample: Any) -> dict[object, tuple[ColumnKind, bool]]:
    """The kind of each named column of a sample, and whether it has gaps."""
    is_path = [isinstance(each, (str, os.PathLike)) for each in (data, sample)]
    if sample is data or (all(is_path) and identities(data) & identities(sample)):
        raise SourceRejected(
            "the sample is the data itself, whose rows are not public: types would follow from them and enter public "
            "plans. Give a separate file of public or made rows with the same columns"
        )
    refusal = "the sample cannot be read: offer a csv or parquet file, or a table that pyarrow reads"
    if not is_path[1]:
        # pandas has whole numbers with gaps as floats, and texts and dates as objects
        found = getattr(sample, "convert_dtypes", lambda: sample)
        table = computed(lambda: import_module("pyarrow").table(found()), refusal)
        gaps = [column.null_count > 0 for column in table.columns]
        return dict(zip(table.column_names, zip(columns_of(table).kinds, gaps, strict=True), strict=True))
    columns = columns_of(sample)
    names = columns.names or ()
    with opened() as connection, contextlib.ExitStack() as stack:
        if file := as_csv(sample):
            number = open_file(Path(file), stack).fileno()
            read = f"read_csv('/dev/fd/{number}', delim={quoted(file.delimiter)}, {_SNIFFED})"
            source = f"{read} AS t({', '.join(f'g{place}' for place in range(len(names)))})"
        else:
            source, _, _ = parquet_columns(connection, Path(sample), parquet_files(Path(sample)) or [], stack)
        rows = computed(lambda: connection.sql(f"SELECT * FROM {source}"), refusal)
        each_gap = ", ".join(f"coalesce(bool_or({column} IS NULL), false)" for column in rows.columns)
        ((*gaps,),) = computed(lambda: rows.aggregate(each_gap).fetchall(), refusal)
        kinds = list(map(duckdb_kind, rows.types)) if file else columns.kinds
        return computed(lambda: dict(zip(names, zip(kinds, gaps, strict=True), strict=True)), refusal)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, by name, or by place where they have no names.

    A bare one is the records themselves.
    """

    library: str
    names: Sequence[object] | None
    kinds: Sequence[ColumnKind]
    bare: bool = False


def columns_of(data: Any) -> Columns:
    """The columns of a table or file.

    Raises
    ------
    SourceRejected
        When an object has no columns, or a file cannot be read.
    """
    if isinstance(data, (str, os.PathLike)):
        return _of_path(data)
    library = "pyspark" if of_spark(data) else library_of(data)
    if library in _READERS and not is_no_table(data, library) and (found := _READERS[library](data)):
        return found
    if hasattr(data, "__arrow_c_schema__"):
        return _of_arrow_schema(data)
    raise SourceRejected(
        f"a {type(data).__qualname__} says no types of its columns: offer a table, or a csv or parquet file, or "
        "declare the fields yourself"
    )


# --- files ------------------------------------------------------------------------------------------------------------


def _of_path(data: str | os.PathLike[str]) -> Columns:
    path = Path(data)
    if file := as_csv(data):
        names = csv_names(file)
        if not names:
            raise SourceRejected(f"{path} does not begin with a line of column names, in UTF-8")
        check_delimiter(path, names)
        return Columns("csv", names, [CSV_TEXT] * len(names))
    files = parquet_files(path)
    if files is not None:
        with opened() as connection, contextlib.ExitStack() as stack:
            _, names, kinds = parquet_columns(connection, path, files[:1], stack)
            return Columns("parquet", names, list(map(duckdb_kind, kinds)))
    raise SourceRejected(
        data_files.unread_format(path)
        or f"{path} says no types of its columns, for it is neither .csv, .csv.gz nor .parquet by its name, nor a tsv "
        "file with a line of names: declare the two fields of an edge list yourself, as src=int, dst=int"
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def _of_arrow(data: Any) -> Columns | None:
    # of a table, a batch, a reader or a dataset; of a scanner; of a scan of Iceberg. Other libraries convert theirs.
    names = ("schema", "projected_schema", "projection")
    found = next((getattr(data, name) for name in names if hasattr(data, name)), None)
    schema = found() if callable(found) else found
    convert = next((getattr(schema, name) for name in ("as_arrow", "to_pyarrow") if hasattr(schema, name)), None)
    return None if schema is None else _of_arrow_schema(convert() if convert else schema)


def _of_arrow_schema(data: Any) -> Columns:
    import pyarrow

    schema = pyarrow.schema(data)
    return Columns("pyarrow", schema.names, [_arrow_kind(column.type) for column in schema])


def _arrow_kind(kind: Any) -> ColumnKind:
    from pyarrow import types

    if types.is_dictionary(kind):
        text = _word(kind.value_type) in ("string", "large_string", "string_view")
        return "dictionary" if text else _arrow_kind(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [_arrow_kind(kind.value_type)]
    if types.is_struct(kind):
        return {inside.name: _arrow_kind(inside.type) for inside in kind}
    return f"decimal({kind.scale})" if types.is_decimal(kind) else _word(kind)


def _pandas_kind(dtype: Any) -> ColumnKind:
    import pandas

    if isinstance(dtype, pandas.CategoricalDtype):
        return "category"  # its name could hold the categories
    if isinstance(dtype, pandas.IntervalDtype):
        return "range"  # no duration, which other libraries call an interval
    if isinstance(dtype, pandas.ArrowDtype):
        return _arrow_kind(dtype.pyarrow_dtype)
    return _pandas_kind(dtype.subtype) if isinstance(dtype, pandas.SparseDtype) else _word(dtype.name)


def _of_polars(data: Any) -> Columns:
    schema = computed(data.collect_schema, "the polars frame cannot be computed: collect it yourself to see why")
    return Columns("polars", schema.names(), list(map(_polars_kind, schema.dtypes())))


def _polars_kind(dtype: Any) -> ColumnKind:
    import polars

    if isinstance(dtype, (polars.List, polars.Array)):
        return [_polars_kind(dtype.inner)]
    if isinstance(dtype, polars.Struct):
        return {inside.name: _polars_kind(inside.dtype) for inside in dtype.fields}
    if isinstance(dtype, polars.Decimal):
        return f"decimal({dtype.scale})"
    return str(dtype.base_type().__name__).lower()  # without the categories of an Enum


def _of_numpy(data: Any) -> Columns | None:
    if data.dtype.names is not None:
        return Columns("numpy", data.dtype.names, [_word(dtype_name(data.dtype[name])) for name in data.dtype.names])
    if data.ndim not in (1, 2):
        return None
    width = 1 if data.ndim == 1 else data.shape[1]
    return Columns("numpy", None, [_word(dtype_name(data.dtype))] * width, bare=data.ndim == 1)


def spark_kind(kind: Any) -> ColumnKind:
    """The kind of a column of Spark, from its type."""
    name = kind.typeName()
    if name == "array":
        return [spark_kind(kind.elementType)]
    if name == "struct":
        return {inside.name: spark_kind(inside.dataType) for inside in kind.fields}
    return f"decimal({kind.scale})" if name == "decimal" else _word(name)


def _word(kind: object) -> str:
    """The name of a scalar, without what follows in brackets: zones, units."""
    return str(kind).lower().partition("[")[0].partition("<")[0]


_READERS: dict[str, Callable[[Any], Columns | None]] = {
    "duckdb": lambda data: Columns("duckdb", data.columns, list(map(duckdb_kind, data.types))),
    "numpy": _of_numpy,
    "pandas": lambda data: Columns("pandas", list(data.columns), list(map(_pandas_kind, data.dtypes))),
    "polars": _of_polars,
    **dict.fromkeys(("pyarrow", "deltalake", "pyiceberg", "ibis"), _of_arrow),
    "pyspark": lambda data: Columns(
        "pyspark", data.columns, [spark_kind(each.dataType) for each in data.schema.fields]
    ),
}
