"""People with several tables on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wpinq.cli.main import main

DECLARED = """source patients(home: (region: str)?, visits: list[(day: date, ward: str), 5])
  with person = "who", ids = int, last = {visits = day}, columns = {visits = {day = "date"}};
"""
PROGRAM = """var often = patients.Where(p => count(p.visits) > 1).Agg(1000000, people: Count());
var wards = patients.SelectMany(p => p.visits, divisor: 5).By("ward", keys: ["A", "B"])
  .Agg(1000000, rows: Count(), days: CountDistinct("day"));
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "home.csv").write_text("who,region\n1,n\n2,s\n")
    visits = [f"{who},2024-01-{day:02},A" for who in (1, 3) for day in range(1, 4)]
    (tmp_path / "visits.csv").write_text("\n".join(["who,date,ward", *visits, ""]))
    (tmp_path / "program.wpq").write_text(DECLARED + PROGRAM)
    return tmp_path


def run(folder: Path, *more: str) -> int:
    given = ["--source", f"patients.home={folder / 'home.csv'}", "--budget", "patients=4000000"]
    return main(["run", str(folder / "program.wpq"), *given, *more, "--ledger", str(folder / "ledger.db")])


def test_tables_are_given_by_name(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files, "--source", f"patients.visits={files / 'visits.csv'}") == 0
    out = capsys.readouterr().out
    assert "patients: 2000000" in out
    assert "at most 1 of home, 5 of visits in one record" in out
    assert "rows of visits of people in patients, each of weight 1/5" in out
    row = next(line for line in out.splitlines() if line.lstrip().startswith('"A"'))
    assert [round(float(number)) for number in re.findall(r"(\S+) \(", row)] == [6, 3]


def test_a_table_without_a_file_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files) == 2
    assert "give --source patients.visits=FILE" in capsys.readouterr().err
    assert run(files, "--source", f"patients={files / 'home.csv'}") == 2
    assert "it has patients.home, patients.visits" in capsys.readouterr().err
    assert not (files / "ledger.db").exists()
