"""What becomes of answers that were paid for when the disk is full, the reader goes away, or nobody listens."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.cli.main import main

ROOT = Path(__file__).parents[2]
GRAPH = ROOT / "examples" / "data" / "les-miserables.txt"
PROGRAM = """
source edges(src: int, dst: int);
var nodes = edges.Select(e => e.src).NoisyCount(0.5, over: range(0, 3000));
"""

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    program = tmp_path / "program.wpq"
    program.write_text(PROGRAM, encoding="utf-8")
    edges = ["--source", f"edges={GRAPH}", "--edge-list", "edges=undirected,drop-loops,drop-duplicates"]
    return ["run", str(program), *edges, "--budget", "edges=2", "--ledger", str(tmp_path / "l.db")]


def shell(arguments: list[str], redirection: str, folder: Path) -> tuple[int, str]:
    """The exit code of `wpinq ARGUMENTS REDIRECTION` and what stood on stderr."""
    script = f'"$@" {redirection}'
    words = ["bash", "-c", script, "bash", sys.executable, "-m", "wpinq", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    return done.returncode, done.stderr


def spent(folder: Path) -> Fraction:
    with wp.Session(folder / "l.db") as session:
        return session.spent("edges")


@full
def test_a_full_disk_before_the_debit_costs_nothing(command: list[str], tmp_path: Path) -> None:
    code, said = shell(command, ">/dev/full", tmp_path)
    assert code == 1
    assert said.endswith("wpinq: the output could not be written (No space left on device)\n")
    assert not (tmp_path / "l.db").exists()


@full
def test_a_full_disk_after_the_debit_leaves_the_answers_beside_the_ledger(command: list[str], tmp_path: Path) -> None:
    code, said = shell([*command, "--json"], ">/dev/full", tmp_path)
    assert code == 8
    assert "Traceback" not in said
    assert said.count("\n") == 2
    assert "(No space left on device): this run spent 0.5 of edges. The answers are saved in " in said
    folder = Path(said.rsplit("saved in ", 1)[1].strip())
    assert folder == tmp_path / "l.db.unprinted1"
    assert len(wp.Answers.load(folder / "nodes.json")) == 3000
    assert spent(tmp_path) == Fraction(1, 2)


@full
def test_a_full_disk_after_the_debit_and_a_version_that_replays(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versioned = [*command, "--json", "--data-version", "edges=1"]
    code, said = shell(versioned, ">/dev/full", tmp_path)
    assert code == 8
    assert said.endswith("this run spent 0.5 of edges. The same command repeats the same answers at no cost\n")
    code, said = shell(versioned, ">/dev/full", tmp_path)
    assert code == 8
    assert "this run spent nothing." in said
    assert main(versioned) == 0
    assert json.loads(capsys.readouterr().out)["remaining"] == {"edges": "1.5"}


@full
def test_a_full_disk_again_leaves_the_answers_of_before(command: list[str], tmp_path: Path) -> None:
    for number in (1, 2):
        code, said = shell([*command, "--json"], ">/dev/full", tmp_path)
        assert code == 8
        assert said.endswith(f"saved in {tmp_path / 'l.db.unprinted'}{number}\n")
    one, two = (wp.Answers.load(tmp_path / f"l.db.unprinted{n}" / "nodes.json").values.tolist() for n in (1, 2))
    assert one != two


def test_a_full_disk_everywhere_is_told_as_a_loss(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("wpinq.cli.run.answers_table", full)
    monkeypatch.setattr(wp.Answers, "save", full)
    assert main(command) == 8
    said = capsys.readouterr().err
    assert "could not be saved in" in said and "and are lost. With --data-version" in said


@full
def test_files_are_written_when_nothing_can_be_printed(command: list[str], tmp_path: Path) -> None:
    told = ["--json", "--save", str(tmp_path / "saved"), "--output", str(tmp_path / "n.csv")]
    code, said = shell([*command, *told], ">/dev/full", tmp_path)
    assert code == 8
    assert said.endswith(f"The answers are saved in {tmp_path / 'saved'}\n")
    assert (tmp_path / "n.csv").read_text().startswith("key,estimate,low,high,kind\n")
    assert not (tmp_path / "l.db.unprinted1").exists()


def test_a_reader_that_goes_away(command: list[str], tmp_path: Path) -> None:
    code, said = shell([*command, "--rows", "0"], '| head -1 >/dev/null; exit "${PIPESTATUS[0]}"', tmp_path)
    assert code == 141
    assert "went away: this run spent 0.5 of edges. The answers are saved in " in said
    assert "Traceback" not in said and "Exception ignored" not in said
    assert len(wp.Answers.load(tmp_path / "l.db.unprinted1" / "nodes.json")) == 3000


def test_a_closed_stdout_is_found_before_anything_is_spent(command: list[str], tmp_path: Path) -> None:
    code, said = shell(command, ">&-", tmp_path)
    assert (code, said) == (
        2,
        "wpinq: stdout is closed, so answers could not be printed: open it, or send it to a file\n",
    )
    assert not (tmp_path / "l.db").exists()


def test_a_closed_stderr_costs_no_answers(command: list[str], tmp_path: Path) -> None:
    assert shell([*command, "--progress", "--json"], ">out.json 2>&-", tmp_path) == (0, "")
    assert len(json.loads((tmp_path / "out.json").read_text())["answers"]["nodes"]["values"]) == 3000


@full
@pytest.mark.parametrize("arguments", [["ledger", "show", "l.db"], ["--help"], ["--version"], []])
def test_what_costs_nothing_fails_in_one_line(arguments: list[str], tmp_path: Path) -> None:
    wp.Session(tmp_path / "l.db").close()
    code, said = shell(arguments, ">/dev/full", tmp_path)
    assert code == 1
    assert said == "wpinq: the output could not be written (No space left on device)\n"


def test_a_failed_evaluation_says_what_it_cost(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wpinq.sinks.laplace.add_laplace", lambda *_: 1 / 0)
    assert main(command) == 5
    assert "wpinq: this run spent 0.5 of edges\nwpinq: the evaluation failed after the debit" in capsys.readouterr().err


def test_signs_that_the_terminal_lacks_cost_no_answers(tmp_path: Path) -> None:
    program, words = tmp_path / "p.wpq", tmp_path / "w.csv"
    program.write_text(
        'source w(t: str) with unit = "Ä";\nvar n = w.Select(r => r.t).NoisyCount(1, over: ["ä"]);\n', encoding="utf-8"
    )
    words.write_text("t\nä\n", encoding="utf-8")
    arguments = ["run", str(program), "--source", f"w={words}", "--budget", "w=1", "--ledger", "l.db"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    words_ = [sys.executable, "-m", "wpinq", *arguments]
    done = subprocess.run(words_, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "\\u00e4" in done.stdout and "protects \\xc4" in done.stdout


# --- rows in files ---


TABLE = """
source sales(city: str, year: int) with facts = [unit_weights];
var rows = sales.Select(s => new { city = s.city, year = s.year })
    .NoisyCount(0.5, over: [("York, or \\"so\\"", 1), ("Ulm", 2)]);
