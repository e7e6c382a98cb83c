"""How each library converts a column to a declared type: what a refusal says to do."""

from __future__ import annotations

import json

from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, CategoryOf, DecimalOf, Type
from wpinq.ingest.typed_columns import Layout

_SQL: dict[Type, str] = {
    INT: "BIGINT",
    FLOAT: "DOUBLE",
    BOOL: "BOOLEAN",
    STR: "VARCHAR",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIME: "TIME",
    DURATION: "INTERVAL",
}
_MOMENTS = '"datetime64[us]"'  # of which a date is one at midnight
_WORDS: dict[str, dict[Type, str]] = {
    "numpy": {
        INT: '"int64"',
        FLOAT: '"float64"',
        BOOL: '"bool"',
        STR: '"str"',
        DATE: _MOMENTS,
        TIMESTAMP: _MOMENTS,
        DURATION: '"timedelta64[us]"',
    },
    "pandas": {
        INT: '"Int64"',
        FLOAT: '"float64"',
        BOOL: '"boolean"',
        STR: '"str"',
        DATE: _MOMENTS,
        TIMESTAMP: _MOMENTS,
        TIME: "frame.assign(**{{{column}: frame[{column}].map(datetime.time.fromisoformat)}})",
        DURATION: '"timedelta64[us]"',
    },
    "polars": {
        INT: "cast(polars.Int64)",
        FLOAT: "cast(polars.Float64)",
        BOOL: "cast(polars.Boolean)",
        STR: "cast(polars.String)",
        DATE: "str.to_date()",
        TIMESTAMP: "str.to_datetime()",
        TIME: "str.to_time()",
        DURATION: 'cast(polars.Duration("us"))',
    },
    "pyarrow": {
        INT: '"int64"',
        FLOAT: '"float64"',
        BOOL: '"bool"',
        STR: '"string"',
        DATE: '"date32"',
        TIMESTAMP: '"timestamp[us]"',
        TIME: 'pyarrow.compute.strptime(table[{column}], "%H:%M:%S", "us").cast("time64[us]")',
        DURATION: '"duration[us]"',
    },
    "duckdb": _SQL,
    "parquet": _SQL,
    "cursor": _SQL,
    "rows": {
        INT: "int(…)",
        FLOAT: "float(…)",
        BOOL: "bool(…)",
        STR: "str(…)",
        DATE: "datetime.date.fromisoformat(…)",
        TIMESTAMP: "datetime.datetime.fromisoformat(…)",
        TIME: "datetime.time.fromisoformat(…)",
        DURATION: "datetime.timedelta(microseconds=…)",
    },
    "spark": {
        INT: "bigint",
        FLOAT: "double",
        BOOL: "boolean",
        STR: "string",
        DATE: "date",
        TIMESTAMP: "timestamp",
        TIME: 'frame.withColumn({column}, frame[{column}].cast("time(6)")), with spark.sql.timeType.enabled; or '
        "declare int and offer microseconds, of which wp.cast(x, datetime.time) makes times",
        DURATION: "interval day to second",
    },
    "csv": {
        INT: "write whole numbers in digits, as 1200",
        FLOAT: "write numbers with a point, as 1200.5 or 1.2e3",
        BOOL: "write true or false, or 1 or 0",
        DATE: "write dates as 2024-02-29",
        TIMESTAMP: "write moments as 2024-02-29T12:30:00",
        TIME: "write times of day as 12:30:00",
    },
}
"""The type by the name that a library has for it, or all that there is to write."""
_DECIMALS = {
    "duckdb": "DECIMAL(18, {scale})",
    "parquet": "DECIMAL(18, {scale})",
    "cursor": "DECIMAL(18, {scale})",
    "polars": "cast(polars.Decimal(18, {scale}))",
    "spark": "decimal(18,{scale})",
    "rows": "decimal.Decimal(…)",
    "csv": "write digits with a point before the decimals, as 12.5",
}

_CALLS = {
    "numpy": "array.astype({word})",
    "pandas": "frame.astype({{{column}: {word}}})",
    "polars": "frame.with_columns(polars.col({column}).{word})",
    "pyarrow": "table[{column}].cast({word})",
    "duckdb": "CAST({column} AS {word})",
    "parquet": "CAST({column} AS {word}) in duckdb.sql over the file, and offer that",
    "cursor": "CAST({column} AS {word})",
    "spark": "frame.withColumn({column}, frame[{column}].cast({quoted}))",
    "rows": "{word}",
    "csv": "{word}",
}


def conversion(library: str, column: str | None, type_: Type) -> str:
    """What to write in a library so that a column becomes one of the declared type; empty where nothing short does."""
    words, kind = _WORDS.get(library, {}), STR if isinstance(type_, CategoryOf) else type_
    if isinstance(kind, DecimalOf):
        word: str | None = _DECIMALS.get(library, "").format(scale=kind.scale)
    else:
        word = words.get(kind)
    call = word if word is not None and "{column}" in word else _CALLS.get(library, "")
    if not word or (column is None and "{column}" in call):
        return ""
    called = f'"{column}"' if words is _SQL else json.dumps(column, ensure_ascii=False)
    return call.format(column=called, word=word, quoted=json.dumps(word))


def conversions(library: str, type_: Type) -> dict[str, str]:
    """For each field, by its label in messages, how its column is converted in a library."""
    layout = Layout.of(type_)
    said = (conversion(library, name, kind) for name, kind in zip(layout.names, layout.types, strict=True))
    return {layout.label(i): words for i, words in enumerate(said) if words}
