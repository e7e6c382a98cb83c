"""Uphill on data: of a random plan's neighbours, changed a little each time, those that move it further are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

from tests.support import moves
from tests.support.moves import Followed, Way, Weights
from tests.support.nasty import Weaver, add, dataset, drawn_step, value
from wpinq.plan.node import Node
from wpinq.plan.operators import Partition, Source

FACTORS = tuple(map(Fraction, ("1/10", "1/2", "2", "10", "1/1000", "1000")))


@dataclass
class Climbed:
    """What a climb found.

    Attributes
    ----------
    ratios : dict
        For each plan of a bound below its paths, the largest move over the bound.
    faults : list
        Where a step moved further than is said of it.
    """

    ratios: dict[bytes, Fraction] = field(default_factory=dict)
    faults: list[tuple[str, str, Node, Any]] = field(default_factory=list)


def climb(seed: int, plans: int, tries: int) -> Climbed:
    """Random plans of a bound below their paths, each with so many steps uphill on the data at its cuts."""
    rng, climbed = Random(seed), Climbed()
    while len(climbed.ratios) < plans:
        root = Weaver(rng).weave()
        plan = rng.choice(moves.followed(root))
        if not plan.ways[0].moved[root.digest].change.rules or plan.cut == root:
            continue
        best, data = Fraction(-1), _start(rng, plan)
        for _ in range(tries):
            tried = _changed(rng, plan, data)
            ratio = _ratio(rng, plan, tried, climbed)
            if ratio is not None and ratio >= best:
                best, data = ratio, tried
        climbed.ratios[root.digest] = max(best, Fraction(0))
    return climbed


def _start(rng: Random, plan: Followed) -> dict[bytes, dict[Any, Fraction]]:
    return {node.digest: _dataset(rng, plan, node) for node in _cuts(plan)}


def _cuts(plan: Followed) -> list[Node]:
    return [node for node in plan.steps if isinstance(node.operator, (Source, Partition))]


def _dataset(rng: Random, plan: Followed, node: Node) -> dict[Any, Fraction]:
    if isinstance(node.operator, Source):
        return dataset(rng, node.operator)
    return {value(rng, node.type): rng.choice(FACTORS) for _ in range(rng.choice([1, 3, 6]))}


def _changed(
    rng: Random, plan: Followed, data: Mapping[bytes, dict[Any, Fraction]]
) -> dict[bytes, dict[Any, Fraction]]:
    """A record more, or fewer, or of another weight, or all of another: as the facts allow."""
    changed = {digest: dict(weights) for digest, weights in data.items()}
    node = rng.choice(_cuts(plan))
    source = node.operator if isinstance(node.operator, Source) else None
    symmetric = source is not None and "symmetric" in source.facts
    exact = source is not None and source.exact
    weights, draw = changed[node.digest], rng.random()
    if weights and draw < 0.2:
        gone = rng.choice(list(weights))
        for record in {gone, gone[::-1]} if symmetric and gone is not None else {gone}:
            weights.pop(record, None)
    elif weights and draw < 0.5 and not exact:
        heavier, factor = rng.choice(list(weights)), rng.choice(FACTORS)
        for record in {heavier, heavier[::-1]} if symmetric and heavier is not None else {heavier}:
            weights[record] *= factor
    elif draw < 0.95:
        for _ in range(rng.choice([1, 1, 4])):
            record = value(rng, node.type, rng.choice([2, 3, 12]))
            weight = Fraction(1) if exact else rng.choice(FACTORS)
            if source is None:
                weights[record] = weight
            else:
                add(source, weights, record, weight)
    else:
        changed[node.digest] = _dataset(rng, plan, node)
    return changed


def _ratio(rng: Random, plan: Followed, data: Mapping[bytes, dict[Any, Fraction]], climbed: Climbed) -> Fraction | None:
    drawn = drawn_step(rng, plan, dict(data[plan.cut.digest]))
    if drawn is None:
        return None
    way, record, size, changed = drawn
    before = moves.outputs(plan.steps, data)
    after = moves.outputs(plan.steps, {**data, plan.cut.digest: changed})
    if before is None or after is None:
        return None
    root = plan.steps[-1]
    _check(plan, way, record, size, before, after, climbed, data)
    far = sum(moves.norms(moves.difference(data[plan.cut.digest], changed)))
    return sum(moves.norms(moves.difference(before[root.digest], after[root.digest]))) / (plan.bound * far)


def _check(
    plan: Followed,
    way: Way,
    record: Any,
    size: Fraction,
    before: Mapping[bytes, Weights],
    after: Mapping[bytes, Weights],
    climbed: Climbed,
    data: Any,
) -> None:
    unit = moves.unit_values(plan.cut.type, record)
    for what, node in moves.broken(plan, way, unit, size, before, after):
        climbed.faults.append((what, node.operator.name, plan.steps[-1], (record, size, data)))
