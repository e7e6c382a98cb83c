"""Formulas over links and frozen steps as code, where vertices are given and what is frozen is walked through.

Where frozen steps stand, their records are lists: for each vertex, the numbers of the tags that it has there and their
weights. Vertices are indices, named by the caller; `l` before the name is the word of the label. So what a text
depends on is what it names.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field

from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.formulas import Atom, Extreme, Formula, Guard, Norm, atoms_of
from wpinq.engines.incremental.compiled.steps import JoinStep, Step
from wpinq.engines.incremental.compiled.terms import OutOfReach, Terms, norms_of


@dataclass(frozen=True, slots=True)
class FrozenList:
    """A frozen step by one of its columns, which holds vertices."""

    step: Step
    column: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one side of a join adds to the norm of a vertex: `value` times a count, for a degree d.

    `kind` says what: the value itself ("own"), d values ("each"), d(d − 1) of them ("pairs"), or d times a number which
    is one and the same for all neighbours ("spread", which is checked).
    """

    norm: int
    kind: str
    lines: tuple[str, ...]


@dataclass
class Registry:
    """The lists, norms and parts of norms of one module; a list that is a number holds the tags of rows."""

    lists: list[FrozenList | int] = field(default_factory=list)
    norms: list[JoinStep] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def list_of(self, step: Step, column: int) -> int:
        """The number of a list."""
        return self._number(FrozenList(step, column))

    def held_list(self, pair: int) -> int:
        """The number of the tags of the rows of a pair term."""
        return self._number(pair)

    def _number(self, wanted: FrozenList | int) -> int:
        if wanted not in self.lists:
            self.lists.append(wanted)
        return self.lists.index(wanted)


class Scope:
    """A text under construction in which some vertices are given.

    Parameters
    ----------
    terms : Terms
        The plan that formulas are of.
    registry : Registry
        Where lists and norms are noted.
    vertices : dict
        The name of the index of each vertex variable.
    order : dict
        What is known about the order of labels, see `Writer.order`; all that is named differs.
    depth : int
        How many blocks deep the text stands.
    """

    def __init__(
        self, terms: Terms, registry: Registry, vertices: dict[int, str], order: dict[str, int], depth: int = 0
    ) -> None:
        self.terms, self.registry, self.vertices = terms, registry, vertices
        self.writer = Writer(terms.dictionary)
        self.writer.order, self.writer.remembers = order, False
        self.names = {variable: f"l{name}" for variable, name in vertices.items()}
        self.tags: dict[str, tuple[int, int]] = {}
        self.slots: list[tuple[int, str]] = []
        self.weights: dict[Atom, str] = {}
        self.norms: dict[Norm, str] = {}
        self._blocks = ExitStack()
        for _ in range(depth):
            self.enter("")

    def open(self, formula: Formula) -> None:
        """Walk through the frozen records of the formula; what follows stands inside."""
        for atom in dict.fromkeys(atoms_of(formula)):
            if not self.terms.is_frozen(atom):
                continue
            columns = [i for i, v in enumerate(atom.variables) if v in self.vertices]
            if len(columns) != 1 or len(set(atom.variables)) < len(atom.variables):
                raise OutOfReach("a frozen record of no vertex, or of several")
            number = self.registry.list_of(atom.step, columns[0])
            vertex = self.vertices[atom.variables[columns[0]]]
            at, tag = self.writer.name("k"), self.writer.name("t")
            head = f"for {at} in range(places[{number}, {vertex}], places[{number}, {vertex} + ONE]):"
            self.enter(head)
            self.writer.line(f"{tag} = np.int64(tags[{at}])")
            self.slots.append((number, tag))
            self.weights[atom] = self.writer.bind(f"amounts[{at}]", "w")
            others = [v for i, v in enumerate(atom.variables) if i != columns[0]]
            for place, variable in enumerate(others):
                if variable in self.names:
                    raise OutOfReach("frozen records that share a tag")
                self.names[variable] = self.tag_word(place)

    def tag_word(self, place: int) -> str:
        """A name for a word of the tag of the innermost list."""
        number, tag = self.slots[-1]
        name = self.writer.bind(f"words[sizes[{2 * number + 1}] + {tag}, {place}]", "g")
        self.tags[name] = len(self.slots) - 1, place
        return name

    def enter(self, head: str) -> None:
        """Open a block that stays open."""
        self._blocks.enter_context(self.writer.block(head))

    def close(self) -> list[str]:
        """The lines."""
        self._blocks.close()
        return self.writer.lines

    def value(self, formula: Formula) -> str:
        """The code of the value of a formula."""
        writer = self.writer
        if isinstance(formula, Atom):
            return self.weights[formula] if formula in self.weights else self._link(formula)
        if isinstance(formula, Guard):
            below = self.value(formula.child)
            assert formula.step.condition is not None
            writer.known = {}
            condition = formula.step.condition(writer, [self.names[v] for v in formula.variables])
            if condition in ("True", "False"):
                return below if condition == "True" else "0.0"
            return writer.bind(f"{below} if {condition} else 0.0", "w")
        left, right = self.value(formula.left), self.value(formula.right)
        if isinstance(formula, Extreme):
            return writer.bind(f"{'min' if formula.smaller else 'max'}({left}, {right})", "w")
        if "0.0" in (left, right):
            return "0.0"
        if formula.norm is not None:
            inverse = self.norms[formula.norm] if formula.norm in self.norms else self._norm(formula.norm)
            return writer.bind(f"{left} * {right} * {inverse}", "w")
        norm = writer.bind(f"abs({left}) + abs({right})", "n")
        return writer.bind(f"{left} * {right} / {norm} if {norm} > 0.0 else 0.0", "w")

    def _link(self, atom: Atom) -> str:
        link = self.terms.link(atom)
        if link.width > 2:
            raise OutOfReach("an edge with a tag, away from a pair that is held")
        first, second = (self.names[v] for v in atom.variables)
        shares = [repr(link.shares.get((turned, ()), 0.0)) for turned in (False, True)]
        if shares[0] == shares[1]:
            return shares[0]
        known = self.writer.less(first, second)
        if known is not None:
            return shares[0] if known else shares[1]
        a, b = (self.vertices[v] for v in atom.variables)  # vertices are numbered in the order of their labels
        return self.writer.bind(f"{shares[0]} if {a} < {b} else {shares[1]}", "w")

    def _norm(self, norm: Norm) -> str:
        if len(norm.variables) != 1 or norm.variables[0] not in self.vertices:
            raise OutOfReach("a norm that is not of a vertex")
        number = norm_number(self.terms, self.registry, norm.join)
        return self.writer.bind(f"inverses[{number}, {self.vertices[norm.variables[0]]}]", "n")


