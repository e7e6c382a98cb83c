"""A table as it is offered to DuckDB, whatever library it is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import Type
from wpinq.ingest.counted_columns import CountedKind

PIECE = 100_000
"""How many rows are read at a time."""


@dataclass(slots=True)
class OfferedTable:
    """A table with the columns of a layout, in its order.

    Attributes
    ----------
    what : str
        What messages call it.
    offered : object
        What DuckDB scans, or gives it; None where it is to be read in Python.
    lists : callable, optional
        The Python values of a column.
    notes : list of str
        What the messages add of each column.
    nan_is_null : sequence of bool
        For each column.
    counted : sequence of CountedKind or None
        For each column, what its integers count, where it is offered as these.
    once : bool
        Whether what is offered can be read only once.
    again : callable, optional
        Another of these with the same rows, which costs as much as the first.
    small : bool
        Whether it is in memory.
    first : callable, optional
        The first rows of what was offered last, read on the way; None where there are none.
    gathered : callable, optional
        All of it as an Arrow table of its own, where that takes no more than some bytes; else None.
    owned : pyarrow.Table, optional
        That table, which nobody else has.
    types : sequence of Type, optional
        What the columns are read as, where not as the types of the layout: as what stands for values of these, null for
        all that is unfit. What is read `again` is none of it.
    """

    what: str
    offered: Any
    lists: Callable[[int], Sequence[Any]] | None = None
    notes: Sequence[str] = ()
    nan_is_null: Sequence[bool] = ()
    counted: Sequence[CountedKind | None] = ()
    once: bool = False
    again: Callable[[], Any] | None = None
    small: bool = True
    first: Callable[[], Any] | None = None
    gathered: Callable[[int], Any] | None = None
    owned: Any = field(default=None, repr=False)
    types: Sequence[Type] | None = None


def of_spark(data: object) -> bool:
    """Whether an object is Spark's, which stays there."""
    return any(base.__module__.partition(".")[0] == "pyspark" for base in type(data).__mro__)


def unsupported(data: object) -> SourceRejected:
    if of_spark(data):
        return SourceRejected(
            'a frame of Spark stays in Spark: offer it, as it is, where engine="spark"; what EdgeList would do, Spark '
            "does before (functions.least and greatest, dropDuplicates, of people with the id among its columns)"
        )
    return SourceRejected(
        f"a {type(data).__module__}.{type(data).__qualname__} cannot be read: offer a pandas or polars frame, an "
        "Arrow table or batches, a DuckDB relation, a numpy array without mask, or plain rows"
    )
