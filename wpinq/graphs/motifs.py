"""Motifs: the copies of a small connected pattern in a graph."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, permutations
from typing import Any

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError, described
from wpinq.graphs.recipes import check_edges

# --- patterns: small connected graphs and their automorphisms ---------------------------------------------------------

# The vertices of a copy are distinct, so the least tuple over the automorphisms is found position by position: the
# first takes the least vertex of its orbit, the next the least of its orbit under the automorphisms that leave the
# first alone, and so on. Each position costs one step, so nothing grows with the number of automorphisms.

#: The most vertices of a pattern.
MOST_VERTICES = 5

Edge = tuple[int, int]
Permutation = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A connected simple graph on the vertices 0 to size − 1.

    Its edges are `(u, v)` with u < v, in order.
    """

    size: int
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Ordering:
    """A step towards the least tuple, over the vertices at `positions`.

    Without rearrangements these are interchangeable, and the step puts them in order. Else it puts the least of them to
    the front. Where the vertex at `positions[i]` is the least, the tuple t becomes `(t[r[0]], t[r[1]], …)` with
    `r = rearrangements[i]`.
    """

    positions: tuple[int, ...]
    rearrangements: tuple[Permutation, ...] = ()


def read_pattern(given: Iterable[Any]) -> Pattern:
    """A pattern from its edges, or PlanError that says what is wrong with them."""
    edges: set[Edge] = set()
    try:
        if isinstance(given, str):
            raise TypeError
        pairs = [tuple(pair) for pair in given]
    except TypeError:
        raise PlanError("a pattern is a list of edges, such as [(0, 1), (1, 2), (2, 0)]") from None
    for pair in pairs:
        if len(pair) != 2 or any(isinstance(v, bool) or not isinstance(v, int) for v in pair):
            raise PlanError(f"{described(pair)} is no edge of a pattern: its vertices are the integers 0, 1, 2, …")
        u, v = sorted(pair)
        if u == v:
            raise PlanError(f"the pattern has a loop, {pair!r}; its edges join two vertices")
        if (u, v) in edges:
            raise PlanError(f"the pattern has the edge {pair!r} twice, in one or both directions; give each edge once")
        edges.add((u, v))
    vertices = {v for edge in edges for v in edge}
    size = len(vertices)
    if not 2 <= size <= MOST_VERTICES:
        raise PlanError(f"a pattern has 2 to {MOST_VERTICES} vertices, not {size}")
    if vertices != set(range(size)):
        raise PlanError(f"the vertices of a pattern are numbered 0 to {size - 1} without gaps, not {sorted(vertices)}")
    reached = {0}
    for _ in range(size):
        reached |= {v for edge in edges for v in edge if reached & set(edge)}
    if len(reached) < size:
        raise PlanError("the pattern is not connected; measure its parts on their own")
    return Pattern(size, tuple(sorted(edges)))


def relabelled(pattern: Pattern, labels: Permutation) -> Pattern:
    """The same graph with vertex v called `labels[v]`."""
    pairs = ((labels[u], labels[v]) for u, v in pattern.edges)
    return Pattern(pattern.size, tuple(sorted((min(pair), max(pair)) for pair in pairs)))


def standard_form(pattern: Pattern) -> tuple[Pattern, Permutation]:
    """The first of all relabellings in order of their edges, and the labels that give it.

    Isomorphic patterns have one standard form, and so one join plan.
    """
    labels = min(permutations(range(pattern.size)), key=lambda labels: relabelled(pattern, labels).edges)
    return relabelled(pattern, labels), labels


def automorphisms(pattern: Pattern) -> list[Permutation]:
    """Every relabelling that leaves the pattern as it is."""
    return [labels for labels in permutations(range(pattern.size)) if relabelled(pattern, labels) == pattern]


def least_steps(pattern: Pattern) -> list[Ordering]:
    """Steps that turn any embedding of the pattern into the least one of the same copy."""
    steps: list[Ordering] = []
    group = automorphisms(pattern)
    for vertex in range(pattern.size):
        orbit = tuple(sorted({labels[vertex] for labels in group}))
        if len(orbit) == 1:
            continue
        exchanges = ({u: v, v: u} for u, v in combinations(orbit, 2))
        if all(tuple(to.get(vertex, vertex) for vertex in range(pattern.size)) in group for to in exchanges):
            steps.append(Ordering(orbit))
            group = [labels for labels in group if all(labels[v] == v for v in orbit)]
        else:
            moves = (next(labels for labels in group if labels[vertex] == other) for other in orbit)
            steps.append(Ordering(orbit, tuple(moves)))
            group = [labels for labels in group if labels[vertex] == vertex]
    return steps


# --- covers: the joins that assemble a pattern from its edges ---------------------------------------------------------

