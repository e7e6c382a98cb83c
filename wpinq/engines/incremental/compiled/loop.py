"""The text of a walk by swaps over neighbour lists, for plans that are sums of the terms of `terms`.

Nothing is written before a swap is accepted but the rows that it touches, which are put back if it is not. Outputs are
numbered; what a swap adds to them is gathered in `delta` at the places `touched`, and in `acc` where the place is known
beforehand: first a place for each constant output, then one for each entry of a row.

The four ends of a swap are distinct, so the common neighbours of a pair that is removed lose no other edge to it. Of
those of a pair that is added, the ones that the swap cuts off are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from wpinq.engines.incremental.compiled import loop_functions, loop_text
from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.formulas import Atom, Norm, atoms_of
from wpinq.engines.incremental.compiled.linear import Linear
from wpinq.engines.incremental.compiled.steps import SourceStep, Step, Steps
from wpinq.engines.incremental.compiled.terms import EdgeTerm, OutOfReach, PairTerm, Sum, Terms, TriangleTerm, norms_of
from wpinq.engines.incremental.compiled.values import Part, Registry, Scope, names_any


@dataclass(frozen=True, slots=True)
class Site:
    """A place that passes something on: for which plan (None: the row of a pair), by which lists, and what words."""

    target: int | None
    pair: int
    lists: tuple[int, ...]
    lines: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tagged:
    """An edge with a tag, beside a row: what it weighs by its tags, and which columns of the row they are."""

    pair: int
    shares: dict[tuple[int, ...], float]
    columns: tuple[int, ...]


@dataclass
class Loop:
    """The text of a module and what must be known to drive it."""

    registry: Registry
    linear: Linear
    sites: list[Site] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    pairs: list[PairTerm] = field(default_factory=list)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    tagged: list[Tagged] = field(default_factory=list)
    frozen: list[int] = field(default_factory=list)
    text: str = ""
    arguments: dict[str, list[str]] = field(default_factory=dict)
    part_numbers: list[int] = field(default_factory=list)
    site_numbers: list[int] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        """The parts of norms."""
        return self.registry.parts


def generate(steps: Steps, source: str, symmetric: bool) -> Loop | None:
    """The walk over neighbour lists for some plans; None where one of them is out of its reach."""
    sources = [step for step in steps.all if isinstance(step, SourceStep)]
    if [(step.source, step.width) for step in sources] != [(source, 2)]:
        return None
    linear = Linear(steps.all, source, symmetric, steps.dictionary)
    builder = _Builder(steps, linear)
    try:
        for number, root in enumerate(steps.roots):
            builder.add(number, root)
    except (OutOfReach, CannotCompile):
        return None
    return builder.finish()


class _Builder:
    def __init__(self, steps: Steps, linear: Linear) -> None:
        self._steps, self._linear = steps, linear
        self._loop = Loop(Registry(), linear)
        self._slots: list[list[int]] = []
        self._edges: list[str] = []
        self._triangles: list[str] = []
        self._weights: list[str] = []
        self._closes: list[str] = []

    def add(self, number: int, root: Step) -> None:
        """Add the text for a plan."""
        if root in self._linear.frozen:
            self._loop.frozen.append(number)
            return
        held = self._lengths()
        try:
            self._add(number, root, inlined=True)
        except (OutOfReach, CannotCompile):
            self._cut(held)
            self._add(number, root, inlined=False)

    def _parts(self) -> list[list[Any]]:
        loop, registry = self._loop, self._loop.registry
        lists = (self._edges, self._triangles, self._weights, self._closes)
        more = (self._slots, loop.sites, loop.constants, loop.pairs, loop.rows, loop.tagged)
        return [*lists, *more, registry.lists, registry.norms, registry.parts]

    def _lengths(self) -> list[int]:
        return [len(part) for part in self._parts()]

    def _cut(self, lengths: list[int]) -> None:
        for part, length in zip(self._parts(), lengths, strict=True):
            del part[length:]

    def _add(self, number: int, root: Step, inlined: bool) -> None:
        terms = Terms(self._steps, self._linear, root, inlined)
        for term in terms.all:
            if isinstance(term, EdgeTerm):
                u, v = term.ends
                scope = Scope(terms, self._loop.registry, {u: "u", v: "v"}, {"lu": -1, "lv": -2}, 2)
                self._edges += self._emitted(scope, number, term.sum)
            elif isinstance(term, TriangleTerm):
                for names in permutations("uvw"):
                    vertices = dict(zip(term.vertices, names, strict=True))
                    scope = Scope(terms, self._loop.registry, vertices, {"lu": -1, "lv": -2, "lw": -3})
                    self._triangles += self._emitted(scope, number, term.sum)
            else:
                self._add_pair(terms, number, term)

    def _emitted(self, scope: Scope, target: int, each: Sum) -> list[str]:
        """The lines that add one record's value to the output."""
        scope.open(each.formula)
        value = scope.value(each.formula)
        site = self._site(scope, target, 0, *self._words(scope, each))
        amount = f"sign * {_scaled(each.share, value)}"
        if not self._loop.sites[site].lists:
            self._loop.constants.append(site)
            scope.writer.line(f"acc[{len(self._loop.constants) - 1}] += {amount}")
        else:
            line = scope.writer.line
            line(f"o = maps[{self._index(scope, site)}]")
            with scope.writer.block("if stamps[o] != stamp:"):
                line("stamps[o] = stamp")
                line("delta[o] = 0.0")
                line("touched[counts[0]] = o")
                line("counts[0] += 1")
            line(f"delta[o] += {amount}")
        return scope.close()

    def _words(self, scope: Scope, each: Sum) -> tuple[list[str], list[str]]:
        writer = Writer(self._steps.dictionary)
        writer.order, writer.counter, writer.remembers = scope.writer.order, scope.writer.counter, False
        return writer.lines, each.words(writer, scope.names)

    def _site(self, scope: Scope, target: int | None, pair: int, lines: list[str], words: list[str]) -> int:
        if names_any([*lines, *words], *scope.vertices.values()):
            raise OutOfReach("vertices in the output")
        used = [name for name in scope.tags if any(re.search(rf"\b{name}\b", text) for text in (*lines, *words))]
        slots = sorted({scope.tags[name][0] for name in used})
        bound = []
        for name in used:
            slot, place = scope.tags[name]
            number = scope.slots[slot][0]
            bound.append(f"    {name} = words[sizes[{2 * number + 1}] + t_{slots.index(slot)}, {place}]")
        self._slots.append(slots)
        numbers = tuple(scope.slots[slot][0] for slot in slots)
        self._loop.sites.append(Site(target, pair, numbers, (*bound, *lines), tuple(words)))
        return len(self._loop.sites) - 1

    def _index(self, scope: Scope, site: int) -> str:
        index = ""
        for slot in self._slots[site]:
            number, tag = scope.slots[slot]
            index = f"({index}) * sizes[{2 * number}] + {tag}" if index else tag
        return f"offsets[{site}] + {index or '0'}"

    # --- pairs ------------------------------------------------------------------------------------------------

    def _add_pair(self, terms: Terms, target: int, term: PairTerm) -> None:
        pair = len(self._loop.pairs)
        self._loop.pairs.append(term)
        for direction in (0, 1):
            self._close(terms, target, term, pair, direction)
        needed = {direction for held, direction, _, _ in self._loop.rows if held == pair}
        found = [self._weigh(terms, term, pair, needed, names) for names in ("xy", "yx")]
        if not any(found):
            raise OutOfReach("a sum that is never looked up")

    def _weigh(self, terms: Terms, term: PairTerm, pair: int, needed: set[int], names: str) -> bool:
        """Write what a vertex v adds to the row of any pair x, y of its neighbours."""
        wedge = term.wedge
        vertices = {wedge.first: names[0], wedge.last: names[1], wedge.middle: "v"}
        scope = Scope(terms, self._loop.registry, vertices, {"lx": 0, "ly": 1, "lv": -1})
        scope.open(wedge.sum.formula)
        value = scope.value(wedge.sum.formula)
        lines, words = self._words(scope, wedge.sum)
        ends = tuple(words[at] for at in term.ends)
        if set(ends) != {"lx", "ly"}:
            raise OutOfReach("a sum held by something else than its pair")
        direction = int(ends == ("ly", "lx"))
        if direction not in needed:
            return False
        tags = [word for at, word in enumerate(words) if at not in term.ends]
        site = self._site(scope, None, pair, lines, tags)
        place = f"row_at[{2 * pair + direction}] + maps[{self._index(scope, site)}]"
        scope.writer.line(f"weights[v, {place}] += {_scaled(wedge.sum.share, value)}")
        made = scope.close()
        if names_any(made, "x", "y"):
            raise OutOfReach("a sum that depends on the ends of the pair")
        self._weights += made
        return True

    def _close(self, terms: Terms, target: int, term: PairTerm, pair: int, direction: int) -> None:
        """Write what the row of an edge x, y adds to the output."""
        first, second = (term.held.variables[at] for at in term.ends)
        vertices = {first: "xy"[direction], second: "yx"[direction]}
        links = [atom for atom in dict.fromkeys(atoms_of(term.sum.formula)) if terms.is_link(atom)]
        if not all(_shares(terms, atom, vertices) for atom in links):
            return
        totals: dict[Norm, str] = {}
        head: list[str] = [f"    at = row_at[{2 * pair + direction}]"]
        for norm in norms_of(term.sum.formula):
            name = f"n{pair}_{direction}_{len(totals)}"
            head += [f"    {name} = 0.0", *self._total(terms, term, pair, norm, vertices, name)]
            head.append(f"    {name} = 1.0 / {name} if {name} > 0.0 else 0.0")
            totals[norm] = name
        scope = self._over_row(terms, term.held, pair, vertices)
        scope.norms = totals
        for atom in links:
            if terms.link(atom).width > 2:
                columns = _columns(term, atom.variables[2:])
                self._loop.tagged.append(Tagged(pair, _shares(terms, atom, vertices), columns))
                scope.weights[atom] = f"shares[{len(self._loop.tagged) - 1}, {scope.slots[0][1]}]"
        value = scope.value(term.sum.formula)
        site = self._site(scope, target, pair, *self._words(scope, term.sum))
        scope.writer.line(f"acc[@CONSTANTS@ + at + {scope.slots[0][1]}] += sign * {_scaled(term.sum.share, value)}")
        made = [*head, *scope.close()]
        if names_any(made, "x", "y"):
            raise OutOfReach("a closed pair that depends on its ends")
        self._closes += made
        self._loop.rows.append((pair, direction, target, site))

    def _over_row(self, terms: Terms, held: Atom, pair: int, vertices: dict[int, str]) -> Scope:
        """A scope inside the loop over the entries of a row."""
        number = self._loop.registry.held_list(pair)
        scope = Scope(terms, self._loop.registry, vertices, {"lx": 0, "ly": 1})
        tag = scope.writer.name("t")
        scope.enter(f"for {tag} in range(sizes[{2 * number}]):")
        scope.slots.append((number, tag))
        scope.weights[held] = f"rows[e, at + {tag}]"
        others = [variable for variable in held.variables if variable not in vertices]
        for place, variable in enumerate(others):
            scope.names[variable] = scope.tag_word(place)
        return scope

    def _total(
        self, terms: Terms, term: PairTerm, pair: int, norm: Norm, vertices: dict[int, str], name: str
    ) -> list[str]:
        """The lines that sum the norm of the pair, from either side of the join."""
        if set(norm.variables) != set(vertices):
            raise OutOfReach("a norm that is not of the pair")
        lines: list[str] = []
        for side in (0, 1):
            formula, key = terms.expander.side(norm.join, side)
            named = {mine: vertices[theirs] for mine, theirs in zip(key, norm.variables, strict=True)}
            held = [a for a in dict.fromkeys(atoms_of(formula)) if not terms.is_link(a) and not terms.is_frozen(a)]
            if not held and isinstance(formula, Atom) and terms.is_link(formula):
                lines.append(f"    {name} += {sum(_shares(terms, formula, named).values())!r}")
            elif len(held) != 1 or held[0].step is not term.held.step or not _is_pair(held[0], named, term, vertices):
                raise OutOfReach("a norm over something else than the row")
            elif formula == held[0]:  # no weight is negative, so the total is kept with the row
                number = self._loop.registry.held_list(pair)
                lines.append(f"    {name} += rows[e, at + sizes[{2 * number}]]")
            else:
                scope = self._over_row(terms, held[0], pair, named)
                scope.writer.line(f"{name} += abs({scope.value(formula)})")
                lines += scope.close()
        return lines

    # --- the module -------------------------------------------------------------------------------------------

    def finish(self) -> Loop:
        """The loop, with its text."""
        loop = self._loop
        functions, loop.part_numbers, loop.site_numbers = loop_functions.entries(
            [part.lines for part in loop.parts], [(site.lists, site.lines, site.words) for site in loop.sites]
        )
        functions += loop_text.walk(self._edges, self._triangles, self._weights, self._closes, len(loop.constants))
        loop.text = loop_functions.module(functions)
        heads = dict(map(loop_functions.head, functions))
        loop.arguments = {name: heads[name] for name in loop_functions.ENTRIES if name in heads}
        return loop


def _scaled(share: float, value: str) -> str:
    return value if share == 1.0 else f"{share!r} * {value}"


def _shares(terms: Terms, atom: Atom, vertices: dict[int, str]) -> dict[tuple[int, ...], float]:
    """What the link weighs in its direction, by its tags."""
    turned = vertices[atom.variables[0]] == "y"
    return {tags: share for (way, tags), share in terms.link(atom).shares.items() if way == turned}


def _columns(term: PairTerm, variables: tuple[int, ...]) -> tuple[int, ...]:
    """Which tags of the row these are."""
    tags = [v for at, v in enumerate(term.held.variables) if at not in term.ends]
    if not set(variables) <= set(tags):
        raise OutOfReach("a tag of an edge that the row has not")
    return tuple(tags.index(v) for v in variables)


def _is_pair(held: Atom, named: dict[int, str], term: PairTerm, vertices: dict[int, str]) -> bool:
    """Whether a record of the same sum is of the same pair, in the same direction."""
    return all(named.get(held.variables[at]) == vertices[term.held.variables[at]] for at in term.ends)
