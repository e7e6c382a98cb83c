"""Signals that come while a process forks that has a ledger open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import ROOT

pytestmark = pytest.mark.long

FORKED = """
import os, signal, sys, threading
from fractions import Fraction
from wpinq.kernel.ledger import store
from wpinq.kernel.ledger.ledger import Ledger

class Interrupted:
    '''A lock; Ctrl-C comes when a fork has taken it, or before it is let go.'''

    def __init__(self, lock):
        self.lock, self.by = lock, os.getpid()

    def acquire(self):
        self.lock.acquire()
        if {taken}:
            os.kill(os.getpid(), signal.SIGINT)

    def release(self):
        if not {taken} and (os.getpid() == self.by) == {parent}:
            os.kill(os.getpid(), signal.SIGINT)
        self.lock.release()

came = []

def interrupted(number, frame):
    came.append(number)
    raise KeyboardInterrupt

def free():
    found = []

    def tried():
        for lock in lock_of_ledger, store._registry_lock:
            found.append(lock.acquire(blocking=False))
            if found[-1]:
                lock.release()

    other = threading.Thread(target=tried)
    other.start()
    other.join()
    return all(found) and signal.getsignal(signal.SIGINT) is interrupted

signal.signal(signal.SIGINT, interrupted)
ledger = Ledger(sys.argv[1])
lock_of_ledger = ledger._store._lock
ledger._store._lock = Interrupted(lock_of_ledger)
pid = os.fork()
ledger._store._lock = lock_of_ledger
if pid == 0:
    os._exit(10 * len(came) + free() if ledger.accounts() == () else 3)
print(len(came), free(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize(
    ("taken", "parent", "told"),
    [
        (True, True, "1 True 1"),  # heard once, by the parent, which had it
        (False, True, "1 True 1"),
        (False, False, "0 True 11"),
    ],
)
def test_no_lock_is_kept_where_ctrl_c_comes_amid_a_fork(tmp_path: Path, taken: bool, parent: bool, told: str) -> None:
    """It was raised inside the hooks of the fork, where nobody hears, and the locks that they had stayed taken."""
    found = subprocess.run(
        [sys.executable, "-c", FORKED.format(taken=taken, parent=parent), str(tmp_path / "ledger")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        check=True,
    )
    assert found.stdout.strip() == told
