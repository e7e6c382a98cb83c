"""Which tables a generated module keeps, and the array that holds them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import runtime
from wpinq.errors import PlanError

Words = NDArray[np.int64]

CACHE_LINES = 256
"""Bytes on either side: a line is 64 or 128, and processors fetch two at a time."""
FIRST_ROWS = 64
FIRST_LOG = 1 << 12
ROWS_LIMIT = 1 << 31


def apart(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that shares no cache line with another array: threads that write side by side slow each other down."""
    margin = CACHE_LINES // array.itemsize
    held = np.zeros(array.size + 2 * margin, dtype=array.dtype)
    mine = held[margin : margin + array.size].reshape(array.shape)
    mine[...] = array
    return mine


@dataclass(eq=False)
class Table:
    """A table: its name and header in generated code, words of a record, words of a row.

    `index_of` and `links`: an index holds, for each key, the head of a list of rows; its rows have one word more.
    """

    name: str
    header: int
    width: int
    stride: int
    logged: bool
    indexes: list[tuple[tuple[int, ...], Table, int]] = field(default_factory=list)


class Tables:
    """The tables of one module, in order of their headers."""

    def __init__(self) -> None:
        self.all: list[Table] = []

    def add(self, name: str, width: int, more: int, *, logged: bool) -> Table:
        """A table whose rows hold a record, and `more` words besides."""
        header = runtime.HEADERS + runtime.HEADER_WORDS * len(self.all)
        table = Table(name, header, width, width + more, logged)
        self.all.append(table)
        return table

    def index(self, table: Table, columns: tuple[int, ...]) -> tuple[Table, int]:
        """The index of a table by some of its columns, and where the links stand in a row."""
        for known, index, at in table.indexes:
            if known == columns:
                return index, at
        index = self.add(f"{table.name}_BY_{'_'.join(map(str, columns))}", len(columns), 1, logged=True)
        at = table.stride
        table.stride += 2
        table.indexes.append((columns, index, at))
        return index, at


class Arena:
    """The array of words. It is laid out anew whenever a table or the log has to grow."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.words: Words = np.zeros(0, dtype=np.int64)
        self._rows = {table.header: FIRST_ROWS for table in tables.all}
        self._log = FIRST_LOG
        self._lay_out()

    def _lay_out(self) -> None:
        headers = runtime.HEADERS + runtime.HEADER_WORDS * len(self.tables.all)
        size = headers + self._log
        places = {}
        for table in self.tables.all:
            rows = self._rows[table.header]
            places[table.header] = size, size + 2 * rows
            size += 2 * rows + rows * table.stride
        old, self.words = self.words, np.zeros(size, dtype=np.int64)
        words = self.words
        if len(old):
            words[:headers] = old[:headers]
        log_start = int(old[runtime.LOG_START]) if len(old) else headers
        log_used = int(old[runtime.LOG]) - log_start if len(old) else 0
        if log_used:
            raise AssertionError("the array is laid out between proposals only")
        words[runtime.LOG] = words[runtime.LOG_START] = headers
        words[runtime.LOG_END] = headers + self._log - 1
        for table in self.tables.all:
            self._move(table, old, *places[table.header])

    def _move(self, table: Table, old: Words, slots: int, rows: int) -> None:
        words, h, capacity = self.words, table.header, self._rows[table.header]
        if len(old):
            used, old_slots = int(old[h + runtime.CAP]), int(old[h + runtime.SLOTS])
            old_rows = int(old[h + runtime.ROWS])
            words[rows : rows + used * table.stride] = old[old_rows : old_rows + used * table.stride]
            filled = old[old_slots : old_slots + 2 * used]
            filled = filled[filled != 0]
            if used == capacity:
                words[slots : slots + 2 * used] = old[old_slots : old_slots + 2 * used]
            elif table.logged:
                _rehash(words[slots : slots + 2 * capacity], filled)
        words[h + runtime.SLOTS], words[h + runtime.MASK] = slots, 2 * capacity - 1
        words[h + runtime.ROWS], words[h + runtime.STRIDE] = rows, table.stride
        words[h + runtime.CAP] = capacity

    def grow(self, header: int) -> None:
        """Make room in the table that is full."""
        if self._rows[header] >= ROWS_LIMIT:
            raise PlanError(
                "a step of the plan holds more records than the compiled engine can: use a smaller candidate"
            )
        self._rows[header] *= 2
        self._lay_out()

    def grow_log(self) -> None:
        """Make room in the undo log."""
        self._log *= 4
        self._lay_out()

    def live(self, table: Table) -> int:
        """How many records a table holds."""
        return int(self.words[table.header + runtime.LIVE])

    def gathered(self, table: Table) -> Words:
        """The rows of a table that gathers, a copy, in order."""
        count, start = int(self.words[table.header + runtime.COUNT]), int(self.words[table.header + runtime.ROWS])
        block = self.words[start : start + (count + 1) * table.stride].reshape(-1, table.stride)
        return np.array(block[1:], dtype=np.int64)

    def rows(self, table: Table) -> Words:
        """The rows of a table, a copy, in no order."""
        words, h = self.words, table.header
        slots = words[words[h + runtime.SLOTS] :][: 2 * self._rows[h]]
        numbers = slots[slots != 0] & 0xFFFFFFFF
        start = int(words[h + runtime.ROWS])
        block = words[start : start + self._rows[h] * table.stride].reshape(-1, table.stride)
        return np.array(block[numbers], dtype=np.int64)


def _rehash(slots: Words, filled: Words) -> None:
    """Place slots in a larger block: linear probing, many at a time."""
    mask = len(slots) - 1
    homes = (filled >> 32) & mask
    while len(filled):
        # of those that want one free place, the first gets it; the rest try the next place
        free = slots[homes] == 0
        wanted, first = np.unique(homes[free], return_index=True)
        taken = np.flatnonzero(free)[first]
        slots[wanted] = filled[taken]
        rest = np.ones(len(filled), dtype=bool)
        rest[taken] = False
        filled, homes = filled[rest], (homes[rest] + 1) & mask
