"""What a generated module holds: its tables, its routines, and what passes changes on to what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wpinq.engines.incremental.compiled.routines.routine import FLOAT64, INT64, INT64S, STATE, VOID, Routine
from wpinq.engines.incremental.compiled.routines.store import words_of
from wpinq.engines.incremental.compiled.steps.formulas import Assumptions, Atom, Expander, Formula, Lookup, NamedWords
from wpinq.engines.incremental.compiled.steps.steps import GroupStep, JoinStep, Step, Steps
from wpinq.engines.incremental.compiled.tables.arena import HashTable, HashTables
from wpinq.engines.incremental.compiled.words.code import Writer

Consumer = Callable[[Sequence[str], str], str]
"""The code that passes on a record, by its words and the change of its weight."""


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
    routines: dict[int, Routine] = field(default_factory=dict)


class Design:
    """A module for some steps under assumptions, as far as it is known.

    Each table that is kept has another beside it that gathers its changes.
    """

    def __init__(self, steps: Steps, assumptions: Assumptions) -> None:
        self.steps, self.assumptions = steps, assumptions
        self.expander = Expander(steps, assumptions)
        self.tables = HashTables()
        self.held: dict[Step, tuple[HashTable, HashTable]] = {}
        self.norms: dict[JoinStep, tuple[HashTable, HashTable]] = {}
        self.outputs: list[tuple[HashTable, HashTable]] = []
        self.deltas: list[Delta] = []
        self.consumers: dict[Step, list[Consumer]] = {}
        self.emissions: dict[Step, Routine] = {}
        self.shaves: dict[Step, list[Routine]] = {}
        self.groups: dict[Step, list[tuple[GroupStep, HashTable, Routine]]] = {}
        self.processes: list[Routine] = []
        self.routines: list[Routine] = []

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
        result: str = VOID,
        entry: bool = False,
    ) -> Routine:
        """A further routine, of words and whatever else it takes."""
        arguments = {STATE: INT64S, **dict.fromkeys(words, INT64), **(more or {})}
        self.routines.append(Routine(spelling, arguments, result, lines, entry))
        return self.routines[-1]

    def emission(self, step: Step) -> Routine:
        """The routine that passes a change of a step's output on."""
        if step not in self.emissions:
            self.emissions[step] = self.routine(f"emit_{step.number}", (), words_of("c", step.width), {"w": FLOAT64})
        return self.emissions[step]
