"""The ledger file holds what was asked and what was answered, and nothing of the data."""

from __future__ import annotations

import pathlib
import sqlite3
import struct
from typing import Any

import wpinq as wp


def everything(path: pathlib.Path) -> bytes:
    """The bytes of the ledger and of its companions."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")))


def test_no_record_and_no_true_value_is_in_the_file(tmp_path: pathlib.Path, visits: wp.Query, secret: Any) -> None:
    path = tmp_path / "ledger.db"
    data = {(secret.word, secret.number): secret.weight, ("asked for", 3): 0.8807970779778823}
    with wp.Session(path) as session:
        session.protect(visits, data, budget=1000, version="first")
        handle = session.release(visits.noisy_count(1))
        handle.at([("asked for", 3), ("absent", 4)])
        session.release(visits.select(lambda v: v.who).noisy_count(1, over=["asked for"]))
        session.release(visits.select(lambda v: v.amount).median(1, range(10)))
        session.release(visits.noisy_average(1, lambda v: v.amount, 0, 10))
        open_bytes = everything(path)
    for stored in (open_bytes, everything(path)):
        assert b"asked for" in stored  # so that the search is known to find what is there
        assert b"absent" in stored
        assert secret.word.encode() not in stored
        for order in "<>":
            assert struct.pack(f"{order}q", secret.number) not in stored
            for true in (*data.values(), sum(data.values())):
                assert struct.pack(f"{order}d", true) not in stored
        assert str(secret.number).encode() not in stored
        assert repr(secret.weight)[:10].encode() not in stored


def test_the_file_is_the_same_size_whatever_the_data(tmp_path: pathlib.Path, visits: wp.Query) -> None:
    sizes, tables = set(), set()
    for name, data in (("none", []), ("one", [("a", 1)]), ("many", [(f"{i}", i) for i in range(5000)])):
        path = tmp_path / name
        with wp.Session(path) as session:
            session.protect(visits, data, budget=1000)
            session.release(visits.noisy_count(1)).at([("a", 1), ("4999", 4999)])
            session.release(visits.select(lambda v: v.amount).noisy_count(1, over=range(50)))
        sizes.add(path.stat().st_size)
        with sqlite3.connect(path) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables.add(tuple((name, database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in names))
        database.close()
    assert len(sizes) == len(tables) == 1


def test_entries_of_answers_do_not_tell_when(tmp_path: pathlib.Path, visits: wp.Query) -> None:
    with wp.Session(tmp_path / "ledger.db") as session:
        session.protect(visits, [("a", 1)], budget=1000)
        session.release(visits.noisy_count(1, over=[("a", 1)]))
        assert {e.kind: bool(e.time) for e in session._ledger.entries()} == {
            "open account": True,
            "debit": True,
            "answers": False,
        }


def test_keys_are_stored_in_the_same_way_whether_present_or_not(tmp_path: pathlib.Path, visits: wp.Query) -> None:
    path = tmp_path / "ledger.db"
    with wp.Session(path) as session:
        session.protect(visits, [("a", 1)] * 1000, budget=1000)
        handle = session.release(visits.noisy_count(1))
        for key in (("b", 1), ("a", 1), ("c", 1)):
            assert type(handle[key]) is float
        together = handle.at([("d", 1), ("a", 1), ("e", 1)])
        assert together.keys == (("d", 1), ("a", 1), ("e", 1))
        assert together.values.dtype == float
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT typeof(answers), length(answers) FROM answers ORDER BY entry").fetchall()
    database.close()
    assert len(rows) == 4
    assert len(set(rows[:3])) == 1
    assert rows[3] == ("blob", 2 * rows[0][1])  # of two that are new, beside one that is not
