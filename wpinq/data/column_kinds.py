"""What the columns of a table or file are called and of which kind they are, in each library: never what they hold.

A kind is a word (of a scalar), a list of one kind (of lists), or a mapping of names to kinds (of records). The words
are those of the libraries in small letters; `wpinq.data.fields` says which type a word means.
"""

from __future__ import annotations

import contextlib
import csv
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wpinq.columns.storage import opened
from wpinq.data.arrow_types import dtype_name
from wpinq.data.files import format_of, links, open_file, parquet_files
from wpinq.errors import SourceRejected

# The first line of a csv file, which names its columns: of the file no byte beyond it is looked at.

MOST = 2**20
"""The longest line of column names, in bytes."""

_GZIP = b"\x1f\x8b"


def names_in_csv(path: Path) -> list[str]:
    """The names of the columns of a csv file, plain or gzip.

    Raises
    ------
    SourceRejected
        When there is no such file, or it does not begin with a line of names.
    """
    try:
        with path.open("rb", buffering=0) as file:  # a buffer would be filled with rows
            names = next(csv.reader(_lines(file), strict=True), [])
    except FileNotFoundError:
        raise SourceRejected(f"there is no file {path}: check the path") from None
    except OSError:
        raise SourceRejected(f"{path} cannot be read: check the path and its rights") from None
    except (_TooLong, UnicodeDecodeError, csv.Error, zlib.error):
        names = []
    if not names:
        raise SourceRejected(f"{path} does not begin with a line of column names, in UTF-8 and with commas between")
    return names


class _TooLong(Exception):
    pass


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a file, as they are asked for: more than one where a name in quotes holds the end of a line."""
    line, encoding = bytearray(), "utf-8-sig"
    for place, byte in enumerate(_content(file)):
        line.append(byte)
        if place >= MOST:
            raise _TooLong
        if byte == ord("\n"):
            yield line.decode(encoding)
            line, encoding = bytearray(), "utf-8"
    if line:
        yield line.decode(encoding)


def _content(file: BinaryIO) -> Iterator[int]:
    """The bytes of a file one by one, decompressed where it is gzip."""
    start = b""
    while len(start) < len(_GZIP) and (byte := file.read(1)):
        start += byte
    if start != _GZIP:
        yield from start
        while byte := file.read(1):
            yield from byte
        return
    unpack = zlib.decompressobj(wbits=31)
    yield from unpack.decompress(start)
    while not unpack.eof and (byte := file.read(1)):
        yield from unpack.decompress(byte)


ColumnKind = str | list["ColumnKind"] | dict[str, "ColumnKind"]

TEXT = "text of a csv file"
"""The kind of every column of a csv file: text, which may mean anything."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The columns of a table, by name; or by place, where they have no names; or one that is the records themselves."""

    library: str
    names: Sequence[object] | None
    kinds: Sequence[ColumnKind]
    bare: bool = False


def kinds_of(data: Any) -> Kinds:
    """The columns of a table or file.

    Raises
    ------
    SourceRejected
        When an object has no columns, or a file cannot be read.
    """
    if isinstance(data, (str, os.PathLike)):
        return _of_path(Path(data))
    for base in type(data).__mro__:
        read = _READERS.get(base.__module__.partition(".")[0].removeprefix("_"))
        found = None if read is None else read(data)
        if found is not None:
            return found
    raise SourceRejected(
        f"a {type(data).__qualname__} says no types of its columns: offer a table, or a csv or parquet file, or "
        "declare the fields yourself"
    )


def _of_path(path: Path) -> Kinds:
    if format_of(path) == ".csv":
        names = names_in_csv(path)
        return Kinds("csv", names, [TEXT] * len(names))
    files = parquet_files(path)
    if files is not None:
        return _of_parquet(files[0])
    raise SourceRejected(
        f"{path} says no types of its columns, for it is neither .csv, .csv.gz nor .parquet by its name; the records "
        "of an edge list have two fields of nodes: declare them yourself, as src=int, dst=int"
    )


def _of_parquet(path: Path) -> Kinds:
    """By the schema in the file's footer. The notes that libraries leave there count rows, and are not looked at."""
    import duckdb

    with contextlib.ExitStack() as briefly:
        open_file(path, briefly)  # which says why, where it cannot be read
    found = None
    with opened() as connection, contextlib.ExitStack() as stack:
        (link,) = links([path], stack)
        with contextlib.suppress(duckdb.Error):  # its message may quote what it found
            found = _of_relation(connection.read_parquet(link, hive_partitioning=False), "parquet")
    if found is None:
        raise SourceRejected(f"{path} is not a sound parquet file: write it again")
    return found


def _duckdb_kinds(data: Any) -> Kinds | None:
    import duckdb

    return _of_relation(data, "duckdb") if isinstance(data, duckdb.DuckDBPyRelation) else None


