"""What is noticed of a ledger that was edited, cut, rolled back or exchanged, and when: a table of docs/budgets.md."""

from __future__ import annotations

import contextlib
import json
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
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_audit, ledger_totals
from wpinq.kernel.ledger.head import START
from wpinq.kernel.ledger.ledger import Ledger, Pricing

ROOT = pathlib.Path(__file__).parents[2]
LISTING = {"domain": {"integers": [0, 9]}, "above": 2.0}
PACKED = "CAST(x'00000000000000017a' || zeroblob(8) AS BLOB)"
"""An answer of 0 for `z`, in SQL."""
LATER = 2 * ledger_audit.TAIL
"""Debits after the first ones, so that those are not among the last entries."""


def flat(amount: int) -> Any:
    return lambda new, parts_of: Pricing({"edges": amount}, {})


def fill(path: pathlib.Path, later: int = LATER) -> str:
    """A ledger with something in every table, early and late; its head."""
    with Ledger(path) as ledger:
        for name in ("edges", "nodes"):
            ledger.open_account(name, schema="s", unit="u", unit_weight=Fraction(1), budget=10**6)
        parts = {("p", "x"): Fraction(1, 3), ("p", "y"): Fraction(1)}
        ledger.debit({"m": "early"}, lambda new, parts_of: Pricing({"edges": 5, "nodes": 6}, parts))
        ledger.store_answers("m", {b"a": 1.0, b"b": 2.0})
        ledger.store_listing("m", {b"c": 3.0}, LISTING, listings=0, answers=2)
        ledger.set_budget("edges", 10**7)
        for number in range(later):
            ledger.debit({f"later {number}": "later"}, flat(1))
        parts = {("q", "x"): Fraction(1, 3)}
        ledger.debit({"n": "late"}, lambda new, parts_of: Pricing({"edges": 5}, parts))
        ledger.store_answers("n", {b"a": 1.5, b"b": 2.5})
        ledger.store_listing("n", {b"c": 3.5}, LISTING, listings=0, answers=2)
        return ledger.head()


