"""How a column of another type becomes one of the declared type: what a refusal says to do.

What is said never changes a value without a word. Where the library of the column converts all values of its type, or
fails, it is asked; where it would round, cut or guess (1.7 to 1, "False" to true, 1700000000 to a moment of 1970), the
column is declared as what it is, and queries convert it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, CategoryOf, DecimalOf, Type
from wpinq.ingest.column_kinds import kinds_of
from wpinq.ingest.foreign import computed
from wpinq.ingest.offered_fields import kind_type
from wpinq.ingest.typed_columns import Layout

_Advice = dict[Type, str]

_PARSED: _Advice = {INT: "BIGINT", FLOAT: "DOUBLE", STR: "VARCHAR", DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
_NUMPY: _Advice = {
    INT: 'array.astype("int64")',
    FLOAT: 'array.astype("float64")',
    STR: 'array.astype("str")',
    DATE: 'array.astype("datetime64[us]")',  # a date is one at midnight
    TIMESTAMP: 'array.astype("datetime64[us]")',
}
_PANDAS: _Advice = {
    INT: 'frame.astype({{{column}: "Int64"}})',
    FLOAT: 'frame.astype({{{column}: "float64"}})',
    STR: 'frame.astype({{{column}: "str"}})',
    DATE: 'frame.assign(**{{{column}: pandas.to_datetime(frame[{column}], format="ISO8601")}})',
    TIMESTAMP: 'frame.assign(**{{{column}: pandas.to_datetime(frame[{column}], format="ISO8601")}})',
}
_POLARS: _Advice = {
    INT: "frame.with_columns(polars.col({column}).cast(polars.Int64))",
    FLOAT: "frame.with_columns(polars.col({column}).cast(polars.Float64))",
    STR: "frame.with_columns(polars.col({column}).cast(polars.String))",
    DATE: "frame.with_columns(polars.col({column}).str.to_date())",
    TIMESTAMP: "frame.with_columns(polars.col({column}).str.to_datetime())",
    TIME: "frame.with_columns(polars.col({column}).str.to_time())",
}
_ARROW: _Advice = {
    INT: 'table[{column}].cast("int64")',
    FLOAT: 'table[{column}].cast("float64")',
    STR: 'table[{column}].cast("string")',
    DATE: 'table[{column}].cast("date32")',
    TIMESTAMP: 'table[{column}].cast("timestamp[us]")',
}
_SPARK_CAST = "frame.withColumn({column}, frame[{column}].cast({word}))"
_SPARK: _Advice = {
    kind: _SPARK_CAST.replace("{word}", f'"{word}"')
    for kind, word in (
        (INT, "bigint"),
        (FLOAT, "double"),
        (STR, "string"),
        (DATE, "date"),
        (TIMESTAMP, "timestamp"),
        (DURATION, "interval day to second"),
    )
}
_CALLS: dict[str, _Advice] = {
    "numpy": _NUMPY,
    "pandas": _PANDAS,
    "polars": _POLARS,
    "pyarrow": _ARROW,
    "duckdb": {kind: f"CAST({{quoted}} AS {word})" for kind, word in _PARSED.items()},
    "parquet": {
        kind: f"CAST({{quoted}} AS {word}) in duckdb.sql over the file, and offer that"
        for kind, word in _PARSED.items()
    },
    "spark": _SPARK,
}
"""What parses text as a type, or fails; that of str writes any value."""

_CUT = {
    "pandas": 'frame.assign(**{{{column}: frame[{column}].dt.floor("us")}})',
    "polars": 'frame.with_columns(polars.col({column}).dt.cast_time_unit("us"))',
    "pyarrow": 'pyarrow.compute.floor_temporal(table[{column}], unit="microsecond")',
    "duckdb": "make_timestamp(epoch_us({quoted}))",
}
"""What cuts moments to microseconds."""

_EXACT: set[tuple[Type, Type]] = {(INT, FLOAT), (BOOL, INT), (BOOL, FLOAT)}
"""Other conversions in which every library agrees."""

_CHECKED = {"pandas", "pyarrow"}
"""What refuses to make a whole number of another one."""

_FROM_PYTHON: _Advice = {
    INT: "int(…) of text",
    FLOAT: "float(…)",
    BOOL: '… == "yes"',
    STR: "str(…)",
    DATE: "datetime.date.fromisoformat(…) of text",
    TIMESTAMP: "datetime.datetime.fromisoformat(…) of text",
    TIME: "datetime.time.fromisoformat(…) of text",
    DURATION: "datetime.timedelta(seconds=…)",
}
_WRITTEN: _Advice = {
    INT: "write whole numbers in digits, as 1200",
    FLOAT: "write numbers with a point, as 1200.5 or 1.2e3",
    BOOL: "write true or false, or 1 or 0",
    DATE: "write dates as 2024-02-29",
    TIMESTAMP: "write moments as 2024-02-29T12:30:00",
    TIME: "write times of day as 12:30:00",
}
_OF_NO_KIND: dict[str, tuple[_Advice, str]] = {
    "rows": (_FROM_PYTHON, "decimal.Decimal(…) of text"),
    "cursor": (_FROM_PYTHON, "decimal.Decimal(…) of text"),
    "csv": (_WRITTEN, "write digits with a point before the decimals, as 12.5"),
}
"""What there is to write, and of decimals, where columns have no type of their own."""

_PYTHON: _Advice = {
    DATE: "datetime.date",
    TIMESTAMP: "datetime.datetime",
    TIME: "datetime.time",
    DURATION: "datetime.timedelta",
}
_CASTS: dict[tuple[Type, Type], str] = {
    (FLOAT, INT): ", which cuts toward zero",
    (INT, DATE): ", which reads days since 1970-01-01",
    (INT, TIMESTAMP): ", which reads microseconds since 1970",
    (INT, TIME): ", which reads microseconds since midnight",
    (INT, DURATION): ", which reads microseconds",
    (DATE, INT): ", the days since 1970-01-01",
    (TIMESTAMP, INT): ", the microseconds since 1970",
    (TIME, INT): ", the microseconds since midnight",
    (DURATION, INT): ", the microseconds",
    (DATE, TIMESTAMP): "",
    (TIMESTAMP, DATE): "",
    (TIMESTAMP, TIME): "",
    (TIME, DURATION): "",
    **{(STR, kind): "" for kind in (INT, FLOAT, DATE, TIMESTAMP, TIME, DURATION)},
}
"""The casts of the language that need no more words, each with what it takes or gives."""


def conversion(library: str, column: str | None, type_: Type, given: Type | None = None) -> str:
    """What to write so that a column becomes one of the declared type; empty where nothing short does.

    `given` is the type that its kind means, if it means one.
    """
    wanted = STR if isinstance(type_, CategoryOf) else type_
    if library in _OF_NO_KIND:
        words, decimals = _OF_NO_KIND[library]
        return decimals if isinstance(wanted, DecimalOf) else words.get(wanted, "")
    call = _CUT.get(library) if given == wanted == TIMESTAMP else _CALLS.get(library, {}).get(wanted)
    called = _called(call, column) if call and _is_sure(library, given, wanted) else ""
    return called or ("" if given is None else _in_a_query(given, wanted))


def _is_sure(library: str, given: Type | None, wanted: Type) -> bool:
    """Whether the library converts every value, or fails."""
    if given is None:
        return library == "pandas"  # objects, whatever they are
    if STR in (given, wanted) or given == wanted == TIMESTAMP or (given, wanted) in _EXACT:
        return True
    if isinstance(given, DecimalOf) and wanted == FLOAT:
        return True
    return (given, wanted) == (FLOAT, INT) and library in _CHECKED


def _called(call: str, column: str | None) -> str:
    if column is None and ("{column}" in call or "{quoted}" in call):
        return ""
    return call.format(column=json.dumps(column, ensure_ascii=False), quoted=f'"{column}"')


def _in_a_query(given: Type, wanted: Type) -> str:
    """How the column is declared as it is, and converted by queries."""
    if wanted == BOOL and given in (INT, FLOAT, STR):
        one = '"yes"' if given == STR else "1"
        return f"declare {_said(given)} and ask for x == {one} in queries"
    words = _CASTS.get((given, wanted))
    if isinstance(wanted, DecimalOf) and (given in (INT, FLOAT, STR) or isinstance(given, DecimalOf)):
        words = "" if given in (INT, STR) else ", which rounds"
    if isinstance(given, DecimalOf) and wanted == INT:
        words = ", which cuts toward zero"
    if words is None:
        return ""
    return f"declare {_said(given)} and take wp.cast(x, {_said(wanted)}) in queries{words}"


def _said(type_: Type) -> str:
    return f"wp.{type_}" if isinstance(type_, DecimalOf) else _PYTHON.get(type_, str(type_))


def conversions(data: Any, library: str, type_: Type) -> dict[str, str]:
    """For each field, by its label in messages, how its column is converted."""
    layout = Layout.of(type_)
    given = [None] * len(layout.types) if library in _OF_NO_KIND else _given(data, layout)
    said = map(conversion, [library] * len(given), layout.names, layout.types, given)
    return {layout.label(i): words for i, words in enumerate(said) if words}


def _given(data: Any, layout: Layout) -> Sequence[Type | None]:
    """What the kinds of the columns mean, where they mean anything."""
    try:
        found = computed(lambda: kinds_of(data), "")  # a relation's connection may be closed by now
        places = range(len(layout.types)) if found.names is None else layout.pick(found.names, "")
    except SourceRejected:
        return [None] * len(layout.types)
    return [kind_type(found.kinds[place], found.library) for place in places]
