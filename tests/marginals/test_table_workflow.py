"""Which marginals are measured for synthetic rows: public numbers alone decide."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from wpinq.marginals.tabulation import choose_order
from wpinq.workflows import plan_table, synthesize_table

PEOPLE = wp.source("people", sex=wp.category("f", "m"), smokes=bool, age=int, facts=["whole_weights"])
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
    made, again = synthesize_table(marginals, count=50, seed=4), marginals.fit(seed=4).rows(50, seed=4)
    assert made.rows.to_columns() == again.to_columns()
    assert made.report["rows"]["count"] == 50
    weighted = synthesize_table(marginals, copies=2, seed=4)
    assert weighted.rows.weights is not None
    assert weighted.report["rows"]["count"] == len(weighted.rows)
