"""What each operator may round: a constant for every one, that both engines keep, and what it costs in noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import wpinq as wp
from tests.support.cases import HEAVY
from tests.support.operators import CASES
from tests.support.parameters import for_each
from tests.support.plans import distance
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.histograms import (
    CountOfCounts,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    MatrixMechanism,
    PIdentity,
    Sorted,
    Tree,
    Wavelet,
)
from wpinq.noise.laplace import laplace_scale
from wpinq.plan.arithmetic import EXACT, UNIT_ROUNDOFF, Arithmetic, Weight
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Where
from wpinq.plan.operators.families import PerRecord
from wpinq.plan.properties import PARTITION_SLACK, plan_properties

ITEMS = wp.source("items", group=int, bin=int)


def heavy(rng: Random, records: int, signed: bool = False) -> dict[object, float]:
    """Weights of every size and with all their bits, up to a cap of 2³⁰."""
    weights = {i: rng.random() * 2.0 ** rng.randint(-30, 24) for i in range(records)}
    return {i: -w if signed and rng.random() < 0.5 else w for i, w in weights.items()}


ONE_STEP = {name: query for case in CASES.values() for name, query in case.one_step.items()}


def test_every_operator_has_a_constant() -> None:
    known = {node.operator.name for query in ONE_STEP.values() for node in topological([query.plan])}
    assert set(REGISTRY) <= known
    assert all(query.plan.operator.rounding_units() >= 0 for query in ONE_STEP.values())


class OneOfManyImages(PerRecord):
    """What its coefficients round, this operator does not say."""

    name = "OneOfManyImages"

    def output_type(self, *inputs: Type) -> Type:
        return inputs[0]

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        return lambda record: ((record, 0.1),)


@dataclass(frozen=True, slots=True)
class Kept(Where):
    """An operator that nobody registered, under the name of one that is."""


def test_an_operator_that_declares_no_rounding_or_is_not_registered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = wp.source("numbers", int).where(lambda x: x > 0).plan
    assert isinstance(kept.operator, Where)
    with pytest.raises(PlanError, match="Where is not a registered operator"):
        Node(Kept(kept.operator.predicate), kept.inputs)
    operator = dataclass(frozen=True)(OneOfManyImages)
    monkeypatch.setitem(REGISTRY, operator.name, operator)
    with pytest.raises(PlanError, match="how far engines may round it is not declared"):
        plan_properties(Node(operator(), kept.inputs)).slack()


def test_a_source_with_a_cap_below_one_can_be_shaved_as_finely_as_its_cap_allows() -> None:
    least = Fraction(1, 2**30)
    light = wp.source("light", int, unit_weight=least, cap=least, weights=True).shave(2.0**-45)
    assert plan_properties(light.plan).output.weight_left == least


@for_each("name", ONE_STEP)
def test_both_engines_keep_each_operator_within_its_constant(name: str) -> None:
    plan, rng = ONE_STEP[name].plan, Random(name)
    assert plan_properties(plan).rounding_error >= plan.operator.rounding_units() * UNIT_ROUNDOFF * 2**29
    with Database() as database:
        for signed in (False, True):
            data = {"numbers": heavy(rng, 300, signed), "others": heavy(rng, 300, signed)}
            exact = reference.evaluate(plan, data, EXACT)
            for found in (reference.evaluate(plan, data), database.evaluate(plan, data)):
                # the mass of these data is less than the caps: the constant is held to what there is
                present = sum(Fraction(abs(w)) for weights in data.values() for w in weights.values())
                assert distance(exact, found) <= plan.operator.rounding_units() * UNIT_ROUNDOFF * present


def test_sums_round_close_to_what_they_may() -> None:
    """One roundoff a sum is no slack that could be taken away."""
    plan = HEAVY.select(lambda x: 0).plan
    worst = Fraction(0)
    with Database() as database:
        for low in (2.0**-23, 2.0**-24, 3 * 2.0**-25):
            data = {"numbers": {0: 2.0**29, 1: low}}
            exact = reference.evaluate(plan, data, EXACT)
            for found in (reference.evaluate(plan, data), database.evaluate(plan, data)):
                worst = max(worst, distance(exact, found) / (UNIT_ROUNDOFF * exact[0]))
    assert Fraction(9, 10) < worst <= plan.operator.rounding_units()


# --- the noise of the histogram strategies ---

STRATEGIES = {
    "identity": Identity(1024),
    "sorted": Sorted(1024),
    "hierarchical": Hierarchical(1024),
    "hierarchical, ternary": Hierarchical(81, 3),
    "wavelet": Wavelet(1024),
    "matrix": MatrixMechanism([[1, 1, 1, 1], [2, 0, 0, -1], [0, 0, 1.5, 0]]),
    "optimised": PIdentity(np.random.default_rng(0).uniform(0, 1, (2, 6))),
    "naive": CountOfCounts(5, 9, "naive"),
    "cumulative": CountOfCounts(5, 9, "cumulative"),
    "unattributed": CountOfCounts(5, 9, "unattributed"),
}
QUERIES = {
    **{name: strategy.query(ITEMS, bin=lambda r: r.bin) for name, strategy in STRATEGIES.items()},
    "locations": HierarchicalCounts(Tree([[2], [1, 2]]), [2, 2, 2], 9).query(
        ITEMS, 1, group=lambda r: r.group, location=lambda r: r.bin
    ),
}


@for_each("name", QUERIES)
@for_each("epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1)])
def test_noise_is_at_most_a_millionth_above_the_nominal(name: str, epsilon: Fraction) -> None:
    plan = QUERIES[name].plan
    scale = laplace_scale(epsilon, plan_properties(plan).slack())
    assert 1 / epsilon <= Fraction(scale) <= (1 + Fraction(1, 10**6)) / epsilon


# --- parts ---


def test_parts_are_widened_alike() -> None:
    part = HEAVY.partition(lambda x: x % 2, [0])[0]
    inner = part.partition(lambda x: x % 3, [0])[0]
    floor = PARTITION_SLACK
    assert (
        plan_properties(part.plan).slack()
        == plan_properties(inner.plan).slack()
        == plan_properties(part.select(lambda x: x).plan).slack()
        == floor
    )
    assert (
        plan_properties(part.plan).slack(exact=True)
        == floor
        > plan_properties(HEAVY.select(lambda x: x).plan).slack(exact=True)
        == 0
    )
    long = part
    for _ in range(400):
        long = long.select(lambda x: x)
    error = 2 * plan_properties(long.plan).rounding_error
    assert plan_properties(long.plan).slack() == (1 + floor) * 4 * error / floor - 1 > floor
    assert plan_properties(long.partition(lambda x: x, [1])[1].plan).slack() == (1 + floor) * 8 * error / floor - 1


def test_the_loss_over_parts_is_what_is_billed() -> None:
    """The inequality of docs/noise.md, at random: what releases over parts lose together, rounding included."""
    rng, floor = Random(11), PARTITION_SLACK
    for _ in range(300):
        count = rng.randint(2, 6)
        etas = [Fraction(rng.choice([0, 1, 5, 50, 5000]), 10**6) * rng.randint(0, 9) for _ in range(count)]
        uses = [rng.randint(1, 4) for _ in range(count)]
        billed = Fraction(rng.randint(1, 9), 10)
        epsilons = [billed / use * Fraction(rng.choice([1, 1, 1, 2]), 2) for use in uses]
        scales = [(1 + floor) * max(Fraction(1), 4 * eta / floor) for eta in etas]
        moved, below, above = (_shares(rng, count) for _ in range(3))
        loss = sum(
            e / s * (u * d + eta * (b + a))
            for e, s, u, d, eta, b, a in zip(epsilons, scales, uses, moved, etas, below, above, strict=True)
        )
        assert loss <= billed
        naive = sum(
            e / (1 + eta) * (u * d + eta * (b + a))
            for e, u, d, eta, b, a in zip(epsilons, uses, moved, etas, below, above, strict=True)
        )
        worse = naive > billed
        if worse:
            break
    else:
        pytest.fail("a slack of each plan's own would do: the floor protects from nothing")


def _shares(rng: Random, count: int) -> list[Fraction]:
    """Numbers that add up to 1, often all in one place."""
    if rng.random() < 0.5:
        place = rng.randrange(count)
        return [Fraction(i == place) for i in range(count)]
    parts = [rng.randint(0, 9) for _ in range(count)]
    return [Fraction(part, max(1, sum(parts))) for part in parts]
