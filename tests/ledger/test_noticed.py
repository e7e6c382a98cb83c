"""What is noticed of a ledger that was edited, cut, rolled back or exchanged, and when: a table of docs/budgets.md."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.support.forging import without_triggers
from tests.support.parameters import sizes
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, verification
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.chain import START
from wpinq.kernel.ledger.ledger import Ledger, Pricing

ROOT = pathlib.Path(__file__).parents[2]
LISTING = {"domain": {"integers": [0, 9]}, "above": 2.0}
PACKED = "CAST(x'00000000000000017a' || zeroblob(8) AS BLOB)"
"""An answer of 0 for `z`, in SQL."""
PLAN = "plan of {}".format


def flat(amount: int) -> Any:
    return lambda new, parts_of: Pricing({"edges": amount}, {})


def fill(path: pathlib.Path, later: int = 10) -> str:
    """A ledger with something in every table, early and late; its head."""
    with Ledger(path) as ledger:
        for name in ("edges", "nodes"):
            ledger.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=Fraction(1), budget=10**6)])
        parts = {("p", "x"): Fraction(1, 3), ("p", "y"): Fraction(1)}
        ledger.debit({"m": "early"}, lambda new, parts_of: Pricing({"edges": 5, "nodes": 6}, parts), plan=PLAN)
        ledger.store_answers("m", {b"a": 1.0, b"b": 2.0})
        ledger.store_listing("m", {b"c": 3.0}, LISTING, listings=0, answers=2)
        ledger.set_budget("edges", 10**7)
        for number in range(later):
            ledger.debit({f"later {number}": "later"}, flat(1))
        parts = {("q", "x"): Fraction(1, 3)}
        ledger.debit({"n": "late"}, lambda new, parts_of: Pricing({"edges": 5}, parts), plan=PLAN)
        ledger.store_answers("n", {b"a": 1.5, b"b": 2.5})
        ledger.store_listing("n", {b"c": 3.5}, LISTING, listings=0, answers=2)
        return ledger.head()


def edited(path: pathlib.Path, *statements: str) -> None:
    """Edit by SQL with the triggers dropped and put back."""
    with without_triggers(path) as connection:
        for statement in statements:
            before = connection.total_changes
            connection.execute(statement)
            assert connection.total_changes > before, f"this changes nothing: {statement}"


def at_opening(path: pathlib.Path) -> bool:
    try:
        Ledger(path).close()
    except LedgerError:
        return True
    return False


def by_verify(path: pathlib.Path) -> bool:
    with Ledger(path) as ledger:
        try:
            ledger.verify()
        except LedgerError:
            return True
    return False


# each table, each column, with the triggers dropped first

COLUMNS = {
    "accounts": ["name", "schema", "unit", "unit_weight", "budget", "spent", "suspended"],
    "entries": ["time", "kind", "actor", "target", "amount", "content", "hash"],
    "measurements": ["digest", "entry"],
    "plans": ["digest", "entry", "plan"],
    "parts": ["partition", "part", "entry", "demand"],
    "answers": ["measurement", "entry", "answers"],
}
KEYS = {
    "accounts": "name",
    "entries": "sequence",
    "measurements": "entry, digest",
    "plans": "entry, digest",
    "parts": "entry, partition, part",
    "answers": "entry, measurement",
}
INTEGERS = {"budget", "spent", "amount", "entry"}


def changed(table: str, column: str, row: str) -> str:
    """A statement that changes one cell of the first or last row, or deletes the row."""
    key = KEYS[table]
    order = ", ".join(f"{column} {row}" for column in key.split(", "))
    where = f"({key}) IN (SELECT {key} FROM {table} ORDER BY {order} LIMIT 1)"
    if column == "":
        return f"DELETE FROM {table} WHERE {where}"
    new = {
        "kind": "CASE kind WHEN 'debit' THEN 'answers' ELSE 'debit' END",
        "suspended": "1 - suspended",
        "hash": "zeroblob(32)",
        "answers": "zeroblob(length(answers))",
        "content": "replace(content, '}', ',\"more\":1}')",
    }.get(column, f"{column} + 1000" if column in INTEGERS else f"{column} || '1'")
    return f"UPDATE {table} SET {column} = {new} WHERE {where}"


CELLS = [(table, column) for table, columns in COLUMNS.items() for column in (*columns, "")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, str]:
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    return path, fill(path)


@pytest.fixture
def path(whole: tuple[pathlib.Path, str], tmp_path: pathlib.Path) -> pathlib.Path:
    for file in whole[0].parent.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("row", ["ASC", "DESC"])
@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_cell_that_was_changed_is_noticed_at_opening(path: pathlib.Path, table: str, column: str, row: str) -> None:
    edited(path, changed(table, column, row))
    with pytest.raises(LedgerError, match=r"has been tampered with|does not hold entry"):
        Ledger(path)


def test_what_is_whole_is_not_refused(path: pathlib.Path) -> None:
    assert not at_opening(path)
    assert not by_verify(path)


# long ledgers


@pytest.fixture
def long(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A ledger that is longer than an opening verifies wholly."""
    monkeypatch.setattr(chain, "BATCH", 10)
    for name, value in (("BATCH", 10), ("LAST", 15), ("WHOLE", 40)):
        monkeypatch.setattr(verification, name, value)
    fill(tmp_path / "ledger.db", 55)
    return tmp_path / "ledger.db"


