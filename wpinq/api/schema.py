"""The declaration of a source, from the columns of a table: two lines to confirm and edit."""

from __future__ import annotations

import inspect
import keyword
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wpinq.api.query import Query
from wpinq.api.source import source
from wpinq.data.fields import record_fields
from wpinq.data.kinds import annotation, field_name
from wpinq.errors import PlanError
from wpinq.expr.nodes import RESERVED
from wpinq.expr.types import TupleOf, Type
from wpinq.language.write import write_source
from wpinq.runtime.public import public

_LINE = 100
_ALWAYS = (
    "the unit: the protected unit in words (unit=, unit_weight=); a bound on the total weight (cap=); facts",
    "null: no field may be null unless you declare it, as int | None (in text int?)",
)


@public
@dataclass(frozen=True, slots=True)
class Schema:
    """A declaration to confirm: what the columns of a table say, and what only the curator can.

    Printed, it shows the statement in Python, the statement in text, and what is to be confirmed.

    Attributes
    ----------
    name : str
        Of the source.
    record : Type
        Of its records.
    questions : tuple of str
        Facts that the columns do not show.
    left_out : tuple of str
        Columns that no field can represent as they are, and why.
    """

    name: str
    record: Type
    questions: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def python(self) -> str:
        """The statement in Python."""
        name = f"{self.name}_" if keyword.iskeyword(self.name) else self.name
        return f"{name} = {_python_call(self.name, self.record)}"

    @property
    def text(self) -> str:
        """The statement of a text program."""
        return write_source(self.source().plan.operator)

    def source(self, **options: Any) -> Query:
        """The source as declared here; `unit`, `cap` and other options are those of `wp.source`."""
        return source(self.name, self.record, **options)

    def __repr__(self) -> str:
        doubts = [f"- {words}" for words in self.questions]
        left = ["", "Left out:", *(f"- {words}" for words in self.left_out)] if self.left_out else []
        return "\n".join(
            [self.python, "", self.text, "", "To confirm, because columns do not show it:", *doubts, *left]
        )


def schema(data: object, name: str | None = None, *, sample: object = None) -> Schema:
    """The declaration of a source for a table, from the names and types of its columns.

    It is never from their values. Of a csv file the first line is read, and its fields are str until you say otherwise;
    of a parquet file the schema in its footer. Facts that would have to be learnt from values are left as questions:
    whether a field may be null, its categories, and whether pandas made a float of whole numbers with gaps.

    pandas and polars propose types by reading rows. Rows of the protected data are not public, and types enter public
    plans, so only a `sample` of other rows is read so.

    Parameters
    ----------
    data : object
        A table of pandas, polars, Arrow, DuckDB, numpy or Spark, the path of a csv, tsv or parquet file, or a
        `wpinq.data.CsvFile`. The types of a lazy frame of polars are those that polars finds; where it scans a csv
        file it reads rows for them: offer the path instead.
    name : str, optional
        Of the source. By default, the name of the file, or "data".
    sample : object, optional
        A separate csv or parquet file, or table, of public or made rows with the same columns. Types are taken from
        it: ints (also with gaps), floats, bools, dates and moments, nullable where it has gaps. All of it is read.

    Returns
    -------
    Schema
        To print, edit and confirm; `schema(...).source(unit=...)` takes it as it is.

    Raises
    ------
    SourceRejected
        When there are no columns that can be fields, a file cannot be read, or the sample is the data itself.
    PlanError
        When the name cannot be that of a source.

    Notes
    -----
    Privacy cost: none, it reads no values of the data. The curator decides whether names of columns are public.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"start": ["A"], "minutes": [12], "fare": [9.5], "kind": pd.Categorical(["day"])})
    >>> schema(frame, "trips")
    trips = wp.source("trips", start=str, minutes=int, fare=float, kind=str)
    <BLANKLINE>
    source trips(start: str, minutes: int, fare: float, kind: str);
    <BLANKLINE>
    To confirm, because columns do not show it:
    - the unit: the protected unit in words (unit=, unit_weight=); a bound on the total weight (cap=); facts
    - null: no field may be null unless you declare it, as int | None (in text int?)
    - fare: pandas also makes this kind of whole numbers with gaps: where it did, ...
    - kind: its categories are values and were not read: list them, as wp.category("a", "b"), or leave it str
    >>> schema(frame, "trips").source(unit="one trip").uses()
    {'trips': 1}
    """
    chosen = _name_of(data) if name is None else name
    if not _is_name(chosen):
        raise PlanError("a source is named by ASCII letters, digits and underscores, starting with a letter")
    record, questions, left_out = record_fields(data, sample)
    return Schema(chosen, record, (*_ALWAYS, *questions), tuple(left_out))


def _name_of(data: object) -> str:
    stem = Path(data).name.partition(".")[0] if isinstance(data, (str, os.PathLike)) else ""
    return stem if _is_name(stem) else "data"


def _is_name(name: object) -> bool:
    return field_name(name) is not None and name not in RESERVED


def _python_call(name: str, record: Type) -> str:
    if not isinstance(record, TupleOf) or None in record.names:
        return f'wp.source("{name}", {annotation(record)})'
    typed = zip(record.names, record.elements, strict=True)
    fields = {str(field): annotation(type_) + " | None" * type_.nullable for field, type_ in typed}
    if any(keyword.iskeyword(field) or field in inspect.signature(source).parameters for field in fields):
        opening, parts, closing = f'wp.source("{name}", {{', [f'"{n}": {t}' for n, t in fields.items()], "})"
    else:
        opening, parts, closing = f'wp.source("{name}", ', [f"{n}={t}" for n, t in fields.items()], ")"
    line = f"{opening}{', '.join(parts)}{closing}"
    return line if len(line) <= _LINE else f"{opening.rstrip()}\n    " + ",\n    ".join(parts) + f",\n{closing}"
