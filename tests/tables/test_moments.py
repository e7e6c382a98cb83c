"""Variances, covariances, correlations and slopes: sensitivity, truth, coverage, and where there is none."""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each, sizes
from wpinq.api.query import Query
from wpinq.tables.aggregates import Aggregate

PEOPLE = wp.source("people", city=str, x=float, y=float, maybe=float | None)
X, Y = ("x", 0, 10), ("y", -5, 5)
ALL: dict[str, Aggregate] = {
    "var": wp.stats.var(*X),
    "std": wp.stats.std(*X),
    "cov": wp.stats.cov(*X, *Y),
    "corr": wp.stats.corr(*X, *Y),
    "ols": wp.stats.ols(*Y, *X),
}
RANGES = [(0.0, 1.0), (-1e100, 1e100), (0.0, 5e-324), (1.0, 1.0 + 2**-52), (-3.0, 7.0)]


def truth(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> dict[str, float]:
    x, y = np.clip(x, 0, 10), np.clip(y, -5, 5)
    var, cov = float(x.var()), float(np.mean(x * y) - x.mean() * y.mean())
    found = {"var": var, "std": math.sqrt(var), "cov": cov, "corr": cov / math.sqrt(var * y.var()), "ols": cov / var}
    return found | {"ols_intercept": y.mean() - cov / var * x.mean()}


def rows(number: int) -> list[tuple[str, float, float, float | None]]:
    random = Random(1)
    found = [("Oslo", random.gauss(5, 3), random.gauss(0, 2), None) for _ in range(number)]
    return [(city, x, y + 0.6 * (x - 5), maybe) for city, x, y, maybe in found]


@for_each("engine", ["reference", "duckdb"])
def test_statistics_are_those_of_the_clamped_values(engine: str) -> None:
    held = rows(300)
    asked = PEOPLE.by("city", keys=["Oslo"]).agg(epsilon=10**9, **ALL)
    (row,) = [wp.simulate(asked, {"people": held}, seed=1, engine=engine)["Oslo"]]
    expected = truth(np.array([x for _, x, _, _ in held]), np.array([y for _, _, y, _ in held]))
    for name, cell in row.items():
        assert cell.estimate == pytest.approx(expected[name], rel=1e-5)
        assert cell.low <= cell.estimate <= cell.high
        assert cell.high - cell.low < 1e-3
    assert asked.epsilon == 10**9
    assert asked.bill()["people"] == Fraction(4, 5) * 10**9  # the variance and its root are one measurement


@for_each("engine", ["reference", "duckdb"])
def test_one_unit_moves_all_parts_together_by_at_most_1(engine: str) -> None:
    """Values at the bounds, next to them, beyond them; huge ranges, and ranges of one float."""
    random = Random(5)
    for low, high in RANGES:
        near = [low, high, math.nextafter(low, high), math.nextafter(high, low), low / 2 + high / 2, 1e308, -1e308]
        held = [(str(i), random.choice(near), random.choice(near), None) for i in range(40)]
        aggregates = {
            "var": wp.stats.var("x", low, high),
            "cov": wp.stats.cov("x", low, high, "y", low, high),
            "corr": wp.stats.corr("x", low, high, "y", low, high),
            "ols": wp.stats.ols("x", low, high, "y", low, high),
        }
        for measurement in PEOPLE.by("city").agg(epsilon=1, **aggregates).measurements:
            weights = wp.evaluate(Query(measurement.plan), {"people": held}, engine)
            of_one: dict[Any, float] = {}
            for (city, _), weight in weights.items():
                assert weight >= 0
                of_one[city] = of_one.get(city, 0.0) + weight
            assert max(of_one.values()) <= 1 + 1e-15


def test_nulls_are_left_out() -> None:
    held = [("Oslo", 1.0, 2.0, v) for v in (None, 1.0, None, 3.0)] * 9
    asked = PEOPLE.agg(v=wp.stats.var("maybe", 0, 4), c=wp.stats.cov("maybe", 0, 4, *X), epsilon=10**9)
    row = wp.simulate(asked, {"people": held}, seed=1).row()
    assert row["v"].estimate == pytest.approx(1, abs=1e-6)
    assert row["c"].estimate == pytest.approx(0, abs=1e-6)


def test_without_a_positive_variance_there_is_no_estimate(tmp_path: Path) -> None:
    """Also in frames, pages, plots and files."""
    asked = PEOPLE.by("city", keys=["Oslo", "Rome"]).agg(epsilon=50, **ALL)
    table = wp.simulate(asked, {"people": rows(3000)}, seed=3)
    for name in ("ols", "ols_intercept"):
        cell = table["Rome"][name]
        assert cell.low is None and cell.high is None
    assert table["Oslo"]["ols"].low < 1 < table["Oslo"]["corr"].high + 1
    assert table.to_arrow()["ols_low"].to_pylist()[1] is None
    assert "Oslo" in table._repr_html_()
    table.plot("ols")
    table.save(tmp_path / "t.json")
    assert wp.Table.load(tmp_path / "t.json").to_columns() == table.to_columns()
    assert wp.accuracy(asked)[0].missing.startswith("depends on the data")


def test_they_are_written_in_text() -> None:
    asked = PEOPLE.by("city", keys=["Oslo"]).agg(epsilon=1, **ALL)
    assert wp.parse(wp.unparse({"t": asked})).tables["t"] == asked


@for_each("name", ALL)
def test_ranges_are_checked(name: str) -> None:
    for wrong in ((1, 1), (0, 2e100), (2, 1)):
        with pytest.raises(wp.PlanError):
            getattr(wp.stats, name)("x", *wrong, *(() if name in ("var", "std") else Y))


@pytest.mark.parametrize("draws", sizes(300, 2000))
@for_each("name", [*ALL, "intercept", "far intercept"])
def test_intervals_cover(name: str, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 draws over five kinds of data and three sizes: at least .95 less three standard errors.

    300 of them in the default suite, for the line, with as many errors more.
    """
    if draws < 2000 and name not in ("ols", "intercept"):
        return
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    moments = importlib.import_module("moments")
    for kind in moments.KINDS:
        for size in (30, 300, 10_000):
            found = moments.measured(name, kind, size, 1.0, draws)
            assert found is None or found.coverage >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / draws) - 1e-9, (kind, size)
            assert found is None or kind != "binary" or found.width <= 1.5 * found.linear, size


def test_a_slope_of_ranges_too_unlike_is_refused() -> None:
    """Equal ranges of one float are not: a slope of the shares is one of the values."""
    with pytest.raises(wp.PlanError, match="1e300"):
        wp.stats.ols("x", 0, 40, "y", 0, 5e-324)
    assert wp.stats.ols("x", 0, 5e-324, "y", 0, 5e-324).unit == 1


def test_a_confidence_beyond_the_draws_has_the_widest_interval() -> None:
    asked = PEOPLE.by("city", keys=["Oslo"]).agg(epsilon=10, var=wp.stats.var(*X), ols=wp.stats.ols(*Y, *X))
    table = wp.simulate(asked, {"people": rows(300)}, seed=1)
    cells = table.row("Oslo", confidence=0.9999)
    assert (cells["var"].low, cells["var"].high, cells["ols"].low) == (0, 25, None)
    assert table.row("Oslo", confidence=0.999)["ols"].low is not None
    for wrong in (0, 1, 2, -1, math.nan, math.inf, "0.95", None):
        with pytest.raises(wp.AnswersError, match="confidence"):
            table.row("Oslo", confidence=wrong)  # type: ignore[arg-type]
    with pytest.raises(wp.AnswersError, match="no interval to draw"):
        table.plot("ols", confidence=0.9999)
