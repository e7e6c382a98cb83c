"""Released tables: frames with typed columns, JSON, text, the command line, and what kind of number a column holds."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F, graphs
from wpinq.api.query import Query
from wpinq.cli.main import main
from wpinq.measure.answers import Answers

DAY = datetime.date(2024, 1, 2)


@pytest.fixture
def table(people: Query, rows: list[tuple[Any, ...]]) -> wp.Table:
    asked = people.by("city", "joined", keys={"city": ["Oslo", None], "joined": [rows[0][4]]}).agg(
        n=wp.count(), m=wp.mean("salary", 0, 300), day=wp.most_common("joined", [row[4] for row in rows]), epsilon=30
    )
    found: wp.Table = wp.simulate(asked, {"people": rows}, seed=1)
    return found


def test_frames_have_the_same_columns_and_their_types(table: wp.Table) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = table.to_columns()
    assert list(table.to_pandas().columns) == list(columns) == table.to_polars().columns
    assert table.to_arrow().to_pydict() == columns
    types = dict(zip(table.to_polars().columns, table.to_polars().dtypes, strict=True))
    assert (types["city"], types["joined"], types["n"], types["day"]) == (
        polars.String,
        polars.Date,
        polars.Float64,
        polars.Date,
    )
    assert "day_low" not in columns  # of a choice
    assert polars.DataFrame(table).equals(table.to_polars())
    assert len(pandas.DataFrame(columns)) == len(table) == 2
    assert table.to_pandas().equals(pandas.DataFrame(columns))
    cells = [getattr(table["n"][key], end) for key in table.keys for end in ("estimate", "low", "high")]
    assert {*map(type, [*cells, *columns["n"], *columns["m_low"]])} == {float}, "and none of numpy's"


def test_a_wider_confidence_is_a_wider_interval(table: wp.Table) -> None:
    key = table.keys[0]
    near, far = table.row(key, 0.5), table.row(key, 0.99)
    for name in ("n", "m"):
        assert far[name].low < near[name].low <= near[name].estimate <= near[name].high < far[name].high
    assert near["day"].low is None


def test_kinds_come_from_the_plan(people: Query) -> None:
    asked = people.by("sex").agg(n=wp.count(), d=wp.count_distinct("age"), m=wp.mean("age", 0, 9), epsilon=1)
    assert [asked.kind(name).name for name in "ndm"] == ["count", "count", "mean"]
    shops = wp.source("shops", city=str, shop=str)
    joined = people.select("city", "age").join(shops, on="city").by("shop", keys=["a"]).agg(n=wp.count(), epsilon=1)
    assert joined.kind("n").name == "weight, not a count"
    shown = wp.simulate(joined, {"people": [], "shops": []}, seed=1)
    assert "n: weight, not a count:" in repr(shown)
    assert "SIMULATED" in repr(shown)


SAVED: dict[str, Callable[[Query], wp.Tabulation]] = {
    "several columns": lambda p: p.by("city", "joined", keys={"city": ["Oslo", None], "joined": [DAY]}).agg(
        n=wp.count(), m=wp.mean("salary", 0, 300), day=wp.most_common("joined", [DAY]), epsilon=30
    ),
    "unequal shares": lambda p: p.by("sex").agg(
        n=wp.count(), d=wp.count_distinct("age"), s=wp.sum("salary", -1.5, 9), epsilon="0.7",
        split={"n": 1, "d": 2, "s": 4},
    ),
    "functions": lambda p: p.where(lambda r: r.age > 20).by(decade=lambda r: r.age // 10, keys=[2, 3]).agg(
        q=wp.quantile(lambda r: F.sum(F.map([1, 2], lambda n: n * r.age)), 0.3, range(0, 300, 20)),
        low=wp.median("salary", [Decimal("1.5"), 99]),
        epsilon=2,
    ),
    "all others": lambda p: p.by("city", keys=["Oslo"], other="elsewhere").agg(n=wp.count(), epsilon=1),
    "all records": lambda p: p.agg(n=wp.count(), m=wp.median("age", range(0, 90, 9)), epsilon=1),
    "listed": lambda p: p.by("age", keys=wp.integers(18, 80), above=9).agg(
        n=wp.count(), m=wp.mean("salary", 0, 300), epsilon=2
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_table_is_read_as_it_was(name: str, people: Query, rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    asked = SAVED[name](people)
    table = wp.simulate(asked, {"people": rows}, seed=1)
    table.save(tmp_path / "table.json")
    loaded = wp.Table.load(tmp_path / "table.json")
    assert loaded.tabulation == asked
    assert loaded.to_columns(0.8) == table.to_columns(0.8)
    assert (repr(loaded), loaded.to_json(), loaded.keys) == (repr(table), table.to_json(), table.keys)
    assert (str(loaded.tabulation), str(loaded.tabulation.bill())) == (str(asked), str(asked.bill()))


def test_a_table_that_was_asked_for_key_by_key_is_read_as_it_was(people: Query, rows: list[tuple[Any, ...]]) -> None:
    with wp.Session() as session:
        session.protect(people, rows, budget=1)
        live = session.release(people.by("city").agg(n=wp.count(), m=wp.mean("age", 0, 9), epsilon=1))
        table = live.at(["Rome", None])
    loaded = wp.Table.from_json(json.loads(json.dumps(table.to_json())))
    assert (loaded.keys, loaded.to_columns()) == (("Rome", None), table.to_columns())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.update(format="wpinq answers"), "not a file of a table"),
        (lambda data: data.pop("asked"), "do not hold a table"),
        (lambda data: data.update(keys=data["keys"][::-1]), "not those of n"),
        (lambda data: data["answers"].pop("m"), "not those of m"),
        (lambda data: data["answers"].update(n=data["answers"]["day"]), "not those of n"),
        (lambda data: data["answers"].update(more=[]), "other aggregates"),
        (lambda data: data["answers"].update(day=data["answers"]["day"] * 2), "not those of day"),
        (lambda data: data["asked"]["epsilons"].update(n="9"), "not those of n"),
        (lambda data: data["asked"]["aggregates"]["m"].update(arguments={}), "do not hold a table"),
    ],
)
def test_what_is_no_table_is_refused(table: wp.Table, change: Callable[[Any], object], words: str) -> None:
    data = json.loads(json.dumps(table.to_json()))
    change(data)
    with pytest.raises(wp.AnswersError, match=words):
        wp.Table.from_json(data)


def test_json_holds_the_columns_and_the_answers(table: wp.Table, tmp_path: Path) -> None:
    table.save(tmp_path / "table.json")
    held = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert held["columns"]["city"] == ["Oslo", None]
    assert list(held["columns"]) == list(table.to_columns())
    assert Answers.from_json(held["answers"]["n"][0]).keys == table.answers["n"][0].keys


def test_the_command_line_runs_and_explains_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, data = tmp_path / "p.wpq", tmp_path / "people.csv"
    program.write_text(
        'source people(city: str, age: int);\nvar t = people.By("city", keys: ["a", "b"])'
        '.Agg(1, n: Count(), q: Median("age", range(0, 100)));\n',
        encoding="utf-8",
    )
    data.write_text("city,age\na,3\nb,50\n", encoding="utf-8")
    given = ["--source", f"people={data}", "--budget", "people=2", "--ledger", str(tmp_path / "ledger.db")]
    assert main(["explain", str(program)]) == 0
    assert "median of age, one of 100 candidates" in capsys.readouterr().out
    assert main(["run", str(program), *given, "--save", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "t, q (Median): ChooseInGroups(0.5)" in shown
    assert "Remaining budget of people: 1 of 2" in shown
    assert json.loads((tmp_path / "out" / "t.json").read_text(encoding="utf-8"))["columns"]["city"] == ["a", "b"]
    assert main(["run", str(program), *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"]["t"]["format"] == "wpinq table"


def test_groups_without_keys_cannot_be_run_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.wpq"
    program.write_text('source people(city: str);\nvar t = people.By("city").Agg(1, n: Count());\n', encoding="utf-8")
    assert main(["run", str(program), "--ledger", str(tmp_path / "ledger.db")]) != 0
    assert "t has no public keys" in capsys.readouterr().err


def test_distinct_values_of_split_rows_are_counted_in_pieces_of_their_weight(people: Query) -> None:
    """Lists share a row's weight out: a value that weighs half a row is one value."""
    pairs = people.select_many(lambda r: [F.where(r.sex == "f", 1, 2), 3])
    asked = pairs.agg(n=wp.count(), d=wp.count_distinct(lambda x: x), epsilon=10**6)
    assert [asked.kind(name).name for name in "nd"] == ["rescaled count", "rescaled count"]
    row = wp.simulate(asked, {"people": [("Oslo", "f", 3, 1, datetime.date(2024, 1, 1))] * 2}, seed=1).row()
    assert row["n"].estimate == pytest.approx(4, abs=0.01)
    assert row["d"].estimate == pytest.approx(2, abs=0.01)  # the values 1 and 3, and not twice as many
    one = people.agg(d=wp.count_distinct("age"), epsilon=1)
    assert str(one.kind("d")) == "number of different values of age in rows of people"


