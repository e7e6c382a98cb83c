"""Heads and copies of ledgers on the command line: printed, expected, kept, restored."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from wpinq.cli.main import main
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "l.db") as made:
        made.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=10**9)])
    return tmp_path / "l.db"


def spend(ledger: Path) -> str:
    with Ledger(ledger) as opened:
        opened.debit({f"after {opened.head()}": "count"}, lambda new, parts_of: Pricing({"edges": 1}, {}))
        return opened.head()


def test_a_ledger_is_copied_and_restored_with_its_head(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, copy = spend(ledger), ledger.with_name("copy")
    assert main(["ledger", "backup", str(ledger), str(copy)]) == 0
    assert f"Head of the copy: {head}\n" in capsys.readouterr().out
    assert copy.stat().st_mode & 0o777 == 0o600
    assert main(["ledger", "show", str(copy)]) == 6
    assert "backup of a ledger" in capsys.readouterr().err
    assert main(["ledger", "backup", str(ledger), str(copy)]) == 6
    assert "exists (copies are never overwritten)" in capsys.readouterr().err
    restoring = ["ledger", "restore", str(copy), str(ledger)]
    assert main(restoring) == 2
    assert "--expected-head HEAD" in capsys.readouterr().err
    assert main([*restoring, "--expected-head", head]) == 6
    assert "exists (move it away if it is damaged)" in capsys.readouterr().err
    ledger.unlink()
    assert main(["ledger", "show", str(ledger)]) == 6
    assert "-head records 2 entries" in capsys.readouterr().err
    assert main([*restoring, "--expected-head", head]) == 0
    assert main(["ledger", "verify", str(ledger), "--expected-head", head]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", str(ledger), "--json", "--expected-head", head]) == 0
    assert json.loads(capsys.readouterr().out)["head"] == head
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert spend(ledger)


def test_a_copy_that_is_older_is_refused(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy, other = ledger.with_name("copy"), ledger.with_name("other.db")
    before = spend(ledger)
    assert main(["ledger", "backup", str(ledger), str(copy)]) == 0
    head = spend(ledger)
    assert main(["ledger", "restore", str(copy), str(other), "--expected-head", head]) == 6
    assert "does not hold entry 3" in capsys.readouterr().err
    assert not other.exists()
    ledger.unlink()  # the file beside it knows too
    assert main(["ledger", "restore", str(copy), str(ledger), "--expected-head", before]) == 6
    assert "does not hold entry 3, which it had by its -head file" in capsys.readouterr().err
    assert sorted(path.name for path in ledger.parent.iterdir()) == ["copy", "l.db-head"]


@pytest.mark.parametrize("content", [b"", b"no database, though long enough to be read as one" * 100])
def test_what_is_no_copy_is_not_restored(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy").write_bytes(content)
    head = f"1:{'0' * 64}"
    assert main(["ledger", "restore", str(tmp_path / "copy"), str(tmp_path / "l.db"), "--expected-head", head]) == 6
    assert "no backup of a ledger" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_head_that_is_lost_is_refused(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = spend(ledger)
    assert main(["ledger", "show", str(ledger)]) == 0
    assert re.search(rf"^Head of the ledger: {head}$", capsys.readouterr().out, flags=re.M)
    number, _, digits = head.partition(":")
    assert main(["ledger", "show", str(ledger), "--expected-head", f"{int(number) + 1}:{digits}"]) == 6
    assert "does not hold entry 3, the head that is expected" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["ledger", "show", str(ledger), "--expected-head", "7"])
    assert ended.value.code == 2
    assert main(["ledger", "set", str(ledger), "--budget", "edges=2", "--expected-head", head]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["ledger", "backup", str(ledger)])
    assert ended.value.code == 2


def test_a_read_only_ledger_is_shown_as_it_stands(
    ledger: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a copy, for SQLite would write beside it; also of what stands in its log alone."""
    head, read_only = spend(ledger), os.access
    with Ledger(ledger) as writing:  # which keeps the log
        writing.debit({"another": "count"}, lambda new, parts_of: Pricing({"edges": 5}, {}))
        last, before = writing.head(), {path: path.read_bytes() for path in ledger.parent.iterdir()}
        assert len(before) > 2
        with monkeypatch.context() as patched:
            patched.setattr("os.access", lambda path, mode: mode != os.W_OK and read_only(path, mode))
            assert main(["ledger", "show", str(ledger), "--history", "--expected-head", head]) == 0
            assert f"Head of the ledger: {last}" in capsys.readouterr().out
            assert main(["ledger", "show", str(ledger.with_name("none"))]) == 6
            assert f"{ledger.with_name('none')}: " in capsys.readouterr().err
        assert {path: path.read_bytes() for path in ledger.parent.iterdir()} == before


SHOWN = """
import os, sys
from wpinq.cli.main import main
os.chmod(sys.argv[1], 0o555)
for name in os.listdir(sys.argv[1]):
    os.chmod(os.path.join(sys.argv[1], name), 0o444)
if os.geteuid() == 0:  # permissions do not bind root
    os.setuid(65534)
raise SystemExit(main(["ledger", "show", os.path.join(sys.argv[1], "l.db")]))
"""


@pytest.mark.long
def test_so_it_is_by_another_user_who_may_only_read() -> None:
    with tempfile.TemporaryDirectory() as folder:  # a path that every user can walk, unlike tmp_path
        with Ledger(Path(folder, "l.db")) as made:
            made.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=10**9)])
            head = made.head()
        names = sorted(os.listdir(folder))
        root = Path(__file__).parents[2]
        done = subprocess.run([sys.executable, "-c", SHOWN, folder], capture_output=True, text=True, cwd=root)
        os.chmod(folder, 0o777)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Head of the ledger: {head}" in done.stdout
        assert sorted(os.listdir(folder)) == names
