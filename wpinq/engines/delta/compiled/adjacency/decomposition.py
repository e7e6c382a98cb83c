"""A plan over edges as sums over edges, triangles and closed pairs that a walk keeps up.

Swaps keep degrees, so whatever depends on degrees alone is invariant (see `Link`): degree tags, counts of neighbours,
norms of vertices. What is left of a plan must be a sum of terms of three kinds:

- over **edges**, both directions: a formula over links between two vertices and what is invariant at them;
- over **triangles**, all six ways round: the same, with links between all three vertices;
- over **pairs** that are edges: a formula over their links and a sum over their common neighbours, which is held for
  each edge, tag by tag (a row), because the formula is not linear in it: an intersection takes minima. What a common
  neighbour adds to the row must be invariant at it.

A norm must be invariant: of a vertex, over records whose weight depends on that vertex alone, or is the same for every
neighbour. Records of an output may hold invariant words and numbers, but no vertex. The name of a recipe plays no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from wpinq.engines.delta.compiled import formulas as fm, steps as st
from wpinq.engines.delta.compiled.routine import CannotCompile, name
from wpinq.engines.delta.compiled.values import Dictionary, Writer
from wpinq.expr.nodes import Call
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT
from wpinq.plan.node import Node
from wpinq.plan.operators import SelectMany
from wpinq.runtime.arrays import Floats

# --- links: the images of one edge ------------------------------------------------------------------------------------

X, Y = name("x"), name("y")
MOST_IMAGES = 1024
#: The weight of each record that one edge makes; a word is an end or a number.
Images = dict[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Link:
    """Edges with both ends, and tags.

    `columns` gives the variable of each column: 0 and 1 are the ends, others are tags. `shares` gives the weight of an
    edge, by whether variable 0 is its larger vertex, and its tags.
    """

    columns: tuple[int, ...]
    shares: dict[tuple[bool, tuple[int, ...]], float]

    @property
    def width(self) -> int:
        """The number of variables."""
        return max(self.columns) + 1

    @property
    def symmetric(self) -> bool:
        """Whether both directions weigh the same."""
        return all(self.shares.get((not turned, tags)) == share for (turned, tags), share in self.shares.items())


class Links:
    """The images, links and invariant steps of a plan over a source of edges.

    The ends of an edge are called `x` and `y`, x being the vertex with the smaller label. A step that is linear in the
    edges, and only moves their ends about, is a short list of images. Two kinds matter:

    - a **link** holds both ends: the edges themselves in one direction or both, half-edges, edges with a tag;
    - an **invariant** step depends on degrees alone, which swaps keep. Either every image holds one end and both ends
    are
      treated alike, or it is a count of neighbours, or it is made of invariant steps. It is evaluated once.
    """

    def __init__(self, steps: Iterable[st.Step], source: str, symmetric: bool, dictionary: Dictionary) -> None:
        self._source, self._symmetric, self._dictionary = source, symmetric, dictionary
        self.images: dict[st.Step, Images | None] = {}
        self.links: dict[st.Step, Link] = {}
        self.invariant: set[st.Step] = set()
        for step in steps:
            images = self.images[step] = self._images_of(step)
            if images is not None and (link := _link(images)) is not None:
                self.links[step] = link
            if self._is_invariant(step, images):
                self.invariant.add(step)

    def _images_of(self, step: st.Step) -> Images | None:
        if isinstance(step, st.SourceStep):
            if step.source != self._source or step.width != 2:
                return None
            return {(X, Y): 1.0, (Y, X): 1.0} if self._symmetric else {(X, Y): 1.0}
        if not isinstance(step, (st.MapStep, st.SumStep)):
            return None
        inputs = [self.images[below] for below in step.inputs]
        found: Images = {}
        for place, images in enumerate(inputs):
            if images is None:
                return None
            for words, share in images.items():
                made = self._made(step, words) if isinstance(step, st.MapStep) else [(words, step.coefficients[place])]
                if made is None or len(found) > MOST_IMAGES:
                    return None
                for image, factor in made:
                    found[image] = found.get(image, 0.0) + share * factor
        return {words: share for words, share in found.items() if share != 0.0}

    def _made(self, step: st.MapStep, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]] | None:
        def writer() -> Writer:
            made = Writer(self._dictionary)
            made.order, made.memoizes = {X: 0, Y: 1}, False
            return made

        try:
            if step.condition is not None:
                return {"True": [(words, 1.0)], "False": []}.get(step.condition(writer(), words))
            out = [tuple(text.strip("()") for text in image.words(writer(), words)) for image in step.images]
        except CannotCompile:
            return None
        known_words = all(word in (X, Y) or is_number(word) for image in out for word in image)
        shares = [image.share for image in step.images]
        return list(zip(out, shares, strict=True)) if out and known_words else None

    def _is_invariant(self, step: st.Step, images: Images | None) -> bool:
        if images is not None:
            one_end = all(not (X in words and Y in words) for words in images)
            turned = {tuple({X: Y, Y: X}.get(word, word) for word in words): share for words, share in images.items()}
            return one_end and turned == images
        if isinstance(step, st.GroupStep) and (link := self.links.get(step.inputs[0])) is not None:
            keys = {link.columns[i] for i in step.key}
            writer = Writer(self._dictionary)
            counts_only = step.group(writer, [f"k{i}" for i in range(len(step.key))]).counts_only
            return counts_only and keys in ({0}, {1}) and link.symmetric and link.width == 2
        return bool(step.inputs) and all(below in self.invariant for below in step.inputs)


def is_number(text: str) -> bool:
    """Whether a word is written as a number."""
    return text.strip("()").lstrip("-").isdigit()


def _link(images: Images) -> Link | None:
    """The link that images are, where every one has both ends in like places."""
    rows = list(images)
    width = len(rows[0]) if rows else 0
    ends = [c for c in range(width) if all(row[c] in (X, Y) for row in rows)]
    tags = [c for c in range(width) if all(is_number(row[c]) for row in rows)]
    if not ends or len(ends) + len(tags) < width:
        return None
    columns = [0] * width
    for c in ends:
        same = {row[c] == row[ends[0]] for row in rows}
        if len(same) > 1:
            return None
        columns[c] = 0 if same.pop() else 1
    if not any(columns):
        return None
    for number, c in enumerate(tags):
        columns[c] = 2 + number
    shares = {(row[ends[0]] == Y, tuple(int(row[c]) for c in tags)): share for row, share in images.items()}
    return Link(tuple(columns), shares)


WordsOf = Callable[[Writer, Sequence[str]], list[str]]


class OutOfReach(Exception):
    """A plan is not of this class; tables serve it."""


class LocalExpander(fm.Expander):
    """Expands steps down to links, invariant steps, and sums that are held.

    A step that drops columns expands too, its formula being summed over what is dropped, where all above it is linear.
    """

    inlined = True

    def __init__(self, steps: st.Steps, links: Links) -> None:
        self.links = links
        super().__init__(steps, fm.Assumptions(nonnegative=True, unit=True, virtual=True))

    def _is_constant(self, step: st.Step) -> bool:
        link = self.links.links.get(step)
        if link is not None:
            return len(set(link.shares.values())) == 1
        return super()._is_constant(step)

    def expand(self, step: st.Step) -> fm.Expansion | None:
        if step in self.links.invariant:
            return self._leaf(step)
        if step in self.links.links:
            link = self.links.links[step]
            own = tuple(next(self._fresh) for _ in range(link.width))
            return fm.Expansion(fm.Atom(step, own), tuple(own[c] for c in link.columns))
        return super().expand(step)

    def _extreme(
        self, step: st.ExtremeStep, left: fm.Expansion, right: fm.Expansion
    ) -> tuple[fm.Formula, tuple[int, ...]]:
        # the least of two sums is no sum of the least: one that drops columns is held
        sides = zip((left, right), step.inputs, strict=True)
        kept = [
            side if fm.variables_of(side.formula) <= set(side.variables) else self._leaf(below) for side, below in sides
        ]
        return super()._extreme(step, *kept)


@dataclass(frozen=True, slots=True)
class Summand:
    """`Σ share · formula` over all records, each counted at the words that it makes."""

    formula: fm.Formula
    words: fm.NamedWords
    share: float


@dataclass(frozen=True, slots=True)
class ShapeTerm:
    """A sum over directed edges (u, v), triangles in every order, or wedges.

    The middle vertex of a wedge comes second.
    """

    summand: Summand
    vertices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PairTerm:
    """A sum over pairs that are edges.

    `held` is the record of the sum over common neighbours that it looks up. `ends` are the positions of the pair's two
    vertices among the columns of `held`.
    """

    summand: Summand
    held: fm.Atom
    ends: tuple[int, int]
    wedge: ShapeTerm


class Decomposition:
    """The terms of one plan's root; OutOfReach where it has none."""

    def __init__(self, steps: st.Steps, links: Links, root: st.Step) -> None:
        self.expander = LocalExpander(steps, links)
        self.links, self.dictionary = links, steps.dictionary
        self.terms = [self._term(each) for each in self._sums(root, lambda writer, words: list(words), 1.0)]

    def is_link(self, atom: fm.Atom) -> bool:
        """Whether an atom is a link."""
        return atom.step in self.links.links and atom.step not in self.links.invariant

    def link(self, atom: fm.Atom) -> Link:
        """The link of an atom."""
        return self.links.links[atom.step]

    def is_invariant(self, atom: fm.Atom) -> bool:
        """Whether an atom is a record of an invariant step."""
        return atom.step in self.links.invariant

    def _sums(self, step: st.Step, then: WordsOf, share: float) -> Iterator[Summand]:
        if isinstance(step, st.SumStep):
            for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
                yield from self._sums(below, then, share * coefficient)
        elif isinstance(step, st.MapStep) and step.images and step not in self.links.links:
            for image in step.images:
                yield from self._sums(step.inputs[0], _after(image.words, then), share * image.share)
        elif step in self.links.invariant:
            raise OutOfReach("an invariant part of a sum")
        elif (expansion := self.expander.expand(step)) is not None:
            variables = expansion.variables
            yield Summand(expansion.formula, lambda writer, names: then(writer, [names[v] for v in variables]), share)
        elif isinstance(step, (st.JoinStep, st.ExtremeStep)):
            yield self._root(step, then, share)
        else:
            raise OutOfReach(f"{step.name} is not linear")

    def _root(self, step: st.JoinStep | st.ExtremeStep, then: WordsOf, share: float) -> Summand:
        formula, words = self.expander.root(step)
        return Summand(formula, lambda writer, names: then(writer, words(writer, names)), share)

    def _term(self, each: Summand) -> ShapeTerm | PairTerm:
        atoms = list(dict.fromkeys(fm.atoms_of(each.formula)))
        held = [atom for atom in atoms if not self.is_link(atom) and not self.is_invariant(atom)]
        pairs, vertices = self.pattern(each.formula)
        if held:
            return self._pair_term(each, held, pairs, vertices)
        if (len(vertices), len(pairs)) in ((2, 1), (3, 3)):
            return ShapeTerm(each, tuple(vertices))
        raise OutOfReach("links of another shape")

    def pattern(self, formula: fm.Formula) -> tuple[set[frozenset[int]], list[int]]:
        """The pairs of vertices that must be linked, and the vertices; every link must be required."""
        links = [atom for atom in dict.fromkeys(fm.atoms_of(formula)) if self.is_link(atom)]
        if not set(links) <= set(fm.required(formula)):
            raise OutOfReach("a formula that is not 0 without its edges")
        pairs = {frozenset(atom.variables[:2]) for atom in links}
        if any(len(pair) < 2 for pair in pairs):
            raise OutOfReach("an edge from a vertex to itself")
        return pairs, list(dict.fromkeys(v for atom in links for v in atom.variables[:2]))

    def _pair_term(
        self, each: Summand, held: list[fm.Atom], pairs: set[frozenset[int]], vertices: list[int]
    ) -> PairTerm:
        (atom, *others) = held
        if others or len(pairs) != 1 or len(vertices) != 2 or not self.expander.nonnegative[atom.step]:
            raise OutOfReach("sums of another shape")
        if any(self.is_invariant(other) for other in fm.atoms_of(each.formula)):
            raise OutOfReach("what is invariant beside a sum that is held")
        if len(set(atom.variables)) < len(atom.variables) or not set(vertices) <= set(atom.variables):
            raise OutOfReach("a sum that is not of its pair")
        ends = atom.variables.index(vertices[0]), atom.variables.index(vertices[1])
        sums = list(self._held_sums(atom.step))
        if len(sums) != 1:
            raise OutOfReach("a sum of several parts")
        return PairTerm(each, atom, ends, self._wedge(sums[0]))

    def _held_sums(self, step: st.Step) -> Iterator[Summand]:
        if isinstance(step, (st.JoinStep, st.ExtremeStep)):
            yield self._root(step, lambda writer, words: list(words), 1.0)
        elif isinstance(step, st.MapStep) and step.images:
            yield from self._sums(step, lambda writer, words: list(words), 1.0)
        else:
            raise OutOfReach(f"{step.name} is not a sum over wedges")

    def _wedge(self, each: Summand) -> ShapeTerm:
        pairs, vertices = self.pattern(each.formula)
        atoms = fm.atoms_of(each.formula)
        known = len(vertices) == 3 and all(self.is_link(atom) or self.is_invariant(atom) for atom in atoms)
        for first, middle, last in permutations(vertices) if known else ():
            if pairs == {frozenset((first, middle)), frozenset((middle, last))}:
                return ShapeTerm(each, (first, middle, last))
        raise OutOfReach("a sum over another shape than wedges")


