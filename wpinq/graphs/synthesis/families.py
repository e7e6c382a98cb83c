"""Families of graphs to begin from, and the choice among them by released answers.

A walk by swaps fits what is local and leaves the graph as large as it began. So a graph of each family is drawn, the
same queries are evaluated on it, and the one that makes the answers likeliest is taken. All of it follows from
answers: it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from numpy.random import Generator

from wpinq.graphs.synthesis.blocks import block_graph
from wpinq.graphs.synthesis.common_neighbours import slices_of_graph
from wpinq.graphs.synthesis.estimates import DegreeClasses, joint_weights
from wpinq.graphs.synthesis.geometric import geometric_graph
from wpinq.graphs.synthesis.method import SeedGraph
from wpinq.graphs.synthesis.random_graphs import class_mixing, clique_graph, local_clustering
from wpinq.runtime.arrays import Floats, Integers

#: What a difference counts of joint degrees, and of closed wedges, which the walk mends by itself.
_JOINT, _CLOSED = 0.4, 0.1
#: The largest variance of degrees, in squares of their mean, of a graph that may have places or groups, and how many of
#: the likeliest are drawn again.
_MOST_VARIANCE, _AGAIN = 1.0, 3
#: The natural logarithms of odds: of places against cliques where a graph may have them, as random graphs without hubs
#: hardly exist, of the plain parameters of a family against others, and of groups against those of twice the nodes.
_TELLS, _PLAIN, _SMALLER = 8.0, 5.0, 2.0
#: Groups: their sizes, the shares of edges between them, and the number of nodes of larger graphs, which have none.
_SIZES, _OUTSIDE, _MOST_NODES = (30, 42, 60, 85, 120, 170, 240, 340, 480), (0.1, 0.2, 0.3, 0.4), 20_000


@dataclass(frozen=True)
class SeedTargets:
    """The estimates that a graph is to have, and answers that tell families apart.

    Attributes
    ----------
    classes, clustering, mixing
        As for `clique_graph`.
    shares, joint, joint_scale
        The weights of tags in stubs of each class, the estimate of the joint degrees, and the scale of their noise.
    wedges, closed, closed_scale
        The weight of a closed wedge by degree and tag, the estimate of closed wedges, and the scale of their noise.
    limits, slices, slices_scale
        The limits of the slices of pairs, their answers, and the scale of their noise.
    """

    classes: DegreeClasses
    clustering: Floats
    mixing: Floats
    shares: Floats
    joint: Floats
    joint_scale: float
    wedges: Floats
    closed: Floats
    closed_scale: float
    limits: Sequence[float]
    slices: Floats
    slices_scale: float

    def misfit(self, edges: Integers) -> float:
        """How far a graph is from answers and estimates, in scales of their noise."""
        degrees = self.classes.degrees
        _, local = local_clustering(degrees, edges)
        closed = (local * degrees * (degrees - 1) / 2) @ self.wedges[degrees]
        joint = joint_weights(class_mixing(edges, self.classes), self.shares)
        slices = slices_of_graph(edges, len(degrees), self.limits)
        off = np.abs(slices - self.slices).sum() / self.slices_scale
        off += _JOINT * np.abs(joint - self.joint).sum() / self.joint_scale
        return float(off + _CLOSED * np.abs(closed - self.closed).sum() / self.closed_scale)


#: A possible draw: how far from likely, in natural logarithms of odds, its family, parameters in words, and the draw.
Candidate = tuple[float, str, str, Callable[[Generator], SeedGraph | None]]


def cliques(wanted: SeedTargets) -> Iterator[Candidate]:
    """Cliques that share nodes, and random edges; never left out."""
    curves = wanted.classes, wanted.clustering, wanted.mixing
    yield _TELLS, "cliques", "cliques", lambda rng: SeedGraph(clique_graph(*curves, rng))


def geometric(wanted: SeedTargets) -> Iterator[Candidate]:
    """Nodes with places."""
    kinds = ((2, False), (2, True), (1, False))
    for (dimensions, crowded), shortcuts in product(kinds, (0.0, 0.02, 0.05, 0.1, 0.2)):
        odds = _PLAIN * ((dimensions == 1) + crowded + (shortcuts > 0))
        words = f"places in {dimensions} dimensions, {'crowded' if crowded else 'even'}, {shortcuts:.0%} shortcuts"
        given = wanted.classes, wanted.clustering, wanted.mixing, dimensions, shortcuts, crowded
        yield odds, "places", words, partial(geometric_graph, *given)


def blocks(wanted: SeedTargets) -> Iterator[Candidate]:
    """Groups of nodes; of large graphs the draws would take longer than the walk."""
    for size, outside in product(_SIZES, _OUTSIDE):
        if 2 * size <= len(wanted.classes.degrees) < _MOST_NODES:
            words = f"groups of {size} nodes, {outside:.0%} of edges between them"
            given = wanted.classes, wanted.clustering, wanted.mixing, size, outside
            yield _TELLS + _SMALLER * np.log2(size / _SIZES[0]), "groups", words, partial(block_graph, *given)


#: A further family is a function from what is wanted to possible draws, where no degree is far above the others.
FAMILIES: tuple[Callable[[SeedTargets], Iterator[Candidate]], ...] = (cliques, geometric, blocks)


def likeliest_graph(wanted: SeedTargets, rng: Generator) -> SeedGraph:
    """The graph of the families that makes the answers likeliest, given odds of the families.

    One of each parameters is drawn, then one more of the likeliest three. The words of the graph say so where another
    family is as likely, but for the odds.
    """
    degrees, tried = wanted.classes.degrees, list[tuple[float, float, Candidate, SeedGraph]]()
    if degrees.var() > _MOST_VARIANCE * degrees.mean() ** 2:
        return SeedGraph(clique_graph(wanted.classes, wanted.clustering, wanted.mixing, rng), family="cliques")
    candidates = [candidate for family in FAMILIES for candidate in family(wanted)]
    for most in (len(candidates), _AGAIN):
        for candidate in candidates[:most]:
            if (drawn := candidate[-1](rng)) is not None:
                misfit = wanted.misfit(drawn.edges)
                tried.append((candidate[0] + misfit, misfit, candidate, drawn))
        tried.sort(key=lambda each: each[0])
        candidates = [candidate for *_, candidate, _ in tried]
    _, misfit, (_, family, words, _), best = tried[0]
    if any(other[1] != family and off < misfit + _TELLS for _, off, other, _ in tried):
        words += "; the answers do not tell it from another family"
    return replace(best, family=words)
