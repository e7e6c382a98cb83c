"""Programs that go on from remembered steps: to the letter those that are written from the start."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.engines.test_batch import consumers
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, random_case
from wpinq.api.query import Query
from wpinq.engines.sql import compile
from wpinq.engines.sql.compile import Compiled, Plan, compile_uncached
from wpinq.engines.sql.dialect import DUCKDB
from wpinq.engines.sql.engine import Batch
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.rules.operators import relation_of
from wpinq.engines.sql.script import PrefixCache
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import Node

EDGES = wp.source("edges", src=int, dst=int)


def compiled(root: Node, shared: frozenset[bytes], asked: bool, steps: PrefixCache) -> Compiled:
    return compile_uncached(Plan(root, REWRITES, shared, asked), DUCKDB, steps)


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_random_plans_have_the_program_of_their_own(operator: str) -> None:
    rng, steps = Random(f"{operator} written"), PrefixCache()
    for _ in range(2):
        case = random_case(rng, operator)
        roots = consumers(Query(case.plan))
        batch = Batch(roots)
        for root in rng.sample(roots * 2, len(roots) * 2):
            shared = rng.choice([frozenset[bytes](), batch.plan(root).shared])
            asked = rng.random() < 0.3
            assert compiled(root, shared, asked, steps) == compiled(root, shared, asked, PrefixCache())


def steps_written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that are written from now on, but for sources."""
    named: list[str] = []

    def counting(operator: Any, *given: Any) -> Any:
        named.append(operator.name)
        return relation_of(operator, *given)

    monkeypatch.setattr(compile, "relation_of", counting)
    return named


def test_what_plans_have_in_common_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    named = steps_written(monkeypatch)
    triangles, steps = triangles_by_degree(symmetrize(EDGES)), PrefixCache()
    plans = [triangles.where(lambda t, i=i: t[0] > i).plan for i in range(3)]
    compiled(plans[0], frozenset(), False, steps)
    first = len(named)
    for plan in plans[1:]:
        compiled(plan, frozenset(), False, steps)
    assert named[first:] == ["Where", "Where"], "all but the last step is there"
