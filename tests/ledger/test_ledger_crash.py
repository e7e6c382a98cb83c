"""The ledger among processes: spending together, kill -9 at every statement and at any moment, and fork."""

import json
import os
import pathlib
import random
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from wpinq.errors import BudgetExceeded
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")]

COMMON = """
import os, sys, threading, time, warnings
from wpinq.errors import BudgetExceeded, LedgerError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing

path, argument = sys.argv[1], sys.argv[2]

def say(text):
    os.write(1, (text + "\\n").encode())  # one write, which a kill cannot cut in two

def flat(**charges):
    return lambda new, parts_of: Pricing(charges, {})

def account(ledger, budget):
    return ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=budget)])
"""


def start(script: str, path: str | pathlib.Path, argument: object = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMON + script, str(path), str(argument)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    """The lines that a process said; it must have ended well."""
    try:
        output, errors = process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert (process.returncode, errors) == (0, ""), errors
    return output.splitlines()


def together(script: str, path: str | pathlib.Path, count: int) -> list[list[str]]:
    """What several processes said that started at the same moment."""
    processes = [start(f"say('ready'); sys.stdin.readline()\n{script}", path, i) for i in range(count)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [finish(process) for process in processes]


def open_account(ledger: Ledger, budget: int) -> None:
    ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=budget)])


SPEND = """
with Ledger(path) as ledger:
    account(ledger, 400)
    for i in range(30):
        amount = 1 + (int(argument) + i) % 5
        try:
            ledger.debit({f"{argument}.{i}": "count", f"shared {i}": "count"}, flat(edges=amount))
            say(str(amount))
        except BudgetExceeded:
            pass
"""


def test_processes_create_one_ledger_and_never_overspend(place: str) -> None:
    accepted = [[int(line) for line in lines] for lines in together(SPEND, place, 8)]
    with Ledger(place, create=False) as ledger:
        ledger.verify()
        assert [entry.kind for entry in ledger.entries()].count("open account") == 1
        assert 400 - 5 < sum(map(sum, accepted)) == ledger.account("edges").spent <= 400
        with pytest.raises(BudgetExceeded):
            ledger.debit({"late": "count"}, lambda new, parts_of: Pricing({"edges": 5}, {}))


SAME_KEYS = """
with Ledger(path) as ledger:
    stands = {}
    for i in range(40):
        key = b"%d" % (i // 2)
        stands |= ledger.store_answers("m", {key: float(argument) + i / 64, b"own" + argument.encode(): 1.0})
    say(repr([stands[b"%d" % i] for i in range(20)]))
"""


def test_processes_that_answer_the_same_key_see_the_same_answer(place: str) -> None:
    with Ledger(place) as ledger:
        open_account(ledger, 10)
        ledger.debit({"m": "count"}, lambda new, parts_of: Pricing({"edges": 10}, {}))
    said = together(SAME_KEYS, place, 4)
    with Ledger(place) as ledger:
        ledger.verify()
        stands = repr(list(ledger.answers("m", [b"%d" % i for i in range(20)]).values()))
    assert said == [[stands]] * 4


EVERY_STATEMENT = """
from tests.support.killed import die_before_statement, each_killed

def child(number):
    die_before_statement(number)
    with Ledger(f"{path}/{number}.db") as ledger:
        account(ledger, 10)
        say(f"{number} account")
        ledger.debit({"m": "count"}, lambda new, parts_of: Pricing({"edges": 5}, {("p", "x"): 2}))
        say(f"{number} debit")
        ledger.store_answers("m", {b"a": 1.0, b"b": 2.0})
        say(f"{number} answers")

for number in each_killed(child):
    say(f"{number} killed")
"""


def test_a_kill_at_any_statement_leaves_all_or_nothing(tmp_path: pathlib.Path) -> None:
    said = finish(start(EVERY_STATEMENT, tmp_path))
    reached: dict[int, list[str]] = {}
    for line in said:
        which, word = line.split()
        reached.setdefault(int(which), []).append(word)
    kills = sum("killed" in words for words in reached.values())
    assert kills > 40
    seen = set()
    for number, words in reached.items():
        with Ledger(tmp_path / f"{number}.db") as ledger:
            ledger.verify()
            spent = sum(account.spent for account in ledger.accounts())
            answers = ledger.answers("m")
            assert ("account" not in words) or ledger.account("edges").budget == 10
            assert ("debit" not in words) or spent == 5
            assert ("answers" not in words) or len(answers) == 2
            assert (spent, answers) in [(0, {}), (5, {}), (5, {b"a": 1.0, b"b": 2.0})]
            seen.add((len(ledger.accounts()), spent, len(answers)))
            open_account(ledger, 10)
            ledger.debit({"m": "count"}, lambda new, parts_of: Pricing({"edges": 5}, {}))
            stands = ledger.store_answers("m", {b"a": -1.0})
            assert (ledger.account("edges").spent, stands[b"a"]) == (5, answers.get(b"a", -1.0))
            ledger.verify()
    assert seen == {(0, 0, 0), (1, 0, 0), (1, 5, 0), (1, 5, 2)}


ENDLESS = """
with Ledger(path) as ledger:
    account(ledger, 10**9)
    say("ready")
    for i in range(10**9):
        digest = f"{argument}.{i}"
        ledger.debit({digest: "count"}, flat(edges=3))
        say(digest)
        ledger.store_answers(digest, {b"%d" % k: float(k) for k in range(i % 40)})
        say(digest + " answers")
"""