def _of_relation(relation: Any, library: str) -> Kinds:
    return Kinds(library, relation.columns, [_duckdb_kind(kind) for kind in relation.types])


def _duckdb_kind(kind: Any) -> ColumnKind:
    if kind.id in ("list", "array"):
        return [_duckdb_kind(kind.children[0][1])]
    if kind.id == "struct":
        return {name: _duckdb_kind(child) for name, child in kind.children}
    if kind.id == "decimal":
        return f"decimal({dict(kind.children)['scale']})"
    return str(kind.id)


def _arrow_kinds(data: Any) -> Kinds | None:
    import pyarrow

    if not isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.RecordBatchReader)):
        return None
    return Kinds("pyarrow", data.schema.names, [_arrow_kind(field.type) for field in data.schema])


def _arrow_kind(kind: Any) -> ColumnKind:
    from pyarrow import types

    if types.is_dictionary(kind):
        return "dictionary" if _word(kind.value_type) in ("string", "large_string") else _arrow_kind(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [_arrow_kind(kind.value_type)]
    if types.is_struct(kind):
        return {field.name: _arrow_kind(field.type) for field in kind}
    if types.is_decimal(kind):
        return f"decimal({kind.scale})"
    return _word(kind)


def _pandas_kinds(data: Any) -> Kinds | None:
    import pandas

    if not isinstance(data, pandas.DataFrame):
        return None
    return Kinds("pandas", list(data.columns), [_pandas_kind(dtype) for dtype in data.dtypes])


def _pandas_kind(dtype: Any) -> ColumnKind:
    import pandas

    if isinstance(dtype, pandas.CategoricalDtype):
        return "category"  # its name could hold the categories
    if isinstance(dtype, pandas.IntervalDtype):
        return "range"  # no duration, as what other libraries call an interval
    if isinstance(dtype, pandas.ArrowDtype):
        return _arrow_kind(dtype.pyarrow_dtype)
    if isinstance(dtype, pandas.SparseDtype):
        return _pandas_kind(dtype.subtype)
    return _word(dtype.name)


def _polars_kinds(data: Any) -> Kinds | None:
    import polars

    if not isinstance(data, (polars.DataFrame, polars.LazyFrame)):
        return None
    schema = None
    with contextlib.suppress(polars.exceptions.PolarsError, OSError):  # whose messages may quote values
        schema = data.collect_schema()
    if schema is None:
        raise SourceRejected("the columns of the polars frame cannot be computed: collect it yourself to see why")
    return Kinds("polars", schema.names(), [_polars_kind(dtype) for dtype in schema.dtypes()])


def _polars_kind(dtype: Any) -> ColumnKind:
    import polars

    if isinstance(dtype, (polars.List, polars.Array)):
        return [_polars_kind(dtype.inner)]
    if isinstance(dtype, polars.Struct):
        return {field.name: _polars_kind(field.dtype) for field in dtype.fields}
    if isinstance(dtype, polars.Decimal):
        return f"decimal({dtype.scale})"
    return str(dtype.base_type().__name__).lower()  # without the categories of an Enum


def _numpy_kinds(data: Any) -> Kinds | None:
    import numpy

    if not isinstance(data, numpy.ndarray) or isinstance(data, numpy.ma.MaskedArray):
        return None
    if data.dtype.names is not None:
        return Kinds("numpy", data.dtype.names, [_word(dtype_name(data.dtype[name])) for name in data.dtype.names])
    if data.ndim not in (1, 2):
        return None
    columns = 1 if data.ndim == 1 else data.shape[1]
    return Kinds("numpy", None, [_word(dtype_name(data.dtype))] * columns, bare=data.ndim == 1)


def _spark_kinds(data: Any) -> Kinds | None:
    from pyspark.sql import DataFrame

    if not isinstance(data, DataFrame):
        return None
    return Kinds("pyspark", data.columns, [spark_kind(field.dataType) for field in data.schema.fields])


def spark_kind(kind: Any) -> ColumnKind:
    """The kind of a column of Spark, from its type."""
    name = kind.typeName()
    if name == "array":
        return [spark_kind(kind.elementType)]
    if name == "struct":
        return {field.name: spark_kind(field.dataType) for field in kind.fields}
    return f"decimal({kind.scale})" if name == "decimal" else _word(name)


def _word(kind: object) -> str:
    """The name of a scalar, without what follows in brackets: zones, units."""
    return str(kind).lower().partition("[")[0].partition("<")[0]


_READERS: dict[str, Callable[[Any], Kinds | None]] = {
    "duckdb": _duckdb_kinds,
    "numpy": _numpy_kinds,
    "pandas": _pandas_kinds,
    "polars": _polars_kinds,
    "pyarrow": _arrow_kinds,
    "pyspark": _spark_kinds,
}
