"""GroupBy of the incremental engine: groups kept by weight, and no more prefixes emitted than a change can touch."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.incremental.state_sizes import state_size
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.engines.delta import Evaluator
from wpinq.plan.arithmetic import EXACT, FLOAT, Weights

RECORDS = wp.source("records", key=int | None, value=str | None)
REDUCERS: dict[str, Callable[[Any], Any]] = {
    "collect": lambda group: F.collect(group, lambda r: r.value),
    "count": lambda group: F.count(group),
    "greatest": lambda group: F.max(group, lambda r: r.value),
}
WEIGHTS = [Fraction(n, 2) for n in (-3, -1, 1, 1, 2, 2, 2, 3, 5)]
"""Few of them, so that weights tie, cancel and go below 0."""


def by_definition(weights: Weights) -> Weights:
    """Section 2.5 of the paper, one prefix a record, for the reducer `collect`."""
    output: Weights = {}
    for key in {record[0] for record in weights}:
        group = [(-w, (r[1] is not None, r[1] or ""), r[1]) for r, w in weights.items() if r[0] == key and w > 0]
        group.sort()
        for i, (negated, *_) in enumerate(group):
            members = tuple(value for _, _, value in sorted(group[: i + 1], key=lambda item: item[1]))
            following = group[i + 1][0] if i + 1 < len(group) else Fraction(0)
            output[key, members] = output.get((key, members), Fraction(0)) + (following - negated) / 2
    return {record: weight for record, weight in output.items() if weight}


def random_change(rng: Random, held: Weights) -> Weights:
    """One to four records, new or held: other weights, the same, or none any more."""
    change: Weights = {}
    for _ in range(rng.randint(1, 4)):
        record = (rng.choice([0, 0, 0, 1, None]), rng.choice([None, *"abcdefgh"]))
        change[record] = -held[record] if record in held and rng.random() < 0.3 else rng.choice(WEIGHTS)
    return change


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("arithmetic", [EXACT, FLOAT], ids=lambda arithmetic: arithmetic.name)
def test_any_history_ends_where_a_fresh_evaluation_does(reducer: str, arithmetic: Any) -> None:
    plan = RECORDS.group_by(lambda r: r.key, REDUCERS[reducer]).plan
    rng = Random(f"groups {reducer}")
    evaluator = Evaluator([plan], {"records": {}}, arithmetic)
    for _ in range(400):
        before, outputs, size = evaluator.candidate, evaluator.outputs, state_size(evaluator)
        for _ in range(rng.randint(1, 3)):  # several proposals are one until they are kept or taken back
            evaluator.propose({"records": random_change(rng, evaluator.candidate["records"])})
            assert evaluator.outputs == [reference.evaluate(plan, evaluator.candidate, arithmetic)]
        if rng.random() < 0.5:
            evaluator.commit()
        else:
            evaluator.rollback()
            assert (evaluator.candidate, evaluator.outputs, state_size(evaluator)) == (before, outputs, size)
    weights = evaluator.candidate["records"]
    evaluator.propose({"records": {record: -weight for record, weight in weights.items()}})
    assert evaluator.outputs == [{}]
    assert state_size(evaluator) == 0


def test_the_reference_is_the_definition() -> None:
    plan = RECORDS.group_by(lambda r: r.key, REDUCERS["collect"]).plan
    rng = Random("definition")
    for _ in range(200):
        weights = {k: w for k, w in (random_change(rng, {}) | random_change(rng, {})).items() if w}
        assert reference.evaluate(plan, {"records": weights}, EXACT) == by_definition(weights)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        ({(0, "050"): 0.5}, 4),  # nothing changes its place: two prefixes, before and after
        ({(0, "050"): 3.5}, 10),  # three places up
        ({(0, "000"): -1.0}, 4),  # the lightest goes
        ({(0, "new"): 0.5}, 4),  # one that is lighter still
    ],
)
def test_only_prefixes_that_may_change_are_reduced(change: Weights, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = RECORDS.group_by(lambda r: r.key, REDUCERS["collect"]).plan
    evaluator = Evaluator([plan], {"records": {(0, f"{i:03}"): i + 1.0 for i in range(100)}})
    (kernel,) = evaluator._kernels.values()
    reduced = []
    reduce = kernel._reduce  # of a GroupBy
    monkeypatch.setattr(kernel, "_reduce", lambda group: reduced.append(group) or reduce(group))
    evaluator.propose({"records": change})
    assert 0 < len(reduced) <= most
    assert evaluator.outputs == [reference.evaluate(plan, evaluator.candidate, FLOAT)]
