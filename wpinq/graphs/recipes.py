"""Queries about degrees, joint degrees, triangles and squares of a graph.

Edges are records of two fields of one type, whatever their names (else every recipe raises PlanError), and stand in
both directions, of weight 1 each. `symmetrize` makes that of a source that holds each undirected edge once. Closed
forms hold for simple graphs: no self-loops, no edge twice.
"""

from __future__ import annotations

from typing import Any

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.types import TupleOf
from wpinq.inference.checks import count_of


def check_edges(edges: Query) -> None:
    """Refuse, with PlanError, a query whose records are not two fields of one type."""
    if not isinstance(edges, Query):
        raise PlanError(
            f"expected the query of a graph's edges, not a {type(edges).__name__}: declare them with "
            'wp.source("edges", src=int, dst=int), and give the graph itself to session.protect'
        )
    type_ = edges.plan.type
    if not (isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]):
        raise PlanError(
            f"the records of edges must be two fields of one type, such as (src: int, dst: int), not {type_}: "
            "select the two ends first"
        )


def ends(edges: Query) -> Query:
    """Both nodes of each edge, at half its weight."""
    check_edges(edges)
    return edges.select_many(lambda e: [e[0], e[1]])


def symmetrize(undirected: Query) -> Query:
    """Every edge in both directions, from edges that occur once.

    `out((a, b)) = A((a, b)) + A((b, a))`

    Parameters
    ----------
    undirected : Query
        Edges in one direction each. An edge in both directions gets weight 2.

    Returns
    -------
    Query
        The same records, of weight 1 if the edge occurred once. Uses of the source: 2, so every recipe costs double.
        This is the price of protecting an undirected edge as a whole.

    Notes
    -----
    Source: paper, section 3.3. A source with both directions needs no `symmetrize`. It declares `unit_weight=2` to
    protect undirected edges, at the same cost.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=str, other=str)
    >>> wp.evaluate(symmetrize(friends), {"friends": [("ann", "bob")]})
    WeightedDataset({('ann', 'bob'): 1.0, ('bob', 'ann'): 1.0})
    """
    check_edges(undirected)
    return undirected.select(lambda e: F.reverse(e)).concat(undirected)


def nodes(edges: Query) -> Query:
    """The nodes that have an edge.

    `out(a) = 1/2`: each edge shares its weight between its ends, and half a unit of a node's weight is kept.

    Returns
    -------
    Query
        One record for each node, of weight 1/2. Uses: 1. `nodes(edges).select(lambda a: "nodes")` weighs half their
        number.

    Notes
    -----
    Source: paper, section 2.8. `graphs.nodes_from_weight` doubles.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(nodes(edges), {"edges": [(1, 2), (2, 1)]})
    WeightedDataset({1: 0.5, 2: 0.5})
    """
    first = ends(edges).shave(0.5).where(lambda piece: piece.index == 0)
    return first.select(lambda piece: piece.record).read_as("nodes with an edge, each of weight 1/2")


def degrees(edges: Query) -> Query:
    """Each node with its degree.

    `out((a, d_a)) = 1/2`

    Returns
    -------
    Query
        Records `(key: node, val: degree)` of weight 1/2. Uses: 1.

    Notes
    -----
    Source: paper, section 3.2. One more edge changes the record of each end, so GroupBy halves the weight.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> star = symmetrize(edges)
    >>> wp.evaluate(degrees(star).select(lambda d: d.val), {"edges": [(0, 1), (0, 2), (0, 3)]})
    WeightedDataset({1: 1.5, 3: 0.5})
    """
    check_edges(edges)
    grouped = edges.group_by(lambda e: e[0], lambda group: F.count(group))
    return grouped.read_as("nodes with their degrees, each of weight 1/2")


