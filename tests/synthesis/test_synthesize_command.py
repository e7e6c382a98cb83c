"""`wpinq synthesize` as a user runs it, on the graph that comes with the project; killed, and resumed."""

from __future__ import annotations

import json
import math
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.parameters import tenth
from wpinq.cli.main import main
from wpinq.graphs import fit_graph, read_edges
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.fit import load_run, prepare_folder, save_run
from wpinq.mcmc import CheckpointError, Settings, run
from wpinq.synthesis import measure_graph

ROOT = Path(__file__).parents[2]
GRAPH = ROOT / "examples" / "data" / "les-miserables.txt"


def command(*arguments: object, graph: Path | None = GRAPH) -> int:
    return main(["synthesize", *([str(graph)] if graph else []), *map(str, arguments)])


def test_from_file_to_edge_list_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, ledger = tmp_path / "graph.txt", tmp_path / "ledger.db"
    code = command(
        *("--epsilon", 4, "--query", "tbi", "--out", out, "--steps", 5000, "--chains", 2, "--ledger", ledger),
        *("--budget", 5, "--plots", tmp_path / "plots", "--max-nodes", 100),
    )
    printed, progress = capsys.readouterr()
    assert code == 0
    assert printed.startswith("The bill:\nedges: 4\n  protects one undirected edge, of weight 2\n")
    assert printed.index("The bill") < printed.index("Measurement complete") < printed.index("triangles:")
    assert "chain 0: 100%" in progress
    assert "chain 1: 100%" in progress
    assert "score" not in progress, "steps and time only"
    edges = read_edges(out)
    report = json.loads((tmp_path / "graph.txt.json").read_text())
    assert report["bill"] == {"edges": "4"}
    assert report["simulated"] is False
    assert report["graph"]["edges"] == len(edges) == len({frozenset(edge) for edge in edges})
    assert len(report["chains"]) == 2
    assert (tmp_path / "plots" / "degrees.png").exists()
    assert main(["ledger", "show", str(ledger)]) == 0
    assert "edges: spent 4 of 5, 1 remaining" in capsys.readouterr().out


