"""Accounts and history of a session, and labels beside debits: kept, shown without harm, and no part of anything."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from tests.support.forging import without_triggers
from wpinq.cli.main import main
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.measure.group import LONGEST_LABEL

WORDS = wp.source("words", str, unit="one word")
NASTY = "a\x1b[2Kb\r\nc\u202ed\u0000e<script>\ud800"


def counts(epsilon: str = "1/4") -> wp.Measurement:
    return WORDS.noisy_count(epsilon, over=["to", "be"])


def opened(path: Path | None) -> wp.Session:
    session = wp.Session(path)
    session.protect(WORDS, ["to", "be", "or"], budget=2, version="1")
    return session


def test_accounts_and_history_tell_what_was_spent_and_no_data() -> None:
    with opened(None) as session:
        session.release(counts(), label="a first look")
        session.set_budget("words", 3)
        (account,) = session.balances()
        events = session.history()
        assert session.debited() == {"words": Fraction(1, 4)}
    assert (account.account, account.budget, account.spent, account.remaining) == (
        "words", 3, Fraction(1, 4), Fraction(11, 4),
    )  # fmt: skip
    assert repr(account) == "words: spent 0.25 of 3, 2.75 remaining; protects one word"
    assert [(event.kind, event.amount, event.label) for event in events] == [
        ("open account", 2, ""),
        ("debit", Fraction(1, 4), "a first look"),
        ("set budget", 3, ""),
    ]
    assert re.fullmatch(r'2 \S+ debit words 0.25 NoisyCount\(0.25\)  "a first look"', repr(events[1]))
    with pytest.raises(wp.SessionError, match="closed"):
        session.balances()


def test_a_label_changes_no_replay_and_what_replays_has_no_debit(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with opened(path) as session:
        first = session.release(counts(), label="the first")
        again = session.release(counts(), label="two")
        assert list(first.values) == list(again.values)
    with opened(path) as session:
        assert list(session.release(counts()).values) == list(first.values)
        assert session.debited() == {}
        assert [event.label for event in session.history() if event.kind == "debit"] == ["the first"]
    assert "the first" not in json.dumps(first.to_json()) + repr(first)


def test_a_debit_without_a_label_is_written_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with opened(path) as session, Ledger(path) as ledger:
        session.release(counts())
        session.release(counts("1/2"), label="")
        assert [entry.label for entry in ledger.entries()] == [""] * 5
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (content,) = connection.execute("SELECT content FROM entries WHERE sequence = 2").fetchone()
        assert "label" not in json.loads(content)
        ledger.verify()


def test_a_label_is_in_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with opened(path) as session, Ledger(path) as ledger:
        session.release(counts(), label="one")
        ledger.verify()
        with without_triggers(path) as connection:
            connection.execute("UPDATE entries SET content = replace(content, '\"one\"', '\"two\"') WHERE sequence = 2")
        with pytest.raises(wp.LedgerError, match="tampered"):
            ledger.verify()


@pytest.mark.parametrize("label", ["x" * (LONGEST_LABEL + 1), 7, b"bytes", ["a"]])
def test_a_label_that_is_none_is_refused_before_the_debit(label: object) -> None:
    with opened(None) as session:
        with pytest.raises(wp.SessionError, match="text of at most 200 characters"):
            session.release(counts(), label=label)
        assert session.spent("words") == 0
        session.release(counts(), label="x" * LONGEST_LABEL)


def test_a_nasty_label_is_kept_and_shown_without_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "l.db"
    with opened(path) as session:
        session.release(counts(), label=NASTY)
        event = session.history()[-1]
    assert event.label == NASTY
    assert main(["ledger", "show", str(path), "--history"]) == 0
    printed = capsys.readouterr().out
    for shown in (repr(event), printed.splitlines()[2]):
        assert shown.isprintable()
        assert shown.endswith('"a\\x1b[2Kb\\r\\nc\\u202ed\\x00e<script>\\ud800"')
    assert main(["ledger", "show", str(path), "--history", "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii() and json.loads(out)["history"][1]["label"] == NASTY


def test_a_label_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, words, path = tmp_path / "p.wpq", tmp_path / "w.csv", tmp_path / "l.db"
    program.write_text("source w(n: int);\nvar n = w.Select(r => r.n).NoisyCount(1, over: [1]);\n")
    words.write_text("n\n1\n")
    command = ["run", str(program), "--source", f"w={words}", "--budget", "w=3", "--ledger", str(path)]
    assert main([*command, "--label", "x" * 201]) == 1
    assert not path.exists()
    assert main([*command, "--label", "May's report"]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", str(path), "--history"]) == 0
    assert capsys.readouterr().out.splitlines()[-2].endswith('NoisyCount(1)  "May\'s report"')


def test_several_measurements_by_name() -> None:
    with opened(None) as session:
        answers = session.release({"few": counts(), "more": counts("1/2")})
        assert list(answers) == ["few", "more"]
        assert [float(answers[name].epsilon) for name in answers] == [0.25, 0.5]
        assert str(session.bill({"few": counts()})).splitlines()[-1].startswith("  few: NoisyCount(0.25), spent once")
        with pytest.raises(wp.SessionError, match="nothing to release"):
            session.release({})
