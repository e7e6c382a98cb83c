"""Rows outside of an epoch are left out before anything else is read of them.

Of a row outside only the field `on` is read; one that is null or unreadable there belongs to no epoch. So types, the
cut, `distinct`, facts, sizes and the cap see rows of the epoch alone: no row of another epoch can move, refuse or
displace one. Nothing says how many rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from wpinq.data.layout import canonical_value, plain_row
from wpinq.data.people import leaf_of
from wpinq.data.rejection import Tally
from wpinq.data.relation import Relation
from wpinq.data.rows import begin, check_unread
from wpinq.errors import SourceRejected
from wpinq.expr.epochs import Epoch
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue
from wpinq.plan.operators.source import Source

_LATE = "the data hold rows outside of the epoch, or without a readable time, and the series is strict"


def offered_epoch(declared: Source) -> Epoch | None:
    """The epoch of a source, with `on` by the name of its column in the data."""
    epoch, row = declared.epoch, declared.row
    if epoch is None or declared.columns is None or not isinstance(row, TupleOf):
        return epoch
    return replace(epoch, on=declared.columns[row.names.index(epoch.on)])


def _field(epoch: Epoch, row: Type) -> tuple[int, Type]:
    """The place and type of the field `on`; `row` has the names of the declaration."""
    assert isinstance(row, TupleOf)
    place = row.names.index(epoch.on)
    return place, row.elements[place]


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
    _, kind = _field(epoch, row)
    on = relation.leaves[leaf_of(row, epoch.on)]
    if on.startswith("CAST(NULL AS "):
        raise SourceRejected(f"{relation.what} has no column {epoch.on!r} of type {kind}: all rows would be left out")
    within, anew = epoch.condition(on, kind), relation.anew
    if (
        epoch.strict
        and connection.execute(f"SELECT 1 FROM {relation.source} WHERE ({within}) IS NOT TRUE LIMIT 1").fetchall()
    ):
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
        anew=None if anew is None else lambda: in_epoch(connection, anew(), epoch, row),
    )


class RowsOfEpoch:
    """The rows of Python that belong to an epoch, in order.

    Attributes
    ----------
    late : bool
        Whether another row was found.
    """

    def __init__(self, rows: Iterable[Any], epoch: Epoch, row: Type) -> None:
        check_unread(rows)
        begin(rows)
        assert isinstance(row, TupleOf)
        self._rows, self._epoch, self._row, self.late = rows, epoch, row, False

    def __iter__(self) -> Iterator[Any]:
        for each in self._rows:
            if self._holds(each):
                yield each
            else:
                self.late = True

    def check(self) -> None:
        """Refuse rows of other epochs, where the series is strict."""
        if self._epoch.strict and self.late:
            raise SourceRejected(_LATE)

    def _holds(self, offered: Any) -> bool:
        place, kind = _field(self._epoch, self._row)
        with suppress(Exception):  # unreadable: it belongs to no epoch; its words may quote the row
            given = plain_row(offered, self._row)
            value = given[self._epoch.on] if isinstance(given, Mapping) else given[place]
            return self._epoch.holds(canonical_value(value, kind), kind)
        return False


class ColumnsOfEpoch:
    """A function of columns of Python values that keeps the rows of an epoch.

    Attributes
    ----------
    used : bool
        Whether it was called, so that the rows need no other filter.
    """

    def __init__(self, epoch: Epoch, row: Type) -> None:
        self._epoch, self.used, (self._place, self._kind) = epoch, False, _field(epoch, row)

    def __call__(self, columns: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        mask, self.used = [*map(self._holds, columns[self._place])], True
        if self._epoch.strict and not all(mask):
            raise SourceRejected(_LATE)
        return [[value for value, inside in zip(column, mask, strict=True) if inside] for column in columns]

    def _holds(self, value: Any) -> bool:
        with suppress(UnfitValue):
            return self._epoch.holds(canonical_value(value, self._kind), self._kind)
        return False