def names_any(lines: list[str], *vertices: str) -> bool:
    """Whether a text names a vertex, or its label."""
    pattern = re.compile(rf"\bl?(?:{'|'.join(vertices)})\b")
    return any(pattern.search(line) for line in lines)


def norm_number(terms: Terms, registry: Registry, join: JoinStep) -> int:
    """The number of the norms of a join by vertex; OutOfReach where they are not frozen."""
    if join in registry.norms:
        return registry.norms.index(join)
    parts: list[tuple[str, list[str]]] = []
    for side in (0, 1):
        formula, key = terms.expander.side(join, side)
        if not terms.expander.nonnegative[join.inputs[side]]:
            raise OutOfReach("a norm of weights that may be negative")
        parts += _parts(terms, registry, formula, key[0])
    registry.norms.append(join)
    number = len(registry.norms) - 1
    registry.parts += [Part(number, kind, tuple(lines)) for kind, lines in parts]
    return number


def _parts(terms: Terms, registry: Registry, formula: Formula, key: int) -> list[tuple[str, list[str]]]:
    pairs, vertices = terms.pattern(formula)
    if not pairs:
        return [("own", _part(terms, registry, formula, {key: "v"}))]
    others = [vertex for vertex in vertices if vertex != key]
    if pairs != {frozenset((key, other)) for other in others} or len(others) > 2:
        raise OutOfReach("a norm over records of another shape")
    names = dict(zip(others, ("x", "y"), strict=False))
    distinct = _part(terms, registry, formula, {key: "v", **names})
    if not names_any(distinct, "x", "y"):
        if len(others) == 1:
            return [("each", distinct)]
        together = _part(terms, registry, formula, {key: "v", others[0]: "x", others[1]: "x"})
        if not names_any(together, "x", "y"):
            return [("pairs", distinct), ("each", together)]
    if len(others) == 1:
        turned = _part(terms, registry, formula, {key: "x", others[0]: "v"})
        if not names_any(turned, "x"):
            return [("spread", turned)]
    raise OutOfReach("a norm that depends on who the neighbours are")


def _part(terms: Terms, registry: Registry, formula: Formula, vertices: dict[int, str]) -> list[str]:
    names = sorted(set(vertices.values()))
    scope = Scope(terms, registry, vertices, {f"l{name}": -1 - place for place, name in enumerate(names)})
    for norm in norms_of(formula):  # whatever it needs is computed before
        if len(norm.variables) == 1:
            norm_number(terms, registry, norm.join)
    scope.open(formula)
    value = scope.value(formula)
    if value != "0.0":
        scope.writer.line(f"total += abs({value})")
    return scope.close()