def degree_ccdf(edges: Query) -> Query:
    """The complementary cumulative distribution of degrees.

    `out(y) = #{a : d_a > y}`, y = 0, 1, 2, …

    Returns
    -------
    Query
        Records 0, 1, 2, …; weights are counts of nodes. Uses: 1.

    Notes
    -----
    Source: paper, section 3.1. `fitting.fit_degree_sequence` fits it together with the degree sequence.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(degree_ccdf(symmetrize(edges)), {"edges": [(0, 1), (0, 2), (0, 3)]})
    WeightedDataset({0: 4.0, 1: 1.0, 2: 1.0})
    """
    return _ccdf(edges).read_as("number of nodes with more than key edges")


def degree_sequence(edges: Query) -> Query:
    """The degrees, largest first.

    `out(x) =` the (x + 1)-th largest degree, x = 0, 1, 2, …: the CCDF with its axes exchanged.

    Returns
    -------
    Query
        Records 0, 1, 2, …; weights are degrees. Uses: 1.

    Notes
    -----
    Source: paper, section 3.1. The number of nodes stays private: beyond it the released values are noise about 0.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(degree_sequence(symmetrize(edges)), {"edges": [(0, 1), (0, 2), (0, 3)]})
    WeightedDataset({0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0})
    """
    shaved = _ccdf(edges).shave(1.0).select(lambda piece: piece.index)
    return shaved.read_as("degree of the node at rank key, from 0 for the largest")


def _ccdf(edges: Query) -> Query:
    check_edges(edges)
    return edges.select(lambda e: e[0]).shave(1.0).select(lambda piece: piece.index)


def paths(edges: Query) -> Query:
    """The paths of two edges, from each end.

    `out((a, b, c)) = 1/(2·d_b)`, a ≠ c.

    Returns
    -------
    Query
        Records `(a, b, c)`; each path occurs in both directions. Uses: 2.

    Notes
    -----
    Source: paper, section 2.7. `graphs.path_weight` gives the weight.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(paths(symmetrize(edges)), {"edges": [(0, 1), (1, 2)]})
    WeightedDataset({(0, 1, 2): 0.25, (2, 1, 0): 0.25})
    """
    check_edges(edges)

    def path(left: Any, right: Any) -> Any:
        return F.record(a=left[0], b=left[1], c=right[1])

    joined = edges.join(edges, lambda left: left[1], lambda right: right[0], path)
    reading = "paths (a, b, c), each of weight 1/(2 d_b), with d_b the degree of b"
    return joined.where(lambda p: p.a != p.c).read_as(reading)


def joint_degrees(edges: Query) -> Query:
    """The degrees of the two ends of each edge.

    `out((i, j)) = #{directed edges from degree i to degree j} / (2 + 2·i + 2·j)`

    Returns
    -------
    Query
        Records `(i, j)`, and `(j, i)` with the same weight. Uses: 4.

    Notes
    -----
    Source: paper, section 3.2, equation (3). `graphs.edges_from_joint_degrees` gives counts of directed edges,
    exactly: an undirected edge between different degrees is one of `(i, j)` and one of `(j, i)`; between equal
    degrees it is two of `(i, i)`.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(joint_degrees(symmetrize(edges)), {"edges": [(0, 1), (1, 2)]}, exact=True)
    WeightedDataset({(2, 1): Fraction(1, 4), (1, 2): Fraction(1, 4)})
    """
    known = degrees(edges)

    def with_degree(node: Any, edge: Any) -> Any:
        return F.record(edge=edge, degree=node.val)

    temp = known.join(edges, lambda node: node.key, lambda e: e[0], with_degree)
    joint = temp.join(temp, lambda x: x.edge, lambda y: (y.edge[1], y.edge[0]), lambda x, y: (x.degree, y.degree))
    return joint.read_as("directed edges from degree i to degree j, each of weight 1/(2 + 2i + 2j)")


# --- triangles and squares --------------------------------------------------------------------------------------------

# As in `recipes`, edges are records of two fields of one type (else PlanError), symmetric, of weight 1; closed forms
# hold for simple graphs.


