"""The command line in a process of its own: without docstrings, and while its modules load."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp

ROOT = Path(__file__).parents[2]
JOB = """
import sys, wpinq as wp
from wpinq import functions as F
from wpinq.cli.main import main
assert not __debug__ or sys.exit("asserts are on")
edges = wp.source("edges", src=int, dst=int)
with wp.Session() as session:
    session.protect(edges, [(1, 2), (2, 3)], budget=1)
    answers = session.release(edges.select(lambda e: F.cast(e.src, str)).noisy_count(1, over=["1"]))
print(len(answers), wp.parse(sys.argv[1]).releases.keys(), F.cast.__doc__)
sys.exit(main(["schema", sys.argv[2]]))
"""
LOADING = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, path, target=None):
        if name == "wpinq.cli.main":
            try:
                signal.raise_signal(signal.SIGINT)
            except BaseException:
                raise ImportError("as numpy makes of it")
sys.meta_path.insert(0, Pressed())
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
from wpinq.__main__ import main
sys.argv[1:] = ["--help"]
sys.exit(main())
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, cwd=ROOT)


def test_without_asserts_and_docstrings() -> None:
    program = (
        "source edges(src: int, dst: int); var n = edges.Where(e => absolute(e.src) > 1).NoisyCount(1, over: [(1, 2)]);"
    )
    done = run("-OO", "-c", JOB, program, "examples/data/people.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 dict_keys(['n']) None\n")
    assert "source people(" in done.stdout


@pytest.mark.parametrize(
    ("kept", "code", "said"),
    [("heard", 130, "wpinq: interrupted\n"), pytest.param("ignored", 0, "", marks=pytest.mark.long)],
)
def test_ctrl_c_while_modules_load_is_one_line(kept: str, code: int, said: str) -> None:
    done = run("-c", LOADING, kept)
    assert (done.returncode, done.stderr) == (code, said)
    assert done.stdout.startswith("usage: wpinq ") == (code == 0)


def test_ctrl_c_is_heard_again_once_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    import wpinq.cli.main
    from wpinq.__main__ import main

    former, collecting = signal.getsignal(signal.SIGINT), list[tuple[int, ...]]()
    monkeypatch.setattr(wpinq.cli.main, "main", lambda: signal.getsignal(signal.SIGINT))
    for name in ("freeze", "set_threshold"):  # which are for a process that ends then, and this one goes on
        monkeypatch.setattr(gc, name, lambda *numbers: collecting.append(numbers))
    assert main() is former  # type: ignore[comparison-overlap]
    assert [len(numbers) for numbers in collecting] == [3, 0]


def test_only_the_command_changes_how_objects_are_collected() -> None:
    state = "(gc.get_threshold(), gc.get_freeze_count())"
    call = "wpinq.cli.main.main(['explain', 'none.wpinq'])"
    done = run("-c", f"import gc; before = {state}; import wpinq.cli.main; {call}; print(before == {state})")
    assert (done.returncode, done.stdout) == (0, "True\n")


def test_the_version_is_told_without_the_modules_of_the_command_line() -> None:
    code = "import sys; from wpinq.__main__ import main; main(); print(*sys.modules, file=sys.stderr)"
    done = run("-c", code, "--version")
    assert (done.returncode, done.stdout) == (0, f"wpinq {wp.__version__}\n")
    assert not {"wpinq.cli.main", "numpy"} & {*done.stderr.split()}
    with open("/dev/full", "w") as full:
        failed = subprocess.run(
            [sys.executable, "-m", "wpinq", "--version"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (failed.returncode, "could not be written" in failed.stderr) == (1, True)
