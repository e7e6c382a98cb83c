"""Models of released marginals and the rows drawn from them: types, weights, what they keep of the marginals."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wpinq as wp
from tests.support.parameters import tenth
from wpinq.api.query import Query
from wpinq.marginals.report import marginal_report, plot_marginals, rows_page


@pytest.fixture(scope="module")
def released() -> wp.MarginalTables:
    people = wp.source(
        "people",
        city=str | None,
        sex=wp.category("f", "m"),
        age=int | None,
        smokes=bool,
        height=float,
        joined=datetime.date,
    )
    generator = np.random.default_rng(4)
    rows = [
        (
            ["Oslo", "Bergen", "Xanadu", None][generator.integers(4)],
            "fm"[generator.integers(2)],
            None if generator.random() < 0.1 else int(generator.integers(0, 90)),
            bool(generator.random() < 0.2),
            float(generator.normal(1.7, 0.1)),
            datetime.date(2020, 1, 1) + datetime.timedelta(int(generator.integers(0, 900))),
        )
        for _ in range(4000)
    ]
    asked = people.marginals(
        [
            wp.attribute("city", categories=["Oslo", "Bergen"], other="elsewhere"),
            "sex",
            wp.attribute("age", bins=[0, 18, 65, 90]),
            "smokes",
            wp.attribute("height", bins=[1.0, 1.6, 1.8, 2.2], other=False),
            wp.attribute(
                "joined", bins=[datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2022, 12, 31)]
            ),
        ],
        epsilon=4,
    )
    return wp.simulate(asked, {"people": rows}, seed=1)


@pytest.fixture(scope="module")
def fitted(released: wp.MarginalTables) -> wp.FittedTable:
    return released.fit(seed=3)


def test_a_model_has_no_count_below_zero_and_agrees_with_itself(
    released: wp.MarginalTables, fitted: wp.FittedTable
) -> None:
    assert fitted.counts("city", "age").min() >= 0
    assert fitted.counts("city", "age").sum(axis=1) == pytest.approx(fitted.counts("city"), rel=1e-6)
    assert fitted.counts("age", "city") == pytest.approx(fitted.counts("city", "age").T)
    assert fitted.total == pytest.approx(fitted.counts().item())
    assert fitted.total == pytest.approx(released.counts().item(), rel=1e-6)
    for names in (("city", "age"), ("sex", "smokes")):
        off = np.sqrt(np.mean((fitted.counts(*names) - released.counts(*names)) ** 2))
        assert off < released.half_width(*names)
    assert fitted.counts("city", "sex", "age").shape == (4, 2, 5), "also of more than were measured together"
    assert "SIMULATED" in repr(fitted)
    for names, words in ((("cty",), "did you mean"), (("sex", "sex"), "an attribute twice")):
        with pytest.raises(wp.AnswersError, match=words):
            fitted.counts(*names)


def test_rows_have_the_declared_types(fitted: wp.FittedTable) -> None:
    rows = fitted.rows(seed=5)
    assert len(rows) == round(fitted.total)
    frame = rows.to_pandas()
    kinds = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert kinds == {
        "city": "object",
        "sex": "category",
        "age": "Int64",
        "smokes": "bool",
        "height": "float64",
        "joined": "object",
    }
    assert set(frame.city.dropna()) == {"Oslo", "Bergen", "elsewhere"}
    assert set(frame.sex) == {"f", "m"}
    assert frame.age.dropna().between(0, 90).all()
    assert frame.age.nunique() > 60, "drawn inside of the bins"
    assert frame.height.between(1.0, 2.2).all()
    held = [day for day in frame.joined if day is not None]
    assert all(type(day) is datetime.date for day in held)
    assert min(held) >= datetime.date(2020, 1, 1)
    assert rows.to_polars().schema["age"].is_integer()
    assert rows.to_arrow().schema.field("joined").type == "date32[day]"
    assert rows.simulated


def test_rows_keep_to_the_model(fitted: wp.FittedTable) -> None:
    rows, weighted = fitted.rows(seed=5), fitted.weighted_rows(5, seed=5)
    assert weighted.weights is not None
    assert weighted.weights.sum() == pytest.approx(fitted.total)
    assert len(weighted) == pytest.approx(5 * len(rows), abs=5)
    assert list(weighted.to_columns())[-1] == "weight"
    for names in (("city",), ("city", "age"), ("sex", "smokes", "height")):
        wanted = fitted.counts(*names)
        assert np.abs(rows.counts(*names) - wanted).max() < 60
        assert np.abs(weighted.counts(*names) - wanted).max() < 30
    frame = rows.to_pandas()
    by_hand = frame.groupby(frame.city.fillna("missing")).size()
    assert by_hand[["Oslo", "Bergen", "missing", "elsewhere"]].tolist() == rows.counts("city").tolist()
    assert rows.counts().item() == len(rows)


def test_the_same_seed_gives_the_same_rows(fitted: wp.FittedTable) -> None:
    first = fitted.rows(300, seed=1)
    assert len(first) == 300
    assert list(first) == list(fitted.rows(300, seed=1))
    assert list(first) != list(fitted.rows(300, seed=2))
    assert "300 rows of 6 attributes" in repr(first)
    for count in (0, -1, 2.5):
        with pytest.raises(wp.WpinqError):
            fitted.rows(count)
    with pytest.raises(wp.WpinqError):
        fitted.weighted_rows(0)


def test_a_column_that_is_called_weight_keeps_its_name() -> None:
    people = wp.source("people", weight=wp.category("a", "b"))
    asked = people.marginals(["weight"], order=1, epsilon=10)
    rows = wp.simulate(asked, {"people": [("a",)] * 30}, seed=1).fit().weighted_rows(2)
    assert list(rows.to_columns()) == list(rows.to_pandas().columns) == ["weight", "row_weight"]
    assert rows.to_arrow().column_names == ["weight", "row_weight"]


@pytest.mark.long
def test_intervals_of_a_model_say_what_they_rest_on(fitted: wp.FittedTable) -> None:
    found = fitted.with_intervals("sex", "smokes", draws=20)
    assert list(found) == ["sex", "smokes", "modelled", "low", "high", "method"]
    assert all(
        low <= value <= high for low, value, high in zip(found["low"], found["modelled"], found["high"], strict=True)
    )
    assert len(set(found["method"])) == 1


@pytest.mark.parametrize("name", tenth(["modelled", "low", "high", "method", "marginal_modelled"]))
def test_a_column_that_is_called_as_one_of_ours_keeps_its_name(name: str) -> None:
    people = wp.source("people", modelled=wp.category("a", "b"), x=wp.category("a", "b"))
    attributes = [
        wp.attribute("modelled", name="modelled" if name != "modelled" else "x"),
        wp.attribute("x", name=name),
    ]
    fitted = wp.simulate(people.marginals(attributes, epsilon=10), {"people": [("a", "b")] * 30}, seed=1).fit()
    names = fitted.names
    for found, own in ((fitted.to_columns(*names), 1), (fitted.with_intervals(*names, draws=20), 4)):
        assert len(found) == 2 + own
        assert found[name] == ["a", "b", "a", "b"]


def test_a_marginal_that_is_none_is_refused_alike(released: wp.MarginalTables, fitted: wp.FittedTable) -> None:
    rows = fitted.rows(20, seed=1)
    for counts in (released.counts, fitted.counts, rows.counts):
        with pytest.raises(wp.AnswersError, match="did you mean `sex`"):
            counts("sx")
        with pytest.raises(wp.AnswersError, match="named by its attributes"):
            counts(0)
        with pytest.raises(wp.AnswersError, match="an attribute twice"):
            counts("sex", "sex")
    with pytest.raises(wp.AnswersError, match="a confidence must be a number"):
        released.half_width("sex", confidence="high")


def test_more_rows_than_fit_are_refused(fitted: wp.FittedTable) -> None:
    for draw in (fitted.rows, fitted.weighted_rows):
        with pytest.raises(wp.AnswersError, match="rows of 6 attributes"):
            draw(10**12)


@pytest.mark.parametrize("model", ["mixture", "full table"])
def test_every_model_fits_what_it_can(model: str) -> None:
    people = wp.source("people", a=wp.category("x", "y"), b=bool, c=wp.category("p", "q", "r"))
    views = [("a", "b"), ("b", "c")]
    asked = people.marginals(["a", "b", "c"], workload=views, measure=dict.fromkeys(views, 1), epsilon=5)
    data = [("xy"[i % 2], i % 3 == 0, "pqr"[i % 3]) for i in range(600)]
    fitted = wp.simulate(asked, {"people": data}, seed=1).fit(model)
    assert fitted.counts("b", "c") == pytest.approx(np.array([[0, 200, 200], [200, 0, 0]]), abs=12)


def test_the_report_tells_every_error_bar(released: wp.MarginalTables, fitted: wp.FittedTable) -> None:
    rows = fitted.rows(seed=5)
    report = marginal_report(released, fitted, rows)
    assert len(report["marginals"]) == len(released.measuring.wanted) == 15
    assert len(report["measured"]) == len(released.measuring.measured)
    for each in report["marginals"]:
        assert each["half_width"] == pytest.approx(released.half_width(*each["attributes"]))
        counts = released.counts(*each["attributes"])
        assert each["rows_distance"] == pytest.approx(
            np.sqrt(np.mean((rows.counts(*each["attributes"]) - counts) ** 2))
        )
        assert 1.5 < each["half_width"] / each["noise"] < 2.5, "an interval of 95 % is about two standard deviations"
    assert report["total"]["low"] < released.counts().item() < report["total"]["high"]
    assert report["bill"] == {"people": "4"}
    assert report["simulated"] is True
    assert report["rows"]["count"] == len(rows)
    page = rows_page(released, fitted, rows, report)
    assert page.startswith("<!DOCTYPE html>")
    assert "SIMULATED" in page
    assert "data:image/png;base64," in page
    assert 'src="http' not in page
    assert "href=" not in page, "it refers to no other file"
    for each in report["marginals"]:
        assert each["marginal"] in page


def test_the_grid_has_a_heat_map_for_every_pair(released: wp.MarginalTables, fitted: wp.FittedTable) -> None:
    alone = plot_marginals(released, attributes=["city", "sex", "age"])
    titles = [axes.get_title() for axes in alone.axes]
    assert [title.partition(",")[0] for title in titles if title] == [
        *("city", "sex x city", "sex", "age x city", "age x sex", "age")
    ]
    both = plot_marginals(released, fitted, ["sex", "age"])
    drawn = [axes.get_title() for axes in both.axes]
    assert drawn[1] == "sex x age, model"
    assert drawn[2].startswith("age x sex, ±")
    below, above = both.axes[2].images[0], both.axes[1].images[0]
    assert np.asarray(below.get_array()) == pytest.approx(released.counts("age", "sex"))
    assert np.asarray(above.get_array()) == pytest.approx(fitted.counts("sex", "age"))
    assert below.get_clim() == above.get_clim(), "both sides of the diagonal compare"
    assert any("SIMULATED" in text.get_text() for text in both.texts)
    for given, words in ((["cty"], "did you mean"), ([], "no attributes to draw")):
        with pytest.raises(wp.AnswersError, match=words):
            plot_marginals(released, attributes=given)


def test_rows_read_back_as_they_were_written(fitted: wp.FittedTable, tmp_path: Any) -> None:
    from wpinq.cli.output import write_answers

    rows = fitted.rows(200, seed=5)
    write_answers(rows, tmp_path / "rows.csv")
    write_answers(rows, tmp_path / "rows.parquet")
    text = pd.read_csv(tmp_path / "rows.csv")
    held = pd.read_parquet(tmp_path / "rows.parquet")
    assert list(text.columns) == list(held.columns) == list(rows.columns)
    assert text.height.tolist() == held.height.tolist() == rows.columns["height"]
    assert [None if pd.isna(age) else int(age) for age in text.age] == rows.columns["age"]
    assert held.joined.tolist() == rows.columns["joined"]


def test_rows_can_be_protected_as_the_table_was(fitted: wp.FittedTable) -> None:
    """The columns have the declared types, so a query of the table runs over its synthetic rows."""
    like: Query = wp.source("like", city=str | None, sex=wp.category("f", "m"), age=int | None)
    rows = [row[:3] for row in fitted.rows(300, seed=5)]
    asked = like.by("sex").agg(n=wp.count(), epsilon=100)
    assert sum(row["n"].estimate for row in map(wp.simulate(asked, {"like": rows}, seed=1).row, ["f", "m"])) == (
        pytest.approx(300, abs=1)
    )
