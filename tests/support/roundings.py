"""Data that make one operator round as much as it can, and how much of its constant that is, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support.plans import distance, norm
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.plan.arithmetic import EXACT, UNIT_ROUNDOFF
from wpinq.plan.node import Node, sources

LEFT = wp.source("left", key=int, value=int, cap=2**30, weights=True)
RIGHT = wp.source("right", key=int, value=int, cap=2**30, weights=True)
LIGHT = wp.source("light", key=int, value=int, cap=1, weights=True)
LEAST, LEAST_TOO = (
    wp.source(name, key=int, value=int, cap="1e-30", unit_weight="1e-30", weights=True) for name in ("least", "most")
)
BINS = 60
"""Keys of a trial: few, so that each norm is large beside the grid, and is turned into a float in two halves."""

Data = dict[str, dict[Any, float]]


@dataclass(frozen=True)
class Attack:
    """One operator, the data that it is tried on, and the share of a roundoff that they reach at least.

    Attributes
    ----------
    query : Query
        One step over sources.
    draw : callable
        Data for a trial.
    reached : mapping
        Engine to the roundoffs that the worst key must show, so that the attack is one.
    """

    query: Query
    draw: Callable[[Random], Data]
    reached: Mapping[str, float]


def odd(rng: Random, size: int = 23) -> float:
    """A weight with all its bits, from 2^(size - 1) to 2^size: near the lower end a roundoff weighs most."""
    return 2.0 ** (size - 1) * (1 + rng.random() * rng.choice([2.0**-20, 2.0**-3, 1.0]))


def _singles(rng: Random) -> Data:
    return {"left": {(k, 0): odd(rng) for k in range(BINS)}}


def _fringed(rng: Random, size: int) -> dict[Any, float]:
    """A weight a key a little above a power of two, and a small one, so that the norm has more digits than a float."""
    heavy = {(k, 0): 2.0 ** (size - 1) * (1 + rng.random() * 2.0 ** -rng.randint(6, 12)) for k in range(BINS)}
    return heavy | {(k, 1): rng.random() * 2.0 ** (size - 53) for k in range(BINS)}


def _joined(rng: Random) -> Data:
    return {"left": _fringed(rng, 24), "right": _fringed(rng, 24)}


def _uneven(rng: Random) -> Data:
    return {"left": _fringed(rng, 24), "light": _fringed(rng, -rng.randint(6, 40))}


def _least(rng: Random) -> Data:
    return {"least": _fringed(rng, -106), "most": _fringed(rng, -106)}


def _steps(rng: Random) -> Data:
    """Three weights a key, whose two steps both round, and so does their sum."""
    return {"left": {(k, i): odd(rng, 23 - 3 * i) for k in range(BINS) for i in range(3)}}


def _halves(rng: Random) -> Data:
    """Beside each weight one of about half its last digit: the sum is halfway between two floats."""
    heavy = {(k, 0): odd(rng) for k in range(BINS)}
    half = {(k, 1): 2.0**-31 * (1 + rng.choice([-1, 1]) * 2.0 ** -rng.randint(2, 8)) for k in range(BINS)}
    return {"left": heavy | half}


def _apart(rng: Random) -> Data:
    data = _halves(rng)["left"]
    return {
        "left": {(k, 0): w for (k, i), w in data.items() if i == 0},
        "right": {(k, 0): w for (k, i), w in data.items() if i == 1},
    }


def _joint_key(query: Query, other: Query) -> Query:
    return query.join(other, lambda a: a.key, lambda b: b.key, lambda a, b: (a.key, a.value, b.value))


ATTACKS = {
    "Select": Attack(LEFT.select(lambda r: r.key), _halves, {"reference": 0.9, "duckdb": 0.9}),
    "Concat": Attack(LEFT.concat(RIGHT), _apart, {"reference": 0.9, "duckdb": 0.9}),
    "Except": Attack(LEFT.difference(RIGHT), _apart, {"reference": 0.9, "duckdb": 0.9}),
    "Intersect": Attack(LEFT.intersect(RIGHT), _apart, {"reference": 0, "duckdb": 0}),
    "Union": Attack(LEFT.union(RIGHT), _apart, {"reference": 0, "duckdb": 0}),
    "Where": Attack(LEFT.where(lambda r: r.key < 9), _singles, {"reference": 0, "duckdb": 0}),
    "Partition": Attack(LEFT.partition(lambda r: r.key, [1])[1], _singles, {"reference": 0, "duckdb": 0}),
    "Shave, one width": Attack(LEFT.shave(2.0**21), _singles, {"reference": 0, "duckdb": 0}),
    "Shave, a rounded width": Attack(LEFT.shave(2.0**22 / 3), _singles, {"reference": 0.9, "duckdb": 0.9}),
    "SelectMany": Attack(
        LEFT.select_many(lambda r: F.range(r.key * 1000, r.key * 1000 + 3 + 2 * r.key, limit=1000)),
        _singles,
        {"reference": 1.4, "duckdb": 0.9},
    ),
    "SelectMany, weighted": Attack(
        LEFT.select_many(lambda r: [F.weighted((r.key, i), w) for i, w in enumerate((0.1, 0.7, 0.9, 1.1))]),
        _singles,
        {"reference": 1, "duckdb": 1},
    ),
    "GroupBy": Attack(LEFT.group_by(lambda r: r.key, lambda g: 0), _steps, {"reference": 1.2, "duckdb": 1.2}),
    "Shave, many widths": Attack(
        LEFT.shave(lambda r: [2.0**21 / 3, 2.0**-40, 2.0**20 / 7, 2.0**21 / 5, 2.0**40]),
        _singles,
        {"reference": 0.3, "duckdb": 0.3},
    ),
    "Join": Attack(_joint_key(LEFT, RIGHT), _joined, {"reference": 2.4, "duckdb": 3}),
    "Join, the least caps": Attack(_joint_key(LEAST, LEAST_TOO), _least, {"reference": 2.4, "duckdb": 3}),
    "Join, one side far heavier": Attack(_joint_key(LEFT, LIGHT), _uneven, {"reference": 2, "duckdb": 3}),
}


def ratios(plan: Node, data: Data, found: Mapping[Any, Any]) -> Iterator[Fraction]:
    """How many roundoffs of the output's norm bound, by the norms of these data, all records are off, and each key.

    A dataset of one key alone is a dataset too. So what is off at one key may be no more than the constant either.
    """
    exact = reference.evaluate(plan, data, EXACT)
    yield distance(exact, found) / (UNIT_ROUNDOFF * _mass(plan, data))
    for key in range(BINS):
        own = {name: {r: w for r, w in held.items() if r[0] == key} for name, held in data.items()}
        wanted, norm_bound = reference.evaluate(plan, own, EXACT), _mass(plan, own)
        if norm_bound:
            yield distance(wanted, {r: found[r] for r in wanted if r in found}) / (UNIT_ROUNDOFF * norm_bound)


def _mass(plan: Node, data: Data) -> Fraction:
    declared = [child.operator for child in plan.inputs]
    assert all(getattr(operator, "source", None) in sources([plan]) for operator in declared)
    return plan.operator.norm_bound(*(norm(data[operator.source]) for operator in declared))


def worst(name: str, evaluate: Callable[[Node, Data], Mapping[Any, Any]], trials: int) -> Fraction:
    """The most roundoffs that an engine shows under an attack."""
    rng, attack = Random(name), ATTACKS[name]
    plan, most = attack.query.plan, Fraction(0)
    for _ in range(trials):
        data = attack.draw(rng)
        most = max(most, *ratios(plan, data, evaluate(plan, data)))
    return most
