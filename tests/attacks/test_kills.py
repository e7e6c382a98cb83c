"""kill -9 between any two statements of a release: an answer without a debit, a debit that is lost, half of either.

The attack: whoever can kill the process asks, sees or not, and has it killed before the debit is durable, or between
the debit and the answers, to be charged less or to have noise drawn anew. Here a release dies at every line of the
session that it comes to, and at many of the ledger, one after the other; between SQL statements of the ledger itself it
dies in `tests/ledger/test_ledger_crash.py`, and at random moments in `tests/session/test_concurrency.py`.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).parents[2]
NUMBERS = wp.source("numbers", int)
PARTS = 2
"""Kills are divided among so many tests."""

KILLED = """
import os, signal, sys
import wpinq as wp
from tests.support.killed import each_killed
folder, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
numbers = wp.source("numbers", int)
asked = numbers.noisy_count(1, over=[1, 2])

def kernel(code):
    return "/wpinq/kernel/" in code.co_filename and any(
        name in code.co_filename for name in ("ledger", "session", "prepare", "release")
    )

def counts(place):
    # all lines of the session; of the ledger, which dies at every SQL statement elsewhere, every fourth
    return "ledger" not in place[0] or place[1] % 4 == 0

def child(number):
    seen = set()

    def line(frame, event, argument):
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            fresh = counts(place) and place not in seen
            seen.add(place)
            if fresh and sum(map(counts, seen)) == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    def call(frame, event, argument):
        return line if kernel(frame.f_code) else None

    with wp.Session(f"{folder}/{number}.db", engine="reference") as session:
        session.protect(numbers, [1], budget=3, version="1")
        sys.settrace(call)
        values = session.release(asked).values
        sys.settrace(None)
        os.write(1, f"{number} {values[0].hex()} {values[1].hex()}\\n".encode())

for number in each_killed(child, 1 + part, parts):
    os.write(1, f"{number} killed\\n".encode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_release_that_is_killed_at_a_line_is_paid_before_it_is_answered(tmp_path: pathlib.Path, part: int) -> None:
    """Whatever line it dies at: a sound ledger, all of the debit or none, no answers without it, one price."""
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), str(part), str(PARTS)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    killed = [line.split()[0] for line in said if line.endswith("killed")]
    assert len(killed) > 20
    states = set()
    for line in said:
        number, *values = line.split()
        with Ledger(tmp_path / f"{number}.db") as ledger:
            ledger.verify()
            debits = [entry for entry in ledger.entries() if entry.kind == "debit"]
            answers = [entry for entry in ledger.entries() if entry.kind == "answers"]
            spent = ledger.account("numbers").spent
        assert (spent, len(answers)) in [(0, 0), (10**9, 0), (10**9, 1)]
        assert len(debits) == bool(spent)
        states.add((spent, len(answers)))
        with wp.Session(tmp_path / f"{number}.db", engine="reference") as session:
            session.protect(NUMBERS, [1], budget=3, version="1")
            again = session.release(NUMBERS.noisy_count(1, over=[1, 2]))
            assert session.spent("numbers") == 1
            if values != ["killed"]:
                assert [float(value).hex() for value in again.values] == values
            assert list(session.release(NUMBERS.noisy_count(1, over=[1, 2])).values) == list(again.values)
    assert states == {(0, 0), (10**9, 0), (10**9, 1)}
