"""Data on which a careless rule bills less than what moves: what it would bill, what is billed, what moves, exactly.

Random plans do not easily find these: each is built for its rule. The last was a fault of the code once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support import mutants
from tests.support.mutants import Mutant, planted
from tests.support.neighbours import Neighbours
from tests.support.reached import closed_wedges_by_form
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.trace import trace
from wpinq.expr.types import INT, TupleOf
from wpinq.graphs import tags
from wpinq.plan.sensitivity.change import UNKNOWN, applied, leaf, record


@dataclass(frozen=True)
class Trap:
    """Two neighbours, and what is made of them.

    Attributes
    ----------
    rule : Mutant
        The careless rule.
    wrong, billed : Fraction
        What it bills for a unit of weight, and what is billed.
    least : Fraction
        What a unit moves at least, more than `wrong`.
    """

    rule: Mutant
    data: Neighbours
    wrong: Fraction
    billed: Fraction
    least: Fraction


HUGE = 10**8


def sorted_keys() -> Trap:
    """The numbers of a piece differ on the two sides; sorted with the unit's own field they are two keys."""
    rows = wp.source("rows", x=int, y=int, facts=["nonnegative"], weights=True)
    left = rows.shave(lambda r: [F.where(r.y == 0, 1.0, 1e8), 1e8])
    right = rows.shave(lambda r: [F.where(r.y == 0, 1e8, 0.01), 1e8])

    def key(piece: Any) -> Any:
        return F.sort([piece.index, piece.record.x])

    joined = left.join(right, key, key, lambda one, other: (one.record, other.record))
    return Trap(
        mutants.UNKNOWN_BELOW,
        Neighbours(
            joined,
            {(0, 0): 1, (0, 1): 10**4},
            {(0, 0): 1},
            {},
        ),
        Fraction(3, 2),
        Fraction(2),
        Fraction("1.99"),
    )


INNER = TupleOf(("k",), (INT.with_nullable(),), nullable=True)
HOLDER = TupleOf(("n", "i"), (INNER, INT))


def nullable_fields() -> Trap:
    """At the key `n.k = null` the left shows the unit's `n = null`, the right its partner's `n = (null)`."""
    rows, one, other, below, above = (
        wp.source(name, HOLDER, facts=["nonnegative"], weights=True)
        for name in ("rows", "one", "other", "below", "above")
    )
    left = rows.join(one, lambda x: x.n.k, lambda y: y.n.k, lambda x, y: F.record(n=x.n, i=y.i)).concat(below)
    right = rows.join(other, lambda x: x.n.k, lambda y: y.n.k, lambda x, y: F.record(n=y.n, i=x.i)).concat(above)
    joined = left.join(right, lambda x: x.n, lambda y: y.n, lambda x, y: (x.n, y.n, x.i, y.i))
    null, held = (None, 0), ((None,), 0)
    return Trap(
        mutants.NULLABLE_PATH,
        Neighbours(
            joined,
            {null: 1},
            {null: 1},
            {"one": {held: HUGE}, "other": {held: HUGE}, "below": {held: HUGE}, "above": {null: HUGE}},
        ),
        Fraction(3, 2),
        Fraction(2),
        Fraction("1.99"),
    )


def cut_lists() -> Trap:
    """`[x, y]` cut to its first element: all of it falls on x, and the other side moves at y."""
    rows = wp.source("rows", x=int, y=int, facts=["nonnegative"], weights=True)
    first = rows.select_many(lambda r: [r.x, r.y], limit=1)
    joined = first.join(rows, lambda x: x, lambda r: r.y, lambda x, r: (x, r))
    return Trap(
        mutants.LIMIT_IGNORED,
        Neighbours(
            joined,
            {(0, 1): 1, (1, 2): 10**4, (2, 0): 10**4},
            {(0, 1): 1},
            {},
        ),
        Fraction(5, 3),
        Fraction(2),
        Fraction("1.995"),
    )


