"""From the columns of a table to fields: the type that each kind of column means, and what it leaves to be asked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.data.column_kinds import TEXT, ColumnKind, kinds_of
from wpinq.data.foreign_errors import computed
from wpinq.data.layout import Layout
from wpinq.errors import ExpressionError, SourceRejected
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    SCALE_LIMIT,
    STR,
    TIME,
    TIMESTAMP,
    CategoryOf,
    DecimalOf,
    ListOf,
    TupleOf,
    Type,
    check_field_name,
    decimal,
    tuple_type,
)

_GAPS = (
    "pandas also makes this kind of whole numbers with gaps: where it did, declare int | None and convert the column "
    'to whole numbers that can be null ("Int64" of pandas)'
)
_CATEGORIES = 'its categories are values and were not read: list them, as wp.category("a", "b"), or leave it str'
_DAYS = "a frame of pandas has no dates but moments at midnight: where these are dates, declare datetime.date"


@dataclass(frozen=True, slots=True)
class _Declared:
    """The type that a kind of column is declared as, and what its kind does not tell: in every library, or in some."""

    type: Type
    asked: str = ""
    libraries: frozenset[str] | None = None


_MEANINGS: tuple[tuple[str, _Declared], ...] = (
    (r"u?int(8|16|32)|int64", _Declared(INT)),
    (r"byte|short|integer|long", _Declared(INT)),
    (r"u?tinyint|u?smallint|uinteger|bigint", _Declared(INT)),
    (r"uint64|ubigint|u?hugeint|u?int128", _Declared(INT, "whole numbers outside of 64 bits with a sign are refused")),
    (r"float64|double", _Declared(FLOAT, _GAPS, frozenset({"pandas", "polars", "pyarrow", "duckdb", "parquet"}))),
    (r"float(16|32|64)?|halffloat|double", _Declared(FLOAT)),
    (r"bool|boolean", _Declared(BOOL)),
    (r"str\d*|string|large_string|string_view|utf8|varchar", _Declared(STR)),
    (TEXT, _Declared(STR)),
    (r'"?null"?', _Declared(STR)),  # of a column that holds nothing else, which is nobody's business: as text would be
    (r"object", _Declared(STR, "the kind says nothing of what it holds: str is a guess")),
    (r"date|date32|date64", _Declared(DATE)),
    (r"datetime64", _Declared(TIMESTAMP, _DAYS, frozenset({"pandas"}))),
    (r"timestamp(_s|_ms|_us|_ns|_ntz|tz_ns| with time zone)?|datetime(64)?", _Declared(TIMESTAMP)),
    (r"time|time32|time64|time_ns", _Declared(TIME)),
    (r"duration|timedelta64|interval( day( to second)?)?", _Declared(DURATION)),
    *((rf"decimal\({scale}\)", _Declared(decimal(scale))) for scale in range(SCALE_LIMIT + 1)),
    (r"category|categorical|enum|dictionary", _Declared(STR, _CATEGORIES)),
)
"""Kinds of columns, as expressions of their words, with what they mean; the first that fits does."""


@dataclass(slots=True)
class Offered:
    """What a table's columns say of a record: its type, what is left to be asked, and which columns no field holds."""

    record: Type
    asked: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def offered_record(data: Any) -> Offered:
    """The type of the records that a table or file holds, from the names and kinds of its columns.

    Nothing else of it is looked at: of csv the first line, of parquet the schema in the footer.

    Raises
    ------
    SourceRejected
        When an object has no columns, a file cannot be read, or no column can be a field.
    """
    found = kinds_of(data)
    offered = Offered(tuple_type(()))
    names: list[str | None] = []
    types: list[Type] = []
    for place, kind in enumerate(found.kinds):
        name = None
        if found.names is not None:
            name = _field_name(found.names[place])
            if name is None or list(found.names).count(name) > 1:
                why = "its name is not of ASCII letters, digits and _" if name is None else "another has its name"
                offered.left_out.append(f"column {place + 1}: {why}; rename it to declare it")
                continue
        called = name or f"column {place + 1}"
        asked: list[str] = []
        try:
            types.append(_type_of(kind, found.library, asked))
        except _NoType as gap:
            offered.left_out.append(f"{called}: no field holds {gap}; convert it to declare it")
            continue
        names.append(name)
        offered.asked += [f"{called}: {words}" for words in dict.fromkeys(asked)]
    if not types or (found.names is None and offered.left_out):
        raise SourceRejected("no column of the table can be a field: rename or convert those that you want")
    if found.library == "csv":
        offered.asked.append("all fields are str: say which are int, float, bool, datetime.date or of another type")
    offered.record = types[0] if found.bare else TupleOf(tuple(names), tuple(types))
    return offered


def kind_type(kind: ColumnKind, library: str) -> Type | None:
    """The type that a kind of column means; None where it means none, or any."""
    if kind in ("object", "category"):  # of anything
        return None
    try:
        return _type_of(kind, library, [])
    except _NoType:
        return None


class _NoType(Exception):
    """No type of ours means this kind of column; its name says which."""


def _type_of(kind: ColumnKind, library: str, asked: list[str]) -> Type:
    if isinstance(kind, list):
        return ListOf(_type_of(kind[0], library, asked))
    if isinstance(kind, dict):
        if not kind or any(_field_name(name) is None for name in kind):
            raise _NoType("a record with such field names")
        return TupleOf(tuple(kind), tuple(_type_of(inside, library, asked) for inside in kind.values()))
    for words, declared in _MEANINGS:
        if re.fullmatch(words, kind) and (declared.libraries is None or library in declared.libraries):
            if declared.asked:
                asked.append(declared.asked)
            return declared.type
    raise _NoType(f"the kind {kind}")


def _field_name(name: object) -> str | None:
    try:
        check_field_name(name if isinstance(name, str) else "")
    except ExpressionError:
        return None
    return str(name)


# How a column of another type becomes one of the declared type: what a refusal says to do.
#
# What is said never changes a value without a word. Libraries round, cut and guess ("1.7" to 2, "False" to true, "now"
# to a moment, 1700000000 to one of 1970): so a column is declared as what it is, and queries convert it, by casts whose
# meaning is written down. A library is asked where it writes text, or refuses what it would change.

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
    return f"declare {_said(given)} and take F.cast(x, {_said(wanted)}) in queries{words}"


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
