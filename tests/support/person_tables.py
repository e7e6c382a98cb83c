"""The dataset of people with several tables, in Python: the meaning that every way of reading is held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import wpinq as wp
from tests.support.people import place
from wpinq.expr.person_tables import PersonTable, PersonTables
from wpinq.expr.types import TupleOf
from wpinq.expr.values import Value, order_key
from wpinq.plan.operators.source import Source

Rows = Sequence[tuple[Any, Value]]
"""The id of a row, and the row in canonical form."""


def people_of(source: wp.Query, tables: Mapping[str, Rows]) -> dict[Value, float]:
    """The dataset: for each id in any table, one record of what counts of its rows."""
    declared = source.plan.operator
    assert isinstance(declared, Source)
    assert isinstance(declared.person, PersonTables)
    types = declared.person.table_rows(declared.record)
    ids = {who for rows in tables.values() for who, _ in rows}
    records: Counter[Value] = Counter()
    for who in ids:
        fields: list[Value] = []
        for table in declared.person.tables:
            own = [row for other, row in tables[table.name] if other == who]
            kept = kept_of_table(own, types[table.name], table)
            fields.append(kept if table.at_most > 1 else kept[0] if kept else None)
        records[tuple(fields)] += 1
    return {record: float(times) for record, times in records.items()}


def kept_of_table(rows: Sequence[Any], type_: TupleOf, table: PersonTable) -> tuple[Value, ...]:
    """The rows of one person in one table that count, in canonical order."""
    copies = {row: 1 if table.distinct else times for row, times in Counter(rows).items()}
    numbered = [(row, number) for row, times in copies.items() for number in range(1, times + 1)]

    def rank(copy: tuple[Any, int]) -> tuple[Any, ...]:
        row, number = copy
        ordered: tuple[Any, ...] = ()
        if table.keep:
            value = row[type_.names.index(table.by)]
            ordered = ((value is None, Reversed(value) if table.keep == "last" and value is not None else value),)
        return (*ordered, place(row, number, type_), order_key(row), number)

    numbered.sort(key=rank)
    if table.distinct:
        firsts: dict[Any, tuple[Any, int]] = {}
        for copy in numbered:
            firsts.setdefault(copy[0][type_.names.index(table.distinct)], copy)
        numbered = [*firsts.values()]
    return tuple(sorted((row for row, _ in numbered[: table.at_most]), key=order_key))


class Reversed:
    """A value that sorts before those that it is greater than."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]
