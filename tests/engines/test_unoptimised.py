"""Steps that are taken one by one give the weights that rewritten programs give, to the last bit."""

from __future__ import annotations

from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.cases import Table
from tests.support.operators import TABLES
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines.sql.duckdb.database import Database, UnoptimisedDatabase

EDGES = wp.source("edges", src=int, dst=int, unit_weight=2, facts=["unit_weights", "symmetric"])
GRAPH = {(i, j): 1.0 for i in range(12) for j in range(12) if i != j and i * j % 5 < 3}
PATHS = EDGES.join(EDGES, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
DEGREES = EDGES.group_by(lambda e: e.src, lambda g: F.count(g))
QUERIES = {
    "paths": PATHS.where(lambda p: p[0] != p[2]),
    "triangles": PATHS.join(EDGES, lambda p: (p[2], p[0]), lambda e: (e.src, e.dst), lambda p, e: p),
    "degrees": PATHS.join(DEGREES, lambda p: p[1], lambda d: d.key, lambda p, d: (p[0], d.val)),
    "pieces": EDGES.select(lambda e: e.src).shave(1.0).select(lambda p: p.index),
}


@for_each("table", TABLES, ids=lambda table: table.name)
def test_worked_examples(table: Table) -> None:
    data = {
        name: {record: float(Fraction(weight)) for record, weight in held.items()} for name, held in table.data.items()
    }
    with Database() as rewritten, UnoptimisedDatabase() as stepwise:
        assert stepwise.evaluate(table.query.plan, data) == rewritten.evaluate(table.query.plan, data)


@pytest.mark.parametrize("name", QUERIES)
def test_graphs_and_keys(name: str) -> None:
    plan = QUERIES[name].plan
    with Database() as rewritten, UnoptimisedDatabase() as stepwise:
        whole = rewritten.evaluate(plan, {"edges": GRAPH})
        assert stepwise.evaluate(plan, {"edges": GRAPH}) == whole
        keys = list(whole)[:5]
        assert stepwise.evaluate(plan, {"edges": GRAPH}, keys=keys) == {key: whole[key] for key in keys}


def test_a_plan_that_its_steps_cannot_run_is_refused_from_the_plan() -> None:
    crowds = EDGES.select_many(lambda e: F.subsets(F.range(0, 20, limit=20), 9), limit=5)
    with pytest.raises(wp.PlanError, match="functions of lists stand more than 8 deep"):
        UnoptimisedDatabase.check(crowds.plan)
    UnoptimisedDatabase.check(QUERIES["triangles"].plan)


def test_at_rest_a_process_has_no_thread_of_a_database_and_each_opens_again() -> None:
    with Database(threads=2) as database:
        plan = QUERIES["pieces"].plan
        once = database.evaluate(plan, {"edges": GRAPH})
        Database.rest()
        assert database._instance is None
        assert database.evaluate(plan, {"edges": GRAPH}) == once
