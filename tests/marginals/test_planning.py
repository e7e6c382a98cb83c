"""Plans of marginals: as exact as claimed, the same every time, with shares that sum to 1 and work that is counted."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.parameters import for_each
from wpinq.errors import PlanError
from wpinq.marginals import planning
from wpinq.marginals.cells import Attributes
from wpinq.marginals.planning import MarginalPlan, plan_marginals
from wpinq.marginals.residual_basis import CountedWork, LargestError, TotalError, rows_of

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
ROWS = {  # sizes, views, root mean square a cell of the plan for the total, worst deviation of the plan for the largest
    "four attributes": ((8, 7, 16, 5), "all pairs", 7.12, 7.77),
    "six attributes": ((8, 7, 16, 5, 2, 12), "all pairs", 14.9, 18.0),
    "six of Adult": ((9, 16, 7, 5, 2, 2), "all pairs", 12.3, 14.9),
    "six of four": ((4,) * 6, "all pairs", 12.95, 12.99),
    "fifteen of two": ((2,) * 15, "all pairs", 32.8, 34.1),
    "ten of four": ((4,) * 10, "all pairs", 34.6, 36.3),
    "twelve of ten": ((10,) * 12, "all pairs", 84.9, 84.9),
    "Adult": (ADULT, "all pairs", 72.0, 108.4),
    "Adult, one-way": (ADULT, "singles", 14.8, 18.1),
    "triples of six": ((8, 7, 16, 5, 2, 12), "all triples", 15.5, 21.0),
    "triples of ten": ((4,) * 10, "all triples", 69.0, 67.0),
    "triples of fifteen": ((2,) * 15, "all triples", 63.0, 80.0),
    "triples of fifteen of four": ((4,) * 15, "all triples", 349.0, 417.0),
}


def deviations(plan: MarginalPlan) -> tuple[float, float]:
    """The root mean square over the cells of all wanted views, and the largest, at epsilon 1."""
    variances = np.array([plan.algebra.variance(view) for view in plan.wanted])
    cells = np.array([float(plan.attributes.cells(view)) for view in plan.wanted])
    return float(np.sqrt(cells @ variances / cells.sum())), float(np.sqrt(variances.max()))


@pytest.mark.long
@for_each("name", ROWS)
def test_plans_are_as_exact_as_claimed_within_three_percent(name: str) -> None:
    sizes, views, total, largest = ROWS[name]
    assert deviations(plan_marginals(sizes, views, "total"))[0] <= 1.03 * total
    assert deviations(plan_marginals(sizes, views, "max"))[1] <= 1.03 * largest


@pytest.mark.long
def test_the_default_is_between_the_total_and_the_largest() -> None:
    plans = {name: deviations(plan_marginals((9, 16, 7, 5, 2, 2), "all pairs", name)) for name in ("total", "max")}
    balanced = deviations(plan_marginals((9, 16, 7, 5, 2, 2)))
    assert plans["total"][0] < balanced[0] < plans["max"][0]
    assert plans["max"][1] < balanced[1] < plans["total"][1]
    assert balanced[0] <= 1.03 * 12.9 and balanced[1] <= 1.03 * 20.7


def test_a_plan_is_the_same_every_time_and_bounded_by_counted_work(monkeypatch) -> None:
    works: list[CountedWork] = []

    def counted(budget: float) -> CountedWork:
        works.append(CountedWork(budget))
        return works[-1]

    monkeypatch.setattr(planning, "CountedWork", counted)
    for objective in ("balanced", "max"):
        one, other = (plan_marginals((3, 4, 2, 5, 3), "all pairs", objective) for _ in range(2))
        assert one == other
    assert len(works) == 6
    assert all(work.budget <= work.spent <= 1.1 * work.budget for work in works)


@given(
    st.dictionaries(
        st.sampled_from([s for k in range(4) for s in combinations(range(3), k)]), st.floats(1e-6, 1e6), min_size=1
    )
)
def test_shares_are_multiples_of_two_to_the_minus_thirty_and_sum_to_one_exactly(shares) -> None:
    try:
        plan = MarginalPlan.of((2, 3, 2), shares)
    except PlanError as refused:
        assert "below 2**-30" in str(refused)
        return
    assert sum(map(Fraction, plan.shares)) == 1
    assert sum(plan.shares) == sum(reversed(plan.shares)) == 1.0
    assert all((Fraction(share) * 2**30).denominator == 1 and share > 0 for share in plan.shares)
    assert MarginalPlan.of((2, 3, 2), dict(zip(plan.measured, plan.shares, strict=True))) == plan


def test_planned_shares_sum_to_one_exactly() -> None:
    for objective in ("total", "balanced", "max", "apart"):
        assert sum(map(Fraction, plan_marginals((3, 4, 5, 2), "all triples", objective).shares)) == 1


def test_weights_move_a_plan_to_what_they_weigh() -> None:
    even = plan_marginals((6, 7, 8), {(0, 1): 1.0, (1, 2): 1.0}, "total")
    uneven = plan_marginals((6, 7, 8), {(0, 1): 100.0, (1, 2): 1.0}, "total")
    assert uneven.algebra.variance((0, 1)) < even.algebra.variance((0, 1)) / 1.5
    assert uneven.algebra.variance((1, 2)) > even.algebra.variance((1, 2))
    # next to no weight: still determined
    assert plan_marginals((6, 7, 8), {(0, 1): 1.0, (1, 2): 1e-30}).algebra.variance((1, 2)) < 1e15


def test_views_asked_apart_have_the_best_shares() -> None:
    plan = plan_marginals((8, 7, 16, 5), "all pairs", "apart")
    apart = [(n, 2 / share**2) for n, share in zip(map(plan.attributes.cells, plan.measured), plan.shares, strict=True)]
    total = np.sqrt(sum(n * v for n, v in apart) / sum(n for n, _ in apart))
    assert plan.measured == plan.wanted and total == pytest.approx(8.2, abs=0.05)


def test_steps_of_shares_never_make_the_total_worse_and_the_slopes_are_right() -> None:
    rng = np.random.default_rng(0)
    attributes = Attributes((3, 4, 2, 5))
    wanted = tuple(combinations(range(4), 2))
    views = rows_of([(0, 1, 2), (1, 2, 3), (0, 3), *wanted], 4)
    for kind in (TotalError, LargestError):
        errors = kind(attributes, wanted, rng.uniform(1, 2, len(wanted)))
        held = errors.precision_shares(views)
        shares = rng.dirichlet(np.ones(len(views)))
        last = np.inf
        for _ in range(20):
            shares, error = errors.best_shares(held, shares, CountedWork(1e9), steps=1, tolerance=0.0)
            assert error <= last * (1 + 1e-12) and shares.sum() == pytest.approx(1)
            last = error
        precisions = (shares**2) @ held
        slopes = errors.slopes(precisions)
        if kind is TotalError:
            assert (slopes / precisions).sum() == pytest.approx(error)
        else:
            weighted = errors.weights * (errors.shares_of_variance @ (1 / precisions))
            assert weighted.max() <= error * (1 + 1e-12) <= weighted.max() * 1.1


def test_a_workload_that_is_too_large_is_refused_before_any_work(monkeypatch) -> None:
    monkeypatch.setattr(planning, "CountedWork", None)
    with pytest.raises(PlanError, match="too many subsets to plan for"):
        plan_marginals((3,) * 100, "all pairs")
    with pytest.raises(PlanError, match="too many subsets to plan for"):
        plan_marginals((2,) * 40, [tuple(range(30))])
    assert len(plan_marginals((3,) * 100, "all pairs", "apart").shares) == 4950


@pytest.mark.parametrize(
    "wrong", [{"objective": "least"}, {"most_cells": 0}, {"views": {(0, 1): -1.0}}, {"views": {(0, 1): float("nan")}}]
)
def test_parameters_are_checked(wrong) -> None:
    with pytest.raises(PlanError, match=r"objective|most cells|weight"):
        plan_marginals((2, 3), **wrong)


def test_no_measured_view_is_larger_than_said() -> None:
    plan = plan_marginals((2,) * 8, "all pairs", "total", most_cells=8)
    assert max(map(plan.attributes.cells, plan.measured)) == 8


def test_attributes_of_one_value_take_no_part() -> None:
    plan = plan_marginals((1, 3, 1, 4), "all pairs")
    assert plan.algebra.variance((0, 2)) == pytest.approx(plan.algebra.variance(()))
    assert plan.algebra.variance((0, 1)) == pytest.approx(plan.algebra.variance((1,)))
