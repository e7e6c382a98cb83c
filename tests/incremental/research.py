"""Queries over undirected edges, one record each, that carry more signal than the paper's."""

from __future__ import annotations

from itertools import pairwise

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query

EDGES = wp.source("edges", a=int, b=int)
TAGS = 8


def half_edges(edges: Query) -> Query:
    """Both directions, of weight 1/2."""
    return edges.select_many(lambda e: [F.record(a=e.a, b=e.b), F.record(a=e.b, b=e.a)])


def degree_tags(edges: Query) -> Query:
    """(v, i) weighs the part of half the degree of v between 2^(i-1) and 2^i."""
    bounds = [0.0, *(2.0**i for i in range(TAGS))]
    widths = [(high - low) / 2 for low, high in pairwise(bounds)]
    nodes = edges.select_many(lambda e: [e.a, e.b])
    return nodes.shave(lambda v: F.map([float(w) for w in widths], lambda w: w)).select(
        lambda p: F.record(v=p.record, i=p.index)
    )


def wedges(edges: Query) -> Query:
    """Pairs of half-edges that meet: (a, b, c)."""
    half = half_edges(edges)
    joined = half.join(half, lambda x: x.b, lambda y: y.a, lambda x, y: F.record(a=x.a, b=x.b, c=y.b))
    return joined.where(lambda w: w.a != w.c)


def tagged_pairs(edges: Query) -> Query:
    """The ends of each wedge with the tags of its middle."""
    return wedges(edges).join(
        degree_tags(edges),
        lambda w: w.b,
        lambda t: t.v,
        lambda w, t: F.record(ends=F.sort((w.a, w.c)), i=t.i),
    )


def closed_by_join(edges: Query) -> Query:
    """Closed wedges by the tags of their middle; the closing join divides by the pair's total."""
    return tagged_pairs(edges).join(edges, lambda p: p.ends, lambda e: F.sort((e.a, e.b)), lambda p, e: p.i)


def closed_by_intersect(edges: Query) -> Query:
    """Closed wedges by the tags of their middle; a pair counts up to its edge's share of the tag."""
    tagged = edges.select_many(lambda e: [F.record(ends=F.sort((e.a, e.b)), i=i) for i in range(TAGS)])
    return tagged_pairs(edges).intersect(tagged).select(lambda p: p.i)


def joint_tags(edges: Query) -> Query:
    """Edges by the tags of their ends."""
    tags = degree_tags(edges)
    first = half_edges(edges).join(tags, lambda e: e.a, lambda t: t.v, lambda e, t: F.record(b=e.b, i=t.i))
    return first.join(tags, lambda x: x.b, lambda t: t.v, lambda x, t: F.sort((x.i, t.i)))


def joint_tags_kept(edges: Query) -> Query:
    """The same, with both ends kept until the last step."""
    tags = degree_tags(edges)
    first = half_edges(edges).join(tags, lambda e: e.a, lambda t: t.v, lambda e, t: F.record(a=e.a, b=e.b, i=t.i))
    both = first.join(tags, lambda x: x.b, lambda t: t.v, lambda x, t: F.record(a=x.a, b=x.b, i=x.i, j=t.i))
    return both.select(lambda x: F.sort((x.i, x.j)))


def closed_paths(edges: Query) -> Query:
    """EPI: the ends of wedges met with the edges, counted."""
    ends = wedges(edges).select(lambda w: F.sort((w.a, w.c)))
    return ends.intersect(edges.select(lambda e: F.sort((e.a, e.b)))).select(lambda e: "triangle")


def clustering(edges: Query) -> Query:
    """CC: pairs of neighbours of each node, met with the edges, by the node's degree."""
    groups = half_edges(edges).group_by(lambda e: e.a, lambda g: F.collect(g, lambda e: e.b))
    pairs = groups.select_many(
        lambda g: F.map(F.subsets(g.val, 2), lambda s: F.record(ends=s, d=F.count(g.val))), limit=100
    )
    return pairs.join(edges, lambda p: p.ends, lambda e: F.sort((e.a, e.b)), lambda p, e: p.d)


def joint_degrees_by_group(edges: Query) -> Query:
    """JDDn: each half-edge with the degree of its first end, joined with its reverse."""
    groups = half_edges(edges).group_by(lambda e: e.a, lambda g: F.collect(g, lambda e: e.b))
    spread = groups.select_many(lambda g: F.map(g.val, lambda n: F.record(v=g.key, n=n, d=F.count(g.val))), limit=100)
    return spread.join(spread, lambda x: (x.v, x.n), lambda y: (y.n, y.v), lambda x, y: F.sort((x.d, y.d)))


QUERIES = {
    "closed_by_join": closed_by_join,
    "closed_by_intersect": closed_by_intersect,
    "joint_tags": joint_tags,
    "joint_tags_kept": joint_tags_kept,
    "closed_paths": closed_paths,
    "clustering": clustering,
    "joint_degrees_by_group": joint_degrees_by_group,
}
TABLES = {"clustering", "joint_degrees_by_group", "closed_by_join"}
"""Those that neighbour lists do not serve: lists in records, and a norm by pair of vertices."""
