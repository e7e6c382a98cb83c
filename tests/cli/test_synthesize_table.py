"""`wpinq synthesize-table` as a user runs it: from a file to rows, a report and a page; refusals spend nothing."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pandas as pd
import pytest

import wpinq as wp
from tests.support.parameters import tenth
from wpinq.cli.main import main

ATTRIBUTES = [
    *("--attribute", "age:int?=bins:0,18,30,65,90"),
    *("--attribute", 'city=Oslo,"Rome, Italy"'),
    *("--attribute", "income:float=bins:0,1e4,50000.5"),
    *("--attribute", "joined:date=bins:2020-01-01,2021-01-01,2022-12-31"),
    *("--attribute", "rooms:int=0..3,7"),
]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    with open("people.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "age", "city", "income", "joined", "rooms", "remark-1"])
        for i in range(1500):
            age = draw.choice(["", "abc", str(draw.randrange(0, 90))])
            city = draw.choice(["Oslo", "Rome, Italy", "Xanadu", ""])
            joined = f"202{draw.randrange(4)}-0{draw.randrange(1, 10)}-1{draw.randrange(10)}"
            rows.writerow([i % 700, age, city, f"{draw.random() * 60000:.2f}", joined, draw.randrange(9), "x"])
    return tmp_path / "people.csv"


def command(*arguments: object) -> int:
    return main(["synthesize-table", *map(str, arguments)])


def test_from_file_to_rows_report_and_page(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command(
        *(
            "people.csv",
            *ATTRIBUTES,
            "--epsilon",
            "2",
            "--records",
            "1500",
            "--out",
            "rows.csv",
            "--report",
            "report.json",
        ),
        *("--page", "page.html", "--ledger", "l.db", "--budget", "5", "--data-version", "1", "--seed", "3"),
    )
    printed, errors = capsys.readouterr()
    assert code == 0, errors
    assert errors == "new ledger: l.db\n"
    assert printed.startswith("The bill:\npeople: 2\n  protects one row, of weight 1\n")
    order = ["The bill", "Expected half-width of each cell", "Measurement complete", "Remaining budget", "Wrote"]
    assert sorted(order, key=printed.index) == order
    assert printed.count("--drop-other age") == 1, "said before it is paid for"
    assert printed.index("--drop-other age") < printed.index("Expected half-width")
    rows = pd.read_csv("rows.csv")
    assert list(rows.columns) == ["age", "city", "income", "joined", "rooms"]
    assert abs(len(rows) - 1500) < 100
    assert set(rows.city.dropna()) <= {"Oslo", "Rome, Italy", "other"}
    assert rows.age.dropna().between(0, 90).all()
    assert set(rows.rooms.dropna()) <= {0, 1, 2, 3, 7}
    assert "Xanadu" not in (people.parent / "rows.csv").read_text() + printed
    report = json.loads((people.parent / "report.json").read_text())
    assert [each["name"] for each in report["attributes"]] == list(rows.columns)
    assert report["attributes"][0]["labels"][-2:] == ["missing", "other"]
    assert report["attributes"][1]["labels"] == ["Oslo", "Rome, Italy", "other"]
    assert len(report["marginals"]) == 15, "each attribute and all pairs"
    assert "chosen: each attribute and 10 of 10 pairs; noise outweighs none of them" in printed
    assert all(each["half_width"] > 0 for each in report["marginals"] + report["measured"])
    assert report["rows"]["count"] == len(rows)
    assert not report["simulated"]
    assert (people.parent / "page.html").read_text().startswith("<!DOCTYPE html>")
    marginals = wp.MarginalTables.load("rows.csv.marginals.json")
    assert marginals.to_json()["half_widths"] == pytest.approx([each["half_width"] for each in report["marginals"]])
    assert main(["ledger", "show", "l.db"]) == 0
    assert "people: spent 2 of 5, 3 remaining; protects one row" in capsys.readouterr().out


def test_other_rows_of_the_same_marginals_cost_nothing(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [
        *("people.csv", *ATTRIBUTES[:4], "--epsilon", "1", "--ledger", "l.db", "--budget", "1", "--data-version", "1")
    ]
    assert command(*told, "--out", "a.csv") == 0
    assert command(*told, "--out", "b.csv", "--seed", "9", "--weighted-rows", "3") == 0, "replayed"
    capsys.readouterr()
    assert command("--from-marginals", "a.csv.marginals.json", "--out", "c.csv") == 0
    assert "age: 'other' holds all other values, written as null or an empty field" in capsys.readouterr().out
    assert command("--from-marginals", "a.csv.marginals.json", "--out", "d.parquet", "--draw", "50") == 0
    folder = people.parent
    first, second = (
        json.loads((folder / name).read_text()) for name in ("a.csv.marginals.json", "b.csv.marginals.json")
    )
    assert first["answers"]["values"] == second["answers"]["values"]
    assert (folder / "a.csv").read_text() == (folder / "c.csv").read_text()
    weighted = pd.read_csv("b.csv")
    assert list(weighted.columns) == ["age", "city", "weight"]
    assert weighted.weight.sum() == pytest.approx(len(pd.read_csv("a.csv")), abs=1)
    assert len(pd.read_parquet("d.parquet")) == 50
    capsys.readouterr()
    assert main(["ledger", "show", "l.db"]) == 0
    assert "spent 1 of 1" in capsys.readouterr().out


def test_another_choice_of_attributes_is_paid_by_the_same_account(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paid = ["--epsilon", "1", "--ledger", "l.db", "--budget", "2"]
    assert command("people.csv", *ATTRIBUTES[:4], *paid, "--out", "a.csv") == 0
    assert command("people.csv", *ATTRIBUTES[4:], *paid, "--out", "b.csv", "--order", "1") == 0
    assert command("people.csv", *ATTRIBUTES[4:], *paid, "--out", "c.csv", "--order", "1") == 3
    assert "nothing was spent" in capsys.readouterr().err
    assert not (people.parent / "c.csv").exists()


def test_a_person_can_be_the_unit(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["people.csv", *ATTRIBUTES[:4], "--epsilon", "0.5", "--person", "id", "--at-most", "2", "--out", "rows.csv"]
    assert command(*told, "--drop-other", "city", "--marginal", "age,city") == 0
    printed, errors = capsys.readouterr()
    assert "people: 1\n  protects one person, at most 2 rows, of weight 2\n" in printed
    assert "no ledger: the cost of this run is not recorded" in errors
    report = json.loads((people.parent / "rows.csv.json").read_text())
    assert report["kind"] == "number of rows of people, at most 2 per person"
    assert report["attributes"][1]["labels"] == ["Oslo", "Rome, Italy"]
    assert report["total"]["estimate"] < 900, "rows of other cities are left out"


def test_parquet_has_types_of_its_own(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame(
        {"smokes": [True, False, None] * 100, "age": [20.5, None, 40.0] * 100, "sex": ["f", "m", "f"] * 100}
    )
    frame.smokes = frame.smokes.astype("boolean")
    frame.to_parquet("t.parquet")
    told = ["--attribute", "smokes?", "--attribute", "age=bins:0,30,60", "--attribute", "sex=f,m", "--epsilon", "3"]
    assert command("t.parquet", *told, "--out", "rows.parquet") == 0
    rows = pd.read_parquet("rows.parquet")
    assert rows.smokes.dtype == object or str(rows.smokes.dtype) == "bool"
    assert set(rows.smokes.dropna()) == {True, False}
    report = json.loads((people.parent / "rows.parquet.json").read_text())
    assert [each["labels"] for each in report["attributes"]] == [
        ["False", "True", "missing"],
        ["[0, 30)", "[30, 60]", "other"],
        ["f", "m", "other"],
    ]


ASKED = ["people.csv", "--epsilon", "1", *ATTRIBUTES]
REFUSED: dict[str, tuple[list[str], int, str]] = {
    "nothing": ([], 2, "give FILE, --epsilon and an --attribute"),
    "no epsilon": (["people.csv", "--attribute", "city=a"], 2, "give FILE, --epsilon"),
    "no attribute": (["people.csv", "--epsilon", "1"], 2, "give FILE, --epsilon"),
    "no file": (["none.csv", "--epsilon", "1", "--attribute", "city=a"], 2, "there is no file"),
    "no table": (["people.txt", "--epsilon", "1", "--attribute", "city=a"], 2, "no .csv or .parquet ending"),
    "no column": (["people.csv", "--epsilon", "1", "--attribute", "cty=a"], 2, "did you mean `city`"),
    "no name": (["people.csv", "--epsilon", "1", "--attribute", "remark-1=a"], 2, "that can be declared"),
    "no type": (["people.csv", "--epsilon", "1", "--attribute", "age=bins:0,9"], 2, "age:int=bins:0,9 or age:float"),
    "another type": (["people.csv", "--epsilon", "1", "--attribute", "age:number=bins:0,9"], 2, "no column type"),
    "not public": (["people.csv", "--epsilon", "1", "--attribute", "city"], 2, "are not public"),
    "not an int": (["people.csv", "--epsilon", "1", "--attribute", "age:int=bins:0,x"], 2, "'x' is no int"),
    "not a date": (["people.csv", "--epsilon", "1", "--attribute", "joined:date=bins:1,2"], 2, "'1' is no date"),
    "a range": (["people.csv", "--epsilon", "1", "--attribute", "age:int=5..1"], 2, "is no range"),
    "bins that fall": (["people.csv", "--epsilon", "1", "--attribute", "age:int=bins:9,0"], 1, "ends that ascend"),
    "one twice": ([*ASKED, "--attribute", "city=b"], 1, "two attributes"),
    "no such other": ([*ASKED, "--drop-other", "sex"], 2, "there is no such attribute"),
    "both orders": (
        [*ASKED, "--order", "1", "--marginal", "age"], 2, "give one of them",
    ),
    "no marginal": ([*ASKED, "--marginal", "age,cty"], 1, "did you mean"),
    "hopeless": ([*ASKED, "--epsilon", "0.01", "--records", "1500"], 1, "nothing was spent. Use"),
    "records": ([*ASKED, "--records", "0"], 1, "more than 0"),
    "epsilon": (["people.csv", "--epsilon", "0", *ATTRIBUTES], 1, "epsilon"),
    "a budget alone": ([*ASKED, "--budget", "1"], 2, "go together"),
    "a version alone": ([*ASKED, "--data-version", "1"], 2, "--data-version replays"),
    "a person alone": ([*ASKED, "--person", "id"], 2, "go together"),
    "no person": ([*ASKED, "--person", "who", "--at-most", "1"], 1, "no column 'who'"),
    "draws": ([*ASKED, "--draw", "0"], 2, "--draw is at least 1"),
    "both draws": ([*ASKED, "--draw", "9", "--weighted-rows"], 2, "give one of them"),
    "no bool": (["people.csv", "--epsilon", "1", "--attribute", "age:bool=false,maybe"], 2, "no column type 'bool'"),
    "a seed": ([*ASKED, "--seed", "-1"], 2, "--seed is at least 0"),
    "the report": ([*ASKED, "--report", "no/r.json"], 2, "cannot write no/r.json"),
    "over the table": ([*ASKED, "--report", "people.csv"], 2, "write to another"),
    "over the rows": ([*ASKED, "--page", "rows.csv"], 2, "write to another"),
    "over the head": ([*ASKED, "--report", "l.db-head"], 2, "is kept beside"),
    "over the log": ([*ASKED, "--page", "./l.db-wal"], 2, "is kept beside"),
    "an open quote": (["people.csv", "--epsilon", "1", "--attribute", 'city="Oslo'], 2, "double quotes"),
    "two lines": (["people.csv", "--epsilon", "1", "--attribute", "city=Oslo\nRome"], 2, "double quotes"),
    "no model": ([*ASKED, "--model", "tree"], 1, "a model is 'mixture' or 'full table'"),
    "no small table": (
        [*ASKED, "--attribute", "id:int=0..1999", "--model", "full-table"], 1, "a full table has at most",
    ),
    "too many rows": ([*ASKED, "--draw", "1000000000000"], 1, "at most"),
    "both": (["people.csv", "--from-marginals", "m.json"], 2, "leave out FILE"),
    "both told": (["--from-marginals", "m.json", "--epsilon", "1"], 2, "leave out FILE"),
    "no marginals": (["--from-marginals", "people.txt"], 1, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", tenth(REFUSED, 2))
def test_what_cannot_be_is_refused_and_spends_nothing(
    people: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code, words = REFUSED[name]
    (people.parent / "people.txt").write_text("a\n")
    ledger = ["--ledger", "l.db", "--budget", "1"] if "people.csv" in arguments and "alone" not in name else []
    assert command(*arguments, *ledger, "--out", "rows.csv") == code
    printed, errors = capsys.readouterr()
    assert words in errors
    assert errors.startswith("wpinq: ")
    assert printed == ""
    assert not (people.parent / "l.db").exists()
    assert not (people.parent / "rows.csv").exists()


def test_the_ending_says_the_format(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("people.csv", *ATTRIBUTES, "--epsilon", "1", "--out", "rows.txt") == 2
    assert "name a .csv or .parquet file" in capsys.readouterr().err


def test_what_was_paid_for_is_kept_where_the_rows_cannot_be_made(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["people.csv", *ATTRIBUTES[:4], "--epsilon", "1", "--out", "rows.csv", "--weighted-rows", "1000000000"]
    told += ["--model", "full-table", "--seed", "5", "--page", "my page.html"]
    assert command(*told) == 1, "how many rows that is, only the noisy number of records says"
    errors = capsys.readouterr().err
    again = "wpinq synthesize-table --from-marginals rows.csv.marginals.json --out rows.csv --model full-table --seed 5"
    options = "--weighted-rows 1000000000 --page my page.html"
    assert f"the marginals are paid and stored. Continue with: {again} {options}" in errors.replace("'", "")
    assert main(again.split()[1:]) == 0
    assert (people.parent / "rows.csv").exists()


def test_what_was_paid_for_is_not_written_over(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["people.csv", "--attribute", "city=Oslo", "--epsilon", "1", "--ledger", "l.db", "--budget", "3"]
    assert command(*told, "--out", "rows.csv") == 0
    kept = (people.parent / "rows.csv.marginals.json").read_bytes()
    capsys.readouterr()
    assert command(*told, "--out", "rows.csv") == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert "make rows from it with --from-marginals rows.csv.marginals.json, or name another file" in errors
    assert main(["ledger", "show", "l.db"]) == 0
    assert "1 of 3" in capsys.readouterr().out
    assert command(*told, "--out", "rows.csv", "--marginals", "more.json") == 0
    assert (
        (people.parent / "rows.csv.marginals.json").read_bytes() == kept != (people.parent / "more.json").read_bytes()
    )


def test_marginals_of_a_program_make_rows(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.wpq").write_text(
        "source people(city: str?, rooms: int?);\n"
        'var m = people.Marginals(2, Attribute("city", categories: ["Oslo"]), Attribute("rooms", bins: [0, 3, 9]));\n'
    )
    told = ["m.wpq", "--source", "people=people.csv", "--budget", "people=2", "--ledger", "l.db"]
    assert main(["explain", "m.wpq", "--accuracy"]) == 0
    assert "city x rooms  count  2" in capsys.readouterr().out
    assert main(["run", *told, "--save", "saved", "--output", "m.csv"]) == 0
    assert "city     rooms" in capsys.readouterr().out
    assert list(pd.read_csv("m.csv").columns) == ["city", "rooms", "estimate", "low", "high", "kind"]
    assert main(["ledger", "show", "l.db", "--program", "m.wpq"]) == 0
    assert "further releases of m: 0" in capsys.readouterr().out
    assert command("--from-marginals", "saved/m.json", "--out", "rows.csv") == 0
    assert set(pd.read_csv("rows.csv").city.dropna()) == {"Oslo", "other"}


def test_the_head_of_another_ledger_is_not_written_over(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["people.csv", "--attribute", "city=Oslo", "--epsilon", "1"]
    assert command(*told, "--out", "rows.csv", "--ledger", "l.db", "--budget", "3") == 0
    head = (people.parent / "l.db-head").read_bytes()
    assert command(*told, "--out", "rows.csv", "--report", "l.db-head") == 2
    assert "is kept beside" in capsys.readouterr().err
    assert (people.parent / "l.db-head").read_bytes() == head