MOVES_BALANCES = {"kind", "target", "amount", "hash", ""}


@pytest.mark.parametrize("row", sizes("ASC", "DESC"))
@pytest.mark.parametrize(("table", "column"), CELLS)
def test_of_a_long_ledger_early_contents_are_left_to_verify(
    long: pathlib.Path, table: str, column: str, row: str
) -> None:
    edited(long, changed(table, column, row))
    found = at_opening(long)
    if row == "DESC" or table == "accounts" or (table == "entries" and column in MOVES_BALANCES):
        assert found
    elif not found:
        assert by_verify(long)


def test_an_early_opening_is_verified_with_what_it_declares(long: pathlib.Path) -> None:
    edited(
        long,
        """UPDATE entries SET content = replace(content, '"unit":"u"', '"unit":"v"') WHERE kind = 'open account'""",
    )
    edited(long, "UPDATE accounts SET unit = 'v' WHERE unit = 'u'")
    assert at_opening(long)


def test_a_long_ledger_is_verified_from_its_last_batches_on(long: pathlib.Path) -> None:
    with Ledger(long) as ledger:
        ledger.verify()
        last = int(ledger.head().partition(":")[0])
        assert last > 60
    for sequence, noticed in ((last - 14, True), (last - 35, False)):
        edited(long, f"UPDATE entries SET time = time || ' ' WHERE sequence = {sequence}")
        assert at_opening(long) == noticed
        edited(long, f"UPDATE entries SET time = trim(time) WHERE sequence = {sequence}")
        assert not at_opening(long)
    edited(long, "UPDATE entries SET content = replace(content, 'batch', 'botch') WHERE sequence = 20")
    assert at_opening(long)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answers SET measurement = 'later 0' WHERE measurement = 'm'",
        f"INSERT INTO answers SELECT 'later 0', sequence, {PACKED} FROM entries WHERE kind = 'debit' LIMIT 1",
    ],
)
def test_answers_of_another_measurement_or_entry_are_noticed_when_they_are_read(
    long: pathlib.Path, statement: str
) -> None:
    edited(long, statement)
    with Ledger(long) as ledger, pytest.raises(LedgerError, match="are not those that were stored"):
        ledger.answers("later 0")


@pytest.mark.parametrize("tails", ['["00"]', '["0"]', "[]"])
def test_keys_of_answers_that_an_early_entry_names_are_noticed_when_they_are_read(
    long: pathlib.Path, tails: str
) -> None:
    edited(
        long, f"""UPDATE entries SET content = replace(content, '"tails":[""]', '"tails":{tails}') WHERE target = 'm'"""
    )
    with Ledger(long) as ledger, pytest.raises(LedgerError, match="are not those that were stored"):
        ledger.answers("m")


# the table of the documentation

Attack = Callable[[pathlib.Path], str | None]
"""Does it, and gives the last head that the curator saw, where that is not the one from before."""


def copied(path: pathlib.Path, name: str, *suffixes: str) -> pathlib.Path:
    folder = path.parent / name
    folder.mkdir()
    for suffix in suffixes or ("", "-head"):
        shutil.copy(f"{path}{suffix}", folder)
    return folder / path.name


