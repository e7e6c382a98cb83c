"""Formulas over links and invariant steps as code, for given vertices.

Where invariant steps stand, their records are lists: for each vertex, the numbers of the tags that it has there and
their weights. Vertices are indices, named by the caller; labels are looked up where they are named. So what code
depends on is what it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.compiled.adjacency import walk_routines as wr
from wpinq.engines.delta.compiled.adjacency.decomposition import Decomposition, OutOfReach, norms_of
from wpinq.engines.delta.compiled.formulas import Atom, Formula, Guard, MinMax, Norm, atoms_of, lookups_of
from wpinq.engines.delta.compiled.routine import LANES, call_by_name, name, names_in
from wpinq.engines.delta.compiled.steps import JoinStep, Step
from wpinq.engines.delta.compiled.values import Rows, Writer
from wpinq.runtime.arrays import Integers


@dataclass(frozen=True, slots=True)
class InvariantList:
    """An invariant step by one of its columns, which holds vertices."""

    step: Step
    column: int


@dataclass(frozen=True, slots=True)
class NormPart:
    """The part of a vertex's norm from one side of a join: `value` times a count.

    `kind` names the count for a degree d: the value itself ("own"), d values ("each"), or d(d − 1) of them ("pairs").
    The fourth is d times a number that is the same for all neighbours ("spread"), which is checked.
    """

    norm: int
    kind: str
    lines: tuple[str, ...]


@dataclass
class Registry:
    """The lists, norms and parts of norms of one module.

    A list that is a number has the tags of rows.
    """

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
        #: The vertex that is taken away from each, where records are sums of `sum_tags` with the norms in them.
        self.others: dict[str, str] = {}
        self.memoizes = False
        self.plan, self.registry = plan, registry
        self.vertices = {variable: name(vertex) for variable, vertex in vertices.items()}
        self.words = {variable: wr.label(vertex) for variable, vertex in self.vertices.items()}
        for place, vertex in enumerate(sorted({*vertices.values(), *ascending})):
            known = ascending.find(vertex)
            self.order[wr.label(name(vertex))] = known if known >= 0 else -1 - place
        self.tags: dict[str, tuple[int, int]] = {}
        self.slots: list[tuple[int, str]] = []
        self.weights: dict[Atom, str] = {}
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
            twin = f"{wr.TWINS}[{vertex}]"
            span = f"{wr.PLACES}[{number}, {twin}], {wr.PLACES}[{number}, {twin} + ONE]"
            listed, weight = f"{wr.TAGS}[{at}]", f"{wr.AMOUNTS}[{at}]"
            if self.others:
                side = len(self.slots)
                span, listed, weight = f"{wr.SPANS}[{side}]", f"{wr.LISTED}[{side}, {at}]", f"{wr.SUMS}[{side}, {at}]"
                given = {"side": f"np.uint64({side})", "number": str(number)}
                norms = [each for each in lookups_of(formula) if isinstance(each, Norm)]
                own = [self.registry.norms.index(n.step) for n in norms if n.variables == (atom.variables[columns[0]],)]
                for of, end, sign in (("u", twin, "1.0"), ("x", f"{wr.TWINS}[{self.others.get(vertex)}]", "-lost")):
                    given |= {of: end, f"of_{of}": " * ".join([sign, *(f"{wr.INVERSES}[{n}, {end}]" for n in own)])}
                self.lines.insert(0, f"    {call_by_name(wr.sum_tags, **given)}")
            self.enter(f"for {at} in range({span}):")
            self.line(f"{tag} = np.int64({listed})")
            self.slots.append((number, tag))
            self.weights[atom] = self.bind(weight, "w")
            others = [v for i, v in enumerate(atom.variables) if i != columns[0]]
            if any(variable in self.words for variable in others):
                raise OutOfReach("invariant records that share a tag")
            self.bind_tags(others)

    def open_row(self, pair: int, held: Atom) -> None:
        """Walk through the entries of a row, block by block; what follows stands inside."""
        number, tag = self.registry.list_of(pair), self.name("t")
        size = f"np.uint64({wr.SIZES}[{2 * number}])"  # unsigned: no place is counted from the end
        block, lane = self.name("t"), self.name("t")
        self.enter(f"for {block} in range(np.uint64(0), {size}, LANES):")
        self.enter(f"for {lane} in range(LANES):")
        self.line(f"{tag} = {block} + {lane}")
        self.slots.append((number, tag))
        self.weights[held] = f"{wr.ROWS}[e, at + {tag}]"
        self.bind_tags([variable for variable in held.variables if variable not in self.vertices])

    def bind_tags(self, variables: list[int]) -> None:
        """Name the words of the tag of the innermost list."""
        number, tag = self.slots[-1]
        for place, variable in enumerate(variables):
            self.words[variable] = self.bind(f"{wr.WORDS}[{wr.SIZES}[{2 * number + 1}] + {tag}, {place}]", "g")
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
        if self.others and (isinstance(formula, MinMax) or formula.norm is None):
            raise OutOfReach("no product")
        if isinstance(formula, MinMax):
            return self.bind(f"{'min' if formula.smaller else 'max'}({left}, {right})", "w")
        if "0.0" in (left, right):
            return "0.0"
        if formula.norm is not None:
            return self.bind(f"{left} * {right} * {self._norm(formula.norm)}", "w")
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
        if self.others:
            return "1.0"
        number = self.registry.norms.index(norm.step)
        return self.bind(f"{wr.INVERSES}[{number}, {wr.TWINS}[{self.vertices[norm.variables[0]]}]]", "n")


def depends_on(lines: list[str], vertices: str) -> bool:
    """Whether code names one of these vertices, or its label."""
    return any(name(vertex) in line or wr.label(name(vertex)) in line for vertex in vertices for line in lines)


# --- norms of joins by vertex that swaps keep: the part of each side, from the degree of the vertex -------------------


def note_norms(plan: Decomposition, registry: Registry, formula: Formula) -> None:
    """Note the norms by vertex that a formula looks up; OutOfReach where one is not invariant."""
    for norm in norms_of(formula):
        if len(norm.variables) == 1 and norm.step not in registry.norms:
            _note(plan, registry, norm.step)


def _note(plan: Decomposition, registry: Registry, join: JoinStep) -> None:
    parts: list[tuple[str, list[str]]] = []
    for side in (0, 1):
        formula, key = plan.expander.side(join, side)
        if not plan.expander.nonnegative[join.inputs[side]]:
            raise OutOfReach("a norm of weights that may be negative")
        parts += _parts(plan, registry, formula, key[0])
    registry.norms.append(join)
    registry.parts += [NormPart(len(registry.norms) - 1, kind, tuple(lines)) for kind, lines in parts]


def _parts(plan: Decomposition, registry: Registry, formula: Formula, key: int) -> list[tuple[str, list[str]]]:
    pairs, vertices = plan.pattern(formula)
    if not pairs:
        return [("own", _part(plan, registry, formula, {key: "v"}))]
    others = [vertex for vertex in vertices if vertex != key]
    if pairs != {frozenset((key, other)) for other in others} or len(others) > 2:
        raise OutOfReach("a norm over records of another shape")
    distinct = _part(plan, registry, formula, {key: "v", **dict(zip(others, "xy", strict=False))})
    if not depends_on(distinct, "xy"):
        if len(others) == 1:
            return [("each", distinct)]
        together = _part(plan, registry, formula, {key: "v", others[0]: "x", others[1]: "x"})
        if not depends_on(together, "xy"):
            return [("pairs", distinct), ("each", together)]
    if len(others) == 1:
        turned = _part(plan, registry, formula, {key: "x", others[0]: "v"})
        if not depends_on(turned, "x"):
            return [("spread", turned)]
    raise OutOfReach("a norm that depends on who the neighbours are")


def _part(plan: Decomposition, registry: Registry, formula: Formula, vertices: dict[int, str]) -> list[str]:
    note_norms(plan, registry, formula)
    writer = FormulaWriter(plan, registry, vertices)
    writer.open(formula)
    value = writer.value(formula)
    if value != "0.0":
        writer.line(f"total += abs({value})")
    return renumbered(writer.close(), writer.made)


def renumbered(lines: list[str], made: set[str]) -> list[str]:
    """The lines with their own names numbered in order, so that like lines are alike."""
    own = [each for each in names_in(*lines) if each in made]
    return [line.translate({ord(each): name(f"v{n}") for n, each in enumerate(own)}) for line in lines]


# --- tags of vertices in invariant steps, as arrays -------------------------------------------------------------------


class TagLists:
    """For each list and vertex, the tags that the vertex has there, and their weights.

    `words` has those of the tags of each list; a list that is a number holds the tags of rows, which come later.
    """

    def __init__(self, lists: Sequence[InvariantList | int], records: Mapping[Step, Rows], labels: Integers) -> None:
        self._order = np.argsort(labels[:, 0], kind="stable")
        self._labels = labels[self._order, 0]
        count = len(labels)
        places = np.zeros((max(1, len(lists)), count + 1), dtype=np.uint64)
        tags, amounts = [np.zeros(0, np.uint32)], [np.zeros(0)]
        self.words: list[Integers] = []
        used = 0
        for number, held in enumerate(lists):
            known: Integers = np.zeros((0, 1), dtype=np.int64)
            if isinstance(held, InvariantList):
                rows = records[held.step]
                vertex, inside = self._vertices_of(rows.words[:, held.column])
                known, numbers = distinct(np.delete(rows.words[inside], held.column, axis=1))
                order = np.lexsort((numbers, vertex[inside]))  # whatever the order of evaluation was
                places[number] = used + np.concatenate([[0], np.cumsum(np.bincount(vertex[inside], minlength=count))])
                tags.append(numbers[order].astype(np.uint32))
                amounts.append(rows.weights[inside][order])
                used += len(numbers)
            self.words.append(known)
        self.arrays: dict[str, NDArray[Any]] = {"places": places, "tags": np.concatenate(tags)}
        self.arrays |= {"amounts": np.concatenate(amounts), **self.joined}

    def _vertices_of(self, labels: Integers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        at = np.minimum(np.searchsorted(self._labels, labels), len(self._labels) - 1)
        return self._order[at], self._labels[at] == labels

    @property
    def joined(self) -> dict[str, NDArray[Any]]:
        """The words of the tags of all lists, and the sizes and starts of the lists.

        `words` has a row for each tag. `sizes` has, for each list, the number of its tags and the row of the first.
        """
        starts = np.concatenate([[0], np.cumsum([len(words) for words in self.words])]).astype(np.int64)
        widest = max([1, *(words.shape[1] for words in self.words)])
        joined = np.zeros((starts[-1] + int(LANES), widest), dtype=np.int64)  # blocks of a row end beyond its tags
        for start, words in zip(starts[:-1], self.words, strict=True):
            joined[start : start + len(words), : words.shape[1]] = words
        return {"words": joined, "sizes": np.stack([np.diff(starts), starts[:-1]], axis=1).reshape(-1)}


def distinct(rows: Integers) -> tuple[Integers, NDArray[np.int64]]:
    """The distinct rows, and for each row the number of its like."""
    if rows.shape[1] == 0:
        return np.zeros((min(1, len(rows)), 0), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    found, numbers = np.unique(rows[:, 0] if rows.shape[1] == 1 else rows, axis=0, return_inverse=True)
    return found.reshape(-1, rows.shape[1]), numbers.reshape(-1).astype(np.int64)
