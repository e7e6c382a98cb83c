"""Power failures: what the disk was not told to keep is gone, as a log cut at its last sync."""

import os
import pathlib
import shutil

import pytest

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger

WORDS = wp.source("words", str)
ROWS = ["to", "be", "or", "not", "to", "be"]


class Disk:
    """What stands on the disk of a ledger: its file, its log up to the last sync, and its head file."""

    def __init__(self, path: pathlib.Path, folder: pathlib.Path) -> None:
        self.path, self._folder = path, folder
        self.synced = 0

    def sync(self) -> None:
        self.synced = os.stat(f"{self.path}-wal").st_size

    def fail(self) -> pathlib.Path:
        """The ledger after a power failure now."""
        lost = self._folder / "after"
        shutil.copy(self.path, lost)
        shutil.copy(f"{self.path}-head", f"{lost}-head")
        pathlib.Path(f"{lost}-wal").write_bytes(pathlib.Path(f"{self.path}-wal").read_bytes()[: self.synced])
        return lost


@pytest.fixture
def disk(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that is told by durable writes and by `flush` alone."""
    found = Disk(tmp_path / "ledger", tmp_path)
    write = Ledger.debit

    def debit(*arguments: object, **named: object) -> object:
        done = write(*arguments, **named)  # type: ignore[arg-type]
        found.sync()
        return done

    monkeypatch.setattr(Ledger, "debit", debit)
    return found


@pytest.mark.parametrize(("version", "fresh"), [(None, False), (None, True), ("1", True)])
def test_answers_that_no_later_session_can_request_are_lost_alone(disk: Disk, version: str | None, fresh: bool) -> None:
    counts = WORDS.noisy_count(epsilon=0.25, over=["to", "be"])
    with wp.Session(disk.path) as session:
        session.protect(WORDS, ROWS, budget=1, version=version)
        before = session.release(counts, fresh=fresh)
        assert os.stat(f"{disk.path}-wal").st_size > disk.synced
        after = disk.fail()
        with Ledger(after) as ledger:  # the head file is not ahead of it
            ledger.verify()
            assert [entry.kind for entry in ledger.entries()] == ["open account", "debit"]
        with wp.Session(after) as later:
            later.protect(WORDS, ROWS, budget=1, version=version)
            assert later.spent("words") == 0.25
            again = later.release(counts, fresh=fresh)  # another release, which is paid for
            assert later.spent("words") == 0.5
            assert again.values.tolist() != before.values.tolist()


def test_answers_of_a_declared_version_are_durable_before_they_are_shown(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, modes = WORDS.noisy_count(epsilon=0.25, over=["to", "be"]), []
    with wp.Session(disk.path) as session:
        session.protect(WORDS, ROWS, budget=1, version="1")
        store = session._ledger._store
        write = store.write

        def written(work: object, durable: bool = True) -> object:
            modes.append(durable)
            return write(work, durable)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "write", written)
        before = session.release(counts)
        disk.sync()
        with wp.Session(disk.fail()) as later:
            later.protect(WORDS, ROWS, budget=1, version="1")
            assert later.release(counts).values.tolist() == before.values.tolist()
            assert later.spent("words") == 0.25
    assert modes == [True, True]


def test_a_head_that_is_shown_is_durable(disk: Disk) -> None:
    with wp.Session(disk.path) as session:
        session.protect(WORDS, ROWS, budget=1)
        session.release(WORDS.noisy_count(epsilon=0.25, over=["to"]))
        statements: list[str] = []
        connection = session._ledger._store._connection  # type: ignore[attr-defined]
        connection.set_trace_callback(statements.append)
        head = session.head()
        connection.set_trace_callback(None)
        assert statements[0] == "PRAGMA wal_checkpoint"  # which syncs the log before it reads it
        disk.sync()
        with Ledger(disk.fail(), expected_head=head) as ledger:
            assert ledger.head() == head
