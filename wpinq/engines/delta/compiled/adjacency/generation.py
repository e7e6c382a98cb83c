"""The module of a walk by swaps over neighbour lists, for plans that `decomposition` takes.

What a swap adds to outputs is gathered by output, and in `acc` where the place is known beforehand: first a place for
each constant output, then one for each entry of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.adjacency import decomposition as dc, formula_code as fc, walk_routines as wr
from wpinq.engines.delta.compiled.formulas import Atom, MinMax, atoms_of
from wpinq.engines.delta.compiled.steps import SourceStep, Step, Steps

#: How many constant outputs a module has.
CONSTANTS = rt.name("CONSTANTS")


@dataclass(frozen=True, slots=True)
class Emission:
    """A place that passes words on: to a plan, or to the row of a pair (`target` None).

    `lines` compute the `width` words of every combination of tags of the lists.
    """

    target: int | None
    pair: int
    lists: tuple[int, ...]
    lines: tuple[str, ...]
    width: int


@dataclass(frozen=True, slots=True)
class TaggedEdge:
    """An edge with a tag, beside a row.

    `shares` are its weights by tags, and `columns` are the columns of the row that the tags are.
    """

    pair: int
    shares: dict[tuple[int, ...], float]
    columns: tuple[int, ...]


@dataclass
class WalkCode:
    """The text of a module and what must be known to drive it.

    `bounded` has the number of the tagged edge up to whose shares a row counts for what it is.
    The numbers of parts of norms and of emissions are those by which they go in the module: of the first of their like.
    """

    steps: Steps
    links: dc.Links
    terms: wr.TermLines = field(default_factory=wr.TermLines)
    registry: fc.Registry = field(default_factory=fc.Registry)
    emissions: list[Emission] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    pairs: list[dc.PairTerm] = field(default_factory=list)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    tagged: list[TaggedEdge] = field(default_factory=list)
    bounded: dict[tuple[int, int], int] = field(default_factory=dict)
    invariant: list[int] = field(default_factory=list)
    text: str = ""
    arguments: dict[str, list[str]] = field(default_factory=dict)
    part_numbers: list[int] = field(default_factory=list)
    emission_numbers: list[int] = field(default_factory=list)

    def add(self, number: int, root: Step) -> None:
        """Add the lines for a plan."""
        if root in self.links.invariant:
            self.invariant.append(number)
            return
        plan = dc.Decomposition(self.steps, self.links, root)
        for term in plan.terms:
            if isinstance(term, dc.PairTerm):
                self._add_pair(plan, number, term)
                continue
            edge = len(term.vertices) == 2
            lines = self.terms.edges if edge else self.terms.triangles
            for names in ["uv"] if edge else permutations("uvw"):
                vertices = dict(zip(term.vertices, names, strict=True))
                try:
                    self.terms.products += self._emitted(plan, vertices, number, term.summand, "xy")
                except dc.OutOfReach:
                    lines += self._emitted(plan, vertices, number, term.summand)

    def _emitted(
        self, plan: dc.Decomposition, vertices: dict[int, str], target: int, each: dc.Summand, others: str = ""
    ) -> list[str]:
        """The lines that add a record's value; with others, of a product of differences."""
        writer, value = self._evaluated(plan, vertices, each, others=others)
        both = {*map(rt.name, vertices.values())} <= {*rt.names_in(*writer.lines[:2])}
        single = sum(map(plan.is_invariant, atoms_of(each.formula))) == 2
        if others and not (both and single and not fc.depends_on([*writer.lines[2:], value], "uv")):
            raise dc.OutOfReach("no product of a record of each end")
        probe = writer.beside()
        emission, place = self.emission(writer, target, 0, probe.lines, each.words(probe, writer.words))
        amount = ("" if others else "sign * ") + _scaled(each.share, value)
        if self.emissions[emission].lists:
            output = f"np.uint64({wr.MAPS}[np.uint64({place})])"  # unsigned: no place is counted from the end
            writer.line(rt.call_by_name(wr.add_output, o=output, amount=amount))
        else:
            self.constants.append(emission)
            writer.line(f"{wr.ACC}[{len(self.constants) - 1}] += {amount}")
        return writer.close()

    def _evaluated(
        self, plan: dc.Decomposition, vertices: dict[int, str], each: dc.Summand, ascending: str = "", others: str = ""
    ) -> tuple[fc.FormulaWriter, str]:
        fc.note_norms(plan, self.registry, each.formula)
        writer = fc.FormulaWriter(plan, self.registry, vertices, ascending)
        writer.others = dict(zip(map(rt.name, "uv"), map(rt.name, others), strict=False))
        writer.open(each.formula)
        return writer, writer.value(each.formula)

    # --- pairs ------------------------------------------------------------------------------------------------

    def _add_pair(self, plan: dc.Decomposition, target: int, term: dc.PairTerm) -> None:
        pair = len(self.pairs)
        self.pairs.append(term)
        for direction in (0, 1):
            self._close(plan, target, term, pair, direction)
        needed = {direction for held, direction, _, _ in self.rows if held == pair}
        found = [self._weigh(plan, term, pair, needed, names) for names in ("xy", "yx")]
        if not any(found):
            raise dc.OutOfReach("a sum that is never looked up")

    def _weigh(self, plan: dc.Decomposition, term: dc.PairTerm, pair: int, needed: set[int], names: str) -> bool:
        """Write what a vertex v adds to the row of any pair x, y of its neighbours."""
        wedge = term.wedge
        vertices = dict(zip(wedge.vertices, (names[0], "v", names[1]), strict=True))
        writer, value = self._evaluated(plan, vertices, wedge.summand, ascending="xy")
        probe = writer.beside()
        words = wedge.summand.words(probe, writer.words)
        ends = [words[at] for at in term.ends]
        if set(ends) != {wr.label(rt.name("x")), wr.label(rt.name("y"))}:
            raise dc.OutOfReach("a sum held by something else than its pair")
        direction = int(ends[0] == wr.label(rt.name("y")))
        if direction not in needed:
            return False
        tags = [word for at, word in enumerate(words) if at not in term.ends]
        _, place = self.emission(writer, None, pair, probe.lines, tags)
        column = f"{wr.ROW_STARTS}[{2 * pair + direction}] + {wr.MAPS}[{place}]"
        writer.line(f"{wr.WEIGHTS}[v, {column}] += {_scaled(wedge.summand.share, value)}")
        made = writer.close()
        if fc.depends_on(made, "xy"):
            raise dc.OutOfReach("a sum that depends on the ends of the pair")
        self.terms.weights += made
        return True

    def _close(self, plan: dc.Decomposition, target: int, term: dc.PairTerm, pair: int, direction: int) -> None:
        """Write what the row of an edge x, y adds to the output."""
        first, second = (term.held.variables[at] for at in term.ends)
        vertices = {first: "xy"[direction], second: "yx"[direction]}
        formula = term.summand.formula
        if dc.norms_of(formula):
            raise dc.OutOfReach("a norm beside a sum that is held")
        links = [atom for atom in dict.fromkeys(atoms_of(formula)) if plan.is_link(atom)]
        if not all(_shares(plan, atom, vertices) for atom in links):
            return
        made = [f"    at = np.uint64({wr.ROW_STARTS}[{2 * pair + direction}])"]
        writer = fc.FormulaWriter(plan, self.registry, vertices, ascending="xy")
        writer.open_row(pair, term.held)
        tag = writer.slots[0][1]
        for atom in links:
            if plan.link(atom).width > 2:
                columns = _columns(term, atom.variables[2:])
                self.tagged.append(TaggedEdge(pair, _shares(plan, atom, vertices), columns))
                writer.weights[atom] = f"{wr.SHARES}[{len(self.tagged) - 1}, {tag}]"
                sides = {formula.left, formula.right} if isinstance(formula, MinMax) and formula.smaller else ()
                if sides == {term.held, atom} and term.summand.share == 1.0:
                    self.bounded[pair, direction] = len(self.tagged) - 1
        value = writer.value(formula)
        probe = writer.beside()
        words = term.summand.words(probe, writer.words)
        emission, _ = self.emission(writer, target, pair, probe.lines, words)
        writer.line(f"{wr.ACC}[np.uint64({CONSTANTS}) + at + {tag}] += sign * {_scaled(term.summand.share, value)}")
        made += writer.close()
        if fc.depends_on(made, "xy"):
            raise dc.OutOfReach("a closed pair that depends on its ends")
        self.terms.closes += made
        self.rows.append((pair, direction, target, emission))

    # --- the module -------------------------------------------------------------------------------------------

    def emission(
        self, writer: fc.FormulaWriter, target: int | None, pair: int, lines: Sequence[str], words: Sequence[str]
    ) -> tuple[int, str]:
        """The number of a place that passes on these words, and the code of its position in `maps`."""
        used = rt.names_in(*lines, *words)
        if any(vertex in used or wr.label(vertex) in used for vertex in writer.vertices.values()):
            raise dc.OutOfReach("vertices in the output")
        tags = {each: writer.tags[each] for each in writer.tags if each in used}
        slots = sorted({slot for slot, _ in tags.values()})
        made, indent, index = ["    n = 0"], "    ", ""
        for place, slot in enumerate(slots):
            number, tag = writer.slots[slot]
            made.append(f"{indent}for t_{place} in range({wr.SIZES}[{2 * number}]):")
            indent += "    "
            index = f"({index}) * {wr.SIZES}[{2 * number}] + {tag}" if index else tag
        for each, (slot, column) in tags.items():
            start = f"{wr.SIZES}[{2 * writer.slots[slot][0] + 1}]"
            made.append(f"{indent}{each} = {wr.WORDS}[{start} + t_{slots.index(slot)}, {column}]")
        made += [indent[4:] + line for line in lines]
        made += [f"{indent}records[n, {place}] = {word}" for place, word in enumerate(words)]
        made.append(f"{indent}n += 1")
        numbers = tuple(writer.slots[slot][0] for slot in slots)
        self.emissions.append(Emission(target, pair, numbers, tuple(fc.renumbered(made, writer.made)), len(words)))
        emission = len(self.emissions) - 1
        return emission, f"{wr.OFFSETS}[{emission}] + {index or '0'}"

    def finish(self) -> None:
        """Write the text."""
        routines: list[rt.Routine] = []
        parts = [["    total = 0.0", *part.lines, "    return total"] for part in self.registry.parts]
        self.part_numbers = [parts.index(lines) for lines in parts]
        lines = ["    for n in range(len(totals)):"]
        for number in dict.fromkeys(self.part_numbers):
            routines.append(wr.routine(f"part_{number}", {"v": rt.UINT32}, parts[number], result=rt.FLOAT64))
            called = rt.call_by_name(routines[-1], v="np.uint32(n)")
            lines += [f"        if which == {number}:", f"            totals[n] = {called}"]
        if parts:
            routines.append(wr.routine("sum_part", {"which": rt.INT64, "totals": rt.FLOAT64S}, lines, entry=True))
        records = [each.lines for each in self.emissions]
        self.emission_numbers = [records.index(lines) for lines in records]
        chosen: list[str] = []
        for number in dict.fromkeys(self.emission_numbers):
            routines.append(wr.routine(f"records_{number}", {"records": rt.INT64_ROWS}, records[number]))
            chosen += [f"    if which == {number}:", f"        {rt.call_by_name(routines[-1])}"]
        routines.append(wr.routine("list_records", {"which": rt.INT64, "records": rt.INT64_ROWS}, chosen, entry=True))
        routines += wr.WalkRoutines(self.terms).all
        self.text = rt.module_text(routines, {rt.spelled(CONSTANTS): len(self.constants)}, apart=True)
        self.arguments = {each.spelling: [*map(rt.spelled, each.arguments)] for each in routines if each.entry}