def _after(image: WordsOf, then: WordsOf) -> WordsOf:
    def words(writer: Writer, below: Sequence[str]) -> list[str]:
        writer.known = {}
        return then(writer, image(writer, below))

    return words


def norms_of(formula: fm.Formula) -> list[fm.Norm]:
    """The norms that a formula looks up."""
    return list(dict.fromkeys(entry for entry in fm.lookups_of(formula) if isinstance(entry, fm.Norm)))


# --- plans with a last step that scales weights -----------------------------------------------------------------------

#: Goals are divided by factors, and squared: by less they might overflow.
_LEAST = 1e-100


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A plan without its last step, where that step only scales weights by public factors.

    `loss(w·x − v; width) = w · loss(x − v/w; width/w)`, so that goals of the plan below say the same.

    Attributes
    ----------
    plan : Node
        The plan that the walk serves.
    last : SelectMany, optional
        The step that scales.
    """

    plan: Node
    last: SelectMany | None

    @staticmethod
    def of(plan: Node) -> Rescaled:
        """The plan without a step that scales, or all of it."""
        operator = plan.operator
        if isinstance(operator, SelectMany) and operator.weighted and operator.bound == 1:
            core = operator.function.core
            items = core.body.arguments if isinstance(core.body, Call) and core.body.name == "list" else ()
            elements = [item.arguments[0] for item in items if isinstance(item, Call) and item.name == "weighted"]
            if elements == [core.parameters[0]]:
                return Rescaled(plan.inputs[0], operator)
        return Rescaled(plan, None)

    def factors(self, records: Sequence[Value]) -> Floats:
        """The factor of each record: the weight that weight 1 of it becomes.

        OutOfReach where a factor is next to nothing, or negative.
        """
        if self.last is None:
            return np.ones(len(records))
        images = self.last.images(FLOAT)
        found = np.array([sum(float(weight) for _, weight in images(record)) for record in records])
        if not np.all(found > _LEAST):
            raise OutOfReach("a record whose weight is dropped")
        return found
