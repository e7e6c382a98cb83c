"""Ten clinical questions over five tables: each costs ε once, and its intervals hold the exact answers of SQL."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import duckdb
import pytest

import wpinq as wp
from wpinq.api import simulate
from wpinq.sinks.answer_kinds import COUNT, RESCALED

PEOPLE, DRAWS = 10_000, 500

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def people() -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("people", Path(__file__).parents[2] / "benchmarks" / "people.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(people: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("people")
    people.make(made, PEOPLE)
    return made


@pytest.mark.parametrize("number", range(10))
def test_intervals_hold_the_answers_of_sql(
    number: int, people: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (asked, sql) = list(people.questions(1).items())[number]
    assert {name: str(cost) for name, cost in asked.bill().items()} == {"patients": "1"}
    (name,) = asked.epsilons
    assert asked.kind(name).name in (COUNT, RESCALED, "mean")
    files = {table: folder / f"{table}.parquet" for table in people.TABLES}
    with duckdb.connect() as connection:
        for table, file in files.items():
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{file}'")
        wanted = [float(row[-1]) for row in connection.execute(sql).fetchall()]
    assert all(truth > 0 for truth in wanted)
    plans = [measurement.plan for measurement in asked.measurements]
    held = simulate.weights_of(plans, {"patients": files}, "duckdb", simulate.FLOAT)
    monkeypatch.setattr(simulate, "weights_of", lambda *given: held)  # evaluated once, for all draws of the noise
    inside = [0] * len(wanted)
    for seed in range(DRAWS):
        cells = wp.simulate(asked, {}, seed).to_columns()
        for place, (low, high, truth) in enumerate(
            zip(cells[f"{name}_low"], cells[f"{name}_high"], wanted, strict=True)
        ):
            inside[place] += low <= truth <= high
    assert min(inside) >= 0.92 * DRAWS, f"{inside} of {DRAWS}"
