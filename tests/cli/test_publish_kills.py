"""kill -9 of `wpinq publish`: the next run publishes the same file, and an epoch is paid for once.

The attack: a machine that loses power every morning, or a curator who kills the job between the debit and the file, to
have noise drawn anew or a file cut in two. A process dies at a line of the command, of the session, of its ledger or of
what writes the file, at moments that are spread over all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_publish import DAY, spent
from tests.support.parameters import sizes
from wpinq.kernel.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]

KILLED = """
import os, pathlib, signal, sys
import duckdb, numpy
import wpinq.cli.publish, wpinq.kernel.session
from tests.cli.test_publish import prepare, run

top, moments = pathlib.Path(sys.argv[1]), int(sys.argv[2])
PLACES = ("/wpinq/kernel/", "/wpinq/cli/", "/wpinq/mcmc/settings", "/wpinq/data/read")

def traced(number):
    seen = set()

    def line(frame, event, argument):
        if event == "line" and (place := (frame.f_code.co_filename, frame.f_lineno)) not in seen:
            seen.add(place)
            if len(seen) == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    sys.settrace(lambda frame, *more: line if any(map(frame.f_code.co_filename.__contains__, PLACES)) else None)
    return seen

def forked(folder, number=None):
    process = os.fork()
    if process == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        seen = set() if number is None else traced(number)
        code = run(folder)
        sys.settrace(None)
        (folder / "lines").write_text(str(len(seen)))
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def made(name):
    (top / name).mkdir()
    return prepare(top / name)

assert forked(whole := made("whole"), 0) == 0
lines = int((whole / "lines").read_text())
assert lines > 500
for moment in range(moments):
    number = 1 + (lines - 2) * (moment + 1) // moments
    folder = made(str(number))
    assert forked(folder, number) == -signal.SIGKILL
    there = [*(folder / "out").glob("[!.]*")]
    before = [path.read_bytes() for path in there]
    assert [path.name for path in there] in ([], ["2026-11-27.csv"])
    assert forked(folder) == 0
    assert before in ([], [(folder / "out" / "2026-11-27.csv").read_bytes()])
    print(number, "published" if before else "absent", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")
@pytest.mark.parametrize("moments", sizes(3, 50))
def test_a_killed_run_is_made_good_by_the_next(tmp_path: Path, moments: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), str(moments)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert len(said) == moments
    assert said[-1].endswith("published")
    for number in ["whole", *(line.split()[0] for line in said)]:
        folder = tmp_path / number
        assert spent(folder) == 2
        assert [path.name for path in (folder / "out").glob("[!.]*")] == [f"{DAY}.csv"]
        with Ledger(folder / "l.db") as ledger:
            ledger.verify()
            assert sum(entry.kind == "debit" and entry.amount > 0 for entry in ledger.entries()) == 2  # and over all
