"""Edges by the labels of their ends, where public nodes have labels.

The mixing matrix has a cell for each unordered pair of labels: the number of edges between nodes with these. It is
one count over public keys. The nodes of a graph get places so that the matrix comes near the released one, and the walk
fits the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.random import Generator

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.graphs.recipes import check_edges
from wpinq.graphs.synthesis.directed import undirected
from wpinq.graphs.synthesis.method import Bounds, Method, spend
from wpinq.graphs.synthesis.public_nodes import PublicNodes
from wpinq.graphs.synthesis.random_graphs import rising
from wpinq.graphs.synthesis.tags import SmoothedTarget
from wpinq.graphs.tags import half_edges, joint_tags
from wpinq.mcmc.settings import MOST_STEPS
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import NANO, parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.runtime.arrays import Floats, Integers, compiled

#: The name of the measurement.
LABELS = "label_mixing"
#: Its share of epsilon; the shares of a method are of the rest.
SHARE = Fraction(1, 10)
#: In scales of the noise: cells above it are fitted as released.
_CLEAR = 5.0
#: Of the search for places: exchanges for each node, the temperatures between which it cools, and what degrees count.
_TURNS, _HOT, _COLD, _STUBS = 2000, 10.0, 0.03, 20.0
#: How many more edges nodes of a label should have room for among themselves than are wanted: not every graph exists.
_FREE, _MOST_FREE = 1.3, 0.97
#: The most last swaps, random ones for each, and by how much a cell may be off without one.
_SWAPS, _DRAWS, _NEAR = 2000, 1000, 0.02


def label_mixing(edges: Query, starts: Sequence[int]) -> Query:
    """The unordered pair of the labels of each edge's ends, where a label is a range of nodes.

    Uses: 1. An edge moves one pair, by its weight.

    Parameters
    ----------
    edges : Query
        Each undirected edge once.
    starts : sequence of int
        The first node of each label, rising from 0.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(label_mixing(edges, [0, 10]), {"edges": [(3, 12), (14, 3), (1, 2)]})
    WeightedDataset({(0, 0): 1.0, (0, 1): 2.0})
    """
    check_edges(edges)

    def pair(edge: Any) -> Any:
        one, other = (_label(edge[side], starts) for side in (0, 1))
        return F.min(one, other), F.max(one, other)

    return edges.select(pair)


def _label(node: Any, starts: Sequence[int], first: int = 0) -> Any:
    """The number of a node's label, by halving the ranges."""
    if len(starts) == 1:
        return first
    half = len(starts) // 2
    lower, upper = _label(node, starts[:half], first), _label(node, starts[half:], first + half)
    return F.where(node < starts[half], lower, upper)


def labelled_measurements(
    method: Method,
    source: Query,
    epsilon: EpsilonLike,
    split: Mapping[str, object] | None,
    bounds: Bounds,
    nodes: PublicNodes | None,
) -> dict[str, Measurement]:
    """As `Method.measurements`; the mixing matrix is added where nodes have labels.

    A directed edge moves the matrix of pairs of nodes, which are joined in either direction.

    Raises
    ------
    PlanError
        When the method measures edges in both directions, or a split has no share for the matrix.
    """
    if nodes is None or not nodes.labels:
        return method.measurements(source, epsilon, split, bounds)
    if method.symmetric:
        raise PlanError(f"labels need the method tags or directed; {method.name} has no mixing matrix")
    parts = {name: parse_epsilon(part) for name, part in (split or {LABELS: SHARE, "others": 1 - SHARE}).items()}
    if LABELS not in parts:
        raise PlanError(f"give a share for {LABELS} too")
    whole, share = parse_epsilon(epsilon), parts.pop(LABELS)
    own = Fraction(int(whole * share / (share + sum(parts.values())) * NANO), NANO)
    pairs = label_mixing(undirected(source) if method.directed else source, label_starts(nodes))
    keys = combinations_with_replacement(range(len(label_starts(nodes))), 2)
    asked = pairs.read_as("edges between two labels").geometric_count(1, keys)
    measured = method.measurements(source, whole - own, split and parts, bounds)
    return {**measured, **spend({LABELS: asked}, own, {LABELS: 1})}


def label_starts(nodes: PublicNodes) -> list[int]:
    """The first place of each label."""
    return np.flatnonzero(np.diff(nodes.label_numbers, prepend=-1)).tolist()