PAIR = {"x": int, "y": int}


def other_pairs() -> Trap:
    """At an unknown key the unit gains its own pairs, and takes from those of others: not all of it is its own."""
    rows, asked, more, beside = (
        wp.source(name, schema, facts=["nonnegative"], weights=True)
        for name, schema in (("rows", PAIR), ("asked", int), ("more", PAIR), ("beside", PAIR))
    )
    pieces = rows.shave(1e8)
    own = pieces.join(asked, lambda p: p.index, lambda a: a, lambda p, a: p.record).concat(beside)
    joined = own.join(rows.concat(more), lambda one: one.x, lambda r: r.x, lambda one, r: (one.x, one.y, r.y))
    return Trap(
        mutants.RECORD_KEPT,
        Neighbours(
            joined,
            {(0, 0): 1, (1, 0): 140},
            {(0, 1): Fraction(1, 10**6)},
            {"asked": {0: 866}, "more": {(1, 0): HUGE}, "beside": {(0, 0): Fraction(3, 10)}},
        ),
        Fraction(3, 2),
        Fraction(2),
        Fraction("1.517"),
    )


def many_keys() -> Trap:
    """Node 0 goes from degree 1, where the scale gives to others, to degree 2, where it finds partners."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights"])
    asked = wp.source("asked", int, facts=["nonnegative"], weights=True)
    degrees = rows.group_by(lambda e: e.src, lambda group: F.count(group))
    joined = degrees.join(asked, lambda d: d.val, lambda a: a, lambda d, a: F.record(node=d.key, degree=d.val))
    kept = joined.where(lambda x: ~((x.node == 0) & (x.degree == 1))).select(lambda x: "all")
    return Trap(
        mutants.ONE_UNKNOWN_KEY,
        Neighbours(
            kept,
            {(i, 0): 1 for i in range(1000)},
            {(0, 1): 1},
            {"asked": {1: 500, 2: HUGE}},
        ),
        Fraction(1, 2),
        Fraction(5, 8),
        Fraction("0.6247"),
    )


def twice() -> Trap:
    """An edge list and itself weighs 2, however simple its edges are."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    asked = wp.source("asked", int, facts=["nonnegative"], weights=True)
    nodes = rows.concat(rows).group_by(lambda e: e.src, lambda group: F.count(group)).select(lambda d: d.key)
    joined = nodes.join(asked, lambda node: node, lambda a: a, lambda node, a: node)
    return Trap(
        mutants.SAME_EDGES_APART,
        Neighbours(
            joined,
            {},
            {(0, 1): 1},
            {"asked": {0: 999}},
        ),
        Fraction(1, 2),
        Fraction(1),
        Fraction("0.998"),
    )


def either_side() -> Trap:
    """Two records of one key, one from each side of a Union, weigh as much together as both sides may."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights"])
    asked = wp.source("asked", int, facts=["nonnegative"], weights=True)
    one = rows.group_by(lambda e: e.src, lambda group: F.count(group))
    other = rows.group_by(lambda e: e.src, lambda group: 0 - F.count(group))
    joined = one.union(other).join(asked, lambda d: d.key, lambda a: a, lambda d, a: d)
    return Trap(
        mutants.LARGER_OF_KEYS,
        Neighbours(
            joined,
            {(0, 0): 1},
            {(0, 1): 1},
            {"asked": {0: 999}},
        ),
        Fraction(1),
        Fraction(2),
        Fraction("1.99"),
    )


def both_directions() -> Trap:
    """A simple source with its reverse has no direction: with the reverse once more, an edge weighs 2."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    back = rows.select(lambda e: F.record(src=e.dst, dst=e.src))
    twice = rows.union(back).concat(back)
    nodes = twice.group_by(lambda e: e.src, lambda group: F.count(group)).select(lambda d: d.key)
    return Trap(
        mutants.EITHER_DIRECTION,
        Neighbours(
            nodes,
            {},
            {(0, 1): 1},
            {},
        ),
        Fraction(1),
        Fraction(3, 2),
        Fraction(3, 2),
    )


