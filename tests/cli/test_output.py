"""What becomes of answers that were paid for when the disk is full, the reader goes away, or nobody listens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.cli import main

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
    assert folder == tmp_path / "l.db.unprinted"
    assert len(wp.Answers.load(folder / "nodes.json")) == 3000
    assert spent(tmp_path) == Fraction(1, 2)


@full
def test_a_full_disk_after_the_debit_and_a_version_that_replays(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versioned = [*command, "--json", "--data-version", "edges=1"]
    code, said = shell(versioned, ">/dev/full", tmp_path)
    assert code == 8
    assert said.endswith("this run spent 0.5 of edges. The same command gives the same answers again, for nothing\n")
    code, said = shell(versioned, ">/dev/full", tmp_path)
    assert code == 8
    assert "this run spent nothing." in said
    assert main(versioned) == 0
    assert json.loads(capsys.readouterr().out)["remaining"] == {"edges": "3/2"}


@full
def test_a_full_disk_everywhere_is_told_as_a_loss(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "l.db.unprinted").write_text("in the way")
    code, said = shell([*command, "--json"], ">/dev/full", tmp_path)
    assert code == 8
    assert "could not be saved in" in said and "and are lost. With --data-version" in said


def test_a_reader_that_goes_away(command: list[str], tmp_path: Path) -> None:
    code, said = shell([*command, "--rows", "0"], '| head -1 >/dev/null; exit "${PIPESTATUS[0]}"', tmp_path)
    assert code == 141
    assert "went away: this run spent 0.5 of edges. The answers are saved in " in said
    assert "Traceback" not in said and "Exception ignored" not in said
    assert len(wp.Answers.load(tmp_path / "l.db.unprinted" / "nodes.json")) == 3000


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
@pytest.mark.parametrize("arguments", [["budget", "l.db"], ["--help"], ["--version"], []])
def test_what_costs_nothing_fails_in_one_line(arguments: list[str], tmp_path: Path) -> None:
    wp.Session(tmp_path / "l.db").close()
    code, said = shell(arguments, ">/dev/full", tmp_path)
    assert code == 1
    assert said == "wpinq: the output could not be written (No space left on device)\n"


def test_a_failed_evaluation_says_what_it_cost(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wpinq.kernel.session.noisy", lambda *_: 1 / 0)
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
