"""Rows of released numbers and their frames: key, estimate, interval and kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from wpinq.errors import AnswersError
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, TIME, TIMESTAMP, DecimalOf, ListOf, TupleOf, Type
from wpinq.expr.values import Value

if TYPE_CHECKING:
    import polars
    import pyarrow

CONFIDENCE = 0.95
OWN_COLUMNS = ("estimate", "low", "high", "kind")


@dataclass(frozen=True, slots=True)
class Row:
    """One answer: whose it is, how large, between which ends, and what kind of number.

    Attributes
    ----------
    key : tuple
        The fields of the key, as many as `key_fields` names: none where the answers come down to one number.
    estimate : float
        A count where the kind says so, rescaled or not, a weight or a statistic. Of a choice, the candidate.
    low, high : float or None
        The ends of the interval; None where the answers have no interval.
    kind : str
        As in `Kind.name`: "count", "mean" and so on; of a listed key with how it was selected.
    """

    key: tuple[Value, ...]
    estimate: Any
    low: float | None
    high: float | None
    kind: str


class Framed(ABC):
    """Rows that polars, Arrow and DuckDB take as they are, as a stream of columns."""

    __slots__ = ()

    @abstractmethod
    def to_columns(self, confidence: float = CONFIDENCE) -> dict[str, list[Any]]:
        """All rows as lists, by the names of their columns."""

    @abstractmethod
    def to_arrow(self, confidence: float = CONFIDENCE) -> pyarrow.Table:
        """All rows as an Arrow table with the columns of `to_columns`; records are structs."""

    def to_polars(self, confidence: float = CONFIDENCE) -> polars.DataFrame:
        """All rows as a polars frame with the columns of `to_columns`."""
        return polars_frame(self.to_arrow(confidence))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, *type_and_copy: object, **named: object) -> NoReturn:
        # what pandas and numpy ask for, before they would take the keys for the rows
        raise AnswersError(f"{type(self).__name__} has rows of several columns: take its to_pandas() or to_polars()")


def polars_frame(table: pyarrow.Table) -> polars.DataFrame:
    """An Arrow table as a polars data frame."""
    import polars

    return polars.from_arrow(table)


def aligned(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of text as lines, their columns below one another, some of them flush right.

    Examples
    --------
    >>> aligned([["city", "rows"], ["Oslo", "3"]])
    ['city  rows', 'Oslo  3']
    """
    held = list(rows)
    columns = list(zip(*held, strict=True))
    sides = [str.rjust if place in right else str.ljust for place in range(len(columns))]
    wide = [[side(each, max(map(len, column))) for each in column] for side, column in zip(sides, columns, strict=True)]
    return ["  ".join(row).rstrip() for row in zip(*wide, strict=True)]


def arrow_type(type_: Type) -> Any:
    """The Arrow type of a column of values of a type."""
    import pyarrow as pa

    if isinstance(type_, TupleOf):
        return pa.struct([(name, arrow_type(part)) for name, part in _parts(type_)])
    if isinstance(type_, ListOf):
        return pa.list_(arrow_type(type_.element))
    if isinstance(type_, DecimalOf):
        return pa.decimal128(38, type_.scale)
    known: dict[Type, Any] = {
        INT: pa.int64(), FLOAT: pa.float64(), BOOL: pa.bool_(), DATE: pa.date32(), TIME: pa.time64("us"),
        TIMESTAMP: pa.timestamp("us"), DURATION: pa.duration("us"),
    }  # fmt: skip
    return known.get(type_, pa.string())


def arrow_value(value: Value, type_: Type) -> Any:
    """A value as Arrow takes it: records by the names of their fields."""
    if value is None:
        return None
    if isinstance(type_, TupleOf):
        return {name: arrow_value(item, part) for (name, part), item in zip(_parts(type_), value, strict=True)}
    if isinstance(type_, ListOf):
        return [arrow_value(item, type_.element) for item in value]
    return value


def _parts(type_: TupleOf) -> list[tuple[str, Type]]:
    return list(zip(field_names(type_), type_.elements, strict=True))


def field_names(type_: TupleOf) -> tuple[str, ...]:
    """The names of the fields of a record, as columns."""
    return tuple(name or f"field_{i}" for i, name in enumerate(type_.names))
