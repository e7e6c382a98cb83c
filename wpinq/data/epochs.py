"""Rows outside of an epoch are left out before anything else is read of them.

Of a row outside only the field `on` is read; one that is null or unreadable there belongs to no epoch. So types, the
cut, `distinct`, facts, sizes and the cap see rows of the epoch alone: no row of another epoch can move, refuse or
displace one. Nothing says how many rows are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from wpinq.data.layout import canonical_value, plain_row
from wpinq.data.people import leaf_of
from wpinq.data.relation import Relation, Tally
from wpinq.data.rows import begin, check_unread
from wpinq.errors import SourceRejected
from wpinq.expr.epochs import Epoch
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue

_LATE = "the data hold rows outside of the epoch, or without a readable time, and the series is strict"


def in_epoch(connection: Any, relation: Relation, epoch: Epoch, row: Type) -> Relation:
    """A relation of the rows of an epoch alone, read from another once.

    The filter stands in the innermost SQL, and again before each condition that ends a query: a database may change
    their order.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Where the relation is read.
    relation : Relation
        The offered rows, of the fields of `row` and, perhaps, ids behind them.
    epoch : Epoch
        The epoch.
    row : Type
        A declared row.
    """
    assert isinstance(row, TupleOf)
    kind = row.elements[row.names.index(epoch.on)]
    on = relation.leaves[leaf_of(row, epoch.on)]
    if on.startswith("CAST(NULL AS "):
        raise SourceRejected(f"{relation.what} has no column {epoch.on!r} of type {kind}: all rows would be left out")
    within, anew = epoch.condition(on, kind), relation.anew
    outside = f"SELECT 1 FROM {relation.source} WHERE ({within}) IS NOT TRUE LIMIT 1"
    if epoch.strict and (relation.found.reasons or connection.execute(outside).fetchall()):
        raise SourceRejected(_LATE)
    return replace(
        relation,
        source=f"(SELECT * FROM {relation.source} WHERE {within}) AS rows_of_epoch",
        unfit=[(f"({within}) AND ({condition})", reason) for condition, reason in relation.unfit],
        checked=[f"CASE WHEN {within} THEN {leaf} END" for leaf in relation.checked],
        number="row_number() OVER () - 1",
        noun="epoch row",
        table=None,
        found=Tally(),  # of rows without readable fields, and so without an epoch
        anew=None if anew is None else lambda: in_epoch(connection, whole_file(anew), epoch, row),
    )


def whole_file(read: Callable[[], Relation]) -> Relation:
    """The relation of a file, or a refusal that counts no rows.

    Rows outside of the epoch would be among them.
    """
    try:
        return read()
    except SourceRejected as refused:
        if not refused.positions:
            raise
    raise SourceRejected("the file cannot be read as a whole, whatever its epochs: read it yourself to see why")


class RowsOfEpoch:
    """The rows of Python, or the columns of their values, that belong to an epoch.

    Attributes
    ----------
    used, late : bool
        Whether a row was looked at, and whether one was not of the epoch.
    """

    def __init__(self, epoch: Epoch, row: Type) -> None:
        assert isinstance(row, TupleOf)
        self._epoch, self._row, self._place = epoch, row, row.names.index(epoch.on)
        self._rows: Iterable[Any] = ()
        self.used = self.late = False

    def over(self, rows: Iterable[Any]) -> RowsOfEpoch:
        """The same over some rows."""
        check_unread(rows)
        begin(rows)
        self._rows = rows
        return self

    def __iter__(self) -> Iterator[Any]:
        return (each for each in self._rows if self._holds(self._time(each)))

    def __call__(self, columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        mask = [*map(self._holds, columns[self._place])]
        return [[value for value, inside in zip(column, mask, strict=True) if inside] for column in columns]

    def check(self) -> None:
        """Refuse rows of other epochs, where the series is strict."""
        if self._epoch.strict and self.late:
            raise SourceRejected(_LATE)

    def _time(self, offered: Any) -> Any:
        with suppress(Exception):  # its own words may quote the row
            given = plain_row(offered, self._row)
            return given[self._epoch.on] if isinstance(given, Mapping) else given[self._place]
        return None

    def _holds(self, value: Any) -> bool:
        self.used, inside, kind = True, False, self._row.elements[self._place]
        with suppress(UnfitValue):  # unreadable: it belongs to no epoch
            inside = self._epoch.holds(canonical_value(value, kind), kind)
        self.late |= not inside
        return inside
