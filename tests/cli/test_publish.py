"""`wpinq publish`: one file an epoch, whatever happens, and never paid for twice."""

from __future__ import annotations

import datetime
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import wpinq as wp
from wpinq.cli import publish
from wpinq.cli.main import main

PROGRAM = """
parameter epoch = "2026-01-01";
source views(page: str, when: timestamp) with person = "user", at_most = 2, every = day, start = "2026-01-01",
    on = when, distinct = page, budget_each = 10;
var pages = views.Epoch(epoch).By("page", keys: ["x", "y"]).Agg(1, views: Count());
"""
DAY = "2026-11-27"
ROWS = "user,page,when\na,x,2026-11-27T01:00:00\nb,x,2026-11-27T23:59:59\n"


def prepare(folder: Path) -> Path:
    (folder / "views").mkdir()
    (folder / "views" / f"{DAY}.csv").write_text(ROWS)
    (folder / "daily.wpq").write_text(PROGRAM)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare(tmp_path)


def run(folder: Path, *more: str, epoch: str = DAY) -> int:
    data = ["--data", str(folder / "views" / "{epoch}.csv"), "--ledger", str(folder / "l.db")]
    return main(["publish", str(folder / "daily.wpq"), "--epoch", epoch, *data, "--folder", str(folder / "out"), *more])


def spent(folder: Path, epoch: str = DAY) -> Fraction:
    with wp.Session(folder / "l.db") as session:
        return session.spent(f"views:{epoch}")


def test_an_epoch_is_released_once_into_a_file_of_its_own(folder: Path) -> None:
    assert run(folder) == 0
    first = (folder / "out" / f"{DAY}.csv").read_bytes()
    assert run(folder) == run(folder, epoch="2026-11-28") == 0
    assert (folder / "out" / f"{DAY}.csv").read_bytes() == first
    assert sorted(os.listdir(folder / "out")) == [f"{DAY}.csv", "2026-11-28.csv"]
    assert spent(folder) == spent(folder, "2026-11-28") == 2
    assert run(folder, "--data-version", f"{DAY}=2") == 0
    assert spent(folder) == 4
    assert (folder / "out" / f"{DAY}.csv").read_bytes() != first


def test_an_epoch_without_a_file_is_published_as_any_other(folder: Path) -> None:
    assert run(folder, epoch="2026-12-24") == 0
    assert (folder / "out" / "2026-12-24.csv").read_text().startswith("page,views")
    assert run(folder, epoch="2025-12-24") != 0  # the calendar has none of that name, whatever files there are
    assert sorted(os.listdir(folder / "out")) == ["2026-12-24.csv"]


@pytest.mark.parametrize("row", ["c,,2026-11-27T05:00:00\n", ",x,2026-11-27T05:00:00\n", '"c\n'])
def test_a_refused_epoch_publishes_one_constant_file(folder: Path, row: str) -> None:
    with (folder / "views" / f"{DAY}.csv").open("a") as file:
        file.write(row)
    assert run(folder) == 4
    assert (folder / "out" / f"{DAY}.failed").read_bytes() == publish.FAILED
    (folder / "views" / f"{DAY}.csv").write_text(ROWS)
    assert run(folder, "--data-version", f"{DAY}=2") == 0
    assert os.listdir(folder / "out") == [f"{DAY}.csv"]


def test_a_failed_evaluation_publishes_the_same_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wpinq.kernel.noisy_evaluation import NoisyEvaluator

    def fails(*given: Any) -> Any:
        raise wp.EvaluationFailed("no reason is disclosed")

    with monkeypatch.context() as broken:
        broken.setattr(NoisyEvaluator, "draw", fails)
        assert run(folder) != 0
    assert (folder / "out" / f"{DAY}.failed").read_bytes() == publish.FAILED
    assert run(folder) == 0
    assert spent(folder) == 2


def test_other_content_under_one_version_is_refused_in_every_process(folder: Path) -> None:
    assert run(folder) == 0
    published = (folder / "out" / f"{DAY}.csv").read_bytes()
    (folder / "views" / f"{DAY}.csv").write_text(ROWS.replace("b,x", "b,y"))
    assert run(folder) == 4
    assert sorted(os.listdir(folder / "out")) == [f"{DAY}.csv"]
    assert (folder / "out" / f"{DAY}.csv").read_bytes() == published
    (folder / "views" / f"{DAY}.csv").unlink()
    assert run(folder) == 4
    note = folder / "views" / f".views.{DAY}.read"
    assert note.stat().st_mode & 0o777 == 0o600
    sha256 = note.read_text().split()[1]
    assert sha256.encode() not in (folder / "l.db").read_bytes()  # it is a function of the data
    (folder / "views" / f"{DAY}.csv").write_text(ROWS)
    assert run(folder) == 0
    assert spent(folder) == 2


