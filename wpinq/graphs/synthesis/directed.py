"""Directed graphs: the undirected graph, pairs in both directions, out- and in-degrees.

The unit is one directed edge: a pair in both directions is two. An undirected graph is fitted first, then each of its
edges gets a direction or both: as many get both as there are pairs in both directions, and numbers of nodes come as
near as can be to those of the released out- and in-degrees. Directions leave the undirected graph as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.graphs.recipes import check_edges
from wpinq.graphs.synthesis import degree_sequence, uncertainty
from wpinq.graphs.synthesis.method import COMPONENTS, COUNT, TOP, Estimates, answered
from wpinq.graphs.synthesis.tags import ANY, CLOSED, EDGES, JOINT, MASS, PAIRS, Tagged, count_interval, degree_limits
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node, topological, upward
from wpinq.plan.operators import Source
from wpinq.runtime.arrays import Floats, Integers, compiled

#: The name of the method.
DIRECTED = "directed"
OUT, IN = "out_degree_mass", "in_degree_mass"
#: The statistic of directed graphs beside those of others: of the number of pairs in both directions.
RECIPROCAL = "reciprocal_pairs"
_PERCENT = {MASS: 12, TOP: 9, CLOSED: 34, JOINT: 17, PAIRS: 5, COUNT: 5, COMPONENTS: 3, EDGES: 5, OUT: 5, IN: 5}
#: For each edge.
_TURNS = 60


def pair_pieces(edges: Query) -> Query:
    """Pairs of nodes with an edge, in pieces of weight 1.

    Each has piece 0, those in both directions piece 1 too. The records are `(record: (a, b), index: piece)`, a < b.
    Uses: 1. A directed edge adds or removes one piece, of weight 1: no sort of the ends and no Shave moves more than
    its input.
    """
    check_edges(edges)
    return edges.select(lambda e: F.record(src=F.min(e[0], e[1]), dst=F.max(e[0], e[1]))).shave(1.0)


def undirected(edges: Query) -> Query:
    """Each pair of nodes with an edge, of weight 1, whether there is one direction or both.

    Uses: 1. A directed edge moves it by 1 or, beside its reverse, not at all.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, unit="one directed edge")
    >>> wp.evaluate(undirected(edges), {"edges": [(1, 2), (2, 1), (3, 1)]})
    WeightedDataset({(1, 2): 1.0, (1, 3): 1.0})
    """
    return pair_pieces(edges).where(lambda piece: piece.index == 0).select(lambda piece: piece.record)


@dataclass(frozen=True)
class Directed(Tagged):
    """As `Tagged` of the undirected graph, with pairs in both directions and degrees of each.

    Attributes
    ----------
    name : str
        Its name in reports.
    """

    name: str = DIRECTED
    directed: ClassVar[bool] = True

    @property
    def shares(self) -> dict[str, Fraction]:  # type: ignore[override]
        return {name: Fraction(percent, 100) for name, percent in _PERCENT.items()}

    def wanted(self, edges: Query, counted: Query, largest: int) -> dict[str, Measurement]:
        """The measurements of `Tagged` of the undirected graph, and three of directions."""
        limits = degree_limits(largest)
        by_tag = (np.diff(limits) * 1.0).tolist()
        ends = {OUT: counted.select(lambda e: e[0]), IN: counted.select(lambda e: e[1])}
        of_ends = {
            name: nodes.shave(lambda node: by_tag)
            .select(lambda piece: piece.index)
            .read_as("of out- or in-degrees, what lies between limits key and key + 1")
            .noisy_count(1, range(len(by_tag)))
            for name, nodes in ends.items()
        }
        pairs = pair_pieces(counted).select(lambda piece: piece.index)
        return {
            **super().wanted(undirected(edges), counted, largest),
            EDGES: pairs.read_as("pairs with an edge (0), and pairs in both directions (1)").geometric_count(1, [0, 1]),
            **of_ends,
        }

    def estimate(self, answers: Mapping[str, Answers], nodes: int | None = None) -> Estimates:
        """As `Method.estimate`: the walk is over the undirected graph, and directions come after it."""
        counts = answered(answers, EDGES)
        declared = next(node for node in topological([counts.plan]) if not node.inputs)
        below = undirected(Query(declared)).plan
        assert isinstance(declared.operator, Source)
        simple = Node(replace(declared.operator, facts=("simple", "unit_weights")))

        def rebased(table: Answers) -> Answers:
            steps = upward(table.plan, lambda n, inputs: simple if n == below else Node(n.operator, tuple(inputs)))
            plan = steps[table.plan.digest]
            return table if plan == table.plan else replace(table, measurement=replace(table.measurement, plan=plan))

        found = super().estimate({name: rebased(table) for name, table in answers.items()}, nodes)
        degrees = {name: _degrees(answered(answers, name)) for name in (OUT, IN)}

        def intervals(rng: Generator) -> dict[str, uncertainty.Interval]:
            edges = uncertainty.edges_interval(2 * np.asarray(counts.values), 2 * counts.scale, [1, 1])
            return {**found.intervals(rng), "edges": edges, RECIPROCAL: count_interval(counts, 1)}

        def direct(edges: Integers, rng: Generator) -> Integers:
            return directed_edges(edges, round(counts[1]), degrees[OUT], degrees[IN], rng)

        return replace(found, intervals=intervals, direct=direct)


def _degrees(mass: Answers) -> Integers:
    """Out- or in-degrees above 0, from their noisy masses by tag."""
    limits = degree_limits(ANY)[: len(mass) + 1]
    return degree_sequence.estimate_degrees(np.asarray(mass.values) / 2, mass.scale / 2, limits)


def directed_edges(edges: Integers, both: int, out: Integers, into: Integers, rng: Generator) -> Integers:
    """A direction for each undirected edge, or both.

    A local search: an edge turns, or gives its second direction to another, where the numbers of nodes of each degree
    come no farther from the wanted ones.

    Parameters
    ----------
    edges : array of int64, shape (edges, 2)
        Of an undirected graph.
    both : int
        How many edges are to have both directions.
    out, into : array of int
        The wanted out- and in-degrees, of any nodes.
    rng : Generator
        The random generator.

    Returns
    -------
    array of int64, shape (directed edges, 2)

    Examples
    --------
    >>> ring = np.array([(i, (i + 1) % 9) for i in range(9)])
    >>> made = directed_edges(ring, 2, np.full(9, 1), np.full(9, 1), np.random.default_rng(1))
    >>> len(made), len({(min(edge), max(edge)) for edge in made.tolist()})
    (11, 9)
    """
    ends = np.where(rng.random(len(edges))[:, None] < 0.5, edges, edges[:, ::-1])
    twice = rng.permutation(len(edges)) < min(max(both, 0), len(edges))
    made = np.concatenate([ends, ends[twice, ::-1]])
    nodes = int(edges.max(initial=0)) + 1
    degrees = np.stack([np.bincount(made[:, side], minlength=nodes) for side in (0, 1)])
    most = int(np.bincount(edges.ravel(), minlength=nodes).max(initial=0))
    wanted = [degree_sequence.with_edges(each, len(made) / 2, len(made) / 2) for each in (out, into)]
    most = max([most, *(int(each.max(initial=0)) for each in wanted)])
    above = np.stack([_above(have, most) - _above(want, most) for have, want in zip(degrees, wanted, strict=True)])
    compiled(_turn)(ends, twice, degrees, above, _TURNS, rng)
    return np.concatenate([ends, ends[twice, ::-1]])


def _above(degrees: Integers, most: int) -> Floats:
    """The number of degrees above 0, 1, …, most."""
    return degree_sequence.above_each(np.bincount(degrees, minlength=most + 2)[1:].astype(np.float64))


def _turn(ends: Integers, twice: Integers, degrees: Integers, above: Floats, turns: int, rng: Generator) -> None:
    """Turn edges, in place.

    `above[side, y]` is by how much too many nodes have a degree above y, where side 0 is out and side 1 in.
    """
    count = len(ends)
    node, side, by = np.zeros(4, dtype=np.int64), np.array([0, 1, 0, 1]), np.array([-1, -1, 1, 1])
    for _ in range(turns * count):
        i, j = int(rng.random() * count), int(rng.random() * count)
        u, v, a, b = ends[i, 0], ends[i, 1], ends[j, 0], ends[j, 1]
        if twice[i] and twice[j]:
            continue
        if twice[i]:  # u keeps its edge to v; the one back goes to b and a
            node[0], node[1], node[2], node[3] = v, u, b, a
        else:
            node[0], node[1], node[2], node[3] = u, v, v, u
        worse = 0.0
        for k in range(4):
            y = degrees[side[k], node[k]] + min(by[k], 0)
            old = above[side[k], y]
            worse += abs(old + by[k]) - abs(old)
            above[side[k], y] = old + by[k]
            degrees[side[k], node[k]] += by[k]
        if worse > 0:
            for k in range(3, -1, -1):
                degrees[side[k], node[k]] -= by[k]
                above[side[k], degrees[side[k], node[k]] + min(by[k], 0)] -= by[k]
        elif twice[i]:
            twice[i], twice[j] = False, True
        else:
            ends[i, 0], ends[i, 1] = v, u
