"""The declaration of a source, from the columns of a table: two lines to confirm and edit."""

from __future__ import annotations

import inspect
import keyword
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
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
    """A proposed declaration from the columns of a table, with questions for the curator.

    Printed, it shows the statement in Python, the statement in text, and the questions.

    Attributes
    ----------
    name : str
        The name of the source.
    record : Type
        The type of its records.
    questions : tuple of str
        Facts that the columns do not show.
    left_out : tuple of str
        Columns that no field can represent, with the reason.
    columns : mapping
        Fields to their columns, where a column has a name that no field can have.
    """

    name: str
    record: Type
    questions: tuple[str, ...]
    left_out: tuple[str, ...]
    columns: Mapping[str, str]

    @property
    def python(self) -> str:
        """The statement in Python."""
        name = f"{self.name}_" if keyword.iskeyword(self.name) else self.name
        return f"{name} = {_python_call(self.name, self.record, self.columns)}"

    @property
    def text(self) -> str:
        """The statement of a text program."""
        return write_source(self.source().plan.operator)

    def source(self, **options: Any) -> Query:
        """The source as declared here; `unit`, `cap` and other options are those of `wp.source`."""
        return source(self.name, self.record, **{"columns": self.columns, **options})

    def __repr__(self) -> str:
        doubts = [f"- {words}" for words in self.questions]
        left = ["", "Left out:", *(f"- {words}" for words in self.left_out)] if self.left_out else []
        asked = ["Confirm these properties, which the columns do not show:", *doubts]
        return "\n".join([self.python, "", self.text, "", *asked, *left])


def schema(data: object, name: str | None = None, *, sample: object = None) -> Schema:
    """The declaration of a source for a table, from the names and types of its columns.

    It reads no values: of a csv file the first line, with all fields as str; of a parquet file the schema in the
    footer. Properties that depend on values are questions: nulls, categories, and integers with gaps that pandas
    stores as floats.

    pandas and polars propose types by reading rows. Rows of the protected data are not public, and types enter public
    plans, so only a `sample` of other rows is read so.

    Parameters
    ----------
    data : object
        A table of pandas, polars, Arrow, DuckDB, numpy or Spark, the path of a csv, tsv or parquet file, or a
        `wpinq.data.CsvFile`. For a lazily scanned csv file, polars reads rows to find the types: pass the path instead.
    name : str, optional
        The name of the source. By default, the name of the file, or "data".
    sample : object, optional
        A separate csv or parquet file, or table, of public or made rows with the same columns. Types are taken from
        it: ints (also with gaps), floats, bools, dates and moments, nullable where it has gaps. All of it is read.

    Returns
    -------
    Schema
        A declaration to print, edit and confirm; `schema(...).source(unit=...)` accepts it unchanged.

    Raises
    ------
    SourceRejected
        If no column can be a field, a file cannot be read, or the sample is the data itself.
    PlanError
        If the name is no valid name of a source.

    Notes
    -----
    Privacy cost: none, because no values of the data are read. The curator decides whether to publish column names.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"start": ["A"], "minutes": [12], "fare": [9.5], "kind": pd.Categorical(["day"])})
    >>> schema(frame, "trips")
    trips = wp.source("trips", start=str, minutes=int, fare=float, kind=str)
    <BLANKLINE>
    source trips(start: str, minutes: int, fare: float, kind: str);
    <BLANKLINE>
    Confirm these properties, which the columns do not show:
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
    record, columns, questions, left_out = record_fields(data, sample)
    return Schema(chosen, record, (*_ALWAYS, *questions), tuple(left_out), MappingProxyType(columns))


def _name_of(data: object) -> str:
    stem = Path(data).name.partition(".")[0] if isinstance(data, (str, os.PathLike)) else ""
    return stem if _is_name(stem) else "data"


def _is_name(name: object) -> bool:
    return field_name(name) is not None and name not in RESERVED


def _python_call(name: str, record: Type, columns: Mapping[str, str]) -> str:
    if not isinstance(record, TupleOf) or None in record.names:
        return f'wp.source("{name}", {annotation(record)})'
    typed = zip(record.names, record.elements, strict=True)
    fields = {str(field): annotation(type_) + " | None" * type_.nullable for field, type_ in typed}
    if any(keyword.iskeyword(field) or field in inspect.signature(source).parameters for field in fields):
        opening, parts, closing = f'wp.source("{name}", {{', [f'"{n}": {t}' for n, t in fields.items()], "})"
    else:
        opening, parts, closing = f'wp.source("{name}", ', [f"{n}={t}" for n, t in fields.items()], ")"
    if columns:
        parts, closing = [*parts[:-1], f"{parts[-1]}{closing[:-1]}", f"columns={dict(columns)!r}"], ")"
    line = f"{opening}{', '.join(parts)}{closing}"
    return line if len(line) <= _LINE else f"{opening.rstrip()}\n    " + ",\n    ".join(parts) + f",\n{closing}"
