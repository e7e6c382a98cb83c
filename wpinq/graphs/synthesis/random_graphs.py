"""Graphical degree sequences from released statistics, and random graphs that have them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator

from wpinq.errors import AnswersError, install
from wpinq.graphs.fitting import degree_sequence_from_ccdf, fit_degree_sequence
from wpinq.graphs.synthesis.estimates import DegreeClasses, balanced
from wpinq.graphs.synthesis.method import answered
from wpinq.measure.answers import Answers
from wpinq.runtime.arrays import Floats, Integers, compiled, distinct

#: The names of the two measurements that degrees are fitted to.
CCDF, SEQUENCE = "degree_ccdf", "degree_sequence"


def fit_degrees(answers: Mapping[str, Answers]) -> Integers:
    """The best fit of degrees to the released `degree_ccdf` and, if released, `degree_sequence`.

    Returns
    -------
    ndarray of int64
        Non-increasing, all > 0; no simple graph need have them (`graphical` mends that).

    Raises
    ------
    AnswersError
        When there is no CCDF, keys are missing, or no degree is left above the noise.
    """
    ccdf = _in_order(CCDF, answers)
    if SEQUENCE in answers:
        sequence = _in_order(SEQUENCE, answers)
        degrees = fit_degree_sequence(sequence, ccdf, sequence.scale, ccdf.scale)
    else:
        degrees = degree_sequence_from_ccdf(ccdf)
    if len(degrees) < 2:
        raise AnswersError("noise dominates the released degrees: measure with a larger epsilon or share")
    return degrees


def _in_order(name: str, answers: Mapping[str, Answers]) -> Answers:
    found = answered(answers, name)
    if found.keys != tuple(range(len(found))):
        raise AnswersError(f"{name}: the keys must be 0, 1, 2, … without gaps, for a fit")
    return found


def graphical(degrees: Any) -> Integers:
    """Degrees near the given ones that some simple graph has.

    The Erdős-Gallai condition asks for all k, with degrees in falling order, that
    `Σ_{i ≤ k} d_i ≤ k(k − 1) + Σ_{i > k} min(d_i, k)`. Where the k largest ask for more, they are lowered by the
    excess, evenly; an odd sum is mended by one. Degrees that are graphical already stay as they are.

    Parameters
    ----------
    degrees : array-like of int
        At least 0.

    Returns
    -------
    ndarray of int64
        Non-increasing, of the same length, none larger than before.

    Notes
    -----
    Privacy cost: none. Source: Erdős and Gallai, Matematikai Lapok 1960.

    Examples
    --------
    >>> graphical([5, 2, 1, 1]), graphical([3, 3, 2, 2])
    (array([3, 1, 1, 1]), array([3, 3, 2, 2]))
    """
    found = np.asarray(degrees, dtype=np.int64)
    if (found < 0).any():
        raise AnswersError("degrees are at least 0")
    while True:
        found = np.sort(np.maximum(found, 0))[::-1].copy()
        excess = _excess(found)
        if (excess > 0).any():
            size = int(np.argmax(excess)) + 1
            share, rest = divmod(int(excess[size - 1]), size)
            found[:size] -= share
            found[:rest] -= 1
        elif found.sum() % 2:
            found[np.flatnonzero(found)[-1]] -= 1
        else:
            return found


def _excess(falling: Integers) -> Integers:
    """How far `Σ_{i ≤ k} d_i` exceeds `k(k − 1) + Σ_{i > k} min(d_i, k)`, for k = 1, 2, …, n."""
    count = len(falling)
    sizes = np.arange(1, count + 1)
    sums = np.concatenate([[0], np.cumsum(falling)])
    above = np.searchsorted(-falling, -sizes, side="right")  # how many degrees are at least k
    split = np.maximum(above, sizes)
    most = sizes * (sizes - 1) + sizes * (split - sizes) + sums[-1] - sums[split]
    return np.asarray(sums[sizes] - most, dtype=np.int64)


def random_graph(degrees: Integers, rng: np.random.Generator) -> Integers:
    """A random simple graph with given degrees: node i has the i-th.

    igraph realises the degrees by Havel and Hakimi's construction and exchanges the ends of ten times as many pairs of
    edges as there are edges, which comes near a uniform draw.

    Parameters
    ----------
    degrees : array of int
        Graphical.
    rng : Generator
        The random generator; the draw also depends on igraph's version.

    Returns
    -------
    array of int64, shape (edges, 2)
        Each edge once.

    Examples
    --------
    >>> edges = random_graph(np.array([3, 2, 2, 2, 1]), np.random.default_rng(1))
    >>> np.bincount(edges.ravel())
    array([3, 2, 2, 2, 1])
    """
    igraph = import_igraph()
    igraph.set_random_number_generator(random.Random(int(rng.integers(2**62))))
    try:
        drawn = igraph.Graph.Degree_Sequence(degrees.tolist(), method="edge_switching_simple")
    finally:
        igraph.set_random_number_generator(random)
    return np.array(drawn.get_edgelist(), dtype=np.int64).reshape(-1, 2)


def import_igraph() -> Any:
    """igraph, when first used."""
    return imported("igraph", "synthesis")


def imported(library: str, extra: str) -> Any:
    """A library, imported on first use.

    AnswersError where it is not installed, with the extra that has it.
    """
    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise AnswersError(f"this needs {library}: {install(extra)}") from None


# A random graph with given degrees, clustering by degree and mixing of degrees, made of cliques.
#
# Block two-level graphs (BTER; Seshadhri, Kolda and Pinar, Phys. Rev. E 2012) put nodes of like degree in one dense
# block each, which makes any clustered graph assortative. Here a node splits its edges among several cliques: with
# parts
# of s − 1 edges, one clique of s nodes each, it has about d·(s − 2)/2 triangles, so that the clustering of its degree
# says how large its cliques are, and nodes of unlike degree meet in cliques of like size. How much nodes of one degree
# differ in clustering, and how alike the degrees in cliques of one size are, then decides how degrees mix; both are
# chosen so that the mixing comes out as asked. Edges that are in no clique are drawn to mend what is left of it.

#: Concentrations of the beta distribution of clustering: from hardly any spread at a degree to nearly all or none.
SPREADS = (50.0, 6.0, 2.0, 0.7)
#: In octaves of the degree, from cliques of unlike degrees to cliques of like ones.
SHUFFLES = (3.0, 1.7, 1.0, 0.55, 0.3)
_ROUNDS, _LAST_ROUNDS = 2, 4
#: What triangles count against mixing, because a walk by swaps mends mixing sooner.
_FIRST = 3.0
#: For each edge to mend.
TRIES = 200


@dataclass(frozen=True)
class _Draw:
    """A graph, its distance from the targets, and factors for a better draw.

    The distance is the sum of three relative ones.
    """

    edges: Integers
    miss: float
    factors: Floats


def clique_graph(classes: DegreeClasses, clustering: Floats, mixing: Floats, rng: Generator) -> Integers:
    """A simple graph with these degrees, and near this clustering and this mixing.

    Several graphs are drawn for each of a few spreads of clustering, then for the best of them with cliques of nodes
    ever more alike in degree; after each the factor on the clustering of each class is corrected by what it missed.
    The nearest graph is returned. Nearness is the sum of three relative distances: of triangles by class, of the sum
    of clustering by class, and of the mixing.

    Parameters
    ----------
    classes : DegreeClasses
        Of the nodes, degrees rising; some simple graph has these degrees (`graphical`).
    clustering : array of shape (largest degree + 1,)
        The share of closed wedges at nodes of a degree.
    mixing : array of shape (classes, classes)
        The stubs of each class that lead to each other; rows add up to `classes.stubs`.
    rng : Generator
        The random generator; the draw also depends on igraph's version.

    Returns
    -------
    array of int64, shape (edges, 2)
        Each edge once; node i has the i-th of the degrees.

    Examples
    --------
    >>> degrees = np.repeat([2, 3], [60, 40])
    >>> classes = DegreeClasses.of(degrees)
    >>> mixing = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    >>> edges = clique_graph(classes, np.array([0, 0, 0.9, 0.5]), mixing, np.random.default_rng(1))
    >>> bool((np.bincount(edges.ravel()) == degrees).all())
    True
    """
    first = partial(draw_cliques, rng, classes.degrees)
    wanted, start = Wanted(classes, clustering, mixing, rng, first), np.ones(len(classes.stubs))
    draws = {(spread, SHUFFLES[0]): wanted.drawn(spread, SHUFFLES[0], start) for spread in SPREADS}
    spread, _ = min(draws, key=lambda tried: draws[tried].miss)
    draws |= {(spread, shuffle): wanted.drawn(spread, shuffle, start) for shuffle in SHUFFLES[1:]}
    best = min(draws, key=lambda tried: draws[tried].miss)
    last = wanted.drawn(*best, draws[best].factors, _LAST_ROUNDS)
    return min(draws[best], last, key=lambda draw: draw.miss).edges


@dataclass(frozen=True)
class Wanted:
    """What is asked of a graph, and what draws depend on.

    The first edges are those in which nodes have about the wanted triangles; others are drawn towards the mixing.
    """

    classes: DegreeClasses
    clustering: Floats
    mixing: Floats
    rng: Generator
    first_edges: Callable[[Floats, float], Integers]

    def drawn(self, spread: float, shuffle: float, factors: Floats, rounds: int = _ROUNDS) -> _Draw:
        """The nearest graph of some rounds, each with better factors on the clustering of classes."""
        degrees, label, count = self.classes.degrees, self.classes.label, len(self.classes.stubs)
        rng, clustering, wedges = self.rng, self.clustering[degrees], degrees * (degrees - 1) / 2
        wanted = np.bincount(label, clustering * wedges, count)
        wanted_mean = np.bincount(label, clustering * (degrees > 1), count)
        draws: list[_Draw] = []
        for _ in range(rounds):
            mean = np.clip(clustering * factors[label], 1e-9, 1 - 1e-9)
            share = rng.beta(mean * spread, (1 - mean) * spread)
            edges = _completed(self.classes, self.first_edges(share * wedges, shuffle), self.mixing, rng)
            _, local = local_clustering(degrees, edges)
            closed = np.bincount(label, local * wedges, count)
            mean_off = np.abs(np.bincount(label, local, count) - wanted_mean).sum() / max(float(wanted_mean.sum()), 1.0)
            off = np.abs(closed - wanted).sum() / max(float(wanted.sum()), 1.0)
            mixed = np.abs(class_mixing(edges, self.classes) - self.mixing).sum() / float(self.mixing.sum())
            draws.append(_Draw(edges, float(_FIRST * (off + mean_off) + mixed), factors))
            factors = np.minimum(factors * np.clip((wanted + 0.5) / (closed + 0.5), 0.5, 2.0), 20.0)
        return min(draws, key=lambda draw: draw.miss)


def class_mixing(edges: Integers, classes: DegreeClasses) -> Floats:
    """The stubs of each class that lead to each other in a graph."""
    count = len(classes.stubs)
    pairs = classes.label[edges[:, 0]] * count + classes.label[edges[:, 1]]
    one_way = np.bincount(pairs, minlength=count * count).reshape(count, count)
    return (one_way + one_way.T).astype(np.float64)


@lru_cache(maxsize=512)  # as many numbers as the degree each: those of small groups are asked for again and again
def _triangles_by_part(degree: int) -> Integers:
    """The triangles at a node whose edges go to cliques, by size of part.

    At [p − 1] the edges go to cliques in parts of p, and one of the rest. The numbers rise in p.
    """
    part = np.arange(1, degree + 1)
    full = degree // part
    rest = degree - full * part
    return np.maximum.accumulate(full * (part * (part - 1) // 2) + rest * (rest - 1) // 2)


def _parts(degrees: Integers, wanted: Floats, rng: Generator) -> Integers:
    """The size of parts for each node, drawn between the two that enclose the wanted triangles.

    Degrees rise.
    """
    high, least, most = (np.empty(len(degrees), dtype=np.int64) for _ in range(3))
    different, start, count = np.unique(degrees, return_index=True, return_counts=True)
    for degree, first, end in zip(different.tolist(), start.tolist(), (start + count).tolist(), strict=True):
        row, here = _triangles_by_part(degree), slice(first, end)
        high[here] = np.searchsorted(row, np.minimum(wanted[here], row[-1]))
        least[here], most[here] = row[np.maximum(high[here] - 1, 0)], row[high[here]]
    up = rng.random(len(degrees)) * np.maximum(most - least, 1) < wanted - least
    return np.asarray(np.where(up, high, np.maximum(high - 1, 0)) + 1)


def draw_cliques(rng: Generator, degrees: Integers, wanted: Floats, shuffle: float) -> Integers:
    """The edges of cliques in which nodes have about the wanted triangles.

    Degrees rise; no node has more edges than its degree.
    """
    part = _parts(degrees, wanted, rng)
    full = degrees // part
    rest = degrees - full * part
    nodes = np.concatenate([np.repeat(np.arange(len(degrees)), full), np.flatnonzero(rest > 1)])
    size = np.concatenate([np.repeat(part, full), rest[rest > 1]]) + 1
    places = size > 2
    nodes, size = nodes[places], size[places]
    order = np.lexsort((np.log2(degrees[nodes]) + shuffle * rng.standard_normal(len(nodes)), -size))
    found: list[Integers] = [np.zeros((0, 2), dtype=np.int64)]
    for members in _grouped(nodes[order], size[order]):
        one, other = np.triu_indices(members.shape[1], 1)
        found.append(np.stack([members[:, one].ravel(), members[:, other].ravel()], axis=1))
    one, other = rising(np.concatenate(found))
    found_once = rng.permutation(distinct((one * len(degrees) + other)[one != other]))
    edges = np.stack(np.divmod(found_once, len(degrees)), axis=1)
    over = np.bincount(edges.ravel(), minlength=len(degrees)) - degrees
    return np.asarray(edges[compiled(_within_degrees)(edges, over)])


def _grouped(nodes: Integers, size: Integers) -> list[Integers]:
    """Places in cliques, largest first, as arrays of shape (cliques, members).

    Places of one size fill cliques of that size. Those that are left over go with the next smaller ones, as soon as
    they are as many as they are large on average.
    """
    found: list[Integers] = []
    pool: list[int] = []
    total = 0
    sizes, first, count = np.unique(-size, return_index=True, return_counts=True)
    for large, start, number in zip((-sizes).tolist(), first.tolist(), count.tolist(), strict=True):
        at, end = start, start + number
        while pool and at < end and len(pool) ** 2 < total:
            pool.append(nodes[at])
            total += large
            at += 1
        if pool and len(pool) ** 2 >= total:
            found.append(np.array(pool)[None])
            pool, total = [], 0
        cliques = (end - at) // large
        if cliques:
            found.append(nodes[at : at + cliques * large].reshape(cliques, large))
            at += cliques * large
        pool.extend(nodes[at:end])
        total += large * (end - at)
    if len(pool) > 1:
        found.append(np.array(pool)[None])
    return found


def _completed(classes: DegreeClasses, cliques: Integers, mixing: Floats, rng: Generator) -> Integers:
    """The cliques and the edges that bring every node to its degree, drawn towards the mixing."""
    count, degrees = len(classes.stubs), classes.degrees
    free = degrees - np.bincount(cliques.ravel(), minlength=len(degrees))
    missing = np.maximum(mixing - class_mixing(cliques, classes), 1e-3 * mixing + 1e-9)
    pairs = np.triu(balanced(missing, np.bincount(classes.label, free, count).astype(np.float64)))
    pairs[np.diag_indices(count)] /= 2
    whole = np.floor(pairs + rng.random(pairs.shape)).astype(np.int64)
    stubs = rng.permutation(np.repeat(np.arange(len(degrees)), free))
    stubs = stubs[np.argsort(classes.label[stubs].astype(np.int16), kind="stable")]  # by radix
    ends = np.cumsum(np.bincount(classes.label[stubs], minlength=count))
    at = np.concatenate([[0], ends[:-1]])
    drawn = [cliques]
    for p, q in rng.permutation(np.argwhere(whole > 0)):
        if p == q:
            number = min(whole[p, p], (ends[p] - at[p]) // 2)
            drawn.append(stubs[at[p] : at[p] + 2 * number].reshape(-1, 2))
            at[p] += 2 * number
        else:
            number = min(whole[p, q], ends[p] - at[p], ends[q] - at[q])
            drawn.append(np.stack([stubs[at[p] : at[p] + number], stubs[at[q] : at[q] + number]], axis=1))
            at[[p, q]] += number
    rest = rng.permutation(np.concatenate([stubs[a:b] for a, b in zip(at, ends, strict=True)]))
    drawn.append(rest.reshape(-1, 2))
    edges = np.stack(rising(np.concatenate(drawn)), axis=1)
    if compiled(swap_away)(edges, len(degrees), len(cliques), TRIES, rng):
        return edges
    # degrees are so tight that loops and repeated edges cannot be swapped away: a random graph that has them
    falling = np.argsort(-degrees, kind="stable")
    return np.stack(rising(falling[random_graph(degrees[falling], rng)]), axis=1)


def rising(edges: Integers) -> tuple[Integers, Integers]:
    """The smaller end of each edge, and the larger."""
    return np.minimum(edges[:, 0], edges[:, 1]), np.maximum(edges[:, 0], edges[:, 1])


# Loops over public graphs, as machine code where numba is installed.


def local_clustering(degrees: Integers, edges: Integers) -> tuple[int, Floats]:
    """The number of triangles, and for each node its clustering coefficient."""
    count, place = len(degrees), np.empty(len(degrees), dtype=np.int64)
    place[np.argsort(degrees, kind="stable")] = np.arange(count)
    low, high = rising(place[edges])
    starts = np.concatenate([[0], np.cumsum(np.bincount(low, minlength=count))])
    found = np.zeros(count, dtype=np.int64)
    compiled(_count_triangles)(low, high, starts, np.full(count, -1), found)
    pairs = np.maximum(degrees * (degrees - 1) / 2, 1)
    return int(found.sum()) // 3, found[place] / pairs


def _count_triangles(low: Integers, high: Integers, starts: Integers, marks: Integers, found: Integers) -> None:
    """Count the triangles at each node, whose neighbours are those of no lower degree."""
    neighbours, at = np.empty_like(high), starts.copy()
    for i in range(len(low)):
        neighbours[at[low[i]]] = high[i]
        at[low[i]] += 1
    for u in range(len(found)):
        for v in neighbours[starts[u] : starts[u + 1]]:
            marks[v] = u
        for v in neighbours[starts[u] : starts[u + 1]]:
            for w in neighbours[starts[v] : starts[v + 1]]:
                if marks[w] == u:
                    found[u] += 1
                    found[v] += 1
                    found[w] += 1


def swap_away(edges: Integers, nodes: int, cliques: int, tries: int, rng: Generator) -> bool:
    """Swap loops and repeated edges away, in place; whether that was done.

    There are so many tries for each. Where possible, it swaps with edges outside the first `cliques`.
    """
    held, good = set(), np.ones(len(edges), dtype=np.bool_)
    for i in range(len(edges)):
        one, other = edges[i]
        if one == other or one * nodes + other in held:
            good[i] = False
        else:
            held.add(one * nodes + other)
    bad = np.flatnonzero(~good)
    last, tries = len(bad) - 1, tries * (len(bad) + 100)
    while last >= 0 and tries > 0:
        for draw in rng.random((min(tries, 4096), 3)):
            tries -= 1
            low = cliques if len(edges) > cliques and draw[0] < 0.9 else 0
            i, j = bad[last], int(low + draw[1] * (len(edges) - low))
            if not good[j]:
                continue
            a, b, c, d = edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1]
            old = c * nodes + d
            if draw[2] < 0.5:
                c, d = d, c
            one, other = min(a, d) * nodes + max(a, d), min(c, b) * nodes + max(c, b)
            if a == d or c == b or one == other or one in held or other in held:
                continue
            held.discard(old)
            held.add(one)
            held.add(other)
            edges[i, 0], edges[i, 1], edges[j, 0], edges[j, 1] = min(a, d), max(a, d), min(c, b), max(c, b)
            good[i] = True
            last -= 1
            if last < 0:
                break
    return last < 0


def _within_degrees(edges: Integers, over: Integers) -> Any:
    """Whether each edge is kept, where nodes have too many by so much: the first ones go."""
    kept = np.ones(len(edges), dtype=np.bool_)
    for i in range(len(edges)):
        one, other = edges[i]
        if over[one] > 0 or over[other] > 0:
            kept[i] = False
            over[one] -= 1
            over[other] -= 1
    return kept
