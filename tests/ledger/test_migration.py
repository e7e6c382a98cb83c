"""A ledger is copied from a file to PostgreSQL once: its chain, answers, analysts and suspensions go on there."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import pytest

import wpinq as wp
from tests.support.postgres import Server
from wpinq.cli.main import main
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import migration
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.ledger.migration import move

WORDS = wp.source("words", str)
COUNT = WORDS.noisy_count(Fraction(1, 4), over=["to", "be"])


def released(place: object, analyst: str | None = None) -> dict[object, float]:
    with wp.Session(place) as session:
        session.protect(WORDS, ["to", "be", "to"], budget=2, version="first")
        payer = session if analyst is None else session.analyst(analyst)
        return dict(payer.release(COUNT).items())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger with answers of an analyst and a suspended account."""
    path = tmp_path / "old.db"
    with Ledger(path) as ledger:
        ledger.open_accounts([declared_account("other", "s", "u", Fraction(1), 10)])
        ledger.suspend(["other"])
    with wp.Session(path) as session:
        session.protect(WORDS, ["to", "be", "to"], budget=2, version="first")
        session.set_budget("words", 1, analyst="alice")
    released(path, "alice")
    return path


def test_chain_replay_analysts_and_suspensions_go_on(old: Path, postgres_ledger: str) -> None:
    answers = released(old)
    with Ledger(old) as ledger:
        head, accounts, entries = ledger.head(), ledger.accounts(), list(ledger.entries())
        plans = ledger.plans()
    reached = move(old, postgres_ledger, head)
    with Ledger(postgres_ledger, expected_head=head) as ledger:
        ledger.verify()
        assert ledger.head() == str(reached)
        assert ledger.accounts() == accounts
        assert ledger.suspended() == {"other"}
        moved = list(ledger.entries())
        assert moved[: len(entries)] == entries
        assert [entry.kind for entry in moved[len(entries) :]] == ["close", "carry"]
        assert {entry: kept for entry, kept in ledger.plans().items() if kept} == plans
    assert released(postgres_ledger, "alice") == released(postgres_ledger) == answers
    with Ledger(postgres_ledger) as ledger:
        assert ledger.accounts() == accounts  # all of it was a replay
        ledger.set_budget("words", 10**9)
        ledger.verify()


def test_the_old_ledger_takes_nothing_any_more(old: Path, postgres_ledger: str, postgres_server: Server) -> None:
    head = move(old, postgres_ledger)
    with Ledger(old) as ledger:
        ledger.verify()
        *_, first, last = ledger.entries()
        assert [each.kind for each in (first, last)] == ["close", "close"]
        assert last.content == {
            "to": postgres_ledger.replace(f"{postgres_ledger.split('@')[0]}@", "postgresql://"),
            "head": str(head),
        }
        with pytest.raises(LedgerError, match="closed permanently"):
            ledger.set_budget("words", 10**10)
    other = postgres_server.ledger()
    with pytest.raises(LedgerError, match=r"continued in postgresql://127"):
        move(old, other)
    with pytest.raises(LedgerError, match="has entries of its own"):
        move(old, postgres_ledger)


def test_a_ledger_with_entries_takes_no_other(old: Path, postgres_ledger: str) -> None:
    with Ledger(postgres_ledger) as ledger:
        ledger.open_accounts([declared_account("words", "s", "u", Fraction(1), 10)])
    with pytest.raises(LedgerError, match="has entries of its own: make another ledger with wpinq ledger init"):
        move(old, postgres_ledger)
    with Ledger(old) as ledger:
        ledger.set_budget("words", 10**10)  # it was not closed


@pytest.mark.parametrize("moment", ["_copy", "verify"])
def test_a_move_that_was_interrupted_goes_on_to_the_same_place_only(
    old: Path, postgres_ledger: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(migration, moment, interrupted)
        move(old, postgres_ledger)
    other = postgres_server.ledger()
    with pytest.raises(LedgerError, match=r"continued in postgresql://127"):
        move(old, other)
    move(old, postgres_ledger)
    with Ledger(postgres_ledger) as ledger:
        ledger.verify()
        assert [entry.kind for entry in ledger.entries()].count("close") == 1


def test_a_ledger_with_releases_in_flight_or_an_edit_is_not_moved(old: Path, postgres_ledger: str) -> None:
    folder = old.with_name(f"{old.name}-inflight")
    folder.mkdir()
    (folder / "release").touch()
    with pytest.raises(LedgerError, match="left releases in flight"):
        move(old, postgres_ledger)
    (folder / "release").unlink()
    move(old, postgres_ledger)


def test_the_command_line_makes_and_copies(
    old: Path, postgres_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres_server.url(postgres_server.database())
    assert main(["ledger", "init", url]) == 0
    assert "Grant the role db" in capsys.readouterr().out
    assert main(["ledger", "init", url]) == 6
    assert main(["ledger", "copy", str(old), url]) == 0
    assert "is closed permanently and continued in postgresql://127.0.0.1" in capsys.readouterr().out
    assert main(["ledger", "verify", url]) == 0
    assert main(["ledger", "set", url, "--budget", "words=3", "--resume", "other"]) == 0
    assert main(["ledger", "show", url, "--history"]) == 0
    said = capsys.readouterr()
    assert "words: spent 0.25 of 3" in said.out
    assert "suspended after" in said.out
    for refused in (
        ["backup", url, "copy"],
        ["restore", "copy", url],
        ["carry", url, "new"],
        ["copy", url, url],
        ["show", f"{url}/another"],
        ["show", url.replace("postgresql", "postgresql+psycopg")],
        ["show", str(old), url],
        ["show", str(old), f"--budget={url}"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(["ledger", *refused])
        assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("takes a file; PostgreSQL has copies of its own") == 4
    assert "secret-word" not in said.out + said.err + errors
