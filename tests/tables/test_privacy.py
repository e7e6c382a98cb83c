"""A table shows the groups that were asked for and none that the data hold; noise is as large as it is said to be."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import wpinq as wp

PEOPLE = wp.source("people", city=str, age=int)
SECRET = "Xanadu"
DATA = [(SECRET, 77)] * 500 + [("Oslo", 30)] * 10


def test_no_group_of_the_data_shows() -> None:
    asked = PEOPLE.by("city", keys=["Oslo", "Rome"]).agg(n=wp.count(), m=wp.median("age", range(50)), epsilon=1)
    live = PEOPLE.by("city").agg(n=wp.count(), epsilon=1)
    with wp.Session() as session:
        session.protect(PEOPLE, DATA, budget=10)
        table, handle = session.release(asked), session.release(live)
        shown = [repr(table), str(table.to_json()), repr(handle), repr(table.tabulation), str(session.bill(asked))]
        assert not any(SECRET in text for text in shown)
        assert table.keys == ("Oslo", "Rome")
        with pytest.raises(wp.AnswersError, match="not among those released"):
            table.row(SECRET)


def test_what_is_asked_one_by_one_tells_of_no_group() -> None:
    with wp.Session() as session:
        session.protect(PEOPLE, DATA, budget=1)
        handle = session.release(PEOPLE.by("city").agg(n=wp.count(), m=wp.mean("age", 0, 99), epsilon=1))
        for act in (len, list, bool, lambda h: "Oslo" in h, lambda h: h == h, lambda h: reversed(h)):
            with pytest.raises(wp.SessionError, match="does not tell which groups"):
                act(handle)
        with pytest.raises(wp.SessionError):
            pickle.dumps(handle)
        assert handle.at(["Oslo", "Rome"]).keys == ("Oslo", "Rome")
        assert handle["Rome"] == handle["Rome"]  # drawn once
        assert session.remaining("people") == 0


def test_choices_answer_for_any_group_and_keep_their_answer() -> None:
    with wp.Session() as session:
        session.protect(PEOPLE, DATA, budget=1)
        handle = session.release(PEOPLE.by("city").agg(m=wp.median("age", range(9)), epsilon=1))
        assert handle.at(["Oslo", "Atlantis"])["Oslo"] == handle["Oslo"]
        assert session.remaining("people") == 0


def test_others_are_measured_like_any_group() -> None:
    """The row of all others is a group of the same measurement: it is noisy, and no difference of anything."""
    asked = PEOPLE.by("city", keys=["Oslo"], other="elsewhere").agg(n=wp.count(), epsilon=1)
    (measurement,) = asked.measurements
    assert measurement.domain == ("Oslo", "elsewhere")
    found = wp.evaluate(wp.Query(measurement.plan), {"people": DATA})
    assert dict(found) == {"Oslo": 10.0, "elsewhere": 500.0}


@pytest.mark.parametrize("keys", [["Oslo"], ["Oslo", "Rome", "Hamar"]])
def test_a_record_moves_its_own_group_alone(keys: list[str]) -> None:
    """One record more moves the weights of all parts of all groups by 1 at most, in sum, for each measurement."""
    asked = PEOPLE.by("city", keys=keys, other="elsewhere").agg(
        n=wp.count(), m=wp.mean("age", 0, 50), s=wp.sum("age", -10, 50), d=wp.count_distinct("age"), epsilon=1
    )
    for measurement in asked.measurements:
        before = wp.evaluate(wp.Query(measurement.plan), {"people": DATA}, exact=True)
        for record in [("Oslo", 0), ("Oslo", 50), (SECRET, 999), ("Rome", 25)]:
            after = wp.evaluate(wp.Query(measurement.plan), {"people": [*DATA, record]}, exact=True)
            assert after.distance(before) <= 1


def test_intervals_hold_as_often_as_they_say() -> None:
    """4,000 groups at once: exactly so, all three from one measurement. False alarms below 1e-6."""
    groups, size = 4000, 30
    data = {(f"g{i}", 20 + (i + j) % 11): 1.0 for i in range(groups) for j in range(size // 3)}
    truth = np.array([np.mean([20 + (i + j) % 11 for j in range(size // 3)]) for i in range(groups)])
    asked = PEOPLE.by("city", keys=[f"g{i}" for i in range(groups)]).agg(
        n=wp.count(), s=wp.sum("age", 0, 40), m=wp.mean("age", 0, 40), epsilon=3
    )
    with wp.Session() as session:
        session.protect(PEOPLE, data, budget=3)
        held = session.release(asked).to_columns(confidence=0.9)
    spread = 5 * math.sqrt(0.9 * 0.1 / groups)  # five standard deviations: 6e-7, both sides

    def covered(name: str, true: object) -> float:
        low, high = np.array(held[f"{name}_low"]), np.array(held[f"{name}_high"])
        return float(np.mean((low <= true) & (true <= high)))

    assert abs(covered("n", size // 3) - 0.9) < spread
    assert abs(covered("s", truth * (size // 3)) - 0.9) < spread
    assert abs(covered("m", truth) - 0.9) < spread
    errors = np.array(held["n"]) - size // 3
    assert abs(np.mean(np.abs(errors)) - 0.5) < 2.5 / math.sqrt(groups)  # of two draws of scale 1/3