def test_plots_are_loaded_for_plots_alone(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from wpinq.cli.main import main
        assert main(["synthesize", *sys.argv[1:]]) == 2
        print("igraph" in sys.modules, "matplotlib" in sys.modules)
    """
    run_with = [sys.executable, "-c", code, "--out", str(tmp_path / "graph.txt")]
    for more, loaded in (([], "True False"), (["--plots", str(tmp_path / "plots")], "True True")):
        done = subprocess.run([*run_with, *more], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded


def test_without_a_ledger_it_says_that_nothing_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--epsilon", 4, "--query", "tbi", "--node", "str", "--out", tmp_path / "g.txt", "--steps", 100) == 0
    assert "the cost of this run is not recorded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epsilon", "1", "--ledger", "l.db"], "--ledger and --budget go together"),
        (["--epsilon", "1", "--data-version", "1"], "--data-version replays from a ledger"),
        ([], "give FILE and --epsilon"),
        (["--epsilon", "1", "--share", "tbi"], "--share takes NAME=VALUE"),
        (["--epsilon", "1", "--resume", "--chains", "2"], "leave out FILE, --epsilon, --query, --chains"),
        (["--epsilon", "1", "--query", "tags", "--stop-at-noise"], "tags cannot stop at the noise level"),
        (["--epsilon", "1", "--out", "no/such/g.txt"], "cannot write no/such/g.txt"),
        (["--epsilon", "1", "--out", "g.txt", "--report", "g.txt"], "write to another"),
        (["--epsilon", "1", "--ledger", "empty.db", "--budget", "1"], "is empty: put the ledger back"),
        (["--epsilon", "1e-10"], "at least 1e-9"),
        (["--epsilon", "1", "--share", "tbi=1"], "give a share for each of"),
        (["--epsilon", "1", "--chains", "0"], "chains must be an integer of at least 1"),
        (["--epsilon", "1", "--beta", "0"], "beta is a finite number above 0"),
        (["--epsilon", "1", "--steps", "0"], "steps must be an integer of at least 1"),
        (["--epsilon", "1", "--query", "tbx"], "there is no method 'tbx'"),
        (["--epsilon", "1", "--max-degree", "0"], "the bound on degree"),
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "1", "--folder", "no/such"], None),
    ],
)
def test_a_command_line_that_makes_no_sense_spends_nothing(
    arguments: list[str], complaint: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if complaint is None:
        (tmp_path / "no").write_text("a file, no folder")
        complaint = "cannot make the folder"
    (tmp_path / "empty.db").touch()
    assert command("--out", "g.txt", "--query", "tbi", *arguments) in (1, 2, 6)
    printed, errors = capsys.readouterr()
    assert errors.startswith("wpinq: ")
    assert complaint in errors
    assert errors.count("\n") == 1
    assert printed == ""
    assert not (tmp_path / "l.db").exists()
    assert not (tmp_path / "g.txt.run" / "run.json").exists()


def test_the_graph_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tmp_path / "graph.txt"
    graph.write_bytes(GRAPH.read_bytes())
    assert command("--epsilon", 4, "--out", graph, graph=graph) == 2
    assert "write to another" in capsys.readouterr().err
    assert graph.read_bytes() == GRAPH.read_bytes()


@pytest.mark.parametrize(("fall", "looks", "ended"), [(1.0, 10, "score stalled"), (-math.inf, 50, "all steps done")])
def test_without_steps_there_are_400_for_each_edge(
    fall: float,
    looks: int,
    ended: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise is anew each time, and not every walk comes to rest: here any fall is rest, or none is."""
    monkeypatch.setattr(run, "REST_FALL", fall)
    monkeypatch.setattr(run, "REST_SCORE", -1.0)
    out = tmp_path / "g.txt"
    assert command("--epsilon", 8, "--query", "tbi", "--out", out) == 0
    printed, progress = capsys.readouterr()
    steps = 400 * len(read_edges(out))
    assert (
        "Then one chain of 400 steps per edge of the seed graph, at most 20,000,000, fewer once the score stalls."
        in printed
    )
    done = json.loads((tmp_path / "g.txt.json").read_text())["chains"][0]["trace"]["steps"][-1]
    assert done == min(looks * -(-steps // 50), steps)
    assert f"steps of the chain: {done:,}, {done / steps * 400:.4g} per edge; {ended}" in printed
    assert ended in progress
    assert json.loads((tmp_path / "g.txt.json").read_text())["settings"]["steps"] == steps
    first = out.read_bytes()
    (tmp_path / "g.txt.run" / "chain-0.npz").unlink()
    assert command("--resume", "--out", out, graph=None) == 0
    assert out.read_bytes() == first


def test_only_its_owner_can_open_the_folder_of_a_run(tmp_path: Path) -> None:
    assert command("--epsilon", 4, "--query", "tbi", "--out", tmp_path / "g.txt", "--steps", 100, "--quiet") == 0
    for folder in (tmp_path / "g.txt.run", tmp_path / "g.txt.run" / "answers"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_with_a_run_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "g.txt"
    assert command("--epsilon", 4, "--query", "tbi", "--out", out, "--steps", 100) == 0
    assert command("--epsilon", 4, "--query", "tbi", "--out", out, "--steps", 100) == 2
    assert "holds a run: resume it with --resume" in capsys.readouterr().err
    first = out.read_bytes()
    out.unlink()
    assert command("--resume", "--out", out, graph=None) == 0
    assert out.read_bytes() == first


def test_a_run_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    answers = measure_graph(GRAPH, find_method("tbi"), 2)
    told = Settings(1000, chains=3, stop_at_noise=2.0)
    (tmp_path / "answers").mkdir()
    save_run(tmp_path, "tbi", told, answers)
    method, settings, read_back, nodes = load_run(tmp_path)
    assert nodes is None
    assert settings.chunk_steps == told.chunk_steps
    assert settings.stop_at_noise == 2.0
    assert method.name == "tbi"
    assert {name: list(table.items()) for name, table in read_back.items()} == {
        name: list(table.items()) for name, table in answers.items()
    }
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(CheckpointError, match="damaged"):
        load_run(tmp_path)
    with pytest.raises(CheckpointError, match="no run"):
        load_run(tmp_path / "answers")


@pytest.mark.parametrize("number", tenth(["triangle_count", "largest_degree"]))
def test_a_run_of_before_a_number_of_the_graph_was_measured_goes_on(tmp_path: Path, number: str) -> None:
    folder, out = tmp_path / "g.txt.run", tmp_path / "g.txt"
    answers = measure_graph(GRAPH, find_method("tags"), 8)
    del answers[number]
    settings = Settings(2000, seed=3)
    prepare_folder(folder)
    save_run(folder, "tags", settings, answers)
    assert command("--resume", "--out", out, "--quiet", graph=None) == 0
    assert read_edges(out) == [tuple(edge) for edge in fit_graph(answers, "tags", settings).edges.tolist()]
    assert number not in json.loads((tmp_path / "g.txt.json").read_text())["measurements"]


@pytest.mark.long
@pytest.mark.parametrize(("query", "steps"), [("tags", 100_000), ("tbi", 2_000_000)])
def test_a_run_killed_with_signal_9_ends_as_if_it_had_not_been(query: str, steps: int, tmp_path: Path) -> None:
    answers = measure_graph(GRAPH, find_method(query), 8)
    settings = Settings(steps, chains=2, seed=9, chunk=steps // 200, checkpoint_every=4)
    (tmp_path / "answers").mkdir()
    save_run(tmp_path, query, settings, answers)
    out = tmp_path / "graph.txt"
    resume = ["synthesize", "--resume", "--folder", str(tmp_path), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "wpinq", *resume, "--quiet"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    try:
        first = tmp_path / "chain-0.npz"
        written: set[int] = set()
        while len(written) < 3 and process.poll() is None:
            if first.exists():
                written.add(first.stat().st_mtime_ns)
            time.sleep(0.001)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    with np.load(first) as held:
        done = json.loads(held["header"].tobytes())["trace"]["steps"]
    assert 0 < done[-1] < steps
    assert main([*resume, "--quiet"]) == 0
    through = fit_graph(answers, query, settings, statistics=None)
    assert read_edges(out) == [tuple(edge) for edge in through.edges.tolist()]
    report = json.loads((tmp_path / "graph.txt.json").read_text())
    assert [chain["trace"]["score"] for chain in report["chains"]] == [t.score for t in through.samples.traces]


DYING = """
import os, signal, sys
from wpinq.graphs.synthesis import fit as measuring
save = measuring.save_answers

def dying(folder, name, table):
    save(folder, name, table)
    if name == "degree_sequence":
        os.kill(os.getpid(), signal.SIGKILL)

measuring.save_answers = dying
from wpinq.cli.main import main
main(sys.argv[1:])
"""


def killed_while_measuring(*arguments: object) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DYING, "synthesize", str(GRAPH), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


@pytest.mark.long
def test_a_run_killed_while_it_measures_is_repeated_by_its_command_and_pays_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, ledger, answers = tmp_path / "g.txt", tmp_path / "l.db", tmp_path / "g.txt.run" / "answers"
    wanted = ("--epsilon", 4, "--query", "tbi", "--steps", 100, "--out", out, "--quiet")
    paid = ("--ledger", ledger, "--budget", 4, "--data-version", "1")
    killed_while_measuring(*wanted, *paid)
    before = {path.name: path.read_bytes() for path in answers.iterdir()}
    assert set(before) == {"degree_ccdf.json", "degree_sequence.json"}
    assert command("--resume", "--out", out, graph=None) == 1
    assert "repeat the command that began it" in capsys.readouterr().err
    assert command(*wanted, *paid) == 0
    printed = capsys.readouterr().out
    assert printed.index("The bill:\nedges: 4\n") < printed.index("Measurement complete")
    assert {name: (answers / name).read_bytes() for name in before} == before
    assert (answers / "tbi.json").exists()
    assert json.loads((tmp_path / "g.txt.json").read_text())["bill"] == {"edges": "4"}
    assert main(["ledger", "show", str(ledger)]) == 0
    assert "edges: spent 4 of 4, 0 remaining" in capsys.readouterr().out


@pytest.mark.parametrize("paid", [(), ("--ledger", "l.db", "--budget", 4), ("--ledger", "l.db", "--budget", 4, "V")])
def test_answers_that_no_ledger_repeats_are_not_paid_for_again(
    paid: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a version nothing replays, and a new ledger has spent nothing: the same answers would cost twice."""
    monkeypatch.chdir(tmp_path)
    told = [word for each in paid for word in (("--data-version", "1") if each == "V" else (each,))]
    kept = tmp_path / "g.txt.run" / "answers" / "degree_ccdf.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("paid")
    assert command("--epsilon", 4, "--query", "tbi", "--steps", 100, "--out", "g.txt", *told) == 2
    assert "holds answers that were paid for" in capsys.readouterr().err
    assert kept.read_text() == "paid"
    assert not (tmp_path / "l.db").exists()


def interrupt(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt


def test_what_is_refused_before_the_debit_leaves_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, out, ledger = tmp_path / "graph.txt", tmp_path / "g.txt", tmp_path / "l.db"
    graph.write_text("1 2\n3\n")
    paid = ("--query", "tbi", "--ledger", ledger, "--budget", 4, "--out", out, "--steps", 100, "--quiet")
    assert command("--epsilon", 4, *paid, graph=graph) == 4
    graph.write_text("1 2\n3 1\n")
    assert command("--epsilon", 5, *paid, graph=graph) == 3
    assert command("--epsilon", 4, *paid, graph=GRAPH) == 0
    assert len(read_edges(out)) > 100


def test_an_interrupted_run_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, ledger = tmp_path / "g.txt", tmp_path / "l.db"
    told = ("--epsilon", 4, "--query", "tbi", "--out", out, "--steps", 100)
    told += ("--ledger", ledger, "--budget", 4, "--data-version", "1")
    for name, words in (("measure_graph", "The same command repeats"), ("fit.fit_graph", "Resume with: wpinq ")):
        with monkeypatch.context() as patched:
            patched.setattr(f"wpinq.cli.synthesize.{name}", interrupt)
            assert command(*told) == 130
        *_, error = capsys.readouterr().err.splitlines()
        assert error.startswith(f"wpinq: interrupted; debits are not refunded. {words}")
    assert main(shlex.split(error.rpartition(": wpinq ")[2])) == 0
    assert out.exists()


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "synthetic_graph.py"))
    example["main"](tmp_path / "made")
    assert "average_clustering" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "made").iterdir()} >= {"graph.txt", "report.json", "degrees.png"}


def test_edges_in_named_columns_of_a_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The graph of the edge list, under its version: the answers are replayed and nothing is spent."""
    pairs = [line.split()[:2] for line in GRAPH.read_text().splitlines() if not line.startswith("#")]
    table = tmp_path / "graph.csv"
    table.write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    told = ("--epsilon", 4, "--query", "tbi", "--steps", 100, "--quiet", "--max-nodes", 100)
    told += ("--ledger", tmp_path / "ledger.db", "--budget", 5, "--data-version", "v1")
    assert command(*told, "--out", tmp_path / "a.txt") == 0
    assert command(*told, "--out", tmp_path / "b.txt", "--columns", "from,to", graph=table) == 0
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()
    for graph, more in ((table, ()), (GRAPH, ("--columns", "from,to")), (table, ("--columns", "from"))):
        assert command(*told, "--out", tmp_path / "c.txt", *more, graph=graph) == 2
    assert "--columns takes the names of two columns" in capsys.readouterr().err
