"""The records of steps that swaps keep, from the degrees of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from wpinq.engines.delta.compiled.adjacency.decomposition import Images, Links, OutOfReach, X, Y
from wpinq.engines.delta.compiled.routine import CannotCompile, name
from wpinq.engines.delta.compiled.steps import MapStep, ShaveStep, Step, Steps
from wpinq.engines.delta.compiled.values import Dictionary, Rows, Writer
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Weight, Weights
from wpinq.plan.node import Node
from wpinq.plan.operators import Source
from wpinq.runtime.arrays import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Invariants:
    """What the records of invariant steps follow from.

    Attributes
    ----------
    steps, links : Steps, Links
        Of the plans.
    dictionary : Dictionary
        Of the words.
    labels, degrees : array of int64
        Of each vertex the word of its label, and its degree.
    edges : int
        How many edges there are.
    records : callable
        Gives the records of the source, for a step that is not told from degrees.
    """

    steps: Steps
    links: Links
    dictionary: Dictionary
    labels: Integers
    degrees: Integers
    edges: int
    records: Callable[[], Weights]

    def rows(self, columns: Mapping[Step, int | None]) -> dict[Step, Rows]:
        """The records of some steps, by each operator's own meaning.

        Where a step tells the vertices in a column by their degrees alone, it is evaluated for one of each degree.
        """
        if any(step not in self.steps.nodes for step in columns):
            raise OutOfReach("an invariant step that stands for no part of the plan")
        _, firsts, kinds = np.unique(self.degrees, return_index=True, return_inverse=True)
        each, first = self._outputs(np.arange(len(kinds))), self._outputs(firsts)
        found = {}
        for step, column in columns.items():
            node, alike = self.steps.nodes[step], column is not None and column == self._vertex_column(step)
            rows = self.dictionary.rows((first if alike else each)(node), node.type)
            found[step] = self._spread(rows, column, firsts, kinds) if alike and column is not None else rows
        return found

    def _outputs(self, vertices: Integers) -> Callable[[Node], Weights]:
        """The evaluation of steps over some vertices; linear ones follow from the degrees."""
        of_node = {node.digest: step for step, node in self.steps.nodes.items()}

        @cache
        def output(node: Node) -> Weights:
            step = of_node.get(node.digest)
            images = None if step is None else self.links.images[step]
            if step in self.links.invariant and images is not None:
                return self._by_degree(node, images, vertices)
            if isinstance(node.operator, Source):
                return self.records()
            return node.operator.evaluate(tuple(map(output, node.inputs)), FLOAT)

        return output

    def _by_degree(self, node: Node, images: Images, vertices: Integers) -> Weights:
        """The output of a linear step from the degrees.

        Each vertex gives its image as often as its degree. Each edge gives the images without an end of it.
        """
        found: dict[Value, list[Weight]] = {}
        held = list(zip(self.labels[vertices].tolist(), self.degrees[vertices].tolist(), strict=True))
        for words, share in images.items():
            for label, times in held if X in words else [] if Y in words else [(0, self.edges)]:
                record = self.dictionary.decode([label if word == X else int(word) for word in words], node.type)
                found.setdefault(record, []).append(share * times)
        return {record: FLOAT.total(weights) for record, weights in found.items()}

    def _vertex_column(self, step: Step) -> int | None:
        """The column of a vertex of which a step asks nothing else; None where it may."""
        images, writer = self.links.images[step], Writer(self.dictionary)
        writer.memoizes = False
        if images is not None:
            made = [list(words) for words in images if Y not in words]
        else:
            below = self._vertex_column(step.inputs[0]) if len(step.inputs) == 1 else None
            words = [X if at == below else name(f"c{at}") for at in range(step.inputs[0].width)]
            made = [words] if isinstance(step, ShaveStep) else []
            try:
                if isinstance(step, ShaveStep) and step.loop is not None:
                    step.loop(writer, words, lambda index, width: None)
                if isinstance(step, MapStep):
                    made = [[word.strip("()") for word in image.words(writer, words)] for image in step.images]
            except CannotCompile:
                return None
        asked = [word for words in made for word in words if X in word and word != X] + [*writer.lines]
        columns = {tuple(at for at, word in enumerate(words) if word == X) for words in made}
        only = columns.pop() if len(columns) == 1 else ()
        return only[0] if len(only) == 1 and not any(X in text for text in asked) else None

    def _spread(self, rows: Rows, column: int, firsts: Integers, kinds: Integers) -> Rows:
        """The records of all vertices, from those of the first vertex of each kind."""
        order = np.argsort(self.labels[firsts])
        kind = order[np.searchsorted(self.labels[firsts], rows.words[:, column], sorter=order)]
        counts = np.bincount(kind, minlength=len(firsts))
        lengths, starts = counts[kinds], (np.cumsum(counts) - counts)[kinds]
        places = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        taken = np.argsort(kind, kind="stable")[places]
        words = rows.words[taken]
        words[:, column] = np.repeat(self.labels, lengths)
        return Rows(words, rows.weights[taken])
