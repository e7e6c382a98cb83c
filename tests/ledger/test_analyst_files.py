"""Ledgers with analysts' accounts as files: copied, edited, killed in the middle, and among fifty processes."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.ledger.test_noticed import edited
from tests.support.analysts import each, opened, spent
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import debit
from wpinq.kernel.ledger.backup import backup, restore
from wpinq.kernel.ledger.ledger import Ledger

ROOT = pathlib.Path(__file__).parents[2]


def test_a_copy_has_both_sides_and_a_ledger_notices_what_is_missing_of_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "l.db"
    with opened(path) as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        before, head = (spent(ledger), ledger.events("alice")), ledger.head()
    backup(path, tmp_path / "copy")
    for suffix in ("", "-head", "-wal", "-shm"):
        pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
    restore(tmp_path / "copy", path, head)
    with Ledger(path, create=False, expected_head=head) as ledger:
        assert (spent(ledger), ledger.events("alice")) == before
        ledger.verify()
    for change in (
        "UPDATE accounts SET spent = 0 WHERE name = 'edges@alice'",
        "UPDATE accounts SET budget = 10000 WHERE name = 'edges@alice'",
        "DELETE FROM accounts WHERE name = 'edges@bob'",
        "DELETE FROM measurements WHERE digest = 'm@alice'",
        "UPDATE measurements SET digest = 'm@bob' WHERE digest = 'm@alice'",
    ):
        other = tmp_path / "edited.db"
        shutil.copy(path, other)
        edited(other, change)
        with pytest.raises(LedgerError, match="tampered"):
            Ledger(other)
        other.unlink()


def test_what_only_an_analyst_paid_for_is_noticed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No version of wpinq writes such a debit; one that did would give what no source paid for."""
    path = tmp_path / "l.db"
    with opened(path) as ledger, monkeypatch.context() as patched:
        real = debit._record

        def of_analysts(transaction: Any, payer: debit.Payer, *more: Any) -> int:
            return real(transaction, payer, *more) if payer != debit.Payer() else 0

        patched.setattr(debit, "_record", of_analysts)
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        with pytest.raises(LedgerError, match="an analyst has a row of measurements that no source has"):
            ledger.verify()
    with pytest.raises(LedgerError, match="an analyst has a row of measurements that no source has"):
        Ledger(path)


COMMON = """
import json, os, sys
from wpinq.errors import BudgetExceeded, SourceExhausted
from wpinq.kernel.ledger.ledger import Ledger, Pricing

path = sys.argv[1]

def say(*words):
    os.write(1, (json.dumps(words) + "\\n").encode())  # one write, which a kill cannot cut in two

def each(amount):
    return lambda new, parts_of: Pricing({"edges": amount * len(new)}, {("p", n): amount for n in new})
"""


def said_by(script: str, path: pathlib.Path) -> list[list[object]]:
    process = subprocess.run(
        [sys.executable, "-c", COMMON + script, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert (process.returncode, process.stderr) == (0, ""), process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")

KILLED = """
import shutil
from tests.support.killed import die_before_statement, each_killed

def child(number):
    shutil.copy(f"{path}/first.db", f"{path}/{number}.db")
    die_before_statement(number)
    with Ledger(f"{path}/{number}.db", create=False) as ledger:
        ledger.debit({"m": "count", "n": "count"}, each(5), analyst="bob")
        say(number, "debited")

for number in each_killed(child):
    say(number, "killed")
"""


@pytest.mark.long
@needs_fork
def test_a_kill_in_the_middle_of_a_debit_leaves_both_sides_or_none(tmp_path: pathlib.Path) -> None:
    with opened(tmp_path / "first.db") as ledger:
        ledger.debit({"m": "count"}, each(edges=5), analyst="alice")
    (tmp_path / "first.db-head").unlink(missing_ok=True)
    reached: dict[object, set[object]] = {}
    for number, word in said_by(KILLED, tmp_path):
        reached.setdefault(number, set()).add(word)
    assert sum("killed" in words for words in reached.values()) > 20
    seen = set()
    for number, words in reached.items():
        with Ledger(tmp_path / f"{number}.db") as ledger:
            ledger.verify()
            found = spent(ledger)
            paid = (ledger.paid(["m", "n"]), ledger.paid(["m", "n"], "bob"))
            both = found["edges"] == 10
            assert found == {"edges": 5 + 5 * both, "edges@alice": 5, "edges@bob": 10 * both}
            assert list(map(sorted, paid)) == ([["m", "n"]] * 2 if both else [["m"], []])
            assert "debited" not in words or found["edges"] == 10
            seen.add(found["edges"])
            ledger.debit({"m": "count", "n": "count"}, each(edges=5), analyst="bob")
            assert spent(ledger) == {"edges": 10, "edges@alice": 5, "edges@bob": 10}
            ledger.verify()
    assert seen == {5, 10}


FIFTY = """
gate, opened = os.pipe()
children = []
for number in range(50):
    process = os.fork()
    if process:
        children.append(process)
        continue
    os.close(opened)
    os.read(gate, 1)  # until all are there, and the parent goes
    name = f"a{number}"
    with Ledger(path, create=False) as ledger:
        for turn in range(8):
            batch = {f"own {number} {turn}": "count", f"shared {turn}": "count"}
            try:
                ledger.debit(batch, each(3), analyst=name)
                say(name, "paid", sorted(batch))
            except SourceExhausted as error:
                say(name, "exhausted", str(error))
            except BudgetExceeded:
                say(name, "refused", [])
    os._exit(0)
os.close(gate)
os.close(opened)
for process in children:
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""


@pytest.mark.long
@needs_fork
def test_fifty_analysts_in_processes_never_overspend(tmp_path: pathlib.Path) -> None:
    path, names = tmp_path / "l.db", [f"a{number}" for number in range(50)]
    with opened(path, 600, *names, own=12) as ledger:
        for name in names[::2]:
            ledger.set_budget("edges", 1000, name)
    said = said_by(FIFTY, path)
    paid: dict[str, set[str]] = {name: set() for name in names}
    for who, word, batch in said:
        if word == "paid":
            paid[str(who)] |= set(batch)
    with Ledger(path, create=False) as ledger:
        ledger.verify()
        found = spent(ledger)
        everything = set().union(*paid.values())
        assert found["edges"] == 3 * len(everything) <= 600
        assert found["edges"] > 600 - 6  # until no batch went any more
        for name in paid:
            assert found[f"edges@{name}"] == 3 * len(paid[name]) <= (1000 if name in names[::2] else 12)
            assert ledger.paid(everything, name) == paid[name]
            assert len(ledger.events(name)) == sum(who == name and word == "paid" for who, word, _ in said)
    words = {str(word) for _, word, _ in said}
    assert words == {"paid", "exhausted", "refused"}
    assert {str(text) for _, word, text in said if word == "exhausted"} == {debit.EXHAUSTED}
    assert len(said) == 400
