"""Which marginals are measured for synthetic rows: public numbers alone decide."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.marginals.cells import Attributes
from wpinq.marginals.tabulation import choose_marginals, tabulate_marginals
from wpinq.synthesis import fit_table, plan_table

PEOPLE = wp.source("people", sex=wp.category("f", "m"), smokes=bool, age=int)
BINS = wp.attribute("age", bins=range(0, 100, 5), other=False)
ATTRIBUTES: list[Any] = ["sex", "smokes", BINS]


@pytest.mark.parametrize(
    ("epsilon", "given", "pairs"),
    [
        (1, {}, 3),
        ("0.0006", {}, 1),
        ("0.00001", {}, 0),
        ("0.0006", {"records": 2_000_000}, 3),
        ("0.0006", {"records": 50_000}, 0),
    ],
)
def test_the_pairs_follow_from_sizes_epsilon_and_records(epsilon: Any, given: Any, pairs: int) -> None:
    asked = tabulate_marginals(PEOPLE, iter(ATTRIBUTES), None, epsilon, **given)
    assert asked.measuring.wanted[:3] == ((0,), (1,), (2,))
    assert asked.measuring.wanted[3:] == ((0, 1), (0, 2), (1, 2))[:pairs]
    assert f"chosen: each attribute and {pairs} of 3 pairs; " in str(asked)
    scaled = asked.scaled(lambda known: known)
    assert (scaled, scaled.note) == (asked, asked.note)


@pytest.mark.parametrize(("given", "order"), [({"order": 1}, 1), ({"order": 3}, 3), ({"workload": [("age",)]}, 1)])
def test_what_is_asked_for_is_not_chosen(given: Any, order: int) -> None:
    asked = plan_table(PEOPLE, iter(ATTRIBUTES), 1, **given)
    assert {len(view) for view in asked.measuring.wanted} == {order}
    assert "chosen" not in str(asked)


def chosen_pairs(sizes: list[int], epsilon: Any, records: float | None = None) -> set[Any]:
    found = choose_marginals(Attributes(tuple(sizes)), Fraction(epsilon), records)
    return {view for view in found if len(view) == 2}


def test_more_epsilon_more_records_or_fewer_cells_never_leave_out_a_pair() -> None:
    for sizes in ([100, 100, 16], [9, 16, 15, 6, 5, 2, 100, 2], [2, 2]):
        for low, high in (("1/1000", "1/100"), ("1/100", 1)):
            assert chosen_pairs(sizes, low) <= chosen_pairs(sizes, high)
            assert chosen_pairs(sizes, low, 100) <= chosen_pairs(sizes, low, 10_000)
            assert chosen_pairs([*sizes, 50], high, 5000) - chosen_pairs(sizes, high, 5000) <= {
                (place, len(sizes)) for place in range(len(sizes))
            }
    assert chosen_pairs([10**4], 10) == set()


def test_the_choice_is_the_least_of_what_it_says_that_it_minimises() -> None:
    """By a search over shares, for each number of pairs: the closed form is not used."""
    sizes, records = (12, 7, 4, 2), 300
    noise = 1 / (2 * records)
    pairs = sorted(combinations(range(4), 2), key=lambda pair: (sizes[pair[0]] * sizes[pair[1]], pair))

    def error(measured: int) -> float:
        found = [(3, size) for size in sizes] + [(1, sizes[a] * sizes[b]) for a, b in pairs[:measured]]
        times, cells = (np.array(column, dtype=float) for column in zip(*found, strict=True))
        shares = np.full(len(cells), 1 / len(cells))
        for _ in range(20_000):  # where each has the same slope, the sum is least
            shares *= (times * (cells * noise) ** 2 / shares**3) ** 0.02
            shares /= shares.sum()
        return float((times * (cells * noise / shares) ** 2).sum()) + 0.35**2 * (len(pairs) - measured)

    errors = [error(measured) for measured in range(len(pairs) + 1)]
    best = int(np.argmin(errors))
    assert 0 < best < len(pairs)
    assert chosen_pairs(list(sizes), 1, records) == set(pairs[:best])


FRAME = pd.DataFrame({"sex": ["f", "m"] * 400, "age": [30, 41, 52, 63] * 200})
PUBLIC: dict[str, Any] = {"bins": {"age": [0, 45, 90]}, "categories": {"sex": ["f", "m"]}}


def spent(file: Path) -> int:
    with Ledger(file) as ledger:
        return ledger.account("data").spent


def test_a_number_of_records_that_is_not_declared_is_bought_first_and_decides(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"ledger": tmp_path / "l.db", "budget": 1, "version": "1"}
    bills: list[Any] = []
    made = wp.tables.synthesize(FRAME, "0.25", **PUBLIC, **kept, on_bill=bills.append)
    assert "number of records: NoisyCount(0.005)" in str(bills[0])
    assert dict(bills[0]) == {"data": Fraction(1, 4)} and made.report["bill"] == {"data": "0.25"}
    count = made.marginals.records
    assert count is not None and (count.epsilon, made.marginals.answers.epsilon) == (
        Fraction("0.005"),
        Fraction("0.245"),
    )
    wanted = {view for view in made.marginals.measuring.wanted if len(view) == 2}
    assert wanted == chosen_pairs([4, 4], "0.245", max(1.0, count.value))
    again = wp.tables.synthesize(FRAME, "0.25", **PUBLIC, **kept)
    assert again.marginals.to_json() == made.marginals.to_json(), "both are replayed"
    assert spent(tmp_path / "l.db") == 250_000_000
    made.marginals.save(tmp_path / "m.json")
    assert wp.MarginalTables.load(tmp_path / "m.json").to_json() == made.marginals.to_json()
    assert wp.tables.synthesize(FRAME, "0.25", **PUBLIC, records=800).marginals.records is None
    assert wp.tables.synthesize(FRAME, "0.25", **PUBLIC, order=1).marginals.records is None


def test_a_budget_too_small_for_the_marginals_does_not_buy_the_number_of_records(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"ledger": tmp_path / "l.db", "budget": 1}
    wp.tables.synthesize(FRAME, "0.8", **PUBLIC, **kept, order=1)
    with pytest.raises(wp.BudgetExceeded, match="nothing was spent"):
        wp.tables.synthesize(FRAME, "0.201", **PUBLIC, **kept)
    assert spent(tmp_path / "l.db") == 800_000_000


def test_an_infeasible_marginal_is_refused_with_records_alone() -> None:
    with pytest.raises(wp.PlanError, match="nothing was spent"):
        plan_table(PEOPLE, ATTRIBUTES, "0.001", records=1000)
    plan_table(PEOPLE, ATTRIBUTES, "0.001")
    for records in (0, -1, float("nan")):
        with pytest.raises(wp.PlanError, match="more than 0"):
            plan_table(PEOPLE, ATTRIBUTES, 1, records=records)


def test_rows_are_those_of_the_fitted_model() -> None:
    asked = plan_table(PEOPLE, ATTRIBUTES, 2)
    rows = [("f" if i % 3 else "m", i % 2 == 0, i % 90) for i in range(900)]
    marginals = wp.simulate(asked, {"people": rows}, seed=1)
    made, again = fit_table(marginals, count=50, seed=4), marginals.fit(seed=4).rows(50, seed=4)
    assert made.rows.to_columns() == again.to_columns()
    assert made.report["rows"]["count"] == 50
    weighted = fit_table(marginals, copies=2, seed=4)
    assert weighted.rows.weights is not None
    assert weighted.report["rows"]["count"] == len(weighted.rows)


def test_the_cell_of_all_other_values_is_told_with_the_way_to_leave_it_out() -> None:
    people = wp.source("people", city=str, age=int, born=datetime.date | None)
    attributes = [
        wp.attribute("city", categories=["Oslo"], other="elsewhere"),
        wp.attribute("age", bins=[0, 18, 90]),
        wp.attribute("born", bins=[datetime.date(1900, 1, 1), datetime.date(2000, 1, 1)], other=False),
    ]
    asked = people.marginals(attributes, order=1, epsilon=1)
    way = "other=False (--drop-other {0}) drops the cell with its records"
    told = [
        f"city: 'elsewhere' holds all other values, written as 'elsewhere'; {way.format('city')}",
        f"age: 'other' holds all other values, written as null or an empty field; {way.format('age')}",
    ]
    assert [line.strip() for line in str(asked).splitlines() if "all other values" in line] == told
    marginals = wp.simulate(asked, {"people": [("Ulm", 99, None)] * 300}, seed=1)
    made = fit_table(marginals, count=20)
    assert made.report["notes"] == told
    assert set(made.rows.columns["city"]) == {"elsewhere"} and set(made.rows.columns["age"]) == {None}


SMALL = wp.source("small", age=int, kind=wp.category("a", "b"), smokes=bool | None)


@for_each(
    ("attribute", "labels"),
    [
        ("kind", ("a", "b")),
        (wp.attribute("kind", categories=["b", "a"]), ("b", "a")),
        (wp.attribute("kind", categories=["b"]), ("b", "other")),
        (wp.attribute(wp.col("age") % 3, name="rest", categories=range(3)), ("0", "1", "2", "missing")),
        (wp.attribute(wp.col("age") % 3, name="rest", categories=[0, 2]), ("0", "2", "missing", "other")),
        (wp.attribute(wp.col("age") % 10, name="digit", bins=[0, 5, 9]), ("[0, 5)", "[5, 9]", "missing")),
        (wp.attribute(wp.col("age") % 10, name="digit", bins=[0, 5, 8]), ("[0, 5)", "[5, 8]", "missing", "other")),
        (wp.attribute("age", bins=[0, 5, 9]), ("[0, 5)", "[5, 9]", "other")),
        ("smokes", ("False", "True", "missing")),
        (wp.attribute("smokes", missing=False), ("False", "True", "other")),
    ],
)
def test_there_is_none_where_the_public_domain_is_complete(attribute: Any, labels: tuple[str, ...]) -> None:
    (cells,) = SMALL.marginals([attribute], order=1, epsilon=1).attributes
    assert cells.labels == labels
    assert bool(cells.note) == (labels[-1] == "other")


# --- one call

ROWS = {
    "id": [f"p{i % 300}" for i in range(600)],
    "sex": ["f", "m", "m"] * 200,
    "age": [i * 7 % 90 for i in range(600)],
    "born": [datetime.date(1950 + i % 60, 1, 1) for i in range(600)],
    "smokes": [i % 4 == 0 for i in range(600)],
}
CELLS: dict[str, Any] = {
    "bins": {"age": [0, 18, 65, 90], "born": [datetime.date(1950, 1, 1), datetime.date(1990, 1, 1)]},
    "categories": {"sex": ["f", "m"], "smokes": [True, False]},
}


def tables(folder: Path) -> dict[str, Any]:
    """The same rows as a frame of several libraries, and as files."""
    frame = pd.DataFrame(ROWS)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    arrow = pa.table(ROWS)
    frames = {"arrow": arrow, "polars": pl.from_arrow(arrow), "csv": folder / "rows.csv"}
    return frames | {"pandas": arrow.to_pandas(types_mapper=pd.ArrowDtype), "parquet": str(folder / "rows.parquet")}


@for_each("form", ["arrow", "polars", "pandas", "parquet", "csv"])
def test_one_call_makes_rows_of_any_table(form: str, tmp_path: Path) -> None:
    bills: list[wp.Bill] = []
    cells = CELLS if form != "csv" else {**CELLS, "categories": {"sex": ["f", "m"], "smokes": ["True", "False"]}}
    data = tables(tmp_path)[form]
    made = wp.tables.synthesize(data, epsilon=8, **cells, records=600, count=50, seed=2, on_bill=bills.append)
    name = "rows" if form in ("csv", "parquet") else "data"
    assert dict(bills[0]) == {name: 8} and made.report["bill"] == {name: "8"}
    frame = made.to_pandas()
    assert list(frame.columns) == ["sex", "age", "born", "smokes"], "in the order of the table"
    assert len(frame) == made.report["rows"]["count"] == 50
    assert frame.age.dropna().between(0, 90).all()
    assert set(frame.sex.dropna()) <= {"f", "m", "other"}, "noise may give the cell of a missing value some rows"
    assert isinstance(frame.born.dropna().iloc[0], datetime.date), "of a csv file too: its cells are dates"
    assert made.marginals.names == made.model.names == tuple(frame.columns)
    assert repr(made).startswith("<SyntheticTable: 50 rows of 4 attributes>") and "p1" not in repr(made)


def test_the_unit_is_a_row_or_a_person(tmp_path: Path) -> None:
    frame = pa.table(ROWS)
    told: dict[str, Any] = {"epsilon": 1, "categories": {"sex": ["f", "m"]}, "ledger": tmp_path / "l.db"}
    made = wp.tables.synthesize(frame, name="visits", person="id", at_most=2, version="1", **told)
    again = wp.tables.synthesize(frame, name="visits", person="id", at_most=2, version="1", **told)
    assert made.report["bill"] == {"visits": "2"}
    assert list(made.marginals.answers.values) == list(again.marginals.answers.values), "replayed for nothing"
    wp.tables.synthesize(frame, name="rows", unit="one visit", budget=3, **told)
    with Ledger(tmp_path / "l.db") as ledger:
        found = {each.account: (each.unit, each.budget, each.spent) for each in ledger.balances()}
    assert found == {"visits": ("one person, at most 2 rows", 2, 2), "rows": ("one visit", 3, 1)}


def test_a_choice_of_columns_and_cells_is_asked_of_one_declaration(tmp_path: Path) -> None:
    """Names and types alone are taken: other rows, other cells and an empty table make the same account."""
    told: dict[str, Any] = {"name": "people", "ledger": tmp_path / "l.db", "budget": 3}
    frame = pa.table(ROWS)
    wp.tables.synthesize(frame, categories={"sex": ["f"]}, **told)
    wp.tables.synthesize(frame[:0], bins={"age": [0, 1, 2]}, order=1, count=5, **told)
    city = wp.attribute("sex", categories=["m"], other=False)
    made = wp.tables.synthesize(frame[1:], attributes=[city, "smokes"], order=2, **told)
    assert [cells.labels for cells in made.rows.attributes] == [("m", "missing"), ("False", "True", "missing")]
    with Ledger(tmp_path / "l.db") as ledger:
        assert [each.spent for each in ledger.balances()] == [3]


@for_each(
    ("told", "words"),
    [
        ({}, "declare the public cells"),
        ({"bins": ["age"]}, "declare the public cells"),
        ({"categories": {"smokes": "yes"}}, "a list of public values"),
        ({"bins": {"agee": [0, 9]}}, "did you mean"),
        ({"bins": {"sex": ["f", "m"]}}, "no bins"),
        ({"bins": {"age": [9, 0]}}, "ascend"),
        ({"categories": {"age": ["x"]}}, "int"),
        ({"attributes": ["sex"]}, "not public by the query"),
        ({**CELLS, "epsilon": 0}, "epsilon"),
        ({**CELLS, "epsilon": 2, "budget": 1}, "does not cover the bill: 'data' needs 2"),
        ({**CELLS, "records": 5, "epsilon": "0.1"}, "nothing was spent"),
        ({**CELLS, "model": "forest"}, "a model is 'mixture'"),
        ({**CELLS, "count": 0}, "the rows to draw"),
        ({**CELLS, "seed": -1}, "a seed"),
        ({**CELLS, "person": "idd", "at_most": 1}, "did you mean `id`"),
        ({**CELLS, "person": "id"}, "together"),
        ({**CELLS, "at_most": 2}, "together"),
    ],
)
def test_one_call_refuses_before_an_account_is_opened(told: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(wp.WpinqError, match=words):
        wp.tables.synthesize(pd.DataFrame(ROWS), ledger=tmp_path / "l.db", **told)
    assert not (tmp_path / "l.db").exists()


def test_types_may_come_from_a_sample() -> None:
    """pandas has dates as objects, of which the kind says nothing."""
    frame = pd.DataFrame(ROWS)
    told: dict[str, Any] = {"bins": {"born": CELLS["bins"]["born"]}, "epsilon": 4}
    with pytest.raises(wp.SourceRejected, match="field 'born'"):
        wp.tables.synthesize(frame, **told)
    made = wp.tables.synthesize(frame, sample=pa.table(ROWS)[:0], **told)
    assert isinstance(made.to_pandas().born.dropna().iloc[0], datetime.date)


def test_columns_without_names_are_refused() -> None:
    with pytest.raises(wp.PlanError, match="need names"):
        wp.tables.synthesize(np.zeros((3, 2)), bins={"age": [0, 9]})


@for_each(
    ("values", "cells", "drawn"),
    [
        (["1", "2", "x", ""], {"bins": [0, 5]}, int),
        (["1", "2"], {"categories": np.arange(1, 3)}, int),
        (["1.5", "2"], {"bins": [0, 2.5, 4]}, float),
        (["1.50", "2.25"], {"bins": [Decimal("0"), Decimal("2.5")]}, Decimal),
        (["2024-02-29"], {"categories": [datetime.date(2024, 2, 29)]}, datetime.date),
        (["a", "b"], {"categories": ["a", "b"]}, str),
    ],
)
def test_text_is_read_as_the_type_of_its_cells(values: list[str], cells: dict[str, Any], drawn: type) -> None:
    given = wp.attribute("x", **cells)
    query = wp.source("t", x=str | None)
    marginals = wp.simulate(plan_table(query, [given], 1), {"t": [(value,) for value in values] * 200}, seed=1)
    rows = fit_table(marginals, count=40).rows.columns["x"]
    assert {type(value) for value in rows if value not in (None, "other")} == {drawn}
