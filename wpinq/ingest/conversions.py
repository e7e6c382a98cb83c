"""How each library converts a column to a declared type: what a refusal says to do."""

from __future__ import annotations

import json

from wpinq.expr.types import BOOL, DATE, FLOAT, INT, STR, TIMESTAMP, DecimalOf, Type
from wpinq.ingest.typed_columns import Layout

_SQL: dict[Type, str] = {
    INT: "BIGINT",
    FLOAT: "DOUBLE",
    BOOL: "BOOLEAN",
    STR: "VARCHAR",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
}
_MOMENTS = '"datetime64[us]"'  # of which a date is one at midnight
_WORDS: dict[str, dict[Type, str]] = {
    "numpy": {INT: '"int64"', FLOAT: '"float64"', BOOL: '"bool"', STR: '"str"'},
    "pandas": {
        INT: '"Int64"',
        FLOAT: '"float64"',
        BOOL: '"boolean"',
        STR: '"str"',
        DATE: _MOMENTS,
        TIMESTAMP: _MOMENTS,
    },
    "polars": {
        INT: "cast(polars.Int64)",
        FLOAT: "cast(polars.Float64)",
        BOOL: "cast(polars.Boolean)",
        STR: "cast(polars.String)",
        DATE: "str.to_date()",
        TIMESTAMP: "str.to_datetime()",
    },
    "pyarrow": {
        INT: '"int64"',
        FLOAT: '"float64"',
        BOOL: '"bool"',
        STR: '"string"',
        DATE: '"date32"',
        TIMESTAMP: '"timestamp[us]"',
    },
    "duckdb": _SQL,
    "parquet": _SQL,
    "cursor": _SQL,
    "rows": {INT: "int", FLOAT: "float", BOOL: "bool", STR: "str"},
}
"""The type by the name that a library has for it."""

_CALLS = {
    "numpy": "array.astype({word})",
    "pandas": "frame.astype({{{column}: {word}}})",
    "polars": "frame.with_columns(polars.col({column}).{word})",
    "pyarrow": "table[{column}].cast({word})",
    "duckdb": "CAST({column} AS {word})",
    "parquet": "CAST({column} AS {word}) in duckdb.sql over the file, and offer that",
    "cursor": "CAST({column} AS {word})",
    "rows": "{word}(…)",
}


def conversion(library: str, column: str | None, type_: Type) -> str:
    """What to write in a library so that a column becomes one of the declared type; empty where nothing short does."""
    words = _WORDS.get(library, {})
    word = f"DECIMAL(18, {type_.scale})" if isinstance(type_, DecimalOf) and words is _SQL else words.get(type_)
    if word is None or (column is None and "{column}" in _CALLS[library]):
        return ""
    called = f'"{column}"' if words is _SQL else json.dumps(column, ensure_ascii=False)
    return _CALLS[library].format(column=called, word=word)


def conversions(library: str, type_: Type) -> dict[str, str]:
    """For each field, by its label in messages, how its column is converted in a library."""
    layout = Layout.of(type_)
    said = (conversion(library, name, kind) for name, kind in zip(layout.names, layout.types, strict=True))
    return {layout.label(i): words for i, words in enumerate(said) if words}
