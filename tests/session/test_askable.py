"""Whatever a session takes tells its bill, its accuracy and its plan; sessions, analysts and clients bill alike."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import wpinq as wp
from wpinq.kernel.analysts import Analyst
from wpinq.measure.accuracy import Accuracy

PEOPLE = wp.source("people", sex=wp.category("f", "m"), age=int, facts=["unit_weights"])
COUNT = PEOPLE.select(lambda p: p.sex).noisy_count(1)
OLD = PEOPLE.where(lambda p: p.age > 60).select(lambda p: p.sex).noisy_count("3/2")
TABLE = PEOPLE.by("sex").agg(rows=wp.count(), age=wp.mean("age", 0, 99), epsilon=2)
MARGINALS = PEOPLE.marginals(["sex"], order=1, epsilon="1/2")


@pytest.mark.parametrize(
    ("asked", "cost", "rows"),
    [
        (COUNT, 1, 1),
        (TABLE, 2, 2),
        (MARGINALS, 0.5, 1),
        (wp.Batch([COUNT, COUNT, MARGINALS]), 1.5, 3),
        (wp.Batch({"a": OLD, "b": TABLE}), 3.5, 3),
    ],
    ids=["measurement", "table", "marginals", "list", "names"],
)
def test_bill_accuracy_and_explanation(asked: Any, cost: float, rows: int) -> None:
    assert asked.bill() == {"people": cost}
    told = asked.accuracy(half_width=3, count=100)
    assert isinstance(told, Accuracy) and len(told) == rows
    assert [row.epsilon_for for row in told] == [row.epsilon_for for row in wp.accuracy(asked, half_width=3, count=100)]
    assert "people" in asked.explain() and "Engine: duckdb" in asked.explain()
    assert "Engine: reference" in asked.explain(engine="reference")


def test_a_query_tells_them_of_a_noisy_count() -> None:
    query = PEOPLE.select(lambda p: p.sex)
    assert query.bill(1) == COUNT.bill()
    assert query.accuracy(1)[0].half_width == COUNT.accuracy()[0].half_width
    assert query.explain(1) == COUNT.explain()


def test_a_batch_is_released_as_what_it_holds() -> None:
    data = [("f", 30), ("m", 40), ("m", 50)]
    with wp.Session() as session:
        session.protect(PEOPLE, data, budget=10)
        batch = wp.Batch({"a": OLD, "b": TABLE})
        found = session.release(batch)
        assert session.spent("people") == batch.bill()["people"]
        again = session.release({"a": OLD, "b": TABLE})
        assert found.keys() == again.keys() and found["a"]["f"] == again["a"]["f"]
        assert session.spent("people") == batch.bill()["people"]
    (half,) = wp.fit_to_budget([batch], {"people": "1.75"})
    assert half.bill() == {"people": 1.75}
    with pytest.raises(wp.PlanError, match="end the query"):
        wp.Batch([PEOPLE])


def test_a_bill_has_one_signature() -> None:
    signatures = {str(inspect.signature(each.bill)) for each in (wp.Session, Analyst, wp.ServiceConnection)}
    assert len(signatures) == 1
