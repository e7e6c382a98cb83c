"""Kinds of columns in all libraries, with the type of each and its conversion.

Conversion is of a column to the declared type. A kind is a word (of a scalar), a list of one kind (of lists), or a
mapping of names to kinds (of records). The words are those of the libraries in small letters.

Advice never changes a value silently. Libraries round, cut and guess ("1.7" to 2, "False" to true, "now" to a moment,
1700000000 to one of 1970). So a column is declared as what it is, and queries convert it by casts of documented
meaning.
"""

from __future__ import annotations

import base64
import contextlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from wpinq.errors import ExpressionError, SourceRejected
from wpinq.expr import types

# Exact columns: the Arrow and DuckDB types of which a scan changes no value, and counts in place of the others.
#
# DuckDB makes its own values of Arrow's durations and zoned moments while it scans. It rounds nanoseconds, and fails at
# the first value out of its range without a position. Their integers are scanned instead; those in lists stay as they
# are.

#: How the kinds of counted columns begin, before the unit.
COUNTED_MOMENTS = "counted moments in UTC "
COUNTED_DURATIONS = "counted durations "

#: Arrow's name for an interval of months, days and nanoseconds.
INTERVAL = "month_day_nano_interval"

_COUNTED = re.compile(r"(?:duration|timestamp)\[(s|ms|us|ns)(, tz=.*)?\]")
_ROUNDED = ("duration[ns]", "date64", INTERVAL)
_OUTER = ("list", "large_list", "fixed", "struct", "map")
_MOST_OF_ARROW = 10**38 - 1
_MOST_DAYS = 5 * 10**8


@dataclass(frozen=True, slots=True)
class StandIn:
    """What casts know of a column in place of a type of DuckDB: what it is, and what is in it."""

    id: str
    children: Sequence[tuple[str, StandIn]] = ()


def counted_kind(type_: Any) -> StandIn | None:
    """The unit of the integers of an Arrow type; None where it is scanned as it is."""
    found = _COUNTED.fullmatch(str(type_))
    if found is None or (found[2] is None and str(type_).startswith("timestamp")):
        return None
    return StandIn((COUNTED_DURATIONS if found[2] is None else COUNTED_MOMENTS) + found[1])


def durations(note: bytes) -> dict[str, Any]:
    """The Arrow types of columns with durations, by name, from a note in a file of parquet.

    The file is parquet, which itself has no durations, only integers. pyarrow reads the note, and of it the types
    alone. Without pyarrow, such columns are the integers that they are, as they are in a file without the note.
    """
    with contextlib.suppress(Exception):  # there is no pyarrow, or another writer's note; its words may quote it
        import pyarrow

        schema = pyarrow.ipc.read_schema(pyarrow.BufferReader(base64.b64decode(note)))
        return {each.name: each.type for each in schema if "duration[" in str(each.type)}
    return {}


def with_durations(kind: Any, arrow: Any) -> Any:
    """A type of DuckDB with the units of the durations in it, which are integers to DuckDB."""
    if arrow is None or str(kind.id) not in ("struct", "list"):
        return counted_kind(arrow) if str(arrow).startswith("duration") else kind
    children = [(name, with_durations(child, arrow.field(i).type)) for i, (name, child) in enumerate(kind.children)]
    return StandIn(kind.id, children)


def counts(batch: Any, kinds: Sequence[StandIn | None]) -> Any:
    """An Arrow batch, or table, with integers in place of the counted columns.

    They are in the same memory.
    """
    import pyarrow

    for place, kind in enumerate(kinds):
        if kind is not None:
            field = batch.schema.field(place).with_type(pyarrow.int64())
            batch = batch.set_column(place, field, batch.column(place).cast(pyarrow.int64()))
    return batch


def rounds(types: Iterable[Any]) -> bool:
    """Whether DuckDB rounds columns of such Arrow types: intervals, and dates with a time.

    Nanoseconds inside of lists and records are refused: Python's lists of them round too.
    """
    texts = [str(type_) for type_ in types if counted_kind(type_) is None]
    rounded = [text for text in texts if any(kind in text for kind in _ROUNDED)]
    if any(text.startswith(_OUTER) for text in rounded):
        raise SourceRejected("a list or a record holds durations in nanoseconds: cast them to microseconds")
    return bool(rounded)


