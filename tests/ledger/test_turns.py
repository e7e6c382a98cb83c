"""Who writes next: in the order in which they asked, among processes and threads, whoever dies or forks meanwhile."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import head_file, store
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.chain import Head
from wpinq.kernel.ledger.head_file import HeadFile
from wpinq.kernel.ledger.ledger import Ledger, Pricing

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not head_file.HAS_TURNS, reason="the system has no locks of open files")

HEAD = Head(7, b"h" * 32)
Note = Callable[[Head], None]

LONG = 600.0
"""Seconds. A starved machine has left processes, and what of its kernel ends a write, without a turn for a minute."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue is passed that stands still for seconds, and given up after a minute, as one of a busy machine may be."""
    monkeypatch.setattr(head_file, "STANDSTILL", LONG)
    monkeypatch.setattr(store, "PATIENCE", LONG)


def waiting(companion: HeadFile, count: int) -> None:
    """Wait until so many have drawn a number: they hold so many bytes."""
    for _ in range(60_000):
        if held(companion) >= count:
            return
        time.sleep(0.001)
    raise AssertionError("they do not wait")


def held(companion: HeadFile) -> int:
    descriptor = os.open(companion.path, os.O_RDWR)
    try:
        first = head_file._NUMBERS
        return sum(head_file._first_locked(descriptor, first + place, 1) is not None for place in range(64))
    finally:
        os.close(descriptor)


def started(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


@pytest.mark.long
def test_those_who_ask_are_served_in_order(tmp_path: pathlib.Path) -> None:
    companion, served = HeadFile(str(tmp_path / "ledger.db")), []
    threads = []

    def first(note: Note) -> None:
        for number in range(20):
            threads.append(started(lambda number=number: companion.take_turn(lambda note: served.append(number), LONG)))
            waiting(companion, number + 2)
        assert served == []

    companion.take_turn(first, LONG)
    for thread in threads:
        thread.join(LONG)
    assert served == list(range(20))
    assert held(companion) == 0


@pytest.mark.long
def test_who_comes_back_at_once_waits_behind_those_who_wait(tmp_path: pathlib.Path) -> None:
    """The starvation that turns are there to end: one who never stops asking, and one who asks once."""
    companion, served = HeadFile(str(tmp_path / "ledger.db")), []
    threads: list[threading.Thread] = []

    def greedy(note: Note) -> None:
        served.append("greedy")
        if not threads:
            threads.append(started(lambda: companion.take_turn(lambda note: served.append("once"), LONG)))
            waiting(companion, 2)

    for _ in range(5):
        companion.take_turn(greedy, LONG)
    threads[0].join(LONG)
    assert served == ["greedy", "once", "greedy", "greedy", "greedy", "greedy"]


@pytest.mark.long
def test_two_never_have_a_turn_at_once(tmp_path: pathlib.Path) -> None:
    companion, inside, most = HeadFile(str(tmp_path / "ledger.db")), [], 0

    def work(note: Note) -> None:
        nonlocal most
        inside.append(1)
        most = max(most, len(inside))
        time.sleep(0.0002)
        inside.pop()

    def many() -> None:
        for _ in range(40):
            companion.take_turn(work, LONG)

    threads = [started(many) for _ in range(8)]
    for thread in threads:
        thread.join(LONG)
    assert most == 1


@pytest.mark.long
def test_an_emptied_file_ends_the_order_and_nothing_else(tmp_path: pathlib.Path) -> None:
    companion, served = HeadFile(str(tmp_path / "ledger.db")), []
    threads = []

    def first(note: Note) -> None:
        threads.append(started(lambda: companion.take_turn(lambda note: served.append(1), LONG)))
        waiting(companion, 2)
        os.truncate(companion.path, 0)
        threads.append(started(lambda: companion.take_turn(lambda note: served.append(2), LONG)))
        waiting(companion, 3)

    companion.take_turn(first, LONG)
    for thread in threads:
        thread.join(LONG)
    assert sorted(served) == [1, 2]


def test_the_head_is_read_as_it_was_noted(tmp_path: pathlib.Path) -> None:
    companion = HeadFile(str(tmp_path / "ledger.db"))
    assert companion.head(LONG) is None
    companion.take_turn(lambda note: None, LONG)
    assert companion.head(LONG) is None
    companion.take_turn(lambda note: note(HEAD), LONG)
    assert companion.head(LONG) == HEAD
    companion.take_turn(lambda note: None, LONG)
    assert companion.head(LONG) == HEAD
    assert os.stat(companion.path).st_mode & 0o777 == 0o600


def test_the_head_never_goes_back(tmp_path: pathlib.Path) -> None:
    """A writer that was suspended after its commit notes a head that others have passed."""
    companion = HeadFile(str(tmp_path / "ledger.db"))
    later = Head(8, b"l" * 32)
    companion.take_turn(lambda note: note(later), LONG)
    companion.take_turn(lambda note: note(HEAD), LONG)
    assert companion.head(LONG) == later


def test_a_number_that_no_ledger_reaches_is_no_head(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path):
        pass
    pathlib.Path(f"{path}-head").write_bytes(b"\xff" * 64)
    with Ledger(path) as ledger:
        ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=5)])
    known = HeadFile(str(path)).head(1)
    assert known is not None
    assert known.sequence == 1


