"""What DuckDB checked and holds becomes a frame by columns: the same weights, and no row of Python's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import polars
import pytest

import wpinq as wp
from tests.engines.test_loading import SOURCES
from tests.support.declared import declared
from wpinq import functions as F
from wpinq.columns.storage import StoredColumns
from wpinq.data import read_source
from wpinq.engines.sql.spark.cluster import SparkDatabase
from wpinq.errors import PlanError

pytestmark = pytest.mark.long

LISTS = {
    "lists": (wp.source("s", list[int], weights=True), {(): 0.5, (1, 2): -1.0, (2, 1): 1.0}),
    "lists of records": (
        wp.source("s", a=str, b=list[tuple[int, str | None]] | None, weights=True),
        {("x", ((1, None), (2, "é"))): 1.0, ("x", None): 0.25, ("y", ()): 1.0},
    ),
}


def no_rows(*given: object) -> NoReturn:
    raise AssertionError("rows of Python")


def bits(weights: Any) -> list[tuple[Any, str]]:
    return [(record, float(weight).hex()) for record, weight in weights.items()]


@pytest.mark.parametrize("name", [*SOURCES, *LISTS])
def test_it_is_what_rows_of_python_are(
    name: str, spark: Any, database: SparkDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, rows = {**SOURCES, **LISTS}[name]
    plan = source.select(lambda x: x).plan
    held = read_source(rows, declared(source.plan.type, cap=10**6))
    assert isinstance(held, StoredColumns)
    expected = database.evaluate(plan, {"s": rows})
    monkeypatch.setattr(StoredColumns, "items", no_rows)
    assert bits(database.evaluate(plan, {"s": held})) == bits(expected)


def test_a_file_and_a_frame_of_another_library_are_released_alike(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoredColumns, "items", no_rows)
    table = polars.DataFrame({"who": [1, 1, 2, 2], "page": ["a", "b", "a", "a"]})
    table.write_csv(tmp_path / "visits.csv")
    for offered in (table, table.to_arrow(), table.to_pandas(), tmp_path / "visits.csv"):
        lists = wp.source("visits", page=str, person="who", at_most=2, nested=True)
        with wp.Session(engine="spark") as session:
            session.protect(lists, offered, budget=10**7)
            asked = lists.select(lambda pages: F.element(pages, 1).page).noisy_count(10**6, over=["a", "b"])
            assert [round(value, 2) for value in session.release(asked).values] == [1.0, 1.0]


def test_what_weighs_more_than_the_cap_is_refused(database: SparkDatabase) -> None:
    few = wp.source("few", int, cap=1)
    held = read_source([1, 2], declared(few.plan.type, cap=10))
    with pytest.raises(PlanError, match="weigh more than the cap"):
        database.evaluate(few.plan, {"few": held})
