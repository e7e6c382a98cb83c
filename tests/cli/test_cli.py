"""The command line, run as a user would, on the graph that comes with the project."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.cli import main
from wpinq.plan.operator import REGISTRY

ROOT = Path(__file__).parents[2]
GRAPH = ROOT / "examples" / "data" / "les-miserables.txt"
UNDIRECTED = "edges=undirected,drop-loops,drop-duplicates"

PROGRAM = """
source edges(src: int, dst: int);
parameter epsilon = 0.5;
var ccdf = edges.Select(e => e.src).Shave(1.0).Select(p => p.index);
var nodes = ccdf.NoisyCount(epsilon, over: range(0, 30));
var parity = edges.Select(e => e.src % 2).NoisyCount(epsilon);
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.wpq"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def run(program: Path, ledger: Path, *more: str, budget: str = "5", graph: Path = GRAPH) -> int:
    return main(
        [
            "run",
            str(program),
            "--source",
            f"edges={graph}",
            "--budget",
            f"edges={budget}",
            "--ledger",
            str(ledger),
            *more,
        ]
    )


def test_run_prints_bill_answers_intervals_and_what_remains(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(program, tmp_path / "l.db") == 0
    printed = capsys.readouterr().out
    assert printed.index("The bill:") < printed.index("nodes: NoisyCount(0.5)")
    assert "95 % interval" in printed
    assert "… 10 more keys" in printed
    assert printed.rstrip().endswith("Remaining budget of edges: 4 of 5")


def test_run_as_json_holds_loadable_answers(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, tmp_path / "l.db", "--json", "--save", str(tmp_path / "saved")) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["bill"] == {"edges": "1"}
    assert data["remaining"] == {"edges": "4"}
    answers = wp.Answers.from_json(data["answers"]["nodes"])
    assert answers.keys == tuple(range(30))
    saved = wp.Answers.load(tmp_path / "saved" / "nodes.json")
    assert (saved.values == answers.values).all()


def test_a_second_run_spends_again_and_a_declared_version_does_not(program: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    assert run(program, ledger) == 0
    assert run(program, ledger) == 0
    for _ in range(2):
        assert run(program, ledger, "--data-version", "edges=2026") == 0
    with wp.Session(ledger) as session:
        assert session.spent("edges") == 3


def test_a_parameter_changes_the_bill(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, tmp_path / "l.db", "--parameter", "epsilon=0.25") == 0
    assert "edges: 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (["--budget", "edges=0.1"], 3, "nothing was spent"),
        (["--edge-list", "edges=refuse-duplicates,sideways"], 2, "no option 'sideways'"),
        (["--budget", "nodes=1"], 2, "no source 'nodes'"),
        (["--budget", "edges"], 2, "NAME=VALUE"),
        (["--parameter", "delta=1"], 7, "delta"),
    ],
)
def test_errors_are_one_line_with_an_exit_code(
    arguments: list[str],
    code: int,
    fragment: str,
    program: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = ["run", str(program), "--source", f"edges={GRAPH}", "--ledger", str(tmp_path / "l.db")]
    if not any(item.startswith("edges=0") for item in arguments):
        base += ["--budget", "edges=5"] if arguments != ["--budget", "edges"] else []
    assert main(base + arguments) == code
    captured = capsys.readouterr()
    assert fragment in captured.err
    assert captured.err.startswith("wpinq: ")
    if code != 7:
        assert captured.err.count("\n") == 1


def test_broken_data_are_refused_before_anything_is_spent(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("1 2\n3\n", encoding="utf-8")
    ledger = tmp_path / "l.db"
    assert run(program, ledger, graph=broken) == 4
    assert capsys.readouterr().err.startswith("wpinq: ")
    with wp.Session(ledger) as session, pytest.raises(wp.LedgerError):
        session.spent("edges")


def test_a_broken_program_shows_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.wpq"
    path.write_text("source edges(src: int);\nvar q = edges.Selct(e => e.src);\n", encoding="utf-8")
    assert main(["explain", str(path)]) == 7
    error = capsys.readouterr().err
    assert "line 2" in error
    assert "^" in error
    assert "Select" in error


def test_a_program_without_keys_is_refused_before_the_data_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "open.wpq"
    path.write_text("source edges(src: int, dst: int);\nvar m = edges.NoisyCount(1);\n", encoding="utf-8")
    assert run(path, tmp_path / "l.db", graph=tmp_path / "absent.txt") == 2
    assert "over:" in capsys.readouterr().err


def test_explain_shows_plan_and_bill_without_data(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(program)]) == 0
    printed = capsys.readouterr().out
    assert "Shave(1.0)" in printed
    assert "weights, not counts" in printed
    assert "The bill of all, released together:\nedges: 1" in printed


def test_budget_shows_changes_and_verifies(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "l.db"
    assert run(program, ledger) == 0
    capsys.readouterr()
    assert main(["budget", str(ledger), "--set", "edges=7.5", "--history", "--verify"]) == 0
    printed = capsys.readouterr().out
    assert "edges: spent 1 of 7.5, 6.5 remaining" in printed
    assert "debit edges 1" in printed
    assert "The ledger is whole" in printed
    assert main(["budget", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accounts"][0]["remaining"] == "13/2"
    assert main(["budget", str(tmp_path / "absent.db")]) == 6


def test_the_main_job_of_the_readme(tmp_path: Path) -> None:
    """As a process of its own, with nothing on stderr but names of steps."""
    finished = subprocess.run(
        [
            sys.executable, "-m", "wpinq", "run", str(ROOT / "examples" / "graph.wpq"),
            "--source", f"edges={GRAPH}", "--edge-list", UNDIRECTED, "--budget", "edges=20",
            "--ledger", str(tmp_path / "graph.db"), "--progress",
        ],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert "Remaining budget of edges:" in finished.stdout
    steps = [line.split("] ", 1)[1] for line in finished.stderr.splitlines()]
    assert set(steps) <= {"Source", *REGISTRY}, "progress names steps and nothing else"
