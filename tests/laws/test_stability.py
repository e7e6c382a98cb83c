"""`‖T(A) − T(A′)‖ ≤ Σ_s uses_s · ‖A_s − A′_s‖` for 20,000 random plans of depth four and more, exactly.

Seeds are fixed, so a run always sees the same plans. They are split into chunks that test workers share.
"""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.parameters import tenth
from tests.support.plans import LEAST_DEPTH, OPERATORS, random_case
from tests.support.stability import check_stability, ratios
from wpinq.plan.node import Node, topological
from wpinq.plan.properties import plan_properties

CHUNKS, PLANS = 40, 500
MOST_VACUOUS = 0.2
LEAST_RATIO = Fraction(9, 10)


@pytest.mark.parametrize("seed", tenth(range(CHUNKS), 40))
def test_random_plans_are_stable(seed: int) -> None:
    findings = check_stability(seed, PLANS)
    assert findings.plans == PLANS
    assert not findings.violations
    assert findings.vacuous <= MOST_VACUOUS * PLANS


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_bound_is_nearly_reached(operator: str) -> None:
    findings = check_stability(100, PLANS, operators=(operator,), until=LEAST_RATIO)
    assert not findings.violations
    assert findings.ratio[operator] >= LEAST_RATIO


def test_random_plans_are_deep_and_use_every_operator_and_shared_nodes() -> None:
    rng = Random(7)
    cases = [random_case(rng, operator) for operator in OPERATORS for _ in range(20)]
    assert all(case.depth >= LEAST_DEPTH for case in cases)
    assert {case.operator for case in cases} == set(OPERATORS)
    assert sum(len(case.data) > 1 for case in cases) >= len(cases) / 3
    assert sum(_has_shared_node(case.plan) for case in cases) >= len(cases) / 3


def _has_shared_node(plan: Node) -> bool:
    counts = plan_properties(plan).paths
    inner = [node for node in topological([plan]) if node.inputs]
    return any(counts[node.digest] > 1 for node in inner)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.sampled_from(OPERATORS))
def test_stability_with_shrinking(rng: Random, operator: str) -> None:
    assert all(ratio <= 1 for ratio in ratios(random_case(rng, operator), rng))