@dataclass(frozen=True, slots=True)
class LabelMixing:
    """The mixing matrix that a synthetic graph is to have.

    Attributes
    ----------
    answers : Answers
        The released matrix.
    nodes : PublicNodes
        The nodes with their labels.
    wanted : array of shape (labels, labels)
        The edges of each cell, in the upper triangle.
    """

    answers: Answers
    nodes: PublicNodes
    wanted: Floats

    @staticmethod
    def of(answers: Answers, nodes: PublicNodes, edges: int) -> LabelMixing:
        """The matrix of a graph of so many edges.

        Clear cells are as released. The others lose so much each that all add up, for most of these are noise. No cell
        has more edges than pairs of nodes.
        """
        sizes = np.bincount(nodes.label_numbers)
        rows, columns = np.triu_indices(len(sizes))
        room = np.where(rows == columns, sizes[rows] * (sizes[rows] - 1) / 2, sizes[rows] * sizes[columns])
        noisy = np.minimum(answers.values, room)
        clear = noisy > _CLEAR * answers.scale
        left, falling = edges - noisy[clear].sum(), np.sort(noisy[~clear])[::-1]
        over = (np.cumsum(falling) - left) / np.arange(1, len(falling) + 1)
        least = over[falling > over][-1:] if left > 0 else np.inf
        cells = np.where(clear, noisy, 0.0)
        cells[~clear] = np.maximum(noisy[~clear] - least, 0.0)
        wanted = np.zeros((len(sizes), len(sizes)))
        wanted[rows, columns] = cells * (edges / max(cells.sum(), 1.0))
        return LabelMixing(answers, nodes, wanted)

    def target(self, source: Query) -> SmoothedTarget:
        """The matrix as a target of a walk over the undirected edges of a source.

        It is of thirds of edges by the tags of their ends, a query that the compiled walk keeps up.
        """
        starts, answers = label_starts(self.nodes), self.answers
        degrees = half_edges(source).select(lambda half: half.src).shave(float(len(self.nodes)))
        tags = degrees.select(lambda node: F.record(record=node.record, index=_label(node.record, starts)))
        thirds = replace(answers.measurement, plan=joint_tags(source, tags).plan, epsilon=3 * answers.epsilon)
        scaled = replace(answers, measurement=thirds, scale=answers.scale / 3, values=answers.values / 3)
        return SmoothedTarget(scaled, smoothed={pair: float(self.wanted[pair]) / 3 for pair in answers.keys})

    def places(self, edges: Integers, rng: Generator) -> Integers:
        """A place for each node of a graph, so that its matrix comes near.

        Simulated annealing over exchanges of the labels of two nodes, which leaves the graph as it is. Degrees by label
        count most: no walk mends them.
        """
        count, label = len(self.nodes), rng.permutation(self.nodes.label_numbers)
        both = np.concatenate([edges, edges[:, ::-1]])
        starts = np.append(0, np.cumsum(np.bincount(both[:, 0], minlength=count)))
        near = both[np.argsort(both[:, 0], kind="stable"), 1]
        over, prices = self._over(edges, label), self._prices(self.wanted)
        stubs = over.sum(axis=0) + over.sum(axis=1)
        rows = self.wanted.sum(axis=0) + self.wanted.sum(axis=1)
        of_stubs = _STUBS * self._prices(rows)
        sizes, degrees = np.bincount(label), np.diff(starts)
        free = np.bincount(label, np.minimum(degrees, sizes[label] - 1)) - np.minimum(
            _FREE * 2 * self.wanted.diagonal(), _MOST_FREE * rows
        )
        turns = min(_TURNS * count, MOST_STEPS)
        compiled(_exchange_labels)(starts, near, label, over, prices, stubs, of_stubs, sizes - 1, free, turns, rng)
        places = np.empty(count, dtype=np.int64)
        places[np.lexsort((rng.random(count), label))] = np.arange(count)
        return places

    def mended(self, edges: Integers, rng: Generator) -> Integers:
        """The edges with some swapped, where a clear cell is off; every degree stays.

        Swaps that a walk hardly proposes: of many random ones that mend the cell, the best is taken.
        """
        label, both = self.nodes.label_numbers, np.concatenate([edges, edges[:, ::-1]])
        over, prices, count = self._over(edges, label), self._prices(self.wanted), len(edges)
        allowed = np.where(self.wanted > _CLEAR * self.answers.scale, _NEAR * self.wanted, np.inf)
        held = {*map(tuple, both.tolist())} if (np.abs(over) > allowed).any() else set()
        for _ in range(_SWAPS):
            p, q = np.unravel_index(np.argmax(np.abs(over) - allowed), over.shape)
            if abs(over[p, q]) <= allowed[p, q]:
                break
            first, last = label[both[:, 0]], label[both[:, 1]]
            pools = (first == p, first == q) if over[p, q] < 0 else ((first == p) & (last == q), first >= 0)
            draws = _DRAWS * min(int(pool.any()) for pool in pools)
            s, t = (rng.choice(np.flatnonzero(pool), draws) for pool in pools)
            (a, b), (d, c) = both[s].T, both[t].T
            worse = np.zeros(draws)
            for x, y, by in ((a, b, -1), (c, d, -1), (a, d, 1), (c, b, 1)):
                cell = rising(np.stack([label[x], label[y]], axis=1))
                worse += prices[cell] * (1 + 2 * by * over[cell])
            for k in np.argsort(worse):
                new = [(int(a[k]), int(d[k])), (int(c[k]), int(b[k]))]
                if worse[k] < 0 and len({*new[0], *new[1]}) == 4 and not held & {*new}:
                    old = both[[s[k], t[k]]]
                    held -= {*map(tuple, [*old.tolist(), *old[:, ::-1].tolist()])}
                    held |= {*new, *(edge[::-1] for edge in new)}
                    for place, edge in zip((s[k], t[k]), (new[0], new[1][::-1]), strict=True):
                        both[place], both[place - count] = edge, edge[::-1]
                    over = self._over(both[:count], label)
                    break
            else:
                allowed[p, q] = np.inf
        return both[:count]

    def _over(self, edges: Integers, label: Integers) -> Floats:
        """By how much too many edges each cell has."""
        low, high = rising(label[edges])
        count = len(self.wanted)
        return np.bincount(low * count + high, minlength=count * count).reshape(count, count) - self.wanted

    def _prices(self, wanted: Floats) -> Floats:
        """The price of the square of what a number is off: relative where it is clear."""
        return 1 / np.maximum(wanted, max(_CLEAR * self.answers.scale, 1.0))


