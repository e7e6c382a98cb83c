"""Whether a release answers, and when: in untrusted mode neither tells of the data, and a failure is one bit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.confined import PRELUDE, TWO_SOURCES, breaking, told
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.noisy_evaluation import FAILED

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are confined by means of Linux")

JOINED = """
fields = dict(who=int, what=int)
people = wp.source("people", **fields, records_at_most=60, keys_at_most={"who": 6, "what": 6}, cap=60)
free = wp.source("people", **fields, records_at_most=400, cap=400)
VICTIM = [(7, i) for i in range(6)]
OTHERS = [(7 + 1000 * (i + 1), i % 11) for i in range(54)]

def thrice(q, limit):
    pairs = q.join(q, lambda x: x.what, lambda y: y.what, lambda x, y: F.record(a=x.who, b=y.who))
    more = pairs.join(q, lambda x: x.b, lambda y: y.who, lambda x, y: F.record(a=x.a, b=y.what))
    return more.group_by(lambda r: r.a, lambda g: F.count(F.subsets(F.first(g, limit), 2)))
"""
"""A victim who is joined three times with the others' records, then a reducer of lists."""


@pytest.mark.parametrize("limit", [3, 12])
def test_a_victim_joined_with_the_others_changes_neither_the_status_nor_the_bytes_nor_the_moment(limit: int) -> None:
    seen = told(
        JOINED
        + f"""
seen = []
for rows in (OTHERS, OTHERS + VICTIM):
    with opened(limits=wp.Limits(seconds=600, memory="40GB")) as session:
        session.protect(people, rows, budget=10)
        asked = thrice(people, {limit}).select(lambda r: r.val).noisy_count(1, over=[0, 1])
        seen.append([outcome(lambda: session.release(asked)), moments(session), str(session.spent("people"))])
tell(seen=seen)
"""
    )["seen"]
    assert seen[0] == seen[1]
    assert seen[0][0][0] == "answers"
    assert len(seen[0][1]) == 2  # the child's time, and what is held after it


def test_where_nothing_bounds_the_joins_the_plan_is_refused_with_and_without_the_victim_and_nothing_is_spent() -> None:
    seen = told(
        JOINED
        + """
seen = []
for rows in (OTHERS, OTHERS + VICTIM):
    with opened() as session:
        session.protect(free, rows, budget=10)
        asked = thrice(free, 60).noisy_count(1, over=[(7, 1)])
        seen.append([outcome(lambda: session.release(asked)), moments(session), str(session.spent("people"))])
tell(seen=seen)
"""
    )["seen"]
    assert seen[0] == seen[1]
    assert seen[0][1:] == [[], "0"]
    kind, words = seen[0][0][:2]
    assert kind == "PlanError"
    assert "GroupBy" in words
    assert "keys_at_most of who" in words


FAULTS = {
    "an exception": "raise ValueError('4711')",
    "no memory": "bytearray(10**12)",
    "all memory, bit by bit": "held = []\n    while True: held.append(bytes(10**7))",
    "kill -9": "os.kill(os.getpid(), signal.SIGKILL)",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "processor time": "signal.raise_signal(signal.SIGXCPU)",
    "an end in silence": "os._exit(0)",
    "exit": "sys.exit(0)",
    "words": "print('4711', file=sys.stderr); print('4711'); raise SystemExit('4711')",
    "no number": "return [float('nan')]",
    "infinity": "return [float('inf')]",
}


