"""The functions of a formula: how much it changes, at every record, when one table entry changes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.formulas import (
    Atom,
    Entry,
    Extreme,
    Formula,
    Guard,
    required_with,
    variables_of,
)

if TYPE_CHECKING:
    from wpinq.engines.incremental.compiled.generate import Generator


@dataclass
class Island:
    """A formula, the entries it looks up, and where its changes go.

    `words(writer, names)` gives the words that are passed on, from the name of each variable; `change` is what is
    passed on with them. `key` has the variables that the words depend on, where that is known to be few.
    """

    number: int
    formula: Formula
    entries: tuple[Entry, ...]
    words: Callable[[Writer, dict[int, str]], list[str]]
    target: str
    change: str
    key: tuple[int, ...] | None = None
    leaders: list[int] = field(default_factory=list)


def write_island(island: Island, generator: Generator) -> list[str]:
    """One function for each entry: `island_k_p(A, the entry's words, its old weight, its new weight)`.

    Entries of one table whose functions walk through the same records share one: the first has the others' work too
    (for TbI, the common neighbours of an edge's ends serve all three places of the edge in a triangle).
    """
    walks: dict[tuple[object, ...], list[int]] = {}
    for number in range(len(island.entries)):
        place = _Place(island, number, generator)
        walks.setdefault(place.walk_alone() or (number,), []).append(number)
    island.leaders = [places[0] for places in walks.values()]
    return [
        _write_together(island, places, generator) if len(places) > 1 else _Place(island, places[0], generator).write()
        for places in walks.values()
    ]


def _write_together(island: Island, places: list[int], generator: Generator) -> str:
    first = _Place(island, places[0], generator)
    first.walk_alone()
    lines, depth = list(first.writer.lines), first.depth
    counter = first.writer.counter
    for number in places:
        place = _Place(island, number, generator)
        place.walk_alone()
        start = len(place.writer.lines)
        place.writer.counter = counter
        with ExitStack() as blocks:
            for _ in range(depth):
                blocks.enter_context(place.writer.block(""))
            # a loop of one round, so that skipping ends this place and not the others
            blocks.enter_context(place.writer.block(f"for {place.writer.name('once')} in range(1):"))
            place.skip = "continue"
            place.finish_alone()
        lines += [line for line in place.writer.lines[start:] if line.strip()]
    return "\n".join([first.head(), *lines])


Weights = tuple[str, str]
"""The code of an entry's weight before and after the change."""


class _Place:
    """The function for one entry."""

    def __init__(self, island: Island, place: int, generator: Generator) -> None:
        self.island, self.place, self.generator = island, place, generator
        self.entry = island.entries[place]
        self.writer = generator.writer()
        self.names: dict[int, str] = {}
        self.weights: dict[Entry, Weights] = {self.entry: ("old", "new")}
        self.skip = "return"
        self.guarded: set[int] = set()
        self.deferred = False
        self.met: list[tuple[Entry, str]] = []
        self.doubtful: list[tuple[str, list[Atom]]] = []
        self.depth = 0

    def head(self) -> str:
        """The first lines of the function."""
        words = ", ".join(f"x{i}" for i in range(len(self.entry.variables)))
        return f"@njit\ndef island_{self.island.number}_{self.place}(A, {words}, old, new):"

    def _bind(self) -> None:
        for i, variable in enumerate(self.entry.variables):
            if variable in self.names:
                self._unless(f"x{i} == {self.names[variable]}")
            self.names.setdefault(variable, f"x{i}")

    def walk_alone(self) -> tuple[object, ...] | None:
        """Write the walk through the records that change, filters left for later; what tells it from others.

        None where it walks through nothing, or where what is passed on is summed first.
        """
        self.deferred = True
        self._bind()
        with ExitStack() as loops:
            self._walk(loops)
        if self.depth == 0 or self.island.key is not None:
            return None
        table = self.entry.step if isinstance(self.entry, Atom) else self.entry.join
        return (table, isinstance(self.entry, Atom), *self.writer.lines)

    def finish_alone(self) -> None:
        """Write what is done at each record that `walk_alone` walks through."""
        self.deferred = False
        self._guards(self.island.formula)
        for entry, weight in self.met:
            self._weigh(entry, weight)
        self._finish(at_once=False)

    def write(self) -> str:
        """The text of the function."""
        self._bind()
        key = self.island.key
        at_once = key is not None and set(key) <= set(self.names)
        if at_once:
            self.writer.line("change = 0.0")
        with ExitStack() as loops:
            self._walk(loops)
            self._finish(at_once)
        if at_once:  # whatever is enumerated goes to one record: it is passed on once
            self._pass_on("change")
        return "\n".join([self.head(), *self.writer.lines])

    def _unless(self, condition: str) -> None:
        with self.writer.block(f"if not ({condition}):"):
            self.writer.line(self.skip)

    def _walk(self, loops: ExitStack) -> None:
        """Look up, or walk through, what must hold a record: what is known most of comes first."""
        left = required_with(self.island.formula, self.entry)
        self._guards(self.island.formula)
        while left:
            left.sort(key=self._order)
            atom = left.pop(0)
            if self._unknown(atom) == 0:
                self._look_up(atom)
            else:
                if (
                    not left and not self.deferred
                ):  # every record that is met counts: what is known already is looked up once
                    self._look_up_known(atom)
                self._enumerate(atom, loops)
            self._guards(self.island.formula)
        if not set(self.names) >= variables_of(self.island.formula):
            raise CannotCompile("a formula leaves a record open")  # pragma: no cover - expansions bind every variable

    def _look_up_known(self, aside: Atom) -> None:
        for entry in self.island.entries:
            if entry != aside and entry not in self.weights and all(v in self.names for v in entry.variables):
                self._weigh(entry, self._weight_of(entry))

    def _unknown(self, atom: Atom) -> int:
        return sum(variable not in self.names for variable in atom.variables)

    def _order(self, atom: Atom) -> tuple[int, tuple[int, ...], tuple[str, ...]]:
        """Least unknown first; then by what is known, so that like places walk alike."""
        known = tuple(i for i, variable in enumerate(atom.variables) if variable in self.names)
        return self._unknown(atom), known, tuple(self.names[atom.variables[i]] for i in known)

    def _look_up(self, atom: Atom) -> None:
        writer, table = self.writer, self.generator.table(atom.step)
        words = ", ".join(self.names[v] for v in atom.variables)
        row = writer.bind(f"find_{table.width}(A, {table.name}, {words})", "r")
        self._unless(f"{row} != 0")
        weight = writer.bind(f"as_float(load(A, row_at(A, {table.name}, {row}) + {table.width}))", "w")
        self._weigh(atom, weight)

    def _enumerate(self, atom: Atom, loops: ExitStack) -> None:
        writer, table = self.writer, self.generator.table(atom.step)
        known = tuple(i for i, variable in enumerate(atom.variables) if variable in self.names)
        if not known:
            raise CannotCompile(f"{atom.step.name}: its records are joined with others that share nothing")
        index, at = self.generator.tables.index(table, known)
        key = ", ".join(self.names[atom.variables[i]] for i in known)
        entry = writer.bind(f"find_{index.width}(A, {index.name}, {key})", "r")
        self._unless(f"{entry} != 0")
        row = writer.bind(f"load(A, row_at(A, {index.name}, {entry}) + {index.width})", "r")
        loops.enter_context(writer.block(f"while {row} != 0:"))
        self.skip = "continue"
        self.depth += 1
        base = writer.bind(f"row_at(A, {table.name}, {row})", "b")
        writer.line(f"{row} = load(A, {base} + {at})")
        for i, variable in enumerate(atom.variables):
            if i in known:
                continue
            word = writer.bind(f"load(A, {base} + {i})")
            if variable in self.names:
                self._unless(f"{word} == {self.names[variable]}")
            else:
                self.names[variable] = word
        self._weigh(atom, writer.bind(f"as_float(load(A, {base} + {table.width}))", "w"))

    def _weigh(self, entry: Entry, weight: str) -> None:
        """Note an entry's weights; where it is the very record that changes, those are what it was and will be."""
        mine = self.entry
        twin = (
            entry.step is mine.step
            if isinstance(entry, Atom) and isinstance(mine, Atom)
            else not isinstance(entry, Atom) and not isinstance(mine, Atom) and entry.join is mine.join
        )
        if self.deferred:
            self.met.append((entry, weight))
            return
        if not twin:
            self.weights[entry] = weight, weight
            return
        pairs = zip(entry.variables, mine.variables, strict=True)
        same = " and ".join(f"{self.names[a]} == {self.names[b]}" for a, b in pairs if a != b)
        earlier = self.island.entries.index(entry) < self.place
        further = self._further(entry) if earlier else []
        if earlier and not further:
            self._unless(f"not ({same})")  # counted from there already
            self.weights[entry] = weight, weight
            return
        same = self.writer.bind(same)
        if earlier:
            self.doubtful.append((same, further))
        before, after = (self.writer.bind(f"{end} if {same} else {weight}", "w") for end in ("old", "new"))
        self.weights[entry] = before, after

    def _further(self, entry: Entry) -> list[Atom]:
        """What must hold a record for the place of another entry to come by it, and need not for this one."""
        mine = [self.entry, *required_with(self.island.formula, self.entry)]
        return [atom for atom in required_with(self.island.formula, entry) if atom not in mine]

    def _count_once(self) -> None:
        """Skip what an earlier place counts, where that depends on what it has to walk through."""
        for same, further in self.doubtful:
            found = [same]
            for atom in further:
                table = self.generator.table(atom.step)
                words = ", ".join(self.names[v] for v in atom.variables)
                found.append(f"find_{table.width}(A, {table.name}, {words}) != 0")
            self._unless(f"not ({' and '.join(found)})")

    def _guards(self, formula: Formula) -> None:
        """Skip, as soon as it is known, where a filter makes the whole formula 0."""
        if self.deferred:
            return
        if isinstance(formula, Guard):
            self._guards(formula.child)
            if id(formula) not in self.guarded and all(v in self.names for v in formula.variables):
                self.guarded.add(id(formula))
                self._unless(self._condition(formula))
        elif not isinstance(formula, Atom) and not (isinstance(formula, Extreme) and not formula.both):
            self._guards(formula.left)
            self._guards(formula.right)

    def _condition(self, formula: Guard) -> str:
        assert formula.step.condition is not None
        self.writer.known = {}
        return formula.step.condition(self.writer, [self.names[v] for v in formula.variables])

    def _pass_on(self, change: str) -> None:
        self.writer.known = {}
        words = self.island.words(self.writer, self.names)
        self.writer.line(self.island.target.format(words=", ".join(words), weight=change))

    def _finish(self, at_once: bool) -> None:
        writer = self.writer
        for entry in self.island.entries:
            if entry not in self.weights:
                self._weigh(entry, self._weight_of(entry))
        self._count_once()
        old, new = self._value(self.island.formula)
        writer.line(f"old_value = {old}")
        writer.line(f"new_value = {new}")
        if at_once:
            writer.line(f"change += {self.island.change}")
            return
        with writer.block("if old_value != new_value:"):
            self._pass_on(self.island.change)

    def _weight_of(self, entry: Entry) -> str:
        """The weight of an entry that may be absent."""
        writer, generator = self.writer, self.generator
        table = generator.table(entry.step) if isinstance(entry, Atom) else generator.norm(entry.join)
        words = ", ".join(self.names[v] for v in entry.variables)
        row = writer.bind(f"find_{table.width}(A, {table.name}, {words})", "r")
        return writer.bind(
            f"0.0 if {row} == 0 else as_float(load(A, row_at(A, {table.name}, {row}) + {table.width}))", "w"
        )

    def _value(self, formula: Formula) -> Weights:
        """The formula before and after; one name where nothing in it changes."""
        if isinstance(formula, Atom):
            return self.weights[formula]
        if isinstance(formula, Guard):
            below = self._value(formula.child)
            if id(formula) in self.guarded:
                return below
            condition = self.writer.bind(self._condition(formula), "p")
            return self._both([below], lambda value: f"({value[0]} if {condition} else 0.0)")
        sides = [self._value(formula.left), self._value(formula.right)]
        if isinstance(formula, Extreme):
            choose = "min" if formula.smaller else "max"
            return self._both(sides, lambda value: f"{choose}({value[0]}, {value[1]})")
        if formula.norm is not None:
            sides.append(self.weights[formula.norm])
            return self._both(sides, lambda v: f"({v[0]} * {v[1]} / {v[2]} if {v[2]} > 0.0 else 0.0)")
        norms = self._both(sides, lambda v: f"abs({v[0]}) + abs({v[1]})")
        return self._both([*sides, norms], lambda v: f"({v[0]} * {v[1]} / {v[2]} if {v[2]} > 0.0 else 0.0)")

    def _both(self, parts: list[Weights], text: Callable[[list[str]], str]) -> Weights:
        old = self.writer.bind(text([before for before, _ in parts]), "w")
        if all(before == after for before, after in parts):
            return old, old
        return old, self.writer.bind(text([after for _, after in parts]), "w")
