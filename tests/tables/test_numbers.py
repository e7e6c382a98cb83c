"""Estimates and tables where Python and data frames take numbers."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.tables.aggregates import Estimate

E = Estimate(10.0, 8.0, 12.5)
LISTED = Estimate(10.0, float("-inf"), 12.0)
CHOICE, NUMBER = Estimate("Oslo"), Estimate(36)

NUMBERS: dict[str, tuple[Any, Any]] = {
    "float": (float(E), 10.0),
    "round": (round(Estimate(10.26), 1), 10.3),
    "whole": (round(E), 10),
    "format": (f"{E:.1f}", "10.0"),
    "text": (f"{E}", "10 (8 to 12.5)"),
    "times": (E * 2, Estimate(20.0, 16.0, 25.0)),
    "of times": (2 * E, E * 2),
    "over": (E / 2, Estimate(5.0, 4.0, 6.25)),
    "plus": (E + 1, Estimate(11.0, 9.0, 13.5)),
    "of plus": (1 + E, E + 1),
    "minus": (E - 1, Estimate(9.0, 7.0, 11.5)),
    "from": (1 - E, Estimate(-9.0, -11.5, -7.0)),
    "negative": (-E, Estimate(-10.0, -12.5, -8.0)),
    "numpy": (np.float64(2) * E, E * 2),
    "numpy whole": (np.int64(2) * E, E * 2),
    "no low end": (LISTED * -2, Estimate(-20.0, -24.0, float("inf"))),
    "no low end, of nothing": (LISTED * 0, Estimate(0.0, 0.0, 0.0)),
    "more": (E > 9, True),
    "less": (E < 11, True),
    "most": ((E <= 10, E >= 11), (True, False)),
    "order": (max(E, E + 1), E + 1),
    "choice": (NUMBER * 2, Estimate(72)),
    "array": (np.array([E, E + 1], float).tolist(), [10.0, 11.0]),
}


@for_each("name", NUMBERS)
def test_an_estimate_is_a_number_with_its_interval(name: str) -> None:
    found, wanted = NUMBERS[name]
    assert found == wanted


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "sum": (lambda: E + E, "float(a) and float(b) for the number alone"),
    "product": (lambda: E * E, "float(a) and float(b) for the number alone"),
    "difference": (lambda: E - NUMBER, "float(a) and float(b) for the number alone"),
    "ratio": (lambda: E / E, "float(a) and float(b) for the number alone"),
    "constant over": (lambda: 1 / E, "float(estimate) for the number alone"),
    "text": (lambda: float(CHOICE), 'the choice "Oslo" is no number'),
    "text times": (lambda: CHOICE * 2, 'the choice "Oslo" is no number'),
}


@for_each("name", REFUSED)
def test_arithmetic_without_an_interval_is_refused(name: str) -> None:
    act, said = REFUSED[name]
    with pytest.raises(wp.AnswersError) as refused:
        act()
    assert said in str(refused.value)
    for strange in (lambda: E * "a", lambda: E < "a", lambda: E + None):
        with pytest.raises(TypeError):
            strange()


def _table(**aggregates: Any) -> wp.Table:
    rows = [("Oslo", 30)] * 90 + [("n", 40)] * 50
    wanted = PEOPLE.by("city", keys=["Oslo", "n", "$x$"]).agg(**aggregates, epsilon=9)
    return wp.simulate(wanted, {"people": rows}, seed=1)


PEOPLE = wp.source("people", city=str, age=int, facts=["whole_weights"])


def test_a_table_gives_rows_by_group_and_columns_by_aggregate() -> None:
    table = _table(n=wp.count(), rows=wp.count())
    assert table["rows"] == {group: table.row(group)["rows"] for group in ("Oslo", "n", "$x$")}
    assert set(table["n"]) == {"n", "rows"}  # of two meanings it is the group
    assert table["Oslo"]["rows"] == table["rows"]["Oslo"]
    whole = wp.simulate(PEOPLE.agg(rows=wp.count(), epsilon=1), {"people": []}, seed=1)
    assert whole["rows"] == whole.row()["rows"]
    assert {"rows", "Oslo"} <= set(table._ipython_key_completions_())
    with pytest.raises(wp.AnswersError, match="not among those released"):
        table["Bergen"]


def test_frames_take_a_table_or_say_how() -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    table = _table(n=wp.count(), m=wp.most_common("age", range(99)))
    (answers,) = table.answers["n"]
    for each in (table, answers):
        assert polars.DataFrame(each).equals(each.to_polars())
        for take in (pandas.DataFrame, pandas.Series, np.asarray):
            with pytest.raises(wp.AnswersError, match=r"to_pandas\(\)"):
                take(each)
    assert list(table.to_pandas().columns) == ["city", "n", "n_low", "n_high", "m"]  # no empty columns


def test_a_table_draws_an_aggregate_with_its_intervals() -> None:
    pytest.importorskip("matplotlib")
    axes = _table(m=wp.most_common("age", range(99)), n=wp.count(), a=wp.mean("age", 0, 99)).plot()
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("n: count, 95 % interval", "city")
    assert any("SIMULATED" in text.get_text() for text in axes.texts)
    assert _table(a=wp.mean("age", 0, 99)).plot("a", axes=axes) is axes
    whole = wp.simulate(PEOPLE.agg(rows=wp.count(), epsilon=1), {"people": []}, seed=1)
    assert whole.plot().get_ylabel() == "rows: count, 95 % interval"
    for column in ("m", "b", None):
        with pytest.raises(wp.AnswersError, match="plot draws an aggregate with intervals: this table has none"):
            _table(m=wp.most_common("age", range(99))).plot(column)
    assert _table(m=wp.median("age", range(99))).plot().get_ylabel() == "m: median, 95 % interval"


def test_a_choice_that_is_no_number_is_refused_with_its_interval() -> None:
    day = Estimate(datetime.date(2026, 1, 2), datetime.date(2026, 1, 1), datetime.date(2026, 1, 3))
    with pytest.raises(wp.AnswersError, match="is no number"):
        day * 2


def test_keys_by_column_are_no_groups_of_an_open_table() -> None:
    with wp.Session() as session:
        session.protect(PEOPLE, [("Oslo", 30)], budget=1)
        table = session.release(PEOPLE.by("city").agg(n=wp.count(), epsilon=1))
        with pytest.raises(wp.PlanError, match="a list of public groups"):
            table.at({"city": ["Oslo"]})
        assert "more groups" not in table.at(["Oslo", "Rome"]).to_text(rows=-1)