# Loops over a graph; `over` is by how much too many edges each cell has.


def _exchange_labels(
    starts: Integers, near: Integers, label: Integers, over: Floats, prices: Floats, stubs: Floats, of_stubs: Floats,
    others: Integers, free: Floats, turns: int, rng: Generator,
) -> None:  # fmt: skip
    """Exchange the labels of nodes, in place."""
    count = len(label)
    for turn in range(turns):
        u, v = int(rng.random() * count), int(rng.random() * count)
        a, b = label[u], label[v]
        if a == b:
            continue
        du, dv = starts[u + 1] - starts[u], starts[v + 1] - starts[v]
        more = dv - du
        worse = more * (of_stubs[a] * (more + 2 * stubs[a]) + of_stubs[b] * (more - 2 * stubs[b]))
        room_a = free[a] + min(dv, others[a]) - min(du, others[a])
        room_b = free[b] + min(du, others[b]) - min(dv, others[b])
        worse += of_stubs[a] * (min(room_a, 0.0) ** 2 - min(free[a], 0.0) ** 2)
        worse += of_stubs[b] * (min(room_b, 0.0) ** 2 - min(free[b], 0.0) ** 2)
        for by in (1, -1):  # there, and back
            for x, y, old, new in ((u, v, a, b), (v, u, b, a)):
                for z in near[starts[x] : starts[x + 1]]:
                    if z != y:
                        for end, change in ((old, -by), (new, by)):
                            i, j = min(end, label[z]), max(end, label[z])
                            worse += prices[i, j] * (1 + 2 * change * over[i, j])
                            over[i, j] += change
            if by == 1 and (worse <= 0 or rng.random() < np.exp(-worse / (_HOT * (_COLD / _HOT) ** (turn / turns)))):
                label[u], label[v] = b, a
                stubs[a] += more
                stubs[b] -= more
                free[a], free[b] = room_a, room_b
                break