def triangles_by_degree(edges: Query, bucket: int = 1) -> Query:
    """The degrees of the three vertices of each triangle (TbD).

    With `bucket=1` each triangle adds `3/(d_a² + d_b² + d_c²)` to the sorted triple of its degrees.

    Parameters
    ----------
    edges : Query
        Symmetric edges of weight 1.
    bucket : int
        At least 1. `⌊d / bucket⌋` replaces the degree d, for fewer and heavier records (20 in the paper).

    Returns
    -------
    Query
        Records `(x, y, z)`, x ≤ y ≤ z. Uses: 9; 18 from undirected edges.

    Raises
    ------
    PlanError
        If bucket is no integer of at least 1.

    Notes
    -----
    Source: paper, section 3.3 (equation (4), Theorem 2) and section 5.2 for the buckets. With `bucket=1`,
    `graphs.triangles_from_weight` gives counts exactly. With wider buckets there is no exact rescaling: a bucket
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
    count_of(bucket, "bucket", 1, error=PlanError)
    abc = _paths_with_degree(edges, bucket)
    bca = abc.select(_rotated)
    cab = bca.select(_rotated)

    def pair(x: Any, y: Any) -> Any:
        return F.record(path=x.path, first=x.degree, second=y.degree)

    pairs = abc.join(bca, lambda x: x.path, lambda y: y.path, pair)
    triples = pairs.join(cab, lambda x: x.path, lambda y: y.path, lambda x, y: (x.first, x.second, y.degree))
    reading = f"triangles in buckets of {bucket} degrees, of mixed weights 3/(d_a² + d_b² + d_c²)"
    if bucket == 1:
        reading = "triangles with degrees (x, y, z), each of weight 3/(x² + y² + z²)"
    return triples.select(lambda triple: F.sort(triple)).read_as(reading)


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
    Source: paper, section 3.4 (equations (5) and (6), Theorem 3), except for the last step. The paper sorts the four
    degrees, which mixes weights, because the weight of a square depends on their order around it. This recipe keeps the
    order, so `graphs.squares_from_weight` gives counts exactly.

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
        return F.record(path=(x.path[0], x.path[1], x.path[2], y.path[2]), second=x.degree, third=y.degree)

    joined = abc.join(abc, lambda x: (x.path[1], x.path[2]), lambda y: (y.path[0], y.path[1]), longer)
    abcd = joined.where(lambda x: x.path[0] != x.path[3])

    def turned(x: Any) -> Any:
        return F.record(path=F.rotate(F.rotate(x.path)), fourth=x.second, first=x.third)

    cdab = abcd.select(turned)
    around = abcd.join(cdab, lambda x: x.path, lambda y: y.path, lambda x, y: (y.first, x.second, x.third, y.fourth))
    return around.select(_least_around).read_as(
        "squares with degrees a, b, c, d around them, each of weight 2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d)) with "
        "f(p,q) = p²(q−1) + q²(p−1)"
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
    closed = abc.select(lambda path: F.rotate(path)).intersect(abc)
    reading = "triangles (a, b, c), each of weight min(1/d_a, 1/d_b) + min(1/d_a, 1/d_c) + min(1/d_b, 1/d_c)"
    return closed.select(lambda path: "triangle!").read_as(reading)


def _paths_with_degree(edges: Query, bucket: int) -> Query:
    """Paths with the degree of their middle vertex, `1/(2·d_b²)` each."""
    check_edges(edges)

    def degree(group: Any) -> Any:
        return F.count(group) if bucket == 1 else F.count(group) // bucket

    known = edges.group_by(lambda e: e[0], degree)
    return paths(edges).join(
        known, lambda path: path.b, lambda node: node.key, lambda path, node: F.record(path=path, degree=node.val)
    )


def _rotated(x: Any) -> Any:
    return F.record(path=F.rotate(x.path), degree=x.degree)


def _least_around(degrees: Any) -> Any:
    """The least of the eight ways to write a cyclic quadruple.

    They are what comes of exchanging the ends of either diagonal, and the two diagonals.
    """
    diagonals = F.sort((F.sort((degrees[0], degrees[2])), F.sort((degrees[1], degrees[3]))))
    return (diagonals[0][0], diagonals[1][0], diagonals[0][1], diagonals[1][1])
