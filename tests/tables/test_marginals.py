"""Marginals by name: one measurement, one bill, exact intervals; what the data hold beyond the cells does not show."""

from __future__ import annotations

import datetime
import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.marginals.tabulation import MarginalTabulation, refuse_infeasible_marginals

CITIES = ["Oslo", "Bergen"]
AGE = wp.attribute("age", bins=[0, 18, 30, 80])
CITY = wp.attribute("city", categories=CITIES, other="elsewhere")


def wanted(people: Query, epsilon: object = 1, **options: Any) -> MarginalTabulation:
    return people.marginals([CITY, "sex", AGE], epsilon=epsilon, **options)


def cell(city: str | None, sex: str, age: int | None) -> tuple[int, int, int]:
    """The cells of a row, said again."""
    place = CITIES.index(city) if city in CITIES else 2 if city is None else 3
    years = 3 if age is None else 0 if 0 <= age < 18 else 1 if 18 <= age < 30 else 2 if 30 <= age <= 80 else 4
    return place, "fm".index(sex), years


def test_it_is_one_measurement_at_one_epsilon(people: Query) -> None:
    asked = wanted(people, "1/3")
    (measurement,) = asked.measurements
    assert dict(asked.bill()) == {"people": Fraction(1, 3)}
    assert str(asked.bill()).count("NoisyCount(") == 1
    names = [type(node.operator).__name__ for node in walk(measurement.plan)]
    assert names == ["SelectMany", "Select", "Source"]
    assert people.marginals(["sex"], order=1, epsilon=1).kind.name == "count"


def walk(node: Any) -> Any:
    while True:
        yield node
        if not node.inputs:
            return
        (node,) = node.inputs


def test_a_person_with_many_rows_is_billed_for_all() -> None:
    visits = wp.source("visits", page=wp.category("a", "b"), person="user", at_most=20)
    assert dict(visits.marginals(["page"], order=1, epsilon="0.1").bill()) == {"visits": 2}


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_without_noise_they_are_the_true_marginals(people: Query, rows: list[Any], engine: str) -> None:
    asked = wanted(people, 10**6)
    released = wp.simulate(asked, {"people": rows}, seed=1, engine=engine)
    truth = np.zeros((4, 2, 5))
    for row in rows:
        truth[cell(row[0], row[1], row[2])] += 1
    for order in (0, 1, 2):
        for view in [v for v in product(range(3), repeat=order) if list(v) == sorted(set(v))]:
            names = [asked.attributes[i].name for i in view]
            away = tuple(i for i in range(3) if i not in view)
            assert released.counts(*names) == pytest.approx(truth.sum(axis=away), abs=0.01)
    assert released.counts("age", "city") == pytest.approx(released.counts("city", "age").T)


def test_marginals_agree_on_what_they_share(people: Query, rows: list[Any]) -> None:
    released = wp.simulate(wanted(people), {"people": rows}, seed=2)
    ages = released.counts("age")
    assert released.counts("city", "age").sum(axis=0) == pytest.approx(ages)
    assert released.counts("age", "sex").sum(axis=1) == pytest.approx(ages)
    assert released.counts().item() == pytest.approx(ages.sum())


@pytest.mark.long
def test_intervals_hold_as_often_as_they_say(people: Query, rows: list[Any]) -> None:
    """2,000 draws of the noise, one cell each of three marginals: 95 % hold, to within 6 standard deviations."""
    asked = wanted(people)
    (measurement,) = asked.measurements
    weights = wp.evaluate(wp.Query(measurement.plan), {"people": rows})
    exact = np.array([float(weights[key]) for key in measurement.domain or ()])
    generator, draws = np.random.default_rng(8), 2000
    views: list[tuple[str, ...]] = [("city",), ("city", "age"), ("sex", "age")]

    def read(noise: float) -> wp.MarginalTables:
        values = exact + noise * generator.laplace(size=len(exact))
        return asked.read([wp.Answers(measurement, 1.0, values, True)])

    truth = read(0.0)
    halves = [truth.half_width(*names) for names in views]
    held = np.zeros(3)
    for _ in range(draws):
        found = read(1.0)
        for i, names in enumerate(views):
            held[i] += abs(found.counts(*names).flat[0] - truth.counts(*names).flat[0]) <= halves[i]
    assert (abs(held - 0.95 * draws) <= 6 * math.sqrt(0.95 * 0.05 * draws)).all()