def duration_of(interval: Any) -> Any:
    """An interval of Arrow's as a duration, to the nanosecond.

    It stays as it is, where it is null or of months.
    """
    import numpy

    if interval is None or interval.months:
        return interval
    microseconds, finer = divmod(interval.nanoseconds, 1000)
    if finer:
        return numpy.timedelta64(interval.nanoseconds, "ns")
    # More days than Python counts are far outside of 64 bits anyway.
    return timedelta(max(-_MOST_DAYS, min(_MOST_DAYS, interval.days)), microseconds=microseconds)


def for_arrow(column: str, kind: Any, label: str) -> str:
    """A column of a DuckDB relation as SQL whose acceptable values Arrow's stream keeps.

    Arrow has no times with a zone: DuckDB leaves the zone out. The bits of unsigned integers of 128 bits become those
    of a signed decimal: the larger ones are cut to one that no integer of 64 bits nor float is.
    """
    if kind.id == "uhugeint":
        return f"CAST(CASE WHEN {column} > {_MOST_OF_ARROW} THEN {_MOST_OF_ARROW} ELSE {column} END AS HUGEINT)"
    if _holds(kind, "time with time zone"):
        raise SourceRejected(f"the relation's {label} has times with a zone: cast them to TIME, which leaves it out")
    if _holds(kind, "uhugeint"):
        raise SourceRejected(f"the relation's {label} holds UHUGEINT in a list or a record: cast it to HUGEINT there")
    return column


def _holds(kind: Any, scalar: str) -> bool:
    if kind.id not in ("list", "array", "struct", "map", "union"):
        return bool(kind.id == scalar)
    return any(_holds(child, scalar) for _, child in kind.children if isinstance(child, type(kind)))


ColumnKind = str | list["ColumnKind"] | dict[str, "ColumnKind"]

#: The kind of every column of a csv file: text, which may mean anything.
CSV_TEXT = "text of a csv file"

