"""Children that are asked to end while they are being forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import ROOT

pytestmark = pytest.mark.long

BESIDE = {
    "alone": "",
    "beside a thread, to which the system gives what this one masks": """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
""",
    "beside a ledger, which holds signals as it forks": """
import tempfile
from wpinq.kernel.ledger.ledger import Ledger
ledger = Ledger(tempfile.mkdtemp() + "/ledger")
""",
}
beside = pytest.mark.parametrize("before", BESIDE.values(), ids=BESIDE)

FORKED = """
import os, signal, time
from wpinq.service.processes import Supervisor, Role, StopAsked, stop_on_signals

stop_on_signals(signal.SIGTERM, signal.SIGINT)
here = os.getpid()
os.register_at_fork({when}=lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.2)))
children = Supervisor()
try:
    children.fork(Role("idle", lambda: time.sleep(600), again=False))
except StopAsked:
    assert os.getpid() == here
    os.kill(*children._roles, signal.SIGTERM)
(pid,) = children._roles
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def printed(program: str, *arguments: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
        check=True,
    )
    assert not found.stderr
    return found.stdout.strip()


@beside
def test_a_child_that_is_asked_to_end_as_it_begins_ends(before: str) -> None:
    """It took it with its parent's handler, which raised inside the fork, where nobody hears, and lived on."""
    assert printed(before + FORKED.format(when="after_in_child")) == "-15"


@beside
def test_a_parent_that_is_asked_to_end_as_it_forks_knows_its_child(before: str) -> None:
    assert printed(before + FORKED.format(when="after_in_parent")) == "-15"


REAPED = """
import os, signal, time
from wpinq.service.processes import Supervisor, Role, StopAsked, stop_on_signals

stop_on_signals(signal.SIGTERM, signal.SIGINT)
children = Supervisor()
children.fork(Role("brief", lambda: None, again=False))
wait = os.wait

def asked_to_stop():
    found = wait()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)  # another thread has it by then
    return found

os.wait = asked_to_stop
try:
    children.tend()
except StopAsked:
    children.stop("brief", signal.SIGKILL)
    print(len(children._roles))
"""


@beside
def test_a_parent_that_is_asked_to_end_as_it_finds_a_child_ended_asks_no_more_of_that(before: str) -> None:
    """It sent a signal to a process that was gone, whose number may be another's by then."""
    assert printed(before + REAPED) == "0"


RENEWED = """
import os, signal, sys
from pathlib import Path
from wpinq.runtime.signals import signals_held
from wpinq.service.processes import Supervisor, Role, stop_on_signals

def work():
    lived = Path(sys.argv[1])
    if not lived.exists():
        lived.touch()
        return
    heard = []
    signal.signal(signal.SIGUSR1, lambda *given: heard.append(given))
    with signals_held():
        pass
    os.kill(os.getpid(), signal.SIGUSR1)
    os.write(1, b"heard" if heard else b"lost")
    raise RuntimeError  # unfit, so that the parent comes to an end

stop_on_signals(signal.SIGTERM, signal.SIGINT)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where it says that a child was unfit
children = Supervisor()
children.fork(Role("brief", work, again=True))
children.tend()
"""


@beside
def test_a_child_in_place_of_another_hears_signals(before: str, tmp_path: Path) -> None:
    """Its parent held them twice: as it saw to the one that had ended, and as it forked."""
    assert printed(before + RENEWED, str(tmp_path / "lived")) == "heard"


UNSEEN = """
import signal, threading, time
from wpinq.service.processes import Supervisor, Role, StopAsked, stop_on_signals

stop_on_signals(signal.SIGTERM)
children = Supervisor()
children.fork(Role("idle", lambda: time.sleep(20), again=False))
threading.Thread(target=lambda: (time.sleep(0.5), signal.pthread_kill(threading.get_ident(), signal.SIGTERM))).start()
try:
    children.tend()
except StopAsked:
    children.stop("idle", signal.SIGKILL)
    print("heard")
"""


def test_a_stop_that_breaks_off_no_wait_is_heard() -> None:
    """It waited for the end of a child, as one does that comes just before the parent begins to wait."""
    assert printed(UNSEEN) == "heard"
