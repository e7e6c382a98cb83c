"""Queries that carry degrees in weight: half-edges, tags, wedges and joint degrees by tag.

A GroupBy that counts gives a node's degree as a record, at half the weight and with a cliff where a degree changes. A
tag carries it as weight instead: the weight that a node gathers is cut into pieces at public limits, and the pieces
that are full say how large it is. Weights of joins with tags do not fall with the degree, as those with degree records
do.

Here `edges` holds each undirected edge ONCE, in either direction, with weight 1, so that one use is one undirected
edge: records of two fields of one type, else PlanError. `limits` are public, 0 = C_0 < C_1 < …, two or more, else
PlanError; degree beyond the last is cut off. `t_i(d) = clamp(d − C_i, 0, C_{i+1} − C_i) / 2` is the weight of tag i,
between limits C_i and C_{i+1}, at a node of degree d.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.graphs.recipes import check_edges, ends
from wpinq.runtime.arrays import Floats

# --- limits between tags, and closed forms of their weights -----------------------------------------------------------


def checked_limits(limits: Sequence[int]) -> list[int]:
    """The limits as a list; PlanError where they do not rise from 0."""
    given = [int(limit) for limit in limits]
    if len(given) < 2 or given[0] != 0 or any(b <= a for a, b in pairwise(given)):
        raise PlanError("the limits of degree tags are integers that rise from 0, two or more: 0, 2, 4, 8, …")
    return given


def tag_weights(limits: Sequence[int], largest: int, *, whole: bool = False) -> Floats:
    """`t_i(d)` for d = 0, 1, …, largest, as an array of shape (largest + 1, tags).

    With `whole` the last tag takes all degree above its lower limit, as that of `joint_degrees_by_tag` does.

    Examples
    --------
    >>> tag_weights([0, 2, 8], 3).tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.5]]
    """
    given = np.asarray(checked_limits(limits), dtype=np.float64)
    if whole:
        given[-1] = np.inf
    return np.asarray(np.clip(np.arange(largest + 1)[:, None] - given[:-1], 0, np.diff(given)) / 2)


def wedge_weights(limits: Sequence[int], largest: int) -> Floats:
    """`w_i(d)` of `closed_wedges_by_tag` for d = 0, …, largest, of shape (largest + 1, tags).

    Examples
    --------
    >>> wedge_weights([0, 2, 8], 2).tolist()
    [[0.0, 0.0], [0.5, 0.0], [0.2, 0.0]]
    """
    tags = tag_weights(limits, largest)
    degree = np.arange(largest + 1)[:, None]
    norm = degree * ((degree - 1) / 2 + 2 * tags.sum(axis=1, keepdims=True))
    return np.asarray(np.divide(tags, norm, out=np.zeros_like(tags), where=norm > 0))


def half_edges(edges: Query) -> Query:
    """Every edge in both directions, at half its weight.

    `out((a, b)) = (A((a, b)) + A((b, a))) / 2`

    Returns
    -------
    Query
        Records `(src, dst)` of weight 1/2. Uses: 1, where `symmetrize` takes 2 for weight 1.

    Notes
    -----
    SelectMany halves, because an edge makes two records: stability 1 as for any SelectMany.

    Examples
    --------
    >>> import wpinq as wp
    >>> friends = wp.source("friends", one=str, other=str)
    >>> wp.evaluate(half_edges(friends), {"friends": [("ann", "bob")]})
    WeightedDataset({('ann', 'bob'): 0.5, ('bob', 'ann'): 0.5})
    """
    check_edges(edges)
    return edges.select_many(lambda e: [F.record(src=e[0], dst=e[1]), F.record(src=e[1], dst=e[0])])


def degree_tags(edges: Query, limits: Sequence[int]) -> Query:
    """Each node with tags that share the weight of its degree.

    `out((a, i)) = t_i(d_a) = clamp(d_a − C_i, 0, C_{i+1} − C_i) / 2`

    Parameters
    ----------
    limits : sequence of int
        Public limits, as above.

    Returns
    -------
    Query
        Records `(record: node, index: tag)`; those of a node weigh `min(d_a, C_last) / 2` together. Uses: 1.

    Notes
    -----
    A Shave with widths `(C_{i+1} − C_i) / 2`.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> tags = degree_tags(edges, [0, 2, 8])
    >>> wp.evaluate(tags.where(lambda t: t.record == 0), {"edges": [(0, 1), (0, 2), (0, 3)]})
    WeightedDataset({(0, 0): 1.0, (0, 1): 0.5})
    """
    nodes, widths = ends(edges), (np.diff(checked_limits(limits)) / 2).tolist()
    return nodes.shave(lambda node: widths)


def degree_mass_by_tag(edges: Query, limits: Sequence[int]) -> Query:
    """The total degree between limits.

    `out(i) = Σ_a t_i(d_a)`

    Returns
    -------
    Query
        Records 0, 1, …, one a tag. Uses: 1.

    Notes
    -----
    The sum of the CCDF between two limits, for the noise of one number: what pins the tail of the degrees.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(degree_mass_by_tag(edges, [0, 2, 8]), {"edges": [(0, 1), (0, 2), (0, 3)]})
    WeightedDataset({0: 2.5, 1: 0.5})
    """
    mass = degree_tags(edges, limits).select(lambda tag: tag.index)
    return mass.read_as("half of the degree that nodes have between limits key and key + 1")


def closed_wedges_by_tag(
    edges: Query, limits: Sequence[int], room: Sequence[float] | None = None, weights: Sequence[float] | None = None
) -> Query:
    """Closed wedges, by the degree tags of their middle nodes.

    A wedge a–b–c gives its ends `w_i(d_b) = 2·t_i(d_b) / (d_b·(3·d_b − 1))` under tag i. With `P_i(a, c)` the sum over
    the common neighbours b of an edge {a, c},

    `out(i) = weight_i · Σ_{edges {a, c}} min(P_i(a, c), room_i)`,

    where the last limit is no less than any degree; else `w_i(d) = t_i(d) / (d·((d − 1)/2 + 2·Σ_j t_j(d)))`.

    Parameters
    ----------
    room : sequence of float, optional
        The most that the wedges which one edge closes weigh under each tag: 1/2, 1/4, 1/4, … unless told.
    weights : sequence of float, optional
        What is left of the weight under each tag, above 0 and at most 1: all of it unless told. Less of tags that weigh
        much leaves less noise for the others.

    Returns
    -------
    Query
        Records 0, 1, …, one a tag. Uses: 3, and 1, 2, 4 or another power of 2 that is no less than `Σ_j room_j`. One
        edge moves it by `1 + Σ_j weight_j · room_j` at most where edges are `simple` and each weighs 1, and by less
        where tags at high degrees have less weight. Where edges are not `simple`, it is `5/3 + Σ_j room_j`.

    Raises
    ------
    PlanError
        When a room is not a finite number above 0, a weight is not above 0 and at most 1, or there is not one a tag.

    Notes
    -----
    Wedges (2 uses, weight `1/(4·d_b)` in each direction) are joined with the tags of their middle nodes (1 use) and
    intersected with the edges, spread over all tags. In a clique without other edges, `P_i` is at most a third of a
    tag's share of the degree. With limits that grow four-fold that is 1/4, so that a room of 1/4 leaves cliques
    untouched; the lowest tag has twice that unless told, for pairs with several neighbours of low degree. So the output
    is all but linear in closed wedges. A Join instead of the Intersect divides by `1 + Σ_j P_j`: 0.77 to 0.93 of the
    weight is left, by how closed wedges are spread over edges, which nobody knows.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> triangle = {"edges": [(0, 1), (1, 2), (2, 0)]}
    >>> wp.evaluate(closed_wedges_by_tag(edges, [0, 2, 8]), triangle, exact=True)  # 3 pairs of 1/5
    WeightedDataset({0: Fraction(3, 5)})
    """
    half, tags = half_edges(edges), len(checked_limits(limits)) - 1
    usual = [1 / 2, *[1 / 4] * (tags - 1)]
    rooms = _one_a_tag("room", usual if room is None else room, tags, sys.float_info.max)
    shares = _one_a_tag("weight", [1] * tags if weights is None else weights, tags, 1.0)
    paths = half.join(half, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst))
    wedges = paths.where(lambda wedge: wedge.a != wedge.c)
    tagged = wedges.join(
        degree_tags(edges, limits),
        lambda wedge: wedge.b,
        lambda tag: tag.record,
        lambda wedge, tag: F.record(ends=F.sort((wedge.a, wedge.c)), tag=tag.index),
    )
    closing, doubled = edges, 0
    while sum(map(Fraction, rooms)) > 2**doubled:  # not thrice or five times: shares of a room are to be exact
        closing, doubled = closing.concat(closing), doubled + 1
    spread = closing.select_many(
        lambda e: [
            F.weighted(F.record(ends=F.sort((e[0], e[1])), tag=tag), math.ldexp(each, -doubled))
            for tag, each in enumerate(rooms)
        ]
    )
    closed = tagged.intersect(spread).select(lambda pair: pair.tag)
    changed = [(tag, share) for tag, (before, share) in enumerate(pairwise(shares), 1) if share != before]
    if changed or shares[0] < 1:
        closed = closed.select_many(lambda tag: [F.weighted(tag, _beyond(tag, shares[0], changed))])
    return closed.read_as("closed wedges with a middle node in tag key, each of weight about 1/(3d)")


def _one_a_tag(name: str, given: Sequence[float], tags: int, most: float) -> list[float]:
    if len(given) != tags:
        raise PlanError(f"there are {tags} tags between these limits: give {tags} {name}s, not {len(given)}")
    if any(isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 < each <= most for each in given):
        bound = "finite" if most > 1 else "at most 1"
        raise PlanError(f"the {name} of a tag is a number above 0, and {bound}")
    return [float(each) for each in given]


def _beyond(number: Any, first: Any, rest: Iterable[tuple[int, Any]]) -> Any:
    """An expression: the value of the last limit that a number is not below, or the first value."""
    found = first
    for limit, value in rest:
        found = F.where(number >= limit, value, found)
    return found


def joint_degrees_by_tag(edges: Query, limits: Sequence[int]) -> Query:
    """Edges, by the degree tags of both their ends.

    Each direction of an edge adds `(2/3)·t_i(d_a)·t_j(d_b) / (d_a·d_b)` to the sorted pair (i, j), where the last tag
    takes all degree above its lower limit, `t_i(d) = max(0, d − C_i) / 2`: 1/3 an edge in all, whatever the degrees.

    Returns
    -------
    Query
        Records `(i, j)`, i ≤ j. Uses: 3. One edge moves it by 5/3 at most: 1/3 for itself, and 2/3 at either end,
        whose other edges pass on to the new tag what they take from the rest.

    Notes
    -----
    Half-edges (1 use) are joined with the tags of one end (1 use), then with those of the other (1 use). Whatever the
    graph, the sides of the first Join weigh the same at every node, those of the second 1 : 2.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> path = {"edges": [(0, 1), (1, 2)]}
    >>> wp.evaluate(joint_degrees_by_tag(edges, [0, 1, 4]), path, exact=True)
    WeightedDataset({(0, 0): Fraction(1, 3), (0, 1): Fraction(1, 3)})
    """
    joint = joint_tags(edges, _whole_degree_tags(edges, limits))
    return joint.read_as("a third of each edge, shared among the tags i and j of its ends")


def joint_tags(edges: Query, tags: Query) -> Query:
    """A third of each edge, by the tags of its ends; those of a node weigh half its degree."""
    first = half_edges(edges).join(
        tags,
        lambda half: half.src,
        lambda tag: tag.record,
        lambda half, tag: F.record(src=half.src, dst=half.dst, tag=tag.index),
    )
    return first.join(
        tags, lambda half: half.dst, lambda tag: tag.record, lambda half, tag: F.sort((half.tag, tag.index))
    )


def pair_slices(edges: Query, limits: Sequence[float]) -> Query:
    """Pairs of nodes with common neighbours, by how much of these they share.

    A pair of nodes weighs `w = Σ_b 1/(2·d_b)` over its common neighbours b, and adds `clamp(w − C_i, 0, C_{i+1} − C_i)`
    to slice i.

    Parameters
    ----------
    limits : sequence of float
        Public limits C_0 = 0 < C_1 < …; weight of a pair beyond the last is cut off.

    Returns
    -------
    Query
        Records 0, 1, …, one a slice. Uses: 2. One edge moves it by 3/2 at most.

    Notes
    -----
    Wedges a–b–c weigh `1/(4·d_b)` in each direction, and a Join whose sides are one query at one key moves by 3/2 with
    an edge (rule J, `docs/proofs/stability.md`). Select of the sorted ends and Shave move no more than their input.
    Dense parts of a graph have few pairs of large weight, random ones many of small weight.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> square = {"edges": [(0, 1), (1, 2), (2, 3), (0, 3)]}
    >>> wp.evaluate(pair_slices(edges, [0, 0.25, 1]), square)  # both diagonals weigh 1/2
    WeightedDataset({0: 0.5, 1: 0.5})
    """
    half, widths = half_edges(edges), np.diff(limits).tolist()
    wedges = half.join(half, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, c=y.dst))
    pairs = wedges.where(lambda w: w.a != w.c).select(lambda w: F.record(ends=F.sort((w.a, w.c))))
    slices = pairs.shave(lambda pair: widths).select(lambda piece: piece.index)
    return slices.read_as("weight of pairs with common neighbours between limits key and key + 1")


def _whole_degree_tags(edges: Query, limits: Sequence[int]) -> Query:
    """As `degree_tags`, but the last tag takes all that is left.

    So the tags of a node weigh what its half-edges do. A Join of the two is in one ratio at every node, and billed less
    (rule R). Pieces of half-edges and a Select do it, as a list of widths cannot. Engines do not know that there are
    few such tags, so other recipes do without.
    """
    inner = checked_limits(limits)[1:-1]
    pieces, by_limit = ends(edges).shave(0.5), [(limit, tag) for tag, limit in enumerate(inner, 1)]
    return pieces.select(lambda piece: F.record(record=piece.record, index=_beyond(piece.index, 0, by_limit)))