def put_back(copy: pathlib.Path, path: pathlib.Path, *suffixes: str) -> None:
    for suffix in suffixes:
        shutil.copy(f"{copy}{suffix}", f"{path}{suffix}")


def spend(path: pathlib.Path, digest: str = "after the copy") -> str:
    with Ledger(path) as ledger:
        ledger.debit({digest: "after"}, flat(100))
        return ledger.head()


def cut(path: pathlib.Path) -> None:
    """Of its last page."""
    os.truncate(path, path.stat().st_size - 4096)


def emptied(path: pathlib.Path) -> None:
    os.truncate(path, 0)


def lost_log(path: pathlib.Path, *left: str) -> str:
    """What is left of a ledger whose process was killed before SQLite moved its log into the file; the head it had."""
    copy = copied(path, "crash")
    with Ledger(path) as ledger:
        ledger.debit({"in the log": "in the log"}, flat(100))
        assert pathlib.Path(f"{path}-wal").stat().st_size > 0
        shutil.copy(path, copy)
        shutil.copy(f"{path}-head", f"{copy}-head")
        head = ledger.head()
    put_back(copy, path, "", "-head")
    for suffix in ("-wal", "-shm"):
        pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
    return head


def older(path: pathlib.Path, *suffixes: str) -> str:
    copy = copied(path, "older")
    head = spend(path)
    put_back(copy, path, *suffixes)
    return head


def other(path: pathlib.Path, *suffixes: str) -> None:
    (path.parent / "other").mkdir()
    another = path.parent / "other" / path.name
    fill(another, 11)
    put_back(another, path, *suffixes)


def without_head(attack: Callable[..., str | None]) -> Attack:
    def attacked(path: pathlib.Path) -> str | None:
        head = attack(path, "")
        os.remove(f"{path}-head")
        return head

    return attacked


