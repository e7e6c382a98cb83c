"""Sessions of many threads and processes on one ledger, and kill -9 at any moment.

Never overspent, never an answer without its debit, never two answers for one measurement and key.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
from collections import defaultdict
from fractions import Fraction

import pytest

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")]

# One interpreter imports everything once, and forks children before any ledger is open.
COMMON = """
import json, os, random, signal, sys, threading, time
import wpinq as wp
from tests.support.system_noise import with_laplace_noise
from wpinq.noise.permute_and_flip import select
from fractions import Fraction

path = sys.argv[1]
with_laplace_noise([0.0], 1.0)
select([0.0], 2.0, os.urandom)
edges = wp.source("edges", src=int, dst=int)
nodes = edges.select(lambda e: e.src)
parts = nodes.partition(lambda n: n % 2, [0, 1])

def say(*words):
    os.write(1, (json.dumps(words) + "\\n").encode())  # one write, which a kill cannot cut in two

def protected(session):
    session.protect(edges, [(i, i) for i in range(20)], budget=3, version="v")
    return session

def measurement(i):
    epsilon = Fraction(1 + i, 100)
    if i % 5 == 4:
        return nodes.most_common(epsilon, range(6))
    return (parts[i % 2] if i % 5 == 3 else nodes).noisy_count(epsilon, over=range(i % 4, 6))

def ask(session, i, *more):
    asked = [measurement(i), *map(measurement, more)]
    try:
        for m, answers in zip(asked, session.release(asked)):
            say(m.digest.hex(), [[repr(key), value.hex()] for key, value in answers.items()])
    except wp.BudgetExceeded:
        say("refused", [])
"""


def run(script: str, path: pathlib.Path) -> list[tuple[str, list[tuple[str, str]]]]:
    command = [sys.executable, "-c", COMMON + script, str(path)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert (process.returncode, process.stderr) == (0, ""), process.stderr
    return [(digest, [tuple(pair) for pair in pairs]) for digest, pairs in map(json.loads, process.stdout.splitlines())]


def check(path: pathlib.Path, said: list[tuple[str, list[tuple[str, str]]]]) -> None:
    values = defaultdict(set)
    for digest, pairs in said:
        for key, value in pairs:
            values[digest, key].add(value)
    assert max(map(len, values.values())) == 1  # one answer for one measurement and key
    with Ledger(path, create=False) as ledger:
        ledger.verify()  # answers are of debited measurements, and accounts what their debits add up to
        debits = [entry for entry in ledger.entries() if entry.kind == "debit"]
        paid = [digest for entry in debits for digest in entry.measurements]
        assert len(paid) == len(set(paid))  # nothing was paid for twice
        assert sum(entry.amount for entry in debits) == ledger.account("edges").spent <= 3 * 10**9
        assert len({digest for digest, pairs in said if pairs}) <= len(paid)
        answered = {d for entry in ledger.entries() if entry.kind == "answers" for d in entry.measurements}
        assert answered <= set(paid)


KILLS = """
if os.fork() == 0:
    with protected(wp.Session(path + ".first")) as session:
        session.release(measurement(0))
    os._exit(0)
used = os.wait3(0)[2]
usual = used.ru_utime + used.ru_stime  # so that kills fall where the work is, however busy the machine

chance = random.Random(3)
kills = 0
while kills < 24:
    child = os.fork()
    if child == 0:
        chance.seed(kills)
        # After so much processor time the system ends the process at once: Python has no handler of this signal.
        signal.setitimer(signal.ITIMER_PROF, chance.uniform(0.02, 3) * usual)
        with protected(wp.Session(path)) as session:
            say("opened", [])
            for _ in range(10**6):
                ask(session, *chance.sample(range(40), chance.randint(1, 3)))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGPROF
    kills += 1
with protected(wp.Session(path)) as session:
    for i in range(40):
        ask(session, i)