def test_a_pipe_in_the_place_of_the_head_does_not_hang(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path):
        pass
    os.remove(f"{path}-head")
    os.mkfifo(f"{path}-head")
    with pytest.raises(LedgerError, match="the system refused"):
        Ledger(path)


def test_a_lock_on_all_numbers_is_waited_for_no_longer_than_for_a_turn(tmp_path: pathlib.Path) -> None:
    """Anybody who may read the file can put one there."""
    companion = HeadFile(str(tmp_path / "ledger.db"))
    assert companion.take_turn(lambda note: 1, LONG) == 1
    descriptor = os.open(companion.path, os.O_RDONLY)
    try:
        numbers, to_the_end = head_file._NUMBERS, 0
        assert head_file._set_lock(descriptor, head_file.fcntl.F_RDLCK, numbers, to_the_end)
        with pytest.raises(TimeoutError):
            companion.take_turn(lambda note: 2, 0.1)
    finally:
        os.close(descriptor)
    assert companion.take_turn(lambda note: 3, LONG) == 3


def test_the_file_beside_a_ledger_may_be_used_by_whoever_may_use_the_ledger(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path):
        pass
    assert path.stat().st_mode & 0o777 == 0o600
    os.chmod(path, 0o660)
    os.remove(f"{path}-head")
    with Ledger(path) as ledger:
        ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=5)])
        assert {os.stat(f"{path}{end}").st_mode & 0o777 for end in ("", "-head", "-wal", "-shm")} == {0o660}


def test_who_waits_too_long_is_told_and_leaves_the_queue(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with Ledger(tmp_path / "ledger.db") as ledger:
        companion = HeadFile(str(tmp_path / "ledger.db"))

        def hanging(note: Note) -> None:
            with pytest.raises(LedgerError, match=r"has been writing.*nothing was recorded, try again"):
                ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=5)])
            assert held(companion) == 1

        companion.take_turn(hanging, LONG)
        assert (
            ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=5)])[0].budget
            == 5
        )


@pytest.mark.parametrize("use", ["turn", "head"])
def test_a_child_that_shares_the_open_file_keeps_no_lock_of_it(
    use: str, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    """A fork by another thread, after the file was opened and before the child could know that it was."""
    companion, children, opened = HeadFile(str(tmp_path / "ledger.db")), list[int](), os.open
    companion.take_turn(lambda note: note(HEAD), LONG)

    def forking(path: Any, *more: Any) -> int:
        descriptor = opened(path, *more)
        if path == companion.path and not children:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
        return descriptor

    monkeypatch.setattr(os, "open", forking)
    try:
        if use == "turn":
            companion.take_turn(lambda note: note(HEAD), LONG)
        else:
            assert companion.head(LONG) == HEAD
        assert len(children) == 1
        assert companion.take_turn(lambda note: "mine", 1) == "mine"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_a_symbolic_link_leads_to_the_same_queue(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one" / "ledger.db")
    assert HeadFile(str(tmp_path / "link")).path == str(tmp_path / "one" / "ledger.db-head")
    with Ledger(tmp_path / "link") as ledger:
        ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=5)])
    with Ledger(tmp_path / "one" / "ledger.db", create=False) as ledger:
        assert ledger.account("edges").budget == 5
    assert os.path.islink(tmp_path / "link")