# A cover is a binary tree. Its leaves are the edges of the pattern, each once, so the query uses its source once an
# edge, and no query that checks every edge can use it less. An inner node joins two parts on the vertices they share.
# Of all such trees, the one kept gives copies the largest weight in a typical graph: one where a vertex has `DEGREE`
# neighbours and a path closes with chance `CLOSURE`. A record of a part has then about
#
#     n = 1 + DEGREE^f · CLOSURE^(e − f)        records at its key, itself and others
#
# for f vertices of the part that the key leaves free and e edges at them (n = 1 when f = 0), and a join of records that
# weigh a and b gives `a·b / (a·n_a + b·n_b)`. Ties go to the tree that makes fewer records on the way.
#
# The estimate only picks a plan; weights and stability are exact whatever it says. The pick hardly depends on the two
# constants: degrees from 4 to 64 with closures from 1/16 to 1/2 change it for at most 4 of the 30 patterns there are.

DEGREE = 16.0
CLOSURE = 0.125


@dataclass(frozen=True, slots=True)
class Cover:
    """A part of a pattern, and how it is put together.

    Attributes
    ----------
    edges : tuple of edges
        The part.
    parts : None or pair of Cover
        The two parts that are joined; None for a single edge.
    weight : float
        The estimated weight of a record.
    records : float
        The estimated number of records made on the way, for each vertex of the graph.
    """

    edges: tuple[Edge, ...]
    parts: tuple[Cover, Cover] | None
    weight: float
    records: float

    @property
    def vertices(self) -> frozenset[int]:
        """The vertices of the part."""
        return frozenset(vertex for edge in self.edges for vertex in edge)


@lru_cache(maxsize=256)
def best_cover(pattern: Pattern) -> Cover:
    """The cover of the largest estimated weight, found by looking at all of them, part by part."""
    best: dict[int, Cover] = {1 << i: Cover((edge,), None, 1.0, DEGREE) for i, edge in enumerate(pattern.edges)}
    whole = (1 << len(pattern.edges)) - 1
    for subset in range(1, whole + 1):
        halves = ((half, subset ^ half) for half in _halves(subset))
        joined = (_join(best[one], best[other]) for one, other in halves if one in best and other in best)
        found = [cover for cover in joined if cover is not None]
        if found:
            best[subset] = max(found, key=lambda cover: (cover.weight, -cover.records))
    return best[whole]


def _halves(subset: int) -> Iterator[int]:
    """Every way to split a set of edges in two, given as the half that has its first edge."""
    first = subset & -subset
    rest = subset ^ first
    half = rest
    while half:
        half = (half - 1) & rest
        yield half | first


def _join(left: Cover, right: Cover) -> Cover | None:
    shared = left.vertices & right.vertices
    if not shared:
        return None
    norm = left.weight * _records_at(shared, left) + right.weight * _records_at(shared, right)
    edges = tuple(sorted(left.edges + right.edges))
    size = len(left.vertices | right.vertices)
    made = DEGREE ** (size - 1) * CLOSURE ** (len(edges) - size + 1)
    return Cover(edges, (left, right), left.weight * right.weight / norm, left.records + right.records + made)


def _records_at(key: frozenset[int], cover: Cover) -> float:
    free = cover.vertices - key
    if not free:
        return 1.0
    touching = sum(1 for u, v in cover.edges if u in free or v in free)
    return 1.0 + DEGREE ** len(free) * CLOSURE ** (touching - len(free))


#: A query of embeddings of a part, and the vertex of the pattern at each position of its records.
_Embeddings = tuple[Query, tuple[int, ...]]


def motif(edges: Query, pattern: Iterable[Any]) -> Query:
    """The copies of a pattern in a graph, one record for each.

    A copy is a subgraph, not an induced one: edges beyond those of the pattern do not matter. Its record holds the
    vertices of the copy in the order of the pattern's vertices 0, 1, …: the least of all ways to write it that the
    pattern's automorphisms allow. The weights of those ways add up on it.

    Parameters
    ----------
    edges : Query
        Symmetric edges of weight 1. Nodes need an order: int, float, bool, str, or records of those. Self-loops
        are left out.
    pattern : list of pairs
        The edges of a connected simple graph on 2 to 5 vertices, numbered from 0 without gaps:
        `[(0, 1), (1, 2), (2, 0)]` is the triangle.

    Returns
    -------
    Query
        Records of as many nodes as the pattern has vertices; every copy has positive weight and nothing else has
        any. Uses: the number of edges of the pattern (twice that from undirected edges).

    Raises
    ------
    PlanError
        When the pattern is not as said, or edges are not as `recipes` wants them.
    ExpressionError
        When nodes have no order.

    Notes
    -----
    Weights are **not counts**: a copy weighs less where degrees are high and where many copies share a part, and
    the weights of different copies mix in whatever is made of them. There is no exact rescaling. For triangles and
    squares by degree there is one: see `triangles_by_degree` and `squares_by_degree`.

    How the copies are found: edges join to paths, paths to larger parts, on the vertices they share, all vertices
    distinct. `best_cover` says which of the ways is taken; isomorphic patterns take the same.

    Source: paper, section 3.5, which says that this can be done but not how.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.graphs.recipes import symmetrize
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> triangles = motif(symmetrize(edges), [(0, 1), (1, 2), (2, 0)])
    >>> triangles.uses()
    {'edges': 6}
    >>> found = wp.evaluate(triangles, {"edges": [(1, 2), (2, 3), (3, 1), (3, 4)]})
    >>> sorted(found)
    [(1, 2, 3)]
    """
    wanted = read_pattern(pattern)
    query, vertices = _embeddings(edges, wanted)
    order = tuple(vertices.index(vertex) for vertex in range(wanted.size))
    if order != tuple(range(wanted.size)):
        query = query.select(lambda copy: _fields(copy, order))
    for step in least_steps(wanted):
        query = query.select(lambda copy, step=step: _step(copy, step, wanted.size))
    return query.read_as("copies of the pattern, of weights that depend on the degrees around them")


