"""Each rewrite on its fixtures: the program before and after it, and the same weights either way."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.engines.rewrite_fixtures import Fixture, fixtures
from tests.support.parameters import for_each
from tests.support.plans import distance
from tests.support.relational import SWITCHES
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.expr.types import TupleOf
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import sources
from wpinq.plan.properties import plan_properties

FIXTURES = fixtures()
WEIGHTS = (1.0, 2.0, 0.75, 1 / 3, -1.0, -0.5)


def data_for(fixture: Fixture) -> dict[str, dict[Any, float]]:
    """Records of small numbers, so that keys meet; of the weights and directions that the facts say."""
    rng = Random(str(fixture.path.name))
    data = {}
    for name, source in sources([fixture.query.plan]).items():
        assert isinstance(source.record, TupleOf)
        width = len(source.record.elements)
        records = {tuple(rng.randrange(9) for _ in range(width)) for _ in range(40)}
        facts = {"unit_weights", "nonnegative"} & set(source.facts)
        choices = WEIGHTS[:1] if "unit_weights" in facts else WEIGHTS[:4] if facts else WEIGHTS
        if "simple" in source.facts:
            records = {(min(record), max(record)) for record in records if len(set(record)) > 1}
        data[name] = {record: rng.choice(choices) for record in sorted(records)}
    return data


def test_every_rewrite_has_a_fixture() -> None:
    assert {fixture.switch for fixture in FIXTURES} == set(SWITCHES)


@for_each("fixture", FIXTURES, ids=lambda f: f"{f.switch}-{f.path.stem}")
def test_the_statements_are_those_of_the_fixture(fixture: Fixture) -> None:
    assert fixture.printed(False) == fixture.without
    assert fixture.printed(True) == fixture.with_
    assert fixture.without != fixture.with_


@for_each("fixture", FIXTURES, ids=lambda f: f"{f.switch}-{f.path.stem}")
def test_the_weights_are_kept(fixture: Fixture) -> None:
    data, plan = data_for(fixture), fixture.query.plan
    exact = reference.evaluate(plan, data, EXACT)
    assert exact
    with Database(threads=1) as database:
        for on in (False, True):
            found = database.evaluate(plan, data, rewrites=fixture.rewrites(on))
            assert distance(exact, found) <= plan_properties(plan).rounding_error
            assert found.keys() == exact.keys()
