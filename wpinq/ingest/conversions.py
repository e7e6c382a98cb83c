"""How each library converts a column to a declared type: what a refusal says to do."""

from __future__ import annotations

import json

from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type

_SQL: dict[Type, str] = {INT: "BIGINT", FLOAT: "DOUBLE", BOOL: "BOOLEAN", STR: "VARCHAR"}
_WORDS: dict[str, dict[Type, str]] = {
    "numpy": {INT: '"int64"', FLOAT: '"float64"', BOOL: '"bool"', STR: '"str"'},
    "pandas": {INT: '"Int64"', FLOAT: '"float64"', BOOL: '"boolean"', STR: '"str"'},
    "polars": {INT: "polars.Int64", FLOAT: "polars.Float64", BOOL: "polars.Boolean", STR: "polars.String"},
    "pyarrow": {INT: '"int64"', FLOAT: '"float64"', BOOL: '"bool"', STR: '"string"'},
    "duckdb": _SQL,
    "parquet": _SQL,
    "cursor": _SQL,
    "pyspark": {INT: '"bigint"', FLOAT: '"double"', BOOL: '"boolean"', STR: '"string"'},
    "rows": {INT: "int", FLOAT: "float", BOOL: "bool", STR: "str"},
}
"""The type by the name that a library has for it."""

_CALLS = {
    "numpy": "array.astype({word})",
    "pandas": "frame.astype({{{column}: {word}}})",
    "polars": "frame.with_columns(polars.col({column}).cast({word}))",
    "pyarrow": "table[{column}].cast({word})",
    "duckdb": "CAST({column} AS {word})",
    "parquet": "CAST({column} AS {word}) in duckdb.sql over the file, and offer that",
    "cursor": "CAST({column} AS {word})",
    "pyspark": "frame.withColumn({column}, frame[{column}].cast({word}))",
    "rows": "{word}(…)",
}


def conversion(library: str, column: str | None, type_: Type) -> str:
    """What to write in a library so that a column becomes one of the declared type; empty where nothing short does."""
    word = _WORDS.get(library, {}).get(type_)
    if word is None or (column is None and "{column}" in _CALLS[library]):
        return ""
    return _CALLS[library].format(column=json.dumps(column, ensure_ascii=False), word=word)
