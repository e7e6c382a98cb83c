"""Every operator on inputs small enough to check by hand, exactly and in floats."""

from fractions import Fraction
from random import Random

import wpinq as wp
from tests.support.cases import Table
from tests.support.floats import shuffled
from tests.support.operators import TABLES
from tests.support.parameters import for_each
from tests.support.plans import distance, norm
from wpinq.plan.arithmetic import UNIT_ROUNDOFF
from wpinq.plan.node import topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Source
from wpinq.plan.properties import plan_properties


@for_each("table", TABLES, ids=lambda table: table.name)
def test_worked_example(table: Table) -> None:
    assert table.holds()


@for_each("table", TABLES, ids=lambda table: table.name)
def test_worked_example_in_floats(table: Table) -> None:
    data = {name: {x: Fraction(w) for x, w in weights.items()} for name, weights in table.data.items()}
    exact, rounded = wp.evaluate(table.query, data, exact=True), wp.evaluate(table.query, data)
    plan = table.query.plan
    held: dict[bytes, Fraction] = {}  # bounds from the data's own norms, where a certificate has caps
    for node in topological([plan]):
        inputs = [held[child.digest] for child in node.inputs]
        source = isinstance(node.operator, Source)
        held[node.digest] = norm(data[node.operator.source]) if source else node.operator.norm_bound(*inputs)
    paths = plan_properties(plan).paths
    steps = sum(paths[node.digest] * node.operator.rounding_units() * held[node.digest] for node in topological([plan]))
    assert distance(rounded, exact) <= UNIT_ROUNDOFF * steps
    rng = Random(3)
    for _ in range(2):
        again = wp.evaluate(table.query, shuffled(rng, data))
        assert {x: w.hex() for x, w in again.items()} == {x: w.hex() for x, w in rounded.items()}


def test_every_operator_has_worked_examples() -> None:
    seen = {node.operator.name for table in TABLES for node in topological([table.query.plan])}
    assert set(REGISTRY) <= seen


def test_null_predicates_are_null_whatever_was_compiled_before() -> None:
    """Equal lambdas over types that differ in what may be null are compiled apart."""
    plain, nullable = wp.source("plain", int, weights=True), wp.source("nullable", int | None, weights=True)
    assert dict(wp.evaluate(plain.where(lambda x: x < 3), {"plain": [1, 5]})) == {1: 1.0}
    assert dict(wp.evaluate(nullable.where(lambda x: x < 3), {"nullable": [1, 5, None]})) == {1: 1.0}
