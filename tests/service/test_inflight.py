"""Records of releases in flight: whoever dies over one, somebody finds it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from wpinq.errors import UsageError
from wpinq.service.inflight import InflightReleases


@pytest.fixture
def inflight(tmp_path: Path) -> InflightReleases:
    made = InflightReleases(tmp_path / "ledger.db")
    made.begin()
    return made


def died(inflight: InflightReleases, name: str) -> None:
    """A process that dies over a release."""
    pid = os.fork()
    if pid == 0:
        with inflight.recorded(name, {"edges"}):
            os._exit(1)
    os.waitpid(pid, 0)


def test_a_release_that_ends_leaves_nothing(inflight: InflightReleases, tmp_path: Path) -> None:
    name = inflight.name()
    with inflight.recorded(name, {"edges", "people"}):
        assert inflight.names() == {name}
        assert not inflight.ended(name)
        assert inflight.accounts(name) == {"edges", "people"}
    with pytest.raises(KeyError), inflight.recorded(name, {"edges"}):
        raise KeyError  # it was refused, say: nobody died
    assert not inflight.names()
    assert inflight.ended(name)
    assert not inflight.accounts(name)
    assert [each.name for each in (tmp_path / "ledger.db-inflight").iterdir()] == [".service"]


def test_a_release_that_somebody_died_over_is_found_until_it_was_seen_to(inflight: InflightReleases) -> None:
    died(inflight, "one")
    assert inflight.names() == {"one"}
    assert inflight.ended("one")
    assert inflight.accounts("one") == {"edges"}
    inflight.forget("one")
    inflight.forget("one")
    assert not inflight.names()


def test_one_waits_for_the_end_of_a_release(inflight: InflightReleases) -> None:
    with inflight.recorded("one", {"edges"}):
        waiting = threading.Thread(target=inflight.ended, args=("one", True))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join()
    assert not inflight.names()


def test_nobody_else_can_take_records_away(inflight: InflightReleases, tmp_path: Path) -> None:
    folder = tmp_path / "ledger.db-inflight"
    assert folder.stat().st_mode & 0o777 == 0o700
    with inflight.recorded("one", {"edges"}):
        assert (folder / "one").stat().st_mode & 0o777 == 0o600
    folder.chmod(0o770)
    with pytest.raises(UsageError, match="chmod 700"):
        inflight.begin()