def test_a_group_of_several_columns_is_asked_for_as_a_tuple(people: Query) -> None:
    with wp.Session() as session:
        session.protect(people, [("Oslo", "f", 3, 1, datetime.date(2024, 1, 1))], budget=1)
        live = session.release(people.by("city", "sex").agg(n=wp.count(), epsilon=1))
        with pytest.raises(wp.PlanError, match="a key of 2 columns is a tuple"):
            live.at([None])
        assert live.at([(None, "f")]).to_columns()["city"] == [None]


def test_what_is_divided_by_another_number_at_each_key_is_not_called_a_count() -> None:
    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    whole = graphs.triangles_by_degree(graphs.symmetrize(edges))
    triples = Query(whole.plan.inputs[0])  # of which the recipe sorts each
    asked = triples.by(degrees=lambda t: F.sort(t), keys=[(2, 2, 2)]).agg(n=wp.count(), epsilon=10**6)
    assert asked.measurements[0].plan == whole.plan
    found = wp.simulate(asked, {"edges": [(0, 1), (1, 2), (2, 0)]}, seed=1)
    assert found[(2, 2, 2)]["n"].estimate == pytest.approx(0.25, abs=0.001)  # one triangle, of weight 3/12
    assert asked.kind("n").name == "weight, not a count"
    assert "each of weight 3/(x² + y² + z²)" in repr(found)
