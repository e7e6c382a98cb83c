"""Closed forms of what the analysis must say: uses of a source, and the bound on rounding."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.plan.node import topological
from wpinq.plan.operators import Partition
from wpinq.plan.properties import plan_properties

ROUNDOFF = Fraction(1, 2**53)
SUM = Fraction(33, 32)

edges = wp.source("edges", src=int, dst=int, cap=2, weights=True)
other = wp.source("other", src=int, dst=int, cap=6, weights=True)


def _doubled(query: Query, times: int) -> Query:
    for _ in range(times):
        query = query.concat(query)
    return query


def _paths(query: Query) -> Query:
    return query.join(query, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))


def _parts(query: Query) -> list[Query]:
    return list(query.partition(lambda e: e.src, [1, 2, 3]).values())


def _ends(query: Query) -> list[Query]:
    return list(query.partition(lambda e: e.dst, [1, 2, 3]).values())


def _named_part(query: Query) -> Query:
    """The part (1, 2) of a key of two fields, with the fields of the constant named or not."""
    key = F.record(a=1, b=2)
    plain = query.partition(lambda e: (e.src, e.dst), [(1, 2)])[1, 2]
    named = query._then(Partition, key=lambda e: (e.src, e.dst), part=key)
    return plain.concat(named)


def _uses() -> Iterator[tuple[str, Query, dict[str, int]]]:
    symmetric = edges.select(lambda e: F.reverse(e)).concat(edges)
    paths = _paths(edges).where(lambda p: p[0] != p[2])
    one, two, three = _parts(edges)
    yield "a source", edges, {"edges": 1}
    yield "a chain", edges.select(lambda e: e.src).shave(1.0).select(lambda p: p.index), {"edges": 1}
    yield "concat with itself", edges.concat(edges), {"edges": 2}
    yield "except of itself", edges.difference(edges), {"edges": 2}
    yield "both branches of a concat", symmetric, {"edges": 2}
    yield "both inputs of an except", edges.difference(edges.where(lambda e: e.src > 1)), {"edges": 2}
    yield "union, intersect", edges.union(other).intersect(edges), {"edges": 2, "other": 1}
    yield "paths", paths, {"edges": 2}
    yield "paths from undirected edges", _paths(symmetric), {"edges": 4}
    yield "triangles by intersect", paths.select(lambda p: F.rotate(p)).intersect(paths), {"edges": 4}
    yield "a shared node below a long chain", _doubled(edges.select(lambda e: e.src), 20), {"edges": 2**20}
    yield "two sources", edges.concat(other).concat(edges), {"edges": 2, "other": 1}
    yield (
        "parts of one partition cost the largest",
        one.concat(two).concat(_paths(three).select(_ends_of)),
        {"edges": 2},
    )
    yield "one part twice", one.concat(two).concat(one), {"edges": 2}
    yield "parts by two keys add up", one.concat(_ends(edges)[1]), {"edges": 2}
    yield "a part and the whole", one.concat(edges), {"edges": 2}
    yield "parts of two datasets", one.concat(_parts(other)[1]), {"edges": 1, "other": 1}
    yield "parts of a shared dataset", _parts(symmetric)[0].union(_parts(symmetric)[1]), {"edges": 2}
    yield "a part within a part", _ends(one)[0].concat(_ends(one)[1]).concat(two), {"edges": 1}
    yield "one part under two names", _named_part(edges), {"edges": 2}


def _ends_of(path: object) -> object:
    return F.record(src=path[0], dst=path[2])


def _rounding() -> Iterator[tuple[str, Query, Fraction]]:
    ends = edges.select(lambda e: e.src)
    yield "a source", edges, Fraction(0)
    yield "where and partition", _parts(edges.where(lambda e: e.src > 0))[0], Fraction(0)
    yield "a step over a part", _parts(edges)[0].select(lambda e: e.src), SUM * 2
    yield "union", edges.union(other), Fraction(0)
    yield "shave by one width", edges.shave(0.75), Fraction(0)
    yield "shave by a width that no float is", edges.shave(0.7), Fraction(2 * 2)
    yield "shave by widths of each record", edges.shave(lambda e: [0.5, 0.25]), Fraction(3 * 2)
    yield "select", ends, SUM * 2
    yield "select_many", edges.select_many(lambda e: [e.src, e.dst]), (2 + SUM) * 2
    yield "group_by gives half the mass", edges.group_by(lambda e: e.src), 1 + SUM
    yield "concat adds masses", edges.concat(other), SUM * 8
    yield "except adds masses", edges.difference(other), SUM * 8
    yield "intersect adds masses", edges.intersect(other), SUM * 8
    yield "join", edges.join(other, lambda x: x.src, lambda y: y.src), (7 + SUM) * Fraction(12, 8)
    yield "join with itself", _paths(edges), 7 + SUM
    yield "a shared node counts once for each path", ends.concat(ends), SUM * (2 * 2 + 4)
    yield "and so does what is below it", _doubled(ends, 3), SUM * (8 * 2 + 4 * 4 + 2 * 8 + 16)


def _slack(query: Query, widening: Fraction) -> Fraction:
    """Over parts of a partition at least 2⁻¹², and in proportion where a part needs more."""
    if not any(isinstance(node.operator, Partition) for node in topological([query.plan])):
        return widening
    return (1 + Fraction(1, 4096)) * max(Fraction(1), 4096 * 4 * widening) - 1


def wrong_bounds() -> list[str]:
    """The names of the closed forms that the analysis does not give."""
    wrong = [f"uses: {name}" for name, query, uses in _uses() if plan_properties(query.plan).uses != uses]
    wrong += [
        f"rounding: {name}"
        for name, query, steps in _rounding()
        if plan_properties(query.plan).rounding_error != ROUNDOFF * steps
        or plan_properties(query.plan).slack() != _slack(query, 2 * ROUNDOFF * steps)
    ]
    return wrong
