"""Triangles and squares by the degrees of their vertices, and triangles as one number.

As in `recipes`, edges are records of two fields of one type (else PlanError), symmetric, of weight 1; closed forms
hold for simple graphs.
"""

from __future__ import annotations

from typing import Any

from wpinq.errors import PlanError
from wpinq.expr import library as wp
from wpinq.graphs.recipes import check_edges, paths
from wpinq.query import Query


def triangles_by_degree(edges: Query, bucket: int = 1) -> Query:
    """The degrees of the three vertices of each triangle (TbD).

    With `bucket=1` each triangle adds `3/(d_a² + d_b² + d_c²)` to the sorted triple of its degrees.

    Parameters
    ----------
    edges : Query
        Symmetric edges of weight 1.
    bucket : int
        At least 1. Degrees d are replaced by `⌊d / bucket⌋`: fewer, heavier records (20 in the paper).

    Returns
    -------
    Query
        Records `(x, y, z)`, x ≤ y ≤ z. Uses: 9; 18 from undirected edges.

    Raises
    ------
    PlanError
        When bucket is no integer of at least 1.

    Notes
    -----
    Source: paper, section 3.3 (equation (4), Theorem 2) and section 5.2 for the buckets. With `bucket=1`,
    `rescale.triangles_from_weight` gives counts exactly. With wider buckets there is no exact rescaling: a bucket
    adds up triangles of different weights.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.graphs.recipes import symmetrize
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> tailed = {"edges": [(0, 1), (1, 2), (2, 0), (2, 3)]}
    >>> wp.evaluate(triangles_by_degree(symmetrize(edges)), tailed, exact=True)
    WeightedDataset({(2, 2, 3): Fraction(3, 17)})
    """
    if isinstance(bucket, bool) or not isinstance(bucket, int) or bucket < 1:
        raise PlanError(f"bucket must be an integer of at least 1, not {bucket!r}")
    abc = _paths_with_degree(edges, bucket)
    bca = abc.select(_rotated)
    cab = bca.select(_rotated)

    def pair(x: Any, y: Any) -> Any:
        return wp.record(path=x.path, first=x.degree, second=y.degree)

    pairs = abc.join(bca, lambda x: x.path, lambda y: y.path, pair)
    triples = pairs.join(cab, lambda x: x.path, lambda y: y.path, lambda x, y: (x.first, x.second, y.degree))
    if bucket == 1:
        reading = (
            "each triangle adds 3/(x² + y² + z²) to its degrees (x, y, z): multiply by (x² + y² + z²)/3 for the "
            "number of triangles"
        )
    else:
        reading = (
            f"each triangle adds 3/(d_a² + d_b² + d_c²) to its degrees divided by {bucket}, rounded down: a bucket "
            "mixes weights, so this is no count and has no exact rescaling"
        )
    return triples.select(lambda triple: wp.sort(triple)).read_as(reading)


def squares_by_degree(edges: Query) -> Query:
    """The degrees around each square, a cycle of four vertices, with or without chords (SbD).

    With `f(p, q) = p²(q − 1) + q²(p − 1)`, each square of degrees a, b, c, d around it adds
    `2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d))` to its canonical cyclic quadruple.

    Returns
    -------
    Query
        Records `(a, b, c, d)`, degrees in order around the square: the least of the eight ways to write them
        (four starts, two directions). Uses: 12; 24 from undirected edges.

    Notes
    -----
    Source: paper, section 3.4 (equations (5) and (6), Theorem 3), but for the last step. The paper sorts the four
    degrees; what a square weighs depends on their order around it, so sorting mixes weights. This keeps the order,
    and `rescale.squares_from_weight` gives counts exactly.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.graphs.recipes import symmetrize
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> tailed = {"edges": [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]}
    >>> wp.evaluate(squares_by_degree(symmetrize(edges)), tailed, exact=True)
    WeightedDataset({(2, 2, 2, 3): Fraction(4, 25)})
    """
    abc = _paths_with_degree(edges, 1)

    def longer(x: Any, y: Any) -> Any:
        return wp.record(path=(x.path[0], x.path[1], x.path[2], y.path[2]), second=x.degree, third=y.degree)

    joined = abc.join(abc, lambda x: (x.path[1], x.path[2]), lambda y: (y.path[0], y.path[1]), longer)
    abcd = joined.where(lambda x: x.path[0] != x.path[3])

    def turned(x: Any) -> Any:
        return wp.record(path=wp.rotate(wp.rotate(x.path)), fourth=x.second, first=x.third)

    cdab = abcd.select(turned)
    around = abcd.join(cdab, lambda x: x.path, lambda y: y.path, lambda x, y: (y.first, x.second, x.third, y.fourth))
    return around.select(_least_around).read_as(
        "each square of degrees a, b, c, d around it adds 2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d)), where "
        "f(p,q) = p²(q−1) + q²(p−1): divide by that for the number of squares"
    )


def triangles_by_intersect(edges: Query) -> Query:
    """One number that grows with every triangle (TbI).

    `out("triangle!") = Σ_{triangles abc} min(1/d_a, 1/d_b) + min(1/d_a, 1/d_c) + min(1/d_b, 1/d_c)`

    Returns
    -------
    Query
        The one record `"triangle!"`. Uses: 4; 8 from undirected edges.

    Notes
    -----
    Source: paper, section 5.3, equation (8). There is no rescaling to a count: triangles of low degree weigh more.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.graphs.recipes import symmetrize
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(triangles_by_intersect(symmetrize(edges)), {"edges": [(0, 1), (1, 2), (2, 0)]})
    WeightedDataset({'triangle!': 1.5})
    """
    abc = paths(edges)
    closed = abc.select(lambda path: wp.rotate(path)).intersect(abc)
    return closed.select(lambda path: "triangle!").read_as(
        "each triangle adds min(1/d_a,1/d_b) + min(1/d_a,1/d_c) + min(1/d_b,1/d_c): a weight with no exact rescaling"
    )


def _paths_with_degree(edges: Query, bucket: int) -> Query:
    """Paths with the degree of their middle vertex, `1/(2·d_b²)` each."""
    check_edges(edges)

    def degree(group: Any) -> Any:
        return wp.count(group) if bucket == 1 else wp.count(group) // bucket

    known = edges.group_by(lambda e: e[0], degree)
    return paths(edges).join(
        known, lambda path: path.b, lambda node: node.key, lambda path, node: wp.record(path=path, degree=node.val)
    )


def _rotated(x: Any) -> Any:
    return wp.record(path=wp.rotate(x.path), degree=x.degree)


def _least_around(degrees: Any) -> Any:
    """The least of the eight ways to write a cyclic quadruple.

    They are what comes of exchanging the ends of either diagonal, and the two diagonals.
    """
    diagonals = wp.sort((wp.sort((degrees[0], degrees[2])), wp.sort((degrees[1], degrees[3]))))
    return (diagonals[0][0], diagonals[1][0], diagonals[0][1], diagonals[1][1])