def test_frames_have_a_row_a_cell(people: Query, rows: list[Any]) -> None:
    released = wp.simulate(wanted(people), {"people": rows}, seed=2)
    frame = released.to_pandas("age", "city")
    assert list(frame.columns) == ["age", "city", "estimate", "low", "high", "kind"]
    assert list(frame.age[:4]) == ["[0, 18)"] * 4
    assert list(frame.city[:4]) == ["Oslo", "Bergen", "missing", "elsewhere"]
    assert frame.estimate.to_numpy().reshape(5, 4) == pytest.approx(released.counts("age", "city"))
    assert ((frame.high - frame.low) / 2).to_numpy() == pytest.approx(released.half_width("age", "city"))
    assert set(frame.kind) == {"count"}
    assert released.to_polars("age", "city").to_dicts() == frame.to_dict("records")
    whole = released.to_pandas()
    assert len(whole) == 4 * 2 + 4 * 5 + 2 * 5
    assert list(whole.columns) == ["city", "sex", "age", "estimate", "low", "high", "kind"]
    narrow = released.to_columns("sex", confidence=0.5)
    assert narrow["high"][0] - narrow["low"][0] < 2 * released.half_width("sex")
    assert "SIMULATED" in repr(released)
    assert "city x sex: 8 cells, each ±" in repr(released)
    assert "SIMULATED" in released._repr_html_()


def test_an_attribute_may_be_called_as_a_column_of_ours(people: Query, rows: list[Any]) -> None:
    asked = people.marginals(
        [wp.attribute("sex", name="estimate"), wp.attribute("age", bins=[0, 9], name="low")], epsilon=1
    )
    released = wp.simulate(asked, {"people": rows}, seed=2)
    assert list(released.to_columns("estimate", "low")) == [
        *("estimate", "low", "marginal_estimate", "marginal_low", "high", "kind")
    ]


@pytest.mark.parametrize("other", [True, False])
def test_values_outside_change_nothing_but_counts(people: Query, rows: list[Any], other: bool) -> None:
    """Data that are all inside, all outside, all null, and none at all: the same cells, the same shapes, no error."""
    asked = people.marginals(
        [
            wp.attribute("city", categories=CITIES, other=other),
            wp.attribute("age", bins=[0, 18, 30], other=other),
            wp.attribute("salary", bins=[0, 10, 20], other=other),
        ],
        epsilon=1,
    )
    inside = [("Oslo", *row[1:2], 20, 5, row[4]) for row in rows]
    outside = [("Xanadu", *row[1:2], -(10**6), 10**9, row[4]) for row in rows]
    empty = [(None, *row[1:2], None, 0, row[4]) for row in rows]
    shapes, keys = set(), set()
    for data in (inside, outside, empty, [], inside + outside + empty):
        with wp.Session() as session:
            session.protect(people, data, budget=1)
            released = session.release(asked)
            assert session.remaining("people") == 0
        keys.add(released.answers.keys)
        plain = json.loads(json.dumps(released.to_json()))
        numbers = plain["answers"].pop("values")
        shapes.add((json.dumps(plain), len(numbers)))
        for text in (str(plain), repr(released), str(released.to_columns())):
            assert "Xanadu" not in text
    assert len(shapes) == len(keys) == 1


def test_records_outside_count_in_the_other_cell_or_nowhere(people: Query, rows: list[Any]) -> None:
    for other, expected in ((True, 10.0), (False, 0.0)):
        asked = people.marginals([wp.attribute("city", categories=CITIES, other=other), "sex"], epsilon=10**6)
        day = datetime.date(2024, 1, 1)
        data = [("Oslo", "f", 3, 1, day)] * 4 + [("Xanadu", "m", 3, 1, day)] * 10
        released = wp.simulate(asked, {"people": data}, seed=1)
        assert released.counts().item() == pytest.approx(4 + expected, abs=0.01), "left out of every marginal"
        assert released.counts("sex") == pytest.approx([4, expected], abs=0.01)


def test_one_unit_moves_the_measured_weights_by_one(people: Query, rows: list[Any]) -> None:
    (measurement,) = wanted(people).measurements
    query = wp.Query(measurement.plan)
    assert query.stability() == {"people": 1}
    before = wp.evaluate(query, {"people": rows})
    day = datetime.date(2024, 1, 1)
    for row in [("Oslo", "f", 3, 1, day), ("Xanadu", "m", None, 1, day)]:
        after = wp.evaluate(query, {"people": [*rows, row]})
        moved = sum(abs(after[key] - before[key]) for key in measurement.domain or ())
        assert moved == pytest.approx(1.0, abs=1e-9)


