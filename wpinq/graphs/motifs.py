"""Motifs: the copies of a small connected pattern in a graph."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce
from typing import Any

from wpinq.expr import library as wp
from wpinq.graphs.cover import Cover, best_cover
from wpinq.graphs.pattern import Ordering, Pattern, least_steps, read_pattern, standard_form
from wpinq.graphs.recipes import check_edges
from wpinq.query import Query

_Embeddings = tuple[Query, tuple[int, ...]]
"""A query of embeddings of a part, and the vertex of the pattern at each position of its records."""


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
    distinct. `cover` says which of the ways is taken; isomorphic patterns take the same.

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
    return query.read_as("one record a copy of the pattern; its weight depends on the degrees around it: no count")


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
    return query.select(lambda copy: "motif").read_as(
        "the weights of all copies of the pattern together: it grows with them but is no count"
    )


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
        joined = joined.where(lambda copy: _all_differ(copy, apart))
    return joined, left_vertices + tuple(right_vertices[i] for i in added)


def _key(record: Any, positions: tuple[int, ...]) -> Any:
    return record[positions[0]] if len(positions) == 1 else _fields(record, positions)


def _fields(record: Any, positions: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(record[i] for i in positions)


def _all_differ(copy: Any, pairs: list[tuple[int, int]]) -> Any:
    return reduce(operator.and_, (copy[i] != copy[j] for i, j in pairs))


def _step(copy: Any, step: Ordering, size: int) -> Any:
    # sort and not min: it knows the order of every type that has one, null and records included
    ordered = wp.sort(_fields(copy, step.positions))
    if not step.rearrangements:
        places = {position: ordered[i] for i, position in enumerate(step.positions)}
        return tuple(places.get(i, copy[i]) for i in range(size))
    least = ordered[0]
    *choices, (_, other) = zip(step.positions, step.rearrangements, strict=True)
    result: Any = _fields(copy, other)
    for position, rearrangement in reversed(choices):
        result = wp.where(least == copy[position], _fields(copy, rearrangement), result)
    return result
