"""Attributes: every value falls in the cell that the declaration says, on every engine, and none is an error."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.person import PERSON
from wpinq.api.query import Query
from wpinq.marginals.cells import AttributeCells, codes

DAY = datetime.date

ATTRIBUTES = {
    "city": wp.attribute("city", categories=["Oslo", "Bergen", "Rome"]),
    "city, null among all others": wp.attribute("city", categories=["Oslo", "Bergen"], missing=False, name="town"),
    "city, no others": wp.attribute("city", categories=["Oslo"], other=False, name="oslo"),
    "city, neither": wp.attribute("city", categories=["Oslo"], other=False, missing=False, name="strict"),
    "sex": wp.attribute("sex"),
    "some categories": wp.attribute("sex", categories=["m"], name="male"),
    "age": wp.attribute("age", bins=[0, 18, 30, 65, 120]),
    "one bin": wp.attribute("age", bins=[18, 65], name="working"),
    "salary": wp.attribute("salary", bins=[Decimal("0"), Decimal("99.99"), 200]),
    "height": wp.attribute("height", bins=[-1.5, 0, 1.75, 2.5]),
    "joined": wp.attribute("joined", bins=[DAY(2024, 1, 2), DAY(2024, 1, 4)], other=False),
    "smokes": wp.attribute("smokes"),
    "decade": wp.attribute(lambda p: p.age // 10, name="decade", categories=[3, 1, 2]),
    "remainder": wp.attribute(wp.col("age") % 3, name="remainder"),
    "floats": wp.attribute("height", categories=[1.75, -0.0], name="exact"),
}


@pytest.fixture
def people() -> Query:
    return wp.source("people", {**PERSON, "height": float, "smokes": bool | None})


ROWS = [
    (city, sex, age, Decimal(salary), DAY(2024, 1, day), height, smokes)
    for city, age, salary, height, day, sex, smokes in [
        ("Oslo", 0, "0", -1.5, 1, "f", True),
        ("Bergen", 17, "99.98", 0.0, 2, "m", False),
        ("Rome", 18, "99.99", 1.75, 3, "f", None),
        ("", 29, "200.00", 2.5, 4, "m", True),
        ("oslo", 120, "200.01", 2.500001, 5, "f", False),
        (None, None, "-0.01", -1e300, 31, "m", None),
        ("Oslo\x00", -1, "0.00", 1e300, 2, "f", None),
        ("Øslo", 121, "1.00", -0.0, 4, "m", True),
        ("Bergen", 2**63 - 1, "1.00", 1.7499999999999998, 3, "f", True),
    ]
]
PLACES = {name: place for place, name in enumerate([*PERSON, "height", "smokes"])}


def expected(name: str, row: tuple[Any, ...], cells: AttributeCells) -> int | None:
    """The cell by the definition: the last closed bin, the first category that is equal, null, and all else."""
    value = row[PLACES.get(name.partition(",")[0], PLACES["age"])]
    column = {"one bin": "age", "some categories": "sex", "floats": "height"}.get(name)
    if column is not None:
        value = row[PLACES[column]]
    if name == "decade" and value is not None:
        value //= 10
    if name == "remainder" and value is not None:
        value %= 3
    if value is None:
        return cells.named if cells.missing is not None else cells.size - 1 if cells.other is not None else None
    attribute = ATTRIBUTES[name]
    if attribute.bins is not None:
        ends: list[Any] = list(attribute.bins)
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            if low <= value < high or (value == high and i == len(ends) - 2):
                return i
    else:
        listed = {"sex": ["f", "m"], "smokes": [False, True], "remainder": [0, 1, 2]}.get(name, attribute.categories)
        for i, category in enumerate(listed or ()):
            if category == value:
                return i
    return cells.size - 1 if cells.other is not None else None


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_every_value_falls_in_its_cell(people: Query, engine: str) -> None:
    bound = {name: attribute.bound(people.plan) for name, attribute in ATTRIBUTES.items()}
    for name, coded in bound.items():
        found = wp.evaluate(people.select(codes([coded])), {"people": ROWS}, engine=engine)
        counts: dict[int | None, float] = {}
        for row in ROWS:
            code = expected(name, row, coded.cells)
            counts[code] = counts.get(code, 0.0) + 1.0
        assert dict(found) == {(code,): count for code, count in counts.items()}, name


def test_many_categories_are_told_apart(people: Query) -> None:
    listed = [f"town {i:03}" for i in range(500)][::-1]
    (coded,) = (wp.attribute("city", categories=listed).bound(people.plan),)
    rows = [(name, *ROWS[0][1:]) for name in [*listed, "town 500", "town 0000", "a", "z"]]
    found = wp.evaluate(people.select(codes([coded])), {"people": rows})
    assert dict(found) == {**{(i,): 1.0 for i in range(500)}, (501,): 4.0}


def test_there_is_a_cell_for_others_only_where_the_type_leaves_room(people: Query) -> None:
    labels = {name: attribute.bound(people.plan).cells.labels for name, attribute in ATTRIBUTES.items()}
    assert labels["sex"] == ("f", "m")
    assert labels["smokes"] == ("False", "True", "missing")
    assert labels["some categories"] == ("m", "other")
    assert labels["city"] == ("Oslo", "Bergen", "Rome", "missing", "other")
    assert labels["city, null among all others"] == ("Oslo", "Bergen", "other")
    assert labels["city, neither"] == ("Oslo",)
    assert labels["height"] == ("[-1.5, 0)", "[0, 1.75)", "[1.75, 2.5]", "other")
    assert labels["joined"] == ("[2024-01-02, 2024-01-04]",)
    smoking = wp.attribute("smokes", missing=False).bound(people.plan).cells.labels
    assert smoking == ("False", "True", "other"), "null must be somewhere"


MISTAKES: dict[str, tuple[Any, str]] = {
    "no such column": (lambda: wp.attribute("cty", categories=["a"]), "did you mean 'city'"),
    "not public": (lambda: wp.attribute("city"), r'not public .*wp.attribute\("city", categories='),
    "bins of text": (lambda: wp.attribute("city", bins=["a", "b"]), "has no bins"),
    "bins of categories": (lambda: wp.attribute("sex", bins=["f", "m"]), "has no bins"),
    "one end": (lambda: wp.attribute("age", bins=[3]), "two or more ends that ascend"),
    "ends that fall": (lambda: wp.attribute("age", bins=[3, 1]), "two or more ends that ascend"),
    "an end twice": (lambda: wp.attribute("age", bins=[1, 2, 2]), "a value is listed twice"),
    "a category twice": (lambda: wp.attribute("city", categories=["a", "b", "a"]), "a value is listed twice"),
    "an end of another type": (lambda: wp.attribute("age", bins=[0.5, 1]), "attribute 'age': the key 0.5"),
    "null as a category": (lambda: wp.attribute("city", categories=["a", None]), "null is none of them"),
    "no category": (lambda: wp.attribute("city", categories=[]), "one value or more"),
    "alike labels": (lambda: wp.attribute("city", categories=["other"]), "two cells of 'city' would be called 'other'"),
    "missing as others": (lambda: wp.attribute("city", categories=["a"], missing="other"), "two cells of 'city'"),
    "too many": (lambda: wp.attribute("age", bins=range(10_002)), "at most 10,000"),
    "a record": (lambda: wp.attribute(lambda p: (p.age, p.city), name="both", categories=[(1, "a")]), "a single value"),
}


@for_each("name", MISTAKES)
def test_mistakes_are_explained(people: Query, name: str) -> None:
    make, words = MISTAKES[name]
    with pytest.raises(wp.WpinqError, match=words):
        make().bound(people.plan)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"column": lambda p: p.age}, "give a function a name"),
        ({"column": "age", "bins": [0, 1], "categories": [1]}, "bins or categories, not both"),
        ({"column": "age", "bins": "0, 1"}, "a list of public values"),
        ({"column": "age", "bins": 3}, "a list of public values"),
        ({"column": "age", "missing": ""}, "a name, True or False"),
        ({"column": "age", "other": 3}, "a name, True or False"),
    ],
)
def test_an_attribute_that_makes_no_sense_is_refused_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(wp.PlanError, match=words):
        wp.attribute(**given)


def test_cells_go_through_plain_data(people: Query) -> None:
    for attribute in ATTRIBUTES.values():
        cells = attribute.bound(people.plan).cells
        assert AttributeCells.from_json(cells.to_json()) == cells


def test_drawn_values_fall_in_the_cell_that_they_were_drawn_for(people: Query) -> None:
    """Drawn values, asked for their cells again, give the numbers that they were drawn for."""
    generator = np.random.default_rng(5)
    for name in ("city", "sex", "age", "one bin", "salary", "height", "joined", "smokes", "some categories"):
        coded = ATTRIBUTES[name].bound(people.plan)
        cells = coded.cells
        drawn_codes = generator.integers(0, cells.size, 400)
        values = cells.draw(drawn_codes, generator)
        assert cells.edges is None or len(set(values)) > cells.size, "a bin has many values"
        place = PLACES[{"one bin": "age", "some categories": "sex"}.get(name, name)]
        for code in range(cells.size):
            held = [value for value, drawn in zip(values, drawn_codes.tolist(), strict=True) if drawn == code]
            assert held
            if code >= cells.named:
                known = code == cells.named and cells.missing is not None
                assert set(held) == {None if known or str(cells.type) != "str" else cells.other}
                continue
            rows = [(*ROWS[0][:place], value, *ROWS[0][place + 1 :]) for value in held]
            found = wp.evaluate(people.select(codes([coded])), {"people": rows}, engine="reference")
            assert dict(found) == {(code,): float(len(held))}, (name, code)


def test_floats_are_drawn_inside_of_the_narrowest_and_the_widest_bin() -> None:
    generator = np.random.default_rng(1)
    numbers = wp.source("numbers", x=float)
    ends = [-1e308, 0.0, 1.0, np.nextafter(1.0, 2.0), 1e308]
    cells = wp.attribute("x", bins=ends).bound(numbers.plan).cells
    for code, (low, high) in enumerate(itertools.pairwise(ends)):
        values = cells.draw(np.full(1000, code), generator)
        assert all(low <= value < high for value in values)


def test_ints_are_drawn_evenly() -> None:
    """Each of 4 values has 10,000 draws of 40,000: 6 standard deviations are 520, a false alarm in 10⁸."""
    numbers = wp.source("numbers", x=int)
    cells = wp.attribute("x", bins=[0, 4, 7]).bound(numbers.plan).cells
    first = cells.draw(np.zeros(40_000, dtype=np.int64), np.random.default_rng(2))
    last = cells.draw(np.ones(40_000, dtype=np.int64), np.random.default_rng(3))
    assert sorted(set(first)) == [0, 1, 2, 3]
    assert sorted(set(last)) == [4, 5, 6, 7], "the last bin holds its upper end"
    assert all(abs(values.count(value) - 10_000) < 520 for values in (first, last) for value in set(values))