# processes

COMMON = """
import json, os, sys
from wpinq.kernel.ledger import head_file, store
from wpinq.kernel.ledger.ledger import Ledger, Pricing

path, name = sys.argv[1], sys.argv[2]
head_file.STANDSTILL = store.PATIENCE = 600.0

def say(*words):
    os.write(1, (json.dumps(words) + "\\n").encode())

def flat(amount):
    return lambda new, parts_of: Pricing({"edges": amount}, {})
"""


def start(script: str, path: pathlib.Path, name: object = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMON + script, str(path), str(name)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def heard(process: subprocess.Popen[str]) -> list[Any]:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> pathlib.Path:
    with Ledger(tmp_path / "ledger.db") as made:
        made.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=10**9)])
    return tmp_path / "ledger.db"


# A number is drawn under a lock, so what is counted then is exact: the debits in the ledger, and who waits. All eight
# are forked from a process that has imported everything, and wait at a gate until all of them are there.
SPEND = """
real = head_file.HeadFile._draw
drawn = []

def draw(companion, descriptor, deadline):
    number = real(companion, descriptor, deadline)
    ahead = sum(
        head_file._first_locked(descriptor, head_file._NUMBERS + place, 1) is not None
        for place in range(number)
    )
    drawn.append((ahead, companion.drawn()))
    return number

def spend(name):
    with Ledger(path, create=False) as ledger:
        head_file.HeadFile.drawn = lambda companion: int(ledger.head().partition(":")[0])
        os.write(there, b".")
        os.close(there)
        os.read(gate, 1)
        for i in range(40):
            ledger.debit({f"{name}.{i}": "count"}, flat(1))
    say(name, drawn)

head_file.HeadFile._draw = draw
(gate, opened), (come, there) = os.pipe(), os.pipe()
children = []
for name in range(8):
    children.append(os.fork())
    if not children[-1]:
        os.close(opened)
        try:
            spend(name)
            os._exit(0)
        finally:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
os.close(there)
while os.read(come, 8):
    pass
os.close(opened)
sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
"""


@pytest.mark.long
def test_no_more_pass_a_waiter_than_were_ahead_of_it(ledger: pathlib.Path) -> None:
    """Eight processes: between a drawn number and its debit come the debits of those who drew before, and no other."""
    parent = start(SPEND, ledger)
    lines = parent.communicate(timeout=LONG)[0].splitlines()
    assert parent.returncode == 0
    with Ledger(ledger) as opened:
        opened.verify()
        entries = {entry.measurements[0]: entry.sequence for entry in opened.entries() if entry.measurements}
    passed = []
    for name, drawn in map(json.loads, lines):
        for i, (ahead, before) in enumerate(drawn):
            between = entries[f"{name}.{i}"] - before - 1
            assert between <= ahead <= 7, (between, ahead)
            passed.append(between)
    assert len(passed) == 320
    assert max(passed) >= 1  # they did compete


WAIT = """
real = head_file._first_locked

def first_locked(descriptor, start, length):
    found = real(descriptor, start, length)
    if found is not None and length != head_file._LAST:
        say("waiting")
    return found

with Ledger(path, create=False) as ledger:
    say("ready")
    sys.stdin.readline()
    head_file._first_locked = first_locked
    ledger.debit({name: "count"}, flat(1))
    head_file._first_locked = real
    say("done")
"""

HOLD = """
def price(new, parts_of):
    say("holding")
    sys.stdin.readline()
    return Pricing({"edges": 1}, {})

with Ledger(path, create=False) as ledger:
    ledger.debit({name: "count"}, price)
    say("done")
"""


