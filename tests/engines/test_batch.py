"""Plans that are evaluated together: each has the bits that it has alone, and what they share is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.plans import OPERATORS, random_case
from wpinq.engines.relational.batch import SHARED_USES, Batch, shared_steps
from wpinq.engines.relational.compiler import compile_plan
from wpinq.engines.relational.duckdb import warm_tables
from wpinq.engines.relational.duckdb.database import Database
from wpinq.engines.relational.duckdb.warm_tables import WarmTables
from wpinq.engines.relational.sql.script import SqlStatement
from wpinq.errors import WpinqError
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import Node
from wpinq.query import Query

EDGES = wp.source("edges", src=int, dst=int)

CONSUMERS: tuple[Callable[[Query], Query], ...] = (
    lambda q: q,
    lambda q: q.select(lambda x: 0),
    lambda q: q.select(lambda x: (x, 1)),
    lambda q: q.where(lambda x: wp.hash_bucket(x) == 0) if hasattr(wp, "hash_bucket") else q.where(lambda x: x == x),
    lambda q: q.where(lambda x: x == x).select(lambda x: (x, 2)),
    lambda q: q.select(lambda x: (x, 3)).where(lambda x: x[1] > 2).select(lambda x: x[0]),
    lambda q: q.partition(lambda x: 0, [0, 1])[0],
    lambda q: q.concat(q.select(lambda x: x)),
    lambda q: q.except_(q.where(lambda x: x == x)),
    lambda q: q.group_by(lambda x: 0, lambda group: wp.count(group)),
    lambda q: q.shave(0.5).select(lambda x: x[1]),
    lambda q: q.join(q, lambda x: 0, lambda y: 0, lambda x, y: x),
)


def bits(weights: Any) -> list[tuple[str, str]]:
    return [(repr(record), float(weight).hex()) for record, weight in weights.items()]


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as opened:
        yield opened


def consumers(query: Query) -> list[Node]:
    """What can be asked of a query, some of it through a step that several share once more."""
    found = []
    for build in CONSUMERS:
        try:
            found.append(build(query).plan)
        except (WpinqError, AttributeError):  # not of records of this type
            continue
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_plan_has_the_bits_in_company_that_it_has_alone(database: Database, operator: str) -> None:
    rng = Random(f"{operator} together")
    for _ in range(3):
        case = random_case(rng, operator)
        data = {name: {record: float(w) for record, w in given.items()} for name, given in case.data.items()}
        roots = consumers(Query(case.plan))
        assert len(roots) > SHARED_USES
        alone = []
        for root in roots:
            database.forget("a")
            alone.append(bits(database.evaluate(root, data)))
        for order in (roots, rng.sample(roots, len(roots))):
            for name in data:
                database.forget(name)
            with database.together(order):
                for root in order:
                    assert bits(database.evaluate(root, data)) == alone[roots.index(root)]
            with database.together(order):  # again, over tables that stand
                for root in order:
                    whole = database.evaluate(root, data)
                    assert bits(whole) == alone[roots.index(root)]
                    keys = list(whole)[::2]
                    assert bits(database.evaluate(root, data, keys=keys)) == bits({key: whole[key] for key in keys})
