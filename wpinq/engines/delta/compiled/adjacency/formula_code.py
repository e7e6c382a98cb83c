"""Formulas over links and invariant steps as code, where vertices are given and what is invariant is walked through.

Where invariant steps stand, their records are lists: for each vertex, the numbers of the tags that it has there and
their weights. Vertices are indices, named by the caller; labels are looked up where they are named. So what code
depends on is what it names.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

from wpinq.engines.incremental.compiled.neighbours.decomposition import Decomposition, OutOfReach
from wpinq.engines.incremental.compiled.neighbours.walk_routines import (
    AMOUNTS,
    INVERSES,
    PLACES,
    ROWS,
    SIZES,
    TAGS,
    WORDS,
    label,
)
from wpinq.engines.incremental.compiled.routines.names import name, names_in
from wpinq.engines.incremental.compiled.steps.formulas import Atom, Formula, Guard, MinMax, Norm, atoms_of
from wpinq.engines.incremental.compiled.steps.steps import JoinStep, Step
from wpinq.engines.incremental.compiled.words.code import Writer


@dataclass(frozen=True, slots=True)
class InvariantList:
    """An invariant step by one of its columns, which holds vertices."""

    step: Step
    column: int


@dataclass(frozen=True, slots=True)
class NormPart:
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

    lists: list[InvariantList | int] = field(default_factory=list)
    norms: list[JoinStep] = field(default_factory=list)
    parts: list[NormPart] = field(default_factory=list)

    def list_of(self, wanted: InvariantList | int) -> int:
        """The number of a list."""
        if wanted not in self.lists:
            self.lists.append(wanted)
        return self.lists.index(wanted)


class FormulaWriter(Writer):
    """Code of formulas, in which some vertices are given.

    Parameters
    ----------
    plan : Decomposition
        The plan that formulas are of.
    registry : Registry
        Where lists and norms are noted.
    vertices : dict
        The name of the index of each vertex variable. Names that differ are of vertices that do.
    ascending : str
        Vertices whose labels are known to be in this order.
    """

    def __init__(self, plan: Decomposition, registry: Registry, vertices: dict[int, str], ascending: str = "") -> None:
        super().__init__(plan.dictionary)
        self.memoizes = False
        self.plan, self.registry = plan, registry
        self.vertices = {variable: name(vertex) for variable, vertex in vertices.items()}
        self.words = {variable: label(vertex) for variable, vertex in self.vertices.items()}
        for place, vertex in enumerate(sorted({*vertices.values(), *ascending})):
            known = ascending.find(vertex)
            self.order[label(name(vertex))] = known if known >= 0 else -1 - place
        self.tags: dict[str, tuple[int, int]] = {}
        self.slots: list[tuple[int, str]] = []
        self.weights: dict[Atom, str] = {}
        self.norms: dict[Norm, str] = {}
        self._blocks = ExitStack()

    def beside(self) -> FormulaWriter:
        """A writer of other lines about the same words."""
        other = FormulaWriter(self.plan, self.registry, {})
        other.order, other.counter, other.made = self.order, self.counter, self.made
        return other

    def open(self, formula: Formula) -> None:
        """Walk through the invariant records of the formula; what follows stands inside."""
        for atom in dict.fromkeys(atoms_of(formula)):
            if not self.plan.is_invariant(atom):
                continue
            columns = [i for i, v in enumerate(atom.variables) if v in self.vertices]
            if len(columns) != 1 or len(set(atom.variables)) < len(atom.variables):
                raise OutOfReach("an invariant record of no vertex, or of several")
            number = self.registry.list_of(InvariantList(atom.step, columns[0]))
            vertex = self.vertices[atom.variables[columns[0]]]
            at, tag = self.name("k"), self.name("t")
            self.enter(f"for {at} in range({PLACES}[{number}, {vertex}], {PLACES}[{number}, {vertex} + ONE]):")
            self.line(f"{tag} = np.int64({TAGS}[{at}])")
            self.slots.append((number, tag))
            self.weights[atom] = self.bind(f"{AMOUNTS}[{at}]", "w")
            others = [v for i, v in enumerate(atom.variables) if i != columns[0]]
            if any(variable in self.words for variable in others):
                raise OutOfReach("invariant records that share a tag")
            self.bind_tags(others)

    def open_row(self, pair: int, held: Atom) -> None:
        """Walk through the entries of a row; what follows stands inside."""
        number, tag = self.registry.list_of(pair), self.name("t")
        self.enter(
            f"for {tag} in range(np.uint64({SIZES}[{2 * number}])):"
        )  # unsigned: no place is counted from the end
        self.slots.append((number, tag))
        self.weights[held] = f"{ROWS}[e, at + {tag}]"
        self.bind_tags([variable for variable in held.variables if variable not in self.vertices])

    def bind_tags(self, variables: list[int]) -> None:
        """Name the words of the tag of the innermost list."""
        number, tag = self.slots[-1]
        for place, variable in enumerate(variables):
            self.words[variable] = self.bind(f"{WORDS}[{SIZES}[{2 * number + 1}] + {tag}, {place}]", "g")
            self.tags[self.words[variable]] = len(self.slots) - 1, place

    def enter(self, head: str) -> None:
        """Open a block that stays open."""
        self._blocks.enter_context(self.block(head))

    def close(self) -> list[str]:
        """The lines, without names that no other line uses."""
        self._blocks.close()
        held = self.lines
        while True:
            uses = Counter(each for line in held for each in names_in(line))
            kept = [line for line in held if line.lstrip()[0] not in self.made or uses[line.lstrip()[0]] > 1]
            if len(kept) == len(held):
                return held
            held = kept

    def value(self, formula: Formula) -> str:
        """The code of the value of a formula."""
        if isinstance(formula, Atom):
            return self.weights[formula] if formula in self.weights else self._link(formula)
        if isinstance(formula, Guard):
            below = self.value(formula.child)
            assert formula.step.condition is not None
            self.known = {}
            condition = formula.step.condition(self, [self.words[v] for v in formula.variables])
            if condition in ("True", "False"):
                return below if condition == "True" else "0.0"
            return self.bind(f"{below} if {condition} else 0.0", "w")
        left, right = self.value(formula.left), self.value(formula.right)
        if isinstance(formula, MinMax):
            return self.bind(f"{'min' if formula.smaller else 'max'}({left}, {right})", "w")
        if "0.0" in (left, right):
            return "0.0"
        if formula.norm is not None:
            inverse = self.norms[formula.norm] if formula.norm in self.norms else self._norm(formula.norm)
            return self.bind(f"{left} * {right} * {inverse}", "w")
        norm = self.bind(f"abs({left}) + abs({right})", "n")
        return self.bind(f"{left} * {right} / {norm} if {norm} > 0.0 else 0.0", "w")

    def _link(self, atom: Atom) -> str:
        link = self.plan.link(atom)
        if link.width > 2:
            raise OutOfReach("an edge with a tag, away from a pair that is held")
        first, second = (self.words[v] for v in atom.variables)
        shares = [repr(link.shares.get((turned, ()), 0.0)) for turned in (False, True)]
        if shares[0] == shares[1]:
            return shares[0]
        known = self.less(first, second)
        if known is not None:
            return shares[0] if known else shares[1]
        a, b = (self.vertices[v] for v in atom.variables)  # vertices are numbered in the order of their labels
        return self.bind(f"{shares[0]} if {a} < {b} else {shares[1]}", "w")

    def _norm(self, norm: Norm) -> str:
        if len(norm.variables) != 1 or norm.variables[0] not in self.vertices:
            raise OutOfReach("a norm that is not of a vertex")
        number = self.registry.norms.index(norm.step)
        return self.bind(f"{INVERSES}[{number}, {self.vertices[norm.variables[0]]}]", "n")


def depends_on(lines: list[str], vertices: str) -> bool:
    """Whether code names one of these vertices, or its label."""
    return any(name(vertex) in line or label(name(vertex)) in line for vertex in vertices for line in lines)
