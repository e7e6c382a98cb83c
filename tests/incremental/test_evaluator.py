"""The equation: after any history, an output equals a fresh evaluation of its plan on the candidate as it is."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import wpinq as wp
from tests.incremental.state_sizes import state_size
from tests.support.parameters import for_each, sizes
from tests.support.plans import CHANGES, OPERATORS, Case, random_case, random_record
from wpinq import functions as F
from wpinq.columns.dataset import WeightedDataset
from wpinq.engines import reference
from wpinq.engines.delta import Evaluator
from wpinq.errors import PlanError
from wpinq.plan.arithmetic import EXACT, FLOAT, Weights
from wpinq.plan.node import sources

CASES_PER_OPERATOR = 25
STEPS = 12


def random_changes(rng: Random, case: Case, candidate: dict[str, Weights]) -> dict[str, Weights]:
    """Changes of one to three records of a source: new ones, heavier ones, lighter ones, ones that go."""
    name, source = rng.choice(sorted(sources([case.plan]).items()))
    changes: Weights = {}
    for _ in range(rng.randint(1, 3)):
        held = sorted(candidate[name].items(), key=repr)
        if held and rng.random() < 0.6:
            record, weight = rng.choice(held)
            changes[record] = -weight if rng.random() < 0.5 else rng.choice(CHANGES)
        else:
            changes[random_record(rng, source.record)] = rng.choice(CHANGES)
    return {name: changes}


@pytest.mark.parametrize("cases_per_operator", sizes(3, CASES_PER_OPERATOR))
@for_each("operator", OPERATORS)
def test_outputs_equal_a_fresh_evaluation_after_any_history(operator: str, cases_per_operator: int) -> None:
    rng = Random(f"history {operator}")
    for _ in range(cases_per_operator):
        case = random_case(rng, operator)
        data = {name: dict(case.data[name]) for name in sources([case.plan])}
        evaluator = Evaluator([case.plan], data, EXACT)
        assert evaluator.outputs == [reference.evaluate(case.plan, data, EXACT)]
        for _ in range(STEPS):
            before_candidate, before = evaluator.candidate, evaluator.outputs
            (change,) = evaluator.propose(random_changes(rng, case, before_candidate))
            assert evaluator.outputs == [reference.evaluate(case.plan, evaluator.candidate, EXACT)]
            assert WeightedDataset(before[0]) + change == WeightedDataset(evaluator.outputs[0])
            if rng.random() < 0.5:
                evaluator.rollback()
                assert evaluator.candidate == before_candidate
                assert evaluator.outputs == before
            else:
                evaluator.commit()


@pytest.mark.parametrize("cases_per_operator", sizes(3, CASES_PER_OPERATOR))
@for_each("operator", OPERATORS)
def test_retracting_everything_leaves_nothing(operator: str, cases_per_operator: int) -> None:
    rng = Random(f"retraction {operator}")
    for _ in range(cases_per_operator):
        case = random_case(rng, operator)
        data = {name: dict(case.data[name]) for name in sources([case.plan])}
        evaluator = Evaluator([case.plan], data, EXACT)
        evaluator.propose({name: {x: -w for x, w in weights.items()} for name, weights in data.items()})
        evaluator.commit()
        assert evaluator.outputs == [{}]
        assert state_size(evaluator) == 0


def graph(rng: Random, nodes: int, edges: int) -> dict[tuple[int, int], float]:
    chosen: dict[tuple[int, int], float] = {}
    while len(chosen) < 2 * edges:
        a, b = rng.randrange(nodes), rng.randrange(nodes)
        if a != b:
            chosen[a, b] = chosen[b, a] = 1.0
    return chosen


def test_float_drift_of_a_walk_stays_small_and_resynchronization_ends_it() -> None:
    edges = wp.source("edges", src=int, dst=int)
    paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: F.record(a=x.src, b=x.dst, c=y.dst)).where(
        lambda p: p.a != p.c
    )
    triangles = paths.select(lambda p: F.rotate(p)).intersect(paths).select(lambda p: "triangle!")
    rng = Random(5)
    candidate = graph(rng, 40, 120)
    evaluator = Evaluator([triangles.plan], {"edges": candidate})
    for _ in range(300):
        a, b = rng.choice(sorted(candidate))
        c, d = rng.choice(sorted(candidate))
        if len({a, b, c, d}) < 4 or (a, d) in candidate or (c, b) in candidate:
            continue
        swap = {(a, b): -1.0, (b, a): -1.0, (c, d): -1.0, (d, c): -1.0}
        swap |= {(a, d): 1.0, (d, a): 1.0, (c, b): 1.0, (b, c): 1.0}
        before = evaluator.outputs
        evaluator.propose({"edges": swap})
        if rng.random() < 0.5:
            evaluator.rollback()
            assert evaluator.outputs == before, "a rollback restores every bit"
        else:
            evaluator.commit()
            candidate = evaluator.candidate["edges"]
    fresh = reference.evaluate(triangles.plan, {"edges": candidate}, FLOAT)
    assert abs(evaluator.outputs[0]["triangle!"] - fresh["triangle!"]) < 1e-9
    evaluator.resynchronize()
    assert evaluator.outputs == [fresh]


def test_shared_steps_are_computed_once_for_several_plans() -> None:
    edges = wp.source("edges", src=int, dst=int)
    ccdf = edges.select(lambda e: e.src).shave(1.0).select(lambda p: p.index)
    sequence = ccdf.shave(1.0).select(lambda p: p.index)
    data = {"edges": {(1, 2): Fraction(1), (1, 3): Fraction(1)}}
    both = Evaluator([ccdf.plan, sequence.plan], data, EXACT)
    alone = Evaluator([sequence.plan], data, EXACT)
    assert both.outputs == [{0: 1, 1: 1}, {0: 2}]
    assert state_size(both) == state_size(alone)


def test_a_change_of_an_unknown_source_is_refused() -> None:
    edges = wp.source("edges", src=int, dst=int)
    with pytest.raises(PlanError, match="no plan uses a source 'nodes'"):
        Evaluator([edges.plan], {"edges": {}}).propose({"nodes": {1: 1}})
