"""Programs with their expected outputs: each `.wpq` file here has a `.json` file of data and of exact results."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq.api.query import Query
from wpinq.language import parse
from wpinq.measure.measurement import Measurement

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.wpq"))


def frozen(value: Any) -> Any:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


def weights(pairs: list[Any]) -> dict[Any, Fraction]:
    return {frozen(record): Fraction(weight) for record, weight in pairs if Fraction(weight)}


@pytest.mark.parametrize("printed", [False, True], ids=["as written", "printed and read back"])
@pytest.mark.parametrize("name", NAMES)
def test_programs_give_what_is_expected(name: str, printed: bool) -> None:
    program = parse((HERE / f"{name}.wpq").read_text(encoding="utf-8"), name=f"{name}.wpq")
    sidecar = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    if printed:
        program = parse(str(program))
    data = {source: weights(rows) for source, rows in sidecar["data"].items()}
    assert set(sidecar["expected"]) == set(program), "every variable has its expected output"
    for variable, expected in sidecar["expected"].items():
        value = program[variable]
        query = Query(value.plan) if isinstance(value, Measurement) else value
        assert dict(wp.evaluate(query, data, exact=True)) == weights(expected), variable
