"""Tokens that are taken away while their owners wait in line, and a register that is no longer at its place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service import COUNT, configured
from wpinq.errors import UsageError
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.app import create_app, security_headers
from wpinq.service.config import read_configuration
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.inflight import InflightReleases
from wpinq.service.middleware import RequestGuard
from wpinq.service.processes import Channel
from wpinq.service.users import UsersError, UserStore


class HeldChannel(Channel):
    """A channel whose workers answer all the same, when they are let."""

    def __init__(self, **told: object) -> None:
        object.__setattr__(self, "told", told)
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "let", asyncio.Event())

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        self.asked.append(request)
        await self.let.wait()
        return {"answer": self.told}


@pytest.mark.long
@pytest.mark.parametrize("change", ["remove", "renew"])
def test_who_is_turned_away_while_waiting_in_line_is_released_nothing(tmp_path: Path, change: str) -> None:
    """Otherwise what an analyst had put in line would be debited and answered after the curator took the token away."""
    configuration = read_configuration(configured(tmp_path, "release_workers = 1"))
    InflightReleases(configuration.ledger).begin()
    body = {"program": COUNT.format(name="x", epsilon="0.1")}

    async def asked() -> tuple[httpx.Response, httpx.Response, int]:
        planners = HeldChannel(program=None, unbudgeted=[], not_admitted="", seconds=0.0, bill={"edges": "0.1"})
        releases = HeldChannel(answers={}, remaining={})
        load = HeldChannel(slowdown=1.0)
        planners.let.set()
        load.let.set()
        with Ledger(configuration.ledger) as ledger, UserStore(configuration.users) as users:
            alice, bob = users.add("alice"), users.add("bob")
            dispatcher = Dispatcher(configuration, {}, ledger, planners, releases, load)
            dispatcher.start()
            guard = RequestGuard(create_app(dispatcher), dispatcher, security_headers(False))
            transport = httpx.ASGITransport(app=guard)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:

                def release(token: str) -> Any:
                    return client.post("/v1/release", json=body, headers={"Authorization": f"Bearer {token}"})

                first = asyncio.create_task(release(alice))
                while not releases.asked:
                    await asyncio.sleep(0.01)
                second = asyncio.create_task(release(bob))
                while not dispatcher.waiting()["release"]:
                    await asyncio.sleep(0.01)
                getattr(users, change)("bob")
                releases.let.set()
                answers = await first, await second
                dispatcher.users.close()
                return (*answers, len(releases.asked))

    first, second, handed_over = asyncio.run(asked())
    assert first.status_code == 200
    assert (second.status_code, second.json()["error"]["kind"]) == (401, "NoToken")
    assert handed_over == 1


def test_a_register_that_was_removed_or_replaced_knows_nobody(tmp_path: Path) -> None:
    """Otherwise the service would go by the file that is gone: who is removed from the new one could go on asking."""
    path = tmp_path / "users.db"
    with UserStore(path) as users:
        token = users.add("alice")
        os.rename(path, tmp_path / "away.db")
        for _ in range(2):
            with pytest.raises(UsersError, match="removed or replaced"):
                users.find(token)
            with pytest.raises(UsersError, match="removed or replaced"):
                users.add("bob")
            UserStore(path).close()  # another one in its place
        os.rename(tmp_path / "away.db", path)
        assert users.find(token) is not None


@pytest.mark.long
def test_a_ledger_is_served_by_one_service_at_a_time(tmp_path: Path) -> None:
    """Otherwise one that stops would forget what the other has under way: its failures would close nothing."""
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "ledger.db")
    InflightReleases(tmp_path / "ledger.db").begin()
    for ledger in (tmp_path / "ledger.db", link):
        pid = os.fork()
        if pid == 0:
            try:
                InflightReleases(ledger).begin()
            except UsageError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
