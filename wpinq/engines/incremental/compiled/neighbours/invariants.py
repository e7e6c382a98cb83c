"""What swaps leave as it is: the outputs of invariant steps, evaluated once."""

from __future__ import annotations

import numpy as np

from wpinq.arrays import Integers
from wpinq.engines.incremental.compiled.neighbours.graph import Graph
from wpinq.engines.incremental.compiled.neighbours.links import Images, Links, X, Y
from wpinq.engines.incremental.compiled.steps.steps import Steps
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Weight, Weights
from wpinq.plan.node import Node
from wpinq.plan.operators import Source


class Invariants:
    """Outputs of invariant steps on a graph, by each operator's own meaning; what is linear follows from degrees."""

    def __init__(self, links: Links, steps: Steps, graph: Graph, labels: Integers, symmetric: bool) -> None:
        self._links, self._graph, self._labels = links, graph, labels
        self._dictionary, self._symmetric = steps.dictionary, symmetric
        self._steps = {node.digest: step for step, node in steps.nodes.items()}
        self._known: dict[bytes, Weights] = {}

    def of(self, node: Node) -> Weights:
        """The output of a plan."""
        if node.digest not in self._known:
            self._known[node.digest] = self._evaluated(node)
        return self._known[node.digest]

    def _evaluated(self, node: Node) -> Weights:
        step = self._steps.get(node.digest)
        images = None if step is None else self._links.images[step]
        if step in self._links.invariant and images is not None:
            return self._by_degree(node, images)
        if isinstance(node.operator, Source):
            pairs = np.sort(self._graph.edges, axis=1)
            return dict.fromkeys(
                self._graph.vertices.named(np.concatenate([pairs, pairs[:, ::-1]]) if self._symmetric else pairs), 1.0
            )
        return node.operator.evaluate(tuple(self.of(below) for below in node.inputs), FLOAT)

    def _by_degree(self, node: Node, images: Images) -> Weights:
        """Each vertex gives its image as often as its degree; each edge, the images that hold neither end."""
        found: dict[Value, list[Weight]] = {}
        for words, share in images.items():
            if X in words:
                for label, degree in zip(self._labels[:, 0].tolist(), self._graph.degrees.tolist(), strict=True):
                    record = self._dictionary.decode([label if w == X else int(w) for w in words], node.type)
                    found.setdefault(record, []).append(share * degree)
            elif Y not in words:
                record = self._dictionary.decode([*map(int, words)], node.type)
                found.setdefault(record, []).append(share * len(self._graph.edges))
        return {record: FLOAT.total(weights) for record, weights in found.items()}
