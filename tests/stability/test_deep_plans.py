"""Deep plans: the bound is found in as many looks as there are steps, in short numbers, and never above the paths."""

from collections.abc import Callable
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support import moves
from tests.support.mutants import forget
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.plan.node import topological
from wpinq.plan.sensitivity import stability
from wpinq.plan.sensitivity.change import ATOMS_LIMIT

DEPTH = 200

edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
asked = wp.source("asked", k=int, facts=["nonnegative"], weights=True)
others = wp.source("others", src=int, dst=int, facts=["nonnegative"], weights=True)


def joined(query: Query) -> Query:
    """A join with itself, at one key."""
    return query.join(query, lambda x: x.src, lambda y: y.src, lambda x, y: F.record(src=x.src, dst=y.dst))


def of_values(query: Query) -> Query:
    """Joins at keys that nobody knows, of records of which half is known."""
    held = query.group_by(lambda x: x.src, lambda group: F.count(group))
    met = held.join(asked, lambda x: x.val, lambda a: a.k, lambda x, a: F.record(src=x.key, dst=a.k))
    return met.concat(others)


def added(query: Query) -> Query:
    """Sums with other edges, the other way round each time."""
    return query.select(lambda x: F.record(src=x.dst, dst=x.src)).concat(edges)


def grown(step: object, depth: int) -> Query:
    query = edges
    for _ in range(depth):
        query = step(query)
    return query


def spread(query: Query) -> Query:
    """Two records of each, told apart by other functions at each step."""
    return query.select_many(lambda x: [F.record(src=x.src + 1, dst=x.dst), F.record(src=x.src * 2, dst=x.dst)])


@pytest.mark.parametrize("step", [joined, of_values, added])
def test_deep_plans_take_one_look_a_step(step: object, monkeypatch: pytest.MonkeyPatch) -> None:
    query = grown(step, DEPTH)
    steps = len(list(topological([query.plan])))
    looks = 0
    whole = stability._at

    def counting(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return whole(*arguments)

    monkeypatch.setattr(stability, "_at", counting)
    forget()
    found = stability.stability(query.plan)
    assert looks <= steps * len(found)
    for cut in found.values():
        assert 0 < cut.bound <= cut.paths
        assert cut.bound.denominator.bit_length() <= 100


def test_a_join_of_what_is_deep_does_not_run_out_of_stack() -> None:
    turned = grown(lambda query: query.select(lambda x: F.record(src=x.dst, dst=x.src)), 1000)
    assert joined(turned).stability()["edges"] == Fraction(3, 2)


@pytest.mark.parametrize("step", [joined, spread, lambda query: spread(query).concat(query)])
def test_what_a_step_descends_from_does_not_grow_with_each(step: Callable[[Query], Query]) -> None:
    for plan in moves.followed(grown(step, 10).plan):
        for way in plan.ways:
            for moved in way.moved.values():
                assert 1 <= len(moved.proportions) <= 4
                assert all(len(lineage.parts) <= ATOMS_LIMIT for lineage in moved.proportions)


def test_a_rounded_bound_is_never_below_the_exact_one() -> None:
    """Of joins of joins: 3/2, 9/4, … are sums of ever longer fractions; they are rounded up."""
    bounds = [grown(joined, depth).stability()["edges"] for depth in range(1, 40)]
    assert bounds[0] == Fraction(3, 2)
    assert bounds == sorted(bounds)
    assert all(bound <= 2**depth for depth, bound in enumerate(bounds, 1))


def test_more_atoms_than_are_told_apart_become_one_that_is_anywhere() -> None:
    spread = edges.select_many(lambda e: [F.record(src=e.src + i, dst=e.dst) for i in range(20)])
    twice = spread.select_many(lambda e: [F.record(src=e.src, dst=e.dst + i) for i in range(20)])
    kept, lost = (
        query.join(query.where(lambda x: x.src > 0), lambda x: x, lambda y: y, lambda x, y: x)
        for query in (spread, twice)
    )
    assert kept.stability()["edges"] == 1  # 20 known records, each a twentieth
    assert lost.stability()["edges"] == 2  # 400 are too many: keys that nobody knows


def test_both_sides_of_a_join_with_itself_weigh_the_same_at_keys_that_nobody_knows() -> None:
    pieces = others.shave(1.0)
    met = pieces.join(pieces, lambda x: x.index, lambda y: y.index, lambda x, y: (x.record, y.record))
    assert met.stability()["others"] == Fraction(3, 2)
    kept = pieces.join(pieces.where(lambda p: p.index > 0), lambda x: x.index, lambda y: y.index)
    assert kept.stability()["others"] == 2
