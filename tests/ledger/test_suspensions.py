"""Suspensions: an entry of the ledger says that an account answers no analyst. No budget changes by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wpinq.cli.main import main
from wpinq.errors import LedgerError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.backup import backup, restore
from wpinq.kernel.ledger.ledger import Ledger, Pricing


def opened(path: Path | str) -> Path | str:
    with Ledger(path) as made:
        for name in ("edges", "nodes"):
            made.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=1, budget=10**9)])
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(opened(tmp_path / "l.db"))


@pytest.fixture
def accounts(place: str) -> Path | str:
    """A ledger with two accounts, in a file or in PostgreSQL."""
    return opened(place)


def test_closing_and_opening_are_entries_once_each_and_change_no_budget(accounts: Path | str) -> None:
    with Ledger(accounts) as ledger:
        assert ledger.suspended() == frozenset()
        assert ledger.suspend(["edges"]) == {"edges"}
        assert ledger.suspend(["edges", "nodes"]) == {"nodes"}
        assert ledger.suspended() == {"edges", "nodes"}
        assert ledger.suspended().intersection(["nodes", "others"]) == {"nodes"}
        assert ledger.resume("edges")
        assert not ledger.resume("edges")
        ledger.set_budget("nodes", 2 * 10**9)
        assert ledger.suspended() == {"nodes"}
        said = [(event.kind, event.account, event.actor, event.description) for event in ledger.events()][2:]
        assert said == [
            ("suspend", "edges", "", "suspended after a failed evaluation"),
            ("suspend", "nodes", "", "suspended after a failed evaluation"),
            ("resume", "edges", "curator", "resumed for analysts"),
            ("set budget", "nodes", "curator", "budget 1 -> 2"),
        ]
        assert [account.budget for account in ledger.accounts()] == [10**9, 2 * 10**9]
        ledger.verify()


def test_every_process_sees_at_once_what_another_closed(accounts: Path | str) -> None:
    with Ledger(accounts) as one, Ledger(accounts) as other:
        assert other.suspended() == frozenset()
        one.suspend(["edges"])
        assert other.suspended().intersection(["edges"]) == {"edges"}
        assert other.suspend(["edges"]) == frozenset()
        one.resume("edges")
        assert other.suspended().intersection(["edges"]) == frozenset()


def test_an_account_that_there_is_not_is_neither_closed_nor_opened(accounts: Path | str) -> None:
    with Ledger(accounts) as ledger:
        with pytest.raises(LedgerError, match="no account 'others'"):
            ledger.suspend(["edges", "others"])
        with pytest.raises(LedgerError, match="no account 'others'"):
            ledger.resume("others")
        assert ledger.suspended() == frozenset()  # all or none


def test_a_copy_is_closed_where_the_ledger_was_and_after_it_is_restored(path: Path, tmp_path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.suspend(["edges"])
        head = ledger.head()
    copy = tmp_path / "copy"
    backup(path, copy)
    for file in tmp_path.glob("l.db*"):
        file.unlink()
    restore(copy, path, head)
    with Ledger(path) as ledger:
        assert ledger.suspended() == {"edges"}


def test_a_suspension_that_is_cut_off_is_noticed(path: Path) -> None:
    with Ledger(path) as ledger:
        before = path.read_bytes()
        ledger.suspend(["edges"])
    for file in path.parent.glob("l.db-*"):
        if file.name.endswith(("-wal", "-shm")):
            file.unlink()
    path.write_bytes(before)
    with pytest.raises(LedgerError):
        Ledger(path)


def test_the_command_line_shows_what_is_closed_and_opens_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Ledger(path) as ledger:
        ledger.suspend(["edges"])
    assert main(["ledger", "show", str(path)]) == 0
    assert "suspended after a failed evaluation; resume with: set --resume edges" in capsys.readouterr().out
    assert main(["ledger", "show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suspended"] == ["edges"]
    assert main(["ledger", "set", str(path), "--resume", "nodes"]) == 2
    assert "'nodes' is not suspended" in capsys.readouterr().err
    assert main(["ledger", "set", str(path), "--resume", "edges"]) == 0
    assert "suspended, for" not in capsys.readouterr().out
    assert main(["ledger", "show", str(path), "--history"]) == 0
    assert "resume edges 0 resumed for analysts" in capsys.readouterr().out


def test_what_a_debit_that_was_undone_had_read_is_not_remembered(accounts: Path | str) -> None:
    def price(new: object, parts_of: object) -> Pricing:
        raise ValueError

    with Ledger(accounts) as ledger:
        with pytest.raises(ValueError):
            ledger.debit({"x": "x"}, price)
        ledger.suspend(["edges"])
        with pytest.raises(ValueError):
            ledger.debit({"x": "x"}, price)
        assert ledger.suspended() == {"edges"}
