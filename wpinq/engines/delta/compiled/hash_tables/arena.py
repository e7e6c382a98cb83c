"""Which tables a generated module keeps, and the array that holds them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wpinq.engines.delta.compiled import hash_table as layout, routine as rt
from wpinq.engines.delta.compiled.expressions import Memo
from wpinq.engines.delta.compiled.formulas import Assumptions, Atom, Expander, Formula, Lookup, NamedWords
from wpinq.engines.delta.compiled.steps import GroupStep, JoinStep, Step, Steps
from wpinq.engines.delta.compiled.values import Rows, Writer
from wpinq.errors import PlanError
from wpinq.runtime.arrays import Integers

FIRST_ROWS = 64
FIRST_LOG = 1 << 12
ROWS_LIMIT = 1 << 31


@dataclass(eq=False)
class HashTable:
    """A table: its name and header in generated code, words of a record, words of a row.

    An index holds, for each key, the head of a list of rows; its rows have one word more. `indexes` has the columns of
    each index of the table, and where its links stand in a row.
    """

    name: str
    header: int
    width: int
    stride: int
    logged: bool
    is_index: bool = False
    indexes: list[tuple[tuple[int, ...], HashTable, int]] = field(default_factory=list)

    def find(self, words: Iterable[str]) -> str:
        """The code that finds the row of a record."""
        return rt.call(layout.finding(self.width), self.name, *words)

    def insert(self, words: Iterable[str]) -> str:
        """The code that makes a row for a record."""
        return rt.call(layout.inserting(self.width), self.name, *words)

    def remove(self, words: Iterable[str], row: str) -> str:
        """The code that frees the row of a record."""
        return rt.call(layout.remove, self.name, rt.call(layout.hashing(self.width), *words), row)

    def gather(self, words: Iterable[str], weight: str) -> str:
        """The code that adds to the weight of a record."""
        return rt.call(layout.gathering(self.width), self.name, *words, weight)

    def row(self, row: str) -> str:
        """The code of where a row stands."""
        return rt.call(layout.row_at, self.name, row)

    def after(self, row: str) -> str:
        """The code of where what follows a row's record stands: its weight, or an index's list."""
        return f"{self.row(row)} + {self.width}"

    def clear(self) -> str:
        """The code that empties a table that gathers."""
        return rt.call(layout.clear, self.name)


class HashTables:
    """The tables of one module, in order of their headers."""

    def __init__(self) -> None:
        self.all: list[HashTable] = []

    def add(self, name: str, width: int, more: int, *, logged: bool, is_index: bool = False) -> HashTable:
        """A table whose rows hold a record, and `more` words besides."""
        header = layout.HEADERS + layout.HEADER_WORDS * len(self.all)
        table = HashTable(name, header, width, width + more, logged, is_index)
        self.all.append(table)
        return table

    def index(self, table: HashTable, columns: tuple[int, ...]) -> tuple[HashTable, int]:
        """The index of a table by some of its columns, and where the links stand in a row."""
        for known, index, at in table.indexes:
            if known == columns:
                return index, at
        index = self.add(f"{table.name}_BY_{'_'.join(map(str, columns))}", len(columns), 1, logged=True, is_index=True)
        at = table.stride
        table.stride += 2
        table.indexes.append((columns, index, at))
        return index, at


class Arena:
    """The array of words, laid out anew whenever a table or the log has to grow."""

    def __init__(self, tables: HashTables) -> None:
        self.tables = tables
        self._headers = layout.HEADERS + layout.HEADER_WORDS * len(tables.all)
        self.words: Integers = np.zeros(self._headers, dtype=np.int64)
        self._rows = {table.header: FIRST_ROWS for table in tables.all}
        self._log = FIRST_LOG
        self._lay_out()

    def _lay_out(self) -> None:
        old, headers = self.words, self._headers
        if old[layout.LOG] != old[layout.LOG_START]:
            raise AssertionError("the array is laid out between proposals only")
        size = headers + self._log
        places = {}
        for table in self.tables.all:
            rows = self._rows[table.header]
            places[table.header] = size, size + 2 * rows
            size += 2 * rows + rows * table.stride
        words = self.words = np.zeros(size, dtype=np.int64)
        words[:headers] = old[:headers]
        words[layout.LOG] = words[layout.LOG_START] = headers
        words[layout.LOG_END] = headers + self._log - 1
        for table in self.tables.all:
            self._move(table, old, *places[table.header])

    def _move(self, table: HashTable, old: Integers, slots: int, rows: int) -> None:
        words, h, capacity = self.words, table.header, self._rows[table.header]
        used, old_slots, old_rows = (int(old[h + each]) for each in (layout.CAP, layout.SLOTS, layout.ROWS))
        words[rows : rows + used * table.stride] = old[old_rows : old_rows + used * table.stride]
        filled = old[old_slots : old_slots + 2 * used]
        if used == capacity:
            words[slots : slots + 2 * used] = filled
        elif table.logged:
            _rehash(words[slots : slots + 2 * capacity], filled[filled != 0])
        words[h + layout.SLOTS], words[h + layout.MASK] = slots, 2 * capacity - 1
        words[h + layout.ROWS], words[h + layout.STRIDE] = rows, table.stride
        words[h + layout.CAP] = capacity

    def grow(self, full: int) -> None:
        """Make room in the table that is full, by its header, or in the undo log."""
        if full == layout.LOG_FULL:
            self._log *= 4
        elif self._rows[full] >= ROWS_LIMIT:
            raise PlanError("a step of the plan has more records than the compiled engine can: use a smaller candidate")
        else:
            self._rows[full] *= 2
        self._lay_out()

    def gathered(self, table: HashTable) -> Rows:
        """The records of a table that gathers, a copy, in order."""
        count, start = int(self.words[table.header + layout.COUNT]), int(self.words[table.header + layout.ROWS])
        block = self.words[start : start + (count + 1) * table.stride].reshape(-1, table.stride)
        return _split(block[1:], table)

    def rows(self, table: HashTable) -> Rows:
        """The records of a table, a copy, in no order."""
        words, h = self.words, table.header
        slots = words[words[h + layout.SLOTS] :][: 2 * self._rows[h]]
        numbers = slots[slots != 0] & 0xFFFFFFFF
        start = int(words[h + layout.ROWS])
        block = words[start : start + self._rows[h] * table.stride].reshape(-1, table.stride)
        return _split(block[numbers], table)


def _split(rows: Integers, table: HashTable) -> Rows:
    """The records and weights in rows of a table: what else they hold is left out."""
    return Rows(rows[:, : table.width].copy(), rows[:, table.width].copy().view(np.float64))


def _rehash(slots: Integers, filled: Integers) -> None:
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


# --- the design of a module: its tables, its routines, and the consumers of changes -----------------------------------

#: The code that passes on a record, by its words and the change of its weight.
Consumer = Callable[[Sequence[str], str], str]


@dataclass(eq=False)
class Delta:
    """How a formula changes: the entries that it looks up, and where its changes go.

    `words(writer, names)` gives the words that are passed on, from the name of each variable; `change` is what is
    passed on with them. `key` has the variables that the words depend on, where that is known to be few. `routines`
    has the routine for each entry, by its number; an entry that has none is served by that of another.
    """

    number: int
    formula: Formula
    lookups: tuple[Lookup, ...]
    words: NamedWords
    consumer: Consumer
    change: str
    key: tuple[int, ...] | None = None
    routines: dict[int, rt.Routine] = field(default_factory=dict)


class Design:
    """A module for some steps under assumptions, as far as it is known, and at last its text.

    Each table that is kept has another beside it that gathers its changes; that of a memo gathers what is missing.
    """

    def __init__(self, steps: Steps, assumptions: Assumptions) -> None:
        self.steps, self.assumptions = steps, assumptions
        self.expander = Expander(steps, assumptions)
        self.tables = HashTables()
        self.held: dict[Step, tuple[HashTable, HashTable]] = {}
        self.norms: dict[JoinStep, tuple[HashTable, HashTable]] = {}
        self.sources: dict[str, tuple[int, HashTable, HashTable]] = {}
        self.outputs: list[tuple[HashTable, HashTable]] = []
        self.memos: list[tuple[Memo, HashTable, HashTable]] = []
        self.deltas: list[Delta] = []
        self.consumers: dict[Step, list[Consumer]] = {}
        self.emissions: dict[Step, rt.Routine] = {}
        self.shaves: dict[Step, list[rt.Routine]] = {}
        self.groups: dict[Step, list[tuple[GroupStep, HashTable, rt.Routine]]] = {}
        self.processes: list[rt.Routine] = []
        self.routines: list[rt.Routine] = []
        self.text = ""

    def writer(self) -> Writer:
        """A writer of a routine's body."""
        return Writer(self.steps.dictionary)

    def table_of(self, lookup: Lookup) -> HashTable:
        """The table that an entry of a formula stands in."""
        return (self.held[lookup.step] if isinstance(lookup, Atom) else self.norms[lookup.step])[0]

    def routine(
        self,
        spelling: str,
        lines: Sequence[str],
        words: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
        result: str = rt.VOID,
        entry: bool = False,
    ) -> rt.Routine:
        """A further routine, of words and whatever else it takes."""
        arguments = {rt.STATE: rt.INT64S, **dict.fromkeys(words, rt.INT64), **(more or {})}
        self.routines.append(rt.Routine(spelling, arguments, result, lines, entry))
        return self.routines[-1]

    def emission(self, step: Step) -> rt.Routine:
        """The routine that passes a change of a step's output on."""
        if step not in self.emissions:
            words = layout.words_of("c", step.width)
            self.emissions[step] = self.routine(f"emit_{step.number}", (), words, {"w": rt.FLOAT64})
        return self.emissions[step]
