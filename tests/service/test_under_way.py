"""Records of releases under way: whoever dies over one, somebody finds it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from wpinq.errors import UsageError
from wpinq.service.inflight import InflightReleases


@pytest.fixture
def under_way(tmp_path: Path) -> InflightReleases:
    made = InflightReleases(tmp_path / "ledger.db")
    made.begin()
    return made


def died(under_way: InflightReleases, name: str) -> None:
    """A process that dies over a release."""
    pid = os.fork()
    if pid == 0:
        with under_way.recorded(name, {"edges"}):
            os._exit(1)
    os.waitpid(pid, 0)


def test_a_release_that_ends_leaves_nothing(under_way: InflightReleases, tmp_path: Path) -> None:
    name = under_way.name()
    with under_way.recorded(name, {"edges", "people"}):
        assert under_way.names() == {name}
        assert under_way.lives(name)
        assert under_way.accounts(name) == {"edges", "people"}
    with pytest.raises(KeyError), under_way.recorded(name, {"edges"}):
        raise KeyError  # it was refused, say: nobody died
    assert not under_way.names()
    assert not under_way.lives(name)
    assert not under_way.accounts(name)
    assert [each.name for each in (tmp_path / "ledger.db-inflight").iterdir()] == [".service"]


def test_a_release_that_somebody_died_over_is_found_until_it_was_seen_to(under_way: InflightReleases) -> None:
    died(under_way, "one")
    assert under_way.names() == {"one"}
    assert not under_way.lives("one")
    assert under_way.accounts("one") == {"edges"}
    under_way.forget("one")
    under_way.forget("one")
    assert not under_way.names()


def test_one_waits_for_the_end_of_a_release(under_way: InflightReleases) -> None:
    with under_way.recorded("one", {"edges"}):
        waiting = threading.Thread(target=under_way.wait, args=("one",))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join()
    assert not under_way.names()


def test_nobody_else_can_take_records_away(under_way: InflightReleases, tmp_path: Path) -> None:
    folder = tmp_path / "ledger.db-inflight"
    assert folder.stat().st_mode & 0o777 == 0o700
    with under_way.recorded("one", {"edges"}):
        assert (folder / "one").stat().st_mode & 0o777 == 0o600
    folder.chmod(0o770)
    with pytest.raises(UsageError, match="chmod 700"):
        under_way.begin()