"""


def test_a_kill_at_any_moment_loses_nothing_but_budget(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    said = run(KILLS, path)
    words = [digest for digest, _ in said]
    assert words.count("opened") > 5
    assert "refused" in words  # the budget does not cover all of them: the limit was met, and kept
    check(path, [line for line in said if line[0] not in ("opened", "refused")])


PROCESSES = """
ready, go = os.pipe(), os.pipe()
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        with protected(wp.Session(path)) as session:
            os.write(ready[1], b"r")
            os.read(go[0], 1)
            def work(seed):
                chance = random.Random(seed)
                for _ in range(6):
                    ask(session, *chance.sample(range(40), chance.randint(1, 3)))
            threads = [threading.Thread(target=work, args=(2 * number + i,)) for i in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(ready[0], 1)
os.write(go[1], b"g" * 8)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


def test_eight_processes_of_two_threads_agree(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    said = run(PROCESSES, path)
    assert len(said) > 8 * 2 * 6 // 2
    check(path, [line for line in said if line[0] != "refused"])


def test_sixteen_threads_of_one_session_agree(tmp_path: pathlib.Path, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    shared = [nodes.noisy_count(Fraction(1, 100 + i), over=range(5)) for i in range(4)]
    own = [nodes.noisy_count(Fraction(1, 200 + i), over=range(5)) for i in range(16)]
    handle_of = nodes.noisy_count(Fraction(1, 300))
    results: list[tuple[bytes, tuple[float, ...]]] = []
    barrier = threading.Barrier(16)
    with wp.Session(tmp_path / "ledger.db") as session:
        session.protect(edges, [(1, 2)], budget=1)

        def work(number: int) -> None:
            barrier.wait()
            handle = session.release(handle_of)
            for measurement in (*shared, own[number]):
                results.append((measurement.digest, tuple(session.release(measurement).values)))
            results.append((handle_of.digest, tuple(handle.at(range(5)).values)))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        distinct = dict(results)
        assert len(results) == 16 * 6
        assert len(set(results)) == len(distinct) == 4 + 16 + 1
        charged = [-(-(10**9) // m.epsilon.denominator) for m in (*shared, *own, handle_of)]
        assert session.spent("edges") == Fraction(sum(charged), 10**9)
        session._ledger.verify()


def test_threads_that_ask_for_more_than_there_is_share_what_there_is(edges: wp.Query) -> None:
    outcomes: list[bool] = []
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1)

        def work() -> None:
            for _ in range(4):
                try:
                    session.release(edges.noisy_count("0.1", over=[(1, 2)]), fresh=True)
                    outcomes.append(True)
                except wp.BudgetExceeded:
                    outcomes.append(False)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (outcomes.count(True), len(outcomes), session.remaining("edges")) == (10, 64, 0)


def test_data_protected_anew_amid_releases_never_answer_for_what_was_paid_before(edges: wp.Query) -> None:
    """Every answer near 1000·k belongs to the debit made for version k."""
    nodes = edges.select(lambda e: e.src)
    stop = threading.Event()
    wrong: list[object] = []
    ledger = Ledger()
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 1)] * 1000, budget=10**6, version="1")

        def release() -> None:
            while not stop.is_set():
                try:
                    answers = session.release(nodes.noisy_count(1))
                    answers[1]
                except (wp.SessionError, wp.EvaluationFailed):
                    continue

        threads = [threading.Thread(target=release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for version in range(2, 12):
            session.protect(edges, [(1, 1)] * (1000 * version), budget=10**6, version=str(version))
        stop.set()
        for thread in threads:
            thread.join()
    with wp.Session(ledger) as session:  # another one: within a session no version comes back
        for version in range(1, 12):
            session.protect(edges, [(1, 1)] * (1000 * version), budget=10**6, version=str(version))
            value = session.release(nodes.noisy_count(1))[1]
            if abs(value - 1000 * version) > 100:  # false alarm: 11 exp(-100)
                wrong.append((version, value))
        assert wrong == []
        assert session.spent("edges") == 11