var years = sales.Select(s => s.year).Quantile(0.5, 0.5, over: range(0, 3));
"""


def sales(folder: Path, *more: str) -> int:
    (folder / "t.wpq").write_text(TABLE)
    (folder / "s.csv").write_text("city,year\nUlm,2\nBonn,1\n")
    told = ["--source", f"sales={folder / 's.csv'}", "--budget", "sales=9", "--ledger", str(folder / "s.db")]
    return main(["run", str(folder / "t.wpq"), *told, *more])


def test_rows_in_csv_and_parquet_are_those_of_the_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    files = [("rows", "r.csv"), ("rows", "r.parquet"), ("years", "y.csv"), ("years", "y.parquet")]
    for name, file in files:
        version = ["--data-version", "sales=1", "--save", str(tmp_path / "saved")]
        assert sales(tmp_path, *version, "--output", f"{name}={tmp_path / file}") == 0
        read = pandas.read_csv if file.endswith("csv") else pandas.read_parquet
        frame = wp.Answers.load(tmp_path / "saved" / f"{name}.json").to_pandas()
        keys = ["city", "year"] if name == "rows" else []
        assert list(frame) == [*keys, "estimate", "low", "high", "kind"]
        written = read(tmp_path / file)
        assert written.astype(object).where(written.notna(), None).values.tolist() == frame.values.tolist()


def test_one_release_needs_no_name(command: list[str], tmp_path: Path) -> None:
    assert main([*command, "--output", str(tmp_path / "n.csv")]) == 0
    assert len((tmp_path / "n.csv").read_text().splitlines()) == 3001


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("r.csv", "--output rows=FILE.csv; it has rows, years"),
        ("cities=r.csv", "so name one"),
        ("rows=r.xlsx", "name a .csv or .parquet file"),
        ("rows=no/such/r.csv", "cannot write no/such/r.csv"),
    ],
)
def test_an_output_that_cannot_be_is_found_first(
    given: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sales(tmp_path, "--output", given) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "s.db").exists()


@full
def test_an_output_on_a_full_disk_costs_no_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").mkdir()  # put in the way after the check
    assert sales(tmp_path, "--output", f"rows={tmp_path / 'r.csv'}") == 2
    (tmp_path / "r.csv").rmdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("wpinq.mcmc.settings.os.fsync", lambda _: os.write(os.open("/dev/full", os.O_WRONLY), b"x"))
        assert sales(tmp_path, "--output", f"rows={tmp_path / 'r.csv'}") == 8
    said = capsys.readouterr()
    assert "Remaining budget of sales" in said.out
    assert "r.csv; this run spent 1 of sales. Keep what was printed" in said.err
    assert sorted(path.name for path in tmp_path.iterdir() if "r.csv" in path.name) == []


@pytest.mark.parametrize("name", ["l.csv", "l.parquet"])
@pytest.mark.parametrize("linked", [False, True])
def test_rows_are_never_written_over_the_ledger(command: list[str], tmp_path: Path, name: str, linked: bool) -> None:
    ledger = tmp_path / name
    command[-1] = str(ledger)
    assert main(command) == 0
    before = ledger.read_bytes()
    written = tmp_path / f"other{ledger.suffix}" if linked else ledger
    if linked:
        written.hardlink_to(ledger)
    assert main([*command, "--output", str(written)]) == 2
    assert ledger.read_bytes() == before


def test_rows_and_saved_answers_are_written_over_nothing_that_is_read(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "edges.csv"
    graph.write_text("src,dst\n1,2\n2,3\n", encoding="utf-8")
    given = [f"edges={graph}" if word == f"edges={GRAPH}" else word for word in command]
    saved = [*given[:-1], str(tmp_path / "nodes.json"), "--save", str(tmp_path)]
    for refused in ([*given, "--output", str(graph)], saved):
        assert main(refused) == 2
        assert "write to another" in capsys.readouterr().err
    assert graph.read_text(encoding="utf-8").startswith("src,dst")
    assert not (tmp_path / "nodes.json").exists() and not (tmp_path / "l.db").exists()


def test_two_releases_are_not_written_to_one_file(command: list[str], tmp_path: Path) -> None:
    more = "var ends = edges.Select(e => e.dst).NoisyCount(0.5, over: range(0, 9));"
    (tmp_path / "program.wpq").write_text(PROGRAM + more, encoding="utf-8")
    one, other = (["--output", f"{name}={tmp_path / 'rows.csv'}"] for name in ("nodes", "ends"))
    assert main([*command, *one, *other]) == 2
    assert not (tmp_path / "l.db").exists()


def test_an_interrupt_while_files_are_written_keeps_the_answers(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wpinq.cli.run.write_answers", interrupted)
    assert main([*command, "--output", str(tmp_path / "n.csv")]) == 130
    assert "this run spent 0.5 of edges. The answers are saved in " in capsys.readouterr().err
    assert len(wp.Answers.load(tmp_path / "l.db.unprinted1" / "nodes.json")) == 3000


def test_nothing_is_written_over_a_ledger_that_the_command_was_not_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.db"
    with wp.Session(ledger=ledger):
        pass
    before = ledger.read_bytes()
    for places in (["--out", str(ledger)], ["--out", str(tmp_path / "graph.txt"), "--report", str(ledger)]):
        assert main(["synthesize", "--resume", "--folder", str(tmp_path / "run"), *places]) == 2
        assert "a database, which may be a ledger: write to another file" in capsys.readouterr().err
    assert ledger.read_bytes() == before
