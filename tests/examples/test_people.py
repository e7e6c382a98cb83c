"""The people of the tutorials: the file is what its script makes, and its declaration holds."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import wpinq as wp

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_file_is_what_the_script_makes() -> None:
    made = runpy.run_path(str(EXAMPLES / "make_people.py"))["people"]()
    with (EXAMPLES / "data" / "people.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "city", "sex", "age", "salary"]
    assert rows == [list(map(str, row)) for row in made]


def test_each_person_has_one_row() -> None:
    people = wp.source("people", city=str, sex=str, age=int, salary=int, person="id", at_most=1)
    weights = wp.evaluate(people.select(lambda p: 0), {"people": str(EXAMPLES / "data" / "people.csv")})
    assert weights[0] == 3_000
