"""How a column of another type becomes one of the declared type: what a refusal says to do.

What is said never changes a value without a word. Libraries round, cut and guess ("1.7" to 2, "False" to true, "now" to
a moment, 1700000000 to one of 1970): so a column is declared as what it is, and queries convert it, by casts whose
meaning is written down. A library is asked where it writes text, or refuses what it would change.
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

_AS_TEXT = {
    "numpy": 'array.astype("str")',
    "pandas": 'frame.astype({{{column}: "string"}})',
    "polars": "frame.with_columns(polars.col({column}).cast(polars.String))",
    "pyarrow": 'table[{column}].cast("string")',
    "duckdb": "CAST({quoted} AS VARCHAR)",
    "parquet": "CAST({quoted} AS VARCHAR) in duckdb.sql over the file, and offer that",
    "spark": 'frame.withColumn({column}, frame[{column}].cast("string"))',
}
"""What writes whole numbers and bools as text."""

_CHECKED = {
    "pandas": 'frame.astype({{{column}: "Int64"}})',
    "pyarrow": 'table[{column}].cast("int64")',
}
"""What makes whole numbers of floats, and refuses others."""

_CUT = {
    "pandas": 'frame.assign(**{{{column}: frame[{column}].dt.floor("us")}})',
    "polars": 'frame.with_columns(polars.col({column}).dt.cast_time_unit("us"))',
    "pyarrow": 'pyarrow.compute.floor_temporal(table[{column}], unit="microsecond")',
    "duckdb": "make_timestamp(epoch_us({quoted}))",
}
"""What cuts moments to microseconds."""

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
_ELSE_NULL = ", null where the text is none"
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
    **{(STR, kind): _ELSE_NULL for kind in (INT, FLOAT, DATE, TIMESTAMP, TIME, DURATION)},
    (BOOL, INT): "",
    (BOOL, FLOAT): "",
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
    if given is None:
        return ""
    call = None
    if (given, wanted) in ((INT, STR), (BOOL, STR)):
        call = _AS_TEXT.get(library)
    elif (given, wanted) == (FLOAT, INT):
        call = _CHECKED.get(library)
    elif given == wanted == TIMESTAMP:
        call = _CUT.get(library)
    return _called(call, column) if call else _in_a_query(given, wanted)


def _called(call: str, column: str | None) -> str:
    if column is None and ("{column}" in call or "{quoted}" in call):
        return ""
    quoted = '"' + (column or "").replace('"', '""') + '"'
    return call.format(column=json.dumps(column, ensure_ascii=False), quoted=quoted)


def _in_a_query(given: Type, wanted: Type) -> str:
    """How the column is declared as it is, and converted by queries."""
    if wanted == BOOL and given in (INT, FLOAT, STR):
        one = '"yes"' if given == STR else "1"
        return f"declare {_said(given)} and ask for x == {one} in queries"
    words = _CASTS.get((given, wanted))
    if isinstance(wanted, DecimalOf) and (given in (INT, FLOAT, STR) or isinstance(given, DecimalOf)):
        words = _ELSE_NULL if given == STR else "" if given == INT else ", which rounds"
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