_GAPS = (
    "pandas also makes this kind of whole numbers with gaps: where it did, declare int | None and convert the column "
    'to whole numbers that can be null ("Int64" of pandas)'
)
_BEYOND = "whole numbers outside of 64 bits with a sign are refused"
_CATEGORIES = 'its categories are values and were not read: list them, as wp.category("a", "b"), or leave it str'
_DAYS = "a frame of pandas has no dates but moments at midnight: where these are dates, declare datetime.date"


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The declared type of a kind, and the question that it leaves, in every library or in some."""

    type: types.Type
    question: str = ""
    libraries: frozenset[str] | None = None


#: Kinds of columns, as patterns of their words, with their meanings; the first that fits counts.
_MEANINGS: tuple[tuple[str, _Meaning], ...] = (
    (r"u?int(8|16|32)|int64", _Meaning(types.INT)),
    (r"byte|short|integer|long", _Meaning(types.INT)),
    (r"u?tinyint|u?smallint|uinteger|bigint", _Meaning(types.INT)),
    (r"uint64|ubigint|u?hugeint|u?int128", _Meaning(types.INT, _BEYOND)),
    (r"float64|double", _Meaning(types.FLOAT, _GAPS, frozenset({"pandas", "polars", "pyarrow", "duckdb", "parquet"}))),
    (r"float(16|32|64)?|halffloat|double", _Meaning(types.FLOAT)),
    (r"bool|boolean", _Meaning(types.BOOL)),
    (r"str\d*|string|large_string|string_view|utf8|varchar", _Meaning(types.STR)),
    (CSV_TEXT, _Meaning(types.STR)),
    (r'"?null"?', _Meaning(types.STR)),  # that a column holds nothing else is told by its values: as text would be
    (r"object", _Meaning(types.STR, "the kind says nothing of what it holds: str is a guess")),
    (r"date|date32|date64", _Meaning(types.DATE)),
    (r"datetime64", _Meaning(types.TIMESTAMP, _DAYS, frozenset({"pandas"}))),
    (r"timestamp(_s|_ms|_us|_ns|_ntz|tz_ns| with time zone)?|datetime(64)?", _Meaning(types.TIMESTAMP)),
    (rf"{COUNTED_MOMENTS}.*", _Meaning(types.TIMESTAMP)),
    (r"time|time32|time64|time_ns", _Meaning(types.TIME)),
    (rf"duration|timedelta64|interval( day( to second)?)?|{COUNTED_DURATIONS}.*", _Meaning(types.DURATION)),
    *((rf"decimal\({scale}\)", _Meaning(types.decimal(scale))) for scale in range(types.SCALE_LIMIT + 1)),
    (r"category|categorical|enum|dictionary", _Meaning(types.STR, _CATEGORIES)),
)


#: How DuckDB gives the moments of parquet's INT96, to the nanosecond.
INT96 = 'STRUCT(date DATE, "time" TIME_NS)'


def duckdb_kind(kind: Any) -> ColumnKind:
    """The kind of a column of DuckDB, from its type."""
    if str(kind) == INT96:
        return "timestamp_ns"
    if kind.id in ("list", "array"):
        return [duckdb_kind(kind.children[0][1])]
    if kind.id == "struct":
        return {name: duckdb_kind(child) for name, child in kind.children}
    return f"decimal({dict(kind.children)['scale']})" if kind.id == "decimal" else str(kind.id)


def type_of_kind(kind: ColumnKind, library: str, questions: list[str]) -> types.Type:
    """The type of a kind of column; its open questions are added to `questions`."""
    if isinstance(kind, list):
        return types.ListOf(type_of_kind(kind[0], library, questions))
    if isinstance(kind, dict):
        if not kind or any(field_name(name) is None for name in kind):
            raise NoType("a record with such field names")
        return types.TupleOf(tuple(kind), tuple(type_of_kind(inside, library, questions) for inside in kind.values()))
    for words, meaning in _MEANINGS:
        if re.fullmatch(words, kind) and (meaning.libraries is None or library in meaning.libraries):
            if meaning.question:
                questions.append(meaning.question)
            return meaning.type
    raise NoType(f"the kind {kind}")


class NoType(Exception):
    """No type means this kind of column; the message names the kind."""


def field_name(name: object) -> str | None:
    """The name of a column, where a field can have it."""
    with contextlib.suppress(ExpressionError):
        types.check_field_name(name if isinstance(name, str) else "")
        return str(name)
    return None


def proposed_field(column: str, otherwise: str) -> str:
    """The name of a field for a column: its own where it can be, else one of its letters."""
    plain = unicodedata.normalize("NFKD", column.casefold()).encode("ascii", "ignore").decode()
    made = re.sub("[^a-z0-9]+", "_", plain).strip("_")
    if name := field_name(column) or field_name(made):
        return name
    return f"column_{made}" if made else otherwise


# --- advice -----------------------------------------------------------------------------------------------------------

_PYTHON: dict[types.Type, str] = {
    types.DATE: "datetime.date",
    types.TIMESTAMP: "datetime.datetime",
    types.TIME: "datetime.time",
    types.DURATION: "datetime.timedelta",
}
#: For each type, decimals of all scales as one, what makes a Python value of it, and its form in csv files.
_WAYS: dict[types.Type, tuple[str, str]] = {
    types.INT: ("int(…) of text", "write whole numbers in digits, as 1200"),
    types.FLOAT: ("float(…)", "write numbers with a point, as 1200.5 or 1.2e3"),
    types.BOOL: ('… == "yes"', "write true or false, or 1 or 0"),
    types.STR: ("str(…)", ""),
    types.DATE: ("datetime.date.fromisoformat(…) of text", "write dates as 2024-02-29"),
    types.TIMESTAMP: ("datetime.datetime.fromisoformat(…) of text", "write moments as 2024-02-29T12:30:00"),
    types.TIME: ("datetime.time.fromisoformat(…) of text", "write times of day as 12:30:00"),
    types.DURATION: ("datetime.timedelta(seconds=…)", ""),
    types.decimal(0): ("decimal.Decimal(…) of text", "write digits with a point before the decimals, as 12.5"),
}
_IN_SQL = "take {} in SQL (duckdb.sql, or Spark's) and offer the result"
_TEXT_IN_SQL = _IN_SQL.format("CAST(… AS STRING)")
_ELSE_NULL = ", null where the text is none"
#: The casts of the language, each with the words on what it takes or gives.
_CASTS: dict[tuple[types.Type, types.Type], str] = {
    (types.FLOAT, types.INT): ", which cuts toward zero",
    (types.INT, types.DATE): ", which reads days since 1970-01-01",
    (types.INT, types.TIMESTAMP): ", which reads microseconds since 1970",
    (types.INT, types.TIME): ", which reads microseconds since midnight",
    (types.INT, types.DURATION): ", which reads microseconds: of another unit, multiply x before",
    (types.DATE, types.INT): ", the days since 1970-01-01",
    (types.TIMESTAMP, types.INT): ", the microseconds since 1970",
    (types.TIME, types.INT): ", the microseconds since midnight",
    (types.DURATION, types.INT): ", the microseconds",
    (types.DATE, types.TIMESTAMP): "",
    (types.TIMESTAMP, types.DATE): "",
    (types.TIMESTAMP, types.TIME): "",
    (types.TIME, types.DURATION): "",
    **{(types.STR, kind): _ELSE_NULL for kind in (types.INT, types.FLOAT, *_PYTHON)},
    (types.BOOL, types.INT): "",
    (types.BOOL, types.FLOAT): "",
}


def way_to(wanted: types.Type) -> tuple[str, str]:
    """The expression that makes a Python value one of a type, and its form in csv files."""
    return _WAYS.get(types.decimal(0) if isinstance(wanted, types.DecimalOf) else _plain(wanted), ("", ""))


def column_advice(kind: ColumnKind, wanted: types.Type) -> str:
    """The way from a column of a kind to a declared type; empty where there is no short one."""
    wanted = _plain(wanted)
    if kind in ("object", "category", "enum"):  # of anything
        return ""
    try:
        given = type_of_kind(kind, "", [])
    except NoType:
        return ""
    if wanted == types.STR and given in (types.INT, types.BOOL):
        return _TEXT_IN_SQL
    if wanted == given == types.TIMESTAMP:
        return _IN_SQL.format("make_timestamp(epoch_us(…))")
    if wanted == types.BOOL and given in (types.INT, types.FLOAT, types.STR):
        one = '"yes"' if given == types.STR else "1"
        return f"declare {annotation(given)} and ask for x == {one} in queries"
    words = _CASTS.get((given, wanted))
    of_number = given in (types.INT, types.FLOAT, types.STR) or isinstance(given, types.DecimalOf)
    if isinstance(wanted, types.DecimalOf) and of_number:
        words = _ELSE_NULL if given == types.STR else "" if given == types.INT else ", which rounds"
    if isinstance(given, types.DecimalOf) and wanted == types.INT:
        words = ", which cuts toward zero"
    if words is None:
        return ""
    # pandas has whole numbers as floats where some are missing
    whole = 'where all are whole, offer .astype("Int64"), else ' if (given, wanted) == (types.FLOAT, types.INT) else ""
    return f"{whole}declare {annotation(given)} and take F.cast(x, {annotation(wanted)}) in queries{words}"


def _plain(type_: types.Type) -> types.Type:
    return types.STR if isinstance(type_, types.CategoryOf) else type_


def annotation(type_: types.Type) -> str:
    """A type as `wp.source` takes it."""
    if isinstance(type_, types.ListOf):
        return f"list[{annotation(type_.element)}]"
    if isinstance(type_, types.TupleOf):
        inside = [annotation(element) for element in type_.elements]
        if None in type_.names:
            return f"tuple[{', '.join(inside)}]"
        return "{" + ", ".join(f'"{n}": {t}' for n, t in zip(type_.names, inside, strict=True)) + "}"
    if type_ in _PYTHON:
        return _PYTHON[type_]
    return f"wp.{type_}" if isinstance(type_, types.Logical) else str(type_)
