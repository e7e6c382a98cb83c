"""Programs that go on from remembered steps: to the letter those that are written from the start."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.engines.test_batch import consumers
from tests.support.plans import OPERATORS, random_case
from wpinq.engines.relational import compiler
from wpinq.engines.relational.batch import Batch
from wpinq.engines.relational.compiler import Compiled, compile_anew, compile_plan
from wpinq.engines.relational.programs import Plan, Programs
from wpinq.engines.relational.rewrites import REWRITES
from wpinq.engines.relational.rules.operators import relation_of
from wpinq.engines.relational.sql.dialect import DUCKDB
from wpinq.engines.relational.sql.script import Equal
from wpinq.engines.relational.sql.written_steps import WrittenSteps
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import Node
from wpinq.query import Query

EDGES = wp.source("edges", src=int, dst=int)


def compiled(root: Node, equal: Equal, shared: frozenset[bytes], asked: bool, steps: WrittenSteps | None) -> Compiled:
    return compile_anew(root, REWRITES, equal, DUCKDB, shared, asked, steps)


@pytest.mark.parametrize("operator", OPERATORS)
def test_random_plans_have_the_program_of_their_own(operator: str) -> None:
    rng, steps = Random(f"{operator} written"), WrittenSteps()
    for _ in range(2):
        case = random_case(rng, operator)
        roots = consumers(Query(case.plan))
        batch = Batch(roots)
        for root in rng.sample(roots * 2, len(roots) * 2):
            shared = rng.choice([frozenset[bytes](), batch.plan(root).shared])
            asked, equal = rng.random() < 0.3, frozenset[tuple[str, float]]()
            alone = compiled(root, equal, shared, asked, None)
            assert compiled(root, equal, shared, asked, steps) == alone
            for table in rng.sample(sorted(alone.open), min(2, len(alone.open))):
                equal |= {(table, rng.choice([1.0, 0.5, -0.5]))}
                try:
                    alone = compiled(root, equal, shared, asked, None)
                except wp.WpinqError:
                    continue
                assert compiled(root, equal, shared, asked, steps) == alone


def steps_written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that are written from now on, but for sources."""
    named: list[str] = []

    def counting(operator: Any, *given: Any) -> Any:
        named.append(operator.name)
        return relation_of(operator, *given)

    monkeypatch.setattr(compiler, "relation_of", counting)
    return named


def test_what_plans_have_in_common_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    named = steps_written(monkeypatch)
    triangles, steps = triangles_by_degree(symmetrize(EDGES)), WrittenSteps()
    plans = [triangles.where(lambda t, i=i: t[0] > i).plan for i in range(3)]
    compiled(plans[0], frozenset(), frozenset(), False, steps)
    first = len(named)
    for plan in plans[1:]:
        compiled(plan, frozenset(), frozenset(), False, steps)
    assert named[first:] == ["Where", "Where"], "all but the last step is there"
    named.clear()
    compiled(plans[0], frozenset({("source_edges", 1.0)}), frozenset(), False, steps)
    assert len(named) > 2, "what depends on the weight of a table is written anew"
    named.clear()
    compiled(plans[1], frozenset({("source_edges", 1.0), ("another", 0.5)}), frozenset(), False, steps)
    assert named == ["Where"], "and on no other table"
    steps.clear()
    compiled(plans[1], frozenset(), frozenset(), False, steps)
    assert len(named) > 3


def test_no_step_with_a_weight_that_was_found_outlives_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"source_edges": (0.37, 0.37)}
    plans = [symmetrize(EDGES).where(lambda e, i=i: e.src > i).plan for i in range(3)]
    named, programs = steps_written(monkeypatch), Programs()
    for plan in plans[:2]:
        programs.settled(Plan(plan), found)
    assert named[-1:] == ["Where"], "the program is remembered"
    assert "0.37" in programs.settled(Plan(plans[1]), found).output
    programs.clear()
    named.clear()
    programs.settled(Plan(plans[2]), found)
    assert len(named) > 1
    for plan in plans:
        assert "0.37" not in compile_plan(plan).output