def part_of_a_key() -> Trap:
    """A join that weighs 1/2 at each pair of values weighs more at the first of them alone."""
    rows = wp.source("rows", a=int, b=int, facts=["unit_weights"])
    asked = wp.source("asked", int, facts=["nonnegative"], weights=True)
    pairs = rows.group_by(lambda r: (r.a, r.b), lambda group: F.count(group))
    near, far = (rows.select(lambda r, step=step: F.record(a=r.a, b=r.b + step)) for step in (1, 10))
    held = pairs.join(near.concat(far), lambda d: d.key, lambda r: (r.a, r.b), lambda d, r: r)
    joined = held.join(asked, lambda r: r.a, lambda a: a, lambda r, a: a)
    return Trap(
        mutants.PART_OF_A_KEY,
        Neighbours(
            joined,
            {(0, 1): 1, (0, 10): 1},
            {(0, 0): 1},
            {"asked": {0: HUGE}},
        ),
        Fraction(1, 2),
        Fraction(3, 2),
        Fraction("0.666"),
    )


def below_zero() -> Trap:
    """A join with what is below zero goes from nearly -1/2 to nearly 1/2, though it never weighs 1/2."""
    rows = wp.source("rows", a=int, b=int, facts=["unit_weights"])
    debts = wp.source("debts", int, weights=True)
    nodes = rows.group_by(lambda r: r.a, lambda group: F.count(group)).select(lambda d: d.key)
    ends = rows.select(lambda r: r.a)
    twice = ends.concat(ends)
    many = twice.concat(twice).concat(twice)
    joined = nodes.join(many.concat(debts), lambda node: node, lambda a: a, lambda node, a: node)
    return Trap(
        mutants.BOUND_OF_ANY_SIGN,
        Neighbours(
            joined,
            {(0, 0): 1},
            {(0, 1): 1},
            {"debts": {0: -9}},
        ),
        Fraction(1, 2),
        Fraction(157, 26),
        Fraction(6, 7),
    )


WIDTH = 64


def wide_keys() -> Trap:
    """Of a key of 64 fields a join shows 63, at which it may weigh as much as the source holds."""
    rows = wp.source(
        "rows", TupleOf((*(f"f{i}" for i in range(WIDTH)), "to"), (INT,) * (WIDTH + 1)), facts=["unit_weights"]
    )

    def fields(row: Any, count: int) -> Any:
        return tuple(row[i] for i in range(count))

    degrees = rows.group_by(lambda r: fields(r, WIDTH), lambda group: F.count(group))
    held = degrees.join(rows, lambda d: d.key, lambda r: fields(r, WIDTH), lambda d, r: (*fields(r, WIDTH - 1), d.val))
    joined = held.join(
        rows,
        lambda x: fields(x, WIDTH - 1),
        lambda r: fields(r, WIDTH - 1),
        lambda x, r: (x[WIDTH - 1], r[WIDTH - 1], r.to),
    )

    def row(last: int, to: int) -> tuple[int, ...]:
        return (0,) * (WIDTH - 1) + (last, to)

    return Trap(
        mutants.WIDE_KEY,
        Neighbours(
            joined,
            {row(i, 0): 1 for i in range(1, 150)} | {row(0, j): 1 for j in range(15)},
            {row(0, 15): 1},
            {},
        ),
        Fraction(1),
        Fraction(5, 4),
        Fraction("1.15"),
    )