def test_a_child_that_fails_in_any_way_is_one_error_at_one_moment_and_closes_the_source(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    faults = "".join(
        f"def fault_{number}(sink, output, keys, scales, random):\n    {fault}\n"
        for number, fault in enumerate(FAULTS.values())
    )
    found = told(
        TWO_SOURCES
        + "from wpinq.sinks.laplace import LaplaceSink\n"
        + faults
        + f"""
seen, told_to, real = [], [], LaplaceSink.draw
with opened({str(ledger)!r}, on_suspended=told_to.append) as session:
    protected(session)
    for number in range({len(FAULTS)}):
        LaplaceSink.draw = globals()["fault_" + str(number)]
        begun = session._releaser._evaluator.clock.now()
        first = outcome(lambda: session.release(asked))
        seen.append([first, session._releaser._evaluator.clock.now() - begun, session.suspended()])
        session.resume("numbers")
    spent = str(session.spent("numbers"))
    outcome(lambda: session.release(asked))
tell(seen=seen, told=told_to, spent=spent)
"""
    )
    for name, (first, when, names) in zip(FAULTS, found["seen"], strict=True):
        assert first == ["EvaluationFailed", FAILED, "None", "None"], name
        assert when == pytest.approx(found["seen"][0][1]), name
        assert names == ["numbers"], name
    assert found["told"] == [["numbers"]] * (len(FAULTS) + 1)
    assert found["spent"] == "1"
    with Ledger(ledger, create=False) as kept:  # as after a restart
        kept.verify()
        assert kept.suspended() == {"numbers"}
    assert not any("4711" in path.read_bytes().decode("latin-1") for path in tmp_path.iterdir())


def test_a_look_that_fails_ends_at_the_moment_of_one_that_is_answered_and_other_sources_stay_open() -> None:
    found = told(
        breaking("raise ValueError")
        + """
with opened() as session:
    protected(session)
    clock, marks, honest = session._releaser._evaluator.clock, [], LaplaceSink.draw
    for work in (numbers.select(lambda x: x % 2).noisy_count(2), asked):
        start = len(moments(session))
        begun = clock.now()
        seen = outcome(lambda: session.release(work))
        marks.append([moment - begun for moment in moments(session)[start:]])
        LaplaceSink.draw = broken
    LaplaceSink.draw = broken
    later = [outcome(lambda: session.release(each)) for each in (asked, before, numbers.noisy_count(1))]
    LaplaceSink.draw = honest
    tell(marks=marks, seen=seen, later=later, fine=outcome(lambda: session.release(other)))
"""
    )
    assert found["seen"][0] == "EvaluationFailed"
    answered, failed = found["marks"]
    assert answered == pytest.approx(failed)
    assert {tuple(each) for each in found["later"]} == {("SourceSuspended", CLOSED, "None", "None")}
    assert found["fine"][0] == "answers"


CLOSED = "a source of this release is suspended until its curator resumes it: contact the curator"


def test_after_a_restart_a_closed_source_is_still_closed_and_its_curator_opens_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    closing = breaking("raise ValueError") + f"LEDGER = {str(ledger)!r}\n"
    told(
        closing
        + """
with opened(LEDGER) as session:
    protected(session)
    session.release(before)
    LaplaceSink.draw = broken
    outcome(lambda: session.release(asked))
tell()
"""
    )
    found = told(
        closing
        + """
with opened(LEDGER) as session:
    protected(session)
    shut = [outcome(lambda: session.release(each)) for each in (asked, before)]
    history = [event.account for event in session.history() if event.kind == "suspend"]
    opening = [session.resume("numbers"), session.resume("numbers")]
    after = [outcome(lambda: session.release(each)) for each in (asked, before)]
    spent = str(session.spent("numbers"))
    session._ledger.verify()
with wp.Session(LEDGER) as trusting:
    protected(trusting)
    trusted = outcome(lambda: trusting.release(asked))
tell(shut=shut, history=history, opening=opening, after=after, spent=spent, trusted=trusted)
"""
    )
    assert [each[0] for each in found["shut"]] == ["SourceSuspended"] * 2
    assert found["history"] == ["numbers"]
    assert found["opening"] == [True, False]
    assert [each[0] for each in [*found["after"], found["trusted"]]] == ["answers"] * 3
    assert found["spent"] == "2"  # what failed stays paid, and is drawn now


def test_that_a_source_is_closed_is_on_the_disk_before_the_failure_is_told(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    program = breaking("raise ValueError") + f"LEDGER = {str(ledger)!r}\n"
    program += """
session = opened(LEDGER)
protected(session)
LaplaceSink.draw = broken
try:
    session.release(asked)
except wp.EvaluationFailed:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", PRELUDE + program], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    with Ledger(ledger, create=False) as kept:
        assert kept.suspended() == {"numbers"}


def test_an_asking_that_was_under_way_when_its_source_was_closed_is_told_that_and_not_how_it_went() -> None:
    found = told(
        breaking("raise ValueError")
        + """
with opened() as session:
    protected(session)
    clock = session._releaser._evaluator.clock
    sleeping = clock.sleep_until

    def closed_meanwhile(moment):
        session.suspend("numbers")
        sleeping(moment)

    seen = []
    for fails in (False, True):
        clock.sleep_until = closed_meanwhile
        if fails:
            LaplaceSink.draw = broken
        seen.append(outcome(lambda: session.release(asked if fails else before)))
        session.resume("numbers")
    tell(seen=seen)
"""
    )["seen"]
    assert found[0] == found[1] == ["SourceSuspended", CLOSED, "None", "None"]


def test_what_is_stored_is_replayed_at_the_moment_of_what_is_drawn() -> None:
    found = told(
        TWO_SOURCES
        + """
with opened() as session:
    protected(session)
    marks = [session._releaser._evaluator.clock.now()]
    values = []
    for _ in range(2):
        values.append(list(session.release(asked).values))
        marks.append(session._releaser._evaluator.clock.now())
    handle = session.release(numbers.noisy_count(1))
    marks.append(session._releaser._evaluator.clock.now())
    pairs = [(handle[1], session._releaser._evaluator.clock.now()) for _ in range(2)]
    tell(marks=marks, values=values, pairs=pairs)
"""
    )
    first, second, third, fourth = found["marks"]
    assert second - first == pytest.approx(third - second)
    assert found["values"][0] == found["values"][1]
    assert fourth == third  # a Release that looked at nothing yet
    (value, when), (again, later) = found["pairs"]
    assert value == again
    assert when - fourth == pytest.approx(later - when)
    assert when > fourth


def test_a_child_sees_no_files_of_its_parent_has_limits_and_cannot_print(tmp_path: Path) -> None:
    secret = tmp_path / "socket"
    found = told(
        breaking(
            f"""
    import resource
    numbers = [number for number in range(4096) if os.path.exists(f"/proc/self/fd/{{number}}")]
    files = [os.readlink(f"/proc/self/fd/{{number}}") for number in numbers]
    limits = [resource.getrlimit(each) for each in (resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    good = not any({str(secret)!r} in file for file in files) and os.readlink("/proc/self/fd/1") == "/dev/null"
    good = good and limits[0] == (0, 0) and all(0 < soft == hard < 10**12 for soft, hard in limits[1:])
    good = good and os.stat("/proc/self/task").st_nlink <= 2 + 12
    return [1.0 if good else 0.0 for _ in keys]
"""
        )
        + f"""
kept = open({str(secret)!r}, "w")
with opened() as session:
    protected(session)
    LaplaceSink.draw = broken
    tell(values=list(session.release(asked).values))
"""
    )
    assert found["values"] == [1.0, 1.0]


@pytest.mark.long
def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    program = breaking("time.sleep(10**6)")
    program += f"""
session = wp.Session({str(ledger)!r}, sandbox=wp.Limits())
session.protect(numbers, [1], budget=1)
LaplaceSink.draw = broken
class ForEver(process.Clock):
    def sleep_until(self, moment):
        time.sleep(10**6)
session._releaser._evaluator.clock = ForEver()
session.release(asked)
"""
    parent = subprocess.Popen([sys.executable, "-c", PRELUDE + program], stderr=subprocess.PIPE)
    children, asleep = Path(f"/proc/{parent.pid}/task/{parent.pid}/children"), False
    while not asleep:
        assert parent.poll() is None, parent.stderr and parent.stderr.read()
        time.sleep(0.01)
        child = int((children.read_text().split() or ["0"])[0])
        asleep = child > 0 and "nanosleep" in Path(f"/proc/{child}/wchan").read_text()
    parent.kill()
    parent.communicate()
    while _alive(child):
        time.sleep(0.01)
    with Ledger(ledger, create=False) as kept:
        assert kept.account("numbers").spent > 0


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_the_log_says_which_source_was_closed_and_nothing_of_the_data() -> None:
    found = told(
        breaking("raise ValueError('4711')")
        + """
import io, logging
text = io.StringIO()
logging.getLogger("wpinq").addHandler(logging.StreamHandler(text))
with opened(on_suspended=lambda names: 1 / 0) as session:
    protected(session)
    LaplaceSink.draw = broken
    tell(seen=outcome(lambda: session.release(asked)), log=text.getvalue(), shut=session.suspended())
"""
    )
    assert found["seen"][0] == "EvaluationFailed"
    assert found["log"].count("\n") == 1
    assert found["log"].rstrip().endswith(": numbers")
    assert found["shut"] == ["numbers"]
    assert json.dumps(found).count("4711") == 0


def test_a_failure_that_cannot_be_recorded_is_told_by_a_process_that_is_asked_to_end() -> None:
    """Or the service would take the release for one that was broken off, and suspend nothing."""
    found = told(
        breaking("raise ValueError")
        + """
class Asked(AtTheEnd):
    def sleep_until(self, moment):
        super().sleep_until(moment)
        if len(self.slept) > 1:
            raise SystemExit

def full(accounts):
    raise wp.LedgerError("the disk is full: make room on it")

with opened() as session:
    protected(session)
    LaplaceSink.draw, evaluator = broken, session._releaser._evaluator
    evaluator.clock, evaluator._ledger.suspend = Asked(), full
    tell(seen=outcome(lambda: session.release(asked))[0], slept=len(moments(session)))
"""
    )
    assert found == {"seen": "SuspensionError", "slept": 2}


def test_of_several_orders_each_is_held_and_one_that_fails_fails_all_at_the_moment_of_all() -> None:
    found = told(
        breaking("raise ValueError")
        + """
seen = []
for fails in (False, True):
    with opened() as session:
        protected(session)
        start = session._releaser._evaluator.clock.now()
        if fails:
            LaplaceSink.draw = broken
        first = outcome(lambda: session.release([asked, other]))[0]
        seen.append([first, session._releaser._evaluator.clock.now() - start])
        names = session.suspended()
tell(seen=seen, names=names)
"""
    )
    (_, when), (failed, then) = found["seen"]
    assert failed == "EvaluationFailed"
    assert when == pytest.approx(then)
    assert found["names"] == ["numbers"]
