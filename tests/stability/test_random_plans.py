"""Random plans on random neighbours, in exact arithmetic: no step moves further than is said of it.

20,000 plans, and more pairs of neighbours; `python -m tests.stability` tries as many pairs as it is told to.
"""

from fractions import Fraction

import pytest

from tests.support import nasty
from tests.support.nasty import attack
from tests.support.parameters import sizes, tenth
from wpinq.plan.node import sources, topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Partition
from wpinq.plan.properties import plan_properties

CHUNKS, PLANS = 80, 250
MOST_VACUOUS, LEAST_SHARP = 0.3, 0.15
RULES = 5


@pytest.mark.parametrize("seed", tenth(range(CHUNKS), 80))
def test_no_step_moves_further_than_is_said(seed: int) -> None:
    found = attack(seed, PLANS, PLANS, datasets=1, neighbours=1)
    assert found.plans >= PLANS
    assert not found.faults
    assert found.vacuous <= MOST_VACUOUS * found.cases
    assert found.sharp >= LEAST_SHARP * found.cases
    assert len(found.ratio) >= RULES - 1  # each is at work, and most are reached
    assert sum(ratio >= Fraction(9, 10) for ratio in found.ratio.values()) >= 2


def test_the_plans_hold_every_operator_and_every_kind_of_source() -> None:
    plans = list(nasty.plans(1, 800))
    operators = {node.operator.name for plan in plans for node in topological([plan])}
    assert operators >= set(REGISTRY)
    declared = [source for plan in plans for source in sources([plan]).values()]
    assert {fact for source in declared for fact in source.facts} == {
        "nonnegative",
        "unit_weights",
        "whole_weights",
        "simple",
        "symmetric",
    }
    people = [source.person for source in declared if source.person is not None]
    assert {person.nested for person in people} == {False, True}
    assert sum(len(sources([plan])) > 1 for plan in plans) >= len(plans) / 20
    inside = [n for plan in plans for n in topological([plan]) if isinstance(n.operator, Partition) and n != plan]
    assert len(inside) >= len(plans) / 20


@pytest.mark.parametrize("plans", sizes(500, 2_000))
def test_nothing_is_billed_beyond_the_paths(plans: int) -> None:
    for plan in nasty.plans(2, plans):
        found = plan_properties(plan)
        assert set(found.stability) == set(found.uses)
        for name, moved in found.stability.items():
            assert 0 < moved <= found.uses[name]
            assert moved.denominator.bit_length() <= 100