def motif_total(edges: Query, pattern: Iterable[Any]) -> Query:
    """The total weight of the copies of a pattern: one number that grows with every copy.

    Returns
    -------
    Query
        The one record `"motif"`. Uses: the number of edges of the pattern.

    Notes
    -----
    A weight, not a count: it says that there are such copies and, between graphs of like degrees, where there are
    more. It is what synthesis fits to, as in section 5.3 of the paper.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> both_ways = {"edges": [(1, 2), (2, 1), (2, 3), (3, 2), (3, 1), (1, 3)]}
    >>> wp.evaluate(motif_total(edges, [(0, 1), (1, 2), (2, 0)]), both_ways, exact=True)
    WeightedDataset({'motif': Fraction(6, 5)})
    """
    query, _ = _embeddings(edges, read_pattern(pattern))
    return query.select(lambda copy: "motif").read_as("total weight of all copies of the pattern")


def _embeddings(edges: Query, pattern: Pattern) -> _Embeddings:
    """Every embedding of the pattern, each with its own weight."""
    check_edges(edges)
    standard, labels = standard_form(pattern)
    simple = edges.where(lambda e: e[0] != e[1]).select(lambda e: (e[0], e[1]))
    query, vertices = _assemble(best_cover(standard), simple, frozenset())
    return query, tuple(labels.index(vertex) for vertex in vertices)


def _assemble(cover: Cover, edges: Query, last: frozenset[int]) -> _Embeddings:
    """The embeddings of a part; where it is a single edge, with the vertices of `last` last.

    Parts that are put together alike give equal queries, which an engine evaluates once.
    """
    if cover.parts is None:
        return edges, tuple(sorted(cover.edges[0], key=lambda vertex: vertex in last))
    left, right = cover.parts
    shared = left.vertices & right.vertices
    left_query, left_vertices = _assemble(left, edges, shared)
    right_query, right_vertices = _assemble(right, edges, right.vertices - shared)
    key = [vertex for vertex in left_vertices if vertex in shared]
    left_key = tuple(left_vertices.index(vertex) for vertex in key)
    right_key = tuple(right_vertices.index(vertex) for vertex in key)
    added = tuple(i for i, vertex in enumerate(right_vertices) if vertex not in shared)
    width = len(left_vertices)

    def together(x: Any, y: Any) -> Any:
        return (*_fields(x, tuple(range(width))), *_fields(y, added))

    joined = left_query.join(right_query, lambda x: _key(x, left_key), lambda y: _key(y, right_key), together)
    free = [i for i, vertex in enumerate(left_vertices) if vertex not in shared]
    apart = [(i, width + j) for i in free for j in range(len(added))]
    if apart:
        joined = joined.where(lambda copy: reduce(operator.and_, (copy[i] != copy[j] for i, j in apart)))
    return joined, left_vertices + tuple(right_vertices[i] for i in added)


def _key(record: Any, positions: tuple[int, ...]) -> Any:
    return record[positions[0]] if len(positions) == 1 else _fields(record, positions)


def _fields(record: Any, positions: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(record[i] for i in positions)


def _step(copy: Any, step: Ordering, size: int) -> Any:
    # sort and not min: it knows the order of every type that has one, null and records included
    ordered = F.sort(_fields(copy, step.positions))
    if not step.rearrangements:
        places = {position: ordered[i] for i, position in enumerate(step.positions)}
        return tuple(places.get(i, copy[i]) for i in range(size))
    least = ordered[0]
    *choices, (_, other) = zip(step.positions, step.rearrangements, strict=True)
    result: Any = _fields(copy, other)
    for position, rearrangement in reversed(choices):
        result = F.where(least == copy[position], _fields(copy, rearrangement), result)
    return result