def beside_a_ratio() -> Trap:
    """The leaves of two stars have heavy tags from elsewhere too: all that the centres move there counts."""
    rows = wp.source("rows", x=int, y=int, facts=["nonnegative"], weights=True)
    asked = wp.source("asked", record=int, index=int, facts=["nonnegative"], weights=True)
    tagged = tags._whole_degree_tags(rows, [0, 30, 100])
    first = tags.half_edges(rows).join(
        tagged, lambda e: e.src, lambda t: t.record, lambda e, t: (e.src, e.dst, t.index)
    )
    joined = first.join(
        tagged.concat(asked), lambda x: x[1], lambda t: t.record, lambda x, t: (x[0], x[1], x[2], t.index)
    )
    leaves = {(n, 100 * n + i): 1 for n in (1, 2) for i in range(30)}
    return Trap(
        mutants.BESIDE_A_RATIO,
        Neighbours(joined, leaves, {(1, 2): 1}, {"asked": {(leaf, 9): HUGE for _, leaf in leaves}}),
        Fraction(5, 3),
        Fraction(5, 2),
        Fraction("1.8"),
    )


def two_ratios() -> Trap:
    """Edges count once at their sources and twice at their targets; half-edges do not tell the ends apart."""
    rows = wp.source("rows", x=int, y=int, facts=["nonnegative"], weights=True)
    turned = rows.select(lambda e: F.record(src=e.y, dst=e.x))
    uneven = rows.select(lambda e: F.record(src=e.x, dst=e.y)).concat(turned).concat(turned)
    joined = tags.half_edges(rows).join(uneven, lambda h: h.src, lambda u: u.src, lambda h, u: (h.src, h.dst, u.dst))
    return Trap(
        mutants.TWO_RATIOS,
        Neighbours(joined, {(n, 100 * n + i): 1 for n in (1, 2) for i in range(30)}, {(1, 2): 1}),
        Fraction(7, 3),
        Fraction(49, 15),
        Fraction("2.47"),
    )


def closed_for_nothing() -> Trap:
    """Two nodes with common neighbours are joined: their edge closes as much as it has room for."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    common = {(end, node): 1 for end in (0, 1) for node in range(2, 14)}
    return Trap(
        mutants.FREE_CLOSING,
        Neighbours(tags.closed_wedges_by_tag(rows, [0, 40], [1.0]), common, {(0, 1): 1}),
        Fraction(31, 32),
        Fraction(63, 32),
        Fraction("1.6"),
    )


def pairs_of_closed_wedges() -> Trap:
    """Records that show the pair: what an end's new wedges bring is elsewhere than what its scale takes."""
    reached = closed_wedges_by_form()
    (met,) = reached.query.plan.inputs
    kept = Query(met).select(lambda pair: (pair.ends, pair.tag))
    closed = {(*pair, tag): 1 for *pair, _ in reached.others["asked"] for tag in (0, 1)}
    return Trap(
        mutants.PAIRS_BY_FORM,
        Neighbours(kept, reached.rows, reached.change, {"asked": closed}),
        Fraction(1),
        Fraction(5, 3),
        Fraction("1.5"),
    )


def closed_under_any_tag() -> Trap:
    """The tag under which an edge closes wedges is worked out from the edge: it may be the one that weighs most."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    common = {(end, node): 1 for end in (0, 1) for node in range(2, 14)}
    tagged = Query(tags.closed_wedges_by_tag(rows, [0, 40, 100]).plan.inputs[0].inputs[0])
    closing = rows.select(lambda e: F.record(ends=F.sort((e.src, e.dst)), tag=e.src * 0))
    by_tag = tagged.intersect(closing).select(lambda pair: pair.tag)
    weighed = by_tag.select_many(lambda tag: [F.weighted(tag, F.where(tag == 0, 1.0, 0.25))])
    return Trap(
        mutants.LEAST_WEIGHT,
        Neighbours(weighed, common, {(0, 1): 1}),
        Fraction(31, 32) + Fraction(1, 4),
        Fraction(31, 32) + 1,
        Fraction("1.6"),
    )


def closed_under_no_tag() -> Trap:
    """Beyond the list of widths no wedge is, and an edge that closes negatively is all that comes out."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    tagged = Query(tags.closed_wedges_by_tag(rows, [0, 1, 2]).plan.inputs[0].inputs[0])
    closing = rows.select_many(lambda e: [F.weighted(F.record(ends=F.sort((e.src, e.dst)), tag=7), -1.0)])
    by_tag = tagged.intersect(closing).select(lambda pair: pair.tag)
    weighed = by_tag.select_many(lambda tag: [F.weighted(tag, F.where(tag >= 2, 1.0, 1 / 64))])
    return Trap(
        mutants.NO_TAG,
        Neighbours(weighed, {(0, 1): 1}, {(2, 3): 1}),
        Fraction(1, 32),
        Fraction(65, 64),
        Fraction(1),
    )