def test_the_files_of_a_pattern_are_the_rows_of_their_epoch(folder: Path) -> None:
    """Of a pattern too, no file is an epoch without rows; files that are there are read, or nothing is published."""
    day = folder / "views" / DAY
    day.mkdir()
    rows = [{"user": str(n), "page": "x", "when": datetime.datetime(2026, 11, 27)} for n in range(1000)]
    pl.DataFrame(rows).write_parquet(day / "part.parquet")
    pattern = ("--data", str(folder / "views" / "{epoch}" / "*.parquet"))
    assert run(folder, *pattern) == run(folder, *pattern, epoch="2026-11-28") == 0
    counts = [
        (folder / "out" / f"{label}.csv").read_text().splitlines()[1].split(",")[1] for label in (DAY, "2026-11-28")
    ]
    assert [round(float(count) / 1000) for count in counts] == [1, 0]


def test_a_line_that_was_never_written_whole_is_no_version(folder: Path) -> None:
    (folder / "views" / f".views.{DAY}.read").write_text("\n1 abc")
    assert run(folder) == 0
    assert run(folder) == 0


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", ["write_answers", "_wait"])
def test_after_a_crash_nothing_is_paid_twice(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*given: Any) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(publish, place, killed)
        with pytest.raises(Killed):
            run(folder)
    assert not os.listdir(folder / "out")
    assert run(folder) == 0
    assert spent(folder) == 2


def test_a_crash_at_each_step_of_the_ledger_loses_or_repeats_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the debit nothing is paid; behind it, the next run draws what was paid and not stored."""
    from wpinq.kernel.ledger.ledger import Ledger

    steps = (
        ("open_accounts", False, None),
        ("debit", False, 0),
        ("store_together", False, 2),
        ("store_together", True, 2),
    )
    for step, behind, paid in steps:
        with monkeypatch.context() as broken:
            real = getattr(Ledger, step)

            def killed(self: Any, *given: Any, real: Any = real, behind: bool = behind, **more: Any) -> Any:
                if behind:
                    real(self, *given, **more)
                raise Killed

            broken.setattr(Ledger, step, killed)
            with pytest.raises(BaseException) as stopped:
                run(folder)
            assert stopped.type is Killed
        if paid is not None:
            assert spent(folder) == paid
    assert run(folder) == 0
    assert spent(folder) == 2


def test_files_are_put_in_place_at_the_declared_moment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(publish.time, "sleep", waited.append)
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    assert run(folder, "--at", soon.isoformat()) == 0
    assert 80_000 < max(waited) <= 86_400, "other threads may sleep meanwhile"
    assert run(folder, "--at", "2026-01-01T00:00") == 0
    assert 0 in waited
    assert "is over" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (PROGRAM.replace("views.Epoch(epoch)", "other") + "", "other"),
        ("source v(x: int); var a = v.NoisyCount(1, over: [(1,)]);", "no parameter"),
        ('parameter epoch = "a"; source v(x: int); var a = v.NoisyCount(1, over: [(1,)]);', "--series"),
        (PROGRAM + "source w(x: int); var b = w.NoisyCount(1, over: [(1,)]);", "nothing else"),
        (PROGRAM + "var b = views.Epoch(epoch).NoisyCount(1);", "public keys"),
    ],
)
def test_programs_that_cannot_be_published_are_refused(
    folder: Path, program: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "daily.wpq").write_text(program)
    assert run(folder) != 0
    assert said in capsys.readouterr().err
    assert not (folder / "l.db").exists()


def test_a_folder_that_cannot_be_read_is_no_epoch_without_rows(folder: Path) -> None:
    assert run(folder, "--data", "http://example.org/{epoch}.parquet") == 2  # an address is no missing file
    data = ["--data", str(folder / "no" / "{epoch}.csv"), "--ledger", str(folder / "l.db")]
    given = ["publish", str(folder / "daily.wpq"), "--epoch", DAY, *data, "--folder", str(folder / "out")]
    assert main(given) == 2
    assert main([*given[:5], str(folder / "views" / "one.csv"), *given[6:]]) == 2


def test_run_and_serve_refuse_a_series_and_name_publish(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(folder / "views" / f"{DAY}.csv")
    run_it = ["run", str(folder / "daily.wpq"), "--source", f"views={data}", "--budget", "views=3"]
    (folder / "s.toml").write_text(
        "declarations = '''source views(when: timestamp) with every = day, start = \"2026-01-01\", on = when;'''\n"
        f'[service]\nledger = "s.db"\nusers = "u.db"\n[sources.views]\nfile = "{data}"\nbudget = 2\n'
    )
    for given in ([*run_it, "--ledger", str(folder / "l.db")], ["serve", str(folder / "s.toml")]):
        assert main(given) == 2
        assert "wpinq publish" in capsys.readouterr().err
    assert not (folder / "l.db").exists()
