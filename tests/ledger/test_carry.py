"""A ledger that is carried to a new file: closed for ever, with all that was spent, and no answer."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from wpinq.cli.main import main
from wpinq.errors import BudgetExceeded, LedgerError
from wpinq.kernel.ledger import backup as backup_module
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.backup import backup, carry, restore
from wpinq.kernel.ledger.ledger import Ledger, Price, Pricing
from wpinq.measure.measurement import Measurement, measurement_from_json

WORDS = wp.source("words", str, unit="one word")


def flat(amount: int) -> Price:
    return lambda new, parts_of: Pricing({"edges": amount}, {})


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "old.db") as ledger:
        for name in ("edges", "nodes"):
            ledger.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=Fraction(3, 2), budget=100)])
        ledger.set_budget("edges", 50, "alice")
        ledger.debit({"m": "count"}, flat(30), analyst="alice", plan="plan of {}".format)
        ledger.debit({"n": "count"}, flat(40), plan="plan of {}".format)
        ledger.store_answers("m", {b"a": 1.0})
        ledger.suspend(["nodes"])
    return tmp_path / "old.db"


def test_all_but_the_answers_is_carried(old: Path, tmp_path: Path) -> None:
    with Ledger(old) as ledger:
        before = ledger.accounts()
    carry(old, tmp_path / "new.db")
    with Ledger(tmp_path / "new.db", create=False) as ledger:
        ledger.verify()
        assert ledger.accounts() == before
        assert [(each.name, each.spent, each.suspended) for each in before] == [
            ("edges", 70, False),
            ("edges@alice", 30, False),
            ("nodes", 0, True),
        ]
        assert ledger.paid(["m", "n"]) == frozenset()
        assert ledger.answers("m") == {}
        assert set(ledger.plans()[1].values()) == {"plan of m", "plan of n"}
        assert ledger.plans("alice") == {}
        with pytest.raises(BudgetExceeded):
            ledger.debit({"m": "count"}, flat(31))
        assert ledger.debit({"m": "count"}, flat(30)) == {"m"}
    assert stat.S_IMODE(os.stat(tmp_path / "new.db").st_mode) == 0o600


def test_the_old_ledger_takes_nothing_any_more_and_answers_still(old: Path, tmp_path: Path) -> None:
    with Ledger(old) as ledger:
        carry(old, tmp_path / "new.db")
        assert ledger.answers("m") == {b"a": 1.0}
        assert ledger.debit({"m": "count"}, flat(1)) == frozenset()
        for act in (
            lambda: ledger.debit({"o": "count"}, flat(1)),
            lambda: ledger.store_answers("m", {b"b": 2.0}),
            lambda: ledger.set_budget("edges", 1000),
            lambda: ledger.resume("nodes"),
            lambda: ledger.open_accounts(
                [declared_account("new", schema="s", unit="u", unit_weight=Fraction(1), budget=1)]
            )[0],
        ):
            with pytest.raises(LedgerError, match="closed permanently"):
                act()
        ledger.verify()


def test_a_ledger_is_carried_once(old: Path, tmp_path: Path) -> None:
    carry(old, tmp_path / "new.db")
    for target in ("new.db", "other.db"):
        for file in tmp_path.glob("new.db*"):
            file.unlink()
        with pytest.raises(LedgerError, match="continued in"):
            carry(old, tmp_path / target)
        assert not (tmp_path / target).exists()


def test_a_carrying_that_was_interrupted_goes_on_to_the_same_place_only(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(backup_module, "_carry", killed)
        carry(old, tmp_path / "new.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.db", "old.db-head"]
    with pytest.raises(LedgerError, match="closed permanently"), Ledger(old) as ledger:
        ledger.debit({"o": "count"}, flat(1))
    with pytest.raises(LedgerError, match=r"continued in .*new\.db"):
        carry(old, tmp_path / "other.db")
    carry(old, tmp_path / "new.db")
    with Ledger(tmp_path / "new.db", create=False) as ledger:
        assert ledger.account("edges").spent == 70


def test_a_ledger_with_releases_in_flight_or_an_edit_is_not_carried(old: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old.db-inflight"
    folder.mkdir()
    (folder / ".service").touch()
    (folder / "a release").touch()
    with pytest.raises(LedgerError, match="in flight"):
        carry(old, tmp_path / "new.db")
    (folder / "a release").unlink()
    with pytest.raises(LedgerError, match="does not hold entry 99"):
        carry(old, tmp_path / "new.db", f"99:{'0' * 64}")
    with Ledger(old) as ledger:
        assert ledger.debit({"o": "count"}, flat(1)) == {"o"}  # it was not closed
    carry(old, tmp_path / "new.db")


def test_a_ledger_of_a_running_service_is_not_carried(old: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old.db-inflight"
    folder.mkdir()
    lock = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print(1); input()"
    command = [sys.executable, "-u", "-c", lock, str(folder / ".service")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None and service.stdout.readline() == b"1\n"
        with pytest.raises(LedgerError, match="a service uses"):
            carry(old, tmp_path / "new.db")
        service.communicate(b"\n")
    with Ledger(old) as ledger:
        assert ledger.debit({"o": "count"}, flat(1)) == {"o"}  # it was not closed
    carry(old, tmp_path / "new.db")


def test_the_command_line_carries(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.db"
    assert main(["ledger", "carry", str(old), str(new)]) == 0
    assert "is closed permanently" in capsys.readouterr().out
    assert main(["ledger", "carry", str(old), str(new)]) == 6
    assert main(["ledger", "show", str(new), "--history"]) == 0
    assert "0.00000007 spent before" in capsys.readouterr().out


def test_the_head_of_the_closed_ledger_refuses_backups_from_before(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup(old, tmp_path / "copy.db")
    assert main(["ledger", "carry", str(old), str(tmp_path / "new.db")]) == 0
    found = re.search("Head of the closed ledger: (.*)", capsys.readouterr().out)
    assert found is not None
    with pytest.raises(LedgerError, match="and would be spent again"):
        restore(tmp_path / "copy.db", tmp_path / "restored.db", found[1])
    assert not (tmp_path / "restored.db").exists()


def test_a_debit_keeps_the_plan_that_prices_and_replays_it(tmp_path: Path) -> None:
    words = ["to", "be", "or", "not", "to", "be"]
    asked: list[Measurement] = [
        WORDS.noisy_count("0.25", over=["to"]),
        WORDS.most_common("0.5", ["to", "be"]),
        WORDS.partition(lambda word: word, ["to"])["to"].noisy_count("0.5"),
    ]
    with wp.Session(tmp_path / "l.db") as session:
        session.protect(WORDS, words, budget=10, version="1")
        session.set_budget("words", 5, analyst="alice")
        session.release(asked)
        session.analyst("alice").release(WORDS.where(lambda word: word != "secret").noisy_count(1, over=["to"]))
        spent = session.spent("words")
    with Ledger(tmp_path / "l.db") as ledger:
        charged = {entry.sequence: entry.amount for entry in ledger.entries()}
        plans, hers = ledger.plans(), ledger.plans("alice")
        kept = [text for found in plans.values() for text in found.values()]
        assert len(set(kept)) == 4
        assert sum("secret" in text for text in kept) == 2
        assert ["secret" in text for found in hers.values() for text in found.values()] == [True]
        assert not any("secret" in repr(event) for event in ledger.events())
    with wp.Session(tmp_path / "l.db") as session:
        session.protect(WORDS, words, budget=10, version="1")
        for sequence, found in plans.items():
            read = [measurement_from_json(json.loads(text)) for text in found.values()]
            assert wp.bill(read)["words"] * 10**9 == charged[sequence]
            session.release(read)
        assert session.spent("words") == spent  # all of it was paid for


def test_plans_are_printed_to_the_curator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wp.Session(tmp_path / "l.db") as session:
        session.protect(WORDS, ["to"], budget=10, version="1")
        session.release(WORDS.where(lambda word: word != "secret").noisy_count(1, over=["to"]))
    assert main(["ledger", "show", str(tmp_path / "l.db"), "--history"]) == 0
    assert "secret" not in capsys.readouterr().out
    assert main(["ledger", "show", str(tmp_path / "l.db"), "--plans"]) == 0
    assert "secret" in capsys.readouterr().out


def test_acts_on_users_are_entries_with_actor_and_target(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        for kind in ("admit", "renew", "remove"):
            ledger.record_act(kind, "alice", actor="carol")
        with pytest.raises(LedgerError, match="one of admit, renew, remove"):
            ledger.record_act("debit", "alice")
        assert [(event.kind, event.actor, event.account) for event in ledger.events()] == [
            ("admit", "carol", "alice"),
            ("renew", "carol", "alice"),
            ("remove", "carol", "alice"),
        ]
        ledger.verify()
