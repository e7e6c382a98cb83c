"""Answers as rows and frames: fields of the key, estimate, interval and kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from wpinq.display.html import Cell, interval_bar, interval_scale, render
from wpinq.errors import AnswersError
from wpinq.expr.nodes import write_value
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, TIME, TIMESTAMP, DecimalOf, ListOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.measure.request import MeasuredPlan
from wpinq.noise.epsilon_text import format_epsilon

if TYPE_CHECKING:
    import polars
    import pyarrow

CONFIDENCE = 0.95
SHOWN_ROWS = 50
"""The most rows of a notebook's page; the number of rows left out is shown."""
OWN_COLUMNS = ("estimate", "low", "high", "kind")


class AnswersLike(Protocol):
    """The part of `Answers` that rows need."""

    @property
    def measurement(self) -> MeasuredPlan: ...
    @property
    def keys(self) -> tuple[Value, ...]: ...
    @property
    def values(self) -> NDArray[np.float64]: ...
    @property
    def scale(self) -> float: ...
    @property
    def value(self) -> Any: ...
    def value_interval(self, confidence: float) -> tuple[float, float]: ...


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
    def to_arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, *type_and_copy: object, **named: object) -> NoReturn:
        # what pandas and numpy ask for, before they would take the keys for the rows
        raise AnswersError(f"{type(self).__name__} has rows of several columns: take its to_pandas() or to_polars()")


def key_fields(answers: AnswersLike) -> tuple[str, ...]:
    """The names of the fields of a key: `key` for one value, none for a single number."""
    if answers.measurement.sink.single:
        return ()
    type_ = answers.measurement.key_type
    if not isinstance(type_, TupleOf):
        return ("key",)
    return _names(type_)


def rows(answers: AnswersLike, confidence: float) -> Iterator[Row]:
    """Every answer as a row, in the order of the keys."""
    measurement = answers.measurement
    sink, kind = measurement.sink, measurement.kind
    if sink.single:
        low, high = answers.value_interval(confidence) if sink.has_interval else (None, None)
        yield Row((), answers.value, low, high, kind.name)
        return
    scale, type_ = answers.scale, measurement.key_type
    width = len(type_.elements) if isinstance(type_, TupleOf) else 0
    selected = "" if measurement.listing is None else f", {measurement.listing.selection}"
    for known, key, weight in zip(measurement.domain or (), answers.keys, answers.values.tolist(), strict=True):
        name, factor = kind.at(known)
        low = high = None
        if sink.has_interval:
            low, high = (end / float(factor) for end in measurement.ends(weight, scale, confidence))
        shown = (key,) if not isinstance(type_, TupleOf) else (None,) * width if key is None else tuple(key)
        yield Row(shown, weight / float(factor), low, high, name + selected)


def columns(answers: AnswersLike, confidence: float) -> dict[str, list[Any]]:
    """The rows as columns: the fields of the keys, then `estimate`, `low`, `high`, `kind`.

    Where a field of the keys has one of these names, the column of ours is `answer_estimate` and so on.
    """
    fields, found = key_fields(answers), list(rows(answers, confidence))
    made: dict[str, list[Any]] = {name: [row.key[i] for row in found] for i, name in enumerate(fields)}
    for attribute in OWN_COLUMNS:
        made[_free(attribute, made)] = [getattr(row, attribute) for row in found]
    return made


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name = f"answer_{name}"
    return name


def arrow_table(answers: AnswersLike, confidence: float) -> pyarrow.Table:
    """The rows as an Arrow table: nested records are structs, dates and decimals what they are."""
    import pyarrow

    made, type_ = columns(answers, confidence), answers.measurement.key_type
    keys: tuple[Type, ...] = type_.elements if isinstance(type_, TupleOf) else (type_,)
    sink = answers.measurement.sink
    types = [*(() if sink.single else keys), answers.measurement.key_type if sink.chooses else FLOAT, FLOAT, FLOAT]
    arrays = [
        pyarrow.array([arrow_value(value, kind) for value in column], type=arrow_type(kind))
        for column, kind in zip(made.values(), types, strict=False)  # all but the last, which is text
    ]
    kinds = pyarrow.array(list(made.values())[-1], type=pyarrow.string())
    table = pyarrow.Table.from_arrays([*arrays, kinds], names=list(made))
    return table.replace_schema_metadata({"kind": str(answers.measurement.kind)})


def polars_frame(table: pyarrow.Table) -> polars.DataFrame:
    """An Arrow table as a polars data frame."""
    import polars

    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame


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
    return list(zip(_names(type_), type_.elements, strict=True))


def _names(type_: TupleOf) -> tuple[str, ...]:
    return tuple(name or f"field_{i}" for i, name in enumerate(type_.names))


def answers_html(answers: AnswersLike, stamp: str) -> str:
    """Answers as HTML: fields of the keys, estimate, interval, kind."""
    found = list(islice(rows(answers, CONFIDENCE), SHOWN_ROWS))
    fields, measurement = key_fields(answers), answers.measurement
    scale = interval_scale(end for row in found for end in (row.low, row.high))
    left_out = 0 if measurement.sink.single else len(answers.keys) - len(found)
    notes = [f"… {left_out} more: to_pandas() has all"] if left_out else []
    return render(
        "answers.html",
        title=measurement.sink.name,
        note=f"epsilon {format_epsilon(measurement.epsilon)}" + (f", {stamp}" if stamp else ""),
        names=[*fields, "estimate", f"{100 * CONFIDENCE:g} % interval", "", "kind"],
        rows=[_cells(row, scale) for row in found],
        numbers=(len(fields), len(fields) + 1),
        notes=[*notes, str(measurement.kind)],
    )


def _cells(row: Row, scale: tuple[float, float]) -> list[Cell]:
    shown = f"{row.estimate:.6g}" if isinstance(row.estimate, float) else write_value(row.estimate)
    keys = map(write_value, row.key)
    if row.low is None or row.high is None:
        return [*keys, shown, "none", "", row.kind]
    bar = interval_bar(row.low, float(row.estimate), row.high, scale)
    return [*keys, shown, f"{row.low:.6g} to {row.high:.6g}", bar, row.kind]