def generate(steps: Steps, source: str, symmetric: bool) -> WalkCode:
    """The walk over neighbour lists for some plans.

    OutOfReach where it is no such walk for one of them.
    """
    sources = [step for step in steps.all if isinstance(step, SourceStep)]
    if [(step.source, step.width) for step in sources] != [(source, 2)]:
        raise dc.OutOfReach("sources of another shape")
    code = WalkCode(steps, dc.Links(steps.all, source, symmetric, steps.dictionary))
    try:
        for number, root in enumerate(steps.roots):
            code.add(number, root)
    except rt.CannotCompile as reason:
        raise dc.OutOfReach(str(reason)) from None
    code.finish()
    return code


def _scaled(share: float, value: str) -> str:
    return value if share == 1.0 else f"{share!r} * {value}"


def _shares(plan: dc.Decomposition, atom: Atom, vertices: dict[int, str]) -> dict[tuple[int, ...], float]:
    """What the link weighs in its direction, by its tags."""
    turned = vertices[atom.variables[0]] == "y"
    return {tags: share for (way, tags), share in plan.link(atom).shares.items() if way == turned}


def _columns(term: dc.PairTerm, variables: tuple[int, ...]) -> tuple[int, ...]:
    """Which tags of the row these are."""
    tags = [v for at, v in enumerate(term.held.variables) if at not in term.ends]
    if not set(variables) <= set(tags):
        raise dc.OutOfReach("a tag of an edge that the row has not")
    return tuple(tags.index(v) for v in variables)
