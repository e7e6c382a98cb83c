"""Which marginals are measured for synthetic rows: public numbers alone decide."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.marginals.tabulation import choose_order
from wpinq.synthesis import fit_table, plan_table

PEOPLE = wp.source("people", sex=wp.category("f", "m"), smokes=bool, age=int)
BINS = wp.attribute("age", bins=range(0, 100, 5), other=False)
ATTRIBUTES: list[Any] = ["sex", "smokes", BINS]


@pytest.mark.parametrize(
    ("epsilon", "given", "order"),
    [
        (1, {}, 2),
        ("0.001", {}, 2),
        ("0.0001", {}, 1),
        ("0.001", {"records": 20_000}, 1),
        ("0.0001", {"order": 2}, 2),
        (1, {"order": 3}, 3),
        (1, {"workload": [("age",)]}, 1),
    ],
)
def test_the_order_follows_from_sizes_epsilon_and_records(epsilon: Any, given: Any, order: int) -> None:
    wanted = plan_table(PEOPLE, iter(ATTRIBUTES), epsilon, **given).measuring.wanted
    assert {len(view) for view in wanted} == {order}


def test_more_epsilon_more_records_or_fewer_cells_never_lower_the_order() -> None:
    for sizes in ([100, 100, 16], [9, 16, 15, 6, 5, 2, 100, 2], [2, 2]):
        for low, high in ((Fraction(1, 1000), Fraction(1, 100)), (Fraction(1, 100), Fraction(1))):
            assert choose_order(sizes, low) <= choose_order(sizes, high)
            assert choose_order(sizes, low, 100) <= choose_order(sizes, low, 10_000)
            assert choose_order([*sizes, 50], high, 5000) <= choose_order(sizes, high, 5000)
    assert choose_order([10**6], Fraction(10)) == 1


def test_an_infeasible_marginal_is_refused_with_records_alone() -> None:
    with pytest.raises(wp.PlanError, match="nothing was spent"):
        plan_table(PEOPLE, ATTRIBUTES, "0.001", records=1000)
    plan_table(PEOPLE, ATTRIBUTES, "0.001")
    for records in (0, -1, float("nan")):
        with pytest.raises(wp.PlanError, match="more than 0"):
            plan_table(PEOPLE, ATTRIBUTES, 1, records=records)


def test_rows_are_those_of_the_fitted_model() -> None:
    asked = plan_table(PEOPLE, ATTRIBUTES, 2)
    rows = [("f" if i % 3 else "m", i % 2 == 0, i % 90) for i in range(900)]
    marginals = wp.simulate(asked, {"people": rows}, seed=1)
    made, again = fit_table(marginals, count=50, seed=4), marginals.fit(seed=4).rows(50, seed=4)
    assert made.rows.to_columns() == again.to_columns()
    assert made.report["rows"]["count"] == 50
    weighted = fit_table(marginals, copies=2, seed=4)
    assert weighted.rows.weights is not None
    assert weighted.report["rows"]["count"] == len(weighted.rows)


def test_the_cell_of_all_other_values_is_told_with_the_way_to_leave_it_out() -> None:
    people = wp.source("people", city=str, age=int, born=datetime.date | None)
    attributes = [
        wp.attribute("city", categories=["Oslo"], other="elsewhere"),
        wp.attribute("age", bins=[0, 18, 90]),
        wp.attribute("born", bins=[datetime.date(1900, 1, 1), datetime.date(2000, 1, 1)], other=False),
    ]
    asked = people.marginals(attributes, order=1, epsilon=1)
    way = "other=False (--drop-other {0}) drops the cell and its records"
    told = [
        f"city: 'elsewhere' is any other value, in rows 'elsewhere'; {way.format('city')}",
        f"age: 'other' is any other value, in rows null, an empty field; {way.format('age')}",
    ]
    assert [line.strip() for line in str(asked).splitlines() if "any other value" in line] == told
    marginals = wp.simulate(asked, {"people": [("Ulm", 99, None)] * 300}, seed=1)
    made = fit_table(marginals, count=20)
    assert made.report["notes"] == told
    assert set(made.rows.columns["city"]) == {"elsewhere"} and set(made.rows.columns["age"]) == {None}


SMALL = wp.source("small", age=int, kind=wp.category("a", "b"), smokes=bool | None)


@for_each(
    ("attribute", "labels"),
    [
        ("kind", ("a", "b")),
        (wp.attribute("kind", categories=["b", "a"]), ("b", "a")),
        (wp.attribute("kind", categories=["b"]), ("b", "other")),
        (wp.attribute(wp.col("age") % 3, name="rest", categories=range(3)), ("0", "1", "2", "missing")),
        (wp.attribute(wp.col("age") % 3, name="rest", categories=[0, 2]), ("0", "2", "missing", "other")),
        (wp.attribute(wp.col("age") % 10, name="digit", bins=[0, 5, 9]), ("[0, 5)", "[5, 9]", "missing")),
        (wp.attribute(wp.col("age") % 10, name="digit", bins=[0, 5, 8]), ("[0, 5)", "[5, 8]", "missing", "other")),
        (wp.attribute("age", bins=[0, 5, 9]), ("[0, 5)", "[5, 9]", "other")),
        ("smokes", ("False", "True", "missing")),
        (wp.attribute("smokes", missing=False), ("False", "True", "other")),
    ],
)
def test_there_is_none_where_the_public_domain_is_complete(attribute: Any, labels: tuple[str, ...]) -> None:
    (cells,) = SMALL.marginals([attribute], order=1, epsilon=1).attributes
    assert cells.labels == labels
    assert bool(cells.note) == (labels[-1] == "other")
