"""Floating point: what rounding adds to the distance of neighbours stays within the slack that the noise covers."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.plan.arithmetic import EXACT, FLOAT
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties

EDGES = wp.source("edges", src=int, dst=int, weights=True)
SOURCES = EDGES.select(lambda e: e.src)
PATHS = EDGES.join(EDGES, lambda a: a.dst, lambda b: b.src, lambda a, b: (a.src, a.dst, b.dst))

QUERIES: dict[str, wp.Query] = {
    "select": EDGES.select(lambda e: e.src % 2),
    "one": EDGES.select(lambda e: 0),
    "cancel": EDGES.select(lambda e: 0).difference(EDGES.select(lambda e: e.src - e.src)),
    "many": EDGES.select_many(lambda e: [e.src, e.dst, 0]),
    "weighted": EDGES.select_many(lambda e: [F.weighted(0, 0.1), F.weighted(e.src, -0.7)]),
    "group": EDGES.group_by(lambda e: e.src, lambda g: F.count(g)),
    "shave": SOURCES.shave(1e8).select(lambda p: p.index),
    "shave thinly": SOURCES.shave(3e7, limit=3),
    "join": PATHS,
    "paths": PATHS.select(lambda a, b, c: b),
    "set": SOURCES.union(EDGES.select(lambda e: e.dst)).intersect(SOURCES.concat(SOURCES)),
    "triangles": PATHS.intersect(PATHS.select(lambda a, b, c: (b, c, a))).select(lambda a, b, c: 0),
}


def heavy(chance: random.Random) -> dict[object, float]:
    """A mass of up to 1e9 in weights of all sizes and both signs, whose float sums depend on the order."""
    weights = {}
    for _ in range(40):
        size = chance.choice([1e8, 12345678.9, 1.0, 0.1, 1e-9, 2.0**-30])
        weights[(chance.randrange(6), chance.randrange(6))] = chance.choice([1, 1, -1]) * size * chance.uniform(0.5, 1)
    mass = sum(map(abs, weights.values()))
    return {record: weight * min(1.0, 9e8 / mass) for record, weight in weights.items()}


def evaluate(plan: Node, data: dict[object, float]) -> dict[object, float]:
    return reference.evaluate(plan, {"edges": data}, FLOAT)


def distance(left: dict[object, float], right: dict[object, float]) -> Fraction:
    keys = {*left, *right}
    return sum((abs(Fraction(left.get(k, 0)) - Fraction(right.get(k, 0))) for k in keys), Fraction(0))


def shuffled(data: dict[object, float], chance: random.Random) -> dict[object, float]:
    items = list(data.items())
    chance.shuffle(items)
    return dict(items)


@for_each("name", QUERIES)
def test_the_float_outputs_of_neighbours_stay_within_distance_and_slack(name: str) -> None:
    plan = QUERIES[name].plan
    (count,), error, widening = (
        plan_properties(plan).uses.values(),
        plan_properties(plan).rounding_error,
        1 + plan_properties(plan).slack(),
    )
    chance = random.Random(name)
    for _ in range(25):
        left = heavy(chance)
        right = dict(left)
        record = (chance.randrange(6), chance.randrange(6))
        right[record] = right.get(record, 0.0) + chance.choice([-1.0, 1.0])
        moved = distance(left, right)  # not quite 1: the sum is rounded
        outputs = evaluate(plan, left), evaluate(plan, shuffled(right, chance))
        assert distance(*outputs) <= count * moved + 2 * error
        if moved >= 1:
            assert distance(*outputs) <= count * moved * widening
        exact = reference.evaluate(plan, {"edges": {k: Fraction(v) for k, v in left.items()}}, EXACT)
        assert distance(outputs[0], exact) <= error


@for_each("name", QUERIES)
def test_the_order_of_rows_does_not_change_a_bit(name: str) -> None:
    plan, chance = QUERIES[name].plan, random.Random(f"order {name}")
    for _ in range(10):
        data = heavy(chance)
        first = evaluate(plan, data)
        for _ in range(3):
            again = evaluate(plan, shuffled(data, chance))
            assert {key: value.hex() for key, value in again.items()} == {k: v.hex() for k, v in first.items()}


def naive(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def test_these_weights_do_break_a_sum_that_depends_on_the_order() -> None:
    chance = random.Random(1)
    broken = 0
    for _ in range(20):
        values = list(heavy(chance).values())
        broken += len({naive(chance.sample(values, len(values))) for _ in range(5)}) > 1
    assert broken >= 15


def test_order_and_split_of_rows_reach_the_session_alike() -> None:
    rows = [(i % 7, i % 5) for i in range(500)]
    held = []
    for arrange in (lambda r: r, lambda r: r[::-1], lambda r: sorted(r)):
        with wp.Session() as session:
            session.protect(EDGES, arrange(rows), budget=1)
            held.append(dict(session._protected["edges"].weights))
    assert held[0] == held[1] == held[2]


NOISE_COVERS: dict[str, Callable[[], wp.Query]] = {
    "small cap": lambda: wp.source("edges", src=int, dst=int, cap=1000, weights=True),
    "large cap": lambda: wp.source("edges", src=int, dst=int, cap=2**31, weights=True),
    "small unit": lambda: wp.source("edges", src=int, dst=int, unit_weight="0.001", weights=True),
}


@pytest.mark.parametrize("kind", NOISE_COVERS)
def test_the_slack_is_in_the_scale_of_the_noise(kind: str) -> None:
    source = NOISE_COVERS[kind]()
    query = source.join(source, lambda a: a.dst, lambda b: b.src, lambda a, b: a.src)
    with wp.Session() as session:
        session.protect(source, {}, budget=10)
        scale = session.release(query.noisy_count(1, over=[1])).scale
    (unit,) = {node.operator.unit_weight for node in (source.plan,)}
    assert Fraction(scale) >= 1 + 2 * plan_properties(query.plan).rounding_error / unit > 1