TEXTS = {
    "pairs": lambda p: p.marginals([CITY, "sex", AGE], epsilon=1),
    "one attribute": lambda p: p.marginals(["sex"], order=1, epsilon="1/3"),
    "a workload": lambda p: p.marginals([CITY, "sex", AGE], workload=[("age",), ("city", "sex"), ()], epsilon=0.5),
    "the total alone": lambda p: p.marginals([CITY, "sex"], workload=[()], epsilon=0.5),
    "told what to measure": lambda p: p.marginals(
        ["sex", AGE], measure={("age", "sex"): "2/3", ("sex",): 0.25}, epsilon=1
    ),
    "functions": lambda p: p.where(wp.col("age") > 3).marginals(
        [wp.attribute(lambda p: p.age // 10, name="decade", categories=[5, 1], missing=False, other="none of these")],
        order=1,
        epsilon=1,
    ),
    "types": lambda p: p.read_as("half a person").marginals(
        [
            wp.attribute("joined", bins=[datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)], missing="none"),
            wp.attribute("salary", bins=[0, 100], other=False),
            wp.attribute("city", categories=['a "quoted" one', "ø"], missing="no answer"),
        ],
        order=3,
        epsilon=1,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_marginals_read_back_as_they_were_printed(people: Query, name: str) -> None:
    asked = TEXTS[name](people)
    text = wp.unparse({"asked": asked, "again": asked})
    program = wp.parse(text)
    assert program["asked"] == program["again"] == asked
    assert str(program) == text
    (read,), (given,) = program.marginals["asked"].measurements, asked.measurements
    assert read == given
    assert read.digest == given.digest
    assert program["asked"].attributes == asked.attributes


def test_text_and_python_plan_alike(people: Query) -> None:
    """Without views, both come to the same plan, for a planner has no chance and no clock."""
    text = wp.unparse({"people": people.select("city", "sex", "age")}) + (
        'var asked = people.Marginals(1, Attribute("city", categories: ["Oslo", "Bergen"], other: "elsewhere"), "sex", '
        'Attribute("age", bins: [0, 18, 30, 80]));'
    )
    text = text.replace("var people", "var columns").replace("people.Marginals", "columns.Marginals")
    assert wp.parse(text)["asked"] == wanted(people.select("city", "sex", "age"))


MISTAKES = {
    "people.Marginals()": "needs epsilon",
    'people.Marginals("sex")': "expected a number",
    "people.Marginals(1, 3)": "an attribute is",
    'people.Marginals(1, "sex", order: 1, order: 2)': "given twice",
    'people.Marginals(1, "sex", ordre: 1)': "takes no `ordre`",
    'people.Marginals(1, "city")': "not public",
    'people.Marginals(1, Attribute("age", bins: [0, 9]), Attribute("age", categories: [1]))': "two attributes 'age'",
    "people.Marginals(1, Attribute(3))": "needs the name of a column",
    'people.Marginals(1, Attribute("age", bin: [0, 9]))': "no `bin`",
    'people.Marginals(1, "sex", order: 2)': "from 1 to 1",
    'people.Marginals(1, "sex", order: 1, views: [["sex"]])': "give both",
    'people.Marginals(1, "sex", order: 1, views: [["sex"]], shares: [1, 2])': "give both",
    'people.Marginals(1, "sex", order: 1, views: ["sex"], shares: [1])': "views are lists",
    'people.Marginals(1, "sex", order: 1, views: [["sx"]], shares: [1])': "did you mean",
    'people.Marginals(1, "sex", order: 1, views: [["sex"]], shares: [1], objective: "max")': "these are given",
    'people.Marginals(1, "sex", order: 1, objective: "best")': "an objective is",
    'people.Marginals(1, "sex", order: 1).Select(p => p)': "nothing can follow a release",
    'people.Marginal(1, "sex")': "did you mean `Marginals`",
}


@for_each("text", MISTAKES)
def test_mistakes_in_text_are_explained(text: str) -> None:
    source = 'source people(city: str, sex: category("f", "m"), age: int); var t = '
    with pytest.raises(wp.LanguageError, match=MISTAKES[text]):
        wp.parse(f"{source}{text};")


def test_a_program_plans_for_few_marginals() -> None:
    source = 'source people(sex: category("f", "m"));'
    many = "".join(f'var t{i} = people.Marginals(1, "sex", order: 1);' for i in range(21))
    with pytest.raises(wp.LanguageError, match="at most 20 marginals"):
        wp.parse(source + many)


@for_each(
    ("options", "words"),
    [
        ({"order": 0}, "from 1 to 3"),
        ({"order": True}, "from 1 to 3"),
        ({"order": 4}, "give order=1, or order=3"),
        ({"workload": []}, "from 1 to"),
        ({"workload": "sex"}, "views are a list"),
        ({"workload": [("sex", "cty")]}, "did you mean"),
        ({"workload": [("sex", "sex")]}, "twice"),
        ({"measure": {}}, "measure gives"),
        ({"measure": {("sex",): 1}}, "no view that is measured holds"),
        ({"measure": {("sex", "age", "city"): 1, ("age", "sex", "city"): 1}}, "two shares"),
        ({"measure": {("sex", "age", "city"): 0}}, "share of the view"),
        ({"measure": {("sex", "age", "city"): "much"}}, "share of the view"),
        ({"measure": {("sex", "age", "city"): 1}, "objective": "max"}, "leave out objective"),
        ({"objective": "best"}, "an objective is"),
        ({"objective": ["max"]}, "an objective is"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(people: Query, options: dict[str, Any], words: str) -> None:
    with pytest.raises(wp.WpinqError, match=words):
        wanted(people, **options)


def test_attributes_are_a_list_of_different_ones(people: Query) -> None:
    for given, words in (("sex", "a list of attributes"), ([], "1 to 64"), (["sex", "sex"], "two attributes")):
        with pytest.raises(wp.PlanError, match=words):
            people.marginals(given, order=1, epsilon=1)
    with pytest.raises(wp.PlanError, match="null is no end of a bin"):
        people.marginals([wp.attribute("age", bins=[None, 18, 30])], order=1, epsilon=1)


def test_more_cells_than_a_release_may_have_are_refused() -> None:
    wide = wp.source("wide", a=int, b=int)
    large = [wp.attribute(name, bins=range(5_000)) for name in ("a", "b")]
    with pytest.raises(wp.PlanError, match="25,000,000 cells, and a release at most 10,000,000"):
        wide.marginals(large, epsilon=1)


def test_they_are_released_with_others_and_replayed(people: Query, rows: list[Any], tmp_path: Path) -> None:
    asked, total = wanted(people), people.count(epsilon="0.5")
    with wp.Session(tmp_path / "ledger.db") as session:
        session.protect(people, rows, budget=2, version="1")
        both = session.release({"marginals": asked, "total": total})
        assert session.remaining("people") == Fraction(1, 2)
        again = session.release(wp.parse(wp.unparse({"asked": asked}))["asked"])
        assert session.remaining("people") == Fraction(1, 2)
        assert (again.counts("city", "age") == both["marginals"].counts("city", "age")).all()
        (halved,) = wp.fit_to_budget([asked], {"people": "0.25"})
        assert halved.epsilon == halved.measurement.epsilon == Fraction(1, 4)
        with pytest.raises(wp.BudgetExceeded):
            session.release(wanted(people, "0.51"))
    with wp.Session(tmp_path / "ledger.db") as session:
        session.protect(people, rows, budget=2, version="1")
        assert (session.release(asked).answers.values == again.answers.values).all()


def test_they_go_through_a_file(people: Query, rows: list[Any], tmp_path: Path) -> None:
    released = wp.simulate(wanted(people, workload=[("city", "age"), ("sex",)]), {"people": rows}, seed=2)
    released.save(tmp_path / "m.json")
    loaded = wp.MarginalTables.load(tmp_path / "m.json")
    assert loaded.attributes == released.attributes
    assert loaded.measuring == released.measuring
    assert loaded.to_columns() == released.to_columns()
    assert loaded.simulated
    (tmp_path / "other.json").write_text('{"format": "wpinq marginals", "version": 1}')
    for name, words in (("other.json", "do not hold marginals"), ("none.json", "cannot be read")):
        with pytest.raises(wp.AnswersError, match=words):
            wp.MarginalTables.load(tmp_path / name)
    data = json.loads((tmp_path / "m.json").read_text())
    data["attributes"] = data["attributes"][:2]
    with pytest.raises(wp.AnswersError):
        wp.MarginalTables.from_json(data)


def test_a_marginal_that_nothing_tells_of_is_refused(people: Query, rows: list[Any]) -> None:
    asked = people.marginals(
        [CITY, "sex", AGE], workload=[("city",), ("sex",)], measure={"city": 1, "sex": 1}, epsilon=1
    )
    released = wp.simulate(asked, {"people": rows}, seed=2)
    with pytest.raises(wp.AnswersError, match="no measured view holds city and sex"):
        released.counts("city", "sex")
    for names, words in ((("cty",), "did you mean"), (("city", "city"), "an attribute twice")):
        with pytest.raises(wp.AnswersError, match=words):
            released.counts(*names)
    with pytest.raises(wp.AnswersError, match="a confidence"):
        released.half_width("city", confidence=1.0)


def test_how_exact_they_will_be_is_known_before(people: Query, rows: list[Any]) -> None:
    asked = wanted(people)
    told = {row.name: row for row in wp.accuracy(asked, half_width=5)}
    assert list(told) == ["city x sex", "city x age", "sex x age"]
    released = wp.simulate(asked, {"people": rows}, seed=1)
    for names in (("city", "sex"), ("sex", "age")):
        row = told[" x ".join(names)]
        assert row.half_width == pytest.approx(released.half_width(*names))
        assert row.kind.name == "count"
        assert row.epsilon_for is not None
        finer = wanted(people, row.epsilon_for)
        assert wp.simulate(finer, {"people": rows}, seed=1).half_width(*names) == pytest.approx(5, rel=1e-6)


def test_a_rescaled_count_is_one_after_division(people: Query) -> None:
    halves = people.select_many(lambda p: [F.record(sex=p.sex, i=0), F.record(sex=p.sex, i=1)])
    asked = halves.marginals(["sex"], order=1, epsilon=10**6)
    assert asked.kind.name == "rescaled count"
    day = datetime.date(2024, 1, 1)
    released = wp.simulate(asked, {"people": [("a", "f", 1, 1, day)] * 9}, seed=1)
    assert released.counts("sex") == pytest.approx([18, 0], abs=0.01)
    assert set(released.to_columns("sex")["kind"]) == {"rescaled count"}
    weighed = people.join(people, on="city").marginals(["sex"], order=1, epsilon=1)
    assert weighed.kind.name == "weight, not a count"


def test_what_public_sizes_show_to_be_hopeless_is_refused(people: Query) -> None:
    asked = wanted(people, "0.001")
    with pytest.raises(wp.PlanError, match=r"\(6 other marginals are infeasible too\): nothing was spent. Use an eps"):
        refuse_infeasible_marginals(asked, 1000)
    for records in (0, -1, math.nan):
        with pytest.raises(wp.PlanError, match="more than 0"):
            refuse_infeasible_marginals(asked, records)
    refuse_infeasible_marginals(asked, 10**7)
    refuse_infeasible_marginals(wanted(people, 1), 1000)


def test_the_epsilon_that_a_refusal_names_is_enough(people: Query) -> None:
    with pytest.raises(wp.PlanError) as refused:
        refuse_infeasible_marginals(wanted(people, "0.001"), 1000)
    named = str(refused.value).partition("an epsilon of ")[2].partition(" ")[0]
    refuse_infeasible_marginals(wanted(people, Fraction(named) * Fraction(1000001, 1000000)), 1000)
    with pytest.raises(wp.PlanError):
        refuse_infeasible_marginals(wanted(people, Fraction(named) * Fraction(97, 100)), 1000)


FORGED: dict[str, Any] = {
    "shares": [0.5, 0.5],
    "measured": [[1], [0, 1]],
    "wanted": [[0.5]],
    "other": ["x"],
    "name": 3,
    "categories": ["Oslo", "Oslo"],
}


@pytest.mark.parametrize("name", FORGED)
def test_marginals_that_do_not_fit_their_answers_are_refused(people: Query, rows: list[Any], name: str) -> None:
    measure = {("city",): 1, ("city", "sex"): 3}
    kept = wp.simulate(people.marginals([CITY, "sex"], measure=measure, epsilon=1), {"people": rows}, seed=1).to_json()
    assert wp.MarginalTables.from_json(kept).to_json() == kept
    of = kept["attributes"][0] if name in kept["attributes"][0] else kept
    of[name] = FORGED[name]
    with pytest.raises(wp.AnswersError):
        wp.MarginalTables.from_json(kept)