def test_a_kill_at_any_moment_leaves_a_ledger_that_verifies(place: str) -> None:
    chance = random.Random(11)
    debited: set[str] = set()
    answered: set[str] = set()
    for kill in range(20):
        process = start(ENDLESS, place, kill)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            finish(process)
        time.sleep(chance.uniform(0.0, 0.06))
        process.kill()
        with process:
            assert process.stderr is not None
            output, errors = process.stdout.read(), process.stderr.read()  # communicate would lose what was read ahead
        assert (process.returncode, errors) == (-9, "")
        for line in output.splitlines():
            digest, *answers = line.split()
            (answered if answers else debited).add(digest)
        with Ledger(place, create=False) as ledger:
            ledger.verify()
            paid = {digest for entry in ledger.entries() if entry.kind == "debit" for digest in entry.measurements}
            assert ledger.account("edges").spent == 3 * len(paid)
            assert debited <= paid
            assert len(paid) <= len(debited) + kill + 1  # a kill may come between the commit and the word of it
            for digest in answered:
                asked = range(int(digest.split(".")[1]) % 40)
                assert ledger.answers(digest) == {b"%d" % k: float(k) for k in asked}
            stored = {digest for entry in ledger.entries() if entry.kind == "answers" for digest in entry.measurements}
            assert stored <= paid
    assert answered


# fork

FORKS = """
warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: that threads and fork do not mix
ledger = Ledger(path)
account(ledger, 300)
stop = threading.Event()

def spend(name):
    i = 0
    while not stop.is_set():
        i += 1
        try:
            ledger.debit({f"{os.getpid()} {name} {i}": "count"}, flat(edges=1))
        except BudgetExceeded:
            return
        say("1")

threads = [threading.Thread(target=spend, args=(name,)) for name in range(3)]
for thread in threads:
    thread.start()
children = []
for number in range(6):
    time.sleep(0.004)
    child = os.fork()
    if child == 0:
        for i in range(20):
            try:
                ledger.debit({f"child {number} {i}": "count"}, flat(edges=1))
            except BudgetExceeded:
                continue
            say("1")
        os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
for thread in threads:
    thread.join()
ledger.verify()
ledger.close()
"""


def test_a_ledger_survives_forks_amid_threads(place: str) -> None:
    said = finish(start(FORKS, place))
    with Ledger(place) as ledger:
        ledger.verify()
        assert len(said) == ledger.account("edges").spent == 300
        assert any("child" in digest for entry in ledger.entries() for digest in entry.measurements)


STRANDED = """
ledger = Ledger(path if argument == "file" else None)
account(ledger, 10)

def attempt():
    try:
        ledger.debit({"m": "count"}, price)
        say("debited")
    except LedgerError as error:
        say(str(error))

def price(new, parts_of):
    global child
    if argument == "file":
        child = os.fork()
    return Pricing({"edges": 4}, {})

child = None
if argument == "memory":
    child = os.fork()
    if child == 0:
        attempt()
        os._exit(0)
    os.waitpid(child, 0)
    attempt()
else:
    attempt()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
ledger.verify()
say(f"spent {ledger.account('edges').spent}")
"""


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_fork_that_would_double_a_budget_is_refused_in_the_child(tmp_path: pathlib.Path, kind: str) -> None:
    said = finish(start(STRANDED, tmp_path / "ledger.db", kind))
    assert len(said) == 3
    assert sum("cannot be used in a forked process" in line for line in said[:2]) == 1
    assert (said[:2].count("debited"), said[2]) == (1, "spent 4")


GONE = """
ledger = Ledger(path)
account(ledger, 10)
os.rename(path, path + ".moved")
if argument == "replaced":
    for part in ("-head", "-wal"):  # or no ledger could be made where one is missing
        os.remove(path + part)
    with Ledger(path) as other:
        account(other, 10)
child = os.fork()  # which closes the file, so that both open it again
if child:
    assert os.waitpid(child, 0)[1] == 0
try:
    ledger.debit({"m": "count"}, flat(edges=1))
except LedgerError as error:
    say(str(error))
if not child:
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("kind", "message"), [("removed", "there is no such file"), ("replaced", "removed or replaced")]
)
def test_a_ledger_that_is_gone_does_not_come_back_unspent(tmp_path: pathlib.Path, kind: str, message: str) -> None:
    said = finish(start(GONE, tmp_path / "ledger.db", kind))
    assert [message in line for line in said] == [True, True]
    assert (tmp_path / "ledger.db").exists() == (kind == "replaced")


TRAVELS = """
import json
with Ledger(path, create=False) as ledger:
    ledger.verify()
    say(json.dumps([[entry.sequence, entry.hash] for entry in ledger.entries()]))
"""


def test_another_process_reads_the_same_history_while_this_one_has_it_open(place: str) -> None:
    with Ledger(place) as ledger:
        open_account(ledger, 10)
        ledger.debit({"m": "count"}, lambda new, parts_of: Pricing({"edges": 1}, {}))
        (line,) = finish(start(TRAVELS, place))
        assert json.loads(line) == [[entry.sequence, entry.hash] for entry in ledger.entries()]
