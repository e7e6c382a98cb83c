"""Ledgers of former formats: opened, verified, brought to the format of today, and refused where they are not whole."""

from __future__ import annotations

import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
from fractions import Fraction

import pytest

from tests.ledger.former.books import LISTING
from tests.support.forging import without_triggers
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import schema, store
from wpinq.kernel.ledger.backup import restore
from wpinq.kernel.ledger.ledger import Ledger, Pricing
from wpinq.kernel.ledger.ledger_upgrade import upgrade

ROOT = pathlib.Path(__file__).parents[2]
FORMER = {
    1: ROOT / "tests/session/former/ledger.sqlite",
    3: ROOT / "tests/ledger/former/ledger.sqlite",
    4: ROOT / "tests/ledger/former/format_4.sqlite",
}


def raw(path: pathlib.Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def format_of(path: pathlib.Path) -> int:
    connection = raw(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(version)


def history(path: pathlib.Path) -> list[tuple[int, str, bytes]]:
    connection = raw(path)
    rows = connection.execute("SELECT sequence, content, hash FROM entries ORDER BY sequence").fetchall()
    connection.close()
    return rows


@pytest.fixture(params=FORMER)
def path(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    assert format_of(FORMER[request.param]) == request.param
    return pathlib.Path(shutil.copy(FORMER[request.param], tmp_path / "ledger.db"))


def test_a_former_ledger_is_brought_to_the_format_of_today_and_stays_what_it_was(path: pathlib.Path) -> None:
    before = history(path)
    with Ledger(path) as ledger:
        assert format_of(path) == schema.FORMAT == 5
        assert history(path) == before
        ledger.verify()
        accounts = ledger.accounts()
        head = ledger.head()
        assert head == f"{before[-1][0]}:{before[-1][2].hex()}"
    with Ledger(path, expected_head=head) as ledger:
        assert ledger.accounts() == accounts
        payer = next(account for account in accounts if account.remaining)
        ledger.debit({"new": "after"}, lambda new, parts_of: Pricing({payer.name: 1}, {}))
        ledger.store_answers("new", {b"k": 1.0})
        ledger.verify()
    connection = raw(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("DELETE FROM answered")
    connection.close()
    with Ledger(path) as ledger:
        ledger.verify()
    assert history(path)[: len(before)] == before


@pytest.mark.parametrize("version", [3, 4])
def test_listings_shared_accounts_and_answers_are_found_again(tmp_path: pathlib.Path, version: int) -> None:
    with Ledger(shutil.copy(FORMER[version], tmp_path)) as ledger:
        assert {account.name: (account.budget, account.spent) for account in ledger.accounts()} == {
            "edges": (2 * 10**9, 12),
            "people": (10**8, 6),
            "people/visits": (0, 0),
        }
        assert ledger.answers("m") == {b"a": 1.0, b"b": 2.0, b"c": 3.0}
        assert ledger.listings("m") == [LISTING, LISTING | {"above": 1.5}]
        assert ledger.paid(["m", "n", "o", "p"]) == {"m", "n", "o"}
        assert ledger.store_answers("m", {b"a": 9.0, b"d": 1.0}, 2) == {b"a": 1.0, b"d": 1.0}
        ledger.store_listing("n", {b"z": 5.0}, LISTING, listings=0, answers=1)
        ledger.verify()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE accounts SET spent = 0",
        "UPDATE entries SET content = replace(content, '}', ' }') WHERE sequence = 2",
        "DELETE FROM answers",
        "UPDATE answers SET value = zeroblob(8)",
        "UPDATE answers SET entry = entry + 1",
        "UPDATE answers SET measurement = measurement + 1000",
        "UPDATE entries SET content = 'no JSON' WHERE kind = 'answers'",
    ],
)
def test_one_that_is_not_whole_is_refused_and_stays_as_it_was(path: pathlib.Path, forgery: str) -> None:
    version = format_of(path)
    with without_triggers(path) as connection:
        connection.execute(forgery)
    before = history(path)
    with pytest.raises(LedgerError, match="has been tampered with"):
        Ledger(path)
    assert (format_of(path), history(path)) == (version, before)


@pytest.mark.parametrize("cell", ["key = 'text'", "key = 7", "value = 'eight by'", "entry = 'text'"])
def test_answers_of_another_type_are_refused_too(path: pathlib.Path, tmp_path: pathlib.Path, cell: str) -> None:
    """As somebody makes them who takes the types off the table and puts them back."""
    connection = raw(path)
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'answers'").fetchone()
    for said, edit in ((sql.replace("STRICT, ", ""), f"UPDATE answers SET {cell}"), (sql, "SELECT 1")):
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'answers'", (said,))
        connection.close()
        with without_triggers(path) as connection:
            connection.execute(edit + " WHERE entry = (SELECT max(entry) FROM answers)" * edit.startswith("UPDATE"))
        connection = raw(path)
    connection.close()
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(path)
    connection = raw(path)
    connection.execute(f"PRAGMA application_id = {schema.BACKUP_ID}")
    (*head, hashed) = connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC").fetchone()
    connection.close()
    with pytest.raises(LedgerError, match="tampered"):
        restore(path, tmp_path / "restored.db", f"{head[0]}:{hashed.hex()}")
    assert not (tmp_path / "restored.db").exists()


def test_one_that_is_open_elsewhere_waits(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has it open may be an older version, which would not see that the format changes."""
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    version, older = format_of(path), raw(path)
    older.execute("PRAGMA journal_mode = WAL")
    older.execute("SELECT count(*) FROM entries").fetchone()
    with pytest.raises(LedgerError, match="has it open in an older version of wpinq"):
        Ledger(path)
    assert format_of(path) == version
    older.close()
    with Ledger(path):
        assert format_of(path) == schema.FORMAT


OPENS = """
import sys
from wpinq.kernel.ledger.ledger import Ledger
sys.stdin.readline()
with Ledger(sys.argv[1]) as ledger:
    ledger.verify()
    print(ledger.head())
"""


def test_processes_that_open_it_at_once_bring_it_there_once(path: pathlib.Path) -> None:
    command = [sys.executable, "-c", OPENS, str(path)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(said)) == 1
    assert format_of(path) == schema.FORMAT


def test_a_copy_of_a_former_ledger_is_restored(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As a former version made it."""
    connection = raw(path)
    connection.execute(f"PRAGMA application_id = {schema.BACKUP_ID}")
    connection.close()
    before = history(path)
    head = f"{before[-1][0]}:{before[-1][2].hex()}"
    restored = tmp_path / "restored.db"
    assert str(restore(path, restored, head)) == head
    assert format_of(path) < schema.FORMAT == format_of(restored)
    with Ledger(restored, expected_head=head) as ledger:
        ledger.verify()
    assert history(restored) == history(path) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is of POSIX")
@pytest.mark.parametrize("version", [3, 4])
def test_a_kill_amid_it_leaves_the_former_or_the_new(tmp_path: pathlib.Path, version: int) -> None:
    """Before its n-th statement, for every n."""
    kills = 0
    for number in range(1, 200):
        path = pathlib.Path(shutil.copy(FORMER[version], tmp_path / f"{number}.db"))
        child = os.fork()
        if child == 0:
            _open_and_die(path, number)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
        kills += 1
        with Ledger(path) as ledger:
            ledger.verify()
            assert ledger.open_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=2 * 10**9).spent
    assert kills > 20


def _open_and_die(path: pathlib.Path, number: int) -> None:
    real, count = sqlite3.connect, 0

    def trace(statement: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), 9)

    def connect(target: str, **options: object) -> sqlite3.Connection:
        connection = real(target, **options)
        if target != ":memory:":
            connection.set_trace_callback(trace)
        return connection

    store.sqlite3.connect = connect
    Ledger(path).close()
    os._exit(0)


def test_who_comes_when_another_has_brought_it_there_and_left_does_nothing(path: pathlib.Path) -> None:
    """It saw the former format before, and gets its turn when it is the format of today."""
    with Ledger(path) as ledger:
        head = ledger.head()
    connection = raw(path)
    upgrade(connection, str(path))
    connection.close()
    with Ledger(path, expected_head=head) as ledger:
        ledger.verify()
