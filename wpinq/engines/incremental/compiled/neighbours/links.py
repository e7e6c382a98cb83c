"""What a step makes of one undirected edge, where that is known without computing: the leaves of a walk over lists.

The ends of the edge are called `x` and `y`, x being the vertex with the smaller label. A step that is linear in the
edges, and only moves their ends about, is then a short list of images. Two kinds matter:

- a **link** holds both ends: the edges themselves in one direction or both, half-edges, edges with a tag;
- a **invariant** step depends on degrees alone, which swaps keep: where every image holds one end and both ends are
  treated alike; a count of neighbours; and whatever is made of invariant steps. It is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.names import name
from wpinq.engines.incremental.compiled.steps.steps import GroupStep, MapStep, SourceStep, Step, SumStep
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import Dictionary

X, Y = name("x"), name("y")
MOST_IMAGES = 1024
Images = dict[tuple[str, ...], float]
"""The weight of each record that one edge makes; a word is an end or a number."""


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
    """The images, links and invariant steps of a plan over a source of edges."""

    def __init__(self, steps: Iterable[Step], source: str, symmetric: bool, dictionary: Dictionary) -> None:
        self._source, self._symmetric, self._dictionary = source, symmetric, dictionary
        self.images: dict[Step, Images | None] = {}
        self.links: dict[Step, Link] = {}
        self.invariant: set[Step] = set()
        for step in steps:
            images = self.images[step] = self._images_of(step)
            if images is not None and (link := _link(images)) is not None:
                self.links[step] = link
            if self._is_invariant(step, images):
                self.invariant.add(step)

    def _images_of(self, step: Step) -> Images | None:
        if isinstance(step, SourceStep):
            if step.source != self._source or step.width != 2:
                return None
            return {(X, Y): 1.0, (Y, X): 1.0} if self._symmetric else {(X, Y): 1.0}
        if not isinstance(step, (MapStep, SumStep)):
            return None
        inputs = [self.images[below] for below in step.inputs]
        found: Images = {}
        for position, images in enumerate(inputs):
            if images is None:
                return None
            for words, share in images.items():
                made = self._made(step, words) if isinstance(step, MapStep) else [(words, step.coefficients[position])]
                if made is None or len(found) > MOST_IMAGES:
                    return None
                for image, factor in made:
                    found[image] = found.get(image, 0.0) + share * factor
        return {words: share for words, share in found.items() if share != 0.0}

    def _made(self, step: MapStep, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]] | None:
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

    def _is_invariant(self, step: Step, images: Images | None) -> bool:
        if images is not None:
            one_end = all(not (X in words and Y in words) for words in images)
            turned = {tuple({X: Y, Y: X}.get(word, word) for word in words): share for words, share in images.items()}
            return one_end and turned == images
        if isinstance(step, GroupStep) and (link := self.links.get(step.inputs[0])) is not None:
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
