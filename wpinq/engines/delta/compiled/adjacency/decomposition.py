"""A plan over edges as sums over edges, triangles and closed pairs: what a walk over neighbour lists can keep up.

Swaps keep degrees, so whatever depends on degrees alone is invariant (see `links`): degree tags, counts of neighbours,
norms of vertices. What is left of a plan must be a sum of terms of three kinds:

- over **edges**, both directions: a formula over links between two vertices and what is invariant at them;
- over **triangles**, all six ways round: the same, with links between all three vertices;
- over **pairs** that are edges: a formula over their links and a sum over their common neighbours, which is held for
  each edge, tag by tag (a row), because the formula is not linear in it: a join divides by the row's total, an
  intersection takes minima. What a common neighbour adds to the row must be invariant at it.

A norm must be invariant: of a vertex, over records whose weight depends on that vertex alone, or is the same for every
neighbour. Records of an output may hold invariant words and numbers, but no vertex. The name of a recipe plays no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from wpinq.engines.incremental.compiled.neighbours.links import Link, Links
from wpinq.engines.incremental.compiled.steps.formulas import (
    Assumptions,
    Atom,
    Expander,
    Expansion,
    Formula,
    NamedWords,
    Norm,
    atoms_of,
    lookups_of,
    required,
    variables_of,
)
from wpinq.engines.incremental.compiled.steps.steps import ExtremeStep, JoinStep, MapStep, Step, Steps, SumStep
from wpinq.engines.incremental.compiled.words.code import Writer

WordsOf = Callable[[Writer, Sequence[str]], list[str]]


class OutOfReach(Exception):
    """A plan is not of this class; tables serve it."""


class LocalExpander(Expander):
    """Expands steps down to links, invariant steps, and sums that are held.

    `inlined` is whether a step that drops columns expands too, its formula being summed over what is dropped: right
    where all above it is linear, and the only way to invariant norms for some plans.
    """

    def __init__(self, steps: Steps, links: Links, inlined: bool) -> None:
        self.links, self.inlined = links, inlined
        super().__init__(steps, Assumptions(nonnegative=True, unit=True, virtual=True))

    def _is_constant(self, step: Step) -> bool:
        link = self.links.links.get(step)
        if link is not None:
            return len(set(link.shares.values())) == 1
        return super()._is_constant(step)

    def expand(self, step: Step) -> Expansion | None:
        if step in self.links.invariant:
            return self._leaf(step)
        if step in self.links.links:
            link = self.links.links[step]
            own = tuple(next(self._fresh) for _ in range(link.width))
            return Expansion(Atom(step, own), tuple(own[c] for c in link.columns))
        return super().expand(step)

    def _extreme(self, step: ExtremeStep, left: Expansion, right: Expansion) -> tuple[Formula, tuple[int, ...]]:
        for side in (left, right):
            if not variables_of(side.formula) <= set(side.variables):
                raise OutOfReach("a minimum or maximum of a sum")
        return super()._extreme(step, left, right)


@dataclass(frozen=True, slots=True)
class Summand:
    """`Σ share · formula` over all records, each counted at the words that it makes."""

    formula: Formula
    words: NamedWords
    share: float


@dataclass(frozen=True, slots=True)
class ShapeTerm:
    """A sum over directed edges (u, v), over triangles in every order, or over wedges, the middle vertex second."""

    summand: Summand
    vertices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairTerm:
    """A sum over pairs that are edges: `held` is the record of the sum over common neighbours that it looks up.

    `ends` are the positions, among the columns of what is held, of the pair's two vertices.
    """

    summand: Summand
    held: Atom
    ends: tuple[int, int]
    wedge: ShapeTerm


class Decomposition:
    """The terms of one plan's root; OutOfReach where it has none."""

    def __init__(self, steps: Steps, links: Links, root: Step, inlined: bool) -> None:
        self.expander = LocalExpander(steps, links, inlined)
        self.links, self.dictionary = links, steps.dictionary
        self.terms = [self._term(each) for each in self._sums(root, lambda writer, words: list(words), 1.0)]

    def is_link(self, atom: Atom) -> bool:
        """Whether an atom is a link."""
        return atom.step in self.links.links and atom.step not in self.links.invariant

    def link(self, atom: Atom) -> Link:
        """The link of an atom."""
        return self.links.links[atom.step]

    def is_invariant(self, atom: Atom) -> bool:
        """Whether an atom is a record of an invariant step."""
        return atom.step in self.links.invariant

    def _sums(self, step: Step, then: WordsOf, share: float) -> Iterator[Summand]:
        if isinstance(step, SumStep):
            for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
                yield from self._sums(below, then, share * coefficient)
        elif isinstance(step, MapStep) and step.images and step not in self.links.links:
            for image in step.images:
                yield from self._sums(step.inputs[0], _after(image.words, then), share * image.share)
        elif step in self.links.invariant:
            raise OutOfReach("an invariant part of a sum")
        elif (expansion := self.expander.expand(step)) is not None:
            variables = expansion.variables
            yield Summand(expansion.formula, lambda writer, names: then(writer, [names[v] for v in variables]), share)
        elif isinstance(step, (JoinStep, ExtremeStep)):
            yield self._root(step, then, share)
        else:
            raise OutOfReach(f"{step.name} is not linear")

    def _root(self, step: JoinStep | ExtremeStep, then: WordsOf, share: float) -> Summand:
        formula, words = self.expander.root(step)
        return Summand(formula, lambda writer, names: then(writer, words(writer, names)), share)

    def _term(self, each: Summand) -> ShapeTerm | PairTerm:
        atoms = list(dict.fromkeys(atoms_of(each.formula)))
        held = [atom for atom in atoms if not self.is_link(atom) and not self.is_invariant(atom)]
        pairs, vertices = self.pattern(each.formula)
        if held:
            return self._pair_term(each, held, pairs, vertices)
        if (len(vertices), len(pairs)) in ((2, 1), (3, 3)):
            return ShapeTerm(each, tuple(vertices))
        raise OutOfReach("links of another shape")

    def pattern(self, formula: Formula) -> tuple[set[frozenset[int]], list[int]]:
        """The pairs of vertices that must be linked, and the vertices. Every link must be required."""
        links = [atom for atom in dict.fromkeys(atoms_of(formula)) if self.is_link(atom)]
        if not set(links) <= set(required(formula)):
            raise OutOfReach("a formula that is not 0 without its edges")
        pairs = {frozenset(atom.variables[:2]) for atom in links}
        if any(len(pair) < 2 for pair in pairs):
            raise OutOfReach("an edge from a vertex to itself")
        return pairs, list(dict.fromkeys(v for atom in links for v in atom.variables[:2]))

    def _pair_term(self, each: Summand, held: list[Atom], pairs: set[frozenset[int]], vertices: list[int]) -> PairTerm:
        (atom, *others) = held
        if others or len(pairs) != 1 or len(vertices) != 2 or not self.expander.nonnegative[atom.step]:
            raise OutOfReach("sums of another shape")
        if any(self.is_invariant(other) for other in atoms_of(each.formula)):
            raise OutOfReach("what is invariant beside a sum that is held")
        if len(set(atom.variables)) < len(atom.variables) or not set(vertices) <= set(atom.variables):
            raise OutOfReach("a sum that is not of its pair")
        ends = atom.variables.index(vertices[0]), atom.variables.index(vertices[1])
        sums = list(self._held_sums(atom.step))
        if len(sums) != 1:
            raise OutOfReach("a sum of several parts")
        return PairTerm(each, atom, ends, self._wedge(sums[0]))

    def _held_sums(self, step: Step) -> Iterator[Summand]:
        if isinstance(step, (JoinStep, ExtremeStep)):
            yield self._root(step, lambda writer, words: list(words), 1.0)
        elif isinstance(step, MapStep) and step.images:
            yield from self._sums(step, lambda writer, words: list(words), 1.0)
        else:
            raise OutOfReach(f"{step.name} is not a sum over wedges")

    def _wedge(self, each: Summand) -> ShapeTerm:
        pairs, vertices = self.pattern(each.formula)
        known = len(vertices) == 3 and all(
            self.is_link(atom) or self.is_invariant(atom) for atom in atoms_of(each.formula)
        )
        for first, middle, last in permutations(vertices) if known else ():
            if pairs == {frozenset((first, middle)), frozenset((middle, last))}:
                return ShapeTerm(each, (first, middle, last))
        raise OutOfReach("a sum over another shape than wedges")


def _after(image: WordsOf, then: WordsOf) -> WordsOf:
    def words(writer: Writer, below: Sequence[str]) -> list[str]:
        writer.known = {}
        return then(writer, image(writer, below))

    return words


def norms_of(formula: Formula) -> list[Norm]:
    """The norms that a formula looks up."""
    return list(dict.fromkeys(entry for entry in lookups_of(formula) if isinstance(entry, Norm)))