@pytest.mark.long
@pytest.mark.parametrize("killed", ["holder", "waiter", "none"])
def test_who_dies_leaves_the_queue(ledger: pathlib.Path, killed: str) -> None:
    holder = start(HOLD, ledger, "holder")
    assert heard(holder) == ["holding"]
    waiters = [start(WAIT, ledger, f"waiter {number}") for number in range(2)]
    for waiter in waiters:
        assert heard(waiter) == ["ready"]
        tell(waiter)
        assert heard(waiter) == ["waiting"]
    gone = {"holder": holder, "waiter": waiters[0], "none": None}[killed]
    if gone is not None:
        gone.send_signal(signal.SIGKILL)
        gone.communicate(timeout=LONG)
    if gone is not holder:
        tell(holder)
    for process in (holder, *waiters):
        if process is not gone:
            assert process.communicate(timeout=LONG)[0].splitlines()[-1] == '["done"]'
    with Ledger(ledger) as opened:
        opened.verify()
        done = [entry.measurements[0] for entry in opened.entries() if entry.kind == "debit"]
    order = ["holder", "waiter 0", "waiter 1"]
    assert done == [name for name in order if killed not in name or (killed == "waiter" and name == "waiter 1")]


@pytest.mark.long
def test_a_waiter_that_is_suspended_is_passed(ledger: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(head_file, "STANDSTILL", 0.2)
    holder, waiter = start(HOLD, ledger, "holder"), start(WAIT, ledger, "waiter")
    assert heard(holder) == ["holding"]
    assert heard(waiter) == ["ready"]
    tell(waiter)
    assert heard(waiter) == ["waiting"]
    waiter.send_signal(signal.SIGSTOP)
    tell(holder)
    assert holder.communicate(timeout=LONG)[0].splitlines()[-1] == '["done"]'
    with Ledger(ledger) as opened:
        opened.debit({"passing": "count"}, lambda new, parts: Pricing({"edges": 1}, {}))
        waiter.send_signal(signal.SIGCONT)
        assert waiter.communicate(timeout=LONG)[0].splitlines()[-1] == '["done"]'
        opened.verify()
        done = [entry.measurements[0] for entry in opened.entries() if entry.kind == "debit"]
    assert done == ["holder", "passing", "waiter"]


@pytest.mark.long
def test_a_child_that_is_forked_from_the_queue_does_not_hold_its_place(ledger: pathlib.Path) -> None:
    """The locks are of open files, which a child shares: it gives them up, or its parent's place would outlive it."""
    companion = HeadFile(str(ledger))
    children: list[int] = []

    def hold(note: Note) -> None:
        thread = started(
            lambda: opened.open_accounts([declared_account("nodes", schema="s", unit="u", unit_weight=1, budget=5)])[0]
        )
        waiting(companion, 2)
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        children.append(child)
        threads.append(thread)

    threads: list[threading.Thread] = []
    with Ledger(ledger) as opened:
        opened._store._head_file, kept = companion, opened._store._head_file
        # the holder's own descriptor is of the companion that the ledger knows, so the child lets go of both
        companion.take_turn(hold, LONG)
        threads[0].join(LONG)
        opened._store._head_file = kept
        try:
            assert held(companion) == 0
            assert opened.account("nodes").budget == 5
        finally:
            os.kill(children[0], signal.SIGKILL)
            os.waitpid(children[0], 0)


def test_a_price_that_uses_its_ledger_is_told_and_not_kept_waiting(ledger: pathlib.Path) -> None:
    with Ledger(ledger) as opened:

        def price(new: frozenset[str], parts_of: Any) -> Pricing:
            opened.set_budget("edges", 5)
            raise AssertionError("not reached")

        with pytest.raises(LedgerError, match="in the middle of a debit"):
            opened.debit({"m": "count"}, price)
        assert held(HeadFile(str(ledger))) == 0


def test_an_error_of_the_system_in_a_price_is_its_own(ledger: pathlib.Path) -> None:
    def price(new: frozenset[str], parts_of: Any) -> Pricing:
        raise TimeoutError("of the price")

    with Ledger(ledger) as opened, pytest.raises(TimeoutError, match="of the price"):
        opened.debit({"m": "count"}, price)
