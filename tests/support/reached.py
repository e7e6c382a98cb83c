"""For each rule of the sharp bound a plan and data that take it to its limit, or nearly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import wpinq as wp
from tests.support.neighbours import Neighbours
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.graphs import tags

signed = wp.source("rows", x=int, y=int, weights=True)
rows = wp.source("rows", x=int, y=int, facts=["nonnegative"], weights=True)
units = wp.source("rows", x=int, y=int, facts=["unit_weights"])
edges = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
both = wp.source("rows", src=int, dst=int, facts=["unit_weights", "symmetric"], unit_weight=2)
asked = wp.source("asked", x=int, y=int, facts=["nonnegative"], weights=True)

STAR = {(0, y): 1 for y in range(1, 30)}
HUGE = 10**8


def join_of_any_sign() -> Neighbours:
    query = signed.join(signed, lambda x: x.x, lambda y: y.x)
    return Neighbours(query, dict.fromkeys(STAR, 9), {(0, 0): 1})


def join_of_any_sign_at_two_keys() -> Neighbours:
    query = signed.join(signed, lambda x: x.x, lambda y: y.y)
    return Neighbours(query, {(1, 0): HUGE}, {(0, 1): 1})


def join_at_one_key() -> Neighbours:
    query = rows.join(rows, lambda x: x.x, lambda y: y.x)
    return Neighbours(query, STAR, {(0, 0): 1})


def join_at_one_key_gains() -> Neighbours:
    query = rows.join(rows, lambda x: x.x, lambda y: y.x)
    return Neighbours(query, STAR, {(0, 0): 1}, part="increase")


def join_at_one_key_loses() -> Neighbours:
    query = rows.join(rows, lambda x: x.x, lambda y: y.x)
    return Neighbours(query, STAR, {(0, 0): 1}, part="decrease")


def join_gives_back() -> Neighbours:
    """What the rows take away from others leaves more to those that stay: a quarter."""
    left = asked.difference(rows).shave(float(HUGE)).select(lambda piece: piece.record)
    query = left.join(asked, lambda x: x.x, lambda y: y.x, lambda x, y: x.y)
    return Neighbours(query, {}, {(0, 1): 1}, {"asked": {(0, 0): 100, (0, 1): 1}}, part="increase")


def join_takes() -> Neighbours:
    """What comes to one side takes from those that are there: a quarter."""
    query = rows.join(asked, lambda x: x.x, lambda y: y.x, lambda x, y: x.y)
    return Neighbours(query, {(0, 0): 100}, {(0, 1): 1}, {"asked": {(0, 0): 100}}, part="decrease")


def many_keys() -> Neighbours:
    degrees = units.group_by(lambda e: e.x, lambda group: F.count(group))
    joined = degrees.join(asked, lambda d: d.val, lambda a: a.x, lambda d, a: F.record(node=d.key, degree=d.val))
    kept = joined.where(lambda x: ~((x.node == 0) & (x.degree == 1))).select(lambda x: "all")
    return Neighbours(kept, {(i, 0): 1 for i in range(300)}, {(0, 1): 1}, {"asked": {(1, 0): 150, (2, 0): HUGE}})


def half_a_record_a_key() -> Neighbours:
    symmetric = edges.concat(edges.select(lambda e: F.reverse(e)))
    query = symmetric.group_by(lambda e: 0, lambda group: F.count(group))
    return Neighbours(query, {(1, 2): 1}, {(0, 1): 1})


def half_a_record_a_key_of_a_join() -> Neighbours:
    symmetric = edges.concat(edges.select(lambda e: F.reverse(e)))
    degrees = symmetric.group_by(lambda e: e.src, lambda group: F.count(group))
    query = degrees.join(symmetric, lambda d: d.key, lambda e: e.src, lambda d, e: (e.src, e.dst, d.val))
    stars = {(n, 100 * n + i): 1 for n in (1, 2) for i in range(60)}
    return Neighbours(query, stars, {(1, 2): 1})


def one_known_record() -> Neighbours:
    query = rows.group_by(lambda r: r.x, lambda group: F.count(group)).select(lambda d: "all")
    return Neighbours(query, {}, {(0, 0): 1})


def shares_kept_apart() -> Neighbours:
    """Half of the row beside the whole of it at x, twice as much on the left there; the other half at y."""
    halves = rows.select_many(lambda r: [F.record(v=r.x, y=r.y), F.record(v=r.y, y=r.y)])
    query = halves.join(rows, lambda h: h.v, lambda r: r.x)
    return Neighbours(query, {(0, 2): 100, (9, 0): 300, (1, 9): HUGE}, {(0, 1): Fraction(1, 100)})


def shares_of_public_weights() -> Neighbours:
    query = rows.select_many(lambda r: [F.weighted(r.x, 3), F.weighted(r.y, 1.0)])
    return Neighbours(query, {}, {(0, 1): 1})


def shares_of_small_weights() -> Neighbours:
    query = rows.select_many(lambda r: [F.weighted(r.x, 0.5), F.weighted(r.y, 0.5)])
    return Neighbours(query, {}, {(0, 1): 1})


def shares_of_either_sign() -> Neighbours:
    """+1 and −1 cancel, and what is left takes the whole row."""
    query = rows.select_many(lambda r: [F.weighted(r.x, 1), F.weighted(r.y, -1), F.weighted(9, 1)])
    return Neighbours(query, {}, {(0, 0): 1})


def shares_that_rows_decide() -> Neighbours:
    query = rows.select_many(lambda r: [F.weighted(r.x, r.y - 2)])
    return Neighbours(query, {}, {(0, 1): 1}, part="decrease")


def group_by() -> Neighbours:
    query = rows.group_by(lambda r: r.x, lambda group: F.count(group))
    return Neighbours(query, STAR, {(0, 0): 1})


def group_by_loses() -> Neighbours:
    query = rows.group_by(lambda r: r.x, lambda group: F.count(group))
    return Neighbours(query, STAR, {(0, 0): 1}, part="decrease")


def union_at_one_record() -> Neighbours:
    return Neighbours(rows.union(rows.select(lambda r: (r.x, r.y))), {}, {(0, 0): 1})


def intersect_at_one_record() -> Neighbours:
    return Neighbours(rows.intersect(rows.select(lambda r: (r.x, r.y))), {}, {(0, 0): 1})


def intersect_at_two_records() -> Neighbours:
    query = rows.intersect(rows.select(lambda r: F.reverse(r)))
    return Neighbours(query, {(1, 0): 1}, {(0, 1): 1})


def union_of_unknown_records() -> Neighbours:
    """Pieces of one width and of another: what comes has two numbers."""
    query = rows.shave(1.0).union(rows.shave(8.0))
    return Neighbours(query, {(0, 0): 4}, {(0, 0): 1})


def shave() -> Neighbours:
    return Neighbours(rows.shave(lambda r: [0.5, 0.25, 8.0]), {(0, 0): Fraction(1, 4)}, {(0, 0): 1})


def difference() -> Neighbours:
    return Neighbours(asked.difference(rows), {}, {(0, 0): 1}, {"asked": {}}, part="decrease")


def sides_in_one_ratio() -> Neighbours:
    """Two stars, each with as many leaves as fit in a tag: the edges of a centre pass on to the next what they take."""
    query = tags.joint_degrees_by_tag(rows, [0, 1, 60, 100])
    return Neighbours(query, {(n, 100 * n + i): 1 for n in (1, 2) for i in range(60)}, {(1, 2): 1})


def closed_wedges_by_form() -> Neighbours:
    """Two stars with as many leaves as fit in a tag. Other edges close the next tag only, but for what is new."""
    asked = wp.source("asked", src=int, dst=int, tag=int, facts=["nonnegative"], weights=True)
    tagged = Query(tags.closed_wedges_by_tag(edges, [0, 40, 100]).plan.inputs[0].inputs[0])
    closing = asked.select(lambda e: F.record(ends=F.sort((e.src, e.dst)), tag=e.tag))
    stars = {(n, 100 * n + i): 1 for n in (1, 2) for i in range(40)}
    closed = {(3 - n, leaf, tag): 1 for n, leaf in stars for tag in (0, 1)}
    for n in (1, 2):
        closed |= {(*pair, 1): 1 for pair in combinations((leaf for centre, leaf in stars if centre == n), 2)}
    query = tagged.intersect(closing).select(lambda pair: pair.tag)
    return Neighbours(query, stars, {(1, 2): 1}, {"asked": closed})


def symmetric_pair() -> Neighbours:
    query = both.group_by(lambda e: e.src, lambda group: F.count(group))
    return Neighbours(query, {(0, 2): 1, (2, 0): 1, (1, 2): 1, (2, 1): 1}, {(0, 1): 1, (1, 0): 1})


def symmetric_loop() -> Neighbours:
    query = both.group_by(lambda e: 0, lambda group: F.count(group))
    return Neighbours(query, {(1, 2): 1, (2, 1): 1}, {(0, 0): 1})


def symmetric_paths() -> Neighbours:
    query = both.join(both, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    stars = {(n, 100 * n + i): 1 for n in (1, 2) for i in range(20)}
    return Neighbours(query, {**stars, **{e[::-1]: 1 for e in stars}}, {(1, 2): 1, (2, 1): 1})


def concat() -> Neighbours:
    return Neighbours(rows.concat(rows), {}, {(0, 0): 1})


REACHED: tuple[Callable[[], Neighbours], ...] = (
    join_of_any_sign,
    join_of_any_sign_at_two_keys,
    join_at_one_key,
    join_at_one_key_gains,
    join_at_one_key_loses,
    join_gives_back,
    join_takes,
    many_keys,
    half_a_record_a_key,
    half_a_record_a_key_of_a_join,
    one_known_record,
    shares_kept_apart,
    shares_of_public_weights,
    shares_of_small_weights,
    shares_of_either_sign,
    shares_that_rows_decide,
    group_by,
    group_by_loses,
    union_at_one_record,
    intersect_at_one_record,
    intersect_at_two_records,
    union_of_unknown_records,
    shave,
    difference,
    sides_in_one_ratio,
    closed_wedges_by_form,
    symmetric_pair,
    symmetric_loop,
    symmetric_paths,
    concat,
)
