"""From the columns of a table to fields: the type that each kind of column means, and what it leaves to be asked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

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
    ListOf,
    TupleOf,
    Type,
    check_field_name,
    decimal,
    tuple_type,
)
from wpinq.ingest.column_kinds import TEXT, ColumnKind, kinds_of

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