def edited(path: pathlib.Path, *statements: str, traceless: bool = True) -> None:
    """Edit by SQL with the triggers dropped and put back; and, as by a hex editor, with SQLite's own count put back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as kept:
        (count,) = kept.execute("PRAGMA schema_version").fetchone()
        with without_triggers(path) as connection:
            before = connection.total_changes
            for statement in statements:
                connection.execute(statement)
                assert connection.total_changes > before, f"this changes nothing: {statement}"
                before = connection.total_changes
        if traceless:
            kept.execute(f"PRAGMA schema_version = {count}")


def at_opening(path: pathlib.Path) -> bool:
    try:
        Ledger(path).close()
    except LedgerError:
        return True
    return False


def at_use(path: pathlib.Path, measurement: str) -> bool:
    """Whether each way to look at a measurement, or to add to its answers, is refused."""
    ways: list[Callable[[Ledger], object]] = [
        lambda ledger: ledger.answers(measurement),
        lambda ledger: ledger.answers(measurement, [b"a"]),
        lambda ledger: ledger.listings(measurement),
        lambda ledger: ledger.store_answers(measurement, {b"new": 1.0}, 1),
        lambda ledger: ledger.store_listing(measurement, {}, LISTING | {"above": 1.0}, listings=1, answers=3),
    ]
    refused = []
    for way in ways:
        with Ledger(path) as ledger:
            try:
                way(ledger)
                refused.append(False)
            except LedgerError:
                refused.append(True)
    assert len(set(refused)) == 1, refused
    return refused[0]


def at_debit(path: pathlib.Path, partition: str) -> bool:
    """Whether a debit that asks for the demands of a partition is refused, with nothing spent."""

    def price(new: frozenset[str], parts_of: Callable[[str], dict[str, Fraction]]) -> Pricing:
        return Pricing({"edges": 1}, {(partition, part): each + 1 for part, each in parts_of(partition).items()})

    with Ledger(path) as ledger:
        before = ledger.head()
        try:
            ledger.debit({f"of {partition}": "of a partition"}, price)
        except LedgerError as error:
            assert "has been tampered with" in str(error)
            assert ledger.head() == before
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
    "accounts": ["name", "schema", "unit", "unit_weight", "budget", "spent"],
    "entries": ["time", "kind", "source", "amount", "content", "hash"],
    "measurements": ["id", "digest"],
    "parts": ["partition", "part", "entry", "demand"],
    "answer_sets": ["measurement", "entry", "answers"],
    "answered": ["measurement", "entry"],
    "listings": ["measurement", "entry"],
}
ORDER = {"accounts": "name", "entries": "sequence", "measurements": "id", "parts": "entry"}


def changed(table: str, column: str, row: str) -> str:
    """A statement that changes one cell of the first or last row; of entries, the last two are of other kinds."""
    order = ORDER.get(table, "entry, measurement")
    rank = f"row_number() OVER (ORDER BY {', '.join(f'{o} {row}' for o in order.split(', '))})"
    keys = {"accounts": "name", "entries": "sequence", "measurements": "id", "parts": "partition, part, entry"}
    key = keys.get(table, "measurement, entry")
    where = f"({key}) IN (SELECT {key} FROM (SELECT {key}, {rank} AS place FROM {table}) WHERE place = 1)"
    if column == "":
        return f"DELETE FROM {table} WHERE {where}"
    new = {
        "kind": "CASE kind WHEN 'debit' THEN 'answers' ELSE 'debit' END",
        "hash": "zeroblob(32)",
        "answers": "zeroblob(length(answers))",
        "content": "replace(content, '}', ',\"more\":1}')",
    }.get(column, f"{column} + 1000" if column in INTEGERS else f"{column} || '1'")
    return f"UPDATE {table} SET {column} = {new} WHERE {where}"


INTEGERS = {"budget", "spent", "amount", "id", "entry", "measurement"}
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
def test_what_sql_can_change_is_noticed_at_opening(path: pathlib.Path, table: str, column: str, row: str) -> None:
    edited(path, changed(table, column, row), traceless=False)
    with pytest.raises(LedgerError, match="has been tampered with"):
        Ledger(path)


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_what_the_last_entries_did_is_noticed_at_opening_without_a_trace(
    path: pathlib.Path, table: str, column: str
) -> None:
    edited(path, changed(table, column, "DESC"))
    with pytest.raises(LedgerError, match="has been tampered with"):
        Ledger(path)


EARLY = {"accounts": "opening", "answer_sets": "use", "answered": "use", "listings": "use"}


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_what_earlier_entries_did_is_noticed_without_a_trace(path: pathlib.Path, table: str, column: str) -> None:
    edited(path, changed(table, column, "ASC"))
    numbered = table == "measurements" and column in ("id", "")
    noticed = "opening" if numbered else EARLY.get(table, "verify")
    assert at_opening(path) == (noticed == "opening")
    if noticed != "opening":
        if noticed == "use":
            assert at_use(path, "m")
        assert by_verify(path)


def test_what_is_whole_is_not_refused(path: pathlib.Path) -> None:
    assert not at_opening(path)
    assert not at_use(path, "n")
    assert not by_verify(path)


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
    fill(another, LATER + 1)
    put_back(another, path, *suffixes)


def without_head(attack: Callable[..., str | None]) -> Attack:
    def attacked(path: pathlib.Path) -> str | None:
        head = attack(path, "")
        os.remove(f"{path}-head")
        return head

    return attacked


def rewritten(path: pathlib.Path) -> None:
    """The whole history anew, with one debit less and every hash and total right."""
    edited(path, "UPDATE accounts SET spent = 0", "DELETE FROM parts", "DELETE FROM measurements WHERE digest <> 'm'",
           "DELETE FROM answer_sets WHERE measurement <> 1", "DELETE FROM answered WHERE measurement <> 1",
           "DELETE FROM listings WHERE measurement <> 1", "DELETE FROM entries WHERE sequence > 2")  # fmt: skip
    edited(path, "DELETE FROM measurements", "DELETE FROM answer_sets", "DELETE FROM answered", "DELETE FROM listings",
           "UPDATE accounts SET budget = 1000000")  # fmt: skip
    connection = sqlite3.connect(path, isolation_level=None)
    totals = ledger_totals.now(connection, ledger_totals.of_accounts(connection))
    rows = connection.execute("SELECT * FROM entries ORDER BY sequence").fetchall()
    connection.close()
    previous, statements = START.hash, []
    one = sqlite3.connect(":memory:", isolation_level=None)
    for sequence, time, kind, source, amount, text, _ in rows:
        content = json.loads(text)
        if sequence == len(rows):
            content["totals"] = totals
        row = (sequence, time, kind, source, amount, json.dumps(content))
        previous = chain.chain(previous, row)
        quoted = one.execute("SELECT quote(?), quote(?)", (row[5], previous)).fetchone()
        statements.append(
            "UPDATE entries SET content = {}, hash = {} WHERE sequence = ".format(*quoted) + str(sequence)
        )
    one.close()
    edited(path, *statements)
    os.remove(f"{path}-head")


def appended(path: pathlib.Path) -> None:
    """An entry as the library would write it: this is what `set_budget` does."""
    connection = sqlite3.connect(path, isolation_level=None)
    with connection:
        connection.execute("BEGIN")
        chain.append(connection, "set budget", "nodes", 10**9, {"previous": 10**6})
    connection.close()


def forgotten(path: pathlib.Path) -> None:
    """Back to a copy that is older, and newer than the head that is kept."""
    spend(path, "one more")
    older(path, "", "-head")


def dropped_trigger(path: pathlib.Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER accounts_never_refund")
    connection.close()


def linked(path: pathlib.Path) -> None:
    os.link(path, path.parent / "another name")


def edits(*statements: str, traceless: bool = True) -> Attack:
    return lambda path: edited(path, *statements, traceless=traceless)


def inserted(statement: str) -> Attack:
    """By plain SQL, which no trigger refuses."""

    def attacked(path: pathlib.Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(statement)
        connection.close()

    return attacked


def unseen(statement: str) -> Attack:
    """By SQL that hides the triggers and shows them again, which SQLite does not count."""

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
    "a lowered `spent`, a raised budget, an account changed, added or deleted": (
        "opening",
        [
            edits("UPDATE accounts SET spent = spent - 1"),
            edits("UPDATE accounts SET spent = 0 WHERE name = 'edges'"),
            edits("UPDATE accounts SET budget = budget * 2 WHERE name = 'nodes'"),
            edits("UPDATE accounts SET spent = spent - 1 WHERE name = 'edges'",
                  "UPDATE accounts SET spent = spent + 1 WHERE name = 'nodes'"),
            edits("DELETE FROM accounts WHERE name = 'nodes'"),
            edits("INSERT INTO accounts VALUES ('new', 's', 'u', '1', 5, 0)"),
        ],
    ),
    "triggers or checks that are missing": ("opening", [dropped_trigger]),
    "a measurement that nobody paid for, added by SQL": (
        "opening",
        [
            inserted("INSERT INTO measurements VALUES (0, 'free')"),
            inserted("INSERT INTO measurements VALUES (-5, 'free')"),
            inserted("INSERT INTO measurements VALUES (1000, 'free')"),
            inserted("INSERT INTO measurements VALUES (0, 'free'), (1000, 'free too')"),
        ],
    ),
    "any row changed or deleted by SQL that drops triggers, also where they are put back": (
        "opening",
        [
            edits("DELETE FROM answer_sets WHERE measurement = 1 AND entry = 5", traceless=False),
            edits("UPDATE entries SET time = 'then' WHERE sequence = 3", traceless=False),
            edits("DELETE FROM parts WHERE partition = 'p' AND part = 'y'", traceless=False),
        ],
    ),
    "the same with the triggers switched off or in the file itself, of one of the last 32 entries or what it did": (
        "opening",
        [
            unseen("UPDATE entries SET time = 'then' WHERE sequence = (SELECT max(sequence) FROM entries)"),
            edits("DELETE FROM answer_sets WHERE entry = (SELECT max(entry) FROM answer_sets)"),
            edits("DELETE FROM answer_sets WHERE measurement = (SELECT max(measurement) FROM answer_sets)"),
            edits("DELETE FROM entries WHERE sequence = (SELECT max(sequence) FROM entries)"),
        ],
    ),
    "the same of the answers and listings of an earlier measurement": (
        "the next use of that measurement, before anything is shown or drawn",
        [
            edits("DELETE FROM answer_sets WHERE measurement = 1 AND entry = 5"),
            edits("DELETE FROM answer_sets WHERE measurement = 1"),
            edits("DELETE FROM answered WHERE measurement = 1"),
            edits("UPDATE answer_sets SET answers = zeroblob(16) WHERE measurement = 1 AND entry = 5"),
            inserted(f"INSERT INTO answer_sets VALUES (1, 9999, {PACKED})"),
            edits(f"INSERT INTO answer_sets VALUES (1, -9999, {PACKED})"),
            edits(f"INSERT INTO answer_sets VALUES (1, {-(2**63)}, {PACKED})"),
            edits("INSERT INTO listings VALUES (1, -9999)"),
            edits("DELETE FROM listings WHERE measurement = 1"),
        ],
    ),
    "the demand of a part that no entry raised so far, changed, or added by SQL": (
        "the next debit that reads that partition, before anything is spent",
        [
            inserted("INSERT INTO parts VALUES ('p', 'z', 3, '1000')"),
            inserted("INSERT INTO parts VALUES ('p', 'x', 5, '1000')"),
            inserted("INSERT INTO parts VALUES ('p', 'x', 100000, '1000')"),
            edits("UPDATE parts SET demand = '1/9' WHERE part = 'x' AND partition = 'p'"),
            unseen("UPDATE parts SET demand = '9' WHERE part = 'x' AND partition = 'p'"),
            edits("UPDATE parts SET part = 'z' WHERE part = 'x' AND partition = 'p'"),
        ],
    ),
    "the same of an earlier entry or all it did, a digest of a measurement, or the demand of a part that is gone": (
        "`--verify` only",
        [
            edits("DELETE FROM answer_sets WHERE entry = 5", "DELETE FROM answered WHERE entry = 5"),
            edits("UPDATE entries SET time = 'then' WHERE sequence = 3"),
            edits("DELETE FROM parts WHERE partition = 'p' AND part = 'y'"),
            edits("UPDATE measurements SET digest = 'another' WHERE id = 1"),
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
    "the history written anew, with all hashes and totals right, and without `-head`": (
        "`--expected-head` only",
        [rewritten],
    ),
    "an older copy with its `-head`, in which the head that you kept is": ("not at all", [forgotten]),
    "an entry that is added with its hash and totals right, as `--set` adds one": (
        "not at all, but `--history` shows it",
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
    if "earlier measurement" in name:
        assert at_use(path, "m")
    if "demand of a part that no entry" in name:
        assert at_debit(path, "p")
        assert not at_debit(path, "q")
    assert by_verify(path) == (noticed.startswith("the next") or "verify" in noticed)
    if "expect-head" in noticed:
        with pytest.raises(LedgerError, match=r"does not hold entry .* the head that is expected"):
            Ledger(path, expected_head=seen)
        with Ledger(path) as ledger, pytest.raises(LedgerError, match="does not hold entry"):
            ledger.check_head(seen)
    elif "not at all" in noticed:
        Ledger(path, expected_head=seen).close()


def test_a_demand_that_is_added_while_a_ledger_is_open_makes_nothing_cheaper(path: pathlib.Path) -> None:
    """Also of a partition that it has looked at: what one part asked for is what the others need not pay for."""

    def price(new: frozenset[str], parts_of: Callable[[str], dict[str, Fraction]]) -> Pricing:
        known = parts_of("p")
        raised = known.get("x", Fraction(0)) + 7
        owed = max(0, raised - max(known.values()))
        return Pricing({"edges": int(owed)}, {("p", "x"): raised})

    with Ledger(path) as ledger:
        ledger.debit({"one": "of x"}, price)
        inserted("INSERT INTO parts VALUES ('p', 'z', 3, '1000')")(path)
        before = ledger.head()
        with pytest.raises(LedgerError, match="has been tampered with: the demands of the parts"):
            ledger.debit({"two": "of x"}, price)
        assert ledger.head() == before


@pytest.mark.parametrize("stored", [False, True])
def test_an_answer_that_is_added_while_a_ledger_is_open_is_never_shown(path: pathlib.Path, stored: bool) -> None:
    """Also of a measurement that it has read, and where it stores answers itself."""
    with Ledger(path) as ledger:
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
        assert stored is False or ledger.store_answers("m", {b"d": 4.0}, listings=1) == {b"d": 4.0}
        with Ledger(path) as other:  # what is stored as it should be is shown
            other.store_answers("m", {b"e": 5.0}, listings=1)
        assert ledger.answers("m", [b"e"]) == {b"e": 5.0}
        inserted(f"INSERT INTO answer_sets VALUES (1, 9999, {PACKED})")(path)
        for use in (
            lambda: ledger.answers("m", [b"z"]),
            lambda: ledger.listings("m"),
            lambda: ledger.store_answers("m", {b"z": 1.0}, listings=1),
        ):
            with pytest.raises(LedgerError, match="has been tampered with: the answers"):
                use()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of POSIX")
@pytest.mark.parametrize("stored", [False, True])
def test_an_answer_that_is_added_while_a_process_forks_is_never_shown(path: pathlib.Path, stored: bool) -> None:
    """A fork closes the connection, and SQLite counts what others wrote anew for each."""
    with Ledger(path) as ledger:
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
        assert stored is False or ledger.store_answers("m", {b"d": 4.0}, listings=1) == {b"d": 4.0}
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        inserted(f"INSERT INTO answer_sets VALUES (1, 9999, {PACKED})")(path)
        with pytest.raises(LedgerError, match="has been tampered with: the answers"):
            ledger.answers("m", [b"z"])
        with pytest.raises(LedgerError, match="has been tampered with: the answers"):
            ledger.store_answers("m", {b"z": 1.0}, listings=1)


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


@pytest.mark.parametrize("table", ["answer_sets", "answered", "listings"])
def test_what_is_taken_away_from_an_open_ledger_is_noticed_at_the_next_use(path: pathlib.Path, table: str) -> None:
    with Ledger(path) as ledger:
        assert ledger.answers("m", [b"a"]) == {b"a": 1.0}
        edited(path, f"DELETE FROM {table} WHERE entry = (SELECT min(entry) FROM {table})", traceless=False)
        for use in (lambda: ledger.answers("m", [b"a"]), lambda: ledger.store_answers("m", {b"z": 1.0}, listings=1)):
            with pytest.raises(LedgerError, match="has been tampered with"):
                use()


def test_listings_are_not_those_that_are_remembered(path: pathlib.Path) -> None:
    with Ledger(path) as ledger:
        ledger.listings("m")[0]["above"] = 0.0
        assert ledger.listings("m") == [LISTING]


def test_the_documentation_has_this_table() -> None:
    page = (ROOT / "docs" / "budgets.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (.*) \| (.*) \|$", page.split("| what was done | noticed by |\n")[1], flags=re.M)
    rows = [row for row in shown if set(row[0]) - set("- ")]
    assert rows[: len(ATTACKS)] == [(name, noticed) for name, (noticed, _) in ATTACKS.items()]
