"""Where ledgers and their copies stand: nothing of others is removed or written over, and advice can be followed."""

from __future__ import annotations

import os
import pathlib
import sqlite3
from fractions import Fraction
from typing import Any

import pytest

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import backup as backup_module, head_file
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.backup import backup, restore
from wpinq.kernel.ledger.ledger import Ledger, Pricing

needs_turns = pytest.mark.skipif(not head_file.HAS_TURNS, reason="the system has no locks of open files")


def spend(path: pathlib.Path, digest: str = "m") -> str:
    with Ledger(path) as ledger:
        ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=Fraction(1), budget=10**6)])
        ledger.debit({digest: "count"}, lambda new, parts_of: Pricing({"edges": 5}, {}))
        return ledger.head()


def lost(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path, str]:
    """A ledger that is gone, its copy, and the head that was kept elsewhere."""
    path, copy = folder / "l.db", folder / "copy"
    head = spend(path)
    backup(path, copy)
    path.unlink()
    return path, copy, head


@pytest.mark.parametrize("name", ["budget", "budget ?#%41\n\udcff"])
def test_a_ledger_of_a_like_name_stays(tmp_path: pathlib.Path, name: str) -> None:
    """Of a file with an ending that a half-made one might be given."""
    path, neighbour = tmp_path / name, tmp_path / f"{name}-new"
    head = spend(neighbour)
    spend(path)
    backup(path, tmp_path / "copy-new")
    backup(path, tmp_path / "copy")
    path.unlink()
    restore(tmp_path / "copy", path, spend_head(tmp_path / "copy"))
    Ledger(neighbour, create=False, expected_head=head).close()
    assert {file.name for file in tmp_path.iterdir()} == {
        name, f"{name}-head", f"{name}-new", f"{name}-new-head", "copy", "copy-new"}  # fmt: skip
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def spend_head(copy: pathlib.Path) -> str:
    connection = sqlite3.connect(copy)
    sequence, chained = connection.execute("SELECT max(sequence), hash FROM entries").fetchone()
    connection.close()
    return f"{sequence}:{chained.hex()}"


def test_a_copy_is_not_restored_over_a_ledger_that_came_meanwhile(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another restored a copy too, and spent from it: that would be given back."""
    path, copy, head = lost(tmp_path)
    real, later = backup_module._checked, []

    def checked(*arguments: Any) -> Any:
        found = real(*arguments)
        if not later:
            later.append("")
            restore(copy, path, head)
            later[0] = spend(path, "after")
        return found

    monkeypatch.setattr(backup_module, "_checked", checked)
    with pytest.raises(LedgerError, match="exists"):
        restore(copy, path, head)
    Ledger(path, expected_head=later[0]).close()


@needs_turns
def test_a_kill_amid_a_restoration_leaves_no_ledger_that_is_older_than_its_head(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, head = lost(tmp_path)
    os.remove(f"{path}-head")

    def killed(part: str, whole: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as amid, pytest.raises(KeyboardInterrupt):
        amid.setattr("wpinq.kernel.ledger.place.finish", killed)
        restore(copy, path, head)
    with pytest.raises(LedgerError, match="-head records 2 entries"):
        Ledger(path)
    restore(copy, path, head)
    Ledger(path, create=False, expected_head=head).close()


def test_what_is_said_of_a_second_name_can_be_done(tmp_path: pathlib.Path) -> None:
    path, second = tmp_path / "l.db", tmp_path / "second"
    head = spend(path)
    os.link(path, second)
    with pytest.raises(LedgerError, match="remove the others, and leave the one that has -head or -wal beside it"):
        Ledger(path)
    second.unlink()
    Ledger(path, create=False, expected_head=head).close()


def test_what_is_left_of_a_ledger_is_found_where_a_link_leads(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "l.db")
    (tmp_path / "l.db-wal").write_bytes(b"entries")
    with pytest.raises(LedgerError, match=r"its part .*l\.db-wal exists"):
        Ledger(tmp_path / "link")
    assert not (tmp_path / "l.db").exists()


@needs_turns
def test_a_link_beside_a_ledger_is_not_written_through(tmp_path: pathlib.Path) -> None:
    path, other = tmp_path / "l.db", tmp_path / "other"
    spend(path)
    other.write_bytes(bytes(100))
    os.remove(f"{path}-head")
    os.symlink(other, f"{path}-head")
    with pytest.raises(LedgerError):
        spend(path, "n")
    assert other.read_bytes() == bytes(100)


@needs_turns
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_what_root_puts_beside_a_ledger_is_its_owners(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "l.db"
    spend(path)
    os.remove(f"{path}-head")
    os.chown(path, 12345, 12346)
    spend(path, "n")
    status = os.stat(f"{path}-head")
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (12345, 12346, 0o600)
