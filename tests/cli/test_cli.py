"""The command line, run as a user would, on the graph that comes with the project."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.cli.main import main
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


def run(
    program: Path, ledger: Path, *more: str, budget: str = "5", graph: Path = GRAPH, edges: str | None = UNDIRECTED
) -> int:
    if edges is not None:
        more = ("--edge-list", edges, *more)
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
    assert printed.splitlines()[-2] == "Remaining budget of edges: 4 of 5"
    assert printed.splitlines()[-1].startswith("Head of the ledger: ")


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


@pytest.mark.parametrize(
    ("terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_messages_are_coloured_on_a_terminal_alone(
    terminal: bool, no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("NO_COLOR", no_color)
    if not no_color:
        monkeypatch.delenv("NO_COLOR")
    assert main(["run", "absent.wpq", "--ledger", "ledger.db"]) == 2
    assert ("\x1b[" in stderr.getvalue()) is coloured and "there is no file absent.wpq" in stderr.getvalue()


def test_warnings_are_told_and_never_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.wpq"
    path.write_text(
        "source a(src: int, dst: int); source b(src: int, dst: int); var n = a.Concat(b).Select(e => e.src % 2);"
        "var counts = n.NoisyCount(0.5, over: [0, 1]);",
        encoding="utf-8",
    )
    told = {"source": GRAPH, "budget": 5, "edge-list": "directed,drop-loops,drop-duplicates"}
    sources = [f"--{option}={name}={value}" for name in "ab" for option, value in told.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as PYTHONWARNINGS=error
        assert main(["run", str(path), *sources, "--ledger", str(tmp_path / "l.db")]) == 0
    assert "wpinq: 'b' has the same data as 'a'" in capsys.readouterr().err


def test_a_parameter_changes_the_bill(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, tmp_path / "l.db", "--param", "epsilon=0.25") == 0
    assert "edges: 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (["--budget", "edges=0.1"], 3, "Nothing was spent or written"),
        (["--edge-list", "edges=refuse-duplicates,sideways"], 2, "no option 'sideways'"),
        (["--edge-list", "edges=drop-loops"], 2, "directed or undirected"),
        (["--edge-list", "edges=directed,undirected"], 2, "'undirected' contradicts or repeats"),
        (["--edge-list", "edges=directed,keep-loops,drop-loops"], 2, "'drop-loops' contradicts or repeats"),
        (["--rows", "-1"], 2, "--rows is at least 0"),
        (["--budget", "edges=0.1e-9"], 2, "1e-9"),
        (["--budget", "nodes=1"], 2, "no source 'nodes'"),
        (["--budget", "edges"], 2, "NAME=EPSILON"),
        (["--param", "delta=1"], 7, "delta"),
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
    if "--edge-list" not in arguments:
        base += ["--edge-list", UNDIRECTED]
    assert main(base + arguments) == code
    assert not (tmp_path / "l.db").exists()  # where an account would keep the budget of a refused run
    captured = capsys.readouterr()
    assert fragment in captured.err
    error = captured.err
    assert error.startswith("wpinq: ")
    if code != 7:
        assert error.count("\n") == 1


def test_no_account_is_opened_where_another_has_too_little_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data, ledger = tmp_path / "p.wpq", tmp_path / "data.csv", tmp_path / "l.db"
    data.write_text("x\n1\n", encoding="utf-8")
    count = "{} = {}.Select(r => r.x % 2).NoisyCount(1, over: [0, 1]);"
    path.write_text("source a(x: int); var " + count.format("n", "a"), encoding="utf-8")
    first = ["--source", f"a={data}", "--budget", "a=1", "--ledger", str(ledger)]
    assert main(["run", str(path), *first]) == 0
    path.write_text("source a(x: int); source b(x: int); var " + count.format("n", "a.Concat(b)"), encoding="utf-8")
    second = ["--source", f"b={data}", "--budget", "b=1"]
    assert main(["run", str(path), *first, *second]) == 3
    assert "the remaining budget of a does not cover the bill" in capsys.readouterr().err
    with wp.Session(ledger) as session:
        assert [each.account for each in session.balances()] == ["a"]


def test_broken_data_are_refused_before_anything_is_spent(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("1 2\n3\n", encoding="utf-8")
    ledger = tmp_path / "l.db"
    assert run(program, ledger, graph=broken) == 4
    assert capsys.readouterr().err.splitlines()[1].startswith("wpinq: ")
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
    assert printed.count("Gives: number of rows of edges") == 2
    assert "The bill of all, released together:\nedges: 1" in printed


def test_a_bound_on_records_is_declared_checked_and_told_as_work(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(program), "--records-at-most", "edges=5000"]) == 0
    shown = capsys.readouterr().out
    assert "declared: at most 5,000 records" in shown
    assert "Work: at most" in shown
    ledger = tmp_path / "ledger.db"
    bounded = ("--records-at-most", "edges=3", "--param", "epsilon=0.1")
    program.write_text(PROGRAM.replace("NoisyCount(epsilon);", "NoisyCount(epsilon, over: [0, 1]);"), encoding="utf-8")
    assert run(program, ledger, *bounded) != 0
    assert "at most 3 records" in capsys.readouterr().err
    wrong = {"nodes=3": "no source 'nodes'", "edges=many": "whole number", "edges=0": "from 1 to 2^53"}
    for given, said in wrong.items():
        assert main(["explain", str(program), "--records-at-most", given]) != 0
        assert said in capsys.readouterr().err


def test_ledger_shows_changes_and_verifies(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "l.db"
    assert run(program, ledger) == 0
    capsys.readouterr()
    assert main(["ledger", "set", str(ledger), "--budget", "edges=7.5"]) == 0
    assert main(["ledger", "show", str(ledger), "--history"]) == 0
    assert main(["ledger", "verify", str(ledger)]) == 0
    printed = capsys.readouterr().out
    assert "edges: spent 1 of 7.5, 6.5 remaining" in printed
    assert "debit edges 1" in printed
    assert "The ledger is intact" in printed
    assert main(["ledger", "show", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accounts"][0]["remaining"] == "6.5"
    assert main(["ledger", "show", str(tmp_path / "absent.db")]) == 6


def test_a_ledger_without_sources_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "l.db"
    wp.Session(ledger).close()
    assert main(["ledger", "show", str(ledger)]) == 0
    assert capsys.readouterr().out == (
        "this ledger has no accounts: no source was protected and nothing was spent\n"
        f"Head of the ledger: 0:{64 * '0'}\n"
    )
    assert main(["ledger", "show", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accounts"] == []


def test_the_main_job_of_the_readme(tmp_path: Path) -> None:
    """As a process of its own, with nothing on stderr but the new ledger and names of steps."""
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
    first, *lines = finished.stderr.splitlines()
    assert first == f"new ledger: {tmp_path / 'graph.db'}"
    steps = [line.split("] ", 1)[1] for line in lines]
    assert steps
    assert set(steps) <= {"Source", *REGISTRY}, "progress names steps and nothing else"


# --- what must not happen in silence ----------------------------------------------------------------------------


def test_an_edge_list_needs_to_be_told_what_an_edge_is(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("g.txt", "g.gz", "g.tsv", "g.edges", "g"):
        graph = tmp_path / name
        graph.write_text("1 2\n", encoding="utf-8")
        assert run(program, tmp_path / "l.db", graph=graph, edges=None) == 2
        assert "--edge-list edges=undirected" in capsys.readouterr().err
    assert not (tmp_path / "l.db").exists()
    table = tmp_path / "g.csv"
    table.write_text("src,dst\n1,2\n", encoding="utf-8")
    assert run(program, tmp_path / "l.db", graph=table, edges=None) == 0


def test_edges_of_people_are_cut_by_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls, counting = tmp_path / "calls.csv", tmp_path / "p.wpq"
    calls.write_text("who,here,there\n" + "".join(f"{who},{a},{a + 1}\n" for who in (1, 2) for a in range(5)))

    def counted(whose: str, edges: str, at_most: int) -> tuple[int, str]:
        counting.write_text(
            f'source edges(src: int, dst: int) with person = "{whose}", at_most = {at_most};\n'
            "var n = edges.Select(e => 0).NoisyCount(1000000.0, over: [0]);\n"
        )
        ledger = tmp_path / f"{whose}{at_most}{edges}.db"
        options = ["--source", f"edges={calls}", "--budget", "edges=10000000", "--columns", "edges=here,there"]
        code = main(
            ["run", str(counting), *options, "--edge-list", f"edges={edges}", "--ledger", str(ledger), "--json"]
        )
        out, err = capsys.readouterr()
        return (0, err) if code else (round(json.loads(out)["answers"]["n"]["values"][0]), "")

    assert counted("who", "undirected,keep-duplicates", 2) == (4, "")
    assert counted("who", "directed,drop-duplicates", 5) == (5, "")
    assert counted("src", "directed,keep-duplicates", 1) == (5, "")
    assert "stood there before" in counted("who", "directed", 5)[1]
    assert "neither" not in counted("dst", "directed,keep-duplicates", 2)[1]
    assert "both directions" in counted("src", "undirected,keep-duplicates", 2)[1]


def test_one_undirected_edge_never_weighs_two_unless_told(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, ledger = tmp_path / "g.txt", tmp_path / "l.db"
    graph.write_text("1 2\n2 1\n", encoding="utf-8")
    assert run(program, ledger, graph=graph, edges="edges=undirected") == 4
    assert "drop duplicates" in capsys.readouterr().err
    assert run(program, ledger, graph=graph, edges="edges=undirected,keep-duplicates") == 0
    example = ROOT / "examples" / "graph.wpq"
    assert run(example, tmp_path / "e.db", graph=graph, edges="edges=undirected,keep-duplicates") == 4
    assert "unit_weights" in capsys.readouterr().err


@pytest.mark.parametrize("forged", ["\\u001b[2K", "\\u000aRemaining budget of edges: 99", "\\u202e", "\\u000d"])
def test_a_unit_cannot_forge_the_bill(forged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "forged.wpq"
    path.write_text(f'source edges(src: int, dst: int) with unit = "one edge{forged}";\n' + PROGRAM.split(";", 1)[1])
    assert run(path, tmp_path / "l.db") != 0
    captured = capsys.readouterr()
    assert "printable" in captured.err
    assert captured.out == ""
    with pytest.raises(wp.PlanError, match="printable"):
        wp.source("edges", int, unit=f"one edge{json.loads(chr(34) + forged + chr(34))}")


def test_a_folder_that_cannot_be_written_is_found_before_anything_runs(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(program, tmp_path / "l.db", "--save", str(tmp_path / "file" / "below")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("wpinq: --save: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "l.db").exists()


def test_answers_are_printed_when_they_cannot_be_saved(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "saved" / "nodes.json").mkdir(parents=True)
    assert run(program, tmp_path / "l.db", "--save", str(tmp_path / "saved")) == 8
    captured = capsys.readouterr()
    assert "Remaining budget of edges: 4 of 5" in captured.out
    assert captured.err.splitlines()[1].endswith("saved/nodes.json; this run spent 1 of edges. Keep what was printed")
    assert (tmp_path / "saved" / "parity.json").exists()


def test_answers_are_saved_when_they_cannot_be_printed(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> str:
        raise BrokenPipeError

    monkeypatch.setattr("wpinq.cli.run.answers_table", gone)
    assert run(program, tmp_path / "l.db", "--save", str(tmp_path / "saved")) == 141
    assert len(wp.Answers.load(tmp_path / "saved" / "nodes.json")) == 30


def test_a_new_ledger_is_said_once_and_an_empty_file_is_none(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, empty = tmp_path / "l.db", tmp_path / "empty.db"
    assert run(program, ledger, graph=tmp_path / "absent.txt") == 2
    assert "there is no file" in capsys.readouterr().err
    assert not ledger.exists()
    assert run(program, ledger) == 0
    assert capsys.readouterr().err == f"new ledger: {ledger}\n"
    assert run(program, ledger) == 0
    assert capsys.readouterr().err == ""
    empty.touch()
    assert run(program, empty) == 6
    assert "is empty: put the ledger back" in capsys.readouterr().err
    assert empty.stat().st_size == 0


def test_a_budget_set_is_the_budget_that_a_run_names(program: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    assert run(program, ledger) == 0
    assert main(["ledger", "set", str(ledger), "--budget", "edges=16/3"]) == 0
    with wp.Session(ledger) as session:
        assert session.remaining("edges") == Fraction(4_333_333_333, 10**9)
    assert run(program, ledger, budget="16/3") == 0
    assert main(["ledger", "set", str(ledger), "--budget", "edges=1e-10"]) == 1


def test_times_are_told_only_when_asked_for(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(program, tmp_path / "l.db") == 0
    assert capsys.readouterr().err.count("\n") == 2  # the new ledger, and the form of the edge list
    assert run(program, tmp_path / "l.db", "--progress") == 0
    assert " s] Shave" in capsys.readouterr().err


def test_the_main_job_on_the_duckdb_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(ROOT / "examples" / "graph.wpq"), "--source", f"edges={GRAPH}", "--edge-list", UNDIRECTED]
    more = ["--budget", "edges=2000", "--param", "epsilon=100", "--param", "nodes=5", "--json"]
    values = []
    for engine in ("reference", "duckdb"):
        assert main([*arguments, *more, "--ledger", str(tmp_path / f"{engine}.db"), "--engine", engine]) == 0
        answers = json.loads(capsys.readouterr().out)["answers"]
        values.append(answers["degree_sequence"]["values"] + answers["triangles"]["values"])
        assert {name: found["kind"]["name"] for name, found in answers.items()} == dict.fromkeys(answers, "count")
        assert abs(answers["triangles"]["values"][0] - 467) <= 1  # at epsilon 800 as good as certain
    assert values[0] == pytest.approx(values[1], abs=1)  # noise of scale 0.01: false alarm below 6 exp(-50)


def test_tables_of_the_same_people_are_run_from_one_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bought.csv").write_text("customer,shop\n1,a\n1,a\n1,a\n2,b\n")
    (tmp_path / "visits.csv").write_text("user,page\n1,x\n")
    (tmp_path / "people.wpq").write_text(
        'source bought(shop: str) with person = "customer", at_most = 2, account = "customers";\n'
        'source visits(page: str) with person = "user", at_most = 5, nested = true, account = "customers";\n'
        'var shops = bought.Select(b => b.shop).NoisyCount(0.5, over: ["a", "b"]);\n'
        "var pages = visits.Select(v => count(v)).NoisyCount(0.5, over: range(1, 3));\n"
    )
    ledger = str(tmp_path / "l.db")
    base = ["run", str(tmp_path / "people.wpq"), "--ledger", ledger]
    for name in ("bought", "visits"):
        base += ["--source", f"{name}={tmp_path / name}.csv"]
    assert main([*base, "--budget", "bought=3"]) == 2
    assert "the program has no account 'bought'; it has customers" in capsys.readouterr().err
    assert main(base) == 2
    assert "give --source bought=FILE and --budget customers=EPSILON" in capsys.readouterr().err
    assert main([*base, "--budget", "customers=3"]) == 0
    printed = capsys.readouterr().out
    assert "customers: 1.5\n  bought protects one person, at most 2 rows, of weight 2\n" in printed
    assert printed.splitlines()[-2] == "Remaining budget of customers: 1.5 of 3"
    assert main(["ledger", "show", ledger]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "customers: spent 1.5 of 3, 1.5 remaining; protects one person",
        "customers/bought: paid by customers; protects one person, at most 2 rows",
        "customers/visits: paid by customers; protects one person, at most 5 rows in one record",
    ]
    assert main(["ledger", "set", ledger, "--budget", "customers/bought=1"]) == 6
    assert main(["ledger", "set", ledger, "--budget", "customers=4"]) == 0


def test_a_warning_is_one_line_for_the_curator(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = "source edges(src: int, dst: int)"
    text = program.read_text().replace(declared, f'{declared} with unit = "one undirected edge"')
    assert "undirected" in text
    program.write_text(text)
    command = ["run", str(program), "--source", f"edges={GRAPH}", "--budget", "edges=5", "--ledger"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([*command, str(tmp_path / "l.db"), "--edge-list", "edges=directed,keep-duplicates"]) == 0
    error = capsys.readouterr().err.removeprefix(f"new ledger: {tmp_path / 'l.db'}\n")
    assert error.startswith("wpinq: the unit of 'edges' is undirected")
    assert error.count("\n") == 1


def table_of_edges(folder: Path, kind: str) -> Path:
    """The graph as a table whose columns have names that no field can have."""
    pairs = [line.split()[:2] for line in GRAPH.read_text().splitlines() if not line.startswith("#")]
    path = folder / f"graph.{kind}"
    if kind == "csv":
        path.write_text('day,"to, at last",from\n' + "".join(f"1,{b},{a}\n" for a, b in pairs))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        ends = {"to, at last": [int(b) for _, b in pairs], "from": [int(a) for a, _ in pairs]}
        parquet.write_table(pyarrow.table({"day": [1] * len(pairs), **ends}), path)
    return path


def saved(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_edges_in_named_columns(program: Path, tmp_path: Path, kind: str) -> None:
    """The data are those of the edge list: the same version replays its answers."""
    ledger, version = tmp_path / "ledger.db", ("--data-version", "edges=v1")
    assert run(program, ledger, *version, "--save", str(tmp_path / "a")) == 0
    named = ("--columns", 'edges=from,"to, at last"', "--save", str(tmp_path / "b"))
    assert run(program, ledger, *version, *named, graph=table_of_edges(tmp_path, kind)) == 0
    assert saved(tmp_path / "a") == saved(tmp_path / "b")


def test_edges_in_the_columns_of_the_fields(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("dst,src\n2,1\n1,2\n")
    assert run(program, tmp_path / "a.db", graph=path) == 0
    assert run(program, tmp_path / "b.db", edges="edges=undirected", graph=path) == 4


@pytest.mark.parametrize(
    ("columns", "edges", "code", "words"),
    [
        ("edges=from", UNDIRECTED, 2, "--columns edges takes the names of two columns"),
        ("edges=from,from", UNDIRECTED, 2, "--columns edges takes the names of two columns"),
        ("edges=from,", UNDIRECTED, 2, "--columns edges takes the names of two columns"),
        ("edges=from,day", None, 2, "--edge-list edges=directed"),
        ("nodes=from,day", UNDIRECTED, 2, "no source 'nodes'"),
        ("edges=from,until", UNDIRECTED, 4, "no column named 'until'"),
    ],
)
def test_columns_that_say_too_little(
    program: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    columns: str,
    edges: str | None,
    code: int,
    words: str,
) -> None:
    table = table_of_edges(tmp_path, "csv")
    assert run(program, tmp_path / "ledger.db", "--columns", columns, edges=edges, graph=table) == code
    assert words in capsys.readouterr().err


def test_columns_of_an_edge_list_without_any(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(program, tmp_path / "ledger.db", "--columns", "edges=from,to") == 2
    assert "of a csv or parquet file" in capsys.readouterr().err
    assert not (tmp_path / "ledger.db").exists()


def test_the_version_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"wpinq {wp.__version__}\n"


def test_a_bare_call_gives_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: wpinq ")
    assert all(name in printed for name in ("run", "explain", "schema", "ledger", "synthesize"))


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete_commands_options_and_files(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", shell])
    assert end.value.code == 0
    script = capsys.readouterr().out
    assert "synthesize" in script and "--edge-list" in script
    if shell == "bash":
        asked = "COMP_WORDS=(wpinq led); COMP_CWORD=1; _shtab_wpinq; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["ledger"]
        assert "_shtab_wpinq_ledger_show_pos_0_COMPGEN=_shtab_compgen_files" in script


def test_accuracy_is_told_before_anything_is_spent(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(program)]) == 0
    assert "Expected accuracy" not in capsys.readouterr().out
    assert main(["explain", str(program), "--half-width", "3", "--confidence", "0.9"]) == 0
    table = capsys.readouterr().out.split("Expected accuracy:\n")[1].splitlines()
    assert table[0].endswith("epsilon for ± 3.0")
    assert table[1].split()[:4] == ["nodes", "count", "0.5", "4.605"]
    assert main(["explain", str(program), "--count", "-1"]) != 0
    assert "count is a finite number" in capsys.readouterr().err


def test_ledger_tells_how_many_more_of_a_program(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(program, tmp_path / "l.db", budget="2.6") == 0
    capsys.readouterr()
    arguments = ["ledger", "show", str(tmp_path / "l.db"), "--program", str(program)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        "further releases of nodes: 3",
        "further releases of parity: 3",
        "further releases of all together: 1",
    ]
    assert main([*arguments, "--param", "epsilon=0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["more"] == {"nodes": 16, "parity": 16, "all together": 8}
