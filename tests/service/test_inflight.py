"""Records of releases in flight: whoever dies over one, somebody finds it."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.service.test_revocation import HeldChannel
from tests.support.service import configured
from wpinq.errors import LedgerError, UsageError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.config import read_configuration
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.inflight import InflightReleases
from wpinq.service.processes import NoAnswer


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


def test_a_record_that_a_full_disk_cannot_hold_leaves_nothing(
    inflight: InflightReleases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="full"), inflight.recorded("one", {"edges"}):
        raise AssertionError("it began")
    assert [each.name for each in (tmp_path / "ledger.db-inflight").iterdir()] == [".service"]


def test_a_death_that_a_full_disk_cannot_record_is_answered_at_its_moment_and_suspends_before_the_next_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = read_configuration(configured(tmp_path))
    inflight = InflightReleases(configuration.ledger)
    inflight.begin()
    planners = HeldChannel(program=None, unbudgeted=[], not_admitted="", seconds=100.0, bill={"edges": "0.1"})
    measured, slept, begun = HeldChannel(slowdown=1.0), list[float](), list[bool]()

    class Dying(HeldChannel):
        async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
            begun.append("edges" in ledger.suspended())
            died(inflight, request["name"])
            raise NoAnswer

    async def waited(seconds: float) -> None:
        slept.append(seconds)

    def full(accounts: Any) -> Any:
        raise LedgerError("the disk is full")

    async def run() -> None:
        planners.let.set()
        measured.let.set()
        dispatcher = Dispatcher(configuration, {}, ledger, planners, Dying(), measured)
        dispatcher.start()
        honest = ledger.suspend
        for suspend, error in ((full, LedgerError), (full, LedgerError), (honest, Exception)):
            monkeypatch.setattr(ledger, "suspend", suspend)
            with pytest.raises(error):
                await dispatcher.release({}, "alice", None, lambda: None)
        dispatcher.users.close()

    monkeypatch.setattr("wpinq.service.dispatcher.asyncio.sleep", waited)
    with Ledger(configuration.ledger) as ledger:
        ledger.open_accounts([declared_account("edges", schema="s", unit="edge", unit_weight=1, budget=10**9)])
        asyncio.run(run())
    assert begun == [False, True]  # the second, with the disk still full, did not begin
    assert len(slept) == 2
    assert all(seconds > 90 for seconds in slept)


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