def rewritten(path: pathlib.Path) -> None:
    """The whole history anew, with one debit less and every hash right."""
    with without_triggers(path) as connection:
        for table in ("answers", "parts", "plans", "measurements"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("DELETE FROM entries WHERE sequence > 2")
        connection.execute("UPDATE accounts SET spent = 0, budget = 1000000")
        previous = START.hash
        columns = "sequence, time, kind, actor, target, amount, content"
        for row in connection.execute(f"SELECT {columns} FROM entries ORDER BY sequence").fetchall():
            new = (row[0], "then", *row[2:])
            previous = chain.link(previous, new)
            connection.execute("UPDATE entries SET time = 'then', hash = ? WHERE sequence = ?", (previous, row[0]))
    os.remove(f"{path}-head")


def appended(path: pathlib.Path) -> None:
    """An entry as the library would write it: `set_budget` appends such an entry."""
    connection = sqlite3.connect(path, isolation_level=None)
    with connection:
        connection.execute("BEGIN")
        chain.append(connection, "set budget", "nodes", 10**9, {"previous": 10**6})
        connection.execute("UPDATE accounts SET budget = 1000000000 WHERE name = 'nodes'")
    connection.close()


def forgotten(path: pathlib.Path) -> None:
    """Back to a copy that is older, and newer than the head that is kept."""
    spend(path, "one more")
    older(path, "", "-head")


def dropped_trigger(path: pathlib.Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER accounts_update")
    connection.close()


def linked(path: pathlib.Path) -> None:
    os.link(path, path.parent / "another name")


def edits(*statements: str) -> Attack:
    return lambda path: edited(path, *statements)


def inserted(statement: str) -> Attack:
    """By plain SQL, which no trigger refuses."""

    def attacked(path: pathlib.Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(statement)
        connection.close()

    return attacked


def unseen(statement: str) -> Attack:
    """By SQL that hides the triggers and shows them again."""

    def done(path: pathlib.Path, statement: str, rows: list[Any]) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany(statement, rows)
        connection.close()

    def attacked(path: pathlib.Path) -> None:
        connection = sqlite3.connect(path)
        triggers = connection.execute("SELECT * FROM sqlite_master WHERE type = 'trigger'").fetchall()
        connection.close()
        done(path, "DELETE FROM sqlite_master WHERE type = 'trigger'", [()])
        done(path, statement, [()])
        done(path, "INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", triggers)

    return attacked


ATTACKS: dict[str, tuple[str, list[Attack]]] = {
    "a row of any table changed, added or deleted, also with the triggers put back, or a trigger dropped": (
        "opening",
        [
            edits("UPDATE accounts SET spent = spent - 1"),
            edits("UPDATE accounts SET spent = 0 WHERE name = 'edges'"),
            edits("UPDATE accounts SET budget = budget * 2 WHERE name = 'nodes'"),
            edits("UPDATE accounts SET spent = spent - 1 WHERE name = 'edges'",
                  "UPDATE accounts SET spent = spent + 1 WHERE name = 'nodes'"),
            edits("DELETE FROM accounts WHERE name = 'nodes'"),
            edits("INSERT INTO accounts VALUES ('new', 's', 'u', '1', 5, 0, 0)"),
            dropped_trigger,
            inserted("INSERT INTO measurements VALUES ('free', 0)"),
            inserted("INSERT INTO measurements VALUES ('free', 3)"),
            inserted("INSERT INTO measurements VALUES ('free', 1000)"),
            inserted("INSERT INTO parts VALUES ('p', 'z', 3, '1000')"),
            inserted("INSERT INTO parts VALUES ('p', 'x', 100000, '1000')"),
            edits("UPDATE parts SET demand = '1/9' WHERE part = 'x' AND partition = 'p'"),
            unseen("UPDATE parts SET demand = '9' WHERE part = 'x' AND partition = 'p'"),
            unseen("UPDATE entries SET time = 'then' WHERE sequence = 3"),
            edits("DELETE FROM answers WHERE entry = 5"),
            edits("DELETE FROM answers WHERE measurement = 'm'"),
            edits("UPDATE answers SET answers = zeroblob(16) WHERE entry = 5"),
            inserted(f"INSERT INTO answers VALUES ('m', 9999, {PACKED})"),
            edits(f"INSERT INTO answers VALUES ('m', -9999, {PACKED})"),
            edits("DELETE FROM answers WHERE entry = 5", "DELETE FROM entries WHERE sequence = 5"),
            edits("UPDATE measurements SET digest = 'another' WHERE digest = 'm'"),
            edits("UPDATE plans SET plan = 'another' WHERE entry = 3"),
        ],
    ),
    "a file that was cut or emptied": ("opening", [cut, emptied]),
    "a second name of the file (a hard link)": ("opening", [linked]),
    "a lost `-wal`, an older copy, another ledger, where `-head` stays": (
        "opening",
        [
            lost_log,
            lambda path: older(path, ""),
            lambda path: other(path, ""),
        ],
    ),
    "the same where `-head` was put back too, or is gone": (
        "`--expected-head` only",
        [
            without_head(lost_log),
            without_head(older),
            without_head(other),
            lambda path: older(path, "", "-head"),
            lambda path: other(path, "", "-head"),
        ],
    ),
    "the history written anew, with all hashes right, and without `-head`": (
        "`--expected-head` only",
        [rewritten],
    ),
    "an older copy with its `-head`, in which the head that you kept is": ("not at all", [forgotten]),
    "an entry that is added with its hash and row right, as `set` adds one": (
        "not at all, but `show --history` lists it",
        [appended],
    ),
}  # fmt: skip
CASES = [(name, number) for name, (_, attacks) in ATTACKS.items() for number in range(len(attacks))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_an_attack_is_noticed_when_the_table_says(
    path: pathlib.Path, whole: tuple[pathlib.Path, str], name: str, number: int
) -> None:
    noticed, attacks = ATTACKS[name]
    seen = attacks[number](path) or whole[1]
    assert at_opening(path) == (noticed == "opening")
    if noticed == "opening":
        return
    assert not by_verify(path)
    if "expected-head" in noticed:
        with pytest.raises(LedgerError, match=r"does not hold entry .* the head that is expected"):
            Ledger(path, expected_head=seen)
        with Ledger(path) as ledger, pytest.raises(LedgerError, match="does not hold entry"):
            ledger.check_head(seen)
    else:
        Ledger(path, expected_head=seen).close()


# open ledgers


@pytest.mark.parametrize("stored", [False, True])
def test_an_answer_that_is_added_while_a_ledger_is_open_is_never_shown(path: pathlib.Path, stored: bool) -> None:
    """Also of a measurement that it has read, and where it stores answers itself."""
    with Ledger(path) as ledger:
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
        assert stored is False or ledger.store_answers("m", {b"d": 4.0}, listings=1) == {b"d": 4.0}
        with Ledger(path) as other:  # answers that are stored by the library are shown
            other.store_answers("m", {b"e": 5.0}, listings=1)
        assert ledger.answers("m", [b"e"]) == {b"e": 5.0}
        inserted(f"INSERT INTO answers VALUES ('m', 9999, {PACKED})")(path)
        assert ledger.answers("m", [b"z"]) == {}
        last = int(ledger.head().partition(":")[0])
        inserted(f"INSERT INTO answers VALUES ('n', {last}, {PACKED})")(path)
        with pytest.raises(LedgerError, match="has been tampered with: the answers"):
            ledger.answers("n", [b"z"])
        with pytest.raises(LedgerError, match="has been tampered with: the answers"):
            ledger.store_answers("n", {b"z": 1.0}, listings=1)
    assert at_opening(path)


def test_an_older_copy_that_is_put_into_an_open_ledger_is_spent_nothing_from(
    path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The file stays the same file, and is sound in itself: it would give back what was spent since."""
    copy = tmp_path / "copy.db"

    def put(source: pathlib.Path, target: pathlib.Path) -> None:
        with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
            old.backup(new)

    with Ledger(path) as ledger, Ledger(path) as idle:
        put(path, copy)
        ledger.debit({"after the copy": "x"}, flat(7))
        put(copy, path)
        for each in (ledger, idle):
            with pytest.raises(LedgerError, match="an older copy was put in its place"):
                each.debit({"another": "x"}, flat(7))
            with pytest.raises(LedgerError, match="an older copy was put in its place"):
                each.set_budget("edges", 10**8)
    with pytest.raises(LedgerError, match="an older copy was put in its place"):
        Ledger(path)


@pytest.mark.parametrize("gone", [False, True])
def test_what_a_process_read_before_an_older_copy_was_put_in_is_forgotten(
    path: pathlib.Path, tmp_path: pathlib.Path, gone: bool
) -> None:
    """Otherwise it would show answers that are in no ledger, and draw others for keys that have some."""
    kept = tmp_path / "kept.db"
    with contextlib.closing(sqlite3.connect(path)) as now, contextlib.closing(sqlite3.connect(kept)) as copy:
        now.backup(copy)
    head = pathlib.Path(f"{path}-head").read_bytes()
    with Ledger(path) as ledger:
        assert ledger.store_answers("m", {b"x": 1.0, b"y": 2.0}, 1) == {b"x": 1.0, b"y": 2.0}
        assert ledger.answers("m", [b"x", b"y"]) == {b"x": 1.0, b"y": 2.0}
        with contextlib.closing(sqlite3.connect(kept)) as copy, contextlib.closing(sqlite3.connect(path)) as now:
            copy.backup(now)
        os.remove(f"{path}-head") if gone else pathlib.Path(f"{path}-head").write_bytes(head)
        with Ledger(path) as other:
            assert other.store_answers("m", {b"x": 7.0}, 1) == {b"x": 7.0}
        assert ledger.answers("m", [b"a", b"x", b"y"]) == {b"a": 1.0, b"x": 7.0}
    with Ledger(path) as ledger:
        ledger.verify()
        assert ledger.answers("m", [b"x", b"y"]) == {b"x": 7.0}


@pytest.mark.parametrize("table", ["answers", "measurements", "parts", "plans"])
def test_a_row_that_is_taken_from_an_open_ledger_is_noticed_at_the_next_opening(path: pathlib.Path, table: str) -> None:
    with Ledger(path) as ledger:
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
        edited(path, f"DELETE FROM {table} WHERE entry = (SELECT min(entry) FROM {table})")
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
    assert at_opening(path)


def test_listings_are_not_those_that_are_remembered(path: pathlib.Path) -> None:
    with Ledger(path) as ledger:
        ledger.listings("m")[0]["above"] = 0.0
        assert ledger.listings("m") == [LISTING]


def test_the_documentation_has_this_table() -> None:
    page = (ROOT / "docs" / "budgets.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (.*) \| (.*) \|$", page.split("| what was done | noticed by |\n")[1], flags=re.M)
    rows = [row for row in shown if set(row[0]) - set("- ")]
    assert rows[: len(ATTACKS)] == [(name, noticed) for name, (noticed, _) in ATTACKS.items()]