def closed_under_the_heavier_tag() -> Trap:
    """Common neighbours have as much in the second tag, which weighs more, as in the first."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    common = {(end, node): 1 for end in (0, 1) for node in range(2, 14)}
    return Trap(
        mutants.NEXT_TAG,
        Neighbours(tags.closed_wedges_by_tag(rows, [0, 1, 40], [0.25, 1.0], [0.0625, 1.0]), common, {(0, 1): 1}),
        Fraction(61, 64) + Fraction(5, 16),
        Fraction(61, 64) + Fraction(65, 64),
        Fraction("1.3"),
    )


def closed_wedges_of_both_signs() -> Trap:
    """What one record of a tag gains another loses, and neither is nothing."""
    rows = wp.source("rows", src=int, dst=int, facts=["unit_weights", "simple"])
    common = {(end, node): 1 for end in (0, 1) for node in range(2, 14)}
    by_tag = tags.closed_wedges_by_tag(rows, [0, 40], [1.0])
    signed = by_tag.select_many(lambda tag: [F.weighted((tag, 1), 0.5), F.weighted((tag, 2), -0.25)])
    return Trap(
        mutants.SET_OFF,
        Neighbours(signed, common, {(0, 1): 1}),
        Fraction(1, 2),
        Fraction(95, 64),
        Fraction("1.2"),
    )


TRAPS: tuple[Callable[[], Trap], ...] = (
    sorted_keys,
    nullable_fields,
    cut_lists,
    other_pairs,
    many_keys,
    twice,
    either_side,
    both_directions,
    part_of_a_key,
    below_zero,
    beside_a_ratio,
    two_ratios,
    closed_for_nothing,
    pairs_of_closed_wedges,
    closed_under_any_tag,
    closed_under_no_tag,
    closed_under_the_heavier_tag,
    closed_wedges_of_both_signs,
    wide_keys,
)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_a_careless_rule_bills_less_than_what_moves(trap: Callable[[], Trap]) -> None:
    found = trap()
    assert found.wrong < found.least <= found.data.moves <= found.data.bound == found.billed
    assert not found.data.broken()
    with planted(found.rule):
        assert found.data.bound == found.wrong
        assert found.data.broken()


def test_a_closure_over_something_unknown_is_unknown() -> None:
    rows = TupleOf(("l", "v"), (wp.source("s", list[int], weights=True).plan.type, INT))
    function = trace(lambda r: F.map([r.v, 1], lambda item: item + r.v), (rows,))
    known = applied(function, [record([leaf("l"), leaf("v")])])
    assert known.known
    assert known != applied(function, [record([leaf("l"), leaf("w")])])
    both = trace(lambda one, other: F.map([one.v, 1], lambda item: item + other.v), (rows, rows))
    assert not applied(both, [record([leaf("l"), leaf("v")]), UNKNOWN]).known
    with planted(mutants.CLOSURE_IS_BODY):
        assert applied(both, [record([leaf("l"), leaf("v")]), UNKNOWN]).known


@pytest.mark.parametrize("fact", ["symmetric", "simple"])
def test_pairs_that_may_be_null_are_refused_for_facts_of_pairs(fact: str) -> None:
    """Null has no ends: the two directions of an edge could not be told."""
    with pytest.raises(PlanError, match="never null"):
        wp.source("edges", TupleOf(("a", "b"), (INT, INT), nullable=True), facts=[fact], unit_weight=2)
