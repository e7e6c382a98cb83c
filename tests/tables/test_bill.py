"""What a table costs: its epsilon once, shared out as it is told, whatever the number of groups."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.api.query import Query

ALL = {
    "n": wp.count(),
    "total": wp.sum("age", 0, 60),
    "mean": wp.mean("age", 0, 60),
    "ages": wp.count_distinct("age"),
    "typical": wp.median("age", range(100)),
    "day": wp.most_common("sex", ["f", "m"]),
}
PEOPLE = wp.source("people", city=str, sex=str, age=int)


@for_each("groups", [1, 2, 40])
@for_each("name", ALL)
def test_an_aggregate_costs_its_epsilon_once(groups: int, name: str) -> None:
    asked = PEOPLE.by("city", keys=[f"c{i}" for i in range(groups)]).agg(epsilon="1/3", **{name: ALL[name]})
    assert dict(wp.bill(asked)) == {"people": Fraction(1, 3)}


def test_all_together_cost_what_was_said() -> None:
    asked = PEOPLE.by("city", keys=["a", "b"], other="c").agg(epsilon="0.7", **ALL)
    assert dict(asked.bill()) == {"people": Fraction(7, 10)}
    assert set(asked.epsilons.values()) == {Fraction(7, 60)}


def test_a_split_is_in_proportion_and_exact() -> None:
    asked = PEOPLE.agg(n=wp.count(), m=wp.median("age", range(9)), epsilon=1, split={"n": 0.1, "m": 0.2})
    assert asked.epsilons == {"n": Fraction(1, 3), "m": Fraction(2, 3)}
    assert asked.epsilon == 1
    assert "0.333333333" in str(asked) or "1/3" in str(asked)


def test_a_person_is_billed_for_all_of_its_rows() -> None:
    visits = wp.source("visits", page=str, seconds=float, person="user", at_most=20)
    asked = visits.by("page", keys=["home"]).agg(n=wp.count(), t=wp.mean("seconds", 0, 60), epsilon="0.1")
    assert dict(asked.bill()) == {"visits": 2}


def test_a_join_is_billed_as_its_plan_is() -> None:
    orders = wp.source("orders", city=str, price=float)
    joined = PEOPLE.join(orders, on="city")
    asked = joined.by("city", keys=["a"]).agg(n=wp.count(), epsilon=1)
    assert dict(asked.bill()) == dict(joined.select("city").noisy_count(1, over=["a"]).sink.stability(joined.plan))


def test_two_tables_with_choices_pay_for_the_dearest_part() -> None:
    """What a bill lists is one group of each choice; what it prices is all of them."""
    first = PEOPLE.by("city", keys=["a", "b"]).agg(m=wp.median("age", range(9)), epsilon=1)
    second = PEOPLE.by("city", keys=["b", "c"]).agg(m=wp.median("age", range(8)), epsilon=2)
    assert dict(wp.bill([first, second])) == {"people": 3}
    assert dict(wp.bill({"one": first, "two": second})) == {"people": 3}
    assert len(str(wp.bill([first, second])).splitlines()) < 8


def test_the_ledger_is_debited_as_billed_and_replays() -> None:
    asked = PEOPLE.by("city", keys=["a", "b"]).agg(epsilon=1, **ALL)
    with wp.Session() as session:
        session.protect(PEOPLE, [("a", "f", 3), ("b", "m", 4)], budget=5)
        first = session.release(asked)
        assert session.remaining("people") == 5 - wp.bill(asked)["people"]
        again = session.release(asked)
        assert session.remaining("people") == 4
        assert first.to_columns() == again.to_columns()
        more = PEOPLE.by("city", keys=["b", "z"]).agg(epsilon=1, **ALL)  # other groups of what was paid for
        rest = session.release(more)
        assert session.remaining("people") == 4
        assert rest["b"]["n"] == first["b"]["n"]


def test_measurements_and_tables_are_one_batch() -> None:
    asked = PEOPLE.agg(n=wp.count(), epsilon=3)
    with wp.Session() as session:
        session.protect(PEOPLE, [("a", "f", 3)], budget=3)
        with pytest.raises(wp.BudgetExceeded):
            session.release([asked, PEOPLE.count(1)])
        assert session.remaining("people") == 3
        table, answers = session.release([asked, PEOPLE.count(3)])
        assert table.row()["n"].estimate == answers.value  # the same measurement, paid for once
        assert session.remaining("people") == 0


def test_a_scale_is_that_of_the_share(people: Query) -> None:
    asked = people.by("city", keys=["Oslo"]).agg(n=wp.count(), m=wp.mean("age", 0, 9), epsilon=1)
    table = wp.simulate(asked, {"people": []}, seed=1)
    for held in table.answers.values():
        assert held[0].scale == pytest.approx(2, rel=1e-6)


def test_a_batch_with_tables_is_scaled_to_a_budget() -> None:
    asked = PEOPLE.by("city", keys=["a", "b"]).agg(epsilon=1, split={name: i + 1 for i, name in enumerate(ALL)}, **ALL)
    table, count = wp.fit_to_budget([asked, PEOPLE.count(1)], {"people": "0.5"})
    assert isinstance(table, wp.Tabulation)
    cost = wp.bill([table, count])["people"]
    assert Fraction(1, 2) - Fraction(1, 10**9) < cost <= Fraction(1, 2)
    for first, names in table.together.items():
        assert all(m.epsilon == sum(table.epsilons[name] for name in names) for m in table.lowered[first])
    with pytest.raises(wp.PlanError, match="give a list"):
        wp.fit_to_budget(asked, {"people": 1})
    assert table.epsilons["day"] == pytest.approx(6 * table.epsilons["n"])


def test_how_exact_a_table_will_be_is_what_its_intervals_say() -> None:
    """A sum of values to 60 is 60 times as inexact as the weight that it is read off."""
    people = wp.source("people", city=str, sex=str, age=int, unit_weight=10**6)
    asked = people.agg(epsilon=1, **ALL)
    told = dict(zip(ALL, wp.accuracy(asked, 0.9, count=10**6), strict=True))
    row = wp.simulate(asked, {"people": {("a", "f", 30): 10**6}}, seed=1).row(confidence=0.9)
    for name in ("n", "total", "ages"):
        assert told[name].half_width == pytest.approx((row[name].high - row[name].low) / 2, rel=0.02)
    assert [row.kind.name for row in told.values()] == [asked.kind(name).name for name in ALL]
    (alone,) = wp.accuracy(people.noisy_average("1/2", "age", 0, 60), 0.9, count=10**6)
    assert told["mean"].half_width == alone.half_width >= (row["mean"].high - row["mean"].low) / 2


@pytest.mark.parametrize("aggregate", [wp.sum, wp.mean])
def test_a_range_that_nothing_can_be_read_with_is_refused_before_it_is_paid_for(aggregate: Any) -> None:
    with pytest.raises(wp.PlanError, match="clamped between floats of at most 1e\\+100"):
        PEOPLE.agg(n=aggregate("age", -1e150, 1e150), epsilon=1)
