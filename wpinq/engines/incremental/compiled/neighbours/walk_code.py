"""The code of a walk over neighbour lists: what was written for its plans, and the module that it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wpinq.engines.incremental.compiled.neighbours.decomposition import OutOfReach, PairTerm
from wpinq.engines.incremental.compiled.neighbours.formula_code import FormulaWriter, Registry
from wpinq.engines.incremental.compiled.neighbours.links import Links
from wpinq.engines.incremental.compiled.neighbours.norms import renumbered
from wpinq.engines.incremental.compiled.neighbours.walk_routines import (
    OFFSETS,
    SIZES,
    WORDS,
    TermLines,
    WalkRoutines,
    label,
    routine,
)
from wpinq.engines.incremental.compiled.routines.names import name, names_in, spelled
from wpinq.engines.incremental.compiled.routines.routine import (
    FLOAT64,
    FLOAT64S,
    INT64,
    INT64_ROWS,
    UINT32,
    Routine,
    call_by_name,
    module_text,
)

CONSTANTS = name("CONSTANTS")
"""How many constant outputs a module has."""


@dataclass(frozen=True, slots=True)
class Emission:
    """A place that passes something on: for which plan (None: the row of a pair), by which lists, how many words.

    `lines` compute the words of every combination of tags of the lists.
    """

    target: int | None
    pair: int
    lists: tuple[int, ...]
    lines: tuple[str, ...]
    width: int


@dataclass(frozen=True, slots=True)
class TaggedEdge:
    """An edge with a tag, beside a row: what it weighs by its tags, and which columns of the row they are."""

    pair: int
    shares: dict[tuple[int, ...], float]
    columns: tuple[int, ...]


@dataclass
class WalkCode:
    """The text of a module and what must be known to drive it.

    The numbers of parts of norms and of emissions are those by which they go in the module: of the first of their like.
    """

    links: Links
    terms: TermLines = field(default_factory=TermLines)
    registry: Registry = field(default_factory=Registry)
    emissions: list[Emission] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    pairs: list[PairTerm] = field(default_factory=list)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    tagged: list[TaggedEdge] = field(default_factory=list)
    invariant: list[int] = field(default_factory=list)
    text: str = ""
    arguments: dict[str, list[str]] = field(default_factory=dict)
    part_numbers: list[int] = field(default_factory=list)
    emission_numbers: list[int] = field(default_factory=list)

    def emission(
        self, writer: FormulaWriter, target: int | None, pair: int, lines: Sequence[str], words: Sequence[str]
    ) -> tuple[int, str]:
        """The number of a place that passes on these words, and the code of where in `maps` they stand."""
        used = names_in(*lines, *words)
        if any(vertex in used or label(vertex) in used for vertex in writer.vertices.values()):
            raise OutOfReach("vertices in the output")
        tags = {each: writer.tags[each] for each in writer.tags if each in used}
        slots = sorted({slot for slot, _ in tags.values()})
        made, indent, index = ["    n = 0"], "    ", ""
        for place, slot in enumerate(slots):
            number, tag = writer.slots[slot]
            made.append(f"{indent}for t_{place} in range({SIZES}[{2 * number}]):")
            indent += "    "
            index = f"({index}) * {SIZES}[{2 * number}] + {tag}" if index else tag
        for each, (slot, column) in tags.items():
            start = f"{SIZES}[{2 * writer.slots[slot][0] + 1}]"
            made.append(f"{indent}{each} = {WORDS}[{start} + t_{slots.index(slot)}, {column}]")
        made += [indent[4:] + line for line in lines]
        made += [f"{indent}records[n, {place}] = {word}" for place, word in enumerate(words)]
        made.append(f"{indent}n += 1")
        numbers = tuple(writer.slots[slot][0] for slot in slots)
        self.emissions.append(Emission(target, pair, numbers, tuple(renumbered(made, writer.made)), len(words)))
        emission = len(self.emissions) - 1
        return emission, f"{OFFSETS}[{emission}] + {index or '0'}"

    def finish(self) -> None:
        """Write the text."""
        routines: list[Routine] = []
        parts = [["    total = 0.0", *part.lines, "    return total"] for part in self.registry.parts]
        self.part_numbers = [parts.index(lines) for lines in parts]
        lines = ["    for n in range(len(totals)):"]
        for number in dict.fromkeys(self.part_numbers):
            routines.append(routine(f"part_{number}", {"v": UINT32}, parts[number], result=FLOAT64))
            called = call_by_name(routines[-1], v="np.uint32(n)")
            lines += [f"        if which == {number}:", f"            totals[n] = {called}"]
        if parts:
            routines.append(routine("sum_part", {"which": INT64, "totals": FLOAT64S}, lines, entry=True))
        records = [each.lines for each in self.emissions]
        self.emission_numbers = [records.index(lines) for lines in records]
        chosen: list[str] = []
        for number in dict.fromkeys(self.emission_numbers):
            routines.append(routine(f"records_{number}", {"records": INT64_ROWS}, records[number]))
            chosen += [f"    if which == {number}:", f"        {call_by_name(routines[-1])}"]
        routines.append(routine("list_records", {"which": INT64, "records": INT64_ROWS}, chosen, entry=True))
        routines += WalkRoutines(self.terms).all
        self.text = module_text(routines, {spelled(CONSTANTS): len(self.constants)}, apart=True)
        self.arguments = {each.spelling: [*map(spelled, each.arguments)] for each in routines if each.entry}
